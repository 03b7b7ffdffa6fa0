"""heatsketch embed: embed a file of points."""

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch import io, memory, plot
from heatsketch._typing import Array
from heatsketch.cli import dry_run, streams
from heatsketch.cli.added_columns import add_columns, check_columns, colours, root_of, with_columns
from heatsketch.cli.arguments import (
    DEFAULT_METHOD,
    add_classical,
    add_diffusion,
    add_option,
    flag,
    methods_with,
    methods_with_rule,
    number,
    or_rule,
    positive,
    times,
)
from heatsketch.cli.files import (
    add_force,
    add_graph,
    add_input,
    add_plot,
    check_output,
    check_plot,
    read_input,
    reading,
    warn_of_units,
    with_graph,
)
from heatsketch.cli.models import save
from heatsketch.cli.provenance import record
from heatsketch.cli.reporting import logger, print_lines
from heatsketch.comparison.methods import ESTIMATORS, needs_labels
from heatsketch.io.files import check_target, listed
from heatsketch.io.formats import DEFAULT_KEY, STDOUT, check_key
from heatsketch.isometry.learn import OBJECTIVES
from heatsketch.metrics import knn_accuracy
from heatsketch.operators import Graph
from heatsketch.reports.summary import parameters, summary

TITLE_PARAMETERS = ("time", "n_neighbors", "radius", "perplexity", "normalization", "epsilon")
AGREEMENT_MAX_POINTS = 20_000  # beyond, neighbours in the input take longer than the embedding


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "embed", help="embed a file of points", usage="%(prog)s -o FILE [OPTION ...] INPUT"
    )
    add_graph(add_input(command))
    add = command.add_argument
    written = "file to write the embedding to; - for .csv on standard output"
    add("-o", "--output", type=Path, metavar="FILE", help=written)
    add("--in-place", action="store_true", help="add the embedding to INPUT, which is .h5ad")
    add_method(command)
    model = "keep the fitted model in a file, for heatsketch transform and hs.load_model"
    add("--save-model", type=Path, metavar="FILE", help=model)
    add("--output-key", metavar="NAME", help="name of the embedding in an .h5ad output")
    add_plot(command, "the embedding")
    add("--plot-time", type=Path, metavar="FILE", help="draw how heat-embedding chose the time")
    add_columns(command)
    streams.add(command)
    add(
        "--dry-run",
        action="store_true",
        help="print the memory that the run needs, and the size of a sample, and stop",
    )
    limit = "refuse to start a run that needs more memory"
    add("--memory-budget", type=_gigabytes, metavar="GB", help=limit)
    add_force(command)
    return command


def add_method(command: argparse.ArgumentParser) -> None:
    """Add the choice of a method, and the options of all methods."""
    group = command.add_argument_group("method")
    method = f"how to embed the points (default {DEFAULT_METHOD})"
    group.add_argument("--method", choices=ESTIMATORS, default=DEFAULT_METHOD, help=method)
    add_option(group, "n_components", type=or_rule(number), metavar="K")
    add_option(group, "time", type=times, metavar="T[,T...]")
    add_diffusion(command)
    group = command.add_argument_group("finer choices of the diffusion methods")
    add_option(group, "objective", choices=OBJECTIVES)
    add_option(group, "share", type=float)
    add_option(group, "factor", type=float)
    add_option(group, "n_init", type=positive, metavar="N")
    add_option(group, "n_sketch", type=int, metavar="R")
    add_option(group, "kind", choices=("gaussian", "rademacher", "pairwise"))
    add_option(group, "delta", type=float)
    add_option(group, "cut", type=float)
    add_option(group, "mixture", type=positive)
    add_option(group, "tolerance", type=float)
    add_option(group, "max_features", type=positive, metavar="R")
    add_classical(command)


