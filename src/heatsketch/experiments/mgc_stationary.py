"""Example I of *Diffusion representation*, §6.1: a stationary density that is known.

Two flat squares, a mixture fitted to a sample of them, and its stationary density ν beside the
analytic one. The example also says how much of the error is the sample's own.
"""

from __future__ import annotations

import logging
from statistics import median_low
from typing import Any, NamedTuple

import numpy as np
from scipy.special import erf

from heatsketch._typing import Array
from heatsketch.mixture import MixtureKernel

logger = logging.getLogger("heatsketch")

SQUARES = ((0.2, 0.0, 1.0), (0.8, 3.0, 4.0))  # probability, and [a, b] of both coordinates
EPSILON = 1.0
BOX = (-2.0, 6.0)  # of both coordinates of the grid
PICTURED = 2000  # points of the paper's sample
STATIONARY, TRUNCATION = range(2)  # what a seed is for


class StationaryRow(NamedTuple):
    """How far the stationary density of a fitted mixture is from the true one.

    Attributes
    ----------
    points, draws : int
        Points of a sample, and samples, of which the rest are medians. The row of one draw is the
        sample of the picture.
    components : int
        Of the mixture, by BIC.
    largest, rms : float
        Error over the grid, as a share of the largest ν.
    sample_largest, sample_rms : float
        The same without any mixture: ν of the sample itself, (1/n) Σ g(x; r_i, ε/2 I).
    """

    points: int
    draws: int
    components: int
    largest: float
    rms: float
    sample_largest: float
    sample_rms: float


class StationaryPanels(NamedTuple):
    """ν over the grid, [i, j] at (ticks[i], ticks[j])."""

    ticks: Array  # (g,)
    analytic: Array  # (g, g)
    closed_form: Array  # (g, g)


def stationary_example(
    seed: int, *, points: tuple[int, ...], draws: int, most: int, grid: int
) -> tuple[list[StationaryRow], StationaryPanels]:
    """Fit mixtures to samples of each size and compare ν; `points` has to hold `PICTURED`."""
    ticks = np.linspace(*BOX, grid)
    nodes = np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)
    analytic = analytic_stationary(nodes, EPSILON)
    rows: list[StationaryRow] = []
    for n in points:
        found = []
        for draw in range(draws):
            logger.info("mgc-1: %d points, draw %d of %d", n, draw + 1, draws)
            rng = random(seed, STATIONARY, n, draw)
            X = two_squares(n, rng)
            kernel = MixtureKernel.from_sklearn(best_mixture(X, most, "full", rng), EPSILON)
            nu = kernel.stationary(nodes)
            errors = (*_errors(nu, analytic), *_errors(_of_sample(X, ticks), analytic))
            found.append(StationaryRow(n, 1, kernel.n_components, *errors))
            if n == PICTURED and draw == 0:
                panels = StationaryPanels(ticks, *(v.reshape(grid, grid) for v in (analytic, nu)))
                rows.insert(0, found[0])
        rows.append(_median(found))
    return rows, panels


def random(seed: int, *purpose: int) -> np.random.Generator:
    """Return the random numbers for a purpose."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=purpose))


def two_squares(n: int, rng: np.random.Generator) -> Array:
    """Draw points (n, 2) from q, (6.1)."""
    (_, low, _), (share, high, _) = SQUARES
    corner = np.where(rng.random(n) < share, high, low)
    return rng.random((n, 2)) + corner[:, None]


def analytic_stationary(x: Array, epsilon: float) -> Array:
    """Return ν(x) = ∫ g(r; x, ε/2 I) q(r) dr of the squares, (n,): (6.2), there for ε = 1."""
    root = np.sqrt(epsilon)
    return sum(
        share * np.prod(erf((b - x) / root) - erf((a - x) / root), axis=1) / 4
        for share, a, b in SQUARES
    )


def best_mixture(X: Array, most: int, kind: str, rng: np.random.Generator) -> Any:
    """Return the Gaussian mixture with the smallest BIC among 1, ..., `most` components."""
    from sklearn.mixture import GaussianMixture

    state = int(rng.integers(2**31))
    mixtures = [
        GaussianMixture(k, covariance_type=kind, random_state=state).fit(X)
        for k in range(1, most + 1)
    ]
    return min(mixtures, key=lambda mixture: mixture.bic(X))


def _of_sample(X: Array, ticks: Array) -> Array:
    """Return ν of the sample over the grid: Gaussians factor into the two coordinates."""
    first, second = (
        np.exp(-((ticks[:, None] - x) ** 2) / EPSILON) / np.sqrt(np.pi * EPSILON) for x in X.T
    )
    return (first @ second.T).ravel() / len(X)


def _errors(nu: Array, analytic: Array) -> tuple[float, float]:
    """Return the largest and the rms error, as shares of the largest ν."""
    error = (nu - analytic) / analytic.max()
    return float(np.abs(error).max()), float(np.sqrt(np.square(error).mean()))


def _median(found: list[StationaryRow]) -> StationaryRow:
    components = median_low(row.components for row in found)
    errors = np.median([row[3:] for row in found], axis=0).tolist()
    return StationaryRow(found[0].points, len(found), components, *errors)
