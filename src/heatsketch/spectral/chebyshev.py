"""Chebyshev recurrences of an operator on a block."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from heatsketch._tiles import changed
from heatsketch._typing import Array
from heatsketch.operators.operator import Operator


def recurrence(A: Operator, X: Array, scale: float, shift: float, degree: int) -> Iterator[Array]:
    """Yield T_j(scale A - shift) X for j = 1, ..., degree.

    Callers must not write to these blocks: the next one is computed from the last two.
    """
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
    """Return a Y + b X + c previous, in the place of Y where that can be changed."""
    others, factors = ([X], [b]) if previous is None else ([X, previous], [b, c])
    # NumPy scalars would change the precision of the block.
    work = functools.partial(_combine, a=float(a), factors=[float(factor) for factor in factors])
    return changed([(Y, work)], *others)[0]  # type: ignore[no-any-return]


def _combine(Y: Array, *others: Array, a: float, factors: Sequence[float]) -> None:
    Y *= a
    _add(Y, *others, factors=factors)


def _add(Y: Array, *others: Array, factors: Sequence[float]) -> None:
    for factor, X in zip(factors, others, strict=False):
        Y += factor * X


def add_multiples(
    sums: Sequence[tuple[Array, Sequence[float]]], blocks: Sequence[Array]
) -> list[Array]:
    """Return total + c_1 T_1 + c_2 T_2 + ... for every (total, (c_1, c_2, ...)).

    Totals are changed in place where they can be; one is fetched from memory once for all blocks.
    """
    works = [
        (total, functools.partial(_add, factors=[float(factor) for factor in factors]))
        for total, factors in sums
    ]
    return changed(works, *blocks)
