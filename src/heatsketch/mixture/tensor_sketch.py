"""Random projections of the Kronecker features of a Taylor map."""

import math
from typing import Any, Self

import numpy as np
from sklearn.kernel_approximation import PolynomialCountSketch

from heatsketch._random import seed_entropy
from heatsketch._state import at_once
from heatsketch._typing import Array
from heatsketch._validation import check_number
from heatsketch.mixture.feature_map import FeatureMap
from heatsketch.mixture.mixture_kernel import MixtureKernel
from heatsketch.mixture.taylor_map import TaylorMap


class TensorSketch(FeatureMap):
    """Random projections of the Kronecker features of a Taylor map, never formed.

    Order i of the Taylor map consists of the m^i entries of ĉ ⊗ ... ⊗ ĉ / √i! [1]_. A tensor sketch
    (Pham and Pagh) [2]_ projects them to k coordinates at a cost of k log k for each factor; the
    projections of all orders are added. So the number of coordinates does not depend on the order.
    Squared distances are right on average, with a relative standard deviation of at most
    √((2 + 3^l) / k) [3]_; the factor 3^l counts only as far as order l counts in the distance.

    When to use it: if C(m + l, l) coordinates are too many, and errors of √(2/k) or more are
    acceptable. When not: `CholeskyMap` needs fewer coordinates and has a certificate.

    Parameters
    ----------
    n_components : int, default=256
        Number k of coordinates.
    order : int, default=None
        As in `TaylorMap`.
    radius : float, default=None
        As in `TaylorMap`.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the projections.

    Attributes
    ----------
    taylor_ : TaylorMap
        The map whose coordinates are projected: its order, `n_features` and `n_kronecker`, and its
        bounds on what truncation leaves out.
    relative_error_ : float
        √((2 + 3^l) / k), a bound on the root mean square, over seeds, of the relative error of a
        squared distance of f_l.

    See Also
    --------
    TaylorMap : Coordinates by a Taylor series, for one covariance.
    mixture.CholeskyMap : Coordinates whose distances approximate those of a mixture kernel.

    Notes
    -----
    The cost of a point is K l² (m + k log k) for K components.

    References
    ----------
    .. [1] *Diffusion representation*, on the measure-based Gaussian correlation (MGC) kernel, §7.1.
    .. [2] N. Pham and R. Pagh, "Fast and scalable polynomial kernels via explicit feature maps",
       KDD (2013).
    .. [3] H. Avron, H. L. Nguyen and D. P. Woodruff, "Subspace embeddings for the polynomial
       kernel", NeurIPS (2014), Lemma 9.

    Examples
    --------
    >>> import heatsketch as hs
    >>> kernel = hs.MixtureKernel([1.0], [[0.0] * 6], [1.0], epsilon=4.0)
    >>> features = hs.mixture.TensorSketch(64, order=4, random_state=0).fit(kernel)
    >>> features.transform([[0.0] * 6, [0.5] * 6]).shape, features.taylor_.n_kronecker
    ((2, 64), 1555)
    """

    def __init__(
        self,
        n_components: int = 256,
        *,
        order: int | None = None,
        radius: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = check_number(n_components, "n_components", low=1, integer=True)
        self.order, self.radius, self.random_state = order, radius, random_state

    @at_once
    def fit(self, kernel: MixtureKernel, tolerance: float = 0.01, points: Any = None) -> Self:
        """Choose the order as `TaylorMap.fit`, and draw the projections.

        Parameters
        ----------
        kernel : MixtureKernel
            Its components have the same covariance.
        tolerance : float > 0, default=0.01
            Largest error of a distance by truncation; the random error comes on top.
        points : array-like of shape (n_samples, n_features), default=None
            Points that the ball holds. By default 2,000 points drawn from the stationary density.

        Raises
        ------
        ValueError, TypeError
            As `TaylorMap.fit`.
        """
        unlimited = np.iinfo(np.int64).max
        taylor = TaylorMap(self.order, radius=self.radius, max_features=unlimited)
        self.kernel, self.taylor_ = kernel, taylor.fit(kernel, tolerance, points)
        rng = np.random.default_rng(seed_entropy(self.random_state))
        k, zero = self.n_components, np.zeros((1, kernel.n_features))
        self._constant = np.zeros(k)  # the projection of order 0
        self._constant[rng.integers(k)] = rng.choice([-1.0, 1.0])
        self._sketches = [
            PolynomialCountSketch(
                degree=i, coef0=0, n_components=k, random_state=int(rng.integers(2**31))
            ).fit(zero)
            for i in range(1, taylor.order_ + 1)
        ]
        self.relative_error_ = math.sqrt((2 + 3**taylor.order_) / k)
        return self

    @property
    def n_features(self) -> int:
        """Number of coordinates, `n_components`."""
        return self.n_components

    def _coordinates(self, x: Array) -> Array:
        centres, sizes = self.taylor_.scaled_centres(x)
        y = sizes.sum(axis=1)[:, None] * self._constant
        for i, sketch in enumerate(self._sketches, start=1):
            for j in range(sizes.shape[1]):
                part = sketch.transform(centres[:, j])
                y += (sizes[:, j] / math.sqrt(math.factorial(i)))[:, None] * part
        return y
