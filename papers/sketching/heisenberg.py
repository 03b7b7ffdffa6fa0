"""Sketches of a ball of the Heisenberg group, which no Euclidean space holds without distortion.

*Sketching the heat kernel*, §1: some data cannot be embedded in a bi-Lipschitz manner in Euclidean
space of any dimension, such as the Heisenberg group; the diffusion distance exists there and yet
may be realized in an embedding. The group has the points (x, y, t) and the product

    (x, y, t)(x', y', t') = (x + x', y + y', t + t' + (xy' - yx')/2),

and d(g, h) = |g⁻¹h| with |(x, y, t)|⁴ = (x² + y²)² + 16 t² (Korányi), equivalent to the
Carnot-Carathéodory metric. Its lattice is that of whole x, y and t + xy/2. Beside it stand the
same points with the differences of R³ in the same |·|, a product of the plane and a line with
|t|^½, which has a bi-Lipschitz embedding although it is not smooth, and a ball of the lattice Z³.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.spatial.distance import pdist, squareform

import heatsketch as hs
from papers.output import COLOURS, figure_and_axes, random, save, write_rows
from papers.sketching.self_crossings import log_L

RADII = (2, 3, 4, 5, 6)  # of the balls, in steps of the lattice: the resolution
SIZES = (3, 8, 32, 128)
EPSILON, POWER = 0.25, 4  # of kernels, for balls divided by their radius
DRAWS = 5
STEPS = tuple(2**j for j in range(1, 7))  # K of the lower bound
FRACTIONS, CHECKED = 401, 601  # of a turn, of the linear program and of its check
SMALL = range(1, 65)  # denominators of a turn whose fractions are checked, too
NAME, PURPOSE = "heisenberg", 14


class HeisenbergRow(NamedTuple):
    """How an embedding of a ball keeps the metric of its space, and the diffusion distance.

    Attributes
    ----------
    space : str
        "Heisenberg", "plane × √line" or "R³".
    radius, points : int
        Of the ball, in steps of the lattice, and its number of points.
    method : str
        "sketch", "diffusion map", or "all" for the diffusion distance itself.
    k : int
        Columns; the number of points for "all".
    metric, diffusion : float
        log L by the metric and by the diffusion distance; of sketches the median over draws.
    """

    space: str
    radius: int
    points: int
    method: str
    k: int
    metric: float
    diffusion: float


class BoundRow(NamedTuple):
    """A lower bound of log L of all Euclidean embeddings of the lattice, in any dimension.

    Attributes
    ----------
    steps : int
        K: pairs g, g c^j with j <= K, and neighbours, are to be kept.
    distance : float
        2√K, the largest distance of these pairs.
    square : float
        Bound of L².
    log_L : float
        Bound of log L.
    """

    steps: int
    distance: float
    square: float
    log_L: float


# The spaces


def gauge(x: np.ndarray, y: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the length |(x, y, t)|."""
    return ((x**2 + y**2) ** 2 + 16 * t**2) ** 0.25


def heisenberg_distance(P: np.ndarray) -> np.ndarray:
    """Return |g⁻¹h| for all pairs of points (n, 3)."""
    x, y, t = P.T
    twist = (np.multiply.outer(y, x) - np.multiply.outer(x, y)) / 2
    return gauge(*(np.subtract.outer(c, c) for c in (x, y)), np.subtract.outer(t, t) - twist)


def product_distance(P: np.ndarray) -> np.ndarray:
    """Return |h - g| for all pairs of points (n, 3)."""
    return gauge(*(np.subtract.outer(c, c) for c in P.T))


def lattice(radius: int) -> np.ndarray:
    """Return the elements (x, y, t) of the lattice of the group with |(x, y, t)| <= radius."""
    side = np.arange(-radius, radius + 1)
    heights = np.arange(-(radius**2), radius**2 + 1)
    x, y, z = (c.ravel() for c in np.meshgrid(side, side, heights, indexing="ij"))
    P = np.column_stack([x, y, z - x * y / 2])
    return P[gauge(*P.T) <= radius]


def ball(radius: int) -> np.ndarray:
    """Return the points of Z³ with |(x, y, z)| <= radius, the Euclidean length."""
    side = np.arange(-radius, radius + 1.0)
    P = np.stack(np.meshgrid(side, side, side, indexing="ij"), axis=-1).reshape(-1, 3)
    return P[np.linalg.norm(P, axis=1) <= radius]


SPACES: dict[str, tuple[Callable[[int], np.ndarray], Callable[[np.ndarray], np.ndarray]]] = {
    "Heisenberg": (lattice, heisenberg_distance),
    "plane × √line": (lattice, product_distance),
    "R³": (ball, lambda P: squareform(pdist(P))),
}


# Embeddings


def heisenberg_example(
    seed: int,
    *,
    radii: Sequence[int] = RADII,
    sizes: Sequence[int] = SIZES,
    draws: int = DRAWS,
) -> list[HeisenbergRow]:
    """Embed balls, divided by their radius, by sketches and diffusion maps of one kernel."""
    rows = []
    for place, (space, (points, metric)) in enumerate(SPACES.items()):
        for radius in radii:
            distances = metric(points(radius)) / radius
            A = hs.symmetric_normalize(np.exp(-(distances**2) / EPSILON))
            d, D = squareform(distances, checks=False), hs.diffusion_distance(A, time=POWER)
            rows.append(_row(space, radius, len(A), "all", len(A), log_L(D, d), 0.0))
            rng = random(seed, PURPOSE, place, radius)
            s = hs.eigh(A, min(len(A), max(sizes) + 1), rng=rng)
            for k in (size for size in sizes if size < len(A)):
                lengths = pdist(s.vectors[:, 1 : k + 1] * s.values[1 : k + 1] ** POWER)
                of_map = log_L(lengths, d), log_L(lengths, D)
                found = []
                for _ in range(draws):
                    filter = hs.Power(POWER)
                    lengths = pdist(hs.sketch(A, filter, k, deflate=False, rng=rng))
                    found.append((log_L(lengths, d), log_L(lengths, D)))
                rows.append(_row(space, radius, len(A), "diffusion map", k, *of_map))
                rows.append(_row(space, radius, len(A), "sketch", k, *np.median(found, axis=0)))
    return rows


