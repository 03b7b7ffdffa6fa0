"""The principal axes of points: what PCA and classical scaling of points compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import qr, svd
from scipy.sparse.linalg import ArpackError

from heatsketch._array import (
    ROW_TILE,
    Frame,
    filled,
    for_each_tile,
    row_tiles,
    seed_entropy,
    single_threaded_blas,
)
from heatsketch._budget import require
from heatsketch._checks import logger
from heatsketch._typing import Array, Points
from heatsketch.classical._base import in_units
from heatsketch.spectral.eigenpairs import fix_signs

_MAX_EXACT_SIZE = 1000  # features, or points, up to which factoring takes no longer than iterating
_MIN_RESOLVED_RATIO = 1e-4  # σ_m / σ_1 below which products with YᵀY lose digits of the axis


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """The leading axes of points: Y = U Σ Wᵀ for the centred points Y (n, d), in units 2^exponent.

    The sum of `shift` and `mean` is the mean of the points. They are stored apart so that the mean
    keeps its digits beside a large offset.
    """

    exponent: int
    shift: Array  # (d,)
    mean: Array  # (d,)
    components: Array  # (k, d), orthonormal rows; the entry of largest modulus is positive
    singular_values: Array  # (k,), σ_m, descending
    sum_of_squares: float  # Σ σ² over all axes

    @classmethod
    def of(cls, X: Points, k: int, random_state: Any = None) -> PrincipalAxes:
        """Find the first k <= min(n, d) axes of the points X (n, d), dense or CSR.

        Notes
        -----
        Cost: where n or d is at most 1,000, n d min(n, d) operations, exact to rounding relative to
        the largest σ whatever the offset; otherwise some hundred products with Y and Yᵀ (ARPACK),
        unless a σ_m is too small to be resolved by these.
        """
        frame = Frame.of(X)
        with single_threaded_blas():  # the same bits for any number of threads
            mean = _mean(X, frame)
            found = None
            if k < min(X.shape) and min(X.shape) > _MAX_EXACT_SIZE:
                found = _iterated(frame(X), k, random_state)
            W, sigma, total = _exact(X, frame, mean) if found is None else found
        shift = np.zeros(X.shape[1]) if frame.shift is None else frame.shift
        return cls(frame.exponent, shift, mean, fix_signs(W[:k].T).T, sigma[:k], total)

    def project(self, X: Points) -> Array:
        """Return (x - x̄) W for points (m, d), in their units and precision, or raise."""
        exponents, W = self._exponents(X), self.components.T
        less = (self.exponent - exponents)[:, None]
        if sparse.issparse(X):
            moved = X.astype(float)
            moved.data = np.ldexp(moved.data, -np.repeat(exponents, np.diff(moved.indptr)))
            Y = moved @ W - np.ldexp(self.shift @ W + self.mean @ W, less)
            return in_units(Y, exponents[:, None], X.dtype)

        def project(rows: slice) -> Array:
            Y = np.ldexp(X[rows].astype(float), -exponents[rows, None])
            Y -= np.ldexp(self.shift, less[rows])
            Y -= np.ldexp(self.mean, less[rows])
            return Y @ W

        return in_units(filled(project, (len(X), W.shape[1])), exponents[:, None], X.dtype)

    def restore(self, Z: Array) -> Array:
        """Return x̄ + z Wᵀ for coordinates (m, k), in their precision, or raise."""
        exponents = self._exponents(Z)
        less = (self.exponent - exponents)[:, None]

        def restore(rows: slice) -> Array:
            X = np.ldexp(Z[rows].astype(float), -exponents[rows, None]) @ self.components
            X += np.ldexp(self.mean, less[rows])
            X += np.ldexp(self.shift, less[rows])
            return X

        return in_units(filled(restore, (len(Z), len(self.mean))), exponents[:, None], Z.dtype)

    def _exponents(self, X: Points) -> Array:
        """Return the power of two by which each row is divided, so that no sum can overflow.

        It is that of the axes, unless the row is larger than all the points; it depends on this row
        alone, so that no other row changes its coordinates.
        """
        high, low = X.max(axis=1), X.min(axis=1)
        if sparse.issparse(X):
            high, low = high.toarray().ravel(), low.toarray().ravel()
        largest, exponent = np.maximum(high, -low), self.exponent
        return np.where(largest > 0, np.maximum(np.frexp(largest)[1], exponent), exponent)


def _mean(X: Points, frame: Frame) -> Array:
    """Return the mean of the points (d,) in the frame."""
    tiles = list(row_tiles(X.shape[0]))

    def total(tile: slice) -> Array:
        return np.asarray(frame(X[tiles[tile.start]]).sum(axis=0)).reshape(1, -1)

    return filled(total, (len(tiles), X.shape[1]), 1).sum(axis=0) / X.shape[0]


def _exact(X: Points, frame: Frame, mean: Array) -> tuple[Array, Array, float]:
    """Return Wᵀ (min(n, d), d), σ and Σ σ², from the triangle of Y where that is smaller."""
    n, d = X.shape

    def centred(rows: slice) -> Array:
        points = frame(X[rows])
        return (points.toarray() if sparse.issparse(points) else points) - mean

    if n <= d:
        require(32.0 * n * d, f"All axes of {n:,} points", "pass fewer components.")
    Y = centred(slice(0, n)) if n <= d else _triangle(centred, n, d)
    _, sigma, W = svd(Y, full_matrices=False, overwrite_a=True, check_finite=False)
    return W, sigma, float(sigma @ sigma)


def _triangle(centred: Any, n: int, d: int) -> Array:
    """Return R (d, d) with RᵀR = YᵀY, Y (n, d): the triangle of the triangles of its row tiles."""
    tiles = list(row_tiles(n, max(ROW_TILE, 8 * d)))
    triangles: list[Any] = [None] * len(tiles)

    def work(tile: slice) -> None:
        triangles[tile.start] = _upper(centred(tiles[tile.start]))

    for_each_tile(work, len(tiles), 1)
    return _upper(np.vstack(triangles))


def _upper(Y: Array) -> Array:
    R = qr(Y, mode="r", overwrite_a=True, check_finite=False)[0]
    return R[: Y.shape[1]]


def _iterated(points: Points, k: int, rng: Any) -> tuple[Array, Array, float] | None:
    """Return Wᵀ (k, d), σ and Σ σ² from products with Y, or None where they lack digits."""
    from sklearn import decomposition  # takes long to import

    solver = {"svd_solver": "arpack", "random_state": seed_entropy(rng)[0]}
    try:
        pca = decomposition.PCA(k, **solver).fit(points)
    except ArpackError as error:  # for example, all points are equal
        logger.info("no axes by iteration: %s", error)
        return None
    sigma, variances = pca.singular_values_, pca.explained_variance_
    if not sigma[-1] > _MIN_RESOLVED_RATIO * sigma[0]:
        return None
    share = float(pca.explained_variance_ratio_[0])
    return pca.components_, sigma, float(variances[0]) * (points.shape[0] - 1) / share
