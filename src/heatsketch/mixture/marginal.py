"""Points with missing entries in a mixture: their densities, in closed form, and fits to them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from heatsketch._arrays import Array
from heatsketch._messages import logger
from heatsketch._threads import row_tiles
from heatsketch.mixture.cholesky_map import CholeskyMap
from heatsketch.mixture.mixture_kernel import MixtureKernel

if TYPE_CHECKING:
    from heatsketch.mixture.fitting import Whitening

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
        """
        n, (K, q) = len(X), means.shape
        seen, A, fixed = self._seen(X)
        log_joint, centres = np.empty((n, K)), np.empty((n, K, q))
        spreads = np.empty((n, K, q, q))
        for j in range(K):
            wide = covariances[j] + variance * np.eye(q)
            L = np.linalg.cholesky(A @ wide @ A.transpose(0, 2, 1) + fixed)
            both = np.linalg.solve(L, self._both(X, A, means[j], covariances[j]))
            half, gain = both[:, :, 0], both[:, :, 1:]
            log_joint[:, j] = np.log(weights[j]) - 0.5 * np.einsum("nm,nm->n", half, half)
            log_joint[:, j] -= np.log(np.einsum("nmm->nm", L)).sum(axis=1)
            centres[:, j] = means[j] + np.einsum("nmq,nm->nq", gain, half)
            spreads[:, j] = covariances[j] - gain.transpose(0, 2, 1) @ gain
        log_joint -= 0.5 * np.log(2 * np.pi) * seen.sum(axis=1, keepdims=True)
        return log_joint, centres, spreads

    def slopes(
        self, X: Array, means: Array, covariances: Array, variance: float
    ) -> tuple[Array, Array]:
        """Return the derivatives of log joint densities (n, K, m) and means (n, K, m, q) by x.

        Those by entries that are missing are 0, because nothing depends on these.
        """
        n, m, (K, q) = *X.shape, means.shape
        _, A, fixed = self._seen(X)
        by_density, by_mean = np.empty((n, K, m)), np.empty((n, K, m, q))
        for j in range(K):
            wide = covariances[j] + variance * np.eye(q)
            C = A @ wide @ A.transpose(0, 2, 1) + fixed
            both = np.linalg.solve(C, self._both(X, A, means[j], covariances[j]))
            by_density[:, j], by_mean[:, j] = -both[:, :, 0], both[:, :, 1:]
        return by_density, by_mean

    def _seen(self, X: Array) -> tuple[Array, Array, Array]:
        """Return which entries are there (n, m), A (n, m, q) and the noise (n, m, m) of these.

        An entry that is missing has a row of zeros in A, and noise of its own.
        """
        seen = (~np.isnan(X)).astype(float)
        fixed = self.noise * seen[:, :, None] * seen[:, None]
        fixed[:, np.arange(X.shape[1]), np.arange(X.shape[1])] += 1 - seen
        return seen, seen[:, :, None] * self.A, fixed

    def _both(self, X: Array, A: Array, mean: Array, covariance: Array) -> Array:
        """Return x - centre - A θ, 0 where x is missing, and A Σ, (n, m, 1 + q)."""
        apart = np.where(np.isnan(X), 0.0, X - self.centre - self.A @ mean)
        return np.concatenate([apart[:, :, None], A @ covariance], axis=2)

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
    c, (ends, _, from_origin) = features.kernel.components, features._ends
    origin = (ends.norms[0] + ends.norms[1:] - from_origin) / 2  # ⟨p_o, p_i⟩
    places = np.empty((len(X), features.n_features))
    for rows in seen.tiles(len(X), c.n_components):
        given = _given(features.kernel, seen, X[rows])
        inner = np.zeros((len(given.weights), len(ends.norms)))
        for j, weight in enumerate(given.weights.T):
            inner += weight[:, None] * _products(features, given, j)[0]
        inner = inner[:, 1:] - inner[:, :1] - origin + ends.norms[0]
        y = features._solved(inner[:, :, None])[:, :, 0]
        places[rows] = y - features._mean @ features._rotation
    return places


def marginal_slopes(features: CholeskyMap, seen: Observation, X: Array) -> Array:
    """Return the derivatives of `marginal_places` by x, (n, k, m)."""
    kernel, c = features.kernel, features.kernel.components
    found = np.empty((len(X), features.n_features, X.shape[1]))
    later = np.linalg.matrix_power(_gains(kernel)[0].T, kernel.time - 1)
    for rows in seen.tiles(len(X), kernel.n_components):
        given = _given(kernel, seen, X[rows])
        by_density, by_mean = seen.slopes(
            X[rows], kernel.means, kernel.covariances, kernel.epsilon / 2
        )
        w = given.weights
        by_weight = w[:, :, None] * (by_density - np.einsum("nk,nkm->nm", w, by_density)[:, None])
        inner = np.zeros((len(w), len(features.pivots) + 1, X.shape[1]))
        for j in range(kernel.n_components):
            values, slopes = _products(features, given, j)
            by_x = by_mean[:, j] @ later / c.unit  # (n, m, q)
            inner += values[:, :, None] * by_weight[:, None, j]
            inner += w[:, j, None, None] * (slopes @ by_x.transpose(0, 2, 1))
        found[rows] = features._solved(inner[:, 1:] - inner[:, :1])
    return found


class Given(NamedTuple):
    """Transition densities given the entries that are there, in local units."""

    weights: Array  # (n, K)
    means: Array  # (n, K, q)
    spreads: Array  # (n, K, q, q)


def _gains(kernel: MixtureKernel) -> Array:
    """Return Σ S⁻¹ of one step, (K, q, q)."""
    S = kernel.covariances + kernel.epsilon / 2 * np.eye(kernel.n_features)
    return np.linalg.solve(S, kernel.covariances).transpose(0, 2, 1)


def _given(kernel: MixtureKernel, seen: Observation, X: Array) -> Given:
    """Return the transition densities of a tile of points (n, m)."""
    half, gains, c = (
        kernel.epsilon / 2 * np.eye(kernel.n_features),
        _gains(kernel),
        kernel.components,
    )
    log_joint, means, spreads = seen.posteriors(
        X, kernel.weights, kernel.means, kernel.covariances, kernel.epsilon / 2
    )
    spreads = spreads + half
    for _ in range(kernel.time - 1):  # of a single component
        G = gains[0]
        means = kernel.means + (means - kernel.means) @ G.T
        spreads = G @ spreads @ G.T + (kernel.covariances + half - gains @ kernel.covariances)[0]
    return Given(softmax(log_joint, axis=1), c.local(means), spreads / c.unit**2)


def _products(features: CholeskyMap, given: Given, j: int) -> tuple[Array, Array]:
    """Return ⟨g_j, p_i⟩ for the origin and pivots (n, 1 + r), and slopes by the means of g_j."""
    c, ends = features.kernel.components, features._ends[0]
    values = np.zeros((len(given.means), len(ends.norms)))
    slopes = np.zeros((*values.shape, c.n_features))
    for i, spread in enumerate(c.matrices(c.spreads)):
        both = given.spreads[:, j] + spread
        apart = given.means[:, j, None] - ends.means[None, :, i]  # (n, 1 + r, q)
        pull = np.linalg.solve(both, apart.transpose(0, 2, 1)).transpose(0, 2, 1)
        log_g = -0.5 * np.einsum("nrq,nrq->nr", apart, pull)
        log_g -= 0.5 * np.linalg.slogdet(2 * np.pi * both)[1][:, None]
        part = ends.weights[:, i] * np.exp(log_g)
        values += part
        slopes -= part[:, :, None] * pull
    return values, slopes
