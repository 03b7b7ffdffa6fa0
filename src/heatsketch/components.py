"""Connected components of an affinity, points that stand alone, and what would connect them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import linkage
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import squareform

from heatsketch._array import Frame, filled, for_each_tile, row_tiles
from heatsketch._checks import check_number, check_points
from heatsketch._typing import Array, Points
from heatsketch.affinity import WIDE_CUT
from heatsketch.bandwidth import in_data_units
from heatsketch.neighbors import NeighborIndex, distinct_rows
from heatsketch.neighbors.links import shortest_links
from heatsketch.operators import Dense, Kernel, Operator, Sparse
from heatsketch.operators.base import Reordered, put_rows
from heatsketch.operators.kernel import squared_distances, squared_norms

NEGLIGIBLE = 1e-14  # share of a row sum below which an affinity changes nothing in float64
_STRONG = 10  # strongest links looked at first
_COLUMNS = 256
EXACT_POINTS = 4096  # all pairs are looked at up to here for what would connect them
_TREE_NEIGHBORS = 15  # beyond, so many neighbours of each
_ROUNDING = 1e-7  # of ε, upwards, so that it does connect


def connecting_epsilon(X: Any, *, cut: float = WIDE_CUT) -> float:
    """Compute the smallest ε at which the Gaussian affinity of points holds together.

    With `affinity="radius"` points are joined up to the distance cut √(ε/2). All hang together once
    this reaches the longest edge L of the minimum spanning tree: ε = 2 (L / cut)².

    Use it for a lower bound of ε ("as small as possible without making the generator reducible",
    *Linear and nonlinear dimensionality reduction*, §9.7). Just above it the parts hang together by
    a thread, and one outlier decides it: where it is far above `ksum(X).epsilon`, leave out points
    or diffuse on each part.

    Parameters
    ----------
    X : array or CSR matrix (n, d)
    cut : float > 0, default 5
        As in `Diffusion.from_points`: affinities below exp(-cut²/2) do not count. For
        `affinity="dense"`, where those below 1e-14 of a row sum do not, 7 is enough up to 1,000
        points and 6 up to 100,000.

    Returns
    -------
    float
        In squared data units; 1e-7 above the exact number, so that it does connect.

    Raises
    ------
    ValueError
        All points are the same; ε is beyond float64.

    Notes
    -----
    Cost: n² d operations and 24 n² bytes up to 4,096 points. Beyond, a spanning tree of the 15
    nearest neighbours is improved: while the parts that its longest edge joins have a shorter link,
    this takes its place. That is some searches of nearest neighbours, exact ones.

    Examples
    --------
    >>> import heatsketch as hs
    >>> round(hs.connecting_epsilon([[0.0], [1.0], [3.0]], cut=2.0), 6)
    2.0
    """
    check_number(cut, "cut", low=0, open_low=True)
    X = check_points(X)
    frame = Frame.of(X)
    points = frame(X)
    square = (
        _longest_square(points)
        if points.shape[0] <= EXACT_POINTS
        else _longest_square_of_many(points)
    )
    if square == 0:
        raise ValueError("All points are the same; pass points that differ.")
    return in_data_units(frame, 2 * square / cut**2 * (1 + _ROUNDING))


def dense_cut(n: int) -> float:
    """Return the cut beyond which affinities of n points are negligible in any row."""
    return float(np.sqrt(-2 * np.log(NEGLIGIBLE * n)))


def advice(
    labels: Array,
    *,
    X: Any,
    affinity: str,
    epsilon: float | str,
    n_neighbors: int,
    neighbors: Any,
    cut: float,
    vertex: Array | None,
) -> str:
    """Say what would connect an affinity of points that falls into the parts `labels`."""
    n = X.shape[0]
    if affinity == "knn":
        if n > EXACT_POINTS or not (neighbors is None or isinstance(neighbors, NeighborIndex)):
            return "Raise n_neighbors to connect them"
        points = X if vertex is None else X[np.unique(vertex, return_index=True)[1]]
        wanted = connecting_neighbors(points, labels)
        if wanted > n_neighbors:
            return f"With n_neighbors >= {wanted} the graph of neighbours is connected"
        return "Neighbours link them, but too faintly: raise epsilon"
    if epsilon == "self-tuning":
        return "Raise n_neighbors to connect them"
    if n > EXACT_POINTS:
        return "heatsketch.connecting_epsilon tells which epsilon would connect them"
    try:
        wide = dense_cut(n)
        needed = connecting_epsilon(X, cut=min(cut, wide) if affinity == "radius" else wide)
    except ValueError:  # beyond float64
        return "No epsilon would connect them"
    return f"epsilon >= {_upwards(needed)} connects them"


def _upwards(value: float) -> str:
    """Write a number with four digits, rounded up."""
    unit = 10.0 ** (np.floor(np.log10(value)) - 3)
    return f"{np.ceil(value / unit) * unit:.4g}"


def _squared_distances(points: Points) -> Array:
    n = points.shape[0]
    return filled(lambda rows: squared_distances(points[rows], points, direct=False), (n, n))


def _longest_square(points: Points) -> float:
    """Return the square of the longest edge of the minimum spanning tree, from all pairs."""
    pairs = squareform(_squared_distances(points), checks=False)
    return float(linkage(pairs, "single")[-1, 2])  # single linkage merges along that tree


def _longest_square_of_many(points: Points) -> float:
    """Return the same from the tree of a neighbour graph, which its cuts correct.

    An edge that is the shortest link between the two parts it joins is no longer than the longest
    of any other tree, which must join them too.
    """
    points = points[distinct_rows(points)[0]]  # copies would be all the neighbours there are
    n = points.shape[0]
    if n <= EXACT_POINTS:
        return _longest_square(points)
    edges = _tree_of_neighbors(points)
    while True:
        longest = int(np.argmax(edges[2]))
        rest = [np.delete(side, longest) for side in edges]
        links = sparse.csr_matrix((np.ones(n - 2), (rest[0], rest[1])), shape=(n, n))
        link = shortest_links(points, connected_components(links, directed=False)[1])
        if link[2][0] >= edges[2][longest]:
            return float(edges[2][longest] ** 2)
        edges = [np.append(side, new) for side, new in zip(rest, link, strict=True)]


def _tree_of_neighbors(points: Points) -> list[Array]:
    """Return a spanning tree (i, j, length) of nearest neighbours and links between their parts."""
    n, k = points.shape[0], _TREE_NEIGHBORS + 1
    found = NeighborIndex(points).query(points, k)
    starts = np.arange(0, n * k + 1, k)
    graph = sparse.csr_matrix((found.distances.ravel(), found.indices.ravel(), starts), (n, n))
    tree = minimum_spanning_tree(graph).tocoo()
    links = shortest_links(points, connected_components(tree, directed=False)[1])
    own = (tree.row, tree.col, tree.data)
    return [np.concatenate(sides) for sides in zip(own, links, strict=True)]


def connecting_neighbors(points: Points, labels: Array) -> int:
    """Return how many neighbours of each make a graph of points (n, d) connected.

    `labels` (n,) are parts that are connected already. Each of several points equally far takes a
    place, so that the number is enough whichever of them is found first.
    """
    points = Frame.of(points)(points)
    by_part = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[by_part], np.arange(labels.max() + 1))
    norms = squared_norms(points)
    rounding = 16 * np.finfo(float).eps * (norms + norms.max())
    ranks = np.empty((points.shape[0], len(starts)), np.int64)

    def work(rows: slice) -> None:
        d2 = squared_distances(points[rows], points, direct=False)
        reach = np.minimum.reduceat(d2[:, by_part], starts, axis=1) + rounding[rows, None]
        d2.sort(axis=1)
        for i, row in enumerate(d2):
            ranks[rows.start + i] = np.searchsorted(row, reach[i], side="right") - 1  # less itself

    for_each_tile(work, points.shape[0])
    between = np.minimum.reduceat(ranks[by_part], starts, axis=0)
    between = np.minimum(between, between.T)  # an edge found from either end
    np.fill_diagonal(between, 0)
    return int(linkage(squareform(between), "single")[-1, 2])


def component_labels(K: Operator) -> Array | None:
    """Return the component of each point (n,), numbered from 0, or None where K cannot tell."""
    if isinstance(K, Reordered):
        labels = component_labels(K.A)
        return None if labels is None else _numbered(put_rows(labels, K.order))
    if isinstance(K, Sparse):
        return _components_of_graph(K.matrix)
    if isinstance(K, Dense):
        return _merge(K, _components_of(*_strongest_entries(K.matrix)))
    if isinstance(K, Kernel):
        return _merge(K, _components_of(*_nearest_entries(K)))
    return None


def isolated_points(K: Operator, row_sums: Array) -> Array:
    """Return the points whose affinity to all others together is negligible."""
    if isinstance(K, Reordered):
        return np.sort(K.order[isolated_points(K.A, row_sums[K.order])])
    if isinstance(K, (Sparse, Dense)):
        diagonal = np.asarray(K.matrix.diagonal())
    elif isinstance(K, Kernel):
        diagonal = np.ones(K.n)
    else:
        return np.empty(0, dtype=int)
    return np.flatnonzero(row_sums - diagonal <= 1e-12 * row_sums)


def _numbered(labels: Array) -> Array:
    """Number the components in the order in which their first points come."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), labels.dtype)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def _components_of_graph(matrix: sparse.csr_matrix) -> Array:
    row_sums = np.asarray(matrix.sum(axis=1)).ravel()
    if matrix.nnz and matrix.data.min() <= NEGLIGIBLE * row_sums.max():
        entries = matrix.tocoo()
        kept = entries.data > NEGLIGIBLE * row_sums[entries.row]
        return _components_of(entries.row[kept], entries.col[kept], matrix.shape[0])
    # Of a symmetric pattern strong components are all there are, and need no transpose.
    return connected_components(matrix, directed=True, connection="strong")[1]


