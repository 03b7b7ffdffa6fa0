"""Example II of *Diffusion representation*, §6.2: the error of distances from truncated series.

Beside the error and its bounds in their correct form, the formulas as printed are evaluated: (6.3),
which compares a squared distance with an unsquared one, and η of (5.18) with its ν_min.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from heatsketch import MixtureKernel, TaylorMap
from heatsketch.mixture.series import first_order
from papers.output import random
from papers.representation.stationary import TRUNCATION, best_mixture, two_squares

NU_MIN = 1e-3  # as in the paper
SHOWN_ORDER, SHOWN_EPSILON = 3, 1.0  # of the histograms
NEEDED_ACCURACY = 0.01  # of the largest distance
ROUNDING = 1e-12  # of the longest |p(x, ·)|: an error below it may be rounding


class TruncationRow(NamedTuple):
    """The error of orders 0, ..., l at one ε. Distances are in units of √density.

    Attributes
    ----------
    epsilon : float
        In units of the ball of radius 1.
    order, coordinates : int
        l, and C(m + l, l).
    median, worst : float
        Of δ = |d - d_l| over the pairs.
    bound, paper_bound : float
        On δ: `error_bound` of the map, and 2√η of the paper without ν_min.
    printed : float
        The largest δ of (6.3) as printed, |d² - d_l|² with the first l terms, orders 0, ..., l - 1.
    printed_eta : float
        η as printed, (5.18), with ν_min = 10⁻³.
    largest_distance : float
        The largest d over the pairs.
    needed, needed_uncentred, needed_printed : int
        The order whose bound is 1 % of the largest distance: by `bound`; by the same bound with the
        ball of the paper, about the origin of the coordinates; by (5.20) as printed, with ν_min.
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
    printed: float
    printed_eta: float
    largest_distance: float
    needed: int
    needed_uncentred: int
    needed_printed: int
    components: int
    scale: float


class Sample(NamedTuple):
    """Points in the unit ball; the data are `points` times `scale` plus `middle`."""

    points: np.ndarray  # (n, m)
    middle: np.ndarray  # (m,)
    scale: float

    @property
    def reach(self) -> float:
        """The largest distance from the origin of the coordinates, in units of the scale."""
        return float(np.linalg.norm(self.points + self.middle / self.scale, axis=1).max())


class ErrorColumns(NamedTuple):
    """Errors δ of all pairs: by ε at the order shown, and by order at the ε shown."""

    by_epsilon: dict[float, np.ndarray]
    by_order: dict[int, np.ndarray]


def truncation_example(
    seed: int,
    *,
    points: int = 3000,
    pairs: int = 20_000,
    max_components: int = 8,
    log2_epsilons: Sequence[int] = range(-5, 6),
    orders: int = 14,
) -> tuple[list[TruncationRow], ErrorColumns]:
    """Compare d and d_l for l = 1, ..., `orders`; raise if an error is above its bound."""
    rng = random(seed, TRUNCATION)
    sample = in_unit_ball(two_squares(points, rng))
    mixture = best_mixture(sample.points, max_components, "tied", rng)
    ends = rng.integers(points, size=(2, pairs))
    rows, columns = [], ErrorColumns({}, {})
    for epsilon in (2.0**power for power in log2_epsilons):
        kernel = MixtureKernel.from_sklearn(mixture, epsilon)
        for row, delta in _of_epsilon(kernel, sample, ends, orders):
            rows.append(row)
            if row.order == SHOWN_ORDER:
                columns.by_epsilon[epsilon] = delta
            if epsilon == SHOWN_EPSILON:
                columns.by_order[row.order] = delta
    return rows, columns


def in_unit_ball(X: np.ndarray) -> Sample:
    """Move the middle of the points to the origin and scale them to a largest length of 1."""
    middle = (X.min(axis=0) + X.max(axis=0)) / 2
    scale = float(np.linalg.norm(X - middle, axis=1).max())
    return Sample((X - middle) / scale, middle, scale)


def _of_epsilon(
    kernel: MixtureKernel, sample: Sample, ends: np.ndarray, orders: int
) -> Iterator[tuple[TruncationRow, np.ndarray]]:
    X, (i, j) = sample.points, ends
    squared = kernel.squared_distance(X[i], X[j], pairwise=False)
    d, noise = np.sqrt(squared), ROUNDING * np.sqrt(kernel.squared_norm(X).max())
    largest = float(d.max())
    maps = [TaylorMap(order=order, radius=1).fit(kernel, points=X) for order in range(orders + 1)]
    needed = needed_orders(kernel, sample, maps[-1], NEEDED_ACCURACY * largest)
    before = _distances(maps[0], X, ends)
    for order, features in enumerate(maps[1:], start=1):
        after = _distances(features, X, ends)
        delta = np.abs(d - after)
        row = TruncationRow(
            epsilon=kernel.epsilon,
            order=order,
            coordinates=features.n_features,
            median=float(np.median(delta)),
            worst=float(delta.max()),
            bound=features.error_bound,
            paper_bound=2 * float(np.sqrt(features.printed_bounds(order).eta)),
            printed=float(np.square(squared - before).max()),
            printed_eta=features.printed_bounds(order, NU_MIN).eta,
            largest_distance=largest,
            needed=needed[0],
            needed_uncentred=needed[1],
            needed_printed=needed[2],
            components=kernel.n_components,
            scale=sample.scale,
        )
        check_bounds(row, noise)
        yield row, delta
        before = after


def _distances(features: TaylorMap, X: np.ndarray, ends: np.ndarray) -> np.ndarray:
    Y, (i, j) = features.transform(X), ends
    return np.linalg.norm(Y[i] - Y[j], axis=1)


def check_bounds(row: TruncationRow, noise: float) -> None:
    """Raise if the error is above a bound by more than rounding."""
    for name, bound in (("error_bound", row.bound), ("2√η", row.paper_bound)):
        if not row.worst <= bound + noise:
            raise AssertionError(
                f"At epsilon={row.epsilon:g} and order {row.order} the error {row.worst:.3g} of a "
                f"distance is above its bound {name}={bound:.3g}."
            )


def needed_orders(
    kernel: MixtureKernel, sample: Sample, features: TaylorMap, tolerance: float
) -> tuple[int, int, int]:
    """Return the orders for a tolerance: by the map, from the coordinates' origin, as printed."""
    centred = first_order(lambda order: 2 * features.bound(order) <= tolerance)
    printed = as_printed(kernel, sample, order=1)
    uncentred = first_order(lambda order: 2 * printed.bound(order) <= tolerance)
    return centred, uncentred, printed.l_max(tolerance, NU_MIN)


def as_printed(kernel: MixtureKernel, sample: Sample, order: int) -> TaylorMap:
    """Return the map of the paper: points are divided by their largest length, not centred.

    Lengths are in units of `scale`, as ε is. The ball about the origin of the coordinates holds the
    points, and the series is about that origin.
    """
    away = sample.middle / sample.scale
    parts = kernel.weights, kernel.means + away, kernel.covariances, kernel.epsilon
    return TaylorMap(order, centred=False).fit(MixtureKernel(*parts), points=sample.points + away)
