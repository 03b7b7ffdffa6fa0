"""How new a point is: its affinity to training points beside that of training points left out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from heatsketch._checks import ScaleWarning
from heatsketch._typing import Array, Points
from heatsketch.graphs.far_points import HARDLY_ANY, warn_of_faint_points
from heatsketch.graphs.neighborhoods import Neighborhoods, neighborhood_graph
from heatsketch.neighbors import Distances, in_metric
from heatsketch.neighbors.metric import Metric
from heatsketch.operators.operator import inverse_permutation
from heatsketch.scales.bandwidth import scale_order

_HARDLY_ANY = float(np.log(HARDLY_ANY))
_MOST_LEFT_OUT = 2048  # training points: a fraction of 1 % has a standard error of 0.2 %


@dataclass(frozen=True, eq=False)
class LeaveOneOutScores:
    """What training points that are left out have in common with the others.

    Attributes
    ----------
    affinity : array (c,)
        Logarithms, ascending.
    """

    affinity: Array

    @classmethod
    def of(cls, affinity: Array) -> LeaveOneOutScores:
        """Sort the logarithms of some affinities (c,)."""
        return cls(np.sort(affinity))

    def thinned(self, count: int) -> LeaveOneOutScores:
        """Return some of their quantiles, from the least to the most."""
        return LeaveOneOutScores(np.quantile(self.affinity, np.linspace(0, 1, count)))

    def fraction(self, affinity: Array) -> Array:
        """Return which fraction of them has more affinity than each of these points (m,)."""
        return 1.0 - np.searchsorted(self.affinity, affinity, side="right") / len(self.affinity)

    def warn(self, affinity: Array) -> None:
        """Warn of points with less than 1e-6 of the least affinity of any of them."""
        warn_of_faint_points(np.flatnonzero(affinity < self.affinity[0] + _HARDLY_ANY))


@dataclass(frozen=True, eq=False)
class KnnNovelty:
    """The novelty of points by their nearest training points, at the scale of these.

    The affinity of x to the data is Σ_j exp(-|x - x_j|² / s_j²) over its k nearest training points,
    s_j the distance of x_j to its own (k // 2)-th neighbour. A training point is left out of its
    neighbours and of their scales.

    Attributes
    ----------
    points : array or CSR matrix (n, d)
        The training points, in the metric.
    n_neighbors : int
    found : Neighborhoods or None
        Of the points, with this number of neighbours, if there are any.
    metric : str or callable
    """

    points: Points
    n_neighbors: int
    found: Neighborhoods | None = None
    metric: Metric = "euclidean"

    def __call__(self, X: Points) -> Array:
        """Return the novelty of new points (m,)."""
        X = X if Distances.of(self.metric) else in_metric(X, self.metric)
        distances, vertices = self._near(X, self._k)
        scales = self._scales(vertices)[0]
        return self._scores.fraction(_log_affinity(distances, scales))

    @cached_property
    def _near_points(self) -> Neighborhoods:
        if self.found is not None and self.found.n_neighbors is not None:
            return self.found
        k = min(self.n_neighbors, self.points.shape[0] - 1)
        neighbors = Distances.of(self.metric)
        with warnings.catch_warnings():  # of ties, which do not change the distances
            warnings.simplefilter("ignore", ScaleWarning)
            return neighborhood_graph(self.points, n_neighbors=k, neighbors=neighbors)[1]

    @property
    def _k(self) -> int:
        return int(self._near_points.n_neighbors)  # type: ignore[arg-type]

    @cached_property
    def _scores(self) -> LeaveOneOutScores:
        near, n = self._near_points, self.points.shape[0]
        rank, copies = inverse_permutation(near.by_content), np.bincount(near.vertex)
        points = near.by_content[np.sort(rank[near.vertex])]  # by content, copies included
        vertices = points[np.linspace(0, n - 1, min(n, _MOST_LEFT_OUT)).astype(int)]
        # Nearest first. Where a copy stays, nothing but the number of points changes.
        distances, others = self._near(near.points_of(vertices), self._k + 1)
        scales, without = self._scales(others)
        copied = _log_affinity(distances[:, :-1], scales[:, :-1])
        scales = np.where(distances <= scales, without, scales)
        alone = _log_affinity(distances[:, 1:], scales[:, 1:])
        return LeaveOneOutScores.of(np.where(copies[vertices] > 1, copied, alone))

    def _near(self, X: Points, k: int) -> tuple[Array, Array]:
        """Return distances and vertices of the k nearest points of each row, nearest first."""
        rows = self._near_points.rows(X, k)
        distances, vertices = (a.reshape(X.shape[0], k) for a in (rows.data, rows.indices))
        order = np.argsort(distances, axis=1, kind="stable")
        take = np.take_along_axis
        return take(distances, order, axis=1), take(vertices, order, axis=1)

    def _scales(self, vertices: Array) -> tuple[Array, Array]:
        """Return the scales of vertices, and those without a point that is nearer."""
        k, known = self._k, self._known
        wanted = np.unique(vertices)
        wanted = wanted[np.isnan(known[0, wanted])]
        if len(wanted):
            distances, _ = self._near(self._near_points.points_of(wanted), k + 1)
            order = scale_order(k)
            known[:, wanted] = distances[:, order], distances[:, min(order + 1, k)]
        return known[0, vertices], known[1, vertices]

    @cached_property
    def _known(self) -> Array:
        """The scales (2, n) as far as they have been computed; others are NaN."""
        return np.full((2, self._near_points.n), np.nan)


def _log_affinity(distances: Array, scales: Array) -> Array:
    """Return log Σ_j exp(-d_j²/s_j²) over the columns, (m,)."""
    with np.errstate(over="ignore"):
        ratios = distances / np.maximum(scales, np.finfo(float).tiny)
        return logsumexp(-(ratios**2), axis=1)
