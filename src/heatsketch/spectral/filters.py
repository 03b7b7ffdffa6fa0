"""The filters: functions of the eigenvalue, each at its diffusion time, registered by name."""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import exprel

from heatsketch._arrays import Array
from heatsketch._checks import check_choice, check_number
from heatsketch.core.operators import Bounds

_NEGATIVE_ROUNDING = 1e-7  # of the largest eigenvalue: negative ones down to this are rounding
_SMALLEST_POWER = 1e-3  # a smaller power is nearly a step at 0
_LAST_TIME = 64  # the end of a sum over times, in units of the first one


class Filter(ABC):
    """A function f of the eigenvalue λ.

    `with_log_scale` defines it. The defaults of the other members are right for a filter that
    varies little. A filter that estimators know by name also has `reduced`, and is in `FILTERS`.
    """

    of_powers = False  # whether f is a sum of powers of λ: time counts steps, |f(-λ)| = |f(λ)|
    least_time = 0.0  # for a sum of powers in an estimator
    steps: int | None = None  # number of products by A that give f(A) exactly, if f is a power

    @abstractmethod
    def with_log_scale(self, lam: Array) -> tuple[Array, float]:
        """Return (f(λ) / e^s, s) with s such that large values neither under- nor overflow."""

    def __call__(self, lam: Array) -> Array:
        """Evaluate at eigenvalues."""
        values, log_scale = self.with_log_scale(lam)
        return values * np.exp(log_scale)

    def sharpness(self, interval: Bounds) -> float:
        """Return the t for which f varies like e^(t x), x in [-1, 1] mapped to the interval."""
        return 0.0

    def degree(self, interval: Bounds, tol: float) -> float:
        """Estimate the degree of the Chebyshev series that has an error `tol`: √(2t ln(2/tol))."""
        return math.sqrt(2 * self.sharpness(interval) * math.log(2 / tol))

    def reduced(self) -> Filter:
        """Return the filter (f(λ) - f(0)) / λ; one more product by A makes it f(λ) - f(0).

        Raises
        ------
        TypeError
            The filter has no reduced form.
        """
        raise TypeError(f"{self} cannot be reduced; pass Power(p) or Heat(t).")

    def minus_constant(self) -> Filter:
        """Return the filter f(λ) - f(0); f(0) is the probability of a walk that has not moved.

        A sum of powers is 0 at 0 (except λ^0).

        Raises
        ------
        TypeError, ValueError
            As in `reduced`.
        """
        return self if self.of_powers else _TimesEigenvalue(self.reduced())

    @classmethod
    def check_time(cls, time: Any, whole: bool = False) -> float:
        """Return a diffusion time in the range of the filter; `whole` if it counts products.

        Raises
        ------
        ValueError, TypeError
            A time that is not a finite number in the range of the filter.
        """
        if not cls.of_powers:
            return check_number(time, "time", low=0, open_low=True)
        time = check_number(time, "time", low=1 if whole else cls.least_time)
        if whole and not time.is_integer():
            raise ValueError(f"time={time} is not whole; pass a whole number, or filter='heat'.")
        return time


@dataclass(frozen=True)
class _TimesEigenvalue(Filter):
    """The filter λ q(λ)."""

    q: Filter

    def with_log_scale(self, lam: Array) -> tuple[Array, float]:
        """Return the values on the scale of q."""
        values, log_scale = self.q.with_log_scale(lam)
        return np.asarray(lam, dtype=float) * values, log_scale

    def sharpness(self, interval: Bounds) -> float:
        """Return the sharpness of q."""
        return self.q.sharpness(interval)


