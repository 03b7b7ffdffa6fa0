"""The bandwidth ε of a Gaussian affinity: Ksum test and other rules."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import numpy as np

from heatsketch._array import Frame
from heatsketch._checks import check_choice, check_points
from heatsketch._typing import Array, Rng
from heatsketch.neighbors import NeighborIndex, pair_distances
from heatsketch.operators.kernel import squared_distances, squared_norms

logger = logging.getLogger("heatsketch")

RULES = ("ksum", "median", "nearest")
_EXACT_POINTS = 2000  # all pairs up to here
_SAMPLE_ROWS, _SAMPLE_COLUMNS = 500, 20_000  # beyond: so many rows against so many columns


class Ksum(NamedTuple):
    """Result of the Ksum test.

    Attributes
    ----------
    epsilon : float
        Bandwidth at the largest slope, in squared data units.
    dimension : float
        Twice the largest slope: an estimate of the intrinsic dimension (a little high on curved
        data: 1.2 on a circle, 2.2 on a torus); round it.
    epsilons : array (m,)
        Bandwidths tried, ascending, a factor √2 apart.
    slopes : array (m,)
        d log S / d log ε at each, S the mean of the kernel matrix.
    """

    epsilon: float
    dimension: float
    epsilons: Array
    slopes: Array


def ksum(X: Any, *, rng: Rng = 0) -> Ksum:
    """Choose ε and estimate the dimension from the growth of the kernel's mean with ε.

    S(ε) = mean of exp(-|x_i - x_j|²/ε) grows like ε^(d/2) where ε is neither too small nor too
    large; the slope d log S / d log ε = Σ K |x-y|²/ε / Σ K peaks there. *Linear and nonlinear
    dimensionality reduction*, §9.7, equation (59) (Berry, Harlim and Giannakis).

    Parameters
    ----------
    X : array or CSR matrix (n, d)
    rng : int, Generator or None, default 0
        Above 2,000 points the sums run over 500 random rows and up to 20,000 random columns; the
        diagonal is put back exactly.

    Returns
    -------
    Ksum
        `epsilon`, `dimension`, `epsilons`, `slopes`.

    Raises
    ------
    ValueError
        All distances are zero.

    Notes
    -----
    Cost: at most 10⁷ distances and some 60 exponentials of each; memory 400 MB at most.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    >>> round(hs.ksum(np.c_[np.cos(angle), np.sin(angle)]).dimension)
    1
    """
    X = check_points(X)
    frame = Frame.of(X)
    d2 = _sampled_squared_distances(X, frame, rng)
    positive = d2[d2 > 0]
    if len(positive) == 0:
        raise ValueError("All distances are zero; pass points that differ, or a number as epsilon.")
    # Anchored at the data's own scale, so that scaling X scales the answer exactly.
    centre = float(np.median(positive))
    low = np.floor(2 * np.log2(max(float(np.min(positive)) / centre, 2.0**-80))) - 2
    high = np.ceil(2 * np.log2(float(np.max(positive)) / centre)) + 8
    epsilons = centre * 2.0 ** (np.arange(low, high + 1) / 2)
    slopes = np.array([_slope(d2, X.shape[0], epsilon) for epsilon in epsilons])
    best = int(np.argmax(slopes))
    return Ksum(
        _in_data_units(frame, epsilons[best]),
        float(2 * slopes[best]),
        np.asarray(frame.unsquared(epsilons)),
        slopes,
    )


def rule_epsilon(X: Any, rule: str, *, rng: Rng = 0) -> float:
    """Return ε by a rule, in squared data units.

    "ksum": where the kernel's mean grows fastest; "median": the median squared distance;
    "nearest": twice the mean squared distance to the nearest other point (*Linear and nonlinear
    dimensionality reduction*, §9.2). Zero distances (duplicates) do not count.
    """
    check_choice(rule, "epsilon", RULES)
    if rule == "ksum":
        return ksum(X, rng=rng).epsilon
    frame = Frame.of(X)
    if rule == "median":
        d2 = _sampled_squared_distances(X, frame, rng)
    else:
        index = NeighborIndex(X, frame=frame)
        d2 = index.query(X, min(2, X.shape[0])).distances[:, -1] ** 2
    d2 = d2[d2 > 0]
    if len(d2) == 0:
        raise ValueError("All distances are zero; pass points that differ, or a number as epsilon.")
    return _in_data_units(frame, float(np.median(d2) if rule == "median" else 2 * np.mean(d2)))


def _in_data_units(frame: Frame, value: float) -> float:
    with np.errstate(over="ignore", under="ignore"):
        epsilon = float(frame.unsquared(value))
    if not 0 < epsilon < np.inf:
        raise ValueError(
            "The squared distances of X are beyond float64; rescale X, or use "
            "epsilon='self-tuning', which has no such number."
        )
    return epsilon


def _sampled_squared_distances(X: Any, frame: Frame, rng: Rng) -> Array:
    """Return |x_i - x_j|² in the frame over pairs i != j of all points, or of a sample, flat."""
    n = X.shape[0]
    rows = columns = np.arange(n)
    if n > _EXACT_POINTS:
        logger.info("squared distances of a sample of %d points", n)
        columns = np.random.default_rng(rng).choice(n, min(n, _SAMPLE_COLUMNS), replace=False)
        rows = columns[:_SAMPLE_ROWS]
    x, y = frame(X[rows]), frame(X[columns])
    d2 = squared_distances(x, y, direct=False)
    # The Gram form leaves the closest pairs without digits: take their differences instead.
    close = np.nonzero(d2 <= 1e-9 * np.max(squared_norms(y), initial=0.0))
    d2[close] = pair_distances(x, y, *close) ** 2
    return d2[rows[:, None] != columns]


def _slope(d2: Array, n: int, epsilon: float) -> float:
    exponents = d2 / epsilon
    K = np.exp(-exponents)
    # The n ones of the diagonal, as a share of the n(n-1) pairs that the sample stands for.
    return float(np.mean(K * exponents) / (np.mean(K) + 1.0 / (n - 1)))
