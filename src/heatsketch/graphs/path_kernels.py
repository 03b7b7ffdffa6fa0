"""The compiled inner loops of shortest paths: Dijkstra's heap, and the paths of new points."""

from __future__ import annotations

import numpy as np

from heatsketch._compile import compiled
from heatsketch._typing import Array


@compiled
def lower(indptr: Array, indices: Array, lengths: Array, source: int, d: Array) -> None:
    """Lower d (n,) to the distances from `source` wherever these are smaller (Dijkstra 1959).

    From d = ∞ these are the distances from `source`; from the distances to the nearest of some
    vertices they become those with `source` among them, and only what is nearest to it is visited.
    """
    n = len(d)
    heap, place = np.empty(n, np.int32), np.full(n, -1, np.int32)
    d[source] = 0.0
    size = _rise(heap, place, d, 0, source)
    while size > 0:
        i = heap[0]
        size -= 1
        if size > 0:
            _sink(heap, place, d, size, heap[size])
        place[i] = -1
        for p in range(indptr[i], indptr[i + 1]):
            j, through = indices[p], d[i] + lengths[p]
            if through < d[j]:
                d[j] = through
                size = _rise(heap, place, d, size, j)


@compiled
def _rise(heap: Array, place: Array, d: Array, size: int, j: int) -> int:
    """Move vertex j up, from its place or from below all others, and return the new size."""
    at = place[j]
    if at < 0:
        at = size
        size += 1
    while at > 0:
        above = (at - 1) >> 2
        other = heap[above]
        if d[other] <= d[j]:
            break
        heap[at], place[other] = other, at
        at = above
    heap[at], place[j] = j, at
    return size


@compiled
def _sink(heap: Array, place: Array, d: Array, size: int, j: int) -> None:
    """Put vertex j in the first place and move it down; four below each, near in memory."""
    at = 0
    while True:
        first = 4 * at + 1
        if first >= size:
            break
        least = first
        for child in range(first + 1, min(first + 4, size)):
            if d[heap[child]] < d[heap[least]]:
                least = child
        other = heap[least]
        if d[j] <= d[other]:
            break
        heap[at], place[other] = other, at
        at = least
    heap[at], place[j] = j, at


@compiled
def shortest_through(
    indptr: Array, indices: Array, lengths: Array, paths: Array, out: Array
) -> None:
    """Write out (m, l): min over the neighbours i of x of |x - x_i| + g_ji, g (l, n)."""
    for j in range(len(paths)):
        g = paths[j]  # stays in the cache for all x
        for x in range(len(out)):
            least = np.inf
            for p in range(indptr[x], indptr[x + 1]):
                least = min(least, lengths[p] + g[indices[p]])
            out[x, j] = least
