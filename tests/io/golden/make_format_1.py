"""What made the files in `format-1`: run with heatsketch 0.1.0 before format 2 (commit d830091)."""

import sys
from pathlib import Path

import numpy as np

import heatsketch as hs


def clouds(n=50):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)) + 4 * rng.integers(2, size=(n, 1))


def models():
    X = clouds()
    kernel = hs.MixtureKernel([0.5, 0.5], [[0.0], [2.0]], [1.0, 0.25], epsilon=1.0)
    yield "MixtureKernel", kernel
    options = {"mixture": 2, "tolerance": 0.3, "random_state": 0}
    yield "MixtureDiffusion", hs.MixtureDiffusion(**options).fit(X)
    yield "MixtureDiffusion-time", hs.MixtureDiffusion(2, 20.0, time=3, **options).fit(X)


def numbers(model):
    """Return what a model says of new points."""
    if isinstance(model, hs.MixtureKernel):
        return model.squared_distance(np.array([[0.0], [0.1]]), np.array([[4.0]]))
    new = clouds(9) + 0.25
    return np.column_stack([model.transform(new), model.novelty(new), model.score_samples(new)])


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, model in models():
        hs.save_model(model, folder / f"{name}.model", force=True)
        found[name] = numbers(model)
    np.savez(folder / "expected.npz", **found)
