"""How far distances in a sketch are from the true ones: intervals, and numbers of columns.

Everything follows from one ratio, d²/D²: the squared distance in the sketch over the true one. It
is a mean of k independent, non-negative terms of mean 1 whose variance is at most 2.
"""

import math
from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi, chi2

from heatsketch._checks import check_in_range, check_level, check_number, check_points
from heatsketch.neighbors import pair_distances
from heatsketch.spectral.functions import MOST_COLUMNS


class Interval(NamedTuple):
    """An estimate and the ends of its confidence interval: numbers, or arrays of one shape.

    Attributes
    ----------
    value, low, high : float or ndarray
        The estimate, and the ends of the interval.

    See Also
    --------
    uncertainty.distance_interval : Compute confidence intervals of distances of a sketch.
    uncertainty.ResampledInterval : A statistic with its interval from resamples.
    """

    value: Any
    low: Any
    high: Any


def distance_interval(
    F: Any,
    i: Any,
    j: Any = None,
    *,
    level: float = 0.95,
    simultaneous: bool = False,
) -> Interval:
    """Compute intervals that hold the true distances of rows of a sketch.

    With k Gaussian columns k d²/D² is chi-square with k degrees of freedom [1]_, so that [d
    √(k/χ²_hi), d √(k/χ²_lo)] holds D with a probability of exactly `level`, for every pair, every k
    and every matrix. `HeatSketch.distance` computes this for its embedding.

    Parameters
    ----------
    F : array-like of shape (n_samples, n_components)
        A sketch f(A) G / √k, such as `sketch` and `HeatSketch.transform` return.
    i, j : int or array-like of int
        Rows: one pair, or arrays of pairs, which are broadcast. Without j, each i is compared with
        all rows, along the last axis of the result.
    level : float, 0 < level < 1, default=0.95
        Probability that an interval holds the distance.
    simultaneous : bool, default=False
        `level` is the probability that all intervals hold at once (Bonferroni: each misses with
        (1 - level) over the number of different pairs). False: each interval by itself has this
        probability.

    Returns
    -------
    Interval
        `value`, `low`, `high`: floats for one pair, else arrays. `value` is unbiased: E d is
        smaller than D by the factor √(2/k) Γ((k+1)/2) / Γ(k/2).

    Raises
    ------
    ValueError
        F is not a finite matrix; an index or a level out of range.

    See Also
    --------
    sketch_interval : Compute the error of a statistic that few columns cause.
    columns_for : Compute the number of columns for a relative error.
    uncertainty.Interval : An estimate and its confidence interval.

    Notes
    -----
    Intervals are exact for Gaussian columns, and E d² = D² for all kinds. With columns of ±1 the
    variance of d² is 2(1 - κ)/k of D⁴, where κ = Σu⁴/(Σu²)² >= 1/n and u is the difference of two
    rows of f(A). Chi-square has κ = 0. Asymptotically in k, intervals hold with at least `level`;
    for differences u of two to twelve equal entries they do from k = 16 on, by enumeration. The
    value is unbiased up to κ/(4k) of D. The cost is k operations for each pair.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), Algorithm 4.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> F = hs.sketch(np.diag([1.0, 0.5]), hs.Power(1), 256, deflate=False, rng=0)
    >>> D = hs.uncertainty.distance_interval(F, 0, 1)  # true: 1.118
    >>> bool(D.low < 1.118 < D.high)
    True
    """
    F = check_points(F, "F", accept_sparse=False)
    n, k = F.shape
    level = check_level(level)
    all_points = j is None
    i, j = np.asarray(i), np.arange(n) if j is None else np.asarray(j)
    for name, indices in (("i", i), ("j", j)):
        if indices.dtype.kind not in "iu":
            raise TypeError(f"{name} is of dtype {indices.dtype}; pass indices of points.")
        check_in_range(indices, name, n)
    i, j = np.broadcast_arrays(i[..., None] if all_points else i, j)
    d = pair_distances(F, F, i.ravel(), j.ravel()).reshape(i.shape)
    tail = (1 - level) / 2
    if simultaneous:
        low, high = np.sort([i.ravel(), j.ravel()], axis=0).astype(np.int64)
        tail /= max(1, len(np.unique((low * n + high)[low < high])))
    least, most = ratio_bounds(k, tail)
    ends = (d / ratio for ratio in (mean_root(k), math.sqrt(most), math.sqrt(least)))
    return Interval(*ends) if i.ndim else Interval(*map(float, ends))


