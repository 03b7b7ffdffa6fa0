"""The shortest links that join the components of a graph of points."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from heatsketch._tiles import row_tiles
from heatsketch._typing import Array, Points
from heatsketch.neighbors import Distances, NeighborIndex

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
