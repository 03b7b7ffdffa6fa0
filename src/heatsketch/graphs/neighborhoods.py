"""Neighbourhood graphs of points, by number of neighbours or by radius.

Vertices are numbered when the graph is built: from 16,384 vertices on so that neighbours have close
numbers, which makes products faster. `Neighborhoods.vertex` maps input points to vertices.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from heatsketch._array import Frame, for_each_tile
from heatsketch._checks import check_number
from heatsketch._typing import Array, Points
from heatsketch.graphs.far_points import warn_of_far_points
from heatsketch.graphs.links import joined, links_of_pairs
from heatsketch.neighbors import Neighbors, Search, distinct_search, search_of
from heatsketch.operators.order import first_inputs, index_type, inverse_permutation, spread
from heatsketch.operators.sparse import is_large, larger_of_both, permuted

_MIN_DISTANCE = float(np.finfo(float).tiny)  # of equal points: sparse sums would drop a zero


class Found(NamedTuple):
    """The neighbours of distinct points, and the search that finds those of other points."""

    points: Points  # (n, d), distinct, in data units
    input_point: Array | None  # (inputs,), its distinct point; None: all are distinct
    search: Search
    nearest: Neighbors | sparse.csr_matrix  # lists (n, k + 1), each point first, or CSR
    recall: dict[str, float]  # of the search and its standard error, if it is approximate


@dataclass(frozen=True, eq=False)
class Neighborhoods:
    """The vertices of a neighbourhood graph, and the rule for the neighbours of new points.

    Points with equal coordinates share a vertex: copies would displace all other neighbours.

    Attributes
    ----------
    frame : Frame
        Of coordinates and distances.
    search : Search
    n_neighbors : int or None
    radius : float or None
        In the frame.
    vertex : array (points,) or None
        The vertex of each input point; None: they have the same numbers.
    recall : dict
        The recall of the search and its standard error, if it is approximate.
    """

    frame: Frame
    search: Search
    n_neighbors: int | None
    radius: float | None
    vertex: Array | None
    recall: dict[str, float]
    _points: Points  # in the numbering of the search, in data units
    _order: Array | None  # (n,), the point of each vertex in the search; None: same

    @property
    def n(self) -> int:
        """Number of vertices."""
        return self.search.n

    @cached_property
    def points(self) -> Points:
        """The vertices in the frame, array or CSR (n, d)."""
        return self.frame(self._points if self._order is None else self._points[self._order])

    @cached_property
    def inputs(self) -> Array | None:
        """The first input point at each vertex, (n,); None: they have the same numbers."""
        return first_inputs(self.vertex)

    @cached_property
    def _vertex_of_searched(self) -> Array | None:
        return None if self._order is None else inverse_permutation(self._order)

    def counts(self, graph: sparse.csr_matrix) -> dict[str, float]:
        """Count neighbours, components and duplicates of a graph without loops; add the recall."""
        found = {
            "mean_neighbors": graph.nnz / self.n,
            "components": connected_components(graph, directed=False)[0],
            "duplicates": 0 if self.vertex is None else len(self.vertex) - self.n,
        }
        return found | self.recall

    def connected(self, graph: sparse.csr_matrix) -> sparse.csr_matrix:
        """Return max(G, Gᵀ), every two components joined by the shortest link, with a warning."""
        return joined(symmetric(graph), lambda labels: links_of_pairs(self.points, labels))

    def points_of(self, vertices: Array) -> Points:
        """Return some vertices in data units (m, d)."""
        return self._points[vertices if self._order is None else self._order[vertices]]

    def rows(self, X: Any, n_neighbors: int | None = None) -> sparse.csr_matrix:
        """Return the distances in the frame from new points to their neighbours, CSR (m, n).

        A point without a neighbour within the radius gets the nearest one, with a warning.

        Parameters
        ----------
        X : array or CSR matrix (m, d)
        n_neighbors : int, optional
            Neighbours of each point; by default as many as each vertex has.
        """
        if self.radius is None:
            found = self.search.query(X, n_neighbors or self.n_neighbors)  # type: ignore[arg-type]
            return _sorted_rows(found, self.n, None, self._vertex_of_searched)
        rows = self.search.within(X, self.radius)
        far = np.flatnonzero(np.diff(rows.indptr) == 0)
        if len(far):
            warn_of_far_points(far)
            nearest = self.search.query(X[far], 1)
            near = rows.tocoo()
            data = np.concatenate([near.data, nearest.distances[:, 0]])
            row, column = np.append(near.row, far), np.append(near.col, nearest.indices[:, 0])
            rows = sparse.csr_matrix((data, (row, column)), shape=rows.shape)
        if self._vertex_of_searched is not None:
            rows.indices = self._vertex_of_searched[rows.indices].astype(rows.indices.dtype)
            rows.has_sorted_indices = False
            rows.sort_indices()
        return rows

    def spread(self, values: Array) -> Array:
        """Return the rows of the vertices as rows of the input points."""
        return spread(values, self.vertex)


def neighborhood_graph(
    X: Points,
    *,
    n_neighbors: int | None = None,
    radius: float | None = None,
    neighbors: Any = None,
    merge: bool = True,
) -> tuple[sparse.csr_matrix, Neighborhoods]:
    """Find the neighbours of every point, and number the vertices.

    Parameters
    ----------
    X : array or CSR matrix (n, d)
        Checked points.
    n_neighbors : int, optional
        Neighbours k of each point; with a warning n - 1 where there are fewer.
    radius : float, optional
        Join points up to this distance instead, in data units.
    neighbors : None, NeighborIndex, transformer or CSR matrix (n, n)
        The search to use: see `neighbors.search_of`.
    merge : bool, default True
        Whether points with equal coordinates share a vertex; those of a given graph never do.

    Returns
    -------
    graph : CSR (vertices, vertices)
        Distances in the frame from each vertex to itself (a stored zero) and to its neighbours;
        sorted by column.
    neighborhoods : Neighborhoods
    """
    frame, k, scaled_radius = Frame.of(X), None, None
    if radius is None:
        k = check_number(n_neighbors, "n_neighbors", low=1, integer=True)
    else:
        radius = check_number(radius, "radius", low=0, open_low=True)
        scaled_radius = float(np.ldexp(radius, -frame.exponent))
    found = find_neighbors(X, frame, k, scaled_radius, neighbors, merge)
    points, vertex, search, nearest, recall = found
    order = search.order() if is_large(search.n) else None
    number = None if order is None else inverse_permutation(order)
    if number is not None:
        vertex = number if vertex is None else number[vertex]
    if isinstance(nearest, Neighbors):
        k = nearest.indices.shape[1] - 1
        graph = _sorted_rows(nearest, search.n, order, number)
    else:
        graph = nearest if order is None else permuted(nearest, order)
    return graph, Neighborhoods(frame, search, k, scaled_radius, vertex, recall, points, order)


def find_neighbors(
    X: Points, frame: Frame, k: int | None, radius: float | None, neighbors: Any, merge: bool = True
) -> Found:
    """Find the k nearest neighbours of every point, or all within a radius in the frame.

    Parameters are those of `neighborhood_graph`.
    """
    k = None if k is None else feasible_neighbors(k, X.shape[0])
    search, distinct = search_of(neighbors, X, frame), None
    found = search.of_points(k + 1) if k else search.points_within(radius or 0.0)
    recall = search.diagnostics(k + 1) if k else {}
    if merge and not sparse.issparse(neighbors) and _has_copies(found):
        X, distinct, search = distinct_search(neighbors, X, frame)
        k = None if k is None else feasible_neighbors(k, search.n)
        found = search.of_points(k + 1) if k else search.points_within(radius or 0.0)
        recall = search.diagnostics(k + 1) if k else {}
    return Found(X, distinct, search, found, recall)


def feasible_neighbors(k: int, n: int) -> int:
    """Return k, or n - 1 with a warning where k >= n."""
    if k < n:
        return k
    warnings.warn(
        f"n_neighbors={k} but X has {n} distinct points; using n_neighbors={n - 1}.", stacklevel=5
    )
    return n - 1


def symmetric(graph: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return max(G, Gᵀ) without loops: an edge where either point is a neighbour of the other."""
    return larger_of_both(off_diagonal(graph))


