"""The measure-based Gaussian correlation (MGC) kernel of a Gaussian mixture, in closed form."""

from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp

from heatsketch._arrays import Array
from heatsketch._checks import as_floats, check_choice, check_number, check_points
from heatsketch._threads import filled
from heatsketch.core.operators import LowRank
from heatsketch.mixture import transition_distances
from heatsketch.mixture.components import Components, pivoted_cholesky

SCORES = ("density", "distance")
WALKS = ("mgc", "gaussian")
_MAX_RANK = 4096  # of a factor of affinities


class MixtureKernel:
    """The MGC kernel k_ε of a Gaussian mixture q, its densities and distances in closed form.

    k_ε(x, y) = ∫ g(r; x, ε/2 I) g(r; y, ε/2 I) q(r) dr with q = Σ a_j g(·; θ_j, Σ_j) is the joint
    density of two noisy copies of a point drawn from q. Its Markov process steps from x to y with
    the density p(x, ·) = k_ε(x, ·) / ν(x) = Σ_j w_j(x) g(·; c_j(x), D_j), again a mixture. Here S_j
    = Σ_j + ε/2 I, C_j = Σ_j S_j⁻¹, c_j(x) = θ_j + C_j (x - θ_j), D_j = ε/2 (I + C_j), and w_j(x)
    are the responsibilities under the stationary density ν = Σ a_j g(·; θ_j, S_j). Results do not
    depend on the number of data points.

    The diffusion distance is d(x, z) = |p(x, ·) - p(z, ·)| in L²(dr) [1]_. It is unweighted, in
    contrast to the distance weighted by 1/ν.

    Parameters
    ----------
    weights : array-like of shape (n_components,)
        Weights a_j >= 0 with sum 1.
    means : array-like of shape (n_components, n_features)
        Means θ_j.
    covariances : array-like of shape (n_components, n_features, n_features)
        Covariances Σ_j, positive semidefinite. This shape is "full"; (n_features, n_features) is
        "tied", (n_components, n_features) is "diag", and (n_components,) is "spherical".
    epsilon : float > 0
        Bandwidth ε in squared data units. The kernel falls off like exp(-|x - y|² / 2ε).
    covariance_type : {"full", "tied", "diag", "spherical"}, default=None
        Form of the covariances, by default found from their shape; needed for K = m > 1, where
        "tied" and "diag" have the same shape.
    time : int >= 1, default=1
        Steps t of the process; p is the density after t steps. More than 1 needs a single component
        (an AR(1) process); for several components see `MixtureDiffusion`.

    Attributes
    ----------
    weights : ndarray of shape (n_components,)
        Weights of the components with positive weight.
    means : ndarray of shape (n_components, n_features)
        Their means.
    covariances : ndarray of shape (n_components, n_features, n_features)
        Their covariances.
    epsilon, time : float, int
        Bandwidth ε and number of steps t.
    n_components, n_features : int
        Number K of components and number m of features.
    components : Components
        Prepared components, see `heatsketch.mixture.components`.

    Raises
    ------
    ValueError
        Shapes that do not fit together, weights that are not probabilities, covariances with
        negative eigenvalues, densities beyond float64.

    See Also
    --------
    MixtureDiffusion : Embed data by the diffusion of a Gaussian mixture.
    mixture.CholeskyMap : Coordinates whose distances approximate those of a mixture kernel.
    Kernel : The Gaussian kernel of points, never stored.

    Notes
    -----
    All methods use lengths in units of √(ε/2), eigenvalues of covariances and logarithms of
    weights. They are accurate for ε from 2^-20 to 2^20 times the square of the data's scale, and
    also if ν underflows. All pairs of n and n' points cost at most n n' K² Gaussians; components of
    negligible responsibility are left out.

    References
    ----------
    .. [1] *Diffusion representation*, on the measure-based Gaussian correlation (MGC) kernel,
       equation (2.4).

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
        means = check_points(means, "means", min_rows=1, accept_sparse=False).astype(float)
        weights = as_floats(weights, "weights", accept_sparse=False).astype(float)
        n, total = len(means), weights.sum()
        if weights.shape != (n,) or not (weights >= 0).all() or not abs(total - 1) < 1e-6:
            raise ValueError(
                f"weights of shape {weights.shape} sum to {total:.6g}; pass {n} numbers >= 0 that "
                "sum to 1."
            )
        full = _full_covariances(covariances, covariance_type, *means.shape)
        kept = weights > 0
        self.weights, self.means, self.covariances = weights[kept] / total, means[kept], full[kept]
        self.n_components, self.n_features = self.means.shape
        if self.time > 1 and self.n_components > 1:
            raise ValueError(
                f"time={time} has a closed form for one component only, but the mixture has "
                f"{self.n_components}; use MixtureDiffusion(time=...) for later times."
            )
        _ = self.components  # raises if densities are beyond float64

    @cached_property
    def components(self) -> Components:
        """The components prepared for all methods."""
        return Components(self.weights, self.means, self.covariances, self.epsilon, self.time)

    @cached_property
    def _of_gaussian(self) -> Components:
        """The components of the steps of the standard kernel."""
        if np.linalg.eigvalsh(self.covariances)[:, 0].min() <= 0:
            raise ValueError(
                "A covariance is singular, so that a step of the standard kernel has no density; "
                "pass kind='mgc', or positive definite covariances."
            )
        parts = self.weights, self.means, self.covariances, self.epsilon, self.time
        return Components(*parts, ends_in_noise=False)

    def _components_of(self, kind: str) -> Components:
        is_mgc = check_choice(kind, "kind", WALKS) == "mgc"
        return self.components if is_mgc else self._of_gaussian

    @classmethod
    def from_sklearn(cls, mixture: Any, epsilon: float, *, time: int = 1) -> Self:
        """Take the mixture from a fitted `GaussianMixture` or `BayesianGaussianMixture`.

        Raises
        ------
        ValueError, TypeError
            A mixture that is not fitted, or not of Gaussians; an ε or a number of steps out of
            range.

        Examples
        --------
        >>> import heatsketch as hs, sklearn.mixture
        >>> X, label = hs.datasets.digits()
        >>> fitted = sklearn.mixture.GaussianMixture(3, random_state=0).fit(X[:, 18:20])
        >>> hs.MixtureKernel.from_sklearn(fitted, epsilon=10.0)
        MixtureKernel(n_components=3, n_features=2, epsilon=10)
        """
        if not hasattr(mixture, "covariances_"):
            raise ValueError(
                f"{type(mixture).__name__} has no covariances_; pass a fitted GaussianMixture or "
                "BayesianGaussianMixture."
            )
        return cls(
            mixture.weights_,
            mixture.means_,
            mixture.covariances_,
            epsilon,
            covariance_type=mixture.covariance_type,
            time=time,
        )

    def __repr__(self) -> str:
        """Return a short description without the arrays."""
        later = f", time={self.time}" if self.time > 1 else ""
        return (
            f"MixtureKernel(n_components={self.n_components}, n_features={self.n_features}, "
            f"epsilon={self.epsilon:g}{later})"
        )

    def log_stationary(self, x: Any) -> Array:
        """Return log ν(x), (n,), also where ν itself underflows.

        *Diffusion representation*, (3.4).

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture.

        Examples
        --------
        >>> import heatsketch as hs
        >>> hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0).log_stationary([[1e3]]).round(2)
        array([-250001.27])
        """
        c = self.components
        return c.by_tiles(lambda x: logsumexp(c.log_joint(x), axis=1), c.checked(x)) + c.log_unit

    def stationary(self, x: Any) -> Array:
        """Return the stationary density ν(x) = Σ a_j g(x; θ_j, Σ_j + ε/2 I), (n,).

        It integrates to 1, and ∫ ν(x) p(x, ·) dx = ν. *Diffusion representation*, (3.4).

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture.

        Examples
        --------
        >>> import heatsketch as hs
        >>> hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0).stationary([[0.0]]).round(4)
        array([0.2821])
        """
        return np.exp(self.log_stationary(x))

    def responsibilities(self, x: Any) -> Array:
        """Return w_j(x) = a_j g(x; θ_j, S_j) / ν(x), (n, K); rows sum to 1.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture.

        Examples
        --------
        >>> import heatsketch as hs
        >>> kernel = hs.MixtureKernel([0.5, 0.5], [[0.0], [4.0]], [1.0, 1.0], 2.0)
        >>> kernel.responsibilities([[2.0]])
        array([[0.5, 0.5]])
        """
        c = self.components
        return c.by_tiles(c.responsibilities, c.checked(x), c.n_components)

    def log_kernel(self, x: Any, z: Any) -> Array:
        """Return log k_ε(x_i, z_j) for all pairs, (n, n').

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture.
        """
        c = self.components
        x, z = c.checked(x), c.checked(z, "z")
        log_k = c.by_tiles(lambda x: c.log_steps(x, z, c.log_joint(x)), x, len(z))
        return log_k + 2 * c.log_unit

    def log_diagonal(self, x: Any) -> Array:
        """Return log k_ε(x, x), (n,).

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture.
        """
        c = self.components
        return c.log_diagonal(c.checked(x)) + 2 * c.log_unit

    def low_rank(self, x: Any, tol: float = 1e-10) -> LowRank:
        """Return the affinities k_ε(x_i, x_j) of points (n, m) as an operator F Fᵀ of low rank.

        Normalisations, `hs.sketch`, `hs.eigh` and `hs.diffusion_distance` accept it.
        `Diffusion.from_mixture` normalises it and can also embed new points.

        Parameters
        ----------
        x : array-like of shape (n_samples, n_features)
        tol : float, default=1e-10
            Largest error of F Fᵀ at any k(x, x), as a fraction of it.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture; more than
            4,096 columns are needed; affinities beyond float64.

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

        They are symmetric and positive semidefinite. *Diffusion representation*, (2.5) and (3.3).

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture.

        Examples
        --------
        >>> import heatsketch as hs
        >>> hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0).kernel([[0.0]], [[0.0], [1.0]]).round(4)
        array([[0.0919, 0.0658]])
        """
        return np.exp(self.log_kernel(x, z))

    def transition_density(self, x: Any, z: Any, *, kind: str = "mgc") -> Array:
        """Return p(x_i, z_j) = k_ε(x_i, z_j) / ν(x_i) for all pairs, (n, n').

        It integrates to 1 over z, also for x where k_ε and ν underflow.
        *Diffusion representation*, (2.2).

        Parameters
        ----------
        x : array-like of shape (n_samples, n_features)
        z : array-like of shape (n_other_samples, n_features)
        kind : {"mgc", "gaussian"}, default="mgc"
            "gaussian": the steps of the standard diffusion map kernel g(z; x, ε/2 I) between points
            of the mixture, p(x, z) = g(z; x, ε/2 I) q(z) / ν(x) = Σ_j w_j(x) g(z; c_j(x), ε/2 C_j).
            Noise N(0, ε/2 I) added to such a step makes one of the MGC kernel.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture; for
            "gaussian", a singular covariance.

        Examples
        --------
        >>> import heatsketch as hs
        >>> kernel = hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0)
        >>> kernel.transition_density([[0.0]], [[0.0]]).round(4)
        array([[0.3257]])
        """
        c = self._components_of(kind)
        x, z = c.checked(x), c.checked(z, "z")

        def log_p(x: Array) -> Array:
            # Sum over components, because log k_ε - log ν far from the mixture is only rounding.
            log_h = c.log_joint(x)
            return c.log_steps(x, z, log_h - logsumexp(log_h, axis=1, keepdims=True))

        return np.exp(c.by_tiles(log_p, x, len(z)) + c.log_unit)

    def squared_norm(self, x: Any) -> Array:
        """Return |p(x, ·)|² in L²(dr), (n,): W_xx / ν_x² of the paper.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture.
        """
        c = self.components
        return c.by_tiles(lambda x: c.transitions(x).norms, c.checked(x)) * c.density_unit

    def squared_distance(
        self, x: Any, z: Any, *, pairwise: bool = True, kind: str = "mgc"
    ) -> Array:
        """Return the squared diffusion distances d(x, z)² = |p(x, ·) - p(z, ·)|².

        The norm is that of L²(dr). *Diffusion representation*, (3.5) and (3.6), which in print
        lacks the square. Distances of near points, and of all points if ε is large, are computed
        from differences of densities: they have 8 digits or more, and equal points have distance
        zero.

        Parameters
        ----------
        x : array-like of shape (n_samples, n_features)
        z : array-like of shape (n_other_samples, n_features)
        pairwise : bool, default=True
            True: all pairs, (n, n'). False: row by row, (n_samples,); z has as many rows as x.
        kind : {"mgc", "gaussian"}, default="mgc"
            "gaussian": the distance of the standard diffusion map kernel under the mixture (§7.1),
            between the densities ``transition_density(..., kind="gaussian")``.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture; row by row, x
            and z of different numbers of rows; for "gaussian", a singular covariance.

        Examples
        --------
        >>> import heatsketch as hs
        >>> kernel = hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0)
        >>> kernel.squared_distance([[0.0]], [[1.0]], pairwise=False).round(4)
        array([0.0188])
        """
        c = self._components_of(kind)
        x, z = c.checked(x), c.checked(z, "z")
        if pairwise:
            p = c.transitions(z)
            factors = c.overlaps.factors(p)
            d2 = c.by_tiles(
                lambda x: transition_distances.between(c, c.transitions(x), p, factors), x, len(z)
            )
            return d2 * c.density_unit
        if len(x) != len(z):
            raise ValueError(
                f"x has {len(x)} rows and z has {len(z)}; pass as many rows of z as of x, or "
                "pairwise=True."
            )
        d2 = filled(
            lambda rows: transition_distances.of_rows(c, x[rows], z[rows]), (len(x),), c.pair_rows
        )
        return d2 * c.density_unit

    def anomaly_score(self, x: Any, *, kind: str = "density") -> Array:
        """Return a score of each point, (n,), larger for points that are less usual in the mixture.

        Parameters
        ----------
        x : array-like of shape (n_samples, n_features)
        kind : {"density", "distance"}, default="density"
            "density": -log ν(x), which is unbounded. "distance": the diffusion distance from x to
            the stationary density, |p(x, ·) - ν| in L²(dr).

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture; for
            "distance", an ε so large that p(x, ·) agrees with ν to ten digits.

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
        c = self.components
        x = c.checked(x)
        d2 = filled(
            lambda rows: transition_distances.to_stationary(c, x[rows]), (len(x),), c.pair_rows
        )
        return np.sqrt(d2 * c.density_unit)

    def gradient(self, x: Any, z: Any = None, *, kind: str = "distance") -> Array:
        """Return the gradient with respect to x of a distance or of the score, (n, m).

        The feature with the largest entry (in units in which features can be compared) contributes
        most to the distance, or to the anomaly. *Diffusion representation*, §7.1.

        Parameters
        ----------
        x : array-like of shape (n_samples, n_features)
        z : array-like of shape (n_samples, n_features) or (1, n_features), default=None
            Points of the distances d(x, z), row by row. By default the distance is that to the
            stationary density, ``anomaly_score(x, kind="distance")``.
        kind : {"distance", "density"}, default="distance"
            "distance": gradient of d. "density": gradient of ``anomaly_score(x, kind="density")``,
            -∇ log ν(x), without z.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            NaN in rows where x and z are so near that d² is below 1e-10 of the terms whose
            difference it is; at x = z the distance has no gradient.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture; a z of neither
            one row nor as many as x, or one with kind="density".

        Examples
        --------
        >>> import heatsketch as hs
        >>> kernel = hs.MixtureKernel([1.0], [[0.0, 0.0]], [1.0], 2.0)
        >>> kernel.gradient([[3.0, 0.0]], kind="density")
        array([[ 1.5, -0. ]])
        """
        c = self.components
        x = c.checked(x)
        if check_choice(kind, "kind", SCORES) == "density":
            if z is not None:
                raise ValueError("kind='density' takes no z; pass z with kind='distance' only.")

            def downhill(x: Array) -> Array:
                return -np.einsum("nk,nka->na", c.responsibilities(x), c.log_joint_gradients(x))

            return c.by_tiles(downhill, x, c.n_features) / c.unit
        if z is not None:
            z = c.checked(z, "z")
            if len(z) not in (1, len(x)):
                raise ValueError(
                    f"z has {len(z)} rows and x has {len(x)}; pass one row, or as many as x."
                )
            z = np.broadcast_to(z, x.shape)

        def slopes(rows: slice) -> Array:
            return transition_distances.gradients(c, x[rows], None if z is None else z[rows])

        return filled(slopes, x.shape, c.pair_rows) * (np.sqrt(c.density_unit) / c.unit)


