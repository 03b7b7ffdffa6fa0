"""What theory says of Gaussian sketches: the worst error of all distances, and of two data sets."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import is_valid_dm, squareform

from heatsketch._budget import require
from heatsketch._checks import check_number
from heatsketch._typing import Array
from heatsketch.operators import numbered
from heatsketch.spectral.filter_base import Filter
from heatsketch.spectral.filters import Power
from heatsketch.spectral.sketch import sketch

CHAINING = 106.0  # the constant C of Theorem 3.3, see the notes of `sketch_error_bound`


class SketchErrorBound(NamedTuple):
    """Bounds on E sup | |y_i - y_j|² - D_ij² | over all pairs, in squared units of D.

    Attributes
    ----------
    theorem : float
        106 diam(D) / √k ∫ log(N(ε) + 1) dε.
    pairs : float
        diam(D)² (2 √(L/k) + 2 L/k), L = log(n(n - 1)): every pair by itself.
    integral : float
        The entropy integral, in units of D, from a cover that is at most twice as fine.
    diameter : float
        The largest distance.
    """

    theorem: float
    pairs: float
    integral: float
    diameter: float


def sketch_error_bound(D: Any, n_components: int) -> SketchErrorBound:
    """Bound the expected worst error of squared distances in a Gaussian sketch.

    *Sketching the heat kernel*, Theorem 3.3, with its constant: for Y = √C G/√k with a positive
    semidefinite covariance C and D(i, j) = √(C_ii + C_jj - 2 C_ij), the distance that the sketch
    has in expectation,

        E sup | |y_i - y_j|² - D_ij² | <= 106 diam / √k ∫_0^diam log(N(ε) + 1) dε,

    N(ε) the number of balls of radius ε that cover the points. For a heat sketch, C = f(A)² and D
    is `diffusion_distance(A, time)`. What the theorem says is that the error falls as k^-½ and does
    not grow with n on one manifold, where N(ε) does not. As a number it is large: every pair by
    itself gives a smaller bound for up to a million points.

    Parameters
    ----------
    D : array (n, n) or (n(n-1)/2,)
        Distances of all pairs, square or condensed.
    n_components : int >= 1
        Columns k of the sketch.

    Returns
    -------
    SketchErrorBound

    Raises
    ------
    ValueError
        D is not a matrix of distances.

    Notes
    -----
    The difference of the errors of two pairs is a mean of k centred products of normal variables of
    standard deviations a, b: E e^(s·) <= exp(s² a²b²/k / (1 - 2 s ab/k)), so that the largest of M
    has an expectation of at most 2ab (√(L/k) + L/k), L = log M. Chained over covers of radius
    diam/2^j, 8 diam/√k Σ ε_(j-1) (√L_j + L_j/√k) with L_j = log(2 N_j²), and
    √L_j + L_j <= 3.312 log(N_j + 1), which gives 32 · 3.312 < 106. N(ε) is bounded by the cover of
    points chosen one by one, each the farthest from those before (Gonzalez 1985). Cost: n²
    operations.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.metrics import sketch_error_bound
    >>> bound = sketch_error_bound(np.array([1.0]), 100)  # two points
    >>> round(bound.pairs, 3), round(bound.integral, 3)  # the integral is log 3
    (0.18, 1.099)
    """
    D = _distances(D)
    k = check_number(n_components, "n_components", low=1, integer=True)
    diameter, integral = float(D.max()), entropy_integral(D)
    log_pairs = math.log(len(D) * (len(D) - 1))
    return SketchErrorBound(
        CHAINING * diameter / math.sqrt(k) * integral,
        2 * diameter**2 * (math.sqrt(log_pairs / k) + log_pairs / k),
        integral,
        diameter,
    )


def entropy_integral(D: Array) -> float:
    """Return ∫_0^diam log(N(ε) + 1) dε of distances (n, n), N from points farthest first."""
    nearest = D[np.argmin(D.max(axis=1))].copy()  # the middle covers all points first
    radii = [float(D.max())]
    for _ in range(len(D)):
        farthest = int(np.argmax(nearest))
        radii.append(float(nearest[farthest]))
        np.minimum(nearest, D[farthest], out=nearest)
    steps = -np.diff(radii)  # between the radii of m - 1 and of m points
    return float(steps @ np.log(np.arange(2, len(radii) + 1)))


def _distances(D: Any) -> Array:
    D = np.asarray(D, dtype=float)
    D = squareform(D, checks=False) if D.ndim == 1 else D
    rounding = 1e-9 * float(np.max(D, initial=0.0))
    if len(D) < 2 or not is_valid_dm(D, tol=rounding) or D.min() < 0:
        raise ValueError(
            f"D has shape {D.shape} and is not a matrix of distances; pass non-negative, symmetric "
            "ones of at least two points, or those of scipy.spatial.distance.pdist."
        )
    return D


class DifferenceLaw(NamedTuple):
    """Mean and variance of Σ |y_i - z_i|² for two sketches with the same G.

    Attributes
    ----------
    mean, variance : float
        Of the sum over all points, in squared units of the distance.
    """

    mean: float
    variance: float


def sketch_difference(
    A: Any,
    B: Any,
    filter: Filter | None = None,
    n_components: int = 64,
    *,
    deflate: bool = True,
) -> DifferenceLaw:
    """Compute how much two Gaussian sketches with the same G differ, all points together.

    *Sketching the heat kernel*, Proposition 3.4: with M = f(A) - f(B), Σ |y_i - z_i|² is
    Σ μ_i² χ²_i(k) / k, μ the eigenvalues of M. Its mean is |M|² (Frobenius), its variance
    2 |M²|² / k = 2 Σ μ_i⁴ / k; in print the variance is 2 |M|² / k, which is not of this order.

    Parameters
    ----------
    A, B : array (n, n), SciPy sparse matrix or operator
        Of the same points.
    filter : Power or Heat, optional
        f; by default ``Power(1)``.
    n_components : int >= 1, default 64
        Columns k of both sketches.
    deflate : bool, default True
        As in `sketch`.

    Returns
    -------
    DifferenceLaw

    Raises
    ------
    MemoryError
        Matrices (n, n) exceed the available memory.
    ValueError
        The matrices have different numbers of points.

    Notes
    -----
    Cost: f(A) and f(B) as matrices, and 2 n³ operations; memory 40 n² bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.metrics import sketch_difference
    >>> law = sketch_difference(np.diag([3.0, 2.0]), np.eye(2), n_components=8, deflate=False)
    >>> [round(value, 6) for value in law]  # μ = 2, 1
    [5.0, 4.25]
    """
    k = check_number(n_components, "n_components", low=1, integer=True)
    sizes = [numbered(matrix).n_points for matrix in (A, B)]
    n = sizes[0]
    if sizes[1] != n:
        raise ValueError(f"A has {n} points but B has {sizes[1]}; pass those of the same points.")
    require(40.0 * n * n, f"Two matrices of {n:,} points", "compare sketches of them instead.")
    G = math.sqrt(n) * np.eye(n)
    F, H = (sketch(matrix, filter or Power(1), G=G, deflate=deflate) for matrix in (A, B))
    M = F - H
    return DifferenceLaw(float(np.sum(M**2)), 2 * float(np.sum((M.T @ M) ** 2)) / k)
