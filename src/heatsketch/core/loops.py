"""Compiled loops: sparse products, forces of free layouts, and shortest paths.

All pairs repel each other through q = 1 / (1 + |u|²), u the difference in units of the length s.
Sums over far points are taken by the nodes of a tree (Barnes and Hut 1986): of a node count its
mass m (of points without weights their number), its centre and its second moments C. A node is far
enough if its radius is at most θ √(1 + distance²), so that a dense dot counts as one place. θ = 0
gives exact sums. Loops without masses, None, are compiled apart.
"""

from collections.abc import Callable
from math import factorial, log
from typing import Any, NamedTuple

import numpy as np

from heatsketch._arrays import Array
from heatsketch._compile import compiled, compiled_as_written


@compiled
def multiply_block(
    indptr: Array, indices: Array, data: Array, X: Array, Y: Array, start: int, stop: int
) -> None:
    """Write the rows start to stop of the product with X (n, k) to Y (n, k).

    Four entries at a time, so that the sums are read and written a quarter as often.
    """
    k = X.shape[1]
    for i in range(start, stop):
        low, high = indptr[i], indptr[i + 1]
        fours = high - (high - low) % 4
        for c in range(k):
            Y[i, c] = 0
        for p in range(low, fours, 4):
            v0, v1, v2, v3 = data[p], data[p + 1], data[p + 2], data[p + 3]
            j0, j1, j2, j3 = indices[p], indices[p + 1], indices[p + 2], indices[p + 3]
            for c in range(k):
                Y[i, c] += v0 * X[j0, c] + v1 * X[j1, c] + v2 * X[j2, c] + v3 * X[j3, c]
        for p in range(fours, high):
            v, j = data[p], indices[p]
            for c in range(k):
                Y[i, c] += v * X[j, c]


def _exp2(real: Any, integer: Any, degree: int) -> Callable[[Array], None]:
    """Compile 2^x of one precision, three to ten times as fast as `np.exp`.

    2^x = 2^n 2^f, where n is x rounded to an integer and |f| <= 1/2. Adding 1.5 · 2^m, m the number
    of bits of the mantissa, rounds x and leaves n in the last bits of the sum; shifted up by m they
    are added to the exponent of the result. 2^f is its Taylor polynomial, whose first term
    left out is below half of the rounding.
    """
    mantissa, lowest = np.finfo(real).nmant, np.finfo(real).minexp
    rounder, smallest, zero = real(1.5 * 2.0**mantissa), real(lowest), real(0)
    shift, nothing = integer(mantissa), integer(0)
    first, *others = (real(log(2) ** j / factorial(j)) for j in range(degree, -1, -1))
    rest = tuple(others)

    @compiled_as_written  # sums re-ordered, (x + rounder) - rounder would be x
    def exp2(values: Array) -> None:
        bits = values.view(integer)
        for i in range(values.size):
            x = min(max(values[i], smallest), zero)
            rounded = x + rounder
            f = x - (rounded - rounder)
            values[i] = rounded
            power = bits[i] << shift
            p = first
            for coefficient in rest:
                p = p * f + coefficient
            values[i] = p
            bits[i] = bits[i] + power if x > smallest else nothing

    return exp2


exp2_double = _exp2(np.float64, np.int64, 13)  # of a vector, for other compiled loops
_EXP2_OF = {
    np.dtype(np.float32): _exp2(np.float32, np.int32, 7),
    np.dtype(np.float64): exp2_double,
}


def exp2(tile: Array) -> None:
    """Replace x <= 0 by 2^x in a contiguous array, float32 or float64.

    Within one rounding; 0 where 2^x is below the smallest normal number. Numbers above 0 count
    as 0: exponents that are sums of rounded terms may be above.
    """
    _EXP2_OF[tile.dtype](tile.reshape(-1))


CODE_BITS = 62  # of the place of a point in the box of all, for all coordinates together
# The bits of each byte, c places from one to the next, for c up to 3.
_APART = np.array(
    [[sum((byte >> b & 1) << c * b for b in range(8)) for byte in range(256)] for c in range(4)],
    np.uint64,
)
_LEAF = 16  # points of a leaf, at most, unless they are equal
_LIST = 256  # nodes or points whose forces are summed at a time
TINY = 1e-12  # squared distance that is added to those under a logarithm
Csr = tuple[Array, Array, Array]  # indptr, indices and data of a CSR matrix
Axes = tuple[int, ...]  # 0, ..., c - 1: the compiler knows the length of a tuple


