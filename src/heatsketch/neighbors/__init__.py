"""Nearest neighbours of points: by a tree, by blocks of all distances, by lists, or on a device.

`search` has `NeighborIndex`, the searches and metrics that a caller passes, and distances of pairs;
`lists` the approximate search, whose recall is measured; `graph` graphs of neighbours and paths
along these; `missing` fills missing entries by neighbours.
"""

from heatsketch._random import distinct_rows
from heatsketch.core.blocks import pair_distances
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
