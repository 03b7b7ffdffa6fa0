"""Losses of a linear map over pairs of points, with their slopes, and the descent.

Losses are functions of the log distance ratios ℓ of pairs. They do not change when all distances
are multiplied by one number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.optimize import minimize

from heatsketch._checks import logger
from heatsketch._typing import Array
from heatsketch.isometry.pairs import Pairs
from heatsketch.neighbors import pair_distances

Loss = Callable[[Array], tuple[float, Array]]  # ℓ (m,) -> value, slope (m,)

SEARCH_BETA = 16.0  # of the first J_β
_WIDTH = 2.0  # width of the window of `OutsideFraction`, in units of log factor
_CENTRING_STEPS = 8
_MIN_RELATIVE_SCALE = 1e-7  # of a direction: smaller ones are rounding
_WIDE = 512  # columns beyond which the directions come from their Gram matrix
_TINY = 1e-24  # squared ratio that counts as zero
_PERTURBATION = 0.01  # to a map under which pairs coincide, relative to its norm
_COLLAPSED = -10.0  # ℓ, relative to the mean
# Penalties on the fraction of variance in spare dimensions, which remove these one by one.
_PENALTIES = (0.015, 0.05, 0.15, 0.5, 1.5)
_ANNEALING_STEPS = 30  # for each penalty


def stress(log_ratios: Array) -> tuple[float, Array]:
    """Return the variance of ℓ and its slope: smooth, and with few minima.

    It is the limit of J_β / β as β → 0, see `LogDistortion`.
    """
    centred = log_ratios - log_ratios.mean()
    return float(np.mean(centred**2, dtype=float)), centred * (2 / len(centred))


@dataclass(frozen=True)
class OutsideFraction:
    """The smoothed fraction of pairs whose distance ratio is far from the typical one.

    The value is the mean of 1 - exp(-(ℓ - c)²/2w²), with the centre c at which it is least and the
    width w = 2 log `factor`. A width of 1.25 log `factor` would keep 1-3 % more pairs within
    `factor`, but other pairs would coincide in the picture (docs/embeddings.md). `log_L_weight`
    times J_16 is added, so that no two points coincide.
    """

    factor: float
    log_L_weight: float = 0.0

    def __call__(self, log_ratios: Array) -> tuple[float, Array]:
        """Return the value and its slope; c does not contribute, because it is at a minimum."""
        width = _WIDTH * math.log(self.factor)
        centre = float(log_ratios.mean())
        for _ in range(_CENTRING_STEPS):
            near = np.exp(-(((log_ratios - centre) / width) ** 2) / 2)
            centre = float(near @ log_ratios / max(near.sum(), 1e-30))
        centred = log_ratios - centre
        near = np.exp(-((centred / width) ** 2) / 2)
        value, slope = 1 - float(near.mean(dtype=float)), near * centred / (width**2 * len(near))
        if self.log_L_weight:
            log_L, its_slope = LogDistortion(SEARCH_BETA)(log_ratios)
            value, slope = value + self.log_L_weight * log_L, slope + self.log_L_weight * its_slope
        return value, slope


@dataclass(frozen=True)
class LogDistortion:
    """The smoothed log-distortion J_β = (1/β) log mean e^{βℓ} + (1/β) log mean e^{-βℓ}.

    It tends to log L = max ℓ - min ℓ as β grows: log L - 2 log(m) / β <= J_β <= log L.
    """

    beta: float

    def __call__(self, log_ratios: Array) -> tuple[float, Array]:
        """Return the value and its slope."""
        low, high = log_ratios.min(), log_ratios.max()
        up, down = np.exp(self.beta * (log_ratios - high)), np.exp(self.beta * (low - log_ratios))
        total, total_down = float(up.sum(dtype=float)), float(down.sum(dtype=float))
        rest = math.log(total / len(up)) + math.log(total_down / len(up))
        return float(high - low) + rest / self.beta, up / total - down / total_down


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
        self, Q: Array, loss: Loss, max_iter: int, kept: int | None = None, penalty: float = 0.0
    ) -> Array:
        """Minimise loss + penalty · (fraction of variance beyond column `kept`), from Q (R, k).

        Columns of the map returned are uncorrelated, and have decreasing variance.
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
            value, slope = loss(np.log(squares) / 2)
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
        name, pairs = str(getattr(loss, "__name__", loss)), differences.shape[0]
        record = {"loss": name, "pairs": pairs, "objective": float(found.fun)}
        self.history.append(record | {"iterations": int(found.nit)})
        logger.info("learning the map: %s %.3g of %d pairs", name, found.fun, pairs)
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
