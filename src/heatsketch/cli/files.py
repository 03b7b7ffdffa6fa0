"""The files of a command: their arguments, reading the input, checks before work begins."""

import argparse
import csv
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heatsketch import io, plot
from heatsketch._checks import feature_names, warn_of_scales
from heatsketch.cli.reporting import logger
from heatsketch.io import h5ad
from heatsketch.io.files import check_target, need
from heatsketch.io.formats import check_in_place, suffix_of
from heatsketch.io.reading import MISSING
from heatsketch.markov.affinities import has_distances
from heatsketch.operators import Graph

_OPTIONS = (
    *("label", "ids", "key", "features", "exclude", "missing", "standardize"),
    *("sep", "decimal", "header", "graph"),
)
_TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_COMPONENTS, _MOST_GENES = "X_pca", 50  # as scanpy: of so many genes X itself is taken
WRITERS = dict.fromkeys((*_TEXT, ".parquet"), "pyarrow") | {".h5ad": "h5py"}


def add_input(command: argparse.ArgumentParser, *, known: bool = False) -> argparse._ArgumentGroup:
    """Add the file of points and how to read it, the features only where they are not `known`."""
    points = "file of points, folder of MNIST, or built-in set; - for text on standard input"
    command.add_argument("input", metavar="INPUT", help=points)
    group = command.add_argument_group("reading INPUT")
    add = group.add_argument
    for option, text in (("--label", "column of labels"), ("--id", "column of ids")):
        add(option, action="append", metavar="NAME", help=f"{text} (may be repeated)")
    add("--key", help="array or sheet of INPUT to read, or train, test or all of MNIST")
    gaps = "missing numbers: refuse them, drop their rows, or fill in the median of the column; "
    gaps += "drop and median count cells that are not numbers as missing (default error)"
    add("--missing", choices=MISSING, help=gaps)
    add("--sep", metavar="C", help="character between cells of text, tab or space (default: seen)")
    add("--decimal", choices=(".", ","), help="decimal mark of text (default .)")
    header = "whether the first row of text holds the names of the columns (default: seen)"
    add("--header", action=argparse.BooleanOptionalAction, help=header)
    if not known:
        _add_features(group)
    return group


