"""The compiled loops of shortest paths: Dijkstra's algorithm, and the paths of new points."""

import numpy as np

from heatsketch._compile import compiled
from heatsketch._typing import Array


@compiled
def lower(indptr: Array, indices: Array, lengths: Array, source: int, d: Array) -> None:
    """Lower d (n,) to the distances from `source` where these are smaller (Dijkstra 1959).

    d = ∞ becomes the distances from `source`; the distances from the nearest of several vertices
    become those with `source` included, and only vertices nearest to `source` are visited.
    """
    n = len(d)
    heap, position = np.empty(n, np.int32), np.full(n, -1, np.int32)
    d[source] = 0.0
    size = _sift_up(heap, position, d, 0, source)
    while size > 0:
        i = heap[0]
        size -= 1
        if size > 0:
            _sift_down(heap, position, d, size, heap[size])
        position[i] = -1
        for p in range(indptr[i], indptr[i + 1]):
            j, through = indices[p], d[i] + lengths[p]
            if through < d[j]:
                d[j] = through
                size = _sift_up(heap, position, d, size, j)


@compiled
def _sift_up(heap: Array, position: Array, d: Array, size: int, j: int) -> int:
    """Move vertex j up the heap, or insert it if it is new; return the new size."""
    at = position[j]
    if at < 0:
        at = size
        size += 1
    while at > 0:
        parent = (at - 1) >> 2
        vertex = heap[parent]
        if d[vertex] <= d[j]:
            break
        heap[at], position[vertex] = vertex, at
        at = parent
    heap[at], position[j] = j, at
    return size


@compiled
def _sift_down(heap: Array, position: Array, d: Array, size: int, j: int) -> None:
    """Replace the root of the heap by vertex j and move it down; a node has four children."""
    at = 0
    while True:
        first_child = 4 * at + 1
        if first_child >= size:
            break
        smallest = first_child
        for child in range(first_child + 1, min(first_child + 4, size)):
            if d[heap[child]] < d[heap[smallest]]:
                smallest = child
        vertex = heap[smallest]
        if d[j] <= d[vertex]:
            break
        heap[at], position[vertex] = vertex, at
        at = smallest
    heap[at], position[j] = j, at


@compiled
def shortest_through(
    indptr: Array, indices: Array, lengths: Array, paths: Array, out: Array
) -> None:
    """Write out (m, l): min over the neighbours i of x of |x - x_i| + g_ji, g (l, n)."""
    for j in range(len(paths)):
        g = paths[j]  # remains cached for all x
        for x in range(len(out)):
            smallest = np.inf
            for p in range(indptr[x], indptr[x + 1]):
                smallest = min(smallest, lengths[p] + g[indices[p]])
            out[x, j] = smallest
