"""How fast are the leading eigenpairs? By levels, from a random block, and by others.

Run: python benchmarks/eigenpairs.py [--small] [--repeats N] [--only NAME ...] [--mnist FOLDER]

Graphs of 15 neighbours of Swiss rolls of 20,000, 50,000 and 200,000 points, of 20 overlapping
clouds of 100,000 points in 50 dimensions, and of the 10,000 test digits of MNIST where their folder
is given (--small: 5,000 points each). 10 and 64 eigenpairs beside the trivial one, in float64:

- "levels": hs.eigh of the deflated operator, to a residual of 1e-3 and of 1e-5
- "random block": the same iteration without the coarser graph
- "diffusion map": what DiffusionMap takes, to its default tolerance (by systems of linear equations
  where the graph is narrow)
- eigsh (ARPACK), tol 1e-5, up to 50,000 points and 10 eigenpairs

Best of `--repeats` runs, after one product, so that compiling is not timed. The residual is the
largest; "1 - λ" is that of the last eigenpair.
"""

import time
import warnings
from pathlib import Path
from unittest import mock

import _harness as harness
import numpy as np
from scipy.sparse.linalg import eigsh

import heatsketch as hs
from heatsketch.spectral import eigen
from heatsketch.spectral.eigen import slowest_eigenpairs

HEADS = ("points", "n", "pairs", "method", "tol", "seconds", "CPU", "largest residual", "1 - λ")


def data(small, mnist):
    """Yield a name and the points of each data set."""
    for n in (5_000,) if small else (20_000, 50_000, 200_000):
        yield f"roll {n}", hs.datasets.swiss_roll(n, rng=0)[0]
    yield "clouds", harness.overlapping(5_000 if small else 100_000)[0].astype(float)
    if mnist is not None:
        yield "MNIST", harness.images(5_000 if small else 10_000, mnist)[0].astype(float)


def without_levels(A, k, tol):
    """Return the eigenpairs by the block iteration from a random block."""
    with mock.patch.object(eigen, "coarser", return_value=None):
        return hs.eigh(A, k, tol=tol, rng=0)


def arpack(A, k, tol):
    """Return the eigenpairs of the stored matrix less the trivial one, by ARPACK."""
    matrix = A.sparse_matrix()
    values, vectors = eigsh(matrix, k + 1, which="LA", tol=tol, v0=np.ones(A.n))
    order = np.argsort(-values)[1:]
    values, vectors = values[order], vectors[:, order]
    residuals = np.linalg.norm(matrix @ vectors - vectors * values, axis=0)
    return eigen.Spectrum(values, vectors, residuals)


def runs(n, k):
    """Yield name, tolerance and solver."""
    for tol in (1e-3, 1e-5):
        yield "levels", tol, lambda A, k, tol: hs.eigh(A, k, tol=tol, rng=0)
        yield "random block", tol, without_levels
    yield "diffusion map", 1e-8, lambda A, k, tol: slowest_eigenpairs(A, k, tol=tol, rng=0)
    if n <= 50_000 and k <= 10:
        yield "eigsh (ARPACK)", 1e-5, arpack


def measure(solve, A, k, tol, repeats):
    """Return seconds, CPU seconds, largest residual and the last 1 - λ."""
    best = (np.inf, np.inf)
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        found = solve(A, k, tol)
        best = min(best, (time.perf_counter() - wall, time.process_time() - cpu))
    return *best, float(found.residuals.max()), float(1 - found.values[-1])


def main():
    parser = harness.parser(__doc__, repeats=3)
    parser.add_argument("--mnist", type=Path, help="folder of the MNIST files")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name, X in data(arguments.small, arguments.mnist):
        if arguments.only and not any(part in name for part in arguments.only):
            continue
        A = hs.Diffusion.from_points(X, n_neighbors=15, alpha=1.0).deflated
        A @ np.ones((A.n, 8)), A @ np.ones(A.n)
        for k in (10, 64):
            for method, tol, solve in runs(A.n, k):
                figures = measure(solve, A, k, tol, arguments.repeats)
                rows.append(dict(zip(HEADS, [name, A.n, k, method, tol, *figures], strict=True)))
                harness.say(rows[-1])
    print(harness.save("eigenpairs", rows, arguments))


if __name__ == "__main__":
    main()
