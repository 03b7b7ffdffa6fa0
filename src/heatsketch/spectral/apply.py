"""Filters of an operator applied to a block, many in one pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.fft import dct

from heatsketch._progress import track
from heatsketch._tensors import in_kind_of, norms, on_host, peak, precision
from heatsketch._typing import Array
from heatsketch.operators.operator import LANCZOS_STEPS, Affine, Interval, Operator
from heatsketch.spectral.chebyshev import add_multiples, recurrence
from heatsketch.spectral.dense import all_eigenpairs
from heatsketch.spectral.eigenpairs import eigh
from heatsketch.spectral.filters import Filter

SPECTRAL_LIMIT = 2048  # points up to which computing all eigenpairs is an option
_MAX_DEGREE = 2**17
_BEYOND = 4.0  # times the coefficients of the last octave are more than all after it, p >= 0.2
_MIN_SHARE = 1e-3  # of the largest f on the interval that the spectrum has to reach
_MAX_ROUNDING = 1e-2  # degree² eps, a bound on what the recurrence loses to rounding
_SHORT_TIME = 16.0  # nothing underflows by then
_MAX_EXACT_PRODUCTS = 8  # powers up to which products are always more exact than eigenpairs


@dataclass(frozen=True)
class Relative(Filter):
    """f / f(top), for times at which f itself is beyond the range of numbers.

    Parameters
    ----------
    f : Filter
    ends : (float, float)
        The ends of the spectrum; the top is the one with the larger |f|.
    """

    f: Filter
    ends: Interval

    @cached_property
    def log(self) -> float:
        """Return log |f(top)|."""
        return log_peak(self.f, np.array(self.ends))

    def __call__(self, lam: Array) -> Array:
        """Evaluate at eigenvalues."""
        values, log_scale = self.f.scaled(lam)
        return np.asarray(values * math.exp(log_scale - self.log))

    def scaled(self, lam: Array) -> tuple[Array, float]:
        """Return the values on the scale of f, and by how much it differs."""
        values, log_scale = self.f.scaled(lam)
        return values, log_scale - self.log

    @property
    def products(self) -> int | None:
        """That of f."""
        return self.f.products

    def sharpness(self, interval: Interval) -> float:
        """Return that of f."""
        return self.f.sharpness(interval)

    def degree(self, interval: Interval, tol: float) -> float:
        """Return that of f."""
        return self.f.degree(interval, tol)


def log_peak(f: Filter, lam: Array) -> float:
    """Return the logarithm of the largest |f| at eigenvalues, of real powers at their moduli."""
    values, log_scale = f.scaled(f.order(lam))
    largest = float(np.abs(values).max(initial=0.0))
    return math.log(largest) + log_scale if largest > 0 else -math.inf


def representable(log_size: float, dtype: Any) -> bool:
    """Say whether `dtype` holds numbers of this size and, for distances, their squares."""
    limits = np.finfo(dtype)
    smallest = math.log(limits.tiny) / 2 - math.log(limits.eps)
    return smallest < log_size < math.log(limits.max) / 2


def in_range(values: Array, log_scale: float, dtype: Any) -> tuple[Array, float]:
    """Return values e^log_scale and 0, or both as they are where that is beyond the range."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest > 0 and not representable(math.log(largest) + log_scale, dtype):
        return values, log_scale
    half = math.exp(log_scale / 2) if largest > 0 else 1.0
    return (values * half) * half, 0.0


def on_scale(f: Filter, A: Operator) -> tuple[Filter, float]:
    """Return g and s with f(A) = e^s g(A), of which g(A) X is within the range of numbers.

    f itself and 0, unless the time is so large that f is beyond the range at the largest
    eigenvalue. This is the only scale: blocks have none of their own.
    """
    at_most = log_peak(f, np.array(A.spectrum))
    if f.sharpness((-1.0, 1.0)) <= _SHORT_TIME and representable(at_most, A.dtype):
        return f, 0.0
    inside = A.ends[1]
    if all(representable(size, A.dtype) for size in (at_most, log_peak(f, np.array(inside)))):
        return f, 0.0
    ends = _ends(A)
    size = log_peak(f, np.array(ends))
    return (f, 0.0) if representable(size, A.dtype) else (Relative(f, ends), size)


