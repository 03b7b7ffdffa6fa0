"""Pivoted Cholesky factors of matrices whose columns are computed when asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from heatsketch._typing import Array

_AHEAD = 16  # columns computed together: one alone takes nearly as long
_FIRST = 64  # columns that there is room for at first


class Factor(NamedTuple):
    """A factor L (n, r) of a positive semidefinite matrix: K - L Lᵀ has the diagonal `left`."""

    L: Array
    places: list[int]  # pivots
    left: Array  # (n,)


def pivoted_cholesky(
    columns: Callable[[Array], Array], diagonal: Array, limit: float, most: int
) -> Factor:
    """Take pivots where most is missing until nothing is missing more than `limit`.

    A pivot misses at least half as much as the worst point: columns are computed for the 16 worst
    at a time.

    Parameters
    ----------
    columns : callable
        Places (b,) -> columns of K (n, b).
    diagonal : array (n,)
    limit : float
        On the diagonal of what is missing.
    most : int
        Columns at most.
    """
    left = diagonal.copy()
    places: list[int] = []
    L = np.zeros((len(left), min(_FIRST, most)))
    ahead: dict[int, Array] = {}
    while (worst := left.max(initial=0.0)) > limit and (r := len(places)) < most:
        if max((left[place] for place in ahead), default=0.0) < worst / 2:
            wanted = np.argsort(-left, kind="stable")[:_AHEAD]
            ahead = dict(zip(wanted.tolist(), columns(wanted).T, strict=True))
        pivot = max(ahead, key=lambda place: left[place])
        if r == L.shape[1]:
            L = np.hstack([L, np.zeros((len(L), min(r, most - r)))])
        L[:, r] = (ahead.pop(pivot) - L[:, :r] @ L[pivot, :r]) / np.sqrt(left[pivot])
        left -= L[:, r] ** 2
        places.append(pivot)
        left[places] = 0.0
    return Factor(L[:, : len(places)], places, left)
