"""Error bounds of feature maps that end at some order, over a whole ball of points."""

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainc, gammaln

EQUAL_EIGENVALUES = 1e-12  # relative difference of eigenvalues that count as one


class BallMaximum(NamedTuple):
    """The largest value over a ball, and a point (m,) where it is reached."""

    value: float
    point: np.ndarray


def largest_in_ball(A: np.ndarray, b: np.ndarray, radius: float) -> BallMaximum:
    """Return max |A x + b|² over |x| <= radius: a trust-region problem.

    With B = AᵀA and u = Aᵀb the maximum is where (τ I - B) x = u, |x| = radius and τ >= λ_max(B).
    In the hard case u is orthogonal to the leading eigenvectors and |x| is too small at τ = λ_max;
    a multiple of one of them is added then. *Diffusion representation*, (5.11), where argmax is
    missing, and Appendix B.

    Examples
    --------
    >>> import numpy as np
    >>> from papers.representation.bounds import largest_in_ball
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
    top = lam >= lam[-1] * (1 - EQUAL_EIGENVALUES)
    gap, length = lam[-1] - lam, np.linalg.norm(u)
    if np.linalg.norm(u[top]) <= EQUAL_EIGENVALUES * size * np.sqrt(lam[-1]):
        u = np.where(top, 0.0, u)
    x = np.zeros_like(u)
    x[~top] = u[~top] / gap[~top]
    if not u[top].any() and np.linalg.norm(x) <= radius:  # the hard case
        x[-1] = np.sqrt(max(radius**2 - x @ x, 0.0))
    else:
        # 1/|x(τ)| is nearly linear in τ: a root between bounds of τ - λ_max.
        low = float(max(np.linalg.norm(u[top]), length * EQUAL_EIGENVALUES**2) / radius)
        high = length / radius * (1 + EQUAL_EIGENVALUES) + np.finfo(float).tiny

        def excess(shift: float) -> float:
            return float(1 / np.linalg.norm(u / (shift + gap)) - 1 / radius)

        shift = low if excess(low) >= 0 else brentq(excess, low, high, xtol=1e-15 * low)
        x = u / (shift + gap)
        x *= radius / np.linalg.norm(x)
    point = V @ x
    image = A @ point + b
    return BallMaximum(float(image @ image), point)


class PaperBounds(NamedTuple):
    """The error bounds of *Diffusion representation* for the orders 0, ..., l.

    Attributes
    ----------
    G_b1, G_b2 : float
        Σ_j s_j^(l+1) / (l+1)!, (5.10), and Σ_j P(l+1, s_j), (5.12), which is smaller.
    eta : float
        Bound on |f - f_l|², (5.18): peak · min(G_b1, G_b2), divided by ν_min² if that is given.
    """

    G_b1: float
    G_b2: float
    eta: float


def paper_bounds(
    s: np.ndarray, order: int, log_peak: float, nu_min: float | None = None
) -> PaperBounds:
    """Return the bounds of the paper from s_j = max |ĉ_j(x)|² over the ball, (K,).

    `log_peak` is log (2π)^(-m/2) |2D|^(-1/2), the squared norm of a component of p(x, ·). In print
    η is divided by ν_min², with a proof that uses |h| <= 1 and so fails for densities above 1. The
    bound without this division holds, since |h| <= ν.
    """
    with np.errstate(divide="ignore", over="ignore"):
        G_b1 = float(np.sum(np.exp((order + 1) * np.log(s) - gammaln(order + 2))))
    G_b2 = float(np.sum(gammainc(order + 1, s)))
    eta = np.exp(log_peak) * min(G_b1, G_b2)
    return PaperBounds(G_b1, G_b2, float(eta if nu_min is None else eta / nu_min**2))


def paper_order(
    s: np.ndarray, tolerance: float, log_peak: float, nu_min: float | None = None
) -> int:
    """Return the smallest order l >= 1 with η <= tolerance² / 4, (5.20)."""
    wanted = tolerance**2 / 4
    return 1 + first_order(lambda n: paper_bounds(s, n + 1, log_peak, nu_min).eta <= wanted)


def first_order(is_enough: Callable[[int], bool]) -> int:
    """Return the first of the orders 0, 1, ... that is enough."""
    return next(order for order in count() if is_enough(order))
