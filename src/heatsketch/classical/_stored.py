"""The stored entries of each row of a CSR matrix: their median, and where the least one is."""

import numpy as np
from scipy import sparse

from heatsketch._typing import Array


def median_lengths(graph: sparse.csr_matrix) -> Array:
    """Return the median of the stored lengths of each row (n,), 0 where there are none."""
    counts = np.diff(graph.indptr)
    row = np.repeat(np.arange(len(counts)), counts)
    lengths = np.append(graph.data[np.lexsort((graph.data, row))], 0.0)
    low, high = graph.indptr[:-1] + (counts - 1) // 2, graph.indptr[:-1] + counts // 2
    return np.where(counts > 0, (lengths[low] + lengths[high]) / 2, 0.0)


def first_least(rows: sparse.csr_matrix) -> Array:
    """Return the position of the least stored entry of each row (m,)."""
    counts = np.diff(rows.indptr)
    return np.lexsort((rows.data, np.repeat(np.arange(len(counts)), counts)))[rows.indptr[:-1]]