@dataclass(frozen=True)
class Power(Filter):
    """λ^p: p steps of diffusion [1]_.

    A whole p takes p products by A. Any other p is the real power of a positive semidefinite A:
    with p = ½ the covariance of `sketch` is A itself, (29) of [1]_. It is an error if A has a
    negative eigenvalue, because then there is no such power; eigenvalues down to -1e-7 of the
    largest are rounding, and count as 0.

    Parameters
    ----------
    p : float >= 0
        The power. If it is not whole, all eigenpairs are computed for up to 2,048 points. For more,
        the operator must be known to be positive semidefinite, such as ``Dense(A, (0, 1))`` or a
        Gaussian `Kernel`. A Chebyshev series then takes up to tol^(-1/(2p)) products: 1,000 for p =
        ½ with ``sketch(..., tol=1e-3)``; 100,000 for p = 1.5 to rounding. The reason is that λ^p is
        not smooth at 0.

    See Also
    --------
    Heat : The filter e^{-t(1-λ)}.
    Accumulated : The filter of squared distances added up over times.
    sketch : Apply a filter of an operator to random columns.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), Algorithms 3-5 and equation (29).

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.Power(2)(np.array([1.0, 0.5])), hs.Power(0.5)(np.array([1.0, 0.25]))
    (array([1.  , 0.25]), array([1. , 0.5]))
    """

    of_powers = True

    p: float

    def __post_init__(self) -> None:
        given: Any = self.p
        p = check_number(given, "p", low=0, integer=isinstance(given, numbers.Integral))
        whole = int(p) if p == int(p) else None
        object.__setattr__(self, "p", p if whole is None else whole)
        object.__setattr__(self, "steps", whole)

    def with_log_scale(self, lam: Array) -> tuple[Array, float]:
        """Return ((λ/m)^p, p log m) with m = max|λ|.

        Raises
        ------
        ValueError
            p is not whole and an eigenvalue is negative.
        """
        lam = np.asarray(lam, dtype=float)
        peak = float(np.max(np.abs(lam), initial=0.0)) or 1.0
        low = float(np.min(lam, initial=0.0))
        if self.steps is None:
            if low < -_NEGATIVE_ROUNDING * peak:
                raise ValueError(
                    f"{self} is the power of eigenvalues >= 0, but these go, or may go, down to "
                    f"{low:.3g}; pass a whole p, Heat(t), or, where it is known that none is "
                    "negative, an operator that says so: Dense(A, (0, 1))."
                )
            lam = np.maximum(lam, 0.0)
        return (lam / peak) ** self.p, self.p * math.log(peak)

    def sharpness(self, interval: Bounds) -> float:
        """Return p, for any width of the interval."""
        return float(self.p)

    def degree(self, interval: Bounds, tol: float) -> float:
        """Estimate the degree; for a real power, which is not smooth at 0, some tol^(-1/(2p)).

        It is infinite on an interval that reaches below 0, because only all eigenvalues can show
        that none is negative.
        """
        degree = super().degree(interval, tol)
        if self.steps is not None or interval[0] > 0:
            return degree
        rough = tol ** (-1 / (2 * self.p)) if self.p > _SMALLEST_POWER else math.inf
        return math.inf if interval[0] < 0 else max(degree, rough)

    def reduced(self) -> Power:
        """Return λ^(p - 1).

        Raises
        ------
        ValueError
            p is less than 1.
        """
        if self.p < 1:
            raise ValueError(
                f"time={self.p:g} is less than one step, which every point takes to its "
                "neighbours; pass a time of at least 1."
            )
        return Power(self.p - 1)


