"""A symmetric matrix of low rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heatsketch._typing import Array
from heatsketch.operators.base import check_block


@dataclass(frozen=True, eq=False)
class LowRank:
    """F Fᵀ for a stored factor F (n, r): positive semidefinite, never formed.

    Cost of a product: 4 n r k operations.

    Parameters
    ----------
    factor : array (n, r)
    spectrum : (float, float), optional
        Interval known to hold the spectrum; by default (0, ‖F‖²_F).

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.LowRank(np.array([[1.0], [2.0]])) @ np.array([1.0, 1.0])
    array([3., 6.])
    """

    factor: Array
    spectrum: tuple[float, float] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        factor = np.asarray(self.factor)
        if factor.dtype not in (np.float32, np.float64):
            factor = factor.astype(np.float64)
        if factor.ndim != 2:
            raise ValueError(f"The factor has shape {factor.shape}; pass (n, r).")
        object.__setattr__(self, "factor", factor)
        if self.spectrum is None:
            object.__setattr__(self, "spectrum", (0.0, float(np.sum(factor.astype(float) ** 2))))

    @property
    def n(self) -> int:
        """Number of points."""
        return self.factor.shape[0]

    @property
    def dtype(self) -> np.dtype:
        """Precision of products."""
        return self.factor.dtype

    def asarray(self, X: Array) -> Array:
        """Return X as a NumPy block (n, k) of this precision."""
        return check_block(X, self.n, self.dtype)

    def __matmul__(self, X: Array) -> Array:
        """Multiply a block: (n, k) -> (n, k)."""
        return self.factor @ (self.factor.T @ self.asarray(X))
