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


@compiled
def multiply_vector(
    indptr: Array, indices: Array, data: Array, x: Array, start: int, stop: int, y: Array
) -> None:
    """Write the rows start to stop of the product with x (n,) to y (n,)."""
    for i in range(start, stop):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += data[p] * x[indices[p]]
        y[i] = total


@compiled
def transpose(
    indptr: Array, indices: Array, data: Array, starts: Array, rows: Array, values: Array
) -> None:
    """Write the transpose to starts (n + 1,), rows and values (nnz,); its columns are sorted."""
    starts[:] = 0
    for j in indices:
        starts[j + 1] += 1
    for i in range(len(starts) - 1):
        starts[i + 1] += starts[i]
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            at = starts[indices[p]]
            starts[indices[p]] += 1
            rows[at], values[at] = i, data[p]
    for i in range(len(starts) - 1, 0, -1):
        starts[i] = starts[i - 1]
    starts[0] = 0


@compiled
def union_sizes(
    indptr: Array, indices: Array, starts: Array, rows: Array, start: int, stop: int, sizes: Array
) -> None:
    """Write how many entries rows of the entrywise maximum of two sorted matrices have."""
    for i in range(start, stop):
        p, q = indptr[i], starts[i]
        count = 0
        while p < indptr[i + 1] or q < starts[i + 1]:
            a = indices[p] if p < indptr[i + 1] else rows[starts[i + 1] - 1] + 1
            b = rows[q] if q < starts[i + 1] else indices[indptr[i + 1] - 1] + 1
            p, q, count = p + (a <= b), q + (b <= a), count + 1
        sizes[i] = count


@compiled
def union_maximum(
    indptr: Array,
    indices: Array,
    data: Array,
    starts: Array,
    rows: Array,
    values: Array,
    start: int,
    stop: int,
    out_indptr: Array,
    out_indices: Array,
    out_data: Array,
) -> None:
    """Write the rows start to stop of the entrywise maximum of two sorted matrices."""
    for i in range(start, stop):
        p, q, at = indptr[i], starts[i], out_indptr[i]
        while p < indptr[i + 1] or q < starts[i + 1]:
            a = indices[p] if p < indptr[i + 1] else rows[starts[i + 1] - 1] + 1
            b = rows[q] if q < starts[i + 1] else indices[indptr[i + 1] - 1] + 1
            largest = 0.0
            if a <= b:
                largest = data[p]
            if b <= a:
                largest = max(largest, values[q])
            out_indices[at], out_data[at] = min(a, b), largest
            p, q, at = p + (a <= b), q + (b <= a), at + 1


@compiled
def scale_entries(
    indptr: Array,
    indices: Array,
    data: Array,
    left: Array,
    right: Array,
    start: int,
    stop: int,
    out: Array,
) -> None:
    """Write left_i a_ij right_j for the rows start to stop."""
    for i in range(start, stop):
        for p in range(indptr[i], indptr[i + 1]):
            out[p] = left[i] * data[p] * right[indices[p]]
