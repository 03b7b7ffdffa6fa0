"""The exact search: a tree in few dimensions, else blocks of all distances."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors

from heatsketch._array import for_each_tile, row_tiles
from heatsketch._progress import Stage
from heatsketch._typing import Array, Points
from heatsketch.neighbors.blocks import Blocks
from heatsketch.neighbors.found import Neighbors
from heatsketch.neighbors.rows import (
    DIFFERENCES_AT_A_TIME,
    distances_within,
    pair_distances,
    pairs_within,
    sort_by_distance,
)
from heatsketch.operators.kernel import squared_norms

EXACT_POINTS = 16_384  # up to here all pairs are compared
_MAX_TREE_FEATURES = 8  # with more, a tree visits most of its points
_MAX_SMALL_TREE_FEATURES = 15  # up to EXACT_POINTS points, a tree is still fast enough
_TREE_TILE_ROWS = 4096
_TIE_TOLERANCE = 1e-7  # relative difference of distances below which ties are broken exactly
_MAX_GRAM_ERROR = 1e-8  # relative error of a squared distance accepted from the Gram form


def is_small(n: int) -> bool:
    """Say whether comparing all of n points is as fast as inverted lists."""
    return n <= EXACT_POINTS


def has_tree(points: Points) -> bool:
    """Say whether a tree is the fastest search of points (n, d)."""
    n, d = points.shape
    few = d <= _MAX_TREE_FEATURES or (d <= _MAX_SMALL_TREE_FEATURES and is_small(n))
    return few and not sparse.issparse(points)


class ExactSearch:
    """The search of all nearest points among points (n, d), float64, dense or CSR.

    Of equally distant points it takes those of lowest index, but for those of more than 16,384
    points on a device.
    """

    def __init__(self, points: Points, in_tree: bool, device: Any = None) -> None:
        self.points, self._in_tree, self._device = points, in_tree, device

    @property
    def _n(self) -> int:
        return self.points.shape[0]

    @property
    def order(self) -> Array | None:
        """An order (n,) that puts neighbours close together, if the search has one."""
        return self._tree.indices if self._in_tree else None

    def nearest(
        self, x: Points, k: int, order: Array | None = None, any_tie: bool = False
    ) -> Neighbors:
        """Return the k nearest points of rows x (m, d), visited in an order; or any of ties."""
        n_searched = min(k + 1, self._n)  # one more, to see whether the last is a tie
        distances, indices = sort_by_distance(*self._nearest(x, n_searched, order))
        tied = np.flatnonzero(distances[:, -1] <= distances[:, k - 1] * (1 + _TIE_TOLERANCE))
        any_tie = any_tie or self._is_large_on_device
        if n_searched > k and len(tied) and not any_tie:
            self._break_ties(x, tied, Neighbors(distances[:, :k], indices[:, :k]))
        return Neighbors(distances[:, :k].copy(), indices[:, :k].copy())

    def within(self, x: Points, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from rows x (m, d), CSR (m, n), zeros stored."""
        # Candidates come from a slightly larger radius; recomputed distances decide, so that the
        # decision is the same from both ends of a pair.
        larger = radius * (1 + 1e-7)
        found = self._block_search.radius_neighbors(x, larger, return_distance=False)
        imprecise = self._imprecise_rows(x, np.full(x.shape[0], radius))
        if len(imprecise):
            found[imprecise] = self._ball_tree.radius_neighbors(
                x[imprecise], larger, return_distance=False
            )
        return distances_within(x, self.points, found, radius)

    def candidates(self, x: Points, radii: Array) -> tuple[Array, Array]:
        """Return (i, j) for the points j within radii[i] of row i of x, and possibly more."""
        if self._in_tree:
            found = self._tree.query_ball_point(x, radii * (1 + _TIE_TOLERANCE))
            i = np.repeat(np.arange(len(x)), [len(indices) for indices in found])
            return i, np.concatenate(found).astype(np.int64)
        rounding = 16 * np.finfo(float).eps * (squared_norms(x) + self._largest_square)
        bounds = (radii * (1 + _TIE_TOLERANCE)) ** 2 + rounding
        return pairs_within(x, self.points, bounds)

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.points)

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self.points, self._device)

    @property
    def _is_large_on_device(self) -> bool:
        return self._device is not None and not is_small(self._n)

    @cached_property
    def _block_search(self) -> NearestNeighbors:
        method = "kd_tree" if self._in_tree else "brute"
        return NearestNeighbors(algorithm=method).fit(self.points)

    @cached_property
    def _ball_tree(self) -> NearestNeighbors:
        return NearestNeighbors(algorithm="ball_tree").fit(self.points)

    @cached_property
    def _largest_square(self) -> float:
        return float(np.max(squared_norms(self.points)))

    def _nearest(self, x: Points, k: int, order: Array | None) -> tuple[Array, Array]:
        if self._in_tree and self._device is None:
            return self._nearest_in_tree(x, k, np.arange(len(x)) if order is None else order)
        if sparse.issparse(self.points):
            return self._nearest_in_double(x, k)
        found = self._blocks.nearest(x, k)
        rows = found.unproved
        if len(rows):
            found.distances[rows], found.indices[rows] = self._nearest_in_double(x[rows], k)
        return found.distances, found.indices

    def _nearest_in_double(self, x: Points, k: int) -> tuple[Array, Array]:
        """Search blocks of all distances in float64, or a tree where these are too inexact."""
        if self._is_large_on_device:
            return self._blocks.nearest_in_double(x, k)
        indices = self._block_search.kneighbors(x, n_neighbors=k, return_distance=False)
        distances = self._distances(x, indices)
        imprecise = self._imprecise_rows(x, distances.max(axis=1))
        if len(imprecise):
            indices[imprecise] = self._ball_tree.kneighbors(x[imprecise], k, return_distance=False)
            distances[imprecise] = self._distances(x[imprecise], indices[imprecise])
        return distances, indices

    def _nearest_in_tree(self, x: Array, k: int, order: Array) -> tuple[Array, Array]:
        """Search the tree in an order in which successive queries visit cached branches."""
        distances, indices = np.empty((len(x), k)), np.empty((len(x), k), np.int64)

        def work(tile: slice) -> None:
            rows = order[tile]
            indices[rows] = self._tree.query(x[rows], k)[1].reshape(len(rows), k)
            # The tree sums squares in another order; recompute.
            distances[rows] = self._distances(x[rows], indices[rows])

        stage = Stage("nearest neighbours", len(x), "points")
        for_each_tile(work, len(x), _TREE_TILE_ROWS, stage)
        return distances, indices

    def _break_ties(self, x: Points, tied: Array, found: Neighbors) -> None:
        """Of equally distant points take those of lowest index, whichever the search found."""
        k = found.distances.shape[1]
        for tile in row_tiles(len(tied), max(1, DIFFERENCES_AT_A_TIME // self._n)):
            rows = tied[tile]
            i, j = self.candidates(x[rows], found.distances[rows, -1] * (1 + 2 * _TIE_TOLERANCE))
            d = pair_distances(x[rows], self.points, i, j)
            order = np.lexsort((j, d, i))
            first = np.searchsorted(i, np.arange(len(rows)))
            chosen = order[first[:, None] + np.arange(k)]
            found.distances[rows], found.indices[rows] = d[chosen], j[chosen]

    def _distances(self, x: Points, indices: Array) -> Array:
        rows = np.repeat(np.arange(x.shape[0]), indices.shape[1])
        return pair_distances(x, self.points, rows, indices.ravel()).reshape(indices.shape)

    def _imprecise_rows(self, x: Points, radii: Array) -> Array:
        """Return the rows of x for which the Gram form is too inexact within `radii`."""
        if self._in_tree or sparse.issparse(self.points):  # sparse points cannot have a tree
            return np.empty(0, dtype=np.int64)
        error = 8 * np.finfo(float).eps * squared_norms(x)
        return np.flatnonzero((radii > 0) & (error > _MAX_GRAM_ERROR * radii**2))
