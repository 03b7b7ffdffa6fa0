"""Numbers of the public names, recorded before a change of the code and compared after it.

    python tests/frozen.py record FILE.npz [--large]
    python tests/frozen.py compare FILE.npz [--large] [PART ...]

PART is a data set, "digits", or the beginning of a name, "digits/HeatSketch". Values agree to 1e-9
of their size, those of iterations to 1e-6; eigenvectors are compared by the inner products of their
rows, which know no signs, and learned maps by their quality. Data with ties (marked "ties") may
change when the rule that breaks ties does. It takes a minute; `--large` adds a roll of 50,000.
"""

import argparse
import importlib.util
import inspect
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.neighbors import KNeighborsClassifier

import heatsketch as hs

TOLERANCE = {"value": 1e-9, "iterated": 1e-6}
PLAUSIBLE = {"within": 0.02, "log_L": 0.3, "accuracy": 0.01}  # changes of a learned map that may be
GRAM_ROWS = 200
TIED = ("integers", "words", "digits")


def digits():
    X, labels = hs.datasets.digits()
    return np.asarray(X, dtype=float), labels


def roll(n=3_000):
    rng = np.random.default_rng(1)
    angle, height = 1.5 * np.pi * (1 + 2 * rng.random(n)), 21 * rng.random(n)
    return np.c_[angle * np.cos(angle), height, angle * np.sin(angle)], angle > np.median(angle)


def clusters():
    rng = np.random.default_rng(2)
    centres = 40 * rng.standard_normal((3, 6))
    labels = np.repeat(np.arange(3), (300, 200, 60))
    return centres[labels] + rng.standard_normal((560, 6)), labels


def text():
    """Docstrings of the standard library as TF-IDF, a label for each module."""
    modules = (
        *("argparse", "ast", "asyncio", "collections", "ctypes", "datetime", "decimal"),
        *("difflib", "email.message", "fractions", "http.client", "inspect", "ipaddress"),
        *("json", "logging", "os", "pathlib", "pickle", "random", "re", "shutil", "socket"),
        *("sqlite3", "statistics", "string", "subprocess", "tarfile", "tempfile"),
        *("threading", "unittest", "urllib.request", "uuid", "xml.dom.minidom", "zipfile"),
    )
    texts, labels = [], []
    for number, name in enumerate(modules):
        module = __import__(name, fromlist=["_"])
        for owner in [module, *(o for _, o in inspect.getmembers(module, inspect.isclass))]:
            for _, member in inspect.getmembers(owner, callable):
                doc = getattr(member, "__doc__", None)
                if isinstance(doc, str) and len(doc.split()) > 12 and doc not in texts:
                    texts.append(doc)
                    labels.append(number)
    return TfidfVectorizer(min_df=3, stop_words="english").fit_transform(texts), np.array(labels)


def integers():
    rng = np.random.default_rng(3)
    labels = np.arange(500) % 2
    return rng.poisson(0.5 + labels[:, None], (500, 8)).astype(float), labels


def mixture():
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 3, 600)
    means = np.array([[0.0, 0, 0], [3, 0, 0], [0, 3, 1]])
    return means[labels] + rng.standard_normal((600, 3)) * [1, 0.6, 0.3], labels


def cells():
    """Return the cells that come with scanpy, if there is any; None otherwise."""
    found = importlib.util.find_spec("scanpy")
    path = found and Path(found.origin).parent / "datasets/10x_pbmc68k_reduced.h5ad"
    if not path or not path.exists():
        return None
    adata = importlib.import_module("anndata").read_h5ad(path)
    return np.asarray(adata.obsm["X_pca"], float), adata.obs["bulk_labels"].to_numpy().astype(str)


def edges(n=400):
    """A ring with chords, weighted: the graph."""
    rng = np.random.default_rng(5)
    i = np.arange(n)
    rows, columns = np.r_[i, rng.integers(0, n, 300)], np.r_[(i + 1) % n, rng.integers(0, n, 300)]
    keep = rows != columns
    W = sparse.coo_matrix((rng.random(keep.sum()) + 0.5, (rows[keep], columns[keep])), (n, n))
    return sparse.csr_matrix(W.maximum(W.T))


