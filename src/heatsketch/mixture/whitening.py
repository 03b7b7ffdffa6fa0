"""The coordinates in which the mixture of a default fit lives: leading principal components."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from heatsketch._checks import check_new_points, check_number, check_points, real_array
from heatsketch._tiles import row_tiles
from heatsketch._typing import Array

MAX_DIRECTIONS = 10  # chosen by experiment: docs/mixture.md
_LEAST_SHARE = 1e-6  # of the mean variance: of directions in which the points do not vary


@dataclass(frozen=True, eq=False)
class Whitening:
    """The affine map x -> (x - centre) axes / lengths to principal components of equal variance.

    Whatever the units of the features, one ε is then as fine in one direction as in another; and
    in ten directions ten thousand points are not all far from each other, as they are in a hundred.

    Attributes
    ----------
    centre : array (m,)
    axes : array (m, q)
        Orthonormal, in columns.
    lengths : array (q,)
        Units of the coordinates along the axes, in units of the data.
    rest_deviation : float
        Root mean variance of the points in the m - q other directions, in units of the data.
    """

    centre: Array
    axes: Array
    lengths: Array
    rest_deviation: float

    @classmethod
    def of(cls, X: Array, seed: int) -> Whitening:
        """Return that of points (n, m): at most 10 components, fewer where the others vanish.

        Cost: a truncated singular value decomposition.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m); all points are equal, or their differences
            are beyond float64; a seed that is not an integer >= 0.
        """
        X = check_points(real_array(X, "X"))
        seed = check_number(seed, "seed", low=0, high=2**32 - 1, integer=True)
        n, m = X.shape
        centre = X.mean(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            unit = float(np.abs(X - centre).max())
        if not 0 < unit < np.inf:
            raise ValueError(
                f"All {n:,} points are equal; pass distinct points."
                if unit == 0
                else "Differences of the points are beyond float64; rescale the data."
            )
        Z = (X - centre) / unit  # whose squares are neither too large nor too small
        # From centred points, as scikit-learn's products lose the digits of an offset.
        pca = PCA(min(MAX_DIRECTIONS, n, m), random_state=seed).fit(Z)
        spread = np.sqrt(pca.explained_variance_)
        kept = spread > spread[0] * max(n, m) * np.finfo(float).eps
        spread = spread[kept]
        total = float(Z.var(axis=0, ddof=1).sum())
        rest = (total - float(np.square(spread).sum())) / max(1, m - len(spread))
        rest = max(rest, _LEAST_SHARE * total / m)
        return cls(centre, pca.components_[kept].T, spread * unit, float(np.sqrt(rest)) * unit)

    @property
    def n_directions(self) -> int:
        """Number q of principal components."""
        return len(self.lengths)

    def scaled(self, factor: float) -> Whitening:
        """Return the map to coordinates that are larger by a factor.

        Raises
        ------
        ValueError, TypeError
            A factor that is not a positive number.
        """
        factor = check_number(factor, "factor", low=0, open_low=True)
        return replace(self, lengths=self.lengths / factor)

    def __call__(self, X: Array) -> Array:
        """Map points (n, m) to (n, q)."""
        return (self._checked(X) - self.centre) @ self.axes / self.lengths

    @property
    def log_volume(self) -> float:
        """Logarithm of the volume of an image, divided by that of what is mapped to it."""
        return -float(np.log(self.lengths).sum())

    def log_rest(self, X: Array) -> Array:
        """Return the logarithm of the normal density of what the map leaves out of points, (n,).

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (n, m) of the features of the map.
        """
        X = self._checked(X)
        n_rest = X.shape[1] - self.n_directions
        if n_rest == 0:
            return np.zeros(len(X))
        squares = np.empty(len(X))
        for rows in row_tiles(len(X)):
            x = X[rows] - self.centre
            left = (x - (x @ self.axes) @ self.axes.T) / self.rest_deviation
            squares[rows] = np.square(left).sum(axis=1)
        return -0.5 * squares - n_rest * (np.log(2 * np.pi) / 2 + np.log(self.rest_deviation))

    def _checked(self, X: Any) -> Array:
        points: Array = check_new_points(X, self.centre[None], "the map")
        return points
