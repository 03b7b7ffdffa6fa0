"""`compare`: methods by name, their runs on the same data, and a table of measures."""

import gc
import importlib
import inspect
import io
import logging
import math
import threading
import time as clock
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from heatsketch import classical, estimators, metrics
from heatsketch._arrays import Array, Points
from heatsketch._checks import check_number, check_points
from heatsketch._messages import logger
from heatsketch._threads import track
from heatsketch._words import did_you_mean
from heatsketch.io.files import write_atomically, write_rows
from heatsketch.io.numpy_files import write_arrays
from heatsketch.markov.affinity import WITHOUT_NEIGHBORS
from heatsketch.markov.coordinates import choose_time
from heatsketch.markov.diffusion import Diffusion
from heatsketch.metrics.picture import PictureQuality, picture_quality, sampled_geodesics, shown
from heatsketch.neighbors import NeighborIndex, ordered_search, pair_distances
from heatsketch.neighbors.graph import neighborhood_graph, shortest_paths
from heatsketch.plot import categories, check_picture, panels
from heatsketch.spectral.filters import Power

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


def embedded(estimator: Any, X: Any, groups: Array, **given: Any) -> Array:
    """Fit an estimator to X (n, d), or to the rows with a class if it needs one; map all rows.

    What else is `given` is passed to the fit.
    """
    if not needs_labels(estimator):
        is_usual = hasattr(estimator, "fit_transform")  # else fit returns the coordinates
        return np.asarray((estimator.fit_transform if is_usual else estimator.fit)(X, **given))
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
    >>> from heatsketch.comparison.run import fitting
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
    >>> from heatsketch.comparison.run import resolve_time
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


DEFAULT_METHODS = (
    *("heat-embedding", "diffusion-map", "laplacian-eigenmap", "pca", "isomap", "lle", "tsne"),
)
_SAMPLED_POINTS, _SAMPLED_POINTS_OF_LARGE_DATA = 1000, 300  # among many, distances cost more
_LARGE_DATA_POINTS = 20_000
_SCORED_NEIGHBORS = 10
_NEIGHBORS_PER_PERPLEXITY = 3  # of t-SNE
_STATUS = Path("/proc/self/status")
_SECONDS_BETWEEN_LOOKS = 0.02  # at the memory of the process

FILES = ("comparison.csv", "comparison.png", "embeddings.npz")

_CAPTION = (
    "Neighbours: trustworthiness at 15 neighbours, 1 if none is false, about .5 by chance. Large "
    "distances: rank correlation with geodesics. Crowding: share of the points in the densest 1 % "
    "of the frame. Seconds: one fit, with compilation."
)
Result = TypeVar("Result")


class Row(NamedTuple):
    """The measures of a method; NaN where one does not apply.

    Attributes
    ----------
    method : str
        Name of the method.
    seconds : float
        The time of one fit, without the search for neighbours where these are shared.
    peak_bytes : float
        Largest memory of the process during the fit, less that before. Where the process has had
        more, it is the largest of looks every 20 ms.
    trustworthiness, continuity : float
        Of 10 nearest neighbours [1]_: 1 if no neighbour is false, or lost.
    log_L_diffusion, log_L_geodesic : float
        log L [2]_ over pairs of the sample: the logarithm of the largest over the smallest dilation
        of a distance.
    spearman, spearman_diffusion, spearman_geodesic : float
        Rank correlation of embedded distances with Euclidean, diffusion and geodesic ones.
    knn_accuracy : float
        Fraction of points whose 10 nearest neighbours in the embedding have their label by
        majority.
    stability : float
        Rank correlation of embedded distances between runs with other seeds.
    neighbors, distances, crowding : float
        The numbers of `metrics.PictureQuality`, by which `quality_` judges a picture.
    error : str
        Why the method failed, or "".

    See Also
    --------
    compare : Embed data by several methods and measure each.
    comparison.Comparison : The result of `compare`.

    References
    ----------
    .. [1] J. Venna and S. Kaski, "Neighborhood preservation in nonlinear projection methods: an
       experimental study", ICANN (2001).
    .. [2] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), equation (32).
    """

    method: str
    seconds: float = math.nan
    peak_bytes: float = math.nan
    trustworthiness: float = math.nan
    continuity: float = math.nan
    log_L_diffusion: float = math.nan
    log_L_geodesic: float = math.nan
    spearman: float = math.nan
    spearman_diffusion: float = math.nan
    spearman_geodesic: float = math.nan
    knn_accuracy: float = math.nan
    stability: float = math.nan
    neighbors: float = math.nan
    distances: float = math.nan
    crowding: float = math.nan
    error: str = ""


