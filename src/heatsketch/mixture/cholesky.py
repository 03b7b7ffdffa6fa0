"""Pivoted Cholesky factors, and the affinities of points as a product of low rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from heatsketch._checks import check_number
from heatsketch._typing import Array

if TYPE_CHECKING:
    from heatsketch.mixture.kernel import MixtureKernel

_COLUMNS_AT_ONCE = 16  # one column alone takes nearly as long to compute
_FIRST_CAPACITY = 64  # columns of L that are allocated first
_MAX_RANK = 4096  # of affinities


def pivoted_cholesky(
    columns: Callable[[Array], Array], diagonal: Array, limit: float, max_rank: int
) -> tuple[Array, list[int], Array]:
    """Return L (n, r) with L Lᵀ ≈ K, its pivots, and the diagonal of K - L Lᵀ, (n,).

    Pivots are rows where most of the diagonal is missing, until nowhere more than `limit` is.
    `columns` returns columns of K, (n, b), for their numbers (b,). A pivot lacks at least half as
    much as the worst row, so that the columns of the 16 worst rows can be computed at a time.
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


def affinity_factor(
    kernel: MixtureKernel, points: Any, tol: float = 1e-10, log_unit: float = 0.0
) -> Array:
    """Return F (n, r) with F Fᵀ = e^-log_unit k_ε(x_i, x_j) for points (n, m), by pivoted Cholesky.

    F Fᵀ lacks at most the fraction `tol` of any k(x, x): relative, so that far points keep their
    digits. `log_unit` is subtracted from log k, for affinities beyond float64. Raises ValueError
    where more than 4,096 columns are needed. Cost: n r kernel values and n r² operations.
    """
    tol = check_number(tol, "tol", low=0, high=1, open_low=True)
    x = kernel.components.checked(points, "points")
    log_k_xx = kernel.log_diagonal(x)

    def correlations(pivots: Array) -> Array:
        log_k = kernel.log_kernel(x, x[pivots])
        return np.exp(log_k - (log_k_xx[:, None] + log_k_xx[pivots]) / 2)

    F, _, missing = pivoted_cholesky(correlations, np.ones(len(x)), tol, min(_MAX_RANK, len(x)))
    if missing.max() > tol:
        raise ValueError(
            f"The affinity of {len(x):,} points at epsilon={kernel.epsilon:g} has a rank over "
            f"{_MAX_RANK:,}; pass a larger epsilon or tol, or use affinity='knn' on the points."
        )
    return F * np.exp((log_k_xx - log_unit) / 2)[:, None]
