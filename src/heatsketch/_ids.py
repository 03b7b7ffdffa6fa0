"""Names of points, by which a point is the same in any order of the rows."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np

from heatsketch._array import mixed_bits
from heatsketch._typing import Array


def check_ids(ids: Any, n: int) -> Array:
    """Return the ids of n points as an array (n,) of integers, str or bytes, or raise."""
    values = np.asarray(ids)
    if values.dtype.kind == "O":
        values = _of_one_kind(values)
    if values.dtype.kind not in "iuUS":
        raise TypeError(
            f"ids are of dtype {values.dtype}; pass integers, strings or bytes, one for each point."
        )
    if values.shape != (n,):
        raise ValueError(f"ids have shape {values.shape} but X has {n} points; pass ({n},).")
    order = np.argsort(values, kind="stable")
    repeated = np.flatnonzero(values[order][1:] == values[order][:-1])
    if len(repeated):
        first, second = order[repeated[0]], order[repeated[0] + 1]
        raise ValueError(
            f"ids name {values[first].item()!r} twice, in rows {first} and {second}; pass a "
            "different id for each point."
        )
    return values


def _of_one_kind(values: Array) -> Array:
    """Return an array of objects, such as a column of a table, with the type of its entries."""
    for kinds, dtype in (((int, np.integer), np.int64), (str, np.str_), (bytes, np.bytes_)):
        if all(isinstance(v, kinds) and not isinstance(v, bool) for v in values.flat):
            return values.astype(dtype)
    return values


def numbers_of(ids: Array) -> Array:
    """Return a number of 64 bits for each id (n,), by a hash of it alone.

    Different integers have different numbers; two of a million different strings have the same one
    with probability 3e-8.
    """
    if ids.dtype.kind in "iu":
        return mixed_bits(ids.astype(np.uint64) + np.uint64(1))
    data = (v.encode() if isinstance(v, str) else v for v in ids.tolist())
    digests = b"".join(blake2b(value, digest_size=8).digest() for value in data)
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def numbers_at(numbers: Array, vertex: Array | None, n_vertices: int) -> Array:
    """Return the number of each vertex: of the points at it, whatever their order, the least."""
    if vertex is None:
        return numbers
    least = np.full(n_vertices, np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(least, vertex, numbers)
    return least
