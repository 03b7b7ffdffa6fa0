"""Pairs of points, losses of a linear map over them with their slopes, and the descent.

Losses are functions of the log distance ratios ℓ of pairs. They do not change when all distances
are multiplied by one number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.spatial.distance import pdist

from heatsketch._checks import logger
from heatsketch._typing import Array
from heatsketch.neighbors import NeighborIndex, all_distances, pair_distances

Pairs = tuple[Array, Array]

ALL_PAIRS_UP_TO = 2_048  # points
RANDOM_PAIRS = 500_000
NEAR_ROWS = 4_000  # points whose nearest neighbours are searched in many dimensions
_NEAR, _COLLIDING = 5, 5  # nearest neighbours in the input and in the embedding
_SEED = 0  # a constant: pairs depend only on the order of the rows
SEARCH_BETA = 16.0  # of the first J_β
_WIDTH = 2.0  # width of the window of `outside_fraction`, in units of log factor
_CENTRING_STEPS = 8
_MIN_RELATIVE_SCALE = 1e-7  # of a direction: smaller ones are rounding
_WIDE = 512  # columns beyond which the directions come from their Gram matrix
_TINY = 1e-24  # squared ratio that counts as zero
_PERTURBATION = 0.01  # to a map under which pairs coincide, relative to its norm
_COLLAPSED = -10.0  # ℓ, relative to the mean
# Penalties on the fraction of variance in spare dimensions, which remove these one by one.
_PENALTIES = (0.015, 0.05, 0.15, 0.5, 1.5)
_ANNEALING_STEPS = 30  # for each penalty


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
    sizes, order = np.bincount(labels), np.argsort(labels, kind="stable")
    starts, ends = np.cumsum(sizes) - sizes, np.cumsum(sizes * (sizes - 1))
    if ends[-1] == 0:
        raise ValueError("No two points are in the same component; pass a larger n_neighbors.")
    drawn = rng.integers(0, ends[-1], count)  # of all ordered pairs
    group = np.searchsorted(ends, drawn, side="right")
    size, drawn = sizes[group], ends[group] - 1 - drawn
    i, step = drawn // (size - 1), 1 + drawn % (size - 1)
    return order[starts[group] + i], order[starts[group] + (i + step) % size]


def within(i: Array, j: Array, labels: Array | None) -> Pairs:
    """Return the pairs whose points have the same label; all pairs without labels (n,)."""
    if labels is None:
        return i, j
    kept = labels[i] == labels[j]
    return i[kept], j[kept]


def nearest_pairs(F: Array, rows: Array, k: int) -> Pairs:
    """Return the pairs of each of the rows and its k nearest other rows of F."""
    found = NeighborIndex(F).query(F[rows], k + 1).indices
    i, j = np.repeat(rows, k + 1), found.ravel()
    return i[i != j], j[i != j]


def near_pairs(F: Array) -> Pairs:
    """Return the pairs of the first rows of F and their nearest neighbours, the shortest pairs."""
    return nearest_pairs(F, np.arange(min(len(F), NEAR_ROWS)), min(_NEAR, len(F) - 1))


def distortion_evaluator(F: Array) -> Callable[[Array], tuple[Array, Array, Array]]:
    """Return a function that evaluates embeddings of F (n, r) on fixed pairs and on near pairs.

    It maps an embedding Y (n, k) to its log ratios to F, (m,), and their pairs i, j. Up to 2,048
    points these are all pairs. Beyond, they are random pairs, nearest neighbours in F, and nearest
    neighbours in each embedding, which include collisions.
    """
    if len(F) <= ALL_PAIRS_UP_TO:
        first, second = np.triu_indices(len(F), 1)
        logs = _logs(all_distances(F))
    else:
        sides = zip(sampled_pairs(len(F), RANDOM_PAIRS // 2), near_pairs(F), strict=True)
        first, second = (np.concatenate(side) for side in sides)
        logs = _logs(pair_distances(F, F, first, second))

    def evaluate(Y: Array) -> tuple[Array, Array, Array]:
        if len(Y) <= ALL_PAIRS_UP_TO:
            return _logs(pdist(Y)) - logs, first, second
        close = nearest_pairs(Y, np.arange(len(Y)), _COLLIDING)
        i, j = np.append(first, close[0]), np.append(second, close[1])
        known = np.append(logs, _logs(pair_distances(F, F, *close)))
        return _logs(pair_distances(Y, Y, i, j)) - known, i, j

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
    `factor`, but other pairs would coincide in the picture (docs/embeddings.md). `log_L_weight`
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
    value, slope = 1 - float(near.mean(dtype=float)), near * centred / (width**2 * len(near))
    if log_L_weight:
        log_L, its_slope = log_distortion(log_ratios, SEARCH_BETA)
        value, slope = value + log_L_weight * log_L, slope + log_L_weight * its_slope
    return value, slope


def log_distortion(log_ratios: Array, beta: float) -> tuple[float, Array]:
    """Return the smoothed log-distortion J_β and its slope.

    J_β = (1/β) log mean e^{βℓ} + (1/β) log mean e^{-βℓ}. It tends to log L = max ℓ - min ℓ
    as β grows: log L - 2 log(m) / β <= J_β <= log L.
    """
    low, high = log_ratios.min(), log_ratios.max()
    up, down = np.exp(beta * (log_ratios - high)), np.exp(beta * (low - log_ratios))
    total, total_down = float(up.sum(dtype=float)), float(down.sum(dtype=float))
    rest = math.log(total / len(up)) + math.log(total_down / len(up))
    return float(high - low) + rest / beta, up / total - down / total_down


# The descent


def principal_axes(F: Array, max_rank: int) -> Array:
    """Return axes (r, R): coordinates F · axes have variances σ, those of principal components σ².

    This is between two extremes: with the components themselves the directions of small distances
    would hardly count in the first steps of a descent, and with whitened ones noise would count as
    much as any direction. There are at most `max_rank` axes, and none below rounding.
    """
    centred = F - F.mean(axis=0)
    if F.shape[1] > _WIDE:  # a few of very many directions
        gram, last = centred.T @ centred, F.shape[1] - 1
        squares, vectors = eigh(gram, subset_by_index=[max(0, last + 1 - max_rank), last])
        scales, axes = np.sqrt(np.maximum(squares[::-1], 0.0)), vectors[:, ::-1].T
    else:
        if len(F) > F.shape[1]:  # the same directions, cheaper
            centred = np.linalg.qr(centred, mode="r")
        _, scales, axes = np.linalg.svd(centred, full_matrices=False)
    used = min(max_rank, int(np.sum(scales > _MIN_RELATIVE_SCALE * scales[0])))
    return (axes[:used] / np.sqrt(scales[:used, None] / math.sqrt(len(F)))).T


class PairObjective:
    """Pairs of rows of F whose distances a map Q should keep, up to one factor.

    A map Q (R, k) takes the first R coordinates along the axes. One step takes n R k operations,
    and m k for m pairs.

    Parameters
    ----------
    F : array (n, r)
    axes : array (r, R)
        Principal axes.
    pairs : (i, j)

    Attributes
    ----------
    Z : array (n, R)
        The coordinates.
    scales : array (R,)
        Their standard deviations.
    leading : array (R, R)
        Map to the principal components; its first columns are the directions of largest variance.
    history : list of dict
        A record of each descent.
    """

    def __init__(self, F: Array, axes: Array, pairs: Pairs) -> None:
        self.F, self.Z = F, (F - F.mean(axis=0)) @ axes
        self.variances = self.Z.T @ self.Z / len(F)  # (R, R), the scatter of the coordinates
        self.scales = np.sqrt(np.diag(self.variances))
        self.leading = np.diag(self.scales)
        self.history: list[dict[str, Any]] = []
        self.differences = sparse.csr_array((0, len(F)))  # (m, n): takes rows to (z_i - z_j) / d_ij
        self.add(*pairs)

    def add(self, i: Array, j: Array) -> None:
        """Add pairs."""
        inverses = np.repeat(1 / pair_distances(self.F, self.F, i, j), 2)
        entries, starts = inverses * np.tile([1.0, -1.0], len(i)), np.arange(0, 2 * len(i) + 1, 2)
        rows = (entries, np.stack([i, j], axis=1).ravel(), starts)
        more = sparse.csr_array(rows, (len(i), len(self.F)))
        self.differences = sparse.vstack([self.differences, more], format="csr")

    def log_ratios(self, Q: Array) -> Array:
        """Return ℓ (m,) of all pairs."""
        images = self.differences @ (self.Z[:, : len(Q)] @ Q)
        return np.log(np.einsum("ij,ij->i", images, images) + _TINY) / 2

    def descend(
        self,
        Q: Array,
        loss: Callable[..., tuple[float, Array]],
        max_iter: int,
        kept: int | None = None,
        penalty: float = 0.0,
        **parameters: float,
    ) -> Array:
        """Minimise loss + penalty · (fraction of variance beyond column `kept`), from Q (R, k).

        `parameters` are those of the loss. Columns of the map returned are uncorrelated, and have
        decreasing variance.
        """
        Z, differences, transposed = self.Z[:, : len(Q)], self.differences, self.differences.T
        shape, variances = Q.shape, self.variances[: len(Q), : len(Q)]
        ratios = self.log_ratios(Q)
        if ratios.min() <= ratios.mean() + _COLLAPSED:  # points that coincide have no gradient
            noise = np.random.default_rng(0).standard_normal(shape) * self.scales[: len(Q), None]
            Q = Q + _PERTURBATION * np.linalg.norm(Q) / np.linalg.norm(noise) * noise

        def objective(q: Array) -> tuple[float, Array]:
            Q = q.reshape(shape)
            images = differences @ (Z @ Q)
            squares = np.einsum("ij,ij->i", images, images) + _TINY
            value, slope = loss(np.log(squares) / 2, **parameters)
            gradient = Z.T @ (transposed @ (images * (slope / squares)[:, None]))
            if penalty:
                moments = variances @ Q
                of_columns = np.einsum("ij,ij->j", Q, moments)
                total = float(of_columns.sum())
                spare = float(of_columns[kept:].sum()) / total
                slope = -2 * spare / total * moments
                slope[:, kept:] += 2 / total * moments[:, kept:]
                value, gradient = value + penalty * spare, gradient + penalty * slope
            return value, gradient.ravel()

        options = {"maxiter": max_iter}
        found = minimize(objective, Q.ravel(), jac=True, method="L-BFGS-B", options=options)
        record = {"loss": loss.__name__, **parameters, "pairs": differences.shape[0]}
        record |= {"objective": float(found.fun), "iterations": int(found.nit)}
        self.history.append(record)
        logger.info("learning the map: %s", record)
        best = found.x.reshape(shape)
        best = best @ np.linalg.eigh(best.T @ variances @ best)[1][:, ::-1]
        return best / np.linalg.norm(best)  # losses do not depend on scale: avoid overflow

    def annealed(self, Q: Array, k: int, max_iter: int) -> Array:
        """Reduce a map gradually to its first k dimensions, to one of low stress.

        With many dimensions all distances can be kept, so the start hardly matters. The penalty on
        the variance in the spare dimensions then increases step by step. Parts that would have to
        cross in the plane can pass each other in the spare dimensions.
        """
        for penalty in _PENALTIES if k < Q.shape[1] else ():
            Q = self.descend(Q, stress, _ANNEALING_STEPS, k, penalty)
        return self.descend(Q[:, :k], stress, max_iter)
