"""Which rows are fitted of points that memory does not hold."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from heatsketch import memory
from heatsketch._typing import Array

HELD_OUT = 1000  # rows outside of the sample, on which two halves of it are compared
LEAST_POINTS = 100  # of a sample
_STREAM = 19  # random numbers apart from those of the estimator, which has the same seed


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a source, drawn uniformly without repetition; what is drawn depends on n alone."""

    rows: Array  # (N,) to be fitted, increasing
    half: Array  # (N,) which of them are in the first of two halves, drawn at random
    held_out: Array  # (m,) others, increasing

    @classmethod
    def draw(cls, n: int, count: int, seed: int) -> Sample:
        """Draw `count` of n rows, and others to hold out, by a seed."""
        sequence = np.random.SeedSequence(seed, spawn_key=(_STREAM,))
        held_out = min(HELD_OUT, n - count)
        drawn = np.random.default_rng(sequence).choice(n, count + held_out, replace=False)
        order = np.argsort(drawn[:count])
        half = np.arange(count) < count // 2
        return cls(drawn[:count][order], half[order], np.sort(drawn[count:]))


def seed_of(estimator: Any) -> int:
    """Return the seed by which rows are drawn: that of the estimator, if it is an integer."""
    seed = getattr(estimator, "random_state", 0)
    return int(seed) if isinstance(seed, numbers.Integral) else 0


def most_fitted(estimator: Any, n: int, d: int, dtype: np.dtype, stored: int | None = None) -> int:
    """Return how many of n points half of the memory holds, with their fit.

    Sparse points have so many entries stored. All are fitted by methods that `memory` does not
    know, and for given affinities.

    Raises
    ------
    MemoryError
        There is no memory for a sample.
    """
    parameters = estimator.get_params(deep=False)
    method = getattr(estimator, "_method", None)
    if method not in memory.PREDICTED_METHODS or parameters.get("affinity") == "precomputed":
        return n
    options = memory.options_of(np.empty((0, d), dtype), method, parameters)
    options["stored"] = stored
    found = memory.most_points(n, d, **options)
    if found < min(n, LEAST_POINTS):
        memory.check(n, d, **options)
    return found
