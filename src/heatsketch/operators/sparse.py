"""A stored symmetric sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from heatsketch._typing import Array
from heatsketch._validation import as_floats
from heatsketch.operators.csr import (
    inverse_permutation,
    is_large,
    multiply,
    permuted,
    scale_both_sides,
)
from heatsketch.operators.operator import Bounds, Operator, Stored


class Sparse(Stored):
    """A stored symmetric sparse matrix, in CSR form.

    A product with k columns costs 2 nnz k operations. From 16,384 rows on, compiled loops on all
    cores make it, with the same bits for any number of them. Its speed is then that of memory, and
    depends on whether points near in the matrix are near in their order (`near_order`).

    Parameters
    ----------
    matrix : {array-like, sparse matrix} of shape (n_samples, n_samples)
        Symmetric; it is converted to CSR if needed.
    spectrum : (float, float), default=None
        Interval known to hold the spectrum; by default ± the largest absolute row sum.
    leading : array-like of shape (n_samples,), default=None
        The eigenvector of the largest eigenvalue, if it is known.

    See Also
    --------
    Dense : A stored symmetric matrix.
    LinearMap : A symmetric SciPy linear operator.
    TorchSparse : A stored symmetric sparse matrix on a device of torch.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, heatsketch as hs
    >>> A = hs.Sparse(scipy.sparse.diags([2.0, 3.0]))
    >>> A @ np.ones((2, 1))
    array([[2.],
           [3.]])
    """

    def __init__(
        self, matrix: Any, spectrum: Bounds | None = None, leading: Array | None = None
    ) -> None:
        super().__init__(sparse.csr_matrix(as_floats(matrix, "The matrix")), spectrum)
        self.leading = leading

    def _matmul(self, X: Array) -> Array:
        return multiply(self.matrix, X)

    def restricted(self, vertices: Array) -> Sparse:
        """Return the matrix between some of the points."""
        return Sparse(self.matrix[vertices][:, vertices], self.spectrum)

    def scaled_both_sides(
        self, s: Array, spectrum: Bounds, leading: Array, dtype: Any = np.float64
    ) -> Operator:
        """Scale entry by entry; a large matrix is kept in the precision `dtype`."""
        dtype = dtype if is_large(self.n) else np.float64
        return Sparse(scale_both_sides(self.matrix, s, s, dtype), spectrum, leading)

    def near_order(self) -> tuple[Operator, Array]:
        """Number the points by reverse Cuthill-McKee, if the matrix does not stay in the cache."""
        if not is_large(self.n):
            return super().near_order()
        order = reverse_cuthill_mckee(self.matrix, symmetric_mode=True)
        return Sparse(permuted(self.matrix, order), self.spectrum), inverse_permutation(order)
