"""Classical scaling: coordinates from squared distances, also of further points."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from heatsketch._exceptions import warn
from heatsketch._tiles import row_tiles, single_threaded_blas
from heatsketch._typing import Array
from heatsketch.operators.dense import Dense
from heatsketch.spectral.eigenpairs import fix_signs

_MAX_DENSE_POINTS = 1500  # up to here LAPACK takes no longer than iterating
_EIGENVALUE_ROUNDING = 1e-12  # an eigenvalue below this fraction of the largest counts as zero


@dataclass(frozen=True, eq=False)
class ClassicalScaling:
    """The eigenpairs of B = -½ J Δ J, Δ the squared distances between l points, J = I - 11ᵀ/l.

    Attributes
    ----------
    values : array (k,)
        The largest eigenvalues of B, descending; those that are not positive are set to 0.
    vectors : array (l, k)
        Orthonormal; the entry of largest modulus of each is positive.
    mean_squares : array (l,)
        Row means of Δ.
    """

    values: Array
    vectors: Array
    mean_squares: Array

    @property
    def coordinates(self) -> Array:
        """Coordinates of the points (l, k): v_m √λ_m."""
        return self.vectors * np.sqrt(self.values)

    def place(self, squares: Array) -> Array:
        """Return coordinates (m, k) of points from their squared distances to the l points (m, l).

        This is the least-squares solution of |y - y_j|² - |y_j|² = δ_j up to a constant (Gower
        1968; de Silva and Tenenbaum 2004): y_m = ½ λ_m^-½ Σ_j v_m(j) (μ_j - δ_j). It is exact where
        the distances are Euclidean and the l points span the space.
        """
        inverse = np.zeros_like(self.values)
        np.divide(0.5, np.sqrt(self.values), out=inverse, where=self.values > 0)
        return (self.mean_squares - squares) @ (self.vectors * inverse)


def centre_squares(squares: Array) -> Array:
    """Replace squared distances Δ (l, l) by -½ J Δ J; return the means of their rows (l,)."""
    means = squares.mean(axis=1)
    overall = means.mean()
    for rows in row_tiles(len(squares)):
        squares[rows] -= means[rows, None]
        squares[rows] -= means - overall
        squares[rows] *= -0.5
    return means


def classical_scaling(squares: Array, k: int, *, positive_only: bool = False) -> ClassicalScaling:
    """Compute coordinates from squared distances: *Linear and nonlinear …*, §3, steps 1 to 5.

    Parameters
    ----------
    squares : array (l, l), float64
        Squared distances, symmetric. Overwritten.
    k : int
        Number of coordinates, at most l.
    positive_only : bool
        Whether to leave out coordinates of eigenvalues that are not positive, in place of a warning
        and zeros.

    Notes
    -----
    Cost: l³ operations up to 1,500 points, some 50 products with the matrix for more.
    """
    means = centre_squares(squares)
    n = len(squares)
    if not squares.any():  # without eigenvalues an iteration would fail
        values, vectors = np.zeros(k), np.eye(n, k)
    elif n <= _MAX_DENSE_POINTS or 3 * k > n:
        with single_threaded_blas():  # the same bits for any number of threads
            values, vectors = eigh(squares, subset_by_index=(n - k, n - 1))
    else:  # products in fixed tiles, as thread-independent
        B = Dense(squares, (-np.inf, np.inf))
        products = LinearOperator((n, n), matvec=lambda v: (B @ v.reshape(n, 1))[:, 0], dtype=float)
        start = np.random.default_rng(0).standard_normal(n)
        values, vectors = eigsh(products, k, which="LA", v0=start)
    values, vectors = values[::-1], vectors[:, ::-1]
    positive = values > _EIGENVALUE_ROUNDING * max(values[0], 0.0)
    found = np.count_nonzero(positive)
    if positive_only:
        values, vectors, positive = values[:found], vectors[:, :found], positive[:found]
    elif found < k:
        warn(
            UserWarning,
            f"Only {found} of {k} eigenvalues are positive beyond rounding, because the distances "
            "have no more Euclidean dimensions, or these are too small relative to the largest (an "
            "outlier?); the other coordinates are zero.",
        )
    return ClassicalScaling(np.where(positive, values, 0.0), fix_signs(vectors), means)
