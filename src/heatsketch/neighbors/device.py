"""Nearest neighbours on a device of torch, by products of matrices and partial sorting.

Up to 16,384 points all pairs are compared, in float64. Beyond, points are sorted into cells around
centroids of k-means. The points of a cell are compared with those of its nearest cells by one
product in float32, from which the few nearest are taken; their distances come from differences in
float64. As many cells are searched as the recall asks for, which is measured on points whose
neighbours are known, as in `inverted_lists`. Points far from all others are compared with all.

Points that take too much of the device's memory stay on the host, and are read cell by cell.
"""

from collections.abc import Callable
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from heatsketch._exceptions import logger
from heatsketch._tensors import is_tensor, on_host
from heatsketch._tiles import row_tiles, track
from heatsketch._typing import Array
from heatsketch.backend import Block
from heatsketch.backend.device import DeviceBlocks, full_precision
from heatsketch.neighbors import exact
from heatsketch.neighbors.exact import Neighbors
from heatsketch.neighbors.recall import CALIBRATION_POINTS, cells_needed, far_distance, measured
from heatsketch.neighbors.search import Search

_POINTS_PER_CELL = 1000  # on average
_TRAINING_PER_CELL = 64  # points
_K_MEANS_ITERATIONS = 6
_SPARE = 6  # candidates beyond k, because rounding may have changed their order
_HASH_MULTIPLIERS = (0xFF51AFD7ED558CCD - 2**64, 0xC4CEB9FE1A85EC53 - 2**64)


class Cells(NamedTuple):
    """Points sorted into cells."""

    centroids: Block  # (cells, d), in the coordinates of `DeviceSearch.scaled`
    own: Block  # (n,), the cell of each point
    order: Block  # (n,), the points in the order of their cells
    starts: Array  # (cells + 1,), on the host
    members: Callable[[int], Block]  # the points of a cell (m, d)


class Probes(NamedTuple):
    """The cells that are searched for k neighbours, and the fraction of these that is found."""

    k: int
    near: Array  # (cells, searched), for the points of each cell, on the host
    far: float  # points whose last neighbour is farther are compared with all
    recall: float = 1.0
    recall_error: float = 0.0

    @property
    def walk(self) -> Array:
        """The cells (cells,), such that those that search the same cells follow each other."""
        n, searched = self.near.shape
        parts = np.ones(n * searched), self.near.ravel(), searched * np.arange(n + 1)
        return reverse_cuthill_mckee(sparse.csr_matrix(parts, shape=(n, n)))


class Candidates(NamedTuple):
    """Points among which neighbours are searched."""

    points: Block  # (c, d)
    numbers: Block  # (c,)
    compared: Block  # (c, d), in the coordinates of the rows that are compared with them
    norms: Block  # (c,), their squares, or lower bounds of these