def affinity_factor(kernel: MixtureKernel, points: Any, tol: float, log_unit: float = 0.0) -> Array:
    """Return F (n, r) with F Fᵀ = e^-log_unit k_ε(x_i, x_j) for points (n, m), by pivoted Cholesky.

    F Fᵀ lacks at most the fraction `tol` of any k(x, x), so that far points keep their digits.
    `log_unit` is subtracted from log k, for affinities beyond float64. Raises ValueError if more
    than 4,096 columns are needed. Cost: n r kernel values and n r² operations.
    """
    tol = check_number(tol, "tol", low=0, high=1, open_low=True)
    x = kernel.components.checked(points, "points")
    log_k_xx = kernel.log_diagonal(x)

    def correlations(pivots: Array) -> Array:
        log_k = kernel.log_kernel(x, x[pivots])
        return np.exp(log_k - (log_k_xx[:, None] + log_k_xx[pivots]) / 2)

    F, _, missing = pivoted_cholesky(correlations, np.ones(len(x)), tol, min(_MAX_RANK, len(x)))
    if missing.max() > tol:
        raise ValueError(
            f"The affinity of {len(x):,} points at epsilon={kernel.epsilon:g} has a rank over "
            f"{_MAX_RANK:,}; pass a larger epsilon or tol, or use affinity='knn' on the points."
        )
    return F * np.exp((log_k_xx - log_unit) / 2)[:, None]


