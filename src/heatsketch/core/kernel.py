"""The Gaussian kernel of points, made on the fly in tiles: n x n numbers are never stored."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.utils.extmath import row_norms

from heatsketch._arrays import Array, Points
from heatsketch._checks import as_floats, check_choice, check_new_points, check_number, check_points
from heatsketch._threads import for_each_tile, row_tiles, track
from heatsketch.core.blocks import HOST
from heatsketch.core.operators import Bounds, Operator, Scaled, components_of_rows

EXPONENT_BOUND = 1e-8  # the largest error of |x-y|²/ε we accept from the Gram form
SINGLE_EXPONENT_BOUND = 1e-4  # the same where products are made in float32
_TILE = 512  # rows and columns; fixed, because it decides the bits of a product


def centred(X: Points, centre: Array | float) -> Points:
    """Return X - centre in float64; sparse points as they are."""
    return X.astype(np.float64) if sparse.issparse(X) else np.subtract(X, centre, order="C")


def exponent_error(
    points: Points, smallest_epsilon: float, dtype: np.dtype | type = np.float64
) -> float:
    """Bound the error of |x-y|²/ε when it is computed as (|x|² + |y|² - 2xy)/ε in `dtype`.

    The terms are at most 4 max|x|²/ε together. Each of the d + 2 sums rounds once: 8 √d eps times
    max|x|²/ε is above the worst case up to 50 dimensions, and beyond it more than ten standard
    deviations of independent roundings.
    """
    largest = float(np.max(row_norms(points, squared=True), initial=0.0))
    with np.errstate(divide="ignore", over="ignore"):
        relative = np.divide(largest, smallest_epsilon)
        return float(8 * np.sqrt(points.shape[1]) * np.finfo(dtype).eps * relative)


def squared_distances(x: Points, y: Points, direct: bool) -> Array:
    """Return |x_i - y_j|² (m, n), from explicit differences or the Gram form."""
    if direct:
        return cdist(x, y, "sqeuclidean")
    product = x @ y.T
    block = np.asarray(product.toarray() if sparse.issparse(product) else product)
    block *= -2.0
    block += row_norms(x, squared=True)[:, None]
    block += row_norms(y, squared=True)
    return np.maximum(block, 0.0, out=block)


def exponent_factors(points: Array, s: Array, dtype: np.dtype) -> tuple[Array, Array]:
    """Return L, R (n, d + 2) with L_i · R_j = -|x_i - x_j|² / (s_i s_j) / log 2.

    z = x √(2 / log 2) / s, and z_i · z_j - h_i g_j - g_i h_j with h = |z|²/2 · s / min s and
    g = min s / s. |z|² is that of the rounded z: rounding moves the points, not one term.
    """
    g = (s.min() / s)[:, None]
    z = (points * (np.sqrt(2 / np.log(2)) / s[:, None])).astype(dtype)
    h = row_norms(z.astype(np.float64), squared=True)[:, None] / (2 * g)
    left, right = np.hstack([z, -h, -g]), np.hstack([z, g, h])
    return left.astype(dtype, copy=False), right.astype(dtype, copy=False)


class Kernel(Operator):
    """The Gaussian kernel K_ij = exp(-|x_i - x_j|² / ε), or with ε_ij = s_i s_j, computed in tiles.

    Points are centred first. Distances come from the Gram form if its error in the exponent is
    below 1e-8, else from explicit differences (about ten times slower). Products are made in
    float32 if `dtype` is float32 and that error stays below 1e-4, else in float64 and rounded at
    the end.

    A product with k columns costs 2 n² (d + k) operations and n² exponentials for n points with d
    features. Memory is O(n (d + k)) and one tile for each thread. The result is bitwise the same
    for any number of threads.

    Parameters
    ----------
    points : {array-like, sparse matrix} of shape (n_samples, n_features)
        Points.
    epsilon : float or array-like of shape (n_samples,)
        Bandwidth in squared data units. An array gives s with ε_ij = s_i s_j (self-tuning scales).
    dtype : float32 or float64, default=None
        Precision of products; by default that of the points. Rows are float64 always.

    Attributes
    ----------
    exponent_error : float
        Bound on the error of |x_i - x_j|² / ε_ij in products that use the Gram form. If it exceeds
        1e-8 in float64, explicit differences are used.

    See Also
    --------
    gaussian_affinity : Compute the Gaussian affinity of all pairs of points.
    TorchKernel : The Gaussian kernel with products on a device of torch.
    Dense : A stored symmetric matrix.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> K = hs.Kernel(np.array([[0.0], [1.0]]), epsilon=1.0)
    >>> np.round(K @ np.eye(2), 4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    def __init__(self, points: Points, epsilon: float | Array, dtype: Any = None) -> None:
        self.points, self.epsilon = points, epsilon
        X = check_points(points, "points", min_rows=1)
        self.n = X.shape[0]
        name = np.dtype(X.dtype if dtype is None else dtype).name
        self.dtype = np.dtype(check_choice(name, "dtype", ("float32", "float64")))
        self.centre = HOST.centre(X)
        self.centred_points = centred(X, self.centre)
        if np.ndim(self.epsilon) == 0:
            epsilon = check_number(self.epsilon, "epsilon", low=0, open_low=True)
            self.scales = np.full(self.n, np.sqrt(epsilon))
            self.spectrum = 0.0, float(self.n)
        else:
            self.scales = _local_scales(self.epsilon, "epsilon", self.n)
            self.spectrum = -float(self.n), float(self.n)  # semidefinite for one ε only
        # float32 only where asked for and good enough, the Gram form only where it is.
        smallest, is_sparse = float(np.min(self.scales)) ** 2, sparse.issparse(X)
        self.exponent_error = exponent_error(self.centred_points, smallest)
        self.takes_differences = self.exponent_error > EXPONENT_BOUND
        if is_sparse and self.takes_differences:
            raise ValueError(
                "The exponent of sparse points this large next to epsilon is off by "
                f"{self.exponent_error:.0e}; pass a larger epsilon, or X.toarray()."
            )
        self.arithmetic: np.dtype = np.dtype(np.float64)
        single = exponent_error(self.centred_points, smallest, np.float32)
        if self.dtype == np.float32 and not is_sparse and single <= SINGLE_EXPONENT_BOUND:
            self.arithmetic, self.exponent_error = np.dtype(np.float32), single

    def rows(self, X: Array, scales: Array | None = None) -> Array:
        """Return K(x, x_j) for points x in data units, (m, n).

        `scales` (m,) are the local scales of the new points, where the kernel has any.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (m, d) of the features of the kernel.
        """
        x = self._centred(X)
        if scales is None:
            return self._block(x, np.full(x.shape[0], self.scales[0]))
        return self._block(x, _local_scales(scales, "scales", x.shape[0]))

    def matrix_rows(self, rows: slice | Array) -> Array:
        """Return some rows of the matrix itself, (m, n)."""
        return self._block(self.centred_points[rows], self.scales[rows])

    def nearest(self, X: Array) -> Array:
        """Return the index of the point nearest to each row of X, in data units, (m,).

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table (m, d) of the features of the kernel.
        """
        return squared_distances(self._centred(X), self.centred_points, direct=False).argmin(axis=1)

    def _centred(self, X: Points) -> Points:
        return centred(check_new_points(X, self.points, "the kernel"), self.centre)

    def _block(self, x: Points, s: Array, columns: slice = slice(None)) -> Array:
        """Return exp(-|x_i - x_j|² / (s_i s_j)) for centred points, (m, columns)."""
        y, direct = self.centred_points[columns], self.takes_differences
        block = squared_distances(x, y, direct)
        block /= -s[:, None]
        block /= self.scales[columns]
        return np.exp(block, out=block)

    def _matmul(self, X: Array) -> Array:
        from heatsketch.core.loops import exp2  # imports numba

        x, s = self.centred_points, self.scales
        by_factors = not (self.takes_differences or sparse.issparse(x))
        left, right = exponent_factors(x, s, self.arithmetic) if by_factors else (x, x)
        block = np.ascontiguousarray(X.reshape(self.n, -1), dtype=self.arithmetic)
        Y = np.empty(block.shape, dtype=self.dtype)

        def work(rows: slice) -> None:
            buffer = np.empty(_TILE * _TILE, dtype=self.arithmetic)
            product = np.empty_like(block[rows])
            sums = np.zeros(product.shape)  # float64: digits are lost within a tile only
            for columns in row_tiles(self.n, _TILE):
                if by_factors:
                    shape = rows.stop - rows.start, columns.stop - columns.start
                    tile = buffer[: shape[0] * shape[1]].reshape(shape)
                    np.dot(left[rows], right[columns].T, out=tile)
                    exp2(tile)
                else:
                    tile = self._block(x[rows], s[rows], columns)
                sums += np.dot(tile, block[columns], out=product)
            Y[rows] = sums

        for_each_tile(work, self.n, _TILE, track(None, "product with the kernel", self.n, "rows"))
        return Y.reshape(X.shape)

    def diagonal(self) -> Array:
        """Return ones (n,)."""
        return np.ones(self.n)

    def is_non_negative(self) -> bool:
        """Say that no entry is negative."""
        return True

    def components(self) -> Array:
        """Return the component of each point (n,), by some of the rows of K."""
        return components_of_rows(self.matrix_rows, self @ np.ones(self.n))

    def scaled_both_sides(
        self, s: Array, spectrum: Bounds, leading: Array, dtype: Any = np.float64
    ) -> Operator:
        """Return diag(s) K diag(s), with products in the precision `dtype`."""
        return Scaled(Kernel(self.points, self.epsilon, np.dtype(dtype)), s, spectrum, leading)


def _local_scales(values: Any, name: str, m: int) -> Array:
    """Return positive local scales (m,), or raise."""
    s = as_floats(values, name, accept_sparse=False).astype(np.float64, copy=False)
    if s.shape != (m,) or not (np.isfinite(s).all() and (s > 0).all()):
        raise ValueError(
            f"{name} has shape {s.shape}; pass a positive number or {m} positive local scales."
        )
    return s
