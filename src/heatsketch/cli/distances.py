"""heatsketch distances: diffusion distances of some points, with their error bars."""

import sys
from argparse import Namespace
from typing import Any

import numpy as np

import heatsketch as hs
from heatsketch import io
from heatsketch._typing import Array
from heatsketch.cli.fitting import Fitted, estimator_of, fit, size_of
from heatsketch.cli.printing import print_lines
from heatsketch.cli.tables import (
    ROW_SUFFIXES,
    check_files,
    names_of,
    read_for_model,
    rows_of,
    write_rows,
)
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
    apart = np.zeros(len(i), dtype=bool)
    labels = sketch.diffusion_.operator.components()
    if labels is not None:
        labels = sketch.diffusion_.expand(labels)
        apart = labels[i] != labels[j]
    found, pairs = np.full((3, len(i)), np.nan), (i[~apart], j[~apart])
    exact = len(names) <= EXACT_UP_TO
    if not apart.all() and exact:
        diffusion, time = sketch.diffusion_, sketch.time
        found[:, ~apart] = hs.diffusion_distance(diffusion, time, filter=sketch.filter, pairs=pairs)
    elif not apart.all():
        how = {"level": args.level, "simultaneous": args.simultaneous}
        found[:, ~apart] = sketch.distance(*pairs, **how)
    if args.origin is not None:  # sorted, and nothing of other components
        order = np.argsort(found[0], kind="stable")[: np.count_nonzero(~apart)]
        i, j, found = i[order], j[order], found[:, order]
    cells = [["" if np.isnan(x) else f"{x:.6g}" for x in row] for row in found.T]
    rows = [(names[a], names[b], *row) for a, b, row in zip(i, j, cells, strict=True)]
    write_rows(args.output, [COLUMNS, *rows], force=args.force)
    if args.output is None and args.quiet:
        return
    how_found = "exact" if exact else f"by a sketch of {Y.shape[1]} columns"
    lines = {
        "input": f"{table.source}: {size_of(args, table)}",
        "distances": f"at diffusion time {sketch.time:g} ({whose}), {how_found}",
    }
    if not exact:
        together = "all of them at once" if args.simultaneous else "each by itself"
        lines["low, high"] = f"hold the distance with probability {args.level:g}, {together}"
    if lost := np.count_nonzero(apart):
        lines["left out"] = f"{lost:,} pair(s) in two components, between which nothing diffuses"
    lines |= summary(sketch) | ({"written": str(args.output)} if args.output else {})
    print_lines(lines, sys.stderr if args.output is None else sys.stdout)


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
    time = np.ravel(time)[0].item()
    options = {"filter": model.filter, "normalization": diffusion.normalization}
    sketch = hs.HeatSketch("auto", time, affinity="precomputed", random_state=0, **options)
    Y = sketch.fit_transform(diffusion)
    return Fitted(table, sketch, Y), f"that of {args.model}"


def _pairs(args: Namespace, table: io.Table) -> tuple[Array, Array]:
    """Return the rows of the pairs asked for."""
    if args.origin is not None:
        n = table.values.shape[0]
        return np.repeat(rows_of(args, table, [args.origin]), n), np.arange(n)
    text = args.pairs_file.read_text(encoding="utf-8-sig")
    lines = [line for line in text.splitlines() if line.strip()]
    separator = next((c for c in ("\t", ",", ";") if lines and c in lines[0]), None)
    cells = [[cell.strip(" \"'") for cell in line.split(separator)] for line in lines]
    if not cells or any(len(row) != 2 for row in cells):
        wrong = next((n for n, row in enumerate(cells, start=1) if len(row) != 2), 1)
        raise ValueError(
            f"{args.pairs_file}, line {wrong}, does not hold a pair; write two ids in each line, "
            "with a comma, a tab or a space between."
        )
    ends = rows_of(args, table, [name for row in cells for name in row])
    return ends[::2], ends[1::2]
