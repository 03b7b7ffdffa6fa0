"""Symmetric linear operators of SciPy."""

import numpy as np
from scipy.sparse.linalg import LinearOperator

from heatsketch._random import random_block
from heatsketch._typing import Array
from heatsketch.operators.operator import Bounds, Operator


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
