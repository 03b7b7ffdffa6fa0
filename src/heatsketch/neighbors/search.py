"""Searches that the caller specifies: an index, a metric, a transformer, a graph of distances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone

from heatsketch._random import content_order, distinct_rows
from heatsketch._tiles import row_tiles
from heatsketch._typing import Array, Points
from heatsketch.neighbors.exact import Neighbors, pair_distances, smallest_of_rows
from heatsketch.neighbors.index import NeighborIndex, Search, are_equal
from heatsketch.neighbors.metric import Distances
from heatsketch.operators.operator import inverse_permutation

_BLOCK_ENTRIES = 2**22  # distances computed at a time: 32 MB


class OrderedSearch(NamedTuple):
    """A search among points in an order that depends on them alone, not on that of the rows."""

    search: Search
    rows: Array  # (n,), the first row of X that is each point
    place: Array  # (points,), the number among these points of each row of X


def ordered_search(neighbors: Any, X: Points, *, join: bool = True) -> OrderedSearch:
    """Return the search that `neighbors` specifies among the points X in order of their content.

    Ties between neighbours, samples and whatever else is chosen by position then depend on the
    points alone.

    Parameters
    ----------
    neighbors : None, NeighborIndex, Distances, transformer or CSR matrix (n, n)
        None: a new NeighborIndex. Distances: a search of all pairs in their metric. A transformer
        (scikit-learn's KNeighborsTransformer, or any with `fit_transform` and `transform` that
        return sparse graphs of distances) is cloned and fitted to the points. A matrix holds
        distances between rows of X, at least those of the neighbours.
    X : array or CSR matrix (n, d)
        As `in_metric` returns them; so are the points that a transformer gets.
    join : bool, default True
        Whether equal points become one; those of a given graph never do.
    """
    if isinstance(neighbors, NeighborIndex) and not are_equal(neighbors.points, X):
        raise ValueError(
            f"neighbors is an index of {neighbors.n} points but X has {X.shape[0]}, or they are "
            "other points, or in another metric; pass NeighborIndex(X) with the same metric."
        )
    join = join and not sparse.issparse(neighbors)
    if isinstance(neighbors, Distances) and neighbors.precomputed:
        same = X.argmin(axis=1) if join else np.arange(X.shape[0])  # copies are at distance 0
        first = np.unique(same)
        rows = first[content_order(X[first], columns=False)]
        place = inverse_permutation(rows, X.shape[0])[same]
    elif join:
        rows, place = distinct_rows(X)
    else:
        rows = content_order(X)
        place = inverse_permutation(rows)
    if join and len(rows) < 2 <= X.shape[0]:
        raise ValueError(
            "All distances are zero: every row of X is the same point; pass distinct points."
        )
    points: Points = X[rows]
    search: Search
    if isinstance(neighbors, NeighborIndex):
        search = neighbors.part(rows)
    elif neighbors is None:
        search = NeighborIndex(points)
    elif isinstance(neighbors, Distances):
        search = DistanceSearch(points, neighbors)
    elif sparse.issparse(neighbors):
        if neighbors.shape != (X.shape[0], X.shape[0]):
            raise ValueError(
                f"neighbors has shape {neighbors.shape} but X has {X.shape[0]} points; pass the "
                f"distances between these points, shape ({X.shape[0]}, {X.shape[0]})."
            )
        search = GraphSearch(points, sparse.csr_matrix(neighbors)[rows][:, rows])
    elif hasattr(neighbors, "fit_transform") and hasattr(neighbors, "transform"):
        transformer = clone(neighbors)
        with config_context(transform_output="default"):  # a table cannot be sparse
            graph = transformer.fit_transform(points)
        search = GraphSearch(points, sparse.csr_matrix(graph), transformer)
    else:
        raise TypeError(
            f"neighbors is of type {type(neighbors).__name__}; pass a NeighborIndex, a "
            "KNeighborsTransformer or a sparse matrix of distances (n, n)."
        )
    return OrderedSearch(search, rows, place)


class DistanceSearch(Search):
    """An exact search among points by all distances in any metric, ties by lowest index.

    Cost: n distances for each row.
    """

    def __init__(self, points: Points, distances: Distances) -> None:
        self.points, self.n, self._distances = points, points.shape[0], distances

    def of_points(self, k: int) -> Neighbors:
        """Return the k nearest points of every point, itself first: (n, k)."""
        return self._nearest(self.points, k, itself=-1.0)

    def query(self, x: Points, k: int) -> Neighbors:
        """Return the k nearest points of each row of x, (m, k)."""
        return self._nearest(self._distances.points(x), k)

    def points_within(self, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` between the points, CSR (n, n), zeros stored."""
        return self._within(self.points, radius, itself=0.0)

    def within(self, x: Points, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored."""
        return self._within(self._distances.points(x), radius)

    def _blocks(self, x: Points, itself: float | None) -> Iterator[tuple[slice, Array]]:
        """Yield some rows of x and their distances to all points; `itself` is that of a point."""
        for rows in row_tiles(x.shape[0], max(1, _BLOCK_ENTRIES // self.n)):
            D = self._distances(x[rows], self.points)
            if itself is not None:  # by definition, whatever a callable says
                D[np.arange(len(D)), np.arange(rows.start, rows.start + len(D))] = itself
            yield rows, D

    def _nearest(self, x: Points, k: int, itself: float | None = None) -> Neighbors:
        distances, indices = np.empty((x.shape[0], k)), np.empty((x.shape[0], k), np.int64)
        for rows, D in self._blocks(x, itself):
            i, j = np.nonzero(np.partition(D, k - 1, axis=1)[:, k - 1, None] >= D)
            distances[rows], indices[rows] = smallest_of_rows(i, j, D[i, j], k)
        return Neighbors(np.maximum(distances, 0.0), indices)

    def _within(self, x: Points, radius: float, itself: float | None = None) -> sparse.csr_matrix:
        blocks = []
        for _, D in self._blocks(x, itself):
            i, j = np.nonzero(radius >= D)
            blocks.append(sparse.csr_matrix((D[i, j], (i, j)), shape=D.shape))
        return sparse.vstack(blocks, format="csr")


class GraphSearch(Search):
    """A search in a graph of distances between points, and in those of a transformer to new ones.

    Parameters
    ----------
    points : array or CSR matrix (n, d)
    graph : CSR (n, n)
        Distances, at least those of the neighbours.
    transformer : optional
        Fitted to the points; returns the graph of distances from new points, CSR (m, n).
    """

    def __init__(self, points: Points, graph: sparse.csr_matrix, transformer: Any = None) -> None:
        self.points, self.n = points, points.shape[0]
        self._graph, self._transformer = graph, transformer
        if graph.nnz and (graph.data == 1).all():
            entries = np.unique(np.linspace(0, graph.nnz - 1, 100).astype(np.int64))
            rows = np.searchsorted(graph.indptr, entries, side="right") - 1
            distances = pair_distances(points, points, rows, graph.indices[entries])
            if not np.allclose(distances, 1, rtol=1e-3):
                raise ValueError(
                    "neighbors holds only ones, which mark neighbours but are not their distances; "
                    "pass distances (mode='distance')."
                )

    def of_points(self, k: int) -> Neighbors:
        """Return the k nearest points of every point, itself first: (n, k)."""
        (i, j, d), own = _entries(self._graph), np.arange(self.n)
        others = i != j
        i, j = np.append(own, i[others]), np.append(own, j[others])
        d = np.append(np.full(self.n, -1.0), d[others])  # the point itself sorts first
        return _nearest_entries(i, j, d, self.n, k, itself=1)

    def query(self, x: Points, k: int) -> Neighbors:
        """Return the k nearest points of each row of x, (m, k)."""
        i, j, d = _entries(self._graph_of(x))
        return _nearest_entries(i, j, d, x.shape[0], k, itself=0)

    def points_within(self, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` between the points, CSR (n, n), zeros stored."""
        return _entries_within(self._graph, radius)

    def within(self, x: Points, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored."""
        return _entries_within(self._graph_of(x), radius)

    def _graph_of(self, x: Points) -> sparse.csr_matrix:
        if self._transformer is None:
            raise ValueError(
                "neighbors is a graph of the training points and has no distances to new points; "
                "pass a KNeighborsTransformer instead."
            )
        with config_context(transform_output="default"):
            return sparse.csr_matrix(self._transformer.transform(x))


def _entries(graph: sparse.csr_matrix) -> tuple[Array, Array, Array]:
    """Return the stored entries (i, j, distance) of a graph, row by row."""
    if graph.nnz and not (np.isfinite(graph.data).all() and graph.data.min() >= 0):
        raise ValueError("neighbors holds negative or non-finite numbers; pass distances.")
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    return rows, graph.indices.astype(np.int64), graph.data.astype(float)


def _entries_within(graph: sparse.csr_matrix, radius: float) -> sparse.csr_matrix:
    i, j, d = _entries(graph)
    inside = d <= radius
    return sparse.csr_matrix((d[inside], (i[inside], j[inside])), shape=graph.shape)


def _nearest_entries(i: Array, j: Array, d: Array, m: int, k: int, itself: int) -> Neighbors:
    """Return the k nearest points of each of m rows; of them `itself` (0 or 1) is the point."""
    counts = np.bincount(i, minlength=m)
    if counts.min() < k:
        raise ValueError(
            f"neighbors has only {counts.min() - itself} neighbours for row {counts.argmin()}, but "
            f"{k - itself} are needed; pass a smaller n_neighbors, or more neighbours."
        )
    distances, indices = smallest_of_rows(i, j, d, k)
    return Neighbors(np.maximum(distances, 0.0), indices)
