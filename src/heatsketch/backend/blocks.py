"""What the algebra of blocks is in every place."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from heatsketch._tensors import on_host
from heatsketch._typing import Array

Block: TypeAlias = Any  # array or tensor (n, k) or (n,)


class Place:
    """Abstract base: what is the same in every place."""

    xp: Any  # the functions of arrays or tensors here
    products_are_cheap: bool  # next to a coarser graph, which is made on the host

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

    # Sums over entries of a CSR matrix (n, n) and over pairs of places Y (n, c)

    def differences(self: Any, Y: Block, matrix: Any) -> tuple[Block, Block]:
        """Return y_i - y_j (c, nnz) over the entries of a matrix, and their squared lengths."""
        xp, row = self.xp, self.row_numbers(matrix)
        columns = xp.stack(list(Y.T))
        differences = columns[:, row] - columns[:, matrix.indices]
        return differences, xp.square(differences).sum(axis=0)

    def forces(
        self: Any,
        Y: Block,
        matrix: Any,
        weights: Callable[[Block, Block], Block],
        loop: str,
        *numbers: Any,
    ) -> Block:
        """Return Σ_j weights(|y_i - y_j|², value) (y_i - y_j) (n, c) over entries of a matrix.

        `loop` of `pair_loops` computes the same from the numbers, where compiled loops are faster.
        """
        differences, squares = self.differences(Y, matrix)
        differences *= weights(squares, matrix.data)
        return self.xp.stack([self.sums_by_row(each, matrix) for each in differences], axis=1)

    def all_repulsion(
        self: Any, Y: Block, s: float, mass: Block | None = None
    ) -> tuple[Block, float]:
        """Return Σ_j q_ij² (y_i - y_j) / s (n, c), and Σ q over all i != j, pair by pair.

        q = 1 / (1 + |y_i - y_j|² / s²). With `mass` (n,) a pair counts m_i m_j times.
        """
        differences = [(column[:, None] - column) / s for column in Y.T]
        q = 1 / (1 + sum(d**2 for d in differences))
        # Sums of products, not matrix products, which autocast and TensorFloat-32 shorten.
        if mass is None:
            forces = [(q**2 * d).sum(axis=1) for d in differences]
            return self.xp.stack(forces, axis=1), float(q.sum()) - len(Y)
        forces = [mass * (mass * q**2 * d).sum(axis=1) for d in differences]
        total = (mass * (mass * q).sum(axis=1)).sum() - (mass**2).sum()
        return self.xp.stack(forces, axis=1), float(total)
