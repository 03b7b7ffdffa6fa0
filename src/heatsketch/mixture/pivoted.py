"""The compact feature map: pivoted Cholesky on the inner products of transition densities."""

from __future__ import annotations

import logging
import warnings
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular

from heatsketch._array import filled
from heatsketch._checks import ConvergenceWarning, check_number
from heatsketch._typing import Array
from heatsketch.mixture.cholesky import pivoted_cholesky
from heatsketch.mixture.kernel import Anchors, MixtureKernel
from heatsketch.mixture.maps import FeatureMap

logger = logging.getLogger("heatsketch")

MAX_FIRST_CANDIDATES = 4000  # points among which the first pivots are chosen
_MORE = 200  # of those at a time
_FLOOR = 1e-11  # share of the largest squared distance at which rounding takes over


class CholeskyMap(FeatureMap):
    """The compact map: projections on the transition densities at a few pivots, and certified.

    With Q(x, z) = ⟨p_x - p_o, p_z - p_o⟩, which follows from squared distances, pivots are taken
    where most is missing, until no given point misses more than half the tolerance: greedy
    Gram-Schmidt, or Nyström. What each point misses is known exactly, so the tolerance holds for
    all given points, and `residual` tells it for any other. The model is the mixture and the
    pivots.

    Parameters
    ----------
    max_features : int, default 1,000
        Coordinates at most.

    Attributes
    ----------
    pivots : array (r, m)
        Points whose transition densities span the coordinates.
    origin : array (1, m)
        The point o.

    Warns
    -----
    ConvergenceWarning
        The tolerance takes more than `max_features` pivots, or is below the rounding of distances;
        `error_bound` is what was reached.

    Notes
    -----
    Cost: r distances for every point, twice in `fit`; memory 8 n r bytes for the 4,000 candidates.

    Examples
    --------
    >>> import heatsketch as hs
    >>> from heatsketch.mixture import CholeskyMap
    >>> kernel = hs.MixtureKernel([0.5, 0.5], [[0.0], [2.0]], [1.0, 0.25], epsilon=1.0)
    >>> features = CholeskyMap().fit(kernel, tolerance=1e-3)
    >>> features.n_features, bool(features.error_bound <= 1e-3)
    (11, True)
    """

    def __init__(self, max_features: int = 1000) -> None:
        self.max_features = check_number(max_features, "max_features", low=1, integer=True)

    @classmethod
    def from_arrays(cls, kernel: MixtureKernel, arrays: dict[str, Array], domain: str) -> Self:
        """Make the map again from its kernel and what `arrays` returned."""
        made = cls()
        made.kernel, made.domain = kernel, domain
        made.origin, made.pivots = arrays["origin"], arrays["pivots"]
        made._factor = arrays["factor"]
        made._mean, made._rotation = arrays["mean"], arrays["rotation"]
        made.error_bound = float(arrays["error_bound"])
        made._set_anchors()
        return made

    @property
    def arrays(self) -> dict[str, Array]:
        """All that the map is made of beside its kernel: some r (m + 2 r) numbers."""
        return {
            "origin": self.origin,
            "pivots": self.pivots,
            "factor": self._factor,
            "mean": self._mean,
            "rotation": self._rotation,
            "error_bound": np.array(self.error_bound),
        }

    def _choose(self, x: Array, tolerance: float) -> None:
        rng = np.random.default_rng(0)
        chosen = np.sort(rng.permutation(len(x))[:MAX_FIRST_CANDIDATES])
        limit = (tolerance / 2) ** 2 / self.kernel._density_unit
        # The likeliest point: what is near it, of most points, need not cancel.
        best = chosen[np.argmax(self.kernel.log_stationary(x[chosen]))]
        self.origin = x[best][None]
        others = np.setdiff1d(np.arange(len(x)), chosen)
        while True:
            self._take_pivots(x[chosen], limit)
            missing = np.zeros(0)
            if len(others):
                missing = self.residual(x[others]) ** 2 / self.kernel._density_unit
            worst = np.argsort(-missing, kind="stable")[:_MORE]
            worst = worst[missing[worst] > limit]
            if not len(worst) or self._missing > limit:
                break
            logger.info("%d of the other points are missed; looking again", len(worst))
            chosen, others = np.append(chosen, others[worst]), np.delete(others, worst)
        left = max(self._missing, float(missing.max(initial=0.0)))
        self.error_bound = float(2 * np.sqrt(left * self.kernel._density_unit))
        self.domain = f"the {len(x):,} points of the fit"
        if left > limit:
            self._warn(tolerance)

    def _warn(self, tolerance: float) -> None:
        r = len(self.pivots)
        full = r == self.max_features
        what = f"max_features={r} coordinates" if full else "float64"
        do = "Pass more, a larger epsilon or tolerance." if full else "Pass a larger tolerance."
        warnings.warn(
            f"tolerance={tolerance:.3g} is not reached with {what}: distances err by up to "
            f"{self.error_bound:.3g}. {do}",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _take_pivots(self, x: Array, limit: float) -> None:
        """Take pivots from the points x until none misses more than the limit (squared)."""
        anchors = self.kernel._anchors(x)
        from_origin = self._distances_to(self.kernel._anchors(self.origin), anchors)[:, 0]

        def inner_products(places: Array) -> Array:
            d2 = self._distances_to(anchors.take(places), anchors)
            return (from_origin[:, None] + from_origin[places] - d2) / 2

        limit = max(limit, _FLOOR * from_origin.max())
        most = min(self.max_features, len(x))
        L, places, left = pivoted_cholesky(inner_products, from_origin, limit, most)
        self._missing = float(left.max())
        self.pivots, self._factor = x[places], L[places]
        self._set_anchors()

    def _distances_to(self, ends: Anchors, points: Anchors) -> Array:
        """Return the squared distances (n, r) of points to some, tile by tile in parallel."""
        ends, kernel = self.kernel._prepared(ends), self.kernel
        shape = len(points.norms), len(ends.norms)
        return filled(lambda rows: kernel._distances(points.take(rows), ends), shape, self._tile)

    def _set_anchors(self) -> None:
        """Compute what `transform` needs of origin and pivots."""
        anchors = self.kernel._anchors(np.concatenate([self.origin, self.pivots]))
        self._anchors = self.kernel._prepared(anchors)
        origin = self.kernel._anchors(self.origin)
        self._from_origin = self.kernel._distances(origin, self._anchors)[0, 1:]

    def _projections(self, x: Array) -> Array:
        """Return |p_x - p_o|² and the coordinates of p_x - p_o, (n, 1 + r), without the unit."""
        d2 = self.kernel._distances(self.kernel._anchors(x), self._anchors)
        inner = (d2[:, :1] + self._from_origin - d2[:, 1:]) / 2
        if inner.size:
            d2[:, 1:] = solve_triangular(self._factor, inner.T, lower=True, check_finite=False).T
        return d2

    def _raw(self, x: Array) -> Array:
        return self._projections(x)[:, 1:] * np.sqrt(self.kernel._density_unit)

    def residual(self, x: Any) -> Array:
        """Return |p(x, ·) - its image|, (n,), from |p_x - p_o|² and the length of coordinates."""
        found = self._by_tiles(self._projections, self.kernel._points(x))
        left = found[:, 0] - np.square(found[:, 1:]).sum(axis=1)
        return np.sqrt(np.maximum(left, 0.0) * self.kernel._density_unit)
