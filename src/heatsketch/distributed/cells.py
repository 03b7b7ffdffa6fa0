"""Cells of points around centroids, and tiles: groups of neighbouring cells that one task holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from heatsketch._array import Frame
from heatsketch._typing import Array
from heatsketch.neighbors.centroids import Centroids, train_centroids

TRAINING_PER_CELL = 32  # points
CELLS_PER_TILE = 32
EXACT_FEATURES = 8  # up to so many dimensions every point is in the cell of the nearest centre
_COARSE_N_PROBE = 3  # coarse cells searched for the nearest fine centroid
_MIN_POINTS_PER_CELL = 100


@dataclass(frozen=True, eq=False)
class Cells:
    """Centroids, and the tile of each: a tile has the points nearest to its centroids."""

    frame: Frame  # of the centroids, and of all distances
    centroids: Centroids
    tile: Array  # (cells,)

    @property
    def centres(self) -> Array:
        """The centroids (cells, d)."""
        return self.centroids.fine

    @property
    def exact(self) -> bool:
        """Whether every point is in the cell of the nearest centre."""
        return self.centres.shape[1] <= EXACT_FEATURES

    @property
    def n_tiles(self) -> int:
        """Number of tiles."""
        return int(self.tile.max()) + 1


def number_of_cells(n: int, tile_rows: int) -> int:
    """Return into how many cells n points are sorted."""
    return max(1, n // max(_MIN_POINTS_PER_CELL, tile_rows // CELLS_PER_TILE))


def train(sample: Array, n_cells: int) -> Cells:
    """Find centroids for points of which these are a sample (m, d); one tile as yet."""
    frame = Frame.of(sample)
    centroids = train_centroids(frame(sample), n_cells, np.random.default_rng(0))
    return Cells(frame, centroids, np.zeros(len(centroids.fine), int))


def cells_of(points: Array, cells: Cells) -> Array:
    """Return the cell of each point in the frame, (m,): in many dimensions nearly the nearest."""
    if cells.exact:
        nearest: Array = cKDTree(cells.centres).query(points)[1]
        return nearest
    from heatsketch.neighbors import kernels  # compiled loops

    x = np.ascontiguousarray(points)
    found: Array = kernels.nearest_cell(x, *cells.centroids, _COARSE_N_PROBE)
    return found


def grouped(cells: Cells, counts: Array, most: int) -> Cells:
    """Group the cells, of which each has so many points, into tiles of at most so many.

    Space is halved, along the direction in which the centroids spread most, until a half has no
    more points, or is one cell. Tiles are compact, so that few points have neighbours in others.
    """
    tile, n_tiles = np.zeros(len(counts), int), 0
    halves = [np.flatnonzero(counts)]  # the others have no points, and belong to any tile
    while halves:
        group = halves.pop()
        below = np.cumsum(counts[group])
        if len(group) == 1 or below[-1] <= most:
            tile[group] = n_tiles
            n_tiles += 1
            continue
        axis = cells.centres[group].var(axis=0).argmax()
        group = group[np.argsort(cells.centres[group, axis], kind="stable")]
        below = np.cumsum(counts[group])
        at = 1 + int(np.abs(below[:-1] - below[-1] / 2).argmin())
        halves += [group[at:], group[:at]]
    return Cells(cells.frame, cells.centroids, tile)


def radii(points: Array, member: Array, centres: Array) -> Array:
    """Return the distance of the farthest point from each of the centres to which they belong."""
    found = np.zeros(len(centres))
    distances = np.sqrt(((points - centres[member]) ** 2).sum(axis=1))
    np.maximum.at(found, member, distances)
    return found
