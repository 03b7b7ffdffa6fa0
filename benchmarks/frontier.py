"""What does a picture give up for its neighbours: distances against neighbours, by one parameter?

Run: python benchmarks/frontier.py FOLDER [--split unseen] [-o FILE.csv] [--figure FILE.svg]

FOLDER is that of `pictures.py prepare`, and keeps the pictures: those of heatsketch with weights of
neighbours from .03 to 10, those of DREAMS with weights of its pull (which is to principal
components, or to SQuaD-MDS), and one of each other method. Means over all sets of a split: rank
correlation of distances with path lengths, trustworthiness, and recall of ten neighbours, as in
`pictures.py`. A curve that passes above and right of another gives more of both.
"""

import argparse
import csv
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pictures

OURS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
PULLS = (0.03, 0.1, 0.3)
POINTS = ("t-SNE", "UMAP", "PaCMAP", "LocalMAP", "PHATE", "SQuaD hybrid", "DTNE")
SHOWN = ("rank", "euclidean", "trust", "recall", "knn")
CURVES = {
    "heatsketch": {a: f"heatsketch, a = {a}" for a in OURS},
    "DREAMS": {pull: f"DREAMS, {pull}" for pull in PULLS},
    "DREAMS, MDS": {pull: f"DREAMS, MDS, {pull}" for pull in PULLS},
}


MAKERS = {
    **{
        name: partial(pictures.heatsketch, neighbor_weight=a)
        for a, name in CURVES["heatsketch"].items()
    },
    **{name: partial(pictures.dreams, weight=w) for w, name in CURVES["DREAMS"].items()},
    **{
        name: partial(pictures.dreams, weight=w, to="MDS")
        for w, name in CURVES["DREAMS, MDS"].items()
    },
}


def means(folder, sets, method):
    """Return the means of the measures over sets; None where a picture is missing."""
    rows = []
    for name in sets:
        found = pictures.picture(folder, name, method)
        if found is None:
            return None
        rows.append(pictures.judge(pictures.load(folder, name), found["Y"]))
    return {key: float(np.nanmean([row[key] for row in rows])) for key in SHOWN}


def draw(rows, path):
    """Draw the distances of a picture against its neighbours: curves, and single methods."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 4), sharey=True)
    for ax, across in zip(axes, ("trust", "recall"), strict=True):
        for curve, names in CURVES.items():
            points = [(w, rows[name]) for w, name in names.items() if name in rows]
            if not points:
                continue
            xy = np.array([(row[across], row["rank"]) for _, row in points])
            ax.plot(*xy.T, "o-", lw=2.5 if curve == "heatsketch" else 1.2, ms=4, label=curve)
            for (weight, _), at in zip(points, xy, strict=True):
                ax.annotate(
                    f"{weight:g}", at, fontsize=7, xytext=(3, 3), textcoords="offset points"
                )
        for method in POINTS:
            if method in rows:
                x, y = rows[method][across], rows[method]["rank"]
                ax.plot(x, y, "k.", ms=5)
                ax.annotate(method, (x, y), fontsize=8, xytext=(4, -8), textcoords="offset points")
        ax.set_xlabel({"trust": "trustworthiness", "recall": "recall of 10 neighbours"}[across])
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("rank correlation of distances")
    axes[0].legend(fontsize=8, loc="lower left")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("folder", type=Path)
    options.add_argument("--split", choices=pictures.SPLITS, default="unseen")
    options.add_argument("--curves", nargs="*", default=list(CURVES), metavar="CURVE")
    options.add_argument("-o", "--output", type=Path, metavar="FILE.csv")
    options.add_argument("--figure", type=Path, metavar="FILE.svg")
    given = options.parse_args()
    sets = pictures.names(given.folder, given.split)
    pictures.METHODS.update(MAKERS)
    wanted = [name for curve in given.curves for name in CURVES[curve].values()]
    for name in sets:
        for method in wanted:
            pictures.embed(given.folder, name, method)
    rows = {}
    for method in (*MAKERS, *POINTS):
        row = means(given.folder, sets, method)
        if row is not None:
            rows[method] = row
            print(f"{method:24}" + "".join(f"{key:>10} {row[key]:.3f}" for key in SHOWN))
    if given.output:
        with given.output.open("w", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(["method", "sets", *SHOWN])
            for method, row in rows.items():
                table.writerow([method, len(sets), *(f"{row[key]:.4f}" for key in SHOWN)])
    if given.figure:
        draw(rows, given.figure)


if __name__ == "__main__":
    sys.exit(main())
