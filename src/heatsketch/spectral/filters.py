"""The filters: functions of the eigenvalue, each at its diffusion time, registered by name."""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from scipy.optimize import minimize_scalar

from heatsketch._checks import check_choice, check_number
from heatsketch._typing import Array
from heatsketch.operators.operator import Interval

_NEGATIVE_ROUNDING = 1e-7  # of the largest eigenvalue: below 0 by less is rounding (of float32)
_SMALLEST_POWER = 1e-3  # below, a power is as good as a step at 0
_LAST_TIME = 64  # times the first one: the end of a sum over times
_SMALLEST_DIVISOR = 1e-6  # an eigenvalue; eigenvectors are accurate to some 1e-8
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


@dataclass(frozen=True)
class Power(Filter):
    """λ^p: p steps of diffusion (*Sketching the heat kernel*, Algorithms 3-5).

    A whole p takes p products by A. Any other is the real power of a positive semidefinite A: with
    p = ½ the covariance of `sketch` is A itself, (29) there. Where A has a negative eigenvalue, it
    has no such power, which is an error; eigenvalues down to -1e-7 of the largest are rounding, and
    count as 0.

    Parameters
    ----------
    p : float >= 0
        Not whole: all eigenpairs are computed for up to 2,048 points. For more, the operator must
        be known to be positive semidefinite, such as ``Dense(A, (0, 1))`` or a Gaussian `Kernel`;
        a Chebyshev series then takes up to tol^(-1/(2p)) products (1,000 for p = ½ and the `tol`
        1e-3 of `sketch`; 100,000 for p = 1.5 to rounding), because λ^p is not smooth at 0.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.Power(2)(np.array([1.0, 0.5])), hs.Power(0.5)(np.array([1.0, 0.25]))
    (array([1.  , 0.25]), array([1. , 0.5]))
    """

    p: float

    def __post_init__(self) -> None:
        given: Any = self.p
        p = check_number(given, "p", low=0, integer=isinstance(given, numbers.Integral))
        object.__setattr__(self, "p", int(p) if isinstance(p, float) and p.is_integer() else p)

    def __call__(self, lam: Array) -> Array:
        """Evaluate at eigenvalues."""
        return self._known(np.asarray(lam, dtype=float)) ** self.p

    def scaled(self, lam: Array) -> tuple[Array, float]:
        """Return ((λ/m)^p, p log m) with m = max|λ|.

        Raises
        ------
        ValueError
            p is not whole and an eigenvalue is negative.
        """
        peak = float(np.max(np.abs(lam), initial=0.0))
        if peak == 0.0 or self.p == 0:
            return self(lam), 0.0
        return (self._known(np.asarray(lam)) / peak) ** self.p, self.p * math.log(peak)

    def _known(self, lam: Array) -> Array:
        """Return the eigenvalues, of which λ^p is known; of a real power none is negative."""
        if self.products is not None:
            return lam
        low, high = float(np.min(lam, initial=0.0)), float(np.max(np.abs(lam), initial=0.0))
        if low < -_NEGATIVE_ROUNDING * high:
            raise ValueError(
                f"{self} is the power of eigenvalues >= 0, but these go, or may go, down to "
                f"{low:.3g}; pass a whole p, Heat(t), or, where it is known that none is negative, "
                "an operator that says so: Dense(A, (0, 1))."
            )
        return np.maximum(lam, 0.0)

    @property
    def products(self) -> int | None:
        """p, if it is whole."""
        return self.p if isinstance(self.p, int) else None

    def sharpness(self, interval: Interval) -> float:
        """Return p, whatever the width of the interval."""
        return float(self.p)

    def degree(self, interval: Interval, tol: float) -> float:
        """Estimate the degree; of a real power, which is not smooth at 0, some tol^(-1/(2p)).

        Infinite on an interval that reaches below 0: only all eigenvalues can say that none is.
        """
        degree = super().degree(interval, tol)
        if self.products is not None or interval[0] > 0:
            return degree
        rough = tol ** (-1 / (2 * self.p)) if self.p > _SMALLEST_POWER else math.inf
        return math.inf if interval[0] < 0 else max(degree, rough)

    def quotient(self) -> Power:
        """Return λ^(p - 1).

        Raises
        ------
        ValueError
            p is less than 1.
        """
        if self.p == 0:
            raise ValueError("time=0 leaves every point where it is; pass a time of at least 1.")
        if self.p < 1:
            raise ValueError(
                f"time={self.p:g} is less than one step, which every point takes to its "
                "neighbours; pass a time of at least 1."
            )
        return Power(self.p - 1)

    def moved(self) -> Power:
        """Return λ^p itself, p >= 1.

        Raises
        ------
        ValueError
            p is less than 1.
        """
        self.quotient()
        return self

    @classmethod
    def of_coordinates(cls, time: Any) -> Filter:
        """Return λ^t; |λ|^t, if t is not whole.

        Raises
        ------
        ValueError, TypeError
            A time that is not a finite number in the range of the filter.
        """
        time = cls.check_time(time)
        return cls(time) if time.is_integer() else _Modulus(time)

    @classmethod
    def step_weights(cls, time: Any, lam: Array) -> tuple[Array, float]:
        """Return λ^(t-1) of known eigenvalues, scaled; t < 1 divides by them.

        Raises
        ------
        ValueError, TypeError
            A time that is not a finite number >= 0; t is not whole and an eigenvalue is negative,
            or less than 1 and one is nearly 0.
        """
        time = cls.check_time(time)
        if not time.is_integer() and (lam < 0).any():
            raise ValueError(
                f"time={time:g} is not whole and some eigenvalues are negative (the smallest is "
                f"{lam.min():.3g}); pass a whole time, a smaller n_components, or filter='heat'."
            )
        if time >= 1:
            return super().step_weights(time, lam)
        small = float(np.min(np.abs(lam)))
        if small < _SMALLEST_DIVISOR:
            raise ValueError(
                f"time={time:g} divides by eigenvalues, of which one is {small:.1e}; pass a "
                "smaller n_components, or a time of at least 1."
            )
        values, log_scale = cls(time).scaled(lam)
        return values / lam, log_scale

    @classmethod
    def check_time(cls, time: Any, whole: bool = False) -> float:
        """Return a time of at least 0, or raise; `whole` where it counts products, at least 1.

        Raises
        ------
        ValueError, TypeError
            A time that is not a finite number in the range of the filter.
        """
        time = check_number(time, "time", low=1 if whole else 0)
        if whole and not time.is_integer():
            raise ValueError(f"time={time} is not whole; pass a whole number, or filter='heat'.")
        return time

    @classmethod
    def order(cls, lam: Any) -> Any:
        """Return |λ|."""
        return np.abs(lam)

    @classmethod
    def shares(cls, time: float, lam: Array) -> Array:
        """Return |λ / λ_1|^t.

        Raises
        ------
        ValueError, TypeError
            A time that is not a finite number >= 0.
        """
        return np.abs(lam / (lam[0] or 1.0)) ** cls.check_time(time)

    @classmethod
    def decay_time(cls, first: float, last: float, share: float) -> float:
        """Return the smallest whole t with (last / first)^t <= share."""
        if last == 0:
            return 1
        return max(1, math.ceil(math.log(1 / share) / math.log(first / last)))

    @classmethod
    def gap_time(cls, first: float, last: float) -> float:
        """Return the whole t with the largest first^t - last^t."""
        if last == 0:
            return 1
        best = math.log(math.log(last) / math.log(first)) / math.log(first / last)
        before = max(1, math.floor(best))
        return max(before, before + 1, key=lambda t: first**t - last**t)


