"""heatsketch scales: which diffusion time suits a file of points, and why."""

import argparse
from typing import Any

from heatsketch import plot
from heatsketch.cli.arguments import add_diffusion, add_option, methods_with
from heatsketch.cli.files import (
    add_force,
    add_graph,
    add_input,
    add_json,
    add_plot,
    check_plot,
    read_input,
    to_fit,
    warn_of_units,
    with_graph,
)
from heatsketch.cli.reporting import print_json, print_lines
from heatsketch.estimators import HeatEmbedding
from heatsketch.plot.explanations import check_curve
from heatsketch.spectral.heat_trace import HeatTrace, heat_trace

_METHOD = "heat-embedding"


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "scales", help="show which diffusion time suits a file of points, and why"
    )
    add_graph(add_input(command))
    add_option(command, "n_components", _METHOD, type=int, metavar="K")
    add_option(command, "share", _METHOD, type=float)
    add_option(command, "factor", _METHOD, type=float)
    add_diffusion(command, of=_METHOD)
    add_plot(command, "what is kept and how many directions are left")
    add_json(command)
    add_force(command)
    return command


def run(args: argparse.Namespace) -> None:
    """Choose a time as `embed --time auto` does, and print what the times have to say."""
    check_plot(args)
    table = read_input(args)
    options = {k: v for k, v in vars(args).items() if _METHOD in methods_with(k)}
    options = with_graph(args, options)
    warn_of_units(options, table)
    embedding = HeatEmbedding(**options).fit(to_fit(args, table))
    curve = check_curve(embedding)
    trace = heat_trace(embedding.diffusion_, curve.times, rng=args.random_state)
    explained = embedding.explained_diffusion_variance()
    if args.plot is not None:
        plot.scales(embedding, trace, path=args.plot)
    if args.json:
        print_json(_facts(curve, trace, explained))
        return
    lines = {
        "time": f"{curve.time:g}, of which {embedding.n_components} coordinates hold "
        f"{explained.describe()}",
        "wanted": f"{100 * curve.share:g} % of the distances within a factor {curve.factor:g}",
    }
    print_lines(lines if args.plot is None else {**lines, "written": str(args.plot)})
    _print_table(curve, trace)


def _facts(curve: Any, trace: HeatTrace, explained: Any) -> dict[str, Any]:
    low, high = trace.effective_rank_interval
    return {
        "time": curve.time,
        "times": curve.times,
        "shares": curve.shares,
        "heat_trace": trace.values,
        "heat_trace_interval": [trace.low, trace.high],
        "effective_rank": trace.effective_rank,
        "effective_rank_interval": [low, high],
        "dimension": trace.dimension,
        "dimension_error": trace.dimension_error,
        "explained": explained.cumulative[-1],
        "explained_interval": [explained.cumulative_low[-1], explained.cumulative_high[-1]],
    }


def _print_table(curve: Any, trace: HeatTrace) -> None:
    """Print what is kept, the effective rank and the spectral dimension at each time."""
    low, high = trace.effective_rank_interval
    print(f"\n{'time':>12}  kept   effective rank                spectral dimension")
    for j, t in enumerate(curve.times):
        between = "" if trace.exact else f" ({low[j]:.4g} to {high[j]:.4g})"
        rank = f"{trace.effective_rank[j]:.4g}{between}"
        error = "" if trace.exact else f" ± {trace.dimension_error[j]:.2g}"
        mark = "  <- chosen" if t == curve.time else ""
        dimension = f"{trace.dimension[j]:.3g}{error}"
        print(f"{t:12g}  {100 * curve.shares[j]:3.0f} %  {rank:28}  {dimension}{mark}")
