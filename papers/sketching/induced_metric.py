"""The metric that a sketch induces on a circle and on a torus, against the number of columns.

*Sketching the heat kernel*, Theorem 2.2: the pullback metric g^k of (f_1, ..., f_k) / √k tends to
the metric g = [Y_y X_x C(x, y)], y = x, of (7), in C². The gradient of one f at a point has the
covariance g, so that k g^-½ g^k g^-½ is a Wishart matrix of k degrees of freedom. With
E = g^-½ g^k g^-½ - I this is

    mean of |E|² = d (d + 1) / k,

and along one manifold |E - its mean|² has the mean (d (d + 1) - a) / k, where a is the average of
(tr R)² + |R|² over all pairs of points, R the correlation of the two gradients.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import heatsketch as hs
from papers.output import COLOURS, figure_and_axes, random, save, write_rows
from papers.sketching.periodic import (
    EVEN_CIRCLE,
    EVEN_TORUS,
    Circles,
    covariance,
    derivative,
    grid_lags,
    kernel,
    realizations,
)

SPACES = (EVEN_CIRCLE, EVEN_TORUS)
SIZES = tuple(2**j for j in range(1, 12))
POWERS = (2, 5, 10, 20, 50, 100)  # of the limit metric
NAME, PURPOSE = "induced-metric", 10


class MetricRow(NamedTuple):
    """How far the metric of sketches of k columns is from its limit. All numbers are relative to g.

    Attributes
    ----------
    space : str
        Circle or torus.
    k, draws : int
        Columns of a sketch, and number of sketches.
    error, expected : float
        √ of the mean of |E|² over points and draws, and √(d (d + 1) / k).
    spread, expected_spread : float
        √ of the mean of |E - its mean over the points|², and its expectation.
    largest, first, second : float
        The largest |E| over the points, and the largest of its first and of its second derivatives
        by arc length; each a mean over the draws.
    diffusion_map : float
        √ of the mean of |E|² for the first k eigenvectors in place of a sketch.
    """

    space: str
    k: int
    draws: int
    error: float
    expected: float
    spread: float
    expected_spread: float
    largest: float
    first: float
    second: float
    diffusion_map: float


class LimitRow(NamedTuple):
    """The limit metric along one circle, by arc length, divided by C(0).

    Attributes
    ----------
    space, circle : str
        Which circle of which space.
    power : int
        p of A^p.
    closed : float
        Σ m² λ_m^2p / (r² Σ λ_m^2p) over all whole m, λ_m = I_m(2r²/ε) / I_0(2r²/ε).
    of_matrix : float
        (7) of the matrix A^2p of the points.
    of_distance : float
        The squared speed of the diffusion distance.
    """

    space: str
    circle: str
    power: int
    closed: float
    of_matrix: float
    of_distance: float


# The limit


def limit_metric(circles: Circles) -> np.ndarray:
    """Return the diagonal of g (d,): -∂²C(0) along every circle, by arc length."""
    zero = [0.0] * circles.dimension
    return np.array([-float(covariance(circles, zero, order)) for order in _twice(circles)])


def limit_rows(spaces: Sequence[Circles], powers: Sequence[int]) -> list[LimitRow]:
    """Compute the limit metric in closed form, from the matrix and from diffusion distances."""
    rows = []
    for circles in spaces:
        names = ("",) if circles.dimension == 1 else ("short", "long")
        for power in powers:
            at_power = circles._replace(power=power)
            variance = float(covariance(at_power, [0.0] * circles.dimension))
            columns = limit_metric(at_power), metric_of_points(at_power), squared_speed(at_power)
            for name, *numbers in zip(names, *columns, strict=True):
                rows.append(LimitRow(circles.name, name, power, *(x / variance for x in numbers)))
    return rows


def metric_of_points(circles: Circles) -> np.ndarray:
    """Evaluate (7) at the first point (d,): derivatives of n A^2p in both arguments."""
    identity = np.sqrt(circles.size) * np.eye(circles.size)
    filter = hs.Power(2 * circles.power)
    C = circles.size * hs.sketch(kernel(circles), filter, G=identity, deflate=False)
    slopes = [derivative(C, circles, *order)[0] for order in _once(circles)]  # of y at one x
    pairs = zip(slopes, _once(circles), strict=True)
    return np.array([derivative(slope, circles, *order)[0] for slope, order in pairs])


def squared_speed(circles: Circles) -> np.ndarray:
    """Return half the second derivatives of the squared diffusion distance from a point (d,)."""
    others = np.arange(circles.size)
    D = hs.diffusion_distance(
        kernel(circles), time=circles.power, pairs=(np.zeros_like(others), others)
    )
    square = circles.size * D**2
    return np.array([derivative(square, circles, *order)[0] / 2 for order in _twice(circles)])


# Sketches


def metric_example(
    seed: int,
    *,
    spaces: Sequence[Circles] = SPACES,
    sizes: Sequence[int] = SIZES,
    columns: int = 4096,
) -> list[MetricRow]:
    """Compare the metrics of sketches with their limit; a sketch of k columns is drawn anew."""
    rows: list[MetricRow] = []
    for place, circles in enumerate(spaces):
        F = realizations(circles, columns, random(seed, PURPOSE, place))
        gradients = whitened_gradients(F, circles)
        vectors = hs.eigh(kernel(circles), circles.size)
        maps = whitened_gradients(
            np.sqrt(circles.size) * vectors.vectors[:, 1:] * vectors.values[1:] ** circles.power,
            circles,
        )
        rows += [_row(circles, gradients, maps, k) for k in sizes]
    return rows


def whitened_gradients(F: np.ndarray, circles: Circles) -> np.ndarray:
    """Return g^-½ times the gradients of functions (n, columns): (d, n, columns)."""
    scales = np.sqrt(limit_metric(circles))
    pairs = zip(scales, _once(circles), strict=True)
    return np.stack([derivative(F, circles, *order) / scale for scale, order in pairs])


def metric_errors(gradients: np.ndarray, k: int) -> np.ndarray:
    """Return E (d, d, n, draws) of sketches of k columns each."""
    d, n, columns = gradients.shape
    blocks = gradients[:, :, : columns // k * k].reshape(d, n, -1, k)
    E = np.einsum("anbk,cnbk->acnb", blocks, blocks) / k
    return E - np.eye(d)[:, :, None, None]


def expected_spread(circles: Circles, k: int) -> float:
    """Return √ of the mean of |E - its mean over the points|²."""
    d, scales = circles.dimension, np.sqrt(limit_metric(circles))
    R = np.empty((d, d, circles.size))
    for a, b in product(range(d), repeat=2):
        orders = np.add(_once(circles)[a], _once(circles)[b])
        R[a, b] = -covariance(circles, grid_lags(circles), list(orders)) / (scales[a] * scales[b])
    common = np.square(np.trace(R)).mean() + np.square(R).sum(axis=(0, 1)).mean()
    return float(np.sqrt((d * (d + 1) - common) / k))


def _row(circles: Circles, gradients: np.ndarray, maps: np.ndarray, k: int) -> MetricRow:
    d, E = circles.dimension, metric_errors(gradients, k)
    of_map = np.einsum("ank,cnk->acn", maps[:, :, :k], maps[:, :, :k])
    return MetricRow(
        space=circles.name,
        k=k,
        draws=E.shape[-1],
        error=_rms(E),
        expected=float(np.sqrt(d * (d + 1) / k)),
        spread=_rms(E - E.mean(axis=2, keepdims=True)),
        expected_spread=expected_spread(circles, k),
        largest=_largest(E, circles, 0),
        first=_largest(E, circles, 1),
        second=_largest(E, circles, 2),
        diffusion_map=_rms((of_map - np.eye(d)[:, :, None])[..., None]),
    )


def _rms(E: np.ndarray) -> float:
    """Return √ of the mean of |E|² over points and draws."""
    return float(np.sqrt(np.square(E).sum(axis=(0, 1)).mean()))


def _largest(E: np.ndarray, circles: Circles, order: int) -> float:
    """Return the mean over the draws of the largest derivative of an order."""
    fields = np.moveaxis(E, (2, 3), (0, 1)).reshape(circles.size, -1)
    found = []
    for chosen in combinations_with_replacement(range(circles.dimension), order):
        orders = [chosen.count(axis) for axis in range(circles.dimension)]
        there = derivative(fields, circles, *orders).reshape(circles.size, E.shape[-1], -1)
        found.append(np.linalg.norm(there, axis=2).max(axis=0))
    return float(np.max(found, axis=0).mean())


def _once(circles: Circles) -> list[tuple[int, ...]]:
    """Return the orders of the first derivatives along each circle."""
    return [tuple(row) for row in np.eye(circles.dimension, dtype=int).tolist()]


def _twice(circles: Circles) -> list[tuple[int, ...]]:
    """Return the orders of the second derivatives along each circle."""
    return [tuple(row) for row in (2 * np.eye(circles.dimension, dtype=int)).tolist()]


# The picture


def run_induced_metric(folder: Path, seed: int = 0, **sizes: Any) -> list[MetricRow]:
    """Write induced-metric.csv, induced-metric-limit.csv and induced-metric.png."""
    rows = metric_example(seed, **sizes)
    limits = limit_rows(sizes.get("spaces", SPACES), POWERS)
    write_rows(folder / f"{NAME}.csv", MetricRow._fields, rows)
    write_rows(folder / f"{NAME}-limit.csv", LimitRow._fields, limits)
    drawing, axes = figure_and_axes(12, 4, (1, 3))
    for ax, (space, own) in zip(axes.flat, _by_space(rows), strict=False):
        _draw_errors(ax, space, own)
    axes[0, 0].legend(frameon=False, fontsize=7)
    _draw_limits(axes[0, 2], limits)
    save(drawing, "The metric that a sketch induces, against its limit", folder / f"{NAME}.png")
    return rows


def _by_space(rows: list[MetricRow]) -> Iterator[tuple[str, list[MetricRow]]]:
    for space in dict.fromkeys(row.space for row in rows):
        yield space, [row for row in rows if row.space == space]


def _draw_errors(ax: Any, space: str, rows: list[MetricRow]) -> None:
    k = [row.k for row in rows]
    curves = {"second": "largest second derivative", "first": "largest first derivative"}
    curves |= {"largest": "largest error", "error": "root of the mean square"}
    for colour, (field, label) in zip(COLOURS, curves.items(), strict=False):
        ax.plot(k, [getattr(row, field) for row in rows], "o", color=colour, ms=4, label=label)
    ax.plot(k, [row.expected for row in rows], "k-", lw=1, label="√(d(d+1)/k), expected")
    shown = [row for row in rows if row.diffusion_map > 1e-3]
    ax.plot(
        [row.k for row in shown],
        [row.diffusion_map for row in shown],
        "--",
        color="#8a8a8a",
        label="diffusion map",
    )
    ax.set(xscale="log", yscale="log", xlabel="k", ylabel="relative error of the metric")
    ax.set_title(space, fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)


def _draw_limits(ax: Any, limits: list[LimitRow]) -> None:
    for colour, circle in zip(COLOURS, ("short", "long"), strict=False):
        own = [row for row in limits if row.circle == circle]
        style = {"color": colour, "label": f"{circle} circle of the torus"}
        ax.plot([row.power for row in own], [row.closed for row in own], "-o", ms=4, **style)
    ax.set(xscale="log", yscale="log", xlabel="p", ylabel="limit metric by arc length / C(0)")
    ax.set_title("the limit", fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=7)
