"""The files of a command: their arguments, reading the input, checks before work begins."""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

from heatsketch import io, plot
from heatsketch.cli.reporting import logger

WRITERS = {".csv": "pyarrow", ".tsv": "pyarrow", ".parquet": "pyarrow", ".h5ad": "h5py"}


def add_input(command: argparse.ArgumentParser) -> None:
    """Add the file of points and what to read from it."""
    add = command.add_argument
    add("input", metavar="INPUT", help="file of points, folder of MNIST, or name of a built-in set")
    add(
        "--label",
        action="append",
        default=[],
        metavar="NAME",
        help="column of labels (may be repeated)",
    )
    add("--id", action="append", default=[], metavar="NAME", help="column of ids (may be repeated)")
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
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file.")
    if not os.access(path.parent, os.W_OK):
        raise OSError(f"{path.parent} is missing or not writable; choose another folder.")
    if Path(getattr(args, "input", "")).exists() and path.exists() and path.samefile(args.input):
        raise ValueError(f"{path} is also the input; choose another name.")
    if path.exists() and not args.force:
        raise FileExistsError(f"{path} exists; pass --force to replace it or choose another name.")
    module = WRITERS.get(suffix)
    if module is not None and importlib.util.find_spec(module) is None:
        raise ImportError(f'{suffix} files need {module}; pip install "heatsketch[io]"')


def check_plot(args: argparse.Namespace) -> None:
    """Raise before the work begins if a picture that is asked for could not be written."""
    for path in (args.plot, getattr(args, "plot_time", None)):
        if path is not None:
            check_output(args, path, plot.SUFFIXES)
            plot.check_picture(path)
