"""How many cells are asked for neighbours, and the share of the neighbours that is found so.

The exact neighbours of some points are computed by all tiles; they are the measure of both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from heatsketch._array import row_tiles
from heatsketch._typing import Array
from heatsketch.distributed.cells import Cells
from heatsketch.distributed.shuffle import Tile
from heatsketch.neighbors.found import Recall

_POINTS = 512
_MARGIN_ERRORS = 2.0  # standard errors by which the calibrated recall exceeds the target
_ROWS_AT_A_TIME = 2**14


class Exact(NamedTuple):
    """Some vertices, and their exact neighbours."""

    vertices: Array  # (m,), increasing
    points: Array  # (m, d)
    distances: Array  # (m, k), each point first
    cells: Array  # (m, k), those of the neighbours

    @classmethod
    def of(cls, tiles: Sequence[Any], starts: Sequence[int], k: int) -> Exact:
        """Compute the neighbours of up to 512 vertices."""
        import dask
        from dask import delayed

        count = min(starts[-1], _POINTS)
        vertices = np.sort(np.random.default_rng(0).choice(starts[-1], count, replace=False))
        at = np.searchsorted(vertices, starts)
        take, near = delayed(_points_at), delayed(_nearest)
        parts = [
            take(tile, vertices[at[t] : at[t + 1]] - starts[t]) for t, tile in enumerate(tiles)
        ]
        points = np.concatenate(dask.compute(*parts))
        shared = delayed(points, traverse=False)  # sent once
        found = dask.compute(*(near(tile, shared, k) for tile in tiles))
        distances, cells = (np.hstack(side) for side in zip(*found, strict=True))
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        distances, cells = (np.take_along_axis(side, order, axis=1) for side in (distances, cells))
        return cls(vertices, points, distances, cells)

    def n_probe(self, cells: Cells, target: float) -> int:
        """Return of how many nearest cells the points hold this share of the neighbours."""
        apart = cdist(self.points, cells.centres)
        ranks = np.argsort(np.argsort(apart, axis=1), axis=1)
        ranks = np.take_along_axis(ranks, self.cells, axis=1)
        required = target
        for _ in range(2):
            count = int(np.quantile(ranks, required, method="higher")) + 1
            error = np.mean(ranks < count, axis=1).std() / math.sqrt(len(ranks))
            required = min(1.0, target + _MARGIN_ERRORS * float(error))
        return count

    def recall(self, distances: Array) -> Recall:
        """Return the share of the neighbours that a search has found, by its distances (m, k)."""
        found = np.mean(distances <= self.distances[:, -1:] * (1 + 1e-12), axis=1)
        error = max(float(found.std()) / math.sqrt(len(found)), 1 / len(found))
        return Recall(float(found.mean()), error)


def _points_at(tile: Tile, rows: Array) -> Array:
    return tile.points[rows]


def _nearest(tile: Tile, x: Array, k: int) -> tuple[Array, Array]:
    """Return distances and cells (m, <= k) of the points of a tile that are nearest to x."""
    distances, cells = np.empty((len(x), 0)), np.empty((len(x), 0), int)
    for rows in row_tiles(len(tile.points), _ROWS_AT_A_TIME):
        distances = np.hstack([distances, cdist(x, tile.points[rows])])
        cells = np.hstack(
            [cells, np.broadcast_to(tile.cell[rows], (len(x), rows.stop - rows.start))]
        )
        if distances.shape[1] > k:
            kept = np.argpartition(distances, k - 1, axis=1)[:, :k]
            distances, cells = (np.take_along_axis(s, kept, axis=1) for s in (distances, cells))
    return distances, cells
