"""What a free layout does on a device of torch in its own way: repulsion, and places of new points.

Points repel each other through q = 1 / (1 + |u|²), which is smooth on the length 1, so that a grid
resolves it. The points are spread to its nodes by cubic B-splines, the sums over all pairs are
products of Fourier transforms, and the same splines read them at the points: the particle mesh of
Essmann et al. (1995).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from heatsketch._tiles import row_tiles
from heatsketch._typing import Array
from heatsketch.operators.blocks import Block, DeviceBlocks, DeviceCSR

_SPACING = 0.28  # of the nodes: forces are within a thousandth of all their parts, as by the tree
_NODES = 4  # of a spline, in each direction
_GRIDS = 7  # as large, at most, take half of what is free
_MOST_FOR_A_POINT, _MOST = 2**13, 2**30  # nodes: beyond, a tree is as fast; sizes untried


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
        tiles = list(row_tiles(n, max(1, int(self.blocks.free / (16 * _NODES**c)))))
        grid = U.new_zeros(size)
        for rows in tiles:
            for at, weight in _nodes_of(U[rows], shape):
                grid.index_add_(0, at, weight)
        density = xp.fft.rfftn(grid.view(shape))
        del grid
        power = density.abs().square() * self._kernels[0]  # of one half of all frequencies
        total = 2 * power.sum() - power[..., 0].sum() - power[..., -1].sum()
        density *= 1j
        forces = xp.empty_like(U)
        for a, kernel in enumerate(self._kernels[1:]):
            field = xp.fft.irfftn(density * kernel, shape).flatten()
            for rows in tiles:
                nodes = _nodes_of(U[rows], shape)
                forces[rows, a] = sum(weight * field[at] for at, weight in nodes)
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


def _nodes_of(U: Block, shape: tuple[int, ...]) -> Iterator[tuple[Block, Block]]:
    """Yield the nodes (n,) of each point U (n, c), in units of the spacing, and their weights."""
    cells = U.floor()
    t = U - cells
    splines = [(1 - t) ** 3, 4 - 6 * t**2 + 3 * t**3, 1 + 3 * t + 3 * t**2 - 3 * t**3, t**3]
    weights = [list((spline / 6).T.contiguous()) for spline in splines]
    strides = [math.prod(shape[a + 1 :]) for a in range(len(shape))]
    first = sum(column.long() * stride for column, stride in zip(cells.T, strides, strict=True))
    for node in product(range(_NODES), repeat=len(shape)):
        own = [weights[step][a] for a, step in enumerate(node)]
        yield first + sum(map(math.prod, zip(node, strides, strict=True))), math.prod(own)


def medians_on(Y: Array, rows: DeviceCSR) -> Array:
    """Return what `free.geometric_medians` returns, for rows of k entries each, some at a time."""
    blocks, m, c = rows.blocks, rows.shape[0], Y.shape[1]
    k = len(rows.data) // m
    positions, places = blocks.native(Y, float), np.empty((m, c))
    indices, weights = (part.view(-1, k) for part in (rows.indices, rows.data.double()))
    step = max(1, int(blocks.free / (64 * k * max(k, 10) * (c + 2))))
    for tile in row_tiles(m, step):
        places[tile] = blocks.host(_medians(positions[indices[tile]], weights[tile], blocks.xp))
    return places


def _medians(data: Block, w: Block, xp: Any) -> Block:
    """Return the medians (m, c) of data (m, k, c), by the rules of `median_loops.medians`."""
    from heatsketch.layout.median_loops import HALVINGS, MOST_ROUNDS, ROUNDING, STILL

    heaviest = w.amax(1, keepdim=True)
    w = xp.where(w < heaviest, w / heaviest, 1.0)  # a finite one of infinite ones: 0
    cost, own, inverse, pull, _ = _slopes(data, w, data, xp)
    strength = pull.norm(dim=-1)
    least = (strength <= own * (1 + ROUNDING)) & (w > 0)
    every = xp.arange(len(w), device=w.device)
    first = data[every, least.int().argmax(1)]
    count = least.sum(1)
    beside = xp.where(least[..., None], data - first[:, None], 0.0).sum(1)
    places = first + beside / count.clip(min=1)[:, None]
    rows = (count == 0).nonzero()[:, 0]
    best = xp.where(w > 0, cost, math.inf).argmin(1)[rows]
    data, w = data[rows], w[rows]
    own, inverse, strength, pull = (x[rows, best] for x in (own, inverse, strength, pull))
    y = data[every[: len(rows)], best] - ((1 - own / strength) / inverse)[:, None] * pull
    halves = 0.5 ** xp.arange(HALVINGS, device=w.device, dtype=w.dtype)[:, None]
    for _ in range(MOST_ROUNDS):
        _, _, inverse, pull, curvature = (x[:, 0] for x in _slopes(data, w, y[:, None], xp))
        curvature.diagonal(dim1=1, dim2=2).add_(ROUNDING * inverse[:, None])
        newton = xp.linalg.solve(curvature, pull)
        plain = (y - pull / inverse[:, None])[:, None]
        tried = xp.cat([y[:, None] - halves * newton[:, None], plain], 1)
        cost = _slopes(data, w, tried, xp)[0]
        lower = (cost <= cost[:, -1:]).int().argmax(1)  # the first; the last one is Weiszfeld's
        before, y = y, tried[every[: len(y)], lower]
        places[rows] = y
        moving = (y - before).abs().amax(1) > STILL * (data - before[:, None]).abs().amax((1, 2))
        rows, data, w, y = rows[moving], data[moving], w[moving], y[moving]
        if not len(rows):
            break
    return places


def _slopes(data: Block, w: Block, y: Block, xp: Any) -> tuple[Block, ...]:
    """Return Σ w d, the weight at y, Σ w / d of the others, slope and curvature at y (m, p, c)."""
    u = y[:, :, None] - data[:, None]  # (m, p, k, c)
    d = u.norm(dim=-1)
    w = w[:, None].expand(d.shape)
    over = xp.where(d > 0, w / d, 0.0)
    units = xp.where(d[..., None] > 0, u / d[..., None], 0.0)
    inverse = over.sum(-1)
    curvature = xp.einsum("mpk,mpki,mpkj->mpij", -over, units, units)
    curvature.diagonal(dim1=2, dim2=3).add_(inverse[..., None])
    pull = xp.einsum("mpk,mpki->mpi", w, units)
    return (w * d).sum(-1), (w * (d == 0)).sum(-1), inverse, pull, curvature
