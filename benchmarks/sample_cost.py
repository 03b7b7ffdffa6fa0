"""What it costs to fit a sample: how much two halves of n points differ, against n.

Run: python benchmarks/sample_cost.py [--mnist FOLDER] [--draws 2] [--only "roll heat-sketch"]
     [--record]

Each of two halves of n points is fitted by itself, with the seed of the draw, and both map 500
others (`heatsketch.distributed.half_discrepancy`). "discrepancy": its mean over the draws.
"without columns": what random columns without end would leave of it, as the square root of the mean
square over the draws; of heat sketches alone. "slope": of the logarithm of the latter (of the
former, where there is no such) against that of n, by least squares. MNIST are test digits by their
50 leading principal components; all 10,000 have room for 9,400 and the 500 others. With --record
the table is written to docs/benchmarks/sample_cost.csv.
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from _harness import mnist as mnist_digits

import heatsketch as hs
from heatsketch import distributed

TABLE = Path(__file__).parents[1] / "docs" / "benchmarks" / "sample_cost.csv"
OTHERS = 500
MAP = hs.DiffusionMap
CASES = {
    "circle diffusion-map": (MAP(2, affinity="dense", epsilon=0.1), (400, 800, 1600, 3200), 8),
    "roll diffusion-map": (
        MAP(2, affinity="dense", epsilon=8.0, time=8),
        (400, 800, 1600, 3200),
        6,
    ),
    "mnist heat-sketch": (hs.HeatSketch(256), (600, 1200, 2400, 4800, 9400), 2),
    "circle heat-sketch": (hs.HeatSketch(256), (400, 1600, 6400), 2),
    "roll heat-sketch": (hs.HeatSketch(256), (400, 1600, 12_800), 2),
    "roll heat-embedding": (hs.HeatEmbedding(2), (400, 1600, 6400), 2),
    "circle heat-embedding": (hs.HeatEmbedding(2), (400, 800, 1600, 3200), 2),
    "mnist heat-embedding": (hs.HeatEmbedding(2), (1200, 2400, 4800, 9400), 1),
}


def points(name, n, seed, folder):
    """Return n points and 500 others."""
    if name == "circle":
        return hs.datasets.circle(n + OTHERS, rng=seed)[0]
    if name == "roll":
        return hs.datasets.swiss_roll(n + OTHERS, rng=seed)[0]
    X = mnist_digits(folder)[0]
    Y = hs.classical.PCA(50).fit_transform(X)
    return Y[np.random.default_rng(seed).permutation(len(Y))[: n + OTHERS]]


def squared_limit(Y, Z, columns):
    """Keep what `half_discrepancy` finds of the limit: its interval has no negative squares."""
    found.append(without(Y, Z, columns)[0])
    return without(Y, Z, columns)


found, without = [], distributed._without_columns
distributed._without_columns = squared_limit


def measured(name, model, n, draws, folder):
    """Return the means over the draws: discrepancy, and square without random columns or None."""
    whole = []
    found.clear()
    for draw in range(draws):
        X = points(name, n, draw, folder)
        half = np.random.default_rng(draw).permutation(n) < n // 2
        model.set_params(random_state=draw)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole.append(distributed.half_discrepancy(model, X[:n], half, X[n:])[0])
    return np.mean(whole), np.mean(found) if found else None


def slope(rows):
    """Return the slope of the last column that is there, positive and of n, in logarithms."""
    last = "without columns" if rows[0]["without columns"] != "" else "discrepancy"
    known = [(row["points"], row[last]) for row in rows if row[last] > 0]
    return float(np.polyfit(*np.log(np.array(known)).T, 1)[0]) if len(known) > 1 else ""


def main():
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--mnist", metavar="FOLDER", help="of IDX files")
    options.add_argument("--draws", type=int, help="instead of those of each case")
    options.add_argument("--only", choices=CASES)
    options.add_argument("--record", action="store_true")
    options = options.parse_args()
    table = []
    for case, (model, sizes, draws) in CASES.items():
        name, _, method = case.partition(" ")
        if options.only not in (None, case) or (name == "mnist" and options.mnist is None):
            continue
        rows = []
        for n in sizes:
            whole, square = measured(name, model, n, options.draws or draws, options.mnist)
            limit = "" if square is None else float(np.sqrt(max(square, 0.0)))
            rows.append({"data": name, "method": method, "points": n})
            rows[-1] |= {"discrepancy": float(whole), "without columns": limit, "slope": ""}
            print(rows[-1], flush=True)
        rows[-1]["slope"] = slope(rows)
        print("slope", rows[-1]["slope"], flush=True)
        table += rows
    if options.record:
        with TABLE.open("w", newline="") as stream:
            out = csv.DictWriter(stream, list(table[0]), lineterminator="\n")
            out.writeheader()
            out.writerows(table)


if __name__ == "__main__":
    main()
