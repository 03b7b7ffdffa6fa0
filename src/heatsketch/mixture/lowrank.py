"""The MGC affinity of points as a product of low rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heatsketch._checks import check_number
from heatsketch._typing import Array

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
    left = np.ones(len(x))
    F = np.zeros((len(x), 64))
    for r in range(len(x)):
        pivot = int(left.argmax())
        if left[pivot] <= tol:
            return F[:, :r] * np.exp((log_diagonal - log_unit) / 2)[:, None]
        if r == MOST_RANK:
            break
        if r == F.shape[1]:
            F = np.hstack([F, np.zeros_like(F)])
        log_column = kernel.log_kernel(x, x[[pivot]])[:, 0]
        column = np.exp(log_column - (log_diagonal + log_diagonal[pivot]) / 2)
        column -= F[:, :r] @ F[pivot, :r]
        F[:, r] = column / np.sqrt(left[pivot])
        left -= F[:, r] ** 2
        left[pivot] = 0.0
    else:
        return F[:, : len(x)] * np.exp((log_diagonal - log_unit) / 2)[:, None]
    raise ValueError(
        f"The affinity of {len(x):,} points at epsilon={kernel.epsilon:g} has a rank over "
        f"{MOST_RANK:,}; pass a larger epsilon or tol, or use affinity='knn' on the points."
    )
