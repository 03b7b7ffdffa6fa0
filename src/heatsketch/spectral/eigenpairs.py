"""The largest eigenvalues of an operator, with residuals that bound their errors."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from heatsketch._checks import check_number
from heatsketch._random import random_block, seed_entropy
from heatsketch._tensors import on_host, to_device
from heatsketch._typing import Array, Rng
from heatsketch.operators.graph import on_vertices
from heatsketch.operators.operator import Operator, Sparse, is_large
from heatsketch.spectral.aggregation import coarser
from heatsketch.spectral.block_iteration import in_the_range, ritz_pairs, subspace_iteration
from heatsketch.spectral.dense import (
    dense_eigenpairs,
    dense_pays,
    products_like_dense,
)

_MAX_COPIES_OF_TOP = 8  # multiplicity of the largest eigenvalue that is looked for
_COARSE_RESIDUAL = 0.03  # of coarse eigenpairs, in units of 1 - λ of the last one wanted
_SINGLE_PRECISION_TOL = 1e-4  # from which on products in float32 are accurate enough
_MAX_COARSE_PRODUCTS = 1000


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

    Up to 1,200 points (more for many pairs) through the dense matrix, beyond by block subspace
    iteration with a Chebyshev filter (Zhou and Saad 2007), which finds multiple eigenvalues as
    often as they occur; single-vector Lanczos misses copies on clustered data. On a sparse
    non-negative matrix it starts from the eigenvectors of a coarser graph, which is smoothed
    aggregation (Vaněk, Mandel and Brezina 1996), where that graph is sparse again. A `Deflated`
    operator gives eigenpairs orthogonal to the directions taken out.

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
    A, vertex = on_vertices(A)
    k = check_number(n_components, "n_components", low=1, integer=True)
    tol = check_number(tol, "tol", low=0)
    room = A.n - A.V.shape[1]
    if k > room:
        raise ValueError(
            f"n_components={k} needs at least {k + A.n - room} distinct samples, got {A.n}; "
            f"pass n_components <= {room}."
        )
    limit = functools.partial(_residual_limit, A, tol)
    B = _in_single_precision(A) if tol >= _SINGLE_PRECISION_TOL else A
    values, vectors = _leading_block(B, k, limit, max_products, seed_entropy(rng))
    if B is not A:
        values, vectors = ritz_pairs(A, vectors[:, :k])
    values, vectors = values[:k], vectors[:, :k]
    residuals = np.linalg.norm(A @ vectors - vectors * values, axis=0)
    vectors = fix_signs(vectors[vertex])
    if residuals.max() > 2 * limit(values):
        warnings.warn(
            f"eigenpairs have residuals up to {residuals.max():.1e}, above tol={tol:.1e}; raise "
            "max_products or read .residuals.",
            stacklevel=2,
        )
    return Spectrum(*(to_device(found, A.device) for found in (values, vectors, residuals)))


def _in_single_precision(A: Operator) -> Operator:
    """Return a large stored matrix in float32, whose products take half the time; others as is."""
    matrix = A.sparse_matrix()
    if matrix is None or not is_large(A.n) or A.dtype == np.float32 or A.device is not None:
        return A
    single = Sparse(matrix.astype(np.float32), A.undeflated.spectrum, A.undeflated.leading)
    return single.deflated(A.V)


def _leading_block(
    A: Operator,
    k: int,
    limit: Callable[[Array], float],
    max_products: int,
    entropy: list[int],
) -> tuple[Array, Array]:
    """Return at least k leading Ritz pairs: by the dense matrix, by levels, or from chance."""
    block = _block_size(k)
    if dense_pays(A.n, block) or 4 * block > A.n:
        return dense_eigenpairs(A, min(block, A.n - A.V.shape[1]))
    start = _coarse_block(A, k, entropy)
    near = start is not None
    if start is None:
        start = random_block(A.n, block, "gaussian", np.random.default_rng(entropy))
        found = in_the_range(A, start, k, limit)
        if found is not None:
            return found
    most = min(max_products, products_like_dense(A.n, block))
    values, vectors, done = subspace_iteration(A, A.asarray(start), k, limit, most, near=near)
    if not done and most < max_products:
        return dense_eigenpairs(A, k)
    return values, vectors


def _coarse_block(A: Operator, k: int, entropy: list[int]) -> Array | None:
    """Return the leading eigenvectors of a coarser graph, on this one; None where there is none."""
    coarse = coarser(A, _block_size(k))
    if coarse is None:
        return None
    operator, prolongation = coarse
    limit = functools.partial(_rough_limit, operator, k)
    _, vectors = _leading_block(operator, k, limit, _MAX_COARSE_PRODUCTS, entropy)
    return A.asarray(prolongation @ vectors)  # float32 takes half the room


def _block_size(k: int) -> int:
    return 8 * -(-(k + max(8, k // 2)) // 8)  # whole vector registers


def _residual_limit(A: Operator, tol: float, values: Array) -> float:
    eps = float(np.finfo(A.dtype).eps)
    bound = max(map(abs, A.spectrum))  # may be far too wide: no more than rounding goes by it
    rounding = (16 + A.V.size**0.5) * eps * bound  # of a product, and of projections by V
    return max(tol, 50 * eps) * float(np.abs(values).max()) + rounding


def _rough_limit(A: Operator, k: int, values: Array) -> float:
    """Return a residual that is small beside the distance of the k-th eigenvalue from the top."""
    top = A.spectrum[1]
    return max(_COARSE_RESIDUAL * float(top - values[k - 1]), 1e-8 * abs(top))


def leading_vector(A: Operator, rng: Rng = None) -> Array:
    """Return the unit eigenvector (n,) of the largest eigenvalue: √π of a normalised affinity.

    Where the construction of A says it, or it is constant, one product confirms it; else it is
    computed. Where the eigenvalue is multiple (an affinity of several components), it is the vector
    of its eigenspace nearest to the constant: positive on every component.
    """
    known = A.leading
    for guess in (known, np.ones(A.n)):
        if guess is None:
            continue
        u = np.asarray(guess, float)  # a vector of float32 has length one to 1e-8 only
        u = u / np.linalg.norm(u)
        image = A @ u
        top = float(u @ image)
        close = np.linalg.norm(image - top * u) <= 1e-7 * abs(top)
        if close and top >= A.spectrum[1] * (1 - 1e-6):
            return np.asarray(u, A.dtype)
    values, vectors, _ = map(on_host, eigh(A, min(_MAX_COPIES_OF_TOP, A.n), rng=rng))
    copies = vectors[:, values >= values[0] - 1e-10 * abs(values[0])]
    u = copies @ copies.sum(axis=0)
    size = np.linalg.norm(u)
    return np.asarray(u / size if size > 1e-6 else vectors[:, 0], A.dtype)


def fix_signs(vectors: Array) -> Array:
    """Return the columns with the sign that makes the entry of largest modulus positive."""
    return vectors * column_signs(vectors)


def column_signs(vectors: Array) -> Array:
    """Return the sign of the entry of largest modulus of each column; 1 for zero columns."""
    largest = np.argmax(np.abs(vectors), axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return np.where(signs == 0, 1.0, signs).astype(vectors.dtype)
