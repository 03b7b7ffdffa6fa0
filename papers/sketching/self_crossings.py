"""Self-crossings of sketches of a circle and of a torus, against the number of columns.

*Sketching the heat kernel*, §1 and §2.2: a sketch of a manifold of dimension d is almost surely an
embedding for k >= 2d + 1; §5.2: k = 3 nearly removes the self-intersection problem. Below 2d + 1
the number of crossings has a mean, by the formula of Kac and Rice; above, so has the number of
places where two sheets pass each other within a small distance.
"""

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist
from scipy.special import gammaln

from papers.output import COLOURS, figure_and_axes, random, save, write_rows
from papers.sketching import trials
from papers.sketching.crossings import crossings
from papers.sketching.figures import CIRCLE, OUTLIERS
from papers.sketching.periodic import EVEN_CIRCLE, Circles, covariance, realizations

SIZES = tuple(range(2, 9))
POWERS = (1, 2, 4, 8, 16, 32)
EVEN = EVEN_CIRCLE._replace(shape=(150,))  # as many as the few waves of a sketch need
DRAWS, EVEN_DRAWS, DRAWS_OF_POWERS, DRAWS_WITH_OUTLIERS = 200, 1000, 1000, 100
FAR = np.pi / 4  # angle between points of the circle from which on they count as far
NEAR = 0.05  # distance of edges that counts as near, in units of the radius
FINE = 200  # lags of the circle in the formula of Kac and Rice; more only add rounding
NAME, PURPOSE = "self-crossings", 11


class CrossingRow(NamedTuple):
    """Sketches of the circle, with the setting of Figure 1.

    Attributes
    ----------
    points : str
        "random" as in Figure 1, or "even".
    k, draws : int
        Columns, and number of draws of points and columns.
    crossing : float
        Share of draws whose polygon crosses itself.
    crossings, expected : float
        Mean number of crossings, and that of Kac and Rice; none for k >= 3.
    near, expected_near : float
        Share of draws in which edges at least 45 degrees apart pass within 1/20 of the radius, and
        the mean number of such places, to first order in this distance; for even points.
    smallest_gap, median_gap : float
        Of the draws, the smallest distance of edges at least 45 degrees apart, in units of the
        radius.
    low, median, high, largest : float
        log L: the quantiles .1, .5, .9 of the draws, and the largest.
    """

    points: str
    k: int
    draws: int
    crossing: float
    crossings: float
    expected: float
    near: float
    expected_near: float
    smallest_gap: float
    median_gap: float
    low: float
    median: float
    high: float
    largest: float


class PowerRow(NamedTuple):
    """Crossings of sketches of the even circle in the plane, at one power.

    Attributes
    ----------
    power, draws : int
        p, and the number of draws.
    expected : float
        Number of crossings by the formula of Kac and Rice.
    crossings, error : float
        Mean number of crossings, and its standard error.
    crossing : float
        Share of draws with a crossing.
    """

    power: int
    draws: int
    expected: float
    crossings: float
    error: float
    crossing: float


class OutlierRow(NamedTuple):
    """The circle with two outliers, with the setting of Figure 3: log L of the circle alone.

    Attributes
    ----------
    method : str
        DMS or GPS.
    k, draws : int
        Columns, and number of draws.
    all_points : float
        Mean log L of all pairs.
    circle, deviation : float
        Mean log L of the pairs of points of the circle, and its standard deviation.
    low, high : float
        Its quantiles .1 and .9.
    crossing : float
        Share of draws in which the polygon of the circle crosses itself; for k = 2.
    """

    method: str
    k: int
    draws: int
    all_points: float
    circle: float
    deviation: float
    low: float
    high: float
    crossing: float


# The formula of Kac and Rice


