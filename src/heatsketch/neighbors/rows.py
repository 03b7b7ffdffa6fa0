"""Comparison of rows of points: distances of pairs, and which rows are equal."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from heatsketch._array import row_tiles
from heatsketch._typing import Array, Points
from heatsketch.operators.kernel import squared_norms

DIFFERENCES_AT_A_TIME = 2**22  # coordinates of pairs: 32 MB


def pair_distances(x: Points, y: Points, rows: Array, columns: Array) -> Array:
    """Return the distances |x[rows] - y[columns]| of pairs, from explicit differences."""
    distances = np.empty(len(rows))
    for pairs in row_tiles(len(rows), max(1, DIFFERENCES_AT_A_TIME // y.shape[1])):
        difference = x[rows[pairs]] - y[columns[pairs]]
        distances[pairs] = np.sqrt(squared_norms(difference))
    return distances


def distinct_rows(points: Points) -> tuple[Array, Array]:
    """Return (first, inverse): the first row of each value; row i equals row first[inverse[i]]."""
    if sparse.issparse(points):
        keys = _sparse_row_keys(points)
    else:
        keys = np.ascontiguousarray(points + 0.0)  # -0.0 becomes 0.0
        keys = keys.view(np.dtype((np.void, keys.dtype.itemsize * keys.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # in the order of the rows, not of the keys
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse.ravel()]


def _sparse_row_keys(points: sparse.csr_matrix) -> Array:
    clean = points.copy()
    clean.sum_duplicates()
    clean.eliminate_zeros()
    numbers: dict[bytes, int] = {}
    keys = np.empty(clean.shape[0], dtype=np.int64)
    for i in range(clean.shape[0]):
        entries = slice(clean.indptr[i], clean.indptr[i + 1])
        key = clean.indices[entries].tobytes() + b"|" + clean.data[entries].tobytes()
        keys[i] = numbers.setdefault(key, len(numbers))
    return keys
