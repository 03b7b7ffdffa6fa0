"""The exact search on the host: a tree in few dimensions, else blocks of bounds of all distances.

Squared distances |x|² - 2xy + |y|² are computed in float32, with a bound of their rounding. The
distances of all points that may be among the nearest are then computed from differences in float64,
so that among equally distant points those of lowest index are found, however many there are. Where
float32 leaves too many of them, as in tight clusters far apart, the block is computed in float64.
"""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree
from sklearn.utils.extmath import row_norms

from heatsketch._tiles import for_each_tile, row_tiles, track
from heatsketch._typing import Array, Points
from heatsketch.backend.host import HOST

_TILE_ROWS, _TILE_ENTRIES = 4096, 2**21  # of a tree; of a block: 8 MB
_GROUPS = 16  # times k, of points, whose minima are compared first
_MOST_CANDIDATES = 8  # times k, for each row; more are reduced by a block in float64
_TOLERANCE = 1e-7  # relative, by which a tree looks beyond a radius


class ExactSearch:
    """The search of all nearest points among points (n, d), dense in C order or CSR.

    Attributes
    ----------
    order : array (n,) or None
        The points in the order of the leaves of the tree, which puts neighbours close together.
    """

    def __init__(self, points: Points) -> None:
        self._points = points.astype(np.float64, copy=False)
        n, d = points.shape
        self.order: Array | None = None
        if d <= HOST.tree_features and not sparse.issparse(points):
            self._tree, self._tile = cKDTree(self._points), _TILE_ROWS
            self.order = self._tree.indices
        else:
            self._centre, self._tile = HOST.centre(self._points), max(16, _TILE_ENTRIES // n)
            near = self._points - self._centre
            self._norms = row_norms(near, squared=True)
            with np.errstate(over="ignore"):  # then the search is in float64
                self._single = near.astype(np.float32)

    def nearest(self, k: int, x: Points | None = None) -> tuple[Array, Array]:
        """Return the k nearest points of rows x (m, d), by default of the points themselves."""
        order = self.order if x is None else None
        x = self._points if x is None else x.astype(np.float64, copy=False)
        m = x.shape[0]
        distances, indices = np.empty((m, k)), np.empty((m, k), np.int64)
        nearest = self._nearest_in_blocks if self.order is None else self._nearest_in_tree

        def work(tile: slice) -> None:
            rows = tile if order is None else order[tile]
            distances[rows], indices[rows] = nearest(x[rows], k)

        for_each_tile(work, m, self._tile, track(None, "nearest neighbours", m, "points"))
        return distances, indices

    def pairs_within(self, x: Points, radii: Array) -> tuple[Array, Array, Array]:
        """Return (i, j, distance) of row i of x and the points j up to radii[i] from it."""
        x = x.astype(np.float64, copy=False)
        pairs = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        for rows in row_tiles(x.shape[0], self._tile):
            reach = radii[rows] * (1 + _TOLERANCE)
            if self.order is None:
                lower, _, _ = self._bounds(x[rows], np.float64)
                i, j = np.nonzero(~(lower > np.square(reach)[:, None]))
            else:
                lists = self._tree.query_ball_point(x[rows], reach)
                i = np.repeat(np.arange(len(lists)), [len(near) for near in lists])
                j = np.concatenate([*lists, np.empty(0, np.int64)]).astype(np.int64)
            d = HOST.pair_distances(x[rows], self._points, i, j)
            inside = d <= radii[rows][i]
            pairs.append((i[inside] + rows.start, j[inside], d[inside]))
        i, j, d = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return i, j, d

    def _nearest_in_tree(self, x: Array, k: int, spare: int = 4) -> tuple[Array, Array]:
        count = min(k + spare, len(self._points))
        d, near = self._tree.query(x, np.arange(1, count + 1))
        by_distance = np.lexsort((near, d), axis=1)[:, :k]
        last, d = d[:, -1], np.take_along_axis(d, by_distance, axis=1)
        near = np.take_along_axis(near, by_distance, axis=1)
        tied = np.flatnonzero(last <= d[:, -1])
        if len(tied) and count < len(self._points):
            d[tied], near[tied] = self._nearest_in_tree(x[tied], k, 4 * spare)
        return d, near

    def _nearest_in_blocks(self, x: Points, k: int) -> tuple[Array, Array]:
        m, n = x.shape[0], self._points.shape[0]
        # The k-th least of minima over groups of points is hardly larger than that of all points.
        groups = n // max(1, n // (_GROUPS * k))
        for dtype in (np.float32, np.float64):
            with np.errstate(over="ignore", invalid="ignore"):  # of far points in float32
                lower, errors, own = self._bounds(x, dtype)
            upper = (lower + errors)[:, : n // groups * groups].reshape(m, -1, groups).min(axis=1)
            kth = np.partition(upper, k - 1, axis=1)[:, k - 1] + own
            # As `np.nonzero`, ten times as fast.
            i, j = np.divmod(np.flatnonzero(~(lower > kth[:, None])), n)
            if len(i) <= _MOST_CANDIDATES * k * m:
                break
        return smallest_of_rows(i, j, HOST.pair_distances(x, self._points, i, j), k)

    def _bounds(self, x: Points, dtype: Any) -> tuple[Array, Array, Array]:
        """Return B (m, n), e (n,), e' (m,) with B_ij <= |x_i - y_j|² <= B_ij + e_j + e'_i."""
        x, limits = x - self._centre, np.finfo(dtype)
        y = self._single if dtype == np.float32 else self._points - self._centre
        product = x.astype(dtype) @ y.T
        bounds = np.asarray(product.toarray() if sparse.issparse(product) else product)
        # Sums of d products, in any order, and of three terms; some may underflow.
        error, least = ((x.shape[1] + 16) * float(e) for e in (limits.eps, limits.tiny))
        own = row_norms(x, squared=True)
        bounds *= -2
        bounds += ((1 - error) * self._norms - least).astype(dtype)
        bounds += ((1 - error) * own).astype(dtype)[:, None]
        of_points, of_rows = 2 * (error * self._norms + least), 2 * (error * own + least)
        return bounds, of_points.astype(dtype), of_rows.astype(dtype)


def smallest_of_rows(i: Array, j: Array, d: Array, k: int) -> tuple[Array, Array]:
    """Return the k smallest d and their columns j (m, k) of each row i, from entries (i, j, d).

    Equal ones are ordered by column. Every row has at least k.
    """
    order = np.lexsort((j, d, i))
    starts = np.flatnonzero(np.diff(i[order], prepend=-1))
    chosen = order[starts[:, None] + np.arange(k)]
    return d[chosen], j[chosen]
