"""How fast are the leading eigenpairs, and are multiple ones found? hs.eigh, ARPACK and LOBPCG.

Run: python benchmarks/eigenpairs.py [--small] [--repeats N]

Graphs of 30 neighbours of a Swiss roll of 50,000 points and of 20 separated clouds of 100,000
points in 50 dimensions, which have the eigenvalue 1 twenty times (--small: 5,000 points each). 15
eigenpairs beside the trivial one: hs.eigh of the deflated operator to a residual of 1e-5, SciPy's
eigsh (ARPACK, tol 1e-6) and lobpcg (tol 1e-5, 100 iterations) of the matrix for 16, in float64 on
the same matrix. Best of `--repeats` runs, after one product, so that compiling is not timed. "at
the top" counts eigenvalues within 1e-3 of 1, beside the trivial one.
"""

import time
import warnings

import _harness as harness
import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh, lobpcg

import heatsketch as hs

K = 15
HEADS = (
    "points",
    "n",
    "method",
    "seconds",
    "largest residual",
    "at the top",
    "smallest eigenvalue",
)


def data(small):
    """Yield a name and the points for both data sets."""
    n = (5_000, 5_000) if small else (50_000, 100_000)
    yield "Swiss roll", hs.datasets.swiss_roll(n[0], rng=0)[0]
    clouds = hs.datasets.gaussian_clouds(n[1], n_labels=20, dim=50, separation=12.0, rng=0)
    yield "20 clouds", clouds[0]


def stored(d):
    """Return the operator on the vertices as a CSR matrix, and the trivial eigenvector."""
    A, scale = d.operator, np.ones(d.n)
    while isinstance(A, hs.Scaled):
        A, scale = A.A, scale * A.s
    s = sparse.diags(scale)
    return (s @ A.matrix @ s).tocsr().astype(float), np.sqrt(d.measure / d.measure.sum())


def solvers(matrix, root):
    """Return the solvers by name: each gives values and vectors."""
    A = hs.Deflated(hs.Sparse(matrix, (-1.0, 1.0)), root)
    rng = np.random.default_rng(0)
    start = rng.standard_normal((len(root), K + 1))

    def ours():
        return hs.eigh(A, K, tol=1e-5, rng=0)[:2]

    def arpack():
        return eigsh(matrix, K + 1, which="LA", tol=1e-6, v0=start[:, 0])

    def block_gradients():
        return lobpcg(matrix, start.copy(), tol=1e-5, maxiter=100, largest=True)

    return {"hs.eigh": ours, "eigsh (ARPACK)": arpack, "lobpcg": block_gradients}


def measure(matrix, root, repeat):
    """Yield method, seconds, residual, eigenvalues at the top and the smallest one."""
    for name, solve in solvers(matrix, root).items():
        seconds = []
        for _ in range(repeat):
            started = time.perf_counter()
            values, vectors = solve()
            seconds.append(time.perf_counter() - started)
        residual = np.linalg.norm(matrix @ vectors - vectors * values, axis=0).max()
        values = np.sort(values)[::-1]
        values = values if len(values) == K else values[1:]
        yield name, min(seconds), float(residual), int((values > 0.999).sum()), float(values[-1])


def main():
    arguments = harness.parser(__doc__, repeats=3).parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name, X in data(arguments.small):
        d = hs.Diffusion.from_points(X, n_neighbors=30)
        matrix, root = stored(d)
        hs.Sparse(matrix) @ np.ones((d.n, 1))
        for figures in measure(matrix, root, arguments.repeats):
            rows.append(dict(zip(HEADS, [name, d.n, *figures], strict=True)))
            harness.say(rows[-1])
    print(harness.save("eigenpairs", rows, arguments))


if __name__ == "__main__":
    main()
