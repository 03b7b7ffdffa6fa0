"""Metric multidimensional scaling: the least stress, by SMACOF of scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.manifold import smacof
from sklearn.utils.validation import check_is_fitted

from heatsketch._checks import ConvergenceWarning, check_number, logger, require
from heatsketch._tiles import filled, single_threaded_blas
from heatsketch._typing import Array
from heatsketch.classical._base import Embedding, in_units
from heatsketch.spectral.classical_scaling import classical_scaling
from heatsketch.spectral.eigenpairs import fix_signs

_MOST_STEPS, _STEP_TOL = 1000, 1e-9  # of a new point: at most, and relative to its distances


class MetricMDS(Embedding):
    """Embed points so that the sum of squared errors of their distances is least.

    The raw stress Σ_{i<j} (|y_i - y_j| - δ_ij)², lowered by SMACOF of scikit-learn (Borg and
    Groenen 2005) from the places of `ClassicalMDS`, so that the result depends on no random numbers
    and is never worse. *Linear and nonlinear dimensionality reduction* unrolls its Isomap in this
    way (`mdscale`): give the path lengths as ``metric="precomputed"``.

    When to use it: for distances that are given, and whose errors shall count in their own units:
    `ClassicalMDS` makes errors of squared distances small, which are mostly those of the longest.
    When not: for more than some 3,000 points; where neighbours matter more than distances.

    Parameters
    ----------
    n_components : int, 1 <= k < n, default 2
    metric : str or callable, default "euclidean"
        X holds points (n, d) with a distance as in `HeatSketch`, or distances (n, n): not squared,
        symmetric, zero on the diagonal.
    max_iter : int, default 300
        Iterations of SMACOF at most.
    tol : float > 0, default 1e-6
        It ends when the stress falls by less than this share of Σ |y_i - y_j|².

    Attributes
    ----------
    embedding_ : array (n, k)
        Of mean zero, along its principal axes; the entry of largest modulus of each column is
        positive.
    stress_ : float
        Kruskal's stress, √(Σ (|y_i - y_j| - δ_ij)² / Σ |y_i - y_j|²): 0 where all distances are
        kept, .05 good, .2 poor.
    n_iter_ : int
    diagnostics_ : dict
        `stress`, and `classical_stress`, that of the start.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Raises
    ------
    MemoryError
        Matrices (n, n) exceed the available memory; use `LandmarkMDS`.
    ValueError
        Distances that are negative, not symmetric, or not zero on the diagonal; too many
        components; coordinates too large for the precision of X.

    Warns
    -----
    ConvergenceWarning
        The stress still falls after `max_iter`.

    Notes
    -----
    Cost: n² (k + 10) operations an iteration; memory 48 n² bytes. The least stress found is a local
    one. New points are placed one by one among the fixed others, where their own stress is least,
    from the place of the nearest; a training point is placed where it is.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.classical import MetricMDS
    >>> D = np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]])
    >>> model = MetricMDS(metric="precomputed").fit(D)
    >>> float(np.linalg.norm(model.embedding_[1] - model.embedding_[2]).round(6))
    5.0
    """

    def __init__(
        self,
        n_components: int = 2,
        metric: str = "euclidean",
        *,
        max_iter: int = 300,
        tol: float = 1e-6,
    ) -> None:
        self.n_components = n_components
        self.metric = metric
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed points (n, d), or the distances (n, n) between them.

        Raises
        ------
        ValueError, TypeError, MemoryError
            Bad points or parameters, or too many points; the class says which.
        """
        k = check_number(self.n_components, "n_components", low=1, integer=True)
        max_iter = check_number(self.max_iter, "max_iter", low=1, integer=True)
        tol = check_number(self.tol, "tol", low=0, open_low=True)
        X = self._read_either(X, reset=True)
        n = len(X)
        if k >= n:
            raise ValueError(
                f"n_components={k} but X has {n} points; pass n_components <= {n - 1}."
            )
        require(48.0 * n * n, f"Distances between {n:,} points", "use LandmarkMDS.")
        self._points = None if self._precomputed else X
        D = self._distances(X)
        D = (D + D.T) / 2  # rounding
        np.fill_diagonal(D, 0.0)
        start = classical_scaling(D**2, k).coordinates
        logger.info("metric scaling of %s points", f"{n:,}")
        with single_threaded_blas():  # the same bits for any number of threads
            Y, _, self.n_iter_ = smacof(
                D,
                n_components=k,
                init=start,
                n_init=1,
                max_iter=max_iter,
                eps=tol,
                return_n_iter=True,
                normalized_stress=False,
            )
        if self.n_iter_ == max_iter:
            warnings.warn(
                f"The stress still falls after max_iter={max_iter} iterations; raise max_iter or "
                "tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._Y = _along_axes(Y)
        self.stress_ = _stress(self._Y, D)
        self.embedding_ = in_units(self._Y, 0, X.dtype)
        self.diagnostics_ = {"stress": self.stress_, "classical_stress": _stress(start, D)}
        return self

    def transform(self, X: Any) -> Array:
        """Place points (m, d), new or old, or their distances (m, n) to the training points.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit, or
            distances to other points.
        """
        check_is_fitted(self)
        X = self._read_either(X, reset=False)
        shape = (len(X), self._Y.shape[1])
        places = filled(lambda rows: _placed(self._distances(X[rows]), self._Y), shape)
        return in_units(places, 0, X.dtype)

    def _distances(self, X: Array) -> Array:
        """Return the distances of rows of X to the training points, (m, n)."""
        return X.astype(float) if self._points is None else cdist(X, self._points)


def _along_axes(Y: Array) -> Array:
    """Return the same points of mean 0 along their principal axes."""
    U, sizes, _ = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)
    return fix_signs(U) * sizes


def _stress(Y: Array, D: Array) -> float:
    distances = pdist(Y)
    error = distances - squareform(D, checks=False)
    return float(np.linalg.norm(error) / (np.linalg.norm(distances) or 1.0))


def _placed(D: Array, Y: Array) -> Array:
    """Return places (m, k) of least Σ_j (|z - y_j| - δ_j)² for distances δ (m, n) to the y_j.

    z ← mean of y_j + δ_j (z - y_j) / |z - y_j| lowers it, as SMACOF does for all points.
    """
    nearest = D.argmin(axis=1)
    Z, rows = Y[nearest].copy(), np.arange(len(D))
    moving = D[rows, nearest] > 0  # the others are training points
    for _ in range(_MOST_STEPS):
        if not moving.any():
            break
        delta, z = D[moving], Z[moving]
        distances = cdist(z, Y)
        ratio = np.divide(delta, distances, out=np.zeros_like(delta), where=distances > 0)
        moved = Y.mean(axis=0) + (ratio.sum(axis=1)[:, None] * z - ratio @ Y) / len(Y)
        Z[moving] = moved
        steps = np.linalg.norm(moved - z, axis=1)
        moving[moving] = steps > _STEP_TOL * delta.max(axis=1)
    return Z
