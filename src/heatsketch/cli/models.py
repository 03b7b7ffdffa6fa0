"""Models in files: how tables are read for them is kept with them."""

import argparse
from pathlib import Path
from typing import Any

from heatsketch import io
from heatsketch.cli.files import reading
from heatsketch.cli.reporting import logger
from heatsketch.io.formats import read_like, suffix_of
from heatsketch.io.models import Stored, write_model
from heatsketch.io.refine import Learned, reading_record

_OF_THE_FORMAT = ("key", "sep", "decimal", "header")  # how files of one suffix are read


def save(
    path: Path, estimator: Any, table: io.Table, options: dict[str, Any], *, force: bool
) -> None:
    """Write a model that was fitted to a table, and what other tables need to be read like it."""
    record = reading_record(table, suffix_of(table.source), options)
    write_model(estimator, path, record, force=force)


def read_new(args: argparse.Namespace, stored: Stored) -> io.Table:
    """Read points for a model: the columns, medians, means and scales are those of its fit.

    Nothing is estimated from the new points. Options of the format count for files of the same
    suffix; those that are given count before those of the fit.
    """
    logger.info("reading %s", args.input)
    known = stored.reading
    if not known:
        return _read_by_names(args, stored.model)
    recorded = dict(known["options"])
    options = {"missing": recorded.get("missing", "error")}
    if suffix_of(args.input) == known["suffix"]:
        options |= {name: recorded[name] for name in _OF_THE_FORMAT if name in recorded}
    learned = Learned(tuple(known["columns"]), known["medians"], known["mean"], known["scale"])
    return read_like(args.input, learned, **options | reading(args))


def _read_by_names(args: argparse.Namespace, model: Any) -> io.Table:
    """Read points for a model that was not fitted to a file: by names of features if it has any.

    It has no medians, so that gaps cannot be filled; those of the new points are others.
    """
    names = getattr(model, "feature_names_in_", ())
    options = {"missing": "error"} | reading(args)
    return read_like(args.input, Learned(tuple(map(str, names))), **options)
