"""What classical and landmark scaling share: reference points, and the places of all others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh
from sklearn.utils.validation import check_is_fitted

from heatsketch._array import MAX_COORDINATE, filled
from heatsketch._typing import Array
from heatsketch.classical._base import Embedding, in_units
from heatsketch.classical._principal_axes import PrincipalAxes
from heatsketch.spectral.classical_scaling import Scaling, classical_scaling, warn_of_zeros
from heatsketch.spectral.eigenpairs import column_signs

_SPECTRUM_SAMPLE_POINTS = 1000  # points whose whole spectrum is computed


@dataclass(frozen=True)
class SquaredDistances:
    """Squares of given distances, in units of 2^exponent: none overflows or underflows."""

    exponent: int

    @classmethod
    def of(cls, D: Array) -> SquaredDistances:
        """Choose the unit for distances D."""
        return cls(int(np.frexp(float(D.max()))[1]))

    def __call__(self, D: Array) -> Array:
        """Return the squares in these units."""
        with np.errstate(over="ignore", under="ignore"):
            return np.minimum(np.ldexp(D.astype(float), -self.exponent), MAX_COORDINATE) ** 2


class MultidimensionalScaling(Embedding):
    """Abstract base: coordinates from l reference points, or from distances to them."""

    n_components: int
    metric: str
    _squares: SquaredDistances  # of given distances
    _scaling: Scaling
    _axes: PrincipalAxes  # of points

    def transform(self, X: Any) -> Array:
        """Place points (m, d), new or old, by projection: return their coordinates (m, k).

        With ``metric="precomputed"`` X holds the distances (m, l) to the training points of
        `ClassicalMDS`, or to the landmarks of `LandmarkMDS`.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit, or
            distances to other points.
        """
        check_is_fitted(self)
        return self._place(self._read_either(X, reset=False))

    def _scale_distances(self, D: Array, k: int) -> None:
        """Scale the reference points by the distances between them (l, l)."""
        squares = filled(lambda rows: self._squares(D[rows]), D.shape)
        self.diagnostics_ = _negative_eigenvalues(squares)
        self._scaling = classical_scaling(squares, k)
        self.eigenvalues_ = _squared_units(self._scaling.values, self._squares.exponent)

    def _scale_points(self, points: Array, k: int) -> None:
        """Scale the reference points (l, d): centred, B = Y Yᵀ, so that V √Λ = U Σ = Y W."""
        axes = PrincipalAxes.of(points, min(k, *points.shape))
        sigma, rounding = axes.singular_values, np.finfo(float).eps * max(points.shape)
        positive = int(np.count_nonzero(sigma > rounding * sigma[0]))
        warn_of_zeros(positive, k)
        W, values = np.zeros((k, points.shape[1])), np.zeros(k)
        W[:positive], values[:positive] = axes.components[:positive], sigma[:positive] ** 2
        W[:positive] *= column_signs(axes.project(points)[:, :positive])[:, None]
        self._axes = replace(axes, components=W)
        self.eigenvalues_ = _squared_units(values, axes.exponent)
        self.diagnostics_ = {
            "negative_eigenvalues": 0,
            "negative_share": 0.0,
            "spectrum_points": len(points),
        }

    def _place(self, X: Array) -> Array:
        if not self._precomputed:
            return self._axes.project(X)
        shape = (len(X), len(self._scaling.values))
        Y = filled(lambda rows: self._scaling.place(self._squares(X[rows])), shape)
        return in_units(Y, self._squares.exponent, X.dtype)


def _squared_units(values: Array, exponent: int) -> Array:
    """Return eigenvalues in squared units: infinite beyond 1e308, that is lengths beyond 1e154."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(values, 2 * exponent)


def _negative_eigenvalues(squares: Array) -> dict[str, Any]:
    """Return the number and share of negative eigenvalues of B, of a sample of many points."""
    n = len(squares)
    sample = np.unique(np.linspace(0, n - 1, min(n, _SPECTRUM_SAMPLE_POINTS)).astype(int))
    B = -0.5 * squares[np.ix_(sample, sample)]
    B -= B.mean(axis=0)
    B -= B.mean(axis=1, keepdims=True)
    values = eigvalsh(B)
    negative = values[values < -1e-12 * np.abs(values).max()]  # beyond rounding
    return {
        "negative_eigenvalues": len(negative),
        "negative_share": float(np.abs(negative).sum() / (np.abs(values).sum() or 1.0)),
        "spectrum_points": len(sample),
    }
