"""Weighted geometric medians on a device of torch, many at a time.

The rules are those of the compiled loop in `median_loops`: a datum is the minimum if the others
pull at it with at most its own weight; else the descent starts beside the best one, by steps of
Newton that lead lower than Weiszfeld's.
"""

import math
from typing import Any

import numpy as np

from heatsketch._tiles import row_tiles
from heatsketch._typing import Array
from heatsketch.backend.blocks import Block

ROUNDING = 1e-12  # of the pull of some weights, relative to one
HALVINGS = 10  # of a step of Newton
MOST_ROUNDS, STILL = 200, 1e-15  # of a median, and the relative step at which it is found
_ROUNDS = 8  # of the descent, most of which need no more


def medians_on(Y: Array, rows: Any) -> Array:
    """Return what `HostBlocks.medians` returns, for rows of k entries each, some at a time."""
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
