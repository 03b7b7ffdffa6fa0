"""A coarser graph by smoothed aggregation: its eigenvectors start the search on the finer one.

It is made on the host, from the stored matrix.
"""

import numpy as np
from scipy import sparse

from heatsketch._tiles import single_threaded_blas
from heatsketch._typing import Array
from heatsketch.operators.csr import scale_both_sides
from heatsketch.operators.deflated import Deflated
from heatsketch.operators.operator import Operator
from heatsketch.operators.sparse import Sparse

_MIN_POINTS_PER_COLUMN = 3  # of the coarse graph, for each column of a block
_MAX_AGGREGATES_TOUCHED = 12  # by the neighbours of a point, on average
_NEGLIGIBLE = 0.05  # size of negative entries: coarser graphs have small ones
_SMOOTHING_PRODUCTS = 8  # with the constant, if the leading vector is not known


@single_threaded_blas()  # dot products of long vectors depend on threads
def coarser(A: Operator, block: int) -> tuple[Deflated, sparse.csr_matrix] | None:
    """Return a coarser graph on m aggregates by smoothed aggregation, and the prolongation (n, m).

    The prolongation P maps vectors of the coarser graph to vectors of A. Returns None if a coarser
    graph would not help. The same directions are deflated in both.

    With u the leading vector of A, λ its eigenvalue, and T the matrix of u cut into aggregates, the
    prolongation is one damped diffusion step of T (Vaněk, Mandel and Brezina 1996), P = T +
    ω (A/λ - 1) T, so that u = P 1 is kept. Rayleigh quotients of P y are those of the pencil
    (PᵀAP, PᵀP); with the mass PᵀP lumped, D = diag(PᵀP 1), it is a symmetric operator again,
    λ - D^-1/2 Pᵀ(λ - A)P D^-1/2, with leading vector √D 1. Lumping changes slow
    eigenvectors little. Cost: some ten products by A with a vector, and two by sparse matrices.

    Parameters
    ----------
    A : Operator
        The operator of a stored non-negative matrix; for others there is no coarser graph.
    block : int
        Number of vectors that the coarser graph must represent.
    """
    M = A.sparse_matrix()
    if M is None or M.nnz == 0 or M.data.min() < -_NEGLIGIBLE * M.data.max():
        return None
    # A vector near the leading one, and its Rayleigh quotient. The first deflated direction is √π;
    # else some products with the constant suffice, because aggregates need the vector at short
    # range only.
    leading = A.V[:, 0] if A.n_deflated else A.leading
    u = np.asarray(np.ones(A.n) if leading is None else leading, M.dtype)
    for _ in range(_SMOOTHING_PRODUCTS if leading is None else 1):
        u = M @ (u / np.linalg.norm(u))
    u = (u / (np.copysign(1, u.sum()) * np.linalg.norm(u))).astype(float)
    top = float(u @ (M @ u.astype(M.dtype)))
    if top <= 0 or u.min() <= 0:
        return None
    label, roots = aggregates(M)
    m = len(roots)
    if not _MIN_POINTS_PER_COLUMN * block <= m <= A.n // 2:
        return None
    T = sparse.csr_matrix((u.astype(M.dtype), label, np.arange(A.n + 1)), (A.n, m))
    spread = M @ T
    if spread.nnz > _MAX_AGGREGATES_TOUCHED * A.n:
        return None  # the coarse graph is nearly complete, as for an expander
    omega = min(1.0, 4 / 3 / (1 - A.spectrum[0] / top))
    P = sparse.csr_matrix((1 - omega) * T + spread * (omega / top)).astype(float)
    # λ - D^-1/2 Pᵀ(λ - A)P D^-1/2
    mass = P.T @ P
    energy = sparse.csr_matrix(top * mass - P.T @ (M @ P))
    s = 1 / np.sqrt(mass @ np.ones(m))
    matrix = scale_both_sides(energy, -s, s) + top * sparse.identity(m)
    matrix = sparse.csr_matrix((matrix + matrix.T) / 2)
    V = np.linalg.qr((T.T @ A.V) / (T.T @ u)[:, None] / s[:, None])[0]
    return Deflated(Sparse(matrix, A.spectrum), V), sparse.csr_matrix(P @ sparse.diags(s))


def aggregates(matrix: sparse.csr_matrix) -> tuple[Array, Array]:
    """Return the aggregate of each point (n,), numbered from 0, and their roots (m,).

    Roots are a maximal set of points without common neighbours. A point belongs to the root to
    which it is linked, or to the aggregate to which its links have the largest weight.
    """
    n, indices = matrix.shape[0], matrix.indices
    linked = np.flatnonzero(np.diff(matrix.indptr))
    # Each point has a random number. A point with the largest one within two links becomes a root,
    # and the others within two links of it do not, until all are decided (Bell, Dalton and Olson
    # 2012).
    root = np.int32(2**30)  # above all random numbers
    rank = (1 + np.random.default_rng(0).permutation(n)).astype(np.int32)
    undecided = np.ones(n, dtype=bool)
    while undecided.any():
        largest = rank.copy()
        for _ in range(2):
            near = np.maximum.reduceat(largest[indices], matrix.indptr[linked])
            largest[linked] = np.maximum(largest[linked], near)
        chosen, refused = undecided & (largest == rank), undecided & (largest == root)
        rank[chosen], rank[refused] = root, 0
        undecided = (rank > 0) & (rank < root)
    roots = np.flatnonzero(rank == root)
    label = np.full(n, -1)
    label[roots] = np.arange(len(roots))
    while (label < 0).any():
        left, found = np.flatnonzero(label < 0), label >= 0
        indptr = np.concatenate([[0], np.cumsum(found)])
        member = sparse.csr_matrix(
            (np.ones(indptr[-1], matrix.dtype), label[found], indptr), (n, len(roots))
        )
        weights = sparse.csr_matrix(matrix[left] @ member)
        reached = np.flatnonzero(np.diff(weights.indptr))
        label[left[reached]] = np.asarray(weights[reached].argmax(axis=1)).ravel()
    return label, roots
