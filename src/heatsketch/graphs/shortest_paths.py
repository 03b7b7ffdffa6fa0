"""Shortest paths in a graph of distances, from given vertices or from some spread over it."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from heatsketch._tiles import for_each_tile, track
from heatsketch._typing import Array
from heatsketch.operators.operator import permuted

_STARTS_AT_A_TIME = 16  # to hand a search to a thread costs time, too


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

    Notes
    -----
    A search by SciPy 1.17 takes about 0.7 of the time on one thread, but it holds the lock of the
    interpreter, so that two do not run in parallel.
    """
    from heatsketch.graphs.path_loops import lower  # compiled loops

    order = reverse_cuthill_mckee(graph, symmetric_mode=True)
    graph = permuted(graph, order)  # neighbours are close in memory, which halves the time
    first, n = np.argsort(order)[sources], graph.shape[0]
    lengths = np.empty((len(sources), n))

    def work(one: slice) -> None:
        for s in range(one.start, one.stop):
            d = np.full(n, np.inf)
            lower(graph.indptr, graph.indices, graph.data, first[s], d)
            lengths[s, order] = d

    bar = track(None, "shortest paths", len(sources), "starts")
    for_each_tile(work, len(sources), _STARTS_AT_A_TIME, bar)
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
    from heatsketch.graphs.path_loops import lower  # compiled loops

    nearest = shortest_paths(graph, np.array([start]))[0]
    chosen = np.empty(count, np.int64)
    for m in range(count):
        chosen[m] = nearest.argmax()
        if m == 0:
            nearest[:] = np.inf
        lower(graph.indptr, graph.indices, graph.data, chosen[m], nearest)
        nearest[chosen[m]] = -1.0  # not chosen again, even if others are at distance 0
    return chosen
