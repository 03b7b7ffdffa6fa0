"""Components of a mixture, prepared once, with their densities; pivoted Cholesky."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax
from sklearn.utils.extmath import row_norms

from heatsketch._arrays import Array
from heatsketch._checks import check_new_points
from heatsketch._threads import filled
from heatsketch.mixture.overlaps import Mixtures, Overlaps

_COLUMNS_AT_ONCE = 16  # one column alone takes nearly as long to compute
_FIRST_CAPACITY = 64  # columns of L allocated at first


def pivoted_cholesky(
    columns: Callable[[Array], Array], diagonal: Array, limit: float, max_rank: int
) -> tuple[Array, list[int], Array]:
    """Return L (n, r) with L Lᵀ ≈ K, its pivots, and the diagonal of K - L Lᵀ, (n,).

    Pivots are the rows where L Lᵀ lacks most of the diagonal, until no row lacks more than `limit`.
    `columns` returns columns of K, (n, b), for their numbers (b,). A pivot may lack half as much as
    the worst row, so that the columns of the 16 worst rows can be computed together.
    """
    missing = diagonal.copy()
    pivots: list[int] = []
    L = np.zeros((len(missing), min(_FIRST_CAPACITY, max_rank)))
    computed: dict[int, Array] = {}
    while (worst := missing.max(initial=0.0)) > limit and (r := len(pivots)) < max_rank:
        if max((missing[row] for row in computed), default=0.0) < worst / 2:
            wanted = np.argsort(-missing, kind="stable")[:_COLUMNS_AT_ONCE]
            computed = dict(zip(wanted.tolist(), columns(wanted).T, strict=True))
        pivot = max(computed, key=lambda row: missing[row])
        if r == L.shape[1]:
            L = np.hstack([L, np.zeros((len(L), min(r, max_rank - r)))])
        L[:, r] = (computed.pop(pivot) - L[:, :r] @ L[pivot, :r]) / np.sqrt(missing[pivot])
        missing -= L[:, r] ** 2
        pivots.append(pivot)
        missing[pivots] = 0.0
    return L[:, : len(pivots)], pivots, missing


_TILE_NUMBERS = 2**21  # of row-by-row work: 16 MB
_LARGEST_LOG_DENSITY = 690.0  # float64 can hold e to this power and its inverse


class Components:
    """The components of a mixture, in units of √(ε/2) from the mean of the mixture.

    The matrices S_j, C_j and D_j of `MixtureKernel` have the eigenvectors of Σ_j, so only their
    eigenvalues are stored. Densities and squared distances are in these units of length; times
    `density_unit` they are in units of the data.

    Attributes
    ----------
    epsilon : float
        Bandwidth ε in squared units of the data.
    unit, log_unit, density_unit : float
        √(ε/2), in units of the data; the logarithm of the unit of densities, and this unit.
    centre : array (m,)
        Mean of the mixture in units of the data.
    weights, means : array (K,), (K, m)
        a_j > 0, θ_j.
    axes : array (K, m, m)
        Eigenvectors in columns.
    variances, gains, spreads : array (K, m)
        Eigenvalues of S_j, C_j and D_j.
    """

    def __init__(
        self,
        weights: Array,
        means: Array,
        covariances: Array,
        epsilon: float,
        time: int,
        *,
        ends_in_noise: bool = True,
    ) -> None:
        """Prepare checked weights (K,), means (K, m) and covariances (K, m, m).

        A step of the MGC kernel is one of the standard diffusion map kernel to a point of the
        mixture, which noise N(0, ε/2 I) moves then; without `ends_in_noise` the last noise is left
        out. Raises ValueError if float64 cannot hold the densities.
        """
        self.n_components, self.n_features = means.shape
        self.epsilon, self.unit = epsilon, np.sqrt(epsilon / 2)
        self.log_unit = float(-self.n_features * np.log(self.unit))
        self.weights, self.centre = weights, weights @ means
        self.means = (means - self.centre) / self.unit
        lam, self.axes = np.linalg.eigh(covariances / (epsilon / 2))
        lam = np.maximum(lam, 0.0)  # (K, m), of Σ
        self.variances = 1 + lam
        # D = S - C S C is written so that nothing cancels.
        with np.errstate(divide="ignore", over="ignore"):
            log_gain = -np.log1p(1 / lam)
        self.gains = np.exp(time * log_gain)
        self.spreads = 1 + self.gains
        if time > 1:
            self.spreads = self.variances * -np.expm1(2 * time * log_gain)
        if not ends_in_noise:
            gain = np.exp(log_gain)
            self.spreads = self.spreads * (gain / (1 + gain))
        log_peaks = -0.5 * np.log(4 * np.pi * self.unit**2 * self.spreads).sum(axis=1)
        if not (np.isfinite(log_peaks).all() and np.abs(log_peaks).max() < _LARGEST_LOG_DENSITY):
            raise ValueError(
                f"Densities of this mixture at epsilon={epsilon:g} in {means.shape[1]} dimensions "
                f"are of size e^{log_peaks.max():.0f}, beyond float64; rescale the data (X * s "
                "with epsilon * s²)."
            )
        self.density_unit = float(np.exp(self.log_unit))

    def matrices(self, eigenvalues: Array) -> Array:
        """Return the matrices (K, m, m) with these eigenvalues (K, m)."""
        return np.einsum("kab,kb,kcb->kac", self.axes, eigenvalues, self.axes)

    @cached_property
    def gain_matrices(self) -> Array:
        """C_j, (K, m, m)."""
        return self.matrices(self.gains)

    @cached_property
    def overlaps(self) -> Overlaps:
        """Inner products of transition densities."""
        D = self.matrices(self.spreads)
        return Overlaps(D, D)

    @cached_property
    def stationary(self) -> tuple[Mixtures, Overlaps]:
        """The density ν in one row, and its inner products with transition densities."""
        weights, means, S = self.weights[None], self.means[None], self.matrices(self.variances)
        norms = Overlaps(S, S).norms(weights, means)
        return Mixtures(means[0], weights, means, norms), Overlaps(self.matrices(self.spreads), S)

    def local(self, x: Array) -> Array:
        """Return points in units of √(ε/2) from the centre."""
        return (x - self.centre) / self.unit

    def in_data_units(self, y: Array) -> Array:
        """Return points from their local coordinates."""
        return self.centre + self.unit * y

    def checked(self, x: Any, name: str = "x") -> Array:
        """Return points (n, m) in float64, or raise if they are not points of this mixture."""
        x = check_new_points(x, self.means, "the mixture", name, min_rows=1)
        return x.astype(np.float64, copy=False)

    @property
    def pair_rows(self) -> int:
        """Rows of a tile of work on all pairs of components."""
        return max(1, min(1024, _TILE_NUMBERS // (8 * self.n_components**2 * self.n_features)))

    def by_tiles(self, work: Callable[[Array], Array], x: Array, *columns: int) -> Array:
        """Return work(x), (n, *columns), computed row tile by row tile, in parallel."""
        width = self.n_components * (self.n_features + 1) + sum(columns)
        tile = max(16, min(1024, _TILE_NUMBERS // width))
        return filled(lambda rows: work(x[rows]), (len(x), *columns), tile)

    # Densities, without the unit

    def log_joint(self, x: Array) -> Array:
        """Return log h_j(x) = log a_j g(x; θ_j, S_j), (n, K)."""
        y, log_h = self.local(x), np.empty((len(x), self.n_components))
        constants = np.log(self.weights) - 0.5 * np.log(2 * np.pi * self.variances).sum(axis=1)
        for j, theta in enumerate(self.means):
            whitened = (y - theta) @ self._whitening(j, self.variances)
            log_h[:, j] = constants[j] - 0.5 * row_norms(whitened, squared=True)
        return log_h

    def log_joint_gradients(self, x: Array) -> Array:
        """Return ∇ log h_j(x) = -S_j⁻¹ (x - θ_j), (n, K, m)."""
        along = np.einsum("nkb,kbc->nkc", self.local(x)[:, None] - self.means, self.axes)
        return -np.einsum("nkc,kc,kac->nka", along, 1 / self.variances, self.axes)

    def responsibilities(self, x: Array) -> Array:
        """Return w_j(x), (n, K)."""
        return softmax(self.log_joint(x), axis=1)

    def responsibility_gradients(self, x: Array) -> Array:
        """Return ∇w_j(x) = w_j(x) (∇log h_j(x) - ∇log ν(x)), (n, K, m)."""
        w, log_h = self.responsibilities(x), self.log_joint_gradients(x)
        return w[:, :, None] * (log_h - np.einsum("nk,nka->na", w, log_h)[:, None])  # type: ignore[no-any-return]

    def transitions(self, x: Array) -> Mixtures:
        """Return the transition densities p(x, ·)."""
        y, weights = self.local(x), self.responsibilities(x)
        means = np.empty((len(x), *self.means.shape))
        for j, theta in enumerate(self.means):
            np.matmul(y - theta, self.gain_matrices[j], out=means[:, j])
            means[:, j] += theta
        return Mixtures(x, weights, means, self.overlaps.norms(weights, means))

    def log_steps(self, x: Array, z: Array, log_weights: Array) -> Array:
        """Return log Σ_j e^(log_weights_j) g(z; c_j(x), D_j) for all pairs, (n, n').

        With `log_joint` as weights (n, K) it is log k_ε(x, z); with responsibilities, log p(x, z).
        """
        y, v, total = self.local(x), self.local(z), np.full((len(x), len(z)), -np.inf)
        for j, theta in enumerate(self.means):
            whiten = self._whitening(j, self.spreads)
            log_p = cdist(
                (y - theta) @ (whiten * self.gains[j]), (v - theta) @ whiten, "sqeuclidean"
            )
            log_p *= -0.5
            log_p += log_weights[:, j, None] - 0.5 * np.log(2 * np.pi * self.spreads[j]).sum()
            np.logaddexp(total, log_p, out=total)
        return total

    def log_diagonal(self, x: Array) -> Array:
        """Return log k_ε(x, x), (n,)."""
        y, terms = self.local(x), self.log_joint(x)
        for j, theta in enumerate(self.means):
            offset = (y - theta) @ (self._whitening(j, self.spreads) * (1 - self.gains[j]))
            terms[:, j] -= 0.5 * row_norms(offset, squared=True)
            terms[:, j] -= 0.5 * np.log(2 * np.pi * self.spreads[j]).sum()
        return logsumexp(terms, axis=1)

    def _whitening(self, j: int, variances: Array) -> Array:
        """Return W (m, m): x W has covariance I if x has the variances (K, m) of component j."""
        return self.axes[j] / np.sqrt(variances[j])
