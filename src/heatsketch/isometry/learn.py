"""Learn a linear map that keeps distances, and measure it on rows that were left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heatsketch._blas import single_threaded_blas
from heatsketch._checks import logger
from heatsketch._typing import Array
from heatsketch.isometry.losses import Both, LogDistortion, Missed, stress
from heatsketch.isometry.pairs import Dilations, Judge, near_pairs
from heatsketch.isometry.problem import (
    LEAST_LOG_L,
    SPARE_DIMENSIONS,
    AllPairs,
    Basis,
)
from heatsketch.isometry.starts import (
    SEARCH_BETA,
    Settings,
    problem_of_some,
    searched,
    shrunk,
    started,
)
from heatsketch.isometry.validation import validated
from heatsketch.neighbors import all_distances, pair_distances

Found = tuple[Array, list[dict[str, Any]]]  # a map (R, k), and the history

OBJECTIVES = ("most", "worst")
AUTO_STARTS = {"most": 1, "worst": 4}  # the stress has few minima, log L many
MAX_ROWS = 20_000  # a linear map has r k numbers: more rows to learn it from change little
VALIDATION_ROWS = 1_000
_WORKING_PAIRS = 20_000
_WORST_PAIRS = 500  # most stretched and as many most shrunk ones, that join the working set
_ROUNDS = 2  # of adding them, for each β
_FEW_ROWS = 700  # all their pairs at once take no longer than a working set
_UNFOLDED = 0.5  # J_16 of all pairs: another start would hardly be better
_SPARE = (0, 1, 2, SPARE_DIMENSIONS)  # that the first maps of few rows are squeezed out of
_LOG_L_WEIGHT = 0.01  # of J_β beside the share
_SHARE_GIVEN_UP = 0.01  # by "most", for a smaller log L
_LOG_L_AS_GOOD = 0.25  # difference that does not decide: an extreme, which rounding moves


@dataclass(frozen=True, eq=False)
class Learned:
    """A linear map and how it was learned."""

    components: Array  # (k, r): y = components · x
    rank: int  # leading principal directions of the input that it uses
    # log L over pairs with points that neither fitted a map of this rank nor chose it; NaN without
    # validation.
    held_out_log_L: float
    history: list[dict[str, Any]]  # `loss`, `pairs`, `objective`, `iterations` of each stage


@single_threaded_blas()  # thousands of small products: threads would cost time
def learn(
    F: Array,
    k: int,
    settings: Settings,
    rng: np.random.Generator,
    starts: Sequence[Array] = (),
    for_new_points: bool = True,
) -> Learned:
    """Learn a map of the rows of F (n, r) to k dimensions, also from the maps `starts` (r, k).

    The rows must be distinct, and in an order that says nothing: the first ones are held out, and
    pairs are chosen by their position. `for_new_points`: see `validated`.
    """
    if k == F.shape[1]:
        return Learned(np.eye(k), k, math.nan, [])
    basis = Basis.of(F, settings.max_rank(k))
    if basis.rank <= k:  # there are no more directions
        return _all_directions(basis, k)
    n_rows = min(len(F), VALIDATION_ROWS)
    n_held = min(round(settings.validation_fraction * n_rows), n_rows - k - 2)
    held_out = math.nan
    if n_held >= 2:
        logger.info("learning %d of %d directions: rows held out", k, F.shape[1])
        found = validated(F[:n_rows], n_held, k, settings, for_new_points, rng)
        basis, settings, held_out = basis.cut(found.rank), found.settings, found.held_out_log_L
        if basis.rank <= k:
            return replace(_all_directions(basis, k), held_out_log_L=held_out)
    logger.info("learning %d of %d directions", k, F.shape[1])
    if settings.objective == "worst" and len(F) <= _FEW_ROWS:
        Q, history = _least_log_L(F, basis, k, settings, rng, starts)
    else:
        Q, history = _Learner(F, basis, settings).run(k, rng, starts)
    if settings.shrunk:
        Q = shrunk(Q, basis)
    return Learned((basis.axes @ Q).T, len(Q), held_out, history)


def _all_directions(basis: Basis, k: int) -> Learned:
    """Return the rotation to the principal directions if there are no more than k."""
    rotation = (basis.axes * basis.weights).T  # (R, r)
    missing = np.zeros((k - len(rotation), rotation.shape[1]))
    return Learned(np.vstack([rotation, missing]), len(rotation), math.nan, [])


def _least_log_L(
    F: Array,
    basis: Basis,
    k: int,
    settings: Settings,
    rng: np.random.Generator,
    starts: Sequence[Array],
) -> Found:
    """Lower log L of all pairs of few rows: from several starts at small β, from the best on."""
    problem = AllPairs(basis.coordinates(F), all_distances(F))
    search, max_iter = LogDistortion(SEARCH_BETA), settings.max_iter
    given = [*map(basis.express, starts)]
    tried: list[tuple[float, Array]] = []
    for Q in given:
        Q = problem.descend(Q, search, max_iter)
        tried.append((problem.history[-1]["objective"], Q))
    for start in range(settings.n_init):
        Q = problem.squeezed(started(start, _SPARE, basis, k, rng), k, LEAST_LOG_L)
        for loss in (stress, search):
            Q = problem.descend(Q, loss, max_iter)
        tried.append((problem.history[-1]["objective"], Q))
        if tried[-1][0] < _UNFOLDED:
            break
    at = min(tried, key=lambda pair: pair[0])[1]
    found = [basis.leading(k), *given, at]
    for beta in settings.betas:
        at = problem.descend(at, LogDistortion(beta), max_iter)
        found.append(at)
    return min(found, key=problem.log_L), problem.history


class _Learner:
    """Searches a map on a working set of pairs, judges it by all, and adds the worst of them."""

    def __init__(self, F: Array, basis: Basis, settings: Settings) -> None:
        self.F, self.basis, self.settings = F, basis, settings
        self.Z = basis.coordinates(F)
        self.problem = problem_of_some(F, self.Z, _WORKING_PAIRS)
        self.judge = Judge(F)

    def run(self, k: int, rng: np.random.Generator, starts: Sequence[Array]) -> Found:
        """Return the map (R, k) and the history."""
        maps = [*searched(self.problem, self.basis, k, self.settings, rng)]
        maps += map(self.basis.express, starts)
        find = self._most if self.settings.objective == "most" else self._worst
        return find(maps), self.problem.history

    def _judged(self, Q: Array) -> Dilations:
        return self.judge(self.Z @ Q)

    def _most(self, maps: Sequence[Array]) -> Array:
        """Keep the largest share within the factor, then lower log L at a little of its cost.

        Few iterations, and no pairs that join: where a few worst pairs pull, rounding decides
        between pictures.
        """
        max_iter, hard = self.settings.max_iter, LogDistortion(SEARCH_BETA)
        window = Missed(self.settings.factor)
        found = []
        for Q in [*maps, *(self.problem.descend(Q, hard, max_iter) for Q in maps)]:
            found.append((self._judged(Q), Q))
            for loss in (window, Both(window, hard, _LOG_L_WEIGHT)):
                Q = self.problem.descend(Q, loss, max_iter)
                found.append((self._judged(Q), Q))
        return self._best_of_share(found)[1]

    def _best_of_share(self, found: Sequence[tuple[Dilations, Array]]) -> tuple[Dilations, Array]:
        """Return the first of nearly the least log L among those of nearly the largest share."""
        shares = [seen.share(self.settings.factor) for seen, _ in found]
        floor = max(shares) - _SHARE_GIVEN_UP
        kept = [pair for pair, share in zip(found, shares, strict=True) if share >= floor]
        least = min(seen.log_L for seen, _ in kept)
        return next(pair for pair in kept if pair[0].log_L <= least + _LOG_L_AS_GOOD)

    def _worst(self, maps: Sequence[Array]) -> Array:
        """Lower log L, with the worst pairs of all in the working set."""
        maps = [*maps, self.basis.leading(maps[0].shape[1])]
        self._add(near_pairs(self.F))
        max_iter = self.settings.max_iter
        maps += [self.problem.descend(Q, LogDistortion(SEARCH_BETA), max_iter) for Q in maps]
        best, Q = min(((self._judged(Q), Q) for Q in maps), key=lambda pair: pair[0].log_L)
        seen, at = best, Q
        for beta in self.settings.betas:
            for _ in range(_ROUNDS):
                self._add(seen.most_changed(_WORST_PAIRS))
                at = self.problem.descend(at, LogDistortion(beta), max_iter)
                seen = self._judged(at)
                if seen.log_L < best.log_L:
                    best, Q = seen, at
        return Q

    def _add(self, pairs: tuple[Array, Array]) -> None:
        """Let pairs join the working set."""
        self.problem.add(*pairs, pair_distances(self.F, self.F, *pairs))
