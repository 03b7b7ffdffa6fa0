"""Principal components: the axes along which points vary most, and the coordinates on them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.linalg import qr, svd
from scipy.sparse.linalg import ArpackError
from sklearn.utils.validation import check_is_fitted

from heatsketch import memory
from heatsketch._array import (
    ROW_TILE,
    Frame,
    filled,
    for_each_tile,
    row_tiles,
    seed_entropy,
    single_threaded_blas,
)
from heatsketch._checks import as_floats, check_number, check_points
from heatsketch._typing import Array, Points
from heatsketch.classical._base import Embedding, in_units

logger = logging.getLogger("heatsketch")

_EXACT = 1000  # features, or points, up to which factoring takes no longer than iterating
_RESOLVED = 1e-4  # share of the first σ below which iterating with YᵀY loses digits of a direction


@dataclass(frozen=True, eq=False)
class Axes:
    """The leading axes of points: Y = U Σ Wᵀ for the centred points Y (n, d), in units 2^exponent.

    Attributes
    ----------
    exponent : int
    shift, mean : array (d,)
        Their sum is the mean of the points; apart, it keeps its digits next to an offset.
    components : array (k, d)
        The rows w_m, orthonormal; the entry of largest modulus of each is positive.
    deviations : array (k,)
        σ_m, descending.
    total : float
        Σ σ² over all axes.
    """

    exponent: int
    shift: Array
    mean: Array
    components: Array
    deviations: Array
    total: float

    @classmethod
    def of(cls, X: Points, k: int, random_state: Any = None) -> Axes:
        """Find the first k <= min(n, d) axes of the points X (n, d), dense or CSR.

        Notes
        -----
        Cost: where n or d is at most 1,000, n d min(n, d) operations, exact to rounding next to the
        largest σ whatever the offset; beyond, ARPACK's products with Y and Yᵀ (some hundred),
        unless these could not resolve a σ_m.
        """
        frame = Frame.of(X)
        with single_threaded_blas():  # the same bits for any number of threads
            mean = _mean(X, frame)
            found = None
            if k < min(X.shape) and min(X.shape) > _EXACT:
                found = _iterated(frame(X), k, random_state)
            W, deviations, total = _exact(X, frame, mean) if found is None else found
        W, deviations = W[:k], deviations[:k]
        signs = np.sign(W[np.arange(k), np.abs(W).argmax(axis=1)])
        shift = np.zeros(X.shape[1]) if frame.shift is None else frame.shift
        return cls(frame.exponent, shift, mean, W * signs[:, None], deviations, total)

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
        """Return for each row the power of two by which it is divided: no sum can overflow.

        It is that of the axes unless the row is farther off than all the points; of each row alone,
        so that no other row changes its coordinates.
        """
        high, low = X.max(axis=1), X.min(axis=1)
        if sparse.issparse(X):
            high, low = high.toarray().ravel(), low.toarray().ravel()
        largest, exponent = np.maximum(high, -low), self.exponent
        return np.where(largest > 0, np.maximum(np.frexp(largest)[1], exponent), exponent)


def _mean(X: Points, frame: Frame) -> Array:
    """Return the mean of the points (d,) in the frame."""
    tiles = list(row_tiles(X.shape[0]))
    sums = filled(lambda one: _sum(frame(X[tiles[one.start]])), (len(tiles), X.shape[1]), 1)
    return sums.sum(axis=0) / X.shape[0]


def _sum(points: Points) -> Array:
    return np.asarray(points.sum(axis=0)).reshape(1, -1)


def _exact(X: Points, frame: Frame, mean: Array) -> tuple[Array, Array, float]:
    """Return Wᵀ (min(n, d), d), σ and Σ σ², from the triangle of Y where that is smaller."""
    n, d = X.shape

    def centred(rows: slice) -> Array:
        points = frame(X[rows])
        return (points.toarray() if sparse.issparse(points) else points) - mean

    if n <= d:
        memory.require(32.0 * n * d, f"All axes of {n:,} points", "pass fewer components.")
    Y = centred(slice(0, n)) if n <= d else _triangle(centred, n, d)
    _, deviations, W = svd(Y, full_matrices=False, overwrite_a=True, check_finite=False)
    return W, deviations, float(deviations @ deviations)


def _triangle(centred: Any, n: int, d: int) -> Array:
    """Return R (d, d) with RᵀR = YᵀY, Y (n, d): of the triangles of tiles of its rows."""
    tiles = list(row_tiles(n, max(ROW_TILE, 8 * d)))
    parts: list[Any] = [None] * len(tiles)

    def work(one: slice) -> None:
        parts[one.start] = _upper(centred(tiles[one.start]))

    for_each_tile(work, len(tiles), 1)
    return _upper(np.vstack(parts))


def _upper(Y: Array) -> Array:
    R = qr(Y, mode="r", overwrite_a=True, check_finite=False)[0]
    return R[: Y.shape[1]]


def _iterated(points: Points, k: int, rng: Any) -> tuple[Array, Array, float] | None:
    """Return Wᵀ (k, d), σ and Σ σ² from products with Y, or None where they lack digits."""
    from sklearn import decomposition  # takes long to import

    solver = {"svd_solver": "arpack", "random_state": seed_entropy(rng)[0]}
    try:
        pca = decomposition.PCA(k, **solver).fit(points)
    except ArpackError as error:  # such as of points that are all equal
        logger.info("no axes by iteration: %s", error)
        return None
    deviations, variances = pca.singular_values_, pca.explained_variance_
    if not deviations[-1] > _RESOLVED * deviations[0]:
        return None
    share = float(pca.explained_variance_ratio_[0])
    return pca.components_, deviations, float(variances[0]) * (points.shape[0] - 1) / share


class PCA(Embedding):
    """Project points on the directions in which they vary most.

    *Linear and nonlinear dimensionality reduction*, §2.2: with Y the points less their mean,

        C = Yᵀ Y / n = W Λ Wᵀ,  Y = U Σ Wᵀ,  n Λ = Σ²,  z_m = Y w_m,  m = 1, …, k:

    of all projections to k dimensions the one that keeps most variance, and that moves points
    least. It comes from the singular values of Y, never from C, in which directions of little
    variance are lost; Y is scaled and centred before anything is squared, so that offsets and
    sizes cost no digits.

    When to use it: first; for data near a plane; to remove dimensions of noise before a method
    that compares all points. When not: on curved data, whose far ends it may put on each other (see
    `Isomap`, `DiffusionMap`); where features have different units (scale them first).

    Parameters
    ----------
    n_components : int or None, 1 <= k <= min(n, d), default 2
        Coordinates k; None: all min(n, d).
    random_state : int, RandomState, Generator or None, default None
        Of the vector with which an iteration begins, beyond 1,000 features and points: it changes
        nothing but rounding.

    Attributes
    ----------
    embedding_ : array (n, k)
        z, in the units of X, in its precision.
    components_ : array (k, d)
        The rows w_m, orthonormal; the entry of largest modulus of each is positive.
    mean_ : array (d,)
    singular_values_ : array (k,)
        σ_m, descending, in the units of X.
    explained_variance_ : array (k,)
        σ_m² / (n - 1), the unbiased estimate, as in scikit-learn: λ_m n / (n - 1). Infinite where
        σ is beyond some 1e154, 0 where it is below 1e-162; σ and the ratios hold.
    explained_variance_ratio_ : array (k,)
        σ_m² / Σ σ², over all; 0 where all points coincide.
    diagnostics_ : dict
        `explained_share`, the sum of these ratios.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    ValueError
        More components than features or points; coordinates too large for the precision of X.
    MemoryError
        All components of more points or features than there is memory for.

    Notes
    -----
    Cost: n d min(n, d) operations and little memory where n or d is at most 1,000; beyond, some
    hundred products with Y, or as many operations as before where k of them is all. A new point: d
    k. Where X is sparse it stays so, but for d at least n, up to 1,000 points.

    Examples
    --------
    >>> import heatsketch as hs
    >>> from heatsketch.classical import PCA
    >>> X, t = hs.datasets.swiss_roll(500, rng=0)
    >>> PCA().fit_transform(X).shape
    (500, 2)
    """

    _takes_sparse = True

    def __init__(self, n_components: int | None = 2, *, random_state: Any = None) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the axes of the points X, and their coordinates.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix (n, d)
        y : ignored

        Returns
        -------
        self
        """
        X = self._read(X, reset=True, accept_sparse="csr")
        n = X.shape[0]
        axes = self._axes = Axes.of(X, self._count(*X.shape), self.random_state)
        self.components_ = axes.components
        self.mean_ = np.ldexp(axes.mean + axes.shift, axes.exponent)
        squares = axes.deviations**2
        with np.errstate(over="ignore", under="ignore"):
            self.singular_values_ = np.ldexp(axes.deviations, axes.exponent)
            self.explained_variance_ = np.ldexp(squares / (n - 1), 2 * axes.exponent)
        self.explained_variance_ratio_ = squares / (axes.total or 1.0)
        self.embedding_ = axes.project(X)
        self.diagnostics_ = {"explained_share": float(self.explained_variance_ratio_.sum())}
        return self

    def transform(self, X: Any) -> Array:
        """Project points, new or old: (x - x̄) W.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix (m, d)

        Returns
        -------
        array (m, k)
        """
        check_is_fitted(self)
        return self._axes.project(self._read(X, reset=False, accept_sparse="csr"))

    def inverse_transform(self, Z: Any) -> Array:
        """Return the points with these coordinates: x̄ + Z Wᵀ, with all components those projected.

        Parameters
        ----------
        Z : array or DataFrame (m, k)

        Returns
        -------
        array (m, d)
        """
        check_is_fitted(self)
        Z = check_points(as_floats(Z, "Z"), "Z", min_rows=1)
        if Z.shape[1] != len(self.components_):
            raise ValueError(
                f"Z has {Z.shape[1]} columns but there are {len(self.components_)} components; "
                f"pass (m, {len(self.components_)})."
            )
        return self._axes.restore(Z)

    def _count(self, n: int, d: int) -> int:
        if self.n_components is None:
            return min(n, d)
        k = check_number(self.n_components, "n_components", low=1, integer=True)
        if k > min(n, d):
            raise ValueError(
                f"n_components={k} but X has {n} points of {d} features; pass n_components <= "
                f"{min(n, d)}."
            )
        return k
