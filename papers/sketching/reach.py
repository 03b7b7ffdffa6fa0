"""The reach of sketches of a circle and of a torus, against the number of columns.

Adler, Krishnan, Taylor and Weinberger (2018), [1] of *Sketching the heat kernel*: the reach of the
normalised embedding f^k / |f^k| of a manifold converges almost surely to a constant. Federer:

    reach = inf |y - x|² / (2 dist(y - x, T_x))   over all pairs x, y of the manifold.

As k -> ∞, inner products of h^k tend to the covariance C, so that the limit is the reach of the
manifold in the space of C. With D² = 2 (C(0) - C(τ)) and g of (7) it is

    inf D² / (2 √(D² - ∇C(τ)·g^-1 ∇C(τ)))   over all lags τ,

for τ -> 0 on a circle the radius of curvature g/√C''''(0). Normalised, C is replaced by C / C(0).
At small times C is that of R^d, a Gaussian function, and the limit is √(C(0)/3) in all directions.
"""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from papers.output import COLOURS, figure_and_axes, random, save, write_rows
from papers.sketching.periodic import (
    EVEN_CIRCLE,
    EVEN_TORUS,
    Circles,
    covariance,
    derivative,
    grid_lags,
    realizations,
)

SPACES = (EVEN_CIRCLE, EVEN_TORUS)
SIZES = tuple(2**j for j in range(2, 12))
LARGEST_DRAWS = 32  # of one k
DIRECTIONS = 48  # at a point of a surface, over half a turn
ROUNDING = 1e-7  # a distance from a tangent below it, relative to the largest one, may be rounding
NAME, PURPOSE = "reach", 12


class ReachRow(NamedTuple):
    """The reach of sketches of k columns. Lengths of h^k are divided by √C(0).

    Attributes
    ----------
    space : str
        Circle or torus.
    k, draws : int
        Columns, and number of draws.
    mean, deviation : float
        Reach of h^k over the draws.
    mean_normalised, deviation_normalised : float
        Reach of h^k / |h^k|.
    limit : float
        Of both, from the covariance.
    local : float
        Share of draws of h^k in which the radius of curvature is the smaller of the two reasons.
    """

    space: str
    k: int
    draws: int
    mean: float
    deviation: float
    mean_normalised: float
    deviation_normalised: float
    limit: float
    local: float


class Surface(NamedTuple):
    """Points of a manifold of dimension d in R^k, with derivatives by d coordinates."""

    points: np.ndarray  # (n, k)
    first: np.ndarray  # (n, d, k)
    second: np.ndarray  # (n, d, d, k)


class Reach(NamedTuple):
    """The two reasons of a reach, which is the smaller one.

    Attributes
    ----------
    curvature : float
        The smallest radius of curvature, over the points and directions at them.
    pairs : float
        Federer's formula over all pairs of the points.
    """

    curvature: float
    pairs: float


# Of points


def reach(surface: Surface) -> Reach:
    """Compute the reach of a manifold from points of it, with their tangents and curvatures."""
    metric = np.einsum("nak,nbk->nab", surface.first, surface.first)
    inverse = np.linalg.inv(metric)
    return Reach(_curvature_radius(surface, inverse), _by_pairs(surface, inverse))


def _curvature_radius(surface: Surface, inverse: np.ndarray) -> float:
    """Return the smallest |v|² / |normal part of the second derivative along v|."""
    _, first, second = surface
    within = np.einsum("nek,nabk->nabe", first, second)
    normal = second - np.einsum("nabe,nec,nck->nabk", within, inverse, first)
    gram = np.einsum("nabk,ncek->nabce", normal, normal)
    v = np.einsum("nab,rb->nra", np.linalg.cholesky(inverse), _directions(first.shape[1]))
    square = np.einsum("nabce,nra,nrb,nrc,nre->nr", gram, v, v, v, v)
    return float(1 / np.sqrt(square.max()))


def _by_pairs(surface: Surface, inverse: np.ndarray) -> float:
    """Return the smallest |y - x|² / (2 dist(y - x, T_x))."""
    Y, J, _ = surface
    own = np.einsum("nak,nk->na", J, Y)
    along = (J.reshape(-1, Y.shape[1]) @ Y.T).reshape(*own.shape, -1) - own[:, :, None]
    within = np.einsum("nam,nam->nm", along, inverse @ along)
    gram = Y @ Y.T
    return _smallest(np.add.outer(np.diag(gram), np.diag(gram)) - 2 * gram, within)


def _smallest(square: np.ndarray, within: np.ndarray) -> float:
    """Return the smallest |y - x|² / (2 dist), dist² = |y - x|² - its part within T_x."""
    distance = np.sqrt(np.clip(square - within, 0, None))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(
            distance > ROUNDING * np.sqrt(square.max()), square / (2 * distance), np.inf
        )
    return float(ratio.min())


def _directions(d: int) -> np.ndarray:
    """Return unit vectors of R^d, d = 1 or 2, without their opposites."""
    angle = np.pi * np.arange(1 if d == 1 else DIRECTIONS) / DIRECTIONS
    return np.column_stack([np.cos(angle), np.sin(angle)])[:, :d]


