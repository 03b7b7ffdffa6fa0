"""heatsketch distances: diffusion distances of some points, with their error bars."""

from argparse import Namespace

import numpy as np

import heatsketch as hs
from heatsketch import io
from heatsketch._arrays import Array
from heatsketch.cli import common
from heatsketch.cli.common import naming_columns
from heatsketch.io.files import PIPE
from heatsketch.reports.facts import summary

EXACT_UP_TO = 2_048  # points, as elsewhere


def run(args: Namespace) -> dict[str, str]:
    """Compute the distances of the requested pairs, write or print them, return the summary."""
    if (args.origin is None) == (args.pairs_file is None):
        args.usage_error("pass one of --from ID and --pairs FILE")
    common.check_files(args, *common.ROW_SUFFIXES, PIPE)
    sketch = common.estimator_of(args, "heat-sketch", n_components="auto")
    if np.size(sketch.time) > 1:
        args.usage_error("--time names several times; distances are those of one")
    table = common.read_points(args)
    Y = common.fit(args, sketch, table)
    names, i, j = _pairs(args, table)
    diffusion = sketch.diffusion_
    joined = diffusion.component_of[i] == diffusion.component_of[j]
    found, pairs = np.full((3, len(i)), np.nan), (i[joined], j[joined])
    more = {}
    if len(names) <= EXACT_UP_TO:
        how = "exact"
        given = {"filter": sketch.filter, "pairs": pairs}
        found[:, joined] = hs.diffusion_distance(diffusion, sketch.time, **given)
    else:
        how = f"by a sketch of {Y.shape[1]} columns"
        found[:, joined] = sketch.distance(*pairs, level=args.level, simultaneous=args.simultaneous)
        together = "all of them at once" if args.simultaneous else "each by itself"
        more["low, high"] = f"hold the distance with probability {args.level:g}, {together}"
    if apart := np.count_nonzero(~joined):
        more["left out"] = f"{apart:,} pair(s) in two components, between which nothing diffuses"
    if args.origin is not None:  # sorted, without points of other components
        order = np.argsort(found[0], kind="stable")[: len(pairs[0])]
        i, j, found = i[order], j[order], found[:, order]
    cells = [["" if np.isnan(x) else f"{x:.6g}" for x in row] for row in found.T]
    rows = [(names[a], names[b], *row) for a, b, row in zip(i, j, cells, strict=True)]
    header = ("from", "to", "distance", "low", "high")
    io.files.write_rows(args.output, [header, *rows], force=args.force)
    whose = "as given" if "time" in args.parameters else "the default; --time sets another"
    return {
        "input": f"{table.source}: {common.size_of(args, table)}",
        "changed": "; ".join(table.notes),
        "distances": f"at diffusion time {sketch.time:g} ({whose}), {how}",
        **more,
        **summary(sketch),
    }


def _pairs(args: Namespace, table: io.Table) -> tuple[list[str], Array, Array]:
    """Return the names of the points, and the rows (i, j) of the requested pairs.

    Points without ids have the numbers of their rows, or the texts of a column with those asked
    for.
    """
    if args.origin is not None:
        names = _names_of(args, table, [args.origin])
        origin = common.rows_of(names, [args.origin], args.input)
        return names, np.repeat(origin, len(names)), np.arange(len(names))
    text = args.pairs_file.read_text(encoding="utf-8-sig")
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    separator = next((c for c in "\t,;" if c in lines[0]), None)
    cells = [[cell.strip(" \"'") for cell in line.split(separator)] for line in lines]
    for number, row in enumerate(cells, start=1):
        if len(row) != 2:
            where = f"{args.pairs_file}, line {number},"
            raise ValueError(f"{where} does not hold a pair; write two ids with a comma between.")
    wanted = [name for row in cells for name in row]
    names = _names_of(args, table, wanted)
    ends = common.rows_of(names, wanted, args.input)
    return names, ends[::2], ends[1::2]


def _names_of(args: Namespace, table: io.Table, wanted: list[str]) -> list[str]:
    usual = common.names_of(args, table)
    if {*wanted} <= {*usual}:
        return usual
    others = naming_columns(args, table).values()
    return next((names for names in others if {*wanted} <= {*names}), usual)