def _components_of(rows: Array, columns: Array, n: int) -> Array:
    links = sparse.csr_matrix((np.ones(len(rows), dtype=bool), (rows, columns)), shape=(n, n))
    return connected_components(links, directed=False)[1]


def _strongest_entries(matrix: Array) -> tuple[Array, Array, int]:
    n = len(matrix)
    k = min(_STRONG, n - 1)
    rows, columns = [], []
    for tile in row_tiles(n):
        block = matrix[tile]
        strongest = np.argpartition(block, n - 1 - k, axis=1)[:, n - 1 - k :]
        values = np.take_along_axis(block, strongest, axis=1)
        kept = values > NEGLIGIBLE * block.sum(axis=1, keepdims=True)
        rows.append(tile.start + np.nonzero(kept)[0])
        columns.append(strongest[kept])
    return np.concatenate(rows), np.concatenate(columns), n


def _nearest_entries(K: Kernel) -> tuple[Array, Array, int]:
    k = min(_STRONG + 1, K.n)
    found = NeighborIndex(K.scaled_points).query(K.scaled_points, k)
    exponents = found.distances**2 / (K.scaled_scales[:, None] * K.scaled_scales[found.indices])
    near = exponents < -np.log(NEGLIGIBLE * K.n)
    return np.nonzero(near)[0], found.indices[near], K.n


def _merge(K: Operator, labels: Array) -> Array:
    """Join the components between which K has more than a negligible affinity."""
    count = int(labels.max()) + 1
    if count == 1:
        return labels
    n = len(labels)
    member = sparse.csr_matrix((np.ones(n), (np.arange(n), labels)), shape=(n, count))
    row_sums = K @ np.ones(n)
    links = []
    for columns in row_tiles(count, _COLUMNS):
        share = K @ np.asarray(member[:, columns].toarray(), dtype=K.dtype)
        touched = sparse.csr_matrix(share > NEGLIGIBLE * row_sums[:, None])
        links.append(sparse.csr_matrix(member.T @ touched.astype(float)))
    joined = connected_components(sparse.hstack(links), directed=False)[1]
    return joined[labels]
