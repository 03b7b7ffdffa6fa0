"""Affinities that are precomputed: matrices, graphs and operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from heatsketch._checks import name_rows
from heatsketch._tensors import is_tensor
from heatsketch._typing import Array
from heatsketch.markov.novelty import LeaveOneOutScores
from heatsketch.operators.graph import as_graph, as_operator
from heatsketch.operators.operator import LinearMap, Operator, inverse_permutation


def as_matrix(K: Any) -> Any:
    """Return K, or the matrix of a graph; a SciPy `LinearOperator` as an operator.

    A node of a graph that has no edges stays where it is: it gets a self-loop of the mean degree.
    (An empty row of a matrix may be a mistake, and is refused where it is divided by.)
    """
    if isinstance(K, LinearOperator):
        return LinearMap(K)
    graph = as_graph(K, "K")
    if graph is None:
        return K
    degrees = np.asarray(graph.matrix.sum(axis=1)).ravel()
    alone = degrees == 0
    if not alone.any():
        return graph.matrix
    loops = np.where(alone, 1.0 if alone.all() else degrees[~alone].mean(), 0.0)
    return sparse.csr_matrix(graph.matrix + sparse.diags(loops))


def as_affinity(K: Any) -> Operator:
    """Return an operator for the affinity K in float64, or say why K is not one."""
    K = as_matrix(K)
    if not isinstance(K, Operator):
        if is_tensor(K):
            K = K.double()
        elif hasattr(K, "dtype") and K.dtype.kind == "f":
            K = K.astype(np.float64, copy=False)
        K = as_operator(K, "K")
    matrix = K.matrix
    if matrix is not None and not K.is_non_negative():
        raise ValueError(
            f"Negative values in data: the affinity goes down to {matrix.min():.3g}; pass "
            "non-negative weights, e.g. exp(-distance**2 / epsilon)."
        )
    return K


@dataclass(frozen=True, eq=False)
class PrecomputedRows:
    """Affinities of new points to the input points, computed by the caller."""

    points: Array  # (n,), the input point at each vertex
    scores: LeaveOneOutScores
    is_sparse: ClassVar[bool] = False

    @classmethod
    def of(cls, K: Operator, vertex: Array) -> Self:
        """Prepare rows for the affinity K with these vertices of input points (n,)."""
        diagonal = K.diagonal()
        others = K @ np.ones(K.n, K.dtype) - (0.0 if diagonal is None else diagonal)
        return cls(inverse_permutation(vertex), LeaveOneOutScores.of(_logarithm(others)))

    @property
    def width(self) -> int:
        """Columns of the affinities of new points."""
        return len(self.points)

    def __call__(self, rows: Any) -> Any:
        """Return the affinities to the vertices, checked."""
        sums = np.asarray(rows.sum(axis=1)).ravel()
        least = rows.min(axis=1)
        least = np.asarray(least.todense() if sparse.issparse(least) else least).ravel()
        bad = np.flatnonzero((least < 0) | ~(sums > 0) | np.isinf(sums))
        if len(bad):
            raise ValueError(
                "Affinities of new points must be non-negative with positive, finite row sums (bad "
                f"rows: {name_rows(bad)}); leave these points out."
            )
        self.scores.warn(_logarithm(sums))
        return rows[:, self.points]

    def novelty(self, rows: Any) -> Array:
        """Return the novelty of points (m,) with these affinities (m, n), by their sums."""
        return self.scores.fraction(_logarithm(np.asarray(rows.sum(axis=1)).ravel()))


def _logarithm(sums: Array) -> Array:
    """Return the logarithm; -∞ where there is nothing, or only rounding."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(sums, 0.0))