class Values:
    """Values by name; a call that fails is listed, not an error of the script."""

    def __init__(self, parts):
        self.parts, self.arrays, self.gone = parts, {}, {}

    def wanted(self, name):
        return not self.parts or any(name.startswith(part) for part in self.parts)

    def of(self, name, make, kind="value"):
        """Record what `make` returns: an array, or a dictionary or record of arrays."""
        if not self.wanted(name):
            return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = make()
        except Exception as error:  # a name that has gone is a finding, too
            self.gone[name] = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
            return
        self._keep(name, result, kind)

    def _keep(self, name, result, kind):
        if hasattr(result, "_asdict"):
            result = result._asdict()
        elif hasattr(result, "__dataclass_fields__"):
            result = {field: getattr(result, field) for field in result.__dataclass_fields__}
        elif isinstance(result, tuple):
            result = dict(enumerate(result))
        if isinstance(result, dict):
            for key, value in result.items():
                self._keep(f"{name}.{key}", value, kind)
        elif result is not None and not isinstance(result, str):
            value = result.toarray() if sparse.issparse(result) else np.asarray(result)
            if value.dtype.kind in "fiub":
                self.arrays[f"{kind}|{name}"] = value.astype(float)

    def rows(self, name, make, kind="iterated"):
        """Record inner products of rows: eigenvectors up to sign."""
        self.of(name, lambda: gram(make()), kind)


def gram(Y):
    rows = np.linspace(0, len(Y) - 1, min(GRAM_ROWS, len(Y))).astype(int)
    return Y[rows] @ Y[rows].T


def quality(estimator, X, labels):
    """Fit a learned map; return how good it is."""
    Y = estimator.fit_transform(X)
    distortion = getattr(estimator, "distortion_", None)
    accuracy = KNeighborsClassifier(10).fit(Y[::2], labels[::2]).score(Y[1::2], labels[1::2])
    found = {"accuracy": accuracy}
    if distortion is not None:
        found |= {"log_L": distortion.log_L, "within": distortion.within[1.5]}
    return found


def fitted(estimator, X, new):
    """Return the embedding, the coordinates of new points, and eigenvalues if there are any."""
    Y = estimator.fit_transform(X)
    found = {"embedding": Y, "new": estimator.transform(new)}
    if hasattr(estimator, "eigenvalues_"):
        found["eigenvalues"] = estimator.eigenvalues_
    return found


