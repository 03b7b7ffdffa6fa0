"""The largest eigenvalues by shift and invert: for graphs as narrow as those of surfaces."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh as dense_eigh
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from heatsketch._checks import logger
from heatsketch._progress import report
from heatsketch._random import random_block
from heatsketch._tensors import on_host
from heatsketch._tiles import row_tiles, single_threaded_blas
from heatsketch._typing import Array, Rng
from heatsketch.operators.components import between_components, components_of_matrix
from heatsketch.operators.operator import Operator
from heatsketch.operators.order import inverse_permutation
from heatsketch.spectral.dense import DENSE_LIMIT
from heatsketch.spectral.eigenpairs import Spectrum, eigh, fix_signs

_MAX_ENVELOPE_WIDTH = 4.0  # in units of √n: a square has 2.5 at 15 neighbours, a cube 5 or more
_MAX_ENVELOPE_ENTRIES = 2**28  # the factors have a tenth of these, at 12 bytes each
_RELATIVE_SHIFT = 1e-8  # of σ above the largest eigenvalue
_BLOCK_COLUMNS = 8  # copies of an eigenvalue that can be found; solutions with more are no faster
_RESIDUAL_FLOOR = 1e-11  # rounding mixes directions of equal eigenvalues with others
_FEWEST_BLOCKS = 16  # of a Krylov space, and one more for two eigenpairs


def slowest_eigenpairs(A: Operator, k: int, *, tol: float = 1e-8, rng: Rng = None) -> Spectrum:
    """Return the leading eigenpairs of a deflated diffusion, by linear systems or by `eigh`.

    Of a graph with several components the eigenvectors of the eigenvalue 1 are known: differences
    between a component and the larger ones. No iteration could separate hundreds of them.

    Parameters
    ----------
    A : Operator
        Of an operator whose largest eigenvalue is the bound of its spectrum, 1, with √π taken out.
    k, tol, rng
        As in `eigh`.
    """
    H = _between_components(A, k)
    if H.shape[1] < k:
        rest = A if H.shape[1] == 0 else A.deflated(H)
        H = np.hstack([H, _leading(rest, k - H.shape[1], tol, rng)])
    image = on_host(A @ A.asarray(H))
    values = np.einsum("ij,ij->j", H, image)
    residuals = np.linalg.norm(image - H * values, axis=0)
    return Spectrum(values, fix_signs(H), residuals)


def _leading(A: Operator, k: int, tol: float, rng: Rng) -> Array:
    found = None if A.n <= DENSE_LIMIT else inverse_eigenpairs(A, k, tol, rng)
    return on_host(eigh(A, k, tol=tol, rng=rng).vectors) if found is None else found[1]


def _between_components(A: Operator, k: int) -> Array:
    """Return the eigenvectors of eigenvalue 1 but √π, at most k."""
    matrix = A.sparse_matrix()
    labels = np.zeros(A.n, int) if matrix is None else components_of_matrix(matrix)
    if labels.max() == 0:
        return np.empty((A.n, 0))
    return between_components(np.asarray(A.V[:, 0], dtype=float), labels, k)


@single_threaded_blas()  # the same bits for any number of threads
def inverse_eigenpairs(A: Operator, k: int, tol: float, rng: Rng) -> tuple[Array, Array] | None:
    """Return the k largest eigenvalues, descending, and eigenvectors; None where it does not pay.

    Block Krylov spaces of (σ - A)^-1, σ just above the bound of A's spectrum, which should be the
    largest eigenvalue (as it is of a diffusion). The slower things diffuse, the more products an
    iteration with A takes, but not this one. The factors stay sparse where few points separate
    the graph: on curves, surfaces, strips. In more dimensions they fill up, and diffusion is
    faster.

    Parameters
    ----------
    A : operator
        Perhaps deflated.
    k : int
    tol : float
        Largest residual |A v - λ v|, relative to the distance of λ from the bound (at least 1e-11).
    rng : int, Generator or None
        Start of the iteration.

    Notes
    -----
    Cost: a factorisation (0.3 s for 20,000 points, 4 s for 100,000, 15 neighbours on a strip), and
    some 8 solutions with k + 2 columns. An eigenvalue is found k + 2 times at most.
    """
    matrix, basis = A.sparse_matrix(), _BLOCK_COLUMNS * (_FEWEST_BLOCKS + k // 2)
    if matrix is None or basis > A.n or not _is_narrow(matrix):
        return None
    n, top = A.n, A.spectrum[1]
    shifted = sparse.identity(n, format="csc") * (top * (1 + _RELATIVE_SHIFT)) - sparse.csc_matrix(
        matrix
    )
    factors = splu(shifted, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    logger.info("eigenpairs: factors with %s entries", f"{factors.L.nnz:,}")
    X = random_block(n, _BLOCK_COLUMNS, "gaussian", rng)
    return _krylov(A, factors, X, k, tol, basis)


def _is_narrow(matrix: sparse.csr_matrix) -> bool:
    """Return whether points have an order in which neighbours are near each other."""
    n = matrix.shape[0]
    place = inverse_permutation(reverse_cuthill_mckee(matrix, symmetric_mode=True))
    envelope = 0.0
    for rows in row_tiles(n):
        starts = matrix.indptr[rows.start : rows.stop]
        neighbors = place[matrix.indices[starts[0] : matrix.indptr[min(rows.stop, n)]]]
        first = np.minimum.reduceat(neighbors, starts - starts[0])
        envelope += float(np.sum(np.maximum(place[rows] - first, 0)))
    return envelope <= min(_MAX_ENVELOPE_WIDTH * n**1.5, _MAX_ENVELOPE_ENTRIES)


def _krylov(
    A: Operator, factors: Any, X: Array, k: int, tol: float, columns: int
) -> tuple[Array, Array] | None:
    """Return Ritz pairs of the blocks X, S X, S² X, …, S the inverse; None if k stay inaccurate."""
    V, p, top = A.V.astype(float), X.shape[1], A.spectrum[1]
    floor = max(_RESIDUAL_FLOOR, 50 * float(np.finfo(A.dtype).eps)) * top
    Q, AQ = np.empty((2, columns, A.n))  # the vectors are rows
    H = np.zeros((columns, columns))  # Q A Qᵀ, its lower half
    for m in range(p, columns + 1, p):
        X = _orthonormal(X, Q[: m - p].T, V)[0]
        Q[m - p : m], AQ[m - p : m] = X.T, on_host(A @ A.asarray(X)).T
        H[m - p : m, :m] = Q[m - p : m] @ AQ[:m].T
        if m >= 3 * k and (m // p) % max(1, k // 20) == 0:
            values, vectors, residuals = _ritz_pairs(H[:m, :m], Q[:m], AQ[:m], k)
            report("eigenpairs", "residual %.1e after %d solutions", residuals.max(), m)
            if (residuals <= np.maximum(tol * (top - values), floor)).all():
                return values, vectors
        X = factors.solve(X)
    return None


def _ritz_pairs(H: Array, Q: Array, AQ: Array, k: int) -> tuple[Array, Array, Array]:
    """Return the k largest Ritz values, vectors (n, k) and residuals in the span of the rows."""
    m = len(Q)
    values, W = dense_eigh(H, lower=True, subset_by_index=(m - k, m - 1))
    values, W = values[::-1], W[:, ::-1]
    vectors, images = W.T @ Q, W.T @ AQ
    residuals = np.linalg.norm(images - values[:, None] * vectors, axis=1)
    return values, vectors.T, residuals


def _orthonormal(X: Array, *others: Array) -> tuple[Array, Array]:
    """Return QR = X less its part in the span of the others, whose columns are orthonormal.

    What is left of columns that nearly agree is rounding, and has to be projected again.
    """
    R = np.eye(X.shape[1])
    for _ in range(3):
        sizes = np.linalg.norm(X, axis=0)
        for V in others:
            X = X - V @ (V.T @ X)
        X, factor = np.linalg.qr(X)
        R = factor @ R
        if (np.abs(factor.diagonal()) > 0.7 * sizes).all():  # hardly anything was taken away
            break
    return X, R
