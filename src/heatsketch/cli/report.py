"""heatsketch report: embed a file of points, and show the embedding in one page of HTML."""

import shlex
from argparse import Namespace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch import io
from heatsketch.anndata import coloring
from heatsketch.cli import common
from heatsketch.cli.embed import described
from heatsketch.io.files import need
from heatsketch.markov.rows import leading_pairs
from heatsketch.reports import Report, report
from heatsketch.reports.writer import SUFFIXES


def run(args: Namespace) -> dict[str, str]:
    """Embed the points, write the page, return the summary of `embed`."""
    common.check_files(args, *SUFFIXES)
    estimator, table = common.estimator_of(args, args.method), common.read_points(args)
    estimator._leading_pairs = cache(leading_pairs)  # the page needs those of the fit
    Y = common.fit(args, estimator, table)
    X = None if "precomputed" in estimator.get_params().values() else table
    found = report(estimator, X, times=args.times, **about_points(args, table, args.method))
    lines = described(args, table, estimator, Y, found.facts["lines"])
    found.facts["lines"] = lines | ({"warned of": " ".join(args.warned)} if args.warned else {})
    save(args, found)
    return lines | {"written": f"{args.output} ({args.output.stat().st_size / 1e6:.1f} MB)"}


def save(args: Namespace, page: Report) -> None:
    """Write a page with the command that made it."""
    page.facts["command"] = shlex.join(["heatsketch", *args.words])
    page.save(args.output, force=args.force)


def about_points(args: Namespace, table: io.Table, shown: str) -> dict[str, Any]:
    """Return the facts of the points, for any kind of page: title, ids, and colours.

    The points of AnnData are also coloured by genes, and its categories as scanpy does.
    """
    path, ids = Path(table.source), common.id_columns(args, table)
    if not ids and table.rows is not None:
        ids = {"row": table.rows}
    # The label is shown first.
    names = sorted(table.extra.keys() - ids.keys(), key=[table.label, *table.extra].index)
    facts: dict[str, Any] = {
        "labels": {name: table.extra[name] for name in names},
        "ids": ids,
        "title": f"{path.name}: {shown}",
    }
    if path.suffix != ".h5ad" or args.graph is not None:
        if args.genes is not None:
            raise ValueError(f"--genes is of cells in .h5ad but INPUT is {path}; leave it out.")
        return facts
    gene, *others = args.genes or ["20"]
    cells = need("anndata", path).read_h5ad(path, backed="r")
    found = coloring(cells, int(gene) if gene.isdecimal() and not others else [gene, *others])
    cells.file.close()
    if cells.n_obs == table.values.shape[0]:  # else rows with gaps were left out
        known = (*cells.obs, *table.columns)
        genes = {name: np.asarray(x) for name, x in found["labels"].items() if name not in known}
        facts["labels"] |= genes
    return facts | {"colors": found["colors"]}
