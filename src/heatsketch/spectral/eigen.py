"""Eigenpairs of symmetric operators.

By products with blocks, from a coarser graph, by shift and invert, or of a dense matrix; and the
factor of classical scaling.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse
from scipy.linalg import eigh as dense_eigh
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, splu

from heatsketch._arrays import Array, Rng
from heatsketch._checks import check_number
from heatsketch._messages import ConvergenceWarning, logger, warn
from heatsketch._random import random_block, seed_entropy
from heatsketch._threads import row_tiles, single_threaded_blas, track
from heatsketch.core.blocks import Block, blocks_of, inverse_permutation, is_large, scale_both_sides
from heatsketch.core.graph import on_vertices
from heatsketch.core.operators import (
    Affine,
    Deflated,
    Dense,
    Operator,
    Sparse,
    between_components,
    members_of,
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
        B = Sparse.of(matrix.astype(np.float32), stored.spectrum, stored.leading)
        B = Deflated.of(B, np.ascontiguousarray(A.V))
    values, vectors = _leading_block(B, k, limit, _MAX_PRODUCTS, seed_entropy(rng))
    if B is not A:
        values, vectors, _ = _rayleigh_ritz(A, A.block(vectors[:, :k]))
    values, vectors = values[:k], A.blocks.native(vectors[:, :k])
    image = A.product(A.blocks.native(vectors, A.dtype))
    residuals = A.blocks.norms(image - vectors * A.blocks.native(values))
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
        X = A.without_V(X, out=X)
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
    image = A.product(X)
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
        image = native(A.product(A.block(u)), float)
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
    return Deflated.of(Sparse.of(matrix, A.spectrum), V), sparse.csr_matrix(P @ sparse.diags(s))


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
    image = A.product(blocks.native(X, A.dtype))
    values = blocks.dots(X, image)
    residuals = blocks.norms(image - X * blocks.native(values))
    return Spectrum(values, fix_signs(H), residuals)


def largest_eigenpairs(A: Deflated, k: int, *, tol: float = 1e-8, rng: Rng = None) -> Spectrum:
    """Return the eigenpairs of a deflated diffusion with the largest |λ|, by |λ|.

    They are at the two ends of the spectrum: see `slowest_eigenpairs` for the upper one.
    """
    if A.n <= DENSE_LIMIT:
        values, vectors, residuals = slowest_eigenpairs(A, A.n - A.n_deflated, tol=tol, rng=rng)
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


_MAX_DENSE_POINTS = 1500  # up to here LAPACK takes no longer than iterating
_EIGENVALUE_ROUNDING = 1e-12  # an eigenvalue below this fraction of the largest counts as zero


@dataclass(frozen=True, eq=False)
class ClassicalScaling:
    """The eigenpairs of B = -½ J Δ J, Δ the squared distances between l points, J = I - 11ᵀ/l.

    Attributes
    ----------
    values : array (k,)
        The largest eigenvalues of B, descending; those that are not positive are set to 0.
    vectors : array (l, k)
        Orthonormal; the entry of largest modulus of each is positive.
    mean_squares : array (l,)
        Row means of Δ.
    """

    values: Array
    vectors: Array
    mean_squares: Array

    @property
    def coordinates(self) -> Array:
        """Coordinates of the points (l, k): v_m √λ_m."""
        return self.vectors * np.sqrt(self.values)

    def place(self, squares: Array) -> Array:
        """Return coordinates (m, k) of points from their squared distances to the l points (m, l).

        This is the least-squares solution of |y - y_j|² - |y_j|² = δ_j up to a constant (Gower
        1968; de Silva and Tenenbaum 2004): y_m = ½ λ_m^-½ Σ_j v_m(j) (μ_j - δ_j). It is exact where
        the distances are Euclidean and the l points span the space.
        """
        inverse = np.zeros_like(self.values)
        np.divide(0.5, np.sqrt(self.values), out=inverse, where=self.values > 0)
        return (self.mean_squares - squares) @ (self.vectors * inverse)


def centre_squares(squares: Array) -> Array:
    """Replace squared distances Δ (l, l) by -½ J Δ J; return the means of their rows (l,)."""
    means = squares.mean(axis=1)
    overall = means.mean()
    for rows in row_tiles(len(squares)):
        squares[rows] -= means[rows, None]
        squares[rows] -= means - overall
        squares[rows] *= -0.5
    return means


def classical_scaling(squares: Array, k: int, *, positive_only: bool = False) -> ClassicalScaling:
    """Compute coordinates from squared distances: *Linear and nonlinear …*, §3, steps 1 to 5.

    Parameters
    ----------
    squares : array (l, l), float64
        Squared distances, symmetric. Overwritten.
    k : int
        Number of coordinates, at most l.
    positive_only : bool
        Whether to leave out coordinates of eigenvalues that are not positive, in place of a warning
        and zeros.

    Notes
    -----
    Cost: l³ operations up to 1,500 points, some 50 products with the matrix for more.
    """
    means = centre_squares(squares)
    n = len(squares)
    if not squares.any():  # without eigenvalues an iteration would fail
        values, vectors = np.zeros(k), np.eye(n, k)
    elif n <= _MAX_DENSE_POINTS or 3 * k > n:
        with single_threaded_blas():  # the same bits for any number of threads
            values, vectors = linalg.eigh(squares, subset_by_index=(n - k, n - 1))
    else:  # products in fixed tiles, as thread-independent
        B = Dense.of(squares, (-np.inf, np.inf))
        products = LinearOperator((n, n), matvec=lambda v: (B @ v.reshape(n, 1))[:, 0], dtype=float)
        start = np.random.default_rng(0).standard_normal(n)
        values, vectors = eigsh(products, k, which="LA", v0=start)
    values, vectors = values[::-1], vectors[:, ::-1]
    positive = values > _EIGENVALUE_ROUNDING * max(values[0], 0.0)
    found = np.count_nonzero(positive)
    if positive_only:
        values, vectors, positive = values[:found], vectors[:, :found], positive[:found]
    elif found < k:
        warn(
            UserWarning,
            f"Only {found} of {k} eigenvalues are positive beyond rounding, because the distances "
            "have no more Euclidean dimensions, or these are too small relative to the largest (an "
            "outlier?); the other coordinates are zero.",
        )
    return ClassicalScaling(np.where(positive, values, 0.0), fix_signs(vectors), means)
