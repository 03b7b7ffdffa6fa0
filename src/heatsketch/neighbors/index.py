"""An index of points: chooses how neighbours are searched, and orders those that are found."""

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
from heatsketch._progress import Stage
from heatsketch._tensors import device_of, on_host
from heatsketch._typing import Array, Points
from heatsketch.neighbors.blocks import Blocks
from heatsketch.neighbors.found import Neighbors, Recall
from heatsketch.neighbors.metric import in_metric
from heatsketch.neighbors.rows import (
    DIFFERENCES_AT_A_TIME,
    distances_within,
    distinct_rows,
    pair_distances,
    pairs_within,
    sort_by_distance,
)
from heatsketch.operators.kernel import squared_norms

EXACT_POINTS = 16_384  # up to here, computing all distances is as fast as inverted lists
_MAX_TREE_FEATURES = 8  # with more, a tree visits most of its points
_MAX_SMALL_TREE_FEATURES = 15  # up to EXACT_POINTS points, a tree is still fast enough
_TREE_TILE_ROWS = 4096
_TIE_TOLERANCE = 1e-7  # relative difference of distances below which ties are broken exactly
_MAX_GRAM_ERROR = 1e-8  # relative error of a squared distance accepted from the Gram form


class Distinct(NamedTuple):
    """The index of the distinct points among some points."""

    search: NeighborIndex
    vertex: Array  # (points,), the row of the index that equals each point


