"""heatsketch transform: map the points of a file by a model that `embed` saved."""

import warnings
from argparse import Namespace

import numpy as np

from heatsketch import io
from heatsketch.cli import common
from heatsketch.comparison.run import ESTIMATORS
from heatsketch.io.files import PIPE, listed
from heatsketch.io.models import read_facts, read_model


def run(args: Namespace) -> dict[str, str]:
    """Read model and points, transform them, write the result, return the summary."""
    if args.info:  # describe the model in a file; its arrays are not read
        lines = {"model": f"{args.model}, {args.model.stat().st_size:,} bytes"}
        for name, fact in read_facts(args.model).items():
            if isinstance(fact, dict):
                lines[name] = ", ".join(f"{k}={v!r}" for k, v in fact.items() if v is not None)
            elif fact is not None:
                lines[name] = listed(fact) if isinstance(fact, list) else str(fact)
        return lines
    if args.input is None or args.output is None:
        args.usage_error("pass INPUT and -o FILE, or --info to see what MODEL is")
    model, facts, known = read_model(args.model)
    kind = type(model)
    if not hasattr(model, "transform"):
        raise ValueError(f"{args.model} ({kind.__name__}) has no rule for new points.")
    methods = {make: name for name, make in ESTIMATORS.items()}
    method = methods.get(kind, kind.__name__.lower())
    common.check_files(args, *io.SUFFIXES, PIPE, method=method)
    table = common.read_for_model(args, facts.get("features") or (), known)
    with warnings.catch_warnings():  # columns were already matched by name
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        Y = np.asarray(model.transform(table.values))
    # Without the parameters, because distances belong to the diffusion on the training points.
    made = {"file": str(args.model), **facts}
    common.write_coordinates(args, table, model, Y, model=made)
    return {
        "input": f"{table.source}: {common.size_of(args, table)}",
        "changed": "; ".join(table.notes),
        "model": f"{args.model}: {kind.__name__}, {Y.shape[1]} coordinates",
    }
