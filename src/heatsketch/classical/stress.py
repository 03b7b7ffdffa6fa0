"""Scaling by the least stress: what metric and nonmetric scaling share."""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.distance import cdist

from heatsketch._exceptions import ConvergenceWarning, logger, warn
from heatsketch._memory import require_memory
from heatsketch._tiles import filled
from heatsketch._typing import Array
from heatsketch._validation import check_number
from heatsketch.classical._base import Embedding, check_fewer_components
from heatsketch.spectral.classical_scaling import classical_scaling
from heatsketch.spectral.eigenpairs import fix_signs

_MAX_STEPS, _SHORTEST_STEP = 300, 1e-9  # of a new point; length relative to its distances


@dataclass(eq=False, repr=False)
class StressScaling(Embedding):
    """Abstract base: coordinates of the least stress, from the start of classical scaling."""

    n_components: int = 2
    metric: str = "euclidean"
    _: KW_ONLY
    max_iter: int = 300
    tol: float = 1e-6

    _bytes_of_pair: ClassVar[float]  # of points, in a fit

    @abstractmethod
    def _lower(self, D: Array, start: Array, max_iter: int, tol: float) -> tuple[Array, bool]:
        """Return coordinates (n, k) of less stress than the start, and whether it falls no more.

        D (n, n) are the distances. Sets `n_iter_`, `stress_` and `diagnostics_`.
        """

    @abstractmethod
    def _targets_of(self, D: Array) -> Array:
        """Return what distances in the embedding should be, for distances (m, n)."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed points, or the distances between them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points. With ``metric="precomputed"`` X holds distances of shape (n_samples, n_samples).
        y : ignored
            Present for the interface of scikit-learn.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError, MemoryError
            Invalid points or parameters, or too many points; see the docstring of the class.
        """
        max_iter = check_number(self.max_iter, "max_iter", low=1, integer=True)
        tol = check_number(self.tol, "tol", low=0, open_low=True)
        X = self._read_either(X, reset=True)
        n = len(X)
        k = check_fewer_components(self.n_components, n)
        size = self._bytes_of_pair * n * n
        require_memory(size, f"Distances between {n:,} points", "use LandmarkMDS.")
        self._points = None if self._precomputed else X.copy()  # X may be changed in place later
        D = self._distances(X)
        D = (D + D.T) / 2  # rounding
        np.fill_diagonal(D, 0.0)
        start = classical_scaling(D**2, k).coordinates
        logger.info("%s of %s points", type(self).__name__, f"{n:,}")
        self._Y, settled = self._lower(D, start, max_iter, tol)
        if not settled:
            warn(
                ConvergenceWarning,
                f"The stress still falls after max_iter={max_iter} iterations; raise max_iter or "
                "tol.",
            )
        self.embedding_ = self._Y.astype(X.dtype)
        return self

    def transform(self, X: Any) -> Array:
        """Place points, new or old, among the training points.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new_samples, n_features)
            Points. With ``metric="precomputed"`` X holds the distances to the training points, of
            shape (n_new_samples, n_samples).

        Returns
        -------
        ndarray of shape (n_new_samples, n_components)
            Coordinates of the points.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit, or
            distances to other points.
        """
        X = self._read_either(X, reset=False)

        def place(rows: slice) -> Array:
            D = self._distances(X[rows])
            return placed_by_stress(D, self._targets_of(D), self._Y)

        return filled(place, (len(X), self._Y.shape[1])).astype(X.dtype)

    def _distances(self, X: Array) -> Array:
        """Return the distances of rows of X to the training points, (m, n)."""
        return X.astype(float) if self._points is None else cdist(X, self._points)


def on_principal_axes(Y: Array) -> Array:
    """Return Y (n, k) with its mean at 0 and along its principal axes."""
    U, sizes, _ = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)
    return np.asarray(fix_signs(U) * sizes)


def placed_by_stress(D: Array, targets: Array, Y: Array) -> Array:
    """Place points (m, k) among the Y (n, k), each at a minimum of the stress of its own targets.

    They start from the place of the nearest point by the distances D (m, n), and stay there if that
    distance is zero.
    """
    Z, moving = Y[D.argmin(axis=1)], np.flatnonzero(D.min(axis=1))
    for _ in range(_MAX_STEPS):  # z <- mean of y_j + δ_j (z - y_j) / |z - y_j|, as SMACOF
        z, delta = Z[moving], targets[moving]
        d = cdist(z, Y)
        ratios = np.divide(delta, d, out=np.zeros_like(d), where=d > 0)
        Z[moving] = (ratios.sum(axis=1)[:, None] * z - ratios @ Y) / len(Y)
        moved = np.abs(Z[moving] - z).max(axis=1)
        moving = moving[moved > _SHORTEST_STEP * delta.max(axis=1)]
    return Z
