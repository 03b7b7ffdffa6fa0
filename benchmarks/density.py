"""Which affinity takes the density of the sample out? Uneven samples of a circle, sphere and torus.

Run: python benchmarks/density.py [--seeds 5] [-o docs/benchmarks/density.csv]

The densest place has 19 times the density of the sparsest. Measured is how far the leading
coordinates of a diffusion map (α = 1) are from the first eigenfunctions of the Laplace-Beltrami
operator: the root mean square distance of these from their best affine fit by the coordinates. On
the circle that is the distance from the circle.

"best epsilon" is the best of 1/2, ..., 1/32 of Ksum's by that very distance, which needs the
answer. CkNN (Berry and Sauer 2019) and the variable kernel with the exponents of theory in place of
measured speeds (Berry and Harlim 2016) are computed here, on the same neighbours.
"""

import argparse
import csv
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh
from scipy.spatial import cKDTree

import heatsketch as hs

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from problems.uneven import misfit, uneven_circle, uneven_sphere, uneven_torus

SHAPES = {"circle": (uneven_circle, 2), "sphere": (uneven_sphere, 3), "torus": (uneven_torus, 2)}
SIZES = (1000, 4000, 16000)
LARGEST_WIDE, WIDE_SEEDS = 4000, 2  # of affinities of very many pairs, which take minutes
SHARES = [2.0**j for j in range(-5, 0)]  # of Ksum's epsilon
K = 15


def embedded(**options):
    """Return a function (X, k) -> the coordinates of a diffusion map."""
    return lambda X, k: hs.DiffusionMap(k, random_state=0, **options).fit_transform(X)


def within_radius(X, k, share):
    """Return the coordinates by a share of Ksum's epsilon."""
    return embedded(affinity="radius", epsilon=share * hs.ksum(X).epsilon)(X, k)


def neighbor_graph(X, reach):
    """Return the pairs of the K nearest neighbours, their distances and those to all K, as CSR."""
    distances, indices = cKDTree(X).query(X, reach + 1)
    n = len(X)
    starts = np.arange(0, n * reach + 1, reach)
    graph = sparse.csr_matrix((distances[:, 1:].ravel(), indices[:, 1:].ravel(), starts), (n, n))
    return graph.maximum(graph.T).tocoo(), distances


def lowest(W, mass, k):
    """Return the eigenvectors of (D - W) f = λ diag(mass) f after the constant, (n, k)."""
    degrees = np.asarray(W.sum(axis=1)).ravel()
    half = sparse.diags(mass**-0.5)
    L = half @ (sparse.diags(degrees) - W) @ half
    shift = 1e-7 * np.median(degrees / mass)
    lam, V = eigsh((L + shift * sparse.eye(len(mass))).tocsc(), k + 1, sigma=0)
    return (half @ V)[:, np.argsort(lam)[1:]]


def cknn(X, k):
    """Continuous k nearest neighbours: |x - y|² < d_K(x) d_K(y), unnormalised."""
    graph, distances = neighbor_graph(X, 4 * K)
    reach = distances[:, K]
    near = graph.data**2 < reach[graph.row] * reach[graph.col]
    links = (np.ones(near.sum()), (graph.row[near], graph.col[near]))
    return lowest(sparse.csr_matrix(links, graph.shape), np.ones(len(X)), k)


def theoretical(X, k):
    """Berry and Harlim: s = q^(-1/d), α and rate by their exponents, K neighbours."""
    graph, distances = neighbor_graph(X, K)
    d = hs.intrinsic_dimension(X, n_neighbors=K).dimension
    s = np.sqrt(2 * np.mean(distances[:, 1:] ** 2, axis=1))
    pair = s[graph.row] * s[graph.col]
    weights = np.exp(-(graph.data**2) / pair) * pair ** (d / 2 - 1)
    return lowest(sparse.csr_matrix((weights, (graph.row, graph.col)), graph.shape), s**d, k)


METHODS = {
    "knn, alpha=0": [embedded(alpha=0.0)],
    "knn, alpha=1 (default)": [embedded()],
    "dense, self-tuning": [embedded(affinity="dense")],
    "dense, ksum": [embedded(affinity="dense", epsilon="ksum")],
    "radius, best epsilon": [partial(within_radius, share=share) for share in SHARES],
    "CkNN": [cknn],
    "variable kernel, exponents of theory": [theoretical],
    "variable": [embedded(affinity="variable")],
    "variable, 30 neighbours": [embedded(affinity="variable", n_neighbors=2 * K)],
}
WIDE = [name for name in METHODS if name.startswith(("dense", "radius"))]


def measured(ways, X, functions):
    """Return the least misfit by any of these ways, and the seconds of the last."""
    found, took = [], np.nan
    for way in ways:
        started = time.perf_counter()
        try:
            found.append(misfit(way(X, functions.shape[1]), functions))
        except (ValueError, MemoryError):  # most points are isolated, or too many joined
            found.append(np.nan)
        took = time.perf_counter() - started
    return np.nanmin(found), took


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--affinities", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for shape, (draw, _) in SHAPES.items():
        for n in SIZES:
            for name in args.affinities:
                if name in WIDE and n > LARGEST_WIDE:
                    continue
                seeds = min(args.seeds, WIDE_SEEDS) if name in WIDE else args.seeds
                results = [measured(METHODS[name], *draw(n, seed)) for seed in range(seeds)]
                misfits, seconds = np.array(results).T
                figures = [np.median(misfits), misfits.min(), misfits.max(), np.median(seconds)]
                rows.append([shape, n, name, *(f"{x:.4f}" for x in figures)])
                print(*rows[-1], flush=True)
    if args.output:
        with args.output.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["shape", "n", "affinity", "median", "least", "largest", "seconds"])
            writer.writerows(rows)


if __name__ == "__main__":
    main()
