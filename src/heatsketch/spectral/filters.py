"""The filters: functions of the eigenvalue, each at its diffusion time, registered by name."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heatsketch._checks import check_choice, check_number
from heatsketch._typing import Array
from heatsketch.spectral.chebyshev import Interval
from heatsketch.spectral.filter_base import Filter

_NEGATIVE_ROUNDING = 1e-7  # of the largest eigenvalue: below 0 by less is rounding (of float32)
_SMALLEST_POWER = 1e-3  # below, a power is as good as a step at 0
_SMALLEST_DIVISOR = 1e-6  # an eigenvalue; eigenvectors are accurate to some 1e-8


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


FILTERS: dict[str, Any] = {"power": Power, "heat": Heat}  # a third one enters here by its name


def make_filter(filter: str, time: Any) -> Filter:
    """Return the filter of that name at that time."""
    return FILTERS[check_choice(filter, "filter", tuple(FILTERS))](time)


def times_of(times: Any) -> list[Any]:
    """Return the diffusion times of a parameter `time`, which is one or a sequence of them."""
    if isinstance(times, Sequence | np.ndarray) and not isinstance(times, str):
        if len(times) == 0:
            raise ValueError("time is an empty sequence; pass one or more times.")
        return list(times)
    return [times]
