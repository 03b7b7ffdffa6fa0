"""Abstract bases of maps from points to coordinates, whose distances are those of a mixture."""

from abc import ABC, abstractmethod
from typing import Any

from sklearn.exceptions import NotFittedError

from heatsketch._typing import Array
from heatsketch.mixture.mixture_kernel import MixtureKernel


class FeatureMap(ABC):
    """Abstract base: coordinates y(x) whose distances are about the diffusion distances."""

    kernel: MixtureKernel  # of the fit, set by it

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of coordinates; an AttributeError before `fit`."""

    @abstractmethod
    def _coordinates(self, x: Array) -> Array:
        """Return the coordinates of a tile of points, (n, n_features)."""

    def transform(self, x: Any) -> Array:
        """Map points to their coordinates, each point by itself.

        Parameters
        ----------
        x : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_samples, n_map_coordinates)
            Coordinates of the points.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table (n, m) of the features of the mixture.
        """
        x = self._checked(x)
        return self.kernel.components.by_tiles(self._coordinates, x, self.n_features)

    def _checked(self, x: Any) -> Array:
        self._check_fitted()
        return self.kernel.components.checked(x)

    def _check_fitted(self) -> None:
        if "kernel" not in vars(self):
            raise NotFittedError(f"This {type(self).__name__} is not fitted; call fit first.")


class SmoothMap(FeatureMap):
    """Abstract base: coordinates with derivatives in closed form, and a bound on what they miss."""

    @abstractmethod
    def _derivatives(self, x: Array) -> Array:
        """Return the derivatives at a tile of points, (n, n_features, m)."""

    @abstractmethod
    def _missed(self, x: Array) -> Array:
        """Return bounds on what the coordinates of a tile of points miss, (n,)."""

    def gradient(self, x: Any) -> Array:
        """Return the derivatives of the coordinates by the features, in units of the data.

        Parameters
        ----------
        x : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_samples, n_map_coordinates, n_features)
            ∂y(x) / ∂x.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            As `transform`.
        """
        x, c = self._checked(x), self.kernel.components
        return c.by_tiles(self._derivatives, x, self.n_features, c.n_features)

    def residual(self, x: Any) -> Array:
        """Return a bound on the part of p(x, ·) that the coordinates miss, for any points.

        |d(x, z) - |y(x) - y(z)|| <= residual(x) + residual(z).

        Parameters
        ----------
        x : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_samples,)
            Error bound of each point.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            As `transform`.
        """
        x = self._checked(x)
        return self.kernel.components.by_tiles(self._missed, x)
