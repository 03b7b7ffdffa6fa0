"""What MixtureDiffusion() does by default, beside other choices of the same things.

Run: python benchmarks/mixture_defaults.py [--small] [--only digits cells]

Each model is fitted to two thirds of the points. "held-out log-likelihood" is the mean of
`score_samples` over the other third, in units of the data, less that of one Gaussian with the
covariance of the data (shrunk, by Ledoit and Wolf), in nats; "10-NN" the share of the other third
whose label their ten neighbours among the mapped training points have; "graph" the rank correlation
of distances in the embedding with diffusion distances (8 steps) of the default graph of the
training points, standardised for tables; "error %" the largest and the mean error of a distance
between points of the other third, in hundredths of the typical distance. Cells are those that
scanpy ships, and are left out without it.
"""

import tempfile
import warnings
from pathlib import Path

import _data
import _harness as harness
import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import multivariate_normal, spearmanr
from sklearn.covariance import LedoitWolf
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

import heatsketch as hs

TABLES = {"wine": load_wine, "iris": load_iris, "cancer": load_breast_cancer}
SETS = (*TABLES, "digits", "cells", "tree", "roll", "outliers")
PAIRS = 3000
OLD = {"epsilon": "ksum", "tolerance": 0.01, "max_features": 500}

# name -> (principal components that are taken first, whether whitened, options)
CHOICES = {
    "default": (None, False, {}),
    "before: ε ksum, tolerance 0.01": (None, False, OLD),
    "data as they are, ε median": (None, False, {"epsilon": "median"}),
    "10 components, not whitened, ε median": (10, False, {"epsilon": "median"}),
    "5 whitened": (5, True, {}),
    "15 whitened": (15, True, {"epsilon": "median"}),
    "10 whitened, ε ksum": (10, True, {"epsilon": "ksum"}),
    "10 whitened, ε median / 2": (10, True, {"epsilon": 0.5}),
    "10 whitened, 20 Gaussians": (None, False, {"mixture": 20}),
    "10 whitened, tolerance 0.01": (None, False, {"tolerance": 0.01, "max_features": 500}),
}


def draw(name, small):
    """Return points and labels; of a roll, which tenth of its length they are in."""
    if name in TABLES:
        X, label = TABLES[name](return_X_y=True)
    elif name == "outliers":
        X = np.random.default_rng(0).standard_t(3, size=(1500, 10))
        label = (X[:, 0] > 0).astype(int)
    else:
        data = _data.draw(name)
        X, label = np.asarray(data.X, dtype=float), data.label
        if label is None:
            length = data.coordinates[:, 0]
            label = np.digitize(length, np.quantile(length, np.linspace(0, 1, 11)[1:-1]))
    order = np.random.default_rng(0).permutation(len(X))[: 150 if small else None]
    return X[order], label[order]


def judged(name, choice, small):
    """Fit one choice to one set and return its row of the table."""
    warnings.simplefilter("ignore")
    X, label = draw(name, small)
    n = 2 * len(X) // 3
    components, whiten, options = CHOICES[choice]
    Z, volume = X, 0.0
    if components:
        pca = PCA(min(components, X.shape[1]), whiten=whiten, svd_solver="full").fit(X[:n])
        Z = pca.transform(X)
        if components < X.shape[1]:
            volume = None  # not a density of the data
        elif whiten:
            volume = -0.5 * np.log(pca.explained_variance_).sum()
    if isinstance(options.get("epsilon"), float):  # a share of the rule's
        share = options["epsilon"]
        options = options | {"epsilon": share * np.median(pdist(Z[:n], "sqeuclidean")) / 2}
    model = hs.MixtureDiffusion(random_state=0, **options)
    seconds, Y = harness.timed(model.fit_transform, Z[:n])
    new = model.transform(Z[n:])
    with tempfile.TemporaryDirectory() as folder:
        hs.save_model(model, Path(folder, "model"))
        size = Path(folder, "model").stat().st_size / 1024
    inside = model.whitening_(Z[n:]) if model.whitening_ is not None else Z[n:]
    exact = np.sqrt(model.kernel_.squared_distance(inside, inside))
    typical = model.diagnostics_["typical_distance"]
    off = np.abs(exact[np.triu_indices(len(new), 1)] - pdist(new)) / typical
    unit = np.abs(Y).max()  # distances of 1e-58 have no squares
    near = KNeighborsClassifier(10).fit(Y / unit, label[:n])
    row = {
        "data": f"{name} {X.shape[0]} × {X.shape[1]}",
        "choice": choice,
        "Gaussians": model.diagnostics_["mixture_components"],
        "coordinates": model.diagnostics_["n_features"],
        "kB": round(size),
        "seconds": seconds,
        "typical distance": typical,
        "error %": f"{100 * off.max():.2g}, {100 * off.mean():.2g}",
        "10-NN": round(near.score(new / unit, label[n:]), 3),
        "graph": agreement(X[:n], Y / unit, name in TABLES),
    }
    if volume is not None:
        found = float(np.mean(model.score_samples(Z[n:]))) + volume
        row["held-out log-likelihood"] = round(found - gaussian(X[:n], X[n:]), 2)
    return row


def gaussian(old, new):
    """Return the mean log-likelihood of new points under one Gaussian with shrunk covariance."""
    scale = np.maximum(old.std(axis=0), 1e-3 * old.std())
    fitted = LedoitWolf().fit(old / scale)
    law = multivariate_normal(fitted.location_, fitted.covariance_)
    return float(np.mean(law.logpdf(new / scale))) - float(np.log(scale).sum())


def agreement(X, Y, standardise):
    """Return the rank correlation with the diffusion distance of the default graph."""
    if standardise:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    i, j = np.random.default_rng(1).integers(0, len(X), (2, PAIRS))
    i, j = i[i != j], j[i != j]
    d = hs.diffusion_distance(hs.diffusion(X), time=8, pairs=(i, j))
    return round(float(spearmanr(d, np.linalg.norm(Y[i] - Y[j], axis=1))[0]), 2)


def main():
    arguments = harness.parser(__doc__, repeats=1).parse_args()
    rows = []
    for name in harness.chosen(SETS, arguments.only):
        for choice in CHOICES:
            try:
                row = judged(name, choice, arguments.small)
            except ImportError as error:
                row = {"data": name, "choice": choice, "note": f"needs {error.name}"}
            harness.say(str(row))
            rows.append(row)
    print(harness.save("mixture_defaults", rows, arguments))


if __name__ == "__main__":
    main()
