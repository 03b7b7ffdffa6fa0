"""Sums over all pairs of points on a device of torch: repulsion by a grid.

Points repel each other through q = 1 / (1 + |u|²), which is smooth on the length 1, so that a grid
resolves it. The points are spread to its nodes by cubic B-splines, the sums over all pairs are
products of Fourier transforms, and the same splines read them at the points: the particle mesh of
Essmann et al. (1995).
"""

import math
from typing import Any

import numpy as np

from heatsketch._tiles import row_tiles
from heatsketch.backend.blocks import Block

# of the nodes: errors of forces are .15 % of their parts in the mean square, 2 % at one point
_SPACING = 0.28
_NODES = 4  # of a spline, in each direction
_GRIDS = 7  # as large, at most, take half of what is free
_MOST_FOR_A_POINT, _MOST = 2**13, 2**30  # nodes: beyond, a tree is as fast; sizes untried


class Grid:
    """Sums over all pairs by a grid, whose kernels are kept while it has the same size."""

    def __init__(self, blocks: Any) -> None:
        self.blocks = blocks
        self._shape: tuple[int, ...] = ()
        self._kernels: list[Block] = []

    def repulsion(self, U: Block, mass: Block | None = None) -> tuple[Block, float] | None:
        """Return what `tree.repulsion` returns of U (n, c), or None if the grid is too large."""
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
            weight = weight if mass is None else weight * mass[rows]
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
        if mass is None:
            return forces, float(total) / size - n
        return forces * mass[:, None], float(total) / size - float(mass.square().sum())

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
