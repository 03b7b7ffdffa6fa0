"""The neighbourhood graph of distances that the caller has computed, instead of points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from heatsketch._checks import name_rows
from heatsketch._typing import Array
from heatsketch.graphs.neighborhoods import (
    Neighborhoods,
    neighborhood_graph,
    off_diagonal,
    symmetric,
)
from heatsketch.neighbors import Distances


@dataclass(frozen=True, eq=False)
class GivenGraph:
    """What `Neighborhoods` is for points: the vertices of a graph whose edges are given.

    Attributes
    ----------
    n_neighbors : int or None
        Of a graph that lists the same number for each point, this number.
    vertex : array (n,)
        Of each point: its number.
    """

    n_neighbors: int | None
    vertex: Array
    radius: ClassVar[None] = None

    def counts(self, graph: sparse.csr_matrix) -> dict[str, float]:
        """Count the neighbours and components of a graph without loops."""
        count = connected_components(graph, directed=False)[0]
        return {"mean_neighbors": graph.nnz / graph.shape[0], "components": count}

    def connected(self, graph: sparse.csr_matrix) -> sparse.csr_matrix:
        """Return max(G, Gᵀ), or raise if it has several components."""
        count, labels = connected_components(graph, directed=False)
        if count > 1:
            sizes = np.sort(np.bincount(labels))[::-1]
            raise ValueError(
                f"X is a graph of {count} components (sizes {name_rows(sizes)}), and the "
                "distances between components are unknown; pass a connected graph, or all "
                "distances (n, n)."
            )
        return symmetric(graph)

    def rows(self, D: sparse.csr_matrix) -> sparse.csr_matrix:
        """Return the distances from new points to their neighbours, CSR (m, n).

        No more are used than each training point has: a transformer lists one more, which is a
        training point itself.
        """
        counts = np.diff(D.indptr)
        lonely = np.flatnonzero(counts == 0)
        if len(lonely):
            raise ValueError(
                f"Row(s) {name_rows(lonely)} of X have no stored distance; pass distances to "
                "at least one training point."
            )
        if self.n_neighbors is None:
            return D.astype(np.float64)
        row = np.repeat(np.arange(len(counts)), counts)
        order = np.lexsort((D.data, row))
        kept = order[np.arange(D.nnz) - np.repeat(D.indptr[:-1], counts) < self.n_neighbors]
        entries = (D.data[kept].astype(np.float64), (row[kept], D.indices[kept]))
        return sparse.csr_matrix(entries, shape=D.shape)

    def spread(self, values: Array) -> Array:
        """Return the rows of the vertices, which are also those of the input points."""
        return values


def graph_of_distances(
    D: Any, n_neighbors: int, radius: float | None
) -> tuple[sparse.csr_matrix, Neighborhoods | GivenGraph]:
    """Build the graph of given distances.

    Parameters
    ----------
    D : array (n, n) or CSR (n, n)
        Checked distances, of which the nearest of each row, or those within the radius, become
        edges; or the edges themselves.
    n_neighbors, radius
        As of `Isomap`.

    Returns
    -------
    graph : CSR
        Distances between vertices.
    neighborhoods : Neighborhoods or GivenGraph
    """
    if not sparse.issparse(D):
        distances = Distances("precomputed")
        points = distances.points(D, training=True)
        k = n_neighbors if radius is None else None
        return neighborhood_graph(points, n_neighbors=k, radius=radius, neighbors=distances)
    widths = np.unique(np.diff(D.indptr))
    own = np.repeat(np.arange(D.shape[0]), np.diff(D.indptr)) == D.indices
    k = int(widths[-1]) - bool(own.any())
    listed = len(widths) == 1 and k > 0
    return off_diagonal(D.astype(float)), GivenGraph(k if listed else None, np.arange(D.shape[0]))
