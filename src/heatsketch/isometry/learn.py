"""Learn a linear map to few dimensions that keeps distances, and measure it on unseen rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from heatsketch._checks import logger
from heatsketch._tiles import single_threaded_blas
from heatsketch._typing import Array
from heatsketch.isometry.objective import (
    Basis,
    LogDistortion,
    OutsideFraction,
    PairObjective,
    stress,
)
from heatsketch.isometry.pairs import DistortionEvaluator, near_pairs, random_pairs
from heatsketch.neighbors import distinct_rows, pair_distances
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
_SPARE = (12, 0, 1, 2)  # dimensions beyond k of the first maps; later ones start at random
_WORST_PAIRS = 500  # most stretched and as many most shrunk ones, that join the working set
_ROUNDS = 2  # of adding them, for each β
_VALIDATION_ROWS = 1_000  # of which some are held out to choose the rank for "worst"
_UNSEEN_PAIRS = {"most": 20_000, "worst": 200_000}  # pairs with rows held out, at most
_RANK_PAIRS = 8_000  # that maps of several ranks are learned from
_LEAST_TO_CHOOSE = 20  # rows held out, half of which choose the rank
_LEAST_RANK = 16  # of a map of the points that are given
_ROWS_PER_DIRECTION = 8  # of a map for new points, at least
_NO_WORSE = 0.1  # J_16 of unseen pairs by principal components, relative to the best map


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
    F: Array,
    k: int,
    rng: np.random.Generator,
    *,
    objective: str,
    factor: float = 1.5,
    rank: int | None = None,
    n_init: Any = "auto",
    max_iter: int = 60,
    validation_fraction: float = 0.0,
    for_new_points: bool = True,
) -> LearnedMap:
    """Learn a map of the rows of F (n, r) to k dimensions; see `NearIsometricProjection`.

    The rows must be distinct and shuffled, because the first ones are held out. Maps for
    `objective="worst"` that serve new points too have a rank that unseen rows choose.
    """
    if k == F.shape[1]:
        return LearnedMap(np.eye(k), k, math.nan, [])
    logger.info("learning %d of %d directions", k, F.shape[1])
    most = objective == "most"
    basis = Basis.of(F, rank or max(MAX_RANK[objective], 2 * k))
    n_rows = len(F) if most else min(len(F), _VALIDATION_ROWS)
    n_held = max(0, min(round(validation_fraction * n_rows), n_rows - k - 2))
    n_held = n_held if n_held >= 2 else 0
    held_out, shrunk = math.nan, False
    if basis.rank > k and n_held and not most:
        best, held_out = validate(F[:n_rows], n_held, k, rank, max_iter, for_new_points)
        basis, shrunk = basis.cut(best), for_new_points and not math.isnan(held_out)
    if basis.rank <= k:
        # The rotation to the principal directions, of which there are no more than k.
        rotation = np.zeros((k, F.shape[1]))
        rotation[: basis.rank] = (basis.axes * basis.weights).T
        return LearnedMap(rotation, basis.rank, held_out, [])
    starts = _starts(AUTO_STARTS[objective] if n_init == "auto" else n_init, basis, k, rng)
    if most:
        Q, history = _keep_most_pairs(F[n_held:], basis, k, starts, factor, max_iter)
        if n_held:
            held_out = float(np.ptp(_unseen(F, n_held, basis, _UNSEEN_PAIRS["most"]).log_ratios(Q)))
    else:
        Q, history = _lower_log_L(F, basis, k, starts, max_iter, () if shrunk else _BETAS)
        Q = _shrunk(Q, basis) if shrunk else Q
    return LearnedMap((basis.axes @ Q).T, len(Q), held_out, history)


def _starts(count: int, basis: Basis, k: int, rng: np.random.Generator) -> list[Array]:
    """Return the leading directions with some spare ones, then random directions."""
    starts = [basis.leading(min(k + spare, basis.rank)) for spare in _SPARE[:count]]
    for start in range(len(_SPARE), count):
        width = min(k + 1 + start % 2, basis.rank)
        starts.append(basis.weights[:, None] * rng.standard_normal((basis.rank, width)))
    return starts


def _keep_most_pairs(
    F: Array, basis: Basis, k: int, starts: list[Array], factor: float, max_iter: int
) -> tuple[Array, list[dict[str, Any]]]:
    """Keep as many pairs as possible within the factor of the typical ratio.

    Maps of little stress are found first. From each, the smoothed fraction of pairs outside the
    window is lowered, then the same with a little log L, so that no two points coincide.
    """
    objective = PairObjective(F, basis, random_pairs(len(F), _PAIRS["most"]))
    window, spread = OutsideFraction(factor), LogDistortion(_SEARCH_BETA)

    def window_and_log_L(log_ratios: Array) -> tuple[float, Array]:
        (value, slope), (more, more_slope) = window(log_ratios), spread(log_ratios)
        return value + _LOG_L_WEIGHT * more, slope + _LOG_L_WEIGHT * more_slope

    maps = []
    for Q in starts:
        Q = objective.annealed(Q, k)
        for loss in (stress, window, window_and_log_L):
            Q = objective.descend(Q, loss, max_iter)
        maps.append(Q)
    return min(maps, key=lambda Q: window(objective.log_ratios(Q))[0]), objective.history


def _lower_log_L(
    F: Array, basis: Basis, k: int, starts: list[Array], max_iter: int, betas: tuple[float, ...]
) -> tuple[Array, list[dict[str, Any]]]:
    """Lower log L, the ratio between the largest and the smallest ratio of any pair.

    Maps of little stress, from several starts, are improved at a small β, the best one at larger
    ones. Many rows have a working set of pairs, which the worst of all pairs join between descents.
    """
    evaluate = DistortionEvaluator(F)
    objective = PairObjective(F, basis, random_pairs(len(F), _PAIRS["worst"]))
    maps = [objective.descend(objective.annealed(Q, k), stress, max_iter) for Q in starts]
    maps.append(basis.leading(k))
    objective.add(*near_pairs(F))
    maps += [objective.descend(Q, LogDistortion(_SEARCH_BETA), max_iter) for Q in maps]
    evaluated = [(evaluate(objective.Z @ Q), Q) for Q in maps]
    ratios, best = min(evaluated, key=lambda pair: pair[0].log_L)
    least, Q = ratios.log_L, best
    for beta in np.repeat(betas, _ROUNDS):
        objective.add(*ratios.most_changed(_WORST_PAIRS))
        Q = objective.descend(Q, LogDistortion(float(beta)), max_iter)
        ratios = evaluate(objective.Z @ Q)
        if ratios.log_L < least:
            least, best = ratios.log_L, Q
    return best, objective.history


def _shrunk(Q: Array, basis: Basis) -> Array:
    """Return the mean of a map (R, k) and the projection to the leading directions.

    The map is rotated to the projection (Procrustes) and has its variance. Both miss new pairs, but
    not the same ones.
    """
    scales = basis.weights[: len(Q), None]  # √ of variances of coordinates
    P = basis.leading(Q.shape[1])[: len(Q)]
    U, _, Vt = np.linalg.svd((scales * Q).T @ (scales * P))
    size = np.linalg.norm(scales * P) / np.linalg.norm(scales * Q)
    return (size * Q @ U @ Vt + P) / 2


def validate(
    F: Array, n_held: int, k: int, rank: int | None, max_iter: int, for_new_points: bool
) -> tuple[int, float]:
    """Fit without the first rows of F (n, r); return the best rank, and log L on unseen pairs.

    Half of the rows held out choose between maps of ranks 256, 128, ..., and the others measure.
    For new points ranks go down to k, the principal components, and maps are shrunk after the first
    β: else they keep the extreme pairs that they have seen and no others. The log L is NaN if the
    rows that are left have too few directions.
    """
    seen, full = F[n_held:], rank or max(MAX_RANK["worst"], 2 * k)
    basis = Basis.of(seen, full)
    if basis.rank <= k:
        return full, math.nan
    if rank is None and for_new_points:
        basis = basis.cut(max(2 * k, len(seen) // _ROWS_PER_DIRECTION))
    ranks = [basis.rank]
    if rank is None:
        least = k if for_new_points else max(2 * k, _LEAST_RANK)
        while ranks[-1] > least:
            ranks.append(max(ranks[-1] // 2, least))
    objective = PairObjective(seen, basis, random_pairs(len(seen), _RANK_PAIRS))
    start = basis.leading(min(k + _SPARE[0], basis.rank))
    first = objective.descend(objective.annealed(start, k), stress, max_iter)
    maps = {}
    for one in ranks:
        Q = first[:one]
        for beta in (_SEARCH_BETA,) if for_new_points else (_SEARCH_BETA, *_BETAS):
            Q = objective.descend(Q, LogDistortion(beta), max_iter)
        maps[one] = _shrunk(Q, basis) if for_new_points else Q
    best, choosing = basis.rank, 0
    if len(maps) > 1 and n_held >= _LEAST_TO_CHOOSE:
        choosing = n_held // 2
        unseen = _unseen(F[np.r_[:choosing, n_held : len(F)]], choosing, basis)
        search = LogDistortion(_SEARCH_BETA)
        losses = {one: search(unseen.log_ratios(Q))[0] for one, Q in maps.items()}
        best = min(losses, key=losses.__getitem__)
        if losses.get(k, math.inf) <= (1 + _NO_WORSE) * losses[best]:
            best = k
    held_out = np.ptp(_unseen(F[choosing:], n_held - choosing, basis).log_ratios(maps[best]))
    if best == basis.rank and (rank or not for_new_points):
        best = full  # if all directions of these rows are best, so are all directions of all rows
    return best, float(held_out)


def _unseen(
    F: Array, count: int, basis: Basis, most: int = _UNSEEN_PAIRS["worst"]
) -> PairObjective:
    """Return the pairs with one of the first `count` rows, or `most` of them, evenly spread."""
    i, j = np.triu_indices(count, 1, len(F))
    step = -(-len(i) // most)
    i, j = i[::step], j[::step]
    return PairObjective(F, basis, (i, j))


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
