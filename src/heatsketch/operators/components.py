"""Connected components of a matrix of affinities."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from heatsketch._tiles import row_tiles
from heatsketch._typing import Array

NEGLIGIBLE = 1e-14  # share of a row sum below which an affinity changes nothing in float64
STRONGEST_LINKS = 10  # of each point, looked at first


def components_of_matrix(matrix: sparse.csr_matrix) -> Array:
    """Return the component of each row (n,) of a symmetric, non-negative sparse matrix."""
    row_sums = np.asarray(matrix.sum(axis=1)).ravel()
    if matrix.nnz and matrix.data.min() <= NEGLIGIBLE * row_sums.max():
        smaller = np.repeat(row_sums, np.diff(matrix.indptr))
        np.minimum(smaller, row_sums[matrix.indices], out=smaller)
        kept = matrix.data > NEGLIGIBLE * smaller  # symmetric: for either of the two rows
        del smaller
        matrix = sparse.csr_matrix((kept, matrix.indices, matrix.indptr), matrix.shape, copy=True)
        matrix.eliminate_zeros()
    # The strong components of a symmetric pattern are its components, and need no transpose.
    return connected_components(matrix, directed=True, connection="strong")[1]


def components_of_links(rows: Array, columns: Array, n: int) -> Array:
    """Return the component of each of n points (n,) that these pairs link."""
    links = sparse.csr_matrix((np.ones(len(rows), dtype=bool), (rows, columns)), shape=(n, n))
    return connected_components(links, directed=False)[1]


def components_of_table(table: sparse.csr_matrix) -> Array:
    """Return the component of each row (n,) of a table (n, r): rows with a column in common."""
    n = table.shape[0]
    rows = sparse.csr_matrix(table != 0)
    both_sides = sparse.bmat([[None, rows], [rows.T, None]], format="csr")
    labels = connected_components(both_sides, directed=False)[1][:n]
    return np.unique(labels, return_inverse=True)[1]  # columns without any row are no component


def strongest_links(matrix: Array) -> tuple[Array, Array, int]:
    """Return rows and columns of the largest entries of each row that are not negligible, and n."""
    n = len(matrix)
    k = min(STRONGEST_LINKS, n - 1)
    rows, columns = [], []
    for tile in row_tiles(n):
        block = matrix[tile]
        strongest = np.argpartition(block, n - 1 - k, axis=1)[:, n - 1 - k :]
        values = np.take_along_axis(block, strongest, axis=1)
        kept = values > NEGLIGIBLE * block.sum(axis=1, keepdims=True)
        rows.append(tile.start + np.nonzero(kept)[0])
        columns.append(strongest[kept])
    return np.concatenate(rows), np.concatenate(columns), n


def between_components(root: Array, labels: Array, k: int) -> Array:
    """Return at most k directions (n, k) that are multiples of √π on each component.

    One for each component but the largest, orthonormal, and orthogonal to `root`, √π (n,). The m-th
    is √π on the m larger components together against the next one, in the proportion that keeps it
    orthogonal to √π.
    """
    mass = np.bincount(labels, weights=root**2)
    by_mass = np.argsort(-mass, kind="stable")
    rank = np.argsort(by_mass)[labels]
    m, together = mass[by_mass][1:], np.cumsum(mass[by_mass])
    larger, both = together[:-1], together[1:]
    H = np.zeros((len(root), min(k, len(m))))
    for j in range(H.shape[1]):
        H[rank <= j, j] = np.sqrt(m[j] / (larger[j] * both[j]))
        H[rank == j + 1, j] = -np.sqrt(larger[j] / (m[j] * both[j]))
    return H * root[:, None]