def expected_pairs(
    circles: Circles, k: int, distance: float = 0.0, far: float = 0.0, fine: int = FINE
) -> float:
    """Return the mean number of pairs x, y where two sheets of (f_1, ..., f_k)/√k meet.

    For k = 2d, d the dimension, these are crossings,

        ½ ∬ E[|det J| | f(x) = f(y)] (2π s²)^-d dx dy,    J = (∂f(x), ∂f(y)), s² = Var(f(x) - f(y)),

    where det J of 2d independent columns has the mean Π χ √det Σ, Σ the covariance of the 2d
    derivatives of one column, given f(x) = f(y). For k > 2d, where they do not meet, it is the mean
    number of places where they pass within a small `distance`, to first order: with the volume of
    2d vectors in R^k for |det J|, and that of the ball of dimension k - 2d. x and y are at least
    `far` apart, as angles.
    """
    d = circles.dimension
    angle = 2 * np.pi * (np.arange(fine) + 0.5) / fine - np.pi
    lags = [lag.ravel() for lag in np.meshgrid(*[angle] * d, indexing="ij")]
    lags = [lag[np.hypot.reduce(lags) >= far] for lag in lags] if far else lags
    square = 2 * (covariance(circles, [0.0] * d) - covariance(circles, lags)) / k
    Sigma = _derivatives_given_a_meeting(circles, lags, square * k) / k
    content = np.sqrt(np.clip(np.linalg.det(Sigma), 0, None))
    density = _mean_content(2 * d, k) * content * (2 * np.pi * square) ** (-k / 2)
    lengths = 2 * np.pi * np.array(circles.radii)
    ball = math.pi ** ((k - 2 * d) / 2) / math.gamma((k - 2 * d) / 2 + 1)
    total = float(np.prod(lengths) ** 2 / fine**d * density.sum())
    return total / 2 * ball * distance ** (k - 2 * d)


def _derivatives_given_a_meeting(
    circles: Circles, lags: list[np.ndarray], square: np.ndarray
) -> np.ndarray:
    """Return the covariances (lags, 2d, 2d) of ∂f(x), ∂f(y) given f(x) = f(y)."""
    d = circles.dimension
    steps = np.eye(d, dtype=int)
    Sigma = np.empty((len(square), 2 * d, 2 * d))
    for a in range(d):
        for b in range(d):
            orders = (steps[a] + steps[b]).tolist()
            Sigma[:, a, b] = Sigma[:, d + a, d + b] = -covariance(circles, [0.0] * d, orders)
            Sigma[:, a, d + b] = Sigma[:, d + a, b] = -covariance(circles, lags, orders)
    slope = np.stack([covariance(circles, lags, step.tolist()) for step in steps], axis=1)
    common = np.concatenate([slope, slope], axis=1)  # with f(x) - f(y)
    return Sigma - common[:, :, None] * common[:, None] / square[:, None, None]


def _mean_content(count: int, k: int) -> float:
    """Return the mean volume of `count` independent normal vectors in R^k: Π E χ_(k - j)."""
    degrees = k - np.arange(count)
    return float(
        np.exp(np.sum(math.log(2) / 2 + gammaln((degrees + 1) / 2) - gammaln(degrees / 2)))
    )


# Curves


def edge_distances(Y: np.ndarray) -> np.ndarray:
    """Return the distances (n, n) of all pairs of edges of a closed polygon in any dimension.

    Two edges are nearest within both, where the smallest distance of two lines is, or at an end of
    one of them.
    """
    E = np.roll(Y, -1, axis=0) - Y
    between = Y[:, None] - Y[None]  # from the start of edge j to that of edge i
    a, b = np.einsum("ik,ijk->ij", E, between), np.einsum("jk,ijk->ij", E, between)
    g, h = E @ E.T, np.square(E).sum(axis=1)
    determinant = np.outer(h, h) - g**2
    with np.errstate(divide="ignore", invalid="ignore"):
        s, t = (g * b - h[None] * a) / determinant, (h[:, None] * b - g * a) / determinant
    inside = (s >= 0) & (s <= 1) & (t >= 0) & (t <= 1)
    s, t = np.where(inside, s, 0), np.where(inside, t, 0)
    apart = between + s[..., None] * E[:, None] - t[..., None] * E[None]
    to_edges = np.clip(b / h[None], 0, 1)  # from the start of i to the edge j
    start = np.linalg.norm(between - to_edges[..., None] * E[None], axis=2)
    ends = np.minimum(start, np.roll(start, -1, axis=0))
    ends = np.minimum(ends, ends.T)
    return np.where(inside, np.linalg.norm(apart, axis=2), ends)


class Curve(NamedTuple):
    """What is measured of one closed polygon."""

    crossings: int
    gap: float
    log_L: float


