"""Filters of an operator applied to a block, many in one pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from heatsketch._progress import track
from heatsketch._typing import Array
from heatsketch.operators.operator import Affine, Interval, Operator
from heatsketch.spectral.chebyshev import (
    MAX_DEGREE,
    add_multiples,
    chebyshev_coefficients,
    recurrence,
)
from heatsketch.spectral.eigenpairs import all_eigenpairs, eigh
from heatsketch.spectral.filters import Filter

SPECTRAL_LIMIT = 2048  # points up to which computing all eigenpairs is an option
_SHORT_TIME = 16.0  # until then nothing under- or overflows
_NOTHING = 100  # roundings: of eigenvalues no larger than these nothing is left at any time
_ANY_INTERVAL = 4.0  # time until which Lanczos steps cost more than a narrower interval saves
_FEW_PRODUCTS = 8  # up to which they are always more exact, and as cheap
_MIN_RATIO = 1e-3  # of the largest f on the spectrum to that on an interval known to hold it
_MAX_ROUNDING = 1e-2  # degree² eps, a bound on what the recurrence loses to rounding


def check_range(f: Filter, A: Operator, ends: Interval | None = None) -> None:
    """Raise if f(A) is beyond the range of numbers.

    `ends` of the spectrum, where they are known, save the Lanczos steps that find them.
    """
    factor = time_excess(f, A, ends)
    if factor > 1:
        raise ValueError(
            f"The time is too large: f(A) is beyond the range of {A.dtype}, and nothing but the "
            f"slowest direction is left; pass a smaller time, by a factor {math.ceil(factor)}."
        )


def time_excess(f: Filter, A: Operator, ends: Interval | None = None) -> float:
    """Return by which factor a time is too large for the range of numbers; up to 1 it is not."""
    if ends is not None:
        return _excess(f, ends, A.dtype)
    factor = _excess(f, A.spectrum, A.dtype)
    if factor <= 1 and f.sharpness((-1.0, 1.0)) > _SHORT_TIME:
        factor = _excess(f, A.ends[1], A.dtype)  # bounded from inside
    # That was a bound. The value at the largest eigenvalue itself decides.
    return _excess(f, _exact_ends(A), A.dtype) if factor > 1 else factor


def _excess(f: Filter, ends: Interval, dtype: Any) -> float:
    """Return log of the largest |f| at the ends, divided by log of the last number in the range.

    Squares have to be in the range, too, with all digits, because distances are made of them.
    """
    values, log_scale = f.scaled(np.abs(ends) if f.of_powers else np.array(ends))
    largest, limits = float(np.abs(values).max()), np.finfo(dtype)
    if largest == 0 or np.abs(ends).max() < _NOTHING * limits.eps:
        return 0.0
    log_size = math.log(largest) + log_scale
    least, most = math.log(limits.tiny) / 2 - math.log(limits.eps), math.log(limits.max) / 2
    return log_size / (least if log_size < 0 else most)


def _exact_ends(A: Operator) -> Interval:
    """Compute the ends of the spectrum, for where the interval known is too wide to be of use."""
    top = eigh(A, 1, rng=0)
    high = max(float(top.values[0]) + 2 * float(top.residuals[0]), 0.0)
    # The low end may be generous (f is largest at the high one), and is crowded as a rule.
    bottom = eigh(Affine(A, -1.0), 1, tol=1e-4, rng=0)
    low = -float(bottom.values[0]) - 1e-3 * max(map(abs, A.spectrum))
    return min(low, 0.0), high


def apply(
    filters: Sequence[Filter], A: Operator, X: Array, tol: float | None = None
) -> list[Array]:
    """Return f(A) X for every filter f, in one pass over the powers of A.

    Directions that are taken out of A are taken out of X and f(A) X, too.

    Small problems at large times go through all eigenpairs, powers through plain products where a
    series would not save half of them, everything else through one Chebyshev recurrence.

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
    block = A.project(X)
    k = block.shape[1] if block.ndim == 2 else 1
    steps = max(math.inf if f.steps is None else f.steps for f in filters)
    if steps <= _FEW_PRODUCTS:
        return [A.project(image) for image in _by_products(filters, A, block)]
    eps = float(np.finfo(A.dtype).eps)
    error = eps / 4 if tol is None else min(max(tol, eps), 1.0)
    degree = 16 + max(f.degree(A.spectrum, error) for f in filters)
    products = min(steps, degree)
    pays = products * k > 12 * A.n + 1000 or products > MAX_DEGREE / 2
    if pays and A.n <= SPECTRAL_LIMIT:
        images = _by_eigenpairs(filters, A, block)
    elif steps < math.inf and (steps <= 2 * degree or degree**2 * eps > _MAX_ROUNDING):
        images = _by_products(filters, A, block)
    else:
        images = _by_chebyshev(filters, A, block, tol)
    return [A.project(image) for image in images]


