"""New points among training points: their affinities, and how new they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logsumexp

from heatsketch._typing import Array, Points
from heatsketch.graphs.neighborhoods import (
    HARDLY_ANY,
    Neighborhoods,
    scale_order,
    warn_of_faint_points,
)
from heatsketch.neighbors import Distances, Search, in_metric, ordered_search
from heatsketch.neighbors.metric import Metric

_HARDLY_ANY = float(np.log(HARDLY_ANY))
_MOST_LEFT_OUT = 2048  # training points: a fraction of 1 % has a standard error of 0.2 %


def fraction_less_new(left_out: Array, affinity: Array) -> Array:
    """Return which fraction of training points has more affinity than each of these points (m,).

    `left_out` (c,): logarithms of the affinity of training points to the others, ascending.
    """
    return 1.0 - np.searchsorted(left_out, affinity, side="right") / len(left_out)


def warn_of_new_points(left_out: Array, affinity: Array) -> None:
    """Warn of points with less than 1e-6 of the least affinity of any training point."""
    warn_of_faint_points(np.flatnonzero(affinity < left_out[0] + _HARDLY_ANY))


@dataclass(frozen=True, eq=False)
class PointRows:
    """The affinities of new points to training points, and how new these points are.

    Novelty goes by Σ_j exp(-|x - x_j|² / s_j²) over the k nearest training points of x, s_j the
    distance of x_j to its own (k // 2)-th neighbour. A training point is left out of its neighbours
    and of their scales.

    Attributes
    ----------
    points : array or CSR matrix (n, d)
        The training points, in the metric.
    n_neighbors : int
    neighborhoods : Neighborhoods or None
        The neighbourhoods of the points with this number of neighbours, if there are any.
    metric : str or callable
    rows : callable or None
        New points (m, d), in the metric -> K(x, x_j), array or CSR (m, n).
    """

    points: Points
    n_neighbors: int
    neighborhoods: Neighborhoods | None = None
    metric: Metric = "euclidean"
    rows: Callable[[Points], Any] | None = None

    @property
    def width(self) -> int:
        """Columns of the new points."""
        return int(self.points.shape[1])

    def __call__(self, X: Points) -> Any:
        """Return affinities of new points (m, n), array or CSR."""
        return self.rows(self.compared(X))  # type: ignore[misc]

    def novelty(self, X: Points) -> Array:
        """Return the novelty of new points (m,)."""
        distances, nearest = self._near[0].query(self.compared(X), self._k)
        affinity = _log_affinity(distances, self._scales(nearest)[0])
        return fraction_less_new(self._left_out, affinity)

    def compared(self, X: Points) -> Points:
        """Return new points (m, d) as they are compared, in the form of `points`."""
        distances = Distances.of(self.metric)
        return in_metric(X, self.metric) if distances is None else distances.points(X)

    @cached_property
    def _near(self) -> tuple[Search, Array]:
        """A search among the distinct points, by content, and how often each of them occurs."""
        near = self.neighborhoods
        if near is not None and near.n_neighbors is not None:
            return near.search, np.bincount(near.vertex)[near.by_content]
        search, _, place = ordered_search(Distances.of(self.metric), self.points)
        return search, np.bincount(place)

    @property
    def _k(self) -> int:
        return min(self.n_neighbors, self._near[0].n - 1)

    @cached_property
    def _left_out(self) -> Array:
        """The affinities of up to 2,048 training points, each left out; a copy of it stays."""
        search, copies = self._near
        by_content = np.repeat(np.arange(len(copies)), copies)
        count = min(len(by_content), _MOST_LEFT_OUT)
        points = by_content[np.linspace(0, len(by_content) - 1, count).astype(int)]
        distances, others = search.query(search.points[points], self._k + 1)
        scales, without = self._scales(others)
        copied = _log_affinity(distances[:, :-1], scales[:, :-1])
        nearer = distances <= scales * (1 + 1e-9)  # a search may round d(i, j) and d(j, i) apart
        scales = np.where(nearer, without, scales)
        alone = _log_affinity(distances[:, 1:], scales[:, 1:])
        return np.sort(np.where(copies[points] > 1, copied, alone))

    def _scales(self, points: Array) -> Array:
        """Return the scales of training points, and those without a point that is nearer."""
        search, order = self._near[0], scale_order(self._k)
        distinct, place = np.unique(points, return_inverse=True)
        distances, _ = search.query(search.points[distinct], self._k + 1)
        scales = distances.T[[order, min(order + 1, self._k)]]
        return scales[:, place.reshape(points.shape)]


def _log_affinity(distances: Array, scales: Array) -> Array:
    """Return log Σ_j exp(-d_j²/s_j²) over the columns, (m,)."""
    with np.errstate(over="ignore"):
        ratios = distances / np.maximum(scales, np.finfo(float).tiny)
        return logsumexp(-(ratios**2), axis=1)
