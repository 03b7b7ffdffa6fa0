"""heatsketch audit: find where a picture of points can be believed."""

from argparse import Namespace

import heatsketch as hs
from heatsketch import io
from heatsketch.cli import common
from heatsketch.cli.common import read_picture
from heatsketch.cli.report import about_points, save
from heatsketch.comparison.audit import MOST_LABELS
from heatsketch.comparison.run import defaults
from heatsketch.reports.facts import AUDITED
from heatsketch.reports.writer import SUFFIXES


def run(args: Namespace) -> dict[str, str]:
    """Compare the picture with the true distances, write the page, return the summary."""
    common.check_files(args, *SUFFIXES)
    options = common.parameters(args, defaults(hs.HeatSketch), "heat-sketch", filter="accumulated")
    table = common.read_points(args)
    common.warn_of_units(options, table)
    Y, shown = read_picture(args, table, args.picture, args.coordinates or ())
    beside, lines = None, {"picture": shown}
    if args.beside is not None:
        other, lines["beside"] = read_picture(args, table, args.beside)
        beside = {args.beside: other}
    groups, notes = common.groups_of(table), list(table.notes)
    count = len(set(groups.tolist()) - {None})
    labels = groups if count else None
    if count and not 2 <= count <= MOST_LABELS and args.label is None:  # found, not asked for
        labels = None
        notes.append(f"the {count:,} value(s) of {table.label!r} are not compared as labels")
    found = hs.audit(table.values, Y, labels=labels, **options)
    X = None if "precomputed" in options.values() else table
    page = hs.report(found, X, beside=beside, **about_points(args, table, args.picture))
    save(args, page)
    if args.table is not None:
        header = ("id", *AUDITED, "dubious", "undecided")
        columns = [getattr(found, name).tolist() for name in header[1:]]
        rows = zip(common.names_of(args, table), *columns, strict=True)
        io.files.write_rows(args.table, [header, *rows], force=args.force)
    if args.verbose:
        lines["log L"] = f"{found.distortion.log_L:.4g}"
    return {"changed": "; ".join(notes)} | lines | dict(page.facts["lines"])
