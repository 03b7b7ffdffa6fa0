"""Sums over all pairs of points on the host: repulsion by a tree."""

import numpy as np

from heatsketch._arrays import Array
from heatsketch._threads import for_each_tile

OPENING = 0.25  # θ of the tree: forces are within a thousandth of all their parts
# No bit depends on the tiles. Those of compiled loops, which release the lock of the interpreter,
# are so small that small data, too, use all threads.
_TILES = 8
ROWS, _NODES = (512, 4_096), (64, 512)  # of a tile, at least and at most; nodes of the tree


def tile_of(n: int, limits: tuple[int, int] = ROWS) -> int:
    """Return the size of a tile of n rows for a compiled loop."""
    least, most = limits
    return min(max(n // _TILES, least), most)


def repulsion(U: Array, theta: float = OPENING, mass: Array | None = None) -> tuple[Array, float]:
    """Return Σ_j q_ij² (u_i - u_j) (n, c), and Σ q over all i != j; q = 1 / (1 + |u_i - u_j|²).

    By a tree over the points, see `pair_loops`; exact with θ = 0. With `mass` (n,) a pair counts
    m_i m_j times.
    """
    from heatsketch.core import loops  # imports numba

    n, c = U.shape
    low = U.min(axis=0)
    width = float((U - low).max()) or 1.0
    cells, codes = np.empty((n, c), np.uint64), np.empty(n, np.uint64)

    def encode(rows: slice) -> None:
        scale = (2.0 ** (loops.CODE_BITS // c) - 1) / width
        cells[rows] = (U[rows] - low) * scale
        loops.interleave(cells, rows.start, rows.stop, codes)

    for_each_tile(encode, n, ROWS[1])
    order = np.argsort(codes)
    if np.any(codes[order[1:]] == codes[order[:-1]]):  # else any sort gives this order, the fastest
        order = np.argsort(codes, kind="stable")
    points, mass = U[order], None if mass is None else mass[order]
    nodes = [np.empty(2 * n, kind) for kind in (np.int32, np.int32, np.int32, bool)]
    count = loops.divide(codes[order], *nodes)
    sizes = (count, 2, c), (count, 2 + c + c**2)
    tree = loops.Tree(*(each[:count] for each in nodes), *map(np.empty, sizes))
    axes = tuple(range(c))
    loops.measure(points, mass, tree, axes)
    force, q = np.empty_like(points), np.empty(n)

    def work(rows: slice) -> None:
        loops.repulsion(points, mass, tree, theta, axes, rows.start, rows.stop, force, q)

    for_each_tile(work, count, tile_of(count, _NODES))
    forces = np.empty_like(force)
    forces[order] = force if mass is None else mass[:, None] * force
    if mass is None:
        return forces, float(q.sum()) - n
    return forces, float((mass * q).sum() - (mass**2).sum())
