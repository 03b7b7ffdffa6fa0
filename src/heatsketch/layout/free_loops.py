"""Compiled loops of free layouts: forces along edges, of pairs with a distance, and of all pairs.

All pairs repel each other through q = 1 / (1 + |u|²), u the difference in units of the length s.
Sums over far points are taken by the nodes of a tree (Barnes and Hut 1986): of a node count its
number of points m, its centre and its second moments C. A node is far enough if its radius is at
most θ √(1 + distance²), so that a dense dot counts as one place. θ = 0 gives exact sums.
"""

from collections.abc import Callable
from math import log
from typing import NamedTuple

import numpy as np

from heatsketch._compile import compiled
from heatsketch._typing import Array

CODE_BITS = 62  # of the place of a point in the box of all, for all coordinates together
_LEAF = 16  # points of a leaf, at most, unless they are equal
_LIST = 256  # nodes or points whose forces are summed at a time
_TINY = 1e-12  # squared distance that is added to those under a logarithm
Csr = tuple[Array, Array, Array]  # indptr, indices and data of a CSR matrix


class Tree(NamedTuple):
    """Nodes in preorder: the first child of i is i + 1, and skip[i] is the node after its part."""

    low: Array  # (N,), the points of a node: from low to high
    high: Array
    skip: Array
    leaf: Array
    box: Array  # (N, 2, c), its corners
    moments: Array  # (N, 2 + c + c²): radius², m, centre, C


@compiled
def interleave(cells: Array, start: int, stop: int, codes: Array) -> None:
    """Write the codes (n,) of cells (n, c): bits of all coordinates in turn, the highest first."""
    c = cells.shape[1]
    bits = CODE_BITS // c
    for i in range(start, stop):
        codes[i] = 0
        for bit in range(bits - 1, -1, -1):
            for a in range(c):
                lowest = (cells[i, a] >> np.uint64(bit)) & np.uint64(1)
                codes[i] = (codes[i] << np.uint64(1)) | lowest


@compiled
def nodes_of(codes: Array) -> tuple[Array, Array, Array, Array]:
    """Return low, high, skip and leaf (N,) of the tree of sorted codes (n,).

    A node is divided at the highest bit in which its codes differ.
    """
    n = len(codes)
    low, high = np.empty(2 * n, np.int32), np.empty(2 * n, np.int32)
    leaf = np.empty(2 * n, np.bool_)
    waiting = np.empty((CODE_BITS + 2, 2), np.int64)
    waiting[0, 0], waiting[0, 1] = 0, n
    depth, count = 1, 0
    while depth:
        depth -= 1
        start, stop = waiting[depth]
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
    skip = np.empty(count, np.int32)
    for i in range(count - 1, -1, -1):
        skip[i] = i + 1 if leaf[i] else skip[skip[i + 1]]
    return low[:count].copy(), high[:count].copy(), skip, leaf[:count].copy()


@compiled
def measure_nodes(
    U: Array, low: Array, high: Array, skip: Array, leaf: Array
) -> tuple[Array, Array]:
    """Return boxes and moments of the nodes over points U (n, c), see `Tree`."""
    n, c = len(low), U.shape[1]
    box, moments = np.empty((n, 2, c)), np.zeros((n, 2 + c + c * c))
    for i in range(n - 1, -1, -1):
        m = high[i] - low[i]
        one, two = moments[i + 1 if not leaf[i] else i], moments[i if leaf[i] else skip[i + 1]]
        own = moments[i]
        own[1] = m
        for a in range(c):
            if leaf[i]:
                total, least, most = 0.0, np.inf, -np.inf
                for p in range(low[i], high[i]):
                    total += U[p, a] - U[low[i], a]  # equal points have no second moments
                    least, most = min(least, U[p, a]), max(most, U[p, a])
                own[2 + a], box[i, 0, a], box[i, 1, a] = U[low[i], a] + total / m, least, most
            else:
                own[2 + a] = one[2 + a] + two[1] / m * (two[2 + a] - one[2 + a])
                box[i, 0, a] = min(box[i + 1, 0, a], box[skip[i + 1], 0, a])
                box[i, 1, a] = max(box[i + 1, 1, a], box[skip[i + 1], 1, a])
            own[0] += max(box[i, 1, a] - own[2 + a], own[2 + a] - box[i, 0, a]) ** 2
        for a in range(c):
            for b in range(c):
                total = 0.0
                if leaf[i]:
                    for p in range(low[i], high[i]):
                        total += (U[p, a] - own[2 + a]) * (U[p, b] - own[2 + b])
                else:
                    at = 2 + c + c * a + b
                    total = one[at] + two[at]
                    step = (two[2 + a] - one[2 + a]) * (two[2 + b] - one[2 + b])
                    total += one[1] * two[1] / m * step
                own[2 + c + c * a + b] = total
    return box, moments


def _repulsion(c: int) -> Callable[..., None]:
    """Compile the sums over all pairs in c = 2 or 3 dimensions, a constant for the compiler."""
    solid, last = c == 3, c - 1

    @compiled
    def add(
        U: Array, start: int, stop: int, nodes: Array, count: int, force: Array, q: Array
    ) -> None:
        """Add forces and q of `count` nodes, the columns m, centre, C, to points of a leaf."""
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
                if solid:
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
            if solid:
                force[p, last] += fz
            q[p] += total

    @compiled
    def repulsion(
        U: Array, tree: Tree, theta: float, start: int, stop: int, force: Array, q: Array
    ) -> None:
        """Write Σ q² u (n, c) and Σ q (n,) over all points to those of the leaves start to stop."""
        nodes = np.empty((1 + c + c * c, _LIST))
        for i in range(start, stop):
            if not tree.leaf[i]:
                continue
            low, high, count = tree.low[i], tree.high[i], 0
            force[low:high], q[low:high] = 0.0, 0.0
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
                            add(U, low, high, nodes, count, force, q)
                            count = 0
                        if taken:
                            nodes[:, count] = tree.moments[j, 1:]
                        else:
                            nodes[:, count] = 0.0
                            nodes[0, count] = 1.0
                            nodes[1 : 1 + c, count] = U[tree.low[j] + p]
                        count += 1
                    j = tree.skip[j]
                else:
                    j += 1
            add(U, low, high, nodes, count, force, q)

    return repulsion


repulsion = {2: _repulsion(2), 3: _repulsion(3)}  # by the number of dimensions


def _pull(c: int) -> Callable[..., None]:
    """Compile the forces along edges and pairs in c dimensions."""

    @compiled
    def pull(
        Y: Array, edges: Csr, pairs: Csr, s: float, scale: float, start: int, stop: int, G: Array
    ) -> None:
        """Write the sums of scale p q (y_i - y_j) and of huber' (y_i - y_j) / |y_i - y_j|².

        Over edges, and over pairs. Both are symmetric CSR matrices, so that each point sums its own
        forces in order.
        """
        indptr, indices, p = edges
        pair_indptr, pair_indices, targets = pairs
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
            weight = 1.0 / (len(pair_indices) / 2)
            for e in range(pair_indptr[i], pair_indptr[i + 1]):
                j, square = pair_indices[e], _TINY
                for a in range(c):
                    square += (Y[i, a] - Y[j, a]) ** 2
                slope = min(max(0.5 * log(square) - targets[e], -1.0), 1.0) * weight / square
                for a in range(c):
                    G[i, a] += slope * (Y[i, a] - Y[j, a])

    return pull


pull = {2: _pull(2), 3: _pull(3)}
