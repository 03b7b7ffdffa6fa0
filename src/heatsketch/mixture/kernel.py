"""The measure-based Gaussian correlation (MGC) kernel of a Gaussian mixture, in closed form."""

from typing import Any

import numpy as np

from heatsketch._checks import check_choice
from heatsketch._typing import Array
from heatsketch.mixture import densities, distances, gradients
from heatsketch.mixture.given import GivenMixture
from heatsketch.mixture.lowrank import affinity_factor
from heatsketch.operators import LowRank

SCORES = ("density", "distance")


class MixtureKernel(GivenMixture):
    """The MGC kernel k_ε of a Gaussian mixture q, and all that follows from it in closed form.

    k_ε(x, y) = ∫ g(r; x, ε/2 I) g(r; y, ε/2 I) q(r) dr with q = Σ a_j g(·; θ_j, Σ_j): the joint
    density of two noisy copies of a point drawn from q. Its Markov process steps from x to a y of
    the density p(x, ·) = k_ε(x, ·) / ν(x) = Σ_j w_j(x) g(·; c_j(x), D_j), a mixture again:
    S_j = Σ_j + ε/2 I, C_j = Σ_j S_j⁻¹, c_j(x) = θ_j + C_j (x - θ_j), D_j = ε/2 (I + C_j), and
    w_j(x) the responsibilities under the stationary density ν = Σ a_j g(·; θ_j, S_j). No result
    depends on the number of data points.

    The diffusion distance is d(x, z) = |p(x, ·) - p(z, ·)| in L²(dr), *Diffusion representation*,
    (2.4): unweighted, in contrast to the distance weighted by 1/ν.

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
        By default found from the shape, where only one form has it: for K = m > 1 "tied" and
        "diag" have the same.
    time : int >= 1, default 1
        Steps of the process. More than 1 for one component only (an AR(1) process, p is the
        density after t steps); for several components see `MixtureDiffusion`.

    Attributes
    ----------
    weights, means, covariances : array (K,), (K, m), (K, m, m)
        Of the components with positive weight.
    epsilon, time : float, int
    n_components, n_features : int
        K and m.
    components : Components
        What all methods compute from: see `heatsketch.mixture.components`.

    Raises
    ------
    ValueError
        Shapes that do not fit together, weights that are not probabilities, covariances with
        negative eigenvalues, densities beyond float64.

    Notes
    -----
    Computed with lengths in units of √(ε/2), eigenvalues of covariances and logarithms of weights:
    accurate for ε from 2^-20 to 2^20 times the square of the data's scale, and where ν underflows.
    Cost of all pairs of n and n' points: at most n n' K² Gaussians; components of negligible
    responsibility are left out.

    Examples
    --------
    >>> import heatsketch as hs
    >>> kernel = hs.MixtureKernel([0.5, 0.5], [[0.0], [4.0]], [1.0, 0.25], epsilon=0.5)
    >>> kernel.squared_distance([[0.0], [0.1]], [[4.0]]).round(3)
    array([[0.881],
           [0.881]])
    """

    def log_stationary(self, x: Any) -> Array:
        """Return log ν(x), (n,): also where ν itself underflows.

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
        return densities.log_stationary(self.components, self.components.checked(x))

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
        return densities.responsibilities(self.components, self.components.checked(x))

    def log_kernel(self, x: Any, z: Any) -> Array:
        """Return log k_ε(x_i, z_j) for all pairs, (n, n').

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture.
        """
        c = self.components
        return densities.log_kernel(c, c.checked(x), c.checked(z, "z"))

    def log_diagonal(self, x: Any) -> Array:
        """Return log k_ε(x, x), (n,).

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture.
        """
        return densities.log_diagonal(self.components, self.components.checked(x))

    def low_rank(self, x: Any, tol: float = 1e-10) -> LowRank:
        """Return the affinities k_ε(x_i, x_j) of points (n, m) as an operator F Fᵀ.

        The normalisations accept it, and so do `hs.sketch`, `hs.eigh` and
        `hs.diffusion_distance`; `Diffusion.from_mixture` normalises it and also takes new points.

        Parameters
        ----------
        x : array (n, m)
        tol : float, default 1e-10
            Largest share of any k(x, x) that F Fᵀ lacks.

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
        F = affinity_factor(self.components, x, tol)
        if not np.isfinite(F).all() or not F.any(axis=1).all():
            raise ValueError("Affinities of these points are beyond float64; rescale the data.")
        return LowRank(F)

    def kernel(self, x: Any, z: Any) -> Array:
        """Return the affinities k_ε(x_i, z_j) for all pairs, (n, n').

        Symmetric and positive semidefinite. *Diffusion representation*, (2.5) and (3.3).

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

    def transition_density(self, x: Any, z: Any) -> Array:
        """Return p(x_i, z_j) = k_ε(x_i, z_j) / ν(x_i) for all pairs, (n, n').

        Over z it integrates to 1, also for x where k_ε and ν underflow.
        *Diffusion representation*, (2.2).

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture.

        Examples
        --------
        >>> import heatsketch as hs
        >>> kernel = hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0)
        >>> kernel.transition_density([[0.0]], [[0.0]]).round(4)
        array([[0.3257]])
        """
        c = self.components
        return densities.transition_density(c, c.checked(x), c.checked(z, "z"))

    def squared_norm(self, x: Any) -> Array:
        """Return |p(x, ·)|² in L²(dr), (n,): W_xx / ν_x² of the paper.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture.
        """
        return distances.squared_norm(self.components, self.components.checked(x))

    def squared_distance(self, x: Any, z: Any, *, pairwise: bool = True) -> Array:
        """Return the squared diffusion distances d(x, z)² = |p(x, ·) - p(z, ·)|².

        In L²(dr). *Diffusion representation*, (3.5) and (3.6), which in print lacks the square.
        Distances of near points, and of all points where ε is large, are computed from differences
        of densities: 8 digits or more at any distance, and zero for equal points.

        Parameters
        ----------
        x : array (n, m)
        z : array (n', m)
        pairwise : bool, default True
            All pairs, (n, n'); False: row by row, (n,), where z has as many rows as x.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture; row by row, x
            and z of different numbers of rows.

        Examples
        --------
        >>> import heatsketch as hs
        >>> kernel = hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0)
        >>> kernel.squared_distance([[0.0]], [[1.0]], pairwise=False).round(4)
        array([0.0188])
        """
        c = self.components
        x, z = c.checked(x), c.checked(z, "z")
        if pairwise:
            return distances.squared_distance(c, x, z)
        if len(x) != len(z):
            raise ValueError(
                f"x has {len(x)} rows and z has {len(z)}; pass as many rows of z as of x, or "
                "pairwise=True."
            )
        return distances.squared_distance_of_rows(c, x, z)

    def anomaly_score(self, x: Any, *, kind: str = "density") -> Array:
        """Return how unusual each point is under the mixture, (n,): larger is more unusual.

        Parameters
        ----------
        x : array (n, m)
        kind : "density" or "distance", default "density"
            -log ν(x), which grows without bound; or the diffusion distance from x to the
            stationary density, |p(x, ·) - ν| in L²(dr).

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the mixture; for
            "distance", if ε is so large that p(x, ·) agrees with ν to ten digits.

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
        return distances.distance_to_stationary(self.components, self.components.checked(x))

    def gradient(self, x: Any, z: Any = None, *, kind: str = "distance") -> Array:
        """Return the gradient with respect to x of a distance or of the score, (n, m).

        The feature with the largest entry (in units in which features can be compared) contributes
        most to the distance, or to the anomaly. *Diffusion representation*, §7.1.

        Parameters
        ----------
        x : array (n, m)
        z : array (n, m) or (1, m), optional
            For the distances d(x, z), row by row; by default for the distance to the stationary
            density, ``anomaly_score(x, kind="distance")``.
        kind : "distance" or "density", default "distance"
            "density": gradient of ``anomaly_score(x, kind="density")``, -∇ log ν(x), without z.

        Returns
        -------
        array (n, m)
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
            return gradients.score_gradient(c, x)
        if z is not None:
            z = c.checked(z, "z")
            if len(z) not in (1, len(x)):
                raise ValueError(
                    f"z has {len(z)} rows and x has {len(x)}; pass one row, or as many as x."
                )
            z = np.broadcast_to(z, x.shape)
        return gradients.distance_gradient(c, x, z)
