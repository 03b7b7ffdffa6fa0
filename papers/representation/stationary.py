"""Example I of *Diffusion representation*, §6.1: a stationary density that is known.

A mixture is fitted to a sample of two flat squares, and its stationary density ν is compared with
the analytic one. The example also gives the error of the sample without a mixture.
"""

from statistics import median_low
from typing import Any, NamedTuple

import numpy as np
from scipy.special import erf
from sklearn.mixture import GaussianMixture

import heatsketch as hs
from papers.output import random

SQUARES = ((0.2, 0.0, 1.0), (0.8, 3.0, 4.0))  # probability, and [a, b] of both coordinates
EPSILON = 1.0
GRID_RANGE = (-2.0, 6.0)  # of both coordinates
PICTURE_POINTS = 2000  # as in the paper
STATIONARY, TRUNCATION, COMPONENTS, RIVALS, IMAGE = range(5)  # purposes of random numbers


class StationaryRow(NamedTuple):
    """How far the stationary density of a fitted mixture is from the true one.

    Attributes
    ----------
    points, draws : int
        Points of a sample, and number of samples; the other columns are medians over the samples.
        The row of one draw is the sample of the picture.
    components : int
        Number of components of the mixture, by BIC.
    largest, rms : float
        Error over the grid, as a share of the largest ν.
    sample_largest, sample_rms : float
        The same for ν of the sample itself, without a mixture: (1/n) Σ g(x; r_i, ε/2 I).
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

    ticks: np.ndarray  # (g,)
    analytic: np.ndarray  # (g, g)
    closed_form: np.ndarray  # (g, g)


def stationary_example(
    seed: int,
    *,
    points: tuple[int, ...] = (500, 2000, 8000),
    draws: int = 5,
    max_components: int = 16,
    grid: int = 48,
) -> tuple[list[StationaryRow], StationaryPanels]:
    """Fit mixtures to samples of each size and compare ν; `points` includes `PICTURE_POINTS`."""
    ticks = np.linspace(*GRID_RANGE, grid)
    nodes = np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)
    analytic = analytic_stationary(nodes, EPSILON)
    rows: list[StationaryRow] = []
    for n in points:
        found = []
        for draw in range(draws):
            rng = random(seed, STATIONARY, n, draw)
            X = two_squares(n, rng)
            mixture = best_mixture(X, max_components, "full", rng)
            kernel = hs.MixtureKernel.from_sklearn(mixture, EPSILON)
            nu = kernel.stationary(nodes)
            errors = (*_errors(nu, analytic), *_errors(of_sample(X, ticks, EPSILON), analytic))
            found.append(StationaryRow(n, 1, kernel.n_components, *errors))
            if n == PICTURE_POINTS and draw == 0:
                panels = StationaryPanels(ticks, *(v.reshape(grid, grid) for v in (analytic, nu)))
                rows.insert(0, found[0])
        rows.append(_median(found))
    return rows, panels


def two_squares(n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw points (n, 2) from q, (6.1)."""
    (_, low, _), (share, high, _) = SQUARES
    corner = np.where(rng.random(n) < share, high, low)
    return rng.random((n, 2)) + corner[:, None]


def analytic_stationary(x: np.ndarray, epsilon: float) -> np.ndarray:
    """Return ν(x) = ∫ g(r; x, ε/2 I) q(r) dr of the squares, (n,): (6.2) of the paper for ε = 1."""
    root = np.sqrt(epsilon)
    return sum(
        share * np.prod(erf((b - x) / root) - erf((a - x) / root), axis=1) / 4
        for share, a, b in SQUARES
    )


def best_mixture(X: np.ndarray, max_components: int, kind: str, rng: np.random.Generator) -> Any:
    """Return the Gaussian mixture of 1 to `max_components` components with the smallest BIC."""
    state = int(rng.integers(2**31))
    mixtures = [
        GaussianMixture(k, covariance_type=kind, random_state=state).fit(X)
        for k in range(1, max_components + 1)
    ]
    return min(mixtures, key=lambda mixture: mixture.bic(X))


def of_sample(X: np.ndarray, ticks: np.ndarray, epsilon: float) -> np.ndarray:
    """Return ν of the sample over the grid: Gaussians factor into the two coordinates."""
    first, second = (
        np.exp(-((ticks[:, None] - x) ** 2) / epsilon) / np.sqrt(np.pi * epsilon) for x in X.T
    )
    return (first @ second.T).ravel() / len(X)


def _errors(nu: np.ndarray, analytic: np.ndarray) -> tuple[float, float]:
    """Return the largest and the rms error, as shares of the largest ν."""
    error = (nu - analytic) / analytic.max()
    return float(np.abs(error).max()), float(np.sqrt(np.square(error).mean()))


def _median(found: list[StationaryRow]) -> StationaryRow:
    components = median_low(row.components for row in found)
    errors = np.median([row[3:] for row in found], axis=0).tolist()
    return StationaryRow(found[0].points, len(found), components, *errors)
