"""Symmetric operators A: products with blocks, and seven questions about A.

`Operator` is what all are; `Dense`, `Sparse`, `LowRank` and `LinearMap` have entries or a function,
`Affine`, `Scaled` and `Deflated` are made of another operator. At the beginning: connected
components.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.linalg import eigvalsh_tridiagonal
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from scipy.sparse.linalg import LinearOperator
from sklearn.utils.extmath import row_norms

from heatsketch._arrays import Array, is_tensor
from heatsketch._checks import as_floats
from heatsketch._random import random_block
from heatsketch._threads import for_each_tile, single_threaded_blas
from heatsketch.core.blocks import (
    HOST,
    Block,
    Blocks,
    blocks_of,
    inverse_permutation,
    is_large,
    multiply,
    permuted,
    scale_both_sides,
)

NEGLIGIBLE = 1e-14  # fraction of a row sum below which an affinity changes nothing in float64
_ROW_ENTRIES = 2**22  # of rows looked at together in the search for components


def members_of(labels: Array) -> list[Array]:
    """Return the points of each component, ascending, from their labels (n,), numbered from 0."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])


def components_of_rows(rows_of: Callable[[Array], Array], sums: Array) -> Array:
    """Return the component of each row (n,) of a symmetric, non-negative matrix, from its rows.

    `rows_of` returns some of its rows, `sums` (n,) are those of all. The search goes from row to
    row, and ends when all are reached: where most entries count, after a few rows.
    """
    n, count = len(sums), 0
    labels = np.full(n, -1)
    for start in range(n):
        if labels[start] >= 0:
            continue
        labels[start], reached = count, np.array([start])
        while len(reached) and labels.min() < 0:
            rows, reached = np.split(reached, [max(1, _ROW_ENTRIES // n)])
            counts = rows_of(rows) > NEGLIGIBLE * np.minimum(sums[rows, None], sums)
            new = np.flatnonzero(counts.any(axis=0) & (labels < 0))
            labels[new] = count
            reached = np.append(reached, new)
        count += 1
    return labels


def between_components(root: Array, labels: Array, k: int) -> Array:
    """Return at most k directions (n, k) that are multiples of √π on each component.

    One for each component but the largest, orthonormal, and orthogonal to `root`, √π (n,). The m-th
    is √π on the m larger components together against the next one, in the proportion that keeps it
    orthogonal to √π.
    """
    mass = np.bincount(labels, weights=root**2)
    by_mass = np.argsort(-mass, kind="stable")
    rank = np.argsort(by_mass)[labels]
    m, together = mass[by_mass][1:], np.cumsum(mass[by_mass])
    larger, both = together[:-1], together[1:]
    H = np.zeros((len(root), min(k, len(m))))
    for j in range(H.shape[1]):
        H[rank <= j, j] = np.sqrt(m[j] / (larger[j] * both[j]))
        H[rank == j + 1, j] = -np.sqrt(larger[j] / (m[j] * both[j]))
    return H * root[:, None]


Bounds = tuple[float, float]

LANCZOS_STEPS = 40  # miss an end of the spectrum by 5-7 % of its width (probability 1e-6)


class Operator:
    """A symmetric linear map on n points; a new one sets three attributes and writes `_matmul`.

    A block is where products are computed: an array on the host, or a tensor on a device. `A @ X`
    checks X and moves arrays there and their products back; `product` takes a block as it is.
    `blocks` has the algebra between two products.

    Attributes
    ----------
    n : int
        Number of points.
    dtype : numpy.dtype
        Precision of products.
    spectrum : (float, float)
        An interval known to hold every eigenvalue.
    leading : ndarray of shape (n_samples,) or None
        The eigenvector of the largest eigenvalue, where it is known.
    blocks : Blocks
        The algebra of blocks where products are computed.
    matrix : array or sparse CSR matrix of shape (n_samples, n_samples), or None
        The matrix, where it is stored.
    """

    n: int
    dtype: np.dtype = np.dtype(np.float64)
    spectrum: Bounds
    leading: Array | None = None
    blocks: Blocks = HOST
    matrix: Any = None
    exponent_error: float = 0.0  # bound on the error of exponents in products by a kernel

    @property
    def T(self) -> Operator:
        """The operator itself: it is symmetric."""
        return self

    @property
    def device(self) -> Any:
        """The device of torch where products are computed; None: the host."""
        return self.blocks.device

    def __matmul__(self, X: Any) -> Any:
        """Multiply a block (n, k) or (n,), in the precision of the operator.

        The product of an array is an array, that of a tensor is where the operator computes.
        """
        return self.as_given(self.product(self.block(X)), X)

    def product(self, X: Block) -> Block:
        """Multiply a block, where A computes and in its precision, as `block` makes it.

        X is not checked. The result is in this precision, too, and callers may write to it.
        """
        Y = self._matmul(X)
        if self.blocks is HOST:
            Y = np.asarray(Y, self.dtype)
            if np.may_share_memory(Y, X):
                Y = Y.copy()  # as of a permutation
        if Y.shape != X.shape:
            raise ValueError(
                f"A product of {type(self).__name__} has shape {tuple(Y.shape)}, and the block "
                f"{tuple(X.shape)}; let its _matmul return a row for each row."
            )
        return Y

    def _matmul(self, X: Block) -> Block:
        """Multiply a block as `product` gets it; the result may be a part of it."""
        raise NotImplementedError(f"{type(self).__name__} has no products; write its _matmul.")

    def block(self, X: Any) -> Block:
        """Return an array or tensor (n, k) or (n,) as a block: where A computes, in its precision.

        Raises
        ------
        ValueError, TypeError
            As in `asarray`.
        """
        there = is_tensor(X) and self.blocks is not HOST
        fits = there and X.ndim in (1, 2) and len(X) == self.n and not X.is_complex()
        return self.blocks.native(X if fits else self.asarray(X), self.dtype)

    def as_given(self, Y: Block, X: Any) -> Any:
        """Return a result as an array, unless it was made from a tensor X."""
        return Y if is_tensor(X) else self.blocks.host(Y)

    def asarray(self, X: Any) -> Array:
        """Return a block (n, k) or (n,) as an array in the precision of this operator.

        Raises
        ------
        ValueError, TypeError
            A block that is not of n rows, of more than two axes, or not of real numbers.
        """
        block = as_floats(X, "The block", accept_sparse=False)
        if block.ndim not in (1, 2) or block.shape[0] != self.n:
            raise ValueError(
                f"The block has shape {block.shape} but the operator has {self.n} points; pass "
                f"({self.n}, k)."
            )
        return block.astype(self.dtype, copy=False)

    # Questions beyond products. The answers here are right for any operator.

    def diagonal(self) -> Block | None:
        """Return the diagonal (n,) where it is known without products, else None.

        It is where A computes.
        """
        return None if self.matrix is None else np.asarray(self.matrix.diagonal())

    def matrix_rows(self, rows: slice | Array) -> Any:
        """Return some rows of the matrix, array or CSR (m, n); None where they take products."""
        return None if self.matrix is None else self.matrix[rows]

    def is_non_negative(self) -> bool:
        """Say whether all entries are known to be at least 0."""
        return self.matrix is not None and bool(self.matrix.min() >= 0)

    def components(self) -> Array | None:
        """Return the component of each point (n,), numbered from 0, or None where A cannot tell.

        Negligible entries join nothing.
        """
        matrix = self.matrix
        if matrix is None:
            return None
        sums = np.asarray(matrix.sum(axis=1)).ravel()
        if not sparse.issparse(matrix):
            return components_of_rows(lambda rows: matrix[rows], sums)
        if matrix.nnz and matrix.data.min() <= NEGLIGIBLE * sums.max():
            smaller = np.repeat(sums, np.diff(matrix.indptr))
            np.minimum(smaller, sums[matrix.indices], out=smaller)
            counts = matrix.data > NEGLIGIBLE * smaller  # symmetric: for either of the two rows
            csr = (counts, matrix.indices, matrix.indptr)
            matrix = sparse.csr_matrix(csr, matrix.shape, copy=True)
            matrix.eliminate_zeros()
        # The strong components of a symmetric pattern are its components, and need no transpose.
        return connected_components(matrix, directed=True, connection="strong")[1]

    def labels(self) -> Block | None:
        """Return `components` where A computes, if it knows them there, else on the host."""
        return self.components()

    def sparse_matrix(self) -> sparse.csr_matrix | None:
        """Return the matrix as CSR where it is sparse, else None; directions are not taken out."""
        matrix = self.undeflated.matrix
        return matrix if sparse.issparse(matrix) else None

    @cached_property
    def ends(self) -> tuple[Bounds, Bounds]:
        """Bounds of the spectrum from outside and from inside, by 40 Lanczos steps.

        The outer interval allows for `lanczos_margin`, and stays within the interval `spectrum`.
        """
        v = self.blocks.native(random_block(self.n, 1, "gaussian", 0)[:, 0], self.dtype)
        diagonal: list[float] = []
        beside = [0.0]
        with single_threaded_blas():  # the same bits for any number of threads
            v, previous = v / self.blocks.norm(v), 0 * v
            for _ in range(LANCZOS_STEPS):
                following = self.product(v) - beside[-1] * previous
                diagonal.append(float(v @ following))
                following -= diagonal[-1] * v
                beside.append(self.blocks.norm(following))
                if beside[-1] <= 100 * np.finfo(self.dtype).eps * max(*beside, abs(diagonal[0])):
                    break  # an invariant subspace
                v, previous = following / beside[-1], v
            ritz = eigvalsh_tridiagonal(diagonal, beside[1 : len(diagonal)])
        lowest, highest = float(ritz[0]), float(ritz[-1])
        margin = lanczos_margin(self.n, lowest, highest)
        low, high = self.spectrum
        return (max(low, lowest - margin), min(high, highest + margin)), (lowest, highest)

    def scaled_both_sides(
        self, s: Array, spectrum: Bounds, leading: Array, dtype: Any = np.float64
    ) -> Operator:
        """Return diag(s) A diag(s), whose largest eigenvalue has the eigenvector `leading` (n,).

        Where A has a form of its own for it, products by a large sparse matrix or a kernel are in
        the precision `dtype`.
        """
        return Scaled(self, s, spectrum, leading)

    def restricted(self, vertices: Array) -> Operator:
        """Return A between some of the points (m,): in a form of its own, or by products with A."""
        return Restricted(self, vertices)

    def near_order(self) -> tuple[Operator, Array]:
        """Return the operator with its points renumbered so that near points have near numbers.

        The array is the new number of each point (n,). Only a large sparse matrix is renumbered.
        """
        return self, np.arange(self.n)

    # Deflated directions. An operator has none, unless it is `Deflated`.

    n_deflated: int = 0  # their number r

    @cached_property
    def V(self) -> Array:
        """The orthonormal directions (n, r) that are taken out, as an array."""
        return np.empty((self.n, 0))

    @property
    def undeflated(self) -> Operator:
        """The operator from which they are taken."""
        return self

    def project(self, X: Any, out: Block | None = None) -> Any:
        """Return X without the directions that are taken out; X itself if there are none.

        `out` is a block for the result, and may be X, a block itself; no other operator writes to
        it.
        """
        return X

    def multiply_projected(self, X: Any) -> Any:
        """Multiply a block that has no part along V, as products by this operator have none."""
        return self @ X

    def without_V(self, X: Block, out: Block | None = None) -> Block:
        """Return a block without the directions that are taken out; X itself if there are none.

        `out` is a block for the result, and may be X; no other operator writes to it.
        """
        return X

    def product_without_V(self, X: Block) -> Block:
        """Multiply a block that has no part along V, as products by this operator have none."""
        return self.product(X)


def lanczos_margin(n: int, lowest: float, highest: float) -> float:
    """Return how far the spectrum may reach beyond the Ritz values of 40 Lanczos steps.

    From a random vector, m steps miss an end by more than a fraction e of the width of the spectrum
    with probability at most 1.648 √n exp(-√e (2m - 1)) (Kuczyński and Woźniakowski 1992), whatever
    the spectrum. The margin is that of probability 1e-6.
    """
    fraction = (np.log(1.648e6 * np.sqrt(n)) / (2 * LANCZOS_STEPS - 1)) ** 2
    margin = fraction / (1 - 2 * fraction) * (highest - lowest)
    return float(margin + 1e-6 * max(abs(lowest), abs(highest)))


class Stored(Operator):
    """Abstract base: a matrix (n, n) in memory, array or CSR."""

    def __init__(self, matrix: Any, spectrum: Bounds | None) -> None:
        shape = matrix.shape
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"The matrix has shape {shape}; pass a square one (n, n).")
        self._keep(matrix, spectrum)

    @classmethod
    def of(cls, matrix: Any, spectrum: Bounds | None = None, leading: Array | None = None) -> Self:
        """Return the operator of a matrix of the package, which is not checked."""
        made = cls.__new__(cls)
        made._keep(matrix, spectrum)
        made.leading = leading
        return made

    def _keep(self, matrix: Any, spectrum: Bounds | None) -> None:
        self.matrix, self.n, self.dtype = matrix, int(matrix.shape[0]), matrix.dtype
        if spectrum is None:
            bound = float(np.max(np.asarray(abs(matrix).sum(axis=1)), initial=0.0))
            spectrum = -bound, bound
        self.spectrum = spectrum


class Composed(Operator):
    """Abstract base: an operator made of another one, `A`, which knows device and components."""

    A: Operator

    _stored: Block = None  # what it stores itself, if anything, where A computes

    @property
    def blocks(self) -> Blocks:  # type: ignore[override]
        """The algebra of blocks where A computes."""
        return self.A.blocks

    def over(self, A: Operator) -> Composed:
        """Return the same operator made of another A, as of A on a device."""
        other = copy(self)
        other.A = A
        if self._stored is not None:
            other._stored = A.blocks.brought(self._stored, self.dtype)
        return other

    @property
    def exponent_error(self) -> float:  # type: ignore[override]
        """That of products by A."""
        return self.A.exponent_error

    def components(self) -> Array | None:
        """Return those of A."""
        return self.A.components()

    def labels(self) -> Block | None:
        """Return those of A."""
        return self.A.labels()


# Operators that any other one gives


class Scaled(Composed):
    """The operator diag(s) A diag(s).

    A product costs a product by A, and two passes over the block.

    Parameters
    ----------
    A : Operator
        The operator to scale.
    s : array-like of shape (n_samples,)
        Positive scale of each point.
    spectrum : (float, float), default=None
        Interval known to hold the spectrum; by default max(s)² times that of A.
    leading : array-like of shape (n_samples,), default=None
        The eigenvector of the largest eigenvalue, if the construction of `s` gives it.

    See Also
    --------
    Affine : A multiple of an operator plus a multiple of the identity.
    Deflated : An operator without given directions.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> A = hs.Scaled(hs.Dense(np.ones((2, 2))), np.array([1.0, 2.0]))
    >>> A @ np.eye(2)
    array([[1., 2.],
           [2., 4.]])
    """

    def __init__(
        self,
        A: Operator,
        s: Array,
        spectrum: Bounds | None = None,
        leading: Array | None = None,
    ) -> None:
        self.A, self.n, self.dtype, self.leading = A, A.n, A.dtype, leading
        self.s = as_floats(s, "s", accept_sparse=False).astype(self.dtype, copy=False)
        if self.s.shape != (self.n,):
            raise ValueError(
                f"s has shape {self.s.shape} but A has {self.n} points; pass ({self.n},)."
            )
        bound, (low, high) = float(np.max(np.abs(self.s))) ** 2, A.spectrum
        self.spectrum = spectrum or (min(0.0, low * bound), max(0.0, high * bound))
        self._stored = self.blocks.native(self.s)

    def _matmul(self, X: Block) -> Block:
        times_rows = self.blocks.times_rows
        return times_rows(self._stored, self.A.product(times_rows(self._stored, X)))

    def diagonal(self) -> Array | None:
        """Return the scaled diagonal of A (n,), if it is known."""
        of_A = self.A.diagonal()
        return None if of_A is None else of_A * self._stored**2

    def matrix_rows(self, rows: slice | Array) -> Any:
        """Return some rows (m, n), if those of A are known."""
        of_A = self.A.matrix_rows(rows)
        return None if of_A is None else scale_both_sides(of_A, self.s[rows], self.s, self.dtype)


class Restricted(Operator):
    """An operator between some of its points (m,), by products with it."""

    def __init__(self, A: Operator, vertices: Array) -> None:
        self.A, self.vertices, self.n = A, vertices, len(vertices)
        self.dtype, self.spectrum = A.dtype, A.spectrum

    def _matmul(self, X: Array) -> Array:
        wide = np.zeros((self.A.n, *X.shape[1:]), self.dtype)
        wide[self.vertices] = X
        return np.asarray((self.A @ wide)[self.vertices])


class Affine(Composed):
    """The operator scale * A + shift * I, for example the lazy walk (A + I) / 2 or I - A.

    A product costs a product by A, and a pass over the block.

    Parameters
    ----------
    A : Operator
        The operator A.
    scale : float, default=1
        Factor of A.
    shift : float, default=0
        Factor of the identity I.

    See Also
    --------
    Scaled : An operator scaled from both sides by a diagonal matrix.
    Deflated : An operator without given directions.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> L = hs.Affine(hs.Dense(np.diag([1.0, 0.25])), scale=-1.0, shift=1.0)
    >>> L @ np.ones(2), L.spectrum
    (array([0.  , 0.75]), (0.0, 2.0))
    """

    def __init__(self, A: Operator, scale: float = 1.0, shift: float = 0.0) -> None:
        self.A, self.n, self.dtype, self.scale, self.shift = A, A.n, A.dtype, scale, shift
        low, high = sorted(float(scale * end + shift) for end in A.spectrum)
        self.spectrum = low, high

    def _matmul(self, X: Block) -> Block:
        return float(self.scale) * self.A.product(X) + float(self.shift) * X


class Deflated(Composed):
    """The operator (I - VVᵀ) A (I - VVᵀ), which projects out the directions V at every product.

    A product with k columns costs a product by A, and 8 n r k operations for r directions.

    Parameters
    ----------
    A : Operator
        The operator A.
    V : array-like of shape (n_samples, n_directions) or (n_samples,)
        Orthonormal directions, usually the trivial eigenvector √π.
    spectrum : (float, float), default=None
        Interval known to hold the spectrum; by default that of A and 0.

    See Also
    --------
    Scaled : An operator scaled from both sides by a diagonal matrix.
    Affine : A multiple of an operator plus a multiple of the identity.
    sketch : Apply a filter of an operator to random columns.
    eigh : Compute the leading eigenpairs of an operator.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> A = hs.Deflated(hs.Dense(np.full((2, 2), 0.5)), np.ones(2) / np.sqrt(2))
    >>> np.allclose(A @ np.array([1.0, 0.0]), 0)
    True
    """

    def __init__(self, A: Operator, V: Array, spectrum: Bounds | None = None) -> None:
        self.A, self.n, self.dtype = A, A.n, A.dtype
        V = V if is_tensor(V) else as_floats(V, "V", accept_sparse=False)
        V = V[:, None] if V.ndim == 1 else V
        if V.ndim != 2 or V.shape[0] != self.n:
            raise ValueError(
                f"V has shape {tuple(V.shape)} but A has {self.n} points; pass ({self.n}, r)."
            )
        gram = blocks_of(V).gram(V, V)
        error = float(np.max(np.abs(gram - np.eye(len(gram))), initial=0.0))
        if not error <= 1e3 * np.finfo(self.dtype).eps:
            raise ValueError(
                f"The columns of V are not orthonormal (error {error:.1e}); pass qr(V)[0]."
            )
        self._keep(self.blocks.brought(V), spectrum)

    @classmethod
    def of(cls, A: Operator, V: Block, spectrum: Bounds | None = None) -> Deflated:
        """Return A without columns V (n, r) of the package, which are not checked."""
        made = cls.__new__(cls)
        made.A, made.n, made.dtype = A, A.n, A.dtype
        made._keep(V, spectrum)
        return made

    def _keep(self, V: Block, spectrum: Bounds | None) -> None:
        self.n_deflated = V.shape[1]
        self._stored = self.blocks.native(V, self.dtype)
        low, high = self.A.spectrum
        with_0 = (min(low, 0.0), max(high, 0.0)) if self.n_deflated else (low, high)
        self.spectrum = spectrum or with_0

    @cached_property
    def V(self) -> Array:
        """The directions (n, r), as an array."""
        return self.blocks.host(self._stored)

    @property
    def undeflated(self) -> Operator:
        """The operator from which V is taken."""
        return self.A

    def deflated(self, V: Array) -> Deflated:
        """Take more directions V (n, r) or (n,) out of A, orthonormal, and orthogonal to its own.

        Raises
        ------
        ValueError, TypeError
            Directions of another number of points, that are not orthonormal, or not numbers.
        """
        return Deflated(self.A, np.column_stack([self.V, self.asarray(V)]))

    def _matmul(self, X: Block) -> Block:
        return self.product_without_V(self.without_V(X))

    def product_without_V(self, X: Block) -> Block:
        """Multiply a block that has no part along V, as products by this operator have none."""
        Y = self.A.product(X)
        return self.without_V(Y, out=Y)

    def without_V(self, X: Block, out: Block | None = None) -> Block:
        """Return (I - VVᵀ) X; `out` may be X, to save a copy."""
        return self.blocks.project(X, self._stored, out) if self.n_deflated else X

    def project(self, X: Any, out: Block | None = None) -> Any:
        """Return (I - VVᵀ) X; `out`, a block of this precision, may be X, to save a copy.

        Raises
        ------
        ValueError, TypeError
            A block that is not of n rows, of more than two axes, or not of real numbers.
        """
        if not self.n_deflated:
            return X
        if out is not None:
            return self.without_V(X, out)
        return self.as_given(self.without_V(self.block(X)), X)

    def multiply_projected(self, X: Any) -> Any:
        """Multiply a block that has no part along V, as products by this operator have none.

        Raises
        ------
        ValueError, TypeError
            A block that is not of n rows, of more than two axes, or not of real numbers.
        """
        return self.as_given(self.product_without_V(self.block(X)), X)


class Dense(Stored):
    """A stored symmetric matrix, float32 or float64.

    A product with k columns costs 2 n² k operations and reads n² numbers. The result is bitwise the
    same for any number of threads.

    Parameters
    ----------
    matrix : array-like of shape (n_samples, n_samples)
        Symmetric. Not copied.
    spectrum : (float, float), default=None
        Interval known to hold the spectrum; by default ± the largest absolute row sum.

    See Also
    --------
    Sparse : A stored symmetric sparse matrix.
    Kernel : The Gaussian kernel of points, never stored.
    LowRank : A product F Fᵀ, never formed.
    TorchDense : A stored symmetric matrix on a device of torch.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> A = hs.Dense(np.array([[0.5, 0.5], [0.5, 0.5]]))
    >>> A @ np.array([1.0, 3.0]), A.spectrum
    (array([2., 2.]), (-1.0, 1.0))
    """

    def __init__(self, matrix: Any, spectrum: Bounds | None = None) -> None:
        super().__init__(as_floats(matrix, "The matrix", accept_sparse=False), spectrum)

    def _matmul(self, X: Array) -> Array:
        Y = np.empty_like(X)
        for_each_tile(lambda rows: np.matmul(self.matrix[rows], X, out=Y[rows]), self.n)
        return Y


class Sparse(Stored):
    """A stored symmetric sparse matrix, in CSR form.

    A product with k columns costs 2 nnz k operations. From 16,384 rows on, compiled loops on all
    cores make it, with the same bits for any number of them. Its speed is then that of memory, and
    depends on whether points near in the matrix are near in their order (`near_order`).

    Parameters
    ----------
    matrix : {array-like, sparse matrix} of shape (n_samples, n_samples)
        Symmetric; it is converted to CSR if needed.
    spectrum : (float, float), default=None
        Interval known to hold the spectrum; by default ± the largest absolute row sum.
    leading : array-like of shape (n_samples,), default=None
        The eigenvector of the largest eigenvalue, if it is known.

    See Also
    --------
    Dense : A stored symmetric matrix.
    LinearMap : A symmetric SciPy linear operator.
    TorchSparse : A stored symmetric sparse matrix on a device of torch.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, heatsketch as hs
    >>> A = hs.Sparse(scipy.sparse.diags([2.0, 3.0]))
    >>> A @ np.ones((2, 1))
    array([[2.],
           [3.]])
    """

    def __init__(
        self, matrix: Any, spectrum: Bounds | None = None, leading: Array | None = None
    ) -> None:
        super().__init__(sparse.csr_matrix(as_floats(matrix, "The matrix")), spectrum)
        self.leading = leading

    def _matmul(self, X: Array) -> Array:
        return multiply(self.matrix, X)

    def restricted(self, vertices: Array) -> Sparse:
        """Return the matrix between some of the points."""
        return Sparse.of(self.matrix[vertices][:, vertices], self.spectrum)

    def scaled_both_sides(
        self, s: Array, spectrum: Bounds, leading: Array, dtype: Any = np.float64
    ) -> Operator:
        """Scale entry by entry; a large matrix is kept in the precision `dtype`."""
        dtype = dtype if is_large(self.n) else np.float64
        return Sparse.of(scale_both_sides(self.matrix, s, s, dtype), spectrum, leading)

    def near_order(self) -> tuple[Operator, Array]:
        """Number the points by reverse Cuthill-McKee, if the matrix does not stay in the cache."""
        if not is_large(self.n):
            return super().near_order()
        order = reverse_cuthill_mckee(self.matrix, symmetric_mode=True)
        return Sparse.of(permuted(self.matrix, order), self.spectrum), inverse_permutation(order)


class LowRank(Operator):
    """F Fᵀ for a stored factor F with r columns: positive semidefinite, never formed.

    A product with k columns costs 4 n r k operations, or 4 nnz k for a sparse factor.

    Parameters
    ----------
    factor : {array-like, sparse matrix} of shape (n_samples, n_columns)
        The factor F. A sparse factor may have any number of columns, for example those of a table.
    spectrum : (float, float), default=None
        Interval known to hold the spectrum; by default (0, ‖F‖²_F).

    See Also
    --------
    Dense : A stored symmetric matrix.
    LinearMap : A symmetric SciPy linear operator.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.LowRank(np.array([[1.0], [2.0]])) @ np.array([1.0, 1.0])
    array([3., 6.])
    """

    def __init__(self, factor: Any, spectrum: Bounds | None = None) -> None:
        factor = as_floats(factor, "The factor")
        if factor.ndim != 2:
            raise ValueError(f"The factor has shape {factor.shape}; pass (n, r).")
        self.factor, self.n, self.dtype = factor, factor.shape[0], factor.dtype
        entries = factor.data if sparse.issparse(factor) else factor
        self.spectrum = spectrum or (0.0, float(np.sum(entries.astype(float) ** 2)))

    def _matmul(self, X: Array) -> Array:
        return multiply(self.factor, multiply(self._transposed, X))

    @cached_property
    def _transposed(self) -> Any:
        return self.factor.T.tocsr() if sparse.issparse(self.factor) else self.factor.T

    def diagonal(self) -> Array:
        """Return the squared lengths of the rows of F (n,)."""
        return np.asarray(row_norms(self.factor, squared=True))

    def matrix_rows(self, rows: slice | Array) -> Any:
        """Return some rows of F Fᵀ, array or CSR (m, n)."""
        return self.factor[rows] @ self._transposed

    def is_non_negative(self) -> bool:
        """Say whether F has no negative entry."""
        return self.factor.size == 0 or bool(self.factor.min() >= 0)

    def components(self) -> Array | None:
        """Join rows by the columns they share; with signs, products may cancel: None."""
        if not (sparse.issparse(self.factor) and self.is_non_negative()):
            return None
        rows = sparse.csr_matrix(self.factor != 0)
        both_sides = sparse.bmat([[None, rows], [rows.T, None]], format="csr")
        labels = connected_components(both_sides, directed=False)[1][: self.n]
        return np.unique(labels, return_inverse=True)[1]  # columns without rows are no component


class LinearMap(Operator):
    """A symmetric SciPy `LinearOperator`.

    A product costs one call of its `matmat`, or of `matvec` for each column.

    Parameters
    ----------
    products : scipy.sparse.linalg.LinearOperator of shape (n_samples, n_samples)
        Symmetric and real.
    spectrum : (float, float), default=None
        Interval known to hold the spectrum. By default it is found by 40 Lanczos steps, which leave
        an eigenvalue outside with probability 1e-6; the interval is then 6 % too wide at each end.

    Raises
    ------
    ValueError
        Not square, complex, not finite, or not symmetric (tested with two random vectors).

    See Also
    --------
    Dense : A stored symmetric matrix.
    Sparse : A stored symmetric sparse matrix.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> from scipy.sparse.linalg import aslinearoperator
    >>> A = hs.LinearMap(aslinearoperator(np.diag([2.0, 1.0])), spectrum=(0.0, 2.0))
    >>> A @ np.ones(2)
    array([2., 1.])
    """

    def __init__(self, products: LinearOperator, spectrum: Bounds | None = None) -> None:
        self.products, shape, dtype = products, products.shape, products.dtype
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
            raise ValueError(f"The LinearOperator has shape {shape}; pass a square one (n, n).")
        if np.dtype(dtype or float).kind not in "fiub":
            raise ValueError(f"The LinearOperator has dtype {dtype}; pass one of real numbers.")
        self.n = int(shape[0])
        self.dtype = np.dtype(np.float32 if dtype == np.float32 else np.float64)
        # xᵀ(Ay) = yᵀ(Ax) up to rounding, for random x and y.
        X = random_block(self.n, 2, "gaussian", 1).astype(self.dtype)
        Y = self @ X
        if not np.isfinite(Y).all():
            raise ValueError("Products of the LinearOperator contain NaN or infinity.")
        error = abs(float(X[:, 0] @ Y[:, 1] - X[:, 1] @ Y[:, 0]))
        size = float(np.linalg.norm(X, axis=0) @ np.linalg.norm(Y, axis=0)[::-1])
        if error > 1e4 * float(np.finfo(self.dtype).eps) * size:
            raise ValueError(
                f"The LinearOperator is not symmetric (xᵀAy and yᵀAx differ by {error:.2g} for "
                "random x and y); pass (A + A.T) / 2 if that is what you mean."
            )
        self.spectrum = spectrum or (-np.inf, np.inf)
        self.spectrum = spectrum or self.ends[0]

    def _matmul(self, X: Array) -> Array:
        return np.asarray(self.products @ X, dtype=self.dtype)
