"""What the verbs share: from a file to a fitted estimator, tables joined, output files."""

import os
from argparse import Namespace
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heatsketch import __version__, io, plot
from heatsketch._arrays import Array
from heatsketch._checks import (
    MOST_OF_VARIANCE,
    check_finite,
    deciding,
    feature_names,
    variance_shares,
    warn_if_transposed,
    warn_of_scales,
)
from heatsketch._messages import logger, warn
from heatsketch._random import distinct_rows
from heatsketch._words import did_you_mean, no_parameter
from heatsketch.cli.arguments import FORMAT
from heatsketch.cli.printing import OUTPUTS
from heatsketch.comparison.run import ESTIMATORS, classes, defaults, embedded, needs_labels
from heatsketch.core.graph import Graph
from heatsketch.io.coordinates import with_coordinates_only
from heatsketch.io.files import PIPE, check_target, listed, need, suffix_of
from heatsketch.io.formats import FORMATS, check_key, read_like
from heatsketch.io.metadata import Record, write_metadata
from heatsketch.io.table import (
    Learned,
    are_row_numbers,
    check_names,
    column_with,
    default_names,
    is_id,
)
from heatsketch.metrics.markers import having

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
    mapped = _coordinates_of(mapped, points)
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


def _coordinates_of(mapped: io.Table, points: io.Table) -> io.Table:
    """Return a file of a picture without columns that are not coordinates, where that is open."""
    form = FORMATS.get(suffix_of(mapped.source))
    is_open = form is not None and form.has_columns and not mapped.learned
    return with_coordinates_only(mapped, points) if is_open else mapped


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


def known_places(args: Namespace, points: io.Table) -> tuple[Array, str]:
    """Read the places (n, c) of --places, NaN for points of INPUT that are not there, and a line.

    Rows are joined by ids; without any both files have the same rows.
    """
    picture = io.formats.read_embedding(args.places, ids=args.ids or ())
    picture = _coordinates_of(picture, points)
    Y, n = np.asarray(picture.values, dtype=float), points.values.shape[0]
    shared = shared_ids(args, points, picture)
    if shared is None:
        named = naming_columns(args, points) and naming_columns(args, picture)
        if len(Y) != n or named:
            raise ValueError(
                f"{args.places} has {len(Y):,} rows, {args.input} {n:,}, and no ids join them; "
                "name a column of ids with --id, each there once, or pass the same rows without."
            )
        warn_of_order(args, points, picture)
        return Y, f"{np.count_nonzero(~np.isnan(Y[:, 0])):,} of {n:,} known, joined by row"
    here, there = set(shared.first), set(shared.second)
    both = [row for row, name in enumerate(shared.first) if name in there]
    wanted = [shared.first[row] for row in both]
    rows_of(shared.first, wanted, args.input)  # refuses ids that are there twice
    places = np.full((n, Y.shape[1]), np.nan)
    places[both] = Y[rows_of(shared.second, wanted, args.places)]
    gone = len(there - here)
    known = np.count_nonzero(~np.isnan(places[:, 0]))
    line = f"{known:,} of {n:,} known, joined by {shared.columns}"
    return places, line + (f"; {gone:,} places are of other points" if gone else "")


def shared_ids(args: Namespace, first: io.Table, second: io.Table) -> SharedIds | None:
    """Return the ids by which points of two files can be joined, None without any.

    Columns of the same name need common entries; texts of other names most entries of the smaller
    file; numbers of rows, and columns of numbers that are not called ids, all of them.
    """
    ours, theirs = first.names | first.extra, second.names | second.extra
    found, others = [], naming_columns(args, second, ours)
    for one, a in naming_columns(args, first, theirs).items():
        for other, b in others.items():
            same = one == other or (is_id(one) and is_id(other))
            columns = ours[one], theirs[other]
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
    ours, theirs = first.names | first.extra, second.names | second.extra
    ids = {*naming_columns(args, first, theirs)} & {*naming_columns(args, second, ours)}
    for name in [name for name in ours if name in theirs]:
        a, b = entries(ours[name]), entries(theirs[name])
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


