"""Filters: functions of the eigenvalue, each at its diffusion time, registered by name."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from scipy.optimize import minimize_scalar

from heatsketch._checks import check_choice, check_number
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

    def quotient(self) -> Filter:
        """Return (f(λ) - f(0)) / λ: what remains to be done before a last product by A."""
        raise TypeError(f"{self} has no quotient; pass Power(p) or Heat(t).")

    def moved(self) -> Filter:
        """Return f(λ) - f(0): the walks that have moved; those that have not are private."""
        return _Moved(self.quotient())

    @classmethod
    def at(cls, time: Any) -> Self:
        """Return the filter at a diffusion time, of which eigenvalues and vectors are known."""
        return cls(time)  # type: ignore[call-arg]

    @classmethod
    def check_time(cls, time: Any, whole: bool = False) -> float:
        """Return a diffusion time in the range of the filter, or raise; `whole` for products."""
        return check_number(time, "time", low=0, open_low=True)

    @classmethod
    def order(cls, lam: Any) -> Any:
        """Return what |f(λ)| grows with: the eigenvalues or their moduli."""
        return lam

    @classmethod
    def shares(cls, time: float, lam: Array) -> Array:
        """Return |f(λ)| relative to the first eigenvalue."""
        values = np.abs(cls.at(time).scaled(lam)[0])
        return values / (values[0] or 1.0)

    @classmethod
    def decay_time(cls, first: float, last: float, share: float) -> float:
        """Return the time from which on f(last) is at most a share of f(first), first > last."""
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
class Power(Filter):
    """λ^p: p steps of diffusion (*Sketching the heat kernel*, Algorithms 3-5).

    Parameters
    ----------
    p : int >= 0

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.Power(2)(np.array([1.0, 0.5]))
    array([1.  , 0.25])
    """

    p: int

    def __post_init__(self) -> None:
        given: Any = self.p
        whole = int(given) if isinstance(given, float) and given.is_integer() else given
        object.__setattr__(self, "p", check_number(whole, "p", low=0, integer=True))

    def __call__(self, lam: Array) -> Array:
        """Evaluate at eigenvalues."""
        return np.asarray(lam, dtype=float) ** self.p

    def scaled(self, lam: Array) -> tuple[Array, float]:
        """Return ((λ/m)^p, p log m) with m = max|λ|."""
        peak = float(np.max(np.abs(lam), initial=0.0))
        if peak == 0.0 or self.p == 0:
            return self(lam), 0.0
        return (np.asarray(lam) / peak) ** self.p, self.p * math.log(peak)

    @property
    def products(self) -> int:
        """p."""
        return self.p

    def sharpness(self, interval: Interval) -> float:
        """Return p, whatever the width of the interval."""
        return float(self.p)

    def quotient(self) -> Power:
        """Return λ^(p - 1)."""
        if self.p < 1:
            raise ValueError("time=0 leaves every point where it is; pass a time of at least 1.")
        return Power(self.p - 1)

    def moved(self) -> Power:
        """Return λ^p itself, p >= 1."""
        self.quotient()
        return self

    @classmethod
    def at(cls, time: Any) -> Any:
        """Return λ^t; for a time that is not whole, of positive eigenvalues."""
        return cls(int(time)) if float(time).is_integer() else _RealPower(float(time), float(time))

    @classmethod
    def check_time(cls, time: Any, whole: bool = False) -> float:
        """Return a time of at least 1, or raise; `whole` where it counts products."""
        time = check_number(time, "time", low=1)
        if whole and not time.is_integer():
            raise ValueError(f"time={time} is not whole; pass a whole number, or filter='heat'.")
        return time

    @classmethod
    def order(cls, lam: Any) -> Any:
        """Return |λ|."""
        return np.abs(lam)

    @classmethod
    def shares(cls, time: float, lam: Array) -> Array:
        """Return |λ / λ_1|^t."""
        return np.abs(lam / (lam[0] or 1.0)) ** time

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
class _RealPower(Filter):
    """λ^t of positive eigenvalues, t not whole: there is no sequence of products for it."""

    t: float
    time: float  # that was asked for

    def __call__(self, lam: Array) -> Array:
        """Evaluate at eigenvalues."""
        values, log_scale = self.scaled(lam)
        return values * math.exp(log_scale)

    def scaled(self, lam: Array) -> tuple[Array, float]:
        """Return ((λ/m)^t, t log m) with m = max λ."""
        if (lam < 0).any():
            raise ValueError(
                f"time={self.time} is not whole and some eigenvalues are negative (the smallest is "
                f"{lam.min():.3g}); pass a whole time, a smaller n_components, or filter='heat'."
            )
        peak = float(lam.max())
        return (lam / peak) ** self.t, self.t * math.log(peak)

    def quotient(self) -> Filter:
        """Return λ^(t - 1)."""
        return _RealPower(self.t - 1, self.time)


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
        """Return (e^{-t(1-λ)} - e^{-t}) / λ."""
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


FILTERS: dict[str, Any] = {"power": Power, "heat": Heat}  # a third one enters here by its name


def make_filter(filter: str, time: Any) -> Filter:
    """Return the filter of that name at that time."""
    return FILTERS[check_choice(filter, "filter", tuple(FILTERS))](time)
