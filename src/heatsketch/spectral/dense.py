"""Eigenpairs by the dense matrix: cheaper than any iteration up to some thousand points."""

from __future__ import annotations

import sys

import numpy as np
from scipy.linalg import eigh as dense_eigh

from heatsketch._tiles import single_threaded_blas
from heatsketch._typing import Array
from heatsketch.operators.operator import Operator
from heatsketch.spectral.cache import cached

DENSE_LIMIT = 1200  # points up to which the dense matrix is cheaper than iterating, for few pairs
_DENSE_RESCUE_LIMIT = 4096  # points up to which the dense matrix is the way out
_POINTS_PER_COLUMN = 16  # and for many: points for each column that an iteration would have


def dense_pays(n: int, block: int) -> bool:
    """Say whether the dense matrix of n points is cheaper than iterating with a block of columns.

    The reduction to tridiagonal form takes 4/3 n³ operations however many pairs are wanted.
    """
    return n <= max(DENSE_LIMIT, _POINTS_PER_COLUMN * block)


def products_like_dense(n: int, block: int) -> int:
    """Return after how many products with a block it is time for the dense matrix instead.

    They take some eight times as long as the dense matrix does: an iteration so slow is hopeless.
    """
    return max(300, n**2 // (200 * block)) if n <= _DENSE_RESCUE_LIMIT else sys.maxsize


@cached
@single_threaded_blas()  # the same bits for any number of threads
def all_eigenpairs(A: Operator) -> tuple[Array, Array]:
    """Return all eigenvalues, ascending, and eigenvectors; of a deflated operator, the others'."""
    values, vectors = dense_eigh(_matrix(A), driver="evd", overwrite_a=True, check_finite=False)
    deflated = A.V.shape[1]
    return values[deflated:], vectors[:, deflated:]


@cached
@single_threaded_blas()  # the same bits for any number of threads
def all_eigenvalues(A: Operator) -> Array:
    """Return all eigenvalues, ascending; half the cost of `all_eigenpairs`."""
    found = dense_eigh(_matrix(A), eigvals_only=True, overwrite_a=True, check_finite=False)
    values: Array = found[A.V.shape[1] :]
    return values


@single_threaded_blas()  # the same bits for any number of threads
def dense_eigenpairs(A: Operator, k: int) -> tuple[Array, Array]:
    """Return the k largest eigenvalues, descending, and eigenvectors."""
    if 3 * k > A.n:  # inverse iteration for each is slower than all at once
        values, vectors = all_eigenpairs(A)
    else:
        values, vectors = dense_eigh(
            _matrix(A), subset_by_index=(A.n - k, A.n - 1), overwrite_a=True, check_finite=False
        )
    return values[::-1][:k], vectors[:, ::-1][:, :k]


def _matrix(A: Operator) -> Array:
    """Return the matrix in float64, with the deflated directions below everything else."""
    matrix = np.asarray(A @ np.eye(A.n, dtype=A.dtype), dtype=float)
    matrix = (matrix + matrix.T) / 2
    V = np.asarray(A.V, dtype=float)
    if V.shape[1]:
        # The interval that A gives may be so wide that its ends would leave no digits of A.
        size = float(np.abs(matrix).sum(axis=1).max())
        matrix -= (2.0 * size or 1.0) * (V @ V.T)
    return matrix