def naming_columns(
    args: Namespace, table: io.Table, others: Collection[str] = ()
) -> dict[str, list[str]]:
    """Return the columns that may name points, as text: those given by --id, if there are any.

    Else these are columns called ids, then texts and whole numbers without a repetition or gap;
    features among them if they are among the `others`, the columns of another file.
    """
    found = {name: entries(column) for name, column in id_columns(args, table).items()}
    asked = {*found} & {*(args.ids or ())}
    features = {name: column for name, column in table.names.items() if name in others}
    for name, column in () if asked else (table.extra | features).items():
        words = entries(column) if column.dtype.kind in "OUiu" else []
        if len(words) > 1 and len({*words, "None", ""}) == len(words) + 2:
            found.setdefault(name, words)
    return found


ROW_SUFFIXES = (".csv", ".tsv", ".txt")
_OPTIONS = ("label", "ids", "features", "exclude", "missing", "standardize", "encode", "graph")


# Reading points, and rows that have been mapped


def reading(args: Namespace, recorded: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the options of reading that were given, and those recorded for the rest."""
    names = (*_OPTIONS, *FORMAT)
    known = {name: x for name, x in (recorded or {}).items() if name in names}
    given = {name: x for name in _OPTIONS if (x := getattr(args, name)) is not None}
    return known | given | args.read


def read_points(args: Namespace, recorded: Mapping[str, Any] | None = None) -> io.Table:
    """Read INPUT, points or a graph, by the options given, else by those of an embedding."""
    logger.info("reading %s", args.input)
    options = reading(args, recorded)
    if "graph" in options:
        entry = options.pop("graph")
        if isinstance(entry, str):
            options["key"] = entry
        for name in options.keys() - defaults(io.read_graph).keys():
            args.usage_error(f"--{name} is for points, but INPUT is a graph; leave it out")
        return io.read_graph(args.input, **options)
    table = io.read_table(args.input, **{"missing": "error"} | options)
    words = {name: set(x.tolist()) for name, x in table.extra.items() if x.dtype.kind in "OU"}
    n = table.values.shape[0]
    warn_if_transposed(next((x for x in words.values() if len(x) == n), ()), table.columns)
    if len(words) == 2 and table.values.shape[1] == 1:  # two columns of names, one of weights?
        tails, heads = words.values()
        if 2 * len(tails & heads) >= min(len(tails), len(heads)):
            what = "{} looks like the edges of a graph from {!r} to {!r}"
            remedy = "pass --graph to embed its nodes, not its rows."
            warn(UserWarning, f"{what.format(table.source, *words)}; {remedy}")
    return _with_more(args, table)


def read_for_model(args: Namespace, features: Sequence[str], known: dict[str, Any]) -> io.Table:
    """Read points for a model: the columns, medians, means and scales are those of its fit.

    Options of the format count for files of the same suffix; those that are given count before
    those of the fit. A model that was fitted to an array finds its features by their names, if it
    has any, and has no medians to fill gaps.
    """
    logger.info("reading %s", args.input)
    if not known:
        return read_as(args, args.input, {"columns": [*features]})
    names = ("missing", *FORMAT) if suffix_of(args.input) == known["suffix"] else ("missing",)
    recorded = {name: x for name, x in known["options"].items() if name in names}
    return read_as(args, args.input, known, recorded)


def read_as(
    args: Namespace, source: Any, learned: Learned, recorded: Mapping[str, Any] | None = None
) -> io.Table:
    """Read points with the columns, medians, means and scales that were learned from others."""
    fixed = ("features", "exclude", "standardize", "encode")  # by those
    how = {name: x for name, x in reading(args, recorded).items() if name not in fixed}
    return _with_more(args, read_like(source, learned, **{"missing": "error"} | how))


def _with_more(args: Namespace, table: io.Table) -> io.Table:
    """Return the table; with --verbose its notes say what became of each column."""
    encoder = table.learned.get("encoder") if args.verbose else None
    return table if encoder is None else replace(table, notes=(*table.notes, encoder.describe()))


# Ids and labels of points


def id_columns(args: Namespace, table: io.Table) -> dict[str, Array]:
    """Return the columns of ids: those given, else those whose names are names of ids.

    Those given are those of INPUT; another file may have none of them.
    """
    given = [name for name in args.ids or () if name in table.extra]
    return {name: table.extra[name] for name in given or filter(is_id, table.extra)}


def entries(column: Array) -> list[str]:
    """Return the entries of a column as ids are compared: as text, without blanks around it."""
    return [str(item).strip() for item in column.tolist()]


def names_of(args: Namespace, table: io.Table) -> list[str]:
    """Return the ids of the points from the first column of ids, or the numbers of their rows."""
    rows = np.arange(table.values.shape[0]) if table.rows is None else table.rows
    return entries(next(iter(id_columns(args, table).values()), rows))


def rows_of(names: list[str], wanted: Iterable[str], source: Any) -> Array:
    """Return the rows of the wanted ids; raise for an id that is missing or not unique."""
    row_of, counts = {name: row for row, name in enumerate(names)}, Counter(names)
    wanted = [name.strip() for name in wanted]
    check_names(wanted, names, source, "point", 5)
    for name in wanted:
        if counts[name] > 1:
            raise ValueError(
                f"{source} has several points {name!r}; name a column without repetition with --id."
            )
    return np.array([row_of[name] for name in wanted])


def roots_of(args: Namespace, table: io.Table) -> Array:
    """Return the rows of --pseudotime: that of an id, or those of COLUMN=VALUE."""
    root, names = args.pseudotime.strip(), names_of(args, table)
    if root in names:
        return rows_of(names, [root], args.input)
    if "=" in root:  # names of columns may have one, too
        fitting = [name for name in table.extra if root.startswith(f"{name}=")]
        column = max(fitting, key=len, default=root.partition("=")[0])
        check_names([column], table.extra, args.input, "id or label column", 5)
        return np.flatnonzero(having(table.extra[column], root[len(column) + 1 :], column))
    if (column := column_with(root, table.extra)) is not None:
        what = f"{args.input} has no point {root!r}; it is a value of {column!r}"
        raise ValueError(f"{what}: pass --pseudotime {column}={root}.")
    return rows_of(names, [root], args.input)


def groups_of(table: io.Table) -> Array:
    """Return the group names of the points (n,), None for points without a label."""
    labels = None if table.label is None else table.extra[table.label]
    return classes(labels, table.values.shape[0])


def size_of(args: Namespace, table: io.Table) -> str:
    """Return the number of points or nodes of a table as text."""
    n, d = table.values.shape
    if args.graph is None:
        return f"{n:,} points, {d:,} features"
    return f"{n:,} nodes, {Graph(table.values).n_edges:,} edges"


def has_names(table: io.Table) -> bool:
    """Return whether the features have names of their own."""
    return table.columns != default_names(table.values)


def oddities(table: io.Table) -> str:
    """Return constant columns, equal rows and columns with most of the variance as text."""
    shares, n = variance_shares(table.values), table.values.shape[0]
    constant, most = np.flatnonzero(shares == 0), deciding(shares)
    most = most if len(most) else np.flatnonzero(shares >= MOST_OF_VARIANCE)
    repeated = n - len(distinct_rows(table.values)[0])
    found = []
    if len(constant):
        found.append(f"constant columns: {listed([table.columns[j] for j in constant], 5)}")
    if repeated:
        found.append(f"{repeated:,} of {n:,} rows equal others before them")
    if has_names(table) and len(most) and len(constant) < len(shares) - 1:
        named = ", ".join(repr(table.columns[j]) for j in most)
        has, is_it = ("has", "is it") if len(most) == 1 else ("have", "are they")
        what = f"{named} {has} {100 * shares[most].sum():.3g} % of the variance"
        found.append(f"{what}; {is_it} in the unit of the others? (--standardize, --exclude)")
    return "; ".join(found)


# Parameters and fits


def check_methods(args: Namespace, names: Iterable[str], *more: str) -> None:
    """End with a usage error for a name that is neither a method nor one of `more`."""
    known = [*ESTIMATORS, *more]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, end="")
            args.usage_error(f"there is no method {name!r}; choose from {', '.join(known)}{hint}")


def estimator_of(args: Namespace, method: str, **chosen: Any) -> Any:
    """Return an estimator with the parameters given, after a check of their names."""
    check_methods(args, [method])
    make = ESTIMATORS[method]
    return make(**parameters(args, defaults(make), method, **chosen))


def parameters(args: Namespace, known: Collection[str], name: str, **chosen: Any) -> dict[str, Any]:
    """Return the parameters given, those that a graph needs, and a seed.

    Ends with a usage error for a parameter that is not among the `known`.
    """
    for parameter in args.parameters:
        if parameter not in known:
            owners = [one for one, make in ESTIMATORS.items() if parameter in defaults(make)]
            hint = f"; it belongs to {', '.join(owners)}" if owners else ""
            args.usage_error(no_parameter(name, parameter, known, hint))
    if args.graph is not None and "affinity" not in known:
        args.usage_error(f"--graph: {name} is about points; choose a diffusion method")
    seed = {"random_state": 0} if "random_state" in known else {}
    return seed | chosen | graph_options(reading(args)) | args.parameters


def graph_options(how: dict[str, Any]) -> dict[str, Any]:
    """Return the options that follow from reading INPUT as a graph."""
    return {"filter": "heat", "affinity": "precomputed"} if "graph" in how else {}


def warn_of_units(options: dict[str, Any], table: io.Table) -> None:
    """Warn if one column decides all distances, by its name in the file.

    This covers methods that do not warn themselves; a repeated warning is printed once.
    """
    feature_names.set(table.columns)
    if "precomputed" not in options.values() and options.get("metric", "euclidean") == "euclidean":
        warn_of_scales(table.values)


def fit(args: Namespace, estimator: Any, table: io.Table, **given: Any) -> Array:
    """Fit an estimator to INPUT, with what else is given, and return the coordinates (n, k).

    Methods that need labels are fitted to the labelled rows; they map all rows.
    """
    groups = groups_of(table)
    if not needs_labels(estimator):
        warn_of_units(estimator.get_params(deep=False), table)
    elif not groups.astype(bool).any():
        raise ValueError(
            f"{type(estimator).__name__} is fitted to classes; name their column with --label."
        )
    X = table.values if args.graph is None else Graph(table.values)
    return embedded(estimator, X, groups, **given)


# Files that are written


def check_files(args: Namespace, *suffixes: str, method: str = "") -> None:
    """Raise before the work begins if an output file could not be written.

    The output must have one of the suffixes, a table of points one of `ROW_SUFFIXES`. Its entry of
    obsm is named after the method, as in `heatsketch.anndata`, unless a name is given; a copy of
    INPUT must not have it.
    """
    files = [path for name in OUTPUTS if (path := getattr(args, name)) is not None]
    if str(args.output) == PIPE and PIPE in suffixes:
        files.remove(args.output)
    for path in files:
        if [other.resolve() for other in files].count(path.resolve()) > 1:  # with --force one stays
            args.usage_error(f"{path} is another output, too; name a file")
        if path in (args.output, args.table):
            known = suffixes if path is args.output else ROW_SUFFIXES
            if suffix_of(path) not in known:
                args.usage_error(f"{path} has no known suffix; choose from {', '.join(known)}")
        form = FORMATS.get(suffix_of(path))
        if path is args.output and form is not None and form.package:
            need(form.package, path)
        in_place = path is args.output and bool(args.in_place)
        if path is not args.output or not args.resume:
            check_target(path, force=args.force, source=args.input, in_place=in_place)
        if not os.access(path.parent, os.W_OK):
            raise OSError(f"{path.parent} is not writable; choose another folder.")
    if args.plot is not None:
        plot.check_picture(args.plot)
    if method:
        name = "heat" if method == "heat-embedding" else method.replace("-", "_")
        args.output_key = args.output_key or f"X_{name}"
        check_key(args.output, args.input, args.output_key, force=args.force)


def write_coordinates(
    args: Namespace, table: io.Table, estimator: Any, Y: Array, **made: Any
) -> tuple[str, ...]:
    """Write coordinates with the record of how they were made; return their names."""
    names = tuple(map(str, estimator.get_feature_names_out()))
    made = {"version": __version__, **made, "dtype": str(Y.dtype), "columns": names}
    made["data"] = io.data_hash(table.values)
    logger.info("writing %s", args.output)
    how = {"key": args.output_key, "in_place": bool(args.in_place), "force": args.force}
    io.write_table(args.output, Y, names, table, metadata=made, **how)
    if args.metadata is not None:
        write_metadata(args.metadata, made, force=args.force)
    return names
