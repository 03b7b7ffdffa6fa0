"""Permutations of rows."""

from __future__ import annotations

import numpy as np

from heatsketch._typing import Array


def inverse_permutation(order: Array, n: int | None = None) -> Array:
    """Return p with p[order[i]] = i, 32-bit if it fits; (n,), of some of n numbers."""
    n = len(order) if n is None else n
    inverse = np.empty(n, index_type(n))
    inverse[order] = np.arange(len(order))
    return inverse


def index_type(n: int) -> type[np.signedinteger]:
    """Return the smallest type in use that numbers n points."""
    return np.int32 if n < 2**31 else np.int64
