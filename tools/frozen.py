"""Numbers of the public names, recorded before a change of the code and compared after it.

    python tools/frozen.py record FILE.npz [PART ...]
    python tools/frozen.py compare FILE.npz [PART ...]

PART is a data set, "digits", or the beginning of a name, "digits/HeatSketch". Values agree to 1e-9
of their size, those of iterations to 1e-6; eigenvectors are compared by the inner products of their
rows, which know no signs, and learned maps by their quality. Data with ties (marked "ties") may
change when the rule that breaks ties does. "free" has free layouts, whose every bit follows from
the bits before it; "card" has fits on the stand-in for a device of the tests, where torch is. It
takes two minutes. "large", a roll of 50,000 points, is made only where it is a PART.
"""

import argparse
import inspect
import sys
import warnings
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.neighbors import KNeighborsClassifier

import heatsketch as hs

TOLERANCE = {"value": 1e-9, "iterated": 1e-6}
PLAUSIBLE = {"within": 0.02, "log_L": 0.3, "accuracy": 0.01}  # changes of a learned map that may be
TIED = ("digits", "integers", "words")


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


def words():
    """Docstrings of the standard library as TF-IDF, a label for each module."""
    modules = "argparse ast asyncio ctypes datetime decimal email.message http.client json logging"
    modules += " pathlib random shutil socket sqlite3 subprocess tarfile unittest zipfile"
    texts = {}
    for number, name in enumerate(modules.split()):
        module = __import__(name, fromlist=["_"])
        for owner in [module, *(o for _, o in inspect.getmembers(module, inspect.isclass))]:
            for _, member in inspect.getmembers(owner, callable):
                if len((inspect.getdoc(member) or "").split()) > 12:
                    texts.setdefault(member.__doc__, number)
    found = TfidfVectorizer(min_df=3, stop_words="english").fit_transform(filter(None, texts))
    return found, np.array([number for text, number in texts.items() if text])


def integers():
    rng = np.random.default_rng(3)
    labels = np.arange(500) % 2
    return rng.poisson(0.5 + labels[:, None], (500, 8)).astype(float), labels


def mixture():
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 3, 600)
    means = np.array([[0.0, 0, 0], [3, 0, 0], [0, 3, 1]])
    return means[labels] + rng.standard_normal((600, 3)) * [1, 0.6, 0.3], labels


def edges(n=400):
    """A ring with chords, weighted: the graph."""
    rng = np.random.default_rng(5)
    i = np.arange(n)
    rows, columns = np.r_[i, rng.integers(0, n, 300)], np.r_[(i + 1) % n, rng.integers(0, n, 300)]
    keep = rows != columns
    W = sparse.coo_matrix((rng.random(keep.sum()) + 0.5, (rows[keep], columns[keep])), (n, n))
    return sparse.csr_matrix(W.maximum(W.T))


def gram(Y):
    rows = np.linspace(0, len(Y) - 1, min(200, len(Y))).astype(int)
    return Y[rows] @ Y[rows].T


def quality(estimator, X, labels):
    """Fit a learned map; return how good it is."""
    Y = estimator.fit_transform(X)
    near = KNeighborsClassifier(10).fit(Y[::2], labels[::2])
    found = {"accuracy": near.score(Y[1::2], labels[1::2])}
    if distortion := getattr(estimator, "distortion_", None):
        found |= {"log_L": distortion.log_L, "within": distortion.within[1.5]}
    return found


def fitted(estimator, X, new):
    return {"embedding": estimator.fit_transform(X), "new": estimator.transform(new)}


def named(data, calls, kind="value"):
    return [(kind, f"{data}/{title}", make) for title, make in calls.items()]