def run(args: argparse.Namespace) -> None:
    """Embed the points, write and draw the result, print a summary."""
    options = method_options(args)
    _check_embed(args, options)
    if args.dry_run:
        if args.method not in memory.PREDICTED_METHODS:
            known = ", ".join(memory.PREDICTED_METHODS)
            args.usage_error(f"--dry-run does not know {args.method}; choose from {known}")
        by_blocks = streams.takes(args, options)
        print_lines((dry_run.of_sample if by_blocks else dry_run.of_table)(args, options))
        return
    if args.in_place:
        if args.output is not None:
            args.usage_error("--in-place writes to INPUT; leave out --output")
        args.output = Path(args.input)
    if args.output is None:
        args.usage_error(
            "the following arguments are required: -o/--output, or --in-place for an .h5ad file"
        )
    start = time.monotonic()
    if streams.takes(args, options):
        _print(args, streams.run(args, options), time.monotonic() - start)
        return
    check_output(args, args.output)
    check_key(args.output, args.input, args.output_key or DEFAULT_KEY, force=args.force)
    check_plot(args)
    _check_model(args)
    table = read_input(args)
    root = root_of(args, table)
    estimator = ESTIMATORS[args.method](**options)
    if not needs_labels(estimator):  # discriminants do not depend on units
        warn_of_units(options, table)
    start = time.monotonic()
    with memory.memory_budget(args.memory_budget):
        Y = embedded(estimator, table, is_graph=args.graph is not None)
    written, said = with_columns(args, table, estimator, root)
    seconds = time.monotonic() - start
    _write(args, written, estimator, Y)
    _print(args, described(args, table, estimator, Y) | said, seconds)


def _print(args: argparse.Namespace, lines: dict[str, str], seconds: float) -> None:
    """Print the summary."""
    lines["seconds"] = f"{seconds:.1f}"
    files = (args.output, args.plot, args.plot_time, args.save_model)
    lines["written"] = ", ".join(str(path) for path in files if path)
    print_lines(lines, sys.stderr if str(args.output) == STDOUT else sys.stdout)


def _check_model(args: argparse.Namespace) -> None:
    """Raise before the work begins if the model could not be written."""
    if args.save_model is None:
        return
    others = [path.resolve() for path in (args.output, args.plot, args.plot_time) if path]
    if args.save_model.resolve() in others:
        args.usage_error(f"--save-model {args.save_model} is another output, too; name a file")
    check_target(args.save_model, force=args.force, source=args.input)


def embedded(estimator: Any, table: io.Table, *, is_graph: bool) -> Array:
    """Return the embedding (n, k); methods that are fitted to labels map unlabelled rows, too."""
    if is_graph:
        return np.asarray(estimator.fit_transform(Graph(table.values)))
    if not needs_labels(estimator):
        return np.asarray(estimator.fit_transform(table.values))
    groups = None if table.label is None else plot.categories(table.extra[table.label])
    if groups is None:
        raise ValueError(
            f"{type(estimator).__name__} is fitted to classes, but {table.source} has none; name "
            "the column that holds them with --label."
        )
    known = groups[0] >= 0
    estimator.fit(table.values[known], np.asarray(groups[1])[groups[0][known]])
    return np.asarray(estimator.transform(table.values))


def _gigabytes(text: str) -> float:
    """Read a size in GB as bytes."""
    size = number(text)
    if not 0 < size < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size in GB above 0")
    return size * memory.GB


def method_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the method's options that were given, or end with a usage error."""
    given = vars(args).items()
    # TSNE has a parameter `method`, which is not this command's option.
    options = {k: v for k, v in given if k != "method" and methods_with(k)}
    if args.method not in methods_with("random_state"):
        del options["random_state"]  # this option has a default; the method is not random
    if args.graph is not None and args.method not in methods_with("affinity"):
        methods = ", ".join(methods_with("affinity"))
        args.usage_error(f"--graph is not an option of {args.method}; it belongs to {methods}")
    options = with_graph(args, options)
    for name, value in options.items():
        owners = methods_with(name)
        if args.method not in owners:
            args.usage_error(
                f"{flag(name)} is not an option of {args.method}; it belongs to {', '.join(owners)}"
            )
        whole = name == "n_components" and isinstance(value, float)
        if whole and args.method != "diffusion-map":
            args.usage_error(
                f"{flag(name)} {value}: shares belong to diffusion-map; pass an integer"
            )
        able = methods_with_rule(name, value)
        if able and args.method not in able:
            args.usage_error(f"{flag(name)} {value} belongs to {', '.join(able)}; pass a number")
    return options


