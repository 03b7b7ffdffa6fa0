"""A product F Fᵀ of a stored factor F."""

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.utils.extmath import row_norms

from heatsketch._typing import Array
from heatsketch._validation import as_floats
from heatsketch.operators.csr import multiply
from heatsketch.operators.operator import Bounds, Operator


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
