"""Shortest paths in a graph of distances, from given vertices or from some spread over it."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from heatsketch._progress import track
from heatsketch._typing import Array


def shortest_paths(graph: sparse.csr_matrix, sources: Array) -> Array:
    """Return the lengths of the shortest paths from some vertices to all.

    Parameters
    ----------
    graph : CSR (n, n)
        Lengths of edges, symmetric and non-negative; every stored entry is an edge.
    sources : array of int (s,)

    Returns
    -------
    array (s, n)
        Infinite where there is no path.
    """
    lengths = np.empty((len(sources), graph.shape[0]))
    for s in track(range(len(sources)), "shortest paths", len(sources), "starts"):
        lengths[s] = dijkstra(graph, indices=sources[s])
    return lengths


def spread_paths(graph: sparse.csr_matrix, count: int, start: int = 0) -> tuple[Array, Array]:
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
    vertices : array of int (count,)
        They are distinct.
    lengths : array (count, n)
        Those of the shortest paths from them.
    """
    chosen, lengths = np.empty(count, np.int64), np.empty((count, graph.shape[0]))
    nearest = dijkstra(graph, indices=start)
    for m in track(range(count), "shortest paths", count, "starts"):
        chosen[m] = nearest.argmax()
        lengths[m] = dijkstra(graph, indices=chosen[m])
        nearest = np.minimum(nearest, lengths[m]) if m else lengths[m].copy()
        nearest[chosen[: m + 1]] = -1.0  # not chosen again, even if others are at distance 0
    return chosen, lengths
