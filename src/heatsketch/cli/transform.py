"""heatsketch transform: place the points of a file by a model that `embed` has kept."""

import sys
import time
import warnings
from argparse import Namespace
from typing import Any

import numpy as np

from heatsketch import __version__, io
from heatsketch.cli.printing import logger, print_lines
from heatsketch.cli.tables import check_files, key_of_method, read_for_model
from heatsketch.comparison.methods import ESTIMATORS
from heatsketch.io.files import listed
from heatsketch.io.formats import STDOUT, check_key
from heatsketch.io.metadata import write_metadata
from heatsketch.io.models import read_facts, read_model

_LIBRARIES = ("heatsketch", "numpy", "scikit-learn")


def run(args: Namespace) -> None:
    """Read model and points, transform them, write the result, print a summary."""
    if args.info:
        print_lines(_info(args))
        return
    if args.input is None or args.output is None:
        args.usage_error("pass INPUT and -o FILE, or --info to see what MODEL is")
    check_files(args, *io.SUFFIXES, "-")
    start = time.monotonic()
    logger.info("reading %s", args.model)
    stored = read_model(args.model)
    model = stored.model
    if not hasattr(model, "transform"):
        raise ValueError(
            f"{args.model} holds a {type(model).__name__}, which has no rule for new points; pass "
            "the model of another method."
        )
    kind = type(model)
    method = next(
        (name for name, make in ESTIMATORS.items() if make is kind), kind.__name__.lower()
    )
    key = args.output_key or key_of_method(method)
    check_key(args.output, args.input, key, force=args.force)
    table = read_for_model(args, stored)
    with warnings.catch_warnings():  # columns have been found by their names
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        Y = np.asarray(model.transform(table.values))
    names = [str(name) for name in model.get_feature_names_out()]
    # Not the parameters: distances are those of the training points, not of a diffusion on these.
    made = {
        "version": __version__,
        "model": {"file": str(args.model), **stored.facts},
        "dtype": str(Y.dtype),
        "data": io.data_hash(table.values),
        "columns": names,
    }
    io.write_table(args.output, Y, names, table, key=key, metadata=made, force=args.force)
    if args.metadata is not None:
        write_metadata(args.metadata, made, force=args.force)
    n, d = table.values.shape
    lines = {
        "input": f"{table.source}: {n:,} points, {d:,} features",
        **({"changed": "; ".join(table.notes)} if table.notes else {}),
        "model": f"{args.model}: {type(model).__name__}, {Y.shape[1]} coordinates",
        "seconds": f"{time.monotonic() - start:.1f}",
        "written": ", ".join(str(path) for path in (args.output, args.metadata) if path),
    }
    print_lines(lines, sys.stderr if str(args.output) == STDOUT else sys.stdout)


def _info(args: Namespace) -> dict[str, str]:
    """Say what the model in a file is; its arrays are not read."""
    facts = read_facts(args.model)
    sizes = {"n": "training points", "n_features": "features"}
    points = [f"{facts[name]:,} {words}" for name, words in sizes.items() if facts.get(name)]
    kept = (facts.get("distances") or "").removeprefix("distances ")
    known: dict[str, Any] = {
        "model": f"{args.model}: {facts['kind']}, {args.model.stat().st_size:,} bytes",
        "parameters": _assignments(facts.get("parameters")),
        "points": ", ".join(points),
        "features": listed(facts.get("features") or []),
        "columns": listed(facts.get("columns") or []),
        "data": f"SHA-256 {facts['data']}" if facts.get("data") else "",
        "time": "" if facts.get("time") is None else f"{facts['time']}",
        "distances": f"{kept}; log L {facts['log_L']:.2f}" if kept else "",
        "reading": _assignments(facts.get("reading")),
        "made by": ", ".join(f"{name} {facts[name]}" for name in _LIBRARIES if name in facts),
    }
    return {name: text for name, text in known.items() if text}


def _assignments(values: dict[str, Any] | None) -> str:
    said = [f"{name}={value!r}" for name, value in (values or {}).items() if value is not None]
    return ", ".join(said)
