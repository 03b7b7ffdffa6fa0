"""Approximate nearest neighbours in inverted lists, with a recall that is measured.

Points are sorted into cells around centres found by k-means, first coarse, then fine. A query is
compared with the points of the cells whose centres are nearest, all queries of a tile at once by
matrix products (Jégou, Douze and Schmid 2011 call the structure an inverted file). How many cells
must be searched is read off the data: for some rows the neighbours are computed exactly, and as
many cells are searched as hold the share of them that was asked for.
"""

from __future__ import annotations

import logging
import math
from typing import NamedTuple

import numpy as np

from heatsketch._array import Frame, for_each_tile, row_tiles
from heatsketch._typing import Array
from heatsketch.neighbors import kernels
from heatsketch.neighbors.found import Recall
from heatsketch.operators.base import index_type

logger = logging.getLogger("heatsketch")

_CELL = 200  # points of a cell, on average
_TRAINING = 32  # points for each centre that k-means sees
_ROUNDS = 6  # of k-means
_REACH = 3  # coarse cells whose fine ones are looked at
_TILE = 1024  # queries at a time
_SPARE = 6  # candidates more than asked for, whose order rounding may have changed
_PROBES = 512  # rows whose neighbours are computed exactly
_SURE = 2.0  # standard errors by which the recall of these rows is kept above the target
_FARTHEST = 1e15  # a query is no farther off: its squares must be held in float32
_FEW = 64  # cells that a query chooses from, at least


class Probes(NamedTuple):
    """Which cells are searched for k neighbours, and what share of these is found."""

    k: int
    n_probe: int  # cells that are searched for each query
    near: Array  # (cells, choice), those that a query in a cell chooses from
    recall: Recall


