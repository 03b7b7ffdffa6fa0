"""The loss of a linear map over pairs of points, and its descent."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform

from heatsketch._progress import Stage
from heatsketch._typing import Array
from heatsketch.isometry.losses import LogDistortion, Loss, stress
from heatsketch.isometry.pairs import random_pairs
from heatsketch.neighbors import pair_distances

SPARE_DIMENSIONS = 12  # that a map is squeezed out of
_MIN_RELATIVE_SCALE = 1e-7  # of a direction: smaller ones are rounding
_WIDE = 512  # columns beyond which the directions come from their Gram matrix
_TINY = 1e-24  # squared ratio that counts as zero
_PERTURBATION = 0.01  # of a map under which pairs coincide, relative to its norm
_COLLAPSED = -10.0  # ℓ, relative to the mean


@dataclass(frozen=True)
class Squeeze:
    """The penalties by which a map is reduced to fewer dimensions."""

    loss: Loss
    weights: tuple[float, ...]  # of the share of variance in spare dimensions, one after another
    iterations: int  # for each of them


LEAST_STRESS = Squeeze(stress, (0.015, 0.05, 0.15, 0.5, 1.5), 30)
LEAST_LOG_L = Squeeze(LogDistortion(8.0), (0.1, 0.3, 1.0, 3.0, 10.0, 30.0), 25)


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


@dataclass(eq=False)
class PairObjective(ABC):
    """Pairs of rows whose distances a map Q (R, k) is to keep, and a record of the descents."""

    variances: Array  # (R, R), the scatter of the coordinates of all rows
    history: list[dict[str, Any]] = field(default_factory=list, kw_only=True)
    stage: Stage = field(
        default_factory=lambda: Stage("learning the map", None, "steps"), kw_only=True
    )

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of pairs m."""

    @abstractmethod
    def squared_ratios(self, Q: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return the squared ratios s (m,), and a function: weights w -> Σ w ∇s / 2 (R, k)."""

    def log_ratios(self, Q: Array) -> Array:
        """Return ℓ (m,) of all pairs."""
        return np.log(self.squared_ratios(Q)[0]) / 2

    def descend(
        self, Q: Array, loss: Loss, max_iter: int, kept: int | None = None, weight: float = 0.0
    ) -> Array:
        """Minimise loss + weight · (share of variance in columns `kept`, ...), from Q (R, k)."""

        def objective(q: Array) -> tuple[float, Array]:
            Q = q.reshape(shape)
            squares, pull = self.squared_ratios(Q)
            value, slope = loss(np.log(squares) / 2)
            gradient = pull(slope / squares)
            if weight:
                share, share_slope = _spare_share(Q, self.variances, kept)
                value, gradient = value + weight * share, gradient + weight * share_slope
            return value, gradient.ravel()

        shape = Q.shape
        found = minimize(
            objective,
            self._perturbed(Q).ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iter},
            callback=lambda _: self.stage.update(),
        )
        record = {"loss": str(getattr(loss, "__name__", loss)), "pairs": self.count}
        record |= {"objective": float(found.fun), "iterations": int(found.nit)}
        self.history.append(record)
        best = found.x.reshape(shape)
        return best / np.linalg.norm(best)  # no loss depends on scale: avoid overflow

    def squeezed(self, Q: Array, kept: int, squeeze: Squeeze = LEAST_STRESS) -> Array:
        """Reduce a map gradually to its first `kept` dimensions.

        With many dimensions the distances can all be kept, and there is nothing to choose. The
        penalty on the variance in the spare dimensions then increases step by step: the map that is
        followed hardly depends on the start, and what crosses in the plane has room to pass.
        """
        for weight in squeeze.weights if kept < Q.shape[1] else ():
            Q = self.descend(self.principal(Q), squeeze.loss, squeeze.iterations, kept, weight)
        return self.principal(Q)[:, :kept]

    def principal(self, Q: Array) -> Array:
        """Rotate the map so that its columns have decreasing variance."""
        variances, axes = np.linalg.eigh(Q.T @ self.variances @ Q)
        return Q @ axes[:, np.argsort(-variances, kind="stable")]

    def _perturbed(self, Q: Array) -> Array:
        """Perturb a map under which points coincide: the gradient does not separate them."""
        found = self.log_ratios(Q)
        if found.min() > found.mean() + _COLLAPSED:
            return Q
        noise = np.random.default_rng(0).standard_normal(Q.shape)
        noise *= np.sqrt(np.diag(self.variances))[:, None]
        return Q + _PERTURBATION * np.linalg.norm(Q) / np.linalg.norm(noise) * noise


@dataclass(eq=False)
class SampledPairs(PairObjective):
    """Some pairs of rows of Z (n, R), from their coordinates.

    One step takes n R k + m k operations.
    """

    Z: Array  # (n, R)
    differences: sparse.csr_array  # (m, n): a row takes (z_i - z_j) / d_ij

    @classmethod
    def of(cls, Z: Array, i: Array, j: Array, distances: Array) -> SampledPairs:
        """Return the objective for pairs of rows of Z (n, R) with these distances (m,)."""
        return cls(Z.T @ Z / len(Z), Z, _differences(len(Z), i, j, distances))

    @classmethod
    def of_rows(cls, F: Array, basis: Basis, count: int) -> SampledPairs:
        """Return the objective for about `count` random pairs of rows of F (n, r)."""
        i, j = random_pairs(len(F), count)
        return cls.of(basis.coordinates(F), i, j, pair_distances(F, F, i, j))

    def __post_init__(self) -> None:
        self._sums = self.differences.T

    @property
    def count(self) -> int:
        """Number of pairs m."""
        return int(self.differences.shape[0])

    def cut(self, rank: int) -> SampledPairs:
        """Return the objective for the first `rank` coordinates."""
        first = np.ascontiguousarray(self.Z[:, :rank])
        return SampledPairs(self.variances[:rank, :rank], first, self.differences)

    def add(self, i: Array, j: Array, distances: Array) -> None:
        """Let pairs join."""
        more = _differences(len(self.Z), i, j, distances)
        self.differences = sparse.vstack([self.differences, more], format="csr")
        self._sums = self.differences.T

    def squared_ratios(self, Q: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return the squared ratios, and how a map changes them."""
        images = self.differences @ (self.Z @ Q)

        def pull(weights: Array) -> Array:
            return np.asarray(self.Z.T @ (self._sums @ (images * weights[:, None])))

        return np.einsum("ij,ij->i", images, images) + _TINY, pull


class AllPairs(PairObjective):
    """All pairs of the rows of Z (n, R), from their coordinates; their distances are m numbers.

    Faster than `SampledPairs`: there is no index for each pair, and distances are computed again.
    """

    def __init__(self, Z: Array, distances: Array) -> None:
        super().__init__(Z.T @ Z / len(Z))
        self._Z, self._inverse = Z, 1 / distances**2

    @property
    def count(self) -> int:
        """Number of pairs m."""
        return len(self._inverse)

    def squared_ratios(self, Q: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return the squared ratios in the order of `pdist`, and how a map changes them."""
        Y = self._Z @ Q
        squares = pdist(Y, "sqeuclidean") * self._inverse + _TINY

        def pull(weights: Array) -> Array:
            W = squareform(weights * self._inverse)
            return np.asarray(self._Z.T @ (W.sum(axis=0)[:, None] * Y - W @ Y))

        return squares.astype(np.float32), pull

    def log_L(self, Q: Array) -> float:
        """Return log L, to the last digits."""
        squares = pdist(self._Z @ Q, "sqeuclidean") * self._inverse
        return math.log(squares.max() / max(squares.min(), _TINY * squares.max())) / 2


def _differences(n: int, i: Array, j: Array, distances: Array) -> sparse.csr_array:
    """Return the matrix (m, n) that takes n rows to (z_i - z_j) / d_ij."""
    entries = np.repeat(1 / distances, 2) * np.tile([1.0, -1.0], len(i))
    starts = np.arange(0, 2 * len(i) + 1, 2)
    return sparse.csr_array((entries, np.stack([i, j], axis=1).ravel(), starts), (len(i), n))


def _spare_share(Q: Array, variances: Array, kept: int | None) -> tuple[float, Array]:
    """Return the share of the variance of the map in the columns `kept`, ..., and its slope."""
    moments = variances @ Q
    of_columns = np.einsum("ij,ij->j", Q, moments)
    total = float(of_columns.sum())
    share = float(of_columns[kept:].sum()) / total
    slope = -2 * share / total * moments
    slope[:, kept:] += 2 / total * moments[:, kept:]
    return share, slope
