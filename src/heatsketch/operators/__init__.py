"""Symmetric operators: what a data set looks like to everything above."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from heatsketch.operators.base import Affine, Deflated, Operator, Scaled
from heatsketch.operators.dense import Dense
from heatsketch.operators.kernel import Kernel
from heatsketch.operators.lowrank import LowRank
from heatsketch.operators.sparse import Sparse

__all__ = [
    "Affine",
    "Deflated",
    "Dense",
    "Kernel",
    "LowRank",
    "Operator",
    "Scaled",
    "Sparse",
    "as_operator",
]

SYMMETRY_TOLERANCE = 1e-10


def as_operator(A: Any) -> Operator:
    """Return `A` itself if it is an operator, else wrap an array or SciPy sparse matrix.

    Raises
    ------
    ValueError
        Not square, not symmetric (beyond 1e-10 of the largest entry) or not finite.
    """
    if isinstance(A, Operator):
        return A
    if issparse(A):
        check_symmetric(A)
        return Sparse(A)
    matrix = np.asarray(A)
    check_symmetric(matrix)
    return Dense(matrix)


def check_symmetric(matrix: Any, name: str = "A") -> None:
    """Raise unless the matrix is square, finite and symmetric up to rounding."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} has shape {matrix.shape}; pass a square matrix (n, n).")
    entries = matrix.data if issparse(matrix) else matrix
    if entries.dtype.kind not in "fiub":
        raise ValueError(f"{name} has dtype {entries.dtype}; pass real numbers.")
    if not np.isfinite(entries).all():
        raise ValueError(f"{name} contains NaN or infinity; drop or impute these points.")
    difference = abs(matrix - matrix.T)
    size = float(abs(matrix).max()) if entries.size else 0.0
    error = float(difference.max()) if entries.size else 0.0
    tolerance = max(
        SYMMETRY_TOLERANCE,
        8 * float(np.finfo(entries.dtype).eps if entries.dtype.kind == "f" else 0),
    )
    if error > tolerance * size:
        raise ValueError(
            f"{name} is not symmetric (largest |A - Aᵀ| is {error:.2g}); pass (A + A.T) / 2 if "
            "that is what you mean."
        )
