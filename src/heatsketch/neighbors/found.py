"""The results of a search for neighbours."""

from __future__ import annotations

from typing import NamedTuple

from heatsketch._typing import Array


class Neighbors(NamedTuple):
    """The nearest points of each query, nearest first."""

    distances: Array  # (m, k)
    indices: Array  # (m, k)


class Recall(NamedTuple):
    """The share of the exact neighbours that a search finds, and its standard error."""

    value: float
    error: float
