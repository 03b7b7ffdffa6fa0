"""Nearest neighbours of points, with distances from explicit differences."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from heatsketch._array import row_tiles
from heatsketch._typing import Array, Points
from heatsketch.operators.kernel import squared_distances, squared_norms

_CHUNK = 2**22  # coordinates differenced at a time: 32 MB
_TREE_FEATURES = 15  # beyond, blocks of the Gram form find candidates faster than a tree
_TIE = 1e-7  # distances closer than this, relatively, are ordered exactly
_GRAM_BOUND = 1e-8  # the largest relative error of a squared distance we accept from that form


class Neighbors(NamedTuple):
    """The nearest points of each query, nearest first."""

    distances: Array  # (m, k)
    indices: Array  # (m, k)


class NeighborIndex:
    """A search structure over points (n, d), dense or CSR.

    The search finds candidates (scikit-learn: a tree in few dimensions, blocks of the Gram form in
    many, and a tree again for the rows where rounding of that form could decide); their distances
    are then recomputed from explicit differences, so that equal points are at distance exactly
    zero and near ones keep their digits.
    """

    def __init__(self, points: Points) -> None:
        self.points = points
        self._exact = not sparse.issparse(points) and points.shape[1] <= _TREE_FEATURES
        method = "kd_tree" if self._exact else "brute"
        self._search = NearestNeighbors(algorithm=method).fit(points)

    @cached_property
    def _tree(self) -> NearestNeighbors:
        return NearestNeighbors(algorithm="ball_tree").fit(self.points)

    @cached_property
    def _largest_square(self) -> float:
        return float(np.max(squared_norms(self.points)))

    @property
    def n(self) -> int:
        """Number of points."""
        return self.points.shape[0]

    def query(self, x: Points, k: int, any_tie: bool = False) -> Neighbors:
        """Return the k nearest points of each row of x (m, d).

        `any_tie`: of points equally far take any, which is faster where many points coincide.
        """
        reach = min(k + 1, self.n)  # one more, to see whether the last is a tie
        indices = self._search.kneighbors(x, n_neighbors=reach, return_distance=False)
        distances = self._distances(x, indices)
        unsure = self._unsure(x, distances.max(axis=1))
        if len(unsure):
            indices[unsure] = self._tree.kneighbors(x[unsure], reach, return_distance=False)
            distances[unsure] = self._distances(x[unsure], indices[unsure])
        order = np.lexsort((indices, distances), axis=1)
        distances = np.take_along_axis(distances, order, axis=1)
        indices = np.take_along_axis(indices, order, axis=1)
        tied = np.flatnonzero(distances[:, -1] <= distances[:, k - 1] * (1 + _TIE))
        if reach > k and len(tied) and not any_tie:
            self._break_ties(x, tied, Neighbors(distances[:, :k], indices[:, :k]))
        return Neighbors(distances[:, :k].copy(), indices[:, :k].copy())

    def _break_ties(self, x: Points, tied: Array, found: Neighbors) -> None:
        """Among points equally far, take those of lowest index, not those the search came upon."""
        k = found.distances.shape[1]
        for tile in row_tiles(len(tied), max(1, _CHUNK // self.n)):
            rows = tied[tile]
            squares = squared_distances(x[rows], self.points, direct=False)
            limit = (found.distances[rows, -1] * (1 + 2 * _TIE)) ** 2
            rounding = 16 * np.finfo(float).eps * (squared_norms(x[rows]) + self._largest_square)
            i, j = np.nonzero(squares <= (limit + rounding)[:, None])
            d = pair_distances(x[rows], self.points, i, j)
            order = np.lexsort((j, d, i))
            first = np.searchsorted(i, np.arange(len(rows)))
            chosen = order[first[:, None] + np.arange(k)]
            found.distances[rows], found.indices[rows] = d[chosen], j[chosen]

    def within(self, x: Points, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored."""
        # A little wider first: membership is decided on the recomputed distances, so that it is
        # the same from both ends of a pair.
        wide = radius * (1 + 1e-7)
        found = self._search.radius_neighbors(x, wide, return_distance=False)
        unsure = self._unsure(x, np.full(x.shape[0], radius))
        if len(unsure):
            found[unsure] = self._tree.radius_neighbors(x[unsure], wide, return_distance=False)
        counts = [len(indices) for indices in found]
        columns = np.concatenate([*found, np.empty(0, dtype=np.int64)]).astype(np.int64)
        rows = np.repeat(np.arange(len(counts)), counts)
        distances = pair_distances(x, self.points, rows, columns)
        kept = distances <= radius
        return sparse.csr_matrix(
            (distances[kept], (rows[kept], columns[kept])), shape=(x.shape[0], self.n)
        )

    def _distances(self, x: Points, indices: Array) -> Array:
        rows = np.repeat(np.arange(x.shape[0]), indices.shape[1])
        return pair_distances(x, self.points, rows, indices.ravel()).reshape(indices.shape)

    def _unsure(self, x: Points, reach: Array) -> Array:
        """Return the rows of x whose neighbours within `reach` the Gram form cannot tell apart."""
        if self._exact or sparse.issparse(self.points):  # there is no tree for sparse points
            return np.empty(0, dtype=np.int64)
        error = 8 * np.finfo(float).eps * squared_norms(x)
        return np.flatnonzero((reach > 0) & (error > _GRAM_BOUND * reach**2))


def pair_distances(x: Points, y: Points, rows: Array, columns: Array) -> Array:
    """Return |x[rows] - y[columns]|, one number a pair, from explicit differences."""
    distances = np.empty(len(rows))
    for pairs in row_tiles(len(rows), max(1, _CHUNK // y.shape[1])):
        difference = x[rows[pairs]] - y[columns[pairs]]
        distances[pairs] = np.sqrt(squared_norms(difference))
    return distances


def distinct_rows(points: Points) -> tuple[Array, Array]:
    """Return (first, inverse): rows `first` are distinct, row i equals row first[inverse[i]]."""
    if sparse.issparse(points):
        keys = _sparse_row_keys(points)
    else:
        keys = np.ascontiguousarray(points + 0.0)  # -0.0 becomes 0.0
        keys = keys.view(np.dtype((np.void, keys.dtype.itemsize * keys.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # keep the order in which points come
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
