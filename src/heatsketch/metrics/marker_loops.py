"""The compiled loop of rank sums: two groups of rows in each column of a matrix."""

import numpy as np

from heatsketch._arrays import Array
from heatsketch._compile import compiled


@compiled
def rank_sums(
    data: Array,
    indices: Array,
    indptr: Array,
    group: Array,
    zeros: Array,
    columns: Array,
    found: Array,
) -> None:
    """Compare groups 0 and 1 of the rows in some columns of a CSC matrix.

    `group` (n,) is 0, 1 or -1 for rows of neither. `zeros` (3,) is 1 if entries that are not stored
    are 0, or 0 if all are stored, ascending in each group; then the numbers of rows of the groups.
    NaN counts in no group.
    `found` (m, 6) gets for each column the wins of group 0 over group 1 (a tie is half a win), the
    sum of t³ - t over ties of t entries, both numbers of entries, and both medians.
    """
    n0, n1 = zeros[1], zeros[2]
    first, second = np.empty(n0), np.empty(n1)
    for c in range(len(columns)):
        j = columns[c]
        a, b, lost0, lost1 = 0, 0, 0, 0
        for p in range(indptr[j], indptr[j + 1]):
            x = data[p]
            g = group[indices[p]]
            if g < 0:
                continue
            if x != x:
                if g == 0:
                    lost0 += 1
                else:
                    lost1 += 1
            elif zeros[0] and x == 0:
                continue
            elif g == 0:
                first[a] = x
                a += 1
            else:
                second[b] = x
                b += 1
        u, v = first[:a], second[:b]
        if zeros[0]:
            u.sort()
            v.sort()
        zero0, zero1 = n0 - lost0 - a, n1 - lost1 - b  # entries that are 0 and not in the lists
        m0, m1 = a + zero0, b + zero1
        wins, ties = 0.0, 0.0
        p, q, below1 = 0, 0, 0
        done = zero0 + zero1 == 0
        while p < a or q < b or not done:
            # The next value, and how often it occurs in each group.
            x = np.inf
            if p < a:
                x = u[p]
            if q < b and v[q] < x:
                x = v[q]
            s, t = 0, 0
            if not done and (x > 0 or (p >= a and q >= b)):
                s, t, done = zero0, zero1, True
            else:
                while p < a and u[p] == x:
                    s += 1
                    p += 1
                while q < b and v[q] == x:
                    t += 1
                    q += 1
            wins += s * (below1 + 0.5 * t)
            below1 += t
            both = float(s + t)
            ties += both * (both * both - 1)
        found[c, 0], found[c, 1], found[c, 2], found[c, 3] = wins, ties, m0, m1
        found[c, 4], found[c, 5] = _median(u, zero0), _median(v, zero1)


@compiled
def _median(x: Array, zeros: int) -> float:
    """Return the median of sorted numbers and some zeros; NaN of none."""
    n = len(x) + zeros
    if n == 0:
        return np.nan
    negative = 0
    while negative < len(x) and x[negative] < 0:
        negative += 1
    total = 0.0
    for place in ((n - 1) // 2, n // 2):
        if place < negative:
            total += x[place]
        elif place >= negative + zeros:
            total += x[place - zeros]
    return total / 2
