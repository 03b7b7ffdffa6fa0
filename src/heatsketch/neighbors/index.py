"""The nearest points of points: which search to use, and the order of what it finds."""

from __future__ import annotations

import zlib
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors

from heatsketch._array import Frame, for_each_tile, row_tiles
from heatsketch._checks import check_number, check_points
from heatsketch._typing import Array, Points
from heatsketch.neighbors.found import Neighbors, Recall
from heatsketch.neighbors.rows import CHUNK, distinct_rows, pair_distances
from heatsketch.operators.kernel import squared_distances, squared_norms

EXACT_POINTS = 16_384  # up to here, blocks of all distances take no longer than lists
RECALL = 0.98
_TREE_FEATURES = 8  # beyond, a tree looks at most points
_SMALL_TREE_FEATURES = 15  # of few points, a tree finds exact neighbours fast enough
_TREE_TILE = 4096
_TIE = 1e-7  # distances closer than this, relatively, are ordered exactly
_GRAM_BOUND = 1e-8  # the largest relative error of a squared distance we accept from that form


class Distinct(NamedTuple):
    """The distinct ones of some points."""

    search: NeighborIndex
    vertex: Array  # (points,), the row of the index that each point equals


class NeighborIndex:
    """A search structure over points (n, d), dense or CSR.

    In at most 8 dimensions (15 up to 16,384 points) a tree finds the neighbours, up to 16,384
    points and for sparse data blocks of the Gram form do (and a tree again for the rows where
    rounding of that form could decide): exactly, and of points equally far those of lowest index.
    Beyond, inverted lists find nearly all of them. Distances come from explicit differences in any
    case, so that equal points are at distance exactly zero and near ones keep their digits.

    Parameters
    ----------
    points : array or CSR matrix (n, d)
    recall : float in (0, 1], default 0.98
        Share of the exact neighbours that is to be found where the search is approximate; it is
        measured on 512 of the rows, and as many cells are searched as it takes. 1: exact search,
        whatever it costs.
    n_neighbors : int, optional
        Neighbours of every point that are found at once and kept (16 bytes each): whoever is given
        the index and asks for no more of them shares these. By default nothing is kept.
    frame : Frame, optional
        Coordinates in which distances are given; by default those of the points.

    Notes
    -----
    `of_points(k)` has the neighbours of the points themselves, `query(x, k)` those of any others;
    `recall_at(k)` says how many of them are found. Rows of `query` that equal points of the index
    find what `of_points` finds.
    """

    def __init__(
        self,
        points: Points,
        *,
        recall: float = RECALL,
        n_neighbors: int = 0,
        frame: Frame | None = None,
    ) -> None:
        check_number(recall, "recall", low=0, high=1, open_low=True)
        check_number(n_neighbors, "n_neighbors", low=0, integer=True)
        points = check_points(points, "points", min_rows=1)
        self.wanted_recall = recall
        self._shared = min(n_neighbors + 1, points.shape[0]) if n_neighbors else 0  # and itself
        self._found: Neighbors | None = None
        self._framed: NeighborIndex | None = None
        self._distinct: Distinct | None = None
        self._checksum: int | None = None
        self.given, self._frame = points, frame
        self._in_tree = not sparse.issparse(points) and (
            points.shape[1] <= _TREE_FEATURES
            or (points.shape[1] <= _SMALL_TREE_FEATURES and self.n <= EXACT_POINTS)
        )

    def __sklearn_clone__(self) -> NeighborIndex:
        """Copies of an estimator share the index: nobody changes it."""
        return self

    @property
    def n(self) -> int:
        """Number of points."""
        return self.given.shape[0]

    @property
    def approximate(self) -> bool:
        """Whether neighbours may be missed."""
        dense = not sparse.issparse(self.given)
        return dense and not self._in_tree and self.n > EXACT_POINTS and self.wanted_recall < 1

    def recall_at(self, k: int) -> Recall:
        """Return the measured share of the k nearest points that a search finds; 1 where exact."""
        if not self.approximate:
            return Recall(1.0, 0.0)
        return self._lists.probes_for(max(k, self._shared), self.wanted_recall).recall

    def diagnostics(self, k: int) -> dict[str, float]:
        """Return the recall of k neighbours and its standard error, where search is approximate."""
        if not self.approximate:
            return {}
        recall = self.recall_at(k)
        return {"recall": recall.value, "recall_error": recall.error}

    @cached_property
    def points(self) -> Points:
        """The points in the frame, float64 (n, d)."""
        return self._moved(self.given)

    def of_points(self, k: int) -> Neighbors:
        """Return the k nearest points of every point of the index, itself among them: (n, k)."""
        if k > self._shared:
            return self._search_points(k)
        if self._found is None:
            self._found = self._search_points(self._shared)
        return Neighbors(*(values[:, :k].copy() for values in self._found))

    def query(self, x: Points, k: int, any_tie: bool = False) -> Neighbors:
        """Return the k nearest points of each row of x (m, d).

        `any_tie`: of points equally far take any, which is faster where many points coincide.
        """
        self._check_count(k)
        if self.approximate:
            wanted = max(k, self._shared)
            return self._from_lists(self._lists.query(x, wanted, self.wanted_recall), k)
        return self._exact(self._moved(x), k, None, any_tie)

    def in_frame(self, frame: Frame) -> NeighborIndex:
        """Return the index of the same points whose distances are in a frame: made once."""
        self._check_unchanged()
        if self._framed is None or not frame.equals(self._framed._frame):
            self._framed = self._alike(self.given, frame)
        return self._framed

    def distinct(self) -> Distinct:
        """Return the index of the distinct points, searched in the same way: made once."""
        if self._distinct is None:
            first, vertex = distinct_rows(self.points)
            self._distinct = Distinct(self._alike(self.given[first], self._frame), vertex)
        return self._distinct

    def holds(self, x: Points) -> bool:
        """Say whether the rows of x are the points of the index."""
        if x.shape != self.given.shape or sparse.issparse(x) != sparse.issparse(self.given):
            return False
        if sparse.issparse(x):
            return (x != self.given).nnz == 0
        return bool(np.array_equal(x, self.given))

    def _alike(self, points: Points, frame: Frame | None) -> NeighborIndex:
        k = max(0, self._shared - 1)
        return NeighborIndex(points, recall=self.wanted_recall, n_neighbors=k, frame=frame)

    def _check_unchanged(self) -> None:
        """Raise where the points, which are not copied, have been written to since the last use."""
        points = self.given.data if sparse.issparse(self.given) else self.given
        checksum = zlib.crc32(np.ascontiguousarray(points).view(np.uint8).data)
        if self._checksum is not None and checksum != self._checksum:
            raise ValueError(
                "The points of this NeighborIndex have changed since it was first used; make a new "
                "index."
            )
        self._checksum = checksum

    def _check_count(self, k: int) -> None:
        if k > self.n:
            raise ValueError(f"k={k} but there are {self.n} points; pass k <= {self.n}.")

    def _search_points(self, k: int) -> Neighbors:
        self._check_count(k)
        if self.approximate:
            wanted = max(k, self._shared)
            return self._from_lists(self._lists.of_points(wanted, self.wanted_recall), k)
        return self._exact(self.points, k, self.order())

    def _exact(
        self, x: Points, k: int, order: Array | None = None, any_tie: bool = False
    ) -> Neighbors:
        """Return the k nearest points of rows x (m, d) in the frame, visited in an order."""
        reach = min(k + 1, self.n)  # one more, to see whether the last is a tie
        distances, indices = self._in_order(*self._nearest(x, reach, order))
        tied = np.flatnonzero(distances[:, -1] <= distances[:, k - 1] * (1 + _TIE))
        if reach > k and len(tied) and not any_tie:
            self._break_ties(x, tied, Neighbors(distances[:, :k], indices[:, :k]))
        return Neighbors(distances[:, :k].copy(), indices[:, :k].copy())

    def order(self) -> Array | None:
        """Return the points (n,) in an order in which near ones are near, if the search has one."""
        if self.approximate:
            return self._lists.order
        return self._tree.indices if self._in_tree else None

    def points_within(self, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` between the points, CSR (n, n), zeros stored."""
        return self._within(self.points, radius)

    def within(self, x: Points, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored."""
        return self._within(self._moved(x), radius)

    def _within(self, x: Points, radius: float) -> sparse.csr_matrix:
        # A little wider first: membership is decided on the recomputed distances, so that it is
        # the same from both ends of a pair.
        wide = radius * (1 + 1e-7)
        found = self._blocks.radius_neighbors(x, wide, return_distance=False)
        unsure = self._unsure(x, np.full(x.shape[0], radius))
        if len(unsure):
            found[unsure] = self._balls.radius_neighbors(x[unsure], wide, return_distance=False)
        counts = [len(indices) for indices in found]
        columns = np.concatenate([*found, np.empty(0, dtype=np.int64)]).astype(np.int64)
        rows = np.repeat(np.arange(len(counts)), counts)
        distances = pair_distances(x, self.points, rows, columns)
        kept = distances <= radius
        return sparse.csr_matrix(
            (distances[kept], (rows[kept], columns[kept])), shape=(x.shape[0], self.n)
        )

    def _moved(self, x: Points) -> Points:
        if self._frame is not None:
            return self._frame(x)
        wide = np.float64  # differences of whole numbers without a sign would wrap around
        return x.astype(wide) if sparse.issparse(x) else np.asarray(x, wide)

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.points)

    @cached_property
    def _blocks(self) -> NearestNeighbors:
        method = "kd_tree" if self._in_tree else "brute"
        return NearestNeighbors(algorithm=method).fit(self.points)

    @cached_property
    def _balls(self) -> NearestNeighbors:
        return NearestNeighbors(algorithm="ball_tree").fit(self.points)

    @cached_property
    def _largest_square(self) -> float:
        return float(np.max(squared_norms(self.points)))

    @cached_property
    def _lists(self) -> Any:
        from heatsketch.neighbors.inverted_lists import InvertedLists  # compiled loops

        frame = Frame.of(self.given) if self._frame is None else self._frame
        return InvertedLists(np.ascontiguousarray(self.given), frame)

    def _from_lists(self, found: tuple[Array, Array], k: int) -> Neighbors:
        distances, indices = found
        if self._frame is None:  # in the units of the points, then
            distances = np.ldexp(distances, self._lists.frame.exponent)
        return Neighbors(distances[:, :k], indices[:, :k])

    def _nearest(self, x: Points, k: int, order: Array | None) -> tuple[Array, Array]:
        if self._in_tree:
            return self._nearest_in_tree(x, k, np.arange(len(x)) if order is None else order)
        indices = self._blocks.kneighbors(x, n_neighbors=k, return_distance=False)
        distances = self._distances(x, indices)
        unsure = self._unsure(x, distances.max(axis=1))
        if len(unsure):
            indices[unsure] = self._balls.kneighbors(x[unsure], k, return_distance=False)
            distances[unsure] = self._distances(x[unsure], indices[unsure])
        return distances, indices

    def _nearest_in_tree(self, x: Array, k: int, order: Array) -> tuple[Array, Array]:
        """Search in an order: neighbouring queries walk branches that are in the cache."""
        distances, indices = np.empty((len(x), k)), np.empty((len(x), k), np.int64)

        def work(tile: slice) -> None:
            rows = order[tile]
            indices[rows] = self._tree.query(x[rows], k)[1].reshape(len(rows), k)
            # The tree sums squares in an order of its own.
            distances[rows] = self._distances(x[rows], indices[rows])

        for_each_tile(work, len(x), _TREE_TILE)
        return distances, indices

    def _in_order(self, distances: Array, indices: Array) -> tuple[Array, Array]:
        """Sort by distance, and by index where distances are equal."""
        rows = np.flatnonzero((distances[:, 1:] <= distances[:, :-1]).any(axis=1))
        order = np.lexsort((indices[rows], distances[rows]), axis=1)
        for values in (distances, indices):
            values[rows] = np.take_along_axis(values[rows], order, axis=1)
        return distances, indices

    def _break_ties(self, x: Points, tied: Array, found: Neighbors) -> None:
        """Among points equally far, take those of lowest index, not those the search came upon."""
        k = found.distances.shape[1]
        candidates = self._in_balls if self._in_tree else self._in_blocks
        for tile in row_tiles(len(tied), max(1, CHUNK // self.n)):
            rows = tied[tile]
            i, j = candidates(x[rows], found.distances[rows, -1] * (1 + 2 * _TIE))
            d = pair_distances(x[rows], self.points, i, j)
            order = np.lexsort((j, d, i))
            first = np.searchsorted(i, np.arange(len(rows)))
            chosen = order[first[:, None] + np.arange(k)]
            found.distances[rows], found.indices[rows] = d[chosen], j[chosen]

    def _in_balls(self, x: Array, radii: Array) -> tuple[Array, Array]:
        """Return (i, j) for the points j within radius i of row i of x, by the tree."""
        found = self._tree.query_ball_point(x, radii * (1 + _TIE))
        i = np.repeat(np.arange(len(x)), [len(indices) for indices in found])
        return i, np.concatenate(found).astype(np.int64)

    def _in_blocks(self, x: Points, radii: Array) -> tuple[Array, Array]:
        """Return (i, j) for the points j within radius i of row i of x, and perhaps some more."""
        squares = squared_distances(x, self.points, direct=False)
        rounding = 16 * np.finfo(float).eps * (squared_norms(x) + self._largest_square)
        i, j = np.nonzero(squares <= (radii**2 + rounding)[:, None])
        return i, j

    def _distances(self, x: Points, indices: Array) -> Array:
        rows = np.repeat(np.arange(x.shape[0]), indices.shape[1])
        return pair_distances(x, self.points, rows, indices.ravel()).reshape(indices.shape)

    def _unsure(self, x: Points, reach: Array) -> Array:
        """Return the rows of x whose neighbours within `reach` the Gram form cannot tell apart."""
        if self._in_tree or sparse.issparse(self.points):  # there is no tree for sparse points
            return np.empty(0, dtype=np.int64)
        error = 8 * np.finfo(float).eps * squared_norms(x)
        return np.flatnonzero((reach > 0) & (error > _GRAM_BOUND * reach**2))
