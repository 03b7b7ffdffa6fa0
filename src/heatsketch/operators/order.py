"""Rows in another order: permutations, and the integers that number points."""

from __future__ import annotations

import numpy as np

from heatsketch._array import for_each_tile
from heatsketch._tensors import is_tensor
from heatsketch._typing import Array

_TILE = 2**14  # rows moved at a time


def inverse_permutation(order: Array) -> Array:
    """Return p with p[order[i]] = i, (n,), 32-bit if it fits."""
    inverse = np.empty(len(order), index_type(len(order)))
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
