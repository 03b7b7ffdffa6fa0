"""A coarser graph whose slow eigenvectors are near those of a finer one: smoothed aggregation."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch.operators.operator import Deflated, Operator, Sparse, scale_both_sides

_MIN_POINTS_PER_COLUMN = 3  # of the coarse graph, for each column of a block
_MAX_AGGREGATES_TOUCHED = 12  # by the neighbours of a point, on average
_NEGLIGIBLE = 0.05  # size of negative entries: coarser graphs have small ones
_SMOOTHING_PRODUCTS = 8  # of the constant, where the leading vector is not known


def coarser(A: Operator, block: int) -> tuple[Deflated, sparse.csr_matrix] | None:
    """Return a coarser graph on m aggregates by smoothed aggregation, and the prolongation (n, m).

    The prolongation P takes vectors of the coarser graph to vectors of A. None where a coarser
    graph would not help. The same directions are taken out of both.

    With u the leading vector of A, λ its eigenvalue, and T the matrix of u cut into aggregates, the
    prolongation is one damped diffusion step of T (Vaněk, Mandel and Brezina 1996), P = T +
    ω (A/λ - 1) T, so that u = P 1 is kept. Rayleigh quotients of P y are those of the pencil
    (PᵀAP, PᵀP); with the mass PᵀP lumped, D = diag(PᵀP 1), it is a symmetric operator again,
    λ - D^-1/2 Pᵀ(λ - A)P D^-1/2, with leading vector √D 1. Lumping changes slow
    eigenvectors little. Cost: some ten products by A with a vector, and two by sparse matrices.

    Parameters
    ----------
    A : Operator
        Of a stored non-negative matrix; else there is no coarser graph.
    block : int
        Number of vectors that the coarser graph has to represent.
    """
    M = A.sparse_matrix()
    if M is None or M.nnz == 0 or M.data.min() < -_NEGLIGIBLE * M.data.max():
        return None
    u, top = _leading(A)
    if top <= 0 or u.min() <= 0:
        return None
    label, m = aggregates(M)
    if not _MIN_POINTS_PER_COLUMN * block <= m <= A.n // 2:
        return None
    T = sparse.csr_matrix((u.astype(M.dtype), label, np.arange(A.n + 1)), (A.n, m))
    spread = M @ T
    if spread.nnz > _MAX_AGGREGATES_TOUCHED * A.n:
        return None  # the coarse graph links everything with everything, as that of an expander
    omega = min(1.0, 4 / 3 / (1 - A.spectrum[0] / top))
    P = sparse.csr_matrix((1 - omega) * T + spread * (omega / top)).astype(float)
    matrix, s = _lumped(M, P, top)
    V = np.linalg.qr((T.T @ A.V) / (T.T @ u)[:, None] / s[:, None])[0]
    operator = Deflated(Sparse(matrix, A.spectrum), V)
    return operator, sparse.csr_matrix(P @ sparse.diags(s))


def _lumped(M: sparse.csr_matrix, P: sparse.csr_matrix, top: float) -> tuple[Any, Array]:
    """Return λ - D^-1/2 Pᵀ(λ - M)P D^-1/2, CSR, and the diagonal (m,) of D^-1/2."""
    mass = P.T @ P
    energy = sparse.csr_matrix(top * mass - P.T @ (M @ P))
    s = 1 / np.sqrt(mass @ np.ones(P.shape[1]))
    matrix = scale_both_sides(energy, -s, s) + top * sparse.identity(P.shape[1])
    return sparse.csr_matrix((matrix + matrix.T) / 2), s


def _leading(A: Operator) -> tuple[Array, float]:
    """Return a vector (n,) near the leading one wherever few links lead, and its Rayleigh quotient.

    The first direction taken out is √π. Else some products of the constant do: aggregates see the
    vector at short range only.
    """
    known = A.V[:, 0] if A.V.shape[1] else A.leading
    u = np.ones(A.n) if known is None else known
    u = np.asarray(u, A.dtype)
    for _ in range(_SMOOTHING_PRODUCTS if known is None else 1):
        u = A.undeflated @ (u / np.linalg.norm(u))
    u = u / (np.copysign(1, u.sum()) * np.linalg.norm(u))
    return u.astype(float), float(u @ (A.undeflated @ u))


def aggregates(matrix: sparse.csr_matrix) -> tuple[Array, int]:
    """Return the aggregate of each point (n,), numbered from 0, and how many there are.

    Roots are a maximal set of points of which no two have a neighbour in common; a point belongs to
    the root it is linked with, or to the aggregate of the neighbours it is linked with most.
    """
    roots = _distant_points(matrix)
    label = np.full(matrix.shape[0], -1)
    label[roots] = np.arange(len(roots))
    while (label < 0).any():
        left, found = np.flatnonzero(label < 0), label >= 0
        indptr = np.concatenate([[0], np.cumsum(found)])
        member = sparse.csr_matrix(
            (np.ones(indptr[-1], matrix.dtype), label[found], indptr),
            (matrix.shape[0], len(roots)),
        )
        weights = sparse.csr_matrix(matrix[left] @ member)
        reached = np.flatnonzero(np.diff(weights.indptr))
        label[left[reached]] = np.asarray(weights[reached].argmax(axis=1)).ravel()
    return label, len(roots)


def _distant_points(matrix: sparse.csr_matrix) -> Array:
    """Return a maximal set of points at least three links apart (Bell, Dalton and Olson 2012).

    Each point has a random number; one that has the largest within two links is taken, and those
    within two links of it are not; until all are decided.
    """
    n = matrix.shape[0]
    starts, neighbors = matrix.indptr[:-1], matrix.indices
    filled = np.flatnonzero(np.diff(matrix.indptr))
    taken = np.int32(2**30)
    rank = (1 + np.random.default_rng(0).permutation(n)).astype(np.int32)

    def largest_near(values: Array) -> Array:
        largest = values.copy()
        near = np.maximum.reduceat(values[neighbors], starts[filled])
        largest[filled] = np.maximum(values[filled], near)
        return largest

    while True:
        largest = largest_near(largest_near(rank))
        open_ = (rank > 0) & (rank < taken)
        if not open_.any():
            return np.flatnonzero(rank == taken)
        chosen, refused = open_ & (largest == rank), open_ & (largest == taken)
        rank[chosen], rank[refused] = taken, 0
