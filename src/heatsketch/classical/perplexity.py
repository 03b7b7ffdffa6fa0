"""Probabilities that points are neighbours: Gaussian, as wide as a perplexity asks for."""

import math

import numpy as np

from heatsketch._tiles import for_each_tile
from heatsketch._typing import Array
from heatsketch.neighbors import Neighbors

# Bandwidths: see `conditional`
_LOG_BETAS = (-400.0, math.log(800.0))
_MAX_ENTROPY_STEPS, _ENTROPY_TOLERANCE = 200, 1e-12
_NO_WEIGHT = 1e4  # e to minus this is 0


def conditional(distances: Array, perplexity: float) -> tuple[Array, Array]:
    """Return p_{j|i} = e^(-d_ij² / 2σ_i²) / Σ_k e^(-d_ik² / 2σ_i²), (13), and σ by perplexity (14).

    Distances to the neighbours (m, l) ascend in every row; the perplexity is above 1 and below l.
    Newton's method in log β, β = 1/2σ², where dH / d log β = -Var(β u), gives the entropy to twelve
    digits; a step that leaves the bracket is replaced by bisection. The smallest square is
    subtracted from all, and the rest divided so that that of neighbour ⌈perplexity⌉ is 1: then β
    cannot exceed 800, because fewer points would have a weight. Where more neighbours than the
    perplexity are nearest at the same distance, no σ_i has this perplexity; then these neighbours
    share the probability, which is the limit σ_i → 0.
    """
    p, sigma = np.empty(distances.shape), np.empty(len(distances))

    def work(rows: slice) -> None:
        d = distances[rows]
        u = (d - d[:, :1]) * (d + d[:, :1])
        gap = u[:, [math.ceil(perplexity) - 1]]  # 0 where the nearest share p, whatever β
        u = np.divide(u, gap, out=_NO_WEIGHT * (u > 0), where=gap > 0)
        t, low, high = (np.full(gap.shape, end) for end in (0.0, *_LOG_BETAS))
        for _ in range(_MAX_ENTROPY_STEPS):
            v = np.exp(t) * u
            q = np.exp(-v)
            sums = q.sum(axis=1, keepdims=True)
            q /= sums
            mean = (v * q).sum(axis=1, keepdims=True)
            excess = np.log(sums) + mean - math.log(perplexity)
            off = (np.abs(excess) > _ENTROPY_TOLERANCE) & (gap > 0)
            if not off.any():
                break
            low, high = np.where(excess > 0, t, low), np.where(excess > 0, high, t)
            with np.errstate(divide="ignore", invalid="ignore"):
                newton = t + excess / ((v * v * q).sum(axis=1, keepdims=True) - mean**2)
            inside = (low < newton) & (newton < high)
            t = np.where(off, np.where(inside, newton, (low + high) / 2), t)
        p[rows], sigma[rows] = q, np.sqrt(gap / (2 * np.exp(t)))[:, 0]

    for_each_tile(work, len(distances))
    return p, sigma


def nearest_columns(D: Array, count: int) -> Neighbors:
    """Return the nearest columns of each row of distances (m, n), nearest first."""
    indices = np.argsort(D, axis=1, kind="stable")[:, :count]
    return Neighbors(np.take_along_axis(D, indices, axis=1), indices)
