"""Shortest paths in a graph of distances, from given vertices or from some spread over it."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from heatsketch._tiles import for_each_tile, row_tiles, track
from heatsketch._typing import Array
from heatsketch.backend import HOST, blocks_of
from heatsketch.backend.device import DeviceCSR

_FEW = 2**17  # vertices of all searches, which wait for no compiler
_VERTICES_AT_A_TIME = 2**15  # of several searches; to hand one to a thread costs time, too
_WINDOW = 2.0  # mean edges: a wider one makes vertices take part again, a narrower one more rounds


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
    if blocks_of(graph) is not HOST:
        return _by_rounds(graph, sources)
    n = graph.shape[0]
    if len(sources) * n <= _FEW:
        return dijkstra(graph, indices=sources)
    from heatsketch.graphs.path_loops import lower  # compiled loops

    lengths = np.full((len(sources), n), np.inf)

    def work(one: slice) -> None:
        for s in range(one.start, one.stop):
            lower(graph.indptr, graph.indices, graph.data, sources[s], lengths[s])

    bar = track(None, "shortest paths", len(sources), "starts")
    for_each_tile(work, len(sources), max(1, _VERTICES_AT_A_TIME // n), bar)
    return lengths


def _by_rounds(graph: DeviceCSR, sources: Array) -> Array:
    """Return the same from a device, by rounds in which many vertices lower their neighbours.

    All sources are searched at once, each in a copy of the graph. In a round these vertices take
    part: those lowered since their last one, and no farther than two mean edges behind the nearest
    of these, as vertices farther away are likely to be lowered again (Meyer and Sanders 2003).
    """
    blocks, n = graph.blocks, graph.shape[0]
    xp, starts, lengths = blocks.xp, graph.indptr.long(), graph.data.double()
    width = _WINDOW * lengths.sum() / max(1, len(lengths))
    d = xp.full((len(sources) * n,), np.inf, dtype=lengths.dtype, device=blocks.device)
    d[blocks.native(np.arange(len(sources)) * n + sources)] = 0.0
    lowered = xp.isfinite(d)
    tile = max(1, int(blocks.step_bytes * n / (64 * max(n, len(lengths)))))
    while len(waiting := d[lowered]):
        near = (lowered & (d <= waiting.min() + width)).nonzero()[:, 0]
        lowered[near] = False
        before = d.clone()
        for some in row_tiles(len(near), tile):
            here = near[some]
            vertex = here % n
            ends = starts[vertex + 1]
            counts = ends - starts[vertex]
            each = xp.repeat_interleave(counts)  # the place in `here` of each edge
            entries = (ends - counts.cumsum(0))[each] + blocks.arange(len(each))
            there = (here - vertex)[each] + graph.indices[entries]
            d.scatter_reduce_(0, there, d[here[each]] + lengths[entries], "amin")
        lowered |= d < before
    return blocks.host(d).reshape(len(sources), n)


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
