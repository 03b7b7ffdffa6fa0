"""The loss of a linear map over pairs of points, and its descent."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform

from heatsketch._progress import track
from heatsketch._typing import Array
from heatsketch.isometry.losses import LogDistortion, Loss, stress
from heatsketch.isometry.pairs import random_pairs
from heatsketch.neighbors import pair_distances

_MIN_RELATIVE_SCALE = 1e-7  # of a direction: smaller ones are rounding
_WIDE = 512  # columns beyond which the directions come from their Gram matrix
_TINY = 1e-24  # squared ratio that counts as zero
_PERTURBATION = 0.01  # of a map under which pairs coincide, relative to its norm
_COLLAPSED = -10.0  # ℓ, relative to the mean


@dataclass(frozen=True)
class Annealing:
    """Penalties on spare dimensions, by which a map is reduced to fewer dimensions."""

    loss: Loss
    weights: tuple[float, ...]  # of the fraction of variance in spare dimensions, ascending
    iterations: int  # for each of them


LEAST_STRESS = Annealing(stress, (0.015, 0.05, 0.15, 0.5, 1.5), 30)
LEAST_LOG_L = Annealing(LogDistortion(8.0), (0.1, 0.3, 1.0, 3.0, 10.0, 30.0), 25)


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
    """Pairs of rows of Z (n, R) whose distances a map Q is to keep, and a record of the descents.

    A map of fewer than R rows maps the first coordinates. One step takes n R k operations, and m k
    for m pairs.

    Parameters
    ----------
    Z : array (n, R)
    distances : array (m,)
        That the pairs should have, up to one factor.
    pairs : (i, j), optional
        By default all pairs in the order of `pdist`. These are faster than listed ones, because
        there is no index for each, and in single precision.
    """

    def __init__(
        self, Z: Array, distances: Array, pairs: tuple[Array, Array] | None = None
    ) -> None:
        self.Z, self.variances = Z, Z.T @ Z / len(Z)  # (R, R), the scatter of the coordinates
        self.history: list[dict[str, Any]] = []
        self._stage = track(None, "learning the map", None, "steps")
        self._inverse_squares = 1 / distances**2
        self.differences = None if pairs is None else _differences(len(Z), *pairs, distances)

    @classmethod
    def of_random_pairs(cls, F: Array, basis: Basis, count: int) -> PairObjective:
        """Return the objective for about `count` random pairs of rows of F (n, r)."""
        pairs = random_pairs(len(F), count)
        return cls(basis.coordinates(F), pair_distances(F, F, *pairs), pairs)

    @property
    def count(self) -> int:
        """Number of pairs m."""
        return len(self._inverse_squares)

    def add(self, i: Array, j: Array, distances: Array) -> None:
        """Add pairs to those listed; all pairs are there already."""
        if self.differences is not None:
            more = _differences(len(self.Z), i, j, distances)
            self.differences = sparse.vstack([self.differences, more], format="csr")
            self._inverse_squares = np.append(self._inverse_squares, 1 / distances**2)

    def squared_ratios(self, Q: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return the squared ratios s (m,), and a function: weights w -> Σ w ∇s / 2 (R, k)."""
        Z = self.Z[:, : len(Q)]
        Y = Z @ Q
        if self.differences is None:
            squares = pdist(Y, "sqeuclidean") * self._inverse_squares + _TINY

            def pull_all(weights: Array) -> Array:
                W = squareform(weights * self._inverse_squares)
                return np.asarray(Z.T @ (W.sum(axis=0)[:, None] * Y - W @ Y))

            return squares.astype(np.float32), pull_all
        images, sums = self.differences @ Y, self.differences.T

        def pull(weights: Array) -> Array:
            return np.asarray(Z.T @ (sums @ (images * weights[:, None])))

        return np.einsum("ij,ij->i", images, images) + _TINY, pull

    def log_ratios(self, Q: Array) -> Array:
        """Return ℓ (m,) of all pairs."""
        return np.log(self.squared_ratios(Q)[0]) / 2

    def descend(
        self, Q: Array, loss: Loss, max_iter: int, kept: int | None = None, weight: float = 0.0
    ) -> Array:
        """Minimise loss + weight · (fraction of variance in columns `kept`, ...), from Q (R, k)."""

        def objective(q: Array) -> tuple[float, Array]:
            Q = q.reshape(shape)
            squares, pull = self.squared_ratios(Q)
            value, slope = loss(np.log(squares) / 2)
            gradient = pull(slope / squares)
            if weight:
                spare, spare_slope = _spare_fraction(Q, variances, kept)
                value, gradient = value + weight * spare, gradient + weight * spare_slope
            return value, gradient.ravel()

        shape, variances = Q.shape, self.variances[: len(Q), : len(Q)]
        found = minimize(
            objective,
            self._perturbed(Q).ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iter},
            callback=lambda _: self._stage.update(),
        )
        record = {"loss": str(getattr(loss, "__name__", loss)), "pairs": self.count}
        record |= {"objective": float(found.fun), "iterations": int(found.nit)}
        self.history.append(record)
        best = found.x.reshape(shape)
        return best / np.linalg.norm(best)  # no loss depends on scale: avoid overflow

    def annealed(self, Q: Array, k: int, annealing: Annealing = LEAST_STRESS) -> Array:
        """Reduce a map gradually to its first k dimensions.

        With many dimensions the distances can all be kept, and there is nothing to choose. The
        penalty on the variance in the spare dimensions then increases step by step: the map that is
        followed hardly depends on the start, and what crosses in the plane has room to pass.
        """
        for weight in annealing.weights if k < Q.shape[1] else ():
            Q = self.descend(self.principal(Q), annealing.loss, annealing.iterations, k, weight)
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


def _differences(n: int, i: Array, j: Array, distances: Array) -> sparse.csr_array:
    """Return the matrix (m, n) that takes n rows to (z_i - z_j) / d_ij."""
    entries = np.repeat(1 / distances, 2) * np.tile([1.0, -1.0], len(i))
    starts = np.arange(0, 2 * len(i) + 1, 2)
    return sparse.csr_array((entries, np.stack([i, j], axis=1).ravel(), starts), (len(i), n))


def _spare_fraction(Q: Array, variances: Array, kept: int | None) -> tuple[float, Array]:
    """Return the fraction of the variance of the map in the columns `kept`, ..., and its slope."""
    moments = variances @ Q
    of_columns = np.einsum("ij,ij->j", Q, moments)
    total = float(of_columns.sum())
    spare = float(of_columns[kept:].sum()) / total
    slope = -2 * spare / total * moments
    slope[:, kept:] += 2 / total * moments[:, kept:]
    return spare, slope
