"""The neighbourhood graph of points, by number (k) or by radius (ε), and the rows of new points."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from heatsketch._array import Frame
from heatsketch._checks import DisconnectedWarning, ScaleWarning, check_number, name_rows
from heatsketch._typing import Array, Points
from heatsketch.graphs.links import shortest_links
from heatsketch.neighbors import Neighbors, Search, distinct_search, search_of


@dataclass(frozen=True, eq=False)
class Neighborhoods:
    """The neighbours of every point, and what finds those of new ones.

    Points of equal coordinates share a vertex: copies would crowd out all other neighbours.

    Attributes
    ----------
    points : array or CSR matrix (n, d)
        The vertices, in the frame.
    graph : CSR (n, n)
        Distances in the frame from each vertex to its neighbours, itself not among them; a
        distance of zero, between vertices that a given graph makes equal, is the least number.
    frame : Frame
    search : Search
    n_neighbors : int or None
    radius : float or None
        In the frame.
    vertex : array (points,) or None
        The vertex of each input point, where some share one.
    """

    points: Points
    graph: sparse.csr_matrix
    frame: Frame
    search: Search
    n_neighbors: int | None
    radius: float | None
    vertex: Array | None

    @property
    def n(self) -> int:
        """Number of vertices."""
        return self.graph.shape[0]

    @property
    def diagnostics(self) -> dict[str, float]:
        """Counts, and the recall of the search where it is approximate."""
        found = {
            "mean_neighbors": self.graph.nnz / self.n,
            "components": connected_components(self.graph, directed=False)[0],
            "duplicates": 0 if self.vertex is None else len(self.vertex) - self.n,
        }
        return found | self.search.diagnostics

    def symmetric(self) -> sparse.csr_matrix:
        """Return max(G, Gᵀ): an edge where either end has the other as a neighbour."""
        return sparse.csr_matrix(self.graph.maximum(self.graph.T))

    def connected(self) -> sparse.csr_matrix:
        """Return max(G, Gᵀ), its components joined by the shortest links, with a warning."""
        graph = self.symmetric()
        count, labels = connected_components(graph, directed=False)
        if count == 1:
            return graph
        sizes = np.sort(np.bincount(labels))[::-1]
        warnings.warn(
            f"The neighbourhood graph falls into {count} components (sizes {name_rows(sizes)}); "
            "they are joined by the shortest links between them, so distances between components "
            "are rough. Raise n_neighbors or radius to connect them.",
            DisconnectedWarning,
            stacklevel=5,
        )
        i, j, d = shortest_links(self.points, labels)
        links = sparse.csr_matrix((positive(d), (i, j)), shape=graph.shape)
        return sparse.csr_matrix(graph.maximum(links).maximum(links.T))

    def rows(self, X: Any) -> sparse.csr_matrix:
        """Return the distances in the frame from new points to their neighbours, CSR (m, n).

        A point with no neighbour within the radius is given the nearest one, with a warning.
        """
        if self.n_neighbors is not None:
            return _as_rows(self.search.query(X, self.n_neighbors), self.n)
        assert self.radius is not None
        rows = self.search.within(X, self.radius)
        far = np.flatnonzero(np.diff(rows.indptr) == 0)
        if len(far) == 0:
            return rows
        warnings.warn(
            f"{len(far)} new point(s) (rows {name_rows(far)}) have no training point within the "
            "radius; each is given its nearest one as only neighbour.",
            ScaleWarning,
            stacklevel=4,
        )
        found = self.search.query(X[far], 1)
        near = rows.tocoo()
        data = np.concatenate([near.data, found.distances[:, 0]])
        row, column = np.append(near.row, far), np.append(near.col, found.indices[:, 0])
        return sparse.csr_matrix((data, (row, column)), shape=rows.shape)

    def spread(self, values: Array) -> Array:
        """Return the rows of the vertices as rows of the input points."""
        return values if self.vertex is None else values[self.vertex]


def neighborhoods(
    X: Points,
    *,
    n_neighbors: int | None = None,
    radius: float | None = None,
    neighbors: Any = None,
) -> Neighborhoods:
    """Find the neighbours of every point.

    Parameters
    ----------
    X : array or CSR matrix (n, d)
        Checked points.
    n_neighbors : int, optional
        The k nearest others of each point.
    radius : float, optional
        All others within this distance, in data units, instead.
    neighbors : None, NeighborIndex, transformer or CSR matrix (n, n)
        Where they come from: see `neighbors.search_of`.
    """
    frame = Frame.of(X)
    if radius is not None:
        radius = check_number(radius, "radius", low=0, open_low=True)
        reach: float | None = float(np.ldexp(radius, -frame.exponent))
        k = None
    else:
        k, reach = check_number(n_neighbors, "n_neighbors", low=1, integer=True), None
    search = search_of(neighbors, X, frame)
    graph = _graph(search, X, _feasible(k, X.shape[0]), reach)
    vertex = None
    if not sparse.issparse(neighbors) and graph.nnz and graph.data.min() <= _LEAST:
        X, vertex, search = distinct_search(neighbors, X, frame)
        graph = _graph(search, X, _feasible(k, search.n), reach)
    k = None if k is None else min(k, X.shape[0] - 1)
    return Neighborhoods(frame(X), graph, frame, search, k, reach, vertex)


_LEAST = float(np.finfo(float).tiny)


def _graph(search: Search, X: Points, k: int | None, radius: float | None) -> sparse.csr_matrix:
    if k is None:
        assert radius is not None
        rows = search.within(X, radius)
    else:
        rows = _as_rows(search.query(X, k + 1), search.n)
    return off_diagonal(rows)


def off_diagonal(graph: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the stored distances that are not on the diagonal, none of them zero."""
    edges = graph.tocoo()
    kept = edges.row != edges.col
    entries = (positive(edges.data[kept]), (edges.row[kept], edges.col[kept]))
    return sparse.csr_matrix(entries, shape=edges.shape)


def _as_rows(found: Neighbors, n: int) -> sparse.csr_matrix:
    m, k = found.indices.shape
    starts = np.arange(0, m * k + 1, k)
    return sparse.csr_matrix((found.distances.ravel(), found.indices.ravel(), starts), shape=(m, n))


def positive(distances: Array) -> Array:
    """Return distances with the least number for zero, which sparse sums and maxima would drop."""
    return np.maximum(distances, _LEAST)


def _feasible(k: int | None, n: int) -> int | None:
    if k is not None and k >= n:
        raise ValueError(
            f"n_neighbors={k} but X has {n} distinct points; pass n_neighbors <= {n - 1}."
        )
    return k
