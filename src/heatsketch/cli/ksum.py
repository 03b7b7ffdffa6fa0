"""heatsketch ksum: bandwidth and dimension of a file of points."""

import argparse
from typing import Any

import numpy as np

from heatsketch import plot
from heatsketch.cli.arguments import add_metric, add_seed, positive
from heatsketch.cli.files import (
    add_force,
    add_input,
    add_json,
    add_plot,
    check_plot,
    read_input,
    warn_of_units,
)
from heatsketch.cli.reporting import print_json, print_lines
from heatsketch.scales.bandwidth import Ksum, ksum
from heatsketch.scales.dimension import intrinsic_dimension


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "ksum", help="find the bandwidth and dimension of a file of points"
    )
    add_input(command)
    add_metric(command)
    add_seed(command)
    rows = "rows of the kernel matrix that are summed (default: all up to 2,000 points, else 500)"
    command.add_argument("--n-rows", type=positive, metavar="R", help=rows)
    add_plot(command, "the slopes")
    add_json(command)
    add_force(command)
    return command


def run(args: argparse.Namespace) -> None:
    """Run the Ksum test, print or draw the result, and the dimension by nearest neighbours."""
    check_plot(args)
    table = read_input(args)
    warn_of_units(vars(args), table)
    X = table.values
    result = ksum(X, metric=args.metric, n_rows=args.n_rows, rng=args.random_state)
    nearest = _by_neighbors(X, args.metric)
    if args.plot is not None:
        plot.ksum_curve(result, path=args.plot)
    if args.json:
        known = None if isinstance(nearest, str) else nearest
        print_json({**result._asdict(), "nearest_neighbors": known})
        return
    lines = _lines(result, nearest)
    print_lines(lines if args.plot is None else {**lines, "written": str(args.plot)})
    _print_slopes(result)


def _by_neighbors(X: Any, metric: str) -> dict[str, Any] | str:
    """Return the dimension by nearest neighbours, or why there is none."""
    try:
        found = intrinsic_dimension(X, metric=metric)
    except ValueError as error:
        return str(error)
    k = int(found.n_neighbors[-1])
    return {"dimension": found.dimension, "error": found.error, "n_neighbors": k}


def _lines(result: Ksum, nearest: dict[str, Any] | str) -> dict[str, str]:
    lines = {
        "epsilon": f"{result.epsilon:.6g}{_between(result.epsilon_interval)}",
        "plateau": f"{result.plateau[0]:.3g} to {result.plateau[1]:.3g}",
        "dimension": f"{result.dimension:.3g}{_between(result.dimension_interval)}",
    }
    if result.sampling_error > 0:
        lines["sampling"] = f"± {result.sampling_error:.2g} of it, from some rows only"
    if isinstance(nearest, str):
        lines["dimension 2"] = f"none by nearest neighbours: {nearest}"
    else:
        estimate = f"{nearest['dimension']:.3g} ± {nearest['error']:.1g}"
        lines["dimension 2"] = f"{estimate} (by {nearest['n_neighbors']} nearest neighbours)"
    return lines


def _between(interval: tuple[float, float]) -> str:
    low, high = interval
    return f" (95 %: {low:.3g} to {high:.3g})" if np.isfinite(low) else ""


def _print_slopes(result: Ksum) -> None:
    """Print every other slope around the largest."""
    print(f"\n{'epsilon':>12}  slope")
    best = int(np.argmax(result.slopes))
    for j in range(max(best - 8, best % 2), min(best + 9, len(result.slopes)), 2):
        error = f" ± {result.slope_errors[j]:.3f}" if np.isfinite(result.slope_errors[j]) else ""
        mark = "  <- largest" if j == best else ""
        print(f"{result.epsilons[j]:12.5g}  {result.slopes[j]:5.3f}{error}{mark}")
