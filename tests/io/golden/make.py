"""What made the model files in the folder of a release: one of every kind, and what each says.

python tests/io/golden/make.py tests/io/golden/0.1.0     (once for a release; then kept)
"""

import sys
import warnings
from pathlib import Path

import numpy as np

import heatsketch as hs
from heatsketch import classical


def points(n=30, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) + 3 * (np.arange(n) % 2)[:, None]


def models():
    """Yield (name, fitted model)."""
    X, labels = points(), np.arange(30) % 2
    few, seed = {"n_neighbors": 5}, {"random_state": 0}
    quick = {"perplexity": 5.0, "n_iter": 30, "early_iter": 10}
    own = {
        "HeatSketch": hs.HeatSketch(2, **few, **seed),
        "HeatSketch-dense": hs.HeatSketch(2, affinity="dense", epsilon=2.0, **seed),
        "HeatSketch-variable": hs.HeatSketch(2, affinity="variable", **few, **seed),
        "HeatSketch-radius": hs.HeatSketch(2, affinity="radius", epsilon=0.5, **seed),
        "HeatEmbedding": hs.HeatEmbedding(2, **few, **seed),
        "DiffusionMap": hs.DiffusionMap(2, **few, **seed),
        "MixtureDiffusion": hs.MixtureDiffusion(mixture=2, tolerance=0.5, **seed),
        "NearIsometricProjection": hs.NearIsometricProjection(1, **seed),
        "ClassicalMDS": classical.ClassicalMDS(1),
        "FisherDiscriminant": classical.FisherDiscriminant(),
        "Isomap": classical.Isomap(1, **few),
        "LandmarkIsomap": classical.LandmarkIsomap(1, n_landmarks=6, **few),
        "LandmarkMDS": classical.LandmarkMDS(1, n_landmarks=6, **seed),
        "LaplacianEigenmap": classical.LaplacianEigenmap(1, **few, **seed),
        "LocallyLinearEmbedding": classical.LocallyLinearEmbedding(1, **few, **seed),
        "MetricMDS": classical.MetricMDS(1),
        "MultipleDiscriminant": classical.MultipleDiscriminant(1),
        "PCA": classical.PCA(1),
        "SNE": classical.SNE(1, **quick, **seed),
        "TSNE": classical.TSNE(2, **quick, **seed),
    }
    for name, model in own.items():
        yield name, model.fit(X, labels)
    yield "MixtureKernel", hs.MixtureKernel([0.5, 0.5], [[0.0], [2.0]], [1.0, 0.25], epsilon=1.0)


def numbers(model):
    """Return what a model says of new points."""
    if isinstance(model, hs.MixtureKernel):
        return model.squared_distance(np.array([[0.0], [0.1]]), np.array([[4.0]]))
    new = points(5, seed=1) / 2 + 0.75
    found = [model.transform(new)] if hasattr(model, "transform") else [model.embedding_]
    return np.column_stack(found + ([model.novelty(new)] if hasattr(model, "novelty") else []))


def main(folder):
    warnings.simplefilter("ignore")
    folder.mkdir(parents=True)
    found = {}
    for name, model in models():
        hs.save_model(model, folder / f"{name}.model")
        found[name] = numbers(model)
    np.savez(folder / "expected.npz", **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
