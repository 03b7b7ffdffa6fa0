"""heatsketch report: embed a file of points, and show what came of it in one page of HTML."""

import shlex
import time
from argparse import Namespace
from pathlib import Path

import numpy as np

from heatsketch.cli.embed import described
from heatsketch.cli.fitting import estimator_of, fit, is_precomputed
from heatsketch.cli.printing import logger, print_lines
from heatsketch.cli.tables import check_files, coloring, id_columns
from heatsketch.io.refine import in_units_of_source
from heatsketch.reports.facts import collect
from heatsketch.reports.frames import time_of
from heatsketch.reports.summary import explained
from heatsketch.reports.truth import truth
from heatsketch.reports.writer import SUFFIXES, Report
from heatsketch.spectral.cache import caching


@caching()
def run(args: Namespace) -> None:
    """Embed the points, collect the facts, write the page, print what `embed` prints."""
    check_files(args, *SUFFIXES)
    start = time.monotonic()
    fitted = fit(args, estimator_of(args, args.method))
    table, estimator, _ = fitted
    warned = {"warned of": " ".join(args.warned)} if args.warned else {}
    can_explain = hasattr(estimator, "diffusion_") and np.size(time_of(estimator)) == 1
    share = explained(estimator) if can_explain else None
    lines = described(args, fitted, share)
    ids = {name: table.extra[name] for name in id_columns(args, table) if name in table.extra}
    others = [name for name in table.extra if name not in ids and name != table.label]
    first = [] if table.label is None or table.label in ids else [table.label]
    is_points = args.graph is None and not is_precomputed(estimator.get_params(deep=False))
    facts = collect(
        estimator,
        table.values if is_points else None,
        **coloring(args, table, {name: table.extra[name] for name in [*first, *others]}),
        ids=ids,
        features=table.columns,
        in_units=in_units_of_source(table) if is_points else None,
        times=None if args.times is None else np.atleast_1d(args.times).tolist(),
        title=f"{Path(table.source).name}: {args.method}",
        lines=lines | warned,
        share=share,
        command=shlex.join(["heatsketch", *args.words]),
    )
    facts |= truth(facts, estimator)
    logger.info("writing %s", args.output)
    Report(facts).save(args.output, force=args.force)
    lines["seconds"] = f"{time.monotonic() - start:.1f}"
    size = f"{args.output.stat().st_size / 1e6:.1f} MB"
    print_lines({**lines, "written": f"{args.output} ({size})"})
