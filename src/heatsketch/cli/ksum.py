"""heatsketch ksum: bandwidth and dimension of a file of points."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import heatsketch as hs
from heatsketch import plot
from heatsketch.cli.arguments import add_seed
from heatsketch.cli.files import add_force, add_input, check_plot, read_input
from heatsketch.cli.reporting import print_json, print_lines


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "ksum", help="bandwidth and dimension of a file of points"
    )
    add_input(command)
    add_seed(command)
    command.add_argument("--plot", type=Path, metavar="FILE", help="draw the slopes")
    command.add_argument("--json", action="store_true", help="print JSON")
    add_force(command)
    return command


def run(args: argparse.Namespace) -> None:
    """Run the Ksum test and print or draw what it found."""
    check_plot(args)
    result = hs.ksum(read_input(args).values, rng=args.random_state)
    if args.plot is not None:
        plot.ksum_curve(result, path=args.plot)
    if args.json:
        print_json(_facts(result))
        return
    lines = {"epsilon": f"{result.epsilon:.6g}", "dimension": f"{result.dimension:.3g}"}
    print_lines(lines if args.plot is None else {**lines, "written": str(args.plot)})
    _print_slopes(result)


def _facts(result: Any) -> dict[str, Any]:
    return {
        "epsilon": float(result.epsilon),
        "dimension": float(result.dimension),
        "epsilons": [float(epsilon) for epsilon in result.epsilons],
        "slopes": [float(slope) for slope in result.slopes],
    }


def _print_slopes(result: Any) -> None:
    """Print every other slope around the largest."""
    print(f"\n{'epsilon':>12}  slope")
    best = int(np.argmax(result.slopes))
    for j in range(max(best - 8, best % 2), min(best + 9, len(result.slopes)), 2):
        mark = "  <- largest" if j == best else ""
        print(f"{result.epsilons[j]:12.5g}  {result.slopes[j]:5.3f}{mark}")
