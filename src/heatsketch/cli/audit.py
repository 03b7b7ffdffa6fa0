"""heatsketch audit: say where a picture of points can be believed."""

from argparse import Namespace
from pathlib import Path

import numpy as np

import heatsketch as hs
from heatsketch import io
from heatsketch._typing import Array
from heatsketch.cli import inputs
from heatsketch.cli.outputs import check_files
from heatsketch.cli.printing import logger, print_summary
from heatsketch.cli.report import about_points
from heatsketch.comparison.methods import defaults
from heatsketch.io.files import suffix_of
from heatsketch.io.refine import in_units_of_source
from heatsketch.plot.labels import categories
from heatsketch.reports.facts import AUDITED, collect
from heatsketch.reports.writer import SUFFIXES, Report


def run(args: Namespace) -> None:
    """Compare the picture with the true distances, write the page, print the summary."""
    check_files(args, *SUFFIXES, required="")
    given = {"n_components": 64, "filter": "accumulated"}
    options = inputs.parameters(args, defaults(hs.HeatSketch), "heat-sketch", **given)
    table = inputs.read_points(args)
    inputs.warn_of_units(options, table)
    Y = _picture(args, table, args.picture)
    beside = None if args.beside is None else {args.beside: _picture(args, table, args.beside)}
    groups = None if table.label is None else categories(table.extra[table.label])
    labels = None if groups is None else np.array([*groups[1], None], dtype=object)[groups[0]]
    logger.info("comparing %s points with their picture", f"{len(Y):,}")
    found = hs.audit(table.values, Y, labels=labels, **options)
    X = None if inputs.is_precomputed(options) else in_units_of_source(table)
    facts = collect(found, X, beside=beside, **about_points(args, table, args.picture))
    Report(facts).save(args.output, force=args.force)
    if args.table is not None:
        header = ("id", *AUDITED, "dubious")
        columns = [getattr(found, name).tolist() for name in header[1:]]
        rows = zip(inputs.names_of(args, table), *columns, strict=True)
        io.files.write_rows(args.table, [header, *rows], force=args.force)
    print_summary(args, facts["lines"])


def _picture(args: Namespace, table: io.Table, name: str) -> Array:
    """Read a picture (n, c), a file or an entry of obsm of INPUT, in the order of the points."""
    in_input = suffix_of(table.source) in (".h5ad", ".zarr") and not Path(name).exists()
    picture = io.formats.read_embedding(*((args.input, name) if in_input else (name,)))
    return np.asarray(inputs.coordinates(args, table, picture), dtype=float)