def _full_covariances(covariances: Any, kind: str | None, n: int, m: int) -> Array:
    """Return checked covariances (n, m, m) from any of the four forms."""
    given = as_floats(covariances, "covariances", accept_sparse=False).astype(float)
    shapes = {"full": (n, m, m), "tied": (m, m), "diag": (n, m), "spherical": (n,)}
    fitting = [name for name in shapes if shapes[name] == given.shape and kind in (None, name)]
    if not fitting or (len(fitting) > 1 and m > 1):
        forms = ", ".join(f"{shape} ({name})" for name, shape in shapes.items())
        raise ValueError(
            f"covariances have shape {given.shape} and covariance_type={kind!r}; for {n} means in "
            f"{m} dimensions pass {forms}, and covariance_type where the shape is that of two."
        )
    if fitting[0] in ("diag", "spherical"):
        given = given.reshape(n, -1, 1) * np.eye(m)
    full = np.broadcast_to(given, (n, m, m))
    size = np.abs(full).max(axis=(1, 2))
    skew = np.abs(full - full.transpose(0, 2, 1)).max(axis=(1, 2))
    valid = np.isfinite(size) & (skew <= 1e-8 * size)
    if valid.all():
        valid = np.linalg.eigvalsh(full)[:, 0] >= -1e-10 * size
    if not valid.all():
        raise ValueError(
            f"covariance {int(np.argmin(valid))} is not a finite symmetric matrix without negative "
            "eigenvalues; pass positive semidefinite matrices."
        )
    return (full + full.transpose(0, 2, 1)) / 2
