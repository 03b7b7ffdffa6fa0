"""heatsketch distances: diffusion distances of some points, with their error bars."""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import heatsketch as hs
from heatsketch import io
from heatsketch._typing import Array
from heatsketch.cli.arguments import add_diffusion, add_option, number, or_rule
from heatsketch.cli.files import (
    add_force,
    add_graph,
    add_input,
    check_output,
    read_input,
    to_fit,
    warn_of_units,
    with_graph,
)
from heatsketch.cli.points import ROW_SUFFIXES, names_of, rows_of, write_rows
from heatsketch.cli.reporting import print_lines
from heatsketch.comparison.methods import defaults
from heatsketch.reports.summary import summary

COLUMNS = ("from", "to", "distance", "low", "high")


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "distances", help="print diffusion distances of points, with error bars"
    )
    add_graph(add_input(command))
    add = command.add_argument
    which = command.add_mutually_exclusive_group(required=True)
    pairs = "text file with a pair in each line: two ids, or numbers of rows from 0 without ids"
    which.add_argument("--pairs", type=Path, metavar="FILE", help=pairs)
    origin = "id, or number of the row, of the point whose distances to all points are wanted"
    which.add_argument("--from", dest="origin", metavar="ID", help=origin)
    written = "file to write the table to: .csv, .tsv or .txt (default: print it)"
    add("-o", "--output", type=Path, metavar="FILE", help=written)
    level = "probability with which an error bar holds the distance (default 0.95)"
    add("--level", type=float, default=0.95, metavar="P", help=level)
    together = "let all error bars hold at once with this probability, not each by itself"
    add("--simultaneous", action="store_true", help=together)
    columns = "columns of the sketch, or auto: as many as the tolerance takes (default auto)"
    add("--n-components", type=or_rule(int), default="auto", metavar="K", help=columns)
    tolerance = "for n-components auto: relative error of a distance, for 95 of 100 seeds"
    add("--tolerance", type=float, default=0.1, metavar="T", help=f"{tolerance} (default 0.1)")
    add("--time", type=number, default=8, metavar="T", help="diffusion time (default 8)")
    add_option(command, "kind", "heat-sketch", choices=("gaussian", "rademacher", "pairwise"))
    add_diffusion(command, of="heat-sketch")
    add_force(command)
    return command


def run(args: argparse.Namespace) -> None:
    """Sketch the points; write or print the distances of the pairs."""
    if args.output is not None:
        check_output(args, args.output, ROW_SUFFIXES)
    table = read_input(args)
    names = names_of(args, table)
    i, j = _pairs(args, names)
    options = {name: value for name, value in vars(args).items() if name in _PARAMETERS}
    options = with_graph(args, options)
    warn_of_units(options, table)
    model = hs.HeatSketch(**options).fit(to_fit(args, table))
    found = model.distance(i, j, level=args.level, simultaneous=args.simultaneous)
    pairs = ((names[a], names[b]) for a, b in zip(i, j, strict=True))
    numbers = zip(*((f"{x:.6g}" for x in column) for column in found), strict=True)
    rows = [(*pair, *row) for pair, row in zip(pairs, numbers, strict=True)]
    write_rows(args.output, [COLUMNS, *rows], force=args.force)
    if args.output is not None or not args.quiet:
        _print_what_they_are(args, table, model)


def _print_what_they_are(args: argparse.Namespace, table: io.Table, model: hs.HeatSketch) -> None:
    """Print which distances these are; beside the table, unless that goes to a file."""
    n, d = table.values.shape
    size = f"{n:,} points, {d:,} features" if args.graph is None else f"{n:,} nodes"
    lines = {
        "input": f"{table.source}: {size}",
        "distances": f"at diffusion time {model.time:g}, by a sketch of "
        f"{model.embedding_.shape[1]} columns",
        "low, high": f"hold the distance with probability {args.level:g}"
        + (", all of them at once" if args.simultaneous else ", each by itself"),
        **summary(model),
        **({"written": str(args.output)} if args.output else {}),
    }
    print_lines(lines, sys.stderr if args.output is None else sys.stdout)


_PARAMETERS = defaults(hs.HeatSketch)


def _pairs(args: argparse.Namespace, names: list[str]) -> tuple[Array, Array]:
    """Return the rows of the pairs asked for."""
    if args.origin is not None:
        (origin,) = rows_of([args.origin.strip()], names, args.input)
        return np.full(len(names), origin), np.arange(len(names))
    text = args.pairs.read_text(encoding="utf-8-sig")
    lines = [line for line in text.splitlines() if line.strip()]
    separator = next((c for c in ("\t", ",", ";") if lines and c in lines[0]), None)
    cells = [[cell.strip(" \"'") for cell in line.split(separator)] for line in lines]
    if not cells or any(len(row) != 2 for row in cells):
        wrong = next((n for n, row in enumerate(cells, start=1) if len(row) != 2), 1)
        raise ValueError(
            f"{args.pairs}, line {wrong}, does not hold a pair; write two ids in each line, with a "
            "comma, a tab or a space between."
        )
    ends = rows_of([name for row in cells for name in row], names, args.input)
    return ends[::2], ends[1::2]
