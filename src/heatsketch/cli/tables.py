"""The files of a verb: reading points, and checks before work begins."""

import csv
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import heatsketch.anndata
from heatsketch import io, plot
from heatsketch._typing import Array
from heatsketch._words import did_you_mean
from heatsketch.cli.printing import logger
from heatsketch.io import files
from heatsketch.io.files import check_target, need, suffix_of
from heatsketch.io.formats import check_in_place, read_like
from heatsketch.io.models import Stored
from heatsketch.io.refine import Learned
from heatsketch.io.table import is_id

ROW_SUFFIXES = (".csv", ".tsv", ".txt")
_OPTIONS = ("label", "ids", "features", "exclude", "missing", "standardize", "graph")
_OF_THE_FORMAT = ("key", "sep", "decimal", "header")  # how files of one suffix are read
_TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
WRITERS = dict.fromkeys((*_TEXT, ".parquet"), "pyarrow") | {".h5ad": "anndata"}


def reading(args: Namespace, recorded: Any = None) -> dict[str, Any]:
    """Return the options of reading that were given, and those recorded for the rest."""
    given = {name: getattr(args, "id" if name == "ids" else name, None) for name in _OPTIONS}
    given = {name: value for name, value in given.items() if value is not None} | args.read
    known = recorded if isinstance(recorded, dict) else {}
    return {k: v for k, v in known.items() if k in _OPTIONS + _OF_THE_FORMAT} | given


def read_input(args: Namespace, recorded: Any = None) -> io.Table:
    """Read the file of points, as given and else as recorded in the file of an embedding."""
    logger.info("reading %s", args.input)
    options = reading(args, recorded)
    if "graph" not in options:
        table = io.read_table(args.input, **{"missing": "error"} | options)
        _warn_of_edges(table)
        return table
    entry = options.pop("graph")
    if isinstance(entry, str):
        if suffix_of(args.input) != ".h5ad":
            args.usage_error(f"--graph {entry} names an entry of obsp in .h5ad; pass --graph alone")
        options["key"] = entry
    for name in ("features", "missing", "standardize"):
        if name in options:
            args.usage_error(f"--{name} is for points, but INPUT is a graph; leave it out")
    return io.read_graph(args.input, **options)


def read_for_model(args: Namespace, stored: Stored) -> io.Table:
    """Read points for a model: the columns, medians, means and scales are those of its fit.

    Options of the format count for files of the same suffix; those that are given count before
    those of the fit. A model that was not fitted to a file finds its features by their names, if it
    has any, and has no medians to fill gaps.
    """
    logger.info("reading %s", args.input)
    known = stored.reading
    if not known:
        names = getattr(stored.model, "feature_names_in_", ())
        options = {"missing": "error"} | reading(args)
        return read_like(args.input, Learned(tuple(map(str, names))), **options)
    recorded = dict(known["options"])
    options = {"missing": recorded.get("missing", "error")}
    if suffix_of(args.input) == known["suffix"]:
        options |= {name: recorded[name] for name in _OF_THE_FORMAT if name in recorded}
    learned = Learned(tuple(known["columns"]), known["medians"], known["mean"], known["scale"])
    return read_like(args.input, learned, **options | reading(args))


def _warn_of_edges(table: io.Table) -> None:
    """Warn of a table that is an edge list: two columns of the same names, and one of numbers."""
    named = {name: column for name, column in table.extra.items() if column.dtype.kind in "OU"}
    if table.values.shape[1] != 1 or len(named) != 2:
        return
    tails, heads = (set(column.tolist()) for column in named.values())
    if 2 * len(tails & heads) >= min(len(tails), len(heads)):
        tail, head = named
        warnings.warn(
            f"{table.source} looks like the edges of a graph, for {tail!r} and {head!r} hold the "
            "same names; its rows are taken as points with one feature. Pass --graph to embed the "
            "nodes.",
            stacklevel=2,
        )


