"""The smallest singular values of a sparse matrix whose rows sum to zero."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import svd
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.sparse.linalg import splu

from heatsketch import _budget
from heatsketch._array import random_block, single_threaded_blas
from heatsketch._checks import logger
from heatsketch._progress import report
from heatsketch._typing import Array, Rng
from heatsketch.operators.base import OnHost
from heatsketch.operators.deflated import Deflated
from heatsketch.operators.sparse import multiply
from heatsketch.spectral.eigenpairs import eigh, fix_signs
from heatsketch.spectral.linear_algebra import orthonormal

_MAX_DENSE_ROWS = 256  # up to which LAPACK takes no longer
_EXTRA_COLUMNS = 4  # of a block, beyond the number of vectors wanted
_MAX_FILL = 0.35  # share of n² that the factors of a random graph with 12 neighbours have
_BYTES_PER_ENTRY = 20.0  # of the factors, while they grow
_MAX_ELIMINATION_WORK = 2e12  # entries² / n: ten minutes
_MIN_PIN_SHARE = 1e-4  # of a pinned row in a left null vector, relative to the largest entry
_MAX_PINNINGS = 4  # attempts to pin rows of sufficient share
_PIVOT_THRESHOLD = 0.1  # a diagonal entry this large in its column is the pivot: keeps the order
_PRODUCTS_PER_STEP = 100  # products with M that `max_iter` counts as one step
_ZERO_ROUNDING = 10 * np.finfo(float).eps


class SingularPairs(NamedTuple):
    """The smallest singular values of L except one zero, and their right singular vectors.

    Attributes
    ----------
    values : array (k,)
        σ², ascending: eigenvalues of M = LᵀL.
    vectors : array (n, k)
        Orthonormal and orthogonal to 1; the entry of largest modulus of each is positive.
    residuals : array (k,)
        |M y - σ² y|.
    change : float
        How much further steps of the iteration could still change: relative to 1/σ², or to σ² where
        nothing was factored; 0 where there was no iteration.
    steps : int
        Number of steps of the iteration.
    """

    values: Array
    vectors: Array
    residuals: Array
    change: float
    steps: int


def closed_components(L: sparse.csr_matrix) -> list[Array]:
    """Return the smallest sets of rows whose entries lie within the set, largest first.

    Each of these gives a null vector of L, constant on it and zero on the others.
    """
    _, labels = connected_components(L, directed=True, connection="strong")
    entries = L.tocoo()
    leaving = labels[entries.row] != labels[entries.col]
    closed = np.ones(labels.max() + 1, dtype=bool)
    closed[labels[entries.row[leaving]]] = False
    rows = np.flatnonzero(closed[labels])
    rows = rows[np.argsort(labels[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(labels[rows], prepend=-1))
    components = np.split(rows, starts[1:])
    return sorted(components, key=lambda component: (-len(component), component[0]))


@single_threaded_blas()  # the same bits for any number of threads
def smallest_singular(
    L: sparse.csr_matrix,
    components: list[Array],
    k: int,
    *,
    tol: float,
    max_iter: int,
    rng: Rng,
    method: str | None = None,
) -> SingularPairs:
    """Compute the smallest k singular values of L, without that of the vector 1.

    The eigenvalues of M = LᵀL are squares: rounding of M alone may exceed the smallest ones. Hence
    all methods work with L. "factors": sparse LU factors of L without one row and column for each
    closed component give the pseudo-inverse L⁺, and a block Krylov method the largest eigenvalues
    of L⁺L⁺ᵀ; at the end the singular values of L are computed on the subspace found. "dense":
    LAPACK, for few rows. "products": Chebyshev-filtered products with M, where the factors would
    exceed the memory.

    Parameters
    ----------
    L : CSR (n, n)
        Its rows sum to 0.
    components : list of arrays
        The result of `closed_components`.
    k : int, 1 <= k < n
    tol : float
        Bound on |M⁺y - θy| / θ.
    max_iter : int
        Bound on the steps of the Krylov method.
    rng : int, Generator or None
        Seed of the initial block.
    method : "dense", "factors" or "products", optional
        By default chosen by n and the available memory.

    Returns
    -------
    SingularPairs
    """
    n = L.shape[0]
    method = method or _choose_method(L, k)
    logger.info("%d singular vectors of %s rows by %s", k, f"{n:,}", method)
    change, steps = 0.0, 0
    if method == "dense":
        V = _dense(L, k)
    elif method == "products":
        V = _by_products(L, k, _PRODUCTS_PER_STEP * max_iter, rng)
    else:
        V, change, steps = _by_factors(L, components, k, tol, max_iter, rng)
    found = _extract(L, V, k)
    if method == "products":
        changes = found.residuals / np.maximum(found.values, np.finfo(float).tiny)
        change = float(changes[len(components) - 1 :].max(initial=0.0))  # without known zeros
    return found._replace(change=change, steps=steps)


def _choose_method(L: sparse.csr_matrix, k: int) -> str:
    n = L.shape[0]
    if n <= _MAX_DENSE_ROWS or 20 * (k + _EXTRA_COLUMNS) > n:
        return "dense"
    entries = _MAX_FILL * float(n) ** 2
    if not _affordable(entries, n):
        entries = min(entries, _predicted_entries(L))
    return "factors" if _affordable(entries, n) else "products"


def _affordable(entries: float, n: int) -> bool:
    fits = _BYTES_PER_ENTRY * entries < _budget.available() / 2
    return fits and entries**2 / n < _MAX_ELIMINATION_WORK


def _predicted_entries(L: sparse.csr_matrix) -> float:
    """Predict the entries of the factors from the widest level of a breadth-first search.

    A level separates the levels before from those after it, so the last block of the elimination is
    about as wide: 57 million entries for 60,000 points in a cube, where this predicts 65 million.
    """
    _, labels = connected_components(L, directed=False)
    start = int(np.argmax(labels == np.bincount(labels).argmax()))
    for _ in range(2):  # from one end of the graph to the other
        levels = dijkstra(L != 0, directed=False, indices=start, unweighted=True)
        levels[~np.isfinite(levels)] = -1
        start = int(levels.argmax())
    width = float(np.bincount(levels[levels >= 0].astype(int)).max())
    return 100.0 * L.shape[0] + 8.0 * width**2


def _dense(L: sparse.csr_matrix, k: int) -> Array:
    """Return the last right singular vectors of L, to which a large row along 1 is appended."""
    n = L.shape[0]
    full = L.toarray()
    large = 10 * np.sqrt((full**2).sum()) + 1.0
    return svd(np.vstack([full, np.full((1, n), large / np.sqrt(n))]))[2][::-1][:k].T


@dataclass(frozen=True, eq=False)
class _Gram(OnHost):
    """The operator c I - LᵀL: its largest eigenvalues give the smallest singular values of L."""

    L: sparse.csr_matrix
    transposed: sparse.csr_matrix
    bound: float

    @classmethod
    def of(cls, L: sparse.csr_matrix) -> _Gram:
        sizes = abs(L)
        bound = float(sizes.sum(axis=0).max()) * float(sizes.sum(axis=1).max())
        return cls(L, sparse.csr_matrix(L.T), bound)

    @property
    def n(self) -> int:
        return self.L.shape[0]

    @property
    def dtype(self) -> np.dtype:
        return self.L.dtype

    @property
    def spectrum(self) -> tuple[float, float]:
        return 0.0, self.bound

    def __matmul__(self, X: Array) -> Array:
        X = self.asarray(X)
        return self.bound * X - multiply(self.transposed, multiply(self.L, X))


def _by_products(L: sparse.csr_matrix, k: int, max_products: int, rng: Rng) -> Array:
    one = np.full(L.shape[0], L.shape[0] ** -0.5)
    operator = Deflated(_Gram.of(L), one)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # `change` reports it
        return eigh(operator, k, tol=1e-10, max_products=max_products, rng=rng).vectors


def _by_factors(
    L: sparse.csr_matrix, components: list[Array], k: int, tol: float, max_iter: int, rng: Rng
) -> tuple[Array, float, int]:
    """Return a basis of a space with the singular vectors wanted, possible changes, and steps.

    Singular values that are zero to rounding would hide the others in L⁺: they are deflated.
    """
    inverse = _PseudoInverse.of(L, components, k)
    zero = _ZERO_ROUNDING * np.sqrt(L.shape[0]) * float(abs(L).sum(axis=1).max())
    V, change, steps = inverse.right[:, 1 : k + 1], 0.0, 0
    while V.shape[1] < k:
        left = k - V.shape[1]
        basis, change, more = _krylov(inverse, left, tol, max_iter, rng)
        steps += more
        found = _extract(L, basis, left)
        null = found.vectors[:, found.values <= zero**2]
        if null.shape[1] in (0, left):
            return np.hstack([V, basis]), change, steps
        V, inverse = np.hstack([V, null]), inverse.without(null)
    return V, change, steps


@dataclass(frozen=True, eq=False)
class _PseudoInverse:
    """L⁺ and its transpose, by LU factors of L without a row and column of each closed component.

    A closed component has a left null vector u of its own. Without one row in which u is not zero,
    the other rows still determine x up to null vectors. L⁺f is their solution for the projection of
    f orthogonal to u, projected orthogonally to the right null vectors.
    """

    factors: Any  # of SuperLU
    kept: Array  # rows that are factored
    left: Array  # orthonormal null vectors of Lᵀ (n, components), at most k + 1
    right: Array  # orthonormal null vectors of L, as many; the first is constant

    @classmethod
    def of(cls, L: sparse.csr_matrix, components: list[Array], k: int) -> _PseudoInverse:
        """Factor L without pinned rows, and with other pins where u is too small in these."""
        count = min(len(components), k + 1)  # more null vectors are not wanted
        pins = np.array([component[len(component) // 2] for component in components])
        for _ in range(_MAX_PINNINGS):
            factors, kept = _factor_without(L, pins)
            U = _null_vectors(L.T, factors, kept, pins[:count], "T")
            largest = np.abs(U).argmax(axis=0)
            share = 1 / np.abs(U[largest, np.arange(count)])  # U is 1 at the pins
            if (share >= _MIN_PIN_SHARE).all():
                break
            pins[:count] = largest
        V = _null_vectors(L, factors, kept, pins[:count], "N")
        V[:, 0] = 1.0  # the sum of all null vectors
        V, R = np.linalg.qr(V)
        return cls(factors, kept, U / np.linalg.norm(U, axis=0), V * np.sign(R[0, 0]))

    def gram(self, X: Array) -> Array:
        """Return L⁺L⁺ᵀ X = M⁺X for a block (n, p) orthogonal to the null vectors."""
        Y = self._solve(X, "T")
        Y -= self.left @ (self.left.T @ Y)
        Z = self._solve(Y, "N")
        return Z - self.right @ (self.right.T @ Z)

    def without(self, V: Array) -> _PseudoInverse:
        """Treat right singular vectors V (n, p) of values near 0 as null vectors."""
        left, _ = orthonormal(self._solve(V, "T"), self.left)  # grows along their left ones
        return _PseudoInverse(
            self.factors, self.kept, np.hstack([self.left, left]), np.hstack([self.right, V])
        )

    def _solve(self, F: Array, which: str) -> Array:
        X = np.zeros_like(F)
        X[self.kept] = self.factors.solve(np.asfortranarray(F[self.kept]), which)
        return X


def _factor_without(L: sparse.csr_matrix, pins: Array) -> tuple[Any, Array]:
    kept = np.delete(np.arange(L.shape[0]), pins)
    core = sparse.csc_matrix(L[kept][:, kept])
    options = {
        "permc_spec": "MMD_AT_PLUS_A",  # order of minimum degree
        "diag_pivot_thresh": _PIVOT_THRESHOLD,
        "options": {"SymmetricMode": True},
    }
    try:
        return splu(core, **options), kept
    except RuntimeError:  # exactly singular: a singular value of rounding takes the place of 0
        shift = len(kept) * np.finfo(float).eps * sparse.eye_array(len(kept), format="csc")
        return splu(sparse.csc_matrix(core + shift), **options), kept


def _null_vectors(
    L: sparse.csr_matrix, factors: Any, kept: Array, pins: Array, which: str
) -> Array:
    """Return for each pin the null vector of L that is 1 there and 0 at the other pins."""
    N = np.zeros((L.shape[0], len(pins)))
    N[pins, np.arange(len(pins))] = 1.0
    columns = sparse.csr_matrix(L)[kept][:, pins].toarray()
    N[kept] = -factors.solve(np.asfortranarray(columns), which)
    return N


def _krylov(
    inverse: _PseudoInverse, k: int, tol: float, max_iter: int, rng: Rng
) -> tuple[Array, float, int]:
    """Return a basis of a space with the eigenvectors of the k largest eigenvalues of M⁺.

    Block Lanczos with full orthogonalisation; the block finds multiple eigenvalues.
    """
    n = len(inverse.right)
    block = random_block(n, k + _EXTRA_COLUMNS, "gaussian", rng)
    Q = current = orthonormal(block, inverse.right)[0]
    H = np.zeros((0, 0))
    for step in range(1, max_iter + 1):
        image = inverse.gram(current)
        H = _bordered(H, Q.T @ image)
        current, beside = orthonormal(image, inverse.right, Q)
        theta, S = np.linalg.eigh(H)
        theta, S = theta[::-1][:k], S[:, ::-1][-len(beside) :, :k]
        change = float((np.linalg.norm(beside @ S, axis=0) / theta).max())
        report("singular vectors", "step %d may change 1/σ² by %.1e", step, change)
        if change <= tol or Q.shape[1] + 2 * current.shape[1] > n:
            break
        Q = np.hstack([Q, current])
    return Q, change, step


def _bordered(H: Array, last: Array) -> Array:
    """Return the symmetric matrix H with its last columns, and so its last rows, added."""
    m, p = len(H), last.shape[1]
    grown = np.zeros((m + p, m + p))
    grown[:m, :m] = H
    grown[:, m:] = last
    grown[m:, :] = last.T
    grown[m:, m:] = (last[m:] + last[m:].T) / 2
    return grown


def _extract(L: sparse.csr_matrix, V: Array, k: int) -> SingularPairs:
    """Return the smallest singular values of L on the span of the orthonormal columns of V."""
    _, sigma, T = svd(np.linalg.qr(L @ V, mode="r"))
    sigma, T = sigma[::-1][:k], T[::-1][:k].T
    Y = fix_signs(V @ T)
    values = sigma**2
    residuals = np.linalg.norm(L.T @ (L @ Y) - Y * values, axis=0)
    return SingularPairs(values, Y, residuals, 0.0, 0)