def measure(Y: np.ndarray, angles: np.ndarray, D: np.ndarray) -> Curve:
    """Measure a closed polygon of points (n, k) in the order of their angles."""
    radius = np.sqrt(np.square(D).mean() / 2)
    apart = np.abs(np.angle(np.exp(1j * np.subtract.outer(angles, angles))))
    distances = np.where(apart >= FAR, edge_distances(Y), np.inf) / radius
    count = crossings(Y) if Y.shape[1] == 2 else 0
    return Curve(count, float(distances.min()), log_L(pdist(Y), D))


def log_L(lengths: np.ndarray, D: np.ndarray) -> float:
    """Return (32) alone of all pairs, for many small tables: `hs.distortion` also sorts them."""
    ratios = lengths / D
    return float(np.log(ratios.max() / ratios.min()))


def random_curves(seed: int, draws: int) -> dict[int, list[Curve]]:
    """Measure sketches of the random points of Figure 1, the trials of this figure."""
    found: dict[int, list[Curve]] = {k: [] for k in SIZES}
    for trial in range(draws):
        sample = trials.Sample(CIRCLE, seed, trial)
        order = np.argsort(sample.coordinates)
        p = CIRCLE.powers[0]
        D = pdist(trials.diffusion_factor(sample.spectrum("symmetric"), p)[order])
        for k in SIZES:
            Y = sample.embedding("GPS", p, k)[order]
            found[k].append(measure(Y, sample.coordinates[order], D))
    return found


def even_curves(seed: int, draws: int, circles: Circles = EVEN) -> dict[int, list[Curve]]:
    """Measure sketches of even points."""
    widest, n = max(SIZES), circles.size
    F = realizations(circles, draws * widest, random(seed, PURPOSE, 0)).reshape(n, draws, widest)
    angles = 2 * np.pi * np.arange(n) / n
    i, j = np.triu_indices(n, 1)
    lags = covariance(circles, [0.0]) - covariance(circles, [angles])
    D = np.sqrt(2 * lags[j - i])
    return {
        k: [measure(F[:, draw, :k] / np.sqrt(k), angles, D) for draw in range(draws)] for k in SIZES
    }


def crossing_rows(points: str, found: dict[int, list[Curve]]) -> list[CrossingRow]:
    """Sum up what was measured, beside the formula of Kac and Rice."""
    radius = np.sqrt(covariance(EVEN, [0.0]) - 1)  # without the constant wave
    rows = []
    for k, curves in found.items():
        counts, gaps, logs = (np.array(column) for column in zip(*curves, strict=True))
        crossing = gaps == 0 if k > 2 else counts > 0
        expected = expected_pairs(EVEN, k) if k == 2 else 0.0
        passing = expected_pairs(EVEN, k, NEAR * radius, FAR)
        numbers = crossing.mean(), counts.mean(), expected, (gaps < NEAR).mean(), passing
        rest = gaps.min(), np.median(gaps), *np.quantile(logs, (0.1, 0.5, 0.9, 1))
        rows.append(CrossingRow(points, k, len(curves), *map(float, (*numbers, *rest))))
    return rows


def power_rows(seed: int, draws: int) -> list[PowerRow]:
    """Count crossings in the plane at several powers, beside the formula of Kac and Rice."""
    rows = []
    for place, power in enumerate(POWERS):
        circles = EVEN._replace(power=power)
        F = realizations(circles, 2 * draws, random(seed, PURPOSE, 1, place))
        counts = np.array([crossings(Y) for Y in np.split(F, draws, axis=1)])
        numbers = expected_pairs(circles, 2), counts.mean(), counts.std() / np.sqrt(draws)
        rows.append(PowerRow(power, draws, *map(float, (*numbers, (counts > 0).mean()))))
    return rows


