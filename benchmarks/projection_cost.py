"""What does learning the directions cost? Seconds per stage and memory of HeatEmbedding(3).

Run: python benchmarks/projection_cost.py [-n 25000 50000 100000] [-o docs/projection-cost.csv]

Points: `gaussian_clouds(n, n_labels=10, dim=50, separation=3)`, ten standard normal clouds in 50
dimensions whose centres are 4.2 standard deviations apart, so that they overlap in the neighbour
graph. HeatEmbedding(3, time=8): graph of 15 neighbours, sketch of 256 columns, learned projection.
Each n has a process of its own, for its peak memory, and embeds 3,000 points first, so that
compiling is not timed. The aim: the projection takes no longer than graph and sketch together.
"""

import argparse
import csv
import multiprocessing
import platform
import resource
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import heatsketch as hs

WARM_UP = 3_000  # points: beyond 2,048, so that the same code runs
FORMATS = {
    "points": "d",
    "graph s": ".1f",
    "sketch s": ".1f",
    "projection s": ".1f",
    "projection / (graph + sketch)": ".2f",
    "peak memory, MB": ".0f",
    "of which before, MB": ".0f",
    "pairs within 2": ".3f",
    "log L": ".2f",
}


def peak_memory():
    """Return the largest memory so far, in MB (Linux counts in KB, macOS in bytes)."""
    unit = 2**20 if platform.system() == "Darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def measure(n):
    """Return the figures for n points, in the order of FORMATS."""
    X, _ = hs.datasets.gaussian_clouds(n, n_labels=10, dim=50, separation=3.0, rng=0)
    hs.HeatEmbedding(3, time=8, random_state=0).fit(X[:WARM_UP])
    before = peak_memory()
    fitted = hs.HeatEmbedding(3, time=8, random_state=0).fit(X)
    graph = fitted.diagnostics_["affinity_seconds"]
    projection = fitted.projection_.seconds_
    sketch = fitted.diagnostics_["embed_seconds"] - projection
    share = projection / (graph + sketch)
    kept = fitted.distortion_
    memory = (peak_memory(), before)
    return [n, graph, sketch, projection, share, *memory, kept.within[2.0], kept.log_L]


def measure_apart(n):
    """Measure in a new process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(measure, n).result()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, nargs="+", default=[25_000, 50_000, 100_000])
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    print(
        f"heatsketch {hs.__version__}, NumPy {np.__version__}, Python {platform.python_version()}"
    )
    print("\n| " + " | ".join(FORMATS) + " |\n" + "|---" * len(FORMATS) + "|")
    rows = []
    for n in arguments.n:
        rows.append(list(map(format, measure_apart(n), FORMATS.values())))
        print("| " + " | ".join(rows[-1]) + " |", flush=True)
    if arguments.output:
        with arguments.output.open("w", newline="") as file:
            csv.writer(file).writerows([FORMATS, *rows])


if __name__ == "__main__":
    main()
