"""Traces of functions of an operator: exact for few points, else from random columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from heatsketch._array import random_block
from heatsketch._blocks import sum_over_tiles
from heatsketch._tensors import namespace, on_host
from heatsketch._typing import Array, Rng
from heatsketch.operators.base import Operator
from heatsketch.operators.deflated import as_deflated
from heatsketch.spectral.apply import bounds_of, chebyshev_coefficients, check_degree, tolerance_of
from heatsketch.spectral.chebyshev import Interval, recurrence
from heatsketch.spectral.filter_base import Filter

_SHARE_OF_ONE = 1e-4  # error of a trace by its series, next to one eigenvalue at the top
_MOST_FOR_KINKS = 512.0  # degree that functions with a kink may take


@dataclass(frozen=True)
class Square(Filter):
    """f²."""

    f: Filter

    def __call__(self, lam: Array) -> Array:
        """Evaluate at eigenvalues."""
        return np.square(self.f(lam))

    def scaled(self, lam: Array) -> tuple[Array, float]:
        """Return the squared values on the squared scale of f."""
        values, log_scale = self.f.scaled(lam)
        return np.square(values), 2 * log_scale

    def sharpness(self, interval: Interval) -> float:
        """Return twice that of f."""
        return 2 * self.f.sharpness(interval)

    @property
    def roughness(self) -> float:
        """Twice that of f."""
        return 2 * self.f.roughness


class Series(NamedTuple):
    """A function of the eigenvalue as e^log_scale Σ c_j T_j, with a bound on its error.

    Attributes
    ----------
    coefficients : array (m,)
    log_scale : float
    error : float
        Of the values, divided by e^log_scale.
    """

    coefficients: Array
    log_scale: float
    error: float


class Traces(NamedTuple):
    """tr P w(A) P for functions w, divided by e^log_scale each; P leaves the known directions out.

    Attributes
    ----------
    values : array (m,)
    log_scales : array (m,)
    errors : array (m,)
        What the series may be wrong by; 0 if the traces are exact.
    exact : bool
    """

    values: Array
    log_scales: Array
    errors: Array
    exact: bool


def exact_traces(functions: Sequence[Filter], lam: Array) -> Traces:
    """Return Σ w(λ) over eigenvalues that are all known."""
    found = [w.scaled(lam) for w in functions]
    sums = np.array([float(np.sum(values)) for values, _ in found])
    return Traces(sums, np.array([scale for _, scale in found]), np.zeros(len(sums)), True)


def estimated_traces(
    functions: Sequence[Filter],
    A: Operator,
    without: Callable[[Array], Array],
    n_probes: int,
    rng: Rng,
) -> Traces:
    """Estimate the traces as means of g' w(A) g, g Gaussian and orthogonal to the known directions.

    All functions share the moments g' T_j(A) g, of which a product gives two:
    2 T_i T_j = T_(i+j) + T_|i-j|. Hutchinson (1990), and with known directions that span what is
    large, Hutch++ (Meyer, Musco, Musco and Woodruff 2021).

    Parameters
    ----------
    functions : sequence of Filter
    A : Operator
        Perhaps deflated: the directions taken out do not count.
    without : callable
        Takes the known directions out of columns (n, k).
    n_probes, rng : number of columns, and their seed
    """
    A = as_deflated(A)
    X = A.asarray(without(A.project(random_block(A.n, n_probes, "gaussian", rng))))
    sharpest = max(functions, key=lambda w: w.sharpness(A.spectrum))
    tol = _SHARE_OF_ONE / A.n
    interval, inside = bounds_of([sharpest], 0, A, X, tol)
    tol = tolerance_of(sharpest, A, interval, inside, tol)
    series = [_series(w, interval, tol) for w in functions]
    longest = max(len(s.coefficients) for s in series)
    check_degree(sharpest, longest // 2, A)
    moments = chebyshev_moments(A, X, interval, longest)
    means = moments.mean(axis=1)
    values = np.array([s.coefficients @ means[: len(s.coefficients)] for s in series])
    errors = np.array([s.error * A.n for s in series])
    return Traces(values, np.array([s.log_scale for s in series]), errors, False)


def chebyshev_moments(A: Operator, X: Array, interval: Interval, count: int) -> Array:
    """Return x' T_j(A) x, j < count, of every column x of X: (count, k), by count / 2 products."""
    low, high = interval
    high = high if high > low else low + 1.0
    scale, shift = 2.0 / (high - low), (high + low) / (high - low)
    moments = np.empty((count + 2, X.shape[1]))
    moments[0] = _column_dots(X, X)
    before = X
    for j, T in enumerate(recurrence(A, X, scale, shift, max(1, math.ceil((count - 1) / 2))), 1):
        moments[2 * j - 1] = _column_dots(T, before)
        if j > 1:
            moments[2 * j - 1] = 2 * moments[2 * j - 1] - moments[1]
        if 2 * j < len(moments):
            moments[2 * j] = 2 * _column_dots(T, T) - moments[0]
        before = T
    return moments[:count]


def chi_square_interval(mean: float, square: float, n_probes: int, level: float) -> Interval:
    """Return an interval for a trace of a positive semidefinite matrix M from its estimate.

    The mean of k values g' M g has the law of χ²_(kν) / (kν) tr M if M has ν equal eigenvalues;
    else it has the same mean and variance with ν = (tr M)² / tr M² (Satterthwaite 1946).

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


def _series(w: Filter, interval: Interval, tol: float) -> Series:
    """Expand a function; one with a kink, |λ|^p, no further than its series converges."""
    if w.roughness:
        tol = max(tol, _MOST_FOR_KINKS**-w.roughness)
    coefficients, log_scale = chebyshev_coefficients(w, interval, tol)
    return Series(coefficients, log_scale, tol)


def _column_dots(X: Array, Y: Array) -> Array:
    """Return the products (k,) of columns, summed in float64 and always in the same order."""
    double = namespace(X).float64
    found: Array = on_host(
        sum_over_tiles(X, lambda rows: (X[rows] * Y[rows]).sum(axis=0, dtype=double))
    )
    return found
