"""Symmetric operators: what a data set looks like to everything above."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator

from heatsketch._checks import read_array, refuse_masked
from heatsketch._tensors import is_tensor
from heatsketch.operators.given_graph import Graph, as_graph, graph
from heatsketch.operators.kernel import Kernel
from heatsketch.operators.operator import (
    Affine,
    Deflated,
    Dense,
    LinearMap,
    LowRank,
    Numbered,
    Operator,
    Scaled,
    Sparse,
)
from heatsketch.operators.torch import TorchDense, TorchKernel, TorchSparse

__all__ = [
    "Affine",
    "Deflated",
    "Dense",
    "Graph",
    "Kernel",
    "LinearMap",
    "LowRank",
    "Numbered",
    "Operator",
    "Scaled",
    "Sparse",
    "TorchDense",
    "TorchKernel",
    "TorchSparse",
    "as_graph",
    "as_operator",
    "graph",
    "numbered",
]

SYMMETRY_TOLERANCE = 1e-10


def as_operator(A: Any, name: str = "A") -> Operator:
    """Return `A` itself if it is an operator, else wrap a matrix, a graph or a `LinearOperator`.

    Raises
    ------
    ValueError
        Not square, not symmetric (beyond 1e-10 of the largest entry), not finite, or empty.
    """
    if isinstance(A, Operator):
        return A
    if isinstance(A, LinearOperator):
        return LinearMap(A)
    if is_tensor(A):
        return _of_tensor(A, name)
    found = as_graph(A, name)
    A = A if found is None else found.matrix
    refuse_masked(A, name)
    matrix = A if issparse(A) else read_array(A, name)
    if matrix.dtype.kind in "iub":
        matrix = matrix.astype(np.float64)
    check_symmetric(matrix, name)
    return Sparse(matrix) if issparse(matrix) else Dense(matrix)


def _of_tensor(A: Any, name: str) -> Operator:
    """Return a matrix that is a tensor as an operator on its device."""
    operator = (TorchDense if str(A.layout) == "torch.strided" else TorchSparse)(A)
    check_symmetric(operator.on_host.matrix, name)
    return operator


def numbered(A: Any, name: str = "A") -> Numbered:
    """Return `A` as an operator on vertices: the door through which matrices come in.

    A diffusion has vertices of its own, and an operator is taken as it is. The vertices of a large
    sparse matrix are numbered so that near ones have near numbers.
    """
    if hasattr(A, "vertex"):
        return Numbered(A.operator, A.vertex)
    operator = as_operator(A, name)
    return Numbered(operator, None) if operator is A else Numbered(*operator.near_order())


def check_symmetric(matrix: Any, name: str = "A") -> None:
    """Raise unless the matrix is square, finite and symmetric up to rounding."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(f"{name} has shape {matrix.shape}; pass a square matrix (n, n), n >= 1.")
    entries = matrix.data if issparse(matrix) else matrix
    if entries.dtype.kind != "f":
        raise ValueError(f"{name} has dtype {entries.dtype}; pass real numbers.")
    if not np.isfinite(entries).all():
        raise ValueError(f"{name} contains NaN or infinity; drop or impute these points.")
    difference = abs(matrix - matrix.T)
    size = float(abs(matrix).max()) if entries.size else 0.0
    error = float(difference.max()) if entries.size else 0.0
    tolerance = max(SYMMETRY_TOLERANCE, 8 * float(np.finfo(entries.dtype).eps))
    if error > tolerance * size:
        raise ValueError(
            f"{name} is not symmetric (largest |{name} - {name}ᵀ| is {error:.2g}); pass "
            f"({name} + {name}.T) / 2 if that is what you mean."
        )
