"""Metrics of points: Euclidean distances of rows scaled to unit length, and others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances

from heatsketch._checks import check_choice, name_rows
from heatsketch._tiles import for_each_tile, row_tiles
from heatsketch._typing import Array, Points
from heatsketch.operators.kernel import squared_norms

COORDINATES = ("euclidean", "cosine", "correlation")  # metrics of points in a space
METRICS = (*COORDINATES, "manhattan", "hamming", "jaccard")
Metric = str | Callable[[Any, Any], float]


@dataclass(frozen=True)
class Distances:
    """All distances between points, in a metric that has no coordinates: (m, d), (n, d) -> (m, n).

    Attributes
    ----------
    metric : "manhattan", "hamming", "jaccard", "precomputed", or callable
        "jaccard" is that of the sets of features that are not 0. "precomputed": points are rows of
        distances to all training points, whose own places are those of their zeros. A callable
        takes two rows and returns a number.
    """

    metric: Metric

    @classmethod
    def of(cls, metric: Metric) -> Distances | None:
        """Return the distances in a metric, or None where it has coordinates (`in_metric`)."""
        if callable(metric):
            return cls(metric)
        check_choice(metric, "metric", (*METRICS, "precomputed"))
        return None if metric in COORDINATES else cls(metric)

    @property
    def precomputed(self) -> bool:
        """Whether points are rows of distances."""
        return self.metric == "precomputed"

    def points(self, X: Points, *, training: bool = False) -> Points:
        """Return points as they are compared, or raise if the metric does not take them."""
        if sparse.issparse(X) and self.metric != "manhattan":
            raise ValueError(f"metric={self.metric!r} but X is sparse; pass X.toarray().")
        if self.precomputed and training:
            check_distances(X)
            X = np.array(X)
            np.fill_diagonal(X, 0.0)
            self._check_copies(X)
        return (X != 0).astype(X.dtype) if self.metric == "jaccard" else X

    def __call__(self, x: Points, y: Points) -> Array:
        """Return the distances (m, n) from x to y."""
        if self.precomputed:
            return np.asarray(x[:, y.argmin(axis=1)], dtype=float)
        if self.metric == "jaccard":
            x, y = x.astype(bool), y.astype(bool)
        D = np.asarray(pairwise_distances(x, y, metric=self.metric), dtype=float)
        if callable(self.metric) and not (np.isfinite(D).all() and D.min(initial=0.0) >= 0):
            raise ValueError(
                "metric returns distances that are negative or not finite; pass a function of two "
                "rows that returns a number >= 0."
            )
        return D

    def _check_copies(self, D: Array) -> None:
        """Raise if points at distance 0 from each other have other distances to the rest."""
        same = D.argmin(axis=1)
        for rows in row_tiles(len(D)):
            own = np.arange(rows.start, min(rows.stop, len(D)))
            apart = np.abs(D[own] - D[same[own]]).max(axis=1) > 1e-6 * D.max()
            if apart.any():
                i = int(own[apart.argmax()])
                raise ValueError(
                    f"X holds a distance of 0 between points {same[i]} and {i}, but other "
                    "distances of theirs differ; pass distances that are 0 for equal points only."
                )


def check_distances(D: Array) -> None:
    """Raise unless D is non-negative, square, symmetric to rounding, and zero on its diagonal."""
    if D.shape[0] != D.shape[1]:
        raise ValueError(
            f"X has shape {D.shape} but metric='precomputed'; pass the distances between all "
            "points, (n, n)."
        )
    check_non_negative(D)
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


def check_non_negative(D: Array) -> None:
    """Raise if a distance is negative."""
    if D.min(initial=0.0) < 0:
        raise ValueError("X holds negative numbers but metric='precomputed'; pass distances.")


def in_metric(X: Points, metric: Metric) -> Points:
    """Return points whose Euclidean distances are those of a metric, in the precision of X.

    "euclidean": X itself. "cosine": u(x) = x / |x|, whose distances |u(x) - u(y)| are the lengths
    of chords, with |u(x) - u(y)|² / 2 = 1 - cos(x, y), the cosine distance: neighbours are the
    same. "correlation": the same after the mean of each row has been subtracted from it. A row of
    the result depends on that row of X alone, so new points are mapped alike.

    Parameters
    ----------
    X : array or CSR matrix (n, d)
        Checked points; sparse ones stay sparse.
    metric : "euclidean", "cosine" or "correlation"

    Raises
    ------
    ValueError
        A row without a direction: of zeros ("cosine") or of equal numbers ("correlation"); sparse
        X with "correlation".

    Notes
    -----
    Cost: some ten operations for each coordinate; a copy of X.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.neighbors import in_metric
    >>> in_metric(np.array([[3.0, 4.0], [300.0, 400.0]]), "cosine")
    array([[0.6, 0.8],
           [0.6, 0.8]])
    """
    if callable(metric) or check_choice(metric, "metric", METRICS) not in COORDINATES:
        raise ValueError(
            f"metric={metric!r} has no coordinates, which are needed here; pass one of "
            f"{', '.join(map(repr, COORDINATES))}."
        )
    if metric == "euclidean":
        return X
    if sparse.issparse(X):
        return _sparse_directions(X, metric)
    directions = np.empty(X.shape, X.dtype)
    lost = np.zeros(len(X), bool)  # rows that have no direction

    def work(rows: slice) -> None:
        # C order, because sums in Fortran order round differently.
        x = np.array(X[rows], dtype=np.float64, order="C")
        lost[rows] = ~x.any(axis=1) if metric == "cosine" else (x == x[:, :1]).all(axis=1)
        if metric == "correlation":
            x -= x.mean(axis=1, keepdims=True)
            x -= x.mean(axis=1, keepdims=True)  # what rounding left of a large mean
        norms = np.sqrt(squared_norms(x))
        lost[rows] |= norms == 0
        norms[lost[rows]] = 1.0
        directions[rows] = x / norms[:, None]

    for_each_tile(work, len(X))
    _refuse_lost(lost, metric)
    return directions


def _sparse_directions(X: sparse.csr_matrix, metric: Any) -> sparse.csr_matrix:
    if metric == "correlation":
        raise ValueError(
            "metric='correlation' but X is sparse, and rows less their means are not; pass "
            "X.toarray() if the memory suffices, or metric='cosine', which hardly differs where "
            "most entries are zero."
        )
    data, rows = X.data.astype(np.float64), np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    norms = np.sqrt(np.bincount(rows, data**2, minlength=X.shape[0]))
    _refuse_lost(norms == 0, metric)
    scaled = (data / norms[rows]).astype(X.dtype)
    return sparse.csr_matrix((scaled, X.indices, X.indptr), shape=X.shape)


def _refuse_lost(lost: Array, metric: Any) -> None:
    """Raise if there are rows without a direction."""
    rows = np.flatnonzero(lost)
    if len(rows):
        zero = metric == "cosine"
        held = "only zeros" if zero else "equal numbers"
        raise ValueError(
            f"metric={metric!r} but row(s) {name_rows(rows)} of X hold {held}, which have no "
            f"{'direction' if zero else 'correlation'} with others; leave out these rows, or pass "
            "metric='euclidean'."
        )
