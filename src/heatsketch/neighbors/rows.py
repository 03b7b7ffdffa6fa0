"""Comparison of rows of points: distances of pairs, and which rows are equal."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from heatsketch._array import for_each_tile, row_tiles
from heatsketch._typing import Array, Points
from heatsketch.operators.kernel import squared_distances, squared_norms

DIFFERENCES_AT_A_TIME = 2**22  # coordinates of pairs: 32 MB
_TILE = 256  # rows of a product computed at a time
_CANCELLED = 1e-6  # of |x|² + |y|²: smaller squares come from differences; 1e-9 is lost else


def pair_distances(x: Points, y: Points, rows: Array, columns: Array) -> Array:
    """Return the distances |x[rows] - y[columns]| of pairs, from explicit differences."""
    distances = np.empty(len(rows))
    for pairs in row_tiles(len(rows), max(1, DIFFERENCES_AT_A_TIME // y.shape[1])):
        difference = x[rows[pairs]] - y[columns[pairs]]
        distances[pairs] = np.sqrt(squared_norms(difference))
    return distances


def distances_within(x: Points, y: Points, found: Array, radius: float) -> sparse.csr_matrix:
    """Return the distances up to `radius` among candidates, indices in y of each row of x."""
    counts = [len(indices) for indices in found]
    columns = np.concatenate([*found, np.empty(0, dtype=np.int64)]).astype(np.int64)
    rows = np.repeat(np.arange(len(counts)), counts)
    distances = pair_distances(x, y, rows, columns)
    kept = distances <= radius
    parts = distances[kept], (rows[kept], columns[kept])
    return sparse.csr_matrix(parts, shape=(x.shape[0], y.shape[0]))


def pairs_within(x: Points, y: Points, squares: Array) -> tuple[Array, Array]:
    """Return (i, j) with |x_i - y_j|², from a product of matrices, at most squares[i]."""
    pairs = []
    for tile in row_tiles(x.shape[0], max(1, DIFFERENCES_AT_A_TIME // y.shape[0])):
        found = squared_distances(x[tile], y, direct=False)
        i, j = np.nonzero(found <= squares[tile, None])
        pairs.append((i + tile.start, j))
    i, j = (np.concatenate(side) for side in zip(*pairs, strict=True))
    return i, j


def sort_by_distance(distances: Array, indices: Array) -> tuple[Array, Array]:
    """Sort both (m, k), in place, by distance, and by index where distances are equal."""
    rows = np.flatnonzero((distances[:, 1:] <= distances[:, :-1]).any(axis=1))
    order = np.lexsort((indices[rows], distances[rows]), axis=1)
    for values in (distances, indices):
        values[rows] = np.take_along_axis(values[rows], order, axis=1)
    return distances, indices


def all_distances(x: Array, rows: Array | None = None) -> Array:
    """Return the distances of all pairs of x (n, d), or of x[rows], in the order of `pdist`.

    By a product of matrices; where that would lose digits, from explicit differences.
    """
    squares = _squared_distances(x)
    i, j = np.triu_indices(len(x) if rows is None else len(rows), 1)
    if rows is not None:
        i, j = rows[i], rows[j]
    distances = squares[i, j]
    lost = np.flatnonzero(distances < 0)
    np.sqrt(np.maximum(distances, 0.0, out=distances), out=distances)
    distances[lost] = pair_distances(x, x, i[lost], j[lost])
    return distances


def _squared_distances(x: Array) -> Array:
    """Return |x_i - x_j|² (n, n); -1 where that is so small that the difference cancels."""
    sizes, squares = squared_norms(x), np.empty((len(x), len(x)))

    def work(tile: slice) -> None:  # the rows of a tile up to the diagonal, and their mirror image
        sums = sizes[tile, None] + sizes[: tile.stop]
        found = sums - 2 * (x[tile] @ x[: tile.stop].T)
        found[found < _CANCELLED * sums] = -1.0
        squares[tile, : tile.stop] = found
        squares[: tile.start, tile] = found[:, : tile.start].T

    for_each_tile(work, len(x), _TILE)
    return squares


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
