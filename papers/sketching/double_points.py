"""Self-intersections of sketches of the stretched torus, in 3 to 8 dimensions.

*Sketching the heat kernel*, §1 and §2.2: a sketch of a manifold of dimension d = 2 is almost surely
an embedding from k = 2d + 1 = 5 on. In four dimensions two sheets of a torus meet in single points,
whose mean number has a closed form, in three dimensions along curves. They are found by Newton's
method on f(x) = f(y), f a trigonometric polynomial, from the nearest pairs of the grid.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from papers.output import COLOURS, figure_and_axes, random, save, write_rows
from papers.sketching.periodic import EVEN_TORUS, Circles, covariance, grid_lags, realizations
from papers.sketching.self_crossings import expected_pairs

SIZES = (3, 4, 5, 6, 8)
DRAWS = 16
FINE = 200  # lags along each circle in the formula of Kac and Rice
ITERATIONS, LONGEST_STEP = 20, 0.3  # of Newton's method, and in radians
MEETING = 1e-9  # distance of two sheets that meet, in units of the radius
DIAGONAL = 1e-2  # radians between x and y, below which they are one point
SAME = 1e-5  # radians between two solutions that are one
NAME, PURPOSE = "double-points", 15


class DoubleRow(NamedTuple):
    """Where sketches of k columns of the torus meet themselves.

    Attributes
    ----------
    k, draws : int
        Columns, and number of draws.
    meeting : float
        Share of draws in which two sheets meet.
    points, error, expected : float
        Mean number of double points, its standard error and its expectation by the formula of Kac
        and Rice, for k = 4; in three dimensions there are curves of them, and nan.
    ratio, largest : float
        The largest diffusion distance over distance in the sketch, of pairs with at least half the
        largest diffusion distance: median and largest over the draws, infinite if they meet.
    grid_ratio : float
        The same over the pairs of points of the grid: median over the draws.
    """

    k: int
    draws: int
    meeting: float
    points: float
    error: float
    expected: float
    ratio: float
    largest: float
    grid_ratio: float


class Polynomial(NamedTuple):
    """f = Re Σ c_m e^{im·x}: frequencies (modes, d) and coefficients (modes, k)."""

    frequencies: np.ndarray
    coefficients: np.ndarray

    def at(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return f (points, k) and its gradients (points, k, d) at angles (points, d)."""
        waves = np.exp(1j * x @ self.frequencies.T)
        slopes = [(1j * waves * m) @ self.coefficients for m in self.frequencies.T]
        return (waves @ self.coefficients).real, np.stack(slopes, axis=2).real


def polynomial(F: np.ndarray, circles: Circles) -> Polynomial:
    """Return the trigonometric polynomial of functions at the points of the grid (n, k)."""
    axes = tuple(range(circles.dimension))
    series = np.fft.fftn(F.reshape(*circles.shape, -1), axes=axes) / circles.size
    waves = [np.fft.fftfreq(n, 1 / n) for n in circles.shape]
    frequencies = np.stack(np.meshgrid(*waves, indexing="ij"), axis=-1).reshape(circles.size, -1)
    coefficients = series.reshape(circles.size, -1)
    kept = np.abs(coefficients).max(axis=1) > 1e-13 * np.abs(coefficients).max()
    return Polynomial(frequencies[kept], coefficients[kept])


def nearest_pairs(F: np.ndarray, circles: Circles) -> tuple[np.ndarray, np.ndarray]:
    """Return the angles of the pairs of grid points that are nearer than all pairs beside them."""
    gram = F @ F.T
    square = np.add.outer(np.diag(gram), np.diag(gram)) - 2 * gram
    table = square.reshape(*circles.shape, *circles.shape)
    found = np.ones_like(table, dtype=bool)
    for axis in range(table.ndim):
        for step in (1, -1):
            found &= table < np.roll(table, step, axis)
    i, j = np.nonzero(np.triu(found.reshape(square.shape), 1))
    angles = np.column_stack(grid_lags(circles))
    return angles[i], angles[j]


