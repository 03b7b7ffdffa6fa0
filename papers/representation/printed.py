"""Figures 6.2 and 6.3 of *Diffusion representation* with every formula as it is printed.

Points are divided by their largest length, not centred; the series is about the origin of the
coordinates and has the first l terms, orders 0, ..., l - 1; δ is (6.3), which compares d² with d_l;
η is (5.18) with ν_min. `truncation` has the corrected forms.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from heatsketch import MixtureKernel, TaylorMap
from papers.output import random
from papers.representation.stationary import TRUNCATION, best_mixture, two_squares
from papers.representation.truncation import (
    NEEDED_ACCURACY,
    PAIRED_POINTS,
    POINTS,
    Histograms,
    distances_by_order,
    squared_distances,
)

NU_MIN = 1e-3  # as in the paper


class PrintedRow(NamedTuple):
    """δ and η as printed at one ε and l, over all pairs of points.

    Attributes
    ----------
    epsilon : float
        In units of the ball of radius 1.
    terms : int
        l, the number of terms.
    median, worst : float
        Of δ = |d² - d_l|², (6.3).
    eta : float
        η, (5.18), with ν_min = 10⁻³.
    corrected : float
        The largest |d - d_l|² of orders 0, ..., l, which η without ν_min bounds by 4η.
    largest_distance : float
        The largest d.
    l_max : int
        The smallest l of (5.20) for ζ = 1 % of the largest d, with ν_min.
    needed : int
        The order that `hs.TaylorMap` needs for the same ζ at the same ε.
    scale : float
        The points were divided by it to fit into the unit ball.
    """

    epsilon: float
    terms: int
    median: float
    worst: float
    eta: float
    corrected: float
    largest_distance: float
    l_max: int
    needed: int
    scale: float


def printed_example(
    seed: int,
    *,
    points: int = POINTS,
    paired: int = PAIRED_POINTS,
    max_components: int = 8,
    log2_epsilons: Sequence[int] = range(-5, 6),
    terms: int = 14,
) -> tuple[list[PrintedRow], Histograms]:
    """Evaluate (6.3) and (5.18) for l = 1, ..., `terms`, for all pairs of `paired` points."""
    rng = random(seed, TRUNCATION)
    X = two_squares(points, rng)
    scale = float(np.linalg.norm(X, axis=1).max())
    X /= scale
    mixture = best_mixture(X, max_components, "tied", rng)
    rows, histograms = [], Histograms({}, {})
    for epsilon in (2.0**power for power in log2_epsilons):
        kernel = MixtureKernel.from_sklearn(mixture, epsilon)
        squared = squared_distances(kernel, X[:paired])
        d = np.sqrt(squared)
        zeta = NEEDED_ACCURACY * float(d.max())
        features = TaylorMap(terms, radius=1, centred=False).fit(kernel, points=X)
        orders = features.l_max(zeta, NU_MIN), TaylorMap().fit(kernel, zeta, X).order_
        by_order = pairwise(distances_by_order(features, X[:paired]))
        for count, (shorter, longer) in enumerate(by_order, start=1):
            delta = np.square(squared - shorter)
            eta = features.printed_bounds(count, NU_MIN).eta
            corrected = float(np.square(d - longer).max())
            ends = float(np.median(delta)), float(delta.max())
            largest = float(d.max())
            rows.append(PrintedRow(epsilon, count, *ends, eta, corrected, largest, *orders, scale))
            histograms.add(epsilon, count, delta)
    return rows, histograms
