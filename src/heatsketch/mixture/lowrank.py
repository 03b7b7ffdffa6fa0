"""The MGC affinity of points as a product of low rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heatsketch._checks import check_number
from heatsketch._typing import Array
from heatsketch.mixture.cholesky import pivoted_cholesky

if TYPE_CHECKING:
    from heatsketch.mixture.kernel import MixtureKernel

MOST_RANK = 4096


def affinity_factor(
    kernel: MixtureKernel, points: Any, tol: float = 1e-10, log_unit: float = 0.0
) -> Array:
    """Return F (n, r) with F Fᵀ = e^-log_unit k_ε(x_i, x_j), by pivoted Cholesky.

    Parameters
    ----------
    kernel : MixtureKernel
    points : array (n, m)
    tol : float, default 1e-10
        What is missing of k(x, x) at most, as a share of it, so that far points keep their digits.
    log_unit : float, default 0
        Taken off log k, for affinities beyond float64.

    Raises
    ------
    ValueError
        More than 4,096 columns are needed.

    Notes
    -----
    Cost: n r kernel values and n r² operations.
    """
    tol = check_number(tol, "tol", low=0, high=1, open_low=True)
    x = kernel._points(points, "points")
    log_diagonal = kernel.log_diagonal(x)

    def correlations(places: Array) -> Array:
        log_k = kernel.log_kernel(x, x[places])
        return np.exp(log_k - (log_diagonal[:, None] + log_diagonal[places]) / 2)

    F, _, left = pivoted_cholesky(correlations, np.ones(len(x)), tol, min(MOST_RANK, len(x)))
    if left.max() > tol:
        raise ValueError(
            f"The affinity of {len(x):,} points at epsilon={kernel.epsilon:g} has a rank over "
            f"{MOST_RANK:,}; pass a larger epsilon or tol, or use affinity='knn' on the points."
        )
    return F * np.exp((log_diagonal - log_unit) / 2)[:, None]
