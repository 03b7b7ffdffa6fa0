"""The neighbourhood graph of distances that the caller has computed, instead of points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from heatsketch._array import Frame, row_tiles
from heatsketch._checks import check_number, name_rows
from heatsketch._typing import Array
from heatsketch.graphs.far_points import warn_of_far_points
from heatsketch.graphs.links import joined
from heatsketch.graphs.neighborhoods import feasible_neighbors, off_diagonal, positive, symmetric


@dataclass(frozen=True, eq=False)
class GivenNeighborhoods:
    """What `Neighborhoods` is for points: joins components, and gives new points neighbours.

    Attributes
    ----------
    frame : Frame
    n_neighbors : int or None
    radius : float or None
        In the frame.
    """

    frame: Frame
    n_neighbors: int | None
    radius: float | None
    _distances: Any  # array (n, n), or CSR of edges, in the frame
    vertex: ClassVar[None] = None  # equal points are at distance zero, each a vertex

    def counts(self, graph: sparse.csr_matrix) -> dict[str, float]:
        """Count the neighbours and components of a graph without loops."""
        n = graph.shape[0]
        count = connected_components(graph, directed=False)[0]
        return {"mean_neighbors": graph.nnz / n, "components": count}

    def connected(self, graph: sparse.csr_matrix) -> sparse.csr_matrix:
        """Return max(G, Gᵀ), its components joined by the shortest distances, with a warning."""
        return joined(symmetric(graph), self._links)

    def _links(self, labels: Array) -> tuple[Array, Array, Array]:
        D = self._distances
        if sparse.issparse(D):
            sizes = np.sort(np.bincount(labels))[::-1]
            raise ValueError(
                f"X is a graph of {len(sizes)} components (sizes {name_rows(sizes)}), and the "
                "distances between components are unknown; pass a connected graph, or all "
                "distances (n, n)."
            )
        i, j = _shortest_between(D, labels)
        return i, j, D[i, j]

    def rows(self, D: Any) -> sparse.csr_matrix:
        """Return the distances in the frame from new points to their neighbours, CSR (m, n).

        D (m, n) are distances to all points, or edges to some of them. A point without a neighbour
        within the radius gets the nearest one, with a warning.
        """
        D = self.frame(D)
        if sparse.issparse(D):
            lonely = np.flatnonzero(np.diff(D.indptr) == 0)
            if len(lonely):
                raise ValueError(
                    f"Row(s) {name_rows(lonely)} of X have no stored distance; pass distances to "
                    "at least one training point."
                )
            return D
        if self.radius is None:
            assert self.n_neighbors is not None
            return _nearest(D, self.n_neighbors)
        kept = self.radius >= D
        far = np.flatnonzero(~kept.any(axis=1))
        if len(far):
            warn_of_far_points(far)
            kept[far, D[far].argmin(axis=1)] = True
        return _entries(D, *np.nonzero(kept))

    def spread(self, values: Array) -> Array:
        """Return the rows of the vertices, which are also those of the input points."""
        return values


def graph_of_distances(
    D: Any, n_neighbors: int, radius: float | None
) -> tuple[sparse.csr_matrix, GivenNeighborhoods]:
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
    graph : CSR (n, n)
        Positive distances in the frame.
    neighborhoods : GivenNeighborhoods
    """
    largest = float(D.max())
    if largest == 0:
        raise ValueError("Every distance is zero; pass distances between distinct points.")
    frame = Frame(int(np.frexp(largest)[1]), None)
    D, k, scaled_radius = frame(D), None, None
    if sparse.issparse(D):
        graph = off_diagonal(D)
    elif radius is not None:
        radius = check_number(radius, "radius", low=0, open_low=True)
        scaled_radius = float(np.ldexp(radius, -frame.exponent))
        graph = off_diagonal(_entries(D, *np.nonzero(scaled_radius >= D)))
    else:
        k = check_number(n_neighbors, "n_neighbors", low=1, integer=True)
        k = feasible_neighbors(k, len(D))
        graph = _others(D, k)
    return graph, GivenNeighborhoods(frame, k, scaled_radius, D)


def _others(D: Array, k: int) -> sparse.csr_matrix:
    """Return the k smallest entries of each row that are not on the diagonal."""
    D = D.copy()
    np.fill_diagonal(D, np.inf)
    return _nearest(D, k)


def _nearest(D: Array, k: int) -> sparse.csr_matrix:
    """Return the k smallest entries of each row."""
    m = len(D)
    columns = np.empty((m, k), np.int64)
    for rows in row_tiles(m):
        columns[rows] = np.argpartition(D[rows], k - 1, axis=1)[:, :k]
    return _entries(D, np.repeat(np.arange(m), k), columns.ravel())


def _entries(D: Array, i: Array, j: Array) -> sparse.csr_matrix:
    return sparse.csr_matrix((positive(D[i, j]), (i, j)), shape=D.shape)


def _shortest_between(D: Array, labels: Array) -> tuple[Array, Array]:
    """Return the pairs (i, j) that form a minimum spanning tree between components."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(labels.max() + 1))
    components = np.split(order, starts[1:])
    between = np.empty((len(components), len(components)))
    for a, members in enumerate(components):
        between[a] = np.minimum.reduceat(D[members].min(axis=0)[order], starts)
    pairs = []
    for a, b in np.argwhere(minimum_spanning_tree(positive(between)).toarray()):
        block = D[np.ix_(components[a], components[b])]
        i, j = np.unravel_index(block.argmin(), block.shape)
        pairs.append((components[a][i], components[b][j]))
    i, j = np.transpose(pairs)
    return i, j
