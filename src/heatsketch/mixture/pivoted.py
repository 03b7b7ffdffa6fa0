"""The compact feature map: pivoted Cholesky on the inner products of transition densities."""

import warnings
from functools import cached_property
from typing import Self

import numpy as np
from scipy.linalg import solve_triangular

from heatsketch._array import filled
from heatsketch._checks import ConvergenceWarning, check_number, logger
from heatsketch._typing import Array
from heatsketch.mixture.cholesky import pivoted_cholesky
from heatsketch.mixture.distances import Anchors, between
from heatsketch.mixture.kernel import MixtureKernel
from heatsketch.mixture.maps import FeatureMap

MAX_FIRST_CANDIDATES = 4000  # points among which the first pivots are chosen
_ADDED_CANDIDATES = 200  # other points added at a time, if the pivots do not suffice for them
_STORED_ARRAYS = ("origin", "pivots", "_factor", "_mean", "_rotation")  # of a map in a file
_ROUNDING_SHARE = 1e-11  # of the largest squared distance; smaller residuals are rounding


class CholeskyMap(FeatureMap):
    """The compact map: certified projections on the transition densities at a few pivots.

    With Q(x, z) = ⟨p_x - p_o, p_z - p_o⟩, which follows from squared distances, the point with the
    largest residual becomes the next pivot, until no residual of a given point exceeds half the
    tolerance: greedy Gram-Schmidt, or Nyström. Residuals are known exactly, so the tolerance holds
    for all given points, and `residual` returns that of any other point. The model consists of the
    mixture and the pivots.

    Parameters
    ----------
    max_features : int, default 1,000
        Largest number of coordinates.

    Attributes
    ----------
    pivots : array (r, m)
        Points whose transition densities span the coordinates.
    origin : array (1, m)
        The point o.

    Warns
    -----
    ConvergenceWarning
        The tolerance needs more than `max_features` pivots, or is below the rounding of
        distances; `error_bound` is the tolerance that was reached.

    Notes
    -----
    Cost: r distances for every point, twice in `fit`; memory 8 n r bytes for the 4,000 candidates.

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

    @classmethod
    def from_arrays(cls, kernel: MixtureKernel, arrays: dict[str, Array], domain: str) -> Self:
        """Restore a map from its kernel and the arrays that `arrays` returned.

        Raises
        ------
        KeyError
            An array is missing.
        """
        made = cls()
        made.kernel, made.domain = kernel, domain
        for name in _STORED_ARRAYS:
            setattr(made, name, arrays[name.lstrip("_")])
        made.error_bound = float(arrays["error_bound"])
        return made

    @property
    def arrays(self) -> dict[str, Array]:
        """All arrays of the map except those of its kernel: about r (m + 2 r) numbers."""
        self._check_fitted()
        arrays = {name.lstrip("_"): getattr(self, name) for name in _STORED_ARRAYS}
        return arrays | {"error_bound": np.array(self.error_bound)}

    def _choose(self, x: Array, tolerance: float) -> None:
        rng = np.random.default_rng(0)
        chosen = np.sort(rng.permutation(len(x))[:MAX_FIRST_CANDIDATES])
        unit = self.kernel.components.density_unit
        limit = (tolerance / 2) ** 2 / unit
        # The most likely point: most points are near it, and their inner products cancel least.
        best = chosen[np.argmax(self.kernel.log_stationary(x[chosen]))]
        self.origin = x[best][None]
        others = np.setdiff1d(np.arange(len(x)), chosen)
        while True:
            self._take_pivots(x[chosen], limit)
            missing = np.zeros(0)
            if len(others):
                missing = self._residual(x[others]) ** 2 / unit
            worst = np.argsort(-missing, kind="stable")[:_ADDED_CANDIDATES]
            worst = worst[missing[worst] > limit]
            if not len(worst) or self._missing > limit:
                break
            logger.info("%d other points exceed the tolerance; choosing pivots again", len(worst))
            chosen, others = np.append(chosen, others[worst]), np.delete(others, worst)
        left = max(self._missing, float(missing.max(initial=0.0)))
        self.error_bound = float(2 * np.sqrt(left * unit))
        self.domain = f"the {len(x):,} points of the fit"
        if left > limit:
            self._warn(tolerance)

    def _warn(self, tolerance: float) -> None:
        if len(self.pivots) == self.max_features:
            limit = f"max_features={self.max_features} coordinates"
            do = "Pass a larger max_features, epsilon or tolerance."
        else:
            limit, do = "the digits of float64", "Pass a larger tolerance."
        warnings.warn(
            f"tolerance={tolerance:.3g} is not reached with {limit}: distances have errors of up "
            f"to {self.error_bound:.3g}. {do}",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _take_pivots(self, x: Array, limit: float) -> None:
        """Take pivots from the points x until no squared residual exceeds the limit."""
        anchors = self._anchors_of(x)
        from_origin = self._distances_to(self._anchors_of(self.origin), anchors)[:, 0]

        def inner_products(pivots: Array) -> Array:
            d2 = self._distances_to(anchors.take(pivots), anchors)
            return (from_origin[:, None] + from_origin[pivots] - d2) / 2

        limit = max(limit, _ROUNDING_SHARE * from_origin.max())
        most = min(self.max_features, len(x))
        L, pivots, missing = pivoted_cholesky(inner_products, from_origin, limit, most)
        self._missing = float(missing.max())
        self.pivots = x[pivots]
        self._factor = np.tril(L[pivots])  # the rest is rounding, and would take room in a file
        self.__dict__.pop("_ends", None)  # of earlier pivots

    def _anchors_of(self, x: Array) -> Anchors:
        return Anchors.of(self.kernel.components, x)

    def _distances_to(self, ends: Anchors, points: Anchors) -> Array:
        """Return the squared distances (n, r) of points to ends, tile by tile in parallel."""
        c = self.kernel.components
        ends, shape = ends.prepared(c), (len(points.norms), len(ends.norms))
        return filled(lambda rows: between(c, points.take(rows), ends), shape, self._tile)

    @cached_property
    def _ends(self) -> tuple[Anchors, Array]:
        """Origin and pivots, prepared for distances to them; squared distances between them."""
        c = self.kernel.components
        ends = self._anchors_of(np.concatenate([self.origin, self.pivots])).prepared(c)
        return ends, between(c, self._anchors_of(self.origin), ends)[0, 1:]

    def _projections(self, x: Array) -> Array:
        """Return |p_x - p_o|² and the coordinates of p_x - p_o, (n, 1 + r), without the unit."""
        ends, from_origin = self._ends
        d2 = between(self.kernel.components, self._anchors_of(x), ends)
        inner = (d2[:, :1] + from_origin - d2[:, 1:]) / 2
        if inner.size:
            d2[:, 1:] = solve_triangular(self._factor, inner.T, lower=True, check_finite=False).T
        return d2

    def _raw(self, x: Array) -> Array:
        return self._projections(x)[:, 1:] * np.sqrt(self.kernel.components.density_unit)

    def _residual(self, x: Array) -> Array:
        """Return the residuals (n,), from |p_x - p_o|² and the coordinates."""
        found = self._by_tiles(self._projections, x)
        left = found[:, 0] - np.square(found[:, 1:]).sum(axis=1)
        return np.sqrt(np.maximum(left, 0.0) * self.kernel.components.density_unit)
