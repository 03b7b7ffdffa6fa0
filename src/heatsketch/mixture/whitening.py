"""Whitening: leading principal components, the coordinates of the mixture in a default fit."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from sklearn.decomposition import PCA

from heatsketch._tiles import filled
from heatsketch._typing import Array

MAX_DIRECTIONS = 10  # chosen by experiment: docs/mixture.md
_LEAST_FRACTION = 1e-6  # of the mean variance, for the rest if the points do not vary in it


@dataclass(frozen=True, eq=False)
class Whitening:
    """The affine map x -> (x - centre) axes / lengths to principal components of equal variance.

    After it one ε suits all directions, in any units of the features. There are at most ten
    directions, because in a hundred all of ten thousand points would be far from each other.

    Attributes
    ----------
    centre : ndarray of shape (n_features,)
        Mean of the points.
    axes : ndarray of shape (n_features, n_directions)
        Orthonormal, in columns.
    lengths : ndarray of shape (n_directions,)
        Units of the coordinates along the axes, in units of the data.
    rest_deviation : float
        Root mean variance of the points in the m - q other directions, in units of the data; at
        least 1e-3 of that of the features.

    See Also
    --------
    MixtureDiffusion : Embed data by the diffusion of a Gaussian mixture.
    classical.PCA : Project on the directions of largest variance.
    """

    centre: Array
    axes: Array
    lengths: Array
    rest_deviation: float

    @classmethod
    def from_points(cls, X: Array, seed: int) -> Self:
        """Return the whitening of points (n, m): at most 10 components, without vanishing ones.

        `seed` starts the truncated singular value decomposition, which is the cost.

        Raises
        ------
        ValueError
            All points are equal.
        """
        n, m = X.shape
        centre = X.mean(axis=0)
        if not np.ptp(X, axis=0).any():
            raise ValueError(f"All {n:,} points are equal; pass distinct points.")
        # Centre the points first, because scikit-learn's products lose digits to an offset.
        Z = X - centre
        pca = PCA(min(MAX_DIRECTIONS, n, m), random_state=seed).fit(Z)
        lengths = np.sqrt(pca.explained_variance_)
        # Roots of eigenvalues of a covariance have half of the digits: 1e-8 may be nothing. Nor is
        # a direction that which the rounding of the features leaves of them.
        seen, eps = (Z @ pca.components_.T).std(axis=0), np.finfo(float).eps
        rounding = np.abs(X).max(axis=0) @ np.abs(pca.components_.T)
        kept = seen > eps * np.maximum(max(n, m) * seen[0], rounding)
        lengths, total = lengths[kept], float(Z.var(axis=0, ddof=1).sum())
        rest = (total - float(np.square(lengths).sum())) / max(1, m - len(lengths))
        rest = float(np.sqrt(max(rest, _LEAST_FRACTION * total / m)))
        return cls(centre, pca.components_[kept].T, lengths, rest)

    def scaled(self, factor: float) -> Self:
        """Return the map to coordinates multiplied by a factor."""
        return replace(self, lengths=self.lengths / factor)

    def __call__(self, X: Array) -> Array:
        """Map points (n, m) to (n, q)."""
        return (X - self.centre) @ self.axes / self.lengths

    @property
    def slopes(self) -> Array:
        """Derivatives of coordinates by features, (q, m)."""
        return (self.axes / self.lengths).T

    def inverse(self, z: Array) -> Array:
        """Map coordinates (n, q) to points (n, m) without the components left out by the map."""
        return self.centre + (z * self.lengths) @ self.axes.T

    @property
    def log_volume(self) -> float:
        """Logarithm of the ratio of volumes after and before the map."""
        return -float(np.log(self.lengths).sum())

    def log_rest(self, X: Array) -> Array:
        """Return the log of a normal density of the components of X left out by the map, (n,)."""

        def squares(rows: slice) -> Array:
            x = X[rows] - self.centre
            left = (x - (x @ self.axes) @ self.axes.T) / self.rest_deviation
            return np.square(left).sum(axis=1)

        n_rest = X.shape[1] - len(self.lengths)  # for 0 only rounding is left
        volume = n_rest * (np.log(2 * np.pi) / 2 + np.log(self.rest_deviation))
        return -0.5 * filled(squares, (len(X),)) - volume
