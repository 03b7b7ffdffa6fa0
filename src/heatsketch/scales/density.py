"""The density of points, from the sums of their Gaussian affinities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from heatsketch._checks import check_new_points, check_number, check_points
from heatsketch._tiles import row_tiles
from heatsketch._typing import Array
from heatsketch.operators.kernel import Kernel
from heatsketch.scales.bandwidth import rule_epsilon

_LARGEST_LOG = math.log(np.finfo(float).max)
_TILE = 1024  # points whose affinities to all others are computed at a time


def density_estimate(X: Any, epsilon: float | str, dimension: float, *, at: Any = None) -> Array:
    """Estimate the density of points from the sums of their Gaussian affinities.

    ρ_ε(x) = (π ε)^(-d/2) (1/n) Σ_j exp(-|x - x_j|² / ε), the mean of normal densities of variance
    ε/2 around the points: *Linear and nonlinear dimensionality reduction*, (52). It tends to the
    density on the set of dimension d that the points lie on, with an error of order ε, where the
    points are many: n ε^(d/2) ≫ 1. It is q / (n (π ε)^(d/2)), q the row sums by which α divides
    affinities.

    Use it for the density along a curve or surface, or for the factor that α = 1 takes out. Do not
    use it in many dimensions, where no ε is both small and has enough points.

    Parameters
    ----------
    X : array or CSR matrix (n, d)
    epsilon : float > 0 or "ksum", "median", "nearest"
        In squared data units.
    dimension : float > 0
        Dimension d of the set that the points lie on, not of its space: 1 for a curve (see
        `intrinsic_dimension`). Densities are per unit length, area, or volume of this dimension.
    at : array or CSR matrix (m, d), optional
        Where the density is wanted; by default at the points, each of which then counts itself, so
        that no value is below (π ε)^(-d/2) / n.

    Returns
    -------
    array (n,) or (m,)

    Raises
    ------
    ValueError
        Invalid points or parameters; (π ε)^(-d/2) beyond float64.

    Notes
    -----
    Cost: n m (d + 1) operations; the affinities are not stored.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> X = np.random.default_rng(0).normal(size=(2000, 1))
    >>> hs.density_estimate(X, epsilon=0.1, dimension=1, at=[[0.0]]).round(1)  # 1/√(2π) = 0.4
    array([0.4])
    """
    X = check_points(X)
    d = check_number(dimension, "dimension", low=0, open_low=True)
    chosen = rule_epsilon(X, epsilon) if isinstance(epsilon, str) else epsilon
    width = float(check_number(chosen, "epsilon", low=0, open_low=True))
    log_peak = -d / 2 * math.log(math.pi * width) - math.log(X.shape[0])
    if abs(log_peak) > _LARGEST_LOG:
        raise ValueError(
            f"epsilon={width:.3g} and dimension={d:g} give densities beyond float64; pass a "
            "smaller dimension, or rescale X."
        )
    kernel = Kernel(X, width, np.dtype(np.float64))
    if at is None:
        return np.asarray(math.exp(log_peak) * (kernel @ np.ones(kernel.n)))
    at = check_new_points(at, X, "X", "at", min_rows=1)
    sums = [kernel.rows(at[tile]).sum(axis=1) for tile in row_tiles(at.shape[0], _TILE)]
    return np.asarray(math.exp(log_peak) * np.concatenate(sums))
