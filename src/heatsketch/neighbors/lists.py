"""Approximate nearest neighbours by inverted lists (Jégou, Douze and Schmid 2011), recall measured.

Points are sorted into cells around centroids of k-means, first coarse, then fine. A query is
compared with the points of the cells of the nearest centroids. The number of cells is calibrated:
for some points the neighbours are computed exactly, and as many cells are searched as contain the
required fraction of them. How the points of a cell are compared is a matter of the place.

Far points must not cost the others their digits: the unit is the median distance from the centre,
not the largest, and a query whose neighbours are far is compared with all points. On the host all
queries of a tile are compared at once by matrix products in float32, whose results are bounds:
where their rounding might have hidden a neighbour, all points of the cells searched are compared by
differences in float64. Centres of cells do not follow points much farther than most.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import get_index_dtype
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils.extmath import row_norms

from heatsketch._arrays import Array
from heatsketch._messages import logger
from heatsketch._threads import for_each_tile, row_tiles, track
from heatsketch.core.blocks import Block, Blocks, HostBlocks

CALIBRATION_POINTS = 512  # whose neighbours are computed exactly
_MARGIN_ERRORS = 2.0  # standard errors by which the calibrated recall exceeds the target
# The neighbours of a point far from all others are in many cells: it searches all, if it is rare.
_FAR, _RARE = 32.0, 0.01  # times the median distance of the k-th neighbour; of the points


def cells_needed(ranks: Array, target: float) -> int:
    """Return how many cells contain a fraction of the neighbours.

    `ranks` (m, k): for each neighbour the number of its cell, counted from the cell of the point by
    distance.
    """
    required = target
    for _ in range(2):
        count = int(np.quantile(ranks, required, method="higher")) + 1
        error = np.mean(ranks < count, axis=1).std() / math.sqrt(len(ranks))
        required = min(1.0, target + _MARGIN_ERRORS * float(error))
    return count


def far_distance(farthest: Array) -> float:
    """Return the distance of a last neighbour from which on a point searches all cells."""
    return max(_FAR * float(np.median(farthest)), float(np.quantile(farthest, 1 - _RARE)))


def measured(distances: Array, farthest: Array) -> tuple[float, float]:
    """Return the fraction found (m, k) of the neighbours, and its standard error.

    A neighbour is found if its distance is at most that of the last exact one, `farthest` (m, 1).
    """
    found = np.mean(distances <= farthest, axis=1)
    # At least that of one row in all: a sample in which nothing is missing proves no more.
    error = max(float(found.std()) / math.sqrt(len(found)), 1 / len(found))
    return float(found.mean()), error


class Probes(NamedTuple):
    """Which cells are searched for k neighbours, and the fraction of these that is found."""

    k: int
    n_probe: int  # cells searched for each query
    near: Array  # (cells, choice), from which these are chosen for a query in each cell; an array
    far: float  # queries with farther neighbours, or fewer than k in these cells, search all points
    tolerance: float  # relative difference of squares by which a point missed may be nearer
    recall: float = 1.0
    recall_error: float = 0.0  # its standard error


class Coordinates(NamedTuple):
    """The coordinates in which cells are compared."""

    blocks: Any
    centre: Block
    unit: float
    dtype: Any

    def of(self, x: Block) -> Block:
        """Return points (m, d) in these coordinates."""
        return self.blocks.native((x - self.centre) * self.unit, self.dtype)


class Cells(ABC):
    """Abstract base: points sorted into the cells of their nearest centroids.

    Parameters
    ----------
    points : block (n, d)
        Not copied. Those that a device has no room for are an array.
    coordinates : Coordinates
    centroids : (coarse, starts, fine)
        In two levels: coarse ones (c, d), starts (c + 1,), and fine ones (cells, d), of which
        those of coarse cell c are fine[starts[c] : starts[c + 1]].

    Attributes
    ----------
    own : block (n,)
        The cell of each point.
    order : block (n,)
        The points in the order of their cells, which puts neighbours close together.
    means : block (cells, d)
        The centres of the cells.
    """

    dtype: ClassVar[Any]  # of the coordinates
    own: Block
    order: Block
    means: Block

    @abstractmethod
    def __init__(
        self, points: Block, coordinates: Coordinates, centroids: tuple[Block, Array, Block]
    ) -> None: ...

    @staticmethod
    @abstractmethod
    def sizes(n: int) -> tuple[int, int]:
        """Return of how many cells n points are, and how many points train their centroids."""

    @staticmethod
    @abstractmethod
    def n_coarse(n_cells: int) -> int:
        """Return the number of coarse cells."""

    @staticmethod
    @abstractmethod
    def n_near(count: int) -> int:
        """Return from how many cells the `count` that are searched are chosen, at first."""

    @staticmethod
    @abstractmethod
    def nearest_centroids(x: Block, centroids: Block) -> Block:
        """Return the number of the nearest centroid of each x (m,), all pairs compared."""

    @staticmethod
    @abstractmethod
    def moved(centroids: Block, x: Block, owner: Block, rng: np.random.Generator) -> Block:
        """Return the means of the points x that each centroid owns.

        `owner` (m,) is the centroid of each point. One that owns none gets another place or stays.
        """

    @staticmethod
    @abstractmethod
    def squares(x: Block, y: Block) -> Block:
        """Return |x_i - y_j|² - |x_i|² (m, n) by the Gram form, exact enough to rank cells."""

    @staticmethod
    @abstractmethod
    def nearest_columns(squares: Block, count: int) -> Block:
        """Return the columns of the `count` smallest entries of each row."""

    @abstractmethod
    def of(self, x: Block) -> Block:
        """Return the cells of points (m,)."""

    @abstractmethod
    def seen_from(self, x: Block, own: Block) -> Block:
        """Return from where the nearest cells of points x, in the cells `own`, are counted."""

    @abstractmethod
    def nearest(self, x: Block | None, own: Block, probes: Probes) -> tuple[Block, Block]:
        """Return distances and numbers (m, k) of the nearest points in the cells searched.

        `own` (m,) are the cells of x; None: the points themselves. Where there are fewer than k,
        some distances are infinite.
        """

    @abstractmethod
    def nearest_of_all(self, x: Block, own: Block, k: int) -> tuple[Block, Block]:
        """Return distances and numbers (m, k) of the nearest of all points."""


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
        from heatsketch.neighbors import loops  # imports numba

        self._points, self._coordinates, self._centroids = points, coordinates, centroids
        self._rounding = loops.rounding(points.shape[1])
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
        from heatsketch.neighbors import loops  # imports numba

        cells = np.empty(len(x), np.int32)

        def work(rows: slice) -> None:
            scaled = self._coordinates.of(x[rows])
            cells[rows] = loops.nearest_cell(scaled, *self._centroids, _COARSE_N_PROBE)

        stage = track(None, "cells of the points", len(x), "points")
        for_each_tile(work, len(x), _TILE_QUERIES, stage)
        return cells

    def seen_from(self, x: Array, own: Array) -> Array:
        """Return the points: each has its own list."""
        return self._coordinates.of(x)

    def nearest(self, x: Array | None, own: Array, probes: Probes) -> tuple[Array, Array]:
        """Search tiles of queries, those of a cell together."""
        from heatsketch.neighbors import loops  # imports numba

        order = self.order if x is None else np.argsort(own, kind="stable")
        x = self._points if x is None else x
        distances, indices = np.empty((len(x), probes.k)), np.empty((len(x), probes.k), np.int64)

        def work(positions: slice) -> None:
            rows = order[positions]
            scaled = self._coordinates.of(x[rows])
            chosen = loops.cells_to_search(
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
        from heatsketch.neighbors import loops  # imports numba

        lists = self._starts, self._rows, self.means, self._rounding
        positions, bounds = loops.candidates(scaled, own, chosen, lists, k + _EXTRA_CANDIDATES)
        found = loops.sort_exactly(x, self._points, positions, self.order, k)
        squares = (found[0][:, -1] * self._coordinates.unit) ** 2 * (1 - tolerance)
        doubtful = np.isinf(squares) | ~(squares <= np.maximum(bounds, 0.0))
        for i in np.flatnonzero(doubtful):  # compared with all points of these cells
            cells = (np.arange(self._starts[c], self._starts[c + 1]) for c in chosen[i])
            every = np.concatenate(list(cells)).astype(np.int32)[None]
            one = loops.sort_exactly(x[i : i + 1], self._points, every, self.order, k)
            found[0][i], found[1][i] = one[0][0], one[1][0]
        return found


def cells_on(blocks: Blocks) -> type[Cells]:
    """Return the cells of a place."""
    if isinstance(blocks, HostBlocks):
        return HostCells
    from heatsketch.device.search import DeviceCells

    return DeviceCells


_K_MEANS_ITERATIONS = 6
_UNIT = 2.0**-16  # becomes the median distance from the centre: squares of most are in float32
_TOLERANCE = 2.0**-10  # so that points equally far, which float32 cannot prove, cost nothing
_TILE_CELLS = 256  # whose distances from all cells are computed at a time


class InvertedLists:
    """Points sorted into cells, and the search in these, on the host or a device.

    Parameters
    ----------
    points : block (n, d), float32 or float64
        In C order.
    recall : float in (0, 1]
        Fraction of the neighbours that is found.
    blocks : Blocks
        Where is searched, and the results are.
    """

    def __init__(self, points: Block, recall: float, blocks: Blocks) -> None:
        self._points, self._target, self._blocks = points, recall, blocks
        kind = cells_on(blocks)
        rng = np.random.default_rng(0)  # the same points give the same cells
        n_cells, count = kind.sizes(len(points))
        rows = np.sort(rng.choice(len(points), count, replace=False))
        sample, centre = blocks.rows(points, blocks.native(rows)), blocks.centre(points)
        coordinates = Coordinates(blocks, centre, _unit_of(sample - centre, blocks), kind.dtype)
        centroids = train_centroids(coordinates.of(sample), n_cells, rng, kind, blocks)
        self._cells = kind(points, coordinates, centroids)
        rows = rng.choice(len(points), min(CALIBRATION_POINTS, len(points)), replace=False)
        self._sample = np.sort(rows)
        self._probes: dict[int, Probes] = {}

    @property
    def order(self) -> Block:
        """The points (n,) in the order of their cells, which puts neighbours close together."""
        return self._cells.order

    def nearest(self, k: int, x: Block | None = None) -> tuple[Block, Block]:
        """Return distances and numbers (m, k) of the points nearest to rows x (m, d).

        By default to the points themselves.
        """
        own = self._cells.own if x is None else self._cells.of(x)
        return self._nearest(x, own, self.probes_for(k))

    def probes_for(self, k: int) -> Probes:
        """Return the cells that contain enough of the k neighbours, calibrated once."""
        if k not in self._probes:
            self._probes[k] = self._calibrate(k)
        return self._probes[k]

    def _nearest(self, x: Block | None, own: Block, probes: Probes) -> tuple[Block, Block]:
        distances, indices = self._cells.nearest(x, own, probes)
        lost = self._blocks.xp.argwhere(~(distances[:, -1] <= probes.far))[:, 0]
        if len(lost):
            again = self._blocks.rows(self._points if x is None else x, lost)
            found = self._cells.nearest_of_all(again, own[lost], probes.k)
            distances[lost], indices[lost] = found
        return distances, indices

    def _calibrate(self, k: int) -> Probes:
        """Choose how many cells are searched, from the cells of the neighbours of a sample."""
        blocks, cells = self._blocks, self._cells
        rows, n_cells = blocks.native(self._sample), len(cells.means)
        x, own = blocks.rows(self._points, rows), cells.own[rows]
        distances, indices = cells.nearest_of_all(x, own, k)
        ranks = self._squares(cells.seen_from(x, own), own).argsort(1).argsort(1)  # by distance
        ranks = ranks[blocks.arange(len(x))[:, None], cells.own[indices]]
        count = cells_needed(blocks.host(ranks), self._target)
        farthest = blocks.host(distances[:, -1:]) * (1 + 1e-12)
        n_probe, choice, far, tolerance = (
            count,
            cells.n_near(count),
            far_distance(farthest),
            _TOLERANCE,
        )
        while True:
            n_probe, choice = min(n_probe, n_cells), min(choice, n_cells)
            probes = Probes(k, n_probe, self._nearest_cells(choice), far, tolerance)
            found = blocks.host(self._nearest(x, own, probes)[0])
            recall, error = measured(found, farthest)
            if recall >= self._target:
                break
            if choice == n_cells and tolerance == 0:
                far = -1.0  # rounding hides neighbours: all points are compared with all
            # A cell near the query may be far from the mean of its own cell; many points may be
            # nearly, but not quite, equally far.
            n_probe = 2 * n_probe if n_probe == choice else n_probe
            choice, tolerance = 2 * choice, 0.0
        logger.info(
            "neighbours: %d of %d cells are searched, recall %.4f ± %.4f",
            *(n_probe, n_cells, recall, error),
        )
        return probes._replace(recall=recall, recall_error=error)

    def _nearest_cells(self, count: int) -> Array:
        """Return the cells nearest to each (cells, count), on the host."""
        every, means = self._blocks.arange(len(self._cells.means)), self._cells.means
        tiles = row_tiles(len(means), _TILE_CELLS)
        squares = (self._squares(means[rows], every[rows]) for rows in tiles)
        columns = [self._cells.nearest_columns(S, count) for S in squares]
        return self._blocks.host(self._blocks.xp.concatenate(columns))

    def _squares(self, x: Block, own: Block) -> Block:
        """Return squared distances from x to all cells, less |x|², that to the own cell least."""
        squares = self._cells.squares(x, self._cells.means)
        squares[self._blocks.arange(len(own)), own] = -np.inf
        return squares


def _unit_of(offsets: Block, blocks: Blocks) -> float:
    """Return the power of two by which the median of the lengths becomes `_UNIT`."""
    norms = np.sqrt(blocks.host(blocks.xp.einsum("ij,ij->i", offsets, offsets)))
    middle = float(np.median(norms[norms > 0])) if norms.any() else 1.0
    return math.ldexp(_UNIT, -math.frexp(middle)[1])


def train_centroids(
    sample: Block, n_cells: int, rng: np.random.Generator, kind: type[Cells], blocks: Blocks
) -> tuple[Block, Array, Block]:
    """Return about n_cells centroids for points of which these are a sample (m, d).

    In two levels, as `Cells` takes them.
    """

    def k_means(x: Block, count: int) -> Block:
        rows = rng.choice(len(x), min(count, len(x)), replace=False)
        centroids = x[blocks.native(rows)]
        for _ in range(_K_MEANS_ITERATIONS):
            owner = kind.nearest_centroids(x, centroids)
            centroids = kind.moved(centroids, x, owner, rng)
        return centroids

    n_coarse = kind.n_coarse(n_cells)
    if n_coarse == 1:  # in which all points are
        centroids = k_means(sample, n_cells)
        return sample[:1], np.array([0, len(centroids)]), centroids
    coarse, fine = k_means(sample, n_coarse), []
    owner = kind.nearest_centroids(sample, coarse)
    for c in range(len(coarse)):
        members = sample[owner == c]
        count = max(1, round(n_cells * len(members) / len(sample)))
        fine.append(k_means(members, count) if len(members) else coarse[[c]])
    starts = np.concatenate([[0], np.cumsum([len(centroids) for centroids in fine])])
    return coarse, starts, blocks.xp.concatenate(fine)