def _add_features(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    names: dict[str, Any] = {"type": _names, "action": "extend", "metavar": "NAME[,NAME...]"}
    add("--features", **names, help="columns that are features (default: all numeric ones)")
    add("--exclude", **names, help="columns that are not features, but passed through")
    scale = "give every column mean 0 and variance 1"
    add("--standardize", action="store_true", default=None, help=scale)


def add_graph(reading: argparse._ArgumentGroup) -> None:
    """Add the option for inputs that hold a graph to those of reading."""
    graph = "INPUT holds a graph: an edge list (two columns of names, perhaps one of weights), a "
    graph += "matrix (.mtx, .npz), or in .h5ad the entry NAME of obsp (default connectivities); "
    graph += "the default of --filter is then heat"
    reading.add_argument("--graph", nargs="?", const=True, metavar="NAME", help=graph)


def _names(text: str) -> list[str]:
    """Read names with commas between; quotes protect commas."""
    return next(csv.reader([text]), [])


def reading(args: argparse.Namespace, recorded: Any = None) -> dict[str, Any]:
    """Return the options of reading that were given, and those recorded for the rest."""
    values = {name: getattr(args, "id" if name == "ids" else name, None) for name in _OPTIONS}
    given = {name: value for name, value in values.items() if value is not None}
    known = recorded if isinstance(recorded, dict) else {}
    return {name: value for name, value in known.items() if name in _OPTIONS} | given


def read_input(args: argparse.Namespace, recorded: Any = None) -> io.Table:
    """Read the file of points, as given and else as recorded in the file of an embedding."""
    logger.info("reading %s", args.input)
    if args.standardize and _is_precomputed(vars(args)):
        args.usage_error("--standardize scales features, but INPUT is precomputed; leave it out")
    options = reading(args, recorded)
    if "graph" in options:
        return _read_graph(args, options)
    table = io.read_table(args.input, **{"missing": "error"} | options)
    _warn_of_edges(table)
    if "key" not in options:
        warn_of_genes(args.input, len(table.columns))
    return table


def warn_of_genes(source: str, n_columns: int) -> None:
    """Warn of an AnnData file whose many genes are taken, though it has principal components."""
    if n_columns <= _MOST_GENES or suffix_of(source) != ".h5ad":
        return
    if h5ad.has_entry(Path(source), _COMPONENTS):
        warnings.warn(
            f"the {n_columns:,} columns of X in {source} are taken as they are, but obsm has "
            f"{_COMPONENTS}, from which scanpy searches neighbours; pass --key {_COMPONENTS}, or "
            "--key X to keep X.",
            stacklevel=2,
        )


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


def graph_options(args: argparse.Namespace, recorded: Any = None) -> dict[str, Any]:
    """Return the options that INPUT sets where it holds a graph, as given or else recorded."""
    is_graph = "graph" in reading(args, recorded)
    return {"filter": "heat", "affinity": "precomputed"} if is_graph else {}


def with_graph(args: argparse.Namespace, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with those of a graph, if INPUT holds one; or end with a usage error."""
    if args.graph is not None and options.get("affinity", "precomputed") != "precomputed":
        args.usage_error("--affinity is about points, but INPUT is a graph; leave it out")
    return graph_options(args) | options


def to_fit(args: argparse.Namespace, table: io.Table) -> Any:
    """Return what an estimator is fitted to: the points, or the graph."""
    return table.values if args.graph is None else Graph(table.values)


def _read_graph(args: argparse.Namespace, options: dict[str, Any]) -> io.Table:
    entry = options.pop("graph")
    if isinstance(entry, str):
        if suffix_of(args.input) != ".h5ad":
            args.usage_error(f"--graph {entry} names an entry of obsp in .h5ad; pass --graph alone")
        options["key"] = entry
    unused = sorted({"features", "missing", "standardize"} & set(options))
    if unused:
        args.usage_error(f"--{unused[0]} is for points, but INPUT is a graph; leave it out")
    return io.read_graph(args.input, **options)


def warn_of_units(options: dict[str, Any], table: io.Table) -> None:
    """Warn if one column decides all distances; the rest of the command has the names of columns.

    That is also of methods that warn of nothing; what these say again is printed once.
    """
    feature_names.set(table.columns)
    of_distances = not _is_precomputed(options) and has_distances(options.get("affinity", "knn"))
    if of_distances and options.get("metric", "euclidean") == "euclidean":
        warn_of_scales(table.values)


def _is_precomputed(options: dict[str, Any]) -> bool:
    return "precomputed" in (options.get("affinity"), options.get("metric"))


def add_plot(command: argparse.ArgumentParser, what: str) -> None:
    """Add the file of a picture."""
    suffixes = f"{', '.join(plot.SUFFIXES[:-1])} or {plot.SUFFIXES[-1]}"
    command.add_argument("--plot", type=Path, metavar="FILE", help=f"draw {what}: {suffixes}")


def add_json(command: argparse.ArgumentParser) -> None:
    """Add the choice of a result for programs."""
    command.add_argument("--json", action="store_true", help="print the result as JSON")


def add_force(command: argparse.ArgumentParser) -> None:
    """Add the permission to replace files."""
    command.add_argument("--force", action="store_true", help="replace files that exist")


def check_output(
    args: argparse.Namespace, path: Path, suffixes: Sequence[str] = (*io.SUFFIXES, "-")
) -> None:
    """Raise before the work begins if its result could not be written."""
    suffix = suffix_of(path)
    if str(path) == "-" and "-" in suffixes:
        return
    if suffix not in suffixes:
        args.usage_error(f"{path} has no known suffix; choose from {', '.join(suffixes)}")
    if getattr(args, "in_place", False) and suffixes != plot.SUFFIXES:
        check_in_place(path, args.input)
    else:
        check_target(path, force=args.force, source=getattr(args, "input", ""))
    if not os.access(path.parent, os.W_OK):
        raise OSError(f"{path.parent} is not writable; choose another folder.")
    if suffix in WRITERS:
        need(WRITERS[suffix], path)


def check_plot(args: argparse.Namespace) -> None:
    """Raise before the work begins if a picture that is asked for could not be written."""
    for path in (args.plot, getattr(args, "plot_time", None)):
        if path is not None:
            check_output(args, path, plot.SUFFIXES)
            plot.check_picture(path)
