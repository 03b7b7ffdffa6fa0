"""heatsketch report: embed a file of points, and show what came of it in one page of HTML."""

import argparse
import shlex
import time
from pathlib import Path
from typing import Any

from heatsketch import io
from heatsketch.cli.arguments import number
from heatsketch.cli.embed import add_method, described, embedded, method_options
from heatsketch.cli.files import (
    add_force,
    add_graph,
    add_input,
    check_output,
    read_input,
    warn_of_units,
)
from heatsketch.cli.points import id_columns
from heatsketch.cli.reporting import logger, print_lines, remembered
from heatsketch.comparison.methods import ESTIMATORS, needs_labels
from heatsketch.io.refine import in_units_of_source
from heatsketch.reports.facts import collect
from heatsketch.reports.writer import SUFFIXES, Report
from heatsketch.spectral.found_once import found_once


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "report", help="embed a file of points, and show it in an interactive page of HTML"
    )
    add_graph(add_input(command))
    written = "file to write: .html, which any browser shows, offline"
    command.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help=written)
    add_method(command)
    slider = "diffusion times of the slider (default: some about that of the embedding)"
    command.add_argument("--times", type=_times, metavar="T[,T...]", help=slider)
    add_force(command)
    return command


@found_once()
def run(args: argparse.Namespace) -> None:
    """Embed the points, collect the facts, write the page, print what `embed` prints."""
    options = method_options(args)
    check_output(args, args.output, SUFFIXES)
    with remembered(quiet=args.quiet) as warned:
        table = read_input(args)
        estimator = ESTIMATORS[args.method](**options)
        if not needs_labels(estimator):
            warn_of_units(options, table)
        start = time.monotonic()
        Y = embedded(estimator, table, is_graph=args.graph is not None)
    lines = described(args, table, estimator, Y)
    ids, labels = _columns(args, table)
    has_points = args.graph is None and "precomputed" not in options.values()
    facts = collect(
        estimator,
        table.values if has_points else None,
        labels=labels,
        ids=ids,
        features=table.columns,
        told=in_units_of_source(table),
        times=args.times,
        title=f"{Path(table.source).name}: {args.method}",
        lines=lines | ({"warned of": " ".join(warned)} if warned else {}),
        command=shlex.join(["heatsketch", *args.words]),
    )
    logger.info("writing %s", args.output)
    Report(facts).save(args.output, force=args.force)
    lines["seconds"] = f"{time.monotonic() - start:.1f}"
    size = f"{args.output.stat().st_size / 1e6:.1f} MB"
    print_lines({**lines, "written": f"{args.output} ({size})"})


def _columns(args: argparse.Namespace, table: io.Table) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the ids and the other columns, the label first."""
    named = id_columns(args, table)
    ids = {name: table.extra[name] for name in named if name in table.extra}
    others = [name for name in table.extra if name not in ids and name != table.label]
    first = [] if table.label is None or table.label in ids else [table.label]
    return ids, {name: table.extra[name] for name in [*first, *others]}


def _times(text: str) -> list[Any]:
    return [number(part) for part in text.split(",")]
