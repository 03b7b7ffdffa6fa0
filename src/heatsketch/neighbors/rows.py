"""Distances of pairs of points, from explicit differences."""

from __future__ import annotations

import numpy as np

from heatsketch._tiles import for_each_tile, row_tiles
from heatsketch._typing import Array, Points
from heatsketch.operators.kernel import squared_norms

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
