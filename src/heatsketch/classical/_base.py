"""The base of the classical estimators, and the descent that places new points."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from heatsketch._checks import check_number, read_points
from heatsketch._typing import Array
from heatsketch.estimators._base import Embedder
from heatsketch.graphs.neighborhoods import Neighborhoods, neighborhood_graph
from heatsketch.neighbors import Distances, in_metric
from heatsketch.neighbors.metric import check_distances, check_non_negative

_MAX_TRIAL_STEPS = 300  # for a new point


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
        accepted = self._takes_sparse and self._metric != "precomputed"
        return read_points(self, X, reset, accept_sparse="csr" if accepted else False)

    def _read_points(self, X: Any, reset: bool) -> Any:
        """Return points (m, d) whose Euclidean distances are those of the metric, or raise."""
        return in_metric(self._read(X, reset), self._metric)

    def _read_either(self, X: Any, reset: bool) -> Any:
        """Return points; or, of a metric without coordinates, distances to the data (m, n)."""
        distances = Distances.of(self._metric)
        if distances is None:
            return self._read_points(X, reset)
        X = self._read(X, reset)
        if distances.precomputed:
            check = check_distances if reset else check_non_negative
            check(X)
            return X
        points = distances.points(X)
        if reset:
            self._training_points = points
        return distances(points, self._training_points).astype(X.dtype)

    def _graph_of(self, X: Any) -> tuple[sparse.csr_matrix, Neighborhoods]:
        """Return the graph of the nearest neighbours of points or distances, or of a radius."""
        radius, neighbors = getattr(self, "radius", None), getattr(self, "neighbors", None)
        k = getattr(self, "n_neighbors", None) if radius is None else None
        if self._precomputed:
            neighbors = Distances("precomputed")
            X = neighbors.points(X, training=True)
        return neighborhood_graph(X, n_neighbors=k, radius=radius, neighbors=neighbors)

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn."""
        tags = super().__sklearn_tags__()
        precomputed = getattr(self, "metric", None) == "precomputed"
        tags.input_tags.sparse &= not precomputed
        tags.input_tags.positive_only = precomputed
        tags.input_tags.pairwise = precomputed and not hasattr(self, "landmarks")
        return tags


def check_fewer_components(k: Any, count: int) -> int:
    """Return the number of coordinates, or raise unless there are more points or landmarks."""
    k = check_number(k, "n_components", low=1, integer=True)
    if k >= count:
        raise ValueError(
            f"n_components={k} but there are {count} distinct points or landmarks; pass "
            f"n_components <= {count - 1}, or more of them."
        )
    return int(k)


def placed(cost: Callable[[Array, Array], tuple[Array, Array]], Z: Array, shortest: Array) -> Array:
    """Descend from the places Z (m, k) of new points, each by itself, and return the last ones.

    `cost` returns the costs (c,) of some rows at places (c, k), and their gradients (c, k). The
    step size is doubled while the cost falls sufficiently (Armijo's rule), and halved otherwise; a
    point whose step is not longer than `shortest` (m,) has arrived.
    """
    Z, step = Z.copy(), np.ones(len(Z))
    value, gradient = cost(np.arange(len(Z)), Z)
    for _ in range(_MAX_TRIAL_STEPS):
        slope = np.square(gradient).sum(axis=1)
        moving = np.flatnonzero(step * np.sqrt(slope) > shortest)
        if not len(moving):
            break
        trial = Z[moving] - step[moving, None] * gradient[moving]
        reached, there = cost(moving, trial)
        lower = reached <= value[moving] - 0.25 * step[moving] * slope[moving]
        step[moving] *= np.where(lower, 2.0, 0.5)
        moved = moving[lower]
        Z[moved], value[moved], gradient[moved] = trial[lower], reached[lower], there[lower]
    return Z
