"""Products of sparse matrices with blocks, compiled where they are large, and other uses of CSR."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._checks import real_array
from heatsketch._tiles import for_each_tile
from heatsketch._typing import Array
from heatsketch.operators.order import inverse_permutation

COMPILED_FROM = 2**14  # rows: smaller products are not worth a compiler's start
_TILE = 2048  # rows multiplied at a time


def is_large(n: int) -> bool:
    """Say whether products with n rows are compiled, reordered, and kept in float32 if X is."""
    return n >= COMPILED_FROM


def real_csr(matrix: Any) -> sparse.csr_matrix:
    """Return a matrix as CSR of float32 or float64, not copied where it is that, or raise."""
    matrix = matrix if sparse.issparse(matrix) else real_array(matrix, "The matrix")
    matrix = sparse.csr_matrix(matrix)
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"The matrix has dtype {matrix.dtype}; pass real numbers.")
    return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)


def multiply(matrix: Any, X: Array) -> Array:
    """Return matrix @ X, compiled for a large CSR matrix (m, n) and a block X (n, k)."""
    if X.ndim == 1 or not (sparse.issparse(matrix) and is_large(matrix.shape[1])):
        return matrix @ X
    from heatsketch.operators.csr import multiply_block  # imports numba

    X = np.ascontiguousarray(X)
    Y = np.empty((matrix.shape[0], X.shape[1]), X.dtype)

    def work(rows: slice) -> None:
        parts = (matrix.indptr, matrix.indices, matrix.data)
        multiply_block(*parts, X, rows.start, rows.stop, Y)

    for_each_tile(work, len(Y), _TILE)
    return Y


def scale_both_sides(
    matrix: sparse.csr_matrix, left: Array, right: Array, dtype: Any = np.float64
) -> sparse.csr_matrix:
    """Return diag(left) matrix diag(right); the pattern is shared, not copied."""
    scale = np.repeat(left, np.diff(matrix.indptr))
    scale *= right[matrix.indices]
    scale *= matrix.data
    data = scale.astype(dtype, copy=False)
    return sparse.csr_matrix((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def permuted(matrix: sparse.csr_matrix, order: Array) -> sparse.csr_matrix:
    """Return matrix[order][:, order]."""
    rows = matrix[order]
    rows.indices = inverse_permutation(order)[rows.indices].astype(rows.indices.dtype)
    rows.has_sorted_indices = False
    rows.sort_indices()
    return rows
