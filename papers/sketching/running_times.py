"""Running times of Algorithms 3, 4 and 5 against the number of points and the power.

*Sketching the heat kernel*, §1 and §4.5: sketches are at least as easy to compute as diffusion
maps. Its counts are O(N²) for Algorithm 1, O(N³) for eigenvectors by classical techniques, O(kmN²)
by m steps of the power iteration, and O(kpN²) for A^p G. Here the algorithms are run as printed,
with a dense A; seconds are processor time with one thread, so that other programs do not count.
"""

import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh
from threadpoolctl import threadpool_limits

import heatsketch as hs
from papers.output import COLOURS, figure_and_axes, random, save, write_rows
from papers.sketching.figures import TORUS
from papers.sketching.power_iteration import eigenpairs_by_powers

COUNTS = (500, 1000, 2000, 4000)
POWERS = (1, 4, 16, 64)
COLUMNS = 8
ROUNDS = 5  # of all algorithms in turn
SLOW = 2.0  # seconds of an algorithm beyond which two rounds are enough
NAME, PURPOSE = "running-times", 13
STYLES = {
    "Algorithm 3, dense eigenvectors": (COLOURS[0], "o-"),
    "Algorithm 3, Lanczos": (COLOURS[4], "o-"),
    "Algorithm 3, power iteration": (COLOURS[2], "o-"),
    "Algorithm 3, hs.eigh": (COLOURS[3], "o--"),
    "Algorithm 4": (COLOURS[5], "s-"),
    "Algorithm 5": (COLOURS[1], "s-"),
    "Algorithm 4, hs.sketch": ("#000000", "s--"),
    "Algorithm 1": ("#8a8a8a", "^-"),
}
WITHOUT_POWER = (*list(STYLES)[:2], "Algorithm 3, hs.eigh", "Algorithm 1")
Task = tuple[str, int]  # algorithm and p


class TimeRow(NamedTuple):
    """Seconds of an algorithm, without those of Algorithm 1, which has its own rows.

    Attributes
    ----------
    algorithm : str
        Which one, and by which method.
    points, power : int
        N, and p, for the power iteration also the m of A^m G. Other eigenvectors and Algorithm 1 do
        not depend on p: they are timed once.
    seconds : float
        Processor time, the median of the rounds.
    rounds : int
        Number of rounds.
    over_sketch : float
        Divided by the seconds of Algorithm 4 in the same rounds.
    """

    algorithm: str
    points: int
    power: int
    seconds: float
    rounds: int
    over_sketch: float


# The algorithms, as printed


