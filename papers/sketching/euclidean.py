"""Log L by the Euclidean distance of the points beside log L by the diffusion distance.

§5 of *Sketching the heat kernel* says that the difference of the two "is often moot", because on a
manifold both induce the same metric. Log L is about all pairs of a few hundred random points.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.spatial.distance import pdist
from threadpoolctl import threadpool_limits

import heatsketch as hs
from papers.output import figure_and_axes, save, write_rows
from papers.sketching.drawings import METHOD_STYLES
from papers.sketching.figures import FIGURES, Setting
from papers.sketching.trials import Sample

COMPARED = ("1a", "2a", "2b", "3a")
METHODS = ("DMS", "GPS")
TRIALS = 20


class EuclideanRow(NamedTuple):
    """log L of one method in one dimension, by two distances.

    Attributes
    ----------
    figure : str
        That has the setting and the trials; trial number i has the points of trial i there.
    method : str
        DMS or GPS.
    k : int
        Dimension of the embedding.
    diffusion, diffusion_std : float
        Mean and standard deviation over the trials of log L by the diffusion distance.
    euclidean, euclidean_std : float
        The same by the Euclidean distance of the points.
    between : float
        Mean of log L of one distance by the other: in no trial do they judge an embedding more
        differently.
    near : float
        The same over pairs with |x - y| < √ε alone.
    """

    figure: str
    method: str
    k: int
    diffusion: float
    diffusion_std: float
    euclidean: float
    euclidean_std: float
    between: float
    near: float


def euclidean_example(
    seed: int, *, trials: int = TRIALS, figures: tuple[str, ...] = COMPARED, jobs: int = -1
) -> list[EuclideanRow]:
    """Measure diffusion maps and sketches by both distances, in so many processes (-1: all)."""
    rows = []
    for name in figures:
        setting = FIGURES[name].setting
        tasks = (delayed(by_both)(setting, seed, trial) for trial in range(trials))
        measured, ratios = zip(*Parallel(n_jobs=jobs)(tasks), strict=True)
        mean, std = np.mean(measured, axis=0), np.std(measured, axis=0)
        for i, method in enumerate(METHODS):
            for j, k in enumerate(setting.sizes):
                by_two = np.ravel([mean[i, j], std[i, j]], order="F").tolist()
                rows.append(
                    EuclideanRow(name, method, k, *by_two, *np.mean(ratios, axis=0).tolist())
                )
    return rows


def by_both(setting: Setting, seed: int, trial: int) -> tuple[np.ndarray, tuple[float, float]]:
    """Return log L (methods, sizes, 2) of a trial, and log L of one distance by the other.

    The latter over all pairs, and over those with |x - y| < √ε.
    """
    with threadpool_limits(1):  # so that results do not depend on the number of processes
        sample, p = Sample(setting, seed, trial), setting.powers[0]
        distances = sample.distance("symmetric", p), pdist(sample.X)
        maps = [[sample.embedding(method, p, k) for k in setting.sizes] for method in METHODS]
        log_L = [[[hs.distortion(Y, D).log_L for D in distances] for Y in row] for row in maps]
    return np.array(log_L), between(*distances, np.sqrt(setting.epsilon))


def between(D: np.ndarray, lengths: np.ndarray, near: float) -> tuple[float, float]:
    """Return log L of D by other distances, of all pairs and of those nearer than a number."""
    ratio = np.log(D / lengths)
    return float(np.ptp(ratio)), float(np.ptp(ratio[lengths < near]))


def run_euclidean(folder: Path, seed: int = 0, **sizes: Any) -> list[EuclideanRow]:
    """Write euclidean.csv and euclidean.png, and return the rows of the table."""
    rows = euclidean_example(seed, **sizes)
    write_rows(folder / "euclidean.csv", EuclideanRow._fields, rows)
    names = list(dict.fromkeys(row.figure for row in rows))
    shape = (-(-len(names) // 2), 2)
    drawing, axes = figure_and_axes(8.0, 3.1 * shape[0] + 0.4, shape)
    for ax, name in zip(axes.flat, names, strict=False):
        for method in METHODS:
            _curves(ax, [r for r in rows if (r.figure, r.method) == (name, method)])
        one_by_other = next(row.between for row in rows if row.figure == name)
        ax.axhline(one_by_other, color="#8a8a8a", linestyle=":", label="one distance by the other")
        ax.set_title(f"{name}: {FIGURES[name].title}", fontsize=10)
        ax.set_xlabel("k")
        ax.set_ylabel("log L")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_ylim(bottom=0)
        ax.spines[["top", "right"]].set_visible(False)
    handles = axes[0, 0].get_legend_handles_labels()
    drawing.legend(*handles, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    title = "log L by the diffusion distance and by the Euclidean distance of the points"
    save(drawing, title, folder / "euclidean.png")
    return rows


def _curves(ax: Any, own: list[EuclideanRow]) -> None:
    """Draw log L of one method by both distances."""
    colour, marker = METHOD_STYLES[own[0].method]
    look = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.2, "capsize": 2}
    for distance, line, fill in (("diffusion", "-", colour), ("euclidean", "--", "white")):
        mean = [getattr(row, distance) for row in own]
        std = [getattr(row, f"{distance}_std") for row in own]
        label = f"{own[0].method}, {distance.replace('euc', 'Euc')}"
        x = [row.k for row in own]
        ax.errorbar(x, mean, std, linestyle=line, markerfacecolor=fill, label=label, **look)
