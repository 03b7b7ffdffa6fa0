"""An index of points: chooses how neighbours are searched, and orders those that are found."""

from __future__ import annotations

import zlib
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._checks import Frame, as_floats, check_new_points, check_number, check_points
from heatsketch._tensors import on_host
from heatsketch._typing import Array, Points
from heatsketch.neighbors.exact import ExactSearch, has_tree, is_small
from heatsketch.neighbors.found import Neighbors, Recall
from heatsketch.neighbors.metric import in_metric


class NeighborIndex:
    """A search structure over points (n, d), dense or CSR.

    The search is exact by a tree in at most 8 dimensions (15 up to 16,384 points), and by blocks of
    all distances for up to 16,384 points and for sparse data; of equally distant points it takes
    those of lowest index. Otherwise inverted lists find nearly all neighbours. Distances are always
    computed from differences of coordinates, so that equal points are at distance exactly zero.

    Parameters
    ----------
    points : array or CSR matrix (n, d)
    metric : "euclidean", "cosine" or "correlation", default "euclidean"
        As in `HeatSketch`, for the points and for those of `query` and `within`.
    recall : float in (0, 1], default 0.98
        Share of the exact neighbours that an approximate search must find; it is measured on 512
        of the points, whose exact neighbours are known, and as many cells are searched as it
        requires. Outliers take no part of it from the others. 1: the search is exact.
    n_neighbors : int, optional
        Neighbours of every point that are kept once found (16 bytes each), so that estimators that
        share the index and need at most this number search once. By default none are kept.
    frame : Frame, optional
        Coordinates in which distances are input_points; by default those of the points.

    Notes
    -----
    `of_points(k)` returns the neighbours of the points of the index, `query(x, k)` those of any
    points, and `recall_at(k)` the share that is found. For a row equal to a point of the index both
    return the same. Cost: by blocks n d operations for each point, by inverted lists a share of it.

    Examples
    --------
    >>> from heatsketch.neighbors import NeighborIndex
    >>> NeighborIndex([[0.0], [1.0], [3.0]]).query([[0.9]], 2).indices
    array([[1, 0]])
    """

    _kept: Neighbors | None = None
    _framed: tuple[Array | None, NeighborIndex] | None = None
    _checksum: int | None = None
    _not_stored = ("_kept", "_framed", "_checksum")  # in files of models

    def __init__(
        self,
        points: Points,
        *,
        metric: str = "euclidean",
        recall: float = 0.98,
        n_neighbors: int = 0,
        frame: Frame | None = None,
    ) -> None:
        check_number(recall, "recall", low=0, high=1, open_low=True)
        check_number(n_neighbors, "n_neighbors", low=0, integer=True)
        points = in_metric(check_points(on_host(points), "points", min_rows=1), metric)
        self.metric = metric
        self.target_recall = recall
        self._n_kept = min(n_neighbors + 1, points.shape[0]) if n_neighbors else 0  # with itself
        self.input_points, self._frame = points, frame
        self._in_tree = has_tree(points)

    def __sklearn_clone__(self) -> NeighborIndex:
        """Return the index itself: clones of an estimator share it, since it does not change."""
        return self

    @property
    def n(self) -> int:
        """Number of points."""
        return self.input_points.shape[0]

    @property
    def approximate(self) -> bool:
        """Whether neighbours may be missed."""
        dense = not sparse.issparse(self.input_points)
        few = self._in_tree or is_small(self.n)
        return dense and not few and self.target_recall < 1

    def recall_at(self, k: int) -> Recall:
        """Return the measured share of the k nearest points that is found; 1 where exact.

        Raises
        ------
        ValueError, TypeError
            k is not a number of neighbours, or is more than the number of points.
        """
        self._check_count(k)
        if not self.approximate:
            return Recall(1.0, 0.0)
        return self._lists.probes_for(max(k, self._n_kept), self.target_recall).recall

    def diagnostics(self, k: int) -> dict[str, float]:
        """Return the recall of k neighbours and its standard error, if search is approximate.

        Raises
        ------
        ValueError, TypeError
            k is not a number of neighbours, or is more than the number of points.
        """
        recall = self.recall_at(k)
        if not self.approximate:
            return {}
        return {"recall": recall.value, "recall_error": recall.error}

    @cached_property
    def points(self) -> Points:
        """The points in the frame (n, d), float64."""
        return self.frame(self.input_points)

    def of_points(self, k: int) -> Neighbors:
        """Return the k nearest points of every point of the index, including itself: (n, k).

        Raises
        ------
        ValueError, TypeError
            k is not a number of neighbours, or is more than the number of points.
        """
        self._check_count(k)
        if k > self._n_kept:
            return self._search_points(k)
        if self._kept is None:
            self._kept = self._search_points(self._n_kept)
        return Neighbors(*(values[:, :k].copy() for values in self._kept))

    def query(self, x: Points, k: int) -> Neighbors:
        """Return the k nearest points of each row of x (m, d).

        Raises
        ------
        ValueError, TypeError
            k is not a number of neighbours, or is more than the number of points; points that are
            not a finite table of the features of the index, or that the metric has no direction
            for.
        """
        self._check_count(k)
        x = in_metric(self._checked(x), self.metric)
        if self.approximate:
            n_searched = max(k, self._n_kept)
            return self._from_lists(self._lists.query(x, n_searched, self.target_recall), k)
        return self._in_units(self._exact.nearest(self.frame(x), k))

    def in_frame(self, frame: Frame, rows: Array | None = None) -> NeighborIndex:
        """Return the index of the same points, or of some rows, with distances in a frame.

        The last one is kept. Its points, and those of its queries, are as `in_metric` returns them.

        Raises
        ------
        ValueError, TypeError
            The points, which are not copied, have changed since the first use; not a frame.
        """
        if not isinstance(frame, Frame):
            raise TypeError(f"frame is of type {type(frame).__name__}; pass Frame.of(points).")
        self._check_unchanged()
        if self._framed is not None:
            known, index = self._framed
            if frame.equals(index._frame) and np.array_equal(known, rows):  # type: ignore[arg-type]
                return index
        points = self.input_points if rows is None else self.input_points[rows]
        self._framed = rows, self._index_of(points, frame)
        return self._framed[1]

    def holds(self, x: Points) -> bool:
        """Return whether x equals the points of the index.

        Raises
        ------
        ValueError, TypeError
            Not an array or CSR matrix of numbers.
        """
        own, x = self.input_points, as_floats(x, "x")
        if x.shape != own.shape or sparse.issparse(x) != sparse.issparse(own):
            return False
        return (x != own).nnz == 0 if sparse.issparse(x) else bool(np.array_equal(x, own))

    def _index_of(self, points: Points, frame: Frame | None) -> NeighborIndex:
        k = max(0, self._n_kept - 1)
        return NeighborIndex(points, n_neighbors=k, frame=frame, recall=self.target_recall)

    def _check_unchanged(self) -> None:
        """Raise if the points, which are not copied, have been changed since the first use."""
        points = self.input_points.data if sparse.issparse(self.input_points) else self.input_points
        checksum = zlib.crc32(np.ascontiguousarray(points).view(np.uint8).data)
        if self._checksum is not None and checksum != self._checksum:
            raise ValueError(
                "The points of this NeighborIndex have changed since it was first used; create a "
                "new index."
            )
        self._checksum = checksum

    def _check_count(self, k: int) -> None:
        if check_number(k, "k", low=1, integer=True) > self.n:
            raise ValueError(f"k={k} but the index has {self.n} points; pass k <= {self.n}.")

    def _checked(self, x: Any, min_rows: int = 0) -> Points:
        """Return rows of points x (m, d), or raise if they are not of the features of the index."""
        return check_new_points(x, self.input_points, "the index", "x", min_rows=min_rows)

    def _search_points(self, k: int) -> Neighbors:
        if self.approximate:
            n_searched = max(k, self._n_kept)
            return self._from_lists(self._lists.of_points(n_searched, self.target_recall), k)
        return self._in_units(self._exact.nearest(self.points, k, self.order()))

    def order(self) -> Array | None:
        """Return an order (n,) that puts neighbours close together, if the search has one."""
        if self.approximate:
            return self._lists.order
        return self._exact.order

    def points_within(self, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` between the points, CSR (n, n), zeros stored.

        Raises
        ------
        ValueError, TypeError
            A radius that is not a finite number >= 0.
        """
        return self._within(self.points, radius)

    def within(self, x: Points, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table of the features of the index, or that the metric has
            no direction for; a radius that is not a finite number >= 0.
        """
        return self._within(self.frame(in_metric(self._checked(x), self.metric)), radius)

    def pairs_within(self, x: Points, radii: Array) -> tuple[Array, Array, Array]:
        """Return (i, j, distance) of row i of x and the points j up to radii[i] from it.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table of the features of the index; radii that are not a
            number >= 0 for each of them.
        """
        x, radii = self._checked(x, min_rows=1), as_floats(radii, "radii")
        if radii.shape != x.shape[:1] or not (radii >= 0).all():
            raise ValueError(
                f"radii has shape {radii.shape} and x has {x.shape[0]} rows; pass one number >= 0 "
                "for each row."
            )
        i, j, d = self._exact.pairs_within(self.frame(x), np.ldexp(radii, -self._unit))
        return i, j, np.ldexp(d, self._unit)

    def _within(self, x: Points, radius: Any) -> sparse.csr_matrix:
        radius = check_number(radius, "radius", low=0)
        found = self._exact.within(x, float(np.ldexp(radius, -self._unit)))
        found.data = np.ldexp(found.data, self._unit)
        return found

    def _in_units(self, found: Neighbors) -> Neighbors:
        """Return neighbours with distances in the units of the points, unless a frame was given."""
        return Neighbors(np.ldexp(found.distances, self._unit), found.indices)

    @cached_property
    def frame(self) -> Frame:
        """The frame in which points are compared; without a given one they are not centred.

        A division by a power of two keeps every digit of the differences of close points.
        """
        if self._frame is not None:
            return self._frame
        return Frame(Frame.of(self.input_points).exponent + 1, None)

    @property
    def _unit(self) -> int:
        """The exponent of the unit of the distances that are returned."""
        return self.frame.exponent if self._frame is None else 0

    @cached_property
    def _exact(self) -> ExactSearch:
        return ExactSearch(self.points, self._in_tree)

    @cached_property
    def _lists(self) -> Any:
        from heatsketch.neighbors.inverted_lists import InvertedLists  # compiled loops

        frame = Frame.of(self.input_points) if self._frame is None else self._frame
        return InvertedLists(np.ascontiguousarray(self.input_points), frame)

    def _from_lists(self, found: tuple[Array, Array], k: int) -> Neighbors:
        distances, indices = found
        if self._frame is None:  # back to the units of the points
            distances = np.ldexp(distances, self._lists.frame.exponent)
        return Neighbors(distances[:, :k], indices[:, :k])
