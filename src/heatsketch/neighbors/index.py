"""An index of points: chooses how neighbours are searched, and keeps those that are shared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._checks import as_floats, check_new_points, check_number, check_points
from heatsketch._typing import Array, Points
from heatsketch.neighbors import exact
from heatsketch.neighbors.exact import ExactSearch, Neighbors, Recall
from heatsketch.neighbors.metric import in_metric


class Search(ABC):
    """Abstract base: a search for the nearest of some points, array or CSR (n, d)."""

    points: Points
    n: int  # of points

    def order(self) -> Array | None:
        """An order (n,) that puts neighbours close together, if the search has one."""
        return None

    def diagnostics(self, k: int) -> dict[str, float]:
        """Return measures of the quality of a search for k neighbours."""
        return {}

    @abstractmethod
    def of_points(self, k: int) -> Neighbors:
        """Return the k nearest points of every point, itself first: (n, k)."""

    @abstractmethod
    def query(self, x: Points, k: int) -> Neighbors:
        """Return the k nearest points of each row of x, (m, k)."""

    @abstractmethod
    def points_within(self, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` between the points, CSR (n, n), zeros stored."""

    @abstractmethod
    def within(self, x: Points, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored."""


class NeighborIndex(Search):
    """A search structure over points (n, d), dense or CSR.

    The search is exact by a tree in at most 8 dimensions (15 up to 16,384 points), and by blocks of
    all distances for up to 16,384 points and for sparse data. Otherwise inverted lists find nearly
    all neighbours. Distances are computed from differences of coordinates, so that equal points are
    at distance exactly zero.

    Parameters
    ----------
    points : array or CSR matrix (n, d)
        They are not copied; do not change them.
    metric : "euclidean", "cosine" or "correlation", default "euclidean"
        As in `HeatSketch`, for the points and for those of `query` and `within`.
    recall : float in (0, 1], default 0.98
        Fraction of the exact neighbours that an approximate search must find. It is measured on 512
        of the points, whose exact neighbours are known, and as many cells are searched as it
        requires. Outliers do not lower the recall of the other points. 1: the search is exact.
    n_neighbors : int, optional
        Number of neighbours of every point that are stored once found (16 bytes each), so that
        estimators that share the index and need at most this number search once. By default none
        are stored.

    Attributes
    ----------
    points : array or CSR matrix (n, d)
        In the metric.
    n : int
    approximate : bool
        Whether neighbours may be missed.

    Notes
    -----
    `of_points(k)` returns the neighbours of the points of the index, `query(x, k)` those of any
    points, and `recall_at(k)` the fraction that is found. For a row equal to a point of the index
    both return the same. Cost: by blocks n d operations for each point, by inverted lists a
    fraction of it.

    Examples
    --------
    >>> from heatsketch.neighbors import NeighborIndex
    >>> NeighborIndex([[0.0], [1.0], [3.0]]).query([[0.9]], 2).indices
    array([[1, 0]])
    """

    _part: tuple[Array, NeighborIndex] | None = None
    _not_stored = ("_part",)  # in files of models

    def __init__(
        self,
        points: Any,
        *,
        metric: str = "euclidean",
        recall: float = 0.98,
        n_neighbors: int = 0,
    ) -> None:
        self.metric = metric
        self.recall = check_number(recall, "recall", low=0, high=1, open_low=True)
        self.points = in_metric(check_points(points, "points", min_rows=1), metric)
        check_number(n_neighbors, "n_neighbors", low=0, integer=True)
        self.n, d = self.points.shape
        self._n_kept = min(n_neighbors + 1, self.n) if n_neighbors else 0  # with itself
        always_exact = sparse.issparse(self.points) or d <= exact.MAX_TREE_FEATURES
        self.approximate = not always_exact and self.n > exact.EXACT_POINTS and self.recall < 1

    def __sklearn_clone__(self) -> NeighborIndex:
        """Return the index itself: clones of an estimator share it, since it does not change."""
        return self

    def order(self) -> Array | None:
        """An order (n,) that puts neighbours close together, if the search has one."""
        return self._search.order

    def recall_at(self, k: int) -> Recall:
        """Return the measured fraction of the k nearest points that is found; 1 where exact.

        Raises
        ------
        ValueError, TypeError
            k is not a number of neighbours, or is more than the number of points.
        """
        k = self._searched(k)
        return self._search.recall_at(k) if self.approximate else Recall(1.0, 0.0)

    def diagnostics(self, k: int) -> dict[str, float]:
        """Return the recall of k neighbours and its standard error, if search is approximate.

        Raises
        ------
        ValueError, TypeError
            k is not a number of neighbours, or is more than the number of points.
        """
        if not self.approximate:
            return {}
        recall = self.recall_at(k)
        return {"recall": recall.value, "recall_error": recall.error}

    def of_points(self, k: int) -> Neighbors:
        """Return the k nearest points of every point of the index, including itself: (n, k).

        Raises
        ------
        ValueError, TypeError
            k is not a number of neighbours, or is more than the number of points.
        """
        if self._searched(k) > self._n_kept:
            return self._search.nearest(k)
        return Neighbors(*(values[:, :k].copy() for values in self._nearest))

    def query(self, x: Any, k: int) -> Neighbors:
        """Return the k nearest points of each row of x (m, d).

        Raises
        ------
        ValueError, TypeError
            k is not a number of neighbours, or is more than the number of points; points that are
            not a finite table of the features of the index, or that the metric has no direction
            for.
        """
        nearest = self._search.nearest(self._searched(k), self._checked(x))
        return Neighbors(*(values[:, :k] for values in nearest))

    def points_within(self, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` between the points, CSR (n, n), zeros stored.

        Raises
        ------
        ValueError, TypeError
            A radius that is not a finite number >= 0.
        """
        return self._within(self.points, radius)

    def within(self, x: Any, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table of the features of the index, or that the metric has
            no direction for; a radius that is not a finite number >= 0.
        """
        return self._within(self._checked(x), radius)

    def pairs_within(self, x: Any, radii: Array) -> tuple[Array, Array, Array]:
        """Return (i, j, distance) of row i of x and the points j up to radii[i] from it.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table of the features of the index; radii that are not a
            number >= 0 for each of them.
        """
        x, radii = self._checked(x), as_floats(radii, "radii")
        if radii.shape != x.shape[:1] or not (radii >= 0).all():
            raise ValueError(
                f"radii has shape {radii.shape} and x has {x.shape[0]} rows; pass one number >= 0 "
                "for each row."
            )
        return self._exact.pairs_within(x, radii)

    def part(self, rows: Array) -> NeighborIndex:
        """Return the index of some rows in this order; the last one is kept for the next to ask."""
        points = self.points[rows]
        if self._part is None or not (
            np.array_equal(self._part[0], rows) and are_equal(self._part[1].points, points)
        ):
            index = NeighborIndex(points, recall=self.recall, n_neighbors=max(0, self._n_kept - 1))
            self._part = rows, index
        return self._part[1]

    def _searched(self, k: int) -> int:
        """Return how many neighbours are searched for k: the cells of a search depend on it."""
        if check_number(k, "k", low=1, integer=True) > self.n:
            raise ValueError(f"k={k} but the index has {self.n} points; pass k <= {self.n}.")
        return max(k, self._n_kept)

    def _checked(self, x: Any) -> Points:
        return in_metric(check_new_points(x, self.points, "the index", "x"), self.metric)

    def _within(self, x: Points, radius: Any) -> sparse.csr_matrix:
        radius = check_number(radius, "radius", low=0)
        i, j, d = self._exact.pairs_within(x, np.full(x.shape[0], float(radius)))
        return sparse.csr_matrix((d, (i, j)), shape=(x.shape[0], self.n))

    @cached_property
    def _nearest(self) -> Neighbors:
        return self._search.nearest(self._n_kept)

    @cached_property
    def _exact(self) -> ExactSearch:
        return ExactSearch(self.points) if self.approximate else self._search

    @cached_property
    def _search(self) -> Any:
        if not self.approximate:
            return ExactSearch(self.points)
        from heatsketch.neighbors.inverted_lists import InvertedLists  # compiled loops

        return InvertedLists(self.points, self.recall)


def are_equal(a: Points, b: Points) -> bool:
    """Say whether two arrays or two CSR matrices hold the same numbers."""
    if a.shape != b.shape or sparse.issparse(a) != sparse.issparse(b):
        return False
    return (a != b).nnz == 0 if sparse.issparse(a) else bool(np.array_equal(a, b))
