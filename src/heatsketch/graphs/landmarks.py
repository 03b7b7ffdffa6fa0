"""Landmarks: a few points that represent all, chosen at random or far from each other."""

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from heatsketch._random import seed_entropy
from heatsketch._tiles import filled
from heatsketch._typing import Array, Rng
from heatsketch._validation import check_choice, check_in_range

RULES = ("maxmin", "random")

_TILE = 2**14  # points whose distance to one landmark is computed at a time


def choose_landmarks(points: Array, rule: str, count: int, rng: Rng) -> Array:
    """Choose landmarks among the points (n, d) by one of `RULES`: their indices (l,), l <= count.

    These are all points where there are no more than `count`; "maxmin" leaves out copies.
    """
    check_choice(rule, "landmarks", RULES)
    generator = np.random.default_rng(seed_entropy(rng))
    if rule == "maxmin":
        return max_min(points, count, int(generator.integers(len(points))))
    return np.sort(generator.permutation(len(points))[:count])


def max_min(points: Array, count: int, first: int) -> Array:
    """Choose points one after another, each the farthest from those chosen before.

    Parameters
    ----------
    points : array (n, d), float64
    count : int
        Number of points wanted; fewer are chosen where fewer are distinct.
    first : int
        Index of the first point.

    Returns
    -------
    array (l,), l <= count
        Indices in the order of choice. The largest distance of a point to the nearest of them is at
        most twice the smallest possible (Gonzalez 1985).

    Notes
    -----
    Cost: count n d operations.
    """
    nearest = np.full(len(points), np.inf)
    chosen = [first]

    def squares(rows: slice) -> Array:
        return cdist(points[rows], points[chosen[-1:]], "sqeuclidean")[:, 0]

    while len(chosen) < count:
        nearest = np.minimum(nearest, filled(squares, nearest.shape, _TILE))
        farthest = int(nearest.argmax())
        if nearest[farthest] == 0:
            break
        chosen.append(farthest)
    return np.array(chosen)


def check_indices(landmarks: Any, n: int) -> Array:
    """Return landmarks as the distinct indices (l,) of some of n points, or raise."""
    indices = np.asarray(landmarks)
    if indices.size == 0 or indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise ValueError(
            f"landmarks has shape {indices.shape} and dtype {indices.dtype}; pass a rule by "
            "its name, or row indices of X, integers (l,)."
        )
    check_in_range(indices, "landmarks", n)
    if len(np.unique(indices)) < len(indices):
        raise ValueError("landmarks holds a row index more than once; pass each once.")
    return indices
