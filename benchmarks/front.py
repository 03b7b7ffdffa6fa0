"""Draw the first picture of the README: one set by four methods, two numbers below each.

Run: python benchmarks/front.py [--data digits] [-o docs/images/front.png]

Every method has its own defaults. Below a picture stand the trustworthiness of 15 neighbours and
the rank correlation of distances with path lengths along the data, as in `pictures.py`.
"""

import argparse
from pathlib import Path

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
    "PCA": pca,
    "UMAP": pictures.umap,
    "t-SNE": pictures.tsne,
    "heatsketch": lambda X: hs.HeatEmbedding(random_state=0).fit_transform(X),
}


def numbers(X, Y):
    """Return the trustworthiness of a picture, and its rank correlation with path lengths."""
    rng = np.random.default_rng(0)
    n = len(X)
    i = np.sort(rng.choice(n, pictures.SOURCES, replace=False))
    targets = np.array(
        [rng.choice(np.delete(np.arange(n), each), pictures.TARGETS, False) for each in i]
    )
    trust = pictures.trustworthiness(pictures.ranks(X), Y)
    return trust, pictures.agreement(Y, i, targets, pictures.geodesics(X, i, targets))


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", default="digits")
    options.add_argument("--mnist", help="folder with the test images of MNIST as IDX files")
    options.add_argument("-o", "--output", type=Path, default=IMAGES / "front.png")
    arguments = options.parse_args()
    X, label = draw(arguments.data, arguments.mnist)[:2]
    figure = plot.new_figure(11, 3.4)
    axes = figure.subplots(1, len(METHODS))
    for ax, (name, method) in zip(axes, METHODS.items(), strict=True):
        Y = np.asarray(method(X), dtype=float)
        trust, rank = numbers(X, Y)
        print(f"{name}: trustworthiness {trust:.3f}, rank correlation {rank:.3f}", flush=True)
        plot.scatter(Y, label, ax=ax, title=name, legend=False)
        ax.set_xlabel(f"neighbours {trust:.2f}, distances {rank:.2f}")
    plot.save(figure, arguments.output)
    print(f"{arguments.output}; heatsketch {hs.__version__}")


if __name__ == "__main__":
    main()
