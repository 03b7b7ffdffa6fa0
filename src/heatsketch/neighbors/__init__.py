"""Nearest neighbours of points: by a tree, by blocks of all distances, or by inverted lists.

`index` chooses the search and breaks ties; `inverted_lists` is the approximate search, whose recall
is measured; `kernels` has its compiled loops; `search` accepts neighbours that the caller passes;
`rows` compares rows of points.
"""

from heatsketch.neighbors.found import Neighbors, Recall
from heatsketch.neighbors.index import NeighborIndex
from heatsketch.neighbors.rows import distinct_rows, pair_distances
from heatsketch.neighbors.search import Search, distinct_search, search_of

__all__ = [
    "NeighborIndex",
    "Neighbors",
    "Recall",
    "Search",
    "distinct_rows",
    "distinct_search",
    "pair_distances",
    "search_of",
]
