"""Metrics of points: Euclidean distances of rows scaled to unit length, and others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances
from sklearn.utils.extmath import row_norms

from heatsketch._exceptions import name_rows
from heatsketch._tiles import row_tiles
from heatsketch._typing import Array, Points
from heatsketch._validation import check_choice

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
    def from_metric(cls, metric: Metric) -> Distances | None:
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
            same = X.argmin(axis=1)
            copies = np.flatnonzero(same != np.arange(len(X)))
            apart = np.abs(X[copies] - X[same[copies]]).max(initial=0.0)
            if apart > 1e-6 * X.max():
                raise ValueError(
                    "X holds a distance of 0 between points whose other distances differ; pass "
                    "distances that are 0 for equal points only."
                )
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


def check_distances(D: Points) -> None:
    """Raise unless D is non-negative, square, symmetric to rounding, and zero on its diagonal.

    A sparse D holds distances to neighbours, and need not be symmetric.
    """
    if D.shape[0] != D.shape[1]:
        raise ValueError(
            f"X has shape {D.shape} but metric='precomputed'; pass the distances between all "
            "points, (n, n)."
        )
    check_non_negative(D)
    rounding = 1e-6 * float(D.max())
    if D.diagonal().max() > rounding:
        raise ValueError("X is not zero on its diagonal; pass distances, not affinities.")
    if sparse.issparse(D):
        return
    error = max(float(np.abs(D[rows] - D[:, rows].T).max()) for rows in row_tiles(len(D)))
    if error > rounding:
        raise ValueError(
            f"X is not symmetric (|X - X.T| is up to {error:.3g}); pass (X + X.T) / 2 if the "
            "difference is only rounding."
        )


def check_non_negative(D: Points) -> None:
    """Raise if a distance is negative."""
    if (D.data if sparse.issparse(D) else D).min(initial=0.0) < 0:
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
    metric : {"euclidean", "cosine", "correlation"}
        Distance between points. "cosine": the chord √(2 - 2 cos(x, y)). "correlation": the chord
        after the mean of each row has been subtracted from it.

    Raises
    ------
    ValueError
        A row without a direction: of zeros ("cosine") or of equal numbers ("correlation"); sparse
        X with "correlation".

    Notes
    -----
    Cost: some ten operations for each coordinate; a copy of X in float64.

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
    if metric == "correlation" and sparse.issparse(X):
        raise ValueError(
            "metric='correlation' but X is sparse, and rows less their means are not; pass "
            "X.toarray() if the memory suffices, or metric='cosine', which hardly differs where "
            "most entries are zero."
        )
    # C order, because sums in Fortran order round differently.
    x: Any = X.astype(np.float64) if sparse.issparse(X) else np.array(X, np.float64, order="C")
    if metric == "correlation":
        constant = (x == x[:, :1]).all(axis=1)
        for _ in range(2):  # the second time what rounding left of a large mean
            x -= x.mean(axis=1, keepdims=True)
        x[constant] = 0.0
    norms = row_norms(x)
    lost = np.flatnonzero(norms == 0)
    if len(lost):
        what = "only zeros" if metric == "cosine" else "equal numbers"
        raise ValueError(
            f"metric={metric!r} but row(s) {name_rows(lost)} of X hold {what}, which have no "
            "direction; leave out these rows, or pass metric='euclidean'."
        )
    if sparse.issparse(x):
        x.data /= np.repeat(norms, np.diff(x.indptr))
    else:
        x /= norms[:, None]
    return x.astype(X.dtype, copy=False)


def in_unit(X: Array) -> Array:
    """Return numbers times the power of two that makes the largest modulus 0.5 to 1.

    So the unit of X changes no bit of what follows, and no square or float32 leaves its range.
    """
    return X * 2.0 ** -np.frexp(np.abs(X).max(initial=0.0))[1]  # type: ignore[no-any-return]
