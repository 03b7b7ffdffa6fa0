"""heatsketch compare: several methods on the same points, in one table and one picture."""

import argparse
from pathlib import Path
from typing import Any

import heatsketch as hs
from heatsketch.cli.arguments import add_seed, method_names, number, or_rule, positive
from heatsketch.cli.files import add_force, add_input, read_input, warn_of_units
from heatsketch.cli.reporting import print_lines
from heatsketch.comparison.methods import ESTIMATORS
from heatsketch.comparison.result import FILES
from heatsketch.comparison.run import DEFAULT_METHODS
from heatsketch.plot import check_picture


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "compare", help="compare several methods on the same points, in a table and a picture"
    )
    add_input(command)
    add = command.add_argument
    written = f"folder to write to: {', '.join(FILES)}"
    add("-o", "--output", type=Path, required=True, metavar="DIR", help=written)
    choices = f"all, or some of {', '.join(ESTIMATORS)} (default {','.join(DEFAULT_METHODS)})"
    names = method_names(ESTIMATORS, "all")
    add("--methods", type=names, default=DEFAULT_METHODS, metavar="A[,B...]", help=choices)
    coordinates = "number of coordinates (default 2)"
    add("--n-components", type=positive, default=2, metavar="K", help=coordinates)
    neighbors = "number of neighbours in every graph (default 15)"
    add("--n-neighbors", type=positive, default=15, metavar="M", help=neighbors)
    time = "time of the diffusion distances that embeddings are compared with (default auto: the "
    time += "one that heat-embedding chooses)"
    add("--time", type=or_rule(number), default="auto", metavar="T", help=time)
    seeds = "runs with different seeds, for the stability (default 2)"
    add("--seeds", type=positive, default=2, metavar="S", help=seeds)
    add_seed(command)
    add_force(command)
    return command


def run(args: argparse.Namespace) -> None:
    """Compare the methods, write table, picture and embeddings, print the table."""
    _check_output(args)
    table = read_input(args)
    warn_of_units(vars(args), table)
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
        raise ValueError(f"no method computed an embedding; {args.output / FILES[0]} says why.")
    written = [name for name in FILES if (args.output / name).exists()]
    print_lines({"written": f"{args.output}: {', '.join(written)}"})


def _check_output(args: argparse.Namespace) -> None:
    """Raise before the work begins if the result could not be written."""
    check_picture(None)
    if args.output.exists() and not args.output.is_dir():
        raise NotADirectoryError(f"{args.output} is a file; name a folder.")
    existing = [name for name in FILES if (args.output / name).exists()]
    if existing and not args.force:
        raise FileExistsError(
            f"{args.output} already has {', '.join(existing)}; pass --force to replace them, or "
            "choose another folder."
        )
