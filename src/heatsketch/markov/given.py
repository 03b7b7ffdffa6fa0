"""Affinities that are given: matrices, graphs and operators."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from heatsketch._checks import read_array, refuse_masked
from heatsketch._tensors import in_double, is_tensor
from heatsketch.operators import LinearMap, Operator, as_graph, as_operator


def taken(K: Any) -> Any:
    """Return K, or the matrix of a graph; a SciPy `LinearOperator` as an operator.

    A node of a graph that has no edges stays where it is: it gets a self-loop of the mean degree.
    (An empty row of a matrix may be a mistake, and is refused where it is divided by.)
    """
    if isinstance(K, LinearOperator):
        return LinearMap(K)
    graph = as_graph(K, "K")
    return K if graph is None else _with_self_loops(graph.matrix)


def as_affinity(K: Any) -> Operator:
    """Return an operator for the affinity K in float64, or say why K is not one."""
    K = taken(K)
    if isinstance(K, Operator):
        matrix = K.stored_matrix()
        if matrix is not None:
            check_non_negative(matrix)
        return K
    if is_tensor(K):
        operator = as_operator(in_double(K), "K")
        check_non_negative(operator.stored_matrix())
        return operator
    refuse_masked(K, "K")
    if not sparse.issparse(K):
        K = read_array(K, "K")
    if K.dtype.kind in "fiub" and K.dtype != np.float64:
        K = K.astype(np.float64)
    operator = as_operator(K, "K")
    check_non_negative(K)
    return operator


def check_non_negative(K: Any) -> None:
    """Raise if the stored affinity K has a negative entry."""
    entries = K.data if sparse.issparse(K) else K
    if entries.size and entries.min() < 0:
        raise ValueError(
            f"Negative values in data: the affinity goes down to {entries.min():.3g}; pass "
            "non-negative weights, e.g. exp(-distance**2 / epsilon)."
        )


def _with_self_loops(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    degrees = np.asarray(matrix.sum(axis=1)).ravel()
    alone = degrees == 0
    if not alone.any():
        return matrix
    loops = np.where(alone, 1.0 if alone.all() else degrees[~alone].mean(), 0.0)
    return sparse.csr_matrix(matrix + sparse.diags(loops))
