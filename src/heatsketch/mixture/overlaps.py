"""Inner products of Gaussian mixtures, one in each row of a batch, all with the same covariances.

⟨g(·; c, D), g(·; c', D')⟩ = g(c; c', D + D'), so inner products of mixtures are sums over pairs of
components. Weights are responsibilities; most are negligible and are left out.
"""

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from heatsketch._arrays import Array
from heatsketch._threads import row_tiles

# Smaller weights are negligible: peaks differ by 2^(m/2) at most, and squares are summed.
NEGLIGIBLE_WEIGHT = 2.0**-100
_COMPILED_GAUSSIANS = 4096  # for each point, least number worth loading numba for compiled loops
_CACHED_ROWS = 64  # so few that their exponents stay in the cache until they are summed
_LOG2_E = math.log2(math.e)
_GRAM_SQUARED_LENGTH = 4096.0  # up to here the Gram form keeps 12 digits of the exponent
_CANCELLING_EXPONENT = 30.0  # differences of larger exponentials do not cancel


class Mixtures(NamedTuple):
    """A Gaussian mixture in each row; the covariances are those of an `Overlaps`."""

    points: Array  # (n, m), starts of the steps with these densities
    weights: Array  # (n, K)
    means: Array  # (n, K, m)
    norms: Array  # (n,), squared, in L²

    def take(self, rows: Any) -> "Mixtures":
        """Return the mixtures of some rows."""
        return Mixtures(*(part[rows] for part in self))


