"""Columns of tables: the one definition of a number, and the use of each column.

Text, sheets and Parquet files become Arrow tables; `table_of` turns these into points.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.io.blocks import Blocks, stamp
from heatsketch.io.files import listed
from heatsketch.io.table import (
    Reading,
    Table,
    choose_label,
    is_id,
    is_label,
    named_extra,
    objects,
    refuse_merged,
    refuse_repeated,
    require,
)

# Kinds of cells, with decimal points. Missing numbers are written as spreadsheets, R, Python
# and pandas do. Notation: decimal commas, groups of three digits, a currency, per cent, a
# typographic minus; dates and versions, which have several groups of other lengths, are text.
_GAPS = (
    *("", "na", "n/a", "#n/a", "#na", "#n/a n/a", "nan", "+nan", "-nan", "null", "none", "<na>"),
    *("nat", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
)
_SPACE = "['’_ \u00a0\u2009\u202f]"
_GROUPS = f"[0-9]{{1,3}}(?:(?:[.][0-9]{{3}})+|(?:,[0-9]{{3}})+|(?:{_SPACE}[0-9]{{3}})+)"
_BODY = f"(?:(?:{_GROUPS}|[0-9]+)(?:[.,][0-9]*)?|[.,][0-9]+)"
_CELL = re.compile(
    r"(?P<number>[-+]?(?:(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:e[-+]?[0-9]+)?|inf|infinity))|"
    "(?P<boolean>true|false)|"
    f"(?P<notation>[(]?[-+−–]? ?[$€£¥]? ?{_BODY}(?:e[-+−]?[0-9]+)?{_SPACE}?[%‰$€£¥]?[)]?)|"
    f"(?P<measured>[-+−–]?{_BODY} [a-zµμ°Ω%/²³]{{1,8}})",
    re.IGNORECASE,
)
_NOT_ONLY_NUMBERS = r"^[+-]?0[0-9]|^[+-]?[0-9]{17}|^\s*(?i:true|false)"  # 007, accounts, words
_PERHAPS = r"(?i)^\W*[0-9]|^\W*(inf|true|false)"  # how all of these but gaps begin
_BOOLEANS = {"true": 1.0, "false": 0.0}
_NOT_A_NUMBER = (
    "the column looks numeric but this is not a number. Correct it; or count such cells as missing "
    "with missing='drop' or 'median' (--missing drop or median); or, if this is no feature, name "
    "it with exclude, ids or label (--exclude, --id, --label)"
)
_ANOTHER_NOTATION = (
    "if commas mark decimals, pass decimal=',' (--read decimal=,); write numbers without signs for "
    "thousands, currencies, per cent and units; if this is no feature, name it with exclude "
    "(--exclude)"
)

Place = Callable[[int], str]  # from the number of a row to the words for its place


def kind_of(cell: str, decimal: str = ".") -> str:
    """Return the kind: missing, number, boolean, notation (other than ours), measured or text."""
    if decimal == ",":
        cell = cell.translate(str.maketrans(".,", ",."))
    cell = cell.strip()
    found = _CELL.fullmatch(cell)
    return str(found.lastgroup) if found else "missing" if cell.lower() in _GAPS else "text"


def number_of(cell: str) -> float:
    """Return the value of a cell that is a number or a boolean."""
    word = cell.strip().lower()
    return _BOOLEANS[word] if word in _BOOLEANS else float(word.replace(",", "."))


def numbers_in(column: Any, decimal: str) -> Array | None:
    """Return text as numbers (n,), NaN for gaps, if Arrow can read every cell; this is fast."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = column
    if decimal == ",":
        plain = pc.replace_substring(pc.replace_substring(column, ".", "x"), ",", ".")
    is_gap = pc.equal(plain, "")
    for _ in range(2):  # most tables have neither blanks around numbers nor words for gaps
        with suppress(pa.ArrowInvalid):
            found = pc.if_else(is_gap, None, plain).cast("float64").to_numpy(zero_copy_only=False)
            return None if np.isnan(found).all() else found
        plain = pc.ascii_trim_whitespace(plain)
        is_gap = pc.is_in(pc.ascii_lower(plain), pa.array(_GAPS))
    return None


def classified(column: Any, decimal: str) -> tuple[Array, list[str], Array, Array]:
    """Return numbers (n,), NaN for other cells, the different cells, their kinds, and codes (n,).

    The words true and false count as 1 and 0 if there are no other words.
    """
    import pyarrow.compute as pc

    encoded = pc.utf8_trim_whitespace(column.fill_null("")).dictionary_encode()
    words, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    kinds = np.array([kind_of(word, decimal) for word in words], "U8")
    if {*kinds.tolist()} <= {"boolean", "missing"}:
        kinds[kinds == "boolean"] = "number"
    pairs = zip(words, kinds, strict=True)
    values = np.array([number_of(word) if kind == "number" else np.nan for word, kind in pairs])
    return values[codes], words, kinds, codes