def meet(f: Polynomial, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Move pairs (pairs, d) to where f(x) - f(y) is smallest; return them and its length.

    Gauss and Newton: the least step that solves the linear equations, or solves them best.
    """
    d = x.shape[1]
    for _ in range(ITERATIONS):
        (fx, Jx), (fy, Jy) = f.at(x), f.at(y)
        step = -np.linalg.pinv(np.concatenate([Jx, -Jy], axis=2)) @ (fx - fy)[:, :, None]
        length = np.linalg.norm(step[:, :, 0], axis=1, keepdims=True)
        step = step[:, :, 0] * np.minimum(1, LONGEST_STEP / np.maximum(length, 1e-300))
        x, y = x + step[:, :d], y + step[:, d:]
    return x, y, np.linalg.norm(f.at(x)[0] - f.at(y)[0], axis=1)


def count_distinct(x: np.ndarray, y: np.ndarray) -> int:
    """Count different unordered pairs of points of the torus."""
    ends = [np.concatenate([np.exp(1j * a), np.exp(1j * b)], axis=1) for a, b in ((x, y), (y, x))]
    same = [np.abs(end[:, None] - ends[0][None]).max(axis=2) < SAME for end in ends]
    earlier = np.tril(same[0] | same[1], -1)
    return int(np.count_nonzero(~earlier.any(axis=1)))


def diffusion_distance(circles: Circles, lags: np.ndarray) -> np.ndarray:
    """Return D = √(2 (C(0) - C(lag))) of lags (pairs, d)."""
    difference = covariance(circles, [0.0] * circles.dimension) - covariance(circles, lags.T)
    return np.sqrt(np.maximum(2 * difference, 0))


def double_points_example(
    seed: int,
    *,
    circles: Circles = EVEN_TORUS,
    sizes: Sequence[int] = SIZES,
    draws: int = DRAWS,
) -> list[DoubleRow]:
    """Find where sketches meet themselves, and how near they come to it."""
    lags = np.column_stack(grid_lags(circles))
    D = diffusion_distance(circles, lags)
    half = D.max() / 2
    radius = np.sqrt(np.square(D).mean() / 2)
    rows = []
    for k in sizes:
        F = realizations(circles, k * draws, random(seed, PURPOSE, k)) / np.sqrt(k)
        counts, ratios, of_grid = [], [], []
        for f in np.split(F, draws, axis=1):
            x, y, gap = meet(polynomial(f, circles), *nearest_pairs(f, circles))
            apart = np.abs(np.exp(1j * x) - np.exp(1j * y)).max(axis=1) > DIAGONAL
            meeting = apart & (gap < MEETING * radius)
            counts.append(count_distinct(x[meeting], y[meeting]))
            distance = diffusion_distance(circles, y - x)
            far = distance >= half
            gap = np.where(meeting, 0, gap)
            with np.errstate(divide="ignore"):
                ratios.append(np.max(distance[far] / gap[far], initial=0))
            of_grid.append(_ratio_of_grid(f, D, half, circles))
        points, expected = np.nan, np.nan if k < 4 else 0.0
        if k >= 4:
            points = np.mean(counts)
        if k == 4:
            expected = expected_pairs(circles, 4, fine=FINE)
        error = np.std(counts) / np.sqrt(draws) if k >= 4 else np.nan
        numbers = np.mean(np.array(counts) > 0), points, error, expected
        rest = np.median(ratios), np.max(ratios), np.median(of_grid)
        rows.append(DoubleRow(k, draws, *map(float, (*numbers, *rest))))
    return rows


def _ratio_of_grid(f: np.ndarray, D: np.ndarray, half: float, circles: Circles) -> float:
    """Return the largest D / |y - x| of pairs of grid points with D >= half."""
    angles = np.arange(circles.size).reshape(circles.shape)
    largest = 0.0
    for row, point in enumerate(np.ndindex(*circles.shape)):
        lag = np.roll(angles, point, axis=range(circles.dimension)).ravel()
        distance = np.linalg.norm(f - f[row], axis=1)
        far = D[lag] >= half
        largest = max(largest, float(np.max(D[lag][far] / distance[far])))
    return largest


def run_double_points(folder: Path, seed: int = 0, **sizes: Any) -> list[DoubleRow]:
    """Write double-points.csv and double-points.png."""
    rows = double_points_example(seed, **sizes)
    write_rows(folder / f"{NAME}.csv", DoubleRow._fields, rows)
    drawing, ax = figure_and_axes(5.6, 3.8)
    k = [row.k for row in rows]
    ax.plot(k, [row.grid_ratio for row in rows], "o-", color=COLOURS[0], label="pairs of the grid")
    met = [row for row in rows if np.isfinite(row.ratio)]
    label = "any two points (infinite for k = 3, 4)"
    x, y = [row.k for row in met], [row.ratio for row in met]
    ax.plot(x, y, "s--", color=COLOURS[5], label=label)
    ax.set(yscale="log", xlabel="k", ylabel="largest D / distance in the sketch, median")
    ax.set_xticks(k)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
    save(drawing, "Far points of the torus that a sketch brings together", folder / f"{NAME}.png")
    return rows
