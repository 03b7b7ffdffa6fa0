"""Block subspace iteration with Chebyshev filters, for the largest eigenvalues."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh as dense_eigh
from scipy.linalg import qr

from heatsketch._checks import logger
from heatsketch._progress import track
from heatsketch._tiles import for_each_tile, single_threaded_blas, sum_over_tiles
from heatsketch._typing import Array
from heatsketch.operators.operator import LANCZOS_STEPS, Operator, spectrum_ends
from heatsketch.spectral.chebyshev import three_term

_FIRST_DEGREE = 10  # of the first filter polynomial
_LONGEST_SECOND = 80  # degree; each later one may be twice as long, up to
_LONGEST = 320
_SMOOTHING_DEGREE = 8  # of the first one on vectors of a coarser graph
_SMOOTHING_GROWTH = 100.0
_GRAM_TILE = 8192  # rows whose Gram matrix is one summand


@single_threaded_blas()  # the same bits for any number of threads
def subspace_iteration(
    A: Operator, X: Array, k: int, limit: Callable[[Array], float], max_products: int, *, near: bool
) -> tuple[Array, Array, bool]:
    """Filter a block and solve in its span, until the first k residuals are small.

    Parameters
    ----------
    A : Operator
    X : array (n, p), p > k, in the precision of A
        Where to start: random columns, or such as are near the leading eigenvectors already; lost.
    k : int
    limit : callable
        The largest residual to leave, as a function of the Ritz values (p,), descending.
    max_products : int
    near : bool
        Whether the columns are near the eigenvectors.

    Returns
    -------
    array (p,), array (n, p), bool
        All Ritz values, descending, and Ritz vectors; whether the first k have converged.
    """
    steps = min(LANCZOS_STEPS, max_products // 8)
    (low, _), (_, top) = spectrum_ends(A, steps)
    X, products = A.project(X, out=X), steps + 1
    if not near and top > low and products < max_products:
        cut = _growing_cut(low, top, 1e4, _FIRST_DEGREE)
        degree = min(_FIRST_DEGREE, max_products - products)
        X = _amplify(A, X, A @ X, (low, cut, top), degree)
        products += degree
    X = _orthonormal(A, X)
    image = A @ X
    best, longest = -np.inf, _LONGEST_SECOND
    locked, values = X[:, :0], np.empty(0)
    while True:
        ritz, left = _rayleigh_ritz(X, image), k - len(values)
        bound = limit(np.append(values, ritz))
        residuals = _residuals(X[:, :left], image[:, :left], ritz[:left])
        logger.info("eigenpairs: residual %.1e after %d products", residuals.max(), products)
        done = bool(residuals.max() <= bound)
        if done or products >= max_products:
            return np.append(values, ritz), np.hstack([locked, X]), done
        low = min(low, float(ritz[-1]))  # below `low` the polynomial grows without bound
        best = max(best, float(ritz[-1]))  # no Ritz value is above its eigenvalue
        cut, top = _cut(best, low, ritz)
        if near:  # what is wrong with the vectors is mostly far below
            degree, near = _SMOOTHING_DEGREE, False
            cut = min(cut, _growing_cut(low, float(ritz[left - 1]), _SMOOTHING_GROWTH, degree))
        else:
            degree = _degree_for(2 * residuals.max() / bound, float(ritz[left - 1]), low, cut)
            degree, longest = min(degree, longest), min(2 * longest, _LONGEST)
        n_converged = int(np.argmax(residuals > bound))
        if n_converged and degree > _safe_degree(A, top, low, cut):
            # The converged pairs limit the degree no longer once they are deflated.
            locked = np.hstack([locked, X[:, :n_converged]])
            values = np.append(values, ritz[:n_converged])
            A, ritz = A.deflated(X[:, :n_converged]), ritz[n_converged:]
            X = X[:, n_converged:].copy()
            image, products = A @ X, products + 1
            cut, top = _cut(best, low, ritz)
        degree = max(1, min(degree, _safe_degree(A, top, low, cut), max_products - products))
        X = _orthonormal(A, _amplify(A, X, image, (low, cut, top), degree))
        image, products = A @ X, products + degree


def in_the_range(
    A: Operator, X: Array, k: int, limit: Callable[[Array], float]
) -> tuple[Array, Array] | None:
    """Return Ritz pairs in the span of A X if the first k are accurate, as at a low rank, or None.

    Where X is random and that span is all that A reaches, to rounding, other eigenvalues are 0.
    """
    ritz, X, image = _ritz(A, A @ A.asarray(X))
    residuals = _residuals(X, image, ritz)[:k]
    bound = limit(ritz)
    return (ritz, X) if residuals.max() <= bound and ritz[k - 1] >= -bound else None


def ritz_pairs(A: Operator, X: Array) -> tuple[Array, Array]:
    """Return the Ritz values, descending, and vectors in the span of X, which is overwritten."""
    return _ritz(A, A.asarray(X))[:2]


def _ritz(A: Operator, X: Array) -> tuple[Array, Array, Array]:
    """Return Ritz values and vectors in the span of X, and A times the vectors."""
    X = _orthonormal(A, X)
    image = A @ X
    return _rayleigh_ritz(X, image), X, image


def _residuals(X: Array, image: Array, ritz: Array) -> Array:
    return np.asarray(np.linalg.norm(image - X * ritz.astype(X.dtype), axis=0))


def _cut(best: float, low: float, ritz: Array) -> tuple[float, float]:
    """Return where the filter is to begin to grow, and where it is to be 1: the top."""
    top = max(float(ritz[0]), low + 1e-12 * abs(low))
    lowest, highest = low + 1e-3 * (top - low), low + (1 - 1e-6) * (top - low)
    return min(max(best, lowest), highest), top


def _growing_cut(low: float, value: float, growth: float, degree: int) -> float:
    """Return the cut above which the polynomial of a degree grows to `growth` at `value`."""
    rate = np.log(2 * growth) / degree
    return low + (value - low) * 2 / (1 + float(np.cosh(rate)))


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
    image = three_term(image, first / half, X, -middle * first / half)
    previous, current = X, image
    for _ in track(range(1, degree), "eigenpairs", degree, "products to the next residual"):
        following = 1 / (2 / first - sigma)
        step, image = 2 * following / half, A.multiply_projected(A.project(current, out=current))
        image = three_term(image, step, current, -middle * step, previous, -sigma * following)
        previous, current, sigma = current, image, following
    return current


def _gram(X: Array, Y: Array) -> Array:
    """Return XᵀY in float64, summed over fixed tiles: the same bits for any number of threads."""
    return sum_over_tiles(
        lambda rows: X[rows].astype(float).T @ Y[rows].astype(float), len(X), _GRAM_TILE
    )


def _rotate(X: Array, W: Array) -> None:
    """Set X to X W, in place."""
    W = W.astype(X.dtype)

    def work(rows: slice) -> None:
        X[rows] = X[rows] @ W

    for_each_tile(work, len(X), _GRAM_TILE)


def _orthonormal(A: Operator, X: Array) -> Array:
    """Return a basis of the span of X (less what is deflated), orthonormal to rounding; X is lost.

    Each pass takes the eigenvectors of the Gram matrix (Stathopoulos and Wu 2002), which costs a
    third of a Householder QR; columns too nearly dependent for three passes get that.
    """
    for _ in range(3):
        X = A.project(X, out=X)
        gram = _gram(X, X)
        size = np.sqrt(gram.diagonal())
        if not size.any():
            break
        size[size == 0] = 1.0
        values, W = dense_eigh(gram / np.multiply.outer(size, size))
        floor = len(values) * float(np.finfo(float).eps) * values[-1]
        _rotate(X, W / np.sqrt(np.maximum(values, floor)) / size[:, None])
        if values[0] > 0.1:
            return X
    # What takes the place of a dependent column must not lie along V.
    return A.asarray(qr(np.hstack([A.V, X]), mode="economic")[0][:, A.V.shape[1] :])


def _rayleigh_ritz(X: Array, image: Array) -> Array:
    """Turn X and A X into Ritz vectors and their images; return the Ritz values, descending.

    XᵀAX w = θ XᵀX w in float64: in float32, X is not orthonormal to all digits wanted.
    """
    projected = _gram(X, image)
    ritz, W = dense_eigh((projected + projected.T) / 2, _gram(X, X))
    _rotate(X, W[:, ::-1])
    _rotate(image, W[:, ::-1])
    return ritz[::-1]
