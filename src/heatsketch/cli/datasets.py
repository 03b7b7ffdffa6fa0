"""heatsketch datasets: list the built-in data sets, or write one to a file."""

import argparse
from pathlib import Path
from typing import Any

from heatsketch import io
from heatsketch.cli.files import add_force, check_output
from heatsketch.cli.reporting import print_lines
from heatsketch.datasets import DATASETS


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "datasets", help="list the built-in data sets, or write one to a file"
    )
    command.add_argument("name", nargs="?", metavar="NAME", help="the set to write")
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="file to write it to")
    add_force(command)
    return command


def run(args: argparse.Namespace) -> None:
    """Print the list, or write the set."""
    if (args.name is None) != (args.output is None):
        args.usage_error("pass a name together with -o FILE, or neither to list the sets")
    if args.name is None:
        _print_sets()
        return
    if args.name not in DATASETS:
        args.usage_error(f"no built-in set {args.name!r}; choose from {', '.join(DATASETS)}")
    check_output(args, args.output)
    table = io.read_table(args.name)
    io.write_table(args.output, table.values, table.columns, table, force=args.force)
    print_lines({"written": f"{args.output}: {table.values.shape[0]:,} points of {args.name}"})


def _print_sets() -> None:
    for name, make in DATASETS.items():
        doc = (make.__doc__ or "").strip().splitlines()[0]
        try:
            n, d = io.read_table(name).values.shape
        except ImportError as error:  # a library for images is missing
            print(f"{name:22} {error}")
        else:
            print(f"{name:22} {n:5,} points, {d:6,} features  {doc}")
