"""Operators scaled from both sides by a diagonal matrix."""

from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch._validation import as_floats
from heatsketch.backend import Block
from heatsketch.operators.csr import scale_both_sides
from heatsketch.operators.operator import Bounds, Composed, Operator


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


def scaled_operator(
    A: Operator, s: Array, spectrum: Bounds, leading: Array, dtype: Any = np.float64
) -> Operator:
    """Return diag(s) A diag(s), whose largest eigenvalue has the eigenvector `leading` (n,).

    In the form that A has for it, else `Scaled`. Products by a large sparse matrix or a kernel are
    then in the precision `dtype`.
    """
    own = A.scaled_both_sides(s, spectrum, leading, dtype)
    return Scaled(A, s, spectrum, leading) if own is None else own
