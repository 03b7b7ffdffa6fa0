"""What a near-isometric map does to points that it has not seen, and which map is best for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from heatsketch._typing import Array
from heatsketch.isometry.losses import LogDistortion, Loss, Missed
from heatsketch.isometry.problem import Basis, Problem
from heatsketch.isometry.starts import SEARCH_BETA, Settings, problem_of_some, searched, shrunk
from heatsketch.neighbors import pair_distances

_PAIRS, _UNSEEN_PAIRS = 8_000, 200_000
_LEAST_TO_CHOOSE = 20  # rows held out, half of which choose
_LEAST_RANK = 16  # of a map of the points that are here
_ROWS_PER_DIRECTION = 8  # of a map for new points, at least
_NO_WORSE = 0.1  # J_16 of unseen pairs by principal components, relative to the best map


@dataclass(frozen=True, eq=False)
class Validated:
    """What was found on rows that were left out."""

    rank: int  # k: principal components
    settings: Settings  # as they are best
    held_out_log_L: float  # over pairs with rows that neither fitted nor chose; NaN if too few


def validated(
    F: Array,
    n_held: int,
    k: int,
    settings: Settings,
    for_new_points: bool,
    rng: np.random.Generator,
) -> Validated:
    """Fit without the first rows of F (n, r); choose the rank, and measure log L on unseen pairs.

    For "worst" half of the rows held out choose between maps of ranks 256, 128, ..., and the others
    measure. For new points ranks go down to k, the principal components, and maps are `shrunk`
    after the first β: else they keep the extreme pairs that they have seen and no others.
    """
    seen, full = F[n_held:], settings.max_rank(k)
    basis = Basis.of(seen, full)
    if basis.rank <= k:  # the rows that are left have too few directions
        return Validated(full, settings, math.nan)
    if for_new_points and settings.objective == "worst":
        settings = replace(settings, betas=(), shrunk=True)
        if settings.rank is None:
            basis = basis.cut(max(2 * k, len(seen) // _ROWS_PER_DIRECTION))
    rank, choosing = basis.rank, 0
    maps = _candidates(
        seen, basis, k, settings, k if for_new_points else max(2 * k, _LEAST_RANK), rng
    )
    if len(maps) > 1 and n_held >= _LEAST_TO_CHOOSE:
        choosing = n_held // 2
        unseen = _with_first(F[np.r_[:choosing, n_held : len(F)]], choosing, basis)
        rank = _best(unseen, maps, k)
    held_out = np.ptp(_logs(_with_first(F[choosing:], n_held - choosing, basis), maps[rank]))
    if rank == basis.rank and (settings.rank or not settings.shrunk):
        rank = full  # if all directions of these rows are best, so are all directions of all rows
    return Validated(rank, settings, float(held_out))


def _candidates(
    F: Array, basis: Basis, k: int, settings: Settings, least_rank: int, rng: np.random.Generator
) -> dict[int, Array]:
    """Return maps (R, k) of the rows by their rank R."""
    problem = problem_of_some(F, basis.coordinates(F), _PAIRS)
    Q = next(searched(problem, basis, k, settings, rng))
    losses: Sequence[Loss] = [Missed(settings.factor)]
    ranks = [basis.rank]
    if settings.objective == "worst":
        losses = [LogDistortion(beta) for beta in (SEARCH_BETA, *settings.betas)]
        ranks = ranks if settings.rank else _ranks(basis.rank, least_rank)
    maps = {R: _fitted(problem.cut(R), Q[:R], losses, settings.max_iter) for R in ranks}
    if settings.shrunk:
        maps = {R: shrunk(Q, basis.cut(R)) for R, Q in maps.items()}
    return maps


def _best(unseen: Problem, maps: dict[int, Array], k: int) -> int:
    """Return the rank of least J_16; principal components unless another is clearly better."""
    found = {R: LogDistortion(SEARCH_BETA)(_logs(unseen, Q))[0] for R, Q in maps.items()}
    best = min(found, key=found.__getitem__)
    return k if found.get(k, math.inf) <= (1 + _NO_WORSE) * found[best] else best


def _fitted(problem: Problem, Q: Array, losses: Sequence[Loss], max_iter: int) -> Array:
    """Return the map that is found from Q (R, k) by one loss after another."""
    for loss in losses:
        Q = problem.descend(Q, loss, max_iter)
    return Q


def _with_first(F: Array, count: int, basis: Basis) -> Problem:
    """State the problem of keeping the distances of pairs with one of the first `count` rows."""
    i, j = _pairs_with_first(len(F), count)
    return Problem.of(basis.coordinates(F), i, j, pair_distances(F, F, i, j))


def _logs(problem: Problem, Q: Array) -> Array:
    """Return the log dilations by a map (R, k) of the first R coordinates."""
    return problem.cut(len(Q)).log_dilations(Q)


def _pairs_with_first(n: int, count: int) -> tuple[Array, Array]:
    """Return pairs of n points with one of the first `count`: all, or some tens of thousands."""
    i, j = np.triu_indices(count, 1, n)
    step = -(-len(i) // _UNSEEN_PAIRS)
    return i[::step], j[::step]


def _ranks(full: int, least: int) -> list[int]:
    """Return full, full / 2, ..., and `least`."""
    ranks = [full]
    while ranks[-1] // 2 > least:
        ranks.append(ranks[-1] // 2)
    return ranks if ranks[-1] <= least else [*ranks, least]
