"""The largest eigenvalues of an operator, with residuals that bound their errors."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh as dense_eigh
from scipy.linalg import qr

from heatsketch._array import for_each_tile, random_block, single_threaded_blas
from heatsketch._checks import check_number, logger
from heatsketch._typing import Array, Rng
from heatsketch.operators import numbered
from heatsketch.operators.base import Deflated, Operator, as_deflated
from heatsketch.spectral.chebyshev import LANCZOS_STEPS, spectrum_ends, three_term

DENSE_LIMIT = 1200  # points up to which all eigenpairs are cheaper than iterating
_MAX_COPIES_OF_TOP = 8  # multiplicity of the largest eigenvalue that is looked for
_FIRST_DEGREE = 40  # of the first filter polynomial
_GRAM_TILE = 8192  # rows whose Gram matrix is one summand


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
    Cost: some hundred products by A with a block of k + max(8, k/2) columns, rounded up to a
    multiple of 8. The filter damps an interval that begins at a bound from 40 Lanczos steps, so the
    interval that the operator gives may be far too wide.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.eigh(np.diag([3.0, 1.0, 2.0]), 2).values
    array([3., 2.])
    """
    numbering = numbered(A)
    A = as_deflated(numbering.operator)
    k = check_number(n_components, "n_components", low=1, integer=True)
    room = A.n - A.V.shape[1]
    if k > room:
        raise ValueError(
            f"n_components={k} needs at least {k + A.n - room} distinct samples, got {A.n}; "
            f"pass n_components <= {room}."
        )
    block = 8 * -(-(k + max(8, k // 2)) // 8)  # whole vector registers
    if A.n <= DENSE_LIMIT or 4 * block > A.n:
        values, vectors = all_eigenpairs(A)
        values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    else:
        values, vectors = _subspace_iteration(A, k, block, tol, max_products, rng)
    residuals = np.linalg.norm(A @ vectors - vectors * values, axis=0)
    vectors = fix_signs(numbering.of_points(vectors))
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
    # Push the deflated directions below everything else, where they can be dropped cleanly.
    V = as_deflated(A).V.astype(float)
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
    values, vectors, _ = eigh(A, min(_MAX_COPIES_OF_TOP, A.n), rng=rng)
    copies = vectors[:, values >= values[0] - 1e-10 * abs(values[0])]
    u = copies @ copies.sum(axis=0)
    size = np.linalg.norm(u)
    return A.asarray(u / size if size > 1e-6 else vectors[:, 0])


def fix_signs(vectors: Array) -> Array:
    """Return the columns with the sign that makes the entry of largest modulus positive."""
    return vectors * column_signs(vectors)


def column_signs(vectors: Array) -> Array:
    """Return the sign of the entry of largest modulus of each column; 1 for zero columns."""
    largest = np.argmax(np.abs(vectors), axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return np.where(signs == 0, 1.0, signs).astype(vectors.dtype)


@single_threaded_blas()  # the same bits for any number of threads
def _subspace_iteration(
    A: Deflated, k: int, block: int, tol: float, max_products: int, rng: Rng
) -> tuple[Array, Array]:
    """Filter a random block and solve in its span, until the first k residuals are small."""
    steps = min(LANCZOS_STEPS, max_products // 8)
    (low, _), (_, top) = spectrum_ends(A, steps)
    X = A.project(random_block(A.n, block, "gaussian", rng))
    image, products = A @ X, steps + 1
    cut, best, longest = _first_cut(low, top), -np.inf, 2 * _FIRST_DEGREE
    degree = min(_FIRST_DEGREE, max_products - products) if top > low else 0
    locked, values = X[:, :0], np.empty(0)
    while True:
        if degree > 0:
            X = _orthonormal(A, _amplify(A, X, image, (low, cut, top), degree))
            image, products = A @ X, products + degree
        ritz, left = _rayleigh_ritz(X, image), k - len(values)
        limit = _residual_limit(A, tol, np.append(values, ritz))
        rest = image[:, :left] - X[:, :left] * ritz[:left].astype(A.dtype)
        residuals = np.linalg.norm(rest, axis=0)
        logger.info("eigenpairs: residual %.1e after %d products", residuals.max(), products)
        if residuals.max() <= limit or products >= max_products:
            return np.append(values, ritz[:left]), np.hstack([locked, X[:, :left]])
        low = min(low, float(ritz[-1]))  # below `low` the polynomial grows without bound
        best = max(best, float(ritz[-1]))  # no Ritz value is above its eigenvalue
        cut = max(best, low + 1e-3 * (float(ritz[0]) - low))
        degree = _degree_for(2 * residuals.max() / limit, float(ritz[left - 1]), low, cut)
        degree, longest = min(degree, longest), min(2 * longest, 320)
        done = int(np.argmax(residuals > limit))
        if done and degree > _safe_degree(A, float(ritz[0]), low, cut):
            # The converged pairs limit the degree no longer once they are deflated.
            locked, values = np.hstack([locked, X[:, :done]]), np.append(values, ritz[:done])
            A, X, ritz = A.without(X[:, :done]), X[:, done:].copy(), ritz[done:]
            image, products = A @ X, products + 1
        top = max(float(ritz[0]), low + 1e-12 * abs(low))
        degree = min(degree, _safe_degree(A, top, low, cut), max_products - products)


def _residual_limit(A: Operator, tol: float, values: Array) -> float:
    eps = float(np.finfo(A.dtype).eps)
    bound = max(map(abs, A.spectrum))  # may be far too wide: no more than rounding goes by it
    return max(tol, 50 * eps) * float(np.abs(values).max()) + 4 * eps * bound


def _first_cut(low: float, top: float) -> float:
    """Return the cut above which the first polynomial grows to 10^4 at the top."""
    rate = np.log(2e4) / _FIRST_DEGREE
    return low + (top - low) * 2 / (1 + float(np.cosh(rate)))


def _degree_for(growth: float, value: float, low: float, cut: float) -> int:
    """Return the degree from which on the polynomial is at least `growth` at `value`."""
    rate = float(np.arccosh(1 + 2 * max(value - cut, 0.0) / (cut - low)))
    return 2 + int(np.log(2 * growth) / max(rate, 1e-3))


def _safe_degree(A: Operator, top: float, low: float, cut: float) -> int:
    """Return the degree at which the top grows by 1/√eps: more drowns the directions below it."""
    return _degree_for(float(1 / np.sqrt(np.finfo(A.dtype).eps)), top, low, cut)


def _amplify(
    A: Operator, X: Array, image: Array, interval: tuple[float, float, float], degree: int
) -> Array:
    """Apply the Chebyshev polynomial that is small on [low, cut] and grows above it.

    Scaled so that the value at the top stays near 1 (Zhou and Saad 2007, Algorithm 4.1). `image`
    is A @ X, and is overwritten.
    """
    low, cut, top = interval
    half, middle = (cut - low) / 2, (cut + low) / 2
    sigma = first = half / (top - middle)
    three_term(image, first / half, X, -middle * first / half)
    previous, current = X, image
    for _ in range(1, degree):
        following = 1 / (2 / first - sigma)
        step, image = 2 * following / half, A @ current
        three_term(image, step, current, -middle * step, previous, -sigma * following)
        previous, current, sigma = current, image, following
    return current


def _gram(X: Array, Y: Array) -> Array:
    """Return XᵀY in float64, summed over fixed tiles: the same bits for any number of threads."""
    parts = np.empty((-(-len(X) // _GRAM_TILE), X.shape[1], Y.shape[1]))

    def work(rows: slice) -> None:
        parts[rows.start // _GRAM_TILE] = X[rows].astype(float).T @ Y[rows].astype(float)

    for_each_tile(work, len(X), _GRAM_TILE)
    return parts.sum(axis=0)


def _rotate(X: Array, W: Array) -> None:
    """Set X to X W, in place."""
    W = W.astype(X.dtype)

    def work(rows: slice) -> None:
        X[rows] = X[rows] @ W

    for_each_tile(work, len(X), _GRAM_TILE)


def _orthonormal(A: Deflated, X: Array) -> Array:
    """Return a basis of the span of X (less what is deflated), orthonormal to rounding.

    Each pass takes the eigenvectors of the Gram matrix (Stathopoulos and Wu 2002), which costs a
    third of a Householder QR; columns too nearly dependent for three passes get that.
    """
    for _ in range(3):
        X = A.project(X)
        gram = _gram(X, X)
        size = np.sqrt(gram.diagonal())
        size[size == 0] = 1.0
        values, W = dense_eigh(gram / np.multiply.outer(size, size))
        floor = len(values) * float(np.finfo(float).eps) * values[-1]
        _rotate(X, W / np.sqrt(np.maximum(values, floor)) / size[:, None])
        if values[0] > 0.1:
            return X
    return A.asarray(qr(X, mode="economic")[0])


def _rayleigh_ritz(X: Array, image: Array) -> Array:
    """Turn X and A X into Ritz vectors and their images; return the Ritz values, descending.

    XᵀAX w = θ XᵀX w in float64: in float32, X is not orthonormal to all digits wanted.
    """
    projected = _gram(X, image)
    ritz, W = dense_eigh((projected + projected.T) / 2, _gram(X, X))
    _rotate(X, W[:, ::-1])
    _rotate(image, W[:, ::-1])
    return ritz[::-1]
