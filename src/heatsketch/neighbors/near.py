"""New points among the training points: the record of one search."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.backend import blocks_of
from heatsketch.operators.csr import largest_of_rows, scale_both_sides

N_NEAREST = 15  # training points, or more where several are equally near, that pull at a new point
_NEARER = 0.01  # τ, the u at which a training point pulls twice as much as K says


@dataclass(frozen=True, eq=False)
class Near:
    """The training points near to new points, found by one search for all that asks for them.

    Attributes
    ----------
    affinities : array or CSR matrix (m, n)
        K(x, x_j), on the host or a device, where the search was made.
    pulls : function
        Returns about K(x, x_j), CSR (m, n), infinite at a training point.
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


def pulls_of(K: Array, u: Array, xp: Any = np) -> Array:
    """Return K (1 + τ / u), infinite where u = 0; u: squared distances in units of local scales.

    So the place of a new point tends to that of a training point to which it comes near, and else
    hardly changes: neighbours have u about 1.
    """
    with np.errstate(divide="ignore"):
        return xp.where(u > 0, K * (1 + _NEARER / u), np.inf)


def pull_slopes(u: Array, apart: Array) -> Array:
    """Return the derivatives (j, d) of log(1 + τ / u) by x; `apart` is x - x_j."""
    squares = np.square(apart).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        factors = -2 * _NEARER / ((u + _NEARER) * squares)
    return np.where(squares > 0, factors, 0.0)[:, None] * apart
