"""The compiled loops of the search in inverted lists.

Cell c contains rows starts[c] to starts[c + 1] of `rows`. A row is -2 (point - centroid) and the
squared length of that difference; its product with (query - centroid, 1) is the squared distance
less |query - centroid|², which float32 represents well even where the centroids are far apart.
Both squares are stored minus the largest rounding error: sums are bounds from below.
"""

import numpy as np

from heatsketch._arrays import Array
from heatsketch._compile import compiled

_BLOCK_POINTS = 1024  # points of a cell compared at a time
_LANES = 32  # distances compared with the limit at a time
_KEEP_SLACK = 8  # points that may be kept beyond `keep`
_MIN_BUFFER_POINTS = 256  # candidates of a query before only the nearest are kept
_Nearest = tuple[Array, Array, Array, Array]  # squares, positions, and their counts and limits
_FIRST_CELLS = 4  # searched first: the limits they give exclude most points of the others


@compiled
def nearest_cell(x: Array, coarse: Array, starts: Array, centroids: Array, n_probe: int) -> Array:
    """Return the cell (m,) of each x (m, d): the nearest fine centroid of n_probe coarse ones."""
    m, n_coarse = len(x), len(coarse)
    cells, d_coarse, order = np.empty(m, np.int32), np.empty(n_coarse), np.empty(n_coarse, np.int32)
    for i in range(m):
        for j in range(n_coarse):
            d_coarse[j], order[j] = _squared(x[i], coarse[j]), j
        _smallest_first(d_coarse, order, n_coarse, n_probe)
        best = np.inf
        for j in order[:n_probe]:
            for c in range(starts[j], starts[j + 1]):
                d = _squared(x[i], centroids[c])
                if d < best:
                    best = d
                    cells[i] = c
    return cells


@compiled
def cells_to_search(x: Array, cells: Array, centroids: Array, near: Array, count: int) -> Array:
    """Return the `count` cells nearest each query, of the cells near[c] of its own cell c.

    (m, count): the own cell first, then the next nearest few, then the others in any order.
    """
    m, choice = len(x), near.shape[1]
    found, d, order = np.empty((m, count), np.int32), np.empty(choice), np.empty(choice, np.int32)
    for i in range(m):
        for j in range(choice):
            order[j] = near[cells[i], j]
            d[j] = -1.0 if order[j] == cells[i] else _squared(x[i], centroids[order[j]])
        if count < choice:
            _smallest_first(d, order, choice, count)
        for n_nearest in (_FIRST_CELLS, 1):
            if n_nearest < count:
                _smallest_first(d, order, count, n_nearest)
        for j in range(count):
            found[i, j] = order[j]
    return found


def rounding(width: int) -> float:
    """Return the relative error of a squared distance in float32, relative to its terms.

    It is that of the difference of two rounded vectors and that of a sum of products: beyond the
    worst case of a sum up to 256 terms, and beyond ten standard deviations of longer ones.
    """
    return float((8 * np.sqrt(width) + 16) * np.finfo(np.float32).eps)


@compiled
def candidates(
    x: Array, own: Array, cells: Array, lists: tuple[Array, Array, Array, float], keep: int
) -> tuple[Array, Array]:
    """Return at least the `keep` points nearest each query among those of its cells, (m, keep + 8).

    `own` are the cells of the queries; `lists` are starts, rows, centroids, and the relative error
    of a square. Points are positions in the rows, in any order, followed by -1. Distances are
    float32: ask for a few more points than needed, and compare these exactly. The squared distances
    of the other points of these cells are at least the second result (m,).
    """
    starts, rows, centroids, rounding = lists
    m, width = x.shape
    most = cells.shape[1]
    buffer = max(_MIN_BUFFER_POINTS, 3 * (keep + _KEEP_SLACK))
    distances, found = np.empty((m, buffer), np.float32), np.empty((m, buffer), np.int32)
    counts, limits = np.zeros(m, np.int64), np.full(m, np.inf, np.float32)
    nearest = distances, found, counts, limits
    offsets, shifted = np.empty((m, width), np.float32), np.empty((m, width + 1), np.float32)
    for i in range(m):
        for t in range(width):
            offsets[i, t] = x[i, t] - centroids[own[i], t]
    squares, step = np.empty(m, np.float32), np.empty(width, np.float32)
    products = np.empty(m * _BLOCK_POINTS, np.float32)
    kept = np.float32(1 - rounding)
    stages = (0, 1, _FIRST_CELLS, most)
    for stage in range(3):
        low, high = stages[stage], min(stages[stage + 1], most)
        if low >= high:
            continue
        members, group_starts = _group(cells[:, low:high], len(starts) - 1)
        for c in range(len(starts) - 1):
            queries = members[group_starts[c] : group_starts[c + 1]]
            g = len(queries)
            if g == 0:
                continue
            q = shifted[:g]
            # Query - centroid of c: its offset from its own one, and the step between the two,
            # each accurate in float32.
            last = -1
            for r in range(g):
                i = queries[r]
                if own[i] != last:
                    last = own[i]
                    for t in range(width):
                        step[t] = np.float32(centroids[last, t] - centroids[c, t])
                total = np.float32(0.0)
                for t in range(width):
                    q[r, t] = offsets[i, t] + step[t]
                    total += q[r, t] * q[r, t]
                q[r, width] = 1.0
                squares[r] = total * kept
            for start in range(starts[c], starts[c + 1], _BLOCK_POINTS):
                stop = min(start + _BLOCK_POINTS, starts[c + 1])
                S = products[: g * (stop - start)].reshape(g, stop - start)
                np.dot(q, rows[start:stop].T, S)
                _collect(S, start, queries, squares, keep, nearest)
        for i in range(m):
            _shrink(i, keep, nearest)
    positions, bounds = np.full((m, keep + _KEEP_SLACK), -1, np.int32), np.empty(m)
    for i in range(m):
        for t in range(counts[i]):
            positions[i, t] = found[i, t]
        # The rounding of the query's own offset may add this much.
        bounds[i] = limits[i] - rounding * _squared(x[i], centroids[own[i]])
    return positions, bounds


