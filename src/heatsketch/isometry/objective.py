"""Losses of a linear map over pairs of points, with their slopes, and the descent.

Losses are functions of the log distance ratios ℓ of pairs. None changes when all distances are
multiplied by one number.
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

_WIDTH = 2.0  # of the window of `OutsideFraction`, in units of log factor
_CENTRING_STEPS = 8
_MIN_RELATIVE_SCALE = 1e-7  # of a direction: smaller ones are rounding
_WIDE = 512  # columns beyond which the directions come from their Gram matrix
_TINY = 1e-24  # squared ratio that counts as zero
_PERTURBATION = 0.01  # of a map under which pairs coincide, relative to its norm
_COLLAPSED = -10.0  # ℓ, relative to the mean
# Penalties on the fraction of variance in spare dimensions, by which a map loses them one by one.
_PENALTIES = (0.015, 0.05, 0.15, 0.5, 1.5)
_ANNEALING_STEPS = 30  # for each of them


def stress(log_ratios: Array) -> tuple[float, Array]:
    """Return the variance of ℓ and its slope: smooth, and with few minima.

    It is the limit of J_β / β as β → 0, see `LogDistortion`.
    """
    centred = log_ratios - log_ratios.mean()
    return float(np.mean(centred**2, dtype=float)), centred * (2 / len(centred))


@dataclass(frozen=True)
class OutsideFraction:
    """The smoothed fraction of pairs whose distance ratio is far from the typical one.

    The mean of 1 - exp(-(ℓ - c)²/2w²), with the centre c at which it is least and the width w twice
    log `factor`. Windows of 1.25 log `factor` keep 1-3 % more pairs within it, and give up the
    others, which then coincide in the picture (docs/embeddings.md).
    """

    factor: float

    def __call__(self, log_ratios: Array) -> tuple[float, Array]:
        """Return the value and its slope; that of c does not enter at a minimum over c."""
        width = _WIDTH * math.log(self.factor)
        centre = float(log_ratios.mean())
        for _ in range(_CENTRING_STEPS):
            near = np.exp(-(((log_ratios - centre) / width) ** 2) / 2)
            centre = float(near @ log_ratios / max(near.sum(), 1e-30))
        centred = log_ratios - centre
        near = np.exp(-((centred / width) ** 2) / 2)
        return 1 - float(near.mean(dtype=float)), near * centred / (width**2 * len(near))


@dataclass(frozen=True)
class LogDistortion:
    """The smoothed log-distortion J_β = (1/β) log mean e^{βℓ} + (1/β) log mean e^{-βℓ}.

    It tends to log L = max ℓ - min ℓ as β grows: log L - 2 log(m) / β <= J_β <= log L.
    """

    beta: float

    def __call__(self, log_ratios: Array) -> tuple[float, Array]:
        """Return the value and its slope."""
        up, up_slope = _log_mean_exp(self.beta * log_ratios)
        down, down_slope = _log_mean_exp(-self.beta * log_ratios)
        return (up + down) / self.beta, up_slope - down_slope


def _log_mean_exp(x: Array) -> tuple[float, Array]:
    top = x.max()
    weights = np.exp(x - top)
    total = float(weights.sum(dtype=float))
    return float(top) + math.log(total / len(x)), weights / total


@dataclass(frozen=True, eq=False)
class Basis:
    """Principal directions of scale σ above rounding, in coordinates of scale √σ.

    With σ itself the directions that keep small distances would hardly count in the first steps,
    and with 1 (whitening) noise would count as much as any direction.
    """

    axes: Array  # (r, R): coordinates are x @ axes
    weights: Array  # (R,), decreasing: coordinates · weights are principal components

    @classmethod
    def of(cls, F: Array, max_rank: int) -> Basis:
        """Return at most `max_rank` directions of the rows of F."""
        centred = F - F.mean(axis=0)
        if F.shape[1] > _WIDE:  # some of very many directions
            gram, last = centred.T @ centred, F.shape[1] - 1
            squares, vectors = eigh(gram, subset_by_index=[max(0, last + 1 - max_rank), last])
            scales, axes = np.sqrt(np.maximum(squares[::-1], 0.0)), vectors[:, ::-1].T
        else:
            if len(F) > F.shape[1]:  # the same directions, cheaper
                centred = np.linalg.qr(centred, mode="r")
            _, scales, axes = np.linalg.svd(centred, full_matrices=False)
        used = min(max_rank, int(np.sum(scales > _MIN_RELATIVE_SCALE * scales[0])))
        weights = np.sqrt(scales[:used] / math.sqrt(len(F)))
        return cls((axes[:used] / weights[:, None]).T, weights)

    @property
    def rank(self) -> int:
        """Number of directions R."""
        return len(self.weights)

    def coordinates(self, F: Array) -> Array:
        """Return the coordinates (n, R) of rows F (n, r), up to a shift of all."""
        return (F - F.mean(axis=0)) @ self.axes

    def cut(self, rank: int) -> Basis:
        """Return the basis of the first `rank` directions."""
        return Basis(self.axes[:, :rank], self.weights[:rank])

    def leading(self, k: int) -> Array:
        """Return the projection to the k directions of largest variance, (R, k)."""
        return np.diag(self.weights)[:, :k]


class PairObjective:
    """Pairs of rows of F whose distances a map Q is to keep, up to one factor.

    A map Q (R, k) takes the first R coordinates in the basis. One step takes n R k operations, and
    m k for m pairs.

    Parameters
    ----------
    F : array (n, r)
    basis : Basis
    pairs : (i, j)

    Attributes
    ----------
    history : list of dict
        A record of each descent.
    """

    def __init__(self, F: Array, basis: Basis, pairs: Pairs) -> None:
        self.F, self.Z = F, basis.coordinates(F)
        self.variances = self.Z.T @ self.Z / len(F)  # (R, R), the scatter of the coordinates
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
        """Minimise loss + penalty · (fraction of variance beyond column `kept`), from Q (R, k)."""
        Z, differences, transposed = self.Z[:, : len(Q)], self.differences, self.differences.T
        shape, variances = Q.shape, self.variances[: len(Q), : len(Q)]

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

        found = minimize(
            objective,
            self._perturbed(Q).ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iter},
        )
        name, pairs = str(getattr(loss, "__name__", loss)), differences.shape[0]
        record = {"loss": name, "pairs": pairs, "objective": float(found.fun)}
        self.history.append(record | {"iterations": int(found.nit)})
        logger.info("learning the map: %s %.3g of %d pairs", name, found.fun, pairs)
        best = found.x.reshape(shape)
        return best / np.linalg.norm(best)  # no loss depends on scale: avoid overflow

    def annealed(self, Q: Array, k: int) -> Array:
        """Reduce a map gradually to its first k dimensions, at little stress.

        With many dimensions the distances can all be kept, and there is nothing to choose. The
        penalty on the variance in the spare dimensions then increases step by step: the map that is
        followed hardly depends on the start, and what crosses in the plane has room to pass.
        """
        for penalty in _PENALTIES if k < Q.shape[1] else ():
            Q = self.descend(self.principal(Q), stress, _ANNEALING_STEPS, k, penalty)
        return self.principal(Q)[:, :k]

    def principal(self, Q: Array) -> Array:
        """Rotate the map so that its columns have decreasing variance."""
        variances, axes = np.linalg.eigh(Q.T @ self.variances[: len(Q), : len(Q)] @ Q)
        return Q @ axes[:, np.argsort(-variances, kind="stable")]

    def _perturbed(self, Q: Array) -> Array:
        """Perturb a map under which points coincide: the gradient does not separate them."""
        ratios = self.log_ratios(Q)
        if ratios.min() > ratios.mean() + _COLLAPSED:
            return Q
        noise = np.random.default_rng(0).standard_normal(Q.shape)
        noise *= np.sqrt(np.diag(self.variances)[: len(Q)])[:, None]
        return Q + _PERTURBATION * np.linalg.norm(Q) / np.linalg.norm(noise) * noise
