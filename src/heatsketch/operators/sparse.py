"""A symmetric sparse matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from heatsketch._array import for_each_tile
from heatsketch._checks import real_array
from heatsketch._typing import Array
from heatsketch.operators.base import OfMatrix, Operator, Scaled, scaled
from heatsketch.operators.components import components_of_matrix
from heatsketch.operators.order import Numbered, in_near_order, inverse_permutation
from heatsketch.operators.properties import component_labels, scaled_graph, stored_matrix

COMPILED_FROM = 2**14  # rows: smaller products are not worth a compiler's start
_TILE = 2048  # rows multiplied at a time


def is_large(n: int) -> bool:
    """Say whether products with n rows are compiled, reordered, and kept in float32 if X is."""
    return n >= COMPILED_FROM


@dataclass(frozen=True, eq=False)
class Sparse(OfMatrix):
    """A stored symmetric sparse matrix (n, n), in CSR form.

    Cost of a product: 2 nnz k operations. From 16,384 rows on by compiled loops on all cores, with
    the same bits for any number of them; speed is then that of memory, and depends on whether
    points near in the matrix are near in their order (`numbered`).

    Parameters
    ----------
    matrix : SciPy sparse matrix or array (n, n)
        Symmetric; converted to CSR where it is not.
    spectrum : (float, float), optional
        Interval known to hold the spectrum; by default ± the largest absolute row sum.
    leading : array (n,), optional
        The eigenvector of the largest eigenvalue, where it is known.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, heatsketch as hs
    >>> A = hs.Sparse(scipy.sparse.diags([2.0, 3.0]))
    >>> A @ np.ones((2, 1))
    array([[2.],
           [3.]])
    """

    matrix: sparse.csr_matrix
    spectrum: tuple[float, float] = None  # type: ignore[assignment]
    leading: Array | None = None

    def __post_init__(self) -> None:
        matrix = real_csr(self.matrix)
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"The matrix has shape {matrix.shape}; pass a square one (n, n).")
        object.__setattr__(self, "matrix", matrix)
        if self.spectrum is None:
            bound = float(np.max(np.asarray(abs(matrix).sum(axis=1)), initial=0.0))
            object.__setattr__(self, "spectrum", (-bound, bound))

    def __matmul__(self, X: Array) -> Array:
        """Multiply a block: (n, k) -> (n, k)."""
        return multiply(self.matrix, self.asarray(X))


def real_csr(matrix: Any) -> sparse.csr_matrix:
    """Return a matrix as CSR of float32 or float64, not copied where it is that, or raise."""
    matrix = matrix if sparse.issparse(matrix) else real_array(matrix, "The matrix")
    matrix = sparse.csr_matrix(matrix)
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"The matrix has dtype {matrix.dtype}; pass real numbers.")
    return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)


def multiply(matrix: Any, X: Array) -> Array:
    """Return matrix @ X, compiled for a large CSR matrix (m, n) and X (n, k) of its precision."""
    if not (sparse.issparse(matrix) and is_large(matrix.shape[1])):
        return matrix @ X
    from heatsketch.operators import csr

    n = matrix.shape[0]
    X = np.ascontiguousarray(X)
    Y = np.empty((n, *X.shape[1:]), X.dtype)
    loop = csr.multiply_vector if X.ndim == 1 or X.shape[1] == 1 else csr.multiply_block
    flat = (X.ravel(), Y.reshape(-1)) if loop is csr.multiply_vector else (X, Y)

    def work(rows: slice) -> None:
        parts = (matrix.indptr, matrix.indices, matrix.data)
        loop(*parts, flat[0], rows.start, rows.stop, flat[1])

    for_each_tile(work, n, _TILE)
    return Y


def scale_both_sides(
    matrix: sparse.csr_matrix, left: Array, right: Array, dtype: Any = np.float64
) -> sparse.csr_matrix:
    """Return diag(left) matrix diag(right); the pattern is shared, not copied."""
    data = np.empty(matrix.nnz, dtype)
    if not is_large(matrix.shape[1]):
        owner = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        data[:] = matrix.data * (left[owner] * right[matrix.indices])
    else:
        from heatsketch.operators import csr

        def work(rows: slice) -> None:
            parts = (matrix.indptr, matrix.indices, matrix.data, left, right)
            csr.scale_entries(*parts, rows.start, rows.stop, data)

        for_each_tile(work, matrix.shape[0], _TILE)
    return sparse.csr_matrix((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def larger_of_both(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the entrywise maximum of a non-negative matrix (n, n), sorted, and its transpose."""
    n = matrix.shape[0]
    if not is_large(n):
        return matrix.maximum(matrix.T).tocsr()
    from heatsketch.operators import csr

    other = sorted_transpose(matrix)
    parts = (matrix.indptr, matrix.indices, matrix.data, other.indptr, other.indices, other.data)
    sizes = np.empty(n, np.int64)
    for_each_tile(
        lambda rows: csr.union_sizes(*parts[:2], *parts[3:5], rows.start, rows.stop, sizes),
        n,
        _TILE,
    )
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    indices, data = np.empty(indptr[-1], matrix.indices.dtype), np.empty(indptr[-1])
    for_each_tile(
        lambda rows: csr.union_maximum(*parts, rows.start, rows.stop, indptr, indices, data),
        n,
        _TILE,
    )
    return sparse.csr_matrix((data, indices, indptr), shape=(n, n))


def sorted_transpose(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the transpose (n, n) of a square matrix as CSR with sorted columns."""
    from heatsketch.operators import csr

    starts = np.empty_like(matrix.indptr)
    rows, values = np.empty_like(matrix.indices), np.empty_like(matrix.data)
    csr.transpose(matrix.indptr, matrix.indices, matrix.data, starts, rows, values)
    transposed = sparse.csr_matrix((values, rows, starts), shape=matrix.shape)
    transposed.has_sorted_indices = True
    return transposed


@stored_matrix.register
def _(A: Sparse) -> sparse.csr_matrix:
    return A.matrix


@component_labels.register
def _(A: Sparse) -> Array:
    return components_of_matrix(A.matrix)


@scaled_graph.register
def _(A: Sparse) -> tuple[sparse.csr_matrix, Array]:
    return A.matrix, np.ones(A.n)


@scaled.register
def _(
    K: Sparse, s: Array, spectrum: tuple[float, float], leading: Array, dtype: Any = np.float64
) -> Operator:
    """Scale a large matrix entry by entry, which makes its products faster."""
    if not is_large(K.n):
        return Scaled(K, s, spectrum, leading)
    return Sparse(scale_both_sides(K.matrix, s, s, dtype), spectrum, leading)


@in_near_order.register
def _(A: Sparse) -> Numbered:
    """Number the vertices by reverse Cuthill-McKee, if the matrix does not stay in the cache."""
    if not is_large(A.n):
        return Numbered(A, None)
    order = reverse_cuthill_mckee(A.matrix, symmetric_mode=True)
    return Numbered(Sparse(permuted(A.matrix, order), A.spectrum), inverse_permutation(order))


def permuted(matrix: sparse.csr_matrix, order: Array) -> sparse.csr_matrix:
    """Return matrix[order][:, order]."""
    rows = matrix[order]
    rows.indices = inverse_permutation(order)[rows.indices].astype(rows.indices.dtype)
    rows.has_sorted_indices = False
    rows.sort_indices()
    return rows
