"""Symmetric operators on n points, the form in which filters, eigen-solver and estimators see data.

The base class has every question that can be asked of an operator, with answers that are right for
any; a class that knows more overrides them. Each kind stands in a file of its own, but for the two
that some of these answers are: `Scaled` and `Restricted`.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigvalsh_tridiagonal
from scipy.sparse.csgraph import connected_components

from heatsketch._random import random_block
from heatsketch._tensors import is_tensor
from heatsketch._tiles import single_threaded_blas
from heatsketch._typing import Array
from heatsketch._validation import as_floats
from heatsketch.backend import HOST, Block, Blocks
from heatsketch.operators.components import NEGLIGIBLE, components_of_rows
from heatsketch.operators.csr import scale_both_sides

Bounds = tuple[float, float]

LANCZOS_STEPS = 40  # miss an end of the spectrum by 5-7 % of its width (probability 1e-6)


class Operator:
    """A symmetric linear map on n points; a new one sets three attributes and writes `_matmul`.

    A block is where products are computed: an array on the host, or a tensor on a device. Arrays
    are moved there and their products back. `blocks` has the algebra between two products.

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
        block = self.block(X)
        Y = self._matmul(block)
        if isinstance(Y, np.ndarray) and np.may_share_memory(Y, block):
            Y = Y.copy()  # as of a permutation; callers write to products
        return self.as_given(Y, X)

    def _matmul(self, X: Block) -> Block:
        """Multiply a block that `block` has returned."""
        raise NotImplementedError(f"{type(self).__name__} has no products; write its _matmul.")

    def block(self, X: Any) -> Block:
        """Return an array or tensor (n, k) or (n,) as a block: where A computes, in its precision.

        Raises
        ------
        ValueError, TypeError
            As in `asarray`.
        """
        fits = is_tensor(X) and X.ndim in (1, 2) and len(X) == self.n and not X.is_complex()
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
        v = self.block(random_block(self.n, 1, "gaussian", 0)[:, 0])
        diagonal: list[float] = []
        beside = [0.0]
        with single_threaded_blas():  # the same bits for any number of threads
            v, previous = v / self.blocks.norm(v), 0 * v
            for _ in range(LANCZOS_STEPS):
                following = self @ v - beside[-1] * previous
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
        self.matrix, self.n, self.dtype = matrix, int(shape[0]), matrix.dtype
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
            other._stored = A.blocks.native(self._stored, self.dtype)
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
        return times_rows(self._stored, self.A @ times_rows(self._stored, X))

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