# The limit


def limit_reach(circles: Circles) -> Reach:
    """Return the limit in units of √C(0), the pairs over all lags of the grid."""
    zero, lags = [0.0] * circles.dimension, grid_lags(circles)
    steps = np.eye(circles.dimension, dtype=int)
    variance = covariance(circles, zero)
    metric = np.array([-covariance(circles, zero, 2 * step) for step in steps])
    slopes = np.array([covariance(circles, lags, step) for step in steps])
    square = 2 * (variance - covariance(circles, lags))
    pairs = _smallest(square, np.sum(slopes**2 / metric[:, None], axis=0))
    # The variance of the second derivative along v, which no first derivative is correlated with.
    v = _directions(circles.dimension) / np.sqrt(metric)
    fourth = sum(
        covariance(circles, zero, steps[list(four)].sum(axis=0)) * v[:, list(four)].prod(axis=1)
        for four in product(range(circles.dimension), repeat=4)
    )
    unit = float(np.sqrt(variance))
    return Reach(float(1 / np.sqrt(fourth.max())) / unit, pairs / unit)


# Of sketches


def sketched(F: np.ndarray, circles: Circles) -> Surface:
    """Return h^k / √C(0) of k columns f (n, k), with its derivatives."""
    steps = np.eye(circles.dimension, dtype=int)
    f = F / np.sqrt(F.shape[1] * covariance(circles, [0.0] * circles.dimension))
    first = [derivative(f, circles, *a) for a in steps]
    second = [[derivative(f, circles, *(a + b)) for b in steps] for a in steps]
    return Surface(f, np.stack(first, axis=1), np.stack([np.stack(s, axis=1) for s in second], 1))


def on_sphere(surface: Surface) -> Surface:
    """Divide every point by its length, and differentiate the quotient."""
    f, first, second = surface
    length = np.linalg.norm(f, axis=1)
    r = length[:, None, None]
    slope = np.einsum("nk,nak->na", f, first) / length[:, None]
    bend = np.einsum("nak,nbk->nab", first, first) + np.einsum("nk,nabk->nab", f, second)
    bend = bend / r - np.einsum("na,nb->nab", slope, slope) / r
    U = f / length[:, None]
    tangents = (first - U[:, None] * slope[:, :, None]) / r
    mixed = np.einsum("nak,nb->nabk", tangents, slope)
    bent = second - U[:, None, None] * bend[..., None] - mixed - np.swapaxes(mixed, 1, 2)
    return Surface(U, tangents, bent / r[..., None])


def reach_example(
    seed: int,
    *,
    spaces: Sequence[Circles] = SPACES,
    sizes: Sequence[int] = SIZES,
    columns: int = 4096,
) -> list[ReachRow]:
    """Compare the reach of sketches with its limit."""
    rows: list[ReachRow] = []
    for place, circles in enumerate(spaces):
        F = realizations(circles, columns, random(seed, PURPOSE, place))
        limit = min(limit_reach(circles))
        for k in sizes:
            draws = min(columns // k, LARGEST_DRAWS)
            surfaces = [sketched(F[:, k * i : k * (i + 1)], circles) for i in range(draws)]
            plain = np.array([reach(surface) for surface in surfaces])
            normalised = [min(reach(on_sphere(surface))) for surface in surfaces]
            numbers = plain.min(axis=1).mean(), plain.min(axis=1).std()
            numbers += np.mean(normalised), np.std(normalised), limit
            local = np.mean(plain[:, 0] < plain[:, 1])
            rows.append(ReachRow(circles.name, k, draws, *map(float, (*numbers, local))))
    return rows


def run_reach(folder: Path, seed: int = 0, **sizes: Any) -> list[ReachRow]:
    """Write reach.csv and reach.png."""
    rows = reach_example(seed, **sizes)
    write_rows(folder / f"{NAME}.csv", ReachRow._fields, rows)
    drawing, axes = figure_and_axes(9, 4, (1, 2))
    spaces = dict.fromkeys(row.space for row in rows)
    for ax, space in zip(axes.flat, spaces, strict=True):
        own = [row for row in rows if row.space == space]
        k = np.array([row.k for row in own])
        style = {"fmt": "o-", "ms": 4, "capsize": 3, "lw": 1}
        mean, bars = [row.mean for row in own], [row.deviation for row in own]
        ax.errorbar(k / 1.03, mean, bars, color=COLOURS[0], label="sketch h", **style)
        mean = [row.mean_normalised for row in own]
        bars = [row.deviation_normalised for row in own]
        ax.errorbar(k * 1.03, mean, bars, color=COLOURS[5], label="on the sphere, h / |h|", **style)
        ax.axhline(own[0].limit, color="k", lw=1, label="limit of both")
        ax.set(xscale="log", xlabel="k", ylabel="reach", ylim=(0, None), title=space)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=8)
    save(drawing, "The reach of a sketch, in units of √C(0)", folder / f"{NAME}.png")
    return rows
