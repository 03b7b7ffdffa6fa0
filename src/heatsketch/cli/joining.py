"""Rows of two files that belong together: by ids that both have, else by row."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heatsketch import io
from heatsketch._exceptions import warn
from heatsketch._typing import Array
from heatsketch._validation import check_finite
from heatsketch.cli.common import entries, id_columns, rows_of
from heatsketch.io.coordinates import with_coordinates_only
from heatsketch.io.files import listed, suffix_of
from heatsketch.io.formats import FORMATS
from heatsketch.io.metadata import Record
from heatsketch.io.table import are_row_numbers, is_id

WITH_OBSM = (".h5ad", ".zarr")


class SharedIds(NamedTuple):
    """The columns of ids in two files, as words, and their entries."""

    columns: str
    first: list[str]
    second: list[str]


def coordinates(
    args: Namespace, points: io.Table, mapped: io.Table, name: str = ""
) -> tuple[Array, str]:
    """Return coordinates (n, k) of the points, and a line on their names and on how rows match.

    Rows are matched by ids if both files have them, else by their order. A `name` of all
    coordinates stands for those of each.
    """
    form = FORMATS.get(suffix_of(mapped.source))
    if form is not None and form.has_columns and not mapped.learned:  # else the columns are known
        mapped = with_coordinates_only(mapped, points)
    Y = np.asarray(mapped.values)
    if Record(mapped.metadata).is_single:  # text of float32 reads as float64
        Y = Y.astype(np.float32)
    named = f"{mapped.source}: {name or listed(mapped.columns, 5)}"
    shared, n = shared_ids(args, points, mapped), points.values.shape[0]
    if shared is None:
        if len(Y) != n:
            rows = f"{mapped.source} has {len(Y):,} rows"
            raise ValueError(f"{rows} but {args.input} has {n:,}; pass the same rows, or ids.")
        warn_of_order(args, points, mapped)
        check_finite(Y, str(mapped.source), mapped.columns)
        return Y, f"{named}; joined by row"
    wanted, known = shared.first, {*shared.second}
    if lost := [name for name in wanted if name not in known]:
        raise ValueError(
            f"{mapped.source} has no point {lost[0]!r}; it lacks {len(lost):,} of the {n:,} points "
            f"of {args.input} (by {shared.columns}); pass a file with all of them."
        )
    if wanted != shared.second:
        Y = Y[rows_of(shared.second, wanted, mapped.source)]
    check_finite(Y, str(mapped.source), mapped.columns)
    more = len(mapped.values) - n
    unused = f", {more:,} of its rows are not in {args.input}" if more > 0 else ""
    return Y, f"{named}; joined by {shared.columns}{unused}"


def read_picture(
    args: Namespace, points: io.Table, name: str, columns: Sequence[str] = ()
) -> tuple[Array, str]:
    """Read a picture (n, c), a file or an entry of obsm of INPUT, in the order of the points.

    Also returned is a line on its coordinates and how rows were matched.
    """
    in_input = suffix_of(points.source) in WITH_OBSM and not Path(name).exists()
    where = (args.input, name) if in_input else (name,)
    picture = io.formats.read_embedding(*where, ids=args.ids or (), coordinates=columns)
    Y, line = coordinates(args, points, picture, name if in_input else "")
    return np.asarray(Y, dtype=float), line


def shared_ids(args: Namespace, first: io.Table, second: io.Table) -> SharedIds | None:
    """Return the ids by which points of two files can be joined, None without any.

    Columns of the same name need common entries; texts of other names most entries of the smaller
    file; numbers of rows, and columns of numbers that are not called ids, all of them.
    """
    found, theirs = [], naming_columns(args, second)
    for one, a in naming_columns(args, first).items():
        for other, b in theirs.items():
            same = one == other or (is_id(one) and is_id(other))
            columns = first.extra[one], second.extra[other]
            are_texts = all(column.dtype.kind in "OU" for column in columns)
            if not (same or are_texts):
                continue
            common, least = len({*a} & {*b}), min(len({*a}), len({*b}))
            counted = [are_row_numbers(a), are_row_numbers(b)]
            is_exact = any(counted) or not (are_texts or is_id(one) or one in (args.ids or ()))
            if common >= (least if is_exact else 1 if same else least // 2 + 1):
                named = repr(one) if one == other else f"{one!r} and {other!r}"
                repeat = len({*a}) < len(a) or len({*b}) < len(b)
                found.append((all(counted), repeat, not same, SharedIds(named, a, b)))
    return min(found, key=lambda each: each[:3])[3] if found else None


def warn_of_order(args: Namespace, first: io.Table, second: io.Table) -> None:
    """Warn if rows of two files are joined by their order, but a column of both says otherwise."""
    ids = {*naming_columns(args, first)} & {*naming_columns(args, second)}
    for name in [name for name in first.extra if name in second.extra]:
        a, b = entries(first.extra[name]), entries(second.extra[name])
        disagree = name in ids and not (are_row_numbers(a) or are_row_numbers(b))
        if a != b and len(a) == len(b) and (disagree or sorted(a) == sorted(b)):
            row = next(row for row, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
            what = f"{first.source} and {second.source} are joined by row, but column {name!r}"
            warn(
                UserWarning,
                f"{what} differs: row {row} has {a[row]!r} and {b[row]!r}; put the rows in the "
                "same order, or name a column of ids with --id.",
            )
            return


def naming_columns(args: Namespace, table: io.Table) -> dict[str, list[str]]:
    """Return the columns that may name points, as text: those given by --id, if there are any.

    Else these are columns called ids, then texts and whole numbers without a repetition or gap.
    """
    found = {name: entries(column) for name, column in id_columns(args, table).items()}
    asked = {*found} & {*(args.ids or ())}
    for name, column in () if asked else table.extra.items():
        words = entries(column) if column.dtype.kind in "OUiu" else []
        if len(words) > 1 and len({*words, "None", ""}) == len(words) + 2:
            found.setdefault(name, words)
    return found
