"""Does `pseudotime` order cells as well as scanpy's `sc.tl.dpt`? For benchmarks/README.md.

Run: python benchmarks/pseudotime.py [--seeds 100 101 102 103 104] [--points 1000] [-o DIR]

Trees of known time: branches are curves of random direction and length in 10 to 30 dimensions, or
in 20 from which 500 genes are drawn (gamma-Poisson counts, log of shares). Spearman's correlation
of the pseudotime from the first cell, the true root, with the time at which a cell lies on the
tree; cells that a method calls unreachable are the latest. scanpy has its defaults (50 principal
components if there are more columns, 15 neighbours, 15 diffusion components of which `dpt` takes
10); heatsketch has its own, on the same columns (principal components) as scanpy, and on all.
Then the sets that ship with scanpy: two simulations, whose time is known, and 700 blood cells.
"""

import argparse
import csv
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

import heatsketch as hs

# For each branch the one at whose end it begins; -1: the root.
SHAPES = {
    "line": [-1],
    "fork": [-1, 0, 0],
    "three tips": [-1, 0, 0, 0],
    "four tips": [-1, 0, 0, 1, 1, 2, 2],
    "comb": [-1, 0, 0, 2, 2, 4, 4],
    "star": [-1, -1, -1, -1],
}
KINDS = ("little noise", "noise", "uneven", "counts", "uneven counts")
TIMES = (1, 8, 32)
STEPS = 50  # of a branch
LATEST = 2.0


def curves(parents, d, rng):
    """Return the paths (STEPS + 1, d) of the branches, and the times of their beginnings."""
    paths, starts, lengths, directions = [], [], [], []
    for parent in parents:
        length, u = rng.uniform(0.6, 1.4), rng.normal(size=d)
        u /= np.linalg.norm(u)
        if parent >= 0:
            u = u + 0.5 * directions[parent]
        path = [np.zeros(d) if parent < 0 else paths[parent][-1]]
        for _ in range(STEPS):
            u = u / np.linalg.norm(u) + 0.3 * rng.normal(size=d) / np.sqrt(d)
            path.append(path[-1] + u / np.linalg.norm(u) * length / STEPS)
        starts.append(0.0 if parent < 0 else starts[parent] + lengths[parent])
        paths.append(np.array(path))
        lengths.append(length)
        directions.append(u / np.linalg.norm(u))
    return paths, np.array(starts), np.array(lengths)


def on_tree(shape, n, d, rng, *, uneven):
    """Return n points of a tree (n, d), the first the root, and their times (n,)."""
    paths, starts, lengths = curves(SHAPES[shape], d, rng)
    weights = lengths * (rng.uniform(0.3, 3.0, len(lengths)) if uneven else 1.0)
    branch = rng.choice(len(lengths), n, p=weights / weights.sum())
    place = rng.uniform(size=n) ** (2 if uneven else 1)
    branch[0], place[0] = 0, 0.0
    at = np.arange(STEPS + 1) / STEPS
    X = np.array(
        [
            [np.interp(x, at, column) for column in paths[b].T]
            for b, x in zip(branch, place, strict=True)
        ]
    )
    return X, starts[branch] + place * lengths[branch]


def counted(Z, rng, genes=500):
    """Return log shares of gamma-Poisson counts of genes (n, genes) that Z (n, d) regulates."""
    effects = rng.gamma(1.0, 1.0, (Z.shape[1], genes)) * rng.choice([-1, 1], (Z.shape[1], genes))
    mean = rng.gamma(2.0, 0.5, genes) * np.exp(0.64 * Z @ effects)
    mean *= rng.lognormal(0.0, 0.3, (len(Z), 1))  # depth
    counts = rng.poisson(rng.gamma(5.0, mean / 5))
    depth = counts.sum(axis=1, keepdims=True)
    return np.log1p(counts / np.maximum(depth, 1) * np.median(depth))


def simulated(kind, shape, n, seed):
    """Return cells (n, d), the first the root, and their times (n,)."""
    rng = np.random.default_rng([seed, list(SHAPES).index(shape), KINDS.index(kind)])
    uneven = "uneven" in kind
    if "counts" in kind:
        Z, time = on_tree(shape, n, 20, rng, uneven=uneven)
        return counted(Z, rng), time
    d, noise = {"little noise": (10, 0.05), "noise": (30, 0.4), "uneven": (20, 0.2)}[kind]
    X, time = on_tree(shape, n, d, rng, uneven=uneven)
    return X + noise / np.sqrt(d) * rng.normal(size=X.shape), time


