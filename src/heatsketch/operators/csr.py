"""The compiled loops over rows of a sparse matrix (CSR)."""

from __future__ import annotations

from heatsketch._compile import compiled
from heatsketch._typing import Array


@compiled
def multiply_block(
    indptr: Array, indices: Array, data: Array, X: Array, start: int, stop: int, Y: Array
) -> None:
    """Write the rows start to stop of the product with X (n, k) to Y (n, k).

    Four entries at a time, so that the sums are read and written a quarter as often.
    """
    k = X.shape[1]
    for i in range(start, stop):
        low, high = indptr[i], indptr[i + 1]
        fours = high - (high - low) % 4
        for c in range(k):
            Y[i, c] = 0
        for p in range(low, fours, 4):
            v0, v1, v2, v3 = data[p], data[p + 1], data[p + 2], data[p + 3]
            j0, j1, j2, j3 = indices[p], indices[p + 1], indices[p + 2], indices[p + 3]
            for c in range(k):
                Y[i, c] += v0 * X[j0, c] + v1 * X[j1, c] + v2 * X[j2, c] + v3 * X[j3, c]
        for p in range(fours, high):
            v, j = data[p], indices[p]
            for c in range(k):
                Y[i, c] += v * X[j, c]
