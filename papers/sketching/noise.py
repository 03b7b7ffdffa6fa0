"""Noise whose size differs from point to point, and what it does to the two normalisations.

*Sketching the heat kernel* refers for this, after Proposition 3.4, to Landa, Coifman and Kluger
(2021): in many dimensions noise of squared lengths s_i adds s_i + s_j to all squared distances,
which divides K_ij by factors of i and of j, and these a bistochastic scaling takes out, if the
diagonal, to which nothing is added, is zero. Three manifolds and three laws of noise, in draws of
points and noise.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import heatsketch as hs
from papers.output import COLOURS, figure_and_axes, random, save, write_rows
from papers.sketching.bounds import sketch_difference
from papers.sketching.manifolds import MANIFOLDS

POINTS, DIMENSIONS, COLUMNS, DRAWS = 300, 2000, 64, 10
EPSILON = {"circle": 0.25, "torus": 1.0, "sphere": 0.25}
LEVELS = (0.0, 0.2, 0.4, 0.8, 1.6)  # largest squared length of the noise of a point, in ε
FORMS = ("symmetric", "bistochastic", "symmetric, zero diagonal", "bistochastic, zero diagonal")
ORIGINAL = "the last, against the kernel with its diagonal"  # `original` of the last form
DEGREES = 5  # of freedom of Student's t: its fourth moment is the last one that exists


def uniform(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Draw uniform numbers of variance 1."""
    return rng.uniform(-np.sqrt(3), np.sqrt(3), shape)


def student(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Draw numbers of Student's t, divided by their standard deviation."""
    return rng.standard_t(DEGREES, shape) / np.sqrt(DEGREES / (DEGREES - 2))


LAWS: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "normal": np.random.Generator.standard_normal,
    "uniform": uniform,
    "Student t": student,
}


class NoiseRow(NamedTuple):
    """The change of a normalised kernel by noise, by Proposition 3.4.

    Attributes
    ----------
    manifold, law : str
        Of the points, and of a coordinate of the noise.
    form : str
        Normalisation.
    level : float
        The squared length of the noise of a point in units of ε, from 0 on one side of the manifold
        to this on the other.
    draws : int
        Of points and noise.
    difference, deviation : float
        Mean and standard deviation over the draws of |A - B|_F / |A|_F, A the kernel of this form
        without the noise and B with it.
    original : float
        Mean of |C - B|_F / |C|_F, C the kernel of this normalisation with its diagonal and without
        the noise.
    sketched, spread : float
        |A - B|_F / |A|_F of the first draw from two sketches with one G of 64 columns, and its
        standard deviation.
    """

    manifold: str
    law: str
    form: str
    level: float
    draws: int
    difference: float
    deviation: float
    original: float
    sketched: float
    spread: float


def noise_example(
    seed: int,
    *,
    points: int = POINTS,
    dimensions: int = DIMENSIONS,
    draws: int = DRAWS,
    levels: tuple[float, ...] = LEVELS,
    manifolds: tuple[str, ...] = tuple(MANIFOLDS),
    laws: tuple[str, ...] = tuple(LAWS),
    jobs: int = -1,
) -> list[NoiseRow]:
    """Compare kernels without and with noise, in so many processes (-1: all)."""
    rows = []
    for manifold in manifolds:
        for law in laws:
            tasks = (
                delayed(noise_draw)(seed, draw, manifold, law, points, dimensions, levels)
                for draw in range(draws)
            )
            found = np.array(Parallel(n_jobs=jobs)(tasks))  # (draws, levels, forms, 4)
            difference, original, sketched, spread = np.moveaxis(found, -1, 0)
            for i, level in enumerate(levels):
                for j, form in enumerate(FORMS):
                    change = difference[:, i, j]
                    numbers = (change.mean(), change.std(), original[:, i, j].mean())
                    of_first = (sketched[0, i, j], spread[0, i, j])
                    name = (manifold, law, form, level, draws)
                    rows.append(NoiseRow(*name, *map(float, (*numbers, *of_first))))
    return rows


