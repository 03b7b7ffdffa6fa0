"""The ε, radius or number of neighbours that would connect the components of an affinity."""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import linkage
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import squareform

from heatsketch._array import Frame, filled, for_each_tile
from heatsketch._checks import check_number, check_points
from heatsketch._typing import Array, Points
from heatsketch.graphs.links import shortest_links
from heatsketch.neighbors import NeighborIndex, distinct_rows, in_metric
from heatsketch.operators.components import NEGLIGIBLE
from heatsketch.operators.kernel import squared_distances, squared_norms
from heatsketch.operators.order import first_inputs
from heatsketch.scales.bandwidth import WIDE_CUT, in_data_units, scale_order

EXACT_POINTS = 4096  # up to here all pairs are used
_TREE_NEIGHBORS = 15  # of each point, for the spanning tree of more points
_MARGIN = 1e-7  # relative, added to ε so that it does connect
_NO_NEIGHBORS = "With self-tuning scales no n_neighbors would connect them"
_NO_EPSILON = "No epsilon in the range of float64 would connect them"


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


def dense_cut(n: int) -> float:
    """Return the cut beyond which affinities of n points are negligible in any row."""
    return float(np.sqrt(-2 * np.log(NEGLIGIBLE * n)))


def advice(
    labels: Array,
    *,
    X: Any,
    metric: str,
    affinity: str,
    epsilon: float | Array,
    n_neighbors: int,
    neighbors: Any,
    cut: float,
    vertex: Array | None,
) -> str:
    """Return a sentence that says what would connect the components `labels` of an affinity.

    `X` is as `in_metric` returns it; `epsilon` is the bandwidth, or self-tuning scales (n,).
    """
    tuned = isinstance(epsilon, np.ndarray)
    if affinity in ("bipartite", "cosine"):
        return "Rows that share columns with several of them would connect them"
    if affinity == "variable":
        return "Raise n_neighbors to connect them"
    if affinity == "knn":
        if not _all_pairs_decide(len(labels), neighbors):
            return _raise_parameter("n_neighbors", None if tuned else float(epsilon))
        points = X if vertex is None else X[first_inputs(vertex)]
        frame = Frame.of(points)
        width = None if tuned else frame.squared(float(epsilon))
        return advice_on_neighbors(labels, frame(points), frame, n_neighbors, width, neighbors)
    if tuned:
        return _advice_on_scales(X, n_neighbors, metric)
    wide = dense_cut(X.shape[0])
    return _advice_on_epsilon(X, min(cut, wide) if affinity == "radius" else wide, metric)


def _advice_on_epsilon(X: Points, cut: float, metric: str) -> str:
    if X.shape[0] > EXACT_POINTS:
        cut = np.floor(100 * cut) / 100  # short, and on the safe side
        named = "" if metric == "euclidean" else f"metric={metric!r}, "
        return (
            f"heatsketch.connecting_epsilon(X, {named}cut={cut:g}) computes an epsilon that "
            "connects them"
        )
    try:
        return f"epsilon >= {_rounded_up(connecting_epsilon(X, cut=cut))} connects them"
    except ValueError:
        return _NO_EPSILON


def _advice_on_scales(X: Points, n_neighbors: int, metric: str) -> str:
    n = X.shape[0]
    start = "Raise n_neighbors to connect them, or pass a number"
    if n <= EXACT_POINTS:
        points = Frame.of(X)(X)
        points = points[distinct_rows(points)[0]]
        wanted = _tuned_neighbors(points, n_neighbors, n, graph=False)
        if wanted is not None:
            return f"n_neighbors >= {wanted} connects them"
        start = _NO_NEIGHBORS
    return f"{start}; {_advice_on_epsilon(X, dense_cut(n), metric)}"


def advice_on_neighbors(
    labels: Array,
    points: Points,
    frame: Frame,
    n_neighbors: int,
    epsilon: float | None,
    neighbors: Any,
) -> str:
    """Return a sentence that says what would connect a graph of nearest neighbours.

    `points` (n, d) are distinct, they and `epsilon` in the frame; `epsilon` is infinite where all
    edges have weight 1, None for self-tuning scales.
    """
    n = points.shape[0]
    if not _all_pairs_decide(n, neighbors):
        return _raise_parameter("n_neighbors", epsilon)
    wanted = max(connecting_neighbors(points, labels), min(n_neighbors, n - 1))
    prefix = ""
    if epsilon is None:
        tuned = _tuned_neighbors(points, wanted, n, graph=True)
        if tuned is not None:
            return f"With n_neighbors >= {tuned} the graph is connected"
        prefix, epsilon = f"{_NO_NEIGHBORS}. ", 0.0
    square = _longest_square(points, wanted)
    named = [f"n_neighbors >= {wanted}"] if wanted > n_neighbors else []
    return prefix + _advice_on_graph(named, square, n, frame, epsilon)