@dataclass(frozen=True)
class Heat(Filter):
    """e^{-t(1-λ)}: the heat kernel of the graph at any real time t [1]_.

    Parameters
    ----------
    t : float >= 0
        Diffusion time.

    See Also
    --------
    Power : The filter λ^p.
    Accumulated : The filter of squared distances added up over times.
    heat_trace : Estimate the heat trace, and the number of directions at a time.

    Notes
    -----
    The cost is about √(70 t) products with a block for a large time t.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024).

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> np.round(hs.Heat(2.0)(np.array([1.0, 0.5])), 4)
    array([1.    , 0.3679])
    """

    t: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "t", check_number(self.t, "t", low=0))

    def with_log_scale(self, lam: Array) -> tuple[Array, float]:
        """Return (e^{t(λ-m)}, -t(1-m)) with m = max λ."""
        lam = np.asarray(lam, dtype=float)
        peak = float(np.max(lam)) if lam.size else 1.0
        return np.exp(self.t * (lam - peak)), -self.t * (1.0 - peak)

    def sharpness(self, interval: Bounds) -> float:
        """Return t times half the width of the interval."""
        return self.t * (interval[1] - interval[0]) / 2

    def reduced(self) -> ReducedHeat:
        """Return (e^{-t(1-λ)} - e^{-t}) / λ.

        Raises
        ------
        ValueError
            t is 0, when no walk has moved.
        """
        return ReducedHeat(check_number(self.t, "time", low=0, open_low=True))


@dataclass(frozen=True)
class ReducedHeat(Filter):
    """(e^{-t(1-λ)} - e^{-t}) / λ, without a division by small eigenvalues."""

    t: float

    def with_log_scale(self, lam: Array) -> tuple[Array, float]:
        """Return the values divided by e^{-t(1-m)}, m = max(λ, 0), and -t(1-m).

        (e^z - 1)/z = e^z (e^-z - 1)/(-z); the form with the negative exponent is computed.
        """
        lam = np.asarray(lam, dtype=float)
        peak = float(np.max(lam, initial=0.0))
        positive = np.maximum(lam, 0.0)
        values = self.t * np.exp(self.t * (positive - peak)) * exprel(-self.t * np.abs(lam))
        return values, -self.t * (1.0 - peak)

    def sharpness(self, interval: Bounds) -> float:
        """Return the sharpness of the heat filter."""
        return Heat(self.t).sharpness(interval)


@dataclass(frozen=True)
class Accumulated(Filter):
    """√(λ^{2t} + λ^{2(t+1)} + ... + λ^{2(T-1)}): squared distances added up over times from t on.

    At one time t all points farther apart than √t steps are equally far. The squared distance of
    this filter is the sum Σ D_s² of diffusion distances over s = t, ..., T - 1. In this sum far
    points stay far. f(λ) = λ^t √((1 - λ^{2(T-t)}) / (1 - λ²)), and √(T - t) at λ = 1. With t = 0
    and T infinite it is 1/√(1 - λ²), close to the commute time.

    Parameters
    ----------
    t : float >= 0
        The first time. It must be whole if an eigenvalue is negative, as in `Power`.
    end : float > t, default=None
        The time T before which the sum ends, by default 64 t (64 for t = 0), because later times
        add only differences between the few most distant groups.

    See Also
    --------
    Power : The filter λ^p.
    Heat : The filter e^{-t(1-λ)}.
    sketch : Apply a filter of an operator to random columns.

    Notes
    -----
    The cost is about ln(2/tol) √((T - t) / π) products with a block, because f is no power.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> f, lam = hs.Accumulated(1, 3), np.array([1.0, 0.5])
    >>> np.allclose(f(lam) ** 2, lam**2 + lam**4)
    True
    """

    of_powers = True
    least_time = 1.0

    t: float
    end: float = None  # type: ignore[assignment]
    _power: Power = field(init=False, repr=False, compare=False)  # λ^t

    def __post_init__(self) -> None:
        power = Power(self.t)  # checks t
        t = power.p
        end = _LAST_TIME * max(t, 1) if self.end is None else self.end
        object.__setattr__(self, "t", t)
        object.__setattr__(self, "_power", power)
        object.__setattr__(self, "end", check_number(end, "end", low=t, open_low=True))

    def with_log_scale(self, lam: Array) -> tuple[Array, float]:
        """Return f(λ) / f(m) and log f(m) with m = max|λ|.

        Raises
        ------
        ValueError
            t is not whole and an eigenvalue is negative.
        """
        values, log_scale = self._power.with_log_scale(lam)
        # log √((1 - λ^{2c}) / (1 - λ²)) for the number c of times, at every λ and at m.
        moduli, count = np.abs(np.asarray(lam, dtype=float)), self.end - self.t
        moduli = np.append(moduli, np.max(moduli, initial=0.0))
        log = np.log(np.maximum(moduli, np.finfo(float).tiny))
        log_square = np.where(log == 0, -1.0, -2 * np.abs(log))
        ratio = np.where(log == 0, count, np.expm1(count * log_square) / np.expm1(log_square))
        # For |λ| > 1 the largest term, λ^{2(c-1)}, is factored out.
        root = 0.5 * np.log(ratio) + np.maximum((count - 1) * log, 0.0)
        return values * np.exp(root[:-1] - root[-1]), log_scale + float(root[-1])

    def sharpness(self, interval: Bounds) -> float:
        """Return T, for any width of the interval."""
        return float(self.end)

    def degree(self, interval: Bounds, tol: float) -> float:
        """Estimate the degree: the root has branch points at e^{±iπ/(T-t)}."""
        power = self._power.degree(interval, tol)
        return power + math.log(2 / tol) * math.sqrt((self.end - self.t) / math.pi)

    def reduced(self) -> Accumulated:
        """Return the sum from t - 1 to T - 2; one more product by A completes it.

        Raises
        ------
        ValueError
            t is less than 1.
        """
        return Accumulated(self._power.reduced().p, self.end - 1)