def _row(space: str, radius: int, n: int, method: str, k: int, *logs: float) -> HeisenbergRow:
    return HeisenbergRow(space, radius, n, method, k, *map(float, logs))


# What no embedding can do


def smallest_energy(numerator: int, denominator: int) -> float:
    """Return μ(θ) = 4 - the largest of the spectrum of 2 cos P + 2 cos Q, [P, Q] = iθ.

    θ is a fraction of a turn. It is Harper's operator; its largest value belongs to the phases 0.
    """
    j = np.arange(denominator)
    wave = np.diag(2 * np.cos(2 * np.pi * (numerator * j % denominator) / denominator))
    shift = np.roll(np.eye(denominator), 1, axis=0)
    return 4 - float(np.linalg.eigvalsh(wave + shift + shift.T)[-1])


def lower_bounds(
    steps: Sequence[int] = STEPS, fractions: int = FRACTIONS, checked: int = CHECKED
) -> list[BoundRow]:
    """Bound L of every map of the lattice into a Euclidean space of any dimension from below.

    With a = (1, 0, 0), b = (0, 1, 0) and c = (0, 0, 1): |a| = |b| = 1 and |c^j| = 2√j. The group is
    amenable, so that a map may be averaged to have |f(gh) - f(g)|² = ψ(h), ψ of negative type and a
    mixture of those of representations, in which c is e^{iθ}:

        ψ(c^j) = |1 - e^{ijθ}|²,    ψ(a) + ψ(b) >= μ(θ).

    If Σ w_j |1 - e^{ijθ}|² <= 2 μ(θ) for all θ, then 4 Σ w_j j <= Σ w_j ψ(c^j) <= 2 (ψ(a) + ψ(b))
    <= 4 L², distances of f at least d and at most L d on these pairs. A linear program has the best
    weights w for some θ, and they are divided by the largest violation at others: between these,
    and at fractions with small denominators, where μ has its cusps. No argument covers all θ.
    """
    grids = [_energies([fractions]), _energies([checked, *SMALL])]
    rows = []
    for K in steps:
        j = np.arange(1, K + 1)
        (theta, mu), (between, mu_between) = grids
        w = linprog(-4.0 * j, A_ub=_turned(theta, j), b_ub=2 * mu, bounds=(0, None)).x
        excess = max(1.0, float(np.max(_turned(between, j) @ w / (2 * mu_between))))
        square = float(np.sum(j * w)) / excess
        rows.append(BoundRow(K, 2 * float(np.sqrt(K)), square, float(np.log(square) / 2)))
    return rows


def _energies(denominators: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return θ and μ(θ) for the fractions of half a turn; the other half has the same."""
    found = [
        (2 * np.pi * p / q, smallest_energy(p, q))
        for q in denominators
        for p in range(1, q // 2 + 1)
        if q not in SMALL or math.gcd(p, q) == 1
    ]
    theta, mu = np.array(found).T
    return theta, mu


def _turned(theta: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return |1 - e^{ijθ}|² (θ, j)."""
    return 2 - 2 * np.cos(np.outer(theta, j))


# The picture


def run_heisenberg(folder: Path, seed: int = 0, **sizes: Any) -> list[HeisenbergRow]:
    """Write heisenberg.csv, heisenberg-bound.csv and heisenberg.png."""
    rows, bounds = heisenberg_example(seed, **sizes), lower_bounds()
    write_rows(folder / f"{NAME}.csv", HeisenbergRow._fields, rows)
    write_rows(folder / f"{NAME}-bound.csv", BoundRow._fields, bounds)
    drawing, axes = figure_and_axes(13, 4, (1, 3))
    largest = max(row.k for row in rows if row.method == "sketch")
    for colour, space in zip(COLOURS, SPACES, strict=False):
        for method, style in (("sketch", "o-"), ("diffusion map", "s--"), ("all", ":")):
            own = [row for row in rows if row.space == space and row.method == method]
            own = [row for row in own if method == "all" or row.k == largest]
            label = f"{space}, {method}" if method != "all" else None
            x = [row.radius for row in own]
            axes[0, 0].plot(x, [r.metric for r in own], style, color=colour, ms=4, label=label)
            if method != "all":
                axes[0, 1].plot(x, [r.diffusion for r in own], style, color=colour, ms=4)
    axes[0, 0].set(ylabel=f"log L by the metric, k = {largest}; dots: all of D")
    axes[0, 1].set(ylabel=f"log L by the diffusion distance, k = {largest}")
    for ax in axes[0, :2]:
        ax.set(xlabel="radius of the ball in steps", ylim=(0, None))
        ax.set_xticks(sorted({row.radius for row in rows}))
    axes[0, 0].legend(frameon=False, fontsize=7)
    axes[0, 2].plot([b.distance for b in bounds], [b.square for b in bounds], "ko-", ms=4)
    axes[0, 2].set(xscale="log", xlabel="largest distance of the pairs kept", ylim=(0, None))
    axes[0, 2].set_xticks([2, 4, 8, 16], ["2", "4", "8", "16"])
    axes[0, 2].minorticks_off()
    axes[0, 2].set(ylabel="L² of any Euclidean embedding is at least")
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    save(drawing, "Balls of the Heisenberg group", folder / f"{NAME}.png")
    return rows