def of_points(name, X, labels, classical):
    """Return the calls for a data set: estimators, scales, functions, intervals."""
    n = X.shape[0]
    some = np.random.default_rng(0).permutation(n)[: min(n, 500)]
    Z, new = X[np.sort(some)], X[:40] * 0.999
    small = X[np.sort(some[:300])]
    dense = small.toarray() if sparse.issparse(small) else small
    groups = labels[np.sort(some[:300])]

    def sketch(data, **options):
        return partial(fitted, hs.HeatSketch(16, random_state=0, **options), data, new)

    def diffusion_map(data, **options):
        return partial(hs.DiffusionMap(4, random_state=0, **options).fit_transform, data)

    calls = {
        "HeatSketch": sketch(X),
        "HeatSketch heat": sketch(X, filter="heat", time=3.5),
        "HeatSketch 2, 300": sketch(X, time=[2, 300]),
        "HeatSketch signs": sketch(X, kind="rademacher"),
        "HeatSketch radius": sketch(Z, affinity="radius", epsilon="ksum"),
        "ksum": lambda: hs.ksum(dense),
        "connecting_epsilon": lambda: hs.connecting_epsilon(small),
        "intrinsic_dimension": lambda: hs.intrinsic_dimension(Z),
        "density": lambda: hs.density_estimate(dense, "median", 2.0),
    }
    choices = {
        "affinity": ("dense", "variable"),
        "normalization": ("symmetric", "bistochastic"),
        "metric": ("cosine", "correlation"),
    }
    for option, values_of in choices.items():
        calls |= {f"HeatSketch {value}": sketch(Z, **{option: value}) for value in values_of}
    for rule in ("ksum", "median", "nearest"):
        calls[f"HeatSketch dense {rule}"] = sketch(Z, affinity="dense", epsilon=rule)
    maps = {
        "DiffusionMap ": diffusion_map(X),
        "DiffusionMap heat 4.0": diffusion_map(Z, filter="heat", time=4.0),
        "DiffusionMap 0.0 dense": diffusion_map(Z, alpha=0.0, affinity="dense"),
    }
    near = hs.NearIsometricProjection(3, random_state=0)
    learned = {
        "HeatEmbedding": lambda: quality(
            hs.HeatEmbedding(2, layout="linear", random_state=0), X, labels
        ),
        "NearIsometricProjection": lambda: quality(
            near, hs.HeatSketch(16, random_state=0).fit_transform(Z), labels[np.sort(some)]
        ),
    }
    found = named(name, calls) + named(name, maps, "rows") + named(name, learned, "map")
    found += of_functions(name, small, dense) + of_intervals(name, small, dense)
    return found + (of_classical(name, dense, groups) if classical else [])


def of_functions(name, points, X):
    """Return calls of affinity, normalisations, sketch, eigenpairs, distances, metrics."""

    def diffusion(**options):
        return hs.diffusion(points, **options)

    def kernel():
        return hs.gaussian_affinity(X, "median")

    def spectrum():
        found = hs.eigh(diffusion(), 6, rng=0)
        return {"values": found.values, "rows": gram(found.vectors)}

    noisy = X[:, :2] + 0.1 * X[:, 2:4]
    parts = np.arange(len(X)) % 3
    bank = [hs.Power(2), hs.Power(8)]
    filters = (hs.Power(0), hs.Power(3), hs.Power(500), hs.Heat(2.5), hs.Heat(700))
    calls = {
        "gaussian_affinity": kernel,
        "symmetric_normalize": lambda: hs.symmetric_normalize(kernel()),
        "bistochastic_normalize": lambda: hs.bistochastic_normalize(kernel()),
        "markov_normalize": lambda: hs.markov_normalize(kernel()),
        "diffusion.measure": lambda: diffusion().expand(diffusion().measure),
        "sketch bank": lambda: np.hstack(hs.sketch(diffusion(), bank, 4, rng=0)),
        "diffusion_distance power": lambda: hs.diffusion_distance(diffusion(), 8),
        "diffusion_distance heat": lambda: hs.diffusion_distance(diffusion(), 5.0, filter="heat"),
        "distortion": lambda: hs.distortion(noisy, hs.diffusion_distance(diffusion())),
        "trustworthiness": lambda: hs.metrics.trustworthiness(X, X[:, :3]),
        "continuity": lambda: hs.metrics.continuity(X, X[:, :3]),
        "knn_accuracy": lambda: hs.metrics.knn_accuracy(X, parts),
        "row_distortion": lambda: hs.metrics.row_distortion(X[:, :4], X),
        "stability": lambda: hs.metrics.stability([X[:, :3], X[:, 1:4]]),
    }
    calls |= {f"sketch {f}": lambda f=f: hs.sketch(diffusion(), f, 8, rng=0) for f in filters}
    trace = {"heat_trace": lambda: hs.heat_trace(diffusion(), [1, 4, 16], rng=0)}
    return named(name, calls) + named(name, {"eigh": spectrum} | trace, "iterated")


