"""Points of a file by their names: ids, or numbers of rows."""

import argparse

import numpy as np

from heatsketch import io
from heatsketch._typing import Array
from heatsketch._words import did_you_mean
from heatsketch.io.table import is_id


def names_of(args: argparse.Namespace, table: io.Table) -> list[str]:
    """Return the ids of the points, by the first column of ids, or the numbers of their rows."""
    wanted = args.id or [name for name in table.extra if is_id(name)]
    column = table.extra[wanted[0]].tolist() if wanted else range(table.values.shape[0])
    return [str(name).strip() for name in column]


def rows_of(wanted: list[str], names: list[str], source: str) -> Array:
    """Return the rows of ids, or raise for one that is missing or not unique."""
    row_of: dict[str, int] = {}
    repeated = {name for n, name in enumerate(names) if row_of.setdefault(name, n) != n}
    for name in wanted:
        if name not in row_of:
            hint = did_you_mean(name, names)
            raise ValueError(f"{source} has no point {name!r}; pass one of its ids{hint}.")
        if name in repeated:
            raise ValueError(f"{source} has several points {name!r}; name a column with --id.")
    return np.array([row_of[name] for name in wanted])
