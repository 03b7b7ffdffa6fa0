"""Points of a file by their names, ids or numbers of rows, and tables with a row for each."""

import argparse
import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from heatsketch import io
from heatsketch._typing import Array
from heatsketch._words import did_you_mean
from heatsketch.io.files import write_atomically
from heatsketch.io.table import is_id

ROW_SUFFIXES = (".csv", ".tsv", ".txt")


def names_of(args: argparse.Namespace, table: io.Table) -> list[str]:
    """Return the ids of the points, by the first column of ids, or the numbers of their rows."""
    ids = ids_of(args, table)
    return [str(n) for n in range(table.values.shape[0])] if ids is None else ids


def ids_of(args: argparse.Namespace, table: io.Table) -> list[str] | None:
    """Return the ids of the points, by the first column of ids; None without one."""
    columns = id_columns(args, table)
    if not columns:
        return None
    return [str(name).strip() for name in table.extra[columns[0]].tolist()]


def id_columns(args: argparse.Namespace, table: io.Table) -> list[str]:
    """Return the names of the columns of ids: those given, else those called so."""
    return args.id or [name for name in table.extra if is_id(name)]


def rows_of(wanted: list[str], names: list[str], source: str) -> Array:
    """Return the rows of ids, or raise for one that is missing or not unique."""
    row_of: dict[str, int] = {}
    repeated = {name for n, name in enumerate(names) if row_of.setdefault(name, n) != n}
    for name in wanted:
        if name not in row_of:
            hint = did_you_mean(name, names)
            raise ValueError(f"{source} has no point {name!r}; pass one of its ids{hint}")
        if name in repeated:
            raise ValueError(f"{source} has several points {name!r}; name a column with --id.")
    return np.array([row_of[name] for name in wanted])


def write_rows(path: Path | None, rows: Iterable[Sequence[Any]], *, force: bool) -> None:
    """Write rows, the names of the columns first, to a file of `ROW_SUFFIXES`; or print them."""

    def put(stream: TextIO, separator: str) -> None:
        csv.writer(stream, delimiter=separator, lineterminator="\n").writerows(rows)

    if path is None:
        put(sys.stdout, ",")
        return
    separator = "," if path.suffix.lower() == ".csv" else "\t"

    def write(draft: Path) -> None:
        with draft.open("w", encoding="utf-8", newline="") as stream:
            put(stream, separator)

    write_atomically(path, write, force=force)
