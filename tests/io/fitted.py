"""Fitted models of every kind, and all that they say: shared by the tests of model files.

python tests/io/fitted.py FOLDER     load each model of a folder; write what it says beside it
"""

import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

import heatsketch as hs
from heatsketch import classical
from heatsketch.neighbors import NeighborIndex

OF_DISTANCES = {"ClassicalMDS", "Isomap", "LandmarkIsomap", "MetricMDS", "NonmetricMDS"}
OF_DISTANCES |= {"SNE", "TSNE"}


def points(n=50, d=3, seed=0):
    """Return two clouds, so that there are labels to find, with two equal points."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3 * (np.arange(n) % 2)[:, None]
    X[-1] = X[0]
    return X


X, NEW = points(), points(7, seed=1) + 0.1
LABELS = np.array(["a", "b"])[np.arange(len(X)) % 2]
K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 20)
NEW_K = np.exp(-((NEW[:, None] - X) ** 2).sum(axis=2) / 20)
D, NEW_D = np.sqrt(-np.log(K)), np.sqrt(-np.log(NEW_K))
COUNTS = sparse.csr_matrix(np.maximum(X, 0))
MIXTURE = hs.MixtureKernel([0.5, 0.5], X[:2], np.ones(2), 9.0)


def classical_models():
    """Return estimators of each classical method, of points and, where it can, of distances."""
    sne = {"perplexity": 9.0, "n_iter": 30, "early_iter": 10}
    more = {
        "TSNE": {"perplexity": 9.0, "n_iter": 250},
        "SNE": sne,
        "LandmarkIsomap": {"n_landmarks": 20},
    }
    found = {}
    for name in classical.__all__:
        kind = getattr(classical, name)
        if not isinstance(kind, type) or name == "DiffusionMap":
            continue
        known = kind().get_params()
        options = more.get(name, {}) | ({"random_state": 0} if "random_state" in known else {})
        found[name] = kind(**options), X, NEW
        if name in OF_DISTANCES:
            given = kind(**options, metric="precomputed")
            found[f"{name}-distances"] = given, D, NEW_D
    landmarks = classical.LandmarkMDS(2, landmarks=np.arange(9), metric="precomputed")
    found["LandmarkMDS-distances"] = landmarks, D[:, :9], NEW_D[:, :9]
    found["LaplacianEigenmap-radius"] = classical.LaplacianEigenmap(radius=4.0), X, NEW
    found["PCA-counts"] = classical.PCA(2), COUNTS, COUNTS[:9]
    return found


def sketches():
    """Return estimators (name -> (estimator, X, new points))."""
    make, few = hs.HeatSketch, {"n_components": 4, "random_state": 0}
    own = {
        "HeatSketch": make(**few),
        "HeatSketch-times": make(**few, time=(2, 8), kind="rademacher", normalization="symmetric"),
        "HeatSketch-variable": make(**few, affinity="variable", filter="heat", time=1.5),
        "HeatSketch-dense": make(**few, affinity="dense", epsilon=4.0),
        "HeatSketch-scales": make(**few, affinity="dense", normalization="bistochastic"),
        "HeatSketch-radius": make(**few, affinity="radius", epsilon=4.0),
        "HeatSketch-cosine": make(**few, metric="cosine"),
        "HeatSketch-index": make(**few, neighbors=NeighborIndex(X, n_neighbors=20)),
        "HeatEmbedding": hs.HeatEmbedding(random_state=0),
        "HeatEmbedding-time": hs.HeatEmbedding(1, time=4, random_state=np.random.default_rng(0)),
        "DiffusionMap": hs.DiffusionMap(random_state=0),
        "DiffusionMap-share": hs.DiffusionMap(0.9, random_state=0, affinity="dense"),
        "MixtureDiffusion": hs.MixtureDiffusion(mixture=2, tolerance=0.3, random_state=0),
        "MixtureDiffusion-time": hs.MixtureDiffusion(2, 20.0, 2, time=3, random_state=0),
        "NearIsometricProjection": hs.NearIsometricProjection(2, random_state=0),
    }
    found = {name: (model, X, NEW) for name, model in own.items()}
    given = make(**few, affinity="precomputed")
    found["HeatSketch-affinity"] = given, K, NEW_K
    found["HeatSketch-graph"] = given, sparse.csr_matrix(K), sparse.csr_matrix(NEW_K)
    found["HeatSketch-counts"] = make(**few), COUNTS, COUNTS[:9]
    found["HeatSketch-single"] = make(**few), X.astype(np.float32), NEW.astype(np.float32)
    found["TableEncoder"] = hs.TableEncoder(), X, NEW
    found["HeatSketch-mixture"] = given, hs.Diffusion.from_mixture(X, MIXTURE), NEW
    return found


def fitted():
    """Yield (name, fitted model, new points) of every kind."""
    for name, (model, own, new) in (sketches() | classical_models()).items():
        yield name, fit(model, own), new


def fit(model, own):
    return type(model)(**model.get_params(deep=False)).fit(own, LABELS)


def said(model, new):
    """Return all that a model says: of new points, of pairs, and in its attributes."""
    found = {name: item for name, item in vars(model).items() if name.endswith("_")}
    kept = (np.ndarray, np.generic, int, float, str, dict, list, tuple, type(None))
    found = {name: item for name, item in found.items() if isinstance(item, kept)}
    found["columns"] = list(model.get_feature_names_out())
    if new is not None and hasattr(model, "transform"):
        found["new"] = model.transform(new)
        found["one"] = model.transform(new[:1])
    for name in ("novelty", "score_samples"):
        if new is not None and hasattr(model, name):
            found[name] = getattr(model, name)(new)
    is_given = "precomputed" in map(str, model.get_params().values()) or sparse.issparse(new)
    if hasattr(model, "inverse_transform") and new is not None and not is_given:
        found["back"] = model.inverse_transform(model.transform(new))
    if hasattr(model, "quality_"):
        found["judged"] = model.quality_, model.distortion_
    if hasattr(model, "distance"):
        found["distance"] = tuple(model.distance(0, [1, 2], **at(model)))
        found["confidence"] = model.neighbor_confidence_
    if hasattr(model, "diffusion_"):
        found["variance"] = model.explained_diffusion_variance_ratio_
        found["distances"] = hs.diffusion_distance(model.diffusion_, 2, pairs=([0, 1], [2, 3]))
    return found


def at(model):
    return {} if np.ndim(model.time) == 0 else {"time": model.time[-1]}


def main(folder):
    warnings.simplefilter("ignore")
    for path in sorted(Path(folder).glob("*.model")):
        new = pickle.loads(path.with_suffix(".new").read_bytes())
        result = said(hs.load_model(path), new)
        path.with_suffix(".said").write_bytes(pickle.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])
