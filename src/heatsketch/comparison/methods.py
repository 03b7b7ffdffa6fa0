"""Every method of the library by its name, and what a method asks of data."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from sklearn.utils import get_tags

from heatsketch import classical, estimators

METHODS: dict[str, Callable[..., Any]] = {
    "heat-embedding": estimators.HeatEmbedding,
    "heat-sketch": estimators.HeatSketch,
    "diffusion-map": estimators.DiffusionMap,
    "mixture-diffusion": estimators.MixtureDiffusion,
    "pca": classical.PCA,
    "classical-mds": classical.ClassicalMDS,
    "landmark-mds": classical.LandmarkMDS,
    "fisher-discriminant": classical.FisherDiscriminant,
    "multiple-discriminant": classical.MultipleDiscriminant,
    "isomap": classical.Isomap,
    "landmark-isomap": classical.LandmarkIsomap,
    "lle": classical.LocallyLinearEmbedding,
    "laplacian-eigenmap": classical.LaplacianEigenmap,
    "sne": classical.SNE,
    "tsne": classical.TSNE,
}

# Beyond so many points a method that looks at all pairs takes many minutes, or gigabytes.
_MOST_POINTS = {"isomap": 12_000, "sne": 12_000, "tsne": 200_000}
_MOST_FEATURES = {"mixture-diffusion": 30}  # a Gaussian has as many squared parameters


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters of a function or class with their defaults."""
    return {name: p.default for name, p in inspect.signature(function).parameters.items()}


def needs_labels(estimator: Any) -> bool:
    """Say whether an estimator is fitted to labels."""
    return bool(get_tags(estimator).target_tags.required)


def fitting(n: int, d: int, n_classes: int = 0) -> list[str]:
    """Return the methods that embed n points of d features within minutes.

    Those that need labels are among them where there are at least two classes; Fisher's
    discriminant where there are two.

    Examples
    --------
    >>> from heatsketch.comparison.methods import fitting
    >>> "isomap" in fitting(1600, 3), "isomap" in fitting(10**6, 3)
    (True, False)
    """
    return [
        name
        for name, make in METHODS.items()
        if n <= _MOST_POINTS.get(name, n)
        and d <= _MOST_FEATURES.get(name, d)
        and (n_classes >= 2 or not needs_labels(make()))
        and (n_classes == 2 or name != "fisher-discriminant")
    ]
