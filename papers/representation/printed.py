"""Figures 6.2 and 6.3 of *Diffusion representation* with every formula as it is printed.

Points are divided by their largest length, not centred; the series is about the origin of the
coordinates and has the first l terms, orders 0, ..., l - 1; δ is (6.3), which compares d² with d_l;
η is (5.18) with ν_min. `truncation` has the corrected forms.
"""

from collections.abc import Sequence
from math import comb
from typing import NamedTuple

import numpy as np

from heatsketch import MixtureKernel, TaylorMap
from papers.output import random
from papers.representation.stationary import TRUNCATION, best_mixture, two_squares
from papers.representation.truncation import NU_MIN, SHOWN_EPSILON, SHOWN_ORDER, ErrorColumns


class PrintedRow(NamedTuple):
    """δ and η as printed at one ε and l, over random pairs of points.

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
    """

    epsilon: float
    terms: int
    median: float
    worst: float
    eta: float
    corrected: float


def printed_example(
    seed: int,
    *,
    points: int = 3000,
    pairs: int = 20_000,
    max_components: int = 8,
    log2_epsilons: Sequence[int] = range(-5, 6),
    terms: int = 14,
) -> tuple[list[PrintedRow], ErrorColumns]:
    """Evaluate (6.3) and (5.18) for l = 1, ..., `terms`."""
    rng = random(seed, TRUNCATION)
    X = two_squares(points, rng)
    X /= np.linalg.norm(X, axis=1).max()
    mixture = best_mixture(X, max_components, "tied", rng)
    i, j = rng.integers(points, size=(2, pairs))
    rows, columns = [], ErrorColumns({}, {})
    for epsilon in (2.0**power for power in log2_epsilons):
        kernel = MixtureKernel.from_sklearn(mixture, epsilon)
        squared = kernel.squared_distance(X[i], X[j], pairwise=False)
        features = TaylorMap(terms, radius=1, centred=False).fit(kernel, points=X)
        off = features.transform(X[i]) - features.transform(X[j])
        sizes = [comb(2 + order, 2) for order in range(terms + 1)]
        by_order = [np.linalg.norm(off[:, :size], axis=1) for size in sizes]
        for count in range(1, terms + 1):
            delta = np.square(squared - by_order[count - 1])
            eta = features.printed_bounds(count, NU_MIN).eta
            corrected = float(np.square(np.sqrt(squared) - by_order[count]).max())
            ends = float(np.median(delta)), float(delta.max())
            rows.append(PrintedRow(epsilon, count, *ends, eta, corrected))
            if count == SHOWN_ORDER:
                columns.by_epsilon[epsilon] = delta
            if epsilon == SHOWN_EPSILON:
                columns.by_order[count] = delta
    return rows, columns