def coloring(args: Namespace, table: io.Table, labels: dict[str, Any]) -> dict[str, Any]:
    """Return columns to colour the points by, and colours: of AnnData also genes, and scanpy's."""
    path = Path(table.source)
    if path.suffix.lower() != ".h5ad" or args.graph is not None:
        if args.genes is not None:
            raise ValueError(f"--genes is of cells in .h5ad but INPUT is {path}; leave it out.")
        return {"labels": labels, "colors": None}
    genes = 20 if args.genes is None else args.genes
    cells = need("anndata", path).read_h5ad(path, backed="r")
    found = heatsketch.anndata.coloring(cells, genes)
    cells.file.close()
    others = [name for name in found["labels"] if name not in (*cells.obs, *table.columns)]
    if cells.n_obs == table.values.shape[0]:  # else rows with gaps were left out
        labels |= {name: np.asarray(found["labels"][name]) for name in others}
    return {"labels": labels, "colors": found["colors"]}


def id_columns(args: Namespace, table: io.Table) -> list[str]:
    """Return the names of the columns of ids: those given, else those called so."""
    return args.id or [name for name in table.extra if is_id(name)]


def ids_of(args: Namespace, table: io.Table) -> list[str] | None:
    """Return the ids of the points, by the first column of ids; None without one."""
    for column in id_columns(args, table)[:1]:
        return [str(name).strip() for name in table.extra[column].tolist()]
    return None


def names_of(args: Namespace, table: io.Table) -> list[str]:
    """Return the ids of the points, or the numbers of their rows."""
    return ids_of(args, table) or [str(n) for n in range(table.values.shape[0])]


def rows_of(args: Namespace, table: io.Table, wanted: Iterable[str]) -> Array:
    """Return the rows of ids, or raise for one that is missing or not unique."""
    names = names_of(args, table)
    places: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        places.setdefault(name, []).append(row)
    rows = []
    for name in map(str.strip, wanted):
        if name not in places:
            for column, values in table.extra.items():
                if name in map(str, values.tolist()):
                    raise ValueError(f"{name!r} is not an id; name its column with --id {column}.")
            hint = did_you_mean(name, names)
            raise ValueError(f"{args.input} has no point {name!r}; pass one of its ids{hint}")
        if len(places[name]) > 1:
            raise ValueError(f"{args.input} has several points {name!r}; name a column with --id.")
        rows += places[name]
    return np.array(rows)


def write_rows(path: Path | None, rows: Iterable[Sequence[Any]], *, force: bool) -> None:
    """Write rows, the names of the columns first, to a file of `ROW_SUFFIXES`; or print them."""
    if path is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
    else:
        files.write_rows(path, rows, force=force)


def check_files(args: Namespace, *suffixes: str) -> None:
    """Raise before the work begins if a file that is asked for could not be written.

    The output has one of the suffixes.
    """
    written: set[Path] = set()
    for name in ("output", "table", "plot", "save_model", "metadata"):
        path = getattr(args, name, None)
        if path is None or (str(path) == "-" and "-" in suffixes):
            continue
        known = {"output": suffixes, "plot": plot.SUFFIXES}.get(name)
        if known and suffix_of(path) not in known:
            args.usage_error(f"{path} has no known suffix; choose from {', '.join(known)}")
        if path.resolve() in written:
            option = name.replace("_", "-")
            args.usage_error(f"--{option} {path} is another output, too; name a file")
        written.add(path.resolve())
        if name == "output" and getattr(args, "in_place", False):
            check_in_place(path, args.input)
        elif name != "output" or not getattr(args, "resume", False):
            check_target(path, force=args.force, source=args.input)
        if not os.access(path.parent, os.W_OK):
            raise OSError(f"{path.parent} is not writable; choose another folder.")
        if name == "output" and suffix_of(path) in WRITERS:
            need(WRITERS[suffix_of(path)], path)
    if getattr(args, "plot", None) is not None:
        plot.check_picture(args.plot)


def key_of_method(method: str) -> str:
    """Return the entry of obsm that the result of a method has, as in `heatsketch.anndata`."""
    return "X_heat" if method == "heat-embedding" else f"X_{method.replace('-', '_')}"