def noise_draw(
    seed: int,
    draw: int,
    manifold: str,
    law: str,
    points: int,
    dimensions: int,
    levels: tuple[float, ...],
) -> np.ndarray:
    """Return difference, original, sketched and spread of a draw (levels, forms, 4)."""
    rng = random(seed, list(MANIFOLDS).index(manifold), list(LAWS).index(law), draw)
    near = MANIFOLDS[manifold](points, rng)
    X = np.pad(near, ((0, 0), (0, dimensions - near.shape[1])))
    sizes = (1 + near[:, 0] / np.abs(near[:, 0]).max()) / 2
    directions = LAWS[law](rng, (points, dimensions)) / np.sqrt(dimensions)
    G, epsilon = rng.standard_normal((points, COLUMNS)), EPSILON[manifold]
    found = np.empty((len(levels), len(FORMS), 4))
    with threadpool_limits(1):  # so that results do not depend on the number of processes
        clean = {form: normalized(hs.gaussian_affinity(X, epsilon), form) for form in FORMS}
        for i, level in enumerate(levels):
            noisy = X + np.sqrt(level * epsilon * sizes)[:, None] * directions
            K = hs.gaussian_affinity(noisy, epsilon)
            for j, form in enumerate(FORMS):
                A, B, C = clean[form], normalized(K, form), clean[form.partition(", ")[0]]
                original = np.linalg.norm(C - B) / np.linalg.norm(C)
                found[i, j] = (relative(A, B), original, *sketched_difference(A, B, G))
    return found


def relative(A: np.ndarray, B: np.ndarray) -> float:
    """Return |A - B|_F / |A|_F."""
    return float(np.linalg.norm(A - B) / np.linalg.norm(A))


def sketched_difference(A: np.ndarray, B: np.ndarray, G: np.ndarray) -> tuple[float, float]:
    """Return `relative` from sketches with one G (n, k), and its standard deviation."""
    Y, Z = (hs.sketch(M, hs.Power(1), G=G, deflate=False) for M in (A, B))
    law = sketch_difference(A, B, hs.Power(1), G.shape[1], deflate=False)
    size = np.linalg.norm(A)
    spread = np.sqrt(law.variance) / (2 * size * np.sqrt(max(law.mean, 1e-300)))
    return float(np.linalg.norm(Y - Z) / size), float(spread)


def normalized(K: np.ndarray, form: str) -> np.ndarray:
    """Return Algorithm 1 or 2 of K, or of K without its diagonal."""
    name, _, without = form.partition(", ")
    if name == "symmetric":
        return hs.symmetric_normalize(K, zero_diagonal=bool(without))
    return hs.bistochastic_normalize(K, tol=1e-9, zero_diagonal=bool(without))


def run_noise(folder: Path, seed: int = 0, **sizes: Any) -> list[NoiseRow]:
    """Write noise.csv and noise.png, and return the rows of the table."""
    rows = noise_example(seed, **sizes)
    write_rows(folder / "noise.csv", NoiseRow._fields, rows)
    manifolds, laws = (
        list(dict.fromkeys(getattr(r, x) for r in rows)) for x in ("manifold", "law")
    )
    shape = (len(manifolds), len(laws))
    drawing, axes = figure_and_axes(3.4 * shape[1], 2.5 * shape[0], shape)
    for i, manifold in enumerate(manifolds):
        for j, law in enumerate(laws):
            ax = axes[i, j]
            _panel(ax, [r for r in rows if (r.manifold, r.law) == (manifold, law) and r.level])
            ax.set_title(f"{manifold}, {law} noise", fontsize=9)
    for ax in axes[-1]:
        ax.set_xlabel("largest squared length of the noise, in ε", fontsize=8)
    for ax in axes[:, 0]:
        ax.set_ylabel("|A - B| / |A|", fontsize=8)
    handles = axes[0, 0].get_legend_handles_labels()
    drawing.legend(*handles, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    save(
        drawing, "Manifolds in many dimensions, with noise of different sizes", folder / "noise.png"
    )
    return rows


def _panel(ax: Any, own: list[NoiseRow]) -> None:
    """Draw the mean with one standard deviation, and the first draw by its sketches."""
    for colour, form in zip(COLOURS, FORMS, strict=False):
        some = [row for row in own if row.form == form]
        x, y = [r.level for r in some], [r.difference for r in some]
        error = [r.deviation for r in some]
        ax.errorbar(x, y, error, color=colour, label=form, capsize=2, linewidth=1.2)
        ax.plot(x, [r.sketched for r in some], "o", color=colour, markersize=4, fillstyle="none")
    ax.errorbar(x, [r.original for r in some], color="#8a8a8a", linestyle=":", label=ORIGINAL)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks([r.level for r in some], [f"{r.level:g}" for r in some])
    ax.minorticks_off()
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)