def advice_on_radius(
    points: Points, frame: Frame, radius: float, epsilon: float, neighbors: Any
) -> str:
    """Return a sentence that says what would connect the graph of points (n, d) within `radius`.

    All in the frame; `epsilon` is infinite where all edges have weight 1.
    """
    n = points.shape[0]
    if not _all_pairs_decide(n, neighbors):
        return _raise_parameter("radius", epsilon)
    square = _longest_square(points) * (1 + _MARGIN)
    length = np.sqrt(square)
    named = []
    if length > radius:
        named = [f"radius >= {_rounded_up(np.ldexp(length, frame.exponent))}"]
    return _advice_on_graph(named, square, n, frame, epsilon)


def _all_pairs_decide(n: int, neighbors: Any) -> bool:
    ours = neighbors is None or isinstance(neighbors, NeighborIndex)
    return ours and n <= EXACT_POINTS


def _raise_parameter(name: str, epsilon: float | None) -> str:
    text = f"Raise {name} to connect them"
    if epsilon == np.inf:
        return text
    width = "a number as epsilon" if epsilon is None else "a larger epsilon"
    return f"{text}; if the links are then too weak, pass {width}"


def _advice_on_graph(named: list[str], square: float, n: int, frame: Frame, epsilon: float) -> str:
    """Name what connects a graph; also ε, where edges of this squared length are too weak."""
    needed = 2 * square / dense_cut(n) ** 2 * (1 + _MARGIN)
    if needed > epsilon or not named:
        try:
            named = [*named, f"epsilon >= {_rounded_up(in_data_units(frame, needed))}"]
        except ValueError:
            return _NO_EPSILON
    return f"With {' and '.join(named)} the graph is connected"


def _rounded_up(value: float) -> str:
    """Format a number with four digits, rounded up."""
    return f"{value * 1.0006:.4g}"


def _squared_distances(points: Points) -> Array:
    n = points.shape[0]
    return filled(lambda rows: squared_distances(points[rows], points, direct=False), (n, n))


def _longest_square(points: Points, k: int | None = None) -> float:
    """Return the square of the longest edge of the minimum spanning tree, from all pairs.

    With k: of the tree of the graph of k nearest neighbours, which must be connected.
    """
    squares = _squared_distances(points)
    if k is not None:
        reach = np.partition(squares, k, axis=1)[:, k] + _rounding(points)
        squares[squares > np.maximum.outer(reach, reach)] = 4 * squares.max()
    pairs = squareform(squares, checks=False)
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


def connecting_neighbors(points: Points, labels: Array) -> int:
    """Return the number of neighbours at which the graph of points (n, d) is connected.

    `labels` (n,) are components already connected. Equally distant points are all counted, so that
    the number suffices whichever of them is found first.
    """
    points = Frame.of(points)(points)
    by_component = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[by_component], np.arange(labels.max() + 1))
    rounding = _rounding(points)
    ranks = np.empty((points.shape[0], len(starts)), np.int64)

    def work(rows: slice) -> None:
        d2 = squared_distances(points[rows], points, direct=False)
        reach = np.minimum.reduceat(d2[:, by_component], starts, axis=1) + rounding[rows, None]
        d2.sort(axis=1)
        for i, row in enumerate(d2):
            ranks[rows.start + i] = (
                np.searchsorted(row, reach[i], side="right") - 1
            )  # without itself

    for_each_tile(work, points.shape[0])
    between = np.minimum.reduceat(ranks[by_component], starts, axis=0)
    between = np.minimum(between, between.T)  # either point may find the edge
    np.fill_diagonal(between, 0)
    return int(linkage(squareform(between), "single")[-1, 2])


def _rounding(points: Points) -> Array:
    """Return bounds of the rounding errors in the squared distances of each point."""
    norms = squared_norms(points)
    return 16 * np.finfo(float).eps * (norms + norms.max())


def _tuned_neighbors(points: Points, low: int, n: int, *, graph: bool) -> int | None:
    """Return the smallest n_neighbors >= low at which self-tuning scales connect distinct points.

    None if there is none. Rows have `n` points; `graph`: edges join nearest neighbours only, else
    all pairs. Bisection works because scales and edges only grow with the number.
    """
    squares, rounding = _squared_distances(points), _rounding(points)
    nearest = np.sort(squares, axis=1)
    squares += rounding[:, None]
    last = len(squares) - 1

    def connected(k: int) -> bool:
        reach = nearest[:, k + 1] if graph and k < last else np.full(last + 1, np.inf)
        scales = np.sqrt(np.maximum(nearest[:, scale_order(k)] - rounding, 0.0))
        return _reaches_all(squares, reach, scales * dense_cut(n) / np.sqrt(2))

    if low <= last and connected(low):
        return low
    if low >= last or not connected(last):
        return None
    return low + bisect.bisect_left(range(low, last), True, key=connected)


def _reaches_all(squares: Array, reach: Array, scales: Array) -> bool:
    """Return whether links with d² below s_i s_j and below either point's reach join all points."""
    reached, outside = np.zeros(1, int), np.arange(1, len(squares))
    while len(reached) and len(outside):
        d2 = squares[np.ix_(reached, outside)]
        linked = d2 < np.maximum.outer(reach[reached], reach[outside])
        linked &= d2 < np.outer(scales[reached], scales[outside])
        joined = linked.any(axis=0)
        reached, outside = outside[joined], outside[~joined]
    return len(outside) == 0
