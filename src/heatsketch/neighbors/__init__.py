"""Nearest neighbours of points: by a tree, by blocks of all distances, or by inverted lists.

`index` chooses the search; `exact` finds all neighbours and breaks ties, by a tree or by `blocks`,
`inverted_lists` is the approximate one, whose recall is measured, `centroids` finds its cells and
`kernels` has its compiled loops; `search` accepts neighbours that the caller passes; `metric` maps
points so that Euclidean distances are those of another metric; `rows` compares rows of points.
"""

from heatsketch.neighbors.found import Neighbors, Recall
from heatsketch.neighbors.index import NeighborIndex
from heatsketch.neighbors.metric import METRICS, in_metric
from heatsketch.neighbors.rows import all_distances, distinct_rows, pair_distances
from heatsketch.neighbors.search import Search, distinct_search, search_of

__all__ = [
    "METRICS",
    "NeighborIndex",
    "Neighbors",
    "Recall",
    "Search",
    "all_distances",
    "distinct_rows",
    "distinct_search",
    "in_metric",
    "pair_distances",
    "search_of",
]
