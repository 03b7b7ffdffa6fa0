"""The base of the classical estimators."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from heatsketch._checks import read_points
from heatsketch._typing import Array
from heatsketch.estimators._base import Embedder
from heatsketch.graphs.neighborhoods import Neighborhoods, neighborhood_graph
from heatsketch.neighbors import Distances, in_metric
from heatsketch.neighbors.metric import check_distances, check_non_negative


class Embedding(Embedder):
    """Abstract base: `fit` sets `embedding_` (n, k) and `diagnostics_`, a dict of numbers.

    Subclasses with a rule for new points define `transform`; those that compare points by a
    distance have a parameter `metric`; most of these accept distances instead of points.
    """

    diagnostics_: dict[str, Any]

    @property
    def _precomputed(self) -> bool:
        """Whether distances are compared, given or in a metric without coordinates."""
        return Distances.of(self._metric) is not None

    @property
    def _metric(self) -> Any:
        return getattr(self, "metric", "euclidean")

    def _read(self, X: Any, reset: bool) -> Any:
        """Return the numbers of X, float32 or float64 and finite, or raise; before `fit`, too."""
        if not reset:
            check_is_fitted(self)
        return read_points(self, X, reset, accept_sparse="csr" if self._takes_sparse else False)

    def _read_points(self, X: Any, reset: bool) -> Any:
        """Return points (m, d) whose Euclidean distances are those of the metric, or raise."""
        return in_metric(self._read(X, reset), self._metric)

    def _read_distances(self, X: Any, reset: bool) -> Array:
        """Return distances between the data (n, n), or from new points to them (m, n), or raise."""
        X, distances = self._read(X, reset), Distances.of(self._metric)
        if distances is not None and not distances.precomputed:
            points = distances.points(X)
            if reset:
                self._training_points = points
            return distances(points, self._training_points).astype(X.dtype)
        D = np.asarray(X)
        check_non_negative(D)
        if reset:
            check_distances(D)
        return D

    def _read_either(self, X: Any, reset: bool) -> Any:
        return self._read_distances(X, reset) if self._precomputed else self._read_points(X, reset)

    def _graph_of(self, X: Any) -> tuple[sparse.csr_matrix, Neighborhoods]:
        """Return the graph of the nearest neighbours of points, or of those within the radius."""
        radius, neighbors = getattr(self, "radius", None), getattr(self, "neighbors", None)
        k = getattr(self, "n_neighbors", None) if radius is None else None
        return neighborhood_graph(X, n_neighbors=k, radius=radius, neighbors=neighbors)

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
