"""Points with missing entries in a mixture: their densities, in closed form, and fits to them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp, softmax

from heatsketch._exceptions import logger
from heatsketch._tiles import row_tiles
from heatsketch._typing import Array
from heatsketch.mixture.cholesky_map import CholeskyMap
from heatsketch.mixture.mixture_kernel import MixtureKernel

if TYPE_CHECKING:
    from heatsketch.mixture.whitening import Whitening

_NUMBERS = 2**22  # held at a time: 32 MB
_MOST_ROUNDS, _GAIN = 50, 1e-3  # of the fit, and of its mean log-likelihood by which it ends
_LEAST_VARIANCE = 1e-6  # added to variances, relative to the largest of the start


@dataclass(frozen=True, eq=False)
class Observation:
    """What entries of a point x (m,) say of its coordinates z (q,): x = centre + A z + noise.

    Attributes
    ----------
    A : array (m, q)
    centre : array (m,)
    noise : array (m, m)
        Covariance of what is not in A z.
    """

    A: Array
    centre: Array
    noise: Array

    @classmethod
    def of(cls, whitening: Whitening | None, m: int) -> Observation:
        """Return that of a whitening, or of the points themselves."""
        if whitening is None:
            return cls(np.eye(m), np.zeros(m), np.zeros((m, m)))
        axes = whitening.axes
        rest = whitening.rest_deviation**2 * (np.eye(m) - axes @ axes.T)
        return cls(axes * whitening.lengths, whitening.centre, rest)

    def posteriors(
        self, X: Array, weights: Array, means: Array, covariances: Array, variance: float = 0.0
    ) -> tuple[Array, Array, Array]:
        """Return log joint densities (n, K), means (n, K, q) and covariances (n, K, q, q) of r.

        r has the mixture, z = r + noise of this variance, and x is seen in its entries that are not
        NaN: a linear Gaussian model, where each component by itself is a Gaussian again,

            C = A (Σ + variance) Aᵀ + noise,   G = Σ Aᵀ C⁻¹,   c = θ + G (x - centre - A θ).

        An entry that is missing has a row of zeros in A.
        """
        seen = (~np.isnan(X)).astype(float)
        x = np.where(seen > 0, X - self.centre, 0.0)
        n, (K, q) = len(X), means.shape
        A = seen[:, :, None] * self.A  # (n, m, q)
        fixed = self.noise * seen[:, :, None] * seen[:, None]
        fixed[:, np.arange(X.shape[1]), np.arange(X.shape[1])] += 1 - seen
        log_joint, centres = np.empty((n, K)), np.empty((n, K, q))
        spreads = np.empty((n, K, q, q))
        for j in range(K):
            wide = covariances[j] + variance * np.eye(q)
            L = np.linalg.cholesky(A @ wide @ A.transpose(0, 2, 1) + fixed)
            e = x - seen * (self.A @ means[j])
            both = np.concatenate([e[:, :, None], A @ covariances[j]], axis=2)
            both = np.linalg.solve(L, both)  # L⁻¹ (e, A Σ)
            half, gain = both[:, :, 0], both[:, :, 1:]
            log_joint[:, j] = np.log(weights[j]) - 0.5 * np.einsum("nm,nm->n", half, half)
            log_joint[:, j] -= np.log(np.einsum("nmm->nm", L)).sum(axis=1)
            centres[:, j] = means[j] + np.einsum("nmq,nm->nq", gain, half)
            spreads[:, j] = covariances[j] - gain.transpose(0, 2, 1) @ gain
        log_joint -= 0.5 * np.log(2 * np.pi) * seen.sum(axis=1, keepdims=True)
        return log_joint, centres, spreads

    def tiles(self, n: int, K: int) -> Any:
        """Return tiles of rows whose posteriors fit in memory."""
        m, q = self.A.shape
        return row_tiles(n, max(1, _NUMBERS // (m * (m + q) + K * q * q)))


def fit_with_gaps(mixture: Any, seen: Observation, X: Array) -> Any:
    """Return a mixture after steps of expectation and maximisation for points (n, m) with NaN.

    A missing entry counts with all its values, by their probability given the others (Ghahramani
    and Jordan 1994), and so does what whitening leaves out. The mixture is in the coordinates z.
    """
    weights, means = mixture.weights_.copy(), mixture.means_.copy()
    covariances = mixture.covariances_.copy()
    least = _LEAST_VARIANCE * float(np.einsum("kaa->k", covariances).max()) / means.shape[1]
    before = -np.inf
    for number in range(_MOST_ROUNDS):
        mass, first = np.zeros(len(weights)), np.zeros_like(means)
        second, total = np.zeros_like(covariances), 0.0
        for rows in seen.tiles(len(X), len(weights)):
            log_joint, c, P = seen.posteriors(X[rows], weights, means, covariances)
            total += float(logsumexp(log_joint, axis=1).sum())
            w = softmax(log_joint, axis=1)
            mass += w.sum(axis=0)
            first += np.einsum("nk,nkq->kq", w, c)
            apart = c - means  # near the old means, so that nothing cancels
            second += np.einsum("nk,nkab->kab", w, P)
            second += np.einsum("nk,nka,nkb->kab", w, apart, apart)
        mass = np.maximum(mass, 1e-10)
        moved = first / mass[:, None] - means
        covariances = second / mass[:, None, None] - np.einsum("ka,kb->kab", moved, moved)
        covariances += least * np.eye(means.shape[1])
        means, weights = means + moved, mass / mass.sum()
        logger.info("mixture with gaps: log-likelihood %.6g after %d steps", total, number + 1)
        if total - before < _GAIN * len(X):
            break
        before = total
    made = deepcopy(mixture)
    made.weights_, made.means_, made.covariances_ = weights, means, covariances
    made.precisions_ = np.linalg.inv(covariances)
    made.precisions_cholesky_ = np.linalg.cholesky(made.precisions_)
    return made


def marginal_log_density(kernel: MixtureKernel, seen: Observation, X: Array) -> Array:
    """Return the logarithm of the stationary density of the entries that are there, (n,)."""
    c, found = kernel, np.empty(len(X))
    for rows in seen.tiles(len(X), c.n_components):
        log_joint, _, _ = seen.posteriors(X[rows], c.weights, c.means, c.covariances, c.epsilon / 2)
        found[rows] = logsumexp(log_joint, axis=1)
    return found


def marginal_places(features: CholeskyMap, seen: Observation, X: Array) -> Array:
    """Return the coordinates (n, k) of points with missing entries (n, m).

    The transition density of x is that given the entries that are there, a mixture of g(·; c_j,
    P_j + ε/2) with the weights and posteriors of `Observation`; its inner products with those of
    the pivots are in closed form. With all entries it is p(x, ·).
    """
    kernel, c = features.kernel, features.kernel.components
    ends, _, from_origin = features._ends
    ends_spread = c.matrices(c.spreads)
    origin = (ends.norms[0] + ends.norms[1:] - from_origin) / 2  # ⟨p_o, p_i⟩
    places = np.empty((len(X), features.n_features))
    S = kernel.covariances + kernel.epsilon / 2 * np.eye(kernel.n_features)
    gains = np.linalg.solve(S, kernel.covariances).transpose(0, 2, 1)  # Σ S⁻¹
    for rows in seen.tiles(len(X), kernel.n_components):
        log_joint, means, spread = seen.posteriors(
            X[rows], kernel.weights, kernel.means, kernel.covariances, kernel.epsilon / 2
        )
        w = softmax(log_joint, axis=1)
        spread = spread + kernel.epsilon / 2 * np.eye(kernel.n_features)
        for _ in range(kernel.time - 1):  # of a single component
            G = gains[0]
            means = kernel.means + (means - kernel.means) @ G.T
            spread = G @ spread @ G.T + (S - gains @ kernel.covariances)[0]
        means, spread = c.local(means), spread / c.unit**2
        inner = np.zeros((len(w), len(ends.norms)))
        for j in range(kernel.n_components):
            for i in range(kernel.n_components):
                L = np.linalg.cholesky(spread[:, j] + ends_spread[i])
                apart = means[:, j, None] - ends.means[None, :, i]  # (n, r + 1, q)
                half = np.linalg.solve(L, apart.transpose(0, 2, 1))
                log_g = -0.5 * np.einsum("nqr,nqr->nr", half, half)
                log_g -= np.log(np.einsum("nqq->nq", L)).sum(axis=1)[:, None]
                log_g -= 0.5 * kernel.n_features * np.log(2 * np.pi)
                inner += w[:, j, None] * ends.weights[:, i] * np.exp(log_g)
        inner = inner[:, 1:] - inner[:, :1] - origin + ends.norms[0]
        y = solve_triangular(features._factor, inner.T, lower=True, check_finite=False).T
        y = y * np.sqrt(c.density_unit)
        places[rows] = (y - features._mean) @ features._rotation
    return places
