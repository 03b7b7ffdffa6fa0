"""Centroids of cells by k-means, first coarse, then fine, which few far points cannot spoil.

k-means minimises squares: one point as far away as all others together takes a centroid from them,
or moves one to where no point is. Points much farther from the centre than most are therefore set
aside and get centroids of their own, in a frame of their own, as often as there are such points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from heatsketch._tiles import for_each_tile
from heatsketch._typing import Array
from heatsketch.operators.kernel import squared_norms

_FAR = 32.0  # times the median distance from the centre: beyond, squares have other sizes
_K_MEANS_ITERATIONS = 6


class Centroids(NamedTuple):
    """Centres of cells in two levels: those of coarse cell c are fine[starts[c] : starts[c+1]]."""

    coarse: Array  # (c, d)
    starts: Array  # (c + 1,)
    fine: Array  # (cells, d)


def train_centroids(sample: Array, n_cells: int, rng: np.random.Generator) -> Centroids:
    """Return about n_cells centroids for points of which these are a sample (m, d)."""
    coarse, fine = [], []
    for x in _shells(sample):
        n_own = n_cells * len(x) / len(sample)
        centroids = _k_means(x, max(1, math.isqrt(round(n_own))), rng)
        owner = _nearest(x, centroids)
        for c in range(len(centroids)):
            members = x[owner == c]
            count = max(1, round(n_cells * len(members) / len(sample)))
            fine.append(_k_means(members, count, rng) if len(members) else centroids[[c]])
        coarse.append(centroids)
    starts = np.concatenate([[0], np.cumsum([len(centroids) for centroids in fine])])
    return Centroids(np.concatenate(coarse), starts, np.concatenate(fine))


def near_most(squares: Array) -> Array:
    """Return which points (m,) are not much farther than most, from squared distances (m,)."""
    middle = len(squares) // 2
    return squares <= _FAR**2 * np.partition(squares, middle)[middle]


def _shells(x: Array) -> Iterator[Array]:
    """Split points (m, d) into those near their median, those near the median of the rest, ..."""
    while len(x):
        near = near_most(squared_norms(x - np.median(x, axis=0)))  # at least half of them
        yield x[near]
        x = x[~near]


def _k_means(x: Array, count: int, rng: np.random.Generator) -> Array:
    centroids = x[rng.choice(len(x), min(count, len(x)), replace=False)]
    for _ in range(_K_MEANS_ITERATIONS):
        owner = _nearest(x, centroids)
        sizes = np.bincount(owner, minlength=len(centroids))
        order, used = np.argsort(owner, kind="stable"), sizes > 0
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        centroids[used] = np.add.reduceat(x[order], starts[used], axis=0) / sizes[used, None]
        centroids[~used] = x[rng.choice(len(x), np.count_nonzero(~used))]
    return centroids


def _nearest(x: Array, centroids: Array) -> Array:
    owner = np.empty(len(x), np.int64)
    centre = np.median(centroids, axis=0)  # squares of a common offset would cost digits
    x, centroids = x - centre, centroids - centre

    def work(rows: slice) -> None:
        owner[rows] = squares_less_own(x[rows], centroids).argmin(axis=1)

    for_each_tile(work, len(x))
    return owner


def squares_less_own(x: Array, y: Array) -> Array:
    """Return |x_i - y_j|² - |x_i|² (m, n) by the Gram form, exact enough to rank cells."""
    return squared_norms(y) - 2.0 * (x @ y.T)
