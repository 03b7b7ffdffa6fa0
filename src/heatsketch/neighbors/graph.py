"""Graphs of neighbours: local scales, links that connect components, landmarks, shortest paths.

Vertices are numbered when the graph is built, in an order that depends on the points alone: by a
hash of their content, or, from 16,384 vertices on, so that neighbours have close numbers, which
makes products faster. `Neighborhoods.vertex` maps input points to vertices.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra, minimum_spanning_tree
from scipy.spatial.distance import cdist

from heatsketch._arrays import Array, Points, Rng, on_host
from heatsketch._checks import check_choice, check_in_range, check_number
from heatsketch._messages import DisconnectedWarning, ScaleWarning, name_rows, warn, warn_of_rows
from heatsketch._random import seed_entropy
from heatsketch._threads import filled, for_each_tile, row_tiles, track
from heatsketch.core.blocks import blocks_of, inverse_permutation, is_large, permuted
from heatsketch.neighbors import Distances, NeighborIndex, Neighbors, Search, ordered_search
from heatsketch.neighbors.search import search_by_name

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
    neighbors : None, NeighborIndex, transformer, CSR matrix (n, n) or "pynndescent"
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
    if isinstance(neighbors, str):
        neighbors = search_by_name(neighbors, X, int(n_neighbors or 0))
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
    rows = Neighbors(nearest.distances[order], number[nearest.indices[order]]).as_csr(len(number))
    rows.sort_indices()
    return rows


_SMALL_COMPONENT_FACTOR = 16  # a component of s of n points is small if s² <= 16 n
_NEIGHBORS_AT_A_TIME = 2**22
_PAIRS_PER_POINT = 16


def links_of_points(
    points: Points, labels: Array, distances: Distances | None = None
) -> tuple[Array, Array, Array]:
    """Return the shortest links (i, j, distance) between every two components.

    If these are too many, those of a minimum spanning tree between the components, which make paths
    between clusters longer, as they lead through other clusters.

    Parameters
    ----------
    points : array or CSR matrix (n, d)
    labels : array of int (n,)
        The component of each point, numbered from 0.
    distances : Distances, optional
        By default Euclidean.
    """
    count = int(labels.max()) + 1
    many = count**2 > _PAIRS_PER_POINT * len(labels)  # more than the graph has edges
    if distances is None and many:
        return shortest_links(points, labels)
    labels = np.argsort(np.argsort(-np.bincount(labels)))[labels]  # the largest is number 0
    links = []
    for component in range(count - 1):
        members, others = np.flatnonzero(labels == component), np.flatnonzero(labels > component)
        if distances is None:
            found = NeighborIndex(points[members], recall=1).query(points[others], 1)
            near, d = found.indices[:, 0], found.distances[:, 0]
        else:
            D = distances(points[others], points[members])
            near, d = D.argmin(axis=1), D.min(axis=1)
        order = np.lexsort((d, labels[others]))  # by component, its shortest link first
        shortest = order[np.unique(labels[others][order], return_index=True)[1]]
        links.append((members[near[shortest]], others[shortest], d[shortest]))
    i, j, d = (np.concatenate(side) for side in zip(*links, strict=True))
    if many:
        ends = labels[i], labels[j]
        tree = minimum_spanning_tree(sparse.csr_matrix((d, ends), shape=(count, count)))
        kept = np.asarray(tree[ends]).ravel() > 0
        i, j, d = i[kept], j[kept], d[kept]
    return i, j, d


def shortest_links(points: Points, labels: Array) -> tuple[Array, Array, Array]:
    """Return links (i, j, distance) that join all components (Borůvka's algorithm).

    They are the edges of a minimum spanning tree between the components.

    Parameters
    ----------
    points : array or CSR matrix (n, d)
    labels : array of int (n,)
        The component of each point, numbered from 0.
    """
    found = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    index = NeighborIndex(points, recall=1)
    count = int(labels.max()) + 1
    while count > 1:
        i, j, d = _links(index, labels, count)
        found.append((i, j, d))
        joined = sparse.csr_matrix((np.ones(len(i)), (labels[i], labels[j])), shape=(count, count))
        count, merged = connected_components(joined, directed=False)
        labels = merged[labels]
    i, j, d = (np.concatenate(side) for side in zip(*found, strict=True))
    return i, j, d


def _links(index: NeighborIndex, labels: Array, count: int) -> tuple[Array, Array, Array]:
    """Return the shortest link from every component but the largest to a point outside it."""
    sizes = np.bincount(labels, minlength=count)
    order, ends = np.argsort(labels, kind="stable"), np.cumsum(sizes)
    others = np.delete(np.arange(count), sizes.argmax())
    links = []
    for size in np.unique(sizes[others]):
        components = others[sizes[others] == size]
        members = order[(ends - sizes)[components, None] + np.arange(size)]
        small = size**2 <= _SMALL_COMPONENT_FACTOR * index.n
        at_a_time = max(1, _NEIGHBORS_AT_A_TIME // (size * (size + 1))) if small else 1
        for tile in row_tiles(len(members), at_a_time):
            search = _from_small if small else _from_large
            links.append(search(index, labels, members[tile]))
    i, j, d = (np.concatenate(side) for side in zip(*links, strict=True))
    return i, j, d


def _from_small(index: NeighborIndex, labels: Array, members: Array) -> tuple[Array, Array, Array]:
    """Return the links of components with s points each, members (c, s).

    Among the s + 1 nearest points of a point, itself included, one at least is outside its
    component.
    """
    inside = members.ravel()
    found = index.query(index.points[inside], members.shape[1] + 1)
    outside = labels[found.indices] != labels[inside, None]
    distances = np.where(outside, found.distances, np.inf)
    nearest = distances.argmin(axis=1)
    to = np.take_along_axis(found.indices, nearest[:, None], axis=1).reshape(members.shape)
    d = distances.min(axis=1).reshape(members.shape)
    rows, best = np.arange(len(members)), d.argmin(axis=1)
    return members[rows, best], to[rows, best], d[rows, best]


def _from_large(index: NeighborIndex, labels: Array, members: Array) -> tuple[Array, Array, Array]:
    """Return the link of one component, members (1, s), by a search among all points outside it."""
    inside = members[0]
    outside = np.flatnonzero(labels != labels[inside[0]])
    found = NeighborIndex(index.points[outside], recall=1).query(index.points[inside], 1)
    best = found.distances[:, 0].argmin()
    to = outside[found.indices[best, 0]]
    return inside[[best]], np.array([to]), found.distances[best]


RULES = ("maxmin", "random")

_TILE = 2**14  # points whose distance to one landmark is computed at a time


def choose_landmarks(points: Array, rule: str, count: int, rng: Rng) -> Array:
    """Choose landmarks among the points (n, d) by one of `RULES`: their indices (l,), l <= count.

    These are all points where there are no more than `count`; "maxmin" leaves out copies.
    """
    check_choice(rule, "landmarks", RULES)
    generator = np.random.default_rng(seed_entropy(rng))
    if rule == "maxmin":
        return max_min(points, count, int(generator.integers(len(points))))
    return np.sort(generator.permutation(len(points))[:count])


def max_min(points: Array, count: int, first: int) -> Array:
    """Choose points one after another, each the farthest from those chosen before.

    Parameters
    ----------
    points : array (n, d), float64
    count : int
        Number of points wanted; fewer are chosen where fewer are distinct.
    first : int
        Index of the first point.

    Returns
    -------
    array (l,), l <= count
        Indices in the order of choice. The largest distance of a point to the nearest of them is at
        most twice the smallest possible (Gonzalez 1985).

    Notes
    -----
    Cost: count n d operations.
    """
    nearest = np.full(len(points), np.inf)
    chosen = [first]

    def squares(rows: slice) -> Array:
        return cdist(points[rows], points[chosen[-1:]], "sqeuclidean")[:, 0]

    while len(chosen) < count:
        nearest = np.minimum(nearest, filled(squares, nearest.shape, _TILE))
        farthest = int(nearest.argmax())
        if nearest[farthest] == 0:
            break
        chosen.append(farthest)
    return np.array(chosen)


def check_indices(landmarks: Any, n: int) -> Array:
    """Return landmarks as the distinct indices (l,) of some of n points, or raise."""
    indices = np.asarray(landmarks)
    if indices.size == 0 or indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise ValueError(
            f"landmarks has shape {indices.shape} and dtype {indices.dtype}; pass a rule by "
            "its name, or row indices of X, integers (l,)."
        )
    check_in_range(indices, "landmarks", n)
    if len(np.unique(indices)) < len(indices):
        raise ValueError("landmarks holds a row index more than once; pass each once.")
    return indices


_FEW = 2**17  # vertices of all searches for paths, which wait for no compiler
_VERTICES_AT_A_TIME = 2**15  # of several searches; to hand one to a thread costs time, too


def shortest_paths(graph: Any, sources: Array) -> Array:
    """Return the lengths of the shortest paths from some vertices to all.

    Parameters
    ----------
    graph : CSR (n, n)
        Lengths of edges, symmetric and non-negative; every stored entry is an edge. The work is
        done where it is, on the host or a device.
    sources : array of int (s,)

    Returns
    -------
    array (s, n)
        Infinite where there is no path. A length is the least of the sums along all paths, taken
        from the source on, and so the same number wherever it is found.

    Notes
    -----
    A search by SciPy 1.17 takes 0.7 to 1 of the time on one thread, but it holds the lock of the
    interpreter, so that two do not run in parallel.
    """
    if not sparse.issparse(graph):
        there: Any = blocks_of(graph)
        return np.asarray(there.shortest_paths(graph, sources))
    n = graph.shape[0]
    if len(sources) * n <= _FEW:
        return dijkstra(graph, indices=sources)
    from heatsketch.core.loops import lower  # compiled loops

    lengths = np.full((len(sources), n), np.inf)

    def work(one: slice) -> None:
        for s in range(one.start, one.stop):
            lower(graph.indptr, graph.indices, graph.data, sources[s], lengths[s])

    bar = track(None, "shortest paths", len(sources), "starts")
    for_each_tile(work, len(sources), max(1, _VERTICES_AT_A_TIME // n), bar)
    return lengths


def spread_vertices(graph: sparse.csr_matrix, count: int, start: int = 0) -> Array:
    """Choose vertices spread over a graph: each the farthest from those chosen before (max-min).

    The first is the farthest from `start`. Distances are lengths of shortest paths.

    Parameters
    ----------
    graph : CSR (n, n)
        As for `shortest_paths`; connected.
    count : int
        At most n.
    start : int
        A vertex.

    Returns
    -------
    array of int (count,)
        Distinct vertices.

    Notes
    -----
    Cost: a search visits only vertices nearer to its start than to those before, so that all take
    about as long as log(count) full ones.
    """
    from heatsketch.core.loops import lower  # compiled loops

    nearest = shortest_paths(graph, np.array([start]))[0]
    chosen = np.empty(count, np.int64)
    for m in range(count):
        chosen[m] = nearest.argmax()
        if m == 0:
            nearest[:] = np.inf
        lower(graph.indptr, graph.indices, graph.data, chosen[m], nearest)
        nearest[chosen[m]] = -1.0  # not chosen again, even if others are at distance 0
    return chosen
