"""Which pairs of points a map is learned on."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist

from heatsketch._typing import Array
from heatsketch.isometry.loss import LogDistortion
from heatsketch.neighbors import NeighborIndex, pair_distances

ALL_PAIRS_UP_TO = 2_048  # points
RANDOM_PAIRS = 500_000
NEAR_ROWS = 4_000  # points whose nearest neighbours are looked for in many dimensions
NEIGHBORS = 10
ACTIVE_NEIGHBORS = 5


def all_pairs(F: Array) -> LogDistortion:
    """Return the loss over all pairs of the rows of F, which must differ."""
    return LogDistortion(len(F), pdist(F, "sqeuclidean"))


class PairList:
    """A growing list of pairs of the rows of F, each once, with their distances."""

    def __init__(self, F: Array) -> None:
        self.F = F
        self.codes = np.empty(0, dtype=np.int64)  # i n + j, i < j, ascending
        self.squares = np.empty(0)

    def add(self, codes: Array) -> None:
        """Add the pairs that are not in the list yet."""
        new = np.setdiff1d(codes, self.codes, assume_unique=True)
        squares = pair_distances(self.F, self.F, *np.divmod(new, len(self.F))) ** 2
        places = np.searchsorted(self.codes, new)
        self.codes = np.insert(self.codes, places, new)
        self.squares = np.insert(self.squares, places, squares)

    def loss(self) -> LogDistortion:
        """Return the loss over the pairs of the list."""
        n = len(self.F)
        i, j = np.divmod(self.codes, n)
        starts = np.searchsorted(i, np.arange(n + 1))
        return LogDistortion(n, self.squares, starts, j.astype(np.int32))


def random_codes(n: int, rng: np.random.Generator) -> Array:
    """Return about RANDOM_PAIRS distinct random pairs of n points, as codes i n + j, i < j."""
    return _codes(*sampled_pairs(n, RANDOM_PAIRS, rng), n)


def near_codes(F: Array, rng: np.random.Generator) -> Array:
    """Return pairs of nearest neighbours in F, of NEAR_ROWS random points."""
    rows = np.sort(rng.permutation(len(F))[:NEAR_ROWS])
    return _neighbor_codes(F, rows, NEIGHBORS)


def active_codes(Y: Array) -> Array:
    """Return pairs of nearest neighbours in the embedding: collisions are among them."""
    return _neighbor_codes(Y, np.arange(len(Y)), ACTIVE_NEIGHBORS)


def _neighbor_codes(F: Array, rows: Array, k: int) -> Array:
    return _codes(*nearest_pairs(F, rows, min(k, len(F) - 1)), len(F))


def sampled_pairs(n: int, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw pairs of two different points of n, some perhaps more than once."""
    i = rng.integers(0, n, count)
    return i, (i + rng.integers(1, n, count)) % n


def nearest_pairs(F: Array, rows: Array, k: int) -> tuple[Array, Array]:
    """Return pairs of each of the rows with its k nearest others in F."""
    found = NeighborIndex(F).query(F[rows], k + 1, any_tie=True).indices
    i, j = np.repeat(rows, k + 1), found.ravel()
    return i[i != j], j[i != j]


def _codes(i: Array, j: Array, n: int) -> Array:
    return np.unique(np.minimum(i, j).astype(np.int64) * n + np.maximum(i, j))
