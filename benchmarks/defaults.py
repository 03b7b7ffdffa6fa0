"""Which defaults? Bandwidths, times, columns, neighbours and normalisations on four data sets.

Run: python benchmarks/defaults.py [--mnist IDX_FOLDER] [--seeds 3] [-o FILE]

Quality is the share of points whose label agrees with the majority of their 10 nearest neighbours
in the embedding (leave one out); on the Swiss roll, which has no labels, the share of the 10
nearest neighbours on the unrolled strip that are among the 10 nearest in the embedding. Prints one
Markdown table per question and writes every single figure as CSV.
"""

import argparse
import csv
import itertools
import platform
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import scipy
import sklearn
from _harness import mnist as mnist_digits
from sklearn.neighbors import NearestNeighbors

import heatsketch as hs

TIMES = (2, 4, 8, 16, 32)
COLUMNS = (8, 16, 32, 64, 128)
FEW, DEFAULT, MANY = 8, 32, 128  # columns at which every bandwidth and time is tried
NEIGHBORS = (8, 10, 15, 20, 30, 45)
NORMALIZATIONS = {
    "markov, alpha=1": {"normalization": "markov", "alpha": 1.0},
    "markov, alpha=0.5": {"normalization": "markov", "alpha": 0.5},
    "markov, alpha=0": {"normalization": "markov", "alpha": 0.0},
    "symmetric": {"normalization": "symmetric"},
    "bistochastic": {"normalization": "bistochastic"},
}


def data_sets(mnist):
    """Yield (name, X, score of an embedding)."""
    X, labels = hs.datasets.digits()
    yield "digits", X, lambda F: label_agreement(F, labels)
    X, strip = hs.datasets.swiss_roll(2000, rng=0)
    yield "roll", X, lambda F: neighbor_recall(F, strip)
    X, labels = hs.datasets.gaussian_clouds(2000, n_labels=10, dim=50, separation=3.0, rng=0)
    yield "clusters", X, lambda F: label_agreement(F, labels)
    if mnist:
        X, labels = mnist_digits(mnist)
        yield "mnist", X, lambda F: label_agreement(F, labels)


def neighbors(F, k=10):
    return NearestNeighbors(n_neighbors=k).fit(F).kneighbors(return_distance=False)


def label_agreement(F, labels):
    votes = labels[neighbors(F)]
    counts = np.stack([(votes == label).sum(axis=1) for label in np.unique(labels)], axis=1)
    return float(np.mean(np.unique(labels)[counts.argmax(axis=1)] == labels))


def neighbor_recall(F, truth):
    pairs = zip(neighbors(F), neighbors(truth), strict=True)
    return float(np.mean([len(set(found) & set(true)) / len(true) for found, true in pairs]))


def bandwidths(X):
    """Yield (name, parameters) for the bandwidth rules, where they are affordable."""
    epsilon = hs.ksum(X).epsilon
    rules = {"ksum / 4": epsilon / 4, "ksum": epsilon, "4 ksum": 4 * epsilon}
    rules |= {rule: rule for rule in ("self-tuning", "median", "nearest")}
    for affinity, (name, value) in itertools.product(("knn", "dense"), rules.items()):
        yield f"{affinity}, {name}", {"affinity": affinity, "epsilon": value}


class Table:
    """Mean over seeds of every figure, by question, setting and data set."""

    def __init__(self):
        self.scores = defaultdict(list)

    def measure(self, question, settings, data, score, X, **parameters):
        """Fit once for all times, and note the score of each."""
        times = parameters.pop("time", (8,))
        F = hs.HeatSketch(time=list(times), **parameters).fit_transform(X)
        for t, block in zip(times, np.split(F, len(times), axis=1), strict=True):
            self.scores[question, settings, f"t = {t}" if len(times) > 1 else "score", data].append(
                score(block)
            )

    def write(self, path):
        with Path(path).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["question", "setting", "column", "data", "mean", "sd", "seeds"])
            for key, values in self.scores.items():
                mean, sd = np.mean(values), np.std(values, ddof=min(1, len(values) - 1))
                writer.writerow([*key, f"{mean:.4f}", f"{sd:.4f}", len(values)])

    def markdown(self, question):
        """Return one table: settings down, columns (or data sets) across."""
        keys = [key[1:] for key in self.scores if key[0] == question]
        heads = list(dict.fromkeys((data, column) for _, column, data in keys))
        lines = [
            "| setting | " + " | ".join(f"{d} {c}".replace(" score", "") for d, c in heads) + " |",
            "|---" * (len(heads) + 1) + "|",
        ]
        for setting in dict.fromkeys(key[0] for key in keys):
            found = [self.scores.get((question, setting, c, d)) for d, c in heads]
            cells = ["" if f is None else f"{np.mean(f):.3f}" for f in found]
            lines.append(f"| {setting} | " + " | ".join(cells) + " |")
        return "\n".join(lines)


def run(arguments):
    table = Table()
    for data, X, score in data_sets(arguments.mnist):
        table.scores["raw features", "raw features", "score", data].append(score(X))
        for layout in ("free", "linear"):  # the same for every seed
            Y = hs.HeatEmbedding(layout=layout, random_state=0).fit_transform(X)
            table.scores["picture", f"HeatEmbedding, {layout}", "score", data].append(score(Y))
        for seed in range(arguments.seeds):
            started = time.perf_counter()
            common = {"data": data, "score": score, "X": X, "random_state": seed}
            for name, parameters in bandwidths(X):
                slow = parameters["affinity"] == "dense" and len(X) > 5000  # a minute each
                if slow and seed > 0:
                    continue
                for k in (DEFAULT,) if slow else (FEW, DEFAULT, MANY):
                    settings = parameters | {"time": TIMES, "n_components": k}
                    question = f"bandwidth x time x columns ({data})"
                    table.measure(question, f"{name}, {k} columns", **common, **settings)
            for k in COLUMNS:
                table.measure("columns", f"{k} columns", **common, n_components=k)
            for m in NEIGHBORS:
                table.measure("neighbours", f"{m} neighbours", **common, n_neighbors=m)
            for name, parameters in NORMALIZATIONS.items():
                table.measure("normalisation", name, **common, **parameters)
            half = hs.HeatSketch(random_state=seed).fit(X[::2])
            table.scores["new points", "fitted on every second point", "score", data].append(
                score(half.transform(X))
            )
            print(f"{data} seed {seed}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mnist", help="folder with MNIST's IDX files")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--output", default="docs/benchmarks/defaults.csv")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # disconnected settings are part of the question
    table = run(arguments)
    table.write(arguments.output)
    print(
        f"heatsketch {hs.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, Python {platform.python_version()}\n"
    )
    for question in dict.fromkeys(key[0] for key in table.scores):
        print(f"### {question}\n\n{table.markdown(question)}\n")


if __name__ == "__main__":
    main()
