"""Noise whose size differs from point to point, and what it does to the two normalisations.

*Sketching the heat kernel* refers for this, after Proposition 3.4, to Landa, Coifman and Kluger
(2021): in many dimensions noise of variance s_i adds s_i + s_j to all squared distances, which
divides K_ij by factors of i and of j, and these a bistochastic scaling takes out, if the diagonal,
to which nothing is added, is zero.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

import heatsketch as hs
from papers.output import COLOURS, figure_and_axes, random, save, write_rows
from papers.sketching.bounds import sketch_difference

POINTS, DIMENSIONS, EPSILON, COLUMNS = 300, 2000, 0.25, 64
LEVELS = (0.0, 0.05, 0.1, 0.2, 0.4)  # largest variance of the noise of a point
FORMS = ("symmetric", "bistochastic", "symmetric, zero diagonal", "bistochastic, zero diagonal")


class NoiseRow(NamedTuple):
    """The change of a normalised kernel by noise, by Proposition 3.4.

    Attributes
    ----------
    form : str
        Normalisation.
    level : float
        The squared length of the noise of a point, from 0 on one side of the circle to this on the
        other.
    difference : float
        |A - B|_F / |A|_F, A without the noise and B with it.
    sketched, spread : float
        The same from two sketches with one G of 64 columns, and its standard deviation.
    """

    form: str
    level: float
    difference: float
    sketched: float
    spread: float


def noise_example(
    seed: int, *, points: int = POINTS, dimensions: int = DIMENSIONS, levels: tuple = LEVELS
) -> list[NoiseRow]:
    """Compare kernels of an even circle in many dimensions, without and with noise."""
    rng = random(seed, 0)
    angle = 2 * np.pi * np.arange(points) / points
    X = np.zeros((points, dimensions))
    X[:, :2] = np.column_stack([np.cos(angle), np.sin(angle)])
    sizes = (1 + np.cos(angle)) / 2
    directions = rng.standard_normal((points, dimensions)) / np.sqrt(dimensions)
    G = rng.standard_normal((points, COLUMNS))
    rows = []
    for level in levels:
        noisy = X + np.sqrt(level * sizes)[:, None] * directions
        for form in FORMS:
            A, B = (normalized(hs.gaussian_affinity(x, EPSILON), form) for x in (X, noisy))
            Y, Z = (hs.sketch(M, hs.Power(1), G=G, deflate=False) for M in (A, B))
            law = sketch_difference(A, B, hs.Power(1), COLUMNS, deflate=False)
            size = np.linalg.norm(A)
            sketched = np.sqrt(np.square(Y - Z).sum()) / size
            spread = np.sqrt(law.variance) / (2 * size * np.sqrt(max(law.mean, 1e-300)))
            difference = np.linalg.norm(A - B) / size
            rows.append(NoiseRow(form, level, *map(float, (difference, sketched, spread))))
    return rows


def normalized(K: np.ndarray, form: str) -> np.ndarray:
    """Return Algorithm 1 or 2 of K, or of K without its diagonal."""
    name, _, without = form.partition(", ")
    K = K - np.diag(np.diag(K)) if without else K
    if name == "symmetric":
        return hs.symmetric_normalize(K)
    return hs.bistochastic_normalize(K, tol=1e-9)


def run_noise(folder: Path, seed: int = 0, **sizes: int) -> list[NoiseRow]:
    """Write noise.csv and noise.png, and return the rows of the table."""
    rows = noise_example(seed, **sizes)
    write_rows(folder / "noise.csv", NoiseRow._fields, rows)
    drawing, ax = figure_and_axes(5.6, 3.6)
    for colour, form in zip(COLOURS, FORMS, strict=False):
        own = [row for row in rows if row.form == form]
        ax.plot([r.level for r in own], [r.difference for r in own], color=colour, label=form)
        sketched = [r.sketched for r in own]
        ax.errorbar(
            [r.level for r in own], sketched, [2 * r.spread for r in own], fmt="o", color=colour
        )
    ax.set_xlabel("largest variance of the noise of a point")
    ax.set_ylabel("|A - B| / |A|")
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    save(
        drawing, "A circle in many dimensions, with noise of different sizes", folder / "noise.png"
    )
    return rows
