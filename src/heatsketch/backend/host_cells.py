"""Points on the host sorted into cells, and the search in these by compiled loops.

All queries of a tile are compared at once by matrix products in float32, whose results are bounds:
where their rounding might have hidden a neighbour, all points of the cells searched are compared by
differences in float64. Centres of cells do not follow points much farther than most.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import get_index_dtype
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils.extmath import row_norms

from heatsketch._tiles import for_each_tile, track
from heatsketch._typing import Array
from heatsketch.backend import search_loops
from heatsketch.backend.cells import Cells, Coordinates, Probes

_FAR_FROM_CENTROID = 32.0  # times the median distance in a cell: such points do not move its mean
_POINTS_PER_CELL = 200  # on average
_TRAINING_PER_CENTROID = 32  # points
_COARSE_N_PROBE = 3  # coarse cells searched for the nearest fine centroid
_TILE_QUERIES = 1024
_TILE_QUERIES_OF_ALL = 128
_EXTRA_CANDIDATES = 6  # beyond k, because float32 may have changed their order
_MIN_CANDIDATE_CELLS = 64  # from which those to search are chosen


class HostCells(Cells):
    """Cells of points on the host; a float32 copy is stored in their order."""

    dtype = np.float64

    def __init__(
        self, points: Array, coordinates: Coordinates, centroids: tuple[Array, Array, Array]
    ) -> None:
        self._points, self._coordinates, self._centroids = points, coordinates, centroids
        self._rounding = search_loops.rounding(points.shape[1])
        self.own = self.of(points)
        counts = np.bincount(self.own, minlength=len(centroids[2]))
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        index = get_index_dtype(maxval=len(points))
        self.order = np.argsort(self.own, kind="stable").astype(index)
        width = points.shape[1]
        self._rows = np.empty((len(points), width + 1), np.float32)
        means = centroids[2].copy()

        def work(cells: slice) -> None:
            for c in range(cells.start, cells.stop):
                positions = slice(self._starts[c], self._starts[c + 1])
                if positions.start == positions.stop:
                    continue
                members = coordinates.of(points[self.order[positions]])
                squares = row_norms(members - means[c], squared=True)
                near = squares <= _FAR_FROM_CENTROID**2 * np.median(squares)
                means[c] = members[near].mean(axis=0)
                members -= means[c]
                self._rows[positions, :width] = -2.0 * members
                sizes = row_norms(members, squared=True)
                self._rows[positions, width] = (1 - self._rounding) * sizes

        for_each_tile(work, len(means), 64)
        self.means = means

    @staticmethod
    def sizes(n: int) -> tuple[int, int]:
        """Make small cells: most of the work is in the cells searched."""
        n_cells = max(1, n // _POINTS_PER_CELL)
        return n_cells, min(n, _TRAINING_PER_CENTROID * n_cells)

    @staticmethod
    def n_coarse(n_cells: int) -> int:
        """Make both levels equally large."""
        return math.isqrt(n_cells)

    @staticmethod
    def n_near(count: int) -> int:
        """Leave a choice for each query."""
        return max(_MIN_CANDIDATE_CELLS, 8 * count)

    @staticmethod
    def nearest_centroids(x: Array, centroids: Array) -> Array:
        """Compare in blocks."""
        centre = np.median(centroids, axis=0)  # squares of a common offset would cost digits
        return np.asarray(pairwise_distances_argmin(x - centre, centroids - centre))

    @staticmethod
    def moved(centroids: Array, x: Array, owner: Array, rng: np.random.Generator) -> Array:
        """Reduce segments of the sorted rows; one without points gets the place of any point."""
        sizes, means = np.bincount(owner, minlength=len(centroids)), np.empty_like(centroids)
        used, starts = sizes > 0, np.concatenate([[0], np.cumsum(sizes)[:-1]])
        rows = x[np.argsort(owner, kind="stable")]
        means[used] = np.add.reduceat(rows, starts[used], axis=0) / sizes[used, None]
        means[~used] = x[rng.choice(len(x), np.count_nonzero(~used))]
        return means

    @staticmethod
    def squares(x: Array, y: Array) -> Array:
        """Multiply in float64."""
        return row_norms(y, squared=True) - 2.0 * (x @ y.T)

    @staticmethod
    def nearest_columns(squares: Array, count: int) -> Array:
        """Return them in any order."""
        return np.argpartition(squares, count - 1, axis=1)[:, :count].astype(np.int32)

    def of(self, x: Array) -> Array:
        """Compare with the fine centroids of the nearest coarse ones."""
        cells = np.empty(len(x), np.int32)

        def work(rows: slice) -> None:
            scaled = self._coordinates.of(x[rows])
            cells[rows] = search_loops.nearest_cell(scaled, *self._centroids, _COARSE_N_PROBE)

        stage = track(None, "cells of the points", len(x), "points")
        for_each_tile(work, len(x), _TILE_QUERIES, stage)
        return cells

    def seen_from(self, x: Array, own: Array) -> Array:
        """Return the points: each has its own list."""
        return self._coordinates.of(x)

    def nearest(self, x: Array | None, own: Array, probes: Probes) -> tuple[Array, Array]:
        """Search tiles of queries, those of a cell together."""
        order = self.order if x is None else np.argsort(own, kind="stable")
        x = self._points if x is None else x
        distances, indices = np.empty((len(x), probes.k)), np.empty((len(x), probes.k), np.int64)

        def work(positions: slice) -> None:
            rows = order[positions]
            scaled = self._coordinates.of(x[rows])
            chosen = search_loops.cells_to_search(
                scaled, own[rows], self.means, probes.near, probes.n_probe
            )
            distances[rows], indices[rows] = self._nearest_in(
                x[rows], scaled, own[rows], chosen, probes.k, probes.tolerance
            )

        bar = track(None, "nearest neighbours", len(x), "points")
        for_each_tile(work, len(x), _TILE_QUERIES, bar)
        return distances, indices

    def nearest_of_all(self, x: Array, own: Array, k: int) -> tuple[Array, Array]:
        """Search all cells."""
        distances, indices = np.empty((len(x), k)), np.empty((len(x), k), np.int64)
        every = np.arange(len(self.means), dtype=np.int32)

        def work(rows: slice) -> None:
            chosen = np.tile(every, (rows.stop - rows.start, 1))
            scaled = self._coordinates.of(x[rows])
            distances[rows], indices[rows] = self._nearest_in(
                x[rows], scaled, own[rows], chosen, k, 0.0
            )

        for_each_tile(work, len(x), _TILE_QUERIES_OF_ALL)
        return distances, indices

    def _nearest_in(
        self, x: Array, scaled: Array, own: Array, chosen: Array, k: int, tolerance: float
    ) -> tuple[Array, Array]:
        """Return distances and indices of the nearest points of x in the chosen cells.

        No other point of these cells is nearer than the last by more than the tolerance.
        """
        lists = self._starts, self._rows, self.means, self._rounding
        positions, bounds = search_loops.candidates(
            scaled, own, chosen, lists, k + _EXTRA_CANDIDATES
        )
        found = search_loops.sort_exactly(x, self._points, positions, self.order, k)
        squares = (found[0][:, -1] * self._coordinates.unit) ** 2 * (1 - tolerance)
        doubtful = np.isinf(squares) | ~(squares <= np.maximum(bounds, 0.0))
        for i in np.flatnonzero(doubtful):  # compared with all points of these cells
            cells = (np.arange(self._starts[c], self._starts[c + 1]) for c in chosen[i])
            every = np.concatenate(list(cells)).astype(np.int32)[None]
            one = search_loops.sort_exactly(x[i : i + 1], self._points, every, self.order, k)
            found[0][i], found[1][i] = one[0][0], one[1][0]
        return found
