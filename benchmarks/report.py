"""Draw the results of the benchmarks: docs/images/benchmarks-*.png, from docs/benchmarks/*.csv.

Run: python benchmarks/report.py

`python docs/tables.py` puts their numbers into the pages.
"""

import csv

import _harness as harness
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

IMAGES = harness.DOCS.parent / "images"
OURS = "heatsketch"


def read(name):
    """Return the rows of a benchmark, [] where it has not been run."""
    path = harness.DOCS / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def grouped(rows, key):
    """Return {value of key: rows}, in the order in which they come."""
    groups = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups


def panels(groups, height):
    """Return a figure with one panel a group."""
    figure, axes = plt.subplots(
        1, len(groups), figsize=(5 * len(groups), height), squeeze=False, layout="constrained"
    )
    return figure, dict(zip(groups, axes[0], strict=True))


def draw_neighbors():
    """Draw seconds against recall, one panel a data set, one line a library."""
    rows = [row for row in read("neighbors") if row["seconds"] and row["recall"]]
    groups = grouped(rows, "data")
    if not groups:
        return
    figure, axes = panels(groups, 4)
    for data, ax in axes.items():
        for row in groups[data]:
            row["library"] = row["method"].split(",")[0]
        for library, own in grouped(groups[data], "library").items():
            points = sorted((float(row["recall"]), float(row["seconds"])) for row in own)
            ax.plot(
                *zip(*points, strict=True), "o-", lw=2.5 if library == OURS else 1, label=library
            )
        ax.set(xlabel="recall", ylabel="seconds", yscale="log", title=data)
        ax.legend(fontsize=7)
    figure.savefig(IMAGES / "benchmarks-neighbors.png", dpi=120)


def draw_growth():
    """Draw seconds of every stage against the number of points, in logarithms."""
    rows = [row for row in read("growth") if row["points"].isdigit() and row["seconds"]]
    groups = grouped(rows, "data")
    if not groups:
        return
    figure, axes = panels(groups, 4)
    for data, ax in axes.items():
        for stage in [name for name in rows[0] if name == "seconds" or name.endswith(" s")]:
            points = [(int(row["points"]), float(row[stage])) for row in groups[data] if row[stage]]
            if points:
                label = "all" if stage == "seconds" else stage.removesuffix(" s")
                ax.loglog(
                    *zip(*points, strict=True), "o-", lw=2 if label == "all" else 1, label=label
                )
        ax.set(xlabel="points", ylabel="seconds", title=data)
        ax.legend(fontsize=8)
    figure.savefig(IMAGES / "benchmarks-growth.png", dpi=120)


def draw_ratios():
    """Draw how many times longer than HeatSketch(32) every method takes."""
    rows = [row for row in read("end_to_end") if row["ratio"]]
    for row in rows:
        row["panel"] = f"{row['data']}, {int(row['points']):,} points"
    groups = grouped(rows, "panel")
    if not groups:
        return
    figure, axes = panels(groups, 4)
    for name, ax in axes.items():
        own = sorted(groups[name], key=lambda row: -float(row["ratio"]))
        bars = ax.barh([row["method"] for row in own], [float(row["ratio"]) for row in own])
        ax.bar_label(bars, fmt="%.3g", padding=3, fontsize=8)
        ax.set(xscale="log", xlabel="time, HeatSketch(32) = 1", title=name)
        ax.margins(x=0.15)
    figure.savefig(IMAGES / "benchmarks-end-to-end.png", dpi=120)


def main():
    IMAGES.mkdir(exist_ok=True)
    for draw in (draw_neighbors, draw_growth, draw_ratios):
        draw()


if __name__ == "__main__":
    main()