class Tree(NamedTuple):
    """Nodes in preorder: the first child of i is i + 1, and skip[i] is the node after its part."""

    low: Array  # (N,), the points of a node: from low to high
    high: Array
    skip: Array
    leaf: Array
    box: Array  # (N, 2, c), its corners
    moments: Array  # (N, 2 + c + c²): radius², m, centre, C


@compiled
def interleave(cells: Array, codes: Array, start: int, stop: int) -> None:
    """Write the codes (n,) of cells (n, c): bits of all coordinates in turn, the highest first."""
    c = cells.shape[1]
    for i in range(start, stop):
        codes[i] = 0
        for a in range(c):
            for byte in range(4):
                bits = _APART[c, (cells[i, a] >> np.uint64(8 * byte)) & np.uint64(255)]
                codes[i] |= bits << np.uint64(8 * c * byte + c - 1 - a)


@compiled
def divide(codes: Array, low: Array, high: Array, skip: Array, leaf: Array) -> int:
    """Write the nodes of the tree of sorted codes (n,) to arrays (2n,); return how many there are.

    A node is divided at the highest bit in which its codes differ.
    """
    waiting = np.empty((CODE_BITS + 2, 2), np.int64)
    waiting[0, 0] = 0
    waiting[0, 1] = len(codes)
    depth, count = 1, 0
    while depth:
        depth -= 1
        start, stop = waiting[depth, 0], waiting[depth, 1]
        low[count], high[count] = start, stop
        different = codes[start] ^ codes[stop - 1]
        leaf[count] = stop - start <= _LEAF or different == 0
        if not leaf[count]:
            bit = np.uint64(1)
            while different > np.uint64(1):
                different >>= np.uint64(1)
                bit <<= np.uint64(1)
            first, last = start, stop - 1  # whose bit is 0, and 1
            while last - first > 1:
                middle = (first + last) // 2
                if codes[middle] & bit:
                    last = middle
                else:
                    first = middle
            waiting[depth, 0], waiting[depth, 1] = last, stop
            waiting[depth + 1, 0], waiting[depth + 1, 1] = start, last
            depth += 2
        count += 1
    for i in range(count - 1, -1, -1):
        skip[i] = i + 1 if leaf[i] else skip[skip[i + 1]]
    return count


@compiled
def measure(U: Array, mass: Array | None, tree: Tree, axes: Axes) -> None:
    """Write boxes and moments of the nodes over points U (n, c) of a mass (n,), see `Tree`."""
    c = len(axes)
    for i in range(len(tree.low) - 1, -1, -1):
        low, high = tree.low[i], tree.high[i]
        one = i + 1  # the children, of a node that is divided
        two = tree.skip[one] if not tree.leaf[i] else i
        box, moments = tree.box, tree.moments
        m = high - low
        if mass is not None:
            m = mass[low:high].sum()
        moments[i, 1] = m
        radius = 0.0
        for a in range(c):
            if tree.leaf[i]:
                total, least, most = 0.0, np.inf, -np.inf
                for p in range(low, high):
                    apart = U[p, a] - U[low, a]  # equal points have no second moments
                    total += apart if mass is None else mass[p] * apart
                    least, most = min(least, U[p, a]), max(most, U[p, a])
                centre = U[low, a] + total / m
                box[i, 0, a] = least
                box[i, 1, a] = most
            else:
                step = moments[two, 2 + a] - moments[one, 2 + a]
                centre = moments[one, 2 + a] + moments[two, 1] / m * step
                box[i, 0, a] = min(box[one, 0, a], box[two, 0, a])
                box[i, 1, a] = max(box[one, 1, a], box[two, 1, a])
            moments[i, 2 + a] = centre
            radius += max(box[i, 1, a] - centre, centre - box[i, 0, a]) ** 2
        moments[i, 0] = radius
        for a in range(c):
            for b in range(c):
                at = 2 + c + c * a + b
                total = 0.0
                if tree.leaf[i]:
                    for p in range(low, high):
                        apart = (U[p, a] - moments[i, 2 + a]) * (U[p, b] - moments[i, 2 + b])
                        total += apart if mass is None else mass[p] * apart
                else:
                    total = moments[one, at] + moments[two, at]
                    step = moments[two, 2 + a] - moments[one, 2 + a]
                    step *= moments[two, 2 + b] - moments[one, 2 + b]
                    total += moments[one, 1] * moments[two, 1] / m * step
                moments[i, at] = total