def table_of(table: Any, how: Reading, path: Path, place: Place, *, is_text: bool = False) -> Table:
    """Return the points of an Arrow table, with its other columns as ids and labels.

    Features are the requested columns, or else all numeric ones that are not ids, labels or
    excluded. They are float32 if all columns are; gaps are NaN.

    Raises
    ------
    ValueError
        If there is no feature, or a column looks numeric and is not; the message names the place.
    """
    names = table.column_names
    refuse_repeated(names, path)
    require(how.features + how.exclude, names, path)
    passed = [name for name in names if name in how.others or is_id(name) or is_label(name)]
    columns, extra, notes = {}, {}, []
    for name in how.features or [name for name in names if name not in passed]:
        column = table[name].combine_chunks()
        try:
            found, note = _feature(column, name, how, place)
            if found is not None:
                refuse_merged(name, found, column, place)
                columns[name] = found
                notes += [note] if note else []
            elif how.features:
                what = f"column {name!r} holds nothing that is a number"
                raise ValueError(f"{what}; name features that are numbers.")
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    if not columns:
        reason = f"no numeric column to use as a feature; its columns are {listed(names)}"
        reason = reason if table.num_rows else "no rows below its header; pass a table with some"
        raise ValueError(f"{path} has {reason}.")
    for name in [name for name in names if name not in columns]:
        if is_text:  # a column that could have been a feature holds something else
            may_be_number = bool(how.features or name in passed)
            may_be_number = may_be_number and not (name in how.ids or is_id(name))
            extra[name] = _from_text(table[name].combine_chunks(), how.decimal, may_be_number)
        else:  # in chunks, because Arrow limits the size of one
            extra[name] = _typed(table[name], f"{name} in {path}")
    values = np.stack([*columns.values()], axis=1)
    label = choose_label(extra, (*how.ids, *how.exclude))
    points = Table(values, tuple(columns), extra, label, str(path), notes=tuple(notes))
    warn_of_ids_and_labels(points, how)
    return points


def _feature(column: Any, name: str, how: Reading, place: Place) -> tuple[Array | None, str]:
    """Return a column of numbers, or None if it is not numeric, and a note."""
    from pyarrow import types

    kind = column.type
    if types.is_string(kind) or types.is_large_string(kind):
        return _feature_of_text(column, name, how, place)
    numeric = (types.is_floating, types.is_integer, types.is_decimal, types.is_boolean)
    if any(holds(kind) for holds in numeric):
        column = column.cast("float32" if kind == "float32" else "float64", safe=False)
        return column.to_numpy(zero_copy_only=False), ""
    return None, ""


def _feature_of_text(
    column: Any, name: str, how: Reading, place: Place
) -> tuple[Array | None, str]:
    """Return numbers that are written as text, or None if they are not numbers, and a note.

    If at least half of the cells, or of the different cells, are numbers, or if the column is
    requested, all other cells must be gaps. Further cells are an error, unless they count as
    missing; numbers in another notation never do.
    """
    import pyarrow.compute as pc

    asked = name in how.features
    is_text = not asked and len(column) > 0 and kind_of(column[0].as_py() or "") == "text"
    if is_text and not pc.any(pc.match_substring_regex(column, _PERHAPS)).as_py():
        return None, ""
    found = numbers_in(column, how.decimal)
    if found is not None:
        return found, ""
    found, words, kinds, codes = classified(column, how.decimal)
    filled, foreign, number = (kinds != "missing"), (kinds == "notation"), (kinds == "number")
    bad = filled & ~number
    if not bad.any():
        return (found if filled.any() else None), ""
    if not how.strict:
        return None, ""

    def complaint(bad: Array, remedy: str) -> ValueError:
        rows, cell = np.flatnonzero(bad[codes]), words[bad.argmax()]
        where = place(int(rows[0])) + (f" ({len(rows)} such cells)" if len(rows) > 1 else "")
        return ValueError(f"column {name!r} holds {cell[:80]!r} in {where}; {remedy}.")

    counts, numeric = np.bincount(codes), foreign | number
    half = 2 * counts @ numeric >= counts @ filled or 2 * numeric.sum() >= filled.sum()
    if not asked and not (half and numeric.any()):
        units = {word.rpartition(" ")[2] for word in np.array(words)[filled]}
        if len(units) == 1 and (kinds[filled] == "measured").all():
            raise complaint(filled, _ANOTHER_NOTATION)
        return None, ""
    if foreign.any():
        raise complaint(foreign, _ANOTHER_NOTATION)
    if not how.fills_gaps:
        raise complaint(bad, _NOT_A_NUMBER)
    shown = listed([repr(words[i]) for i in np.flatnonzero(bad)], 3)
    return found, f"{counts[bad].sum()} cells of {name!r} count as missing: {shown}"


