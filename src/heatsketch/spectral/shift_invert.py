"""The largest eigenvalues by shift and invert, for narrow graphs such as those of surfaces."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, splu

from heatsketch._exceptions import logger
from heatsketch._random import random_block
from heatsketch._tiles import single_threaded_blas
from heatsketch._typing import Array, Rng
from heatsketch.operators.affine import Affine
from heatsketch.operators.components import between_components
from heatsketch.operators.csr import inverse_permutation
from heatsketch.operators.deflated import Deflated
from heatsketch.operators.operator import Operator
from heatsketch.spectral.eigenpairs import DENSE_LIMIT, Spectrum, fix_signs, leading_eigenpairs

_MAX_ENVELOPE_WIDTH = 4.0  # in units of √n: a square has 2.5 at 15 neighbours, a cube 5 or more
_MAX_ENVELOPE_ENTRIES = 2**28  # the factors have a tenth of these, at 12 bytes each
_RELATIVE_SHIFT = 1e-8  # distance of σ above the largest eigenvalue
_TOLERANCE = 1e-11  # error of a pair, relative to the distance of λ from σ
_COPIES = 8  # further pairs, enough to find all of ten equal eigenvalues


def slowest_eigenpairs(A: Deflated, k: int, *, tol: float = 1e-8, rng: Rng = None) -> Spectrum:
    """Return the leading eigenpairs of a deflated diffusion, by linear systems or by `eigh`.

    If a graph has several components, the eigenvectors of the eigenvalue 1 are known: differences
    between a component and the larger ones. No iteration could separate hundreds of them.

    Parameters
    ----------
    A : Deflated
        An operator with √π deflated. Before deflation its largest eigenvalue is the bound 1 of
        its spectrum.
    k, tol, rng
        As in `eigh`.

    Returns
    -------
    Spectrum
        Of arrays.
    """
    blocks, matrix = A.blocks, A.sparse_matrix()
    H = np.empty((A.n, 0))
    labels = None if matrix is None else A.components()
    if labels is not None and labels.max() > 0:
        H = between_components(np.asarray(A.V[:, 0], dtype=float), labels, k)
    if H.shape[1] < k:
        B = A if H.shape[1] == 0 else A.deflated(H)
        missing = k - H.shape[1]
        pairs = None if A.n <= DENSE_LIMIT else inverse_eigenpairs(B, missing, rng)
        vectors = (pairs or leading_eigenpairs(B, missing, tol, rng))[1]
        H = np.hstack([H, blocks.host(vectors)])
    X = blocks.native(H)
    image = A @ X
    values = blocks.dots(X, image)
    residuals = blocks.norms(image - X * blocks.native(values))
    return Spectrum(values, fix_signs(H), residuals)


def largest_eigenpairs(A: Deflated, k: int, *, tol: float = 1e-8, rng: Rng = None) -> Spectrum:
    """Return the eigenpairs of a deflated diffusion with the largest |λ|, by |λ|.

    They are at the two ends of the spectrum: see `slowest_eigenpairs` for the upper one.
    """
    if A.n <= DENSE_LIMIT:
        every = slowest_eigenpairs(A, A.n - A.n_deflated, tol=tol, rng=rng)
        values, vectors, residuals = every
    else:
        upper = slowest_eigenpairs(A, k, tol=tol, rng=rng)
        lower = leading_eigenpairs(Affine(A, -1.0), k, tol, rng)
        up, down = upper.values >= 0, lower.values > 0  # each pair once
        values = np.append(upper.values[up], -lower.values[down])
        vectors = np.hstack([upper.vectors[:, up], A.blocks.host(lower.vectors)[:, down]])
        residuals = np.append(upper.residuals[up], lower.residuals[down])
    order = np.argsort(-np.abs(values), kind="stable")[:k]
    return Spectrum(values[order], vectors[:, order], residuals[order])


@single_threaded_blas()  # the same bits for any number of threads
def inverse_eigenpairs(A: Operator, k: int, rng: Rng) -> tuple[Array, Array] | None:
    """Return the k largest eigenvalues, descending, and eigenvectors; None if products are faster.

    They come from Lanczos steps with (σ - A)^-1, with σ just above the bound of A's spectrum, which
    should be the largest eigenvalue (as for a diffusion). An iteration with A takes more products
    the slower the diffusion is, this one does not. The factors stay sparse if few points separate
    the graph: on curves, surfaces, strips. In more dimensions they fill up, but diffusion is
    faster. Eight more pairs are computed, because copies of an eigenvalue converge late.

    Parameters
    ----------
    A : operator
        The operator; it may be deflated.
    k : int
    rng : int, Generator or None
        Start of the iteration.

    Notes
    -----
    Cost: a factorisation (0.3 s for 20,000 points, 4 s for 100,000, 15 neighbours on a strip), and
    some 2 k + 20 solutions.
    """
    matrix, n, wanted = A.sparse_matrix(), A.n, k + _COPIES
    if matrix is None or 4 * wanted > n:
        return None
    # Test if the points have an order in which neighbours are near each other.
    place = inverse_permutation(reverse_cuthill_mckee(matrix, symmetric_mode=True))
    lowest = np.minimum.reduceat(place[matrix.indices], matrix.indptr[:-1])
    envelope = float(np.maximum(place - lowest, 0).sum(dtype=float))
    if envelope > min(_MAX_ENVELOPE_WIDTH * n**1.5, _MAX_ENVELOPE_ENTRIES):
        return None
    shift = A.spectrum[1] * (1 + _RELATIVE_SHIFT)
    shifted = sparse.csc_matrix(matrix) - sparse.identity(n, format="csc") * shift
    factors = splu(shifted, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    logger.info("eigenpairs: factors with %s entries", f"{factors.L.nnz:,}")
    V = A.V.astype(float)

    def solve(x: Array) -> Array:
        x = factors.solve(x - V @ (V.T @ x))
        return np.asarray(x - V @ (V.T @ x))

    inverse = LinearOperator((n, n), matvec=solve, dtype=float)
    start = random_block(n, 1, "gaussian", rng)[:, 0]
    try:
        values, vectors = eigsh(
            inverse, wanted, sigma=shift, OPinv=inverse, v0=start, tol=_TOLERANCE
        )
    except ArpackNoConvergence:
        return None
    order = np.argsort(-values, kind="stable")[:k]
    return values[order], vectors[:, order]
