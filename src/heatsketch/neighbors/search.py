"""What a search for neighbours can be asked."""

from abc import ABC, abstractmethod
from typing import Any

from scipy import sparse

from heatsketch._typing import Array, Points
from heatsketch.neighbors.exact import Neighbors
from heatsketch.neighbors.metric import Distances


class Search(ABC):
    """Abstract base: a search for the nearest of some points, array or CSR (n, d)."""

    points: Points
    n: int  # of points
    distances: Distances | None = None  # of a metric without coordinates
    of_coordinates = False  # whether distances are those of the coordinates of `points`
    columns: Array | None = None  # of the points, where all that is known is a graph of distances

    def order(self) -> Array | None:
        """An order (n,) that puts neighbours close together, if the search has one."""
        return None

    def diagnostics(self, k: int) -> dict[str, float]:
        """Return measures of the quality of a search for k neighbours."""
        return {}

    @abstractmethod
    def query(self, x: Any, k: int) -> Neighbors:
        """Return the k nearest points of each row of x, (m, k).

        If x is None, those of the points themselves; a point is then in its own list, at
        distance 0, unless k or more others are equal to it.

        Raises
        ------
        ValueError, TypeError
            k is not a number of neighbours, or is more than the number of points; points that are
            not a finite table of the features of the search, or that its metric has no direction
            for.
        """

    @abstractmethod
    def within(self, x: Any, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored.

        If x is None, those between the points.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table of the features of the search, or that its metric has
            no direction for; a radius that is not a finite number >= 0.
        """
