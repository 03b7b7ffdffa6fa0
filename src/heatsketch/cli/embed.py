"""heatsketch embed: embed a file of points, whole or, if it exceeds memory, by blocks."""

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch import distributed, io, plot
from heatsketch._arrays import Array
from heatsketch._messages import logger
from heatsketch.cli import common
from heatsketch.comparison.run import ESTIMATORS
from heatsketch.distributed import size
from heatsketch.estimators import HeatEmbedding, HeatSketch
from heatsketch.estimators._base import DiffusionEstimator
from heatsketch.io.files import PIPE, listed, suffix_of
from heatsketch.io.formats import BLOCK_FORMATS, open_blocks, parts_of
from heatsketch.io.metadata import write_metadata
from heatsketch.io.models import write_model
from heatsketch.io.table import Reading
from heatsketch.metrics import knn_accuracy
from heatsketch.metrics.neighborhoods import FAR_MOVE
from heatsketch.reports.facts import parameters, summary

CONFIDENCE, MOVED = "neighbor_confidence", "heat_moved"
PSEUDOTIME = ("heat_pseudotime", "heat_pseudotime_low", "heat_pseudotime_high")
_READ_WHOLE_BYTES = 2**27  # smaller files are embedded whole unless a sample is requested
_SAMPLED = ("heat-embedding", "heat-sketch", "diffusion-map", "mixture-diffusion")  # unasked
_FREE = "a free layout: do not read areas or densities from it"
_LEAST_SAMPLE = 20_000  # if memory holds fewer, the fit fails for lack of memory
AGREEMENT_MAX_POINTS = 20_000  # beyond, neighbours in the input take longer than the embedding


def run(args: Namespace) -> dict[str, str]:
    """Embed the points, write and draw the result, return the summary."""
    estimator = common.estimator_of(args, args.method)
    if args.in_place:
        if args.output is not None:
            args.usage_error("--in-place writes to INPUT; leave out --output")
        args.output = Path(args.input)
    if args.output is None:
        args.usage_error("pass -o FILE, or --in-place for an .h5ad file")
    kinds = {"intervals": HeatSketch, "pseudotime": DiffusionEstimator, "places": HeatEmbedding}
    for option, kind in kinds.items():
        if getattr(args, option) is None:
            continue
        able = [name for name, make in ESTIMATORS.items() if issubclass(make, kind)]
        if args.method not in able:
            args.usage_error(f"--{option} belongs to {', '.join(able)}; leave it out")
        if suffix_of(args.output) == ".npy" and option != "places":
            args.usage_error(f"--{option} adds columns; write them to a file other than .npy")
    common.check_files(args, *io.SUFFIXES, PIPE, method=args.method)
    if _is_by_blocks(args, estimator):
        return _embed_by_blocks(args, estimator)
    table = common.read_points(args)
    root = None if args.pseudotime is None else common.roots_of(args, table)
    added = (CONFIDENCE,) * bool(args.intervals) + PSEUDOTIME * (root is not None)
    added += (MOVED,) * (args.places is not None)
    twice = [name for name in added if name in table.extra]
    if twice and not (args.in_place and args.force):
        raise ValueError(
            f"{args.input} has a column {twice[0]!r}, which this run adds; give it another name."
        )
    given, known = {}, ""
    if args.places is not None:
        given["places"], known = common.known_places(args, table)
    Y = common.fit(args, estimator, table, **given)
    extra, lines, colour = dict(table.extra), described(args, table, estimator, Y), table.label
    if args.places is not None:
        extra[MOVED] = estimator.moved_
        count = np.count_nonzero(estimator.moved_ > FAR_MOVE)
        lines["places"] = (
            f"{known}; {count:,} moved more than {FAR_MOVE:g} edges against old neighbours"
        )
    if args.intervals:
        logger.info("how certain neighbours are")
        colour = CONFIDENCE
        found = extra[colour] = estimator.neighbor_confidence_
        worst = f"for a tenth of the points less than {np.quantile(found, 0.1):.1%}"
        lines["neighbours"] = f"{found.mean():.1%} certain, {worst}"
    if root is not None:
        logger.info("pseudotime")
        colour = PSEUDOTIME[0]
        found = estimator.pseudotime(root)
        extra |= zip(PSEUDOTIME, found, strict=True)
        reached = np.isfinite(found.value)
        width = (found.high[reached] - found.low[reached]) / 2
        words = f"known to ± {np.median(width):.1g}, at worst ± {width.max():.1g}"
        lines["pseudotime"] = words if width.any() else "exact for these points"
        if lost := np.count_nonzero(~reached):
            lines["pseudotime"] += f"; {lost} point(s) in other components"
    chosen, how = estimator.get_params(deep=False), common.reading(args)
    time = estimator._time
    made = {"method": args.method, "parameters": chosen, "time": time, "reading": how}
    names = common.write_coordinates(args, replace(table, extra=extra), estimator, Y, **made)
    if args.save_model is not None:
        read = {"suffix": suffix_of(table.source), "options": how}
        record = table.learned | read if table.learned else {}  # nothing is learned of graphs
        write_model(estimator, args.save_model, record, force=args.force)
    if args.plot is not None:
        labels = None if colour is None else extra[colour]
        title = f"{Path(table.source).name}: {args.method}"
        title += "" if time is None else f", time {time}"
        shown = names
        if estimator._has_free_layout:  # whose axes mean nothing
            shown = (_FREE, *[""] * (len(names) - 1))
        plot.scatter(Y, labels, title=title, names=shown, path=args.plot, whole=args.whole)
    return lines


