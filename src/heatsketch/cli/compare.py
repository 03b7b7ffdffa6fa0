"""heatsketch compare: several methods on the same points, in one table and one picture."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import heatsketch as hs
from heatsketch.cli.arguments import add_seed, number, positive
from heatsketch.cli.files import add_force, add_input, read_input
from heatsketch.cli.reporting import print_lines
from heatsketch.comparison.methods import METHODS
from heatsketch.comparison.result import FILES
from heatsketch.comparison.run import DEFAULT
from heatsketch.plot import check_picture


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "compare", help="several methods on the same points, in one table and one picture"
    )
    add_input(command)
    add = command.add_argument
    add("-o", "--output", type=Path, required=True, metavar="DIR", help=", ".join(FILES))
    add(
        "--methods",
        type=_methods,
        default=DEFAULT,
        metavar="A[,B...]",
        help=f"all, or some of {', '.join(METHODS)} (default {','.join(DEFAULT)})",
    )
    add("--n-components", type=positive, default=2, metavar="K", help="coordinates (default 2)")
    add("--n-neighbors", type=positive, default=15, metavar="M", help="of every graph (default 15)")
    add("--time", type=number, default=8, metavar="T", help="of the diffusion distance (default 8)")
    add("--seeds", type=positive, default=2, metavar="S", help="runs, for stability (default 2)")
    add_seed(command)
    add_force(command)
    return command


def run(args: argparse.Namespace) -> None:
    """Compare the methods, write table, picture and embeddings, print the table."""
    _check_output(args)
    table = read_input(args)
    result = hs.compare(
        table.values,
        args.methods,
        None if table.label is None else table.extra[table.label],
        n_components=args.n_components,
        n_neighbors=args.n_neighbors,
        time=args.time,
        seeds=args.seeds,
        random_state=args.random_state,
    )
    result.write(args.output)
    print(result)
    print()
    if not result.embeddings:
        raise ValueError(f"no method came to an embedding; {args.output / FILES[0]} says why.")
    written = [name for name in FILES if (args.output / name).exists()]
    print_lines({"written": f"{args.output}: {', '.join(written)}"})


def _check_output(args: argparse.Namespace) -> None:
    """Raise now for what would keep the result from being written."""
    check_picture(None)
    if args.output.exists() and not args.output.is_dir():
        raise NotADirectoryError(f"{args.output} is a file; name a folder.")
    there = [name for name in FILES if (args.output / name).exists()]
    if there and not args.force:
        raise FileExistsError(
            f"{args.output} has {', '.join(there)} already; pass --force to replace them, or "
            "choose another folder."
        )


def _methods(text: str) -> Any:
    """Read names of methods with commas between, or the word all."""
    names = text.split(",")
    unknown = [name for name in names if name not in METHODS]
    if names != ["all"] and unknown:
        raise argparse.ArgumentTypeError(
            f"no method {unknown[0]!r}; choose of {', '.join(METHODS)}, or all"
        )
    return "all" if names == ["all"] else names
