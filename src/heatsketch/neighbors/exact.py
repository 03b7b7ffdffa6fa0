"""The exact search: a tree in few dimensions, else blocks of all distances.

Blocks are lower bounds of squared distances |y|² - 2xy + |x|² from products in float32, less the
rounding that |y|² and |x|² allow. The distances of the points with the smallest bounds are computed
from differences in float64. Where another point has a bound below the k-th of these distances, all
points with such bounds in float64 are compared by differences, too. So of equally distant points
those of lowest index are found, however many there are.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from heatsketch._progress import Stage
from heatsketch._tiles import for_each_tile, row_tiles
from heatsketch._typing import Array, Points
from heatsketch.neighbors.found import Neighbors
from heatsketch.neighbors.rows import pair_distances
from heatsketch.operators.kernel import squared_norms

EXACT_POINTS = 16_384  # up to here all pairs are compared
_MAX_TREE_FEATURES = 8  # with more, a tree visits most of its points
_MAX_SMALL_TREE_FEATURES = 15  # up to EXACT_POINTS points, a tree is still fast enough
_TILE_ROWS, _TILE_ENTRIES = 4096, 2**21  # of a tree; of a block: 8 MB, and 16 MB of indices
_SPARE = 4  # candidates beyond k, so that the rounding of float32 is less than the last gap
_TIE_TOLERANCE = 1e-7  # relative difference of distances below which ties are broken exactly
_LARGEST = 1e30  # |x|² whose products float32 holds


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

    Of equally distant points it takes those of lowest index.
    """

    def __init__(self, points: Points, in_tree: bool) -> None:
        self.points, self._in_tree = points, in_tree

    @property
    def order(self) -> Array | None:
        """An order (n,) that puts neighbours close together, if the search has one."""
        return self._tree.indices if self._in_tree else None

    def nearest(self, x: Points, k: int, order: Array | None = None) -> Neighbors:
        """Return the k nearest points of rows x (m, d), visited in an order."""
        m = x.shape[0]
        found = Neighbors(np.empty((m, k)), np.empty((m, k), np.int64))
        visited = np.arange(m) if order is None else order
        candidates = self._near_in_tree if self._in_tree else self._near_in_blocks

        def work(rows: slice) -> None:
            own = visited[rows]
            near, beyond = candidates(x[own], k)
            at = np.repeat(own, near.shape[1])
            d = pair_distances(x, self.points, at, near.ravel()).reshape(near.shape)
            unsorted = np.flatnonzero((d[:, 1:] <= d[:, :-1]).any(axis=1))
            by_distance = np.lexsort((near[unsorted], d[unsorted]), axis=1)
            for values in (d, near):
                values[unsorted] = np.take_along_axis(values[unsorted], by_distance, axis=1)
            found.distances[own], found.indices[own] = d[:, :k], near[:, :k]
            doubtful = np.flatnonzero(~(d[:, k - 1] < beyond))
            if len(doubtful):
                own, reach = own[doubtful], d[doubtful, k - 1]
                i, j, d = self.pairs_within(x[own], reach * (1 + _TIE_TOLERANCE))
                by_distance = np.lexsort((j, d, i))
                first = np.searchsorted(i[by_distance], np.arange(len(own)))
                chosen = by_distance[first[:, None] + np.arange(k)]
                found.distances[own], found.indices[own] = d[chosen], j[chosen]

        for_each_tile(work, m, self._tile, Stage("nearest neighbours", m, "points"))
        return found

    def pairs_within(self, x: Points, radii: Array) -> tuple[Array, Array, Array]:
        """Return (i, j, distance) of row i of x and the points j up to radii[i] from it."""
        pairs = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        for rows in row_tiles(x.shape[0], self._tile):
            if self._in_tree:
                larger = radii[rows] * (1 + _TIE_TOLERANCE)
                i, j = _flat(self._tree.query_ball_point(x[rows], larger))
            else:
                i, j = self._below(x[rows], radii[rows])
            d = pair_distances(x[rows], self.points, i, j)
            kept = d <= radii[rows][i]
            pairs.append((i[kept] + rows.start, j[kept], d[kept]))
        i, j, d = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return i, j, d

    def within(self, x: Points, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from rows x (m, d), CSR (m, n), zeros stored."""
        i, j, d = self.pairs_within(x, np.full(x.shape[0], radius))
        return sparse.csr_matrix((d, (i, j)), shape=(x.shape[0], self.points.shape[0]))

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.points)

    @property
    def _tile(self) -> int:
        return _TILE_ROWS if self._in_tree else max(16, _TILE_ENTRIES // self.points.shape[0])

    def _near_in_tree(self, x: Array, k: int) -> tuple[Array, Array]:
        """Return k points or more near each row, and a distance below which there are no others."""
        count = min(k + 1, len(self.points))  # one more, to see whether the last is a tie
        d, near = (a.reshape(len(x), count) for a in self._tree.query(x, count))
        if count == k:
            return near, np.full(len(x), np.inf)
        return near, d[:, -1] * (1 - _TIE_TOLERANCE)

    def _near_in_blocks(self, x: Points, k: int) -> tuple[Array, Array]:
        """Return k points or more near each row, and a distance below which there are no others."""
        n, count = self.points.shape[0], min(k + _SPARE, self.points.shape[0])
        single = not sparse.issparse(self.points) and squared_norms(x).max() < _LARGEST
        block, own = self._lower_bounds(x, np.float32 if single else np.float64)
        near = np.argpartition(block, count - 1, axis=1)[:, :count]
        if count == n:
            return near, np.full(x.shape[0], np.inf)
        last = np.take_along_axis(block, near[:, -1:], axis=1)[:, 0]
        return near, np.sqrt(np.maximum(last + own, 0.0))

    def _below(self, x: Points, radii: Array) -> tuple[Array, Array]:
        """Return pairs (i, j): all points up to radii[i] from row i of x, and perhaps others."""
        block, own = self._lower_bounds(x, np.float64)
        reach = (radii * (1 + _TIE_TOLERANCE)) ** 2 - own
        i, j = np.nonzero(~(block > reach[:, None]))
        return i, j

    def _lower_bounds(self, x: Points, dtype: Any) -> tuple[Array, Array]:
        """Return B (m, n) and b (m,) with B_ij + b_i <= |x_i - y_j|², B in float32 or float64."""
        d, thin = self.points.shape[1], sparse.issparse(self.points)
        # Sums of d products, in any order; less than the smallest normal number is lost.
        kept = 1 - (d + 16) * float(np.finfo(dtype).eps)
        points = self._single if dtype == np.float32 else self.points
        product = (x if thin else x.astype(dtype)) @ points.T
        block = np.asarray(product.toarray() if sparse.issparse(product) else product)
        block *= -2
        block += (kept * self._norms).astype(dtype)
        return block, kept * squared_norms(x) - (d + 16) * float(np.finfo(dtype).tiny)

    @cached_property
    def _norms(self) -> Array:
        return squared_norms(self.points)

    @cached_property
    def _single(self) -> Array:
        return self.points.astype(np.float32)


def _flat(lists: Any) -> tuple[Array, Array]:
    """Return lists of indices as pairs (i, j)."""
    i = np.repeat(np.arange(len(lists)), [len(indices) for indices in lists])
    return i, np.concatenate([*lists, np.empty(0, np.int64)]).astype(np.int64)
