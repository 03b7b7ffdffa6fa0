"""A symmetric matrix that is stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heatsketch._array import for_each_tile
from heatsketch._checks import real_array
from heatsketch._typing import Array
from heatsketch.operators.base import OfMatrix
from heatsketch.operators.components import components_of_links, join_components, strongest_links
from heatsketch.operators.properties import component_labels, stored_matrix


@dataclass(frozen=True, eq=False)
class Dense(OfMatrix):
    """A stored symmetric matrix (n, n), float32 or float64.

    Cost of a product: 2 n² k operations, n² numbers read. The result is bitwise the same for any
    number of threads.

    Parameters
    ----------
    matrix : array (n, n)
        Symmetric. Not copied.
    spectrum : (float, float), optional
        Interval known to hold the spectrum; by default ± the largest absolute row sum.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> A = hs.Dense(np.array([[0.5, 0.5], [0.5, 0.5]]))
    >>> A @ np.array([1.0, 3.0]), A.spectrum
    (array([2., 2.]), (-1.0, 1.0))
    """

    matrix: Array
    spectrum: tuple[float, float] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        matrix = real_array(self.matrix, "The matrix")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"The matrix has shape {matrix.shape}; pass a square one (n, n).")
        object.__setattr__(self, "matrix", matrix)
        if self.spectrum is None:
            bound = float(np.max(np.abs(matrix).sum(axis=1), initial=0.0))
            object.__setattr__(self, "spectrum", (-bound, bound))

    def __matmul__(self, X: Array) -> Array:
        """Multiply a block: (n, k) -> (n, k)."""
        X = self.asarray(X)
        Y = np.empty_like(X)

        def work(rows: slice) -> None:
            Y[rows] = self.matrix[rows] @ X

        for_each_tile(work, self.n)
        return Y


@stored_matrix.register
def _(A: Dense) -> Array:
    return A.matrix


@component_labels.register
def _(A: Dense) -> Array:
    return join_components(A, components_of_links(*strongest_links(A.matrix)))