class InvertedLists:
    """Cells of points, and the search in them.

    Parameters
    ----------
    points : array (n, d), float32 or float64, C order
        Read where they lie; what is stored is one float32 copy, in the order of the cells.
    frame : Frame

    Attributes
    ----------
    order : array (n,)
        The points in the order of their cells: near ones are near each other in it.
    """

    def __init__(self, points: Array, frame: Frame) -> None:
        self._points, self.frame = points, frame
        rng = np.random.default_rng(0)  # the same points, the same cells
        self._tops, self._starts_of_tops, self._centres = _centres(points, frame, rng)
        self._sort()
        sample = rng.choice(len(points), min(_PROBES, len(points)), replace=False)
        self._sample = np.sort(sample)
        self._probes: dict[tuple[int, float], Probes] = {}

    def query(self, x: Array, k: int, recall: float) -> tuple[Array, Array]:
        """Return distances in the frame and indices (m, k) of the nearest points of x (m, d)."""
        cells = self._cells_of(x)
        order = np.argsort(cells, kind="stable")
        return self._search(x, cells, order, self.probes_for(k, recall))

    def of_points(self, k: int, recall: float) -> tuple[Array, Array]:
        """Return what `query` returns for the points themselves."""
        return self._search(self._points, self._cells, self.order, self.probes_for(k, recall))

    def probes_for(self, k: int, recall: float) -> Probes:
        """Return how many cells hold the share `recall` of the k neighbours; measured once."""
        if (k, recall) not in self._probes:
            self._probes[k, recall] = self._calibrated(k, recall)
        return self._probes[k, recall]

    def _sort(self) -> None:
        """Sort the points into the cells of their nearest centres; move centres to their means."""
        self._cells = self._cells_of(self._points)
        counts = np.bincount(self._cells, minlength=len(self._centres))
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self.order = np.argsort(self._cells, kind="stable").astype(index_type(len(self._points)))
        width = self._points.shape[1]
        self._rows = np.empty((len(self._points), width + 1), np.float32)
        means = self._centres.copy()

        def work(cells: slice) -> None:
            for c in range(cells.start, cells.stop):
                places = slice(self._starts[c], self._starts[c + 1])
                if places.start == places.stop:
                    continue
                members = self.frame(self._points[self.order[places]])
                means[c] = members.mean(axis=0)
                members -= means[c]
                self._rows[places, :width] = -2.0 * members
                self._rows[places, width] = np.einsum("ij,ij->i", members, members)

        for_each_tile(work, len(means), 64)
        self._means = means

    def _cells_of(self, x: Array) -> Array:
        cells = np.empty(len(x), np.int32)

        def work(rows: slice) -> None:
            cells[rows] = kernels.nearest_cell(
                self._moved(x[rows]), self._tops, self._starts_of_tops, self._centres, _REACH
            )

        for_each_tile(work, len(x), _TILE)
        return cells

    def _moved(self, x: Array) -> Array:
        return np.clip(self.frame(x), -_FARTHEST, _FARTHEST)

    def _search(self, x: Array, cells: Array, order: Array, probes: Probes) -> tuple[Array, Array]:
        shape = (len(x), probes.k)
        distances, indices = np.empty(shape), np.empty(shape, np.int64)

        def work(places: slice) -> None:
            rows = order[places]
            distances[rows], indices[rows] = self._nearest(x[rows], cells[rows], probes)

        for_each_tile(work, len(x), _TILE)
        return distances, indices

    def _nearest(self, x: Array, cells: Array, probes: Probes) -> tuple[Array, Array]:
        moved, k = self._moved(x), probes.k
        chosen = kernels.cells_to_search(moved, cells, self._means, probes.near, probes.n_probe)
        places = self._candidates(moved, cells, chosen, k)
        few = np.flatnonzero(places[:, k - 1] < 0)
        if len(few):  # so many cells are nearly empty
            every = self._every_cell(len(few))
            places[few] = self._candidates(moved[few], cells[few], every, k)
        return self._sorted(x, places, k)

    def _exact(self, x: Array, cells: Array, k: int) -> tuple[Array, Array]:
        """Return distances and indices (m, k) of the nearest points of x (m, d) among all."""
        distances, indices = np.empty((len(x), k)), np.empty((len(x), k), np.int64)

        def work(rows: slice) -> None:
            every = self._every_cell(rows.stop - rows.start)
            places = self._candidates(self._moved(x[rows]), cells[rows], every, k)
            distances[rows], indices[rows] = self._sorted(x[rows], places, k)

        for_each_tile(work, len(x), _PROBES // 4)
        return distances, indices

    def _candidates(self, moved: Array, cells: Array, chosen: Array, k: int) -> Array:
        return kernels.candidates(
            moved, cells, chosen, self._starts, self._rows, self._means, k + _SPARE
        )

    def _sorted(self, x: Array, places: Array, k: int) -> tuple[Array, Array]:
        scale = math.ldexp(1.0, -self.frame.exponent)
        return kernels.sort_exactly(x, self._points, scale, places, self.order, k)

    def _every_cell(self, m: int) -> Array:
        return np.tile(np.arange(len(self._means), dtype=np.int32), (m, 1))

    def _calibrated(self, k: int, target: float) -> Probes:
        """Choose how many cells are searched, by where the exact neighbours of a sample are."""
        x, own = self._points[self._sample], self._cells[self._sample]
        distances, indices = self._exact(x, own, k)
        ranks = self._ranks(self._moved(x), own, self._cells[indices])
        wanted = target
        for _ in range(2):
            count = int(np.quantile(ranks, wanted, method="higher")) + 1
            error = np.mean(ranks < count, axis=1).std() / math.sqrt(len(x))
            wanted = min(1.0, target + _SURE * float(error))
        choice, farthest = max(_FEW, 8 * count), distances[:, -1:] * (1 + 1e-12)
        while True:  # a cell may be near the query but not near the centre of the query's own
            choice = min(choice, len(self._means))
            probes = Probes(k, count, self._nearest_cells(choice), Recall(1.0, 0.0))
            found = np.mean(self._nearest(x, own, probes)[0] <= farthest, axis=1)
            if found.mean() >= target or choice == len(self._means):
                break
            choice *= 2
        recall = Recall(float(found.mean()), float(found.std() / math.sqrt(len(found))))
        logger.info(
            "neighbours: %d of %d cells searched, recall %.4f ± %.4f",
            *(count, len(self._means), *recall),
        )
        return probes._replace(recall=recall)

    def _ranks(self, x: Array, own: Array, holders: Array) -> Array:
        """Return the turn at which each cell of `holders` (m, k) is searched for its query."""
        squares = _squares(x, self._means)
        squares[np.arange(len(x)), own] = -1.0
        ranks = np.argsort(np.argsort(squares, axis=1), axis=1)
        return np.take_along_axis(ranks, holders, axis=1)

    def _nearest_cells(self, count: int) -> Array:
        near = np.empty((len(self._means), count), np.int32)
        for rows in row_tiles(len(self._means), 256):
            squares = _squares(self._means[rows], self._means)
            near[rows] = np.argpartition(squares, count - 1, axis=1)[:, :count]
        return near


def _centres(points: Array, frame: Frame, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return coarse centres (c, d), where the fine ones of each start (c + 1,), and these."""
    n_cells = max(1, len(points) // _CELL)
    rows = rng.choice(len(points), min(len(points), _TRAINING * n_cells), replace=False)
    sample = frame(points[np.sort(rows)])
    tops = _k_means(sample, math.isqrt(n_cells), rng)
    owner = _nearest(sample, tops)
    fine = []
    for c in range(len(tops)):
        members = sample[owner == c]
        share = max(1, round(n_cells * len(members) / len(sample)))
        fine.append(_k_means(members, share, rng) if len(members) else tops[[c]])
    starts = np.concatenate([[0], np.cumsum([len(centres) for centres in fine])])
    return tops, starts, np.concatenate(fine)


def _k_means(x: Array, count: int, rng: np.random.Generator) -> Array:
    centres = x[rng.choice(len(x), min(count, len(x)), replace=False)]
    for _ in range(_ROUNDS):
        owner = _nearest(x, centres)
        sizes = np.bincount(owner, minlength=len(centres))
        order, used = np.argsort(owner, kind="stable"), sizes > 0
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        centres[used] = np.add.reduceat(x[order], starts[used], axis=0) / sizes[used, None]
        centres[~used] = x[rng.choice(len(x), np.count_nonzero(~used))]
    return centres


def _nearest(x: Array, centres: Array) -> Array:
    owner = np.empty(len(x), np.int64)

    def work(rows: slice) -> None:
        owner[rows] = _squares(x[rows], centres).argmin(axis=1)

    for_each_tile(work, len(x))
    return owner


def _squares(x: Array, y: Array) -> Array:
    """Return |x_i - y_j|² - |x_i|² (m, n) by the Gram form: good enough to rank cells."""
    return np.einsum("ij,ij->i", y, y) - 2.0 * (x @ y.T)
