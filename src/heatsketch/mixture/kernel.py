"""The measure-based Gaussian correlation (MGC) kernel of a Gaussian mixture, in closed form."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import logsumexp

from heatsketch._array import filled, row_tiles
from heatsketch._checks import check_choice, check_number, check_points, name_rows
from heatsketch._typing import Array
from heatsketch.mixture.lowrank import affinity_factor
from heatsketch.mixture.overlaps import Ends, Mixtures, Overlaps
from heatsketch.mixture.parameters import checked_weights, dense_floats, full_covariances
from heatsketch.operators import LowRank
from heatsketch.operators.kernel import squared_distances, squared_norms

SCORES = ("density", "distance")
_NEAR = 1e-4  # squared distances below this share of their terms are taken from differences
_CHUNK = 2**21  # numbers of a chunk of row-by-row work: 16 MB
_RANGE = 690.0  # logarithms of densities that float64 holds
_FARTHEST = 2.0**480  # distances from the mixture whose squares can be summed
_LARGEST = 500.0  # exponents that certainly do not overflow
_RESOLVED = 1e-10  # share of its terms below which a difference of densities is rounding


class Anchors(NamedTuple):
    """Points that distances go to, with what is computed of them once."""

    points: Array  # (n, m)
    steps: Mixtures
    norms: Array  # (n,)
    ends: Ends | None = None

    def take(self, rows: Any) -> Anchors:
        """Return some of them."""
        return Anchors(self.points[rows], self.steps.take(rows), self.norms[rows])


class MixtureKernel:
    """The MGC kernel k_ε of a Gaussian mixture q, and all that follows from it in closed form.

    k_ε(x, y) = ∫ g(r; x, ε/2 I) g(r; y, ε/2 I) q(r) dr with q = Σ a_j g(·; θ_j, Σ_j): the joint
    density of two noisy copies of a point drawn from q. Its Markov process steps from x to a y of
    the density p(x, ·) = k_ε(x, ·) / ν(x) = Σ_j w_j(x) g(·; c_j(x), D_j), a mixture again:
    S_j = Σ_j + ε/2 I, C_j = Σ_j S_j⁻¹, c_j(x) = θ_j + C_j (x - θ_j), D_j = ε/2 (I + C_j), and
    w_j(x) the responsibilities under the stationary density ν = Σ a_j g(·; θ_j, S_j). Nothing
    depends on a number of data points.

    The diffusion distance is d(x, z) = |p(x, ·) - p(z, ·)| in L²(dr), *Diffusion representation*,
    (2.4): unweighted, so not the one weighted by 1/ν.

    Parameters
    ----------
    weights : array (K,)
        a_j >= 0, summing to 1.
    means : array (K, m)
        θ_j.
    covariances : array
        Σ_j, positive semidefinite: (K, m, m) full, (m, m) tied, (K, m) diagonal, (K,) spherical.
    epsilon : float > 0
        In squared data units. The kernel falls off like exp(-|x - y|² / 2ε).
    covariance_type : "full", "tied", "diag" or "spherical", optional
        By default from the shape, which does not tell "tied" from "diag" where K = m > 1.
    time : int >= 1, default 1
        Steps of the process. Beyond 1 for one component only (an AR(1) process, p is the
        density after t steps); for several see `MixtureDiffusion`.

    Attributes
    ----------
    weights, means, covariances : array (K,), (K, m), (K, m, m)
        Of the components with positive weight.
    epsilon, time : float, int
    n_components, n_features : int
        K and m.

    Raises
    ------
    ValueError
        Shapes that do not fit, weights that are no probabilities, covariances with negative
        eigenvalues, densities beyond float64.

    Notes
    -----
    Inside, lengths are in units of √(ε/2) from the mean of the mixture, covariances by their
    eigenvectors, weights in logarithms: right for ε from 2^-20 to 2^20 times the square of the
    data's scale, and where ν underflows. Cost of all pairs of n and n' points: n n' K² Gaussians
    at most; components of negligible responsibility are left out.

    Examples
    --------
    >>> import heatsketch as hs
    >>> kernel = hs.MixtureKernel([0.5, 0.5], [[0.0], [4.0]], [1.0, 0.25], epsilon=0.5)
    >>> kernel.squared_distance([[0.0], [0.1]], [[4.0]]).round(3)
    array([[0.881],
           [0.881]])
    """

    def __init__(
        self,
        weights: Any,
        means: Any,
        covariances: Any,
        epsilon: float,
        *,
        covariance_type: str | None = None,
        time: int = 1,
    ) -> None:
        self.epsilon = check_number(epsilon, "epsilon", low=0, open_low=True)
        self.time = check_number(time, "time", low=1, integer=True)
        means = check_points(dense_floats(means, "means"), "means", min_rows=1)
        weights = checked_weights(weights, len(means))
        full = full_covariances(covariances, covariance_type, *means.shape)
        kept = weights > 0
        self.weights, self.means, self.covariances = weights[kept], means[kept], full[kept]
        if self.time > 1 and self.n_components > 1:
            raise ValueError(
                f"time={time} has a closed form for one component, got {self.n_components}; use "
                "MixtureDiffusion(time=...), which computes the steps beyond the first."
            )
        self._prepare()

    @classmethod
    def from_sklearn(cls, mixture: Any, epsilon: float, *, time: int = 1) -> Self:
        """Take the mixture from a fitted `GaussianMixture` or `BayesianGaussianMixture`.

        Examples
        --------
        >>> import heatsketch as hs, sklearn.mixture
        >>> X, label = hs.datasets.digits()
        >>> fitted = sklearn.mixture.GaussianMixture(3, random_state=0).fit(X[:, 18:20])
        >>> hs.MixtureKernel.from_sklearn(fitted, epsilon=10.0)
        MixtureKernel(n_components=3, n_features=2, epsilon=10)
        """
        missing = [n for n in ("weights_", "means_", "covariances_") if not hasattr(mixture, n)]
        if missing:
            raise ValueError(
                f"{type(mixture).__name__} has no {missing[0]}; pass a fitted GaussianMixture or "
                "BayesianGaussianMixture."
            )
        weights = np.asarray(mixture.weights_, dtype=float)
        return cls(
            weights / weights.sum(),  # those of the Bayesian one sum to 1 up to 1e-9
            mixture.means_,
            mixture.covariances_,
            epsilon,
            covariance_type=mixture.covariance_type,
            time=time,
        )

    def __repr__(self) -> str:
        """Say what it is without its arrays."""
        later = f", time={self.time}" if self.time > 1 else ""
        return (
            f"MixtureKernel(n_components={self.n_components}, n_features={self.n_features}, "
            f"epsilon={self.epsilon:g}{later})"
        )

    @property
    def n_components(self) -> int:
        """Number K of components of the mixture."""
        return len(self.weights)

    @property
    def n_features(self) -> int:
        """Number m of features of a point."""
        return self.means.shape[1]

    def _prepare(self) -> None:
        """Compute what does not depend on points, in units of √(ε/2) from the centre."""
        self._unit = np.sqrt(self.epsilon / 2)
        self._centre = self.weights @ self.means
        self._theta = (self.means - self._centre) / self._unit  # (K, m)
        lam, self._axes = np.linalg.eigh(self.covariances / (self.epsilon / 2))
        lam = np.maximum(lam, 0.0)  # (K, m), of Σ
        self._variances = 1 + lam  # of S
        one_step = lam / (1 + lam)
        with np.errstate(divide="ignore", over="ignore"):
            log_gain = -np.log1p(1 / lam)
        t = self.time
        self._gains = one_step if t == 1 else np.exp(t * log_gain)  # of C
        # Of D = S - C S C, and of x - y and (x + y)/2 for a pair drawn from k: no differences.
        self._spreads = 1 + one_step if t == 1 else self._variances * -np.expm1(2 * t * log_gain)
        self._apart = (
            np.full_like(lam, 2.0) if t == 1 else (-2 * self._variances * np.expm1(t * log_gain))
        )
        self._between = self._variances * (1 + self._gains) / 2
        self._log_unit = -self.n_features * np.log(self._unit)  # of a density
        log_peaks = -0.5 * np.log(4 * np.pi * self._spreads).sum(axis=1) + self._log_unit
        if not (np.isfinite(log_peaks).all() and np.abs(log_peaks).max() < _RANGE):
            raise ValueError(
                f"Densities of this mixture at epsilon={self.epsilon:g} in {self.n_features} "
                f"dimensions are of size e^{log_peaks.max():.0f}, beyond float64; rescale the data "
                "(X * s with epsilon * s²)."
            )

    def _of_axes(self, values: Array) -> Array:
        """Return matrices (K, m, m) from their eigenvalues (K, m)."""
        return np.einsum("kab,kb,kcb->kac", self._axes, values, self._axes)

    @cached_property
    def _gain_matrices(self) -> Array:
        return self._of_axes(self._gains)

    @cached_property
    def _overlaps(self) -> Overlaps:
        D = self._of_axes(self._spreads)
        return Overlaps.of(D, D)

    @cached_property
    def _overlaps_with_bulk(self) -> Overlaps:
        return Overlaps.of(self._of_axes(self._spreads), self._of_axes(self._variances))

    @cached_property
    def _bulk(self) -> Mixtures:
        """The stationary density as a mixture, one row."""
        return Mixtures(self.weights[None], self._theta[None])

    @cached_property
    def _bulk_ends(self) -> Ends:
        return self._overlaps_with_bulk.prepare(self._bulk)

    @cached_property
    def _bulk_norm(self) -> float:
        """|ν|² in units of its own."""
        S = self._of_axes(self._variances)
        return float(Overlaps.of(S, S).norms(self._bulk)[0])

    # --- points -------------------------------------------------------------------------------

    def _points(self, x: Any, name: str = "x") -> Array:
        """Return points (n, m) in float64, or say what is wrong with them."""
        x = check_points(dense_floats(x, name), name, min_rows=1)
        if x.shape[1] != self.n_features:
            raise ValueError(
                f"{name} has {x.shape[1]} columns, but the mixture has {self.n_features} features; "
                "pass points with the same features."
            )
        with np.errstate(over="ignore"):
            near = [(np.abs(self._local(x[r])) < _FARTHEST).all(axis=1) for r in row_tiles(len(x))]
        far = np.flatnonzero(~np.concatenate(near))
        if len(far):
            raise ValueError(
                f"Rows {name_rows(far)} of {name} are so far from the mixture that their squares "
                "are beyond float64; drop them."
            )
        return x

    def _local(self, x: Array) -> Array:
        """Return points in units of √(ε/2) from the centre."""
        return (x - self._centre) / self._unit

    def _log_parts(self, x: Array) -> Array:
        """Return log h_j(x) = log a_j g(x; θ_j, S_j), (n, K), without the unit."""
        y = self._local(x)
        parts = np.empty((len(y), self.n_components))
        constant = np.log(self.weights) - 0.5 * np.log(2 * np.pi * self._variances).sum(axis=1)
        for j in range(self.n_components):
            z = (y - self._theta[j]) @ (self._axes[j] / np.sqrt(self._variances[j]))
            parts[:, j] = constant[j] - 0.5 * squared_norms(z)
        return parts

    def _steps(self, x: Array) -> Mixtures:
        """Return the transition densities p(x, ·)."""
        y, log_parts = self._local(x), self._log_parts(x)
        weights = np.exp(log_parts - log_parts.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        means = np.empty((len(x), *self.means.shape))
        for j, theta in enumerate(self._theta):
            np.matmul(y - theta, self._gain_matrices[j], out=means[:, j])
            means[:, j] += theta
        return Mixtures(weights, means)

    def _by_tiles(self, work: Any, n: int, *shape: int) -> Array:
        """Return an array (n, *shape) filled row tile by row tile, in parallel."""
        width = self.n_components * (self.n_features + 1) + sum(shape)
        return filled(work, (n, *shape), max(16, min(1024, _CHUNK // width)))

    # --- densities ----------------------------------------------------------------------------

    def log_stationary(self, x: Any) -> Array:
        """Return log ν(x), (n,): also where ν itself underflows.

        *Diffusion representation*, (3.4).

        Examples
        --------
        >>> import heatsketch as hs
        >>> hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0).log_stationary([[1e3]]).round(2)
        array([-250001.27])
        """
        x = self._points(x)
        log_nu = self._by_tiles(lambda r: logsumexp(self._log_parts(x[r]), axis=1), len(x))
        return log_nu + self._log_unit

    def stationary(self, x: Any) -> Array:
        """Return the stationary density ν(x) = Σ a_j g(x; θ_j, Σ_j + ε/2 I), (n,).

        It integrates to 1, and ∫ ν(x) p(x, ·) dx = ν. *Diffusion representation*, (3.4).

        Examples
        --------
        >>> import heatsketch as hs
        >>> hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0).stationary([[0.0]]).round(4)
        array([0.2821])
        """
        return np.exp(self.log_stationary(x))

    def responsibilities(self, x: Any) -> Array:
        """Return w_j(x) = a_j g(x; θ_j, S_j) / ν(x), (n, K); rows sum to 1.

        Examples
        --------
        >>> import heatsketch as hs
        >>> kernel = hs.MixtureKernel([0.5, 0.5], [[0.0], [4.0]], [1.0, 1.0], 2.0)
        >>> kernel.responsibilities([[2.0]])
        array([[0.5, 0.5]])
        """
        x = self._points(x)
        return self._by_tiles(lambda r: self._steps(x[r]).weights, len(x), self.n_components)

    def log_kernel(self, x: Any, z: Any) -> Array:
        """Return log k_ε(x_i, z_j) for all pairs, (n, n')."""
        y, v = self._local(self._points(x)), self._local(self._points(z, "z"))
        return self._by_tiles(lambda r: self._log_kernel(y[r], v), len(y), len(v))

    def _log_kernel(self, y: Array, v: Array) -> Array:
        """x - y and (x + y)/2 of a pair drawn from a component are independent Gaussians."""
        log_k = np.full((len(y), len(v)), -np.inf)
        for j, a in enumerate(self.weights):
            apart = self._axes[j] / np.sqrt(self._apart[j])
            between = self._axes[j] / (2 * np.sqrt(self._between[j]))
            part = squared_distances(y @ apart, v @ apart, direct=True)
            theta = self._theta[j]
            part += squared_distances((y - theta) @ between, (theta - v) @ between, direct=True)
            part *= -0.5
            widths = np.log(4 * np.pi**2 * self._apart[j] * self._between[j]).sum()
            part += np.log(a) - 0.5 * widths + 2 * self._log_unit
            log_k = np.logaddexp(log_k, part, out=log_k)
        return log_k

    def log_diagonal(self, x: Any) -> Array:
        """Return log k_ε(x, x), (n,)."""
        y = self._local(self._points(x))
        parts = np.empty((len(y), self.n_components))
        for j, theta in enumerate(self._theta):
            z = (y - theta) @ (self._axes[j] / np.sqrt(self._between[j]))
            widths = np.log(4 * np.pi**2 * self._apart[j] * self._between[j]).sum()
            parts[:, j] = np.log(self.weights[j]) - 0.5 * (squared_norms(z) + widths)
        return logsumexp(parts, axis=1) + 2 * self._log_unit

    def low_rank(self, x: Any, tol: float = 1e-10) -> LowRank:
        """Return the affinities k_ε(x_i, x_j) of points (n, m) as an operator F Fᵀ.

        `hs.symmetric_normalize` and its like take it, and so `hs.sketch`, `hs.eigh` and
        `hs.diffusion_distance`; `Diffusion.from_mixture` normalises it and knows new points.

        Parameters
        ----------
        x : array (n, m)
        tol : float, default 1e-10
            What is missing of k(x, x) at most, as a share of it.

        Raises
        ------
        ValueError
            More than 4,096 columns are needed; affinities beyond float64.

        Examples
        --------
        >>> import heatsketch as hs
        >>> kernel = hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0)
        >>> kernel.low_rank([[0.0], [0.0], [1.0]]).factor.shape
        (3, 2)
        """
        F = affinity_factor(self, x, tol)
        if not np.isfinite(F).all() or not F.any(axis=1).all():
            raise ValueError("Affinities of these points are beyond float64; rescale the data.")
        return LowRank(F)

    def kernel(self, x: Any, z: Any) -> Array:
        """Return the affinities k_ε(x_i, z_j) for all pairs, (n, n').

        Symmetric and positive semidefinite. *Diffusion representation*, (2.5) and (3.3).

        Examples
        --------
        >>> import heatsketch as hs
        >>> hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0).kernel([[0.0]], [[0.0], [1.0]]).round(4)
        array([[0.0919, 0.0658]])
        """
        return np.exp(self.log_kernel(x, z))

    def transition_density(self, x: Any, z: Any) -> Array:
        """Return p(x_i, z_j) = k_ε(x_i, z_j) / ν(x_i) for all pairs, (n, n').

        Over z it integrates to 1, also for x where k_ε and ν underflow.
        *Diffusion representation*, (2.2).

        Examples
        --------
        >>> import heatsketch as hs
        >>> kernel = hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0)
        >>> kernel.transition_density([[0.0]], [[0.0]]).round(4)
        array([[0.3257]])
        """
        x, v = self._points(x), self._local(self._points(z, "z"))
        log_p = self._by_tiles(lambda r: self._log_transition(x[r], v), len(x), len(v))
        return np.exp(log_p + self._log_unit)

    def _log_transition(self, x: Array, v: Array) -> Array:
        """By components: of log k_ε - log ν far from the mixture nothing but rounding is left."""
        log_w, y = self._log_parts(x), self._local(x)
        log_w -= logsumexp(log_w, axis=1, keepdims=True)
        log_p = np.full((len(x), len(v)), -np.inf)
        for j, theta in enumerate(self._theta):
            whiten = self._axes[j] / np.sqrt(self._spreads[j])
            part = squared_distances(
                (y - theta) @ (whiten * self._gains[j]), (v - theta) @ whiten, direct=True
            )
            part *= -0.5
            part += log_w[:, j, None] - 0.5 * np.log(2 * np.pi * self._spreads[j]).sum()
            log_p = np.logaddexp(log_p, part, out=log_p)
        return log_p

    # --- distances ----------------------------------------------------------------------------

    def squared_norm(self, x: Any) -> Array:
        """Return |p(x, ·)|² in L²(dr), (n,): W_xx / ν_x² of the paper."""
        x = self._points(x)
        return self._by_tiles(lambda r: self._norms(self._steps(x[r])), len(x)) * self._density_unit

    @property
    def _density_unit(self) -> float:
        return float(np.exp(self._log_unit))

    def squared_distance(self, x: Any, z: Any, *, pairwise: bool = True) -> Array:
        """Return the squared diffusion distances d(x, z)² = |p(x, ·) - p(z, ·)|².

        In L²(dr). *Diffusion representation*, (3.5) and (3.6), which in print lacks the square.
        Near points, and all points where ε is large, get theirs from differences of densities:
        8 digits or more at any distance, and zero for equal points.

        Parameters
        ----------
        x : array (n, m)
        z : array (n', m)
        pairwise : bool, default True
            All pairs, (n, n'); False: row by row, (n,), for as many rows of z as of x.

        Returns
        -------
        array (n, n') or (n,)

        Examples
        --------
        >>> import heatsketch as hs
        >>> kernel = hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0)
        >>> kernel.squared_distance([[0.0]], [[1.0]], pairwise=False).round(4)
        array([0.0188])
        """
        x, z = self._points(x), self._points(z, "z")
        if pairwise:
            ends = self._prepared(self._anchors(z))
            d2 = self._by_tiles(
                lambda r: self._distances(self._anchors(x[r]), ends), len(x), len(z)
            )
        else:
            if len(x) != len(z):
                raise ValueError(
                    f"x has {len(x)} rows and z has {len(z)}; pass as many, or pairwise=True."
                )
            d2 = self._by_tiles(lambda r: self._row_distances(x[r], z[r]), len(x))
        return d2 * self._density_unit

    def _anchors(self, z: Array) -> Anchors:
        steps = self._steps(z)
        return Anchors(z, steps, self._norms(steps))

    def _prepared(self, z: Anchors) -> Anchors:
        """Prepare anchors for distances to many points."""
        return z._replace(ends=self._overlaps.prepare(z.steps))

    def _norms(self, p: Mixtures) -> Array:
        """Return |p|² row by row, without the unit."""
        norms = np.empty(len(p.weights))
        chunk = max(1, _CHUNK // (4 * self.n_components * self.n_features))
        for rows in row_tiles(len(norms), chunk):
            norms[rows] = self._overlaps.norms(p.take(rows))
        return norms

    @property
    def _row_chunk(self) -> int:
        return max(1, _CHUNK // (8 * self.n_components**2 * self.n_features))

    def _distances(self, x: Anchors, z: Anchors) -> Array:
        """Return squared distances of all pairs without the unit."""
        terms = x.norms[:, None] + z.norms
        d2 = self._overlaps.gram(x.steps, z.ends or self._overlaps.prepare(z.steps))
        d2 *= -2
        d2 += terms
        rows, columns = np.nonzero(d2 < _NEAR * terms)
        for chunk in row_tiles(len(rows), self._row_chunk):
            i, j = rows[chunk], columns[chunk]
            d2[i, j] = self._near(x.points[i], z.points[j], x.steps.take(i), z.steps.take(j))
        return np.maximum(d2, 0.0, out=d2)

    def _row_distances(self, x: Array, z: Array) -> Array:
        d2 = np.empty(len(x))
        for rows in row_tiles(len(x), self._row_chunk):
            p, r = self._steps(x[rows]), self._steps(z[rows])
            terms = self._norms(p) + self._norms(r)
            plain = np.maximum(terms - 2 * self._overlaps.rows(p, r), 0.0)
            d2[rows] = np.where(plain < _NEAR * terms, self._near(x[rows], z[rows], p, r), plain)
        return d2

    def _near(self, x: Array, z: Array, p: Mixtures, r: Mixtures) -> Array:
        """Return squared distances of near rows from differences."""
        step = (x - z) / self._unit  # exact for near points, as differences from a centre are not
        dc = np.einsum("nb,kab->nka", step, self._gain_matrices)
        # log h_j(x) - log h_j(z) = -(x - z)ᵀ S_j⁻¹ (x + z - 2 θ_j) / 2
        along = np.einsum("nb,kbc->nkc", step, self._axes)
        place = (self._local(x) + self._local(z))[:, None] - 2 * self._theta
        place = np.einsum("nkb,kbc->nkc", place, self._axes)
        change = -0.5 * np.einsum("nkc,nkc,kc->nk", along, place, 1 / self._variances)
        change -= np.einsum("nk,nk->n", r.weights, np.where(r.weights > 0, change, 0.0))[:, None]
        small = change.max(axis=1) < _LARGEST
        growth = np.expm1(np.where(small[:, None], change, 0.0))
        mean = np.einsum("nk,nk->n", r.weights, growth)[:, None]
        dw = r.weights * (growth - mean) / (1 + mean)
        dw = np.where(small[:, None], dw, p.weights - r.weights)
        return self._overlaps.squared_differences(r, p.weights, dw, dc)

    # --- anomalies ----------------------------------------------------------------------------

    def anomaly_score(self, x: Any, *, kind: str = "density") -> Array:
        """Return how unusual each point is under the mixture, (n,): larger is stranger.

        Parameters
        ----------
        x : array (n, m)
        kind : "density" or "distance", default "density"
            -log ν(x), which grows without end; or the diffusion distance of x to the bulk,
            |p(x, ·) - ν| in L²(dr): from ν, where the walk from x is in the end.

        Raises
        ------
        ValueError
            "distance" where ε is so large that p(x, ·) agrees with ν to ten digits.

        Examples
        --------
        >>> import heatsketch as hs
        >>> kernel = hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0)
        >>> kernel.anomaly_score([[0.0], [6.0]]).round(2)
        array([ 1.27, 10.27])
        >>> kernel.anomaly_score([[0.0], [6.0]], kind="distance").round(2)
        array([0.06, 0.56])
        """
        if check_choice(kind, "kind", SCORES) == "density":
            return -self.log_stationary(x)
        x = self._points(x)
        d2 = self._by_tiles(lambda r: self._bulk_distances(self._steps(x[r])), len(x))
        return np.sqrt(d2 * self._density_unit)

    def _bulk_distances(self, p: Mixtures) -> Array:
        """Return |p - ν|² row by row, without the unit."""
        norms = self._norms(p)
        d2 = norms + self._bulk_norm
        d2 -= 2 * self._overlaps_with_bulk.gram(p, self._bulk_ends)[:, 0]
        if not (d2 > _RESOLVED * norms).all():
            raise ValueError(
                f"At epsilon={self.epsilon:g} the walk reaches its stationary density in one step, "
                "to ten digits; pass kind='density', or a smaller epsilon."
            )
        return d2

    def gradient(self, x: Any, z: Any = None, *, kind: str = "distance") -> Array:
        """Return the gradient with respect to x of a distance or of the score, (n, m).

        The feature with the largest entry (in units in which features compare) is responsible for
        most of the distance, or of the anomaly. *Diffusion representation*, §7.1.

        Parameters
        ----------
        x : array (n, m)
        z : array (n, m) or (1, m), optional
            The points the distance d(x, z) goes to, row by row; by default the distance to the
            bulk, ``anomaly_score(x, kind="distance")``.
        kind : "distance" or "density", default "distance"
            "density": of ``anomaly_score(x, kind="density")``, -∇ log ν(x); has no z.

        Returns
        -------
        array (n, m)
            NaN in rows where x and z are so near that d² is below 1e-10 of its terms; at x = z
            the distance has no gradient.

        Examples
        --------
        >>> import heatsketch as hs
        >>> kernel = hs.MixtureKernel([1.0], [[0.0, 0.0]], [1.0], 2.0)
        >>> kernel.gradient([[3.0, 0.0]], kind="density")
        array([[ 1.5, -0. ]])
        """
        x = self._points(x)
        if check_choice(kind, "kind", SCORES) == "density":
            if z is not None:
                raise ValueError("kind='density' has no z; pass z with kind='distance'.")
            slopes = self._by_tiles(lambda r: self._score_slopes(x[r]), len(x), self.n_features)
            return slopes / self._unit
        ends = None if z is None else np.broadcast_to(self._ends(z, len(x)), x.shape)

        def slopes_of(rows: slice) -> Array:
            r = self._bulk if ends is None else self._steps(ends[rows])
            return self._distance_slopes(x[rows], r, ends is None)

        slopes = self._by_tiles(slopes_of, len(x), self.n_features)
        return slopes * (np.sqrt(self._density_unit) / self._unit)

    def _ends(self, z: Any, n: int) -> Array:
        z = self._points(z, "z")
        if len(z) not in (1, n):
            raise ValueError(f"z has {len(z)} rows and x has {n}; pass one, or as many.")
        return z

    def _part_slopes(self, x: Array) -> Array:
        """Return ∇ log h_j(x) = -S_j⁻¹ (x - θ_j), (n, K, m)."""
        along = np.einsum("nkb,kbc->nkc", self._local(x)[:, None] - self._theta, self._axes)
        return -np.einsum("nkc,kc,kac->nka", along, 1 / self._variances, self._axes)

    def _score_slopes(self, x: Array) -> Array:
        return -np.einsum("nk,nka->na", self._steps(x).weights, self._part_slopes(x))

    def _distance_slopes(self, x: Array, r: Mixtures, to_bulk: bool) -> Array:
        """∇ d = (⟨∇p_x, p_x⟩ - ⟨∇p_x, r⟩) / d."""
        slopes = np.empty_like(x)
        for rows in row_tiles(len(x), self._row_chunk):
            p, parts = self._steps(x[rows]), self._part_slopes(x[rows])
            end = r if to_bulk else r.take(rows)
            other = self._overlaps_with_bulk if to_bulk else self._overlaps
            by_weight, by_mean = self._overlaps.gradients(p, p)
            less_weight, less_mean = other.gradients(p, end)
            by_weight, by_mean = by_weight - less_weight, by_mean - less_mean
            change = p.weights * (by_weight - np.einsum("nk,nk->n", p.weights, by_weight)[:, None])
            slope = np.einsum("nk,nka->na", change, parts)
            slope += np.einsum("nkb,kab->na", by_mean, self._gain_matrices)
            # d² = ⟨p_x - r, p_x - r⟩, from the same overlaps
            norms = self._norms(p)
            if to_bulk:
                d2 = norms + self._bulk_norm - 2 * other.gram(p, self._bulk_ends)[:, 0]
            else:
                d2 = norms + self._norms(end) - 2 * other.rows(p, end)
            with np.errstate(invalid="ignore"):
                d = np.sqrt(np.where(d2 > _RESOLVED * norms, d2, np.nan))
            slopes[rows] = slope / d[:, None]
        return slopes