def secant_inner_products(F: Any, x: Any, y: Any, z: Any, *, level: float = 0.95) -> Interval:
    """Compute intervals that hold inner products of secants, ⟨a_y - a_x, a_z - a_x⟩.

    a are the rows of f(A), of which F is a sketch. For near points they estimate the metric of a
    manifold at x in the directions of y and z; for y = z they are squared distances [1]_. With
    secants u, v of F, the product is (|u + v|² - |u - v|²)/4, and each of the squares has an
    interval of its own by the chi-square distribution. Both hold with a probability of at least
    `level`, for Gaussian columns of any number.

    Parameters
    ----------
    F : array-like of shape (n_samples, n_components)
        A sketch f(A) G / √k, such as `sketch` and `HeatSketch.transform` return.
    x, y, z : int or array-like of int
        Rows, which are broadcast: x the point, y and z the other ends of its secants.
    level : float, 0 < level < 1, default=0.95
        Least probability that an interval holds the inner product.

    Returns
    -------
    Interval
        `value`, `low`, `high`: floats for one triple, else arrays. The value is unbiased, with the
        variance (|u|² |v|² + ⟨u, v⟩²)/k, of true secants.

    Raises
    ------
    ValueError, TypeError
        F is not a finite matrix; an index or a level out of range.

    See Also
    --------
    uncertainty.distance_interval : Compute confidence intervals of distances of a sketch.
    sketch : Apply a filter of an operator to random columns.

    Notes
    -----
    The cost is k operations for each triple. Intervals are some 1.6 times as long as the narrowest
    possible for orthogonal secants of equal length.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), equations (10), (28) and (31).

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> F = hs.sketch(np.diag([1.0, 0.5, 0.5]), hs.Power(1), 256, deflate=False, rng=0)
    >>> product = hs.secant_inner_products(F, 0, 1, 2)  # true: 1
    >>> bool(product.low < 1 < product.high)
    True
    """
    F = check_points(F, "F", accept_sparse=False)
    n, k = F.shape
    tail = (1 - check_level(level)) / 4
    rows = []
    for name, given in (("x", x), ("y", y), ("z", z)):
        indices = np.asarray(given)
        if indices.dtype.kind not in "iu":
            raise TypeError(f"{name} is of dtype {indices.dtype}; pass indices of points.")
        check_in_range(indices, name, n)
        rows.append(indices)
    x, y, z = np.broadcast_arrays(*rows)
    u, v = F[y] - F[x], F[z] - F[x]
    both, apart = (np.square(w).sum(axis=-1) / 4 for w in (u + v, u - v))
    least, most = ratio_bounds(k, tail)
    ends = both / most - apart / least, both / least - apart / most
    value = np.einsum("...c,...c->...", u, v)
    return Interval(value, *ends) if x.ndim else Interval(float(value), *map(float, ends))


def ratio_bounds(k: int, tail: float) -> tuple[float, float]:
    """Return r and s so that χ²_k / k < r, and χ²_k / k > s, have a probability of `tail`."""
    return float(chi2.ppf(tail, k)) / k, float(chi2.isf(tail, k)) / k


def mean_root(k: int) -> float:
    """Return E √(χ²_k / k)."""
    return float(chi.mean(k)) / math.sqrt(k)


def columns_for(relative_error: float, n_pairs: int = 1, level: float = 0.95) -> int:
    """Compute how many columns a sketch needs for a relative error of its distances.

    It is the least k with |d/D - 1| <= `relative_error` for all of `n_pairs` pairs at once, with a
    probability of at least `level`; each side of each pair misses with the same probability. The
    chi-square distribution gives it, exactly for Gaussian columns [1]_. k grows like log(n_pairs),
    and like 1 / relative_error²: half the error takes four times the columns.

    Parameters
    ----------
    relative_error : float, 0 < relative_error < 1
        Relative error of a distance; 0.1 means within 10 % of it.
    n_pairs : int >= 1, default=1
        Number of pairs that must all be within the error. All pairs of n points are n(n-1)/2.
    level : float, 0 < level < 1, default=0.95
        Probability that all pairs are within the error.

    Returns
    -------
    int
        Number of columns.

    Raises
    ------
    ValueError
        A value out of range; more than a million columns.

    See Also
    --------
    HeatSketch : Embed data by random columns; distances are right on average.
    sketch : Apply a filter of an operator to random columns.
    uncertainty.distance_interval : Compute confidence intervals of distances of a sketch.

    Notes
    -----
    The cost is some values of a distribution function; no data are needed.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), Algorithm 4.

    Examples
    --------
    >>> import heatsketch as hs
    >>> hs.columns_for(0.1), hs.columns_for(0.05), hs.columns_for(0.1, n_pairs=10**6)
    (192, 769, 1527)
    """
    e = check_number(relative_error, "relative_error", low=0, high=1, open_low=True, open_high=True)
    n_pairs = check_number(n_pairs, "n_pairs", low=1, integer=True)
    tail = (1 - check_level(level)) / (2 * n_pairs)

    def is_enough(k: int) -> bool:
        low, high = ratio_bounds(k, tail)
        return low >= (1 - e) ** 2 and high <= (1 + e) ** 2

    k = 1 + bisect_left(range(1, MOST_COLUMNS + 1), True, key=is_enough)
    if k > MOST_COLUMNS:
        raise ValueError(
            f"A relative error of {e:g} takes more than {MOST_COLUMNS:,} columns; pass a larger "
            "one, or compute the distances with diffusion_distance, exactly."
        )
    return k
