"""How are our pictures by the measure that the authors of DREAMS chose, on a set of theirs?

Run: python benchmarks/dreams_measure.py FILE.npy [--methods heatsketch t-SNE ...] [-o FILE.csv]

FILE.npy has points (n, d), such as 50 principal components of the 1000 Genomes, which is
data/Genomes/genome-pca50.npy of github.com/berenslab/dreams-experiments. Kury, Kobak and Damrich
(arXiv 2508.13747) take the recall of 10 neighbours, and the rank correlation of all distances
between 1,000 points (seed 0). What they print for their methods, with four seeds, is in PRINTED.
"""

import argparse
import csv
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pictures
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

NEIGHBORS, SAMPLE = 10, 1_000
PRINTED = {  # of the 1000 Genomes: recall, distances
    "DREAMS, printed": (0.359, 0.773),
    "DREAMS, MDS, printed": (0.353, 0.812),
    "SQuaD hybrid, printed": (0.343, 0.790),
    "t-SNE, printed": (0.361, 0.577),
    "UMAP, printed": (0.246, 0.304),
    "PaCMAP, printed": (0.190, 0.655),
}
METHODS = pictures.METHODS | {
    f"heatsketch, {name}={value:g}": partial(pictures.heatsketch, **{name: value})
    for name, value in (("spread", 0.0), ("path_weight", 0.0), ("neighbor_weight", 0.1))
}
DEFAULT = (*(name for name in METHODS if name.startswith("heatsketch")), "t-SNE", "DREAMS")


def measured(X, Y):
    """Return the recall of 10 neighbours and the rank correlation of distances of 1,000 points."""
    of_data, of_picture = (pictures.neighbors_of(points, NEIGHBORS) for points in (X, Y))
    shared = sum(len(set(a) & set(b)) for a, b in zip(of_data, of_picture, strict=True))
    chosen = np.random.RandomState(0).choice(len(X), min(SAMPLE, len(X)), replace=False)
    distances = spearmanr(pdist(X[chosen]), pdist(Y[chosen])).statistic
    return shared / (NEIGHBORS * len(X)), float(distances)


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("points", type=Path, metavar="FILE.npy")
    options.add_argument("--methods", nargs="+", default=DEFAULT, choices=METHODS)
    options.add_argument("-o", "--output", type=Path, metavar="FILE.csv")
    given = options.parse_args()
    X = np.load(given.points).astype(float)
    rows = {}
    for method in given.methods:
        made = METHODS[method](X)
        rows[method] = measured(X, np.asarray(made[0] if isinstance(made, tuple) else made, float))
        print(f"{method:34} recall {rows[method][0]:.3f}  distances {rows[method][1]:.3f}")
    if given.output:
        with given.output.open("w", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(["method", "recall", "distances"])
            for method, values in (rows | PRINTED).items():
                table.writerow([method, *(f"{value:.3f}" for value in values)])


if __name__ == "__main__":
    sys.exit(main())