@dataclass(frozen=True)
class Heat(Filter):
    """e^{-t(1-λ)}: the heat kernel of the graph at any real time t.

    Parameters
    ----------
    t : float >= 0

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> np.round(hs.Heat(2.0)(np.array([1.0, 0.5])), 4)
    array([1.    , 0.3679])
    """

    t: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "t", check_number(self.t, "t", low=0))

    def __call__(self, lam: Array) -> Array:
        """Evaluate at eigenvalues."""
        return np.exp(-self.t * (1.0 - np.asarray(lam, dtype=float)))

    def scaled(self, lam: Array) -> tuple[Array, float]:
        """Return (e^{t(λ-m)}, -t(1-m)) with m = max λ."""
        peak = float(np.max(lam, initial=-np.inf))
        return np.exp(self.t * (np.asarray(lam) - peak)), -self.t * (1.0 - peak)

    def sharpness(self, interval: Interval) -> float:
        """Return t times half the width of the interval."""
        return self.t * (interval[1] - interval[0]) / 2

    def quotient(self) -> HeatQuotient:
        """Return (e^{-t(1-λ)} - e^{-t}) / λ.

        Raises
        ------
        ValueError
            t is 0: no walk has moved.
        """
        return HeatQuotient(check_number(self.t, "time", low=0, open_low=True))

    @classmethod
    def decay_time(cls, first: float, last: float, share: float) -> float:
        """Return the t with e^{-t(first - last)} = share."""
        return math.log(1 / share) / (first - last)

    @classmethod
    def gap_time(cls, first: float, last: float) -> float:
        """Return the t with the largest e^{-t(1-first)} - e^{-t(1-last)}."""
        return math.log((1 - last) / (1 - first)) / (first - last)


