"""The files that a verb writes: checks before the work begins, and tables of rows."""

import csv
import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from heatsketch import __version__, io, plot
from heatsketch._typing import Array
from heatsketch.cli.printing import OUTPUTS, logger
from heatsketch.io import text
from heatsketch.io.files import check_target, need, suffix_of
from heatsketch.io.formats import check_in_place
from heatsketch.io.metadata import write_metadata

ROW_SUFFIXES = (".csv", ".tsv", ".txt")
WRITERS = dict.fromkeys((*text.SUFFIXES, ".parquet"), "pyarrow") | {".h5ad": "anndata"}


def check_files(args: Namespace, *suffixes: str, required: str | None = None) -> None:
    """Raise before the work begins if a file that is asked for could not be written.

    The output has one of the suffixes. Text in `required` ends the message where there is none.
    """
    if required is not None and args.output is None:
        args.usage_error(f"the following arguments are required: -o/--output{required}")
    written: set[Path] = set()
    for name in OUTPUTS:
        path = getattr(args, name)
        if path is None or (str(path) == "-" and "-" in suffixes):
            continue
        if path.resolve() in written:  # with --force the second would replace the first
            option = name.replace("_", "-")
            args.usage_error(f"--{option} {path} is another output, too; name a file")
        written.add(path.resolve())
        if name == "output" and suffix_of(path) not in suffixes:
            args.usage_error(f"{path} has no known suffix; choose from {', '.join(suffixes)}")
        if name == "output" and args.in_place:
            check_in_place(path, args.input)
        elif name != "output" or not args.resume:
            check_target(path, force=args.force, source=args.input)
        if not os.access(path.parent, os.W_OK):
            raise OSError(f"{path.parent} is not writable; choose another folder.")
        if name == "output" and suffix_of(path) in WRITERS:
            need(WRITERS[suffix_of(path)], path)
    if args.plot is not None:
        plot.check_picture(args.plot)


def key_of_method(method: str) -> str:
    """Return the entry of obsm that the result of a method has, as in `heatsketch.anndata`."""
    return "X_heat" if method == "heat-embedding" else f"X_{method.replace('-', '_')}"


def write_coordinates(
    args: Namespace, table: io.Table, estimator: Any, Y: Array, **made: Any
) -> tuple[str, ...]:
    """Write coordinates, and how they were made; return their names."""
    names = tuple(map(str, estimator.get_feature_names_out()))
    made = {"version": __version__, **made, "dtype": str(Y.dtype), "columns": names}
    made["data"] = io.data_hash(table.values)
    logger.info("writing %s", args.output)
    how = {"key": args.output_key, "in_place": bool(args.in_place), "force": args.force}
    io.write_table(args.output, Y, names, table, metadata=made, **how)
    if args.metadata is not None:
        write_metadata(args.metadata, made, force=args.force)
    return names


def write_rows(args: Namespace, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows, the names of the columns first, to the output, or print them without one."""
    if args.output is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
    else:
        io.files.write_rows(args.output, rows, force=args.force)
