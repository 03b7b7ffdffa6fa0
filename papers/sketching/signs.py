"""±1 columns from few random bits: Proposition 4.1 of *Sketching the heat kernel*.

The proposition says that pairwise independent entries are enough for the mean of squared distances
(31). The signs here are independent in fives, which also gives the variance of independent signs.
Use them as ``hs.sketch(A, filter, G=pairwise_signs(n, k, rng))``; `times_signs` makes the first
product without storing G.
"""

from typing import Any

import numpy as np

ROWS_AT_ONCE = 1024  # of G in `times_signs`


def pairwise_signs(n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Draw G (n, k) of ±1 from 129 random bits for each column.

    Columns are independent, and so are any five entries of a column.
    """
    keys = rng.integers(0, 2**64, size=(3, k), dtype=np.uint64)
    return signs(np.arange(n, dtype=np.uint64), keys)


def times_signs(A: Any, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return A G (n, k), with the G of `pairwise_signs`, of which 1,024 rows are made at a time.

    What is stored of G is 24 bytes a column, in place of 8 n. Columns of A, a dense or sparse
    matrix, are multiplied block by block.
    """
    n = A.shape[1]
    keys = rng.integers(0, 2**64, size=(3, k), dtype=np.uint64)
    total = np.zeros((A.shape[0], k))
    for start in range(0, n, ROWS_AT_ONCE):
        rows = np.arange(start, min(start + ROWS_AT_ONCE, n), dtype=np.uint64)
        total += A[:, start : start + len(rows)] @ signs(rows, keys)
    return total


def signs(x: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return (-1)^(⟨a, x⟩ + ⟨b, x³⟩ + c) for numbers x (n,) and keys a, b, c (3, k), (n, k).

    Numbers are vectors of bits, x³ is the cube in the field of 2^64 elements, and of c one bit
    counts. Of any five different x the vectors (1, x, x³) are linearly independent (the code of
    Bose, Chaudhuri and Hocquenghem with distance 6), so that their signs are independent for random
    keys, whatever n.
    """
    a, b, c = keys
    cubes = field_product(field_product(x, x), x)
    bits = (x[:, None] & a) ^ (cubes[:, None] & b)
    for shift in (32, 16, 8, 4, 2, 1):  # the parity of all bits comes to the last one
        bits ^= bits >> np.uint64(shift)
    return 1.0 - 2.0 * ((bits ^ c) & np.uint64(1))


def field_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Multiply in the field of 2^64 elements, where t^64 = t^4 + t^3 + t + 1."""
    product, one = np.zeros_like(x), np.uint64(1)
    for bit in range(int(y.max(initial=0)).bit_length()):
        product ^= x * ((y >> np.uint64(bit)) & one)
        x = (x << one) ^ (np.uint64(0b11011) * (x >> np.uint64(63)))
    return product