def algorithm_1(X: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the symmetric normalised affinity matrix."""
    return hs.symmetric_normalize(hs.gaussian_affinity(X, epsilon))


def diffusion_map(A: np.ndarray, k: int, p: int, eigenpairs: Callable[..., Any]) -> np.ndarray:
    """Embed by Algorithm 3: λ_1^p v_1, ..., λ_k^p v_k, of the k + 1 leading eigenpairs."""
    values, vectors = eigenpairs(A, k + 1)
    kept = np.argsort(-values)[1:]
    return vectors[:, kept] * values[kept] ** p


def dense(A: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return leading eigenpairs by classical techniques, O(N³)."""
    return eigh(A, subset_by_index=(len(A) - count, len(A) - 1))


def lanczos(A: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return leading eigenpairs by Lanczos' method (ARPACK), to rounding."""
    return eigsh(A, count, which="LA", v0=np.ones(len(A)))


def library(A: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return leading eigenpairs by the library, to 1e-8."""
    found = hs.eigh(A, count, rng=0)
    return found.values, found.vectors


def sketch(A: np.ndarray, G: np.ndarray, p: int) -> np.ndarray:
    """Embed by Algorithm 4 or 5: A(A(...(AG))) / √k."""
    Y = G
    for _ in range(p):
        Y = A @ Y
    return Y / np.sqrt(G.shape[1])


def algorithms(A: np.ndarray, p: int, rng: np.random.Generator) -> dict[str, Callable[[], Any]]:
    """Return what is timed for one matrix and power."""
    n, k = len(A), COLUMNS

    def powers(matrix: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        return eigenpairs_by_powers(matrix, count, p, rng)

    def signs() -> np.ndarray:
        return rng.integers(0, 2, (n, k)) * 2.0 - 1.0

    names = list(STYLES)
    return {
        names[0]: lambda: diffusion_map(A, k, p, dense),
        names[1]: lambda: diffusion_map(A, k, p, lanczos),
        names[2]: lambda: diffusion_map(A, k, p, powers),
        names[3]: lambda: diffusion_map(A, k, p, library),
        names[4]: lambda: sketch(A, rng.standard_normal((n, k)), p),
        names[5]: lambda: sketch(A, signs(), p),
        names[6]: lambda: hs.sketch(A, hs.Power(p), k, deflate=False, rng=rng),
    }


# Their times


def time_example(
    seed: int,
    *,
    counts: Sequence[int] = COUNTS,
    powers: Sequence[int] = POWERS,
    rounds: int = ROUNDS,
) -> list[TimeRow]:
    """Time the algorithms on the torus of Figure 2a, in turn, `rounds` times."""
    rows = []
    for place, n in enumerate(counts):
        rng = random(seed, PURPOSE, place)
        X, _ = hs.datasets.stretched_torus(n, rng=rng)
        A = algorithm_1(X, TORUS.epsilon)
        work = {}
        for p in powers:
            for name, run in algorithms(A, p, rng).items():
                work[_task(name, p)] = run
        work["Algorithm 1", 1] = lambda X=X: algorithm_1(X, TORUS.epsilon)
        seconds = interleaved(work, rounds)
        rows += [_row(name, n, p, seconds) for name in STYLES for p in powers]
    return rows


def _task(name: str, p: int) -> Task:
    """Return the key of a piece of work, the same for all p if its time does not depend on p."""
    return name, 1 if name in WITHOUT_POWER else p


def interleaved(work: dict[Task, Callable[[], Any]], rounds: int) -> dict[Task, list[float]]:
    """Return the processor times of every piece of work, done in turn, `rounds` times."""
    seconds: dict[Task, list[float]] = {key: [] for key in work}
    with threadpool_limits(1):
        for run in work.values():
            run()  # compiles and warms up
        for _ in range(rounds):
            for key, run in work.items():
                if len(seconds[key]) < 2 or np.median(seconds[key]) < SLOW:
                    start = time.process_time()
                    run()
                    seconds[key].append(time.process_time() - start)
    return seconds


def _row(name: str, n: int, p: int, seconds: dict[Task, list[float]]) -> TimeRow:
    own, sketched = seconds[_task(name, p)], seconds["Algorithm 4", p]
    ratio = np.median(own) / np.median(sketched)
    return TimeRow(name, n, p, float(np.median(own)), len(own), float(ratio))


def machine() -> str:
    """Describe what the times are of."""
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    return f"{os.cpu_count()} cores, {versions}, SciPy {scipy.__version__}, one thread"


def run_running_times(folder: Path, seed: int = 0, **sizes: Any) -> list[TimeRow]:
    """Write running-times.csv and running-times.png."""
    rows = time_example(seed, **sizes)
    write_rows(folder / f"{NAME}.csv", TimeRow._fields, rows)
    drawing, axes = figure_and_axes(11, 4.2, (1, 2))
    powers = sorted({row.power for row in rows})
    many, middle = max(row.points for row in rows), powers[len(powers) // 2]
    _draw(axes[0, 0], [row for row in rows if row.power == middle], "points", f"p = {middle}")
    _draw(axes[0, 1], [row for row in rows if row.points == many], "power", f"N = {many}")
    axes[0, 0].set(xlabel="N", ylabel="seconds")
    axes[0, 1].set(xlabel="p, or m of the power iteration")
    axes[0, 1].legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    save(drawing, f"k = {COLUMNS}; {machine()}", folder / f"{NAME}.png")
    return rows


def _draw(ax: Any, rows: list[TimeRow], axis: str, title: str) -> None:
    for name, (colour, style) in STYLES.items():
        own = [row for row in rows if row.algorithm == name]
        x, y = [getattr(row, axis) for row in own], [row.seconds for row in own]
        ax.plot(x, y, style, color=colour, ms=4, lw=1, label=name)
    ax.set(xscale="log", yscale="log")
    values = sorted({getattr(row, axis) for row in rows})
    ax.set_xticks(values, [str(value) for value in values])
    ax.minorticks_off()
    ax.set_title(title, fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