def of_intervals(name, points, X):
    """Return calls for error bars, discrepancies, confidences, pseudotime."""

    def model():
        return hs.HeatSketch(32, random_state=0).fit(points)

    def other():
        return hs.diffusion(points, n_neighbors=20)

    def apart(Y):
        return np.linalg.norm(Y[0] - Y[1])

    def size(Y):
        return np.linalg.norm(Y[0])

    i, u = np.arange(20), hs.uncertainty
    halves, few = (X[::2], X[1::2] + 0.1), {"n_resamples": 20}
    sizes = {"n_components": 64, "n_permutations": 99, "rng": 0}
    calls = {
        "columns_for": lambda: hs.columns_for(0.1, 100),
        "distance_interval": lambda: u.distance_interval(model().embedding_, i, i + 20),
        "neighbor_confidence": lambda: u.neighbor_confidence(model(), **few),
        "sketch_interval": lambda: hs.sketch_interval(model(), apart, rng=0, **few),
        "data_interval": lambda: hs.data_interval(model(), points, size, rng=0, **few),
        "diffusion_discrepancy": lambda: hs.diffusion_discrepancy(
            hs.diffusion(points), other(), rng=0
        ),
        "sample_discrepancy": lambda: u.sample_discrepancy(*halves, **sizes),
        "pseudotime": lambda: model().pseudotime(3),
        "novelty": lambda: model().novelty(points[:20] * 1.2),
    }
    return named(name, calls)


def of_classical(name, X, labels):
    """Return calls of the classical methods: inner products of rows, of descents the quality."""
    linear = ("PCA", "ClassicalMDS", "LandmarkMDS", "Isomap", "LandmarkIsomap", "LaplacianEigenmap")
    seed = {"LandmarkMDS": {"random_state": 0}, "LocallyLinearEmbedding": {"random_state": 0}}
    classical = vars(hs.classical)
    calls = {
        f"classical.{m}": partial(classical[m](2, **seed.get(m, {})).fit_transform, X)
        for m in (*linear, "LocallyLinearEmbedding", "MetricMDS")
    }
    discriminants = {"FisherDiscriminant": labels == labels[0], "MultipleDiscriminant": labels}
    calls |= {
        f"classical.{m}": lambda m=m, g=g: classical[m](shrinkage=0.1).fit(X, g).transform(X)
        for m, g in discriminants.items()
    }
    descents = {m: classical[m](n_iter=300, random_state=0) for m in ("SNE", "TSNE")}
    maps = {f"classical.{m}": partial(quality, made, X, labels) for m, made in descents.items()}
    return named(name, calls, "rows") + named(name, maps, "map")


def of_graph():
    W, given = edges(), {"affinity": "precomputed", "random_state": 0}
    calls = {
        "HeatSketch": lambda: hs.HeatSketch(16, **given).fit_transform(W),
        "heat_trace": lambda: hs.heat_trace(hs.Diffusion.from_affinity(W), [2.0], rng=0),
        "symmetric_normalize": lambda: hs.symmetric_normalize(W) @ np.eye(W.shape[0], 3),
    }
    rows = {"DiffusionMap": lambda: hs.DiffusionMap(4, **given).fit_transform(W)}
    blocks = np.arange(400) // 100
    learned = {
        "HeatEmbedding": lambda: quality(hs.HeatEmbedding(2, layout="linear", **given), W, blocks)
    }
    return named("graph", calls) + named("graph", rows, "rows") + named("graph", learned, "map")


def of_mixture():
    X, _ = mixture()
    weights, means = [0.5, 0.3, 0.2], np.array([[0.0, 0, 0], [3, 0, 0], [0, 3, 1]])
    covariances = [np.diag([1, 0.36, 0.09])] * 3
    model = hs.MixtureDiffusion(4, epsilon=0.5, random_state=0)
    kernel = hs.MixtureKernel(weights, means, covariances, 0.5)
    calls = {
        f"MixtureKernel.{name}": partial(getattr(kernel, name), *points)
        for points, names in (
            ((X[:30], X[30:60]), ("kernel", "transition_density", "squared_distance")),
            ((X[:30],), ("stationary", "anomaly_score")),
        )
        for name in names
    }
    rows = {"MixtureDiffusion": lambda: model.fit_transform(X)}
    return named("mixture", rows, "rows") + named("mixture", calls)


def pictured(estimator, X, new, **given):
    """Fit a free layout; return places, places of new points, slopes, judgement."""
    found = {"embedding": estimator.fit_transform(X, **given), "new": estimator.transform(new)}
    found["sensitivity"] = estimator.sensitivity(new[:5])
    return found | {"quality": estimator.quality_, "log_L": estimator.distortion_.log_L}


