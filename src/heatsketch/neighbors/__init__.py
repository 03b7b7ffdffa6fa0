"""Nearest neighbours of points: by a tree, by blocks of all distances, or by inverted lists.

`index` chooses the search; `exact` finds all neighbours and breaks ties, by a tree or by `blocks`,
`inverted_lists` is the approximate one, whose recall is measured, `centroids` finds its cells and
`kernels` has its compiled loops; `search` accepts neighbours that the caller passes; `metric` maps
points so that Euclidean distances are those of another metric; `rows` compares rows of points.
"""

from heatsketch._random import distinct_rows
from heatsketch.neighbors.found import Neighbors, Recall
from heatsketch.neighbors.index import NeighborIndex
from heatsketch.neighbors.metric import COORDINATES, METRICS, Distances, in_metric
from heatsketch.neighbors.rows import all_distances, pair_distances
from heatsketch.neighbors.search import OrderedSearch, Search, ordered_search, search_of

__all__ = [
    "COORDINATES",
    "METRICS",
    "Distances",
    "NeighborIndex",
    "Neighbors",
    "OrderedSearch",
    "Recall",
    "Search",
    "all_distances",
    "distinct_rows",
    "in_metric",
    "ordered_search",
    "pair_distances",
    "search_of",
]
