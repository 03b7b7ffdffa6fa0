"""heatsketch reproduce: run the experiments of the papers again."""

import argparse
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from heatsketch import experiments
from heatsketch.cli.arguments import integer_from, method_names, positive
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
    written = "folder to write tables, pictures and trials to"
    add("-o", "--output", type=Path, required=True, metavar="DIR", help=written)
    add("--trials", type=positive, metavar="N", help="number of trials (default: the paper's)")
    add(
        "--jobs", type=positive, metavar="J", help="number of processes (default: one for each CPU)"
    )
    names, choices = method_names(experiments.FIGURE_METHODS), ",".join(experiments.FIGURE_METHODS)
    add("--methods", type=names, metavar="A[,B...]", help=f"some of {choices} (default: all)")
    images = "folder of MNIST IDX files for notes-5 (default: download them)"
    add("--mnist", type=Path, metavar="DIR", help=images)
    seed = "seed of the random numbers (default 0)"
    add("--seed", type=integer_from(0), default=0, metavar="S", help=seed)
    return command


def run(args: argparse.Namespace) -> None:
    """Run the trials that are missing, write tables and pictures, print the main numbers."""
    if args.mnist is not None and args.figure not in ("notes-5", "all"):
        args.usage_error(f"--mnist does not apply to {args.figure}, which has no digits")
    if args.figure in (*experiments.MGC, *experiments.NOTES):
        _refuse_trial_options(args)
    else:
        _run_sketches(args)
    for name in experiments.MGC:
        if args.figure in (name, "all"):
            _run_mixture(args, name)
    for name in experiments.NOTES:
        if args.figure in (name, "all"):
            _run_notes(args, name)


def _refuse_trial_options(args: argparse.Namespace) -> None:
    """Stop at the options of trials, which only the figures of the sketches have."""
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
