"""Shortest paths in a graph of distances, and points spread evenly over it."""

from __future__ import annotations

import logging
import time

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from heatsketch._array import for_each_tile, row_tiles
from heatsketch._typing import Array

logger = logging.getLogger("heatsketch")

_SOURCES = 256  # between two lines of the log


def shortest_paths(graph: sparse.csr_matrix, sources: Array) -> Array:
    """Return the lengths of the shortest paths from some vertices to all.

    Parameters
    ----------
    graph : CSR (n, n)
        Lengths of edges, symmetric, not negative; stored entries are edges.
    sources : array of int (s,)

    Returns
    -------
    array (s, n)
        Infinite where there is no path.

    Notes
    -----
    Cost: s heaps of n vertices, each edge seen twice; memory s n numbers and some n for each
    thread. SciPy's search takes as long for one source, but holds the interpreter's lock, so that
    its searches run one after the other.
    """
    from heatsketch.graphs.path_kernels import lower  # compiled loops

    graph, order = _near_together(graph)
    first, n = np.argsort(order)[sources], graph.shape[0]
    lengths = np.empty((len(sources), n))
    started = time.perf_counter()
    for block in row_tiles(len(sources), _SOURCES):

        def work(one: slice, start: int = block.start) -> None:
            for s in range(start + one.start, start + one.stop):
                d = np.full(n, np.inf)
                lower(graph.indptr, graph.indices, graph.data, first[s], d)
                lengths[s, order] = d

        for_each_tile(work, block.stop - block.start, 1)
        seconds = time.perf_counter() - started
        logger.info(
            "shortest paths from %d of %d points: %.1f s", block.stop, len(sources), seconds
        )
    return lengths


def spread_vertices(graph: sparse.csr_matrix, count: int, start: int = 0) -> Array:
    """Choose vertices evenly: each the one farthest, along the graph, from those before (max-min).

    The first is the one farthest from `start`.

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
        All different.

    Notes
    -----
    Cost: a search for each visits only what is nearer to it than to those before, so that all take
    as long as some log(count) searches of the whole graph; and count passes over n numbers.
    """
    from heatsketch.graphs.path_kernels import lower  # compiled loops

    graph, order = _near_together(graph)
    d = np.full(graph.shape[0], np.inf)
    lower(graph.indptr, graph.indices, graph.data, np.flatnonzero(order == start)[0], d)
    chosen = np.empty(count, np.int64)
    chosen[0] = d.argmax()
    d[:] = np.inf
    for m in range(count):
        if m > 0:
            chosen[m] = d.argmax()
        lower(graph.indptr, graph.indices, graph.data, chosen[m], d)
        d[chosen[m]] = -1.0  # never chosen again, though others be at distance zero, too
    return order[chosen]


def _near_together(graph: sparse.csr_matrix) -> tuple[sparse.csr_matrix, Array]:
    """Return the graph with near vertices near in memory, which halves the time, and their order.

    Vertex i of the new graph is vertex order[i] of the given one.
    """
    order = reverse_cuthill_mckee(graph, symmetric_mode=True)
    return sparse.csr_matrix(graph[order][:, order]), order
