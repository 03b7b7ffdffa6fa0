"""A search on the host or on a device, whose results stay there."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._tensors import on_host
from heatsketch._typing import Points
from heatsketch.backend import Block, Blocks
from heatsketch.backend.searches import exact_search
from heatsketch.neighbors.exact import Neighbors
from heatsketch.neighbors.search import Search

_EXACT_POINTS = 16_384  # up to here all pairs are compared


def is_approximate(points: Points, recall: float, blocks: Blocks) -> bool:
    """Return whether a search among points (n, d) in a place may miss neighbours."""
    n, d = points.shape
    always_exact = sparse.issparse(points) or d <= blocks.tree_features
    return not always_exact and n > _EXACT_POINTS and recall < 1


class PlacedSearch(Search):
    """A search among points (n, d) in one place: exact, or in inverted lists.

    Parameters
    ----------
    points : array, tensor or CSR matrix (n, d)
        Brought to the place, if they do not take too much of its memory.
    recall : float in (0, 1]
    blocks : Blocks
        The place. Queries and results are blocks there.
    source : function, optional
        Returns the same search on the host.
    """

    of_coordinates = True

    def __init__(
        self, points: Points, recall: float, blocks: Blocks, source: Callable[[], Any] | None = None
    ) -> None:
        self.points, self.n, self.blocks = blocks.native_if_small(points), points.shape[0], blocks
        self._recall, self._source = recall, source
        self.approximate = is_approximate(points, recall, blocks)

    def landed(self) -> Any:
        """Return the search on the host."""
        return self if self._source is None else self._source()

    def order(self) -> Block | None:
        """The points in an order that puts neighbours close together, if the search has one."""
        return self._search.order

    def diagnostics(self, k: int) -> dict[str, float]:
        """Return the recall of k neighbours and its standard error, if search is approximate."""
        if not self.approximate:
            return {}
        probes = self._search.probes_for(k)
        return {"recall": probes.recall, "recall_error": probes.recall_error}

    def query(self, x: Block | None, k: int) -> Neighbors:
        """Return the k nearest points of each row of x (m, k), None: of the points themselves."""
        return Neighbors(*self._search.nearest(k, x))

    def within(self, x: Block | None, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored."""
        x = on_host(self.points if x is None else x)
        search = exact_search(self.points, self.blocks) if self.approximate else self._search
        i, j, d = search.pairs_within(x, np.full(x.shape[0], float(radius)))
        return sparse.csr_matrix((d, (i, j)), shape=(x.shape[0], self.n))

    @cached_property
    def _search(self) -> Any:
        if not self.approximate:
            return exact_search(self.points, self.blocks)
        from heatsketch.neighbors.inverted_lists import InvertedLists  # compiled loops

        return InvertedLists(self.points, self._recall, self.blocks)