def _from_text(column: Any, decimal: str, may_be_number: bool) -> Array:
    """Return integers if these print the same text, else floats if that is allowed, else text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    with suppress(pa.ArrowInvalid):
        integers = column.cast(pa.int64())
        if integers.cast(pa.string()).equals(column):
            return integers.to_numpy()  # type: ignore[no-any-return]
    if may_be_number and not pc.any(pc.match_substring_regex(column, _NOT_ONLY_NUMBERS)).as_py():
        found = numbers_in(column, decimal)
        if found is not None:
            return found
    return objects(column.to_pylist())


def _typed(column: Any, what: str) -> Array:
    """Return an Arrow column as numbers if it is numeric, else as objects with None for gaps."""
    from pyarrow import types

    if types.is_nested(column.type):
        raise ValueError(f"{what} has type {column.type}; store it in several columns or drop it.")
    whole = types.is_integer(column.type) or types.is_boolean(column.type)
    if (whole and not column.null_count) or types.is_floating(column.type):
        return column.to_numpy()  # type: ignore[no-any-return]
    return objects(column.to_pylist())


def rows_from(batches: Iterable[Any], start: int) -> Iterator[Any]:
    """Yield Arrow batches without the first `start` rows."""
    for batch in batches:
        if start < batch.num_rows:
            yield batch.slice(start)
        start = max(0, start - batch.num_rows)


def blocks_of(
    batches: Callable[[int], Iterator[Any]], n: int, schema: Any, how: Reading, path: Path
) -> Blocks:
    """Return points by blocks of Arrow batches; the first batch decides on the features."""
    import pyarrow as pa

    head = pa.Table.from_batches([*islice(batches(0), 1)], schema)
    first = table_of(head, how, path, "row {}".format)
    known = replace(how, features=first.columns, exclude=())

    def tables(start: int) -> Iterator[Table]:
        for batch in batches(start):
            rows, place = pa.Table.from_batches([batch]), partial(_row, start)
            yield replace(table_of(rows, known, path, place), notes=())
            start += batch.num_rows

    return Blocks(n, first.columns, first.values.dtype, str(path), partial(stamp, path), tables)


def _row(first: int, row: int) -> str:
    return f"row {first + row}"


def arrow_table(embedding: Array, names: Sequence[str], table: Table) -> Any:
    """Return an Arrow table of the ids and labels of a table, then the coordinates."""
    import pyarrow as pa

    columns = named_extra(table, names) | dict(zip(names, embedding.T, strict=True))
    arrays = {name: c.tolist() if c.dtype.hasobject else c for name, c in columns.items()}
    return pa.table(arrays)


# Features that may be something else

_LOOKED_AT, _FEWEST_ROWS, _FEW_VALUES = 2000, 10, 20
_LIKE_ID = re.compile(r"[\W_](id|ID|Id)$|[a-z](ID|Id)$")  # patient_id, patientId
_LIKE_LABEL = re.compile(
    r"(^|[\W_])(labels?|targets?|class|classes|outcomes?|clusters?|response|diagnosis|survived|"
    r"species)($|[\W_])",
    re.IGNORECASE,
)


def warn_of_ids_and_labels(table: Table, how: Reading) -> None:
    """Warn of features that look like ids or labels, unless the user named the features.

    An id has the name of one and no number twice, or counts the rows. A label has the name of one,
    or holds few whole numbers where most columns do not; if most do, these are the data (counts,
    answers, pixels).
    """
    if how.features or not how.strict or len(table.values) < _FEWEST_ROWS:
        return
    ids, labels, few = [], [], []
    for name, column in zip(table.columns, table.values.T, strict=True):
        seen = column[:_LOOKED_AT]
        seen = seen[~np.isnan(seen)]
        steps, whole = np.diff(seen), (seen == np.floor(seen)).all()
        counts = len(steps) and steps[0] != 0 and (steps == steps[0]).all()
        unique = _LIKE_ID.search(name) and len(np.unique(column)) == len(column)
        if whole and (counts or unique):
            ids.append(name)
        elif _LIKE_LABEL.search(name):
            labels.append(name)
        elif whole and 2 <= len(np.unique(seen)) <= min(_FEW_VALUES, len(seen) // 5):
            few.append(name)
    labels += few if 2 * len(few) <= len(table.columns) else []
    for kind, option, names in (("ids", "ids (--id)", ids), ("labels", "label (--label)", labels)):
        if names:
            warnings.warn(
                f"{table.source}: the features {listed(map(repr, names), 5)} may be {kind}; if "
                f"so, name them with {option}, or exclude (--exclude); if not, with features "
                "(--features).",
                stacklevel=6,
            )
