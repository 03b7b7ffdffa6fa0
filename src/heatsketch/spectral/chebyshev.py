"""Chebyshev series of filters, and recurrences of an operator on a block."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.fft import dct

from heatsketch._tiles import for_each_tile
from heatsketch._typing import Array
from heatsketch.operators.operator import Interval, Operator
from heatsketch.spectral.filters import Filter

MAX_DEGREE = 2**17
_TILE = 2048  # rows combined at a time, so that they stay in the cache
_TAIL = 4.0  # times the coefficients of the last octave exceed all after it, p >= 0.2


def chebyshev_coefficients(f: Filter, interval: Interval, tol: float) -> Array:
    """Return c with f(λ) = Σ c_j T_j(x), x in [-1, 1] mapped to the interval.

    The moduli of the coefficients left out add up to at most `tol` times the largest |f|, which
    bounds the error on the interval (coefficients below the rounding of the transform do not
    count). Raises if 131,072 terms are not enough.
    """
    low, high = interval
    root = math.sqrt(1 + f.sharpness(interval))
    n = 2 ** math.ceil(math.log2(64 + 4 * root))  # enough nodes for a peak of width 1/t
    while n <= 2 * MAX_DEGREE:
        nodes = np.cos(np.pi * (np.arange(n) + 0.5) / n)
        values = f(np.append(0.5 * (high - low) * nodes + 0.5 * (high + low), interval))
        size = float(np.abs(values).max())
        c: Array = dct(values[:n], type=2) / n
        c[0] /= 2
        # Rounding of λ near 1 changes f(λ) by t eps and a coefficient by √t eps.
        moduli = np.where(np.abs(c) > np.finfo(float).eps * root * size, np.abs(c), 0.0)
        tail = np.cumsum(moduli[::-1])[::-1]  # from this one on
        # If f is not smooth, sums over octaves fall slowly, those of λ^p at 0 like 4^-p.
        tail += _TAIL * tail[n // 2]
        count = max(1, int(np.count_nonzero(tail > tol * size)))
        if count <= n - n // 8:
            return c[:count]
        n *= 2
    raise ValueError(
        f"{f} needs over {MAX_DEGREE} products by the operator; pass a smaller time, or a larger "
        "tol."
    )


def recurrence(
    A: Operator, X: Array, interval: Interval, degree: int, image: Array | None = None
) -> Iterator[Array]:
    """Yield T_j(x) X for j = 1, ..., degree, x = A with the interval mapped to [-1, 1].

    Callers must not write to these blocks, because the next one is computed from the last two.
    `image` is A X if it is known; it is overwritten.
    """
    low, high = interval
    scale, shift = 2.0 / (high - low), (high + low) / (high - low)
    image = A @ X if image is None else image
    previous, current = X, combine(image, -shift, X, scale=scale)
    yield current
    for _ in range(1, degree):
        following = A.multiply_projected(A.project(current, out=current))
        following = combine(following, -2 * shift, current, -1.0, previous, scale=2 * scale)
        previous, current = current, following
        yield current


def combine(
    Y: Array, b: Any, X: Array, c: Any = 0.0, Z: Array | None = None, *, scale: float | None = None
) -> Array:
    """Set Y to scale · Y + b X + c Z, and return it; b and c are numbers or arrays (k,)."""

    def work(rows: slice) -> None:
        part = Y[rows]
        if scale is not None:
            part *= scale
        part += b * X[rows]
        if Z is not None:
            part += c * Z[rows]

    for_each_tile(work, len(Y), _TILE)
    return Y


def add_multiples(sums: Sequence[Array], factors: Sequence[float], T: Array) -> None:
    """Add a multiple of T to each sum, tile by tile, so that each tile of T is read once."""

    def work(rows: slice) -> None:
        for total, factor in zip(sums, factors, strict=True):
            total[rows] += factor * T[rows]

    for_each_tile(work, len(T), _TILE)
