"""What classical and landmark scaling share: reference points, and the places of all others."""

from typing import Any

import numpy as np
from scipy.linalg import eigvalsh
from sklearn.utils.validation import check_is_fitted

from heatsketch._tiles import filled
from heatsketch._typing import Array
from heatsketch.classical._base import Embedding, in_units
from heatsketch.classical.pca import PCA
from heatsketch.spectral.classical_scaling import Scaling, classical_scaling, warn_of_zeros
from heatsketch.spectral.eigenpairs import column_signs

_SPECTRUM_SAMPLE_POINTS = 1000  # points whose whole spectrum is computed


class MultidimensionalScaling(Embedding):
    """Abstract base: coordinates from l reference points, or from distances to them."""

    n_components: int
    metric: str
    _scaling: Scaling  # of given distances
    _pca: PCA  # of points
    _signs: Array  # (k,), of the principal components; 0 where there is none

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
        squares = np.square(D, dtype=float)
        self.diagnostics_ = _negative_eigenvalues(squares)
        self._scaling = classical_scaling(squares, k)
        self.eigenvalues_ = self._scaling.values

    def _scale_points(self, points: Array, k: int) -> None:
        """Scale the reference points (l, d): centred, B = Y Yᵀ, so that V √Λ = U Σ = Y W."""
        self._pca = PCA(min(k, *points.shape)).fit(points)
        sigma, rounding = self._pca.singular_values_, np.finfo(float).eps * max(points.shape)
        positive = int(np.count_nonzero(sigma > rounding * sigma[0]))
        warn_of_zeros(positive, k)
        self._signs, self.eigenvalues_ = np.zeros(k), np.zeros(k)
        self._signs[:positive] = column_signs(self._pca.embedding_[:, :positive])
        self.eigenvalues_[:positive] = sigma[:positive] ** 2
        self.diagnostics_ = {
            "negative_eigenvalues": 0,
            "negative_share": 0.0,
            "spectrum_points": len(points),
        }

    def _place(self, X: Array) -> Array:
        if not self._precomputed:
            scores = self._pca.transform(X)
            Y = np.zeros((len(X), len(self._signs)), X.dtype)
            Y[:, : scores.shape[1]] = scores * self._signs[: scores.shape[1]]
            return Y
        shape = (len(X), len(self._scaling.values))
        Y = filled(lambda rows: self._scaling.place(np.square(X[rows], dtype=float)), shape)
        return in_units(Y, 0, X.dtype)


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
