"""Sums of Gaussians, compiled."""

from __future__ import annotations

from heatsketch._compile import compiled_as_written
from heatsketch._typing import Array
from heatsketch.operators.exp2 import exp2_double


@compiled_as_written
def add_gaussians(
    total: Array, rows: Array, exponents: Array, tops: Array, constants: Array
) -> None:
    """Add Σ_i 2^(exponents_i + tops_i + constants_i) to rows of total; no sum is above 0.

    The L blocks of exponents lie side by side, so that loops are long.

    Parameters
    ----------
    total : array (n, r)
    rows : array of int (k,)
    exponents : array (k, L r)
        Overwritten.
    tops : array (k, L)
    constants : array (L r,)
    """
    width = total.shape[1]
    for place in range(len(rows)):
        values, sums = exponents[place], total[rows[place]]
        for i in range(tops.shape[1]):
            top = tops[place, i]
            for r in range(i * width, (i + 1) * width):
                values[r] += top + constants[r]
        exp2_double(values)
        for i in range(tops.shape[1]):
            part = values[i * width : (i + 1) * width]
            for r in range(width):
                sums[r] += part[r]