def too_large(log_size: float, dtype: Any) -> ValueError:
    """Return the error for a result beyond the range of numbers."""
    return ValueError(
        f"The time is too large: the result is of size e^{log_size:.0f}, beyond {dtype}; pass a "
        "smaller time (nothing but the slowest direction is left at this one)."
    )


def apply(
    filters: Sequence[Filter], A: Operator, X: Array, tol: float | None = None
) -> list[Array]:
    """Return f(A) X for every filter f, in one pass over the powers of A.

    Small problems at large times go through all eigenpairs, small powers through plain products,
    everything else through one Chebyshev recurrence that serves all filters. Where that takes fewer
    products, powers of a bank share the recurrence.

    Parameters
    ----------
    filters : sequence of Filter
    A : Operator
    X : array (n, k)
    tol : float, optional
        Largest error of f on the spectrum, relative to its largest value there, that the series may
        have; by default, and at the least, rounding: 9e-16 sqrt(1 + t), or 3e-8 in float32, where
        the recurrence itself loses up to 1e-5 (distances of the closest pairs 1e-3).

    Notes
    -----
    Cost: as many products by A as the largest power, or about sqrt(2 t log(2 / tol)) for a large
    time t, sqrt(70 t) to rounding in float64. Memory: X, three blocks of its size, one per filter.
    """
    given, X = X, A.asarray(X)
    degrees = [_degree(f, A, tol) for f in filters]
    if _all_eigenpairs_pay(filters, degrees, A, X):
        blocks = _by_eigenpairs(filters, A, X)
    else:
        blocks = _by_recurrences(filters, degrees, A, X, tol)
    return [in_kind_of(block, given) for block in blocks]