def of_points(values, name, X, labels, classical=True):
    """Record estimators, affinities, normalisations, filters, metrics, intervals of a data set."""
    n = X.shape[0]
    some = np.random.default_rng(0).permutation(n)[: min(n, 500)]
    Z, new = X[np.sort(some)], X[:40] * 0.999
    small = X[np.sort(some[:300])]
    dense = small.toarray() if sparse.issparse(small) else small
    groups = labels[np.sort(some[:300])]

    def sketch(**options):
        return hs.HeatSketch(16, random_state=0, **options)

    values.of(f"{name}/HeatSketch", lambda: fitted(sketch(), X, new))
    values.of(f"{name}/HeatSketch heat", lambda: fitted(sketch(filter="heat", time=3.5), X, new))
    values.of(f"{name}/HeatSketch 2, 300", lambda: fitted(sketch(time=[2, 300]), X, new))
    values.of(f"{name}/HeatSketch signs", lambda: fitted(sketch(kind="rademacher"), X, new))
    for affinity in ("dense", "variable"):
        values.of(
            f"{name}/HeatSketch {affinity}", lambda a=affinity: fitted(sketch(affinity=a), Z, new)
        )
    for normalization in ("symmetric", "bistochastic"):
        values.of(
            f"{name}/HeatSketch {normalization}",
            lambda m=normalization: fitted(sketch(normalization=m), Z, new),
        )
    for epsilon in ("ksum", "median", "nearest"):
        values.of(
            f"{name}/HeatSketch dense {epsilon}",
            lambda e=epsilon: fitted(sketch(affinity="dense", epsilon=e), Z, new),
        )
    values.of(
        f"{name}/HeatSketch radius",
        lambda: fitted(sketch(affinity="radius", epsilon="ksum"), Z, new),
    )
    for metric in ("cosine", "correlation"):
        values.of(f"{name}/HeatSketch {metric}", lambda m=metric: fitted(sketch(metric=m), Z, new))
    for options in ({}, {"filter": "heat", "time": 4.0}, {"alpha": 0.0, "affinity": "dense"}):
        title = " ".join(map(str, options.values()))
        values.rows(
            f"{name}/DiffusionMap {title}",
            lambda o=options: hs.DiffusionMap(4, random_state=0, **o).fit_transform(
                X if not o else Z
            ),
        )
    values.of(
        f"{name}/HeatEmbedding",
        lambda: quality(hs.HeatEmbedding(2, random_state=0), X, labels),
        "map",
    )
    values.of(
        f"{name}/NearIsometricProjection",
        lambda: quality(
            hs.NearIsometricProjection(3, random_state=0),
            sketch().fit_transform(Z),
            labels[np.sort(some)],
        ),
        "map",
    )
    values.of(f"{name}/ksum", lambda: hs.ksum(dense))
    values.of(f"{name}/connecting_epsilon", lambda: hs.connecting_epsilon(small))
    values.of(f"{name}/intrinsic_dimension", lambda: hs.intrinsic_dimension(Z))
    values.of(f"{name}/density", lambda: hs.density_estimate(dense, "median", 2.0))
    of_functions(values, name, small, dense)
    of_intervals(values, name, small, dense)
    if classical:
        of_classical(values, name, dense, groups)


def of_functions(values, name, points, dense):
    """Record the functions: affinity, normalisations, sketch, eigenpairs, distances, metrics."""

    def diffusion(**options):
        return hs.diffusion(points, **options)

    def kernel():
        return hs.gaussian_affinity(dense, "median")

    def spectrum():
        found = hs.eigh(diffusion(), 6, rng=0)
        return {"values": found.values, "rows": gram(found.vectors)}

    values.of(f"{name}/gaussian_affinity", kernel)
    values.of(f"{name}/symmetric_normalize", lambda: hs.symmetric_normalize(kernel()))
    values.of(f"{name}/bistochastic_normalize", lambda: hs.bistochastic_normalize(kernel()))
    values.of(f"{name}/markov_normalize", lambda: hs.markov_normalize(kernel()))
    values.of(f"{name}/diffusion.measure", lambda: diffusion().expand(diffusion().measure))
    values.of(f"{name}/eigh", spectrum, "iterated")
    for f in (hs.Power(0), hs.Power(3), hs.Power(500), hs.Heat(2.5), hs.Heat(700)):
        values.of(f"{name}/sketch {f}", lambda f=f: hs.sketch(diffusion(), f, 8, rng=0))
    values.of(
        f"{name}/sketch bank",
        lambda: np.hstack(hs.sketch(diffusion(), [hs.Power(2), hs.Power(8)], 4, rng=0)),
    )
    for filter, time in (("power", 8), ("heat", 5.0)):
        values.of(
            f"{name}/diffusion_distance {filter}",
            lambda f=filter, t=time: hs.diffusion_distance(diffusion(), t, filter=f),
        )
    values.of(
        f"{name}/distortion",
        lambda: hs.distortion(
            dense[:, :2] + 0.1 * dense[:, 2:4], hs.diffusion_distance(diffusion())
        ),
    )
    values.of(
        f"{name}/heat_trace",
        lambda: hs.heat_trace(diffusion(), [1, 4, 16], rng=0),
        "iterated",
    )
    for metric in ("trustworthiness", "continuity"):
        values.of(f"{name}/{metric}", lambda m=metric: getattr(hs.metrics, m)(dense, dense[:, :3]))
    values.of(
        f"{name}/knn_accuracy", lambda: hs.metrics.knn_accuracy(dense, np.arange(len(dense)) % 3)
    )
    values.of(f"{name}/row_distortion", lambda: hs.metrics.row_distortion(dense[:, :4], dense))
    values.of(f"{name}/share_within", lambda: hs.metrics.share_within(dense[:, :4], dense, 1.5))
    values.of(f"{name}/stability", lambda: hs.metrics.stability([dense[:, :3], dense[:, 1:4]]))


