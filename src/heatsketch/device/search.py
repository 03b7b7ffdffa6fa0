"""The search for neighbours on a device, by products of matrices and partial sorting.

All pairs are compared in float64, or the points of a cell with those of its nearest cells, by one
product in float32. From these bounds the few nearest are taken; their distances come from
differences in float64.

Points that take too much of the device's memory stay on the host, and are read cell by cell.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from heatsketch._arrays import Array, is_tensor, on_host
from heatsketch._threads import row_tiles, track
from heatsketch.core.blocks import Block
from heatsketch.device.blocks import DeviceBlocks, full_precision
from heatsketch.neighbors.lists import Cells, Coordinates, Probes
from heatsketch.neighbors.search import ExactSearch

_POINTS_PER_CELL = 1000  # on average
_TRAINING_PER_CELL = 64  # points
_SPARE = 6  # candidates beyond k, because rounding may have changed their order


class Candidates(NamedTuple):
    """Points among which neighbours are searched."""

    points: Block  # (c, d)
    numbers: Block  # (c,)
    compared: Block  # (c, d), in the coordinates of the rows that are compared with them
    norms: Block  # (c,), their squares, or lower bounds of these

    def nearest(
        self,
        x: Block,
        z: Block,
        k: int,
        step_bytes: float,
        own: Block | None = None,
        spare: int = _SPARE,
    ) -> tuple[Block, Block]:
        """Return distances and numbers (m, k) of the points nearest to x, ties by lowest number.

        z are the rows x in the coordinates in which they are compared. With `own` (m,), their
        squared norms, rows are searched again where a point left out may be as near as the last.
        """
        count, blocks = min(k + spare, len(self.norms)), DeviceBlocks(z.device)
        with full_precision(z.device):
            bounds = blocks.xp.addmm(self.norms, z, self.compared.T, alpha=-2)
        least, near = bounds.topk(count, largest=False, sorted=False)  # of |z - y|² - |z|²
        numbers, order = self.numbers[near].sort(1)
        d, by_distance = self._distances(x, near.gather(1, order), step_bytes).sort(
            dim=1, stable=True
        )
        d, near = d[:, :k].clone(), numbers.gather(1, by_distance)[:, :k].clone()
        if own is not None and count < len(self.norms):
            doubtful = (d[:, -1].square() >= least.amax(1) + own).nonzero()[:, 0]
            if len(doubtful):
                again = x[doubtful], z[doubtful], k, step_bytes, own[doubtful], 4 * spare
                d[doubtful], near[doubtful] = self.nearest(*again)
        return d, near

    def _distances(self, x: Block, near: Block, step_bytes: float) -> Block:
        """Return the distances (m, c) of x to some of the points, from differences in float64."""
        at_a_time, xp = max(1, int(step_bytes / (24 * near.shape[1] * x.shape[1]))), _xp(near)
        found = near.new_empty(near.shape, dtype=xp.float64)
        for rows in row_tiles(len(x), at_a_time):
            differences = x[rows, None].double() - self.points[near[rows]]
            xp.linalg.vector_norm(differences, dim=-1, out=found[rows])
        return found


class DeviceSearch:
    """The search of all nearest points among points (n, d) on a device, or on the host.

    Its results are on the device.
    """

    order = None  # of the points: all are compared with all

    def __init__(self, points: Block, blocks: DeviceBlocks) -> None:
        self._points, self._blocks, self._centre = points, blocks, blocks.centre(points)

    def nearest(self, k: int, x: Block | None = None) -> tuple[Block, Block]:
        """Compare each row of x with all points, by lower bounds of squares in float64."""
        blocks, n, step_bytes = self._blocks, len(self._points), self._blocks.step_bytes
        x = self._points if x is None else x
        xp, d = blocks.xp, x.shape[1]
        error = (d + 16) * float(np.finfo(float).eps)
        part = min(n, max(1, int(step_bytes / (24 * d))))
        found = []
        for rows in row_tiles(len(x), max(1, int(step_bytes / (24 * max(part, d))))):
            own = blocks.rows(x, rows)
            z = own - self._centre
            norms = (1 - error) * z.square().sum(1)
            near: list[tuple[Block, Block]] = []
            for columns in row_tiles(n, part):
                points = blocks.rows(self._points, columns)
                numbers = xp.arange(columns.start, columns.stop, device=blocks.device)
                y = points - self._centre
                others = Candidates(points, numbers, y, (1 - error) * y.square().sum(1))
                near.append(others.nearest(own, z, min(k, len(y)), step_bytes, norms))
                near = [_merged(near, k, xp)]
            found += near
        distances, indices = (xp.cat(side) for side in zip(*found, strict=True))
        return distances, indices

    def pairs_within(self, x: Block, radii: Array) -> tuple[Array, Array, Array]:
        """Search on the host."""
        return ExactSearch(on_host(self._points)).pairs_within(on_host(x), radii)


def _merged(found: list[tuple[Block, Block]], k: int, xp: Any) -> tuple[Block, Block]:
    """Return the k nearest of several lists, whose numbers ascend from list to list."""
    if len(found) == 1:
        return found[0]
    distances, numbers = (xp.cat(side, 1) for side in zip(*found, strict=True))
    distances, order = distances.sort(dim=1, stable=True)
    return distances[:, :k], numbers.gather(1, order)[:, :k]


class DeviceCells(Cells):
    """Cells of points on a device, or on the host; the search in them is on the device."""

    dtype = np.float32

    def __init__(
        self, points: Block, coordinates: Coordinates, centroids: tuple[Block, Array, Block]
    ) -> None:
        self._points, self._coordinates, self.means = points, coordinates, centroids[2]
        self._blocks = coordinates.blocks
        self.own = self.of(points)
        self.order, self._starts = self._by_cell(self.own)
        self._members = self._members_of()
        self._all = DeviceSearch(points, self._blocks)

    @staticmethod
    def sizes(n: int) -> tuple[int, int]:
        """Make large cells, because a step of the search is a product of two of them."""
        n_cells = max(1, n // _POINTS_PER_CELL)
        return n_cells, min(n, _TRAINING_PER_CELL * n_cells)

    @staticmethod
    def n_coarse(n_cells: int) -> int:
        """Make one level: points are compared with all centroids."""
        return 1

    @staticmethod
    def n_near(count: int) -> int:
        """Leave no choice: all points of a cell are compared with the same points."""
        return count

    @staticmethod
    def nearest_centroids(x: Block, centroids: Block) -> Block:
        """Compare in float32, some rows at a time."""
        at_a_time = max(1, int(DeviceBlocks(x.device).step_bytes / (8 * len(centroids))))
        tiles = row_tiles(len(x), at_a_time)
        return _xp(x).cat([DeviceCells.squares(x[rows], centroids).argmin(1) for rows in tiles])

    @staticmethod
    def moved(centroids: Block, x: Block, owner: Block, rng: np.random.Generator) -> Block:
        """Reduce segments of the sorted rows; one without points stays: no number is waited for."""
        xp, sizes = _xp(x), owner.bincount(minlength=len(centroids))
        rows = x[owner.argsort(stable=True)]
        sums = xp.segment_reduce(rows, "sum", lengths=sizes, axis=0, unsafe=True)
        return xp.where(sizes[:, None] > 0, sums / sizes[:, None].clip(min=1), centroids)

    @staticmethod
    def squares(x: Block, y: Block) -> Block:
        """Multiply in float32."""
        with full_precision(x.device):
            return _xp(x).addmm(y.square().sum(1), x, y.T, alpha=-2)

    @staticmethod
    def nearest_columns(squares: Block, count: int) -> Block:
        """Return them in ascending order of the entries."""
        return squares.argsort(1)[:, :count]

    def of(self, x: Block) -> Block:
        """Compare with all centroids."""
        at_a_time = self._blocks.step_bytes / (8 * len(self.means) + 24 * x.shape[1])
        rows = (self._blocks.rows(x, rows) for rows in row_tiles(len(x), max(1, int(at_a_time))))
        squares = (self.squares(self._coordinates.of(part), self.means) for part in rows)
        return self._blocks.xp.cat([S.argmin(1) for S in squares])

    def seen_from(self, x: Block, own: Block) -> Block:
        """Return the centres of their cells, whose points have one list."""
        return self.means[own]

    def nearest(self, x: Block | None, own: Block, probes: Probes) -> tuple[Block, Block]:
        """Compare the points of each cell with those of the nearest cells.

        What rounding hides is not looked for: the recall that is measured counts it.
        """
        k, blocks, step_bytes = probes.k, self._blocks, self._blocks.step_bytes
        xp = blocks.xp
        distances = xp.full((len(own), k), np.inf, dtype=xp.float64, device=blocks.device)
        indices = xp.zeros_like(distances, dtype=xp.int64)
        order, starts = self._by_cell(own)
        walk = _walk(probes.near)
        occupied = walk[np.diff(starts)[walk] > 0]
        for c in track(occupied, "nearest neighbours", len(occupied), "cells"):
            near = probes.near[c]
            points = xp.cat([self._members(j) for j in near])
            if len(points) < k:
                continue
            y = self._coordinates.of(points) - self.means[c]
            numbers = xp.cat([self.order[self._starts[j] : self._starts[j + 1]] for j in near])
            others = Candidates(points, numbers, y, y.square().sum(1))
            members = order[starts[c] : starts[c + 1]]
            at_a_time = max(1, int(step_bytes / (12 * len(y))))
            for tile in row_tiles(len(members), at_a_time):
                rows = members[tile]
                if x is None:  # the cell itself comes first
                    found = others.nearest(points[tile], y[tile], k, step_bytes)
                else:
                    own_points = blocks.rows(x, rows)
                    z = self._coordinates.of(own_points) - self.means[c]
                    found = others.nearest(own_points, z, k, step_bytes)
                distances[rows], indices[rows] = found
        return distances, indices

    def nearest_of_all(self, x: Block, own: Block, k: int) -> tuple[Block, Block]:
        """Compare all pairs."""
        return self._all.nearest(k, x)

    def _members_of(self) -> Callable[[int], Block]:
        """Return the function that returns the points (m, d) of a cell.

        Those on the host are read when they are needed; some stay, a quarter of the memory.
        """
        points, blocks, order = self._points, self._blocks, self.order
        parts = [slice(*ends) for ends in pairwise(self._starts.tolist())]
        if is_tensor(points):
            points = points[order]
            return lambda cell: points[parts[cell]]
        kept = int(blocks.room / 4 * len(parts) / points.nbytes)
        return lru_cache(kept)(lambda cell: blocks.rows(points, order[parts[cell]]))

    def _by_cell(self, own: Block) -> tuple[Block, Array]:
        """Return rows in the order of their cells `own` (m,), and the starts of these (cells + 1,).

        The starts are on the host.
        """
        sizes = self._blocks.host(own.bincount(minlength=len(self.means)))
        return own.argsort(stable=True), np.concatenate([[0], np.cumsum(sizes)])


def _walk(near: Array) -> Array:
    """Return the cells (cells,), such that those that search the same cells follow each other."""
    n, searched = near.shape
    parts = np.ones(n * searched), near.ravel(), searched * np.arange(n + 1)
    return reverse_cuthill_mckee(sparse.csr_matrix(parts, shape=(n, n)))


def _xp(x: Block) -> Any:
    """Return the functions of tensors."""
    return DeviceBlocks(x.device).xp
