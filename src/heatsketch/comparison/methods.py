"""Estimators by name, also those of other packages, and the data, times and seconds of a fit."""

import importlib
import inspect
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from heatsketch import classical, estimators
from heatsketch._typing import Array
from heatsketch._words import did_you_mean
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.times import choose_time
from heatsketch.plot import categories

ESTIMATORS: dict[str, type[Any]] = {
    "heat-embedding": estimators.HeatEmbedding,
    "heat-sketch": estimators.HeatSketch,
    "diffusion-map": estimators.DiffusionMap,
    "mixture-diffusion": estimators.MixtureDiffusion,
    "pca": classical.PCA,
    "classical-mds": classical.ClassicalMDS,
    "metric-mds": classical.MetricMDS,
    "nonmetric-mds": classical.NonmetricMDS,
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

# Estimators of other packages: the class, and the package as pip knows it.
OTHERS = {
    "umap": ("umap.UMAP", "umap-learn"),
    "pacmap": ("pacmap.PaCMAP", "pacmap"),
    "phate": ("phate.PHATE", "phate"),
    "opentsne": ("openTSNE.sklearn.TSNE", "openTSNE"),
}
_TALKATIVE = {"sklearn", *(place.partition(".")[0] for place, _ in OTHERS.values())}

# Seconds of a fit that do not depend on the number n of points (compiling), seconds for 10,000
# points, and the power of n by which these grow. Measured on two cores with 50 features. The
# other classes of the library need about 1, 1 and 1.
_SECONDS = {
    "HeatEmbedding": (1, 6, 1),
    "Isomap": (1, 16, 2),
    "SNE": (1, 85, 2),
    "TSNE": (5, 40, 1),
    "UMAP": (15, 10, 1),
    "PaCMAP": (2, 8, 1),
    "PHATE": (5, 30, 1),
}

# Beyond this number of points the methods take many minutes or many gigabytes.
_MAX_POINTS = {
    "metric-mds": 3_000,
    "nonmetric-mds": 3_000,
    "isomap": 12_000,
    "sne": 12_000,
    "tsne": 200_000,
}


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters of a function or class with their defaults."""
    return {name: p.default for name, p in inspect.signature(function).parameters.items()}


def method_class(name: str) -> Callable[..., Any]:
    """Return the class of a method: by its name, or by its place, as "sklearn.manifold.MDS".

    Raises
    ------
    ValueError
        The name is unknown, or that of something else than an estimator.
    ImportError
        The package of the class is not installed, or does not have it.
    """
    if name in ESTIMATORS:
        return ESTIMATORS[name]
    place, package = OTHERS.get(name, (name, ""))
    module, _, class_name = place.rpartition(".")
    if not module:
        known = [*ESTIMATORS, *OTHERS]
        raise ValueError(
            f"no method {name!r}; choose from {', '.join(known)}{did_you_mean(name, known)}"
        )
    try:
        with warnings.catch_warnings(action="ignore"):
            found = getattr(importlib.import_module(module), class_name)
    except (ImportError, AttributeError) as error:
        remedy = f"pip install {package}" if package else "check the name, or install its package"
        raise ImportError(f"the method {name} cannot be imported ({error}); {remedy}.") from error
    if not hasattr(found, "get_params"):
        raise ValueError(
            f"the method {name} is no class of an estimator (which has get_params and fit); name "
            "one, such as 'sklearn.manifold.MDS', or pass coordinates."
        )
    return found  # type: ignore[no-any-return]


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
        is_usual = hasattr(estimator, "fit_transform")  # else fit returns the coordinates
        return np.asarray((estimator.fit_transform if is_usual else estimator.fit)(X))
    known = groups.astype(bool)
    return np.asarray(estimator.fit(X[known], groups[known].astype(str)).transform(X))


@contextmanager
def silenced(kind: Any) -> Iterator[None]:
    """Hide what a class of other packages prints, logs and warns of; of ours, hide nothing."""
    with ExitStack() as stack:
        if kind.__module__.partition(".")[0] in _TALKATIVE:
            stack.callback(logging.disable, logging.root.manager.disable)
            logging.disable()
            stack.enter_context(redirect_stdout(io.StringIO()))
            stack.enter_context(redirect_stderr(io.StringIO()))
            stack.enter_context(warnings.catch_warnings(action="ignore"))
        yield


def expected_seconds(estimator: Any, n: int) -> float:
    """Return a guess of the seconds of a fit to n points, by the class; NaN for unknown classes."""
    kind = type(estimator)
    first = 1 if kind in ESTIMATORS.values() else np.nan
    start, slope, power = _SECONDS.get(kind.__name__, (first, 1, 1))
    return float(start + slope * (n / 10_000) ** power)


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
    """Return the time given, or for "auto" the one that a linear `HeatEmbedding` chooses.

    Options are those of `choose_time`.

    Examples
    --------
    >>> import heatsketch as hs
    >>> from heatsketch.comparison.methods import resolve_time
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> d = hs.diffusion(X)
    >>> model = hs.HeatEmbedding(layout="linear", random_state=0).fit(X)
    >>> resolve_time(d) == model.time_, resolve_time(d, 8)
    (True, 8)
    """
    if time != "auto":
        return time
    k = min(n_components, max(1, diffusion.n - 1))
    return choose_time(diffusion, k, **options).time
