"""heatsketch report: embed a file of points, and show what came of it in one page of HTML."""

import shlex
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch import io
from heatsketch.anndata import coloring
from heatsketch.cli.embed import described
from heatsketch.cli.inputs import estimator_of, fit, id_columns, is_precomputed, read_points
from heatsketch.cli.outputs import check_files
from heatsketch.cli.printing import logger, print_summary
from heatsketch.io.files import need, suffix_of
from heatsketch.io.refine import in_units_of_source
from heatsketch.reports.facts import collect
from heatsketch.reports.frames import time_of
from heatsketch.reports.summary import explained
from heatsketch.reports.writer import SUFFIXES, Report
from heatsketch.spectral.cache import caching


@caching()
def run(args: Namespace) -> None:
    """Embed the points, collect the facts, write the page, print what `embed` prints."""
    check_files(args, *SUFFIXES, required="")
    estimator, table = estimator_of(args, args.method), read_points(args)
    Y = fit(args, estimator, table)
    can_explain = hasattr(estimator, "diffusion_") and np.size(time_of(estimator)) == 1
    share = explained(estimator) if can_explain else None
    lines = described(args, table, estimator, Y, share)
    is_points = args.graph is None and not is_precomputed(estimator.get_params(deep=False))
    facts = collect(
        estimator,
        table.values if is_points else None,
        in_units=in_units_of_source(table) if is_points else None,
        times=None if args.times is None else np.atleast_1d(args.times).tolist(),
        lines=lines | ({"warned of": " ".join(args.warned)} if args.warned else {}),
        share=share,
        **about_points(args, table, args.method),
    )
    logger.info("writing %s", args.output)
    Report(facts).save(args.output, force=args.force)
    size = f"{args.output.stat().st_size / 1e6:.1f} MB"
    print_summary(args, lines, written=f"{args.output} ({size})")


def about_points(args: Namespace, table: io.Table, shown: str) -> dict[str, Any]:
    """Return what a page says of the points, whatever it shows: title, ids, and colours.

    The points of AnnData are also coloured by genes, and its categories as scanpy does.
    """
    ids = id_columns(args, table)
    labels = {name: column for name, column in table.extra.items() if name not in ids}
    if table.label in labels:  # it is shown first
        labels = {table.label: labels[table.label]} | labels
    facts: dict[str, Any] = {
        "labels": labels,
        "ids": ids,
        "features": table.columns,
        "title": f"{Path(table.source).name}: {shown}",
        "command": shlex.join(["heatsketch", *args.words]),
    }
    path, (gene, *others) = Path(table.source), args.genes or ["20"]
    if suffix_of(path) != ".h5ad" or args.graph is not None:
        if args.genes is not None:
            raise ValueError(f"--genes is of cells in .h5ad but INPUT is {path}; leave it out.")
        return facts
    cells = need("anndata", path).read_h5ad(path, backed="r")
    most_variable = gene.isdecimal() and not others
    found = coloring(cells, int(gene) if most_variable else [gene, *others])
    cells.file.close()
    if cells.n_obs == table.values.shape[0]:  # else rows with gaps were left out
        known = (*cells.obs, *table.columns)
        genes = {name: np.asarray(x) for name, x in found["labels"].items() if name not in known}
        facts["labels"] = labels | genes
    return facts | {"colors": found["colors"]}
