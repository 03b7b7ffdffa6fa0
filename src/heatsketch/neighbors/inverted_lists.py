"""Approximate nearest neighbours by inverted lists (Jégou, Douze and Schmid 2011), recall measured.

Points are sorted into cells around centroids of k-means, first coarse, then fine. A query is
compared with the points of the cells of the nearest centroids, all queries of a tile at once by
matrix products in float32, whose results are bounds: where their rounding might have hidden a
neighbour, all points of these cells are compared by differences in float64. The number of cells is
calibrated: for some points the neighbours are computed exactly, and as many cells are searched as
contain the required fraction of them.

Far points must not cost the others their digits: the unit is the median distance from the centre,
not the largest, and centres of cells do not follow points much farther than most.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.sparse import get_index_dtype
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils.extmath import row_norms

from heatsketch._exceptions import logger
from heatsketch._tiles import for_each_tile, row_tiles, track
from heatsketch._typing import Array
from heatsketch.neighbors import search_loops
from heatsketch.neighbors.exact import Neighbors
from heatsketch.neighbors.recall import CALIBRATION_POINTS, cells_needed, far_distance, measured
from heatsketch.operators.kernel import centre_of

_FAR_FROM_CENTROID = 32.0  # times the median distance in a cell: such points do not move its mean
_K_MEANS_ITERATIONS = 6
_POINTS_PER_CELL = 200  # on average
_TRAINING_PER_CENTROID = 32  # points
_COARSE_N_PROBE = 3  # coarse cells searched for the nearest fine centroid
_TILE_QUERIES = 1024
_EXTRA_CANDIDATES = 6  # beyond k, because float32 may have changed their order
_MIN_CANDIDATE_CELLS = 64  # from which those to search are chosen
_UNIT = 2.0**-16  # becomes the median distance from the centre: squares of most are in float32
_TOLERANCE = 2.0**-10  # so that points equally far, which float32 cannot prove, cost nothing


class Probes(NamedTuple):
    """Which cells are searched for k neighbours, and the fraction of these that is found."""

    k: int
    n_probe: int  # cells searched for each query
    candidate_cells: Array  # (cells, choice), for a query in each cell
    far: float  # queries with farther neighbours, or fewer than k in these cells, search all cells
    tolerance: float  # relative difference of squares by which a missed point may be nearer
    recall: float = 1.0
    recall_error: float = 0.0  # its standard error


class InvertedLists:
    """Points sorted into cells, and the search in these.

    Parameters
    ----------
    points : array (n, d), float32 or float64
        In C order. Not copied; a float32 copy is stored in the order of the cells.
    recall : float in (0, 1]
        Fraction of the neighbours that is found.

    Attributes
    ----------
    order : array (n,)
        The points in the order of their cells, which puts neighbours close together.
    """

    def __init__(self, points: Array, recall: float) -> None:
        self._points, self._target = points, recall
        self._centre = centre_of(points)
        self._rounding = search_loops.rounding(points.shape[1])
        rng = np.random.default_rng(0)  # the same points give the same cells
        n_cells = max(1, len(points) // _POINTS_PER_CELL)
        count = min(len(points), _TRAINING_PER_CENTROID * n_cells)
        rows = np.sort(rng.choice(len(points), count, replace=False))
        norms = row_norms(self._points[rows] - self._centre)
        middle = float(np.median(norms[norms > 0])) if norms.any() else 1.0  # becomes `_UNIT`
        self._unit = math.ldexp(_UNIT, -math.frexp(middle)[1])
        self._centroids = train_centroids(self._scaled(self._points[rows]), n_cells, rng)
        self._sort()
        sample = rng.choice(len(points), min(CALIBRATION_POINTS, len(points)), replace=False)
        self._sample = np.sort(sample)
        self._probes: dict[int, Probes] = {}

    def nearest(self, k: int, x: Array | None = None) -> Neighbors:
        """Return the k nearest points of rows x (m, d), by default of the points themselves."""
        if x is None:
            x, cells, order = self._points, self._cells, self.order
        else:
            cells = self._cells_of(x)
            order = np.argsort(cells, kind="stable")
        probes = self.probes_for(k)
        distances, indices = np.empty((len(x), k)), np.empty((len(x), k), np.int64)

        def work(positions: slice) -> None:
            rows = order[positions]
            distances[rows], indices[rows] = self._nearest(x[rows], cells[rows], probes)

        bar = track(None, "nearest neighbours", len(x), "points")
        for_each_tile(work, len(x), _TILE_QUERIES, bar)
        return Neighbors(distances, indices)

    def probes_for(self, k: int) -> Probes:
        """Return the cells that contain enough of the k neighbours, calibrated once."""
        if k not in self._probes:
            self._probes[k] = self._calibrate(k)
        return self._probes[k]

    def _sort(self) -> None:
        """Sort the points into the cells of their nearest centroids; compute the cell means."""
        self._cells = self._cells_of(self._points)
        counts = np.bincount(self._cells, minlength=len(self._centroids[2]))
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        index = get_index_dtype(maxval=len(self._points))
        self.order = np.argsort(self._cells, kind="stable").astype(index)
        width = self._points.shape[1]
        self._rows = np.empty((len(self._points), width + 1), np.float32)
        means = self._centroids[2].copy()

        def work(cells: slice) -> None:
            for c in range(cells.start, cells.stop):
                positions = slice(self._starts[c], self._starts[c + 1])
                if positions.start == positions.stop:
                    continue
                members = self._scaled(self._points[self.order[positions]])
                squares = row_norms(members - means[c], squared=True)
                near = squares <= _FAR_FROM_CENTROID**2 * np.median(squares)
                means[c] = members[near].mean(axis=0)
                members -= means[c]
                self._rows[positions, :width] = -2.0 * members
                sizes = row_norms(members, squared=True)
                self._rows[positions, width] = (1 - self._rounding) * sizes

        for_each_tile(work, len(means), 64)
        self._means = means

    def _cells_of(self, x: Array) -> Array:
        cells = np.empty(len(x), np.int32)

        def work(rows: slice) -> None:
            scaled = self._scaled(x[rows])
            cells[rows] = search_loops.nearest_cell(scaled, *self._centroids, _COARSE_N_PROBE)

        stage = track(None, "cells of the points", len(x), "points")
        for_each_tile(work, len(x), _TILE_QUERIES, stage)
        return cells

    def _scaled(self, x: Array) -> Array:
        """Return the coordinates in which cells are compared."""
        return np.asarray((x - self._centre) * self._unit)

    def _nearest(self, x: Array, cells: Array, probes: Probes) -> tuple[Array, Array]:
        scaled = self._scaled(x)
        chosen = search_loops.cells_to_search(
            scaled, cells, self._means, probes.candidate_cells, probes.n_probe
        )
        found = self._nearest_in(x, scaled, cells, chosen, probes.k, probes.tolerance)
        lost = np.flatnonzero(~(found[0][:, -1] <= probes.far))
        if len(lost):
            found[0][lost], found[1][lost] = self._exact(x[lost], cells[lost], probes.k)
        return found

    def _exact(self, x: Array, cells: Array, k: int) -> tuple[Array, Array]:
        """Return distances and indices (m, k) of the nearest points of x (m, d) in all cells."""
        distances, indices = np.empty((len(x), k)), np.empty((len(x), k), np.int64)
        every = np.arange(len(self._means), dtype=np.int32)

        def work(rows: slice) -> None:
            chosen = np.tile(every, (rows.stop - rows.start, 1))
            distances[rows], indices[rows] = self._nearest_in(
                x[rows], self._scaled(x[rows]), cells[rows], chosen, k, 0.0
            )

        for_each_tile(work, len(x), CALIBRATION_POINTS // 4)
        return distances, indices

    def _nearest_in(
        self, x: Array, scaled: Array, own: Array, chosen: Array, k: int, tolerance: float
    ) -> tuple[Array, Array]:
        """Return distances and indices of the nearest points of x in the chosen cells.

        No other point of these cells is nearer than the last by more than the tolerance.
        """
        lists = self._starts, self._rows, self._means, self._rounding
        positions, bounds = search_loops.candidates(
            scaled, own, chosen, lists, k + _EXTRA_CANDIDATES
        )
        found = search_loops.sort_exactly(x, self._points, positions, self.order, k)
        squares = (found[0][:, -1] * self._unit) ** 2 * (1 - tolerance)
        doubtful = np.isinf(squares) | ~(squares <= np.maximum(bounds, 0.0))
        for i in np.flatnonzero(doubtful):  # compared with all points of these cells
            cells = (np.arange(self._starts[c], self._starts[c + 1]) for c in chosen[i])
            every = np.concatenate(list(cells)).astype(np.int32)[None]
            one = search_loops.sort_exactly(x[i : i + 1], self._points, every, self.order, k)
            found[0][i], found[1][i] = one[0][0], one[1][0]
        return found

    def _calibrate(self, k: int) -> Probes:
        """Choose how many cells are searched, from the cells of the neighbours of a sample."""
        x, own = self._points[self._sample], self._cells[self._sample]
        distances, indices = self._exact(x, own, k)
        squares = _squares_less_own(self._scaled(x), self._means)
        squares[np.arange(len(x)), own] = -np.inf
        ranks = np.argsort(np.argsort(squares, axis=1), axis=1)  # of the cells, by distance
        ranks = np.take_along_axis(ranks, self._cells[indices], axis=1)
        count = cells_needed(ranks, self._target)
        choice, farthest = max(_MIN_CANDIDATE_CELLS, 8 * count), distances[:, -1:] * (1 + 1e-12)
        far, tolerance = far_distance(farthest), _TOLERANCE
        while True:
            choice = min(choice, len(self._means))
            near = self._nearest_cells(choice)
            probes = Probes(k, count, near, far, tolerance)
            recall, error = measured(self._nearest(x, own, probes)[0], farthest)
            if recall >= self._target or (choice == len(self._means) and tolerance == 0):
                break
            # A cell near the query may be far from the mean of its own cell; many points may be
            # nearly, but not quite, equally far.
            choice, tolerance = 2 * choice, 0.0
        logger.info(
            "neighbours: %d of %d cells are searched, recall %.4f ± %.4f",
            *(count, len(self._means), recall, error),
        )
        return probes._replace(recall=recall, recall_error=error)

    def _nearest_cells(self, count: int) -> Array:
        near = np.empty((len(self._means), count), np.int32)
        for rows in row_tiles(len(self._means), 256):
            squares = _squares_less_own(self._means[rows], self._means)
            near[rows] = np.argpartition(squares, count - 1, axis=1)[:, :count]
        return near


def train_centroids(
    sample: Array, n_cells: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return about n_cells centroids for points of which these are a sample (m, d).

    In two levels: coarse ones (c, d), starts (c + 1,), and fine ones (cells, d), of which those of
    coarse cell c are fine[starts[c] : starts[c + 1]].
    """
    coarse, fine = _k_means(sample, math.isqrt(n_cells), rng), []
    owner = _nearest_centroids(sample, coarse)
    for c in range(len(coarse)):
        members = sample[owner == c]
        count = max(1, round(n_cells * len(members) / len(sample)))
        fine.append(_k_means(members, count, rng) if len(members) else coarse[[c]])
    starts = np.concatenate([[0], np.cumsum([len(centroids) for centroids in fine])])
    return coarse, starts, np.concatenate(fine)


def _k_means(x: Array, count: int, rng: np.random.Generator) -> Array:
    centroids = x[rng.choice(len(x), min(count, len(x)), replace=False)]
    for _ in range(_K_MEANS_ITERATIONS):
        owner = _nearest_centroids(x, centroids)
        sizes = np.bincount(owner, minlength=len(centroids))
        order, used = np.argsort(owner, kind="stable"), sizes > 0
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        centroids[used] = np.add.reduceat(x[order], starts[used], axis=0) / sizes[used, None]
        centroids[~used] = x[rng.choice(len(x), np.count_nonzero(~used))]
    return centroids


def _nearest_centroids(x: Array, centroids: Array) -> Array:
    centre = np.median(centroids, axis=0)  # squares of a common offset would cost digits
    return np.asarray(pairwise_distances_argmin(x - centre, centroids - centre))


def _squares_less_own(x: Array, y: Array) -> Array:
    """Return |x_i - y_j|² - |x_i|² (m, n) by the Gram form, exact enough to rank cells."""
    return row_norms(y, squared=True) - 2.0 * (x @ y.T)
