"""Nearest neighbours of points: by a tree, by blocks of all distances, by lists, or on a device.

`index` has `NeighborIndex`, and accepts the searches, metrics and graphs that the caller passes;
`placed` chooses the search of points in one place: that of all points, which `backend` has, or
`inverted_lists`, the approximate search, whose recall is measured (`recall`); `exact` has distances
of pairs; `metric` maps points so that Euclidean distances are those of another metric.
"""

from heatsketch._random import distinct_rows
from heatsketch.neighbors.search import (
    COORDINATES,
    METRICS,
    Distances,
    Metric,
    NeighborIndex,
    Neighbors,
    Search,
    all_distances,
    in_metric,
    ordered_search,
    pair_distances,
)

__all__ = [
    "COORDINATES",
    "METRICS",
    "Distances",
    "Metric",
    "NeighborIndex",
    "Neighbors",
    "Search",
    "all_distances",
    "distinct_rows",
    "in_metric",
    "ordered_search",
    "pair_distances",
]
