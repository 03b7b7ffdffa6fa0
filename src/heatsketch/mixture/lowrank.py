"""The MGC affinity of points as a product of low rank."""

from typing import Any

import numpy as np

from heatsketch._checks import check_number
from heatsketch._typing import Array
from heatsketch.mixture.cholesky import pivoted_cholesky
from heatsketch.mixture.components import Components
from heatsketch.mixture.densities import log_diagonal, log_kernel

_MAX_RANK = 4096


def affinity_factor(
    components: Components, points: Any, tol: float = 1e-10, log_unit: float = 0.0
) -> Array:
    """Return F (n, r) with F Fᵀ = e^-log_unit k_ε(x_i, x_j) for points (n, m), by pivoted Cholesky.

    F Fᵀ lacks at most the share `tol` of any k(x, x): relative, so that far points keep their
    digits. `log_unit` is subtracted from log k, for affinities beyond float64. Raises ValueError
    where more than 4,096 columns are needed. Cost: n r kernel values and n r² operations.
    """
    tol = check_number(tol, "tol", low=0, high=1, open_low=True)
    x = components.checked(points, "points")
    log_k_xx = log_diagonal(components, x)

    def correlations(pivots: Array) -> Array:
        log_k = log_kernel(components, x, x[pivots])
        return np.exp(log_k - (log_k_xx[:, None] + log_k_xx[pivots]) / 2)

    F, _, missing = pivoted_cholesky(correlations, np.ones(len(x)), tol, min(_MAX_RANK, len(x)))
    if missing.max() > tol:
        raise ValueError(
            f"The affinity of {len(x):,} points at epsilon={components.epsilon:g} has a rank over "
            f"{_MAX_RANK:,}; pass a larger epsilon or tol, or use affinity='knn' on the points."
        )
    return F * np.exp((log_k_xx - log_unit) / 2)[:, None]
