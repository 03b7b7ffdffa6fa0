"""The figures of the README: its picture, and its seconds, all from one run.

Run: python benchmarks/front.py picture [--data digits] [--figure docs/images/front.png]
     python benchmarks/front.py seconds [--small]

The picture is one set by four methods with their own defaults. Below each stand the
trustworthiness of 15 neighbours and the rank correlation of distances with path lengths along the
data, as `audit` finds them for any picture. Seconds are those of fits of overlapping clouds in 50
dimensions (float32), each in a process of its own that fitted fewer points before, and of new
processes, whose compiled code is on disk.
"""

import subprocess
import sys
from pathlib import Path

import _harness as harness
import numpy as np
import pictures
from _data import draw

import heatsketch as hs
from heatsketch import plot

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def pca(X):
    from sklearn.decomposition import PCA

    return PCA(2).fit_transform(X)


METHODS = {
    "heatsketch": lambda X: hs.HeatEmbedding(random_state=0).fit_transform(X),
    "PCA": pca,
    "UMAP": pictures.umap,
    "t-SNE": pictures.tsne,
}


def draw_picture(arguments):
    X, label = draw(arguments.data, arguments.mnist)[:2]
    figure = plot.new_figure(11, 3.2)
    axes = figure.subplots(1, len(METHODS))
    for ax, (name, method) in zip(axes, METHODS.items(), strict=True):
        Y = np.asarray(method(X), dtype=float)
        judged = hs.audit(X, Y, random_state=0).quality
        trust, rank = judged.neighbors, judged.distances
        print(f"{name}: trustworthiness {trust:.3f}, rank correlation {rank:.3f}", flush=True)
        plot.scatter(Y, label, ax=ax, title=name, legend=False)
        ax.set(xticks=[], yticks=[])
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_xlabel(f"neighbours {trust:.2f}, distances {rank:.2f}")
    plot.save(figure, arguments.figure)


FITS = {
    "HeatSketch(32)": lambda: hs.HeatSketch(32, random_state=0),
    "HeatEmbedding()": lambda: hs.HeatEmbedding(random_state=0),
}
NEW, WARM = 10_000, 20_000
STARTS = {
    "import, HeatEmbedding": "import heatsketch as hs; hs.HeatEmbedding",
    "import, first picture of the digits": (
        "import heatsketch as hs; hs.HeatEmbedding().fit(hs.datasets.digits()[0])"
    ),
}


def fit(name, n):
    """Return the seconds of a fit and of placing new points, and the memory of the process."""
    X, _ = harness.draw("overlapping", n + NEW)
    FITS[name]().fit(X[: min(n, WARM)])
    seconds, model = harness.timed(lambda: FITS[name]().fit(X[:n]))
    placing, _ = harness.timed(lambda: model.transform(X[n:]))
    return {"seconds": seconds, "10,000 new points": placing, "peak MB": harness.peak_memory()}


def start(code):
    run = [sys.executable, "-c", code]
    subprocess.run(run, check=True, capture_output=True)
    return harness.timed(lambda: subprocess.run(run, check=True, capture_output=True))[0]


def measure_seconds(arguments):
    rows, table = [], ""
    for n in (3_000,) if arguments.small else (100_000, 1_000_000):
        for name in FITS:
            found = harness.run_apart(fit, name, n, limit=arguments.limit)
            rows.append({"what": name, "points": n} | found)
            table = harness.save("front", rows, arguments)
    rows += [{"what": what, "seconds": start(code)} for what, code in STARTS.items()]
    table = harness.save("front", rows, arguments)
    print(table)


def main():
    options = harness.parser(__doc__, limit=900.0)
    options.add_argument("what", choices=("picture", "seconds"))
    options.add_argument("--data", default="digits")
    options.add_argument("--mnist", help="folder with the test images of MNIST as IDX files")
    options.add_argument("--figure", type=Path, default=IMAGES / "front.png")
    arguments = options.parse_args()
    if arguments.what == "picture":
        draw_picture(arguments)
    else:
        measure_seconds(arguments)


if __name__ == "__main__":
    main()