@dataclass(frozen=True)
class HeatQuotient(Filter):
    """(e^{-t(1-λ)} - e^{-t}) / λ, without a division by small eigenvalues."""

    t: float

    def __call__(self, lam: Array) -> Array:
        """Evaluate at eigenvalues."""
        values, log_scale = self.scaled(lam)
        return values * np.exp(log_scale)

    def scaled(self, lam: Array) -> tuple[Array, float]:
        """Return the values divided by e^{-t(1-m)}, m = max(λ, 0), and -t(1-m)."""
        lam = np.asarray(lam, dtype=float)
        peak = max(float(np.max(lam, initial=0.0)), 0.0)
        near = np.abs(self.t * lam) < 0.5
        safe = np.where(near, peak or -1.0, lam)  # what is not used must not overflow either
        far_values = (np.exp(self.t * (safe - peak)) - np.exp(-self.t * peak)) / safe
        z = np.where(near, self.t * lam, 0.0)
        phi = np.where(z == 0.0, 1.0, np.expm1(z) / np.where(z == 0.0, 1.0, z))
        near_values = self.t * phi * np.exp(-self.t * peak)
        return np.where(near, near_values, far_values), -self.t * (1.0 - peak)

    def sharpness(self, interval: Interval) -> float:
        """Return that of the heat filter."""
        return Heat(self.t).sharpness(interval)


@dataclass(frozen=True)
class _Modulus(Filter):
    """|λ|^p."""

    p: float

    def __call__(self, lam: Array) -> Array:
        """Evaluate at eigenvalues."""
        return np.abs(lam) ** self.p

    def scaled(self, lam: Array) -> tuple[Array, float]:
        """Return those of `Power` for the moduli."""
        return Power(self.p).scaled(np.abs(lam))

    def sharpness(self, interval: Interval) -> float:
        """Return p."""
        return self.p

    @property
    def roughness(self) -> float:
        """p."""
        return self.p