def outlier_rows(seed: int, draws: int) -> list[OutlierRow]:
    """Measure the circle of Figure 3 alone, in the diffusion map and in the sketch."""
    found: dict[tuple[str, int], list[tuple[float, float, bool]]] = {}
    p = OUTLIERS.powers[0]
    for trial in range(draws):
        sample = trials.Sample(OUTLIERS, seed, trial)
        circle = np.argsort(sample.coordinates)[: np.isfinite(sample.coordinates).sum()]
        D = pdist(trials.diffusion_factor(sample.spectrum("symmetric"), p)[circle])
        for method in ("DMS", "GPS"):
            for k in (2, 3):
                Y = sample.embedding(method, p, k)[circle]
                crosses = k == 2 and crossings(Y) > 0
                both = sample.log_L(method, p, k), log_L(pdist(Y), D)
                found.setdefault((method, k), []).append((*both, crosses))
    rows = []
    for (method, k), values in found.items():
        of_all, alone, crosses = np.array(values, dtype=float).T
        numbers = of_all.mean(), alone.mean(), alone.std(), *np.quantile(alone, (0.1, 0.9))
        rows.append(OutlierRow(method, k, draws, *map(float, (*numbers, crosses.mean()))))
    return rows


def run_self_crossings(folder: Path, seed: int = 0, **sizes: Any) -> list[CrossingRow]:
    """Write self-crossings.csv, one table each for powers and outliers, and self-crossings.png."""
    draws = sizes.get("draws", DRAWS)
    of_random = random_curves(seed, draws)
    of_even = even_curves(seed, sizes.get("even_draws", EVEN_DRAWS))
    rows = crossing_rows("random", of_random) + crossing_rows("even", of_even)
    powers = power_rows(seed, sizes.get("draws_of_powers", DRAWS_OF_POWERS))
    outliers = outlier_rows(seed, sizes.get("draws_with_outliers", DRAWS_WITH_OUTLIERS))
    write_rows(folder / f"{NAME}.csv", CrossingRow._fields, rows)
    write_rows(folder / f"{NAME}-powers.csv", PowerRow._fields, powers)
    write_rows(folder / f"{NAME}-outliers.csv", OutlierRow._fields, outliers)
    drawing, axes = figure_and_axes(12, 4, (1, 3))
    _draw_powers(axes[0, 0], powers)
    _draw_gaps(axes[0, 1], of_even)
    _draw_log_L(axes[0, 2], rows)
    save(drawing, "Crossings of sketches of the circle", folder / f"{NAME}.png")
    return rows


def _draw_powers(ax: Any, powers: list[PowerRow]) -> None:
    p = [row.power for row in powers]
    ax.plot(p, [row.expected for row in powers], "k-", lw=1, label="crossings, Kac and Rice")
    bars = [2 * row.error for row in powers]
    ax.errorbar(
        p,
        [r.crossings for r in powers],
        bars,
        fmt="o",
        color=COLOURS[0],
        label="crossings, counted",
    )
    ax.plot(p, [r.crossing for r in powers], "s--", color=COLOURS[5], label="share that crosses")
    ax.set(xscale="log", yscale="log", ylim=(1e-3, 10))
    ax.set(xlabel="p", ylabel="crossings in the plane, k = 2")
    ax.set_xticks(p, [str(power) for power in p])
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=7)


def _draw_gaps(ax: Any, found: dict[int, list[Curve]]) -> None:
    radius = np.sqrt(covariance(EVEN, [0.0]) - 1)
    delta = np.geomspace(1e-3, 1, 50)
    for colour, k in zip(COLOURS, (2, 3, 4, 5), strict=False):
        gaps = np.sort([curve.gap for curve in found[k]])
        share = (np.arange(len(gaps)) + 1) / len(gaps)
        ax.plot(gaps, share, ".", ms=3, color=colour, label=f"k = {k}")
        law = [expected_pairs(EVEN, k, distance * radius, FAR) for distance in delta]
        ax.plot(delta, law, color=colour, lw=1)
    ax.set(xscale="log", yscale="log", xlim=(1e-3, 1), ylim=(5e-4, 1.5))
    ax.set(xlabel="δ, radii", ylabel="share of draws with a gap below δ")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=7, title="lines: Kac and Rice", title_fontsize=7)


def _draw_log_L(ax: Any, rows: list[CrossingRow]) -> None:
    for colour, points in zip(COLOURS, ("random", "even"), strict=False):
        own = [row for row in rows if row.points == points]
        k, middle = [row.k for row in own], np.array([row.median for row in own])
        ends = np.array([[row.low for row in own], [row.high for row in own]])
        bars = np.abs(ends - middle)
        ax.errorbar(k, middle, bars, fmt="o-", color=colour, capsize=3, label=f"{points} points")
    ax.set(xlabel="k", ylabel="log L: quantiles .1, .5, .9", ylim=(0, None))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=7)
