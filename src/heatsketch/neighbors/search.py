"""Searches for neighbours: our own, a transformer like scikit-learn's, or a graph of distances."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone

from heatsketch._array import Frame
from heatsketch._typing import Array, Points
from heatsketch.neighbors.found import Neighbors
from heatsketch.neighbors.index import NeighborIndex
from heatsketch.neighbors.rows import distinct_rows, pair_distances


class Search(Protocol):
    """A search for nearest points, with distances in the units of a frame."""

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


def search_of(neighbors: Any, X: Points, frame: Frame) -> Search:
    """Return the search that `neighbors` specifies.

    Parameters
    ----------
    neighbors : None, NeighborIndex, transformer or CSR matrix (n, n)
        None: a new NeighborIndex. A transformer (scikit-learn's KNeighborsTransformer, or any with
        `fit_transform` and `transform` that return sparse graphs of distances) is cloned and fitted
        to X. A matrix holds distances between rows of X, at least those of the neighbours.
    X : array or CSR matrix (n, d)
        As `in_metric` returns them; so are the points that a transformer gets.
    frame : Frame
        Coordinates in which distances are given.
    """
    if neighbors is None:
        return NeighborIndex(X, frame=frame)
    if isinstance(neighbors, NeighborIndex):
        _check_same_points(neighbors, X)
        return neighbors.in_frame(frame)
    if sparse.issparse(neighbors):
        return _GivenGraph(neighbors, X, frame)
    if hasattr(neighbors, "fit_transform") and hasattr(neighbors, "transform"):
        return _FittedTransformer(neighbors, X, frame)
    raise TypeError(
        f"neighbors is of type {type(neighbors).__name__}; pass a NeighborIndex, a "
        "KNeighborsTransformer or a sparse matrix of distances (n, n)."
    )


def distinct_search(neighbors: Any, X: Points, frame: Frame) -> tuple[Points, Array, Search]:
    """Return the distinct rows of X, which of them each row equals, and the search among them.

    Parameters
    ----------
    neighbors : None, NeighborIndex or transformer
        As in `search_of`; a transformer is fitted again, to the distinct rows.
    X, frame
        As in `search_of`.

    Raises
    ------
    ValueError
        All rows are equal.
    """
    if isinstance(neighbors, NeighborIndex):
        _check_same_points(neighbors, X)
        index, vertex = neighbors.in_frame(frame).distinct()
        distinct: tuple[Points, Array, Search] = index.input_points, vertex, index
    else:
        first, vertex = distinct_rows(frame(X))
        distinct = X[first], vertex, search_of(neighbors, X[first], frame)
    if distinct[2].n < 2:
        raise ValueError(
            "All distances are zero: every row of X is the same point; pass distinct points."
        )
    return distinct


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


class _GraphSearch:
    """Abstract base: a search in a graph of distances between points."""

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

    def __init__(self, graph: Any, X: Points, frame: Frame) -> None:
        graph = sparse.csr_matrix(graph)
        if graph.shape != (X.shape[0], X.shape[0]):
            raise ValueError(
                f"neighbors has shape {graph.shape} but X has {X.shape[0]} points; pass the "
                f"distances between these points, shape ({X.shape[0]}, {X.shape[0]})."
            )
        _refuse_connectivity(graph, X)
        self._graph, self._frame = graph, frame

    def _graph_of(self, x: Points) -> sparse.csr_matrix:
        raise ValueError(
            "neighbors is a graph of the training points and has no distances to new points; pass "
            "a KNeighborsTransformer instead."
        )


class _FittedTransformer(_GraphSearch):
    """A search by a transformer like scikit-learn's, fitted to the points."""

    def __init__(self, transformer: Any, X: Points, frame: Frame) -> None:
        self._transformer, self._frame = clone(transformer), frame
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
