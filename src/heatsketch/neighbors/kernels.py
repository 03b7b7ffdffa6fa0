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
_LOOSE = 8  # points that may be kept beyond those asked for
_ROOM = 256  # points a query holds before it keeps the nearest only
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
    x: Array, own: Array, cells: Array, starts: Array, rows: Array, centres: Array, keep: int
) -> Array:
    """Return at least the `keep` points nearest each query among those of its cells, (m, keep + 8).

    `own` are the cells the queries lie in. Points are their places in `rows`, in no order, followed
    by -1. Distances are float32, so that of nearly equal ones any may be left out: ask for a few
    more than needed, and compare these exactly.
    """
    m, width = x.shape
    most = cells.shape[1]
    room = max(_ROOM, 3 * (keep + _LOOSE))
    distances, found = np.empty((m, room), np.float32), np.empty((m, room), np.int32)
    counts, limits = np.zeros(m, np.int64), np.full(m, np.inf, np.float32)
    members, first = np.empty(m * most, np.int64), np.empty(len(starts), np.int64)
    offsets = _less_own_centre(x, own, centres)
    moved = np.empty(m * (width + 1), np.float32)
    squares, step = np.empty(m, np.float32), np.empty(width, np.float32)
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
            _less_centre(offsets, own, queries, centres, c, step, q, squares)
            for start in range(starts[c], starts[c + 1], _CHUNK):
                stop = min(start + _CHUNK, starts[c + 1])
                S = products[: g * (stop - start)].reshape(g, stop - start)
                np.dot(q, rows[start:stop].T, S)
                _collect(S, start, queries, squares, keep, distances, found, counts, limits)
        for i in range(m):
            _shrink(i, keep, distances, found, counts, limits)
    nearest = np.full((m, keep + _LOOSE), -1, np.int32)
    for i in range(m):
        nearest[i, : counts[i]] = found[i, : counts[i]]
    return nearest


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
def _less_own_centre(x: Array, own: Array, centres: Array) -> Array:
    offsets = np.empty(x.shape, np.float32)
    for i in range(len(x)):
        c = own[i]
        for t in range(x.shape[1]):
            offsets[i, t] = np.float32(x[i, t] - centres[c, t])
    return offsets


@compiled
def _less_centre(
    offsets: Array,
    own: Array,
    queries: Array,
    centres: Array,
    c: int,
    step: Array,
    q: Array,
    squares: Array,
) -> None:
    """Write queries less the centre of cell c, a one behind each, and their squared lengths.

    They are the sum of their offset in their own cell and the step between centres, which both
    have all digits of float32.
    """
    width, last = centres.shape[1], -1
    for r in range(len(queries)):
        i = queries[r]
        if own[i] != last:
            last = own[i]
            for t in range(width):
                step[t] = np.float32(centres[last, t] - centres[c, t])
        for t in range(width):
            q[r, t] = offsets[i, t] + step[t]
        total = np.float32(0.0)
        for t in range(width):
            total += q[r, t] * q[r, t]
        q[r, width] = 1.0
        squares[r] = total


@compiled
def _collect(
    S: Array,
    start: int,
    queries: Array,
    squares: Array,
    keep: int,
    distances: Array,
    found: Array,
    counts: Array,
    limits: Array,
) -> None:
    """Add the points nearer than the limit of their query; most blocks of 32 have none."""
    total = S.shape[1]
    whole = total - total % _LANES
    for r in range(len(queries)):
        i, own = queries[r], squares[r]
        limit, count = limits[i] - own, counts[i]
        for p in range(0, total, _LANES):
            stop = min(p + _LANES, total)
            if p < whole:
                least = limit
                for t in range(_LANES):
                    least = S[r, p + t] if S[r, p + t] < least else least
                if least == limit and limit < np.inf:
                    continue
            if count + _LANES >= distances.shape[1]:
                counts[i] = count
                _shrink(i, keep, distances, found, counts, limits)
                limit, count = limits[i] - own, counts[i]
            for t in range(p, stop):  # without a branch, which would be taken by chance
                distances[i, count], found[i, count] = S[r, t] + own, start + t
                count += np.int64(S[r, t] < limit)
        counts[i] = count


@compiled
def _shrink(
    i: int, keep: int, distances: Array, found: Array, counts: Array, limits: Array
) -> None:
    """Keep the `keep` nearest points of query i, or up to eight more, and lower its limit.

    The limit is found by halving an interval: counting what is below takes no branches.
    """
    count = counts[i]
    if count <= keep + _LOOSE:
        return
    low = high = distances[i, 0]
    for t in range(count):
        low = distances[i, t] if distances[i, t] < low else low
        high = distances[i, t] if distances[i, t] > high else high
    low -= abs(low) * np.float32(1e-3) + np.float32(1e-30)
    while True:
        middle = np.float32(0.5) * (low + high)
        if middle <= low or middle >= high:  # what lies between is equal
            break
        below = np.int32(0)
        for t in range(count):
            below += np.int32(distances[i, t] <= middle)
        if below < keep:
            low = middle
            continue
        high = middle
        if below <= keep + _LOOSE:
            break
    kept = _move_to_front(i, count, high, distances, found)
    if kept > keep + _LOOSE:  # of points equally far any
        _move_to_front(i, kept, low, distances, found)
        kept = keep
    counts[i], limits[i] = kept, high


@compiled
def _move_to_front(i: int, count: int, limit: float, distances: Array, found: Array) -> int:
    """Exchange points of query i so that those up to the limit come first; return their number."""
    kept = 0
    for t in range(count):
        d, place = distances[i, t], found[i, t]
        distances[i, t], found[i, t] = distances[i, kept], found[i, kept]
        distances[i, kept], found[i, kept] = d, place
        kept += int(d <= limit)
    return kept
