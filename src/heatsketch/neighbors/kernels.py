"""The compiled loops of the search in inverted lists.

Points lie in cells: cell c holds the rows starts[c] to starts[c + 1] of `rows`, each the point less
the centre of its cell times -2, and the squared length of that difference. The product with a query
less the same centre (and a one) is then the squared distance less what the query alone decides, and
keeps its digits however far the data are spread.
"""

from __future__ import annotations

import numpy as np

from heatsketch._compile import compiled
from heatsketch._typing import Array

_CHUNK = 1024  # points of a cell compared at a time
_LANES = 32  # distances that are looked at together
_EARLY = 4  # cells that are searched first, so that few points of the others come into question


@compiled
def nearest_cell(x: Array, tops: Array, starts: Array, centres: Array, reach: int) -> Array:
    """Return the cell (m,) of each point x (m, d): the nearest centre under the nearest tops."""
    m, n_tops = len(x), len(tops)
    cells, d_top, order = np.empty(m, np.int32), np.empty(n_tops), np.empty(n_tops, np.int32)
    for i in range(m):
        for j in range(n_tops):
            d_top[j], order[j] = _squared(x[i], tops[j]), j
        _smallest_first(d_top, order, n_tops, reach)
        best = np.inf
        for j in order[:reach]:
            for c in range(starts[j], starts[j + 1]):
                d = _squared(x[i], centres[c])
                if d < best:
                    best = d
                    cells[i] = c
    return cells


@compiled
def cells_to_search(x: Array, cells: Array, centres: Array, near: Array, count: int) -> Array:
    """Return, of the cells near[c] of the query's own cell c, the `count` nearest it, (m, count).

    The own cell comes first and the next few nearest after it.
    """
    m, choice = len(x), near.shape[1]
    found, d, order = np.empty((m, count), np.int32), np.empty(choice), np.empty(choice, np.int32)
    for i in range(m):
        for j in range(choice):
            order[j] = near[cells[i], j]
            d[j] = -1.0 if order[j] == cells[i] else _squared(x[i], centres[order[j]])
        if count < choice:
            _smallest_first(d, order, choice, count)
        for first in (_EARLY, 1):
            if first < count:
                _smallest_first(d, order, count, first)
        found[i] = order[:count]
    return found


@compiled
def candidates(
    x: Array, cells: Array, starts: Array, rows: Array, centres: Array, keep: int
) -> Array:
    """Return the `keep` points nearest each query among those of its cells, (m, keep), or -1.

    Indices are places in `rows`. Distances are float32, so that of nearly equal ones any may be
    left out: ask for a few more than needed, and compare these exactly.
    """
    m, width = x.shape
    most = cells.shape[1]
    distances = np.full((m, keep), np.inf, np.float32)
    found = np.full((m, keep), -1, np.int32)
    members, first = np.empty(m * most, np.int64), np.empty(len(starts), np.int64)
    moved = np.empty(m * (width + 1), np.float32)
    squares = np.empty(m, np.float32)
    products = np.empty(m * _CHUNK, np.float32)
    stages = (0, 1, _EARLY, most)
    for stage in range(3):
        low, high = stages[stage], min(stages[stage + 1], most)
        if low >= high:
            continue
        _group(cells[:, low:high], members, first)
        for c in range(len(starts) - 1):
            queries = members[first[c] : first[c + 1]]
            g = len(queries)
            if g == 0:
                continue
            q = moved[: g * (width + 1)].reshape(g, width + 1)
            _less_centre(x, queries, centres[c], q, squares)
            for start in range(starts[c], starts[c + 1], _CHUNK):
                stop = min(start + _CHUNK, starts[c + 1])
                S = products[: g * (stop - start)].reshape(g, stop - start)
                np.dot(q, rows[start:stop].T, S)
                _take_nearest(S, start, queries, squares, distances, found)
    return found


