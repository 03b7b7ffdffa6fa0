"""The neighbourhood graph of distances that the caller has computed, instead of points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from heatsketch._checks import check_number, name_rows
from heatsketch._tiles import row_tiles
from heatsketch._typing import Array
from heatsketch.graphs.far_points import warn_of_far_points
from heatsketch.graphs.links import joined, links_of_pairs, too_many_pairs
from heatsketch.graphs.neighborhoods import feasible_neighbors, off_diagonal, positive, symmetric


@dataclass(frozen=True, eq=False)
class GivenNeighborhoods:
    """What `Neighborhoods` is for points: joins components, and gives new points neighbours.

    Attributes
    ----------
    n_neighbors : int or None
        Of a graph that lists the same number for each point, this number.
    radius : float or None
    """

    n_neighbors: int | None
    radius: float | None
    _distances: Any  # array (n, n), or CSR of edges
    vertex: ClassVar[None] = None  # equal points are at distance zero, each a vertex

    def counts(self, graph: sparse.csr_matrix) -> dict[str, float]:
        """Count the neighbours and components of a graph without loops."""
        n = graph.shape[0]
        count = connected_components(graph, directed=False)[0]
        return {"mean_neighbors": graph.nnz / n, "components": count}

    def connected(self, graph: sparse.csr_matrix) -> sparse.csr_matrix:
        """Return max(G, Gᵀ), every two components joined by the least distance, with a warning."""
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

        def nearest(members: Array, others: Array) -> tuple[Array, Array]:
            near = D[np.ix_(members, others)].argmin(axis=0)
            return near, D[members[near], others]

        i, j, d = links_of_pairs(labels, nearest)
        if too_many_pairs(labels):  # a spanning tree
            shape, pairs = 2 * (labels.max() + 1,), (labels[i], labels[j])
            tree = minimum_spanning_tree(sparse.csr_matrix((positive(d), pairs), shape))
            kept = np.asarray(tree[pairs]).ravel() > 0
            i, j, d = i[kept], j[kept], d[kept]
        return i, j, d

    def rows(self, D: Any) -> sparse.csr_matrix:
        """Return the distances from new points to their neighbours, CSR (m, n).

        D (m, n) are distances to all points, or edges to some of them, of which no more are used
        than each training point has: a transformer lists one more, which is a training point
        itself. A point without a neighbour within the radius gets the nearest one, with a warning.
        """
        D = D.astype(np.float64)
        if sparse.issparse(D):
            lonely = np.flatnonzero(np.diff(D.indptr) == 0)
            if len(lonely):
                raise ValueError(
                    f"Row(s) {name_rows(lonely)} of X have no stored distance; pass distances to "
                    "at least one training point."
                )
            return D if self.n_neighbors is None else _nearest_stored(D, self.n_neighbors)
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
        Positive distances.
    neighborhoods : GivenNeighborhoods
    """
    if D.max() == 0:
        raise ValueError("Every distance is zero; pass distances between distinct points.")
    D, k = D.astype(np.float64), None
    if sparse.issparse(D):
        k, radius, graph = _neighbors_of_graph(D), None, off_diagonal(D)
    elif radius is not None:
        radius = check_number(radius, "radius", low=0, open_low=True)
        graph = off_diagonal(_entries(D, *np.nonzero(radius >= D)))
    else:
        k = check_number(n_neighbors, "n_neighbors", low=1, integer=True)
        k = feasible_neighbors(k, len(D))
        others = D.copy()
        np.fill_diagonal(others, np.inf)
        graph = _nearest(others, k)
    return graph, GivenNeighborhoods(k, radius, D)


def _nearest(D: Array, k: int) -> sparse.csr_matrix:
    """Return the k smallest entries of each row."""
    tiles = [np.argpartition(D[rows], k - 1, axis=1)[:, :k] for rows in row_tiles(len(D))]
    return _entries(D, np.repeat(np.arange(len(D)), k), np.concatenate(tiles).ravel())


def _entries(D: Array, i: Array, j: Array) -> sparse.csr_matrix:
    return sparse.csr_matrix((positive(D[i, j]), (i, j)), shape=D.shape)


def _neighbors_of_graph(graph: sparse.csr_matrix) -> int | None:
    """Return k if each row lists k neighbours, and perhaps the point itself; else None."""
    widths = np.unique(np.diff(graph.indptr))
    own = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr)) == graph.indices
    k = int(widths[-1]) - bool(own.any())
    return k if len(widths) == 1 and k > 0 else None


def _nearest_stored(rows: sparse.csr_matrix, k: int) -> sparse.csr_matrix:
    """Return the k smallest stored entries of each row, or all where there are fewer."""
    counts = np.diff(rows.indptr)
    row = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((rows.data, row))
    kept = order[np.arange(rows.nnz) - np.repeat(rows.indptr[:-1], counts) < k]
    entries = (rows.data[kept], (row[kept], rows.indices[kept]))
    return sparse.csr_matrix(entries, shape=rows.shape)
