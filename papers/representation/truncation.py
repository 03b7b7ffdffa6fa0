"""Example II of *Diffusion representation*, §6.2: the error of distances from truncated series.

Error and bounds in their correct form; `printed` has the formulas as printed.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import comb
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from heatsketch import MixtureKernel, TaylorMap
from papers.output import random
from papers.representation.stationary import TRUNCATION, best_mixture, two_squares

POINTS = 3000  # of the mixture, as in the paper
PAIRED_POINTS = 1000  # of them, all pairs of which are compared
SHOWN_ORDER, SHOWN_EPSILON = 3, 1.0  # of the histograms
NEEDED_ACCURACY = 0.01  # of the largest distance
ROUNDING = 1e-12  # of the longest |p(x, ·)|: an error below it may be rounding
BLOCK = 100  # rows whose distances to all later points are computed at once
LOG10_EDGES = np.linspace(-17, 2, 77)  # of the histograms, a quarter of a decade each


class TruncationRow(NamedTuple):
    """The error of orders 0, ..., l at one ε. Distances are in units of √density.

    Attributes
    ----------
    epsilon : float
        In units of the ball of radius 1.
    order, coordinates : int
        l, and C(m + l, l).
    median, worst : float
        Of δ = |d - d_l| over all pairs.
    bound, paper_bound : float
        On δ: `error_bound` of the map, and 2√η of the paper without ν_min.
    largest_distance : float
        The largest d.
    needed : int
        The order whose `bound` is 1 % of the largest distance.
    components : int
        Number of components of the mixture.
    scale : float
        The points were divided by it to fit into the unit ball.
    """

    epsilon: float
    order: int
    coordinates: int
    median: float
    worst: float
    bound: float
    paper_bound: float
    largest_distance: float
    needed: int
    components: int
    scale: float


class Histograms(NamedTuple):
    """Shares of all pairs by log10 δ, in the bins of `LOG10_EDGES`; the ends hold what is beyond.

    By ε at the order shown, and by order at the ε shown.
    """

    by_epsilon: dict[float, np.ndarray]
    by_order: dict[int, np.ndarray]

    def add(self, epsilon: float, order: int, delta: np.ndarray) -> None:
        """Count the errors of all pairs, if this ε or order is shown."""
        if order == SHOWN_ORDER:
            self.by_epsilon[epsilon] = shares(delta)
        if epsilon == SHOWN_EPSILON:
            self.by_order[order] = shares(delta)


def truncation_example(
    seed: int,
    *,
    points: int = POINTS,
    paired: int = PAIRED_POINTS,
    max_components: int = 8,
    log2_epsilons: Sequence[int] = range(-5, 6),
    orders: int = 14,
) -> tuple[list[TruncationRow], Histograms]:
    """Compare d and d_l for l = 1, ..., `orders`; raise if an error is above its bound.

    All pairs of the first `paired` points are compared.
    """
    rng = random(seed, TRUNCATION)
    X, scale = in_unit_ball(two_squares(points, rng))
    mixture = best_mixture(X, max_components, "tied", rng)
    rows, histograms = [], Histograms({}, {})
    for epsilon in (2.0**power for power in log2_epsilons):
        kernel = MixtureKernel.from_sklearn(mixture, epsilon)
        for row, delta in _of_epsilon(kernel, X, paired, scale, orders):
            rows.append(row)
            histograms.add(epsilon, row.order, delta)
    return rows, histograms


def in_unit_ball(X: np.ndarray) -> tuple[np.ndarray, float]:
    """Move the middle of the points to the origin and divide them by the largest length, given."""
    centred = X - (X.min(axis=0) + X.max(axis=0)) / 2
    scale = float(np.linalg.norm(centred, axis=1).max())
    return centred / scale, scale


def squared_distances(kernel: MixtureKernel, X: np.ndarray) -> np.ndarray:
    """Return d² of all pairs in closed form, (n(n - 1)/2,), in the order of `pdist`."""
    found = np.zeros((len(X), len(X)))
    for start in range(0, len(X), BLOCK):
        found[start : start + BLOCK, start:] = kernel.squared_distance(
            X[start : start + BLOCK], X[start:]
        )
    return found[np.triu_indices(len(X), 1)]


def distances_by_order(features: TaylorMap, X: np.ndarray) -> Iterator[np.ndarray]:
    """Yield d_0, d_1, ... of all pairs, because the coordinates of a map are sorted by order."""
    Y, m = features.transform(X), X.shape[1]
    ends = [0, *(comb(m + order, m) for order in range(features.order_ + 1))]
    squared = 0.0
    for start, end in pairwise(ends):
        squared = squared + pdist(Y[:, start:end], "sqeuclidean")
        yield np.sqrt(squared)


def shares(delta: np.ndarray) -> np.ndarray:
    """Return the shares of errors in the bins of `LOG10_EDGES`."""
    ends = 10 ** LOG10_EDGES[[0, -1]]
    return np.histogram(np.log10(np.clip(delta, *ends)), LOG10_EDGES)[0] / len(delta)


def _of_epsilon(
    kernel: MixtureKernel, X: np.ndarray, paired: int, scale: float, orders: int
) -> Iterator[tuple[TruncationRow, np.ndarray]]:
    pairs = X[:paired]
    d, noise = np.sqrt(squared_distances(kernel, pairs)), rounding(kernel, pairs)
    largest = float(d.max())
    needed = TaylorMap(radius=1).fit(kernel, NEEDED_ACCURACY * largest, X).order_
    features = TaylorMap(orders, radius=1).fit(kernel, points=X)
    for order, shorter in enumerate(distances_by_order(features, pairs)):
        delta = np.abs(d - shorter)
        row = TruncationRow(
            epsilon=kernel.epsilon,
            order=order,
            coordinates=comb(X.shape[1] + order, order),
            median=float(np.median(delta)),
            worst=float(delta.max()),
            bound=2 * features.bound(order),
            paper_bound=2 * float(np.sqrt(features.printed_bounds(order).eta)),
            largest_distance=largest,
            needed=needed,
            components=kernel.n_components,
            scale=scale,
        )
        if order > 0:
            check_bounds(row, noise)
            yield row, delta


def rounding(kernel: MixtureKernel, X: np.ndarray) -> float:
    """Return the size of an error of a distance that may be rounding."""
    return ROUNDING * float(np.sqrt(kernel.squared_norm(X).max()))


def check_bounds(row: TruncationRow, noise: float) -> None:
    """Raise if the error is above a bound by more than rounding."""
    for name, bound in (("error_bound", row.bound), ("2√η", row.paper_bound)):
        if not row.worst <= bound + noise:
            raise AssertionError(
                f"At epsilon={row.epsilon:g} and order {row.order} the error {row.worst:.3g} of a "
                f"distance is above its bound {name}={bound:.3g}."
            )