def chebyshev_coefficients(
    f: Filter, interval: tuple[float, float], tol: float
) -> tuple[Array, float]:
    """Return c and s with f(λ) = e^s Σ c_j T_j(x), x in [-1, 1] mapped to the interval.

    e^s is the size of f at the ends, so that neither under- nor overflows. The moduli of the
    coefficients left out add up to `tol` at most, which bounds the error on the interval (those
    that rounding of the transform explains are not counted); raises if 131,072 are not enough.
    """
    low, high = interval
    log_scale = f.scaled(np.array(interval))[1]
    # Nodes that see a peak of width 1/t.
    root = math.sqrt(1 + f.sharpness(interval))
    n = 2 ** math.ceil(math.log2(64 + 4 * root))
    while True:
        angles = np.pi * (np.arange(n) + 0.5) / n
        nodes = 0.5 * (high - low) * np.cos(angles) + 0.5 * (high + low)
        values = f.scaled(np.append(nodes, interval))[0][:n]
        c = dct(values, type=2) / n
        c[0] /= 2
        # λ near 1 is rounded, which changes f(λ) by t eps and a coefficient by its square root.
        rounding = np.finfo(float).eps * root * max(1.0, float(np.abs(values).max()))
        size = np.where(np.abs(c) > rounding, np.abs(c), 0.0)
        left_out = np.cumsum(size[::-1])[::-1]  # from this one on
        # What comes after the last: where f is not smooth the sums of octaves fall slowly, those
        # of λ^p at 0 like 4^-p.
        left_out += _BEYOND * left_out[n // 2]
        kept = max(1, int(np.count_nonzero(left_out > tol)))
        if kept <= n - n // 8:
            return c[:kept], log_scale
        if n >= 2 * _MAX_DEGREE:
            raise ValueError(
                f"{f} needs over {_MAX_DEGREE} products by the operator; pass a smaller time, or a "
                "larger tol."
            )
        n *= 2


def _by_recurrences(
    filters: Sequence[Filter], degrees: Sequence[float], A: Operator, X: Array, tol: float | None
) -> list[Array]:
    plain = _plain(filters, degrees, A)
    chebyshev = [i for i in range(len(filters)) if i not in plain]
    most = max((degrees[i] for i in chebyshev), default=0.0)
    done: dict[int, Array] = {}
    for bounds in (bounds_of, _tight_bounds):
        left = [i for i in chebyshev if i not in done]
        if left:
            chosen = [filters[i] for i in left]
            found = _by_chebyshev(chosen, A, X, *bounds(chosen, most, A, X, tol), tol)
            done |= {i: block for i, block in zip(left, found, strict=True) if block is not None}
    for i in chebyshev:
        if i not in done and filters[i].products is None:
            raise ValueError(
                f"{filters[i]} leaves nothing of the block but rounding; pass a smaller time, or "
                "Power."
            )
    powers = _powers(filters)
    steps = {i: powers[i] for i in range(len(filters)) if i not in done}
    if steps:
        done |= _by_products(filters, steps, A, X)
    return [done[i] for i in range(len(filters))]


def bounds_of(
    filters: Sequence[Filter], degree: float, A: Operator, X: Array, tol: float | None
) -> tuple[Interval, Interval]:
    """Bound the spectrum from outside and inside, by Lanczos steps where they save more.

    A tolerance is one next to the largest f on the spectrum itself: then they are needed.
    """
    k = X.shape[1] if X.ndim == 2 else 1
    # A product costs as much as 8 columns and its own; a fifth of the degree is saved as a rule.
    if tol is None and degree / 5 * (8 + k) < LANCZOS_STEPS * (8 + 1):
        return A.spectrum, A.spectrum
    outer, inner = A.ends
    if min(_share(f, outer, inner) for f in filters) < _MIN_SHARE:
        return _tight_bounds(filters, degree, A, X, tol)
    return outer, inner


def _share(f: Filter, outer: Interval, inner: Interval) -> float:
    """Return the largest f at the ends of the inner interval next to that of the outer one."""
    values = np.abs(f.scaled(np.array([*outer, *inner]))[0])
    return float(values[2:].max() / (values.max() or 1.0))


def _tight_bounds(
    filters: Sequence[Filter], degree: float, A: Operator, X: Array, tol: float | None
) -> tuple[Interval, Interval]:
    ends = _ends(A)
    return ends, ends


def _ends(A: Operator) -> Interval:
    """Compute the ends of the spectrum, for where the interval known is too wide to be of use."""
    top = eigh(A, 1, rng=0)
    high = max(float(top.values[0]) + 2 * float(top.residuals[0]), 0.0)
    # The low end may be generous (f is largest at the high one), and is crowded as a rule.
    bottom = eigh(Affine(A, -1.0), 1, tol=1e-4, rng=0)
    low = -float(bottom.values[0]) - 1e-3 * max(map(abs, A.spectrum))
    return min(low, 0.0), high


def _plain(filters: Sequence[Filter], degrees: Sequence[float], A: Operator) -> set[int]:
    """Choose the filters, all powers up to some p, that go through plain products.

    These are more exact, and worth twice as many as the recurrence takes. In single precision the
    recurrence has digits for low degrees only.
    """
    eps = float(np.finfo(A.dtype).eps)
    powers = _powers(filters)
    exact = [p for i, p in powers.items() if degrees[i] ** 2 * eps > _MAX_ROUNDING]

    def cost(most: int) -> float:
        rest = [d for i, d in enumerate(degrees) if powers.get(i, math.inf) > most]
        return most / 2 + max(rest, default=0.0)

    candidates = [p for p in {0, *powers.values()} if eps < 1e-10 or p >= max(exact, default=0)]
    limit = min(candidates, key=lambda p: (cost(p), -p))
    return {i for i, p in powers.items() if p <= limit}


def _powers(filters: Sequence[Filter]) -> dict[int, int]:
    """Return the number of products of each filter that is exactly some."""
    return {i: f.products for i, f in enumerate(filters) if f.products is not None}


def _degree(f: Filter, A: Operator, tol: float | None = None) -> float:
    """Estimate the Chebyshev degree that reaches `tol` or rounding."""
    eps = float(np.finfo(A.dtype).eps)
    if tol is None:
        return 16 + f.degree(A.spectrum, eps / 4)
    return f.degree(A.spectrum, min(max(tol, eps), 1.0))


def _all_eigenpairs_pay(
    filters: Sequence[Filter], degrees: Sequence[float], A: Operator, X: Array
) -> bool:
    if A.n > SPECTRAL_LIMIT:
        return False
    k = X.shape[1] if X.ndim == 2 else 1
    powers = _powers(filters)
    products = max((min(powers.get(i, d), d) for i, d in enumerate(degrees)), default=0)
    few = all(powers.get(i, math.inf) <= _MAX_EXACT_PRODUCTS for i in range(len(filters)))
    beyond = products > _MAX_DEGREE / 2
    return beyond or (not few and products * k > 12 * A.n + 1000)


def _by_eigenpairs(filters: Sequence[Filter], A: Operator, X: Array) -> list[Array]:
    lam, V = all_eigenpairs(A)
    coefficients = V.T @ np.asarray(on_host(X))
    blocks = []
    for f in filters:
        weights = f(lam) if X.ndim == 1 else f(lam)[:, None]
        blocks.append(A.asarray((V @ (weights * coefficients)).astype(A.dtype)))
    return blocks


def _by_products(
    filters: Sequence[Filter], steps: dict[int, int], A: Operator, X: Array
) -> dict[int, Array]:
    """Return A^p X; what is in work is kept of size 1 by powers of two."""
    done: dict[int, Array] = {}
    exponent, last = 0, max(steps.values(), default=0)
    for p in track(range(last + 1), "products", last, "products"):
        if p > 0:
            X = A.multiply_projected(X) if p > 1 else A @ X
            largest = peak(X)
            if 0.0 < largest < 2.0**-40 or largest > 2.0**40:
                shift = math.frexp(largest)[1]
                X = (X * 2.0 ** -(shift // 2)) * 2.0 ** -(shift - shift // 2)  # in float32, too
                exponent += shift
        for i, wanted in steps.items():
            if wanted == p:
                scale = exponent * math.log(2.0) - getattr(filters[i], "log", 0.0)
                done[i] = X if scale == 0 else (X * math.exp(scale / 2)) * math.exp(scale / 2)
    return done


def _by_chebyshev(
    filters: Sequence[Filter],
    A: Operator,
    X: Array,
    interval: Interval,
    inside: Interval | None = None,
    tol: float | None = None,
) -> list[Array | None]:
    """Return f(A) X by Chebyshev series on an interval; None where rounding spoils it."""
    low, high = interval
    high = high if high > low else low + 1.0
    tolerances = [tolerance_of(f, A, interval, inside, tol) for f in filters]
    series, log_scales = zip(
        *(
            chebyshev_coefficients(f, (low, high), own)
            for f, own in zip(filters, tolerances, strict=True)
        ),
        strict=True,
    )
    degree = max(len(c) for c in series) - 1
    check_degree(filters[0], degree, A)
    sums: list[Any] = [float(c[0]) * X for c in series]
    scale, shift = 2.0 / (high - low), (high + low) / (high - low)
    previous = X
    terms = track(recurrence(A, X, scale, shift, degree), "products", degree, "products")
    for j, T in enumerate(terms, start=1):
        if j % 2 == 0 or j == degree:  # two at a time: half the traffic of the sums
            first, new = (j - 1, [previous, T]) if j % 2 == 0 else (j, [T])
            active = [i for i, c in enumerate(series) if first < len(c)]
            more = add_multiples([(sums[i], series[i][first : j + 1]) for i in active], new)
            for i, total in zip(active, more, strict=True):
                sums[i] = total
        previous = T
    least = float(np.sqrt(np.finfo(precision(X)).eps)) * float(norms(X))
    for i, log_scale in enumerate(log_scales):
        if float(norms(sums[i])) < least:  # rounding is relative to the largest f on the interval
            sums[i] = None
        elif log_scale:
            sums[i] *= math.exp(log_scale)
    return sums


def tolerance_of(
    f: Filter, A: Operator, interval: Interval, inside: Interval | None, tol: float | None
) -> float:
    """Return the error the series may have next to the largest f on the interval."""
    # Rounding of λ near 1 alone changes f(λ) by t eps; its coefficients feel the square root of t.
    # In float32 products round more than that, and the closest pairs need what can be had.
    exact = 4 * float(np.finfo(float).eps) * math.sqrt(1 + f.sharpness(interval))
    rounding = max(exact, float(np.finfo(A.dtype).eps) / 4)
    if tol is None:
        return rounding
    return max(tol * _share(f, interval, inside or interval), rounding)


def check_degree(f: Filter, degree: int, A: Operator) -> None:
    """Raise if rounding would spoil a recurrence of so many products."""
    eps = float(np.finfo(A.dtype).eps)
    if degree**2 * eps > _MAX_ROUNDING:
        raise ValueError(
            f"{f} takes {degree} products, more than {A.dtype} has digits for; pass a "
            "smaller time" + (", or the operator in float64." if eps > 1e-10 else ".")
        )
