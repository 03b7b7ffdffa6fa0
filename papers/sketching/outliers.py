"""Outliers: their number and their distance, on three manifolds.

*Sketching the heat kernel* shows two outliers of one circle. Here 1, 2, 4 and 8 points of a circle,
a torus and a sphere are moved outward, step by step, and log L of the diffusion map and of the
sketch is measured in a fixed dimension.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.spatial.distance import pdist
from threadpoolctl import threadpool_limits

import heatsketch as hs
from papers.output import COLOURS, figure_and_axes, random, save, write_rows
from papers.sketching import trials as methods
from papers.sketching.manifolds import MANIFOLDS

COUNTS = (1, 2, 4, 8)
DISTANCES = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)  # from the manifold, in √ε
TRIALS = 10


class OutlierSetting(NamedTuple):
    """Data and parameters on a manifold.

    Attributes
    ----------
    n : int
        Points, the outliers included.
    epsilon : float
        Bandwidth of exp(-|x - y|² / ε), in squared units of the data.
    p, k : int
        Power of the normalised kernel and dimension of the embedding.
    """

    n: int
    epsilon: float
    p: int
    k: int


# Circle and torus as in the paper's figures 3a and 2a.
SETTINGS = {
    "circle": OutlierSetting(200, 0.5, 4, 4),
    "torus": OutlierSetting(500, 0.3, 10, 8),
    "sphere": OutlierSetting(300, 0.5, 4, 5),
}


class OutlierRow(NamedTuple):
    """log L of the diffusion map (DMS) and of the sketch (GPS) of points with outliers.

    Attributes
    ----------
    manifold : str
        "circle", "torus" or "sphere".
    k : int
        Dimension of the embeddings.
    outliers : int
        Number of points moved outward.
    distance : float
        How far, in units of √ε.
    trials : int
        Draws of points and matrices.
    DMS, DMS_std, GPS, GPS_std : float
        Mean and standard deviation of log L over the trials.
    sketch_better : float
        Share of the trials in which log L of GPS is smaller.
    spent : float
        Mean of the squared entries of v_1 to v_k at the outliers, summed: about so many of the k
        eigenvectors tell outliers apart and not the other points.
    """

    manifold: str
    k: int
    outliers: int
    distance: float
    trials: int
    DMS: float
    DMS_std: float
    GPS: float
    GPS_std: float
    sketch_better: float
    spent: float


def outliers_example(
    seed: int,
    *,
    trials: int = TRIALS,
    counts: tuple[int, ...] = COUNTS,
    distances: tuple[float, ...] = DISTANCES,
    settings: dict[str, OutlierSetting] = SETTINGS,
    jobs: int = -1,
) -> list[OutlierRow]:
    """Move points outward, and measure both methods, in so many processes (-1: all)."""
    rows = []
    for name, setting in settings.items():
        tasks = (
            delayed(outliers_trial)(name, setting, seed, trial, counts, distances)
            for trial in range(trials)
        )
        found = np.array(Parallel(n_jobs=jobs)(tasks))
        for i, count in enumerate(counts):
            for j, distance in enumerate(distances):
                dms, gps, spent = found[:, i, j].T
                moments = (dms.mean(), dms.std(), gps.mean(), gps.std())
                numbers = (*moments, np.mean(gps < dms), spent.mean())
                row = (name, setting.k, count, distance, trials, *map(float, numbers))
                rows.append(OutlierRow(*row))
    return rows


def outliers_trial(
    name: str,
    setting: OutlierSetting,
    seed: int,
    trial: int,
    counts: tuple[int, ...],
    distances: tuple[float, ...],
) -> np.ndarray:
    """Return log L of DMS, of GPS, and `spent` of a trial (counts, distances, 3).

    All have the same points before they are moved, and the same G.
    """
    n, epsilon, p, k = setting
    rng = random(seed, list(MANIFOLDS).index(name), trial)
    X, G = MANIFOLDS[name](n, rng), rng.standard_normal((n, k))
    found = np.empty((len(counts), len(distances), 3))
    with threadpool_limits(1):  # so that results do not depend on the number of processes
        for i, count in enumerate(counts):
            for j, distance in enumerate(distances):
                moved = with_outliers(X, count, distance * np.sqrt(epsilon))
                s = methods.spectrum(moved, epsilon, "symmetric")
                D = pdist(methods.diffusion_factor(s, p))
                maps = methods.diffusion_map(s, p, k), methods.gaussian_process(s, p, G)
                log_L = [hs.distortion(Y, D).log_L for Y in maps]
                found[i, j] = *log_L, np.square(s.vectors[-count:, 1 : k + 1]).sum()
    return found


def with_outliers(X: np.ndarray, count: int, distance: float) -> np.ndarray:
    """Move the last points outward, away from the origin, by a distance."""
    moved = X.copy()
    lengths = np.linalg.norm(X[-count:], axis=1, keepdims=True)
    moved[-count:] *= 1 + distance / lengths
    return moved


def run_outliers(folder: Path, seed: int = 0, **sizes: Any) -> list[OutlierRow]:
    """Write outliers.csv and outliers.png, and return the rows of the table."""
    rows = outliers_example(seed, **sizes)
    write_rows(folder / "outliers.csv", OutlierRow._fields, rows)
    names = list(dict.fromkeys(row.manifold for row in rows))
    drawing, axes = figure_and_axes(4.2 * len(names), 3.8, (1, len(names)))
    for ax, name in zip(axes.flat, names, strict=True):
        own = [row for row in rows if row.manifold == name]
        counts = list(dict.fromkeys(row.outliers for row in own))
        for colour, count in zip(COLOURS, counts, strict=False):
            some = [row for row in own if row.outliers == count]
            for method, line in (("DMS", "-"), ("GPS", "--")):
                mean, std = ([getattr(r, m) for r in some] for m in (method, f"{method}_std"))
                label = f"{method}, {count} outlier{'s' * (count > 1)}"
                look = {"color": colour, "linestyle": line, "linewidth": 1.2, "elinewidth": 0.6}
                ax.errorbar([r.distance for r in some], mean, std, label=label, capsize=2, **look)
        ax.set_title(f"{name}, k = {own[0].k}", fontsize=10)
        ax.set_xlabel("distance of the outliers, in √ε")
        ax.set_ylim(bottom=0)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("log L")
    axes[0, -1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save(drawing, "Outliers moved away from three manifolds", folder / "outliers.png")
    return rows
