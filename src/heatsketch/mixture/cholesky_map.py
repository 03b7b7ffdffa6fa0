"""The compact feature map of a mixture kernel, and the bases of feature maps."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.exceptions import NotFittedError

from heatsketch._arrays import Array
from heatsketch._checks import check_number
from heatsketch._messages import ConvergenceWarning, logger, warn
from heatsketch._state import at_once
from heatsketch._threads import filled, row_tiles
from heatsketch.mixture.components import pivoted_cholesky
from heatsketch.mixture.mixture_kernel import MixtureKernel
from heatsketch.mixture.overlaps import Mixtures
from heatsketch.mixture.transition_distances import between, changes, projection_gradients
from heatsketch.spectral.eigen import fix_signs


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


MAX_FIRST_CANDIDATES = 4000  # points among which the first pivots are chosen
_ADDED_CANDIDATES = 200  # further points added at a time, if the pivots are not enough for them
_SLOPE_NUMBERS = 2**21  # of derivatives computed at a time: 16 MB
_DRAWN_POINTS = 2000  # if no points are given
_ROUNDING_FRACTION = 1e-11  # of the largest squared distance; smaller residuals are rounding


class CholeskyMap(SmoothMap):
    """Coordinates y(x) with | |y(x) - y(z)| - d(x, z) | <= error_bound at the points of the fit.

    The map is the orthogonal projection of the densities p(x, ·) [1]_ in L²(dr) on those at a few
    pivots, so distances are never too long. With Q(x, z) = ⟨p_x - p_o, p_z - p_o⟩, which follows
    from squared distances, the point with the largest residual becomes the next pivot, until no
    residual of a given point exceeds half the tolerance (greedy Gram-Schmidt, or Nyström).
    Residuals are exact, so the tolerance holds for all given points; `residual` returns that of any
    point, |p(x, ·) - its projection|. Coordinates are ordered by their part in the distances
    between the points of the fit, largest first. The model consists of the mixture and the pivots.

    Parameters
    ----------
    max_features : int, default=1000
        Largest number of coordinates.

    Attributes
    ----------
    kernel : MixtureKernel
        The kernel of the fit.
    error_bound : float
        Bound on | |y(x) - y(z)| - d(x, z) | for all points x and z of the fit.
    pivots : ndarray of shape (n_pivots, n_features)
        Points whose transition densities span the coordinates.
    origin : ndarray of shape (1, n_features)
        The point o.

    Warns
    -----
    ConvergenceWarning
        The tolerance needs more than `max_features` pivots, or is below the rounding of
        distances; `error_bound` is the tolerance reached.

    See Also
    --------
    MixtureDiffusion : Embed data by the diffusion of a Gaussian mixture.
    MixtureKernel : The MGC kernel of a Gaussian mixture, in closed form.

    Notes
    -----
    The cost is r distances for every point, twice in `fit`, for r coordinates; memory is 8 n r
    bytes for the n = 4,000 candidates.

    References
    ----------
    .. [1] *Diffusion representation*, on the measure-based Gaussian correlation (MGC) kernel.

    Examples
    --------
    >>> import heatsketch as hs
    >>> kernel = hs.MixtureKernel([0.5, 0.5], [[0.0], [2.0]], [1.0, 0.25], epsilon=1.0)
    >>> features = hs.mixture.CholeskyMap().fit(kernel, tolerance=1e-3)
    >>> features.n_features, bool(features.error_bound <= 1e-3)
    (11, True)
    """

    def __init__(self, max_features: int = 1000) -> None:
        self.max_features = check_number(max_features, "max_features", low=1, integer=True)

    @at_once
    def fit(self, kernel: MixtureKernel, tolerance: float = 0.01, points: Any = None) -> Self:
        """Choose the coordinates, and return the map.

        Parameters
        ----------
        kernel : MixtureKernel
        tolerance : float > 0, default=0.01
            Largest difference between a distance of coordinates and the diffusion distance, in
            units of the latter (√density: see `kernel.squared_distance`).
        points : array-like of shape (n_samples, n_features), default=None
            The points for which the tolerance holds. By default 2,000 points drawn from the
            stationary density.

        Raises
        ------
        ValueError, TypeError
            A tolerance that is not positive; points that are not a finite table (n, m) of the
            features of the mixture.
        """
        self.kernel = kernel
        tolerance = check_number(tolerance, "tolerance", low=0, open_low=True)
        if points is None:
            points = draw(kernel, _DRAWN_POINTS, 0)
        x = kernel.components.checked(points, "points")
        self._choose(x, tolerance)
        c, count = kernel.components, len(self.pivots)
        coordinates = c.by_tiles(lambda x: self._projections(x)[:, 1:], x, count)
        self._mean = coordinates.mean(axis=0)
        _, _, axes = np.linalg.svd(coordinates - self._mean, full_matrices=len(x) < count)
        # Rotate to principal axes of the points, unless they coincide.
        self._rotation = fix_signs(axes.T) if axes.size else axes
        return self

    @property
    def n_features(self) -> int:
        """Number of coordinates; an AttributeError before `fit`."""
        return self._rotation.shape[1]

    def _coordinates(self, x: Array) -> Array:
        """By their part in the distances between the points of the fit, largest first."""
        return (self._projections(x)[:, 1:] - self._mean) @ self._rotation  # type: ignore[no-any-return]

    def _derivatives(self, x: Array) -> Array:
        c, m = self.kernel.components, self.kernel.n_features
        origin, w, dw, dc = self._changes
        slopes = np.empty((len(x), self.n_features, m))
        for rows in row_tiles(len(x), max(1, _SLOPE_NUMBERS // max(1, dc.size))):
            slopes[rows] = self._solved(projection_gradients(c, x[rows], origin, w, dw, dc))
        return slopes / c.unit  # type: ignore[no-any-return]

    def _solved(self, inner: Array) -> Array:
        """Return coordinates, or their derivatives, (n, k, m) of inner products with pivots."""
        n, r, m = inner.shape
        y = inner.transpose(1, 0, 2).reshape(r, n * m)
        if y.size:
            y = solve_triangular(self._factor, y, lower=True, check_finite=False)
        y = self._rotation.T @ y * np.sqrt(self.kernel.components.density_unit)
        return y.reshape(self.n_features, n, m).transpose(1, 0, 2)  # type: ignore[no-any-return]

    @cached_property
    def _changes(self) -> tuple[Mixtures, Array, Array, Array]:
        """Origin, and the weights of the pivots with their differences from it, and of means."""
        c, ends = self.kernel.components, self._ends[0]
        origin, pivots = ends.take([0]), ends.take(slice(1, None))
        return origin, pivots.weights, *changes(c, pivots, origin)

    def _missed(self, x: Array) -> Array:
        return np.sqrt(self._squared_residuals(x))  # type: ignore[no-any-return]

    def _choose(self, x: Array, tolerance: float) -> None:
        rng = np.random.default_rng(0)
        chosen = np.sort(rng.permutation(len(x))[:MAX_FIRST_CANDIDATES])
        c = self.kernel.components
        unit = c.density_unit
        limit = (tolerance / 2) ** 2 / unit
        # The origin is the most likely point: most points are near it, so inner products cancel
        # least.
        best = chosen[np.argmax(self.kernel.log_stationary(x[chosen]))]
        self.origin = x[best][None]
        others = np.setdiff1d(np.arange(len(x)), chosen)
        while True:
            missing_chosen = self._take_pivots(x[chosen], limit)
            missing = c.by_tiles(self._squared_residuals, x[others]) / unit
            worst = np.argsort(-missing, kind="stable")[:_ADDED_CANDIDATES]
            worst = worst[missing[worst] > limit]
            if not len(worst) or missing_chosen > limit:
                break
            logger.info("%d other points exceed the tolerance; choosing pivots again", len(worst))
            chosen, others = np.append(chosen, others[worst]), np.delete(others, worst)
        left = max(missing_chosen, float(missing.max(initial=0.0)))
        self.error_bound = float(2 * np.sqrt(left * unit))
        if left > limit:
            warn(
                ConvergenceWarning,
                f"tolerance={tolerance:.3g} is not reached with {len(self.pivots)} of max_features="
                f"{self.max_features} coordinates: distances have errors of up to "
                f"{self.error_bound:.3g}; pass a larger tolerance, max_features or epsilon, or "
                "drop outliers.",
            )

    def _take_pivots(self, x: Array, limit: float) -> float:
        """Take pivots from the points x until no squared residual is above the limit.

        Return the largest squared residual that is left.
        """
        c = self.kernel.components
        p = c.transitions(x)

        def distances_to(ends: Mixtures) -> Array:
            factors, shape = c.overlaps.factors(ends), (len(x), len(ends.norms))
            return filled(lambda rows: between(c, p.take(rows), ends, factors), shape)

        from_origin = distances_to(c.transitions(self.origin))[:, 0]

        def inner_products(pivots: Array) -> Array:
            d2 = distances_to(p.take(pivots))
            return (from_origin[:, None] + from_origin[pivots] - d2) / 2

        limit = max(limit, _ROUNDING_FRACTION * from_origin.max())
        most = min(self.max_features, len(x))
        L, pivots, missing = pivoted_cholesky(inner_products, from_origin, limit, most)
        self.pivots = x[pivots]
        self._factor = np.tril(L[pivots])  # the rest is rounding, and would make files larger
        self.__dict__.pop("_ends", None)  # of earlier pivots
        return float(missing.max())

    @cached_property
    def _ends(self) -> tuple[Mixtures, Array | None, Array]:
        """Origin and pivots with their factors, and squared distances between them, (r,)."""
        c = self.kernel.components
        ends = c.transitions(np.concatenate([self.origin, self.pivots]))
        factors = c.overlaps.factors(ends)
        return ends, factors, between(c, ends.take([0]), ends, factors)[0, 1:]

    def _projections(self, x: Array) -> Array:
        """Return |p_x - p_o|² and the coordinates of p_x - p_o, (n, 1 + r)."""
        c, (ends, factors, from_origin) = self.kernel.components, self._ends
        d2 = between(c, c.transitions(x), ends, factors)
        inner = (d2[:, :1] + from_origin - d2[:, 1:]) / 2
        if inner.size:
            d2[:, 1:] = solve_triangular(self._factor, inner.T, lower=True, check_finite=False).T
        d2[:, 0] *= c.density_unit
        d2[:, 1:] *= np.sqrt(c.density_unit)
        return d2

    def _squared_residuals(self, x: Array) -> Array:
        """Return |p_x - p_o|² minus the squares of the coordinates, (n,)."""
        projections = self._projections(x)
        missing = projections[:, 0] - np.square(projections[:, 1:]).sum(axis=1)
        return np.maximum(missing, 0.0)  # type: ignore[no-any-return]


def draw(kernel: MixtureKernel, n: int, seed: Any, noise: float = 1.0) -> Array:
    """Draw points (n, m) from the density ν: the mixture, and noise of this variance in ε/2."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, kernel.weights)
    drawn = []
    for mean, covariance, count in zip(kernel.means, kernel.covariances, counts, strict=True):
        S = covariance + noise * kernel.epsilon / 2 * np.eye(kernel.n_features)
        normal = rng.standard_normal((count, kernel.n_features))
        drawn.append(mean + normal @ np.linalg.cholesky(S).T)
    return rng.permutation(np.concatenate(drawn))
