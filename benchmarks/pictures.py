"""What do pictures keep? HeatEmbedding beside PCA, diffusion map, t-SNE and UMAP.

Run: python benchmarks/pictures.py [MNIST_IDX_FOLDER] [-o docs] [--n N] [--seed S]

Embeds scikit-learn's digits and, with a folder, MNIST's test digits, and writes embeddings.csv and
images/embeddings.png (of the last data set) below the output folder. One reference measures all
methods: diffusion distances on the graph and at the time that HeatEmbedding(2) chose, through
a sketch of 1,024 columns that no method has seen. Needs matplotlib; UMAP is left out where
umap-learn is missing. Every method embeds a few points first, so that compiling is not timed.
"""

import argparse
import csv
import platform
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy
import sklearn
from defaults import label_agreement
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, trustworthiness

import heatsketch as hs
from heatsketch.metrics import row_distortion
from heatsketch.plot import scatter

NEIGHBORS = 10  # of trustworthiness, and of the accuracy
REFERENCE_COLUMNS = 1024  # a distance of the reference is within 2 % (one standard deviation)
WARM_UP = 200  # points
FORMATS = {
    "seconds": ".1f",
    "log L": ".2f",
    "within 2": ".3f",
    "within 1.5": ".3f",
    "Euclidean within 2": ".3f",
    "Euclidean within 1.5": ".3f",
    "trustworthiness": ".3f",
    "10-NN accuracy": ".3f",
}
FIELDS = ["data", "method", "k", *FORMATS]


def umap_learn():
    """Return umap-learn, or None where it is missing."""
    try:
        import umap
    except ImportError:
        return None
    return umap


def methods(time_chosen, seed):
    """Return name -> estimator, all but HeatEmbedding(2), which chooses the time."""
    diffused = {"time": time_chosen, "random_state": seed}
    umap = umap_learn()
    return {
        "PCA": PCA(2, random_state=seed),
        "DiffusionMap, k = 2": hs.DiffusionMap(2, **diffused),
        "DiffusionMap, k = 3": hs.DiffusionMap(3, **diffused),
        "t-SNE": TSNE(random_state=seed),
        **({"UMAP": umap.UMAP(random_state=seed)} if umap else {}),
        "HeatEmbedding, k = 3": hs.HeatEmbedding(3, **diffused),
    }


def timed(name, method, X):
    """Return the embedding and the seconds it took, after a run that compiles."""
    clone(method).fit_transform(X[:WARM_UP])
    started = time.perf_counter()
    Y = np.asarray(method.fit_transform(X), dtype=float)
    seconds = time.perf_counter() - started
    print(f"{name}: {seconds:.1f} s", file=sys.stderr)
    return Y, seconds


def reference(X, chosen, seed):
    """Return rows whose distances are the diffusion distances at the chosen time."""
    sketch = hs.HeatSketch(REFERENCE_COLUMNS, time=chosen, random_state=seed + 1)
    return sketch.fit_transform(np.asarray(X, dtype=float))


def measure(Y, F, X, labels, seed):
    """Return the figures of one embedding, in the order of FORMATS after the seconds."""
    diffusion, euclidean = (row_distortion(Y, rows, rng=seed) for rows in (F, X))
    return [
        diffusion.log_L,
        *(kept.within[factor] for kept in (diffusion, euclidean) for factor in (2.0, 1.5)),
        trustworthiness(X, Y, n_neighbors=NEIGHBORS),
        label_agreement(Y, labels),
    ]


def compare(data, X, labels, seed):
    """Return the rows of the table, the embeddings by name, and the time chosen."""
    first = hs.HeatEmbedding(2, random_state=seed)
    ours = timed("HeatEmbedding, k = 2", first, X)
    others = {name: timed(name, m, X) for name, m in methods(first.time_, seed).items()}
    embeddings = others | {"HeatEmbedding, k = 2": ours}
    F = reference(X, first.time_, seed)
    rows = []
    for name, (Y, seconds) in embeddings.items():
        figures = [seconds, *measure(Y, F, X, labels, seed)]
        written = map(format, figures, FORMATS.values())
        rows.append([data, name.split(",")[0], Y.shape[1], *written])
    return rows, {name: Y for name, (Y, _) in embeddings.items()}, first.time_


def panels(embeddings):
    """Return title -> points (n, 2): of three dimensions the first against each of the others."""
    found = {name: Y for name, Y in embeddings.items() if Y.shape[1] == 2}
    solid = embeddings["HeatEmbedding, k = 3"]
    found["HeatEmbedding, k = 3: coordinates 1 and 2"] = solid[:, :2]
    found["HeatEmbedding, k = 3: coordinates 1 and 3"] = solid[:, ::2]
    return found


def draw(embeddings, labels, path):
    """Draw a panel for each method, coloured by label, with one legend."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 7.6), dpi=110, layout="constrained")
    axes = figure.subplots(2, 4).ravel()
    for ax in axes:
        ax.set_axis_off()
    for ax, (title, Y) in zip(axes, panels(embeddings).items(), strict=False):
        scatter(Y, labels, title=title, ax=ax)
        legend = ax.get_legend()
        legend.remove()
    axes[-1].legend(legend.legend_handles, np.unique(labels), loc="center", ncols=2, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def write(rows, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        writer.writerows(rows)


def markdown(rows):
    heads = FIELDS[1:]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row[1:])) + " |" for row in rows)])


def versions():
    umap = umap_learn()
    return (
        f"heatsketch {hs.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, "
        f"umap-learn {umap.__version__ if umap else 'missing'}, Python {platform.python_version()}"
    )


def data_sets(folder, n):
    """Yield (name, X, labels); of MNIST the first n."""
    yield "digits", *hs.datasets.digits()
    if folder:
        X, labels = hs.datasets.mnist(folder)
        yield "mnist", X[:n], labels[:n]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", help="folder with MNIST's IDX files")
    parser.add_argument("-o", "--output", type=Path, default=Path("docs"))
    parser.add_argument("--n", type=int, help="MNIST digits, all 10,000 by default")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", "n_jobs value")  # UMAP with a seed runs on one thread
    print(versions())
    table = []
    for data, X, labels in data_sets(arguments.folder, arguments.n):
        rows, embeddings, time_chosen = compare(data, X, labels, arguments.seed)
        print(f"\n### {data}, {len(X):,} points, time {time_chosen:g}\n\n{markdown(rows)}")
        table += rows
    write(table, arguments.output / "embeddings.csv")
    draw(embeddings, labels, arguments.output / "images" / "embeddings.png")


if __name__ == "__main__":
    main()
