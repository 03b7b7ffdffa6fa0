"""Records of neighbours, and distances of given pairs and of all pairs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.extmath import row_norms

from heatsketch._tiles import single_threaded_blas
from heatsketch._typing import Array, Points
from heatsketch.backend import Block, blocks_of

_CANCELLED = 1e-6  # of |x|² + |y|²: smaller squares come from differences; 1e-9 is lost else


class Neighbors(NamedTuple):
    """The nearest points of each query, nearest first."""

    distances: Array  # (m, k)
    indices: Array  # (m, k)

    def without_itself(self) -> Neighbors:
        """Return neighbours of all points, in their order, with each left out of its own list."""
        itself = self.indices == np.arange(len(self.indices))[:, None]
        itself[~itself.any(axis=1), -1] = True  # copies have displaced the point itself
        return Neighbors(*(values[~itself].reshape(len(itself), -1) for values in self))

    def as_csr(self, n: int) -> Any:
        """Return the distances where they are, as entries of CSR (m, n), zeros stored."""
        (m, k), blocks = self.indices.shape, blocks_of(self.indices)
        starts = blocks.arange(m + 1) * k
        return blocks.csr((self.distances.ravel(), self.indices.ravel(), starts), (m, n))


def pair_distances(x: Points, y: Points, rows: Block, columns: Block) -> Block:
    """Return the distances |x[rows] - y[columns]| of pairs, from explicit differences.

    They are where the numbers of the pairs are.
    """
    blocks: Any = blocks_of(rows)
    return blocks.pair_distances(x, y, rows, columns)


def all_distances(x: Array) -> Array:
    """Return the distances of all pairs of x (n, d), in the order of `pdist`.

    By a product of matrices; where that would lose digits, from explicit differences.
    """
    i, j = np.triu_indices(len(x), 1)
    sizes = row_norms(x, squared=True)
    with single_threaded_blas():  # the same bits for any number of threads
        products = (x @ x.T)[i, j]
    sums = sizes[i] + sizes[j]
    squares = sums - 2 * products
    distances = np.sqrt(np.maximum(squares, 0.0))
    lost = np.flatnonzero(squares < _CANCELLED * sums)
    distances[lost] = pair_distances(x, x, i[lost], j[lost])
    return distances
