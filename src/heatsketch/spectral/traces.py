"""Traces of functions of an operator: heat traces, explained variance, and their intervals.

They are exact for few points; beyond, they are means of gᵀ w(A) g over random columns g (Hutchinson
1990), with intervals by the chi-square distribution.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2, norm

from heatsketch._arrays import Array, Rng
from heatsketch._checks import check_level, check_number
from heatsketch._random import random_block
from heatsketch.core.graph import on_vertices
from heatsketch.core.operators import Bounds, Operator, members_of
from heatsketch.spectral.eigen import all_eigenvalues, leading_vector
from heatsketch.spectral.filters import Filter, Heat
from heatsketch.spectral.functions import SPECTRAL_LIMIT, apply
from heatsketch.spectral.recurrences import SpectralDensity, spectral_density

N_PROBES = 64  # an interval of the part left out is at most √(8/64) of this part wide
_ROUNDING = 1e-13  # of an eigenvalue
_RESOLVED = 1e-2  # of t(1 - λ), what rounding of λ may change
_SERIES = 1e-6  # error of f(A) next to its largest value, enough for an estimated fraction
_ERROR = 1e-4  # error of a trace by few steps, next to one eigenvalue at the top
_LEAST_STEPS = 8
_SEED = 0x6B5F3A91C2D4E807  # unlike seeds of sketches, which coordinates may span
_DEPENDENT = 1e-9  # fraction of a column outside of the others, below which it is rounding


def estimated_density(A: Operator, X: Array, sharpness: float) -> SpectralDensity:
    """Return nodes and weights of tr P w(A) P, for functions w of a `sharpness`, see `Filter`.

    The columns of X (n, k) are P times random ones (Hutchinson 1990). With a P that removes large
    eigenvectors this is Hutch++ (Meyer, Musco, Musco and Woodruff 2021).
    """
    degree = math.sqrt(2 * sharpness * math.log(2 * A.n / _ERROR))
    return spectral_density(A, X / math.sqrt(X.shape[1]), max(_LEAST_STEPS, math.ceil(degree / 2)))


def chi_square_interval(mean: float, square: float, n_probes: int, level: float) -> Bounds:
    """Return an interval for a trace of a positive semidefinite matrix M from its estimate.

    The mean of k values g' M g has the distribution of χ²_(kν) / (kν) tr M if M has ν equal
    eigenvalues; else it has the same mean and variance with ν = (tr M)² / tr M² (Satterthwaite
    1946).

    Parameters
    ----------
    mean, square : estimates of tr M and tr M²
    n_probes, level : k, and the probability
    """
    if not (mean > 0 and square > 0):
        return max(mean, 0.0), max(mean, 0.0)
    freedom = n_probes * max(mean**2 / square, 1.0)
    low, high = chi2.ppf([(1 + level) / 2, (1 - level) / 2], freedom)
    return mean * freedom / float(low), mean * freedom / max(float(high), 1e-300)


# The heat trace


@dataclass(frozen=True, eq=False)
class HeatTrace:
    """The heat trace Z(t) = tr e^{-t(1-A)} at some times, its entropy and dimension, with errors.

    With p_i = e^{-t(1-λ_i)} / Z the entropy is -Σ p_i log p_i = log Z + t Σ p_i (1 - λ_i), and the
    spectral dimension -2 d log Z / d log t = 2 t Σ p_i (1 - λ_i).

    Attributes
    ----------
    times, values, low, high : arrays (m,)
        Z and the ends of its interval, which are Z itself if all eigenvalues are known.
    entropy, effective_rank, dimension : arrays (m,)
        The entropy, e^entropy (the number of directions that are left) and the spectral dimension.
    entropy_error, dimension_error : arrays (m,)
        Their standard errors, by linearisation; 0 if all eigenvalues are known.
    level : float
    exact : bool
    """

    times: Array
    values: Array
    low: Array
    high: Array
    entropy: Array
    entropy_error: Array
    dimension: Array
    dimension_error: Array
    level: float
    exact: bool

    @property
    def effective_rank(self) -> Array:
        """e^entropy (m,)."""
        return np.exp(self.entropy)

    @property
    def effective_rank_interval(self) -> tuple[Array, Array]:
        """The ends of an interval (m,), at the level."""
        half = float(norm.ppf((1 + self.level) / 2)) * self.entropy_error
        return np.exp(np.maximum(self.entropy - half, 0.0)), np.exp(self.entropy + half)


def heat_trace(
    A: Any,
    times: Any,
    *,
    n_probes: int = 64,
    level: float = 0.95,
    rng: Rng = None,
) -> HeatTrace:
    """Compute the heat trace Z(t) = tr e^{-t(1-A)} = Σ e^{-t(1-λ_i)}, with error bars.

    Z falls from n at t = 0 to the number of eigenvalues 1, which is the number of components. On
    data of dimension d it falls like t^{-d/2} in between: a plateau of `dimension` is an estimate
    of d. `effective_rank` is the number of directions that are left at a time.

    Up to 2,048 points it comes from all eigenvalues. Beyond, it is estimated by k random columns
    [1]_, from one Lanczos recurrence for all times; the part of the largest eigenvalue is exact.

    Parameters
    ----------
    A : Diffusion, Operator or {array-like, sparse matrix} of shape (n_samples, n_samples)
        Symmetric, usually a normalised affinity. `Deflated` directions are left out.
    times : float > 0, or a sequence of times
        Times t of the trace.
    n_probes : int, default=64
        Number k of columns. One standard error of Z is √(2 Z(2t) / k), without the part that is
        exact.
    level : float in (0, 1), default=0.95
        Probability that an interval contains its value. The interval of Z is by the chi-square
        distribution with k Z(t)² / Z(2t) degrees of freedom, which is exact for equal eigenvalues;
        the others are by the normal distribution, for many degrees of freedom.
    rng : int, Generator or None, default=None
        Seed of the random numbers.

    Returns
    -------
    HeatTrace
        `.values`, `.low`, `.high` (n_times,), and `entropy`, `effective_rank`, `dimension`.

    Raises
    ------
    ValueError
        A is not symmetric or not finite; a time is too large for the precision of A.

    See Also
    --------
    eigh : Compute the leading eigenpairs of an operator.
    sketch : Apply a filter of an operator to random columns.
    plot.scales : Draw how a diffusion time was chosen.

    Notes
    -----
    The cost is all eigenvalues of up to 2,048 points. For more points it is about √(35 t) products
    with k columns for the largest t, however many times there are, and memory for four blocks of n
    k numbers.

    References
    ----------
    .. [1] M. F. Hutchinson, "A stochastic estimator of the trace of the influence matrix for
       Laplacian smoothing splines", Communications in Statistics - Simulation and Computation 19
       (1990), 433-450.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> trace = hs.heat_trace(np.diag([1.0, 0.5, 0.5]), [2.0])
    >>> np.allclose(trace.values, 1 + 2 * np.exp(-1)), trace.exact
    (True, True)
    """
    times = times if isinstance(times, Sequence | np.ndarray) and np.ndim(times) else [times]
    if len(times) == 0:
        raise ValueError("times is an empty sequence; pass one or more times.")
    times = np.array([check_number(t, "times", low=0, open_low=True) for t in times])
    k = check_number(n_probes, "n_probes", low=2, integer=True)
    level = check_level(level)
    operator = on_vertices(A)[0]
    longest = _RESOLVED / float(np.finfo(operator.dtype).eps)
    if times.max() > longest:
        raise ValueError(
            f"times go up to {times.max():.3g}, where t(1 - λ) is rounding in {operator.dtype}; "
            f"pass times <= {longest:.1g}."
        )
    exact, V = operator.n <= SPECTRAL_LIMIT, np.empty((operator.n, 0))
    if exact:
        values = all_eigenvalues(operator)
    else:
        if not operator.n_deflated:
            V = operator.blocks.host(leading_vector(operator))[:, None].astype(float)
        values = np.einsum("ij,ij->j", V, operator @ V)
    top = float(values.max()) if len(values) else operator.ends[0][1]

    def moments(lam: Array, counts: Array | float) -> Array:
        """Return tr e^-x, tr x e^-x, tr e^-2x, tr x e^-2x, tr x² e^-2x, (5, m), x = t(1 - λ)."""
        # All are divided by e^{-t(1-top)}, or its square.
        x, decay = np.multiply.outer(times, 1 - lam), np.exp(np.multiply.outer(times, lam - top))
        once, twice = counts * decay, counts * decay**2
        return np.sum([once, x * once, twice, x * twice, x**2 * twice], axis=2)

    of_known, of_random = moments(values, 1.0), np.zeros((5, len(times)))
    if not exact:
        sharpness = Heat(2 * times.max()).sharpness(operator.ends[0])
        X = operator.project(random_block(operator.n, k, "gaussian", rng))
        X -= V @ (V.T @ X)
        of_random = moments(*estimated_density(operator, X, sharpness))
    (Z, energy), size = of_known[:2] + of_random[:2], np.exp(-times * (1 - top))
    energy /= Z  # t <1 - λ>, half the dimension
    _, _, f2, xf2, x2f2 = of_random
    ends = [chi_square_interval(r, s, k, level) for r, s in zip(of_random[0], f2, strict=True)]
    low, high = of_known[0] + np.array(ends).T
    return HeatTrace(
        times=times,
        values=Z * size,
        low=low * size,
        high=high * size,
        entropy=np.log(Z) - times * (1 - top) + energy,
        entropy_error=np.sqrt(_variance(f2, xf2, x2f2, 1 - energy, k)) / Z,
        dimension=2 * energy,
        dimension_error=2 * np.sqrt(_variance(f2, xf2, x2f2, -energy, k)) / Z,
        level=level,
        exact=exact,
    )


def _variance(f2: Array, xf2: Array, x2f2: Array, shift: Array, k: int) -> Array:
    """Return the variance 2/k Σ ((x + shift) e^-x)² of a linear function of the moments."""
    return 2 / k * np.maximum(x2f2 + 2 * shift * xf2 + shift**2 * f2, 0.0)


# Explained variance, and the gap of the eigenvalues


class ExplainedVariance(NamedTuple):
    """Fractions of the diffusion variance tr f(A)² by coordinates, without the trivial direction.

    Attributes
    ----------
    ratio, low, high : arrays (k,)
        Fraction that each coordinate adds to those before it, and the ends of its interval.
    cumulative, cumulative_low, cumulative_high : arrays (k,)
        Fraction of the first 1, 2, ..., k coordinates.
    total : float
        tr f(A)².
    level : float
    exact : bool
        Whether the total is known, so that low = ratio = high.
    """

    ratio: Array
    low: Array
    high: Array
    cumulative: Array
    cumulative_low: Array
    cumulative_high: Array
    total: float
    level: float
    exact: bool

    def describe(self) -> str:
        """Return the fraction of all coordinates in words."""
        ends = self.cumulative_low[-1], self.cumulative[-1], self.cumulative_high[-1]
        low, middle, high = (f"{100 * value:.3g}" for value in ends)
        between = "" if self.exact else f" ({100 * self.level:g} %: {low} to {high})"
        return f"{middle} % of the diffusion variance{between}"


class Eigengap(NamedTuple):
    """The largest gap between consecutive eigenvalues.

    Attributes
    ----------
    n_components : int
        Number of eigenvalues before the gap, at least 1.
    gap, low, high : float
        Its width and the ends of its interval. The interval follows from the residuals: each
        computed eigenvalue is within its residual of an eigenvalue of A.
    certain : bool
        Whether it is larger than any other gap within the errors.
    gaps, errors : arrays (k - 1,)
        All gaps λ_m - λ_(m+1), m = 1, ..., k - 1, and the bounds on their errors.
    """

    n_components: int
    gap: float
    low: float
    high: float
    certain: bool
    gaps: Array
    errors: Array


def largest_gap(values: Array, residuals: Array) -> Eigengap:
    """Return the largest gap of eigenvalues (k,) in descending order, with residuals (k,).

    With one eigenvalue no gap is known: then `n_components` is 1 and the gap NaN.
    """
    gaps, errors = -np.diff(values), residuals[1:] + residuals[:-1]
    if len(gaps) == 0:
        return Eigengap(1, np.nan, np.nan, np.nan, False, gaps, errors)
    m = int(np.argmax(gaps))
    low, high = max(float(gaps[m] - errors[m]), 0.0), float(gaps[m] + errors[m])
    other_gaps = np.delete(gaps + errors, m)
    certain = low > float(np.max(other_gaps, initial=0.0))
    return Eigengap(m + 1, float(gaps[m]), low, high, certain, gaps, errors)


def explained_variance(
    A: Operator,
    f: Filter,
    Y: Array,
    level: float = 0.95,
    *,
    values: Array | None = None,
    labels: Array | None = None,
    n_probes: int = N_PROBES,
) -> ExplainedVariance:
    """Return the fractions of tr f(A)² in the spans of the first 1, 2, ..., k columns of Y.

    The fraction of an orthonormal basis Q is |f(A) Q|² / tr f(A)², for eigenvectors Σ f(λ)² / tr
    f(A)². It is exact up to 2,048 points. Beyond, the rest of the trace is estimated by random
    columns orthogonal to Q. Its interval is by the chi-square distribution, which is exact if Q are
    eigenvectors and the other eigenvalues are equal, and a little too wide if Q are no
    eigenvectors.

    Parameters
    ----------
    A : Operator
    f : Filter
    Y : array (n, k)
    level : float
    values : array (k,), optional
        The eigenvalues, if the columns of Y are eigenvectors.
    labels : array (n,), optional
        Components of A, if each has coordinates of its own.
    n_probes : int
        Number of random columns.
    """

    def square(lam: Array) -> Array:  # a real power of λ² has all eigenvalues
        return np.square(f(np.abs(lam) if f.of_powers else lam))

    left_out = 0.0, 0.0, 0.0  # the part that the coordinates leave out, and its interval
    exact = True
    if np.abs(A.ends[1]).max() < _ROUNDING:  # as for equal points: nothing is left out
        held = np.ones(Y.shape[1])
    elif values is not None and len(values) == A.n - A.n_deflated:
        held = square(values)
    else:
        components = [np.arange(A.n)] if labels is None else members_of(labels)
        Q = np.asarray(A.project(Y), dtype=float)
        for rows in components:
            Q[rows] = _orthonormal(Q[rows])
        exact = A.n <= SPECTRAL_LIMIT
        if values is not None:
            held = square(values)
        else:
            tol = 0.0 if exact else _SERIES  # beside the largest f of an eigenvalue, however small
            held = np.square(apply([f], A, Q, tol)[0]).sum(axis=0)
        if exact:
            left_out = (max(float(square(all_eigenvalues(A)).sum() - held.sum()), 0.0),) * 3
        else:
            X = A.project(random_block(A.n, n_probes, "gaussian", np.random.default_rng(_SEED)))
            for rows in components:
                X[rows] -= Q[rows] @ (Q[rows].T @ X[rows])
            lam, counts = estimated_density(A, X, 4 * f.sharpness(A.ends[0]))  # of f⁴
            mean, spread = float(counts @ square(lam)), float(counts @ square(lam) ** 2)
            left_out = mean, *chi_square_interval(mean, spread, n_probes, level)
    # Divide by the whole, and by the ends of its interval; a whole of 0 has fractions 0.
    total, least, most = (float(held.sum()) + part for part in left_out)
    ratio, high, low = (held / (whole or 1.0) for whole in (total, least, most))
    sums = [np.minimum(np.cumsum(part), 1.0) for part in (ratio, low, high)]
    return ExplainedVariance(ratio, low, high, sums[0], sums[1], sums[2], total, level, exact)


def _orthonormal(Y: Array) -> Array:
    """Return Q (n, k) whose first columns span those of Y; 0 for a column that adds nothing."""
    sizes = np.linalg.norm(Y, axis=0)
    Q, R = np.zeros(Y.shape), np.zeros(Y.shape[1])
    full = min(Y.shape)
    Q[:, :full], triangle = np.linalg.qr(Y / np.where(sizes > 0, sizes, 1.0))
    R[:full] = np.diag(triangle)
    return Q * (np.abs(R) > _DEPENDENT)
