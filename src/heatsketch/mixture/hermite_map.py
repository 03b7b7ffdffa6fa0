"""Coordinates by Hermite functions, for mixtures of any covariances."""

import math
from functools import cached_property

import numpy as np

from heatsketch._typing import Array
from heatsketch.mixture.series_map import SeriesMap
from heatsketch.mixture.trust_region import largest_in_ball

_SQUARED_RATIOS = np.geomspace(1.001, 1e3, 200)  # r² tried in the bound
_LARGEST_RATIO = 0.999  # of r² |B|: the series diverges at 1
_ROUNDING = 1e-13  # of |p|², which is the error of a difference of two such numbers


class HermiteMap(SeriesMap):
    """Coordinates by Hermite functions of a common scale up to an order, for any covariances.

    The Taylor map [1]_ needs one covariance. All eigenvalues of the D_j lie between ε/2 and ε, so a
    series of Hermite functions whose scale is the mean of the D_j converges fast for any
    covariances; where they agree it is the Taylor map. The bound is rigorous, but not sharp: for
    every r > 1 with r² |B| < 1 the tail of a component is at most r^(-2(l+1)) Σ_α r^(2|α|) f_α², a
    Gaussian integral in closed form whose maximum over the ball is again a trust-region problem.

    Parameters
    ----------
    order : int, default=None
        l. By default the smallest order whose bound meets the tolerance.
    radius : float, default=None
        Radius of the ball, about the middle of the points. By default the ball contains them.
    centred : bool, default=True
        False: the ball and the series are about the origin of the coordinates.
    max_features : int, default=10000
        Largest number of coordinates that a tolerance may choose.

    Attributes
    ----------
    kernel : MixtureKernel
        The kernel of the fit.
    error_bound : float
        Bound on the error of the distances of all x and z in the ball.
    centre_ : ndarray of shape (n_features,)
        Middle of the ball.
    radius_ : float
        Its radius.

    See Also
    --------
    TaylorMap : Coordinates by a Taylor series, for one covariance.
    mixture.CholeskyMap : Coordinates whose distances approximate those of a mixture kernel.

    Notes
    -----
    The cost of a point is K m C(m + l, l) products for K components.

    References
    ----------
    .. [1] *Diffusion representation*, on the measure-based Gaussian correlation (MGC) kernel,
       equation (4.10).

    Examples
    --------
    >>> import heatsketch as hs
    >>> kernel = hs.MixtureKernel([0.5, 0.5], [[0.0], [2.0]], [1.0, 0.25], epsilon=1.0)
    >>> features = hs.mixture.HermiteMap().fit(kernel, points=[[-1.0], [3.0]])
    >>> bool(features.error_bound <= 0.01)
    True
    """

    def _missed(self, x: Array) -> Array:
        """Return a difference of squared norms, up to rounding from above."""
        c = self.kernel.components
        norms = c.transitions(x).norms * c.density_unit
        missing = np.maximum(norms - np.square(self._coordinates(x)).sum(axis=1), 0.0)
        return np.sqrt(missing + _ROUNDING * norms)  # type: ignore[no-any-return]

    def _log_tails(self, order: int) -> Array:
        return (self._log_sums - (order + 1) * np.log(_SQUARED_RATIOS)).min(axis=1)  # type: ignore[no-any-return]

    @cached_property
    def _log_sums(self) -> Array:
        """The largest log Σ_α r^(2|α|) f_α² in the ball, (K, number of r²); ∞ if it diverges."""
        components = zip(
            *np.linalg.eigh(self._covariances), self._slopes, self._offsets, strict=True
        )
        return np.array([[self._log_sum(r2, *c) for r2 in _SQUARED_RATIOS] for c in components])

    def _log_sum(self, r2: float, d: Array, axes: Array, A: Array, b: Array) -> float:
        B = (d - 1) / (d + 1)
        if r2 * np.abs(B).max() > _LARGEST_RATIO:
            return np.inf
        root = (axes * np.sqrt((r2 - 1) / (1 + d - r2 * (d - 1)))).T
        constant = -0.5 * len(d) * math.log(math.pi) - np.log1p(d).sum()
        constant -= 0.5 * np.log1p(-((r2 * B) ** 2)).sum()
        return float(constant + largest_in_ball(root @ A, root @ b, self.radius_).value)
