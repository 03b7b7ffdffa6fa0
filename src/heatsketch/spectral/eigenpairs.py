"""The largest eigenvalues of an operator, with residuals that bound their errors.

Few points use the dense matrix; many use a block iteration, which starts from vectors of a coarser
graph if there is one.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh as dense_eigh

from heatsketch._exceptions import ConvergenceWarning, logger, warn
from heatsketch._random import random_block, seed_entropy
from heatsketch._tiles import single_threaded_blas, track
from heatsketch._typing import Array, Rng
from heatsketch._validation import check_number
from heatsketch.backend import Block, blocks_of
from heatsketch.operators.components import members_of
from heatsketch.operators.csr import is_large
from heatsketch.operators.deflated import Deflated
from heatsketch.operators.graph import on_vertices
from heatsketch.operators.operator import Operator
from heatsketch.operators.sparse import Sparse
from heatsketch.spectral.coarse import coarser
from heatsketch.spectral.recurrences import recurrence

DENSE_LIMIT = 1200  # points up to which the dense matrix is cheaper than iterating, for few pairs
_POINTS_PER_COLUMN = 16  # and for many: points for each column that an iteration would have
_DENSE_RESCUE_LIMIT = 4096  # points up to which the dense matrix replaces a failed iteration
_MOST_COPIES = 8  # largest multiplicity of the largest eigenvalue that is searched
_EQUAL = 1e-10  # relative difference of eigenvalues that counts as none
_COARSE_RESIDUAL = 0.03  # of coarse eigenpairs, in units of 1 - λ of the last one wanted
_MAX_PRODUCTS, _MAX_COARSE_PRODUCTS = 20_000, 1000
_SINGLE_PRECISION_TOL = 1e-4  # least tolerance for which products in float32 are accurate enough
_SMOOTHING_DEGREE, _SMOOTHING_CUT = 8, 0.9  # of the first filter, which is 100 at the last value
_LONGEST_SECOND = 80  # degree; each later one may be twice as long, up to
_LONGEST = 320

# Stopping rule: (relative, absolute) bound on the first k residuals, the first in units of the
# largest |λ| found. None: stop when they are small relative to the gap between the k-th eigenvalue
# and the upper end of the spectrum.
Limit = tuple[float, float] | None


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
    rng: Rng = None,
) -> Spectrum:
    """Compute the eigenpairs of the largest eigenvalues of a symmetric operator.

    Up to 1,200 points (more for many pairs) they come from the dense matrix. Beyond, they come from
    block subspace iteration with a Chebyshev filter [1]_, which finds multiple eigenvalues as often
    as they occur; single-vector Lanczos misses copies on clustered data. For a sparse non-negative
    matrix the iteration starts from the eigenvectors of a coarser graph by smoothed aggregation
    [2]_, if that graph is sparse again. A `Deflated` operator gives eigenpairs orthogonal to the
    deflated directions.

    Parameters
    ----------
    A : Diffusion, Graph, Operator or {array-like, sparse matrix} of shape (n_samples, n_samples)
        Symmetric.
    n_components : int >= 1, default=6
        Number of eigenpairs, at most n less the number of deflated directions.
    tol : float, default=1e-8
        Largest residual |A v - λ v| relative to the largest |λ| found; at least rounding.
    rng : int, Generator or None, default=None
        Seed of the start of the iteration; the result does not depend on it beyond `tol`.

    Returns
    -------
    Spectrum
        `values` (n_components,), `vectors` (n_samples, n_components), `residuals` (n_components,).

    Raises
    ------
    ValueError
        More components than A has eigenvectors.

    Warns
    -----
    ConvergenceWarning
        The residuals did not reach `tol` within 20,000 products by A.

    See Also
    --------
    DiffusionMap : Embed data by the leading eigenvectors of the diffusion.
    sketch : Apply a filter of an operator to random columns.
    heat_trace : Estimate the heat trace, and the number of directions at a time.

    Notes
    -----
    The cost is some hundred products by A with a block of k + max(8, k/2) columns, rounded up to a
    multiple of 8, for k eigenpairs. The filter damps an interval that begins at a bound from 40
    Lanczos steps, so a `spectrum` that is far too wide costs nothing.

    References
    ----------
    .. [1] Y. Zhou and Y. Saad, "A Chebyshev-Davidson algorithm for large symmetric eigenproblems",
       SIAM Journal on Matrix Analysis and Applications 29 (2007), 954-971.
    .. [2] P. Vaněk, J. Mandel and M. Brezina, "Algebraic multigrid by smoothed aggregation for
       second and fourth order elliptic problems", Computing 56 (1996), 179-196.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.eigh(np.diag([3.0, 1.0, 2.0]), 2).values
    array([3., 2.])
    """
    A, vertex = on_vertices(A)
    k = check_number(n_components, "n_components", low=1, integer=True)
    values, vectors, residuals = leading_eigenpairs(A, k, tol, rng)
    return Spectrum(A.blocks.native(values), vectors[vertex], A.blocks.native(residuals))


def leading_eigenpairs(A: Operator, k: int, tol: float = 1e-8, rng: Rng = 0) -> Spectrum:
    """Compute the eigenpairs of the k largest eigenvalues, see `eigh`.

    The vectors are where A computes.
    """
    room = A.n - A.n_deflated
    if k > room:
        raise ValueError(
            f"n_components={k} needs at least {k + A.n - room} distinct samples, got {A.n}; "
            f"pass n_components <= {room}."
        )
    tol, eps = check_number(tol, "tol", low=0), float(np.finfo(A.dtype).eps)
    bound = max(map(abs, A.spectrum))  # may be far too wide: only rounding depends on it
    # Of a product, and of projections by V.
    rounding = (16 + (A.n * A.n_deflated) ** 0.5) * eps * bound
    limit = max(tol, 50 * eps), rounding
    # Products by a large stored matrix take half the time in float32.
    B, stored = A, A.undeflated
    pays = is_large(A.n) and A.dtype != np.float32 and not A.blocks.products_are_cheap
    matrix = A.sparse_matrix() if pays else None
    if tol >= _SINGLE_PRECISION_TOL and matrix is not None:
        B = Sparse(matrix.astype(np.float32), stored.spectrum, stored.leading)
        B = Deflated(B, np.ascontiguousarray(A.V))
    values, vectors = _leading_block(B, k, limit, _MAX_PRODUCTS, seed_entropy(rng))
    if B is not A:
        values, vectors, _ = _rayleigh_ritz(A, A.block(vectors[:, :k]))
    values, vectors = values[:k], A.blocks.native(vectors[:, :k])
    residuals = A.blocks.norms(A @ vectors - vectors * A.blocks.native(values))
    if residuals.max() > 2 * (limit[0] * float(np.abs(values).max()) + rounding):
        warn(
            ConvergenceWarning,
            f"eigenpairs have residuals up to {residuals.max():.1e}, above tol={tol:.1e}, after "
            f"{_MAX_PRODUCTS} products; read .residuals.",
        )
    return Spectrum(values, fix_signs(vectors), residuals)


def _leading_block(
    A: Operator, k: int, limit: Limit, max_products: int, entropy: list[int]
) -> tuple[Array, Block]:
    """Return at least k leading Ritz pairs: from the dense matrix, coarser graphs or at random."""
    block = 8 * -(-(k + max(8, k // 2)) // 8)  # whole vector registers
    # The reduction to tridiagonal form takes 4/3 n³ operations for any number of pairs.
    if A.n <= max(DENSE_LIMIT, _POINTS_PER_COLUMN * block):
        return dense_eigenpairs(A, min(block, A.n - A.n_deflated))
    coarse = None if A.blocks.products_are_cheap else coarser(A, block)
    if coarse is None:
        start = random_block(A.n, block, "gaussian", np.random.default_rng(entropy))
    else:
        B, prolongation = coarse
        start = prolongation @ _leading_block(B, k, None, _MAX_COARSE_PRODUCTS, entropy)[1]
    most = max_products
    if A.n <= _DENSE_RESCUE_LIMIT:
        # This number of products takes some eight times as long as the dense matrix.
        most = min(most, max(300, A.n**2 // (200 * block)))
    values, vectors, done = subspace_iteration(A, A.block(start), k, limit, most)
    if not done and most < max_products:
        return dense_eigenpairs(A, k)
    return values, vectors


@single_threaded_blas()  # the same bits for any number of threads
def subspace_iteration(
    A: Operator, X: Block, k: int, limit: Limit, max_products: int
) -> tuple[Array, Block, bool]:
    """Filter a block and solve in its span, until the first k residuals are small.

    Parameters
    ----------
    A : Operator
    X : block (n, p), p > k, as `A.block` returns it
        Start: random columns, or columns near the leading eigenvectors. It is overwritten.
    k : int
    limit : (float, float) or None
        See `Limit`.
    max_products : int

    Returns
    -------
    array (p,), block (n, p), bool
        All Ritz values, descending, and Ritz vectors; whether the first k have converged.
    """
    low, best, products, longest = A.ends[0][0], -np.inf, 0, _LONGEST_SECOND // 2
    while True:
        ritz, X, image = _rayleigh_ritz(A, X)
        products, upper = products + 1, A.spectrum[1]
        if limit is None:
            bound = max(_COARSE_RESIDUAL * float(upper - ritz[k - 1]), 1e-8 * abs(upper))
        else:
            bound = limit[0] * float(np.abs(ritz).max()) + limit[1]
        wanted = A.blocks.native(ritz[:k], A.dtype)
        residuals = A.blocks.norms(image[:, :k] - X[:, :k] * wanted)
        logger.info("eigenpairs: residual %.1e after %d products", residuals.max(), products)
        done = bool(residuals.max() <= bound)
        if done or products >= max_products:
            return ritz, X, done
        # The Chebyshev polynomial is small on an interval below the block and grows above it, and
        # also below `low`.
        low = min(low, float(ritz[-1]))
        best = max(best, float(ritz[-1]))  # a Ritz value is at most its eigenvalue
        top, value = max(float(ritz[0]), low + 1e-12 * abs(low)), float(ritz[k - 1])
        # The errors of vectors of a coarser graph are mostly far below.
        reach = min(best, low + _SMOOTHING_CUT * (value - low)) if products == 1 else best
        cut = min(max(reach, low + 1e-3 * (top - low)), low + (1 - 1e-6) * (top - low))
        # The least degrees for which the polynomial is at least so large at the top and at the k-th
        # value. If the top grows by more than 1/√eps, the directions below it are lost in rounding.
        growth = np.array([1 / np.sqrt(np.finfo(A.dtype).eps), 2 * residuals.max() / bound])
        rates = np.arccosh(1 + 2 * np.maximum(np.array([top, value]) - cut, 0.0) / (cut - low))
        safe, needed = 2 + (np.log(2 * growth) / np.maximum(rates, 1e-3)).astype(int)
        if products == 1:
            degree = _SMOOTHING_DEGREE
        else:
            longest = min(2 * longest, _LONGEST)
            degree = min(needed, longest)
        degree = max(1, min(degree, safe, max_products - products))
        terms = recurrence(A, X, (low, cut), degree, image)
        del image  # it is one of the terms
        for term in track(terms, "eigenpairs", degree, "products to the next residual"):
            X = term
        products += degree - 1


def _rayleigh_ritz(A: Operator, X: Block) -> tuple[Array, Block, Block]:
    """Return the Ritz values (p,) in the span of X, descending, Ritz vectors and their images.

    X is overwritten. Deflated directions are removed from its span.
    """
    # Make X orthonormal to rounding. Each pass uses the eigenvectors of the Gram matrix
    # (Stathopoulos and Wu 2002), at a third of the cost of a Householder QR, which is used if
    # columns are still dependent after three passes.
    blocks = A.blocks
    for _ in range(3):
        X = A.project(X, out=X)
        gram = blocks.gram(X, X)
        size = np.sqrt(gram.diagonal())
        size[size == 0] = 1.0
        values, W = dense_eigh(gram / np.multiply.outer(size, size))
        floor = len(values) * float(np.finfo(float).eps) * values[-1] or 1.0
        blocks.rotate(X, W / np.sqrt(np.maximum(values, floor)) / size[:, None])
        if values[0] > 0.1:
            break
    else:  # columns that replace dependent ones must not lie along V
        X = blocks.orthonormal(X, blocks.native(A.V, A.dtype))
    # XᵀAX w = θ XᵀX w in float64, because X in float32 is not orthonormal to all digits.
    image = A @ X
    projected = blocks.gram(X, image)
    ritz, W = dense_eigh((projected + projected.T) / 2, blocks.gram(X, X))
    blocks.rotate(X, W[:, ::-1])
    blocks.rotate(image, W[:, ::-1])
    return ritz[::-1], X, image


# The dense matrix


@single_threaded_blas()  # the same bits for any number of threads
def all_eigenpairs(A: Operator) -> tuple[Array, Array]:
    """Return all eigenvalues, ascending, and eigenvectors, without those of deflated directions."""
    values, vectors = dense_eigh(_matrix(A), driver="evd", overwrite_a=True, check_finite=False)
    return values[A.n_deflated :], vectors[:, A.n_deflated :]


@single_threaded_blas()  # the same bits for any number of threads
def all_eigenvalues(A: Operator) -> Array:
    """Return all eigenvalues, ascending, at half the cost of `all_eigenpairs`."""
    found = dense_eigh(_matrix(A), eigvals_only=True, overwrite_a=True, check_finite=False)
    values: Array = found[A.n_deflated :]
    return values


@single_threaded_blas()  # the same bits for any number of threads
def dense_eigenpairs(A: Operator, k: int) -> tuple[Array, Array]:
    """Return the k largest eigenvalues, descending, and eigenvectors."""
    if 3 * k > A.n:  # inverse iteration for each pair is slower than all at once
        values, vectors = all_eigenpairs(A)
    else:
        values, vectors = dense_eigh(
            _matrix(A), subset_by_index=(A.n - k, A.n - 1), overwrite_a=True, check_finite=False
        )
    return values[::-1][:k], vectors[:, ::-1][:, :k]


def _matrix(A: Operator) -> Array:
    """Return the matrix in float64, with the deflated directions below everything else."""
    matrix = np.asarray(A @ np.eye(A.n, dtype=A.dtype), dtype=float)
    matrix = (matrix + matrix.T) / 2
    if A.n_deflated:
        V = np.asarray(A.V, dtype=float)
        # The interval of A may be so wide that a multiple of its ends would leave no digits of A.
        size = float(np.abs(matrix).sum(axis=1).max())
        matrix -= (2.0 * size or 1.0) * (V @ V.T)
    return matrix


# Single vectors, and signs


@single_threaded_blas()  # dot products of long vectors depend on threads
def leading_vector(A: Operator) -> Block:
    """Return the unit eigenvector (n,) of the largest eigenvalue: √π of a normalised affinity.

    It is a block, where A computes. If it is known from the construction of A, or constant, one
    product confirms it; else it is computed. If the eigenvalue is multiple (an affinity of several
    components), it is the vector of the eigenspace nearest to the constant, positive on every
    component.
    """
    native, norm = A.blocks.native, A.blocks.norm
    for guess in (A.leading, np.ones(A.n)):
        if guess is None:
            continue
        u = native(guess, float)  # a vector of float32 has length one to 1e-8 only
        u = u / norm(u)
        image = native(A @ A.block(u), float)
        top = float(u @ image)
        close = norm(image - top * u) <= 1e-7 * abs(top)
        if close and top >= A.spectrum[1] * (1 - 1e-6):
            return A.block(u)
    labels = A.labels() if A.is_non_negative() else None
    if labels is not None and labels.max() >= _MOST_COPIES:  # each component by itself
        labels = A.blocks.host(labels)
        u, tops = np.zeros(A.n), np.zeros(labels.max() + 1)
        for c, vertices in enumerate(members_of(labels)):
            part = A.restricted(vertices)
            values, vectors, _ = leading_eigenpairs(part, 1)
            vector = part.blocks.host(vectors[:, 0])
            tops[c], u[vertices] = values[0], vector * vector.sum()
        u[(tops < tops.max() * (1 - _EQUAL))[labels]] = 0.0
        u = native(u)
    else:
        values, vectors, _ = leading_eigenpairs(A, min(_MOST_COPIES, A.n))
        copies = vectors[:, values >= values[0] - _EQUAL * abs(values[0])]
        u = copies @ copies.sum(0)
    size = norm(u)
    return A.block(u / size if size > 1e-6 else vectors[:, 0])


def fix_signs(vectors: Block) -> Block:
    """Return the columns with the sign that makes the entry of largest modulus positive."""
    blocks, largest = blocks_of(vectors), abs(vectors).argmax(0)
    entries = blocks.host(vectors[largest, np.arange(vectors.shape[1])])
    return vectors * blocks.native(np.where(entries < 0, -1.0, 1.0).astype(entries.dtype))
