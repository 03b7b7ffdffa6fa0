"""The Taylor map of *Diffusion representation*: monomials, for components with one covariance."""

import math
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import gammainc, gammaln

from heatsketch._typing import Array
from heatsketch._validation import check_number
from heatsketch.mixture.mixture_kernel import MixtureKernel
from heatsketch.mixture.series_map import SeriesMap, first_order
from heatsketch.mixture.trust_region import largest_in_ball

_EQUAL_COVARIANCES = 1e-12  # relative difference of covariances that count as one


class PrintedBounds(NamedTuple):
    """The printed error bounds of orders 0, ..., l.

    Attributes
    ----------
    G_b1, G_b2 : float
        Σ_j s_j^(l+1) / (l+1)!, (5.10), and Σ_j P(l+1, s_j), (5.12), which is smaller.
    eta : float
        Bound on |f - f_l|², (5.18): the smaller of the two times (2π)^(-m/2) |2D|^(-1/2), divided
        by ν_min² if that is given.
    """

    G_b1: float
    G_b2: float
    eta: float


class TaylorMap(SeriesMap):
    """Coordinates f_l(x) by a Taylor series, for a mixture with one covariance.

    f(x) = peak Σ_j w_j(x) exp(-|ĉ_j|²/2) (ĉ_j^α / √α!)_α, |α| <= l, with ĉ_j = (2D)^(-1/2) c_j(x)
    and peak = (2π)^(-m/4) |2D|^(-1/4) [1]_. Distances of f are diffusion distances; those of f_l
    differ from them by at most `error_bound` in a whole ball, also at points that were never seen.
    The C(m + l, l) coordinates have the inner products of the 1 + m + ... + m^l coordinates of the
    Kronecker basis (`n_kronecker`), in which the map is printed. The origin is moved to the middle
    of the ĉ_j, which changes no distance of f and saves orders.

    The bound is sharp: |f - f_l|² <= peak² max_j P(l + 1, s_j), P the regularised incomplete gamma
    function and s_j the largest |ĉ_j(x)|² over the ball (`reach_`, a trust-region problem). It
    needs neither a least density ν_min nor the number of components, unlike the printed bound η
    (`printed_bounds`). `residual` is peak Σ_j w_j(x) √P(l + 1, |ĉ_j(x)|²), exact for one component.
    In print the recursion of the basis lacks a square root, and "the first l terms" must be orders
    0, ..., l for the bounds to hold.

    When to use it: in one to three dimensions, for a map and a bound that depend on no points. When
    not: `CholeskyMap` keeps the same distances with far fewer coordinates, and takes any
    covariances; so does `HermiteMap`.

    Parameters
    ----------
    order : int, default=None
        l. By default the smallest order whose bound meets the tolerance.
    radius : float, default=None
        Radius of the ball, about the middle of the points. By default the ball contains them.
    centred : bool, default=True
        False: the ball and the series are about the origin of the coordinates, as printed.
    max_features : int, default=10000
        Largest number of coordinates that a tolerance may choose.

    Attributes
    ----------
    kernel : MixtureKernel
        The kernel of the fit.
    error_bound : float
        Bound on | |f_l(x) - f_l(z)| - d(x, z) | for all x and z in the ball.
    centre_ : ndarray of shape (n_features,)
        Middle of the ball.
    radius_ : float
        Its radius.

    Warns
    -----
    ConvergenceWarning
        The tolerance needs more than `max_features` coordinates; `error_bound` is the tolerance
        reached.

    See Also
    --------
    mixture.CholeskyMap : Coordinates whose distances approximate those of a mixture kernel.
    mixture.HermiteMap : The same for any covariances, by Hermite functions.
    mixture.TensorSketch : Random projections of the Kronecker features.
    MixtureDiffusion : Embed data by the diffusion of a Gaussian mixture.

    Notes
    -----
    The cost of a point is K C(m + l, l) products for K components, beside the K m² of its step.

    References
    ----------
    .. [1] *Diffusion representation*, on the measure-based Gaussian correlation (MGC) kernel,
       equations (4.1)-(5.20), Lemmas 4.1, 5.1 and 5.2, and Appendix B.

    Examples
    --------
    >>> import heatsketch as hs
    >>> kernel = hs.MixtureKernel([0.5, 0.5], [[0.0], [2.0]], [1.0, 1.0], epsilon=1.0)
    >>> features = hs.TaylorMap().fit(kernel, tolerance=1e-3, points=[[-1.0], [3.0]])
    >>> features.order_, features.n_features, bool(features.error_bound <= 1e-3)
    (11, 12, True)
    >>> features.l_max(1e-3, nu_min=1e-3)  # as printed
    17
    """

    def fit(self, kernel: MixtureKernel, tolerance: float = 0.01, points: Any = None) -> Self:
        """Choose the ball, the origin and the order, and return the map.

        Parameters
        ----------
        kernel : MixtureKernel
            Its components have the same covariance.
        tolerance : float > 0, default=0.01
            ζ, the largest error of a distance in the ball. It chooses the order, unless `order` is
            given.
        points : array-like of shape (n_samples, n_features), default=None
            Points that the ball holds. By default 2,000 points drawn from the stationary density.

        Raises
        ------
        ValueError, TypeError
            Covariances that differ; a tolerance that is not positive; points that are not a finite
            table (n, m) of the features of the mixture.
        """
        if np.ptp(kernel.covariances, axis=0).max() > _EQUAL_COVARIANCES * kernel.epsilon:
            raise ValueError(
                "The covariances of the components differ, but a Taylor map needs them equal; pass "
                "a mixture with covariance_type='tied', or use CholeskyMap or HermiteMap."
            )
        return super().fit(kernel, tolerance, points)

    @property
    def n_kronecker(self) -> int:
        """Number of coordinates of the Kronecker basis, 1 + m + ... + m^l."""
        return sum(self.kernel.n_features**i for i in range(self.order_ + 1))

    @cached_property
    def reach_(self) -> Array:
        """The largest |ĉ_j(x)|² over the ball, s_j, (K,): (5.11)."""
        ends = zip(self._slopes, self._offsets, strict=True)
        return np.array([largest_in_ball(A, b, self.radius_).value / 2 for A, b in ends])

    @property
    def _log_norm(self) -> float:
        """log |g|² = log (4π)^(-m/2), in units of M."""
        return -0.5 * self.kernel.n_features * math.log(4 * math.pi)

    def _log_tails(self, order: int) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(gammainc(order + 1, self.reach_)) + self._log_norm  # type: ignore[no-any-return]

    def _missed(self, x: Array) -> Array:
        """Return peak Σ_j w_j(x) √P(l + 1, |ĉ_j(x)|²), which is exact for one component."""
        tails = gammainc(self.order_ + 1, np.square(self._hatted(x)).sum(axis=2))
        w = self.kernel.components.responsibilities(x)
        return self._peak * (w * np.sqrt(tails)).sum(axis=1)  # type: ignore[no-any-return]

    @property
    def _peak(self) -> float:
        """(2π)^(-m/4) |2D|^(-1/4)."""
        return math.exp(self._log_norm / 2 + self._log_scale)

    def _hatted(self, x: Array) -> Array:
        """Return ĉ_j(x), (n, K, m)."""
        return (self._means(x) - self._origin) @ self._to_unit / math.sqrt(2)  # type: ignore[no-any-return]

    def scaled_centres(self, x: Array) -> tuple[Array, Array]:
        """Return ĉ_j(x), (n, K, m), and peak w_j(x) exp(-|ĉ_j|²/2), (n, K).

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table (n, m) of the features of the mixture.
        """
        x = self._checked(x)
        c, weights = self._hatted(x), self.kernel.components.responsibilities(x)
        return c, self._peak * weights * np.exp(-0.5 * np.square(c).sum(axis=2))

    def printed_bounds(self, order: int, nu_min: float | None = None) -> PrintedBounds:
        """Return G_b1, G_b2 and η of the same ball for the orders 0, ..., l, (5.8)-(5.18).

        In print η is divided by ν_min², with a proof that uses |h| <= 1 and so fails for densities
        above 1. Without `nu_min` it is not divided, and holds, since |h| <= ν.

        Parameters
        ----------
        order : int
            l.
        nu_min : float, default=None
            The least density ν_min.

        Raises
        ------
        NotFittedError, ValueError
            Before `fit`; an order below 0, or a ν_min that is not positive.
        """
        self._check_fitted()
        order = check_number(order, "order", low=0, integer=True)
        if nu_min is not None:
            nu_min = check_number(nu_min, "nu_min", low=0, open_low=True)
        s = self.reach_
        with np.errstate(divide="ignore", over="ignore"):
            G_b1 = float(np.sum(np.exp((order + 1) * np.log(s) - gammaln(order + 2))))
        G_b2 = float(np.sum(gammainc(order + 1, s)))
        eta = self._peak**2 * min(G_b1, G_b2)
        return PrintedBounds(G_b1, G_b2, eta if nu_min is None else eta / nu_min**2)

    def l_max(self, zeta: float, nu_min: float | None = None) -> int:
        """Return the smallest order l >= 1 with η <= ζ² / 4, (5.19) and (5.20).

        Parameters
        ----------
        zeta : float > 0
            ζ, the largest error of a distance.
        nu_min : float, default=None
            As in `printed_bounds`.

        Raises
        ------
        NotFittedError, ValueError
            Before `fit`; a ζ or ν_min that is not positive.
        """
        self._check_fitted()
        zeta = check_number(zeta, "zeta", low=0, open_low=True)
        return 1 + first_order(lambda n: self.printed_bounds(n + 1, nu_min).eta <= zeta**2 / 4)
