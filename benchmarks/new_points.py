"""Do learned directions hold for new points? Held-out log L on a torus and a Klein bottle.

Run: python benchmarks/new_points.py [--seeds 3] [-o docs/benchmarks/new_points.csv]

80 % of the points fit, 20 % are mapped by `transform`. log L is taken over all pairs with at least
one held-out point. The distance to keep is that between deflated rows of A^p, exactly: for a point
x the row a(x, ·) A^(p-1), without the trivial direction, which none of the methods embeds.

"new": the diffusion, too, knows the 80 % alone; held-out points enter through its `extend`.
"seen": the diffusion is that of all points; only the directions are learned on the 80 %.

HeatEmbedding learns from all eigenvectors up to 2,048 points, as on the torus, and from a sketch of
256 columns beyond; "exact" from all eigenvectors there too. "expected" is what HeatEmbedding says
of new points after fitting: the `held_out_log_L` of its `distortion_`.
"""

import argparse
import csv
import itertools
import platform
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist

import heatsketch as hs

SIZES = (3, 5, 8)
HELD_OUT = 0.2
SPECTRAL_LIMIT = 2_048  # points up to which HeatEmbedding takes all eigenvectors
NEGLIGIBLE = 1e-12  # of the largest weight of an eigenvector
# name -> points, n, epsilon, p: those of figures 2a and 2b, with more points
DATA = {
    "torus": (hs.datasets.stretched_torus, 2000, 0.3, 10),
    "Klein": (hs.datasets.klein_bottle, 3000, 2.0, 4),
}
# (data, k) -> log L to reach, as a share of the better of diffusion map and sketch
TARGETS = {
    ("torus", 3): 0.65,
    ("torus", 5): 0.35,
    ("torus", 8): 0.35,
    ("Klein", 5): 0.7,
    ("Klein", 8): 0.75,
}
PLAIN, OURS = ("DiffusionMap", "HeatSketch"), ("HeatEmbedding", "exact")
COLUMNS = (*PLAIN, *OURS, "expected")


def factor(A, p):
    """Return V λ^(p-1) (n, r) of a deflated A: rows of A times it have the diffusion distances."""
    lam, V = np.linalg.eigh(A @ np.eye(A.n))
    weights = lam ** (p - 1)
    kept = np.argsort(-np.abs(weights))[
        : np.sum(np.abs(weights) > NEGLIGIBLE * np.abs(weights).max())
    ]
    return V[:, kept] * weights[kept]


def split(n, rng):
    """Return the rows to fit on and those held out."""
    rows = rng.permutation(n)
    held = round(HELD_OUT * n)
    return rows[held:], rows[:held]


def judge(F, F_new):
    """Return the function (Y, Y_new) -> log L over all pairs with a held-out point."""
    F = np.vstack([F_new, F])
    i, j = np.divmod(np.arange(len(F_new) * len(F)), len(F))
    D = cdist(F_new, F).ravel()
    return lambda Y, Y_new: hs.distortion(np.vstack([Y_new, Y]), D, pairs=(i, j)).log_L


def estimators(k, p, epsilon, seed):
    kernel = {"affinity": "dense", "epsilon": epsilon, "normalization": "symmetric"}
    common = kernel | {"time": p, "random_state": seed}
    return {
        "DiffusionMap": hs.DiffusionMap(k, **common),
        "HeatSketch": hs.HeatSketch(k, **common),
        "HeatEmbedding": hs.HeatEmbedding(k, **common),
    }


def new(X, X_new, epsilon, p, seed):
    """Yield (method, k, log L), all fitted on X alone."""
    d = hs.diffusion(X, affinity="dense", epsilon=epsilon, normalization="symmetric")
    H = factor(d.deflated, p)
    F, F_new = d.last_step(H), d.last_step(H, X_new)
    log_L = judge(F, F_new)
    for k in SIZES:
        found = estimators(k, p, epsilon, seed)
        for name, estimator in found.items():
            Y = estimator.fit_transform(X)
            yield name, k, log_L(Y, estimator.transform(X_new))
        yield "expected", k, found["HeatEmbedding"].distortion_.held_out_log_L
        if len(X) > SPECTRAL_LIMIT:
            projection = hs.NearIsometricProjection(k, random_state=seed).fit(F)
            yield "exact", k, log_L(projection.embedding_, projection.transform(F_new))


def seen(X, X_new, epsilon, p, seed):
    """Yield (method, k, log L), with the diffusion of all points."""
    n, X = len(X), np.vstack([X, X_new])
    d = hs.diffusion(X, affinity="dense", epsilon=epsilon, normalization="symmetric")
    F = d.last_step(factor(d.deflated, p))
    log_L = judge(F[:n], F[n:])
    for k in SIZES:
        found = estimators(k, p, epsilon, seed)
        for name in PLAIN:
            Y = found[name].fit_transform(X)
            yield name, k, log_L(Y[:n], Y[n:])
        projection = hs.NearIsometricProjection(k, random_state=seed).fit(F[:n])
        yield "exact", k, log_L(projection.embedding_, projection.transform(F[n:]))


def run(seeds, path):
    """Return (variant, data, k) -> method -> log L of every seed; write what there is so far."""
    table = defaultdict(lambda: defaultdict(list))
    for seed, (name, (draw, n, epsilon, p)) in itertools.product(range(seeds), DATA.items()):
        X, _ = draw(n, rng=seed)
        fitted, held = split(n, np.random.default_rng([seed, 1]))
        for variant in (new, seen):
            started = time.perf_counter()
            for method, k, log_L in variant(X[fitted], X[held], epsilon, p, seed):
                table[variant.__name__, name, k][method].append(log_L)
            seconds = time.perf_counter() - started
            print(f"{name}, seed {seed}, {variant.__name__}: {seconds:.0f} s", file=sys.stderr)
            write(table, path)
    return table


def write(table, path):
    with Path(path).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["diffusion", "data", "k", "method", "seed", "log L"])
        for key, methods in sorted(table.items()):
            for method, values in methods.items():
                for seed, value in enumerate(values):
                    writer.writerow([*key, method, seed, f"{value:.4f}"])


def markdown(table):
    """Return means over seeds, and ours as a share of the better of the other two."""
    heads = ["diffusion", "data", "k", *COLUMNS, *(f"{name} / best" for name in OURS), "target"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for (variant, data, k), methods in sorted(table.items()):
        means = {name: np.mean(methods[name]) if name in methods else np.nan for name in COLUMNS}
        best = min(means[name] for name in PLAIN)
        figures = [*means.values(), *(means[name] / best for name in OURS)]
        cells = ["" if np.isnan(figure) else f"{figure:.2f}" for figure in figures]
        target = TARGETS.get((data, k), "") if variant == "new" else ""
        lines.append("| " + " | ".join(map(str, (variant, data, k, *cells, target))) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--output", default="docs/benchmarks/new_points.csv")
    arguments = parser.parse_args()
    table = run(arguments.seeds, arguments.output)
    print(
        f"heatsketch {hs.__version__}, NumPy {np.__version__}, Python {platform.python_version()}; "
        f"mean log L of {arguments.seeds} seeds\n\n{markdown(table)}"
    )


if __name__ == "__main__":
    main()