def of_free_layouts():
    """Return calls for pictures: kinds of data, options, weights, two and three components."""
    seed = {"random_state": 0}
    (D, _), (R, _), (C, _) = digits(), roll(700), clusters()
    counts, _ = integers()
    weights = np.random.default_rng(6).random(len(C)) + 0.5
    calls = {
        "digits": (D[:900], {}, {}),
        "roll": (R, {}, {}),
        "roll 3": (R, {"n_components": 3}, {}),
        "clusters": (C, {}, {}),
        "clusters weighted": (C, {}, {"sample_weight": weights}),
        "clusters float32": (C.astype(np.float32), {}, {}),
        "clusters no spread": (C, {"spread": 0}, {}),
        "clusters no paths": (C, {"path_weight": 0}, {}),
        "clusters neighbors": (C, {"neighbor_weight": 0.6}, {}),
        "few": (R[:40], {}, {}),
        "integers": (counts, {}, {}),
        "linear": (C, {"layout": "linear", "n_components": 4}, {}),
        "linear accumulated": (R, {"layout": "linear", "n_components": 8, "time": 4}, {}),
    }
    calls = {
        name: partial(pictured, hs.HeatEmbedding(**options, **seed), X, X[:30] * 1.001, **given)
        for name, (X, options, given) in calls.items()
    }
    W = edges()
    calls["graph"] = lambda: hs.HeatEmbedding(affinity="precomputed", **seed).fit_transform(W)
    calls["initialization"] = lambda: hs.initialization(C, rng=0)
    return named("free", calls)


def of_others():
    """Return calls for tables, mixtures, audits, markers, comparisons."""
    X, groups = clusters()
    small, picture = X[::3], X[::3, :2]
    D = digits()[0][:400]
    gaps = np.where(np.random.default_rng(7).random(X.shape) < 0.05, np.nan, X)

    def mixture_model(**options):
        model = hs.MixtureDiffusion(4, random_state=0, **options).fit(X)
        return {"rows": gram(model.transform(X[:50])), "epsilon": model.epsilon_}

    def updated():
        model = hs.HeatSketch(8, random_state=0).fit(X, ids=np.arange(len(X)))
        return model.update(X[:20] + 0.1, ids=np.arange(20) + 1_000).embedding_

    def table():
        import pandas as pd

        frame = pd.DataFrame({"x": X[:, 0], "g": pd.Categorical(groups), "w": X[:, 1].round()})
        return hs.TableEncoder().fit_transform(frame)

    calls = {
        "MixtureDiffusion": mixture_model,
        "MixtureDiffusion taylor": lambda: mixture_model(features="taylor"),
        "TableEncoder": table,
        "audit": lambda: hs.audit(small, picture, labels=groups[::3], random_state=0),
        "markers": lambda: hs.markers(X, groups == 0),
        "gaps": lambda: hs.HeatSketch(8, random_state=0).fit_transform(gaps),
        "gaps free": lambda: hs.HeatEmbedding(random_state=0).fit_transform(gaps),
        "inverse": lambda: (model := hs.HeatSketch(16, random_state=0).fit(D)).inverse_transform(
            model.embedding_[:20]
        ),
        "update": updated,
        "weights": lambda: (
            hs.HeatSketch(8, random_state=0).fit(X, sample_weight=np.arange(len(X)) % 3).embedding_
        ),
        "local_maps": lambda: hs.HeatSketch(8, random_state=0).fit(X).sensitivity(X[:5] * 1.01),
        "shortest": lambda: hs.classical.Isomap(3).fit(D).transform(D[:20] * 0.99),
        "NonmetricMDS": lambda: hs.classical.NonmetricMDS(2).fit_transform(D[:120]),
        "LLE": lambda: (
            hs.classical.LocallyLinearEmbedding(2, random_state=0).fit(D).reconstruction_error_
        ),
    }
    return named("others", calls)


def of_a_card():
    """Return calls for fits on the stand-in for a device, or none where torch is missing."""
    if not find_spec("torch"):
        return []
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from problems.card import card

    (C, _), (R, _) = clusters(), roll(700)

    def there(make, X, **options):
        with card():
            model = make(random_state=0, device="cuda", **options).fit(X)
            return {"embedding": model.embedding_, "new": model.transform(X[:20] * 1.001)}

    calls = {
        "HeatSketch": partial(there, hs.HeatSketch, C, n_components=8),
        "HeatSketch roll": partial(there, hs.HeatSketch, R, n_components=8, time=30),
        "HeatEmbedding": partial(there, hs.HeatEmbedding, C),
        "HeatEmbedding roll": partial(there, hs.HeatEmbedding, R),
        "HeatEmbedding linear": partial(there, hs.HeatEmbedding, R, layout="linear"),
    }
    rows = {"DiffusionMap": lambda: there(hs.DiffusionMap, C, n_components=4)["embedding"]}
    return named("card", calls, "iterated") + named("card", rows, "rows")