@compiled
def sort_exactly(
    x: Array, points: Array, positions: Array, order: Array, k: int
) -> tuple[Array, Array]:
    """Return the k nearest of the candidates by explicit differences, nearest first.

    Equally distant points are in the order of their index, order[position].
    """
    squares, indices = np.full((len(x), k), np.inf), np.full((len(x), k), len(order), np.int64)
    for i in range(len(x)):
        for position in positions[i]:
            if position >= 0:
                index = np.int64(order[position])
                _insert(squares[i], indices[i], _squared(x[i], points[index]), index)
    return np.sqrt(squares), indices


@compiled
def _insert(d: Array, ids: Array, value: float, index: int) -> None:
    """Insert an entry into a list by distance, then by index, if it is before the last one."""
    at = len(d)
    while at > 0 and (d[at - 1] > value or (d[at - 1] == value and ids[at - 1] > index)):
        at -= 1
        if at + 1 < len(d):
            d[at + 1], ids[at + 1] = d[at], ids[at]
    if at < len(d):
        d[at], ids[at] = value, index


@compiled
def _squared(x: Array, y: Array) -> float:
    total = 0.0
    for t in range(len(x)):
        difference = np.float64(x[t]) - np.float64(y[t])
        total += difference * difference
    return total


@compiled
def _smallest_first(d: Array, ids: Array, count: int, k: int) -> None:
    """Rearrange d and ids, of length `count`, so that the k smallest d come first (quickselect)."""
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
def _group(cells: Array, n_cells: int) -> tuple[Array, Array]:
    """Sort the queries by cell: those that search cell c are members[starts[c] : starts[c + 1]]."""
    starts = np.zeros(n_cells + 1, np.int64)
    for i in range(len(cells)):
        for c in cells[i]:
            starts[c + 1] += 1
    for c in range(n_cells):
        starts[c + 1] += starts[c]
    members, free = np.empty(cells.size, np.int64), starts.copy()
    for i in range(len(cells)):
        for c in cells[i]:
            members[free[c]] = i
            free[c] += 1
    return members, starts


@compiled
def _collect(
    S: Array, start: int, queries: Array, squares: Array, keep: int, nearest: _Nearest
) -> None:
    """Add the points nearer than the limit of their query; most blocks of 32 contain none."""
    distances, found, counts, limits = nearest
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
                _shrink(i, keep, nearest)
                limit, count = limits[i] - own, counts[i]
            for t in range(p, stop):  # no branch: it would be unpredictable
                distances[i, count], found[i, count] = S[r, t] + own, start + t
                count += np.int64(S[r, t] < limit)
        counts[i] = count


@compiled
def _shrink(i: int, keep: int, nearest: _Nearest) -> None:
    """Keep the `keep` nearest points of query i, or up to 8 more, and lower its limit.

    The limit is found by bisection, in which counting needs no branches.
    """
    distances, found, counts, limits = nearest
    count = counts[i]
    if count <= keep + _KEEP_SLACK:
        return
    low = high = distances[i, 0]
    for t in range(count):
        low = distances[i, t] if distances[i, t] < low else low
        high = distances[i, t] if distances[i, t] > high else high
    low -= abs(low) * np.float32(1e-3) + np.float32(1e-30)
    while True:
        middle = np.float32(0.5) * (low + high)
        if middle <= low or middle >= high:  # the distances in between are equal
            break
        below = np.int32(0)
        for t in range(count):
            below += np.int32(distances[i, t] <= middle)
        if below < keep:
            low = middle
            continue
        high = middle
        if below <= keep + _KEEP_SLACK:
            break
    kept = _move_to_front(i, count, high, distances, found)
    if kept > keep + _KEEP_SLACK:  # any of equally distant points
        _move_to_front(i, kept, low, distances, found)
        kept = keep
    counts[i], limits[i] = kept, high


@compiled
def _move_to_front(i: int, count: int, limit: float, distances: Array, found: Array) -> int:
    """Swap points of query i so that those up to the limit come first; return their number."""
    kept = 0
    for t in range(count):
        d, position = distances[i, t], found[i, t]
        distances[i, t], found[i, t] = distances[i, kept], found[i, kept]
        distances[i, kept], found[i, kept] = d, position
        kept += int(d <= limit)
    return kept
