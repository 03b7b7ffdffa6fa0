"""The exact search: a tree in few dimensions, else blocks of bounds of all distances.

Squared distances |x|² - 2xy + |y|² are computed in float32, with a bound of their rounding. The
distances of all points that may be among the nearest are then computed from differences in float64,
so that of equally distant points those of lowest index are found, however many there are. Where
float32 leaves too many of them, as in tight clusters far apart, the block is computed in float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from heatsketch._checks import Frame
from heatsketch._progress import Stage
from heatsketch._tiles import for_each_tile, row_tiles
from heatsketch._typing import Array, Points
from heatsketch.operators.kernel import squared_norms

EXACT_POINTS = 16_384  # up to here all pairs are compared
DIFFERENCES_AT_A_TIME = 2**22  # coordinates of pairs: 32 MB
_MAX_TREE_FEATURES = 8  # with more, a tree visits most of its points
_MAX_SMALL_TREE_FEATURES = 15  # up to EXACT_POINTS points, a tree is still fast enough
_TILE_ROWS, _TILE_ENTRIES = 4096, 2**21  # of a tree; of a block: 8 MB
_GROUPS = 16  # times k, of points, whose minima are compared first
_MOST_CANDIDATES = 8  # times k, for each row; more are reduced by a block in float64
_TOLERANCE = 1e-7  # relative, by which a tree looks beyond a radius
_TILE = 256  # rows of a product computed at a time
_CANCELLED = 1e-6  # of |x|² + |y|²: smaller squares come from differences; 1e-9 is lost else


class Neighbors(NamedTuple):
    """The nearest points of each query, nearest first."""

    distances: Array  # (m, k)
    indices: Array  # (m, k)


class Recall(NamedTuple):
    """The fraction of the exact neighbours that a search finds, and its standard error."""

    value: float
    error: float


def is_small(n: int) -> bool:
    """Say whether comparing all of n points is as fast as inverted lists."""
    return n <= EXACT_POINTS


def has_tree(points: Points) -> bool:
    """Say whether a tree is the fastest search of points (n, d)."""
    n, d = points.shape
    few = d <= _MAX_TREE_FEATURES or (d <= _MAX_SMALL_TREE_FEATURES and is_small(n))
    return few and not sparse.issparse(points)


class ExactSearch:
    """The search of all nearest points among points (n, d), dense or CSR.

    Points are compared times a power of two, which keeps squares from overflow and every digit of
    differences.
    """

    def __init__(self, points: Points) -> None:
        frame = Frame.of(points)
        self._scale, self._centre = Frame(frame.exponent, None), frame.shift
        self._points = self._scale(points)
        self._tree = cKDTree(self._points) if has_tree(points) else None
        self.order = None if self._tree is None else self._tree.indices
        if self._tree is None:
            centred = self._centred(self._points)
            self._norms = squared_norms(centred)
            self._single = None if sparse.issparse(points) else centred.astype(np.float32)

    def of_points(self, k: int) -> Neighbors:
        """Return the k nearest points of every point, itself included."""
        return self._nearest(self._points, k, self.order)

    def query(self, x: Points, k: int) -> Neighbors:
        """Return the k nearest points of rows x (m, d)."""
        return self._nearest(self._scale(x), k, None)

    def _nearest(self, x: Points, k: int, order: Array | None) -> Neighbors:
        m = x.shape[0]
        distances, indices = np.empty((m, k)), np.empty((m, k), np.int64)
        nearest = self._near_in_blocks if self._tree is None else self._near_in_tree

        def work(tile: slice) -> None:
            rows = tile if order is None else order[tile]
            d, indices[rows] = nearest(x[rows], k)
            distances[rows] = np.ldexp(d, self._scale.exponent)

        for_each_tile(work, m, self._tile, Stage("nearest neighbours", m, "points"))
        return Neighbors(distances, indices)

    def _near_in_tree(self, x: Array, k: int, spare: int = 4) -> tuple[Array, Array]:
        count = min(k + spare, len(self._points))
        d, near = self._tree.query(x, np.arange(1, count + 1))  # type: ignore[union-attr]
        by_distance = np.lexsort((near, d), axis=1)[:, :k]
        last, d = d[:, -1], np.take_along_axis(d, by_distance, axis=1)
        near = np.take_along_axis(near, by_distance, axis=1)
        tied = np.flatnonzero(last <= d[:, -1])
        if len(tied) and count < len(self._points):
            d[tied], near[tied] = self._near_in_tree(x[tied], k, 4 * spare)
        return d, near

    def _near_in_blocks(self, x: Points, k: int) -> tuple[Array, Array]:
        m, n = x.shape[0], self._points.shape[0]
        # The k-th least of minima over groups of points is hardly larger than that of all points.
        groups = n // max(1, n // (_GROUPS * k))
        for dtype in (np.float64,) if self._single is None else (np.float32, np.float64):
            with np.errstate(over="ignore", invalid="ignore"):  # of far points in float32
                lower, errors, own = self._bounds(x, dtype)
            upper = (lower + errors)[:, : n // groups * groups].reshape(m, -1, groups).min(axis=1)
            kth = np.partition(upper, k - 1, axis=1)[:, k - 1] + own
            i, j = _where(~(lower > kth[:, None]))
            if len(i) <= _MOST_CANDIDATES * k * m:
                break
        return smallest_of_rows(i, j, pair_distances(x, self._points, i, j), k)

    def pairs_within(self, x: Points, radii: Array) -> tuple[Array, Array, Array]:
        """Return (i, j, distance) of row i of x and the points j up to radii[i] from it."""
        x, radii = self._scale(x), np.ldexp(radii, -self._scale.exponent)
        pairs = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        for rows in row_tiles(x.shape[0], self._tile):
            reach = radii[rows] * (1 + _TOLERANCE)
            if self._tree is None:
                lower, _, _ = self._bounds(x[rows], np.float64)
                i, j = _where(~(lower > np.square(reach)[:, None]))
            else:
                lists = self._tree.query_ball_point(x[rows], reach)
                i = np.repeat(np.arange(len(lists)), [len(near) for near in lists])
                j = np.concatenate([*lists, np.empty(0, np.int64)]).astype(np.int64)
            d = pair_distances(x[rows], self._points, i, j)
            inside = d <= radii[rows][i]
            pairs.append((i[inside] + rows.start, j[inside], d[inside]))
        i, j, d = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return i, j, np.ldexp(d, self._scale.exponent)

    @property
    def _tile(self) -> int:
        return max(16, _TILE_ENTRIES // self._points.shape[0]) if self.order is None else _TILE_ROWS

    def _bounds(self, x: Points, dtype: Any) -> tuple[Array, Array, Array]:
        """Return B (m, n), e (n,), e' (m,) with B_ij <= |x_i - y_j|² <= B_ij + e_j + e'_i."""
        x = self._centred(x)
        if sparse.issparse(x):
            bounds = np.asarray((x @ self._points.T).toarray())
        elif dtype == np.float32:
            bounds = x.astype(dtype) @ self._single.T  # type: ignore[union-attr]
        else:
            bounds = x @ self._centred(self._points).T
        # Sums of d products, in any order, and of three terms.
        error = (x.shape[1] + 16) * float(np.finfo(dtype).eps)
        own = squared_norms(x)
        bounds *= -2
        bounds += ((1 - error) * self._norms).astype(dtype)
        bounds += ((1 - error) * own).astype(dtype)[:, None]
        return bounds, (2 * error * self._norms).astype(dtype), (2 * error * own).astype(dtype)

    def _centred(self, points: Points) -> Points:
        return points if self._centre is None else points - self._centre


def _where(mask: Array) -> tuple[Array, Array]:
    """Return the places (i, j) of a mask (m, n), row by row: `np.nonzero`, ten times as fast."""
    return np.divmod(np.flatnonzero(mask), mask.shape[1])


def smallest_of_rows(i: Array, j: Array, d: Array, k: int) -> tuple[Array, Array]:
    """Return the k smallest d and their columns j (m, k) of each row i, from entries (i, j, d).

    Of equal ones those of lowest column come first. Every row has at least k.
    """
    order = np.lexsort((j, d, i))
    starts = np.flatnonzero(np.diff(i[order], prepend=-1))
    chosen = order[starts[:, None] + np.arange(k)]
    return d[chosen], j[chosen]


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
    sizes, squares = squared_norms(x), np.empty((len(x), len(x)))

    def work(tile: slice) -> None:  # the rows of a tile up to the diagonal, and their mirror image
        sums = sizes[tile, None] + sizes[: tile.stop]
        block = sums - 2 * (x[tile] @ x[: tile.stop].T)
        block[block < _CANCELLED * sums] = -1.0
        squares[tile, : tile.stop] = block
        squares[: tile.start, tile] = block[:, : tile.start].T

    for_each_tile(work, len(x), _TILE)
    i, j = np.triu_indices(len(x) if rows is None else len(rows), 1)
    if rows is not None:
        i, j = rows[i], rows[j]
    distances = squares[i, j]
    lost = np.flatnonzero(distances < 0)
    np.sqrt(np.maximum(distances, 0.0, out=distances), out=distances)
    distances[lost] = pair_distances(x, x, i[lost], j[lost])
    return distances
