"""A stored symmetric matrix."""

from typing import Any

import numpy as np

from heatsketch._tiles import for_each_tile
from heatsketch._typing import Array
from heatsketch._validation import as_floats
from heatsketch.operators.operator import Bounds, Stored


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
