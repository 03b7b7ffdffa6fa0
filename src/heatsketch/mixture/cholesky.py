"""Pivoted Cholesky factors."""

from collections.abc import Callable

import numpy as np

from heatsketch._typing import Array

_COLUMNS_AT_ONCE = 16  # one column alone takes nearly as long to compute
_FIRST_CAPACITY = 64  # columns of L allocated at first


def pivoted_cholesky(
    columns: Callable[[Array], Array], diagonal: Array, limit: float, max_rank: int
) -> tuple[Array, list[int], Array]:
    """Return L (n, r) with L Lᵀ ≈ K, its pivots, and the diagonal of K - L Lᵀ, (n,).

    Pivots are the rows where L Lᵀ lacks most of the diagonal, until no row lacks more than `limit`.
    `columns` returns columns of K, (n, b), for their numbers (b,). A pivot may lack half as much as
    the worst row, so that the columns of the 16 worst rows can be computed together.
    """
    missing = diagonal.copy()
    pivots: list[int] = []
    L = np.zeros((len(missing), min(_FIRST_CAPACITY, max_rank)))
    computed: dict[int, Array] = {}
    while (worst := missing.max(initial=0.0)) > limit and (r := len(pivots)) < max_rank:
        if max((missing[row] for row in computed), default=0.0) < worst / 2:
            wanted = np.argsort(-missing, kind="stable")[:_COLUMNS_AT_ONCE]
            computed = dict(zip(wanted.tolist(), columns(wanted).T, strict=True))
        pivot = max(computed, key=lambda row: missing[row])
        if r == L.shape[1]:
            L = np.hstack([L, np.zeros((len(L), min(r, max_rank - r)))])
        L[:, r] = (computed.pop(pivot) - L[:, :r] @ L[pivot, :r]) / np.sqrt(missing[pivot])
        missing -= L[:, r] ** 2
        pivots.append(pivot)
        missing[pivots] = 0.0
    return L[:, : len(pivots)], pivots, missing
