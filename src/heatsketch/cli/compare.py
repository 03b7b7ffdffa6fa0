"""heatsketch compare: methods on the same points, or the diffusions on two files of points."""

from argparse import Namespace
from typing import Any

import numpy as np
from scipy import sparse

import heatsketch as hs
from heatsketch import io, plot
from heatsketch._typing import Array
from heatsketch.cli import inputs
from heatsketch.cli.outputs import ROW_SUFFIXES, check_files, write_rows
from heatsketch.cli.printing import logger, print_summary
from heatsketch.comparison.methods import defaults
from heatsketch.comparison.result import FILES
from heatsketch.comparison.run import DEFAULT_METHODS
from heatsketch.io.formats import read_like
from heatsketch.uncertainty import sample_discrepancy

COLUMNS = ("id", "discrepancy", "low", "high")
SAMPLE_COLUMNS = ("file", "id", "discrepancy")
_NOT_OF_DIFFUSION = ("time", "n_components", "filter", "kind", "tolerance", "random_state")
_Told = tuple[dict[str, str], list[Any], Array]  # lines, rows of the table, points of the picture


def run(args: Namespace) -> None:
    """Compare methods, or the data of two files."""
    (_compare_methods if args.other is None else _compare_data)(args)


def _compare_methods(args: Namespace) -> None:
    """Compare the methods, write table, picture and embeddings, print the table."""
    names = args.methods or list(DEFAULT_METHODS)
    inputs.check_methods(args, names, "all")
    options = inputs.parameters(args, defaults(hs.compare), "compare")
    folder = args.output
    if folder is None:
        args.usage_error("the following arguments are required: -o/--output DIR")
    plot.check_picture(None)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; name a folder.")
    existing = ", ".join(name for name in FILES if (folder / name).exists())
    if existing and not args.force:
        raise FileExistsError(f"{folder} already has {existing}; pass --force to replace them.")
    table = inputs.read_points(args)
    inputs.warn_of_units({}, table)
    label = None if table.label is None else table.extra[table.label]
    methods = "all" if "all" in names else names
    result = hs.compare(table.values, methods, label, seeds=args.seeds, **options)
    result.write(folder, whole=args.whole)
    print(result, end="\n\n")
    if not result.embeddings:
        raise ValueError(f"no method computed an embedding; {folder / FILES[0]} says why.")
    written = ", ".join(name for name in FILES if (folder / name).exists())
    print_summary(args, {}, written=f"{folder}: {written}")


def _compare_data(args: Namespace) -> None:
    """Compare the files; print the discrepancy, write that of each point, draw it."""
    sizes = {"time": 8, "n_components": 256}
    options = inputs.parameters(args, defaults(hs.HeatSketch), "heat-sketch", **sizes)
    check_files(args, *ROW_SUFFIXES)
    first = inputs.read_points(args)
    tables = [first, _read_other(args, first)]
    ids = [inputs.ids_of(args, table) for table in tables]
    seed, how = options["random_state"], {name: options[name] for name in sizes}
    diffusion = {name: x for name, x in options.items() if name not in _NOT_OF_DIFFUSION}
    if args.same_rows or len(set(ids[0] or ()) & set(ids[1] or ())) > 1:
        names = [None, None] if args.same_rows else ids
        models = [
            hs.HeatSketch(1, 1, random_state=0, **diffusion).fit(table.values, ids=own)
            for table, own in zip(tables, names, strict=True)
        ]
        how["filter"] = options.get("filter", "power")
        found: Any = hs.diffusion_discrepancy(*models, rng=seed, **how)
        lines, rows, points = _of_same_points(args, tables, ids, found)
    else:
        if "filter" in options or "precomputed" in options.values():
            args.usage_error(
                "--filter, and what is precomputed, need the same points: ids in both files, or "
                "--same-rows"
            )
        X, Y = (table.values for table in tables)
        found = sample_discrepancy(X, Y, rng=seed, **how, **diffusion)
        lines, rows, points = _of_samples(args, tables, ids, found)
    if args.output is not None:
        write_rows(args, rows)
    if args.plot is not None:
        logger.info("embedding the points for the picture")
        Y = hs.HeatEmbedding(2, random_state=seed, **diffusion).fit_transform(points)
        values, title = np.hstack(found.per_point), found.describe()
        plot.scatter(Y, values, title=title, path=args.plot, whole=args.whole)
    print_summary(args, lines)


def _read_other(args: Namespace, first: io.Table) -> io.Table:
    """Read OTHER in the units of INPUT: in units of its own a shift of all points would vanish."""
    second = inputs.read_points(Namespace(**vars(args) | {"input": args.other}))
    if first.columns != second.columns:
        raise ValueError(
            f"{first.source} and {second.source} have different features; name those of both with "
            "--features."
        )
    if not args.standardize and args.missing != "median":
        return second
    how = inputs.reading(args)
    known = ("features", "exclude", "standardize")
    return read_like(args.other, first.learned, **{k: v for k, v in how.items() if k not in known})


def _of_same_points(args: Namespace, tables: list[io.Table], ids: list[Any], found: Any) -> _Told:
    shown = np.array(ids[0] or range(tables[0].values.shape[0]), dtype=object)
    points, rows = f"{len(found.per_point):,} points of both", np.arange(len(shown))
    if found.ids is not None:
        lost = [len(own) - len(found.ids) for own in ids]
        points += f", by their ids; {lost[0]:,} and {lost[1]:,} only in one"
        rows = inputs.rows_of(ids[0], found.ids.tolist(), args.input)
    value, low, high = found.interval(args.level)
    lines = {
        "points": points,
        "discrepancy": f"{value:.4g} ({100 * args.level:g} %: {low:.4g} to {high:.4g})",
        "relative": f"{100 * value / found.size:.3g} % of the size of the operators",
        "most at": ", ".join(map(str, shown[rows[np.argsort(-found.per_point)[:5]]])),
    }
    ends = np.transpose(found.point_interval(args.level))
    cells = [(i, *(f"{x:.6g}" for x in row)) for i, row in zip(shown[rows], ends, strict=True)]
    return lines, [COLUMNS, *cells], tables[0].values[rows]


def _of_samples(args: Namespace, tables: list[io.Table], ids: list[Any], found: Any) -> _Told:
    value, low, high = found.interval(args.level)
    n, m = map(len, found.per_point)
    lines = {
        "points": f"{n:,} and {m:,}, compared as different ones (no common ids)",
        "discrepancy": f"{value:.4g} ({100 * args.level:g} %: {low:.4g} to {high:.4g}) of 1.41",
        "p-value": f"{found.p_value:.3g}, that all points are of one law and independent",
        "mismatch": f"{found.mismatch:.2g} of the field, of length {found.scale:.3g}",
    }
    rows: list[Any] = [SAMPLE_COLUMNS]
    for table, own, values in zip(tables, ids, found.per_point, strict=True):
        names = own or range(len(values))
        rows += [(table.source, i, f"{x:.6g}") for i, x in zip(names, values, strict=True)]
    X, Y = (table.values for table in tables)
    return lines, rows, (sparse.vstack if sparse.issparse(X) else np.vstack)([X, Y])
