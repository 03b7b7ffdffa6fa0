"""The top of the spectrum of an operator, with residuals that say how good it is."""

from __future__ import annotations

import logging
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh as dense_eigh
from scipy.linalg import qr

from heatsketch._array import random_block, single_threaded_blas
from heatsketch._checks import check_number
from heatsketch._typing import Array, Rng
from heatsketch.operators import as_operator
from heatsketch.operators.base import Deflated, Operator

logger = logging.getLogger("heatsketch")

DENSE_LIMIT = 1200  # points up to which all eigenpairs are cheaper than iterating
_COPIES = 8  # of the largest eigenvalue that are looked for
_DEGREE = 40  # of the polynomial between two Rayleigh-Ritz steps


class Spectrum(NamedTuple):
    """The largest eigenvalues of an operator, descending, with their eigenvectors.

    Attributes
    ----------
    values : array (k,)
    vectors : array (n, k)
        Orthonormal columns; the entry of largest modulus of each is positive.
    residuals : array (k,)
        |A v - λ v|: an eigenvalue of A lies within this distance of λ.
    """

    values: Array
    vectors: Array
    residuals: Array


def eigh(
    A: Any,
    n_components: int = 6,
    *,
    tol: float = 1e-8,
    max_products: int = 20_000,
    rng: Rng = None,
) -> Spectrum:
    """Compute the eigenpairs of the largest eigenvalues of a symmetric operator.

    Up to 1,200 points through the dense matrix, beyond by block subspace iteration with a
    Chebyshev filter (Zhou and Saad 2007), which finds multiple eigenvalues as often as they occur;
    single-vector Lanczos misses copies on clustered data. A `Deflated` operator gives eigenpairs
    orthogonal to the directions taken out.

    Parameters
    ----------
    A : array (n, n), SciPy sparse matrix or operator
    n_components : int, 1 <= n_components <= n (less the directions taken out)
    tol : float, default 1e-8
        Largest residual |A v - λ v| relative to the largest |λ| found; no less than rounding.
    max_products : int
        Bound on the number of products by A.
    rng : int, Generator or None
        Start of the iteration; the result does not depend on it beyond `tol`.

    Returns
    -------
    Spectrum
        `values` (k,), `vectors` (n, k), `residuals` (k,).

    Raises
    ------
    ValueError
        Too many components asked for.

    Warns
    -----
    UserWarning
        The residuals did not reach `tol` within `max_products`.

    Notes
    -----
    Cost: some hundred products by A with a block of k + max(8, k/2) columns.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.eigh(np.diag([3.0, 1.0, 2.0]), 2).values
    array([3., 2.])
    """
    A = as_operator(A)
    k = check_number(n_components, "n_components", low=1, integer=True)
    room = A.n - (A.V.shape[1] if isinstance(A, Deflated) else 0)
    if k > room:
        raise ValueError(
            f"n_components={k} needs at least {k + A.n - room} distinct samples, got {A.n}; "
            f"pass n_components <= {room}."
        )
    block = k + max(8, k // 2)
    if A.n <= DENSE_LIMIT or 4 * block > A.n:
        values, vectors = all_eigenpairs(A)
        values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    else:
        values, vectors = _subspace_iteration(A, k, block, tol, max_products, rng)
    vectors = _fix_signs(vectors)
    residuals = np.linalg.norm(A @ vectors - vectors * values, axis=0)
    limit = 2 * _residual_limit(A, tol, values)
    if residuals.max() > limit:
        warnings.warn(
            f"eigenpairs have residuals up to {residuals.max():.1e}, above tol={tol:.1e}; raise "
            "max_products or read .residuals.",
            stacklevel=2,
        )
    return Spectrum(values, vectors, residuals)


@single_threaded_blas()  # the same bits for any number of threads
def all_eigenpairs(A: Operator) -> tuple[Array, Array]:
    """Return all eigenvalues, ascending, and eigenvectors; of a deflated operator, the others'."""
    matrix = np.asarray(A @ np.eye(A.n, dtype=A.dtype), dtype=float)
    matrix = (matrix + matrix.T) / 2
    if not isinstance(A, Deflated):
        return dense_eigh(matrix)
    # Push the deflated directions below everything else, where they can be dropped cleanly.
    V = A.V.astype(float)
    depth = 2.0 * max(map(abs, A.spectrum)) or 1.0
    values, vectors = dense_eigh(matrix - depth * (V @ V.T))
    return values[V.shape[1] :], vectors[:, V.shape[1] :]


def leading_vector(A: Operator, rng: Rng = None) -> Array:
    """Return the unit eigenvector (n,) of the largest eigenvalue: √π of a normalised affinity.

    Where the construction of A says it, or it is constant, one product confirms it; else it is
    computed. Where the eigenvalue is multiple (an affinity of several components), it is the vector
    of its eigenspace nearest to the constant: positive on every component.
    """
    known = getattr(A, "leading", None)
    for guess in (known, np.ones(A.n)):
        if guess is None:
            continue
        u = guess / np.linalg.norm(guess)
        image = A @ A.asarray(u)
        top = float(u @ image)
        close = np.linalg.norm(image - top * u) <= 1e-7 * abs(top)
        if close and top >= A.spectrum[1] * (1 - 1e-6):
            return A.asarray(u)
    values, vectors, _ = eigh(A, min(_COPIES, A.n), rng=rng)
    copies = vectors[:, values >= values[0] - 1e-10 * abs(values[0])]
    u = copies @ copies.sum(axis=0)
    size = np.linalg.norm(u)
    return A.asarray(u / size if size > 1e-6 else vectors[:, 0])


def _fix_signs(vectors: Array) -> Array:
    largest = np.argmax(np.abs(vectors), axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1.0, signs).astype(vectors.dtype)


def _subspace_iteration(
    A: Operator, k: int, block: int, tol: float, max_products: int, rng: Rng
) -> tuple[Array, Array]:
    X = A.asarray(random_block(A.n, block, "gaussian", rng))
    low, high = A.spectrum
    products, longest = 0, _DEGREE
    while True:
        Q = _orthonormal(A, X)
        image = A @ Q
        ritz, W = _rayleigh_ritz(Q, image)
        ritz, W = ritz[::-1], W[:, ::-1].astype(A.dtype)
        X, image = Q @ W, image @ W
        worst = float(np.linalg.norm(image - X * ritz.astype(A.dtype), axis=0)[:k].max())
        products += 1
        logger.info("eigenpairs: residual %.1e after %d products", worst, products)
        if worst <= _residual_limit(A, tol, ritz) or products >= max_products:
            return ritz[:k], X[:, :k]
        top = max(float(ritz[0]), low + 1e-12 * (high - low))
        cut = max(float(ritz[-1]), low + 1e-3 * (top - low))
        degree = min(longest, _safe_degree(A, top, cut))
        X = _amplify(A, X, cut, top, degree)
        products, longest = products + degree, min(2 * longest, 320)


def _rayleigh_ritz(Q: Array, image: Array) -> tuple[Array, Array]:
    """Solve QᵀAQ w = θ QᵀQ w in float64: in float32, Q is not orthonormal to all digits wanted."""
    Q = Q.astype(float)
    projected = Q.T @ image.astype(float)
    return dense_eigh((projected + projected.T) / 2, Q.T @ Q)


def _residual_limit(A: Operator, tol: float, values: Array) -> float:
    eps = float(np.finfo(A.dtype).eps)
    bound = max(map(abs, A.spectrum))  # may be far too wide: no more than rounding goes by it
    return max(tol, 50 * eps) * float(np.abs(values).max()) + 4 * eps * bound


def _orthonormal(A: Operator, X: Array) -> Array:
    if isinstance(A, Deflated):
        X = A.project(X)
    Q = qr(X, mode="economic")[0]
    if isinstance(A, Deflated):  # once more: QR brings rounding along V back
        Q = qr(A.project(Q), mode="economic")[0]
    return Q


def _safe_degree(A: Operator, top: float, cut: float) -> int:
    """Return the degree at which the top grows by 1/√eps: more drowns the directions below it."""
    low = A.spectrum[0]
    growth = float(np.arccosh(max(1.0, (2 * top - cut - low) / (cut - low))))
    return max(2, int(np.log(2 / np.sqrt(np.finfo(A.dtype).eps)) / max(growth, 1e-3)))


def _amplify(A: Operator, X: Array, cut: float, top: float, degree: int) -> Array:
    """Apply the Chebyshev polynomial that is small on [lowest, cut] and grows above it."""
    low = A.spectrum[0]
    half, middle = A.dtype.type((cut - low) / 2), A.dtype.type((cut + low) / 2)
    # Scaled so that the value at the top stays near 1 (Zhou and Saad 2007, Algorithm 4.1).
    sigma = first = half / (A.dtype.type(top) - middle)
    previous, current = X, (A @ X - middle * X) * (first / half)
    for _ in range(1, degree):
        following_sigma = 1 / (2 / first - sigma)
        step = (A @ current - middle * current) * (2 * following_sigma / half)
        previous, current = current, step - (sigma * following_sigma) * previous
        sigma = following_sigma
    return current
