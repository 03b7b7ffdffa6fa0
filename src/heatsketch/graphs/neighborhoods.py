"""Neighbourhood graphs of points, by number of neighbours or by radius.

Vertices are numbered when the graph is built, in an order that depends on the points alone: by a
hash of their content, or, from 16,384 vertices on, so that neighbours have close numbers, which
makes products faster. `Neighborhoods.vertex` maps input points to vertices.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from heatsketch._exceptions import DisconnectedWarning, ScaleWarning, name_rows, warn, warn_of_rows
from heatsketch._tensors import on_host
from heatsketch._typing import Array, Points
from heatsketch._validation import check_number
from heatsketch.backend import blocks_of
from heatsketch.graphs.links import links_of_points
from heatsketch.neighbors import Neighbors, Search, ordered_search
from heatsketch.operators.csr import inverse_permutation, is_large, permuted

HARDLY_ANY = 1e-6  # affinity at the scale of the training points
_MIN_DISTANCE = float(np.finfo(float).tiny)  # of equal points: sparse sums would drop a zero
_MOST_TIED, _LOOKED_AT = 0.5, 512  # of the points, whose last neighbours are equally far
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Neighborhoods:
    """The vertices of a neighbourhood graph, and the rule for the neighbours of new points.

    Points with equal coordinates share a vertex: copies would displace all other neighbours.

    Attributes
    ----------
    search : Search
        Among the vertices in an order that looks random and depends on the points alone.
    by_content : array (n,)
        The vertices in this order.
    n_neighbors : int or None
    radius : float or None
    vertex : array (points,)
        The vertex of each input point.
    recall : dict
        The recall of the search and its standard error, if it is approximate.
    """

    search: Search
    by_content: Array
    n_neighbors: int | None
    radius: float | None
    vertex: Array
    recall: dict[str, float]

    @cached_property
    def points(self) -> Points:
        """The vertices, array or CSR (n, d), in float64."""
        points = self.search.points[inverse_permutation(self.by_content)]
        return points.astype(np.float64, copy=False)

    def counts(self, graph: sparse.csr_matrix) -> dict[str, float]:
        """Count neighbours, components and duplicates of a graph without loops; add the recall."""
        found = {
            "mean_neighbors": graph.nnz / self.search.n,
            "components": connected_components(graph, directed=False)[0],
            "duplicates": len(self.vertex) - self.search.n,
        }
        return found | self.recall

    def connected(self, graph: sparse.csr_matrix) -> sparse.csr_matrix:
        """Return max(G, Gᵀ), every two components joined by the shortest link, with a warning.

        Raises ValueError where only the distances in a graph are known.
        """
        graph = symmetric(graph)
        count, labels = connected_components(graph, directed=False)
        if count == 1:
            return graph
        sizes = np.sort(np.bincount(labels[self.vertex]))[::-1]
        if self.search.columns is not None:
            raise ValueError(
                f"X is a graph of {count} components (sizes {name_rows(sizes)}) without a distance "
                "between them; pass more neighbours of each point, or all distances as an array."
            )
        warn(
            DisconnectedWarning,
            f"The neighbourhood graph has {count} components (sizes {name_rows(sizes)}); they are "
            "joined by shortest links, so distances between components are inaccurate. Raise "
            "n_neighbors or radius to connect them.",
        )
        i, j, d = links_of_points(self.points, labels, self.search.distances)
        links = sparse.csr_matrix((positive(d), (i, j)), shape=graph.shape)
        return sparse.csr_matrix(graph.maximum(links).maximum(links.T))

    def rows(self, X: Any, n_neighbors: int | None = None) -> sparse.csr_matrix:
        """Return the distances from new points to their neighbours, CSR (m, n).

        A point without a neighbour within the radius gets the nearest one, with a warning.

        Parameters
        ----------
        X : array or CSR matrix (m, d)
        n_neighbors : int, optional
            Neighbours of each point; by default as many as each vertex has.
        """
        if self.radius is None:
            nearest = self.search.query(X, n_neighbors or self.n_neighbors)  # type: ignore[arg-type]
            return _as_csr(nearest, np.arange(len(nearest.indices)), self.by_content)
        rows = self.search.within(X, self.radius)
        far = np.flatnonzero(np.diff(rows.indptr) == 0)
        if len(far):
            warn_of_far_points(far)
            nearest = self.search.query(X[far], 1)
            near = rows.tocoo()  # sums of matrices would drop zeros
            data = np.append(near.data, nearest.distances)
            row, column = np.append(near.row, far), np.append(near.col, nearest.indices)
            rows = sparse.csr_matrix((data, (row, column)), shape=rows.shape)
        rows.indices = self.by_content[rows.indices].astype(rows.indices.dtype)
        rows.has_sorted_indices = False
        rows.sort_indices()
        return rows

    def spread(self, values: Array) -> Array:
        """Return the rows of the vertices as rows of the input points."""
        return np.asarray(values[self.vertex])


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
        Join points up to this distance instead.
    neighbors : None, NeighborIndex, transformer or CSR matrix (n, n)
        The search to use: see `neighbors.ordered_search`.
    merge : bool, default True
        Whether points with equal coordinates share a vertex; those of a given graph never do.

    Returns
    -------
    graph : CSR (vertices, vertices)
        Distances from each vertex to itself (a stored zero) and to its neighbours;
        sorted by column.
    neighborhoods : Neighborhoods
    """
    if radius is not None:
        radius = check_number(radius, "radius", low=0, open_low=True)
    else:
        n_neighbors = check_number(n_neighbors, "n_neighbors", low=1, integer=True)
    search, _, place = ordered_search(neighbors, X, join=merge)
    # Vertex v is the point order[v] of the search, whose points are in the order of their content.
    order = search.order() if is_large(search.n) else None
    if order is None:
        order = np.arange(search.n, dtype=sparse.get_index_dtype(maxval=search.n))
    number = inverse_permutation(blocks_of(place).native(order))
    k, recall = None, {}
    if radius is None:
        k = feasible_neighbors(int(n_neighbors), search.n)  # type: ignore[arg-type]
        nearest = search.query(None, k + 1)
        recall = search.diagnostics(k + 1)
        graph = _as_csr(nearest, order, number)
        _warn_of_ties(search, nearest)
    else:
        graph = permuted(search.within(None, radius), order)
    return graph, Neighborhoods(search, number, k, radius, number[place], recall)


