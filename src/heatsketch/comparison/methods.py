"""The estimators of the library by name, the data that they can embed, and at which time."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from heatsketch import classical, estimators
from heatsketch._typing import Array
from heatsketch.estimators.heat_embedding import choose_time
from heatsketch.markov.diffusion import Diffusion
from heatsketch.plot import categories

ESTIMATORS: dict[str, Callable[..., Any]] = {
    "heat-embedding": estimators.HeatEmbedding,
    "heat-sketch": estimators.HeatSketch,
    "diffusion-map": estimators.DiffusionMap,
    "mixture-diffusion": estimators.MixtureDiffusion,
    "pca": classical.PCA,
    "classical-mds": classical.ClassicalMDS,
    "metric-mds": classical.MetricMDS,
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

# Beyond this number of points the methods take many minutes or many gigabytes.
_MAX_POINTS = {"metric-mds": 3_000, "isomap": 12_000, "sne": 12_000, "tsne": 200_000}


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters of a function or class with their defaults."""
    return {name: p.default for name, p in inspect.signature(function).parameters.items()}


def needs_labels(estimator: Any) -> bool:
    """Say whether an estimator is fitted to labels."""
    return bool(get_tags(estimator).target_tags.required)


def classes(labels: Any, n: int) -> Array:
    """Return the class of each of n points by name; None without one: measurements are none."""
    codes, names = (None if labels is None else categories(labels)) or (np.full(n, -1), ())
    return np.array([*names, None], dtype=object)[codes]


def embedded(estimator: Any, X: Any, groups: Array) -> Array:
    """Fit an estimator to X (n, d), or to the rows with a class if it needs one; map all rows."""
    if not needs_labels(estimator):
        return np.asarray(estimator.fit_transform(X))
    known = groups.astype(bool)
    return np.asarray(estimator.fit(X[known], groups[known].astype(str)).transform(X))


def fitting(n: int, n_classes: int = 0) -> list[str]:
    """Return the methods that embed n points within minutes.

    Methods that need labels are among them for at least two classes, Fisher's discriminant for
    exactly two.

    Examples
    --------
    >>> from heatsketch.comparison.methods import fitting
    >>> "isomap" in fitting(1600), "isomap" in fitting(10**6)
    (True, False)
    """
    return [
        name
        for name, make in ESTIMATORS.items()
        if n <= _MAX_POINTS.get(name, n)
        and (n_classes >= 2 or not needs_labels(make()))
        and (n_classes == 2 or name != "fisher-discriminant")
    ]


def resolve_time(
    diffusion: Diffusion, time: Any = "auto", *, n_components: int = 2, **options: Any
) -> Any:
    """Return the time given, or for "auto" the one that `HeatEmbedding` chooses.

    Options are those of `choose_time`.

    Examples
    --------
    >>> import heatsketch as hs
    >>> from heatsketch.comparison.methods import resolve_time
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> d = hs.diffusion(X)
    >>> model = hs.HeatEmbedding(random_state=0).fit(X)
    >>> resolve_time(d) == model.time_, resolve_time(d, 8)
    (True, 8)
    """
    if time != "auto":
        return time
    k = min(n_components, max(1, diffusion.n - 1))
    return choose_time(diffusion, k, **options).time
