"""Products, scalings and permutations of stored matrices, most of them in CSR form."""

from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._tensors import landed
from heatsketch._tiles import for_each_tile
from heatsketch._typing import Array
from heatsketch.backend import HOST, blocks_of

COMPILED_FROM = 2**14  # rows: smaller products are not worth a compiler's start
_EQUAL = 1e-9  # relative difference of entries that count as equal
_PRODUCT_TILE = 2048  # rows multiplied at a time


def is_large(n: int) -> bool:
    """Say whether products with n rows are compiled, reordered, and kept in float32 if X is."""
    return n >= COMPILED_FROM


def multiply(matrix: Any, X: Array) -> Array:
    """Return matrix @ X, compiled for a large CSR matrix (m, n) and a block X (n, k)."""
    if X.ndim == 1 or not (sparse.issparse(matrix) and is_large(matrix.shape[1])):
        return matrix @ X
    from heatsketch.operators.sparse_loops import multiply_block  # imports numba

    X = np.ascontiguousarray(X)
    Y = np.empty((matrix.shape[0], X.shape[1]), X.dtype)

    def work(rows: slice) -> None:
        csr = (matrix.indptr, matrix.indices, matrix.data)
        multiply_block(*csr, X, rows.start, rows.stop, Y)

    for_each_tile(work, len(Y), _PRODUCT_TILE)
    return Y


def scale_both_sides(matrix: Any, left: Array, right: Array, dtype: Any = np.float64) -> Any:
    """Return diag(left) matrix diag(right), of an array or CSR matrix, whose pattern is shared.

    Of a matrix on a device, where `left` and `right` are too, the result is there.
    """
    if isinstance(matrix, np.ndarray):
        with np.errstate(over="ignore"):
            both = left[:, None] * right  # one product, so that a symmetric matrix stays symmetric
        return np.multiply(matrix, both, out=np.zeros(both.shape), where=matrix != 0)  # not 0 · ∞
    matrix = matrix.tocsr()
    blocks = blocks_of(matrix)
    scale = blocks.repeated(left, matrix)
    scale *= right[matrix.indices]
    scale *= matrix.data
    data = blocks.native(scale, dtype)
    return blocks.csr((data, matrix.indices, matrix.indptr), matrix.shape)


def largest_of_rows(matrix: Any, count: int) -> Any:
    """Return the `count` largest entries of each row, and those equal to the last of them, as CSR.

    Which ones does not depend on the order of the columns. On the host, unless `matrix` is on a
    device and has no larger rows.
    """
    if blocks_of(matrix) is not HOST and int(matrix.indptr.diff().max()) <= count:
        return matrix
    rows = sparse.csr_matrix(landed(matrix))
    kept = np.ones(len(rows.data), bool)
    for i in np.flatnonzero(np.diff(rows.indptr) > count):
        entries = slice(rows.indptr[i], rows.indptr[i + 1])
        least = np.partition(rows.data[entries], -count)[-count]
        kept[entries] = rows.data[entries] >= least * (1 - _EQUAL)
    if kept.all():
        return rows
    starts = np.append(0, np.cumsum(kept))[rows.indptr]
    return sparse.csr_matrix((rows.data[kept], rows.indices[kept], starts), rows.shape)


def permuted(matrix: sparse.csr_matrix, order: Array) -> sparse.csr_matrix:
    """Return matrix[order][:, order]."""
    rows = matrix[order]
    rows.indices = inverse_permutation(order)[rows.indices].astype(rows.indices.dtype)
    rows.has_sorted_indices = False
    rows.sort_indices()
    return rows


def inverse_permutation(order: Array, n: int | None = None) -> Array:
    """Return p with p[order[i]] = i, 32-bit if it fits; (n,), of some of n numbers."""
    n, blocks = len(order) if n is None else n, blocks_of(order)
    index = sparse.get_index_dtype(maxval=n)
    inverse = blocks.native(blocks.arange(n), index)
    inverse[order] = blocks.native(blocks.arange(len(order)), index)
    return inverse
