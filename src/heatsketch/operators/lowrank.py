"""A symmetric matrix of low rank, or the product of a sparse table with its transpose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._checks import real_array
from heatsketch._typing import Array
from heatsketch.operators.base import OnHost
from heatsketch.operators.components import components_of_table
from heatsketch.operators.properties import component_labels, diagonal, is_non_negative
from heatsketch.operators.sparse import multiply, real_csr


@dataclass(frozen=True, eq=False)
class LowRank(OnHost):
    """F Fᵀ for a stored factor F (n, r): positive semidefinite, never formed.

    Cost of a product: 4 n r k operations, of a sparse factor 4 nnz k.

    Parameters
    ----------
    factor : array or SciPy sparse matrix (n, r)
        A sparse factor may have any number of columns: the rows of a table, say.
    spectrum : (float, float), optional
        Interval known to hold the spectrum; by default (0, ‖F‖²_F).

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.LowRank(np.array([[1.0], [2.0]])) @ np.array([1.0, 1.0])
    array([3., 6.])
    """

    factor: Any
    spectrum: tuple[float, float] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        is_sparse = sparse.issparse(self.factor)
        factor = real_csr(self.factor) if is_sparse else real_array(self.factor, "The factor")
        if factor.ndim != 2:
            raise ValueError(f"The factor has shape {factor.shape}; pass (n, r).")
        object.__setattr__(self, "factor", factor)
        if self.spectrum is None:
            entries = factor.data if is_sparse else factor
            object.__setattr__(self, "spectrum", (0.0, float(np.sum(entries.astype(float) ** 2))))

    @property
    def n(self) -> int:
        """Number of points."""
        return self.factor.shape[0]

    @property
    def dtype(self) -> np.dtype:
        """Precision of products."""
        return self.factor.dtype

    def __matmul__(self, X: Array) -> Array:
        """Multiply a block: (n, k) -> (n, k)."""
        return multiply(self.factor, multiply(self._transposed, self.asarray(X)))

    @cached_property
    def _transposed(self) -> Any:
        return self.factor.T.tocsr() if sparse.issparse(self.factor) else self.factor.T


@diagonal.register
def _(A: LowRank) -> Array:
    squares = A.factor.multiply(A.factor) if sparse.issparse(A.factor) else A.factor**2
    return np.asarray(squares.sum(axis=1)).ravel()


@is_non_negative.register
def _(A: LowRank) -> bool:
    entries = A.factor.data if sparse.issparse(A.factor) else A.factor
    return entries.size == 0 or bool(entries.min() >= 0)


@component_labels.register
def _(A: LowRank) -> Array | None:
    """Rows are joined by the columns they share; with signs, products may cancel."""
    known = sparse.issparse(A.factor) and is_non_negative(A)
    return components_of_table(A.factor) if known else None
