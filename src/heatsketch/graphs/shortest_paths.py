"""Shortest paths in a graph of distances, from given vertices or from some spread over it."""

from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch.backend import blocks_of


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
    return blocks_of(graph).shortest_paths(graph, sources)


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
    from heatsketch.backend.path_loops import lower  # compiled loops

    nearest = shortest_paths(graph, np.array([start]))[0]
    chosen = np.empty(count, np.int64)
    for m in range(count):
        chosen[m] = nearest.argmax()
        if m == 0:
            nearest[:] = np.inf
        lower(graph.indptr, graph.indices, graph.data, chosen[m], nearest)
        nearest[chosen[m]] = -1.0  # not chosen again, even if others are at distance 0
    return chosen
