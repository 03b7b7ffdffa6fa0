"""Approximate nearest neighbours by inverted lists (Jégou, Douze and Schmid 2011), recall measured.

Points are sorted into cells around centroids of k-means, first coarse, then fine. A query is
compared with the points of the cells of the nearest centroids. The number of cells is calibrated:
for some points the neighbours are computed exactly, and as many cells are searched as contain the
required fraction of them. How the points of a cell are compared is a matter of the place
(`backend.host_cells`, `backend.device_search`).

Far points must not cost the others their digits: the unit is the median distance from the centre,
not the largest, and a query whose neighbours are far is compared with all points.
"""

import math

import numpy as np

from heatsketch._exceptions import logger
from heatsketch._tiles import row_tiles
from heatsketch._typing import Array
from heatsketch.backend import Block, Blocks
from heatsketch.backend.cells import Cells, Coordinates, Probes
from heatsketch.backend.searches import cells_on
from heatsketch.neighbors.recall import CALIBRATION_POINTS, cells_needed, far_distance, measured

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
