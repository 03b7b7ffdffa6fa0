"""What a free layout does on a device of torch in its own way: repulsion, and places of new points.

Points repel each other through q = 1 / (1 + |u|²), which is smooth on the length 1, so that a grid
resolves it. The points are spread to its nodes by cubic B-splines, the sums over all pairs are
products of Fourier transforms, and the same splines read them at the points: the particle mesh of
Essmann et al. (1995).
"""

import math
from typing import Any

import numpy as np

from heatsketch._tiles import row_tiles
from heatsketch._typing import Array
from heatsketch.backend import Block
from heatsketch.backend.device import DeviceBlocks, DeviceCSR

# of the nodes: errors of forces are .15 % of their parts in the mean square, 2 % at one point
_SPACING = 0.28
_NODES = 4  # of a spline, in each direction
_GRIDS = 7  # as large, at most, take half of what is free
_MOST_FOR_A_POINT, _MOST = 2**13, 2**30  # nodes: beyond, a tree is as fast; sizes untried
_ROUNDS = 8  # of the descent to medians, most of which need no more


class Grid:
    """Sums over all pairs by a grid, whose kernels are kept while it has the same size."""

    def __init__(self, blocks: DeviceBlocks) -> None:
        self.blocks = blocks
        self._shape: tuple[int, ...] = ()
        self._kernels: list[Block] = []

    def repulsion(self, U: Block) -> tuple[Block, float] | None:
        """Return what `free.repulsion` returns of U (n, c), or None if the grid is too large."""
        xp, (n, c) = self.blocks.xp, U.shape
        U = (U - U.amin(0)) / _SPACING
        # Twice the box: what leaves it at one end comes back at the other.
        shape = tuple(_rounded_up(2 * (int(extent) + 2 * _NODES)) for extent in U.amax(0).tolist())
        size, bytes_each = math.prod(shape), _GRIDS * U.element_size()
        if size > min(_MOST, _MOST_FOR_A_POINT * n) or bytes_each * size > self.blocks.room / 2:
            return None
        if shape != self._shape:
            self._kernels = []  # first: two sizes need not fit
            self._shape, self._kernels = shape, self._transformed_kernels(shape, U.dtype)
        tiles = list(row_tiles(n, max(1, int(self.blocks.step_bytes / (32 * _NODES**c)))))
        grid = U.new_zeros(size)
        for rows in tiles:
            at, weight = _nodes_of(U[rows], shape, xp)
            grid.index_add_(0, at.flatten(), weight.flatten())
        density = xp.fft.rfftn(grid.view(shape))
        del grid
        power = density.abs().square() * self._kernels[0]  # of one half of all frequencies
        total = 2 * power.sum() - power[..., 0].sum() - power[..., -1].sum()
        density *= 1j
        forces = xp.empty_like(U)
        for a, kernel in enumerate(self._kernels[1:]):
            field = xp.fft.irfftn(density * kernel, shape).flatten()
            for rows in tiles:
                at, weight = _nodes_of(U[rows], shape, xp)
                forces[rows, a] = (weight * field[at]).sum(0)
        return forces, float(total) / size - n

    def _transformed_kernels(self, shape: tuple[int, ...], dtype: Any) -> list[Block]:
        """Return the transforms of q, and of q² u_a without their factor i.

        They are divided by those of both splines.
        """
        xp = self.blocks.xp
        steps = [np.fft.fftfreq(side, 1 / side) for side in shape]  # from a node to the others
        axes = xp.meshgrid(*(self.blocks.native(_SPACING * s, dtype) for s in steps), indexing="ij")
        q = 1 / (1 + sum(u.square() for u in axes))
        waves = [2 * math.pi * s / side for s, side in zip(steps, shape, strict=True)]
        waves[-1] = waves[-1][: shape[-1] // 2 + 1]
        splines = (self.blocks.native(((2 + np.cos(k)) / 3) ** 2, dtype) for k in waves)
        smoothing = math.prod(xp.meshgrid(*splines, indexing="ij"))
        # Half of the way around is neither before nor behind a node.
        pulls = (xp.fft.rfftn(q.square() * u * (u > u.min())).imag for u in axes)
        return [xp.fft.rfftn(q).real / smoothing, *(pull / smoothing for pull in pulls)]


def _rounded_up(side: int) -> int:
    """Return a number at most a quarter larger, with three binary digits, so that it often stays.

    Transforms of its length are fast.
    """
    unit = 2 ** max(1, side.bit_length() - 3)
    return -(-side // unit) * unit


def _nodes_of(U: Block, shape: tuple[int, ...], xp: Any) -> tuple[Block, Block]:
    """Return 4^c nodes (nodes, n) of each point U (n, c), in units of the spacing, and weights."""
    cells = U.floor()
    t = U - cells
    cells = cells.long() + xp.arange(_NODES, device=U.device)[:, None, None]  # (4, n, c)
    splines = [(1 - t) ** 3, 4 - 6 * t**2 + 3 * t**3, 1 + 3 * t + 3 * t**2 - 3 * t**3, t**3]
    weights = xp.stack(splines) / 6
    at, weight = cells[..., 0], weights[..., 0]
    for a, side in enumerate(shape[1:], 1):
        at = (at[:, None] * side + cells[..., a]).flatten(0, 1)
        weight = (weight[:, None] * weights[..., a]).flatten(0, 1)
    return at, weight


def medians_on(Y: Array, rows: DeviceCSR) -> Array:
    """Return what `free.geometric_medians` returns, for rows of k entries each, some at a time."""
    from heatsketch.backend.median_loops import MOST_ROUNDS

    blocks, m, c = rows.blocks, rows.shape[0], Y.shape[1]
    k = len(rows.data) // m
    positions = blocks.native(Y, float)
    places = positions.new_empty(m, c)
    indices, weights = (part.view(-1, k) for part in (rows.indices, rows.data.double()))

    def data(chosen: Any) -> tuple[Block, Block]:
        w = weights[chosen]
        heaviest = w.amax(1, keepdim=True)
        w = blocks.xp.where(w < heaviest, w / heaviest, 1.0)  # a finite one of infinite ones: 0
        return positions[indices[chosen]], w

    step = max(1, int(blocks.step_bytes / (64 * k * max(k, 10) * (c + 2))))
    moving = [t.start + _start(*data(t), places[t], blocks.xp) for t in row_tiles(m, step)]
    for _ in range(0, MOST_ROUNDS, _ROUNDS):
        left = blocks.xp.cat(moving)  # the few of many tiles go on together
        tiles = [left[t] for t in row_tiles(len(left), step)]
        moving = [t[_descended(*data(t), places, t, blocks.xp)] for t in tiles]
        if not moving:
            break
    return blocks.host(places)


def _start(data: Block, w: Block, places: Block, xp: Any) -> Block:
    """Set the places (m, c) of medians of data (m, k, c), by the rules of `median_loops.medians`.

    Return the rows whose place is a start alone.
    """
    from heatsketch.backend.median_loops import ROUNDING

    cost, own, inverse, pull, _, _ = _slopes(data, w, data, xp)
    strength = pull.norm(dim=-1)
    least = (strength <= own * (1 + ROUNDING)) & (w > 0)
    every = xp.arange(len(w), device=w.device)
    first = data[every, least.int().argmax(1)]
    count = least.sum(1)
    beside = xp.where(least[..., None], data - first[:, None], 0.0).sum(1)
    places.copy_(first + beside / count.clip(min=1)[:, None])
    rows = (count == 0).nonzero()[:, 0]
    best = xp.where(w > 0, cost, math.inf).argmin(1)[rows]
    own, inverse, strength, pull = (x[rows, best] for x in (own, inverse, strength, pull))
    places[rows] = data[rows, best] - ((1 - own / strength) / inverse)[:, None] * pull
    return rows


def _descended(data: Block, w: Block, places: Block, rows: Block, xp: Any) -> Block:
    """Make some rounds from the places of some rows (m,), without waits; say which still move."""
    from heatsketch.backend.median_loops import HALVINGS, ROUNDING, STILL

    every, y = xp.arange(len(w), device=w.device), places[rows]
    halves = 0.5 ** xp.arange(HALVINGS, device=w.device, dtype=w.dtype)[:, None]
    for _ in range(_ROUNDS):
        _, _, inverse, pull, over, units = (x[:, 0] for x in _slopes(data, w, y[:, None], xp))
        curvature = -xp.einsum("mk,mki,mkj->mij", over, units, units)
        curvature.diagonal(dim1=1, dim2=2).add_((1 + ROUNDING) * inverse[:, None])
        newton = xp.linalg.solve_ex(curvature, pull)[0]
        plain = (y - pull / inverse[:, None])[:, None]
        tried = xp.cat([y[:, None] - halves * newton[:, None], plain], 1)
        cost = (w[:, None] * (tried[:, :, None] - data[:, None]).norm(dim=-1)).sum(-1)
        lower = (cost <= cost[:, -1:]).int().argmax(1)  # the first; the last one is Weiszfeld's
        before, y = y, tried[every, lower]
    places[rows] = y
    extent = (data - before[:, None]).abs().amax((1, 2))
    still = STILL * extent + np.finfo(float).eps * y.abs().amax(1)  # or rounding goes on for ever
    return (y - before).abs().amax(1) > still


def _slopes(data: Block, w: Block, y: Block, xp: Any) -> tuple[Block, ...]:
    """Return Σ w d, the weight at y, Σ w / d of the others, the slope (m, p, c) at points y.

    Then w / d of each datum, and the unit vectors from there (m, p, k, c).
    """
    u = y[:, :, None] - data[:, None]  # (m, p, k, c)
    d = u.norm(dim=-1)
    w = w[:, None].expand(d.shape)
    over = xp.where(d > 0, w / d, 0.0)
    units = xp.where(d[..., None] > 0, u / d[..., None], 0.0)
    pull = xp.einsum("mpk,mpki->mpi", w, units)
    return (w * d).sum(-1), (w * (d == 0)).sum(-1), over.sum(-1), pull, over, units
