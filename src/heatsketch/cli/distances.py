"""heatsketch distances: diffusion distances of some points, with their error bars."""

from argparse import Namespace
from typing import Any

import numpy as np

import heatsketch as hs
from heatsketch import io
from heatsketch._typing import Array
from heatsketch.cli.inputs import (
    Fitted,
    estimator_of,
    fit,
    names_of,
    read_for_model,
    rows_of,
    size_of,
)
from heatsketch.cli.outputs import ROW_SUFFIXES, check_files, write_rows
from heatsketch.cli.printing import print_summary
from heatsketch.io.models import read_model
from heatsketch.reports.summary import summary

COLUMNS = ("from", "to", "distance", "low", "high")
EXACT_UP_TO = 2_048  # points, as elsewhere


def run(args: Namespace) -> None:
    """Find the distances of the pairs asked for; write or print them."""
    if (args.origin is None) == (args.pairs_file is None):
        args.usage_error("pass one of --from ID and --pairs FILE")
    check_files(args, *ROW_SUFFIXES)
    (table, sketch, Y), whose = _of_model(args) if args.model else _of_points(args)
    names = names_of(args, table)
    i, j = _pairs(args, table)
    labels = sketch.diffusion_.operator.components()
    labels = None if labels is None else sketch.diffusion_.expand(labels)
    apart = np.zeros(len(i), dtype=bool) if labels is None else labels[i] != labels[j]
    found, pairs = np.full((3, len(i)), np.nan), (i[~apart], j[~apart])
    exact, level = len(names) <= EXACT_UP_TO, args.level
    if exact and not apart.all():
        found[:, ~apart] = hs.diffusion_distance(
            sketch.diffusion_, sketch.time, filter=sketch.filter, pairs=pairs
        )
    elif not apart.all():
        found[:, ~apart] = sketch.distance(*pairs, level=level, simultaneous=args.simultaneous)
    if args.origin is not None:  # sorted, and nothing of other components
        order = np.argsort(found[0], kind="stable")[: np.count_nonzero(~apart)]
        i, j, found = i[order], j[order], found[:, order]
    cells = [["" if np.isnan(x) else f"{x:.6g}" for x in row] for row in found.T]
    rows = [(names[a], names[b], *row) for a, b, row in zip(i, j, cells, strict=True)]
    write_rows(args, [COLUMNS, *rows])
    if args.output is None and args.quiet:
        return
    how = "exact" if exact else f"by a sketch of {Y.shape[1]} columns"
    lines = {
        "input": f"{table.source}: {size_of(args, table)}",
        "distances": f"at diffusion time {sketch.time:g} ({whose}), {how}",
    }
    if not exact:
        together = "all of them at once" if args.simultaneous else "each by itself"
        lines["low, high"] = f"hold the distance with probability {level:g}, {together}"
    if lost := np.count_nonzero(apart):
        lines["left out"] = f"{lost:,} pair(s) in two components, between which nothing diffuses"
    print_summary(args, lines | summary(sketch), to_stderr=args.output is None)


def _of_points(args: Namespace) -> tuple[Fitted, str]:
    """Fit a sketch to INPUT."""
    sketch = estimator_of(args, "heat-sketch", n_components="auto")
    if np.size(sketch.time) > 1:
        args.usage_error("--time names several times; distances are those of one")
    whose = "as given" if "time" in args.parameters else "the default; --time sets another"
    return fit(args, sketch), whose


def _of_model(args: Namespace) -> tuple[Fitted, str]:
    """Sketch the diffusion of a model that was fitted to INPUT, at the time of the model."""
    if args.parameters:
        args.usage_error(
            f"{next(iter(args.parameters))} is that of --model; leave it out, or leave out --model"
        )
    stored = read_model(args.model)
    model, table = stored.model, read_for_model(args, stored)
    diffusion = getattr(model, "diffusion_", None)
    time: Any = getattr(model, "time_", getattr(model, "time", None))
    if diffusion is None or np.size(time) != 1:
        raise ValueError(
            f"{args.model} holds a {type(model).__name__} without a diffusion on its points, or of "
            "several times; leave out --model."
        )
    if stored.facts.get("data") not in (None, io.data_hash(table.values)):
        raise ValueError(f"{args.model} was not fitted to the points of {args.input}; pass these.")
    options = {"filter": model.filter, "normalization": diffusion.normalization}
    time = np.ravel(time)[0].item()
    sketch = hs.HeatSketch("auto", time, affinity="precomputed", random_state=0, **options)
    return Fitted(table, sketch, sketch.fit_transform(diffusion)), f"that of {args.model}"


def _pairs(args: Namespace, table: io.Table) -> tuple[Array, Array]:
    """Return the rows of the pairs asked for."""
    if args.origin is not None:
        n = table.values.shape[0]
        return np.repeat(rows_of(args, table, [args.origin]), n), np.arange(n)
    text = args.pairs_file.read_text(encoding="utf-8-sig")
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    separator = next((c for c in "\t,;" if c in lines[0]), None)
    cells = [[cell.strip(" \"'") for cell in line.split(separator)] for line in lines]
    for number, row in enumerate(cells, start=1):
        if len(row) != 2:
            raise ValueError(
                f"{args.pairs_file}, line {number}, does not hold a pair; write two ids in each "
                "line, with a comma, a tab or a space between."
            )
    ends = rows_of(args, table, [name for row in cells for name in row])
    return ends[::2], ends[1::2]
