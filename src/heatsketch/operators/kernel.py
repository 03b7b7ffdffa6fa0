"""The Gaussian kernel of points, made on the fly in tiles: n x n numbers are never stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from heatsketch._array import Frame, for_each_tile, row_tiles
from heatsketch._checks import check_number, check_points
from heatsketch._typing import Array, Points
from heatsketch.operators.base import check_block

EXPONENT_BOUND = 1e-8  # the largest error of |x-y|²/ε we accept from the Gram form
_TILE_ROWS, _TILE_COLUMNS = 512, 2048  # 8 MB of float64: a tile stays in the outer cache


def squared_norms(points: Points) -> Array:
    """Return |x|² for each row (m,)."""
    if sparse.issparse(points):
        return np.asarray(points.multiply(points).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", points, points)


def exponent_error(points: Points, smallest_epsilon: float) -> float:
    """Bound the error of |x-y|²/ε when it is computed as (|x|² + |y|² - 2xy)/ε in float64."""
    largest = float(np.max(squared_norms(points), initial=0.0))
    if largest == 0.0:
        return 0.0
    with np.errstate(divide="ignore", over="ignore"):
        return float(8 * np.finfo(float).eps * np.divide(largest, smallest_epsilon))


def squared_distances(x: Points, y: Points, direct: bool) -> Array:
    """Return |x_i - y_j|² (m, n), from explicit differences or the Gram form."""
    if direct:
        return cdist(x, y, "sqeuclidean")
    product = x @ y.T
    block = np.asarray(product.toarray() if sparse.issparse(product) else product)
    block *= -2.0
    block += squared_norms(x)[:, None]
    block += squared_norms(y)
    return np.maximum(block, 0.0, out=block)


def gaussian_block(x: Points, y: Points, s_x: Array, s_y: Array, direct: bool) -> Array:
    """Return exp(-|x_i - y_j|² / (s_i s_j)), (m, n)."""
    block = squared_distances(x, y, direct)
    block /= -s_x[:, None]
    block /= s_y
    return np.exp(block, out=block)


@dataclass(frozen=True, eq=False)
class Kernel:
    """The Gaussian kernel K_ij = exp(-|x_i - x_j|² / ε), or with ε_ij = s_i s_j, made in tiles.

    Points are scaled by a power of two and centred first. Distances come from the Gram form where
    the error this makes in the exponent is below 1e-8, else from explicit differences (about ten
    times slower); `exponent_error` holds the bound.

    Cost of a product: 2 n² (d + k) operations and n² exponentials; memory O(n (d + k)).

    Parameters
    ----------
    points : array or CSR matrix (n, d)
    epsilon : float or array (n,)
        In squared data units. An array gives s with ε_ij = s_i s_j (self-tuning scales).

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> K = hs.Kernel(np.array([[0.0], [1.0]]), epsilon=1.0)
    >>> np.round(K @ np.eye(2), 4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    points: Points
    epsilon: float | Array
    exponent_error: float = field(init=False)
    _frame: Frame = field(init=False, repr=False)
    scaled_points: Points = field(init=False, repr=False)
    scaled_scales: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        X = check_points(self.points, "points", min_rows=1)
        frame = Frame.of(X)
        derived: dict[str, Any] = {
            "_frame": frame,
            "scaled_points": frame(X),
            "scaled_scales": self._local_scales(frame),
        }
        smallest = float(np.min(derived["scaled_scales"])) ** 2
        derived["exponent_error"] = exponent_error(derived["scaled_points"], smallest)
        for name, value in derived.items():
            object.__setattr__(self, name, value)
        if sparse.issparse(X) and self.exponent_error > EXPONENT_BOUND:
            raise ValueError(
                f"The exponent of sparse points this large next to epsilon is off by "
                f"{self.exponent_error:.0e}; pass a larger epsilon, or X.toarray()."
            )

    def _local_scales(self, frame: Frame) -> Array:
        n = self.points.shape[0]
        if np.ndim(self.epsilon) == 0:
            epsilon = check_number(self.epsilon, "epsilon", low=0, open_low=True)
            return np.full(n, np.sqrt(frame.squared(epsilon)))
        s = np.asarray(self.epsilon, dtype=float)
        if s.shape != (n,) or not (np.isfinite(s).all() and (s > 0).all()):
            raise ValueError(
                f"epsilon has shape {s.shape}; pass a positive number or {n} positive local scales."
            )
        return np.ldexp(s, -frame.exponent)

    @property
    def n(self) -> int:
        """Number of points."""
        return self.points.shape[0]

    @property
    def dtype(self) -> np.dtype:
        """Precision of products: always float64."""
        return np.dtype(np.float64)

    @property
    def spectrum(self) -> tuple[float, float]:
        """(0, n): the Gaussian kernel is positive semidefinite; (-n, n) with local scales."""
        return (0.0 if np.ndim(self.epsilon) == 0 else -float(self.n)), float(self.n)

    def asarray(self, X: Array) -> Array:
        """Return X as a NumPy block (n, k) of this precision."""
        return check_block(X, self.n, self.dtype)

    def rows(self, X: Array, scales: Array | None = None) -> Array:
        """Return K(x, x_j) for points x in data units, (m, n).

        `scales` (m,) are the local scales of the new points, where the kernel has any.
        """
        x = self._frame(X)
        if scales is None:
            s = np.full(x.shape[0], self.scaled_scales[0])
        else:
            s = np.ldexp(scales, -self._frame.exponent)
        return self._block(x, s, slice(0, self.n))

    def own_rows(self, rows: slice) -> Array:
        """Return some rows of the matrix itself, (m, n)."""
        return self._block(self.scaled_points[rows], self.scaled_scales[rows], slice(0, self.n))

    def nearest(self, X: Array) -> Array:
        """Return the index of the point nearest to each row of X, in data units, (m,)."""
        return squared_distances(self._frame(X), self.scaled_points, direct=False).argmin(axis=1)

    def _block(self, x: Points, s: Array, columns: slice) -> Array:
        direct = self.exponent_error > EXPONENT_BOUND
        y, s_y = self.scaled_points[columns], self.scaled_scales[columns]
        return gaussian_block(x, y, s, s_y, direct)

    def __matmul__(self, X: Array) -> Array:
        """Multiply a block: (n, k) -> (n, k), in parallel over fixed tiles."""
        X = self.asarray(X)
        Y = np.zeros_like(X)

        def work(rows: slice) -> None:
            x, s = self.scaled_points[rows], self.scaled_scales[rows]
            for columns in row_tiles(self.n, _TILE_COLUMNS):
                Y[rows] += self._block(x, s, columns) @ X[columns]

        for_each_tile(work, self.n, _TILE_ROWS)
        return Y
