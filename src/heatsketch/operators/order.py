"""Rows in another order: permutations, and the numbers of vertices and input points."""

from __future__ import annotations

import numpy as np

from heatsketch._tensors import is_tensor
from heatsketch._tiles import for_each_tile
from heatsketch._typing import Array

_TILE = 2**14  # rows moved at a time


def inverse_permutation(order: Array, n: int | None = None) -> Array:
    """Return p with p[order[i]] = i, 32-bit if it fits; (n,), of some of n numbers."""
    n = len(order) if n is None else n
    inverse = np.empty(n, index_type(n))
    inverse[order] = np.arange(len(order))
    return inverse


def index_type(n: int) -> type[np.signedinteger]:
    """Return the smallest type in use that numbers n points."""
    return np.int32 if n < 2**31 else np.int64


def take_rows(X: Array, order: Array) -> Array:
    """Return X[order], on all cores."""
    if is_tensor(X):
        return X[order]
    Y = np.empty((len(order), *X.shape[1:]), X.dtype)

    def work(rows: slice) -> None:
        Y[rows] = X[order[rows]]

    for_each_tile(work, len(order), _TILE)
    return Y


def spread(values: Array, vertex: Array | None) -> Array:
    """Return the rows of the vertices as rows of the input points at them."""
    return values if vertex is None else take_rows(values, vertex)


def first_inputs(vertex: Array | None) -> Array | None:
    """Return the first input point at each vertex, (n,); None where they have the same numbers."""
    return None if vertex is None else np.unique(vertex, return_index=True)[1]
