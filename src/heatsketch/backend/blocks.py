"""What the algebra of blocks is in every place."""

from typing import Any, TypeAlias

import numpy as np

from heatsketch._tensors import on_host
from heatsketch._typing import Array

Block: TypeAlias = Any  # array or tensor (n, k) or (n,)


class Place:
    """Abstract base: what is the same in every place."""

    xp: Any  # the functions of arrays or tensors here

    def host(self, X: Block) -> Array:
        """Return a block as an array."""
        return np.asarray(on_host(X))

    def row_numbers(self: Any, matrix: Any) -> Block:
        """Return the row (nnz,) of each entry of a CSR matrix."""
        return self.repeated(self.arange(matrix.shape[0]), matrix)

    def times_rows(self, s: Block, X: Block) -> Block:
        """Return diag(s) X, s (n,) in this place."""
        return (s if X.ndim == 1 else s[:, None]) * X

    def norm(self, X: Block) -> float:
        """Return the length of a vector, or the Frobenius norm of a block, in its precision."""
        return float(self.xp.linalg.norm(X))

    def norms(self, X: Block) -> Array:
        """Return the lengths of the columns (k,), on the host, in the precision of X."""
        return self.host(self.xp.linalg.norm(X, axis=0))