def of_many_points():
    """Return calls for approximate neighbours and compiled products."""
    (X, labels), seed = roll(50_000), {"random_state": 0}
    sketch = {"HeatSketch": lambda: hs.HeatSketch(16, **seed).fit_transform(X)[::50]}
    rows = {"DiffusionMap": lambda: hs.DiffusionMap(8, **seed).fit_transform(X)}
    learned = {
        "HeatEmbedding": partial(quality, hs.HeatEmbedding(2, layout="linear", **seed), X, labels)
    }
    return named("large", sketch) + named("large", rows, "rows") + named("large", learned, "map")


SETS = {"digits": digits, "roll": roll, "clusters": clusters, "mixture": mixture}
SETS |= {"words": words, "integers": integers}
DEFAULT = ("graph", "free", "others", "card", *SETS)


def all_calls():
    """Return (kind, name, call) of all that is recorded."""
    found = of_graph() + of_mixture() + of_free_layouts() + of_others() + of_a_card()
    found += of_many_points()
    for name, make in SETS.items():
        found += of_points(name, *make(), classical=name in ("digits", "clusters"))
    return found


def measure(parts):
    """Return arrays by "kind|name" of names that begin with a part; by default all but "large"."""
    arrays = {}
    for kind, name, make in all_calls():
        if not name.startswith(tuple(parts or DEFAULT)):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = make()
        except Exception as error:  # a name that has gone is a finding, too
            print(f"no value {name}: {type(error).__name__}: {str(error)[:120]}")
        else:
            if kind == "rows":
                kind, result = "iterated", gram(result)
            arrays |= flat(f"{kind}|{name}", result)
    return arrays


def flat(key, result):
    """Return an array by its key, or those of a dictionary, a tuple or a record by theirs."""
    if hasattr(result, "_asdict"):
        result = result._asdict()
    elif hasattr(result, "__dataclass_fields__"):
        result = {field: getattr(result, field) for field in result.__dataclass_fields__}
    elif isinstance(result, tuple) or (
        isinstance(result, list) and len({*map(np.shape, result)}) > 1
    ):
        result = dict(enumerate(result))
    if isinstance(result, dict):
        parts = [flat(f"{key}.{name}", part) for name, part in result.items()]
        return {name: array for part in parts for name, array in part.items()}
    value = np.asarray(result)
    return {key: value.astype(float)} if value.dtype.kind in "fiub" else {}


def difference(old, new):
    """Return the largest difference relative to the largest value; infinite where shapes differ."""
    if old.shape != new.shape or (np.isfinite(old) != np.isfinite(new)).any():
        return np.inf
    known = np.isfinite(old)
    size = np.abs(old[known]).max(initial=0.0)
    return float(np.abs(old[known] - new[known]).max(initial=0.0) / (size or 1.0))


def compare(old, arrays, parts):
    """Print what differs; return the number of differences that ties do not explain."""
    parts = tuple(parts or [f"{data}/" for data in DEFAULT])
    wrong, keys = 0, [key for key in sorted(old) if key.split("|", 1)[1].startswith(parts)]
    for key in keys:
        kind, name = key.split("|", 1)
        tied = " (ties)" if name.startswith(TIED) else ""
        if key not in arrays:
            print(f"gone     {name}")
        elif kind == "map":
            before, after = float(old[key]), float(arrays[key])
            worse = before - after if not name.endswith("log_L") else after - before
            if abs(worse) > PLAUSIBLE[name.rsplit(".", 1)[1]]:
                word = "worse" if worse > 0 else "better"
                print(f"{word:8s} {name}: {before:.3f} -> {after:.3f}{tied}")
                wrong += worse > 0 and not tied
        else:
            found = difference(old[key], arrays[key])
            if found > TOLERANCE[kind]:
                print(f"differs  {name}: {found:.1e}{tied}")
                wrong += not tied
    print(f"{len(keys)} values compared, {wrong} differ beyond what ties explain")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    arrays = measure(options.parts)
    if options.action == "compare":
        with np.load(options.file) as old:
            return compare(dict(old), arrays, options.parts) > 0
    np.savez_compressed(options.file, **arrays)
    return 0


if __name__ == "__main__":
    sys.exit(main())
