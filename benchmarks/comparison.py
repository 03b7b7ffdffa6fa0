"""How do the methods of the library and those of other packages do on the same data?

Run: HEATSKETCH_MNIST=FOLDER python benchmarks/comparison.py [roll] [mnist]

Writes docs/benchmarks/compare_NAME.csv, a row for each method, and docs/images/compare/NAME.png,
a sheet of the best known ones. Methods of other packages are left out where these are missing.
"""

import csv
import os
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import _data
from PIL import Image

import heatsketch as hs
from heatsketch.comparison.run import HEADINGS, OTHERS, fitting

DOCS = Path(__file__).resolve().parents[1] / "docs"
SHEET = ("heat-embedding", "umap", "pacmap", "tsne", "phate", "diffusion-map", "isomap", "pca")
SEEDS = {"roll": 2, "mnist": 1}  # 1: without a measure of stability
DECIMALS = {"seconds": 1, "peak_bytes": 2, "log_L_diffusion": 2, "log_L_geodesic": 2}  # else 3


def roll():
    X, places = hs.datasets.swiss_roll(1600, rng=0)
    return X, places[:, 0]


def mnist():
    data = _data.mnist(10_000, Path(os.environ["HEATSKETCH_MNIST"]))
    return data.X, data.label


def texts(row):
    """Return the cells of a method; those without a value are empty."""
    values = row._asdict() | {"peak_bytes": max(row.peak_bytes, 0) / 1e9}
    cells = [f"{values[name]:.{DECIMALS.get(name, 3)}f}" for name in HEADINGS]
    return [row.method, *(cell.replace("nan", "") for cell in cells)]


def draw(result, path):
    """Write a sheet that is small enough for a page: fewer dots, and 256 colours."""
    figure = result.plot()
    figure.set_dpi(110)
    figure.savefig(path)
    Image.open(path).convert("RGB").quantize(256).save(path, optimize=True)


def main(names):
    for name in names or ("roll", "mnist"):
        X, labels = {"roll": roll, "mnist": mnist}[name]()
        n_classes = len(set(labels)) if name == "mnist" else 0
        installed = [
            other for other, (place, _) in OTHERS.items() if find_spec(place.split(".")[0])
        ]
        with hs.progress():
            result = hs.compare(
                X, [*fitting(len(X), n_classes), *installed], labels, seeds=SEEDS[name]
            )
        with (DOCS / f"benchmarks/compare_{name}.csv").open("w", newline="") as stream:
            rows = [["method", *HEADINGS.values()]]
            rows += map(texts, result.rows)
            csv.writer(stream, lineterminator="\n").writerows(rows)
        shown = sorted(
            (r for r in result.rows if r.method in SHEET), key=lambda r: SHEET.index(r.method)
        )
        draw(replace(result, rows=shown), DOCS / f"images/compare/{name}.png")
        print(result)


if __name__ == "__main__":
    main(sys.argv[1:])
