"""The compiled inner loops: power sums of the dilations of pairs, and their gradient.

Pairs are stored by their first point: those of point i have the numbers starts[i] to starts[i + 1].
Their second points are `columns`, or i + 1, i + 2, ... if `columns` is None (all pairs). Each call
processes every `step`-th point from `first` on. A row of pairs stays in the cache during all its
steps; only the distances to keep are read from memory.
"""

import numpy as np

from heatsketch._compile import compiled
from heatsketch._typing import Array

_MIN_SQUARED_DILATION = 1e-60  # so that points that coincide in the embedding count finitely


@compiled
def power_sums(
    Yt: Array,
    starts: Array,
    columns: Array | None,
    inverse: Array,
    doublings: int,
    first: int,
    step: int,
) -> tuple[float, float, float, float]:
    """Return the extremes of r = |y_i - y_j|² · inverse, and Σ (r / max)^h and Σ (min / r)^h.

    h = 2^doublings. Sums grow row by row, and are rescaled when a row has a new extreme.
    """
    n, longest = Yt.shape[1], _longest_row(starts, first, step)
    r, above, below = np.empty(longest), np.empty(longest), np.empty(longest)
    low, high, up, down = np.inf, 0.0, 0.0, 0.0
    for i in range(first, n, step):
        start, count = starts[i], starts[i + 1] - starts[i]
        _dilations(Yt, i, start, count, columns, inverse, r)
        row_low, row_high = low, high
        for p in range(count):
            row_low, row_high = min(row_low, r[p]), max(row_high, r[p])
        if row_high > high:
            up *= _repeated_square(high / row_high, doublings)
            high = row_high
        if row_low < low:
            down *= _repeated_square(row_low / low, doublings)
            low = row_low
        _powers(r, count, doublings, low, high, above, below)
        for p in range(count):
            up += above[p]
            down += below[p]
    return low, high, up, down


@compiled
def gradient(
    Yt: Array,
    starts: Array,
    columns: Array | None,
    inverse: Array,
    doublings: int,
    ends: tuple[float, float],
    sums: tuple[float, float],
    first: int,
    step: int,
    g: Array,
) -> None:
    """Add to g (k, n) the derivative of (log Σ r^h + log Σ r^-h) / 2h by Yt."""
    (k, n), longest = Yt.shape, _longest_row(starts, first, step)
    low, high = ends
    up, down = 1 / sums[0], 1 / sums[1]
    r, above, below = np.empty(longest), np.empty(longest), np.empty(longest)
    for i in range(first, n, step):
        start, count = starts[i], starts[i + 1] - starts[i]
        _dilations(Yt, i, start, count, columns, inverse, r)
        _powers(r, count, doublings, low, high, above, below)
        scale = inverse[start : start + count]
        for p in range(count):
            above[p] = (above[p] * up - below[p] * down) / r[p] * scale[p]
        for c in range(k):
            y, total = Yt[c, i], 0.0
            if columns is None:
                other, out = Yt[c, i + 1 :], g[c, i + 1 :]
                for p in range(count):
                    pull = above[p] * (y - other[p])
                    total += pull
                    out[p] -= pull
            else:
                second = columns[start : start + count]
                for p in range(count):
                    pull = above[p] * (y - Yt[c, second[p]])
                    total += pull
                    g[c, second[p]] -= pull
            g[c, i] += total


@compiled
def _longest_row(starts: Array, first: int, step: int) -> int:
    longest = 0
    for i in range(first, len(starts) - 1, step):
        longest = max(longest, starts[i + 1] - starts[i])
    return longest


@compiled
def _dilations(
    Yt: Array, i: int, start: int, count: int, columns: Array | None, inverse: Array, r: Array
) -> None:
    """Write r = |y_i - y_j|² · inverse for the pairs of point i."""
    scale = inverse[start : start + count]
    r[:count] = 0.0
    for c in range(Yt.shape[0]):
        y = Yt[c, i]
        if columns is None:
            other = Yt[c, i + 1 :]
            for p in range(count):
                d = other[p] - y
                r[p] += d * d
        else:
            second = columns[start : start + count]
            for p in range(count):
                d = Yt[c, second[p]] - y
                r[p] += d * d
    for p in range(count):
        r[p] = max(r[p] * scale[p], _MIN_SQUARED_DILATION)


@compiled
def _powers(
    r: Array, count: int, doublings: int, low: float, high: float, above: Array, below: Array
) -> None:
    """Write (r / high)^h and (low / r)^h by repeated squaring."""
    largest = 1 / high
    for p in range(count):
        above[p] = r[p] * largest
        below[p] = low / r[p]
    for _ in range(doublings):
        for p in range(count):
            above[p] *= above[p]
            below[p] *= below[p]


@compiled
def _repeated_square(value: float, doublings: int) -> float:
    for _ in range(doublings):
        value *= value
    return value
