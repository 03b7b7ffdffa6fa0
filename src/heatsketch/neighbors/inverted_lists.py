"""Approximate nearest neighbours by inverted lists (Jégou, Douze and Schmid 2011), recall measured.

Points are sorted into cells around centroids of k-means, first coarse, then fine. A query is
compared with the points of the cells of the nearest centroids, all queries of a tile at once by
matrix products. The number of cells is calibrated: for some points the neighbours are computed
exactly, and as many cells are searched as contain the required share of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from heatsketch._array import Frame, for_each_tile, row_tiles
from heatsketch._checks import logger
from heatsketch._typing import Array
from heatsketch.neighbors import kernels
from heatsketch.neighbors.found import Recall
from heatsketch.operators.base import index_type

_POINTS_PER_CELL = 200  # on average
_TRAINING_PER_CENTROID = 32  # points
_K_MEANS_ITERATIONS = 6
_COARSE_N_PROBE = 3  # coarse cells searched for the nearest fine centroid
_TILE_QUERIES = 1024
_EXTRA_CANDIDATES = 6  # beyond k, because float32 may have changed their order
_CALIBRATION_POINTS = 512  # whose neighbours are computed exactly
_RECALL_MARGIN_ERRORS = 2.0  # standard errors by which the calibrated recall exceeds the target
_MAX_COORDINATE = 1e15  # larger ones are clipped: their squares would overflow float32
_MIN_CANDIDATE_CELLS = 64  # from which those to search are chosen


class Probes(NamedTuple):
    """Which cells are searched for k neighbours, and the share of the neighbours that is found."""

    k: int
    n_probe: int  # cells searched for each query
    candidate_cells: Array  # (cells, choice), for a query in each cell
    recall: Recall


class InvertedLists:
    """Points sorted into cells, and the search in these.

    Parameters
    ----------
    points : array (n, d), float32 or float64, C order
        Not copied; a float32 copy is stored in the order of the cells.
    frame : Frame

    Attributes
    ----------
    order : array (n,)
        The points in the order of their cells, which puts neighbours close together.
    """

    def __init__(self, points: Array, frame: Frame) -> None:
        self._points, self.frame = points, frame
        rng = np.random.default_rng(0)  # the same points give the same cells
        self._coarse, self._fine_starts, self._centroids = _train_centroids(points, frame, rng)
        self._sort()
        sample = rng.choice(len(points), min(_CALIBRATION_POINTS, len(points)), replace=False)
        self._sample = np.sort(sample)
        self._probes: dict[tuple[int, float], Probes] = {}

    def query(self, x: Array, k: int, recall: float) -> tuple[Array, Array]:
        """Return distances in the frame and indices (m, k) of the nearest points of x (m, d)."""
        cells = self._cells_of(x)
        order = np.argsort(cells, kind="stable")
        return self._search(x, cells, order, self.probes_for(k, recall))

    def of_points(self, k: int, recall: float) -> tuple[Array, Array]:
        """Return the same for the points of the index."""
        return self._search(self._points, self._cells, self.order, self.probes_for(k, recall))

    def probes_for(self, k: int, recall: float) -> Probes:
        """Return the cells that contain the share `recall` of the k neighbours, calibrated once."""
        if (k, recall) not in self._probes:
            self._probes[k, recall] = self._calibrate(k, recall)
        return self._probes[k, recall]

    def _sort(self) -> None:
        """Sort the points into the cells of their nearest centroids; compute the cell means."""
        self._cells = self._cells_of(self._points)
        counts = np.bincount(self._cells, minlength=len(self._centroids))
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self.order = np.argsort(self._cells, kind="stable").astype(index_type(len(self._points)))
        width = self._points.shape[1]
        self._rows = np.empty((len(self._points), width + 1), np.float32)
        means = self._centroids.copy()

        def work(cells: slice) -> None:
            for c in range(cells.start, cells.stop):
                positions = slice(self._starts[c], self._starts[c + 1])
                if positions.start == positions.stop:
                    continue
                members = self.frame(self._points[self.order[positions]])
                means[c] = members.mean(axis=0)
                members -= means[c]
                self._rows[positions, :width] = -2.0 * members
                self._rows[positions, width] = np.einsum("ij,ij->i", members, members)

        for_each_tile(work, len(means), 64)
        self._means = means

    def _cells_of(self, x: Array) -> Array:
        cells = np.empty(len(x), np.int32)

        def work(rows: slice) -> None:
            centroids = self._coarse, self._fine_starts, self._centroids
            cells[rows] = kernels.nearest_cell(self._in_frame(x[rows]), *centroids, _COARSE_N_PROBE)

        for_each_tile(work, len(x), _TILE_QUERIES)
        return cells

    def _in_frame(self, x: Array) -> Array:
        return np.clip(self.frame(x), -_MAX_COORDINATE, _MAX_COORDINATE)

    def _search(self, x: Array, cells: Array, order: Array, probes: Probes) -> tuple[Array, Array]:
        shape = (len(x), probes.k)
        distances, indices = np.empty(shape), np.empty(shape, np.int64)

        def work(positions: slice) -> None:
            rows = order[positions]
            distances[rows], indices[rows] = self._nearest(x[rows], cells[rows], probes)

        for_each_tile(work, len(x), _TILE_QUERIES)
        return distances, indices

    def _nearest(self, x: Array, cells: Array, probes: Probes) -> tuple[Array, Array]:
        framed, k = self._in_frame(x), probes.k
        chosen = kernels.cells_to_search(
            framed, cells, self._means, probes.candidate_cells, probes.n_probe
        )
        positions = self._candidates(framed, cells, chosen, k)
        incomplete = np.flatnonzero(positions[:, k - 1] < 0)
        if len(incomplete):  # these cells contain fewer than k points
            all_cells = self._all_cells(len(incomplete))
            positions[incomplete] = self._candidates(
                framed[incomplete], cells[incomplete], all_cells, k
            )
        return self._sorted(x, positions, k)

    def _exact(self, x: Array, cells: Array, k: int) -> tuple[Array, Array]:
        """Return distances and indices (m, k) of the nearest points of x (m, d) in all cells."""
        distances, indices = np.empty((len(x), k)), np.empty((len(x), k), np.int64)

        def work(rows: slice) -> None:
            all_cells = self._all_cells(rows.stop - rows.start)
            positions = self._candidates(self._in_frame(x[rows]), cells[rows], all_cells, k)
            distances[rows], indices[rows] = self._sorted(x[rows], positions, k)

        for_each_tile(work, len(x), _CALIBRATION_POINTS // 4)
        return distances, indices

    def _candidates(self, framed: Array, cells: Array, chosen: Array, k: int) -> Array:
        return kernels.candidates(
            framed, cells, chosen, self._starts, self._rows, self._means, k + _EXTRA_CANDIDATES
        )

    def _sorted(self, x: Array, positions: Array, k: int) -> tuple[Array, Array]:
        scale = math.ldexp(1.0, -self.frame.exponent)
        return kernels.sort_exactly(x, self._points, scale, positions, self.order, k)

    def _all_cells(self, m: int) -> Array:
        return np.tile(np.arange(len(self._means), dtype=np.int32), (m, 1))

    def _calibrate(self, k: int, target: float) -> Probes:
        """Choose how many cells are searched, from the cells of the neighbours of a sample."""
        x, own = self._points[self._sample], self._cells[self._sample]
        distances, indices = self._exact(x, own, k)
        ranks = self._ranks(self._in_frame(x), own, self._cells[indices])
        required = target
        for _ in range(2):
            count = int(np.quantile(ranks, required, method="higher")) + 1
            error = np.mean(ranks < count, axis=1).std() / math.sqrt(len(x))
            required = min(1.0, target + _RECALL_MARGIN_ERRORS * float(error))
        choice, farthest = max(_MIN_CANDIDATE_CELLS, 8 * count), distances[:, -1:] * (1 + 1e-12)
        while True:  # a cell near the query may be far from the mean of the query's own cell
            choice = min(choice, len(self._means))
            probes = Probes(k, count, self._nearest_cells(choice), Recall(1.0, 0.0))
            found = np.mean(self._nearest(x, own, probes)[0] <= farthest, axis=1)
            if found.mean() >= target or choice == len(self._means):
                break
            choice *= 2
        recall = Recall(float(found.mean()), float(found.std() / math.sqrt(len(found))))
        logger.info(
            "neighbours: %d of %d cells are searched, recall %.4f ± %.4f",
            *(count, len(self._means), *recall),
        )
        return probes._replace(recall=recall)

    def _ranks(self, x: Array, own: Array, cells: Array) -> Array:
        """Return the rank of each of the cells (m, k) by its distance to its query."""
        squares = _squares(x, self._means)
        squares[np.arange(len(x)), own] = -1.0
        ranks = np.argsort(np.argsort(squares, axis=1), axis=1)
        return np.take_along_axis(ranks, cells, axis=1)

    def _nearest_cells(self, count: int) -> Array:
        near = np.empty((len(self._means), count), np.int32)
        for rows in row_tiles(len(self._means), 256):
            squares = _squares(self._means[rows], self._means)
            near[rows] = np.argpartition(squares, count - 1, axis=1)[:, :count]
        return near


def _train_centroids(
    points: Array, frame: Frame, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return coarse centroids (c, d), the first fine one of each (c + 1,), and the fine ones."""
    n_cells = max(1, len(points) // _POINTS_PER_CELL)
    rows = rng.choice(
        len(points), min(len(points), _TRAINING_PER_CENTROID * n_cells), replace=False
    )
    sample = frame(points[np.sort(rows)])
    coarse = _k_means(sample, math.isqrt(n_cells), rng)
    owner = _nearest(sample, coarse)
    fine = []
    for c in range(len(coarse)):
        members = sample[owner == c]
        count = max(1, round(n_cells * len(members) / len(sample)))
        fine.append(_k_means(members, count, rng) if len(members) else coarse[[c]])
    starts = np.concatenate([[0], np.cumsum([len(centroids) for centroids in fine])])
    return coarse, starts, np.concatenate(fine)


def _k_means(x: Array, count: int, rng: np.random.Generator) -> Array:
    centroids = x[rng.choice(len(x), min(count, len(x)), replace=False)]
    for _ in range(_K_MEANS_ITERATIONS):
        owner = _nearest(x, centroids)
        sizes = np.bincount(owner, minlength=len(centroids))
        order, used = np.argsort(owner, kind="stable"), sizes > 0
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        centroids[used] = np.add.reduceat(x[order], starts[used], axis=0) / sizes[used, None]
        centroids[~used] = x[rng.choice(len(x), np.count_nonzero(~used))]
    return centroids


def _nearest(x: Array, centroids: Array) -> Array:
    owner = np.empty(len(x), np.int64)

    def work(rows: slice) -> None:
        owner[rows] = _squares(x[rows], centroids).argmin(axis=1)

    for_each_tile(work, len(x))
    return owner


def _squares(x: Array, y: Array) -> Array:
    """Return |x_i - y_j|² - |x_i|² (m, n) by the Gram form, exact enough to rank cells."""
    return np.einsum("ij,ij->i", y, y) - 2.0 * (x @ y.T)
