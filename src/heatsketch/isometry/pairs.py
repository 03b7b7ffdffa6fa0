"""Pairs of points that a map is learned from: all, random ones and nearest neighbours."""

import numpy as np
from scipy.spatial.distance import pdist

from heatsketch._typing import Array
from heatsketch.isometry.loss import LogDistortion
from heatsketch.neighbors import NeighborIndex, pair_distances

ALL_PAIRS_UP_TO = 2_048  # points
RANDOM_PAIRS = 500_000
NEAR_ROWS = 4_000  # points whose nearest neighbours are searched in many dimensions


def all_pairs(F: Array) -> LogDistortion:
    """Return the loss over all pairs of the rows of F, which must differ."""
    return LogDistortion(len(F), pdist(F, "sqeuclidean"))


class PairList:
    """A growing list of distinct pairs of the rows of F, with their distances."""

    def __init__(self, F: Array) -> None:
        self.F = F
        self.codes = np.empty(0, dtype=np.int64)  # i n + j, i < j, ascending
        self.squares = np.empty(0)

    def add(self, codes: Array) -> None:
        """Add the pairs that are not in the list yet."""
        new = np.setdiff1d(codes, self.codes, assume_unique=True)
        squares = pair_distances(self.F, self.F, *np.divmod(new, len(self.F))) ** 2
        positions = np.searchsorted(self.codes, new)
        self.codes = np.insert(self.codes, positions, new)
        self.squares = np.insert(self.squares, positions, squares)

    def loss(self) -> LogDistortion:
        """Return the loss over these pairs."""
        n = len(self.F)
        i, j = np.divmod(self.codes, n)
        starts = np.searchsorted(i, np.arange(n + 1))
        return LogDistortion(n, self.squares, starts, j.astype(np.int32))


def random_codes(n: int, rng: np.random.Generator) -> Array:
    """Return about RANDOM_PAIRS distinct random pairs of n points, as codes i n + j, i < j."""
    return _codes(*sampled_pairs(n, RANDOM_PAIRS, rng), n)


def near_codes(F: Array, rng: np.random.Generator) -> Array:
    """Return pairs of the 10 nearest neighbours in F of NEAR_ROWS random points."""
    rows = np.sort(rng.permutation(len(F))[:NEAR_ROWS])
    return _neighbor_codes(F, rows, 10)


def active_codes(Y: Array) -> Array:
    """Return pairs of the 5 nearest neighbours in the embedding, which include collisions."""
    return _neighbor_codes(Y, np.arange(len(Y)), 5)


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
