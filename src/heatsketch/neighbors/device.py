"""Nearest neighbours on a device of torch, by products of matrices and partial sorting.

Up to 16,384 points all pairs are compared, in float64. Beyond, points are sorted into cells around
centroids of k-means. The points of a cell are compared with those of its nearest cells by one
product in float32, from which the few nearest are taken; their distances come from differences in
float64. As many cells are searched as the recall asks for, which is measured on points whose
neighbours are known, as in `inverted_lists`. Points far from all others are compared with all.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._checks import logger, on_host
from heatsketch._tiles import row_tiles, track
from heatsketch._typing import Array
from heatsketch.neighbors import exact
from heatsketch.neighbors.exact import Neighbors
from heatsketch.neighbors.recall import CALIBRATION_POINTS, cells_needed, far_distance, measured
from heatsketch.neighbors.search import Search
from heatsketch.operators.blocks import Block, DeviceBlocks, full_precision

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
    points: Block  # (n, d), their coordinates in this order, float32
    starts: Array  # (cells + 1,), on the host


class Probes(NamedTuple):
    """The cells that are searched for k neighbours, and the fraction of these that is found."""

    k: int
    near: Array  # (cells, searched), for the points of each cell, on the host
    far: float  # points whose last neighbour is farther are compared with all
    recall: float = 1.0
    recall_error: float = 0.0


class DeviceSearch(Search):
    """A search among points (n, d) on a device, whose results stay there.

    `source` returns the same search on the host.
    """

    of_coordinates = True

    def __init__(self, points: Block, recall: float, source: Any = None) -> None:
        self.points, self.n, self._target, self._source = points, len(points), recall, source
        self.blocks = DeviceBlocks(points.device)
        self.approximate = self.n > exact.EXACT_POINTS and recall < 1
        sample = points[:: max(1, self.n // 1000)].double()
        self._centre = sample.median(0).values
        norms = (sample - self._centre).norm(dim=1)
        self._unit = 1 / norms.median().clip(min=np.finfo(float).tiny)
        self._probes: dict[int, Probes] = {}
        self._room = self.blocks.free

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
        self._room = self.blocks.free
        if not self.approximate:
            return self._in_all(self.points if x is None else x, k)
        own = self._cells.own if x is None else self._cells_of(x, self._cells.centroids)
        return self._in_cells(self.points if x is None else x, own, self._probes_for(k))

    def within(self, x: Block | None, radius: float) -> sparse.csr_matrix:
        """Search on the host."""
        return self.landed().within(on_host(x), radius)

    def _scaled(self, x: Block) -> Block:
        """Return coordinates in float32: centred, their unit the median distance from there."""
        return ((x - self._centre) * self._unit).float()

    def _in_all(self, x: Block, k: int) -> Neighbors:
        """Compare each row of x with all points, by lower bounds of squares in float64."""
        y = self.points - self._centre
        error = (y.shape[1] + 16) * float(np.finfo(float).eps)
        norms, found = (1 - error) * y.square().sum(1), []
        for rows in row_tiles(len(x), max(1, int(self._room / (24 * self.n)))):
            z = x[rows] - self._centre
            own = (1 - error) * z.square().sum(1)
            found.append(self._nearest(x[rows], z, (y, norms, None), k, own))
        return Neighbors(*(self.blocks.xp.cat(side) for side in zip(*found, strict=True)))

    def _nearest(
        self, x: Block, z: Block, others: Any, k: int, own: Block | None = None, spare: int = _SPARE
    ) -> tuple[Block, Block]:
        """Return distances and numbers (m, k) of the points nearest to x, ties by lowest number.

        `others`: points y (c, d) in the coordinates of z, their squared norms, and their numbers.
        With `own` (m,), squared norms of z, rows are searched again where a point left out may be
        as near as the last one.
        """
        y, norms, numbers = others
        count = min(k + spare, len(y))
        with full_precision(self.blocks.device):
            bounds = self.blocks.xp.addmm(norms, z, y.T, alpha=-2)  # |z - y|² - |z|²
        least, near = bounds.topk(count, largest=False, sorted=False)
        near = (near if numbers is None else numbers[near]).sort(1).values
        d, order = self._distances(x, near).sort(dim=1, stable=True)
        d, near = d[:, :k].clone(), near.gather(1, order)[:, :k].clone()
        if own is not None and count < len(y):
            doubtful = (d[:, -1].square() >= least.amax(1) + own).nonzero()[:, 0]
            if len(doubtful):
                again = x[doubtful], z[doubtful], others, k, own[doubtful], 4 * spare
                d[doubtful], near[doubtful] = self._nearest(*again)
        return d, near

    def _distances(self, x: Block, near: Block) -> Block:
        """Return the distances (m, c) of x to points, from differences in float64."""
        step = max(1, int(self._room / (24 * near.shape[1] * x.shape[1])))
        found = [
            (x[rows, None].double() - self.points[near[rows]]).square_().sum(-1).sqrt_()
            for rows in row_tiles(len(x), step)
        ]
        return self.blocks.xp.cat(found)

    # Cells

    @cached_property
    def _cells(self) -> Cells:
        xp, rng = self.blocks.xp, np.random.default_rng(0)  # the same points give the same cells
        count = max(1, self.n // _POINTS_PER_CELL)
        size = min(self.n, _TRAINING_PER_CELL * count)
        rows = self.blocks.native(np.sort(rng.choice(self.n, size, replace=False)))
        sample = self.points[rows]
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
        return Cells(centroids, own, order, self._scaled(self.points[order]), starts)

    def _cells_of(self, x: Block, centroids: Block) -> Block:
        """Return the cell of the nearest centroid of each row of x (m,)."""
        step = max(1, int(self._room / (8 * len(centroids) + 24 * x.shape[1])))
        tiles = row_tiles(len(x), step)
        return self.blocks.xp.cat(
            [self._squares(self._scaled(x[rows]), centroids).argmin(1) for rows in tiles]
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

    def _in_cells(self, x: Block, own: Block, probes: Probes) -> Neighbors:
        """Compare each row of x, in the cell `own`, with the points of the nearest cells."""
        k, cells, xp = probes.k, self._cells, self.blocks.xp
        distances = xp.full((len(x), k), np.inf, dtype=xp.float64, device=self.blocks.device)
        indices = xp.zeros_like(distances, dtype=xp.int64)
        order, starts = self._by_cell(own, len(cells.centroids))
        occupied = np.flatnonzero(np.diff(starts))
        for c in track(occupied, "nearest neighbours", len(occupied), "cells"):
            parts = [slice(cells.starts[j], cells.starts[j + 1]) for j in probes.near[c]]
            y = xp.cat([cells.points[part] for part in parts]) - cells.centroids[c]
            if len(y) < k:
                continue
            others = y, y.square().sum(1), xp.cat([cells.order[part] for part in parts])
            members = order[starts[c] : starts[c + 1]]
            step = max(1, int(self._room / (12 * len(y))))
            for tile in row_tiles(len(members), step):
                rows = members[tile]
                z = self._scaled(x[rows]) - cells.centroids[c]
                distances[rows], indices[rows] = self._nearest(x[rows], z, others, k)
        lost = (~(distances[:, -1] <= probes.far)).nonzero()[:, 0]
        if len(lost):
            distances[lost], indices[lost] = self._in_all(x[lost], k)
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
        x, own, n_cells = self.points[rows], cells.own[rows], len(cells.centroids)
        nearest = self._in_all(x, k)
        ranks = self._by_distance(own).argsort(1).gather(1, cells.own[nearest.indices])
        count = cells_needed(blocks.host(ranks), self._target)
        farthest = blocks.host(nearest.distances[:, -1:]) * (1 + 1e-12)
        far = far_distance(farthest)
        while True:
            every = blocks.xp.arange(n_cells, device=blocks.device)
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


# Equal points, and their order by content


def distinct_rows_on(X: Block) -> tuple[Block, Block]:
    """Return what `_random.distinct_rows` returns of points (n, d) on a device, there.

    Signed numbers of 64 bits stand for the unsigned ones.
    """
    blocks, (n, d) = DeviceBlocks(X.device), X.shape
    exponent = int(np.frexp(float(X.abs().max()))[1])
    factors = _mixed_bits(blocks.xp.arange(1, d + 1, device=X.device)) | 1
    keys = blocks.xp.empty(n, dtype=blocks.xp.int64, device=X.device)
    for rows in row_tiles(n, max(1, int(blocks.free / (40 * d)))):
        scaled = X[rows].double() * 2.0**-exponent + 0.0  # -0.0 + 0.0 is 0.0
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