class DeviceSearch(Search):
    """A search on a device among points (n, d) there, or on the host; its results stay there.

    `source` returns the same search on the host.
    """

    of_coordinates = True

    def __init__(
        self, points: Block, blocks: DeviceBlocks, recall: float, source: Any = None
    ) -> None:
        self.points, self.n, self._target, self._source = points, len(points), recall, source
        self.blocks = blocks
        self.approximate = self.n > exact.EXACT_POINTS and recall < 1
        sample = self._rows(points, slice(None, None, max(1, self.n // 1000))).double()
        self._centre = sample.median(0).values
        norms = (sample - self._centre).norm(dim=1)
        self._unit = 1 / norms.median().clip(min=np.finfo(float).tiny)
        self._probes: dict[int, Probes] = {}
        self._step_bytes = self.blocks.step_bytes

    def landed(self) -> Any:
        """Return the search on the host."""
        return self._source()

    def order(self) -> Block | None:
        """The points in the order of their cells, if there are cells."""
        return self._cells.order if self.approximate else None

    def diagnostics(self, k: int) -> dict[str, float]:
        """Return the recall of k neighbours and its standard error, if search is approximate."""
        if not self.approximate:
            return {}
        probes = self._probes_for(k)
        return {"recall": probes.recall, "recall_error": probes.recall_error}

    def query(self, x: Block | None, k: int) -> Neighbors:
        """Return the k nearest points of each row of x (m, k), None: of the points themselves."""
        self._step_bytes = self.blocks.step_bytes
        if not self.approximate:
            return self._in_all(self.points if x is None else x, k)
        own = self._cells.own if x is None else self._cells_of(x, self._cells.centroids)
        return self._in_cells(x, own, self._probes_for(k))

    def within(self, x: Block | None, radius: float) -> sparse.csr_matrix:
        """Search on the host."""
        return self.landed().within(on_host(x), radius)

    def _scaled(self, x: Block) -> Block:
        """Return coordinates in float32: centred, their unit the median distance from there."""
        return ((x - self._centre) * self._unit).float()

    def _rows(self, x: Block, rows: Any) -> Block:
        """Return rows of points that are on the device, or on the host, on the device."""
        return x[rows] if is_tensor(x) else self.blocks.native(x[on_host(rows)])

    def _in_all(self, x: Block, k: int) -> Neighbors:
        """Compare each row of x with all points, by lower bounds of squares in float64."""
        xp, d = self.blocks.xp, x.shape[1]
        error = (d + 16) * float(np.finfo(float).eps)
        part = min(self.n, max(1, int(self._step_bytes / (24 * d))))
        found = []
        for rows in row_tiles(len(x), max(1, int(self._step_bytes / (24 * max(part, d))))):
            own = self._rows(x, rows)
            z = own - self._centre
            norms = (1 - error) * z.square().sum(1)
            near: list[tuple[Block, Block]] = []
            for columns in row_tiles(self.n, part):
                points = self._rows(self.points, columns)
                numbers = xp.arange(columns.start, columns.stop, device=self.blocks.device)
                y = points - self._centre
                others = Candidates(points, numbers, y, (1 - error) * y.square().sum(1))
                near.append(self._nearest(own, z, others, min(k, len(y)), norms))
                near = [_merged(near, k, xp)]
            found += near
        return Neighbors(*(xp.cat(side) for side in zip(*found, strict=True)))

    def _nearest(
        self,
        x: Block,
        z: Block,
        others: Candidates,
        k: int,
        own: Block | None = None,
        spare: int = _SPARE,
    ) -> tuple[Block, Block]:
        """Return distances and numbers (m, k) of the points nearest to x, ties by lowest number.

        z are the rows x in the coordinates in which they are compared. With `own` (m,), their
        squared norms, rows are searched again where a point left out may be as near as the last.
        """
        count = min(k + spare, len(others.norms))
        with full_precision(self.blocks.device):
            bounds = self.blocks.xp.addmm(others.norms, z, others.compared.T, alpha=-2)
        least, near = bounds.topk(count, largest=False, sorted=False)  # of |z - y|² - |z|²
        numbers, order = others.numbers[near].sort(1)
        d, by_distance = self._distances(x, others.points, near.gather(1, order)).sort(
            dim=1, stable=True
        )
        d, near = d[:, :k].clone(), numbers.gather(1, by_distance)[:, :k].clone()
        if own is not None and count < len(others.norms):
            doubtful = (d[:, -1].square() >= least.amax(1) + own).nonzero()[:, 0]
            if len(doubtful):
                again = x[doubtful], z[doubtful], others, k, own[doubtful], 4 * spare
                d[doubtful], near[doubtful] = self._nearest(*again)
        return d, near

    def _distances(self, x: Block, points: Block, near: Block) -> Block:
        """Return the distances (m, c) of x to some of the points, from differences in float64."""
        at_a_time = max(1, int(self._step_bytes / (24 * near.shape[1] * x.shape[1])))
        found = near.new_empty(near.shape, dtype=self._centre.dtype)
        for rows in row_tiles(len(x), at_a_time):
            differences = x[rows, None].double() - points[near[rows]]
            self.blocks.xp.linalg.vector_norm(differences, dim=-1, out=found[rows])
        return found

    # Cells

    @cached_property
    def _cells(self) -> Cells:
        xp, rng = self.blocks.xp, np.random.default_rng(0)  # the same points give the same cells
        count = max(1, self.n // _POINTS_PER_CELL)
        size = min(self.n, _TRAINING_PER_CELL * count)
        rows = self.blocks.native(np.sort(rng.choice(self.n, size, replace=False)))
        sample = self._rows(self.points, rows)
        scaled = self._scaled(sample)
        centroids = scaled[self.blocks.native(rng.choice(size, count, replace=False))]
        for _ in range(_K_MEANS_ITERATIONS):
            own = self._cells_of(sample, centroids)
            sizes = own.bincount(minlength=count)
            members = scaled[own.argsort(stable=True)]
            sums = xp.segment_reduce(members, "sum", lengths=sizes, axis=0, unsafe=True)
            centroids = xp.where(sizes[:, None] > 0, sums / sizes[:, None].clip(min=1), centroids)
        own = self._cells_of(self.points, centroids)
        order, starts = self._by_cell(own, count)
        return Cells(centroids, own, order, starts, self._members_of(order, starts))

    def _members_of(self, order: Block, starts: Array) -> Callable[[int], Block]:
        """Return the function that returns the points of a cell.

        Those on the host are read when they are needed; some stay, a quarter of the memory.
        """
        points, parts = self.points, [slice(*ends) for ends in pairwise(starts.tolist())]
        if is_tensor(points):
            points = points[order]
            return lambda cell: points[parts[cell]]
        kept = int(self.blocks.room / 4 * len(parts) / points.nbytes)
        return lru_cache(kept)(lambda cell: self._rows(points, order[parts[cell]]))

    def _cells_of(self, x: Block, centroids: Block) -> Block:
        """Return the cell of the nearest centroid of each row of x (m,)."""
        at_a_time = max(1, int(self._step_bytes / (8 * len(centroids) + 24 * x.shape[1])))
        tiles = row_tiles(len(x), at_a_time)
        return self.blocks.xp.cat(
            [
                self._squares(self._scaled(self._rows(x, rows)), centroids).argmin(1)
                for rows in tiles
            ]
        )

    def _by_cell(self, own: Block, count: int) -> tuple[Block, Array]:
        """Return rows in the order of their cells `own` (m,), and the starts of these (count + 1,).

        The starts are on the host.
        """
        sizes = self.blocks.host(own.bincount(minlength=count))
        return own.argsort(stable=True), np.concatenate([[0], np.cumsum(sizes)])

    def _squares(self, x: Block, y: Block) -> Block:
        """Return |x_i - y_j|² - |x_i|² (m, c), exact enough to rank cells."""
        with full_precision(self.blocks.device):
            return self.blocks.xp.addmm(y.square().sum(1), x, y.T, alpha=-2)

    def _by_distance(self, cells: Block) -> Block:
        """Return all cells in the order of their distance from each of some, itself first."""
        centroids = self._cells.centroids
        squares = self._squares(centroids[cells], centroids)
        squares.scatter_(1, cells[:, None], -np.inf)
        return squares.argsort(1)

    def _in_cells(self, x: Block | None, own: Block, probes: Probes) -> Neighbors:
        """Compare each row of x, in the cell `own`, with the points of the nearest cells.

        None: the points themselves.
        """
        k, cells, xp = probes.k, self._cells, self.blocks.xp
        distances = xp.full((len(own), k), np.inf, dtype=xp.float64, device=self.blocks.device)
        indices = xp.zeros_like(distances, dtype=xp.int64)
        order, starts = self._by_cell(own, len(cells.centroids))
        walk = probes.walk
        occupied = walk[np.diff(starts)[walk] > 0]
        for c in track(occupied, "nearest neighbours", len(occupied), "cells"):
            near = probes.near[c]
            points = xp.cat([cells.members(j) for j in near])
            if len(points) < k:
                continue
            y = self._scaled(points) - cells.centroids[c]
            numbers = xp.cat([cells.order[cells.starts[j] : cells.starts[j + 1]] for j in near])
            others = Candidates(points, numbers, y, y.square().sum(1))
            members = order[starts[c] : starts[c + 1]]
            at_a_time = max(1, int(self._step_bytes / (12 * len(y))))
            for tile in row_tiles(len(members), at_a_time):
                rows = members[tile]
                if x is None:  # the cell itself comes first
                    found = self._nearest(points[tile], y[tile], others, k)
                else:
                    own_points = self._rows(x, rows)
                    z = self._scaled(own_points) - cells.centroids[c]
                    found = self._nearest(own_points, z, others, k)
                distances[rows], indices[rows] = found
        lost = (~(distances[:, -1] <= probes.far)).nonzero()[:, 0]
        if len(lost):
            again = self._rows(self.points if x is None else x, lost)
            distances[lost], indices[lost] = self._in_all(again, k)
        return Neighbors(distances, indices)

    def _probes_for(self, k: int) -> Probes:
        """Return the cells that contain enough of the k neighbours, calibrated once."""
        if k not in self._probes:
            self._probes[k] = self._calibrate(k)
        return self._probes[k]

    def _calibrate(self, k: int) -> Probes:
        """Search as many cells as the neighbours of a sample ask for; measure what is found."""
        blocks, cells = self.blocks, self._cells
        rows = np.random.default_rng(1).choice(self.n, min(CALIBRATION_POINTS, self.n), False)
        rows = blocks.native(np.sort(rows))
        x, own = self._rows(self.points, rows), cells.own[rows]
        n_cells = len(cells.centroids)
        nearest = self._in_all(x, k)
        ranks = self._by_distance(own).argsort(1).gather(1, cells.own[nearest.indices])
        count = cells_needed(blocks.host(ranks), self._target)
        farthest = blocks.host(nearest.distances[:, -1:]) * (1 + 1e-12)
        far = far_distance(farthest)
        while True:
            every = blocks.arange(n_cells)
            lists = [self._by_distance(every[part])[:, :count] for part in row_tiles(n_cells)]
            probes = Probes(k, blocks.host(blocks.xp.cat(lists)), far)
            found = blocks.host(self._in_cells(x, own, probes).distances)
            recall, error = measured(found, farthest)
            if recall >= self._target:
                break
            # Where all cells are not enough, float32 cannot tell the points apart.
            far, count = (-1.0 if count == n_cells else far), min(2 * count, n_cells)
        logger.info(
            "neighbours: %d of %d cells are searched, recall %.4f ± %.4f",
            *(count, n_cells, recall, error),
        )
        return probes._replace(recall=recall, recall_error=error)


def _merged(found: list[tuple[Block, Block]], k: int, xp: Any) -> tuple[Block, Block]:
    """Return the k nearest of several lists, whose numbers ascend from list to list."""
    if len(found) == 1:
        return found[0]
    distances, numbers = (xp.cat(side, 1) for side in zip(*found, strict=True))
    distances, order = distances.sort(dim=1, stable=True)
    return distances[:, :k], numbers.gather(1, order)[:, :k]


# Equal points, and their order by content


def distinct_rows_on(X: Block, blocks: DeviceBlocks) -> tuple[Block, Block]:
    """Return what `_random.distinct_rows` returns of points (n, d), on a device.

    The points are there or on the host. Signed numbers of 64 bits stand for the unsigned ones.
    """
    n, d = X.shape
    exponent = int(np.frexp(max(float(X.max()), -float(X.min())))[1])
    factors = _mixed_bits(blocks.xp.arange(1, d + 1, device=blocks.device)) | 1
    keys = blocks.xp.empty(n, dtype=blocks.xp.int64, device=blocks.device)
    for rows in row_tiles(n, max(1, int(blocks.step_bytes / (40 * d)))):
        scaled = blocks.native(X[rows]).double() * 2.0**-exponent + 0.0  # -0.0 + 0.0 is 0.0
        keys[rows] = (_mixed_bits(scaled.view(blocks.xp.int64)) * factors).sum(1)
    keys, order = (_mixed_bits(keys) ^ np.iinfo(np.int64).min).sort(stable=True)
    is_first = blocks.xp.ones_like(keys, dtype=blocks.xp.bool)
    is_first[1:] = keys[1:] != keys[:-1]
    vertex = blocks.xp.empty_like(order)
    vertex[order] = is_first.cumsum(0) - 1
    return order[is_first], vertex


def _mixed_bits(bits: Block) -> Block:
    """Spread the bits, as `_random.mixed_bits`."""
    for multiplier in _HASH_MULTIPLIERS:
        bits = (bits ^ ((bits >> 33) & 0x7FFFFFFF)) * multiplier
    return bits ^ ((bits >> 33) & 0x7FFFFFFF)
