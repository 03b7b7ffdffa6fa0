"""heatsketch audit: say where a picture of points can be believed."""

import shlex
import time
from argparse import Namespace
from pathlib import Path

import numpy as np

import heatsketch as hs
from heatsketch import io
from heatsketch._typing import Array
from heatsketch.cli.fitting import parameters, warn_of_units
from heatsketch.cli.printing import logger, print_lines
from heatsketch.cli.tables import check_files, coloring, id_columns, ids_of, names_of, read_input
from heatsketch.comparison.methods import ESTIMATORS, defaults
from heatsketch.io.refine import in_units_of_source
from heatsketch.plot.labels import categories
from heatsketch.reports.audits import COLUMNS, audit_facts
from heatsketch.reports.truth import truth
from heatsketch.reports.writer import SUFFIXES, Report


def run(args: Namespace) -> None:
    """Compare the picture with the true distances, write the page, print the summary."""
    check_files(args, *SUFFIXES)
    start = time.monotonic()
    known = defaults(ESTIMATORS["heat-sketch"])
    given = {"n_components": 64, "filter": "accumulated"}
    options = parameters(args, known, "heat-sketch", **given)
    table = read_input(args)
    warn_of_units(options, table)
    Y = _picture(args, table, args.picture)
    beside = {} if args.beside is None else {args.beside: _picture(args, table, args.beside)}
    labels = None if table.label is None else table.extra[table.label]
    groups = None if labels is None else categories(labels)
    logger.info("comparing %s points with their picture", f"{len(Y):,}")
    found = hs.audit(
        table.values,
        Y,
        labels=None if groups is None else _named(*groups),
        **options,
    )
    is_points = options.get("affinity") != "precomputed"
    ids = {name: table.extra[name] for name in id_columns(args, table) if name in table.extra}
    values = in_units_of_source(table) if is_points else None
    facts = audit_facts(
        found,
        values,
        **coloring(args, table, {k: v for k, v in table.extra.items() if k not in ids}),
        ids=ids,
        features=table.columns,
        title=f"{Path(table.source).name}: {args.picture}",
        command=shlex.join(["heatsketch", *args.words]),
    )
    facts |= truth(facts, found, beside=beside or None)
    Report(facts).save(args.output, force=args.force)
    written = [args.output]
    if args.table is not None:
        columns = [*(getattr(found, name) for name in COLUMNS), found.dubious]
        rows = zip(names_of(args, table), *(values.tolist() for values in columns), strict=True)
        io.files.write_rows(args.table, [("id", *COLUMNS, "dubious"), *rows], force=args.force)
        written.append(args.table)
    lines = dict(zip(("trust", "neighbours", "groups"), found.describe().splitlines(), strict=True))
    lines["seconds"] = f"{time.monotonic() - start:.1f}"
    print_lines(lines | {"written": ", ".join(map(str, written))})


def _named(codes: Array, names: tuple[str, ...]) -> Array:
    """Return the names of categories (n,), None where one is missing."""
    return np.array([*names, None], dtype=object)[codes]


def _picture(args: Namespace, table: io.Table, name: str) -> Array:
    """Read a picture (n, c), a file or an entry of obsm of INPUT, in the order of the points."""
    in_input = Path(table.source).suffix in (".h5ad", ".zarr") and not Path(name).exists()
    source, key = (args.input, name) if in_input else (name, None)
    picture = io.formats.read_embedding(source, key)
    columns = [j for j, column in enumerate(picture.columns) if column not in table.extra]
    Y = np.asarray(picture.values[:, columns], dtype=float)
    ids, theirs = ids_of(args, table), ids_of(args, picture)
    if ids is None or theirs is None or ids == theirs:
        if len(Y) != table.values.shape[0]:
            raise ValueError(
                f"{name} has {len(Y):,} rows but {args.input} has {table.values.shape[0]:,}; pass "
                "a picture of the same rows, or a column of ids in both files."
            )
        return Y
    place = {one: row for row, one in enumerate(theirs)}
    missing = [one for one in ids if one not in place]
    if missing or len(place) < len(theirs):
        raise ValueError(
            f"{name} has no row for the id {missing[0]!r}; pass a picture of all points."
            if missing
            else f"{name} has an id in several rows; pass one row for each point."
        )
    return Y[[place[one] for one in ids]]