def _check_embed(args: argparse.Namespace, options: dict[str, Any]) -> None:
    """End with a usage error for what this command cannot do with the method."""
    check_columns(args)
    chooses = args.method == "heat-embedding" and options.get("time", "auto") == "auto"
    if args.plot_time is not None and not chooses:
        args.usage_error("--plot-time belongs to heat-embedding --time auto; leave it out")


def _write(args: argparse.Namespace, table: io.Table, estimator: Any, Y: Array) -> None:
    names = tuple(str(name) for name in estimator.get_feature_names_out())
    key = {} if args.output_key is None else {"key": args.output_key}
    logger.info("writing %s", args.output)
    metadata = record(args.method, estimator, Y, table.values)
    metadata |= {"columns": names, "reading": reading(args)}
    io.write_table(
        args.output,
        Y,
        names,
        table,
        metadata=metadata,
        force=args.force,
        in_place=args.in_place,
        **key,
    )
    if args.save_model is not None:
        logger.info("writing %s", args.save_model)
        save(args.save_model, estimator, table, reading(args), force=args.force)
    if args.plot is not None:
        labels = colours(args, table)
        title = _title(args, table, estimator)
        logger.info("drawing %s", args.plot)
        plot.scatter(Y, labels, title=title, names=names, path=args.plot)
    if args.plot_time is not None:
        if estimator.time_curve_ is None:
            raise ValueError(
                "all points have the same affinities, so that no time was chosen; leave out "
                "--plot-time."
            )
        plot.time_curve(estimator.time_curve_, path=args.plot_time)


def _title(args: argparse.Namespace, table: io.Table, estimator: Any) -> str:
    values = estimator.get_params()
    if "time" in values:  # the one chosen, if it was "auto"
        values["time"] = getattr(estimator, "time_", estimator.time)
    said = [f"{name} {values[name]}" for name in TITLE_PARAMETERS if values.get(name) is not None]
    return f"{Path(table.source).name}: {', '.join([args.method, *said])}"


def described(
    args: argparse.Namespace, table: io.Table, estimator: Any, Y: Array
) -> dict[str, str]:
    """Return what is printed of an embedding."""
    n, d = table.values.shape
    size = f"{n:,} points, {d:,} features"
    if args.graph is not None:
        size = f"{n:,} nodes, {Graph(table.values).n_edges:,} edges"
    lines = {
        "input": f"{table.source}: {size}{_aside(table)}",
        **({"changed": "; ".join(table.notes)} if table.notes else {}),
        "method": f"{args.method}, {parameters(estimator)}",
    }
    lines |= summary(estimator)
    groups = None if table.label is None else plot.categories(table.extra[table.label])
    known = np.empty(0, int) if groups is None else np.flatnonzero(groups[0] >= 0)
    if groups is not None and len(known) > 1 and n <= AGREEMENT_MAX_POINTS:
        logger.info("agreement of the labels of neighbours")
        codes, k = groups[0][known], min(10, len(known) - 1)
        figures = [f"embedding {knn_accuracy(Y[known], codes, k):.3f}"]
        if "precomputed" not in estimator.get_params().values():
            figures.append(f"input {knn_accuracy(table.values[known], codes, k):.3f}")
        lines["agreement"] = f"{', '.join(figures)} ({table.label} by {k} nearest, leave one out)"
    return lines


def _aside(table: io.Table) -> str:
    """Name the columns that are not features, so that a feature among them is noticed."""
    return f" (passed through: {listed(table.extra)})" if table.extra else ""
