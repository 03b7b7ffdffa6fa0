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
_TAIL = 4.0  # times the coefficients of the last octave are more than all after it, p >= 0.2
_MAX_ROUNDING = 1e-2  # degree² eps, a bound on what the recurrence loses to rounding


def chebyshev_coefficients(
    f: Filter, interval: Interval, tol: float, most: int | None = None
) -> tuple[Array, float]:
    """Return c with f(λ) = Σ c_j T_j(x), x in [-1, 1] mapped to the interval, and its error.

    The moduli of the coefficients left out add up to `tol` times the largest |f| at most, which
    bounds the error on the interval (those that rounding of the transform explains do not count).
    A series of more than `most` terms is cut there; raises if 131,072 are not enough.
    """
    low, high = interval
    root = math.sqrt(1 + f.sharpness(interval))
    n = 2 ** math.ceil(math.log2(64 + 4 * root))  # nodes that see a peak of width 1/t
    while True:
        nodes = np.cos(np.pi * (np.arange(n) + 0.5) / n)
        values = f(np.append(0.5 * (high - low) * nodes + 0.5 * (high + low), interval))
        size = float(np.abs(values).max())
        c = dct(values[:n], type=2) / n
        c[0] /= 2
        # λ near 1 is rounded, which changes f(λ) by t eps and a coefficient by its square root.
        moduli = np.where(np.abs(c) > np.finfo(float).eps * root * size, np.abs(c), 0.0)
        tail = np.cumsum(moduli[::-1])[::-1]  # from this one on
        # If f is not smooth, sums over octaves fall slowly, those of λ^p at 0 like 4^-p.
        tail += _TAIL * tail[n // 2]
        count = max(1, int(np.count_nonzero(tail > tol * size)))
        if count <= n - n // 8:
            return c[:count], tol * size
        if most is not None and n >= 2 * most:
            return c[:most], float(tail[most])
        if n >= 2 * MAX_DEGREE:
            raise ValueError(
                f"{f} needs over {MAX_DEGREE} products by the operator; pass a smaller time, or a "
                "larger tol."
            )
        n *= 2


def check_degree(f: Filter, degree: int, A: Operator) -> None:
    """Raise if rounding would spoil a recurrence of so many products."""
    if rounding_spoils(degree, A):
        single = np.finfo(A.dtype).eps > 1e-10
        raise ValueError(
            f"{f} takes {degree} products, more than {A.dtype} has digits for; pass a "
            "smaller time" + (", or the operator in float64." if single else ".")
        )


def rounding_spoils(degree: float, A: Operator) -> bool:
    """Return whether a recurrence of so many products has no digits left."""
    return degree**2 * float(np.finfo(A.dtype).eps) > _MAX_ROUNDING


def recurrence(A: Operator, X: Array, interval: Interval, degree: int) -> Iterator[Array]:
    """Yield T_j(x) X for j = 1, ..., degree, x = A with the interval mapped to [-1, 1].

    Callers must not write to these blocks: the next one is computed from the last two.
    """
    low, high = interval
    scale, shift = 2.0 / (high - low), (high + low) / (high - low)
    previous, current = X, X
    for j in range(1, degree + 1):
        following = A @ current
        if j == 1:
            following = three_term(following, scale, X, -shift)
        else:
            following = three_term(following, 2 * scale, current, -2 * shift, previous, -1.0)
        previous, current = current, following
        yield current


def three_term(
    Y: Array, a: float, X: Array, b: float, previous: Array | None = None, c: float = 0.0
) -> Array:
    """Set Y to a Y + b X + c previous, and return it."""
    a, b, c = float(a), float(b), float(c)  # NumPy numbers would change the precision of the block

    def work(rows: slice) -> None:
        part = Y[rows]
        part *= a
        part += b * X[rows]
        if previous is not None:
            part += c * previous[rows]

    for_each_tile(work, len(Y))
    return Y


def add_multiples(sums: Sequence[Array], factors: Sequence[Any], terms: Sequence[Array]) -> None:
    """Add c_1 T_1 + c_2 T_2 + ... to each sum, with factors (c_1, c_2, ...) of its own."""

    def work(rows: slice) -> None:
        for total, own in zip(sums, factors, strict=True):
            part = total[rows]
            for factor, T in zip(own, terms, strict=False):
                part += float(factor) * T[rows]

    for_each_tile(work, len(terms[0]))
