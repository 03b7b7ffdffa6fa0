"""Learn a linear map to few dimensions that keeps distances, and measure it on unseen rows."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from heatsketch._checks import logger
from heatsketch._tiles import single_threaded_blas
from heatsketch._typing import Array
from heatsketch.layout.objective import (
    SEARCH_BETA,
    PairObjective,
    distortion_evaluator,
    log_distortion,
    near_pairs,
    outside_fraction,
    principal_axes,
    sampled_pairs,
)
from heatsketch.neighbors import distinct_rows
from heatsketch.spectral.eigenpairs import fix_signs

EQUAL_BITS = 40  # rows that agree in this many bits count as one point
_SKEWED = 1e-6  # third moment of an axis, relative to its modulus: less is rounding
OBJECTIVES = ("most", "worst")
AUTO_STARTS = {"most": 1, "worst": 4}  # the stress has few minima, log L many
# A linear map has r k numbers: more rows to learn it from change little.
MAX_ROWS = {"most": 2_500, "worst": 20_000}
MAX_RANK = {"most": 64, "worst": 256}  # number of leading directions for a map
PAIRS = {"most": 6_000, "worst": 20_000}  # from which a map is learned
_BETAS = (64.0, 256.0, 1024.0)  # of J_β after the first
_LOG_L_WEIGHT = 0.02  # weight of J_16, added to the fraction outside the window
_SPARE = (12, 0, 1, 2)  # dimensions beyond k of the first maps; later ones start at random
_WORST_PAIRS = 500  # the most stretched and as many most shrunk ones, which join the working set
_ROUNDS = 2  # of adding them, for each β
_VALIDATION_ROWS = 1_000  # of which some are held out to choose the rank for "worst"
_UNSEEN_PAIRS = {"most": 20_000, "worst": 200_000}  # pairs with rows held out, at most
_RANK_PAIRS = 8_000  # from which maps of several ranks are learned
_LEAST_TO_CHOOSE = 20  # rows held out, half of which choose the rank
_ROWS_PER_DIRECTION = 8  # of a map for new points, at least
_NO_WORSE = 0.1  # J_16 of unseen pairs by principal components, relative to the best map


class LearnedMap(NamedTuple):
    """A linear map and the record of how it was learned."""

    components: Array  # (k, r): y = components · x
    rank: int  # leading principal directions of the input that it uses
    # log L over pairs with points that neither fitted the map nor chose its rank; NaN without.
    held_out_log_L: float
    history: list[dict[str, Any]]  # a record of each descent


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
) -> LearnedMap:
    """Learn a map of the rows of F (n, r) to k dimensions; see `NearIsometricProjection`.

    The rows must be distinct and shuffled, because the first ones are held out. If any are held
    out, they choose the rank of maps for `objective="worst"`, and these maps are shrunk for new
    points.
    """
    logger.info("learning %d of %d directions", k, F.shape[1])
    most = objective == "most"
    full = k == F.shape[1]
    axes = np.eye(k) if full else principal_axes(F, rank or max(MAX_RANK[objective], 2 * k))
    n_rows = len(F) if most else min(len(F), _VALIDATION_ROWS)
    n_held = max(0, min(round(validation_fraction * n_rows), n_rows - k - 2))
    n_held = n_held if n_held >= 2 else 0
    held_out, shrunk = math.nan, False
    if axes.shape[1] > k and n_held and not most:
        best, held_out = validate(F[:n_rows], n_held, k, rank, max_iter)
        axes, shrunk = axes[:, :best], not math.isnan(held_out)
    n_axes, history = axes.shape[1], list[dict[str, Any]]()
    if n_axes <= k:  # the rotation to the principal directions, of which there are no more than k
        W = np.zeros((k, F.shape[1]))
        W[:n_axes] = (axes / np.linalg.norm(axes, axis=0)).T
    else:
        seen = F[n_held:] if most else F
        pairs = PairObjective(seen, axes, sampled_pairs(len(seen), PAIRS[objective]))
        # Maps of low stress: from leading directions with some spare ones, and from random ones.
        count = AUTO_STARTS[objective] if n_init == "auto" else n_init
        starts = [pairs.leading[:, : k + spare] for spare in _SPARE[:count]]
        for start in range(len(_SPARE), count):
            width = min(k + 1 + start % 2, n_axes)
            starts.append(pairs.scales[:, None] * rng.standard_normal((n_axes, width)))
        maps = [pairs.annealed(Q, k, max_iter) for Q in starts]
        if most:
            # The fraction of pairs outside the window, and then with a little log L, so that no two
            # points coincide.
            losses = []
            for start, Q in enumerate(maps):
                for weight in (0.0, _LOG_L_WEIGHT):
                    Q = pairs.descend(
                        Q, outside_fraction, max_iter, factor=factor, log_L_weight=weight
                    )
                maps[start] = Q
                losses.append(pairs.history[-1]["objective"])
            Q = maps[int(np.argmin(losses))]
            if n_held:
                unseen = _unseen(F, n_held, axes, _UNSEEN_PAIRS["most"])
                held_out = float(np.ptp(unseen.log_ratios(Q)))
        else:
            Q = _lower_log_L(pairs, maps, max_iter, () if shrunk else _BETAS)
            Q = _shrunk(Q, pairs) if shrunk else Q
        W, history = (axes @ Q).T, pairs.history

    # Rotate the map so that the image has its principal axes, with the longer tail up; if both
    # tails are alike, the largest weight is positive.
    Y = F @ W.T
    Y -= Y.mean(axis=0)
    W = fix_signs((np.linalg.eigh(Y.T @ Y)[1][:, ::-1].T @ W).T).T
    Y = F @ W.T
    Y -= Y.mean(axis=0)
    skew = np.sum(Y**3, axis=0) / np.maximum(np.sum(np.abs(Y) ** 3, axis=0), np.finfo(float).tiny)
    W[skew < -_SKEWED] *= -1
    return LearnedMap(W, n_axes, held_out, history)


def _lower_log_L(
    pairs: PairObjective, maps: list[Array], max_iter: int, betas: tuple[float, ...]
) -> Array:
    """Lower log L, the ratio between the largest and the smallest ratio of any pair.

    Maps of low stress and the leading directions are improved at a small β, the best one at larger
    β. Between descents the worst of all pairs join the working set.
    """
    evaluate = distortion_evaluator(pairs.F)
    leading = pairs.leading[:, : maps[0].shape[1]]
    pairs.add(*near_pairs(pairs.F))
    starts = (*maps, leading)
    maps = [pairs.descend(Q, log_distortion, max_iter, beta=SEARCH_BETA) for Q in starts]
    found = [(Q, *evaluate(pairs.Z @ Q)) for Q in (*maps, leading)]
    Q, ratios, i, j = min(found, key=lambda one: float(np.ptp(one[1])))
    least, best = np.ptp(ratios), Q
    for beta in np.repeat(betas, _ROUNDS):
        count = min(_WORST_PAIRS, len(ratios) // 2)
        order = np.argpartition(ratios, [count - 1, len(ratios) - count])
        worst = np.append(order[:count], order[len(order) - count :])
        pairs.add(i[worst], j[worst])
        Q = pairs.descend(Q, log_distortion, max_iter, beta=float(beta))
        ratios, i, j = evaluate(pairs.Z @ Q)
        if np.ptp(ratios) < least:
            least, best = np.ptp(ratios), Q
    return best


def _shrunk(Q: Array, pairs: PairObjective) -> Array:
    """Return a map (R, k) shrunk to the mean of itself and the projection to leading directions.

    The map is first rotated and scaled to the projection (Procrustes). Both have errors on new
    pairs, but on different ones, so their mean has smaller errors.
    """
    scales = pairs.scales[: len(Q), None]  # √ of variances of coordinates
    P = pairs.leading[: len(Q), : Q.shape[1]]
    U, _, Vt = np.linalg.svd((scales * Q).T @ (scales * P))
    size = np.linalg.norm(scales * P) / np.linalg.norm(scales * Q)
    return (size * Q @ U @ Vt + P) / 2


def validate(F: Array, n_held: int, k: int, rank: int | None, max_iter: int) -> tuple[int, float]:
    """Fit without the first rows of F (n, r); return the best rank, and log L on unseen pairs.

    Half of the rows held out choose between maps of ranks 256, 128, ..., k, the principal
    components, and the others measure. Maps are shrunk after the first β, because otherwise they
    would keep only the extreme pairs that they have seen. The log L is NaN if the remaining rows
    have too few directions.
    """
    seen, full = F[n_held:], rank or max(MAX_RANK["worst"], 2 * k)
    axes = principal_axes(seen, full)
    if axes.shape[1] <= k:
        return full, math.nan
    if rank is None:
        axes = axes[:, : max(2 * k, len(seen) // _ROWS_PER_DIRECTION)]
    best, maps = axes.shape[1], {}
    ranks = [best]
    while rank is None and ranks[-1] > k:
        ranks.append(max(ranks[-1] // 2, k))
    pairs = PairObjective(seen, axes, sampled_pairs(len(seen), _RANK_PAIRS))
    first = pairs.annealed(pairs.leading[:, : k + _SPARE[0]], k, max_iter)
    for one in ranks:
        Q = pairs.descend(first[:one], log_distortion, max_iter, beta=SEARCH_BETA)
        maps[one] = _shrunk(Q, pairs)
    choosing = 0
    if len(maps) > 1 and n_held >= _LEAST_TO_CHOOSE:
        choosing = n_held // 2
        unseen = _unseen(F[np.r_[:choosing, n_held : len(F)]], choosing, axes)
        ratios = {one: unseen.log_ratios(Q) for one, Q in maps.items()}
        losses = {one: log_distortion(ratios[one], SEARCH_BETA)[0] for one in maps}
        best = min(losses, key=losses.__getitem__)
        if losses[k] <= (1 + _NO_WORSE) * losses[best]:
            best = k
    held_out = np.ptp(_unseen(F[choosing:], n_held - choosing, axes).log_ratios(maps[best]))
    return full if rank else best, float(held_out)


def _unseen(F: Array, count: int, axes: Array, most: int = _UNSEEN_PAIRS["worst"]) -> PairObjective:
    """Return the pairs with one of the first `count` rows, evenly thinned if more than `most`."""
    i, j = np.triu_indices(count, 1, len(F))
    step = -(-len(i) // most)
    return PairObjective(F, axes, (i[::step], j[::step]))


def first_equal(points: Array) -> Array:
    """Return for each row the number of the first row that counts as the same point."""
    same = np.arange(len(points))
    for shift in (0, 1 / 3, 2 / 3):  # rows split by a line of one grid share a cell of another
        first, inverse = distinct_rows(np.round(np.ldexp(points[same], EQUAL_BITS) + shift))
        same = same[first[inverse]]
    return same
