"""The smallest singular values of a sparse matrix whose rows sum to zero."""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import svd
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.sparse.linalg import splu

from heatsketch import memory
from heatsketch._array import random_block, single_threaded_blas
from heatsketch._typing import Array, Rng
from heatsketch.operators.base import Deflated, check_block
from heatsketch.operators.sparse import multiply
from heatsketch.spectral.eigenpairs import eigh, fix_signs

logger = logging.getLogger("heatsketch")

_DENSE = 256  # rows up to which LAPACK takes no longer
_EXTRA = 4  # columns of a block beyond those wanted
_FILLED = 0.35  # share of all entries that the factors of a random graph of 12 neighbours hold
_ENTRY = 20.0  # bytes of an entry of the factors, while they grow
_WORK = 2e12  # entries²/n: ten minutes of elimination
_SAFE = 1e-4  # of the largest entry of a left null vector: what a pinned row must have
_PINNINGS = 4  # at most, until they are safe
_PIVOT = 0.1  # of the largest entry of a column: a diagonal one is taken, which keeps the order
_PRODUCTS = 100  # that stand for one step, where nothing is factored
_ROUNDING = 10 * np.finfo(float).eps
_TINY = np.finfo(float).tiny
_RESIDUAL = 1e-10  # of products with M, relative to its largest eigenvalue


class Smallest(NamedTuple):
    """The smallest singular values of L but for one zero, and their right singular vectors.

    Attributes
    ----------
    values : array (k,)
        σ², ascending: eigenvalues of M = LᵀL.
    vectors : array (n, k)
        Orthonormal and orthogonal to 1; the entry of largest modulus of each is positive.
    residuals : array (k,)
        |M y - σ² y|.
    change : float
        What further steps of the iteration could still change, relative to 1/σ²; relative to σ²,
        where nothing was factored; 0 where there were none.
    steps : int
        Steps of the iteration.
    """

    values: Array
    vectors: Array
    residuals: Array
    change: float
    steps: int


def closed_groups(L: sparse.csr_matrix) -> list[Array]:
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
    groups = np.split(rows, starts[1:])
    return sorted(groups, key=lambda group: (-len(group), group[0]))


@single_threaded_blas()  # the same bits for any number of threads
def smallest_singular(
    L: sparse.csr_matrix,
    groups: list[Array],
    k: int,
    *,
    tol: float,
    max_iter: int,
    rng: Rng,
    way: str | None = None,
) -> Smallest:
    """Compute the smallest k singular values of L beside that of the vector 1.

    The eigenvalues of M = LᵀL are squares, so M has twice as many digits of range as L: rounding
    of M alone may exceed them. Hence everything works with L. "factors": sparse LU factors of L
    without a row and column for each closed group give the pseudo-inverse L⁺, and a block Krylov
    method the largest eigenvalues of L⁺L⁺ᵀ; the singular values of L on what it has found are
    taken at the end. "dense": LAPACK, for few rows. "products": Chebyshev-filtered products with
    M, where the factors would fill the memory.

    Parameters
    ----------
    L : CSR (n, n)
        Rows sum to 0.
    groups : list of arrays
        What `closed_groups` found.
    k : int, 1 <= k < n
    tol : float
        Bound on |M⁺y - θy| / θ.
    max_iter : int
        Bound on the steps of the Krylov method.
    rng : int, Generator or None
        Start of the iteration.
    way : "dense", "factors" or "products", optional
        By default as n and the memory ask for.

    Returns
    -------
    Smallest
    """
    n = L.shape[0]
    way = way or _way(L, k)
    logger.info("%d singular vectors of %s rows by %s", k, f"{n:,}", way)
    change, steps = 0.0, 0
    if way == "dense":
        V = _dense(L, k)
    elif way == "products":
        V = _by_products(L, k, _PRODUCTS * max_iter, rng)
    else:
        V, change, steps = _by_factors(L, groups, k, tol, max_iter, rng)
    found = _extract(L, V, k)
    if way == "products":
        unsure = found.residuals / np.maximum(found.values, _TINY)
        change = float(unsure[len(groups) - 1 :].max(initial=0.0))  # zeros are known
    return found._replace(change=change, steps=steps)