@compiled
def _add(
    U: Array, start: int, stop: int, nodes: Array, count: int, axes: Axes, force: Array, q: Array
) -> None:
    """Add forces and q of `count` nodes, the columns m, centre, C, to points of a leaf."""
    c = len(axes)
    last = c - 1
    for p in range(start, stop):
        px, py, pz = U[p, 0], U[p, 1], U[p, last]
        fx = fy = fz = total = 0.0
        for i in range(count):
            x, y = px - nodes[1, i], py - nodes[2, i]
            r2 = 1.0 + x * x + y * y
            vx = nodes[1 + c, i] * x + nodes[2 + c, i] * y
            vy = nodes[1 + 2 * c, i] * x + nodes[2 + 2 * c, i] * y
            trace = nodes[1 + c, i] + nodes[2 + 2 * c, i]
            z = vz = 0.0
            if c == 3:
                z = pz - nodes[3, i]
                r2 += z * z
                vx += nodes[6, i] * z
                vy += nodes[9, i] * z
                vz = nodes[10, i] * x + nodes[11, i] * y + nodes[12, i] * z
                trace += nodes[12, i]
            k = 1.0 / r2
            w = x * vx + y * vy + z * vz
            along = k * k * (nodes[0, i] - 2.0 * k * (trace - 6.0 * k * w))
            across = 4.0 * k * k * k
            fx += along * x - across * vx
            fy += along * y - across * vy
            fz += along * z - across * vz
            total += k * (nodes[0, i] - k * (trace - 4.0 * k * w))
        force[p, 0] += fx
        force[p, 1] += fy
        if c == 3:
            force[p, last] += fz
        q[p] += total


@compiled
def repulsion(
    U: Array,
    mass: Array | None,
    tree: Tree,
    theta: float,
    axes: Axes,
    force: Array,
    q: Array,
    start: int,
    stop: int,
) -> None:
    """Write Σ m q² u (n, c) and Σ m q (n,) over all points to those of the leaves start to stop."""
    c = len(axes)
    size = 1 + c + c * c
    nodes = np.empty((size, _LIST))
    none = np.int64(0)  # a literal 0 would be another type, for which `_add` were compiled again
    for i in range(start, stop):
        if not tree.leaf[i]:
            continue
        low, high, count = tree.low[i], tree.high[i], none
        for p in range(low, high):
            q[p] = 0.0
            for a in range(c):
                force[p, a] = 0.0
        j = 0
        while j < len(tree.low):
            far = 1.0
            for a in range(c):
                x = tree.moments[j, 2 + a]
                far += max(tree.box[i, 0, a] - x, x - tree.box[i, 1, a], 0.0) ** 2
            taken = tree.moments[j, 0] <= theta * theta * far
            if taken or tree.leaf[j]:
                points = 1 if taken else tree.high[j] - tree.low[j]
                for p in range(points):
                    if count == _LIST:
                        _add(U, low, high, nodes, count, axes, force, q)
                        count = none
                    for row in range(size):
                        nodes[row, count] = tree.moments[j, 1 + row] if taken else 0.0
                    if not taken:
                        nodes[0, count] = 1.0 if mass is None else mass[tree.low[j] + p]
                        for a in range(c):
                            nodes[1 + a, count] = U[tree.low[j] + p, a]
                    count += 1
                j = tree.skip[j]
            else:
                j += 1
        _add(U, low, high, nodes, count, axes, force, q)


@compiled
def along_edges(
    Y: Array, edges: Csr, s: float, scale: float, axes: Axes, G: Array, start: int, stop: int
) -> None:
    """Write Σ_j scale p_ij q_ij (y_i - y_j) to G (n, c), over the edges of a symmetric matrix p.

    Each point sums its own forces in order.
    """
    c = len(axes)
    indptr, indices, p = edges
    for i in range(start, stop):
        for a in range(c):
            G[i, a] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j, square = indices[e], 0.0
            for a in range(c):
                square += (Y[i, a] - Y[j, a]) ** 2
            weight = scale * p[e] / (1.0 + square / s**2)
            for a in range(c):
                G[i, a] += weight * (Y[i, a] - Y[j, a])


@compiled
def between_pairs(
    Y: Array,
    pairs: Csr,
    scale: float,
    mass: Array | None,
    axes: Axes,
    G: Array,
    start: int,
    stop: int,
) -> None:
    """Write Σ_j scale m_j huber'(log |y_i - y_j| - T_ij) (y_i - y_j) / |y_i - y_j|² to G (n, c).

    Over the entries of a symmetric matrix T.
    """
    c = len(axes)
    indptr, indices, targets = pairs
    for i in range(start, stop):
        for a in range(c):
            G[i, a] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j, square = indices[e], TINY
            for a in range(c):
                square += (Y[i, a] - Y[j, a]) ** 2
            slope = min(max(0.5 * log(square) - targets[e], -1.0), 1.0) * scale / square
            slope = slope if mass is None else slope * mass[j]
            for a in range(c):
                G[i, a] += slope * (Y[i, a] - Y[j, a])


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
