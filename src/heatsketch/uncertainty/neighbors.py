"""How certain it is who is near in a sketch."""

from __future__ import annotations

from typing import Any

import numpy as np

from heatsketch._checks import check_number
from heatsketch._tiles import for_each_tile
from heatsketch._typing import Array, Rng
from heatsketch.neighbors import NeighborIndex
from heatsketch.uncertainty.resampling import check_resamples, columns_of

_CANDIDATES = 10  # times the neighbours: who may come among them in a resample
_TILE_NUMBERS = 2**21  # of the differences of a tile of points


def neighbor_confidence(
    est: Any, n_neighbors: int = 10, *, n_resamples: int = 50, rng: Rng = 0
) -> Array:
    """Compute for each point how often the same neighbours come out of other columns.

    The columns of the sketch are drawn again with replacement, as in `sketch_interval`. The
    confidence of a point is the share of these resamples in which one of its `n_neighbors` nearest
    points is again among the nearest, on average over these neighbours: 1 where all are certain.
    It speaks of the error of the sketch alone.

    Parameters
    ----------
    est : fitted HeatSketch, or array (n, k) of independent columns
        Of several times all columns together.
    n_neighbors : int >= 1, default 10
    n_resamples : int >= 20, default 50
    rng : int, Generator or None, default 0

    Returns
    -------
    array (n,)
        From 0 to 1.

    Raises
    ------
    TypeError
        `est` has no independent columns.
    ValueError
        A number out of range.

    Notes
    -----
    In a resample the nearest are looked for among the 10 `n_neighbors` nearest of the sketch
    itself, so that a confidence is slightly too high: of the digits by 1e-4 on average and 0.03 at
    most, of points that are all about equally far by more. Cost: one search for neighbours, and
    10 n_neighbors n_resamples k operations for each point.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> sketch = hs.HeatSketch(64, random_state=0).fit(X)
    >>> c = hs.uncertainty.neighbor_confidence(sketch, 5)
    >>> c.shape, bool((c >= 0).all() and (c <= 1).all())
    ((100,), True)
    """
    F, columns = columns_of(est)
    n, k = len(F), columns.shape[1]
    nearest = check_number(n_neighbors, "n_neighbors", low=1, high=n - 1, integer=True)
    draws = np.random.default_rng(rng).integers(0, k, (check_resamples(n_resamples), k))
    counts = np.array([np.bincount(drawn, minlength=k) for drawn in draws], dtype=F.dtype)
    near = _others(NeighborIndex(F).of_points(min(n, _CANDIDATES * nearest + 1)).indices)
    confidence = np.empty(n)

    def work(rows: slice) -> None:
        squares = np.square(F[near[rows]] - F[rows, None])  # (r, candidates, T k)
        own = squares[..., columns].sum(axis=2) if len(columns) > 1 else squares[..., columns[0]]
        drawn = own @ counts.T  # (r, candidates, resamples): squared distances
        last = np.partition(drawn, nearest - 1, axis=1)[:, nearest - 1 : nearest]
        confidence[rows] = (drawn[:, :nearest] <= last).mean(axis=(1, 2))

    for_each_tile(work, n, max(1, _TILE_NUMBERS // (near.shape[1] * F.shape[1])))
    return confidence


def _others(indices: Array) -> Array:
    """Leave out of each row the point itself, or the last where equal points hide it."""
    n, m = indices.shape
    own = indices == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True
    return indices[~own].reshape(n, m - 1)
