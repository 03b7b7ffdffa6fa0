"""A symmetric sparse matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch.operators.base import check_block


@dataclass(frozen=True, eq=False)
class Sparse:
    """A stored symmetric sparse matrix (n, n), in CSR form.

    Cost of a product: 2 nnz k operations.

    Parameters
    ----------
    matrix : SciPy sparse matrix or array (n, n)
        Symmetric; converted to CSR where it is not.
    spectrum : (float, float), optional
        Interval known to hold the spectrum; by default ± the largest absolute row sum.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, heatsketch as hs
    >>> A = hs.Sparse(scipy.sparse.diags([2.0, 3.0]))
    >>> A @ np.ones((2, 1))
    array([[2.],
           [3.]])
    """

    matrix: sparse.csr_matrix
    spectrum: tuple[float, float] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        matrix = sparse.csr_matrix(self.matrix)
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"The matrix has shape {matrix.shape}; pass a square one (n, n).")
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
        object.__setattr__(self, "matrix", matrix)
        if self.spectrum is None:
            bound = float(np.max(np.asarray(abs(matrix).sum(axis=1)), initial=0.0))
            object.__setattr__(self, "spectrum", (-bound, bound))

    @property
    def n(self) -> int:
        """Number of points."""
        return self.matrix.shape[0]

    @property
    def dtype(self) -> np.dtype:
        """Precision of products."""
        return self.matrix.dtype

    def asarray(self, X: Array) -> Array:
        """Return X as a NumPy block (n, k) of this precision."""
        return check_block(X, self.n, self.dtype)

    def __matmul__(self, X: Array) -> Array:
        """Multiply a block: (n, k) -> (n, k)."""
        return self.matrix @ self.asarray(X)