@compiled
def sort_exactly(
    x: Array, points: Array, scale: float, places: Array, order: Array, k: int
) -> tuple[Array, Array]:
    """Return the k nearest of the candidates at `places` by explicit differences, nearest first.

    Points equally far come in the order of their index, order[place].
    """
    m, keep = places.shape
    distances, indices = np.empty((m, k)), np.empty((m, k), np.int64)
    d, ids = np.empty(keep), np.empty(keep, np.int64)
    for i in range(m):
        for j in range(keep):
            if places[i, j] < 0:
                value, index = np.inf, np.int64(len(order))
            else:
                index = np.int64(order[places[i, j]])
                value = _scaled_square(x[i], points[index], scale)
            at = j
            while at > 0 and (d[at - 1] > value or (d[at - 1] == value and ids[at - 1] > index)):
                d[at], ids[at] = d[at - 1], ids[at - 1]
                at -= 1
            d[at], ids[at] = value, index
        for j in range(k):
            distances[i, j], indices[i, j] = np.sqrt(d[j]), ids[j]
    return distances, indices


@compiled
def _squared(x: Array, y: Array) -> float:
    total = 0.0
    for t in range(len(x)):
        total += (x[t] - y[t]) ** 2
    return total


@compiled
def _scaled_square(x: Array, y: Array, scale: float) -> float:
    total = 0.0
    for t in range(len(x)):
        difference = (np.float64(x[t]) - np.float64(y[t])) * scale
        total += difference * difference
    return total


@compiled
def _smallest_first(d: Array, ids: Array, count: int, k: int) -> None:
    """Rearrange d and ids, of that length, so that the k smallest d come first (quickselect)."""
    low, high = 0, count - 1
    while low < high:
        a, b, c = d[low], d[(low + high) >> 1], d[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while d[i] < pivot:
                i += 1
            while d[j] > pivot:
                j -= 1
            if i <= j:
                d[i], d[j] = d[j], d[i]
                ids[i], ids[j] = ids[j], ids[i]
                i, j = i + 1, j - 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            return


@compiled
def _group(cells: Array, members: Array, first: Array) -> None:
    """Sort the queries by cell: those that search cell c are members[first[c] : first[c + 1]]."""
    m, count = cells.shape
    first[:] = 0
    for i in range(m):
        for j in range(count):
            first[cells[i, j] + 1] += 1
    for c in range(len(first) - 1):
        first[c + 1] += first[c]
    for i in range(m):
        for j in range(count):
            c = cells[i, j]
            members[first[c]] = i
            first[c] += 1
    for c in range(len(first) - 1, 0, -1):
        first[c] = first[c - 1]
    first[0] = 0


@compiled
def _less_centre(x: Array, queries: Array, centre: Array, q: Array, squares: Array) -> None:
    width = len(centre)
    for r in range(len(queries)):
        i, total = queries[r], np.float32(0.0)
        for t in range(width):
            q[r, t] = np.float32(x[i, t] - centre[t])
        for t in range(width):
            total += q[r, t] * q[r, t]
        q[r, width] = 1.0
        squares[r] = total


@compiled
def _take_nearest(
    S: Array, start: int, queries: Array, squares: Array, distances: Array, found: Array
) -> None:
    """Insert the points that are nearer than the last kept; most blocks of 32 have none."""
    count, last = S.shape[1], distances.shape[1] - 1
    whole = count - count % _LANES
    values, places = np.empty(count, np.float32), np.empty(count, np.int32)
    for r in range(len(queries)):
        i, own = queries[r], squares[r]
        if found[i, 0] < 0 and count > last:
            _take_first(S[r], start, own, values, places, distances[i], found[i])
            continue
        limit = distances[i, last] - own
        for p in range(0, count, _LANES):
            if p < whole:
                least = limit
                for t in range(_LANES):
                    least = S[r, p + t] if S[r, p + t] < least else least
                if least == limit:
                    continue
            for t in range(p, min(p + _LANES, count)):
                if S[r, t] < limit:
                    _insert(S[r, t] + own, start + t, last, distances[i], found[i])
                    limit = distances[i, last] - own


@compiled
def _take_first(
    S: Array, start: int, own: float, values: Array, places: Array, d: Array, ids: Array
) -> None:
    """Keep the nearest of a query's first points, more than are kept, by selection."""
    for t in range(len(S)):
        values[t], places[t] = S[t] + own, start + t
    _smallest_first(values, places, len(S), len(d))
    for t in range(len(d)):
        _insert(values[t], places[t], t, d, ids)


@compiled
def _insert(value: float, place: int, last: int, d: Array, ids: Array) -> None:
    """Put a point among the nearest, sorted d[: last + 1]; the last one falls out."""
    at = last
    while at > 0 and d[at - 1] > value:
        d[at], ids[at] = d[at - 1], ids[at - 1]
        at -= 1
    d[at], ids[at] = value, place
