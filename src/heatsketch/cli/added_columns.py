"""Columns that an output has beside the embedding: certainty of neighbours, pseudotime."""

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from heatsketch import io
from heatsketch._typing import Array
from heatsketch.cli.points import names_of, rows_of
from heatsketch.cli.reporting import logger
from heatsketch.comparison.methods import ESTIMATORS

CONFIDENCE = "neighbor_confidence"
PSEUDOTIME = ("pseudotime", "pseudotime_low", "pseudotime_high")


def add_columns(command: argparse.ArgumentParser) -> None:
    """Add the options of columns to be added."""
    command.add_argument(
        "--intervals",
        action="store_true",
        help=f"add a column {CONFIDENCE} to the output, the share of neighbours of a point that "
        "are certain, and colour --plot by it (heat-sketch)",
    )
    command.add_argument(
        "--pseudotime",
        metavar="ID",
        help="add columns to the output: how late each point is, from 0 at this one (its id, or "
        "number of its row) to 1 at the farthest, with error bars; and colour --plot by it",
    )


def check_columns(args: argparse.Namespace) -> None:
    """End with a usage error where there can be no such columns."""
    if args.intervals and (args.method != "heat-sketch" or args.in_place):
        args.usage_error("--intervals belongs to heat-sketch, with -o FILE; leave it out")
    if args.pseudotime is None:
        return
    able = [name for name, make in ESTIMATORS.items() if hasattr(make, "pseudotime")]
    if args.method not in able:
        args.usage_error(f"--pseudotime belongs to {', '.join(able)}; leave it out")
    if args.in_place or (args.output is not None and args.output.suffix == ".npy"):
        args.usage_error("--pseudotime adds columns; write them with -o to a file other than .npy")


def root_of(args: argparse.Namespace, table: io.Table) -> int | None:
    """Return the row of the point that pseudotime starts from; raise if a column would be lost."""
    names = (CONFIDENCE,) * args.intervals + PSEUDOTIME * (args.pseudotime is not None)
    if taken := [name for name in names if name in table.extra]:
        raise ValueError(
            f"{args.input} has a column {taken[0]!r}, which this run adds; give it another name."
        )
    if args.pseudotime is None:
        return None
    (row,) = rows_of([args.pseudotime.strip()], names_of(args, table), args.input)
    return int(row)


def with_columns(
    args: argparse.Namespace, table: io.Table, estimator: Any, root: int | None
) -> tuple[io.Table, dict[str, str]]:
    """Return the table with the columns asked for, and a line of the summary about each."""
    added: dict[str, Array] = {}
    lines = {}
    if args.intervals:
        logger.info("how certain neighbours are")
        added[CONFIDENCE] = estimator.neighbor_confidence_
        lines["neighbours"] = _certain(added[CONFIDENCE])
    if root is not None:
        logger.info("pseudotime")
        found = estimator.pseudotime(root)
        added |= zip(PSEUDOTIME, found, strict=True)
        lines["pseudotime"] = _late(*found)
    return replace(table, extra=table.extra | added), lines


def colours(args: argparse.Namespace, table: io.Table) -> Array | None:
    """Return what the picture is coloured by."""
    by = CONFIDENCE if args.intervals else table.label
    by = by if args.pseudotime is None else PSEUDOTIME[0]
    return None if by is None else table.extra[by]


def _late(value: Array, low: Array, high: Array) -> str:
    """Say how far the error bars go, and how many points nothing diffuses to."""
    reached = np.isfinite(value)
    width = (high - low)[reached] / 2
    words = f"known to ± {np.median(width):.1g}, at worst ± {width.max():.1g}"
    words = words if width.any() else "exact for these points"
    lost = len(value) - np.count_nonzero(reached)
    return words + (f"; {lost} point(s) in other components" if lost else "")


def _certain(confidence: Array) -> str:
    low = np.quantile(confidence, 0.1)
    return f"{confidence.mean():.1%} certain, for a tenth of the points less than {low:.1%}"
