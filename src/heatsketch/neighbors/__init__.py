"""Nearest neighbours of points: a tree, exact blocks or inverted lists, as the data ask for.

`index` chooses the search and orders what it finds; `inverted_lists` is the approximate one, whose
recall is measured; `kernels` are its compiled loops; `sources` takes what callers bring; `rows`
compares rows.
"""

from heatsketch.neighbors.found import Neighbors, Recall
from heatsketch.neighbors.index import NeighborIndex
from heatsketch.neighbors.rows import distinct_rows, pair_distances
from heatsketch.neighbors.sources import Search, distinct_search, search_of

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