def of_intervals(values, name, points, dense):
    """Record error bars, discrepancies, confidences, pseudotime."""

    def model():
        return hs.HeatSketch(32, random_state=0).fit(points)

    i = np.arange(20)
    values.of(f"{name}/columns_for", lambda: hs.columns_for(0.1, 100))
    values.of(
        f"{name}/distance_interval",
        lambda: hs.uncertainty.distance_interval(model().embedding_, i, i + 20),
    )
    values.of(
        f"{name}/neighbor_confidence",
        lambda: hs.uncertainty.neighbor_confidence(model(), n_resamples=20),
    )
    values.of(
        f"{name}/sketch_interval",
        lambda: hs.sketch_interval(
            model(), lambda Y: np.linalg.norm(Y[0] - Y[1]), n_resamples=20, rng=0
        ),
    )
    values.of(
        f"{name}/data_interval",
        lambda: hs.data_interval(
            model(), points, lambda e, w=None: _size(e), n_resamples=20, rng=0
        ),
    )
    values.of(
        f"{name}/diffusion_discrepancy",
        lambda: hs.diffusion_discrepancy(
            hs.diffusion(points), hs.diffusion(points, n_neighbors=20), rng=0
        ),
    )
    values.of(
        f"{name}/sample_discrepancy",
        lambda: hs.uncertainty.sample_discrepancy(
            dense[::2], dense[1::2] + 0.1, n_components=64, n_permutations=99, rng=0
        ),
    )
    values.of(f"{name}/pseudotime", lambda: model().pseudotime(3))
    values.of(f"{name}/novelty", lambda: model().novelty(points[:20] * 1.2))


def _size(embedded):
    Y = getattr(embedded, "embedding_", embedded)
    return float(np.linalg.norm(np.asarray(Y)[0]))


def of_classical(values, name, X, labels):
    """Record the classical methods: inner products of rows, of descents the quality."""
    linear = ("PCA", "ClassicalMDS", "LandmarkMDS", "Isomap", "LandmarkIsomap", "LaplacianEigenmap")
    seed = {"LandmarkMDS": {"random_state": 0}, "LocallyLinearEmbedding": {"random_state": 0}}
    for method in (*linear, "LocallyLinearEmbedding", "MetricMDS"):
        values.rows(
            f"{name}/classical.{method}",
            lambda m=method: getattr(hs.classical, m)(2, **seed.get(m, {})).fit_transform(X),
        )
    discriminants = {"FisherDiscriminant": labels == labels[0], "MultipleDiscriminant": labels}
    for method, groups in discriminants.items():
        values.rows(
            f"{name}/classical.{method}",
            lambda m=method, g=groups: (
                getattr(hs.classical, m)(shrinkage=0.1).fit(X, g).transform(X)
            ),
        )
    for method in ("SNE", "TSNE"):
        values.of(
            f"{name}/classical.{method}",
            lambda m=method: quality(
                getattr(hs.classical, m)(n_iter=300, random_state=0), X, labels
            ),
            "map",
        )


def of_graph(values):
    W = edges()

    def sketch():
        return hs.HeatSketch(16, affinity="precomputed", random_state=0).fit_transform(W)

    values.of("graph/HeatSketch", sketch)
    values.rows(
        "graph/DiffusionMap",
        lambda: hs.DiffusionMap(4, affinity="precomputed", random_state=0).fit_transform(W),
    )
    values.of(
        "graph/heat_trace",
        lambda: hs.heat_trace(hs.Diffusion.from_affinity(W), [2.0], rng=0),
    )
    values.of(
        "graph/symmetric_normalize", lambda: hs.symmetric_normalize(W) @ np.eye(W.shape[0], 3)
    )
    values.of(
        "graph/HeatEmbedding",
        lambda: quality(
            hs.HeatEmbedding(2, affinity="precomputed", random_state=0), W, np.arange(400) // 100
        ),
        "map",
    )


