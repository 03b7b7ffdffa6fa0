"""heatsketch embed --dry-run: how much memory each stage needs, and whether it is available."""

import argparse
from typing import Any

import numpy as np

from heatsketch import memory
from heatsketch.cli import streams
from heatsketch.cli.files import read_input
from heatsketch.comparison.methods import ESTIMATORS, defaults
from heatsketch.distributed.stream import BLOCK_ROWS, size


def of_table(args: argparse.Namespace, options: dict[str, Any]) -> dict[str, str]:
    """Return what is printed of points that are read whole."""
    table = read_input(args)
    n, d = table.values.shape
    lines = {"input": f"{table.source}: {n:,} points, {d:,} features, {table.values.dtype}"}
    return lines | _memory(args, n, d, _options(args, table.values, options), "the input")


def of_sample(args: argparse.Namespace, options: dict[str, Any]) -> dict[str, str]:
    """Return what is printed of points that are read by blocks, of which a sample is fitted."""
    streams.refuse_whole_only(args)
    if args.whole_graph:
        args.usage_error("--dry-run tells of a sample, of which --whole-graph has none")
    points = streams.opened(args)
    n, d = points.n, len(points.columns)
    known = _options(args, np.empty((0, d), points.dtype), options)
    with memory.memory_budget(args.memory_budget):
        fitted = size(points, ESTIMATORS[args.method](**options), args.fit_points)
    if points.stored is not None:
        known["stored"] = points.stored * fitted // n
    said = f"{fitted:,} of {n:,} points would be fitted, drawn uniformly; their fit maps all others"
    return {
        "input": f"{points.source}: {n:,} points, {d:,} features, {points.dtype}, read by blocks",
        "sample": f"{said}, {min(n, BLOCK_ROWS):,} at a time",
        **_memory(args, fitted, d, known, "the sample"),
    }


def _options(args: argparse.Namespace, X: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `memory.predict`."""
    known = memory.options_of(X, args.method, defaults(ESTIMATORS[args.method]) | options)
    if known.get("affinity") == "radius":
        args.usage_error("--dry-run cannot tell from the shape how many points a radius joins")
    return known


def _memory(
    args: argparse.Namespace, n: int, d: int, known: dict[str, Any], beside: str
) -> dict[str, str]:
    needed = memory.predict(n, d, **known)
    limit = memory.available() if args.memory_budget is None else args.memory_budget
    lines = {name: f"{memory.in_words(held)} at its peak" for name, held in needed.stages.items()}
    lines["peak"] = f"{memory.in_words(needed.peak)} beyond {beside}"
    verdict = "enough" if needed.peak <= limit else "too little"
    lines["available"] = f"{memory.in_words(limit)}: {verdict}"
    if needed.peak > limit:
        lines["instead"] = memory.less_memory(n, d, **known)
    return lines
