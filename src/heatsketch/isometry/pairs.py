"""Pairs of points from which a map is learned and by which it is measured."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist

from heatsketch._typing import Array
from heatsketch.neighbors import NeighborIndex, all_distances, pair_distances

ALL_PAIRS_UP_TO = 2_048  # points
RANDOM_PAIRS = 500_000
NEAR_ROWS = 4_000  # points whose nearest neighbours are searched in many dimensions
_NEAR, _COLLIDING = 5, 5  # nearest neighbours in the input and in the embedding
_SEED = 0  # a constant: pairs depend only on the order of the rows

Pairs = tuple[Array, Array]


def sampled_pairs(
    n: int, count: int, rng: np.random.Generator, labels: Array | None = None
) -> Pairs:
    """Draw pairs of two different points of n, some perhaps more than once.

    With labels (n,), from 0, both points have the same label; raises if there is no such pair.
    """
    if labels is None:
        i = rng.integers(0, n, count)
        return i, (i + rng.integers(1, n, count)) % n
    sizes, order = np.bincount(labels), np.argsort(labels, kind="stable")
    starts, ends = np.cumsum(sizes) - sizes, np.cumsum(sizes * (sizes - 1))
    if ends[-1] == 0:
        raise ValueError("No two points are in the same component; pass a larger n_neighbors.")
    drawn = rng.integers(0, ends[-1], count)  # of all ordered pairs
    group = np.searchsorted(ends, drawn, side="right")
    size, drawn = sizes[group], ends[group] - 1 - drawn
    i, step = drawn // (size - 1), 1 + drawn % (size - 1)
    return order[starts[group] + i], order[starts[group] + (i + step) % size]


def within(i: Array, j: Array, labels: Array | None) -> Pairs:
    """Return the pairs whose points have the same label; all pairs without labels (n,)."""
    if labels is None:
        return i, j
    kept = labels[i] == labels[j]
    return i[kept], j[kept]


def random_pairs(n: int, count: int) -> Pairs:
    """Return all pairs of n points if there are at most `count`, else about as many of them."""
    if n * (n - 1) // 2 <= count:
        return np.triu_indices(n, 1)
    return sampled_pairs(n, count, np.random.default_rng(_SEED))


def nearest_pairs(F: Array, rows: Array, k: int) -> Pairs:
    """Return the pairs of each of the rows and its k nearest other rows of F."""
    found = NeighborIndex(F).query(F[rows], k + 1).indices
    i, j = np.repeat(rows, k + 1), found.ravel()
    return i[i != j], j[i != j]


def near_pairs(F: Array) -> Pairs:
    """Return the pairs of the first rows of F and their nearest neighbours, the shortest pairs."""
    return nearest_pairs(F, np.arange(min(len(F), NEAR_ROWS)), min(_NEAR, len(F) - 1))


class DistortionEvaluator:
    """Evaluate embeddings of F (n, r) on a fixed set of pairs and on near pairs.

    Up to 2,048 points these are all pairs. Beyond, they are random pairs, nearest neighbours in F,
    and nearest neighbours in each embedding, which include collisions.
    """

    def __init__(self, F: Array) -> None:
        self._F = F
        if len(F) <= ALL_PAIRS_UP_TO:
            self._pairs, self._logs = np.triu_indices(len(F), 1), _logs(all_distances(F))
        else:
            sides = zip(random_pairs(len(F), RANDOM_PAIRS // 2), near_pairs(F), strict=True)
            i, j = (np.concatenate(side) for side in sides)
            self._pairs, self._logs = (i, j), _logs(pair_distances(F, F, i, j))

    def __call__(self, Y: Array) -> tuple[Array, Array, Array]:
        """Return the log ratios of the embedding Y (n, k) to F, (m,), and their pairs i, j."""
        i, j = self._pairs
        if len(Y) <= ALL_PAIRS_UP_TO:
            return _logs(pdist(Y)) - self._logs, i, j
        close = nearest_pairs(Y, np.arange(len(Y)), _COLLIDING)
        i, j = np.append(i, close[0]), np.append(j, close[1])
        known = np.append(self._logs, _logs(pair_distances(self._F, self._F, *close)))
        return _logs(pair_distances(Y, Y, i, j)) - known, i, j


def _logs(distances: Array) -> Array:
    """Return logarithms of distances, which are at least 1e-30 of the largest one."""
    return np.log(np.maximum(distances, 1e-30 * (distances.max() or 1.0)))