def _warn_of_ties(search: Search, nearest: Neighbors) -> None:
    """Warn where for most points the last neighbour is one of several equally far."""
    k = nearest.indices.shape[1] - 1
    if not search.of_coordinates or not 1 < k < search.n - 1:
        return
    near = nearest.distances[:, k - 1]
    tied = (near > 0) & (nearest.distances[:, k] <= near * (1 + _ROUNDING))
    if int(tied.sum()) <= _MOST_TIED * len(tied):
        return
    last = on_host(search.query(search.points[:_LOOKED_AT], k + 2).distances[:, k:])
    part = float(np.mean(last[:, 1] <= last[:, 0] * (1 + _ROUNDING)))
    if part > _MOST_TIED:
        warn(
            ScaleWarning,
            f"n_neighbors={k}, but neighbours number {k} and {k + 1} of {part:.0%} of the points "
            "are equally far, so that the points alone do not say which are neighbours (ties go by "
            "a hash of the coordinates). Pass affinity='dense' or 'radius' where there is one, "
            "another n_neighbors, or features with more values.",
        )


def warn_of_far_points(rows: Array) -> None:
    """Warn that these new points get their nearest training point as their only neighbour."""
    warn_of_rows(
        rows,
        "are too far from all training points; each gets its nearest training point as its only "
        "neighbour.",
    )


def warn_of_faint_points(rows: Array) -> None:
    """Warn that these new points, if any, rest on hardly any affinity."""
    if len(rows):
        warn_of_rows(
            rows,
            "have hardly any affinity to the training points at the scale learned (below 1e-6): "
            "their coordinates are extrapolated from the nearest training points, which may be far "
            "away. See novelty(X), or leave them out.",
        )


def feasible_neighbors(k: int, n: int) -> int:
    """Return k, or n - 1 with a warning where k >= n."""
    if k < n:
        return k
    warn(UserWarning, f"n_neighbors={k} but X has {n} distinct points; using n_neighbors={n - 1}.")
    return n - 1


def scale_order(k: int) -> int:
    """Return the number of the neighbour whose distance is the local scale: half of k."""
    return max(1, k // 2)


def local_scales(distances: Array, order: int | None, vertex: Array | None = None) -> Array:
    """Return the scales (m,) of rows of distances to neighbours (m, k); raise if one is 0.

    The distance number `order`, that of a point to itself being number 0; None: √(2 mean of d²)
    over all but this one. `vertex` (points,): the row of each input point, for messages.
    """
    blocks = blocks_of(distances)
    if order is None:
        others = np.sort(blocks.host(distances), axis=1)[:, 1:]
        scales = blocks.native(np.sqrt(2 * np.mean(others**2, axis=1)))
    else:
        scales = blocks.smallest(distances, order)
    bad = blocks.where(scales == 0)
    if len(bad):
        bad = bad if vertex is None else np.flatnonzero(np.isin(on_host(vertex), bad))
        raise ValueError(
            f"Around point(s) {name_rows(bad)} distances are too small for float64 relative to the "
            "size of X; leave out points that are very far away."
        )
    return scales


def symmetric(graph: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return max(G, Gᵀ) without loops: an edge where either point is a neighbour of the other."""
    edges = off_diagonal(graph)
    return sparse.csr_matrix(edges.maximum(edges.T))


def off_diagonal(graph: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the stored distances that are not on the diagonal, zeros made positive."""
    edges = graph.tocoo()
    kept = edges.row != edges.col
    entries = (positive(edges.data[kept]), (edges.row[kept], edges.col[kept]))
    return sparse.csr_matrix(entries, shape=edges.shape)


def positive(distances: Array) -> Array:
    """Return distances with zeros replaced by the smallest positive number."""
    return np.maximum(distances, _MIN_DISTANCE)


def _as_csr(nearest: Neighbors, order: Array, number: Array) -> sparse.csr_matrix:
    """Return lists of neighbours as CSR rows (m, n) where they are, sorted by column.

    `order` (m,) is the list of each row, `number` (n,) the column of each point.
    """
    order, number = map(blocks_of(nearest.indices).native, (order, number))
    lists = Neighbors(nearest.distances[order], number[nearest.indices[order]])
    rows = lists.as_csr(len(number))
    rows.sort_indices()
    return rows
