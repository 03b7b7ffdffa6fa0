"""heatsketch reproduce: run the experiments of Sketching the heat kernel again."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from heatsketch import experiments
from heatsketch.cli.arguments import positive
from heatsketch.cli.reporting import print_lines


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "reproduce", help="run the experiments of Sketching the heat kernel again"
    )
    add = command.add_argument
    figures = (*experiments.FIGURES, "all")
    add("figure", choices=figures, metavar="FIGURE", help=", ".join(figures))
    add("-o", "--output", type=Path, required=True, metavar="DIR", help="tables, pictures, trials")
    add("--trials", type=positive, metavar="N", help="default: the paper's number")
    add("--jobs", type=positive, metavar="J", help="processes (default: one for each CPU)")
    add("--methods", type=_methods, metavar="A[,B...]", help=f"of {','.join(experiments.METHODS)}")
    add("--seed", type=_seed, default=0, metavar="S", help="default 0")
    return command


def run(args: argparse.Namespace) -> None:
    """Run the trials that are missing, write tables and pictures, print means."""
    rows = experiments.reproduce(
        args.figure,
        args.output,
        trials=args.trials,
        jobs=args.jobs,
        seed=args.seed,
        methods=args.methods,
    )
    for figure in dict.fromkeys(row.figure for row in rows):
        _print_means([row for row in rows if row.figure == figure])
    print_lines({"written": f"{args.output}: figure-*.csv, figure-*.png, trials-*.jsonl"})


def _print_means(rows: list[experiments.Row]) -> None:
    values = list(dict.fromkeys(row.value for row in rows))
    print(f"figure {rows[0].figure}, mean of log L")
    print(_line(rows[0].axis, values, "7d"))
    for method in dict.fromkeys(row.method for row in rows):
        print(_line(method, [row.mean for row in rows if row.method == method], "7.2f"))
    print()


def _line(name: str, numbers: Iterable[float], form: str) -> str:
    return f"{name:<7}" + "".join(format(number, form) for number in numbers)


def _methods(text: str) -> list[str]:
    """Read names of methods with commas between."""
    names = text.split(",")
    unknown = [name for name in names if name not in experiments.METHODS]
    if unknown:
        known = ",".join(experiments.METHODS)
        raise argparse.ArgumentTypeError(f"no method {unknown[0]!r}; choose of {known}")
    return names


def _seed(text: str) -> int:
    """Read an integer from 0 on."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)
