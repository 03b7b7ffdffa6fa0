"""How far the distance of two rows of a sketch is from the true one, and how many columns it takes.

Everything follows from one ratio, d²/D²: the squared distance in the sketch over the true one. It
is a mean of k independent, non-negative terms of mean 1 whose variance is at most 2.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import gammaln, lambertw, psi
from scipy.stats import chi2

from heatsketch._checks import check_choice, check_level, check_number
from heatsketch.spectral.sketch import KINDS, MOST_COLUMNS


def ratio_bounds(k: int, tail: float, kind: str, *, several: bool = False) -> tuple[float, float]:
    """Return r and s so that d²/D² < r, and d²/D² > s, have a probability of `tail` at most.

    "gaussian": the quantiles of χ²_k / k, exactly `tail`. "rademacher": the same quantiles, whose
    variance is never less; in the far tails, which the variance does not decide (`several`),
    Chernoff bounds.
    """
    if kind == "rademacher" and several:
        return _least_by_moments(k, tail), _most_by_chernoff(k, tail)
    return float(chi2.ppf(tail, k)) / k, float(chi2.isf(tail, k)) / k


def _most_by_chernoff(k: int, tail: float) -> float:
    """Solve exp(-k/2 (s - 1 - log s)) = tail: no moment of signs is above the Gaussian one."""
    return float(-lambertw(-math.exp(-1 + 2 * math.log(tail) / k), -1).real)


def _least_by_moments(k: int, tail: float) -> float:
    """Bound a mean of k terms z >= 0, E z = 1, E z² <= 3, from below: E e^-az <= 1 - a + 3a²/2."""

    def ratio(a: float) -> float:
        """The ratio whose bound is the least at a."""
        return (1 - 3 * a) / (1 - a + 1.5 * a * a)

    def excess(a: float) -> float:
        return k * (a * ratio(a) + math.log1p(-a + 1.5 * a * a)) - math.log(tail)

    if excess(1 / 3) > 0:  # too few columns: d may be 0
        return 0.0
    return ratio(float(brentq(excess, 0.0, 1 / 3, xtol=1e-14)))


def mean_root(k: int) -> float:
    """Return E √(χ²_k / k)."""
    return math.exp(math.log(2 / k) / 2 + float(gammaln((k + 1) / 2) - gammaln(k / 2)))


def mean_log(k: int) -> float:
    """Return E log(χ²_k / k)."""
    return float(psi(k / 2)) - math.log(k / 2)


def columns_for(
    relative_error: float, n_pairs: int = 1, level: float = 0.95, *, kind: str = "gaussian"
) -> int:
    """Compute how many columns a sketch needs for a relative error of its distances.

    The least k with |d/D - 1| <= `relative_error` for all of `n_pairs` pairs at once, with a
    probability of at least `level`; each side of each pair has an equal share of what is left.
    For Gaussian columns by the chi-square law, exactly. k grows like log(n_pairs), and like
    1 / relative_error²: half the error takes four times the columns.

    Parameters
    ----------
    relative_error : float, 0 < relative_error < 1
        0.1 means: within 10 % of the distance.
    n_pairs : int >= 1, default 1
        Pairs that are looked at together; of all pairs of n points n(n-1)/2.
    level : float, 0 < level < 1, default 0.95
    kind : "gaussian" or "rademacher", default "gaussian"
        Entries of G, see `sketch`. Of "rademacher" with one pair the law is that of Gaussian
        columns, else a bound that holds for any number of columns.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        A value out of range; more than a million columns.

    Notes
    -----
    Cost: some values of a distribution function; no data are needed.

    Examples
    --------
    >>> import heatsketch as hs
    >>> hs.columns_for(0.1), hs.columns_for(0.05), hs.columns_for(0.1, n_pairs=10**6)
    (192, 769, 1527)
    """
    e = check_number(relative_error, "relative_error", low=0, high=1, open_low=True, open_high=True)
    n_pairs = check_number(n_pairs, "n_pairs", low=1, integer=True)
    tail = (1 - check_level(level)) / (2 * n_pairs)
    check_choice(kind, "kind", KINDS)

    def is_enough(k: int) -> bool:
        low, high = ratio_bounds(k, tail, kind, several=n_pairs > 1)
        return low >= (1 - e) ** 2 and high <= (1 + e) ** 2

    most = 1
    while not is_enough(most):
        if most > MOST_COLUMNS:
            raise ValueError(
                f"A relative error of {e:g} takes more than {MOST_COLUMNS:,} columns; pass a "
                "larger one, or compute the distances with diffusion_distance, exactly."
            )
        most *= 2
    least = most // 2  # not enough, or 0
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if is_enough(middle) else (middle, most)
    return most
