"""Chebyshev recurrences of an operator on a block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heatsketch._blocks import for_each_tile_of
from heatsketch._typing import Array
from heatsketch.operators.base import Operator
from heatsketch.operators.lanczos import LANCZOS_STEPS, Interval, spectrum_ends

__all__ = [
    "LANCZOS_STEPS",
    "Interval",
    "add_multiples",
    "recurrence",
    "spectrum_ends",
    "three_term",
]


def recurrence(A: Operator, X: Array, scale: float, shift: float, degree: int) -> Iterator[Array]:
    """Yield T_j(scale A - shift) X for j = 1, ..., degree.

    Callers must not write to these blocks: the next one is computed from the last two.
    """
    previous, current = X, X
    for j in range(1, degree + 1):
        following = A @ current
        if j == 1:
            three_term(following, scale, X, -shift)
        else:
            three_term(following, 2 * scale, current, -2 * shift, previous, -1.0)
        previous, current = current, following
        yield current


def three_term(
    Y: Array, a: float, X: Array, b: float, previous: Array | None = None, c: float = 0.0
) -> None:
    """Set Y to a Y + b X + c previous, in place and tile by tile, so that the cache holds it."""
    a, b, c = float(a), float(b), float(c)  # NumPy scalars would change the precision of the block

    def work(rows: slice) -> None:
        Y[rows] *= a
        Y[rows] += b * X[rows]
        if previous is not None:
            Y[rows] += c * previous[rows]

    for_each_tile_of(Y, work)


def add_multiples(sums: Sequence[tuple[Array, Sequence[float]]], blocks: Sequence[Array]) -> None:
    """Add c_1 T_1 + c_2 T_2 + ... to every (total, (c_1, c_2, ...)), tile by tile.

    A sum is fetched from memory once for all blocks.
    """

    def work(rows: slice) -> None:
        for total, coefficients in sums:
            for c, T in zip(coefficients, blocks, strict=False):
                total[rows] += float(c) * T[rows]

    for_each_tile_of(blocks[0], work)
