"""The largest eigenvalues of an operator, with residuals that bound their errors.

Few points use the dense matrix; many use a block iteration, which starts from vectors of a coarser
graph if there is one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh as dense_eigh
from scipy.linalg import qr

from heatsketch._checks import ConvergenceWarning, check_number, logger, to_device, warn
from heatsketch._random import random_block, seed_entropy
from heatsketch._tiles import for_each_tile, single_threaded_blas, sum_over_tiles, track
from heatsketch._typing import Array, Rng
from heatsketch.operators.graph import on_vertices
from heatsketch.operators.operator import (
    Deflated,
    Operator,
    Sparse,
    is_large,
    members_of,
    scale_both_sides,
)
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
_GRAM_TILE = 8192  # rows whose Gram matrix is one summand
_MIN_POINTS_PER_COLUMN = 3  # of the coarse graph, for each column of a block
_MAX_AGGREGATES_TOUCHED = 12  # by the neighbours of a point, on average
_NEGLIGIBLE = 0.05  # size of negative entries: coarser graphs have small ones
_SMOOTHING_PRODUCTS = 8  # with the constant, if the leading vector is not known

# Largest residual of the first k pairs, relative to the largest |λ| found, and a number added to
# it. None: small next to the distance of the k-th eigenvalue from the upper end of the spectrum.
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
    block subspace iteration with a Chebyshev filter (Zhou and Saad 2007), which finds multiple
    eigenvalues as often as they occur; single-vector Lanczos misses copies on clustered data. For a
    sparse non-negative matrix the iteration starts from the eigenvectors of a coarser graph by
    smoothed aggregation (Vaněk, Mandel and Brezina 1996), if that graph is sparse again. A
    `Deflated` operator gives eigenpairs orthogonal to the deflated directions.

    Parameters
    ----------
    A : array (n, n), SciPy sparse matrix, operator, `Graph` or `Diffusion`
    n_components : int >= 1, default 6
        Number of eigenpairs, at most n less the number of deflated directions.
    tol : float, default 1e-8
        Largest residual |A v - λ v| relative to the largest |λ| found; at least rounding.
    rng : int, Generator or None
        Start of the iteration; the result does not depend on it beyond `tol`.

    Returns
    -------
    Spectrum
        `values` (k,), `vectors` (n, k), `residuals` (k,).

    Raises
    ------
    ValueError
        More components than A has eigenvectors.

    Warns
    -----
    ConvergenceWarning
        The residuals did not reach `tol` within 20,000 products by A.

    Notes
    -----
    Cost: some hundred products by A with a block of k + max(8, k/2) columns, rounded up to a
    multiple of 8. The filter damps an interval that begins at a bound from 40 Lanczos steps, so a
    `spectrum` that is far too wide costs nothing.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.eigh(np.diag([3.0, 1.0, 2.0]), 2).values
    array([3., 2.])
    """
    A, vertex = on_vertices(A)
    k = check_number(n_components, "n_components", low=1, integer=True)
    values, vectors, residuals = leading_eigenpairs(A, k, tol, rng)
    return Spectrum(*(to_device(found, A.device) for found in (values, vectors[vertex], residuals)))


def leading_eigenpairs(A: Operator, k: int, tol: float = 1e-8, rng: Rng = 0) -> Spectrum:
    """Compute the eigenpairs of the k largest eigenvalues, as arrays; see `eigh`."""
    room = A.n - A.V.shape[1]
    if k > room:
        raise ValueError(
            f"n_components={k} needs at least {k + A.n - room} distinct samples, got {A.n}; "
            f"pass n_components <= {room}."
        )
    tol, eps = check_number(tol, "tol", low=0), float(np.finfo(A.dtype).eps)
    bound = max(map(abs, A.spectrum))  # may be far too wide: only rounding depends on it
    rounding = (16 + A.V.size**0.5) * eps * bound  # of a product, and of projections by V
    limit = max(tol, 50 * eps), rounding
    # Products by a large stored matrix take half the time in float32.
    B, matrix, stored = A, A.sparse_matrix(), A.undeflated
    is_double = A.device is None and A.dtype != np.float32
    if tol >= _SINGLE_PRECISION_TOL and matrix is not None and is_large(A.n) and is_double:
        B = Sparse(matrix.astype(np.float32), stored.spectrum, stored.leading).deflated(A.V)
    values, vectors = _leading_block(B, k, limit, _MAX_PRODUCTS, seed_entropy(rng))
    if B is not A:
        values, vectors, _ = _rayleigh_ritz(A, A.asarray(vectors[:, :k]))
    values, vectors = values[:k], vectors[:, :k]
    residuals = np.linalg.norm(A @ vectors - vectors * values, axis=0)
    if residuals.max() > 2 * (limit[0] * float(np.abs(values).max()) + rounding):
        warn(
            ConvergenceWarning,
            f"eigenpairs have residuals up to {residuals.max():.1e}, above tol={tol:.1e}, after "
            f"{_MAX_PRODUCTS} products; read .residuals.",
        )
    return Spectrum(values, fix_signs(vectors), residuals)