@dataclass(frozen=True)
class Accumulated(Filter):
    """√(λ^{2t} + λ^{2(t+1)} + ... + λ^{2(T-1)}): squared distances added up over times from t on.

    At one time t all points farther apart than √t steps are equally far. The squared distance of
    this filter is the sum Σ D_s² of diffusion distances over s = t, ..., T - 1, in which far points
    stay far: f(λ) = λ^t √((1 - λ^{2(T-t)}) / (1 - λ²)), and √(T - t) at λ = 1. With t = 0 and T
    infinite it is 1/√(1 - λ²), close to the commute time.

    Parameters
    ----------
    t : float >= 0
        The first time. Not whole only where no eigenvalue is negative, as in `Power`.
    end : float > t, optional
        The time T before which the sum ends, by default 64 t (64 for t = 0). Later times add what
        distinguishes the few most distant groups only.

    Notes
    -----
    Cost: f is no power, a block takes about ln(2/tol) √((T - t) / π) products.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> f, lam = hs.Accumulated(1, 3), np.array([1.0, 0.5])
    >>> np.allclose(f(lam) ** 2, lam**2 + lam**4)
    True
    """

    t: float
    end: float = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        t = Power(self.t).p
        end = _LAST_TIME * max(t, 1) if self.end is None else self.end
        end = check_number(end, "end", low=t, open_low=True)
        object.__setattr__(self, "t", t)
        object.__setattr__(self, "end", end)

    def __call__(self, lam: Array) -> Array:
        """Evaluate at eigenvalues."""
        return Power(self.t)(lam) * np.exp(self._log_root(lam))

    def scaled(self, lam: Array) -> tuple[Array, float]:
        """Return f(λ) / f(m) and log f(m) with m = max|λ|.

        Raises
        ------
        ValueError
            t is not whole and an eigenvalue is negative.
        """
        values, log_scale = Power(self.t).scaled(lam)
        root = self._log_root(lam)
        peak = float(self._log_root(np.max(np.abs(lam), initial=0.0)))
        return values * np.exp(root - peak), log_scale + peak

    def _log_root(self, lam: Array) -> Array:
        """Return log √((1 - λ^{2m}) / (1 - λ²)) for the number m of times, without overflow."""
        count = self.end - self.t
        log = np.log(np.maximum(np.abs(np.asarray(lam, dtype=float)), np.finfo(float).tiny))
        step = np.where(log == 0, -1.0, -2 * np.abs(log))
        ratio = np.where(log == 0, count, np.expm1(count * step) / np.expm1(step))
        # Where |λ| > 1 the largest term, λ^{2(m-1)}, has been taken out.
        return 0.5 * np.log(ratio) + np.maximum((count - 1) * log, 0.0)

    def sharpness(self, interval: Interval) -> float:
        """Return T, whatever the width of the interval."""
        return float(self.end)

    def degree(self, interval: Interval, tol: float) -> float:
        """Estimate the degree: the root has branch points at e^{±iπ/(T-t)}."""
        power = Power(self.t).degree(interval, tol)
        return power + math.log(2 / tol) * math.sqrt((self.end - self.t) / math.pi)

    def quotient(self) -> Accumulated:
        """Return the sum from t - 1 to T - 2: what is left before one more product by A.

        Raises
        ------
        ValueError
            t is less than 1.
        """
        return Accumulated(Power(self.t).quotient().p, self.end - 1)

    def moved(self) -> Accumulated:
        """Return f itself, t >= 1.

        Raises
        ------
        ValueError
            t is less than 1.
        """
        self.quotient()
        return self

    @classmethod
    def check_time(cls, time: Any, whole: bool = False) -> float:
        """Return a time of at least 1, or raise; `whole` where eigenvalues may be negative.

        Raises
        ------
        ValueError, TypeError
            A time that is not a finite number of at least 1.
        """
        return Power.check_time(check_number(time, "time", low=1), whole)

    @classmethod
    def order(cls, lam: Any) -> Any:
        """Return |λ|."""
        return np.abs(lam)

    @classmethod
    def shares(cls, time: float, lam: Array) -> Array:
        """Return |f(λ)| relative to the first eigenvalue.

        Raises
        ------
        ValueError, TypeError
            A time that is not a finite number of at least 1.
        """
        return super().shares(time, np.abs(lam))

    @classmethod
    def decay_time(cls, first: float, last: float, share: float) -> float:
        """Return the smallest whole t with f(last) at most a share of f(first).

        Raises
        ------
        ValueError
            There is no such time.
        """
        return math.ceil(super().decay_time(first, last, share))

    @classmethod
    def gap_time(cls, first: float, last: float) -> float:
        """Return the whole t >= 1 with the largest f(first) - f(last), nearly."""
        return max(1, round(super().gap_time(first, last)))


@dataclass(frozen=True)
class GreensFilter(Filter):
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

    def order(self, lam: Any) -> Any:  # type: ignore[override]
        """Return what |f| grows with."""
        return self.f.order(lam)

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


FILTERS: dict[str, Any] = {"power": Power, "heat": Heat, "accumulated": Accumulated}


def make_filter(filter: str, time: Any) -> Filter:
    """Return the filter of that name at that time."""
    return FILTERS[check_choice(filter, "filter", tuple(FILTERS))](time)


def of_one_time(filter: str) -> str:
    """Return the name of the filter whose times a filter adds up: "power" for "accumulated"."""
    return "power" if filter == "accumulated" else filter


def times_of(times: Any) -> list[Any]:
    """Return the diffusion times of a parameter `time`, which is one or a sequence of them."""
    if isinstance(times, Sequence | np.ndarray) and not isinstance(times, str):
        if len(times) == 0:
            raise ValueError("time is an empty sequence; pass one or more times.")
        return list(times)
    return [times]
