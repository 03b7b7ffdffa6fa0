"""The files of a command: their arguments, reading the input, checks before work begins."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from heatsketch import io, plot
from heatsketch.cli.reporting import logger
from heatsketch.io.files import check_target, need

WRITERS = {".csv": "pyarrow", ".tsv": "pyarrow", ".parquet": "pyarrow", ".h5ad": "h5py"}


def add_input(command: argparse.ArgumentParser) -> None:
    """Add the file of points and what to read from it."""
    add = command.add_argument
    add(
        "input",
        metavar="INPUT",
        help="file of points, folder of MNIST, or built-in set",
    )
    for option, text in (("--label", "column of labels"), ("--id", "column of ids")):
        add(option, action="append", default=[], metavar="NAME", help=f"{text} (may be repeated)")
    add("--key", help="array of INPUT to read (.npz, .h5ad), or train, test or all of MNIST")


def read_input(args: argparse.Namespace) -> io.Table:
    """Read the file of points."""
    logger.info("reading %s", args.input)
    return io.read_table(args.input, label=args.label, ids=args.id, key=args.key)


def add_force(command: argparse.ArgumentParser) -> None:
    """Add the permission to replace files."""
    command.add_argument("--force", action="store_true", help="replace files that exist")


def check_output(
    args: argparse.Namespace, path: Path, suffixes: Sequence[str] = io.SUFFIXES
) -> None:
    """Raise before the work begins if its result could not be written."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        args.usage_error(f"{path} has no known suffix; choose from {', '.join(suffixes)}")
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