def _leading_block(
    A: Operator, k: int, limit: Limit, max_products: int, entropy: list[int]
) -> tuple[Array, Array]:
    """Return at least k leading Ritz pairs: from the dense matrix, coarser graphs or at random."""
    block = 8 * -(-(k + max(8, k // 2)) // 8)  # whole vector registers
    # The reduction to tridiagonal form takes 4/3 n³ operations for any number of pairs.
    if A.n <= max(DENSE_LIMIT, _POINTS_PER_COLUMN * block):
        return dense_eigenpairs(A, min(block, A.n - A.V.shape[1]))
    coarse = coarser(A, block)
    if coarse is None:
        start = random_block(A.n, block, "gaussian", np.random.default_rng(entropy))
    else:
        B, prolongation = coarse
        start = prolongation @ _leading_block(B, k, None, _MAX_COARSE_PRODUCTS, entropy)[1]
    most = max_products
    if A.n <= _DENSE_RESCUE_LIMIT:
        # This number of products takes some eight times as long as the dense matrix.
        most = min(most, max(300, A.n**2 // (200 * block)))
    values, vectors, done = subspace_iteration(A, A.asarray(start), k, limit, most)
    if not done and most < max_products:
        return dense_eigenpairs(A, k)
    return values, vectors


@single_threaded_blas()  # the same bits for any number of threads
def subspace_iteration(
    A: Operator, X: Array, k: int, limit: Limit, max_products: int
) -> tuple[Array, Array, bool]:
    """Filter a block and solve in its span, until the first k residuals are small.

    Parameters
    ----------
    A : Operator
    X : array (n, p), p > k, in the precision of A
        Start: random columns, or columns near the leading eigenvectors. It is overwritten.
    k : int
    limit : (float, float) or None
        See `Limit`.
    max_products : int

    Returns
    -------
    array (p,), array (n, p), bool
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
        residuals = np.linalg.norm(image[:, :k] - X[:, :k] * ritz[:k].astype(X.dtype), axis=0)
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
        for term in track(terms, "eigenpairs", degree, "products to the next residual"):
            X = term
        products += degree - 1


def _rayleigh_ritz(A: Operator, X: Array) -> tuple[Array, Array, Array]:
    """Return the Ritz values (p,) in the span of X, descending, Ritz vectors and their images.

    X is overwritten. Deflated directions are removed from its span.
    """
    # Make X orthonormal to rounding. Each pass uses the eigenvectors of the Gram matrix
    # (Stathopoulos and Wu 2002), at a third of the cost of a Householder QR, which is used if
    # columns are still dependent after three passes.
    for _ in range(3):
        X = A.project(X, out=X)
        gram = _gram(X, X)
        size = np.sqrt(gram.diagonal())
        size[size == 0] = 1.0
        values, W = dense_eigh(gram / np.multiply.outer(size, size))
        floor = len(values) * float(np.finfo(float).eps) * values[-1] or 1.0
        _rotate(X, W / np.sqrt(np.maximum(values, floor)) / size[:, None])
        if values[0] > 0.1:
            break
    else:  # columns that replace dependent ones must not lie along V
        X = A.asarray(qr(np.hstack([A.V, X]), mode="economic")[0][:, A.V.shape[1] :])
    # XᵀAX w = θ XᵀX w in float64, because X in float32 is not orthonormal to all digits.
    image = A @ X
    projected = _gram(X, image)
    ritz, W = dense_eigh((projected + projected.T) / 2, _gram(X, X))
    _rotate(X, W[:, ::-1])
    _rotate(image, W[:, ::-1])
    return ritz[::-1], X, image


def _gram(X: Array, Y: Array) -> Array:
    """Return XᵀY in float64, summed over fixed tiles: the same bits for any number of threads."""
    return sum_over_tiles(
        lambda rows: X[rows].astype(float).T @ Y[rows].astype(float), len(X), _GRAM_TILE
    )


def _rotate(X: Array, W: Array) -> None:
    """Set X to X W, in place."""
    W = W.astype(X.dtype)
    for_each_tile(lambda rows: np.copyto(X[rows], X[rows] @ W), len(X), _GRAM_TILE)


# A coarser graph, by smoothed aggregation


@single_threaded_blas()  # as in `leading_vector`
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
    known = A.V[:, 0] if A.V.shape[1] else A.leading
    u = np.asarray(np.ones(A.n) if known is None else known, A.dtype)
    for _ in range(_SMOOTHING_PRODUCTS if known is None else 1):
        u = A.undeflated @ (u / np.linalg.norm(u))
    u = (u / (np.copysign(1, u.sum()) * np.linalg.norm(u))).astype(float)
    top = float(u @ (A.undeflated @ u))
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
    n, indices, filled = matrix.shape[0], matrix.indices, np.flatnonzero(np.diff(matrix.indptr))
    # Each point has a random number. A point with the largest one within two links becomes a root,
    # and the others within two links of it do not, until all are decided (Bell, Dalton and Olson
    # 2012).
    taken = np.int32(2**30)
    rank = (1 + np.random.default_rng(0).permutation(n)).astype(np.int32)
    undecided = np.ones(n, dtype=bool)
    while undecided.any():
        largest = rank.copy()
        for _ in range(2):
            near = np.maximum.reduceat(largest[indices], matrix.indptr[filled])
            largest[filled] = np.maximum(largest[filled], near)
        chosen, refused = undecided & (largest == rank), undecided & (largest == taken)
        rank[chosen], rank[refused] = taken, 0
        undecided = (rank > 0) & (rank < taken)
    roots = np.flatnonzero(rank == taken)
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


# The dense matrix


@single_threaded_blas()  # the same bits for any number of threads
def all_eigenpairs(A: Operator) -> tuple[Array, Array]:
    """Return all eigenvalues, ascending, and eigenvectors, without those of deflated directions."""
    values, vectors = dense_eigh(_matrix(A), driver="evd", overwrite_a=True, check_finite=False)
    deflated = A.V.shape[1]
    return values[deflated:], vectors[:, deflated:]


@single_threaded_blas()  # the same bits for any number of threads
def all_eigenvalues(A: Operator) -> Array:
    """Return all eigenvalues, ascending, at half the cost of `all_eigenpairs`."""
    found = dense_eigh(_matrix(A), eigvals_only=True, overwrite_a=True, check_finite=False)
    values: Array = found[A.V.shape[1] :]
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
    V = np.asarray(A.V, dtype=float)
    if V.shape[1]:
        # The interval of A may be so wide that a multiple of its ends would leave no digits of A.
        size = float(np.abs(matrix).sum(axis=1).max())
        matrix -= (2.0 * size or 1.0) * (V @ V.T)
    return matrix


# Single vectors, and signs


@single_threaded_blas()  # dot products of long vectors depend on threads
def leading_vector(A: Operator) -> Array:
    """Return the unit eigenvector (n,) of the largest eigenvalue: √π of a normalised affinity.

    If it is known from the construction of A, or constant, one product confirms it; else it is
    computed. If the eigenvalue is multiple (an affinity of several components), it is the vector of
    the eigenspace nearest to the constant, positive on every component.
    """
    for guess in (A.leading, np.ones(A.n)):
        if guess is None:
            continue
        u = np.asarray(guess, float)  # a vector of float32 has length one to 1e-8 only
        u = u / np.linalg.norm(u)
        image = A @ u
        top = float(u @ image)
        close = np.linalg.norm(image - top * u) <= 1e-7 * abs(top)
        if close and top >= A.spectrum[1] * (1 - 1e-6):
            return np.asarray(u, A.dtype)
    labels = A.components() if A.is_non_negative() else None
    if labels is not None and labels.max() >= _MOST_COPIES:  # each component by itself
        u, tops = np.zeros(A.n), np.zeros(labels.max() + 1)
        for c, vertices in enumerate(members_of(labels)):
            values, vectors, _ = leading_eigenpairs(A.restricted(vertices), 1)
            tops[c], u[vertices] = values[0], vectors[:, 0] * vectors[:, 0].sum()
        u[(tops < tops.max() * (1 - _EQUAL))[labels]] = 0.0
    else:
        values, vectors, _ = leading_eigenpairs(A, min(_MOST_COPIES, A.n))
        copies = vectors[:, values >= values[0] - _EQUAL * abs(values[0])]
        u = copies @ copies.sum(axis=0)
    size = np.linalg.norm(u)
    return np.asarray(u / size if size > 1e-6 else vectors[:, 0], A.dtype)


def fix_signs(vectors: Array) -> Array:
    """Return the columns with the sign that makes the entry of largest modulus positive."""
    largest = np.argmax(np.abs(vectors), axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1.0, signs).astype(vectors.dtype)
