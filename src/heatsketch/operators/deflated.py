"""Operators without given directions."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from heatsketch._tensors import is_tensor
from heatsketch._typing import Array
from heatsketch._validation import as_floats
from heatsketch.backend import Block, blocks_of
from heatsketch.operators.operator import Bounds, Composed, Operator


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
        self.n_deflated = len(gram)
        self._stored = self.blocks.native(V, self.dtype)
        low, high = A.spectrum
        self.spectrum = spectrum or ((min(low, 0.0), max(high, 0.0)) if len(gram) else (low, high))

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
        return self.multiply_projected(self.project(X))

    def multiply_projected(self, X: Any) -> Any:
        """Multiply a block that has no part along V, as products by this operator have none.

        Raises
        ------
        ValueError, TypeError
            A block that is not of n rows, of more than two axes, or not of real numbers.
        """
        Y = self.A @ self.block(X)
        return self.as_given(self.project(Y, out=Y), X)

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
            return self.blocks.project(X, self._stored, out)
        return self.as_given(self.blocks.project(self.block(X), self._stored), X)
