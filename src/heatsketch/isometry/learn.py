"""Learn a linear map to few dimensions that keeps distances, and measure it on unseen rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heatsketch._checks import logger
from heatsketch._tiles import single_threaded_blas
from heatsketch._typing import Array
from heatsketch.isometry.losses import (
    LogDistortion,
    Loss,
    OutsideFraction,
    WeightedSum,
    stress,
)
from heatsketch.isometry.objective import (
    LEAST_LOG_L,
    SPARE_DIMENSIONS,
    AllPairs,
    Basis,
    SampledPairs,
)
from heatsketch.isometry.pairs import DistortionEvaluator, near_pairs, random_pairs
from heatsketch.neighbors import all_distances, distinct_rows, pair_distances
from heatsketch.spectral.eigenpairs import column_signs

EQUAL_BITS = 40  # rows that agree in so many count as one point
_COINCIDING = 1e-12  # median ratio next to the largest, below which most pairs coincide
_SKEWED = 1e-6  # third moment of an axis, relative to its modulus: less is rounding
OBJECTIVES = ("most", "worst")
AUTO_STARTS = {"most": 1, "worst": 4}  # the stress has few minima, log L many
# A linear map has r k numbers: more rows to learn it from change little.
MAX_ROWS = {"most": 2_500, "worst": 20_000}
MAX_RANK = {"most": 64, "worst": 256}  # leading directions that a map may use
_PAIRS = {"most": 6_000, "worst": 20_000}  # that it is learned from
_SEARCH_BETA = 16.0  # of the first J_β
_BETAS = (64.0, 256.0, 1024.0)  # of those after it
_LOG_L_WEIGHT = 0.02  # of J_β beside the fraction outside the window
_SPARE = (SPARE_DIMENSIONS, 0, 1, 2)  # that the first maps are squeezed out of, one after another
_SPARE_FEW_ROWS = (0, 1, 2, SPARE_DIMENSIONS)
_FEW_ROWS = 700  # all their pairs at once take no longer than a working set
_UNFOLDED = 0.5  # J_16 of all pairs: another start would hardly be better
_WORST_PAIRS = 500  # most stretched and as many most shrunk ones, that join the working set
_ROUNDS = 2  # of adding them, for each β
_VALIDATION_ROWS = 1_000  # of which some are held out to choose the rank for "worst"
_UNSEEN_PAIRS = {"most": 20_000, "worst": 200_000}  # pairs with rows held out, at most
_RANK_PAIRS = 8_000  # that maps of several ranks are learned from
_LEAST_TO_CHOOSE = 20  # rows held out, half of which choose the rank
_LEAST_RANK = 16  # of a map of the points that are given
_ROWS_PER_DIRECTION = 8  # of a map for new points, at least
_NO_WORSE = 0.1  # J_16 of unseen pairs by principal components, relative to the best map


@dataclass(frozen=True)
class Settings:
    """The parameters of `NearIsometricProjection`."""

    objective: str
    factor: float
    rank: int | None
    n_init: int
    max_iter: int
    validation_fraction: float
    betas: tuple[float, ...] = _BETAS
    shrunk: bool = False  # see `_shrunk`

    def max_rank(self, k: int) -> int:
        """Return the number of directions that a map to k dimensions may use."""
        return self.rank or max(MAX_RANK[self.objective], 2 * k)

    def spare(self, start: int, few_rows: bool = False) -> int | None:
        """Return the dimensions beyond k of a start; None: its directions are random."""
        fixed = _SPARE_FEW_ROWS if few_rows else _SPARE
        return fixed[start] if start < len(fixed) else None


@dataclass(frozen=True, eq=False)
class LearnedMap:
    """A linear map and how it was learned."""

    components: Array  # (k, r): y = components · x
    rank: int  # leading principal directions of the input that it uses
    # log L over pairs with points that neither fitted the map nor chose its rank; NaN without.
    held_out_log_L: float
    history: list[dict[str, Any]]  # `loss`, `pairs`, `objective`, `iterations` of each descent


@single_threaded_blas()  # thousands of small products: threads would cost time
def learn(
    F: Array, k: int, settings: Settings, rng: np.random.Generator, for_new_points: bool = True
) -> LearnedMap:
    """Learn a map of the rows of F (n, r) to k dimensions.

    The rows must be distinct and shuffled, because the first ones are held out. Maps for
    `objective="worst"` that serve new points too have a rank that unseen rows choose.
    """
    if k == F.shape[1]:
        return LearnedMap(np.eye(k), k, math.nan, [])
    learn_for = _learn_most if settings.objective == "most" else _learn_worst
    logger.info("learning %d of %d directions", k, F.shape[1])
    return learn_for(F, k, settings, rng, for_new_points)


def _learn_most(
    F: Array, k: int, settings: Settings, rng: np.random.Generator, for_new_points: bool
) -> LearnedMap:
    """Keep as many pairs as possible within the factor of the typical ratio.

    Maps of little stress are found first. From each, the smoothed fraction of pairs outside the
    window is lowered, then the same with a little log L, so that no two points coincide. Pairs with
    the first rows take no part: they say what the map does to distances that it has not seen.
    """
    n_held = _number_held_out(len(F), k, settings)
    basis = Basis.of(F, settings.max_rank(k))
    if basis.rank <= k:
        return _all_directions(F, k)
    objective = SampledPairs.of_rows(F[n_held:], basis, _PAIRS["most"])
    window, hard = OutsideFraction(settings.factor), LogDistortion(_SEARCH_BETA)
    maps = []
    for start in range(settings.n_init):
        Q = _start(settings.spare(start), start, basis, k, rng)
        Q = objective.descend(objective.squeezed(Q, k), stress, settings.max_iter)
        for loss in (window, WeightedSum(window, hard, _LOG_L_WEIGHT)):
            Q = objective.descend(Q, loss, settings.max_iter)
        maps.append(Q)
    Q = min(maps, key=lambda Q: window(objective.log_ratios(Q))[0])
    held_out = math.nan
    if n_held:
        held_out = float(np.ptp(_with_first(F, n_held, basis, _UNSEEN_PAIRS["most"]).log_ratios(Q)))
    return LearnedMap((basis.axes @ Q).T, basis.rank, held_out, objective.history)


def _learn_worst(
    F: Array, k: int, settings: Settings, rng: np.random.Generator, for_new_points: bool
) -> LearnedMap:
    """Lower log L: the ratio between the largest and the smallest ratio of any pair."""
    basis = Basis.of(F, settings.max_rank(k))
    if basis.rank <= k:
        return _all_directions(F, k)
    n_rows = min(len(F), _VALIDATION_ROWS)
    n_held = _number_held_out(n_rows, k, settings)
    held_out = math.nan
    if n_held:
        checked = validate(F[:n_rows], n_held, k, settings, for_new_points, rng)
        basis, settings = basis.cut(checked.rank), checked.settings
        held_out = checked.held_out_log_L
        if basis.rank <= k:
            return replace(_all_directions(F, k), held_out_log_L=held_out)
    lower = _lower_log_L_of_all_pairs if len(F) <= _FEW_ROWS else _lower_log_L
    Q, history = lower(F, basis, k, settings, rng)
    if settings.shrunk:
        Q = _shrunk(Q, basis)
    return LearnedMap((basis.axes @ Q).T, len(Q), held_out, history)


def _number_held_out(n_rows: int, k: int, settings: Settings) -> int:
    """Return the number of rows to hold out of `n_rows`; 0 where too few would be left."""
    n_held = min(round(settings.validation_fraction * n_rows), n_rows - k - 2)
    return n_held if n_held >= 2 else 0


def _all_directions(F: Array, k: int) -> LearnedMap:
    """Return the rotation to the principal directions of F, of which there are no more than k."""
    basis = Basis.of(F, k)
    rotation = (basis.axes * basis.weights).T  # (R, r)
    missing = np.zeros((k - len(rotation), rotation.shape[1]))
    return LearnedMap(np.vstack([rotation, missing]), len(rotation), math.nan, [])


def _start(spare: int | None, start: int, basis: Basis, k: int, rng: np.random.Generator) -> Array:
    """Return the leading directions with some spare ones, or random directions."""
    width = min(k + (1 + start % 2 if spare is None else spare), basis.rank)
    if spare is not None:
        return basis.leading(width)
    return basis.weights[:, None] * rng.standard_normal((basis.rank, width))


def _lower_log_L_of_all_pairs(
    F: Array, basis: Basis, k: int, settings: Settings, rng: np.random.Generator
) -> tuple[Array, list[dict[str, Any]]]:
    """Lower log L of all pairs of few rows: from several starts at small β, from the best on."""
    objective = AllPairs(basis.coordinates(F), all_distances(F))
    search, max_iter = LogDistortion(_SEARCH_BETA), settings.max_iter
    tried: list[tuple[float, Array]] = []
    for start in range(settings.n_init):
        Q = _start(settings.spare(start, few_rows=True), start, basis, k, rng)
        Q = objective.squeezed(Q, k, LEAST_LOG_L)
        for loss in (stress, search):
            Q = objective.descend(Q, loss, max_iter)
        tried.append((objective.history[-1]["objective"], Q))
        if tried[-1][0] < _UNFOLDED:
            break
    at = min(tried, key=lambda pair: pair[0])[1]
    maps = [basis.leading(k), at]
    for beta in settings.betas:
        at = objective.descend(at, LogDistortion(beta), max_iter)
        maps.append(at)
    return min(maps, key=objective.log_L), objective.history


def _lower_log_L(
    F: Array, basis: Basis, k: int, settings: Settings, rng: np.random.Generator
) -> tuple[Array, list[dict[str, Any]]]:
    """Lower log L of a working set of pairs; the worst of all pairs join it between descents."""
    Z, max_iter = basis.coordinates(F), settings.max_iter
    objective = SampledPairs.of_rows(F, basis, _PAIRS["worst"])
    evaluate = DistortionEvaluator(F)

    def add(pairs: tuple[Array, Array]) -> None:
        objective.add(*pairs, pair_distances(F, F, *pairs))

    maps = _maps_of_little_stress(objective, basis, k, settings, rng)
    maps.append(basis.leading(k))
    add(near_pairs(F))
    maps += [objective.descend(Q, LogDistortion(_SEARCH_BETA), max_iter) for Q in maps]
    ratios, best = min(((evaluate(Z @ Q), Q) for Q in maps), key=lambda pair: pair[0].log_L)
    least, at = ratios.log_L, best
    for beta in settings.betas:
        for _ in range(_ROUNDS):
            add(ratios.most_changed(_WORST_PAIRS))
            at = objective.descend(at, LogDistortion(beta), max_iter)
            ratios = evaluate(Z @ at)
            if ratios.log_L < least:
                least, best = ratios.log_L, at
    return best, objective.history


def _maps_of_little_stress(
    objective: SampledPairs, basis: Basis, k: int, settings: Settings, rng: np.random.Generator
) -> list[Array]:
    """Return maps (R, k) from `n_init` starts, the first of which are fixed."""
    starts = [_start(settings.spare(s), s, basis, k, rng) for s in range(settings.n_init)]
    return [objective.descend(objective.squeezed(Q, k), stress, settings.max_iter) for Q in starts]


def _shrunk(Q: Array, basis: Basis) -> Array:
    """Return the mean of a map (R, k) and the projection to the leading directions.

    The map is rotated to the projection (Procrustes) and has its variance. Both miss new pairs, but
    not the same ones.
    """
    P, scales = basis.leading(Q.shape[1]), basis.weights[:, None]  # √ of variances of coordinates
    U, _, Vt = np.linalg.svd((scales * Q).T @ (scales * P))
    size = np.linalg.norm(scales * P) / np.linalg.norm(scales * Q)
    return (size * Q @ U @ Vt + P) / 2


@dataclass(frozen=True, eq=False)
class Validated:
    """What rows that were held out say about maps of log L."""

    rank: int  # k: principal components
    settings: Settings  # as they are best
    held_out_log_L: float  # over pairs with rows that neither fitted nor chose; NaN if too few


def validate(
    F: Array,
    n_held: int,
    k: int,
    settings: Settings,
    for_new_points: bool,
    rng: np.random.Generator,
) -> Validated:
    """Fit without the first rows of F (n, r); choose the rank, and measure log L on unseen pairs.

    Half of the rows held out choose between maps of ranks 256, 128, ..., and the others measure.
    For new points ranks go down to k, the principal components, and maps are shrunk after the first
    β: else they keep the extreme pairs that they have seen and no others.
    """
    seen, full = F[n_held:], settings.max_rank(k)
    basis = Basis.of(seen, full)
    if basis.rank <= k:  # the rows that are left have too few directions
        return Validated(full, settings, math.nan)
    if for_new_points:
        settings = replace(settings, betas=(), shrunk=True)
        if settings.rank is None:
            basis = basis.cut(max(2 * k, len(seen) // _ROWS_PER_DIRECTION))
    least_rank = k if for_new_points else max(2 * k, _LEAST_RANK)
    ranks = [basis.rank] if settings.rank else _ranks(basis.rank, least_rank)
    maps = _maps_of_ranks(seen, basis, k, ranks, settings, rng)
    rank, choosing = basis.rank, 0
    if len(maps) > 1 and n_held >= _LEAST_TO_CHOOSE:
        choosing = n_held // 2
        unseen = _with_first(F[np.r_[:choosing, n_held : len(F)]], choosing, basis)
        rank = _best_rank(unseen, maps, k)
    held_out = np.ptp(_log_ratios(_with_first(F[choosing:], n_held - choosing, basis), maps[rank]))
    if rank == basis.rank and (settings.rank or not settings.shrunk):
        rank = full  # if all directions of these rows are best, so are all directions of all rows
    return Validated(rank, settings, float(held_out))


def _maps_of_ranks(
    F: Array,
    basis: Basis,
    k: int,
    ranks: Sequence[int],
    settings: Settings,
    rng: np.random.Generator,
) -> dict[int, Array]:
    """Return a map (R, k) of the rows for each rank R."""
    objective = SampledPairs.of_rows(F, basis, _RANK_PAIRS)
    first = _maps_of_little_stress(objective, basis, k, replace(settings, n_init=1), rng)[0]
    maps = {}
    for rank in ranks:
        cut, Q = objective.cut(rank), first[:rank]
        for beta in (_SEARCH_BETA, *settings.betas):
            Q = cut.descend(Q, LogDistortion(beta), settings.max_iter)
        maps[rank] = _shrunk(Q, basis.cut(rank)) if settings.shrunk else Q
    return maps


def _best_rank(unseen: SampledPairs, maps: dict[int, Array], k: int) -> int:
    """Return the rank of least J_16; principal components unless another is clearly better."""
    hard: Loss = LogDistortion(_SEARCH_BETA)
    losses = {rank: hard(_log_ratios(unseen, Q))[0] for rank, Q in maps.items()}
    best = min(losses, key=losses.__getitem__)
    return k if losses.get(k, math.inf) <= (1 + _NO_WORSE) * losses[best] else best


def _with_first(
    F: Array, count: int, basis: Basis, most: int = _UNSEEN_PAIRS["worst"]
) -> SampledPairs:
    """Return the pairs with one of the first `count` rows, or `most` of them, evenly spread."""
    i, j = np.triu_indices(count, 1, len(F))
    step = -(-len(i) // most)
    i, j = i[::step], j[::step]
    return SampledPairs.of(basis.coordinates(F), i, j, pair_distances(F, F, i, j))


def _log_ratios(objective: SampledPairs, Q: Array) -> Array:
    """Return the log ratios by a map (R, k) of the first R coordinates."""
    return objective.cut(len(Q)).log_ratios(Q)


def _ranks(full: int, least: int) -> list[int]:
    """Return full, full / 2, ..., and `least`."""
    ranks = [full]
    while ranks[-1] // 2 > least:
        ranks.append(ranks[-1] // 2)
    return ranks if ranks[-1] <= least else [*ranks, least]


def first_equal(points: Array) -> Array:
    """Return for each row the first one that counts as the same point."""
    same = np.arange(len(points))
    for shift in (0, 1 / 3, 2 / 3):  # near rows on two sides of one grid line share another cell
        first, inverse = distinct_rows(np.round(np.ldexp(points[same], EQUAL_BITS) + shift))
        same = same[first[inverse]]
    return same


def oriented(W: Array, points: Array) -> Array:
    """Rotate the image to its principal axes; the longer tail of each points up.

    Where both tails are alike, the largest weight is positive.
    """
    Y = points @ W.T
    Y -= Y.mean(axis=0)
    _, axes = np.linalg.eigh(Y.T @ Y)
    W, Y = axes[:, ::-1].T @ W, Y @ axes[:, ::-1]
    skew = np.sum(Y**3, axis=0) / np.maximum(np.sum(np.abs(Y) ** 3, axis=0), np.finfo(float).tiny)
    signs = np.where(np.abs(skew) > _SKEWED, np.sign(skew), column_signs(W.T))
    return W * signs[:, None]


def typical_ratio(W: Array, points: Array) -> float:
    """Return the median ratio of distances of points (n, r) mapped by W (r, k) to those before.

    The largest ratio where most points nearly coincide.
    """
    i, j = random_pairs(len(points), _PAIRS["worst"])
    Y = points @ W
    ratios = pair_distances(Y, Y, i, j) / pair_distances(points, points, i, j)
    median, largest = float(np.median(ratios)), float(ratios.max())
    return median if median > _COINCIDING * largest else largest