class Overlaps:
    """Inner products of mixtures with covariances D_j with mixtures of covariances E_i.

    Attributes
    ----------
    whiten : array (K, L, m, m)
        Inverse Cholesky factors of D_j + E_i.
    log_peaks : array (K, L)
        Logarithms of g(0; 0, D_j + E_i).
    """

    def __init__(self, left: Array, right: Array) -> None:
        """Prepare for covariances (K, m, m) and (L, m, m)."""
        factors = np.linalg.cholesky(left[:, None] + right[None])
        halves = np.log(np.diagonal(factors, axis1=-2, axis2=-1)).sum(axis=-1)
        self.whiten = np.linalg.inv(factors)
        self.log_peaks = -0.5 * left.shape[-1] * np.log(2 * np.pi) - halves

    @cached_property
    def _precisions(self) -> Array:
        return np.einsum("jiba,jibc->jiac", self.whiten, self.whiten)

    def factors(self, z: Mixtures) -> Array | None:
        """Compute the right side of `gram` once: (K, m + 1, L n), factors of exponents.

        Returns None if compiled loops would not be worth loading numba, or would lose digits.
        """
        if z.weights.shape[0] * self.log_peaks.size < _COMPILED_GAUSSIANS:
            return None
        pulled = np.einsum("jiab,nib->jain", self._precisions, z.means)
        halves = np.einsum("jain,nia->jin", pulled, z.means) / 2
        if 2 * (halves * (z.weights.T > NEGLIGIBLE_WEIGHT)).max() > _GRAM_SQUARED_LENGTH:
            return None
        with np.errstate(divide="ignore"):
            logs = np.log(z.weights.T)
        constant = logs + (self.log_peaks - self.log_peaks.max())[:, :, None] - halves
        factors = np.concatenate([pulled, constant[:, None]], axis=1) * _LOG2_E
        return np.ascontiguousarray(factors.reshape(*factors.shape[:2], -1))

    def gram(self, x: Mixtures, z: Mixtures, factors: Array | None) -> Array:
        """Return ⟨p_x, p_z⟩ for all pairs of rows, (n, n'); `factors` are those of z.

        The algorithm depends on z and the components, not on the number of rows of x.
        """
        total, highest = np.zeros((len(x.weights), len(z.weights))), self.log_peaks.max()
        for j, of_x in enumerate(x.weights.T):
            rows = np.flatnonzero(of_x > NEGLIGIBLE_WEIGHT)
            if not len(rows):
                continue
            u, weights = x.means[rows, j], of_x[rows]
            if factors is not None:
                squares = (u[:, :, None] * u[:, None]).reshape(len(u), -1)  # (n, m²)
                halves = squares @ self._precisions[j].reshape(self.log_peaks.shape[1], -1).T / 2
                if 2 * halves.max() <= _GRAM_SQUARED_LENGTH:
                    from heatsketch.mixture.overlap_loops import add_gaussians  # imports numba

                    row_terms = (np.log(weights)[:, None] - halves) * _LOG2_E
                    for chunk in row_tiles(len(rows), _CACHED_ROWS):
                        powers, constant = u[chunk] @ factors[j, :-1], factors[j, -1]
                        add_gaussians(total, rows[chunk], powers, row_terms[chunk], constant)
                    continue
            for i, of_z in enumerate(z.weights.T):
                columns = np.flatnonzero(of_z > NEGLIGIBLE_WEIGHT)
                if len(columns):
                    v, turn = z.means[columns, i], self.whiten[j, i].T
                    centre = v.mean(axis=0)
                    block = cdist((u - centre) @ turn, (v - centre) @ turn, "sqeuclidean")
                    block = np.exp(self.log_peaks[j, i] - highest - 0.5 * block)
                    total[np.ix_(rows, columns)] += block * weights[:, None] * of_z[columns]
        total *= np.exp(highest)
        return total

    def norms(self, weights: Array, means: Array) -> Array:
        """Return |p_x|² row by row, (n,), for covariances that are the same on both sides."""
        total = np.zeros(len(weights))
        for j in range(weights.shape[1]):
            u = np.subtract(means[:, j, None], means[:, j:]).transpose(1, 0, 2)  # (K - j, n, m)
            u = u @ self.whiten[j, j:].transpose(0, 2, 1)
            lengths = np.einsum("ina,ina->ni", u, u)
            parts = np.exp(self.log_peaks[j, j:] - 0.5 * lengths) * weights[:, j:]
            total += weights[:, j] * (2 * parts.sum(axis=1) - parts[:, 0])
        return total

    def rows(self, x: Mixtures, z: Mixtures) -> Array:
        """Return ⟨p_x, p_z⟩ row by row, (n,)."""
        g = np.exp(self.log_peaks - 0.5 * _squared(self._whitened(x.means, z.means)))  # (n, K, L)
        return np.einsum("nji,nj->n", g * z.weights[:, None], x.weights)

    def _whitened(self, x: Array, z: Array) -> Array:
        """Return (D_j + E_i)^-1/2 (x_j - z_i), (n, K, L, m)."""
        return np.einsum("jiab,njib->njia", self.whiten, x[:, :, None] - z[:, None])

    def gradients(self, x: Mixtures, z: Mixtures) -> tuple[Array, Array]:
        """Return the derivatives of ⟨p_x, p_z⟩ by the weights (n, K) and means (n, K, m) of x."""
        u = self._whitened(x.means, z.means)
        parts = np.exp(self.log_peaks - 0.5 * _squared(u)) * z.weights[:, None]  # (n, K, L)
        pull = np.einsum("nji,njia,jiab->njb", parts, u, self.whiten)
        return parts.sum(axis=2), -x.weights[:, :, None] * pull

    def squared_differences(self, z: Mixtures, w: Array, dw: Array, dc: Array) -> Array:
        """Return |p_x - p_z|² where x has weights w = w_z + dw and means c_z + dc, row by row.

        p_x - p_z = Σ dw_j g_j + w_j Δg_j. Differences of exponentials are computed by expm1, so
        that nothing cancels, however near x and z are.
        """
        u = self._whitened(z.means, z.means)  # (n, K, K, m)
        a = np.einsum("jiab,njb->njia", self.whiten, dc)
        b = np.einsum("jiab,nib->njia", self.whiten, dc)
        left = -np.einsum("njia,njia->nji", u + a / 2, a)
        right = np.einsum("njia,njia->nji", u - b / 2, b)
        both = np.einsum("njia,njia->nji", a, b)
        counts = np.maximum(w, np.abs(dw)) > NEGLIGIBLE_WEIGHT
        counts = counts[:, :, None] & counts[:, None]
        far = np.max(np.abs([left, right, both]), axis=0) >= _CANCELLING_EXPONENT
        left, right, both = (np.where(counts & ~far, v, 0.0) for v in (left, right, both))
        # A constant in G does not count, because Σ dw = 0; it is subtracted to avoid cancellation.
        log_peaks = np.broadcast_to(self.log_peaks - self.log_peaks[0, 0], far.shape)
        log_ratio = log_peaks - 0.5 * _squared(u)
        G = np.exp(log_ratio)
        turned = G * np.expm1(right)
        moved = G * (np.expm1(left) * np.expm1(right) + np.exp(left + right) * np.expm1(both))
        if (far := far & counts).any():  # no cancellation, but expm1 may overflow
            u, a, b, peaks = u[far], a[far], b[far], log_peaks[far]
            once, twice = (np.exp(peaks - 0.5 * _squared(v)) for v in (u - b, u + a - b))
            turned[far] = once - G[far]
            moved[far] = twice - np.exp(peaks - 0.5 * _squared(u + a)) - turned[far]
        total = np.einsum("nji,nj,ni->n", np.expm1(log_ratio), dw, dw)
        total += 2 * np.einsum("nji,nj,ni->n", turned, dw, w)
        total += np.einsum("nji,nj,ni->n", moved, w, w)
        return np.maximum(np.exp(self.log_peaks[0, 0]) * total, 0.0)

    def differences(
        self, j: int, means: Array, z: Mixtures, w: Array, dw: Array, dc: Array
    ) -> tuple[Array, Array]:
        """Return ⟨g_j, p_i - p_z⟩ (n, r) and its derivatives by the means of g_j, (n, r, m).

        g_j has covariance D_j and one of these means (n, m), z is one row, and p_i has weights
        w = w_z + dw (r, L) and means c_z + dc (r, L, m). Values lack a constant, which does not
        count where the changes of the weights of g_j sum to 0. Nothing cancels, as in
        `squared_differences`.
        """
        whiten, peak = self.whiten[j], self.log_peaks[0, 0]
        u = (means[:, None] - z.means).transpose(1, 0, 2) @ whiten.transpose(0, 2, 1)  # (L, n, m)
        b = dc.transpose(1, 0, 2) @ whiten.transpose(0, 2, 1)  # (L, r, m)
        log_g = self.log_peaks[j] - 0.5 * _squared(u).T  # (n, L)
        right = (u @ b.transpose(0, 2, 1)).transpose(1, 2, 0) - 0.5 * _squared(b).T
        # g_i - g_z, whose logarithms differ by `right`, (n, r, L)
        turned = np.exp(log_g[:, None] + np.maximum(right, 0.0))
        turned *= -np.sign(right) * np.expm1(-np.abs(right))
        values = np.exp(peak) * np.expm1(log_g - peak) @ dw.T + np.einsum("nri,ri->nr", turned, w)
        g, turned = np.exp(log_g)[:, None], turned * w
        slopes = (g * w + turned).transpose(1, 0, 2) @ (b @ whiten).transpose(1, 0, 2)
        slopes = slopes.transpose(1, 0, 2) - (g * dw + turned) @ (u @ whiten).transpose(1, 0, 2)
        return values, slopes


def _squared(v: Array) -> Array:
    """Return |v|² along the last axis."""
    return np.einsum("...a,...a->...", v, v)
