"""The sum of a diffusion over all later times, as a filter."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from heatsketch._typing import Array
from heatsketch.spectral.chebyshev import Interval
from heatsketch.spectral.filter_base import Filter


@dataclass(frozen=True)
class Accumulated(Filter):
    """f(λ) / (1 - λ) = Σ_s f(λ) λ^s, s = 0, 1, ...: a diffusion and all its further steps.

    With f = λ^t these are the walks of t steps or more; with t = 1 the sum of *Diffusion
    pseudotime* (Haghverdi, Büttner, Wolf, Buettner and Theis 2016). Of eigenvalues below 1.

    Parameters
    ----------
    f : Filter
    """

    f: Filter

    def __call__(self, lam: Array) -> Array:
        """Evaluate at eigenvalues."""
        return self.f(lam) / _left(lam)

    def scaled(self, lam: Array) -> tuple[Array, float]:
        """Return the values on the scale of f at the eigenvalue nearest to 1."""
        values, log_scale = self.f.scaled(lam)
        left = _left(lam)
        least = float(np.min(left, initial=1.0))
        return values * (least / left), log_scale - math.log(least)

    def sharpness(self, interval: Interval) -> float:
        """Return that of f and the slope of log 1/(1 - λ) at the upper end, where it is largest."""
        return self.f.sharpness(interval) + _slope(interval)

    def degree(self, interval: Interval, tol: float) -> float:
        """Estimate the degree: the series of 1/(1 - λ) converges like e^(-j √(2/slope))."""
        return self.f.degree(interval, tol) + math.log(2 / tol) * math.sqrt(_slope(interval) / 2)


def _left(lam: Array) -> Array:
    """Return 1 - λ, at least its rounding."""
    return np.maximum(1.0 - np.asarray(lam, dtype=float), np.finfo(float).eps)


def _slope(interval: Interval) -> float:
    low, high = interval
    return float((high - low) / (2 * _left(np.array(high))))
