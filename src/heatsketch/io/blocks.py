"""Points by blocks of rows, for sources larger than memory; one record for all formats.

Each format that can be read by blocks has a function `blocks`, which returns this record.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._random import data_hash
from heatsketch.io.table import Names, Table, as_float, default_names, float_type

BLOCK_BYTES = 2**24  # read at a time


@dataclass(frozen=True, eq=False)
class Blocks:
    """A source of points; at most a few blocks of it are in memory."""

    n: int
    columns: Names
    dtype: np.dtype  # float32 or float64
    source: str
    read: Callable[[int], Iterator[Table]]  # tables of any sizes from a row on
    stored: int | None = None  # entries of all rows, if they are sparse
    notes: tuple[str, ...] = ()  # on the choice of features
    stamp: Callable[[], dict[str, Any]] = dict  # differs if the source has changed; JSON

    def tables(self, rows: int, start: int = 0) -> Iterator[Table]:
        """Yield tables of `rows` rows, the last of fewer, from the row `start` on."""
        pieces: list[Table] = []
        wanted = rows  # to complete a table
        for table in self.read(start):
            at, n = 0, table.values.shape[0]
            while at < n:
                pieces.append(table.take(slice(at, at + wanted)))
                at, wanted = at + wanted, max(0, wanted - (n - at))
                if not wanted:
                    yield joined(pieces)
                    pieces, wanted = [], rows
        if pieces:
            yield joined(pieces)


def of_array(X: Any) -> Blocks:
    """Return by blocks an array (n, d) that has slices, as in NumPy, zarr, h5py or dask."""
    n, d = X.shape
    block_rows, columns = rows_in(BLOCK_BYTES, d), default_names(X)

    def tables(start: int) -> Iterator[Table]:
        for at in range(start, n, block_rows):
            yield Table(as_float(X[at : at + block_rows], "X"), columns, {}, None, "X")

    def stamp() -> dict[str, Any]:
        rows = (0, (n - 1) // 2, n - 1)  # no other slice is read
        hashes = [data_hash(as_float(X[row : row + 1], "X")) for row in rows]
        return {"shape": [int(n), int(d)], "dtype": str(X.dtype), "sha256": hashes}

    return Blocks(n, columns, float_type(X.dtype), "X", tables, stamp=stamp)


def of_parts(parts: list[Blocks], folder: Path) -> Blocks:
    """Return the points of several sources, one after the other."""
    first = parts[0]
    for part in parts:
        if (part.columns, part.dtype) != (first.columns, first.dtype):
            raise ValueError(
                f"{part.source} has {len(part.columns)} features of {part.dtype} but "
                f"{first.source} has {len(first.columns)} of {first.dtype}, or others by name; "
                "write all parts alike."
            )

    def tables(start: int) -> Iterator[Table]:
        for part in parts:
            if start < part.n:
                yield from part.read(start)
            start = max(0, start - part.n)

    def stamps() -> dict[str, Any]:
        return {Path(part.source).name: part.stamp() for part in parts}

    n = sum(part.n for part in parts)
    facts = first.columns, first.dtype, str(folder)
    return Blocks(n, *facts, tables, stamp=stamps, notes=first.notes)


def rows_in(size: int, d: int) -> int:
    """Return how many rows of d numbers take `size` bytes."""
    return max(1, size // (8 * max(1, d)))


def stamp(path: Path) -> dict[str, Any]:
    """Return the number of files and a hash of their names, sizes and times of change."""
    files = sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]
    facts = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files]
    return {"files": len(files), "sha256": hashlib.sha256(repr(facts).encode()).hexdigest()}


def joined(tables: list[Table]) -> Table:
    """Return the rows of several tables, one after the other."""
    if len(tables) == 1:
        return tables[0]
    extra = {name: np.concatenate([t.extra[name] for t in tables]) for name in tables[0].extra}
    values = [table.values for table in tables]
    whole = sparse.vstack(values, "csr") if sparse.issparse(values[0]) else np.concatenate(values)
    return replace(tables[0], values=whole, extra=extra)
