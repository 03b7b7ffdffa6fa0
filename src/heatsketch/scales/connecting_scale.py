"""The ε at which the Gaussian affinity of points becomes connected."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import linkage
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import squareform

from heatsketch._checks import Frame, check_number, check_points
from heatsketch._tiles import filled
from heatsketch._typing import Array, Points
from heatsketch.graphs.links import shortest_links
from heatsketch.neighbors import NeighborIndex, distinct_rows, in_metric
from heatsketch.operators.kernel import squared_distances
from heatsketch.scales.bandwidth import WIDE_CUT, in_data_units

EXACT_POINTS = 4096  # up to here all pairs are used
_TREE_NEIGHBORS = 15  # of each point, for the spanning tree of more points
_MARGIN = 1e-7  # relative, added to ε so that it does connect


def connecting_epsilon(X: Any, *, metric: str = "euclidean", cut: float = WIDE_CUT) -> float:
    """Compute the smallest ε at which the Gaussian affinity of points is connected.

    With `affinity="radius"` points are joined up to the distance cut √(ε/2). The graph is connected
    once this reaches the longest edge L of the minimum spanning tree: ε = 2 (L / cut)².

    Use it for a lower bound of ε ("as small as possible without making the generator reducible",
    *Linear and nonlinear dimensionality reduction*, §9.7). Just above it the connection is weak,
    and a single outlier can determine it: where it is far above `ksum(X).epsilon`, leave out
    outliers, or treat each component on its own.

    Parameters
    ----------
    X : array or CSR matrix (n, d)
    metric : "euclidean", "cosine" or "correlation", default "euclidean"
        The distance of points, as in `HeatSketch`.
    cut : float > 0, default 5
        As in `Diffusion.from_points`: affinities below exp(-cut²/2) are ignored. For
        `affinity="dense"`, where those below 1e-14 of a row sum are negligible, pass 7 for up to
        1,000 points and 6 for up to 100,000.

    Returns
    -------
    float
        In squared data units; 1e-7 above the exact number, so that it does connect.

    Raises
    ------
    ValueError
        All points are the same; ε is outside the range of float64.

    Notes
    -----
    Cost: n² d operations and 24 n² bytes up to 4,096 points. For more, several exact searches of
    nearest neighbours: in a spanning tree of 15 nearest neighbours the longest edge is replaced
    while there is a shorter link between the components that it joins.

    Examples
    --------
    >>> import heatsketch as hs
    >>> round(hs.connecting_epsilon([[0.0], [1.0], [3.0]], cut=2.0), 6)
    2.0
    """
    check_number(cut, "cut", low=0, open_low=True)
    X = in_metric(check_points(X), metric)
    frame = Frame.of(X)
    points = frame(X)
    square = (
        _longest_square(points)
        if points.shape[0] <= EXACT_POINTS
        else _longest_square_of_many(points)
    )
    if square == 0:
        raise ValueError("All points are the same; pass distinct points.")
    return in_data_units(frame, 2 * square / cut**2 * (1 + _MARGIN))


def _squared_distances(points: Points) -> Array:
    n = points.shape[0]
    return filled(lambda rows: squared_distances(points[rows], points, direct=False), (n, n))


def _longest_square(points: Points) -> float:
    """Return the square of the longest edge of the minimum spanning tree, from all pairs."""
    pairs = squareform(_squared_distances(points), checks=False)
    return float(linkage(pairs, "single")[-1, 2])  # single linkage merges along the tree


def _longest_square_of_many(points: Points) -> float:
    """Return the same from a spanning tree of a neighbour graph, by improving its longest edge.

    An edge that is the shortest link between the two components it joins is at most as long as the
    longest edge of any spanning tree, since every tree must join them.
    """
    points = points[distinct_rows(points)[0]]  # otherwise copies could be the only neighbours
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
    """Return a spanning tree (i, j, length) of nearest neighbours and links between components."""
    n, k = points.shape[0], _TREE_NEIGHBORS + 1
    found = NeighborIndex(points).of_points(k)
    starts = np.arange(0, n * k + 1, k)
    graph = sparse.csr_matrix((found.distances.ravel(), found.indices.ravel(), starts), (n, n))
    tree = minimum_spanning_tree(graph).tocoo()
    links = shortest_links(points, connected_components(tree, directed=False)[1])
    own = (tree.row, tree.col, tree.data)
    return [np.concatenate(sides) for sides in zip(own, links, strict=True)]
