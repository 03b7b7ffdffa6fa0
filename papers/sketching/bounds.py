"""What theory says of Gaussian sketches: the worst error of all distances, and of two data sets."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import squareform

import heatsketch as hs

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


def sketch_error_bound(D: np.ndarray, k: int) -> SketchErrorBound:
    """Bound the expected worst error of squared distances in a Gaussian sketch of k columns.

    *Sketching the heat kernel*, Theorem 3.3, with its constant: for Y = √C G/√k with a positive
    semidefinite covariance C and D(i, j) = √(C_ii + C_jj - 2 C_ij), the distance that the sketch
    has in expectation,

        E sup | |y_i - y_j|² - D_ij² | <= 106 diam / √k ∫_0^diam log(N(ε) + 1) dε,

    N(ε) the number of balls of radius ε that cover the points. For a heat sketch, C = f(A)² and D
    is `diffusion_distance(A, time)`, square or condensed. What the theorem says is that the error
    falls as k^-½ and does not grow with n on one manifold, where N(ε) does not. As a number it is
    large: every pair by itself gives a smaller bound for up to a million points.

    Notes
    -----
    The difference of the errors of two pairs is a mean of k centred products of normal variables of
    standard deviations a, b: E e^(s·) <= exp(s² a²b²/k / (1 - 2 s ab/k)), so that the largest of M
    has an expectation of at most 2ab (√(L/k) + L/k), L = log M. Chained over covers of radius
    diam/2^j, 8 diam/√k Σ ε_(j-1) (√L_j + L_j/√k) with L_j = log(2 N_j²), and
    √L_j + L_j <= 3.312 log(N_j + 1), which gives 32 · 3.312 < 106. N(ε) is bounded by the cover of
    points chosen one by one, each the farthest from those before (Gonzalez 1985).

    Examples
    --------
    >>> import numpy as np
    >>> from papers.sketching.bounds import sketch_error_bound
    >>> bound = sketch_error_bound(np.array([1.0]), 100)  # two points
    >>> round(bound.pairs, 3), round(bound.integral, 3)  # the integral is log 3
    (0.18, 1.099)
    """
    D = squareform(D) if D.ndim == 1 else D
    diameter, integral = float(D.max()), entropy_integral(D)
    log_pairs = math.log(len(D) * (len(D) - 1))
    return SketchErrorBound(
        CHAINING * diameter / math.sqrt(k) * integral,
        2 * diameter**2 * (math.sqrt(log_pairs / k) + log_pairs / k),
        integral,
        diameter,
    )


def entropy_integral(D: np.ndarray) -> float:
    """Return ∫_0^diam log(N(ε) + 1) dε of distances (n, n), N from points farthest first."""
    nearest = D[np.argmin(D.max(axis=1))].copy()  # the middle covers all points first
    radii = [float(D.max())]
    for _ in range(len(D)):
        farthest = int(np.argmax(nearest))
        radii.append(float(nearest[farthest]))
        np.minimum(nearest, D[farthest], out=nearest)
    steps = -np.diff(radii)  # between the radii of m - 1 and of m points
    return float(steps @ np.log(np.arange(2, len(radii) + 1)))


class DifferenceDistribution(NamedTuple):
    """Mean and variance of Σ |y_i - z_i|² for two sketches with the same G, over all points."""

    mean: float
    variance: float


def sketch_difference(
    A: Any, B: Any, filter: Any, k: int, *, deflate: bool = True
) -> DifferenceDistribution:
    """Compute how much two Gaussian sketches with the same G differ, all points together.

    *Sketching the heat kernel*, Proposition 3.4: with M = f(A) - f(B), Σ |y_i - z_i|² is
    Σ μ_i² χ²_i(k) / k, μ the eigenvalues of M. Its mean is |M|² (Frobenius), its variance
    2 |M²|² / k = 2 Σ μ_i⁴ / k; in print the variance is 2 |M|² / k, which is not of this order.
    A and B are matrices (n, n) of the same points; the library's `diffusion_discrepancy` estimates
    |M|² from two sketches.

    Examples
    --------
    >>> import numpy as np
    >>> import heatsketch as hs
    >>> from papers.sketching.bounds import sketch_difference
    >>> found = sketch_difference(np.diag([3.0, 2.0]), np.eye(2), hs.Power(1), 8, deflate=False)
    >>> [round(value, 6) for value in found]  # μ = 2, 1
    [5.0, 4.25]
    """
    n = A.shape[0]
    G = math.sqrt(n) * np.eye(n)
    F, H = (hs.sketch(matrix, filter, G=G, deflate=deflate) for matrix in (A, B))
    M = F - H
    return DifferenceDistribution(float(np.sum(M**2)), 2 * float(np.sum((M.T @ M) ** 2)) / k)