def _way(L: sparse.csr_matrix, k: int) -> str:
    n = L.shape[0]
    if n <= _DENSE or 20 * (k + _EXTRA) > n:
        return "dense"
    entries = _FILLED * float(n) ** 2
    if not _affordable(entries, n):
        entries = min(entries, _predicted_entries(L))
    return "factors" if _affordable(entries, n) else "products"


def _affordable(entries: float, n: int) -> bool:
    return _ENTRY * entries < memory.available() / 2 and entries**2 / n < _WORK


def _predicted_entries(L: sparse.csr_matrix) -> float:
    """Predict the entries of the factors from the widest level of a search of the graph.

    A level separates those before from those after it, so the last block that elimination comes to
    is about as wide: 57 million entries for 60,000 points in a cube, where this gives 65.
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
    """Return the last right singular vectors of L with a large row along 1 below it."""
    n = L.shape[0]
    full = L.toarray()
    large = 10 * np.sqrt((full**2).sum()) + 1.0
    return svd(np.vstack([full, np.full((1, n), large / np.sqrt(n))]))[2][::-1][:k].T


@dataclass(frozen=True, eq=False)
class _Gram:
    """c I - LᵀL, whose largest eigenvalues are those of the smallest singular values."""

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

    def asarray(self, X: Array) -> Array:
        return check_block(X, self.n, self.dtype)

    def __matmul__(self, X: Array) -> Array:
        X = self.asarray(X)
        return self.bound * X - multiply(self.transposed, multiply(self.L, X))


def _by_products(L: sparse.csr_matrix, k: int, most: int, rng: Rng) -> Array:
    one = np.full(L.shape[0], L.shape[0] ** -0.5)
    operator = Deflated(_Gram.of(L), one)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # `change` tells
        return eigh(operator, k, tol=_RESIDUAL, max_products=most, rng=rng).vectors


def _by_factors(
    L: sparse.csr_matrix, groups: list[Array], k: int, tol: float, max_iter: int, rng: Rng
) -> tuple[Array, float, int]:
    """Return a basis that holds the singular vectors wanted, what may be missing, and the steps.

    Singular values that are zero to rounding would drown the others in L⁺: they are taken out.
    """
    inverse = _PseudoInverse.of(L, groups, k)
    zero = _ROUNDING * np.sqrt(L.shape[0]) * float(abs(L).sum(axis=1).max())
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
    """L⁺ and its transpose, by LU factors of L without one row and column for each closed group.

    A closed group has a left null vector u of its own, and without a row that has a share in u the
    other rows determine x up to null vectors: L⁺f is what they give for f less its part along u,
    less the part along the right null vectors.
    """

    factors: Any  # of SuperLU
    kept: Array  # rows that are factored
    left: Array  # orthonormal null vectors of Lᵀ (n, groups), or some
    right: Array  # of L (n, groups), or the first k + 1; the first is constant

    @classmethod
    def of(cls, L: sparse.csr_matrix, groups: list[Array], k: int) -> _PseudoInverse:
        """Factor L; where a row turns out to have too little share in u, again without another."""
        first = groups[: k + 1]  # the null vectors of more are not wanted
        pins = np.array([group[len(group) // 2] for group in groups])
        for _ in range(_PINNINGS):
            factors, kept = _factor_without(L, pins)
            U = _null_vectors(L.T, factors, kept, pins[: len(first)], "T")
            best = np.abs(U).argmax(axis=0)
            share = 1 / np.abs(U[best, np.arange(len(first))])  # the pins have 1
            if (share >= _SAFE).all():
                break
            pins[: len(first)] = best
        V = _null_vectors(L, factors, kept, pins[: len(first)], "N")
        V[:, 0] = 1.0  # the sum of all
        V, R = np.linalg.qr(V)
        return cls(factors, kept, U / np.linalg.norm(U, axis=0), V * np.sign(R[0, 0]))

    def gram(self, X: Array) -> Array:
        """Return L⁺L⁺ᵀ X = M⁺X for a block (n, p) orthogonal to the null vectors."""
        Y = self._solve(X, "T")
        Y -= self.left @ (self.left.T @ Y)
        Z = self._solve(Y, "N")
        return Z - self.right @ (self.right.T @ Z)

    def without(self, V: Array) -> _PseudoInverse:
        """Count right singular vectors V (n, p) of values near 0 among the null vectors."""
        left, _ = _orthonormal(self._solve(V, "T"), self.left)  # grows along their left ones
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
    options = {"SymmetricMode": True}  # near-diagonal pivots, in an order of minimal degree
    form = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": _PIVOT, "options": options}
    try:
        return splu(core, **form), kept
    except RuntimeError:  # exactly singular: what is found then has a value of rounding instead
        shift = len(kept) * np.finfo(float).eps * sparse.eye_array(len(kept), format="csc")
        return splu(sparse.csc_matrix(core + shift), **form), kept


def _null_vectors(
    L: sparse.csr_matrix, factors: Any, kept: Array, pins: Array, which: str
) -> Array:
    """Return for each pin the vector that is 1 there, 0 at the others, and a null vector of L."""
    N = np.zeros((L.shape[0], len(pins)))
    N[pins, np.arange(len(pins))] = 1.0
    columns = sparse.csr_matrix(L)[kept][:, pins].toarray()
    N[kept] = -factors.solve(np.asfortranarray(columns), which)
    return N


def _krylov(
    inverse: _PseudoInverse, k: int, tol: float, max_iter: int, rng: Rng
) -> tuple[Array, float, int]:
    """Return a basis that holds the eigenvectors of the k largest eigenvalues of M⁺.

    Block Lanczos with full orthogonalisation; a block finds eigenvalues as often as they occur.
    """
    n = len(inverse.right)
    block = random_block(n, k + _EXTRA, "gaussian", rng)
    Q = current = _orthonormal(block, inverse.right)[0]
    H = np.zeros((0, 0))
    for step in range(1, max_iter + 1):
        image = inverse.gram(current)
        H = _bordered(H, Q.T @ image)
        current, beside = _orthonormal(image, inverse.right, Q)
        theta, S = np.linalg.eigh(H)
        theta, S = theta[::-1][:k], S[:, ::-1][-len(beside) :, :k]
        change = float((np.linalg.norm(beside @ S, axis=0) / theta).max())
        logger.info("step %d may change 1/σ² by %.1e", step, change)
        if change <= tol or Q.shape[1] + 2 * current.shape[1] > n:
            break
        Q = np.hstack([Q, current])
    return Q, change, step


def _orthonormal(X: Array, *others: Array) -> tuple[Array, Array]:
    """Return QR = X less its part in the span of the others, whose columns are orthonormal.

    What is left of columns that nearly agree is rounding, and has to be projected again.
    """
    R = np.eye(X.shape[1])
    for _ in range(3):
        for V in others:
            X = X - V @ (V.T @ X)
        X, factor = np.linalg.qr(X)
        R = factor @ R
    return X, R


def _bordered(H: Array, last: Array) -> Array:
    """Return the symmetric matrix H with its last columns, and so its last rows, added."""
    m, p = len(H), last.shape[1]
    grown = np.zeros((m + p, m + p))
    grown[:m, :m] = H
    grown[:, m:] = last
    grown[m:, :] = last.T
    grown[m:, m:] = (last[m:] + last[m:].T) / 2
    return grown


def _extract(L: sparse.csr_matrix, V: Array, k: int) -> Smallest:
    """Take the smallest singular values of L on the span of the orthonormal columns of V."""
    _, sigma, T = svd(np.linalg.qr(L @ V, mode="r"))
    sigma, T = sigma[::-1][:k], T[::-1][:k].T
    Y = fix_signs(V @ T)
    values = sigma**2
    residuals = np.linalg.norm(L.T @ (L @ Y) - Y * values, axis=0)
    return Smallest(values, Y, residuals, 0.0, 0)