@dataclass(frozen=True)
class GreensFilter(Filter):
    """f(λ) / (1 - λ) = Σ_s f(λ) λ^s, s = 0, 1, ...: a diffusion and all its further steps.

    With f = λ^t it sums walks of t steps or more; t = 1 is *Diffusion pseudotime* (Haghverdi,
    Büttner, Wolf, Buettner and Theis 2016). Eigenvalues must be below 1.

    Parameters
    ----------
    f : Filter
    """

    f: Filter

    def with_log_scale(self, lam: Array) -> tuple[Array, float]:
        """Return the values on the scale of f at the eigenvalue nearest to 1."""
        values, log_scale = self.f.with_log_scale(lam)
        gap = _gap(lam)
        least = float(np.min(gap, initial=1.0))
        return values * (least / gap), log_scale - math.log(least)

    @property
    def of_powers(self) -> bool:  # type: ignore[override]
        """Whether f is a sum of powers."""
        return self.f.of_powers

    def sharpness(self, interval: Bounds) -> float:
        """Return the sharpness of f plus the largest slope of log 1/(1 - λ), at the upper end."""
        return self.f.sharpness(interval) + _slope(interval)

    def degree(self, interval: Bounds, tol: float) -> float:
        """Estimate the degree: the series of 1/(1 - λ) converges like e^(-j √(2/slope))."""
        return self.f.degree(interval, tol) + math.log(2 / tol) * math.sqrt(_slope(interval) / 2)


def _gap(lam: Array) -> Array:
    """Return 1 - λ, but at least its rounding error."""
    return np.maximum(1.0 - np.asarray(lam, dtype=float), np.finfo(float).eps)


def _slope(interval: Bounds) -> float:
    low, high = interval
    return float((high - low) / (2 * _gap(np.array(high))))


FILTERS: dict[str, Any] = {"power": Power, "heat": Heat, "accumulated": Accumulated}


def make_filter(filter: str, time: Any) -> Filter:
    """Return the filter of a name at a time."""
    made: Filter = FILTERS[check_choice(filter, "filter", tuple(FILTERS))](time)
    return made


def times_of(times: Any) -> list[Any]:
    """Return the diffusion times of a parameter `time`, which is one or a sequence of them."""
    if isinstance(times, np.ndarray) and times.ndim == 0:
        times = times[()]
    if isinstance(times, Sequence | np.ndarray) and not isinstance(times, str):
        if len(times) == 0:
            raise ValueError("time is an empty sequence; pass one or more times.")
        return list(times)
    return [times]
