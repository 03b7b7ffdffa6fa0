"""heatsketch compare-data: how much the diffusions on two files of points differ, and where."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import heatsketch as hs
from heatsketch import io, plot
from heatsketch._typing import Array
from heatsketch.cli.arguments import add_diffusion, number, positive
from heatsketch.cli.files import (
    add_force,
    add_input,
    add_plot,
    check_output,
    check_plot,
    read_input,
    reading,
)
from heatsketch.cli.points import ROW_SUFFIXES, ids_of, write_rows
from heatsketch.cli.reporting import logger, print_lines
from heatsketch.comparison.methods import defaults
from heatsketch.io.formats import read_like
from heatsketch.uncertainty import sample_discrepancy

COLUMNS = ("id", "discrepancy", "low", "high")
SAMPLE_COLUMNS = ("file", "id", "discrepancy")
FEATURE_OPTIONS = ("features", "exclude", "standardize")


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "compare-data", help="say how much the diffusions on two files of points differ, and where"
    )
    add_input(command)
    add = command.add_argument
    add("other", metavar="OTHER", help="file that INPUT is compared with, read in the same way")
    same = (
        "the files hold the same points in the same order; without it points are matched by ids, "
    )
    same += "and files without common ids are compared as samples of different points"
    add("--same-rows", action="store_true", help=same)
    written = "file for the discrepancy of each point: .csv, .tsv or .txt"
    add("-o", "--output", type=Path, metavar="FILE", help=written)
    add_plot(command, "the points, coloured by their discrepancy")
    add("--time", type=number, default=8, metavar="T", help="diffusion time (default 8)")
    columns = "random columns; the error of the discrepancy is at most 1/√(2k) (default 256)"
    add("--n-components", type=positive, default=256, metavar="K", help=columns)
    level = "probability with which an interval holds the discrepancy (default 0.95)"
    add("--level", type=float, default=0.95, metavar="P", help=level)
    add_diffusion(command, of="heat-sketch")
    add_force(command)
    return command


def run(args: argparse.Namespace) -> None:
    """Compare the files; print the discrepancy, write that of each point, draw it."""
    if args.output is not None:
        check_output(args, args.output, ROW_SUFFIXES)
    check_plot(args)
    first = read_input(args)
    second = _read_other(args, first)
    found = (ids_of(args, table) for table in (first, second))
    ids = [None if own is None else np.array(own) for own in found]
    lines, rows, picture = (
        _same_points(args, first, second, ids)
        if args.same_rows or _have_common(ids)
        else _samples(args, first, second, ids)
    )
    if args.output is not None:
        write_rows(args.output, rows, force=args.force)
    if args.plot is not None:
        logger.info("embedding the points for the picture")
        points, values, title = picture
        Y = hs.HeatEmbedding(2, random_state=args.random_state, **_options(args)).fit_transform(
            points
        )
        plot.scatter(Y, values, title=title, path=args.plot)
    written = ", ".join(str(path) for path in (args.output, args.plot) if path)
    print_lines(lines | ({"written": written} if written else {}))


def _read_other(args: argparse.Namespace, first: io.Table) -> io.Table:
    """Read OTHER in the units of INPUT: in units of its own a shift of all points would vanish."""
    second = read_input(argparse.Namespace(**vars(args) | {"input": args.other}))
    if first.columns != second.columns:
        raise ValueError(
            f"{first.source} and {second.source} have different features; name those of both with "
            "--features."
        )
    if not args.standardize and args.missing != "median":
        return second
    options = reading(args)
    how = {name: options[name] for name in options if name not in FEATURE_OPTIONS}
    return read_like(args.other, first.learned, **how)


def _same_points(
    args: argparse.Namespace, first: io.Table, second: io.Table, ids: list[Array | None]
) -> tuple[dict[str, str], list[Any], Any]:
    """Compare files of the same points: lines to print, rows of the table, and the picture."""
    names = [None, None] if args.same_rows else ids
    options = _options(args) | {"random_state": 0}
    models = [
        hs.HeatSketch(1, 1, **options).fit(table.values, ids=own)
        for table, own in zip((first, second), names, strict=True)
    ]
    found = hs.diffusion_discrepancy(
        *models,
        time=args.time,
        filter=getattr(args, "filter", "power"),
        n_components=args.n_components,
        rng=args.random_state,
    )
    value, low, high = found.interval(args.level)
    points = f"{len(found.per_point):,} points of both"
    if found.ids is not None:
        left = [len(own) - len(found.ids) for own in ids if own is not None]
        points += f", by their ids; {left[0]:,} and {left[1]:,} only in one"
    lines = {
        "points": points,
        "discrepancy": f"{value:.4g} ({100 * args.level:g} %: {low:.4g} to {high:.4g})",
        "relative": f"{100 * value / found.size:.3g} % of the size of the operators",
    }
    at = np.arange(len(found.per_point)) if found.ids is None else _rows_of(ids[0], found.ids)
    shown = np.arange(first.values.shape[0]) if ids[0] is None else ids[0]
    lines["most at"] = ", ".join(str(shown[at[i]]) for i in np.argsort(-found.per_point)[:5])
    ends = zip(*found.point_interval(args.level), strict=True)
    rows = [COLUMNS, *((shown[i], *map(_text, row)) for i, row in zip(at, ends, strict=True))]
    return lines, rows, (first.values[at], found.per_point, found.describe())


def _samples(
    args: argparse.Namespace, first: io.Table, second: io.Table, ids: list[Array | None]
) -> tuple[dict[str, str], list[Any], Any]:
    """Compare samples of different points: lines to print, rows of the table, and the picture."""
    if hasattr(args, "filter") or "precomputed" in _options(args).values():
        args.usage_error(
            "--filter, and what is precomputed, need the same points: ids in both files, or "
            "--same-rows"
        )
    found = sample_discrepancy(
        first.values,
        second.values,
        time=args.time,
        n_components=args.n_components,
        rng=args.random_state,
        **_options(args),
    )
    value, low, high = found.interval(args.level)
    n, m = map(len, found.per_point)
    lines = {
        "points": f"{n:,} and {m:,}, compared as different ones (no common ids)",
        "discrepancy": f"{value:.4g} ({100 * args.level:g} %: {low:.4g} to {high:.4g}) of 1.41",
        "p-value": f"{found.p_value:.3g}, that all points are of one law and independent",
        "mismatch": f"{found.mismatch:.2g} of the field, of length {found.scale:.3g}",
    }
    rows: list[Any] = [SAMPLE_COLUMNS]
    for table, own, values in zip((first, second), ids, found.per_point, strict=True):
        names = range(len(values)) if own is None else own
        rows += [(table.source, i, _text(x)) for i, x in zip(names, values, strict=True)]
    stack = sparse.vstack if sparse.issparse(first.values) else np.vstack
    points = stack([first.values, second.values])
    return lines, rows, (points, np.concatenate(found.per_point), found.describe())


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the diffusion that were given."""
    shared = defaults(hs.HeatSketch).keys() - {"n_components", "time", "filter", "random_state"}
    return {name: value for name, value in vars(args).items() if name in shared}


def _have_common(ids: list[Array | None]) -> bool:
    """Say whether both files have ids, and at least two the same."""
    first, second = ids
    return first is not None and second is not None and len(np.intersect1d(first, second)) > 1


def _rows_of(ids: Array | None, some: Array) -> Array:
    """Return the rows of some of the ids."""
    assert ids is not None
    order = np.argsort(ids)
    rows: Array = order[np.searchsorted(ids, some, sorter=order)]
    return rows


def _text(value: float) -> str:
    return f"{value:.6g}"
