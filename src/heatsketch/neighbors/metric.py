"""Metrics of points that are Euclidean distances of rows scaled to unit length."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from heatsketch._array import for_each_tile
from heatsketch._checks import check_choice, name_rows
from heatsketch._typing import Array, Points
from heatsketch.operators.kernel import squared_norms

METRICS = ("euclidean", "cosine", "correlation")


def in_metric(X: Points, metric: str) -> Points:
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
    if check_choice(metric, "metric", METRICS) == "euclidean":
        return X
    if sparse.issparse(X):
        return _sparse_directions(X, metric)
    directions = np.empty(X.shape, X.dtype)
    lost = np.zeros(len(X), bool)  # rows that have no direction

    def work(rows: slice) -> None:
        # C order, because sums in Fortran order round differently.
        x = np.array(X[rows], dtype=np.float64, order="C")
        lost[rows] = ~x.any(axis=1) if metric == "cosine" else (x == x[:, :1]).all(axis=1)
        x = _moderate(x)
        if metric == "correlation":
            x -= x.mean(axis=1, keepdims=True)
            x -= x.mean(axis=1, keepdims=True)  # what rounding left of a large mean
            x = _moderate(x)
        norms = np.sqrt(squared_norms(x))
        norms[lost[rows]] = 1.0
        directions[rows] = x / norms[:, None]

    for_each_tile(work, len(X))
    _refuse_lost(lost, metric)
    return directions


def _moderate(x: Array) -> Array:
    """Return rows times powers of two, their largest entries about 1, so that squares are safe."""
    exponents = np.frexp(np.abs(x).max(axis=1))[1]
    return np.ldexp(x, -exponents[:, None])


def _sparse_directions(X: sparse.csr_matrix, metric: str) -> sparse.csr_matrix:
    if metric == "correlation":
        raise ValueError(
            "metric='correlation' but X is sparse, and rows less their means are not; pass "
            "X.toarray() if the memory suffices, or metric='cosine', which hardly differs where "
            "most entries are zero."
        )
    data, rows = X.data.astype(np.float64), np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    largest = np.zeros(X.shape[0])
    np.maximum.at(largest, rows, np.abs(data))
    _refuse_lost(largest == 0, metric)
    data = np.ldexp(data, -np.frexp(largest)[1][rows])
    norms = np.sqrt(np.bincount(rows, data**2, minlength=X.shape[0]))
    scaled = (data / norms[rows]).astype(X.dtype)
    return sparse.csr_matrix((scaled, X.indices, X.indptr), shape=X.shape)


def _refuse_lost(lost: Array, metric: str) -> None:
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
