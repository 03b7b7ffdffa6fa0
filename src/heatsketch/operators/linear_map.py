"""A linear map that is given by its products alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator

from heatsketch._array import random_block
from heatsketch._typing import Array
from heatsketch.operators.base import OnHost
from heatsketch.operators.lanczos import spectrum_ends


@dataclass(frozen=True, eq=False)
class LinearMap(OnHost):
    """A symmetric SciPy `LinearOperator` (n, n).

    Parameters
    ----------
    products : scipy.sparse.linalg.LinearOperator
        Symmetric and real. Cost of a product: that of its `matmat`, or of `matvec` for each column.
    spectrum : (float, float), optional
        Interval known to hold the spectrum. By default it is found by 40 Lanczos steps, which leave
        an eigenvalue outside with probability 1e-6; the interval is then 6 % too wide at each end.

    Raises
    ------
    ValueError
        Not square, complex, not finite, or not symmetric, as far as two random vectors tell.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> from scipy.sparse.linalg import aslinearoperator
    >>> A = hs.LinearMap(aslinearoperator(np.diag([2.0, 1.0])), spectrum=(0.0, 2.0))
    >>> A @ np.ones(2)
    array([2., 1.])
    """

    products: LinearOperator
    spectrum: tuple[float, float] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        shape, kind = self.products.shape, np.dtype(self.products.dtype or float).kind
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
            raise ValueError(f"The LinearOperator has shape {shape}; pass a square one (n, n).")
        if kind not in "fiub":
            raise ValueError(
                f"The LinearOperator has dtype {self.products.dtype}; pass one of real numbers."
            )
        _check_symmetric(self)
        if self.spectrum is None:
            object.__setattr__(self, "spectrum", (-np.inf, np.inf))
            object.__setattr__(self, "spectrum", spectrum_ends(self)[0])

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.products.shape[0])

    @property
    def dtype(self) -> np.dtype:
        """Precision of products."""
        single = self.products.dtype == np.float32
        return np.dtype(np.float32 if single else np.float64)

    def __matmul__(self, X: Array) -> Array:
        """Multiply a block: (n, k) -> (n, k)."""
        return np.asarray(self.products @ self.asarray(X), dtype=self.dtype)


def _check_symmetric(A: LinearMap) -> None:
    """Raise unless xᵀ(Ay) = yᵀ(Ax) up to rounding, for random x and y."""
    X = random_block(A.n, 2, "gaussian", 1).astype(A.dtype)
    Y = A @ X
    if not np.isfinite(Y).all():
        raise ValueError("Products of the LinearOperator contain NaN or infinity.")
    error = abs(float(X[:, 0] @ Y[:, 1] - X[:, 1] @ Y[:, 0]))
    size = float(np.linalg.norm(X, axis=0) @ np.linalg.norm(Y, axis=0)[::-1])
    if error > 1e4 * float(np.finfo(A.dtype).eps) * size:
        raise ValueError(
            f"The LinearOperator is not symmetric (xᵀAy and yᵀAx differ by {error:.2g} for random "
            "x and y); pass (A + A.T) / 2 if that is what you mean."
        )
