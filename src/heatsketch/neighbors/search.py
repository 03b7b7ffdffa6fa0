"""Searches for neighbours: our own, a transformer like scikit-learn's, or a graph of distances."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone

from heatsketch._checks import Frame
from heatsketch._random import content_order, distinct_rows
from heatsketch._tiles import row_tiles
from heatsketch._typing import Array, Points
from heatsketch.neighbors.found import Neighbors
from heatsketch.neighbors.index import NeighborIndex
from heatsketch.neighbors.metric import Distances
from heatsketch.neighbors.rows import pair_distances
from heatsketch.operators.order import inverse_permutation

_BLOCK_ENTRIES = 2**22  # distances computed at a time: 32 MB


class Search(Protocol):
    """A search for nearest points, with distances in the units of a frame."""

    input_points: Points

    @property
    def n(self) -> int:
        """Number of points."""
        ...

    def of_points(self, k: int) -> Neighbors:
        """Return the k nearest points of every point, itself first: (n, k)."""
        ...

    def query(self, x: Points, k: int) -> Neighbors:
        """Return the k nearest points of each row of x, (m, k)."""
        ...

    def points_within(self, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` between the points, CSR (n, n), zeros stored."""
        ...

    def within(self, x: Points, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored."""
        ...

    def diagnostics(self, k: int) -> dict[str, float]:
        """Return measures of the quality of a search for k neighbours."""
        ...

    def order(self) -> Array | None:
        """Return an order (n,) that puts neighbours close together, if the search has one."""
        ...


def search_of(neighbors: Any, X: Points, frame: Frame, rows: Array | None = None) -> Search:
    """Return the search that `neighbors` specifies, among X or some of its rows in their order.

    Parameters
    ----------
    neighbors : None, NeighborIndex, Distances, transformer or CSR matrix (n, n)
        None: a new NeighborIndex. Distances: a search of all pairs in their metric. A transformer
        (scikit-learn's KNeighborsTransformer, or any with `fit_transform` and `transform` that
        return sparse graphs of distances) is cloned and fitted to the points. A matrix holds
        distances between rows of X, at least those of the neighbours.
    X : array or CSR matrix (n, d)
        As `in_metric` returns them; so are the points that a transformer gets.
    frame : Frame
        Coordinates in which distances are given.
    rows : array (m,), optional
    """
    if isinstance(neighbors, NeighborIndex):
        _check_same_points(neighbors, X)
        return neighbors.in_frame(frame, rows)
    if sparse.issparse(neighbors):
        graph = _checked_graph(neighbors, X)
        points, graph = (X, graph) if rows is None else (X[rows], graph[rows][:, rows])
        return _GivenGraph(graph, points, frame)
    points = X if rows is None else X[rows]
    if neighbors is None:
        return NeighborIndex(points, frame=frame)
    if isinstance(neighbors, Distances):
        return DistanceSearch(points, neighbors)
    if hasattr(neighbors, "fit_transform") and hasattr(neighbors, "transform"):
        return _FittedTransformer(neighbors, points, frame)
    raise TypeError(
        f"neighbors is of type {type(neighbors).__name__}; pass a NeighborIndex, a "
        "KNeighborsTransformer or a sparse matrix of distances (n, n)."
    )


class OrderedSearch(NamedTuple):
    """A search among points in an order that depends on them alone, not on that of the rows."""

    search: Search
    frame: Frame
    rows: Array  # (n,), the first row of X that is each point
    place: Array  # (points,), the number among these points of each row of X


def ordered_search(neighbors: Any, X: Points, *, join: bool = True) -> OrderedSearch:
    """Return the search that `neighbors` specifies among the points X in order of their content.

    Ties between neighbours, samples and whatever else is chosen by position then depend on the
    points alone. With `join` equal points become one, except in a given graph.
    """
    other, given = isinstance(neighbors, Distances), sparse.issparse(neighbors)
    if other and neighbors.precomputed:
        same = X.argmin(axis=1) if join else np.arange(X.shape[0])  # copies are at distance 0
        first = np.unique(same)
        rows = first[content_order(X[first], columns=False)]
        place = inverse_permutation(rows, X.shape[0])[same]
    elif join and not given:
        rows, place = distinct_rows(X)
    else:
        rows = content_order(X)
        place = inverse_permutation(rows)
    if join and not given and len(rows) < 2 <= X.shape[0]:
        raise ValueError(
            "All distances are zero: every row of X is the same point; pass distinct points."
        )
    frame = Frame(0, None) if other else Frame.of(X, rows)
    return OrderedSearch(search_of(neighbors, X, frame, rows), frame, rows, place)


class DistanceSearch:
    """An exact search among points by all distances in any metric, ties by lowest index.

    Cost: n distances for each row.
    """

    def __init__(self, points: Points, distances: Distances) -> None:
        self.input_points, self.distances = points, distances

    @property
    def n(self) -> int:
        """Number of points."""
        return self.input_points.shape[0]

    def diagnostics(self, k: int) -> dict[str, float]:
        """Return nothing: the search is exact."""
        return {}

    def order(self) -> None:
        """Return None: the search has no order that puts neighbours close together."""

    def of_points(self, k: int) -> Neighbors:
        """Return the k nearest points of every point, itself first: (n, k)."""
        return self._nearest(self.input_points, k, own=True)

    def query(self, x: Points, k: int) -> Neighbors:
        """Return the k nearest points of each row of x, (m, k)."""
        return self._nearest(self.distances.points(x), k, own=False)

    def points_within(self, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` between the points, CSR (n, n), zeros stored."""
        return self._within(self.input_points, radius, own=True)

    def within(self, x: Points, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored."""
        return self._within(self.distances.points(x), radius, own=False)

    def _blocks(self, x: Points, own: bool) -> Iterator[tuple[slice, Array]]:
        """Yield some rows of x and their distances to all points."""
        for rows in row_tiles(x.shape[0], max(1, _BLOCK_ENTRIES // self.n)):
            D = self.distances(x[rows], self.input_points)
            if own:  # by definition, whatever a callable says
                D[np.arange(len(D)), np.arange(rows.start, rows.start + len(D))] = 0.0
            yield rows, D

    def _nearest(self, x: Points, k: int, own: bool) -> Neighbors:
        distances, indices = np.empty((x.shape[0], k)), np.empty((x.shape[0], k), np.int64)
        for rows, D in self._blocks(x, own):
            if own:
                D[np.arange(len(D)), np.arange(rows.start, rows.start + len(D))] = -1.0  # first
            i, j = np.nonzero(np.partition(D, k - 1, axis=1)[:, k - 1, None] >= D)
            order = np.lexsort((j, D[i, j], i))
            chosen = order[np.searchsorted(i, np.arange(len(D)))[:, None] + np.arange(k)]
            distances[rows], indices[rows] = np.maximum(D[i, j][chosen], 0.0), j[chosen]
        return Neighbors(distances, indices)

    def _within(self, x: Points, radius: float, own: bool) -> sparse.csr_matrix:
        found = []
        for rows, D in self._blocks(x, own):
            i, j = np.nonzero(radius >= D)
            found.append((D[i, j], i + rows.start, j))
        d, i, j = (np.concatenate(side) for side in zip(*found, strict=True))
        return sparse.csr_matrix((d, (i, j)), shape=(x.shape[0], self.n))


def _check_same_points(index: NeighborIndex, X: Points) -> None:
    if index.n != X.shape[0]:
        raise ValueError(
            f"neighbors is an index of {index.n} points but X has {X.shape[0]}; pass an index "
            "of the same points, or a KNeighborsTransformer, which is fitted to X."
        )
    if not index.holds(X):
        raise ValueError(
            "neighbors is an index of other points than X, or in another metric; pass "
            "NeighborIndex(X) with the same metric."
        )


def _checked_graph(graph: Any, X: Points) -> sparse.csr_matrix:
    """Return a graph of distances between the points X as CSR (n, n), or raise."""
    graph = sparse.csr_matrix(graph)
    if graph.shape != (X.shape[0], X.shape[0]):
        raise ValueError(
            f"neighbors has shape {graph.shape} but X has {X.shape[0]} points; pass the "
            f"distances between these points, shape ({X.shape[0]}, {X.shape[0]})."
        )
    _refuse_connectivity(graph, X)
    return graph


class _GraphSearch:
    """Abstract base: a search in a graph of distances between points."""

    input_points: Points
    _graph: sparse.csr_matrix
    _frame: Frame

    @property
    def n(self) -> int:
        return self._graph.shape[0]

    def diagnostics(self, k: int) -> dict[str, float]:
        return {}

    def order(self) -> Array | None:
        return None

    def of_points(self, k: int) -> Neighbors:
        return _nearest_entries(self._graph, k, self._frame, own=True)

    def query(self, x: Points, k: int) -> Neighbors:
        return _nearest_entries(self._graph_of(x), k, self._frame, own=False)

    def points_within(self, radius: float) -> sparse.csr_matrix:
        return _entries_within(self._graph, radius, self._frame)

    def within(self, x: Points, radius: float) -> sparse.csr_matrix:
        return _entries_within(self._graph_of(x), radius, self._frame)

    @abstractmethod
    def _graph_of(self, x: Points) -> sparse.csr_matrix:
        """Return the distances from new points x (m, d) to their neighbours, CSR (m, n)."""


class _GivenGraph(_GraphSearch):
    """A search in a graph that the caller has computed, which has no distances to new points."""

    def __init__(self, graph: sparse.csr_matrix, X: Points, frame: Frame) -> None:
        self._graph, self.input_points, self._frame = graph, X, frame

    def _graph_of(self, x: Points) -> sparse.csr_matrix:
        raise ValueError(
            "neighbors is a graph of the training points and has no distances to new points; pass "
            "a KNeighborsTransformer instead."
        )


class _FittedTransformer(_GraphSearch):
    """A search by a transformer like scikit-learn's, fitted to the points."""

    def __init__(self, transformer: Any, X: Points, frame: Frame) -> None:
        self._transformer, self._frame = clone(transformer), frame
        self.input_points = X
        with config_context(transform_output="default"):  # a table cannot be sparse
            self._graph = sparse.csr_matrix(self._transformer.fit_transform(X))
        _refuse_connectivity(self._graph, X)

    def _graph_of(self, x: Points) -> sparse.csr_matrix:
        with config_context(transform_output="default"):
            return sparse.csr_matrix(self._transformer.transform(x))


def _entries_within(graph: sparse.csr_matrix, radius: float, frame: Frame) -> sparse.csr_matrix:
    """Return the distances of a graph up to `radius`, in the frame."""
    graph = graph.tocoo()
    distances = np.ldexp(_check_distances(graph.data).astype(float), -frame.exponent)
    kept = distances <= radius
    rows, columns = graph.row[kept], graph.col[kept]
    return sparse.csr_matrix((distances[kept], (rows, columns)), shape=graph.shape)


def _nearest_entries(graph: sparse.csr_matrix, k: int, frame: Frame, own: bool) -> Neighbors:
    """Return the k nearest points of each row of a graph; with `own`, the point itself first."""
    m = graph.shape[0]
    _check_distances(graph.data)
    rows = np.repeat(np.arange(m), np.diff(graph.indptr))
    columns, distances = graph.indices.astype(np.int64), graph.data.astype(float)
    if own:
        others = rows != columns
        rows = np.concatenate([np.arange(m), rows[others]])
        columns = np.concatenate([np.arange(m), columns[others]])
        distances = np.concatenate([np.full(m, -1.0), distances[others]])  # sorts first
    counts = np.bincount(rows, minlength=m)
    if counts.min() < k:
        raise ValueError(
            f"neighbors has only {counts.min() - own} neighbours for row {counts.argmin()}, but "
            f"{k - own} are needed; pass a smaller n_neighbors, or more neighbours."
        )
    order = np.lexsort((columns, distances, rows))
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    chosen = order[starts[:, None] + np.arange(k)]
    near = np.ldexp(np.maximum(distances[chosen], 0.0), -frame.exponent)
    return Neighbors(near, columns[chosen])


def _refuse_connectivity(graph: sparse.csr_matrix, X: Points) -> None:
    """Raise if all entries are 1 although the distances are not."""
    if graph.nnz == 0 or (graph.data != 1).any():
        return
    entries = np.unique(np.linspace(0, graph.nnz - 1, 100).astype(np.int64))
    rows = np.searchsorted(graph.indptr, entries, side="right") - 1
    frame = Frame.of(X)
    points = frame(X)
    distances = pair_distances(points, points, rows, graph.indices[entries])
    if not np.allclose(np.ldexp(distances, frame.exponent), 1, rtol=1e-3):
        raise ValueError(
            "neighbors holds only ones, which mark neighbours but are not their distances; pass "
            "distances (mode='distance')."
        )


def _check_distances(distances: Array) -> Array:
    if len(distances) and not (np.isfinite(distances).all() and distances.min() >= 0):
        raise ValueError("neighbors holds negative or non-finite numbers; pass distances.")
    return distances