def by_scanpy(X, root):
    """Return scanpy's pseudotime (n,), and the columns that its neighbours were searched in."""
    import anndata
    import scanpy as sc

    cells = anndata.AnnData(X.astype(np.float32))
    if X.shape[1] > 50:
        sc.pp.pca(cells)
    sc.pp.neighbors(cells)
    sc.tl.diffmap(cells)
    cells.uns["iroot"] = root
    sc.tl.dpt(cells)
    found = cells.obs["dpt_pseudotime"].to_numpy().astype(float)
    return found, np.asarray(cells.obsm.get("X_pca", X), dtype=float)


def of_methods(X, root=0):
    """Return the pseudotime (n,) by each method."""
    found = {}
    found["scanpy dpt"], components = by_scanpy(X, root)
    model = hs.HeatSketch(random_state=0).fit(components)
    for t in TIMES:
        found[f"time {t}"] = model.pseudotime(root, time=t).value
    found["distance at time 8"] = model.distance(root).value
    found["all columns"] = hs.HeatSketch(random_state=0).fit(X).pseudotime(root).value
    return {name: np.where(np.isfinite(late), late, LATEST) for name, late in found.items()}


def shipped():
    """Yield name, cells, root and time of the simulations that ship with scanpy."""
    import scanpy as sc

    for name, length in (("krumsiek11", 160), ("toggleswitch", 100)):
        cells = getattr(sc.datasets, name)()
        X = np.asarray(cells.X, dtype=float)
        yield name, X, 0, np.arange(len(X)) % length


def agreement(points_of_cells):
    """Return Spearman's correlation with scanpy's pseudotime for several roots."""
    return [
        spearmanr(found["scanpy dpt"], found["time 8"]).statistic
        for found in (of_methods(points_of_cells, root) for root in range(0, 700, 100))
    ]


def table(rows, seeds, n):
    """Print means of each kind, the least of all, and how often scanpy is not better."""
    methods = list(rows[0][3])
    print("| |", " | ".join([*KINDS, "all", "least", "at least scanpy's"]), "|")
    for method in methods:
        of_kind = [[r[3][method] for r in rows if r[0] == kind] for kind in KINDS]
        everything = np.array([r[3][method] for r in rows])
        scanpy = np.array([r[3]["scanpy dpt"] for r in rows])
        figures = [np.mean(x) for x in of_kind] + [everything.mean(), everything.min()]
        share = np.mean(everything >= scanpy)
        print(f"| {method} |", " | ".join(f"{x:.3f}" for x in figures), f"| {share:.0%} |")
    print(f"{len(rows)} trees of {n} cells, seeds {seeds}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(100, 105)))
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for kind in KINDS:
        for shape in SHAPES:
            for seed in args.seeds:
                X, time = simulated(kind, shape, args.points, seed)
                score = {m: spearmanr(p, time).statistic for m, p in of_methods(X).items()}
                rows.append((kind, shape, seed, score))
        print(kind, "done", file=sys.stderr, flush=True)
    table(rows, args.seeds, args.points)
    print("\nby shape, scanpy and time 8:")
    for shape in SHAPES:
        of_shape = [r[3] for r in rows if r[1] == shape]
        print(
            shape, *(f"{np.mean([s[m] for s in of_shape]):.3f}" for m in ("scanpy dpt", "time 8"))
        )
    for name, X, root, time in shipped():
        score = {m: spearmanr(p, time).statistic for m, p in of_methods(X, root).items()}
        print(name, ", ".join(f"{m} {x:.3f}" for m, x in score.items()))
    import scanpy as sc

    cells = sc.datasets.pbmc68k_reduced()
    same = agreement(np.asarray(cells.obsm["X_pca"], dtype=float))
    print("700 cells, agreement with scanpy for 7 roots:", ", ".join(f"{x:.3f}" for x in same))
    if args.output is not None:
        args.output.mkdir(parents=True, exist_ok=True)
        with (args.output / "pseudotime.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(["kind", "shape", "seed", *rows[0][3]])
            for kind, shape, seed, score in rows:
                writer.writerow([kind, shape, seed, *(f"{x:.4f}" for x in score.values())])


if __name__ == "__main__":
    main()
