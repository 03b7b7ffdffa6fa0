"""The base of the classical estimators, and checks of given distances."""

from typing import Any

import numpy as np

from heatsketch._array import row_tiles
from heatsketch._checks import check_choice
from heatsketch._reading import read_points
from heatsketch._typing import Array
from heatsketch.estimators._embedder import Embedder
from heatsketch.neighbors import METRICS as METRICS_OF_POINTS
from heatsketch.neighbors import in_metric

METRICS = (*METRICS_OF_POINTS, "precomputed")


class Embedding(Embedder):
    """Abstract base: `fit` sets `embedding_` (n, k) and `diagnostics_`, a dict of numbers.

    Subclasses with a rule for new points define `transform`; those that compare points by a
    distance have a parameter `metric`; most of these accept distances instead of points.
    """

    diagnostics_: dict[str, Any]

    @property
    def _precomputed(self) -> bool:
        return check_choice(self._metric, "metric", METRICS) == "precomputed"

    @property
    def _metric(self) -> str:
        return getattr(self, "metric", "euclidean")

    def _read(self, X: Any, reset: bool) -> Any:
        """Return the numbers of X, float32 or float64 and finite, or raise."""
        return read_points(self, X, reset, accept_sparse="csr" if self._takes_sparse else False)

    def _read_points(self, X: Any, reset: bool) -> Any:
        """Return points (m, d) whose Euclidean distances are those of the metric, or raise."""
        return in_metric(self._read(X, reset), self._metric)

    def _read_distances(self, X: Any, reset: bool) -> Array:
        """Return distances between the data (n, n), or from new points to them (m, n), or raise."""
        D = np.asarray(self._read(X, reset))
        check_non_negative(D)
        if reset:
            check_distances(D)
        return D

    def _read_either(self, X: Any, reset: bool) -> Any:
        return self._read_distances(X, reset) if self._precomputed else self._read_points(X, reset)

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = getattr(self, "metric", None) == "precomputed"
        tags.input_tags.positive_only = tags.input_tags.pairwise
        return tags


def in_units(Y: Array, exponent: Any, dtype: np.dtype) -> Array:
    """Return coordinates times 2^exponent in the dtype of the data, or raise if it overflows.

    `exponent` is one number, or one for each row (n, 1).
    """
    with np.errstate(over="ignore", under="ignore"):
        embedding = np.ldexp(Y, exponent).astype(dtype)
    if not np.isfinite(embedding).all():
        raise ValueError(f"The coordinates are too large for {dtype}; divide X by a constant.")
    return embedding


def check_non_negative(D: Array) -> None:
    """Raise if a distance is negative."""
    if D.min(initial=0.0) < 0:
        raise ValueError("X holds negative numbers but metric='precomputed'; pass distances.")


def check_distances(D: Array) -> None:
    """Raise unless D is square, symmetric to rounding, and zero on its diagonal."""
    if D.shape[0] != D.shape[1]:
        raise ValueError(
            f"X has shape {D.shape} but metric='precomputed'; pass the distances between all "
            "points, (n, n)."
        )
    rounding = 1e-6 * float(D.max())
    if np.diagonal(D).max() > rounding:
        raise ValueError("X is not zero on its diagonal; pass distances, not affinities.")
    for rows in row_tiles(len(D)):
        difference = np.abs(D[rows] - D[:, rows].T)
        i, j = np.unravel_index(difference.argmax(), difference.shape)
        if difference[i, j] > rounding:
            i += rows.start
            raise ValueError(
                f"X is not symmetric: {D[i, j]:.6g} at ({i}, {j}), {D[j, i]:.6g} at ({j}, {i}); "
                "pass (X + X.T) / 2 if the difference is only rounding."
            )
