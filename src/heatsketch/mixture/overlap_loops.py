"""Sums of Gaussians, compiled."""

from heatsketch._arrays import Array
from heatsketch._compile import compiled_as_written
from heatsketch.core.loops import exp2_double


@compiled_as_written
def add_gaussians(
    total: Array, rows: Array, exponents: Array, row_terms: Array, column_terms: Array
) -> None:
    """Add Σ_i 2^(exponents_i + row_terms_i + column_terms_i) to `rows` (k,) of total (n, r).

    The L blocks of exponents (k, L r), which are overwritten, stand side by side, so that loops are
    long; row_terms are (k, L), column_terms (L r,). After the terms are added, no exponent may be
    above 0.
    """
    width = total.shape[1]
    for place in range(len(rows)):
        values, sums = exponents[place], total[rows[place]]
        for i in range(row_terms.shape[1]):
            term = row_terms[place, i]
            for r in range(i * width, (i + 1) * width):
                values[r] += term + column_terms[r]
        exp2_double(values)
        for i in range(row_terms.shape[1]):
            block = values[i * width : (i + 1) * width]
            for r in range(width):
                sums[r] += block[r]