def _by_eigenpairs(filters: Sequence[Filter], A: Operator, X: Array) -> list[Array]:
    lam, V = all_eigenpairs(A)
    coefficients = V.T @ X
    images = [V @ (f(lam) * coefficients.T).T for f in filters]
    return [image.astype(A.dtype) for image in images]


def _by_products(filters: Sequence[Filter], A: Operator, X: Array) -> list[Array]:
    last, blocks = max(f.steps or 0 for f in filters), [X] * len(filters)
    for p in track(range(1, last + 1), "products", last, "products"):
        X = A.multiply_projected(X) if p > 1 else A @ X
        for i, f in enumerate(filters):
            if f.steps == p:
                blocks[i] = X
    return blocks


def _by_chebyshev(
    filters: Sequence[Filter], A: Operator, X: Array, tol: float | None = None
) -> list[Array]:
    """Return f(A) X by one recurrence of Chebyshev polynomials.

    The interval that A knows serves short times. Otherwise Lanczos steps bound the spectrum, or,
    where f would be small on it next to these bounds, iteration finds its ends. A tolerance is
    relative to the largest f on the spectrum, which takes Lanczos steps, too.
    """
    eps, outer, inner = float(np.finfo(A.dtype).eps), A.spectrum, A.spectrum
    if tol is not None or max(f.sharpness(outer) for f in filters) > _ANY_INTERVAL:
        outer, inner = A.ends
        if min(_ratio(f, outer, inner) for f in filters) < _MIN_RATIO:
            outer = inner = _exact_ends(A)
    low, high = outer
    interval = low, high if high > low else low + 1.0
    series = []
    for f in filters:
        # Rounding of λ near 1 alone changes f(λ) by t eps; its coefficients feel √t of it. In
        # float32 products round more than that, and the closest pairs need what can be had.
        exact = 4 * float(np.finfo(float).eps) * math.sqrt(1 + f.sharpness(interval))
        wanted = 0.0 if tol is None else tol * _ratio(f, interval, inner)
        series.append(chebyshev_coefficients(f, interval, max(wanted, exact, eps / 4)))
    degree = max(map(len, series)) - 1
    if degree**2 * eps > _MAX_ROUNDING:
        raise ValueError(
            f"{filters[0]} takes {degree} products, more than {A.dtype} has digits for; pass a "
            f"smaller time{', or the operator in float64' if eps > 1e-10 else ''}."
        )
    blocks = [float(c[0]) * X for c in series]
    terms = recurrence(A, X, interval, degree) if degree else iter(())
    for j, T in enumerate(track(terms, "products", degree, "products"), start=1):
        active = [i for i, c in enumerate(series) if j < len(c)]
        add_multiples([blocks[i] for i in active], [float(series[i][j]) for i in active], T)
    least = math.sqrt(eps) * float(np.linalg.norm(X))
    for i, (f, c) in enumerate(zip(filters, series, strict=True)):
        # Rounding is relative to the largest f on the interval, at which X may have no part.
        if float(np.linalg.norm(blocks[i])) < least * float(np.abs(c).sum()):
            if f.steps is None:
                raise ValueError(
                    f"{f} leaves nothing of the block but rounding; pass a smaller time, or Power."
                )
            blocks[i] = _by_products([f], A, X)[0]
    return blocks


def _ratio(f: Filter, outer: Interval, inner: Interval) -> float:
    """Return the largest f at the ends of the inner interval next to that of the outer one."""
    values = np.abs(f.scaled(np.array([*outer, *inner]))[0])
    return float(values[2:].max() / (values.max() or 1.0))
