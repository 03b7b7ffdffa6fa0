"""heatsketch transform: place the points of a file by a model that `embed` has kept."""

import warnings
from argparse import Namespace
from typing import Any

import numpy as np

from heatsketch import io
from heatsketch.cli.inputs import read_for_model, size_of
from heatsketch.cli.outputs import check_files, key_of_method, write_coordinates
from heatsketch.cli.printing import logger, print_summary
from heatsketch.comparison.methods import ESTIMATORS
from heatsketch.io.files import listed
from heatsketch.io.formats import STDOUT, check_key
from heatsketch.io.models import read_facts, read_model

_LIBRARIES = ("heatsketch", "numpy", "scikit-learn")


def run(args: Namespace) -> None:
    """Read model and points, transform them, write the result, print a summary."""
    if args.info:
        print_summary(args, _info(args))
        return
    if args.input is None or args.output is None:
        args.usage_error("pass INPUT and -o FILE, or --info to see what MODEL is")
    check_files(args, *io.SUFFIXES, STDOUT)
    logger.info("reading %s", args.model)
    stored = read_model(args.model)
    model, kind = stored.model, type(stored.model)
    if not hasattr(model, "transform"):
        raise ValueError(f"{args.model} ({kind.__name__}) has no rule for new points.")
    methods = {make: name for name, make in ESTIMATORS.items()}
    args.output_key = args.output_key or key_of_method(methods.get(kind, kind.__name__.lower()))
    check_key(args.output, args.input, args.output_key, force=args.force)
    table = read_for_model(args, stored)
    with warnings.catch_warnings():  # columns have been found by their names
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        Y = np.asarray(model.transform(table.values))
    # Not the parameters: distances are those of the training points, not of a diffusion on these.
    write_coordinates(args, table, model, Y, model={"file": str(args.model), **stored.facts})
    lines = {
        "input": f"{table.source}: {size_of(args, table)}",
        "changed": "; ".join(table.notes),
        "model": f"{args.model}: {kind.__name__}, {Y.shape[1]} coordinates",
    }
    print_summary(args, lines)


def _info(args: Namespace) -> dict[str, str]:
    """Say what the model in a file is; its arrays are not read."""
    facts = read_facts(args.model)
    sizes = {"n": "training points", "n_features": "features"}
    kept = (facts.get("distances") or "").removeprefix("distances ")
    return {
        "model": f"{args.model}: {facts['kind']}, {args.model.stat().st_size:,} bytes",
        "parameters": _assignments(facts, "parameters"),
        "points": ", ".join(
            f"{facts[name]:,} {of}" for name, of in sizes.items() if facts.get(name)
        ),
        "features": listed(facts.get("features") or []),
        "columns": listed(facts.get("columns") or []),
        "data": f"SHA-256 {facts['data']}" if facts.get("data") else "",
        "time": "" if facts.get("time") is None else f"{facts['time']}",
        "distances": f"{kept}; log L {facts['log_L']:.2f}" if kept else "",
        "reading": _assignments(facts, "reading"),
        "made by": ", ".join(f"{name} {facts[name]}" for name in _LIBRARIES if name in facts),
    }


def _assignments(facts: dict[str, Any], name: str) -> str:
    values = facts.get(name) or {}
    return ", ".join(f"{name}={value!r}" for name, value in values.items() if value is not None)
