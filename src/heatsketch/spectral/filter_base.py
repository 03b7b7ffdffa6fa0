"""What a filter is: the members that the engine and the estimators ask of one."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from scipy.optimize import minimize_scalar

from heatsketch._checks import check_number
from heatsketch._typing import Array
from heatsketch.spectral.chebyshev import Interval

_MAX_DECAY_TIME = 2.0**50


class Filter(Protocol):
    """A function f of the eigenvalue λ: all that the engine and the estimators ask of one.

    `__call__` and `scaled` say what it is; the other members have defaults that are right for any
    f. One that estimators take by name also has `at` and `quotient`, and stands in `FILTERS`.
    """

    @abstractmethod
    def __call__(self, lam: Array) -> Array:
        """Evaluate at eigenvalues."""

    @abstractmethod
    def scaled(self, lam: Array) -> tuple[Array, float]:
        """Return (f(λ) / e^s, s) with s such that nothing of interest under- or overflows."""

    @property
    def products(self) -> int | None:
        """The number of products by A that give f(A) exactly, where f is a power."""
        return None

    def sharpness(self, interval: Interval) -> float:
        """Return the t for which f varies like e^(t x), x in [-1, 1] mapped to the interval."""
        return 0.0

    def degree(self, interval: Interval, tol: float) -> float:
        """Estimate the degree of the Chebyshev series that has an error `tol`: √(2t ln(2/tol))."""
        return math.sqrt(2 * self.sharpness(interval) * math.log(2 / tol))

    def quotient(self) -> Filter:
        """Return (f(λ) - f(0)) / λ: what remains to be done before a last product by A.

        Raises
        ------
        TypeError
            The filter has none.
        """
        raise TypeError(f"{self} has no quotient; pass Power(p) or Heat(t).")

    def moved(self) -> Filter:
        """Return f(λ) - f(0): the walks that have moved; those that have not are private.

        Raises
        ------
        TypeError, ValueError
            As `quotient`.
        """
        return _Moved(self.quotient())

    @property
    def roughness(self) -> float:
        """The p for which f is like |λ|^p at 0; 0 for a smooth f."""
        return 0.0

    @classmethod
    def of_coordinates(cls, time: Any) -> Filter:
        """Return the factor of a unit eigenvector in coordinates at a time.

        Raises
        ------
        ValueError, TypeError
            As `at` and `moved`.
        """
        return cls.at(time).moved()

    @classmethod
    def at(cls, time: Any) -> Self:
        """Return the filter at a diffusion time, of which eigenvalues and vectors are known.

        Raises
        ------
        ValueError, TypeError
            A time that is not a finite number in the range of the filter.
        """
        return cls(time)  # type: ignore[call-arg]

    @classmethod
    def step_weights(cls, time: Any, lam: Array) -> tuple[Array, float]:
        """Return (f(λ) - f(0)) / λ of known eigenvalues, scaled: what the last product is of.

        Raises
        ------
        ValueError, TypeError
            As `at` and `quotient`.
        """
        return cls.at(time).quotient().scaled(lam)

    @classmethod
    def check_time(cls, time: Any, whole: bool = False) -> float:
        """Return a diffusion time in the range of the filter, or raise; `whole` for products.

        Raises
        ------
        ValueError, TypeError
            A time that is not a finite number in the range of the filter.
        """
        return check_number(time, "time", low=0, open_low=True)

    @classmethod
    def order(cls, lam: Any) -> Any:
        """Return what |f(λ)| grows with: the eigenvalues or their moduli."""
        return lam

    @classmethod
    def shares(cls, time: float, lam: Array) -> Array:
        """Return |f(λ)| relative to the first eigenvalue.

        Raises
        ------
        ValueError, TypeError
            A time that is not a finite number in the range of the filter.
        """
        values = np.abs(cls.at(time).scaled(lam)[0])
        return values / (values[0] or 1.0)

    @classmethod
    def decay_time(cls, first: float, last: float, share: float) -> float:
        """Return the time from which on f(last) is at most a share of f(first), first > last.

        Raises
        ------
        ValueError
            There is no such time.
        """
        high = 1.0
        while cls.shares(high, np.array([first, last]))[1] > share:
            high *= 2
            if high > _MAX_DECAY_TIME:
                raise ValueError(
                    f"time='auto' finds no time at which f falls to {share:g} of its largest; "
                    "pass a time, or a larger delta."
                )
        low = high / 2
        for _ in range(60):
            middle = (low + high) / 2
            kept = cls.shares(middle, np.array([first, last]))[1]
            low, high = (middle, high) if kept > share else (low, middle)
        return high

    @classmethod
    def gap_time(cls, first: float, last: float) -> float:
        """Return the time at which f(first) - f(last) is largest, 1 > first > last."""

        def gap(log_time: float) -> float:
            high, low = cls.at(math.exp(log_time))(np.array([first, last]))
            return low - high

        return math.exp(minimize_scalar(gap, bounds=(-10, 40), method="bounded").x)


@dataclass(frozen=True)
class _Moved(Filter):
    """λ q(λ) = f(λ) - f(0), without a difference."""

    q: Filter

    def __call__(self, lam: Array) -> Array:
        """Evaluate at eigenvalues."""
        return np.asarray(lam, dtype=float) * self.q(lam)

    def scaled(self, lam: Array) -> tuple[Array, float]:
        """Return the values on the scale of q."""
        values, log_scale = self.q.scaled(lam)
        return np.asarray(lam, dtype=float) * values, log_scale

    def sharpness(self, interval: Interval) -> float:
        """Return that of q."""
        return self.q.sharpness(interval)
