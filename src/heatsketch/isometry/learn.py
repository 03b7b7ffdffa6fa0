"""Learn a linear map that keeps distances, and validate it on rows that were left out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from heatsketch._array import single_threaded_blas
from heatsketch._checks import logger
from heatsketch._typing import Array
from heatsketch.isometry import pairs
from heatsketch.isometry.descent import (
    REFINEMENT_BETAS,
    SEARCH_BETAS,
    Problem,
    leading,
    refine,
    search,
)
from heatsketch.isometry.loss import LogDistortion

MAX_ROWS = 20_000  # a linear map has r k numbers: more rows to learn it from change little
SEARCH_ROWS = 500
VALIDATION_ROWS = 1_000
MAX_RANK = 256
_MAX_REFINED_MAPS = 2
_MIN_RELATIVE_SCALE = 1e-8  # of a direction: smaller ones are rounding


@dataclass(frozen=True, eq=False)
class Learned:
    """A linear map and how it was learned."""

    components: Array  # (k, r): y = components · x
    rank: int  # leading principal directions of the input that it uses
    # Over pairs with points that a map of this rank was not fitted to, by which the rank was also
    # chosen; NaN without validation.
    held_out_log_L: float
    history: list[dict[str, Any]]  # `beta`, `pairs`, `objective`, `iterations` of each stage
    used: tuple[Array, Array] | None = None  # pairs (i, j) of the refinement; None: all pairs


@single_threaded_blas()  # thousands of small products: threads would cost time
def learn(
    F: Array,
    k: int,
    *,
    rank: int | None,
    n_init: int,
    max_iter: int,
    validation_fraction: float,
    rng: np.random.Generator,
) -> Learned:
    """Learn a map of the rows of F (n, r), which must be distinct, to k dimensions."""
    if k == F.shape[1]:
        return Learned(np.eye(k), k, math.nan, [])
    max_rank = rank or max(MAX_RANK, 2 * k)
    basis = _Basis.of(F, max_rank)
    if len(basis.weights) <= k < max_rank:  # there are no more directions
        return _all_directions(basis, k)
    n_rows = min(len(F), VALIDATION_ROWS)
    n_held = min(round(validation_fraction * n_rows), n_rows - k - 2)
    if n_held >= 2:
        logger.info("learning %d of %d directions: validation of the rank", k, F.shape[1])
        maps, R, held_out = _validated(F, max_rank, rank is None, k, n_init, max_iter, n_held, rng)
        logger.info("learning %d directions: refinement", k)
    else:
        first = basis.cut(max(MAX_RANK, k))
        maps = [first.axes @ Q for Q in _searched(F, first, k, n_init, max_iter, rng)]
        R, held_out = max_rank, math.nan
    basis = basis.cut(R)
    maps = [*map(basis.express, maps), leading(basis.weights, k)]
    if len(F) <= pairs.ALL_PAIRS_UP_TO:
        problem = basis.problem(F, pairs.all_pairs(F))
        Q = refine(problem, _best(problem, maps, max_iter), REFINEMENT_BETAS, max_iter)
        used = None
    else:
        Q, problem, used = _refined_on_sample(F, basis, maps, max_iter, rng)
    return Learned((basis.axes @ Q).T, len(Q), held_out, problem.history, used)


def _all_directions(basis: _Basis, k: int) -> Learned:
    """Return the rotation to the principal directions if there are no more than k."""
    rotation = (basis.axes * basis.weights).T  # (R, r)
    missing = np.zeros((k - len(rotation), rotation.shape[1]))
    return Learned(np.vstack([rotation, missing]), len(rotation), math.nan, [])


def sampled_rows(n: int, count: int, rng: np.random.Generator) -> Array:
    """Return the indices of at most `count` random rows of n."""
    return rng.permutation(n)[:count] if n > count else np.arange(n)


@dataclass(frozen=True, eq=False)
class _Basis:
    """Principal directions of scale σ above rounding, in coordinates of scale √σ.

    With σ itself the directions that keep small distances would hardly count in the first steps,
    and with 1 (whitening) noise would count as much as any direction.
    """

    axes: Array  # (r, R): coordinates are (x - mean) @ axes
    weights: Array  # (R,): coordinates · weights are principal components
    mean: Array  # (r,)

    @classmethod
    def of(cls, F: Array, max_rank: int) -> _Basis:
        """Return at most `max_rank` directions of the rows of F."""
        mean = F.mean(axis=0)
        centred = F - mean
        if len(F) > 4 * F.shape[1]:  # the same directions, cheaper
            centred = np.linalg.qr(centred, mode="r")
        _, scales, axes = np.linalg.svd(centred, full_matrices=False)
        used = min(max_rank, int(np.sum(scales > _MIN_RELATIVE_SCALE * scales[0])))
        weights = np.sqrt(scales[:used] / math.sqrt(len(F)))
        return cls((axes[:used] / weights[:, None]).T, weights, mean)

    def cut(self, rank: int) -> _Basis:
        """Return the basis of the first `rank` directions."""
        return _Basis(self.axes[:, :rank], self.weights[:rank], self.mean)

    def express(self, W: Array) -> Array:
        """Write a linear map (r, k) in this basis, (R, k), up to what lies outside its span."""
        return self.weights[:, None] * ((self.axes * self.weights).T @ W)

    def problem(self, F: Array, loss: LogDistortion) -> Problem:
        """Return the problem of mapping the rows of F."""
        return Problem((F - self.mean) @ self.axes, self.weights, loss)


def _searched(
    F: Array, basis: _Basis, k: int, n_init: int, max_iter: int, rng: np.random.Generator
) -> list[Array]:
    """Search for maps on some rows; return the best first, by all rows if they are few enough."""
    rows = sampled_rows(len(F), SEARCH_ROWS, rng)
    problem = basis.problem(F[rows], pairs.all_pairs(F[rows]))
    maps = search(problem, k, n_init, max_iter, rng)
    if len(rows) < len(F) <= pairs.ALL_PAIRS_UP_TO:
        problem = basis.problem(F, pairs.all_pairs(F))
    return sorted(maps, key=problem.log_L)


def _validated(
    F: Array,
    max_rank: int,
    choose_rank: bool,
    k: int,
    n_init: int,
    max_iter: int,
    n_held: int,
    rng: np.random.Generator,
) -> tuple[list[Array], int, float]:
    """Choose the rank by J_β over pairs with rows that basis and fit leave out.

    Returns maps (r, k), the one of this rank first, the rank, and log L over these pairs.
    """
    F = F[rng.permutation(len(F))[:VALIDATION_ROWS]]
    seen, unseen = pairs.all_pairs(F[n_held:]), LogDistortion(len(F), *_pairs_of_first(F, n_held))
    basis = _Basis.of(F[n_held:], max_rank)
    if len(basis.weights) <= k:  # the rows that are left have too few directions
        return [], max_rank, math.nan
    first = basis.cut(max(MAX_RANK, k))
    maps = _searched(F[n_held:], first, k, n_init, max_iter, rng)
    candidates = []
    full = len(basis.weights)
    for R in _ranks(full, k) if choose_rank else [full]:
        used = basis.cut(R)
        fitting, validation = used.problem(F[n_held:], seen), used.problem(F, unseen)
        Q = refine(fitting, _of_rank(maps[0], R), REFINEMENT_BETAS, max_iter)
        score = validation.value(Q, SEARCH_BETAS[-1])
        candidates.append((score, R, validation.log_L(Q), used.axes @ Q))
    _, R, held_out, W = min(candidates, key=lambda candidate: candidate[0])
    # If all directions of these rows are best, so are all directions of all rows.
    return [W, *(first.axes @ Q for Q in maps)], max_rank if full == R else R, held_out


def _ranks(full: int, k: int) -> list[int]:
    """Return full, full / 2, ..., down to 2 k and 16."""
    ranks = [full]
    while ranks[-1] // 2 >= max(2 * k, 16):
        ranks.append(ranks[-1] // 2)
    return ranks


def _of_rank(Q: Array, R: int) -> Array:
    """Cut a map to R directions, or extend it to R by zeros."""
    return np.vstack([Q[:R], np.zeros((max(0, R - len(Q)), Q.shape[1]))])


def _pairs_of_first(F: Array, count: int) -> tuple[Array, Array]:
    """Return squared distances and starts of all pairs with one of the first `count` rows."""
    n = len(F)
    starts = np.concatenate([[0], np.cumsum(np.arange(n - 1, -1, -1))])
    starts[count:] = starts[count]
    return pdist(F, "sqeuclidean")[: starts[count]], starts


def _best(problem: Problem, maps: list[Array], max_iter: int) -> Array:
    """Return the best map, after a descent over the pairs of the problem if that improves it."""
    maps = sorted(maps, key=problem.log_L)[:_MAX_REFINED_MAPS]
    refined = [problem.descend(Q, SEARCH_BETAS[-1], max_iter) for Q in maps]
    return min([*refined, maps[0]], key=problem.log_L)


def _refined_on_sample(
    F: Array, basis: _Basis, maps: list[Array], max_iter: int, rng: np.random.Generator
) -> tuple[Array, Problem, tuple[Array, Array]]:
    """Refine a map; add between stages the pairs that it brings close together."""
    chosen = pairs.PairList(F)
    chosen.add(pairs.random_codes(len(F), rng))
    chosen.add(pairs.near_codes(F, rng))
    problem = basis.problem(F, chosen.loss())
    Q = _best(problem, maps, max_iter)
    for beta in REFINEMENT_BETAS:
        chosen.add(pairs.active_codes(problem.Z @ Q))
        problem = replace(problem, loss=chosen.loss())
        Q = problem.descend(Q, beta, max_iter)
    i, j = np.divmod(chosen.codes, len(F))
    return Q, problem, (i, j)