def off_diagonal(graph: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the stored distances that are not on the diagonal, zeros made positive."""
    edges = graph.tocoo()
    kept = edges.row != edges.col
    entries = (positive(edges.data[kept]), (edges.row[kept], edges.col[kept]))
    return sparse.csr_matrix(entries, shape=edges.shape)


def positive(distances: Array) -> Array:
    """Return distances with zeros replaced by the smallest positive number."""
    return np.maximum(distances, _MIN_DISTANCE)


def _has_copies(found: Neighbors | sparse.csr_matrix) -> bool:
    """Return whether a point is at distance zero from another."""
    if isinstance(found, Neighbors):
        return found.distances.shape[1] > 1 and bool((found.distances[:, 1] == 0).any())
    return int(np.count_nonzero(found.data == 0)) > found.shape[0]


def _sorted_rows(
    found: Neighbors, n: int, order: Array | None, number: Array | None
) -> sparse.csr_matrix:
    """Return lists of neighbours as CSR rows (m, n), sorted by column.

    `order` is the list of each row, `number` the column of each point found; None: the same.
    """
    m, width = found.indices.shape
    distances, columns = np.empty((m, width)), np.empty((m, width), index_type(n))

    def work(rows: slice) -> None:
        lists = rows if order is None else order[rows]
        at = found.indices[lists] if number is None else number[found.indices[lists]]
        by_column = np.argsort(at, axis=1)
        distances[rows] = np.take_along_axis(found.distances[lists], by_column, axis=1)
        columns[rows] = np.take_along_axis(at, by_column, axis=1)

    for_each_tile(work, m)
    starts = np.arange(0, m * width + 1, width)
    return sparse.csr_matrix((distances.ravel(), columns.ravel(), starts), shape=(m, n))
