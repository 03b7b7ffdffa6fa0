"""Symmetric operators: what a data set looks like to everything above."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator

from heatsketch._checks import read_array, refuse_masked
from heatsketch._tensors import is_tensor, on_host
from heatsketch._typing import Array
from heatsketch.operators.given_graph import Graph, as_graph, graph
from heatsketch.operators.kernel import Kernel
from heatsketch.operators.operator import (
    Affine,
    Deflated,
    Dense,
    LinearMap,
    LowRank,
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
    "Operator",
    "Scaled",
    "Sparse",
    "TorchDense",
    "TorchKernel",
    "TorchSparse",
    "as_graph",
    "as_operator",
    "graph",
    "on_vertices",
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
    graph = as_graph(A, name)
    matrix = on_host(A) if graph is None else graph.matrix
    refuse_masked(matrix, name)
    matrix = matrix if issparse(matrix) else read_array(matrix, name)
    if matrix.dtype.kind in "iub":
        matrix = matrix.astype(np.float64)
    check_symmetric(matrix, name)
    if is_tensor(A):
        return TorchSparse(A) if issparse(matrix) else TorchDense(A)
    return Sparse(matrix) if issparse(matrix) else Dense(matrix)


def on_vertices(A: Any, name: str = "A") -> tuple[Operator, Array]:
    """Return `A` as an operator on vertices, and the vertex of each input point (points,).

    A diffusion has vertices of its own. A large sparse matrix is renumbered, so that near points
    have near numbers; other points are vertices in the order given.
    """
    if hasattr(A, "vertex"):
        return A.operator, A.vertex
    operator = as_operator(A, name)
    return (operator, np.arange(operator.n)) if operator is A else operator.near_order()


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
