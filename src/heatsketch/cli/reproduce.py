"""heatsketch reproduce: run the experiments of the papers again."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from heatsketch import experiments
from heatsketch.cli.arguments import positive
from heatsketch.cli.reporting import print_lines

MGC_COLUMNS = {
    "mgc-1": ("points", "draws", "components", "largest", "rms"),
    "mgc-2": ("epsilon", "order", "median", "worst", "bound", "needed"),
}


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "reproduce", help="run the experiments of the papers again"
    )
    add = command.add_argument
    figures = (*experiments.FIGURES, *experiments.MGC, *experiments.NOTES, "all")
    add("figure", choices=figures, metavar="FIGURE", help=", ".join(figures))
    add("-o", "--output", type=Path, required=True, metavar="DIR", help="tables, pictures, trials")
    add("--trials", type=positive, metavar="N", help="default: the paper's number")
    add("--jobs", type=positive, metavar="J", help="processes (default: one for each CPU)")
    add("--methods", type=_methods, metavar="A[,B...]", help=f"of {','.join(experiments.METHODS)}")
    add("--mnist", type=Path, metavar="DIR", help="IDX files for notes-5 (default: download)")
    add("--seed", type=_seed, default=0, metavar="S", help="default 0")
    return command


def run(args: argparse.Namespace) -> None:
    """Run what is missing, write tables and pictures, print what they come to."""
    if args.mnist is not None and args.figure not in ("notes-5", "all"):
        args.usage_error(f"--mnist does not apply to {args.figure}, which has no digits")
    if args.figure in (*experiments.MGC, *experiments.NOTES):
        _refuse_trials(args)
    else:
        _run_sketches(args)
    for name in experiments.MGC:
        if args.figure in (name, "all"):
            _run_mixture(args, name)
    for name in experiments.NOTES:
        if args.figure in (name, "all"):
            _run_notes(args, name)


def _refuse_trials(args: argparse.Namespace) -> None:
    """Stop at options that say how many trials of which methods to run, and how."""
    for option in ("trials", "jobs", "methods"):
        if getattr(args, option) is not None:
            args.usage_error(f"--{option} does not apply to {args.figure}, which has no trials")


def _run_sketches(args: argparse.Namespace) -> None:
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


def _run_mixture(args: argparse.Namespace, name: str) -> None:
    rows = experiments.reproduce_mgc(name, args.output, seed=args.seed)
    print(f"{name}, some columns of the table")
    print("".join(f"{column:>12}" for column in MGC_COLUMNS[name]))
    for row in rows:
        print("".join(f"{getattr(row, column):12.4g}" for column in MGC_COLUMNS[name]))
    print()
    print_lines({"written": f"{args.output}: {name}.csv, {name}*.png"})


def _run_notes(args: argparse.Namespace, name: str) -> None:
    rows = experiments.reproduce_notes(name, args.output, mnist=args.mnist, seed=args.seed)
    figure = experiments.NOTES[name]
    print(f"{name}, {figure.title}\nThe notes: {figure.says}\nHere: {figure.describe(rows)}")
    width = max(len(row.quantity) for row in rows)
    print(f"{'quantity':<{width}}{'here':>12}{'notes':>12}")
    for row in rows:
        printed = "" if math.isnan(row.notes) else f"{row.notes:12.6g}"
        print(f"{row.quantity:<{width}}{row.value:12.6g}{printed}")
    print()
    print_lines({"written": f"{args.output}: {name}.csv, {name}.png"})


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
