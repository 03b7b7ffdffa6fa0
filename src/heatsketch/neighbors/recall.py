"""The recall of a search in some of the cells: how many cells it takes, and what is found."""

import math

import numpy as np

from heatsketch._typing import Array

CALIBRATION_POINTS = 512  # whose neighbours are computed exactly
_MARGIN_ERRORS = 2.0  # standard errors by which the calibrated recall exceeds the target
# The neighbours of a point far from all others are in many cells: it searches all, if it is rare.
_FAR, _RARE = 32.0, 0.01  # times the median distance of the k-th neighbour; of the points


def cells_needed(ranks: Array, target: float) -> int:
    """Return how many cells contain a fraction of the neighbours.

    `ranks` (m, k): for each neighbour the number of its cell, counted from the cell of the point by
    distance.
    """
    required = target
    for _ in range(2):
        count = int(np.quantile(ranks, required, method="higher")) + 1
        error = np.mean(ranks < count, axis=1).std() / math.sqrt(len(ranks))
        required = min(1.0, target + _MARGIN_ERRORS * float(error))
    return count


def far_distance(farthest: Array) -> float:
    """Return the distance of a last neighbour from which on a point searches all cells."""
    return max(_FAR * float(np.median(farthest)), float(np.quantile(farthest, 1 - _RARE)))


def measured(distances: Array, farthest: Array) -> tuple[float, float]:
    """Return the fraction found (m, k) of the neighbours, and its standard error.

    A neighbour is found if its distance is at most that of the last exact one, `farthest` (m, 1).
    """
    found = np.mean(distances <= farthest, axis=1)
    # At least that of one row in all: a sample in which nothing is missing proves no more.
    error = max(float(found.std()) / math.sqrt(len(found)), 1 / len(found))
    return float(found.mean()), error
