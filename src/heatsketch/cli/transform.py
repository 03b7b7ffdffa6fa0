"""heatsketch transform: place the points of a file by a model that `embed` has kept."""

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch import __version__, io
from heatsketch.cli.files import add_force, add_input, check_output
from heatsketch.cli.models import read_new
from heatsketch.cli.reporting import logger, print_lines
from heatsketch.io.formats import DEFAULT_KEY, STDOUT, check_key
from heatsketch.io.models import Stored, read_model


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "transform", help="place the points of a file by a model that embed has kept"
    )
    add = command.add_argument
    add("model", type=Path, metavar="MODEL", help="file of a model, from embed --save-model")
    add_input(command, known=True)
    written = "file to write the coordinates to; - for .csv on standard output"
    add("-o", "--output", type=Path, metavar="FILE", required=True, help=written)
    add("--output-key", metavar="NAME", default=DEFAULT_KEY, help="their name in an .h5ad output")
    add_force(command)
    return command


def run(args: argparse.Namespace) -> None:
    """Read model and points, transform them, write the result, print a summary."""
    check_output(args, args.output)
    check_key(args.output, args.input, args.output_key, force=args.force)
    start = time.monotonic()
    logger.info("reading %s", args.model)
    stored = read_model(args.model)
    model = stored.model
    if not hasattr(model, "transform"):
        raise ValueError(
            f"{args.model} holds a {type(model).__name__}, which has no rule for new points; pass "
            "the model of another method."
        )
    table = read_new(args, stored)
    with warnings.catch_warnings():  # columns have been found by their names
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        Y = np.asarray(model.transform(table.values))
    names = [str(name) for name in model.get_feature_names_out()]
    io.write_table(
        args.output,
        Y,
        names,
        table,
        key=args.output_key,
        metadata=_record(args, stored, Y, table) | {"columns": names},
        force=args.force,
    )
    n, d = table.values.shape
    lines = {
        "input": f"{table.source}: {n:,} points, {d:,} features",
        **({"changed": "; ".join(table.notes)} if table.notes else {}),
        "model": f"{args.model}: {type(model).__name__}, {Y.shape[1]} coordinates",
        "seconds": f"{time.monotonic() - start:.1f}",
        "written": str(args.output),
    }
    print_lines(lines, sys.stderr if str(args.output) == STDOUT else sys.stdout)


def _record(
    args: argparse.Namespace, stored: Stored, Y: np.ndarray, table: io.Table
) -> dict[str, Any]:
    """Return what the output says of how it was made.

    Not the parameters: the distances are those of the training points, not of a diffusion on these.
    """
    return {
        "version": __version__,
        "model": {"file": str(args.model), **stored.facts},
        "dtype": str(Y.dtype),
        "data": io.data_hash(table.values),
    }