class NeighborIndex:
    """A search structure over points (n, d), dense or CSR.

    The search is exact by a tree in at most 8 dimensions (15 up to 16,384 points), and by blocks of
    all distances for up to 16,384 points and for sparse data; of equally distant points it takes
    those of lowest index. Otherwise inverted lists find nearly all neighbours. Distances are always
    computed from differences of coordinates, so that equal points are at distance exactly zero.

    Parameters
    ----------
    points : array or CSR matrix (n, d)
    metric : "euclidean", "cosine" or "correlation", default "euclidean"
        As in `HeatSketch`, for the points and for those of `query` and `within`.
    recall : float in (0, 1], default 0.98
        Share of the exact neighbours that an approximate search must find; it is measured on 512
        of the points, whose exact neighbours are known, and as many cells are searched as it
        requires. Outliers take no part of it from the others. 1: the search is exact.
    n_neighbors : int, optional
        Neighbours of every point that are kept once found (16 bytes each), so that estimators that
        share the index and need at most this number search once. By default none are kept.
    frame : Frame, optional
        Coordinates in which distances are input_points; by default those of the points.
    device : str or torch.device, optional
        Where torch compares all pairs, which is exact but for ties of more than 16,384 points; by
        default where the points are, if they are a tensor on a device other than the processor.
        Neighbours are NumPy arrays always.

    Notes
    -----
    `of_points(k)` returns the neighbours of the points of the index, `query(x, k)` those of any
    points, and `recall_at(k)` the share that is found. For a row equal to a point of the index both
    return the same. Cost: by blocks n d operations for each point, by inverted lists a share of it.

    Examples
    --------
    >>> from heatsketch.neighbors import NeighborIndex
    >>> NeighborIndex([[0.0], [1.0], [3.0]]).query([[0.9]], 2).indices
    array([[1, 0]])
    """

    _kept: Neighbors | None = None
    _framed: NeighborIndex | None = None
    _distinct: Distinct | None = None
    _checksum: int | None = None
    device: Any = None
    _not_stored = ("_kept", "_framed", "_distinct", "_checksum", "device")  # in files of models

    def __init__(
        self,
        points: Points,
        *,
        metric: str = "euclidean",
        recall: float = 0.98,
        n_neighbors: int = 0,
        frame: Frame | None = None,
        device: Any = None,
    ) -> None:
        check_number(recall, "recall", low=0, high=1, open_low=True)
        check_number(n_neighbors, "n_neighbors", low=0, integer=True)
        self.device = device_of(points) if device is None else device
        points = in_metric(check_points(on_host(points), "points", min_rows=1), metric)
        self.metric = metric
        self.target_recall = recall
        self._n_kept = min(n_neighbors + 1, points.shape[0]) if n_neighbors else 0  # with itself
        self.input_points, self._frame = points, frame
        self._in_tree = not sparse.issparse(points) and (
            points.shape[1] <= _MAX_TREE_FEATURES
            or (points.shape[1] <= _MAX_SMALL_TREE_FEATURES and self.n <= EXACT_POINTS)
        )

    def __sklearn_clone__(self) -> NeighborIndex:
        """Return the index itself: clones of an estimator share it, since it does not change."""
        return self

    @property
    def n(self) -> int:
        """Number of points."""
        return self.input_points.shape[0]

    @property
    def approximate(self) -> bool:
        """Whether neighbours may be missed."""
        dense = not sparse.issparse(self.input_points)
        few = self._in_tree or self.n <= EXACT_POINTS or self.device is not None
        return dense and not few and self.target_recall < 1

    def recall_at(self, k: int) -> Recall:
        """Return the measured share of the k nearest points that is found; 1 where exact."""
        if not self.approximate:
            return Recall(1.0, 0.0)
        return self._lists.probes_for(max(k, self._n_kept), self.target_recall).recall

    def diagnostics(self, k: int) -> dict[str, float]:
        """Return the recall of k neighbours and its standard error, if search is approximate."""
        if not self.approximate:
            return {}
        recall = self.recall_at(k)
        return {"recall": recall.value, "recall_error": recall.error}

    @cached_property
    def points(self) -> Points:
        """The points in the frame (n, d), float64."""
        return self._in_own_frame(self.input_points)

    def of_points(self, k: int) -> Neighbors:
        """Return the k nearest points of every point of the index, including itself: (n, k).

        Raises
        ------
        ValueError
            k is more than the number of points.
        """
        if k > self._n_kept:
            return self._search_points(k)
        if self._kept is None:
            self._kept = self._search_points(self._n_kept)
        return Neighbors(*(values[:, :k].copy() for values in self._kept))

    def query(self, x: Points, k: int, any_tie: bool = False) -> Neighbors:
        """Return the k nearest points of each row of x (m, d).

        `any_tie`: take any of equally distant points, which is faster where many points coincide.

        Raises
        ------
        ValueError
            k is more than the number of points; points of another number of features, or that the
            metric has no direction for.
        """
        self._check_count(k)
        x = in_metric(on_host(x), self.metric)
        if self.approximate:
            n_searched = max(k, self._n_kept)
            return self._from_lists(self._lists.query(x, n_searched, self.target_recall), k)
        return self._exact(self._in_own_frame(x), k, None, any_tie)

    def in_frame(self, frame: Frame) -> NeighborIndex:
        """Return the index of the same points with distances in a frame; the last one is kept.

        Its points, and those of its queries, are as `in_metric` returns them.

        Raises
        ------
        ValueError
            The points, which are not copied, have changed since the first use.
        """
        self._check_unchanged()
        if self._framed is None or not frame.equals(self._framed._frame):
            self._framed = self._index_of(self.input_points, frame)
        return self._framed

    def distinct(self) -> Distinct:
        """Return the index of the distinct points, built once."""
        if self._distinct is None:
            first, vertex = distinct_rows(self.points)
            self._distinct = Distinct(self._index_of(self.input_points[first], self._frame), vertex)
        return self._distinct

    def holds(self, x: Points) -> bool:
        """Return whether x equals the points of the index."""
        own = self.input_points
        if x.shape != own.shape or sparse.issparse(x) != sparse.issparse(own):
            return False
        return (x != own).nnz == 0 if sparse.issparse(x) else bool(np.array_equal(x, own))

    def _index_of(self, points: Points, frame: Frame | None) -> NeighborIndex:
        k = max(0, self._n_kept - 1)
        given: dict[str, Any] = {"recall": self.target_recall, "device": self.device}
        return NeighborIndex(points, n_neighbors=k, frame=frame, **given)

    def _check_unchanged(self) -> None:
        """Raise if the points, which are not copied, have been changed since the first use."""
        points = self.input_points.data if sparse.issparse(self.input_points) else self.input_points
        checksum = zlib.crc32(np.ascontiguousarray(points).view(np.uint8).data)
        if self._checksum is not None and checksum != self._checksum:
            raise ValueError(
                "The points of this NeighborIndex have changed since it was first used; create a "
                "new index."
            )
        self._checksum = checksum

    def _check_count(self, k: int) -> None:
        if k > self.n:
            raise ValueError(f"k={k} but the index has {self.n} points; pass k <= {self.n}.")

    def _search_points(self, k: int) -> Neighbors:
        self._check_count(k)
        if self.approximate:
            n_searched = max(k, self._n_kept)
            return self._from_lists(self._lists.of_points(n_searched, self.target_recall), k)
        return self._exact(self.points, k, self.order())

    def _exact(
        self, x: Points, k: int, order: Array | None = None, any_tie: bool = False
    ) -> Neighbors:
        """Return the k nearest points of rows x (m, d) in the frame, visited in an order."""
        n_searched = min(k + 1, self.n)  # one more, to see whether the last is a tie
        distances, indices = sort_by_distance(*self._nearest(x, n_searched, order))
        tied = np.flatnonzero(distances[:, -1] <= distances[:, k - 1] * (1 + _TIE_TOLERANCE))
        any_tie = any_tie or self._is_large_on_device
        if n_searched > k and len(tied) and not any_tie:
            self._break_ties(x, tied, Neighbors(distances[:, :k], indices[:, :k]))
        return Neighbors(distances[:, :k].copy(), indices[:, :k].copy())

    def order(self) -> Array | None:
        """Return an order (n,) that puts neighbours close together, if the search has one."""
        if self.approximate:
            return self._lists.order
        return self._tree.indices if self._in_tree else None

    def points_within(self, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` between the points, CSR (n, n), zeros stored."""
        return self._within(self.points, radius)

    def within(self, x: Points, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored.

        Raises
        ------
        ValueError
            Points of another number of features, or that the metric has no direction for.
        """
        return self._within(self._in_own_frame(in_metric(x, self.metric)), radius)

    def _within(self, x: Points, radius: float) -> sparse.csr_matrix:
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

    def _in_own_frame(self, x: Points) -> Points:
        if self._frame is not None:
            return self._frame(x)
        # float64, because differences of unsigned integers would wrap around.
        return x.astype(float) if sparse.issparse(x) else np.asarray(x, float)

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.points)

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self.points, self.device)

    @property
    def _is_large_on_device(self) -> bool:
        return self.device is not None and self.n > EXACT_POINTS

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

    @cached_property
    def _lists(self) -> Any:
        from heatsketch.neighbors.inverted_lists import InvertedLists  # compiled loops

        frame = Frame.of(self.input_points) if self._frame is None else self._frame
        return InvertedLists(np.ascontiguousarray(self.input_points), frame)

    def _from_lists(self, found: tuple[Array, Array], k: int) -> Neighbors:
        distances, indices = found
        if self._frame is None:  # back to the units of the points
            distances = np.ldexp(distances, self._lists.frame.exponent)
        return Neighbors(distances[:, :k], indices[:, :k])

    def _nearest(self, x: Points, k: int, order: Array | None) -> tuple[Array, Array]:
        if self._in_tree and self.device is None:
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
        for tile in row_tiles(len(tied), max(1, DIFFERENCES_AT_A_TIME // self.n)):
            rows = tied[tile]
            i, j = self.candidates(x[rows], found.distances[rows, -1] * (1 + 2 * _TIE_TOLERANCE))
            d = pair_distances(x[rows], self.points, i, j)
            order = np.lexsort((j, d, i))
            first = np.searchsorted(i, np.arange(len(rows)))
            chosen = order[first[:, None] + np.arange(k)]
            found.distances[rows], found.indices[rows] = d[chosen], j[chosen]

    def candidates(self, x: Points, radii: Array) -> tuple[Array, Array]:
        """Return (i, j) for the points j within radii[i] of row i of x, and possibly more.

        x and radii are in the frame.
        """
        if self._in_tree:
            found = self._tree.query_ball_point(x, radii * (1 + _TIE_TOLERANCE))
            i = np.repeat(np.arange(len(x)), [len(indices) for indices in found])
            return i, np.concatenate(found).astype(np.int64)
        rounding = 16 * np.finfo(float).eps * (squared_norms(x) + self._largest_square)
        bounds = (radii * (1 + _TIE_TOLERANCE)) ** 2 + rounding
        return pairs_within(x, self.points, bounds)

    def _distances(self, x: Points, indices: Array) -> Array:
        rows = np.repeat(np.arange(x.shape[0]), indices.shape[1])
        return pair_distances(x, self.points, rows, indices.ravel()).reshape(indices.shape)

    def _imprecise_rows(self, x: Points, radii: Array) -> Array:
        """Return the rows of x for which the Gram form is too inexact within `radii`."""
        if self._in_tree or sparse.issparse(self.points):  # sparse points cannot have a tree
            return np.empty(0, dtype=np.int64)
        error = 8 * np.finfo(float).eps * squared_norms(x)
        return np.flatnonzero((radii > 0) & (error > _MAX_GRAM_ERROR * radii**2))