HEADINGS = {  # of the columns of the printed table
    "seconds": "seconds",
    "peak_bytes": "GB",
    "trustworthiness": "trust",
    "continuity": "contin",
    "log_L_diffusion": "logL dif",
    "log_L_geodesic": "logL geo",
    "spearman": "rho",
    "spearman_diffusion": "rho dif",
    "spearman_geodesic": "rho geo",
    "knn_accuracy": "kNN",
    "stability": "stable",
    "neighbors": "near",
    "distances": "far",
    "crowding": "crowd",
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """A row and an embedding for each method; `print` shows the rows as a table.

    Attributes
    ----------
    rows : list of Row
        The measures, one row for each method.
    embeddings : dict of ndarrays of shape (n_samples, n_components)
        Coordinates of the methods that did not fail.
    labels : ndarray of shape (n_samples,) or None
        The labels given.
    facts : dict
        Numbers of points, features, neighbours, sampled points and runs, diffusion time, seconds.

    See Also
    --------
    compare : Embed data by several methods and measure each.
    comparison.Row : The measures of one method.
    """

    rows: list[Row]
    embeddings: dict[str, Array]
    labels: Any
    facts: dict[str, Any]

    def __str__(self) -> str:
        """Return the table as text, with an explanation of its columns."""
        width = max(len(row.method) for row in self.rows)
        lines = [" " * width + "".join(f" {heading:>8}" for heading in HEADINGS.values())]
        for row in self.rows:
            values = row._asdict() | {"peak_bytes": row.peak_bytes / 1e9}
            texts = [f"{values[name]:.3f}".replace("nan", "-") for name in HEADINGS]
            cells = row.error or " ".join(f"{text:>8}" for text in texts)
            lines.append(f"{row.method:<{width}} {cells}")
        return "\n".join([*lines, "", self.describe()])

    def describe(self) -> str:
        """Explain the columns in a few lines."""
        facts = self.facts
        chosen = ", as a linear heat-embedding chooses" if facts["time_is_chosen"] else ""
        return (
            f"{facts['points']:,} points, {facts['features']:,} features; "
            f"{facts['n_neighbors']} neighbours, found once in {facts['neighbor_seconds']:.1f} s\n"
            "trust, contin: trustworthiness and continuity of 10 neighbours\n"
            "logL: worst over best dilation of diffusion "
            f"(time {facts['time']:g}{chosen}) and geodesic distances, as a logarithm, "
            f"{facts['sample']:,} points\n"
            "rho: rank correlation with Euclidean, diffusion and geodesic distances\n"
            "kNN: accuracy of 10 neighbours, leave one out; stable: rank correlation between seeds"
            "\nnear, far, crowd: neighbours, large distances and crowding of quality_"
        )

    def plot(self, path: str | Path | None = None, *, whole: bool = False) -> Any:
        """Draw the methods side by side, each with its numbers below; failures with their reason.

        The numbers are `neighbors`, `distances`, `crowding` and `seconds` of the rows.

        Parameters
        ----------
        path : path, default=None
            File to write, .png, .pdf or .svg; an existing one is replaced.
        whole : bool, default=False
            Show far points at their places.

        Returns
        -------
        matplotlib.figure.Figure
            The figure drawn on.

        Raises
        ------
        ImportError, OSError
            matplotlib is missing; the file cannot be written.
        """
        notes = {}
        for row in self.rows:
            numbers = {"neighbours": row.neighbors, "large distances": row.distances}
            numbers["crowding"] = row.crowding
            said = shown(numbers)
            if not math.isnan(row.seconds):
                said.append(f"{row.seconds:{'.2g' if row.seconds < 99 else '.0f'}} s")
            notes[row.method] = row.error or " · ".join(said)
        pictures = {row.method: self.embeddings.get(row.method) for row in self.rows}
        about = f"{self.facts['points']:,} points, {self.facts['features']:,} features. {_CAPTION}"
        sharing = [one for one in self.facts["sharing"] if pictures.get(one) is not None]
        if sharing:
            searched = f"{self.facts['neighbor_seconds']:.1f} s to find neighbours once"
            about += f" {', '.join(sharing)}: plus {searched}."
        return panels(pictures, self.labels, notes, caption=about, path=path, whole=whole)

    def write(self, directory: str | Path, *, whole: bool = False) -> None:
        """Write comparison.csv, comparison.png and embeddings.npz into a folder, made if missing.

        If every method failed, only the table is written, and the picture and embeddings of an
        earlier comparison are removed.

        Raises
        ------
        ImportError
            matplotlib is missing.
        """
        check_picture(None)
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        table, drawing, arrays = (directory / name for name in FILES)
        write_rows(table, [Row._fields, *self.rows], force=True)
        if not self.embeddings:
            drawing.unlink(missing_ok=True)
            arrays.unlink(missing_ok=True)
            return

        def write(draft: Path) -> None:
            with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
                write_arrays(archive, self.embeddings)

        write_atomically(arrays, write, force=True)
        self.plot(drawing, whole=whole)


def compare(
    X: Any,
    methods: str | Iterable[Any] | Mapping[str, Any] = DEFAULT_METHODS,
    labels: Any = None,
    *,
    n_components: int = 2,
    n_neighbors: int = 15,
    time: float | str = "auto",
    seeds: int = 2,
    random_state: int = 0,
) -> Comparison:
    """Embed data by several methods on shared neighbours, and measure how well each does.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Points.
    methods : "all", sequence of methods, or mapping of str to method
        A method is a name, an estimator, or an array of coordinates of shape
        (n_samples, n_coordinates). Names such as "pca" are those that the command
        ``heatsketch methods`` lists; "all": those that fit the size of the data. A method given by
        its name has its defaults, except for the parameters below; of an estimator a copy is run,
        with the shared neighbours. Coordinates are measured without change. By default seven
        methods. "umap", "pacmap", "phate" and "opentsne" are those of other packages, and so is a
        place such as "sklearn.manifold.MDS"; of the parameters below these get `n_components` and
        `random_state`.
    labels : array-like of shape (n_samples,), default=None
        Labels for the accuracy of neighbours, the colours, and the methods that are fitted to
        labels. Fractions, and numbers of more than 20 values, are colours only.
    n_components : int, default=2
        Number of coordinates.
    n_neighbors : int, default=15
        Number of neighbours in every graph, also in that of geodesic and diffusion distances.
    time : int >= 1 or "auto", default="auto"
        Time of the diffusion distances that all embeddings are compared with, those of
        `diffusion_distance`. "auto": the time that a linear `HeatEmbedding` chooses for
        these data.
    seeds : int, default=2
        Runs of each method that draws random numbers, for the stability; the first one is shown and
        timed. 1: no stability.
    random_state : int >= 0, default=0
        Seed of the first run (the others follow) and of the sample of points.

    Returns
    -------
    Comparison
        For each method a row of measures and an embedding; `print` shows the table, `plot`
        draws it.

    Raises
    ------
    ValueError
        If a method is unknown or lacks its labels, coordinates are not a finite table of a row for
        each point, or a parameter is out of range.
    ImportError
        If the package of a method is not installed; the message names it.

    See Also
    --------
    audit : Find the points of a picture that can be believed.
    comparison.Comparison : The result of `compare`.
    metrics.diffusion_distortion : Measure how an embedding changes diffusion distances.
    plot.panels : Draw embeddings side by side.

    Notes
    -----
    Before the first method runs, a record of the level INFO says about how long all will take;
    `progress` shows it. A method that fails has its error in the table, and the others go on. What
    scikit-learn and the packages above print and warn of is not shown. Neighbours are searched
    once (twice where points coincide: also among the distinct ones) and shared by all methods that
    have a parameter `neighbors`. log L and correlations are those of all pairs of 1,000 random
    points (300 beyond 20,000 points). Seconds include loading compiled code. The cost is `seeds`
    fits of each method, one search for neighbours, and the diffusion distances of those pairs.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> result = hs.compare(X, ["pca", "diffusion-map"], seeds=1)
    >>> [row.method for row in result.rows], result.embeddings["pca"].shape
    (['pca', 'diffusion-map'], (100, 2))
    """
    X = check_points(X)
    seeds = check_number(seeds, "seeds", low=1, integer=True)
    random_state = check_number(random_state, "random_state", low=0, integer=True)
    n_neighbors = check_number(n_neighbors, "n_neighbors", low=1, high=X.shape[0] - 1, integer=True)
    if labels is not None and np.shape(labels) != (X.shape[0],):
        raise ValueError(
            f"labels has shape {np.shape(labels)} but X has {X.shape[0]} rows; pass one for each."
        )
    groups = classes(labels, X.shape[0])
    n_components = check_number(n_components, "n_components", low=1, integer=True)
    options = {"n_components": n_components, "n_neighbors": n_neighbors}
    options["random_state"] = random_state
    if check_number(time, "time", low=1, rules=("auto",)) != "auto":
        time = Power.check_time(time, whole=True)
    estimators = _estimators(methods, groups, options)
    _foretell(estimators, X.shape[0], seeds)
    index, seconds = _shared_index(X, estimators.values(), n_neighbors)
    large = X.shape[0] > _LARGE_DATA_POINTS
    size = _SAMPLED_POINTS_OF_LARGE_DATA if large else _SAMPLED_POINTS
    sample = np.sort(np.random.default_rng(random_state).permutation(X.shape[0])[:size])
    diffusion = Diffusion.from_points(X, n_neighbors=n_neighbors, neighbors=index)
    chosen = resolve_time(diffusion, time, n_components=n_components)
    logger.info("reference distances between %d points", len(sample))
    known = reference_distances(X, sample, diffusion, n_neighbors, index, chosen)
    geodesics = sampled_geodesics(diffusion)
    judge = partial(picture_quality, diffusion=diffusion, geodesics=geodesics)
    sharing = [name for name, one in estimators.items() if _shares_neighbors(one)]
    rows, embeddings = [], {}
    named = track(estimators.items(), "comparison", len(estimators), "methods")
    for place, (name, estimator) in enumerate(named):
        logger.info("method %d of %d: %s", place + 1, len(estimators), name)
        try:
            with silenced(type(estimator)):
                runs, used, peak = _runs(estimator, X, groups, index, seeds, random_state)
            rows.append(_scored(Row(name, used, peak), X, runs, groups, sample, known, judge))
            embeddings[name] = runs[0]
        except Exception as error:  # of whatever kind: the other methods go on
            logger.info("%s failed: %s", name, error)
            rows.append(Row(name, error=f"{type(error).__name__}: {' '.join(str(error).split())}"))
    facts = {
        "points": X.shape[0],
        "features": X.shape[1],
        "n_neighbors": n_neighbors,
        "neighbor_seconds": seconds,
        "sharing": sharing,
        "sample": len(sample),
        "time": chosen,
        "time_is_chosen": time == "auto",
        "seeds": seeds,
        "random_state": random_state,
    }
    return Comparison(rows, embeddings, labels, facts)


def _estimators(methods: Any, groups: Array, options: dict[str, Any]) -> dict[str, Any]:
    """Return the estimators by name, made and checked before any of them is run.

    An estimator has the name of its class, numbered if there are several; so have coordinates.
    """
    n_classes = len(set(groups) - {None})
    if isinstance(methods, str):
        methods = fitting(len(groups), n_classes) if methods == "all" else [methods]
    if hasattr(methods, "get_params") or getattr(methods, "ndim", 0) == 2:
        methods = [methods]
    named = methods.items() if isinstance(methods, Mapping) else ((None, one) for one in methods)
    made: dict[str, Any] = {}
    for name, method in named:
        if not isinstance(method, str):
            is_estimator = hasattr(method, "get_params")
            kind = type(method).__name__ if is_estimator else "coordinates"
            count = sum(known.partition("-")[0] == kind for known in made)
            name = str(name or (f"{kind}-{count + 1}" if count else kind))
            with silenced(type(method)):
                made[name] = clone(method) if is_estimator else _given(method, name, len(groups))
            continue
        make, known = method_class(method), dict(options)
        if method not in ESTIMATORS:  # which has its own number of neighbours
            del known["n_neighbors"]
        given = {name: value for name, value in known.items() if name in defaults(make)}
        if method == "multiple-discriminant" and n_classes:
            given["n_components"] = min(given["n_components"], n_classes - 1)
        with silenced(make):
            made[str(name or method)] = make(**given)
    if not made:
        raise ValueError("methods is empty; pass names such as 'pca', or 'all'.")
    lacking = ", ".join(name for name, e in made.items() if needs_labels(e) and n_classes < 2)
    if lacking:
        raise ValueError(f"{lacking} need(s) labels of at least two classes; pass labels.")
    return made


def _foretell(estimators: dict[str, Any], n: int, seeds: int) -> None:
    """Log about how long the estimators will take."""
    seconds = {
        name: expected_seconds(one, n) * (seeds if "random_state" in one.get_params() else 1)
        for name, one in estimators.items()
        if not isinstance(one, Given)
    }
    if not seconds:
        return
    total = np.nansum([*seconds.values()])
    each = [f"{name} {s:.0f} s".replace(" nan s", " unknown") for name, s in seconds.items()]
    logger.info(
        f"about {total:.0f} s for {n:,} points ({', '.join(each)}), by measurements on two "
        "cores; your machine may need a third of it, or three times as much",
        extra={"at_once": total > 5},
    )


@dataclass(eq=False)
class Given(BaseEstimator):
    """Coordinates (n, c) that a caller gives, in place of an estimator that computes some."""

    coordinates: Array


def _given(coordinates: Any, name: str, n: int) -> Given:
    """Return coordinates of n points, or raise."""
    shape: tuple[int, ...] = tuple(getattr(coordinates, "shape", ()))
    if len(shape) != 2 or shape[0] != n:
        raise ValueError(
            f"{name} is of type {type(coordinates).__name__} and shape {shape}; pass a name, an "
            f"estimator, or an array of coordinates ({n}, c)."
        )
    return Given(check_points(coordinates, name, accept_sparse=False))


def _shared_index(
    X: Points, estimators: Iterable[Any], n_neighbors: int
) -> tuple[NeighborIndex, float]:
    """Search once for as many neighbours as any estimator needs; return the seconds, too."""
    wanted = [n_neighbors]
    for estimator in estimators:
        parameters = estimator.get_params()
        if _shares_neighbors(estimator):
            wanted.append(int(parameters.get("n_neighbors") or 0))
            wanted.append(int(_NEIGHBORS_PER_PERPLEXITY * parameters.get("perplexity", 0)) + 1)
    index = NeighborIndex(X, n_neighbors=min(max(wanted), X.shape[0] - 1))
    _, seconds, _ = measured(lambda: ordered_search(index, X)[0].query(None, 2))
    return index, seconds


def _shares_neighbors(estimator: Any) -> bool:
    """Say whether an estimator takes neighbours, and has none of its own."""
    parameters = estimator.get_params()
    takes_them = parameters.get("affinity") not in WITHOUT_NEIGHBORS
    return takes_them and parameters.get("neighbors", ()) is None


def _runs(
    estimator: Any, X: Points, groups: Array, index: Any, seeds: int, random_state: int
) -> tuple[list[Array], float, float]:
    """Return the embeddings of all seeds, and the seconds and memory of the first fit."""
    if isinstance(estimator, Given):
        return [estimator.coordinates], math.nan, math.nan
    parameters = estimator.get_params()
    if _shares_neighbors(estimator):
        estimator.set_params(neighbors=index)
    first_run, used, peak = measured(lambda: embedded(estimator, X, groups))
    runs = [first_run]
    if "random_state" in parameters:
        first = parameters["random_state"]
        first = int(first) if isinstance(first, Integral) else random_state
        for seed in range(first + 1, first + seeds):
            runs.append(embedded(clone(estimator).set_params(random_state=seed), X, groups))
    return runs, used, peak


def reference_distances(
    X: Points, sample: Array, diffusion: Diffusion, n_neighbors: int, neighbors: Any, time: float
) -> dict[str, Array]:
    """Return distances of all pairs of some points, condensed as by `pdist`."""
    i, j = np.triu_indices(len(sample), 1)
    points = X[sample].astype(np.float64, copy=False)
    graph, found = neighborhood_graph(X, n_neighbors=n_neighbors, neighbors=neighbors)
    vertices = found.vertex[sample]
    paths = shortest_paths(found.connected(graph), vertices)[:, vertices]
    return {
        "input": pair_distances(points, points, i, j),
        "diffusion": metrics.diffusion_distance(diffusion, time=time, pairs=(sample[i], sample[j])),
        "geodesic": paths[i, j],
    }


def _scored(
    row: Row,
    X: Points,
    runs: list[Array],
    groups: Array,
    sample: Array,
    known: dict[str, Array],
    judge: Callable[..., PictureQuality],
) -> Row:
    """Fill in how well the first run keeps neighbours and distances, and the stability."""
    Y = np.asarray(check_points(runs[0], "the embedding"))
    k = min(_SCORED_NEIGHBORS, (X.shape[0] - 1) // 2)
    distances = pdist(Y[sample])
    distortion = metrics.distortion(Y[sample], known["diffusion"])
    judged = judge(np.asarray(Y, dtype=float), distortion=distortion)
    found = {
        "trustworthiness": metrics.trustworthiness(X, Y, k).value,
        "continuity": metrics.continuity(X, Y, k).value,
        "log_L_diffusion": distortion.log_L,
        "log_L_geodesic": metrics.distortion(Y[sample], known["geodesic"]).log_L,
        "spearman": metrics.rank_correlation(distances, known["input"]),
        "spearman_diffusion": metrics.rank_correlation(distances, known["diffusion"]),
        "spearman_geodesic": metrics.rank_correlation(distances, known["geodesic"]),
        "neighbors": judged.neighbors,
        "distances": judged.distances,
        "crowding": judged.crowding,
    }
    voters = min(_SCORED_NEIGHBORS, int(np.count_nonzero(groups)) - 1)
    if voters > 0:
        found["knn_accuracy"] = metrics.knn_accuracy(Y, groups, voters)
    if len(runs) > 1:
        found["stability"] = metrics.stability(runs)
    return row._replace(**found)  # type: ignore[arg-type]


def measured(work: Callable[[], Result]) -> tuple[Result, float, float]:
    """Return the result of the work, its seconds, and by how many bytes memory grew meanwhile."""
    gc.collect()
    before, highest = memory(), memory("VmHWM")
    seen, done = [before], threading.Event()

    def look() -> None:
        while not done.wait(_SECONDS_BETWEEN_LOOKS):
            seen.append(memory())

    watcher, started = threading.Thread(target=look, daemon=True), clock.perf_counter()
    watcher.start()
    try:
        result = work()
        seconds = clock.perf_counter() - started
    finally:
        done.set()
        watcher.join()
    # The largest of the process is the caller's: it is not reset.
    largest = memory("VmHWM")
    peak = largest if largest > highest else max(*seen, memory())
    return result, seconds, peak - before


def memory(which: str = "VmRSS") -> float:
    """Return the resident memory of the process in bytes, or the largest so far ("VmHWM").

    NaN if the system is not Linux, and does not report it.
    """
    try:
        status = _STATUS.read_text()
        return 1024 * float(status.partition(f"{which}:")[2].split()[0])
    except (OSError, IndexError):
        return math.nan
