"""New points among the training points: the record of one search."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.backend import blocks_of
from heatsketch.operators.csr import largest_of_rows, scale_both_sides

N_NEAREST = 15  # training points, or more where several are equally near, that pull at a new point


@dataclass(frozen=True, eq=False)
class Near:
    """The training points near to new points, found by one search for all that asks for them.

    Attributes
    ----------
    affinities : array or CSR matrix (m, n)
        K(x, x_j), on the host or a device, where the search was made.
    pulls : function
        Returns K(x, x_j), CSR (m, n), infinite at a training point.
    scaling : Scaling
        Its `new_rows` turn affinities into rows of A.
    """

    affinities: Any
    pulls: Callable[[], Any]
    scaling: Any

    def rows(self, dtype: Any) -> Any:
        """Return the rows a(x, x_j) of A, array or CSR (m, n)."""
        return self.scaling.new_rows(self.affinities, dtype)

    def attraction(self) -> Any:
        """Return the pulls of the 15 nearest, CSR (m, n); a point that counts w times pulls so."""
        pulls, weights = self.pulls(), self.scaling.weights
        if weights is not None:
            blocks = blocks_of(pulls)
            once = np.ones(pulls.shape[0])
            once, weights = blocks.native(once), blocks.native(weights)
            pulls = scale_both_sides(pulls, once, weights, pulls.data.dtype)
        return largest_of_rows(pulls, N_NEAREST)


def infinite_at_0(K: Array, distances: Array, xp: Any = np) -> Array:
    """Return K, infinite at distance 0."""
    return xp.where(distances > 0, K, np.inf)
