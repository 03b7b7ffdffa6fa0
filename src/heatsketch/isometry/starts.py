"""The parameters of a near-isometric map, and maps of little stress to begin with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from heatsketch._typing import Array
from heatsketch.isometry.losses import stress
from heatsketch.isometry.pairs import random_pairs
from heatsketch.isometry.problem import SPARE_DIMENSIONS, Basis, Problem
from heatsketch.neighbors import pair_distances

MAX_RANK = {"most": 64, "worst": 256}
SEARCH_BETA = 16.0  # of the first J_β
_SPARE = (SPARE_DIMENSIONS, 0, 1, 2)  # that the first maps are squeezed out of, one after another


@dataclass(frozen=True)
class Settings:
    """The parameters of `NearIsometricProjection`."""

    objective: str
    factor: float
    rank: int | None
    n_init: int
    max_iter: int
    validation_fraction: float
    betas: tuple[float, ...] = (64.0, 256.0, 1024.0)  # of J_β, after `SEARCH_BETA`
    shrunk: bool = False  # see `shrunk`

    def max_rank(self, k: int) -> int:
        """Return the number of directions that a map to k dimensions may use."""
        return self.rank or max(MAX_RANK[self.objective], 2 * k)


def searched(
    problem: Problem, basis: Basis, k: int, settings: Settings, rng: np.random.Generator
) -> Iterator[Array]:
    """Yield maps (R, k) of little stress from `n_init` starts, the first of which are fixed."""
    for start in range(settings.n_init):
        Q = started(start, _SPARE, basis, k, rng)
        yield problem.descend(problem.squeezed(Q, k), stress, settings.max_iter)


def started(
    start: int, spares: Sequence[int], basis: Basis, k: int, rng: np.random.Generator
) -> Array:
    """Return the leading directions with so many spare ones; after these, random directions."""
    fixed = start < len(spares)
    width = min(k + (spares[start] if fixed else 1 + start % 2), basis.rank)
    if fixed:
        return basis.leading(width)
    return basis.weights[:, None] * rng.standard_normal((basis.rank, width))


def problem_of_some(F: Array, Z: Array, count: int) -> Problem:
    """Return the problem of keeping the distances of about `count` pairs of rows of F."""
    pairs = random_pairs(len(F), count)
    return Problem.of(Z, *pairs, pair_distances(F, F, *pairs))


def shrunk(Q: Array, basis: Basis) -> Array:
    """Return the mean of a map (R, k) and the projection to the leading directions.

    The map is rotated to the projection (Procrustes) and has its variance. Both miss new pairs, but
    not the same ones.
    """
    P, scales = basis.leading(Q.shape[1]), basis.weights[:, None]  # √ of variances of coordinates
    U, _, Vt = np.linalg.svd((scales * Q).T @ (scales * P))
    size = np.linalg.norm(scales * P) / np.linalg.norm(scales * Q)
    return (size * Q @ U @ Vt + P) / 2