def _is_by_blocks(args: Namespace, estimator: Any) -> bool:
    """Return whether to read by blocks: a sample is requested, or memory holds too few points."""
    path = Path(args.input)
    is_folder = bool(parts_of(path))
    able = is_folder or (suffix_of(path) in BLOCK_FORMATS and path.exists())
    if not able or "precomputed" in estimator.get_params().values():
        for option in ("resume", "cluster", "fit-points"):
            if vars(args)[option.replace("-", "_")] is not None:
                args.usage_error(f"--{option} is for {', '.join(BLOCK_FORMATS)} and folders")
        return False
    if is_folder or args.resume or args.cluster is not None:
        return True
    how = Reading(**{"missing": "error"} | common.reading(args))
    if args.fit_points is not None:
        return open_blocks(path, how).n > args.fit_points
    files = path.rglob("*") if path.is_dir() else [path]
    few = sum(file.stat().st_size for file in files) < _READ_WHOLE_BYTES
    if few or args.method not in _SAMPLED:
        return False
    try:
        points = open_blocks(path, how)
        return _LEAST_SAMPLE <= size(points, estimator) < points.n
    except (ValueError, ImportError):
        return False  # reading it whole has error messages of its own


def _embed_by_blocks(args: Namespace, estimator: Any) -> dict[str, str]:
    """Embed by blocks; return the lines of the summary."""
    for option in ("plot", "in-place", "pseudotime", "intervals", "places"):
        if vars(args)[option.replace("-", "_")] is not None:
            args.usage_error(f"--{option} needs all points at once, but they are read by blocks")
    names = ("fit_points", "resume", "force", "output_key", "cluster")
    given = {name: getattr(args, name) for name in names} | {"model": args.save_model}
    done = distributed.embed(args.input, args.output, estimator, **given, **common.reading(args))
    if args.metadata is not None:
        write_metadata(args.metadata, done.metadata, force=args.force)
    d = done.estimator.n_features_in_
    return {
        "input": f"{args.input}: {done.n_written:,} points, {d:,} features, read by blocks",
        "changed": "; ".join(done.notes),
        "sample": done.describe(),
        "method": f"{args.method}, {parameters(done.estimator)}",
        **summary(done.estimator),
    }


def described(
    args: Namespace, table: io.Table, estimator: Any, Y: Array, known: Any = None
) -> dict[str, str]:
    """Return the summary of an embedding as lines; `known` are lines of a report on it."""
    # The first features are named, so that the user notices an id or label among them.
    has_names = args.graph is None and common.has_names(table)
    named = f": {listed(table.columns, 5)}" if has_names else ""
    aside = f" (passed through: {listed(table.extra)})" if table.extra else ""
    is_given = "precomputed" in estimator.get_params().values()
    lines = {
        "input": f"{table.source}: {common.size_of(args, table)}{named}{aside}",
        "changed": "; ".join(table.notes),
        "noticed": "" if is_given else common.oddities(table),
        "method": f"{args.method}, {parameters(estimator)}",
    }
    lines = {name: text for name, text in lines.items() if text}
    lines = lines | (known or summary(estimator)) | lines  # in this order, with these values
    groups = common.groups_of(table)
    known_groups = [group for group in groups.tolist() if group is not None]
    # Where no label repeats, none can agree.
    if len({*known_groups}) < len(known_groups) and len(Y) <= AGREEMENT_MAX_POINTS:
        k = min(10, len(known_groups) - 1)
        logger.info("agreement of the labels of neighbours")
        figures = [f"embedding {knn_accuracy(Y, groups, k):.3f}"]
        if not is_given and not np.isnan(table.values.sum()):
            figures.append(f"input {knn_accuracy(table.values, groups, k):.3f}")
        lines["agreement"] = f"{', '.join(figures)} ({table.label} by {k} nearest, leave one out)"
    return lines
