"""Learned linear maps to few dimensions that keep distances, measured on unseen rows.

Losses are functions of the log distance ratios ℓ of pairs. They do not change when all distances
are multiplied by one number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.spatial.distance import pdist

from heatsketch._arrays import Array
from heatsketch._messages import logger
from heatsketch.neighbors import NeighborIndex, all_distances, distinct_rows, pair_distances
from heatsketch.spectral.eigen import fix_signs

Pairs = tuple[Array, Array]
Loss = Callable[..., tuple[float, Array]]  # its value and its slope

ALL_PAIRS_UP_TO = 2_048  # points
RANDOM_PAIRS = 500_000
NEAR_ROWS = 4_000  # points whose nearest neighbours are searched in many dimensions
_NEAR, _COLLIDING = 5, 5  # nearest neighbours in the input and in the embedding
_SEED = 0  # a constant: pairs depend only on the order of the rows
SEARCH_BETA = 16.0  # of the first J_β
_WIDTH = 2.0  # width of the window of `outside_fraction`, in units of log factor
_CENTRING_STEPS = 8
_TINY = 1e-24  # squared ratio that counts as zero


# Pairs


def sampled_pairs(
    n: int, count: int, rng: np.random.Generator | None = None, labels: Array | None = None
) -> Pairs:
    """Return all pairs of n points if there are at most `count`; else draw so many pairs.

    Drawn pairs are of two different points; some may occur more than once. With labels (n,), from
    0, pairs are always drawn, of points of the same label; raises if there is no such pair.
    """
    if labels is None and n * (n - 1) // 2 <= count:
        return np.triu_indices(n, 1)
    rng = np.random.default_rng(_SEED) if rng is None else rng
    if labels is None:
        i = rng.integers(0, n, count)
        return i, (i + rng.integers(1, n, count)) % n
    sizes = np.bincount(labels)
    order = np.argsort(labels, kind="stable")
    starts = np.cumsum(sizes) - sizes
    ends = np.cumsum(sizes * (sizes - 1))
    if ends[-1] == 0:
        raise ValueError("No two points are in the same component; pass a larger n_neighbors.")
    drawn = rng.integers(0, ends[-1], count)  # of all ordered pairs
    group = np.searchsorted(ends, drawn, side="right")
    size = sizes[group]
    place, offset = np.divmod(ends[group] - 1 - drawn, size - 1)
    partner = (place + 1 + offset) % size
    return order[starts[group] + place], order[starts[group] + partner]


def within_labels(i: Array, j: Array, labels: Array | None) -> Pairs:
    """Return the pairs whose points have the same label; all pairs without labels (n,)."""
    if labels is None:
        return i, j
    kept = labels[i] == labels[j]
    return i[kept], j[kept]


def nearest_pairs(F: Array, rows: Array, k: int) -> Pairs:
    """Return the pairs of each of the rows and its k nearest other rows of F."""
    i = np.repeat(rows, k + 1)
    j = NeighborIndex(F).query(F[rows], k + 1).indices.ravel()
    return i[i != j], j[i != j]


def shortest_pairs(F: Array) -> Pairs:
    """Return the pairs of 4,000 rows of F, or all, and their nearest neighbours."""
    return nearest_pairs(F, np.arange(min(len(F), NEAR_ROWS)), min(_NEAR, len(F) - 1))


def log_ratio_evaluator(F: Array) -> Callable[[Array], tuple[Array, Array, Array]]:
    """Return a function that evaluates embeddings of F (n, r) on fixed pairs and on near pairs.

    It maps an embedding Y (n, k) to its log ratios to F, (m,), and their pairs i, j. Up to 2,048
    points these are all pairs. Beyond, they are random pairs, nearest neighbours in F, and nearest
    neighbours in each embedding, which include collisions.
    """
    if len(F) <= ALL_PAIRS_UP_TO:
        fixed_pairs = np.array(np.triu_indices(len(F), 1))
        fixed_logs = _logs(all_distances(F))
    else:
        fixed_pairs = np.hstack([sampled_pairs(len(F), RANDOM_PAIRS // 2), shortest_pairs(F)])
        fixed_logs = _logs(pair_distances(F, F, *fixed_pairs))

    def evaluate(Y: Array) -> tuple[Array, Array, Array]:
        if len(Y) <= ALL_PAIRS_UP_TO:
            i, j = fixed_pairs
            return _logs(pdist(Y)) - fixed_logs, i, j
        close_pairs = nearest_pairs(Y, np.arange(len(Y)), _COLLIDING)
        close_logs = _logs(pair_distances(F, F, *close_pairs))
        i, j = np.hstack([fixed_pairs, close_pairs])
        logs = np.append(fixed_logs, close_logs)
        return _logs(pair_distances(Y, Y, i, j)) - logs, i, j

    return evaluate


def _logs(distances: Array) -> Array:
    """Return logarithms of distances, which are at least 1e-30 of the largest one."""
    return np.log(np.maximum(distances, 1e-30 * (distances.max() or 1.0)))


# Losses: ℓ (m,) -> value, slope (m,)


def stress(log_ratios: Array) -> tuple[float, Array]:
    """Return the variance of ℓ and its slope: smooth, and with few minima.

    It is the limit of J_β / β as β → 0, see `log_distortion`.
    """
    centred = log_ratios - log_ratios.mean()
    return float(np.mean(centred**2, dtype=float)), centred * (2 / len(centred))


def outside_fraction(
    log_ratios: Array, factor: float, log_L_weight: float = 0.0
) -> tuple[float, Array]:
    """Return the smoothed fraction of pairs whose ratio is far from the typical one, and its slope.

    The value is the mean of 1 - exp(-(ℓ - c)²/2w²), with the centre c at which it is least and the
    width w = 2 log `factor`. A width of 1.25 log `factor` would keep 1-3 % more pairs within
    `factor`, but other pairs would coincide in the picture (benchmarks/README.md). `log_L_weight`
    times J_16 is added, so that no two points coincide.
    """
    width = _WIDTH * math.log(factor)
    centre = float(log_ratios.mean())
    for _ in range(_CENTRING_STEPS):
        near = np.exp(-(((log_ratios - centre) / width) ** 2) / 2)
        centre = float(near @ log_ratios / max(near.sum(), 1e-30))
    centred = log_ratios - centre
    near = np.exp(-((centred / width) ** 2) / 2)
    # c does not contribute to the slope, because it is at a minimum.
    value = 1 - float(near.mean(dtype=float))
    slope = near * centred / (width**2 * len(near))
    if log_L_weight:
        log_L, log_L_slope = log_distortion(log_ratios, SEARCH_BETA)
        value += log_L_weight * log_L
        slope += log_L_weight * log_L_slope
    return value, slope


def log_distortion(log_ratios: Array, beta: float) -> tuple[float, Array]:
    """Return the smoothed log-distortion J_β and its slope.

    J_β = (1/β) log mean e^{βℓ} + (1/β) log mean e^{-βℓ}. It tends to log L = max ℓ - min ℓ
    as β grows: log L - 2 log(m) / β <= J_β <= log L.
    """
    low, high = log_ratios.min(), log_ratios.max()
    up = np.exp(beta * (log_ratios - high))
    down = np.exp(beta * (low - log_ratios))
    total_up = float(up.sum(dtype=float))
    total_down = float(down.sum(dtype=float))
    log_means = math.log(total_up / len(up)) + math.log(total_down / len(up))
    return float(high - low) + log_means / beta, up / total_up - down / total_down


# The descent


class Layout(Protocol):
    """Map from parameters to points Y (n, k), such as Y = Z Q of a linear map Q."""

    def images(self, parameters: Array) -> Array:
        """Return the points Y (n, k)."""

    def pull(self, parameters: Array, slope: Array) -> Array:
        """Return dJ/dparameters at some parameters, given dJ/dY (n, k)."""


class PairObjective:
    """Pairs of points whose distances a layout should keep, up to one factor.

    One evaluation takes m k operations for m pairs, beyond those of the layout.

    Parameters
    ----------
    n : int
        Number of points.

    Attributes
    ----------
    history : list of dict
        A record of each descent.
    """

    def __init__(self, n: int) -> None:
        self.history: list[dict[str, Any]] = []
        self.differences = sparse.csr_array((0, n))  # (m, n): takes Y to (y_i - y_j) / d_ij

    def add(self, i: Array, j: Array, distances: Array) -> None:
        """Add pairs (m,) with the distances to keep."""
        m = len(distances)
        entries = np.repeat(1 / distances, 2) * np.tile([1.0, -1.0], m)
        matrix = (entries, np.stack([i, j], axis=1).ravel(), np.arange(0, 2 * m + 1, 2))
        added = sparse.csr_array(matrix, (m, self.differences.shape[1]))
        self.differences = sparse.vstack([self.differences, added], format="csr")

    def log_ratios(self, Y: Array) -> Array:
        """Return ℓ (m,) of all pairs of points Y (n, k)."""
        return np.log(self._scaled_differences(Y)[1]) / 2

    def evaluate(self, Y: Array, loss: Loss, **options: float) -> tuple[float, Array]:
        """Return the loss J of points Y (n, k) with its `options`, and its slope dJ/dY (n, k)."""
        differences, squares = self._scaled_differences(Y)
        value, slope = loss(np.log(squares) / 2, **options)
        return value, self.differences.T @ (differences * (slope / squares)[:, None])

    def _scaled_differences(self, Y: Array) -> tuple[Array, Array]:
        """Return (y_i - y_j) / d_ij of all pairs, (m, k), and their squared lengths (m,)."""
        differences = self.differences @ Y
        return differences, np.einsum("ij,ij->i", differences, differences) + _TINY

    def descend(
        self,
        layout: Layout,
        start: Array,
        loss: Loss,
        max_iter: int,
        penalty: Loss | None = None,
        **options: float,
    ) -> Array:
        """Minimise the loss, with its `options`, over the parameters of a layout.

        The penalty adds a function of the parameters, given with its gradient.
        """

        def objective(flat: Array) -> tuple[float, Array]:
            parameters = flat.reshape(start.shape)
            value, slope = self.evaluate(layout.images(parameters), loss, **options)
            gradient = layout.pull(parameters, slope)
            if penalty is not None:
                added, added_gradient = penalty(parameters)
                value += added
                gradient += added_gradient
            return value, gradient.ravel()

        limits = {"maxiter": max_iter}
        found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=limits)
        record = {"loss": loss.__name__, **options, "pairs": self.differences.shape[0]}
        record |= {"objective": float(found.fun), "iterations": int(found.nit)}
        self.history.append(record)
        logger.info("learning the map: %s", record)
        return found.x.reshape(start.shape)


EQUAL_BITS = 40  # rows that agree in this many bits count as one point
_SKEWED = 1e-6  # third moment of an axis, relative to its modulus: less is rounding
_BETAS = (64.0, 256.0, 1024.0)  # of J_β after the first
_LOG_L_WEIGHT = 0.02  # weight of J_16, added to the fraction outside the window
_SPARE = (12, 0, 1, 2)  # dimensions beyond k of the first maps; later ones start at random
_WORST_PAIRS = 500  # the most stretched and as many most shrunk ones, which join the working set
_ROUNDS = 2  # of adding them, for each β
_RANK_PAIRS = 8_000  # from which maps of several ranks are learned
_LEAST_TO_CHOOSE = 20  # rows held out, half of which choose the rank
_ROWS_PER_DIRECTION = 8  # of a map for new points, at least
_NO_WORSE = 0.1  # J_16 of unseen pairs by principal components, relative to the best map
_MIN_RELATIVE_SCALE = 1e-7  # of a direction: smaller ones are rounding
_WIDE = 512  # columns beyond which the directions come from their Gram matrix
_PERTURBATION = 0.01  # to a map under which pairs coincide, relative to its norm
_COLLAPSED = -10.0  # ℓ, relative to the mean
# Penalties on the fraction of variance in spare dimensions, which remove these one by one.
_PENALTIES = (0.015, 0.05, 0.15, 0.5, 1.5)
_ANNEALING_STEPS = 30  # for each penalty


@dataclass(frozen=True)
class Objective:
    """What a map should keep, and how much it is learned from."""

    loss: Loss
    rows: int = 2_500  # at most: a map has r k numbers, so more rows change little
    validation_rows: int = 2_500  # at most; some of them are held out
    rank: int = 64  # leading directions, or 2 k if that is more
    pairs: int = 6_000
    unseen_pairs: int = 20_000  # at most; each has a row that was held out
    starts: int = 1
    # Whether a trial without the rows held out chooses the rank of a map that is learned from all.
    has_trial: bool = False
    penalties: tuple[float, ...] = _PENALTIES


OBJECTIVES = {
    "most": Objective(outside_fraction),
    "worst": Objective(
        log_distortion,
        rows=20_000,
        validation_rows=1_000,
        rank=256,
        pairs=20_000,
        unseen_pairs=200_000,
        starts=4,  # the stress has few minima, log L many
        has_trial=True,
    ),
}


class LearnedMap(NamedTuple):
    """A linear map and the record of how it was learned."""

    components: Array  # (k, r): y = components · x
    rank: int  # leading principal directions of the input that it uses
    # log L over pairs with points that neither fitted the map nor chose its rank; NaN without.
    held_out_log_L: float
    history: list[dict[str, Any]]  # a record of each descent


def learn_linear_map(
    F: Array,
    k: int,
    rng: np.random.Generator,
    *,
    objective: Objective,
    factor: float = 1.5,
    rank: int | None = None,
    n_init: Any = "auto",
    max_iter: int = 60,
    validation_fraction: float = 0.0,
) -> LearnedMap:
    """Learn a map of the rows of F (n, r) to k dimensions; see `NearIsometricProjection`.

    The rows must be distinct and shuffled, because the first ones are held out. If any are held
    out and the objective has a trial, they choose the rank, and the map is shrunk for new points.
    """
    logger.info("learning %d of %d directions", k, F.shape[1])
    axes = np.eye(k)
    if k != F.shape[1]:
        axes = half_whitening_axes(F, rank or max(objective.rank, 2 * k))
    n_rows = min(len(F), objective.validation_rows)
    n_held = min(round(validation_fraction * n_rows), n_rows - k - 2)
    if n_held < 2:
        n_held = 0
    held_out = math.nan
    if objective.has_trial and n_held:
        if axes.shape[1] > k:
            n_axes, held_out = choose_rank(F[:n_rows], n_held, k, objective, rank, max_iter)
            axes = axes[:, :n_axes]
        n_held = 0
    is_shrunk = not math.isnan(held_out)
    n_axes = axes.shape[1]
    history: list[dict[str, Any]] = []
    if n_axes <= k:  # the rotation to the principal directions, of which there are no more than k
        W = np.zeros((k, F.shape[1]))
        W[:n_axes] = (axes / np.linalg.norm(axes, axis=0)).T
    else:
        seen = F[n_held:]
        layout = LinearLayout(seen, axes, sampled_pairs(len(seen), objective.pairs))
        # Maps of low stress: from leading directions with some spare ones, and from random ones.
        count = objective.starts if n_init == "auto" else n_init
        starts = [layout.leading[:, : k + spare] for spare in _SPARE[:count]]
        for start in range(len(_SPARE), count):
            width = min(k + 1 + start % 2, n_axes)
            starts.append(layout.deviations[:, None] * rng.standard_normal((n_axes, width)))
        maps = [layout.annealed(Q, k, max_iter, objective.penalties) for Q in starts]
        if objective.loss is outside_fraction:
            Q = _keep_most(layout, maps, max_iter, factor)
        else:
            Q = _keep_worst(layout, maps, max_iter, is_shrunk)
        W = (axes @ Q).T
        history = layout.pairs.history
        if n_held:
            (unseen,) = _unseen_log_ratios(F, n_held, axes, [Q], objective.unseen_pairs)
            held_out = float(np.ptp(unseen))

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


def _keep_most(layout: LinearLayout, maps: list[Array], max_iter: int, factor: float) -> Array:
    """Lower the fraction of pairs outside the window, then add a little log L.

    Without log L points may coincide.
    """
    losses = []
    for start, Q in enumerate(maps):
        for weight in (0.0, _LOG_L_WEIGHT):
            Q = layout.descend(Q, outside_fraction, max_iter, factor=factor, log_L_weight=weight)
        maps[start] = Q
        losses.append(layout.pairs.history[-1]["objective"])
    return maps[int(np.argmin(losses))]


def _keep_worst(layout: LinearLayout, maps: list[Array], max_iter: int, is_shrunk: bool) -> Array:
    """Lower log L: the ratio between the largest and the smallest ratio of a pair.

    Maps of low stress and the leading directions are improved at a small β, the best one at larger
    β unless it is shrunk. Between descents the worst of all pairs join the working set.
    """
    evaluate = log_ratio_evaluator(layout.F)
    layout.add(*shortest_pairs(layout.F))
    leading = layout.leading[:, : maps[0].shape[1]]
    starts = (*maps, leading)
    maps = [layout.descend(Q, log_distortion, max_iter, beta=SEARCH_BETA) for Q in starts]
    evaluated = [(Q, *evaluate(layout.images(Q))) for Q in (*maps, leading)]
    Q, ratios, i, j = min(evaluated, key=lambda found: float(np.ptp(found[1])))
    if is_shrunk:
        return layout.shrunk(Q)
    least, best = np.ptp(ratios), Q
    for beta in np.repeat(_BETAS, _ROUNDS):
        count = min(_WORST_PAIRS, len(ratios) // 2)
        order = np.argpartition(ratios, [count - 1, len(ratios) - count])
        worst = np.append(order[:count], order[len(order) - count :])
        layout.add(i[worst], j[worst])
        Q = layout.descend(Q, log_distortion, max_iter, beta=float(beta))
        ratios, i, j = evaluate(layout.images(Q))
        if np.ptp(ratios) < least:
            least, best = np.ptp(ratios), Q
    return best


# Rows held out


def choose_rank(
    F: Array, n_held: int, k: int, objective: Objective, rank: int | None, max_iter: int
) -> tuple[int, float]:
    """Fit without the first rows of F (n, r); return the best rank, and log L on unseen pairs.

    Half of the rows held out choose between maps of ranks 256, 128, ..., k, the principal
    components, and the others measure. Maps are shrunk after the first β, because otherwise they
    would keep only the extreme pairs that they have seen. The log L is NaN if the remaining rows
    have too few directions.
    """
    seen = F[n_held:]
    largest_rank = rank or max(objective.rank, 2 * k)
    axes = half_whitening_axes(seen, largest_rank)
    if axes.shape[1] <= k:
        return largest_rank, math.nan
    if rank is None:
        axes = axes[:, : max(2 * k, len(seen) // _ROWS_PER_DIRECTION)]
    ranks = [axes.shape[1]]
    while rank is None and ranks[-1] > k:
        ranks.append(max(ranks[-1] // 2, k))
    layout = LinearLayout(seen, axes, sampled_pairs(len(seen), _RANK_PAIRS))
    start = layout.leading[:, : k + _SPARE[0]]
    start = layout.annealed(start, k, max_iter, objective.penalties)
    maps = []
    for tried in ranks:
        Q = layout.descend(start[:tried], log_distortion, max_iter, beta=SEARCH_BETA)
        maps.append(layout.shrunk(Q))
    best, n_choosing = 0, 0
    if len(maps) > 1 and n_held >= _LEAST_TO_CHOOSE:
        n_choosing = n_held // 2
        chosen_by = F[np.r_[:n_choosing, n_held : len(F)]]
        choosing = _unseen_log_ratios(chosen_by, n_choosing, axes, maps, objective.unseen_pairs)
        losses = [log_distortion(ratios, SEARCH_BETA)[0] for ratios in choosing]
        best = int(np.argmin(losses))
        if losses[-1] <= (1 + _NO_WORSE) * losses[best]:
            best = len(maps) - 1
    measured_by, n_measuring = F[n_choosing:], n_held - n_choosing
    (unseen,) = _unseen_log_ratios(
        measured_by, n_measuring, axes, [maps[best]], objective.unseen_pairs
    )
    return rank or ranks[best], float(np.ptp(unseen))


def _unseen_log_ratios(
    F: Array, count: int, axes: Array, maps: Sequence[Array], n_pairs: int
) -> list[Array]:
    """Return ℓ of pairs with one of the first `count` rows for each map.

    The pairs are thinned evenly to at most `n_pairs`.
    """
    i, j = np.triu_indices(count, 1, len(F))
    every = -(-len(i) // n_pairs)
    layout = LinearLayout(F, axes, (i[::every], j[::every]))
    return [layout.log_ratios(Q) for Q in maps]


# The layout


class LinearLayout:
    """Points Y = Z Q that are linear in the coordinates Z of F along axes, and pairs of them.

    The distances of these pairs are to be kept. A map Q (R', k) takes the first R' coordinates. One
    product takes n R' k operations.

    Parameters
    ----------
    F : array (n, r)
    axes : array (r, R)
        By `half_whitening_axes`.
    pairs : (i, j) of index arrays (m,)

    Attributes
    ----------
    pairs : PairObjective
        With their distances in F.
    Z : array (n, R)
    deviations : array (R,)
        The standard deviations of the coordinates.
    leading : array (R, R)
        Map to the principal components; its first columns are the directions of largest variance.
    """

    def __init__(self, F: Array, axes: Array, pairs: Pairs) -> None:
        self.F = F
        self.pairs = PairObjective(len(F))
        self.add(*pairs)
        self.Z = (F - F.mean(axis=0)) @ axes
        self.covariance = self.Z.T @ self.Z / len(F)  # (R, R)
        self.deviations = np.sqrt(np.diag(self.covariance))
        self.leading = np.diag(self.deviations)

    def add(self, i: Array, j: Array) -> None:
        """Add pairs."""
        self.pairs.add(i, j, pair_distances(self.F, self.F, i, j))

    def images(self, Q: Array) -> Array:
        """Return the points Y (n, k)."""
        return self.Z[:, : len(Q)] @ Q

    def pull(self, Q: Array, slope: Array) -> Array:
        """Return dJ/dQ, given dJ/dY (n, k)."""
        return self.Z[:, : len(Q)].T @ slope

    def log_ratios(self, Q: Array) -> Array:
        """Return ℓ (m,) of all pairs."""
        return self.pairs.log_ratios(self.images(Q))

    def descend(self, Q: Array, loss: Loss, max_iter: int, **options: Any) -> Array:
        """Minimise a loss, with the `options` of `PairObjective.descend`, from Q (R', k).

        Columns of the map returned are uncorrelated, and have decreasing variance.
        """
        ratios = self.log_ratios(Q)
        if ratios.min() <= ratios.mean() + _COLLAPSED:  # points that coincide have no gradient
            noise = np.random.default_rng(0).standard_normal(Q.shape)
            noise *= self.deviations[: len(Q), None]
            Q = Q + _PERTURBATION * np.linalg.norm(Q) / np.linalg.norm(noise) * noise
        Q = self.pairs.descend(self, Q, loss, max_iter, **options)
        Q = Q @ np.linalg.eigh(Q.T @ self.covariance[: len(Q), : len(Q)] @ Q)[1][:, ::-1]
        return Q / np.linalg.norm(Q)  # losses do not depend on scale: avoid overflow

    def annealed(self, Q: Array, k: int, max_iter: int, penalties: Sequence[float]) -> Array:
        """Reduce a map gradually to its first k dimensions, to one of low stress.

        With many dimensions all distances can be kept, so the start hardly matters. The penalty on
        the variance in the spare dimensions then increases step by step. Parts that would have to
        cross in the plane can pass each other in the spare dimensions.
        """
        for weight in penalties if k < Q.shape[1] else ():
            penalty = partial(self.spare_variance, k=k, weight=weight)
            Q = self.descend(Q, stress, _ANNEALING_STEPS, penalty=penalty)
        return self.descend(Q[:, :k], stress, max_iter)

    def spare_variance(self, Q: Array, k: int, weight: float) -> tuple[float, Array]:
        """Return the fraction of variance beyond column k, times `weight`, and its gradient."""
        moments = self.covariance[: len(Q), : len(Q)] @ Q
        of_columns = np.einsum("ij,ij->j", Q, moments)
        total = float(of_columns.sum())
        spare = float(of_columns[k:].sum()) / total
        gradient = -2 * spare / total * moments
        gradient[:, k:] += 2 / total * moments[:, k:]
        return weight * spare, weight * gradient

    def shrunk(self, Q: Array) -> Array:
        """Return a map (R', k) shrunk to the mean of itself and the projection to leading axes.

        The map is first rotated and scaled to the projection (Procrustes). Both have errors on new
        pairs, but on different ones, so their mean has smaller errors.
        """
        deviations = self.deviations[: len(Q), None]
        P = self.leading[: len(Q), : Q.shape[1]]
        U, _, Vt = np.linalg.svd((deviations * Q).T @ (deviations * P))
        size = np.linalg.norm(deviations * P) / np.linalg.norm(deviations * Q)
        return (size * Q @ U @ Vt + P) / 2


def half_whitening_axes(F: Array, max_rank: int) -> Array:
    """Return axes (r, R): coordinates F · axes have variances σ, those of principal components σ².

    This is between two extremes: with the components themselves the directions of small distances
    would hardly count in the first steps of a descent, and with whitened ones noise would count as
    much as any direction. There are at most `max_rank` axes, and none below rounding.
    """
    centred = F - F.mean(axis=0)
    if F.shape[1] > _WIDE:  # a few of very many directions
        first, last = max(0, F.shape[1] - max_rank), F.shape[1] - 1
        squares, vectors = eigh(centred.T @ centred, subset_by_index=[first, last])
        lengths = np.sqrt(np.maximum(squares[::-1], 0.0))
        axes = vectors[:, ::-1].T
    else:
        if len(F) > F.shape[1]:  # the same directions, cheaper
            centred = np.linalg.qr(centred, mode="r")
        _, lengths, axes = np.linalg.svd(centred, full_matrices=False)
    used = min(max_rank, int(np.sum(lengths > _MIN_RELATIVE_SCALE * lengths[0])))
    return (axes[:used] / np.sqrt(lengths[:used, None] / math.sqrt(len(F)))).T


def first_equal(points: Array) -> Array:
    """Return for each row the number of the first row that counts as the same point."""
    same = np.arange(len(points))
    for shift in (0, 1 / 3, 2 / 3):  # rows split by a line of one grid share a cell of another
        cells, cell = distinct_rows(np.round(np.ldexp(points[same], EQUAL_BITS) + shift))
        same = same[cells[cell]]
    return same
