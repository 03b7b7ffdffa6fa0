"""Feature maps: coordinates whose distances are diffusion distances, up to a stated error."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from heatsketch._array import filled
from heatsketch._checks import check_number
from heatsketch._typing import Array
from heatsketch.mixture.kernel import MixtureKernel
from heatsketch.spectral.eigenpairs import fix_signs


class FeatureMap(ABC):
    """Abstract base: x -> coordinates y(x) with | |y(x) - y(z)| - d(x, z) | <= error_bound.

    All maps are orthogonal projections of the densities p(x, ·) in L²(dr), less a common point.
    So distances are never too long, and the error of each point is known exactly (`residual`),
    inside the stated domain and outside.

    Attributes
    ----------
    kernel : MixtureKernel
    n_features : int
        Number of coordinates.
    error_bound : float
        Of | |y(x) - y(z)| - d(x, z) |, for all x and z in the domain.
    domain : str
        The domain in words.
    """

    kernel: MixtureKernel
    error_bound: float
    domain: str
    _mean: Array  # (r,)
    _rotation: Array  # (r, r)

    def fit(
        self,
        mixture: Any,
        epsilon: float | None = None,
        tolerance: float = 0.01,
        points: Any = None,
    ) -> Self:
        """Choose the coordinates, and return the map.

        Parameters
        ----------
        mixture : MixtureKernel, or a fitted GaussianMixture or BayesianGaussianMixture
        epsilon : float, optional
            ε of the kernel, if `mixture` is not a MixtureKernel.
        tolerance : float > 0, default 0.01
            Largest difference between a distance of coordinates and the diffusion distance, in
            units of the latter (√density: see `kernel.squared_distance`).
        points : array (n, m), optional
            The data, from which the domain and the order of the coordinates follow. By default
            2,000 points drawn from the stationary density.

        Raises
        ------
        ValueError, TypeError
            No ε, or another one than that of the kernel; a tolerance that is not positive, or would
            take more coordinates than `max_features`; points that are not a finite table (n, m) of
            the features of the mixture.
        """
        self.__dict__.pop("_rotation", None)  # of an earlier fit
        self.kernel = _as_kernel(mixture, epsilon)
        tolerance = check_number(tolerance, "tolerance", low=0, open_low=True)
        if points is None:
            x = draw(self.kernel, 2000, 0)
        else:
            x = self.kernel.components.checked(points, "points")
        self._choose(x, tolerance)
        self._order(x)
        return self

    @abstractmethod
    def _choose(self, x: Array, tolerance: float) -> None:
        """Choose the raw coordinates for the points x; set `error_bound` and `domain`."""

    @abstractmethod
    def _raw(self, x: Array) -> Array:
        """Return the raw coordinates (n, r), in units of √density."""

    @property
    def n_features(self) -> int:
        """Number of coordinates."""
        self._check_fitted()
        return self._rotation.shape[1]

    def transform(self, x: Any) -> Array:
        """Map points (n, m) to their coordinates (n, n_features).

        Each row depends on its point alone. The first coordinates have the largest share of the
        distances between the points of the fit.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table (n, m) of the features of the mixture.
        """
        return self._by_tiles(self._map, self._checked(x))

    def _check_fitted(self) -> None:
        if "_rotation" not in self.__dict__:
            raise NotFittedError(f"This {type(self).__name__} is not fitted; call fit first.")

    def _checked(self, x: Any) -> Array:
        self._check_fitted()
        return self.kernel.components.checked(x)

    def _map(self, x: Array) -> Array:
        return (self._raw(x) - self._mean) @ self._rotation

    def residual(self, x: Any) -> Array:
        """Return |p(x, ·) - its projection|, (n,), an error bound for each point.

        |d(x, z) - |y(x) - y(z)|| <= residual(x) + residual(z).

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table (n, m) of the features of the mixture.
        """
        return self._residual(self._checked(x))

    @abstractmethod
    def _residual(self, x: Array) -> Array:
        """Return the residuals (n,) of checked points."""

    def _order(self, x: Array) -> None:
        """Rotate the coordinates to the principal axes of the points."""
        raw = self._by_tiles(self._raw, x)
        self._mean = raw.mean(axis=0)
        if not raw.shape[1]:  # the points coincide
            self._rotation = np.empty((0, 0))
            return
        _, _, axes = np.linalg.svd(raw - self._mean, full_matrices=len(raw) < raw.shape[1])
        self._rotation = fix_signs(axes.T)

    @property
    def _tile(self) -> int:
        """Rows of a tile."""
        return 1024

    def _by_tiles(self, work: Callable[[Array], Array], x: Array) -> Array:
        """Return work(x) (n, r), made tile by tile in parallel."""
        shape = len(x), work(x[:1]).shape[1]
        return filled(lambda rows: work(x[rows]), shape, self._tile)


def draw(kernel: MixtureKernel, n: int, seed: Any) -> Array:
    """Draw points (n, m) from the stationary density ν."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, kernel.weights)
    drawn = []
    for mean, covariance, count in zip(kernel.means, kernel.covariances, counts, strict=True):
        S = covariance + kernel.epsilon / 2 * np.eye(kernel.n_features)
        noise = rng.standard_normal((count, kernel.n_features))
        drawn.append(mean + noise @ np.linalg.cholesky(S).T)
    return rng.permutation(np.concatenate(drawn))


def _as_kernel(mixture: Any, epsilon: float | None) -> MixtureKernel:
    if not isinstance(mixture, MixtureKernel):
        if epsilon is None:
            raise ValueError("epsilon is missing; call fit(mixture, epsilon, ...).")
        return MixtureKernel.from_sklearn(mixture, epsilon)
    if epsilon is not None and epsilon != mixture.epsilon:
        raise ValueError(
            f"epsilon={epsilon} differs from epsilon={mixture.epsilon} of the kernel; leave it out."
        )
    return mixture
