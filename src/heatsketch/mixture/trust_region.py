"""The largest |A x + b|² over a ball, a trust-region problem."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from heatsketch._typing import Array

_EQUAL_EIGENVALUES = 1e-12  # relative difference of eigenvalues that count as one


class BallMaximum(NamedTuple):
    """The largest value over a ball, and a point (m,) where it is reached."""

    value: float
    point: Array


def largest_in_ball(A: Array, b: Array, radius: float) -> BallMaximum:
    """Return max |A x + b|² over |x| <= radius: a trust-region problem.

    With B = AᵀA and u = Aᵀb the maximum is where (τ I - B) x = u, |x| = radius and τ >= λ_max(B).
    In the hard case u is orthogonal to the leading eigenvectors and |x| is too small at τ = λ_max;
    a multiple of one of them is added then. *Diffusion representation*, (5.11), where argmax is
    missing, and Appendix B.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.mixture.trust_region import largest_in_ball
    >>> largest_in_ball(np.eye(2), [3.0, 4.0], radius=1.0)
    BallMaximum(value=36.0, point=array([0.6, 0.8]))
    >>> largest_in_ball(np.diag([2.0, 1.0]), [0.0, 1.0], radius=1.0).value  # the hard case
    5.333333333333333
    """
    A, b = np.asarray(A, dtype=float), np.asarray(b, dtype=float)
    lam, V = np.linalg.eigh(A.T @ A)
    size = np.linalg.norm(A, 2) * radius + np.linalg.norm(b)
    if size == 0 or radius == 0 or lam[-1] <= 0:
        return BallMaximum(float(b @ b), np.zeros(A.shape[1]))
    u = V.T @ (A.T @ b)
    top = lam >= lam[-1] * (1 - _EQUAL_EIGENVALUES)
    gap, length = lam[-1] - lam, np.linalg.norm(u)
    if np.linalg.norm(u[top]) <= _EQUAL_EIGENVALUES * size * np.sqrt(lam[-1]):
        u = np.where(top, 0.0, u)
    x = np.zeros_like(u)
    x[~top] = u[~top] / gap[~top]
    if not u[top].any() and np.linalg.norm(x) <= radius:  # the hard case
        x[-1] = np.sqrt(max(radius**2 - x @ x, 0.0))
    else:
        # 1/|x(τ)| is nearly linear in τ: a root between bounds of τ - λ_max.
        low = float(max(np.linalg.norm(u[top]), length * _EQUAL_EIGENVALUES**2) / radius)
        high = length / radius * (1 + _EQUAL_EIGENVALUES) + np.finfo(float).tiny

        def excess(shift: float) -> float:
            return float(1 / np.linalg.norm(u / (shift + gap)) - 1 / radius)

        shift = low if excess(low) >= 0 else brentq(excess, low, high, xtol=1e-15 * low)
        x = u / (shift + gap)
        x *= radius / np.linalg.norm(x)
    point = V @ x
    image = A @ point + b
    return BallMaximum(float(image @ image), point)