def of_mixture(values):
    X, _ = mixture()
    weights, means = [0.5, 0.3, 0.2], np.array([[0.0, 0, 0], [3, 0, 0], [0, 3, 1]])
    covariances = [np.diag([1, 0.36, 0.09])] * 3
    values.of(
        "mixture/MixtureDiffusion",
        lambda: gram(hs.MixtureDiffusion(4, epsilon=0.5, random_state=0).fit_transform(X)),
        "iterated",
    )

    names = ("kernel", "transition_density", "squared_distance", "stationary", "anomaly_score")
    for name in names:
        points = (X[:30],) if name in ("stationary", "anomaly_score") else (X[:30], X[30:60])
        values.of(
            f"mixture/MixtureKernel.{name}",
            lambda m=name, p=points: getattr(hs.MixtureKernel(weights, means, covariances, 0.5), m)(
                *p
            ),
        )


def measure(parts, large):
    values = Values(parts)
    sets = {
        "digits": digits,
        "roll": roll,
        "clusters": clusters,
        "words": text,
        "integers": integers,
    }
    sets |= {"mixture": mixture, "cells": cells}
    for name, make in sets.items():
        if (
            any(part.split("/")[0].startswith(name) or name.startswith(part) for part in parts)
            or not parts
        ):
            found = make()
            if found is not None:
                of_points(values, name, *found, classical=name in ("digits", "clusters"))
    of_graph(values)
    of_mixture(values)
    if large:
        X, labels = roll(50_000)
        values.of(
            "large/HeatSketch", lambda: hs.HeatSketch(16, random_state=0).fit_transform(X)[::50]
        )
        values.rows(
            "large/DiffusionMap", lambda: hs.DiffusionMap(8, random_state=0).fit_transform(X)
        )
        values.of(
            "large/HeatEmbedding",
            lambda: quality(hs.HeatEmbedding(2, random_state=0), X, labels),
            "map",
        )
    return values


def difference(old, new):
    """Return the largest difference relative to the largest value; infinite where shapes differ."""
    if old.shape != new.shape or (np.isfinite(old) != np.isfinite(new)).any():
        return np.inf
    known = np.isfinite(old)
    size = np.abs(old[known]).max(initial=0.0)
    return float(np.abs(old[known] - new[known]).max(initial=0.0) / (size or 1.0))


def compare(old, values):
    """Print what differs; return the number of differences that ties do not explain."""
    wrong = 0
    for name in sorted(name for name in old if name.startswith("gone|")):
        values.gone.pop(name.removeprefix("gone|"), None)  # it had gone before
    for key in sorted(old):
        kind, name = key.split("|", 1)
        if kind == "gone" or not values.wanted(name):
            continue
        tied = " (ties)" if name.startswith(TIED) else ""
        if key not in values.arrays:
            call = next((call for call in values.gone if name.startswith(call)), None)
            print(f"gone     {name}: {values.gone.get(call, 'no value of this name')}")
        elif kind == "map":
            before, after = float(old[key]), float(values.arrays[key])
            worse = before - after if not name.endswith("log_L") else after - before
            if abs(worse) > PLAUSIBLE[name.rsplit(".", 1)[1]]:
                word = "worse" if worse > 0 else "better"
                print(f"{word:8s} {name}: {before:.3f} -> {after:.3f}{tied}")
                wrong += worse > 0 and not tied
        else:
            found = difference(old[key], values.arrays[key])
            if found > TOLERANCE[kind]:
                print(f"differs  {name}: {found:.1e}{tied}")
                wrong += not tied
    print(f"{len(old)} values compared, {wrong} differ beyond what ties explain")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    values = measure(options.parts, options.large)
    if options.action == "compare":
        with np.load(options.file) as old:
            return compare(dict(old), values) > 0
    for name, error in values.gone.items():
        print(f"no value {name}: {error}")
    gone = {f"gone|{name}": np.array(0.0) for name in values.gone}
    np.savez_compressed(options.file, **values.arrays, **gone)
    return 0


if __name__ == "__main__":
    sys.exit(main())
