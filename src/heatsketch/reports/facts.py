"""What a page says: frames, facts, a summary; and `report`."""

import math
import platform
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import orthogonal_procrustes
from scipy.sparse.csgraph import (
    breadth_first_order,
    connected_components,
    minimum_spanning_tree,
)
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from heatsketch import __version__
from heatsketch._arrays import Array
from heatsketch._checks import as_floats, column_of_vectors, holds_vectors, names_of_columns
from heatsketch._messages import logger
from heatsketch.comparison.audit import Audit
from heatsketch.comparison.run import defaults
from heatsketch.core.operators import members_of
from heatsketch.estimators import HeatEmbedding, HeatSketch
from heatsketch.estimators._base import DiffusionEstimator, Embedder
from heatsketch.io.table import Table, in_units_of_source
from heatsketch.layout.linear import sampled_pairs, within_labels
from heatsketch.markov.rows import N_LEADING, LeadingPairs, leading_pairs
from heatsketch.metrics.distances import DiffusionDistances
from heatsketch.metrics.distortions import Distortion, distortion, distortion_from
from heatsketch.neighbors import NeighborIndex
from heatsketch.neighbors.graph import positive, shortest_links
from heatsketch.neighbors.search import pair_distances
from heatsketch.plot.pictures import MAX_CATEGORIES, ORDER_SEED, palette, principal_axes
from heatsketch.reports.columns import (
    MANY_POINTS,
    column,
    feature_columns,
    image_facts,
    labels_and_ids,
    packed,
    packed_places,
    texts,
)
from heatsketch.reports.writer import Report, check_suffix
from heatsketch.scales import ksum
from heatsketch.spectral.filters import FILTERS, make_filter
from heatsketch.spectral.functions import time_excess
from heatsketch.spectral.traces import ExplainedVariance, heat_trace
from heatsketch.uncertainty.intervals import mean_root, ratio_bounds

MOST_DIMENSIONS = 3
_DOUBLINGS = ((20_000, 4), (200_000, 1))  # of the time, on either side, for so many points shown
_SKETCH_COLUMNS = 64
_RIDGE = 0.03  # size of a direction next to the first, below which the map hardly uses it
_PAIRS = 16_000  # for the distortion of distances
_DEGENERATE = 1e-12  # distance of a pair next to the largest, from which on it counts


def fit_times_of(est: Any) -> list[Any]:
    """Return the times of an embedding at its fit; [None] for methods without a time."""
    times: list[Any] = np.atleast_1d(est._fit_times).tolist()
    return times


def diffusion_of(est: Any) -> Any:
    """Return the diffusion of an estimator; None without one, or if points do not differ."""
    if not isinstance(est, DiffusionEstimator):
        return None
    diffusion = est._current_diffusion()
    return None if diffusion.diagnostics["is_constant"] else diffusion


def slider_times(est: Any, times: Sequence[Any] | None = None, shown: int = 0) -> list[Any]:
    """Return the times of the slider, including that of the embedding; fewer for many points.

    Times at which f(A) is beyond the range of numbers are left out. A free layout has one time: at
    others its points would move in ways that say nothing of the time.
    """
    (own,), diffusion = fit_times_of(est), diffusion_of(est)
    if times is not None and not isinstance(est, DiffusionEstimator):
        raise ValueError(
            f"times={times!r} but {type(est).__name__} has no diffusion; leave it out."
        )
    if times is not None and est._has_free_layout:
        raise ValueError(f"times={times!r} but a free layout has one time; pass layout='linear'.")
    if diffusion is None or est._has_free_layout:
        return [own]
    filter = est._fitted_as.filter
    if times is None:
        middle, each = np.log2(own or 1), next((k for most, k in _DOUBLINGS if shown <= most), 0)
        powers = 2.0 ** np.arange(np.ceil(middle) - each, np.floor(middle) + each + 1)
        times = powers[powers >= min(own or 1, 1)].tolist()
    whole = est._result("eigenvalues_") is None  # without eigenvalues a time counts products
    found = {own, *(FILTERS[filter].check_time(t, whole=whole) for t in times)}
    A = diffusion.deflated
    return [t for t in sorted(found) if t == own or time_excess(make_filter(filter, t), A) <= 1]


def frames(
    est: Any, Y: Array, times: Sequence[Any], shown: Array, leading: LeadingPairs = leading_pairs
) -> dict[str, Any]:
    """Return the points `shown` (m,) at the times, one of which is the time of Y, as plain JSON.

    `positions` of each time, (m, d) with d from 1 to 3, have mean square 1; multiplied by `sizes`
    (T,) their distances are diffusion distances. At time number `chosen` they show Y (n, k) itself,
    beyond three coordinates on its principal axes. `distances` (T,) has the distortions of a
    `HeatEmbedding` over random pairs at the other times. `leading` computes eigenpairs.
    """
    at = list(times).index(fit_times_of(est)[0])
    distances: Sequence[Distortion | None] = [None] * len(times)
    Y = np.asarray(Y, dtype=float)
    if (before := getattr(est, "_before", None)) is not None:
        return _from_before(before, Y, times[at], shown)
    blocks, centres = Y[None], np.zeros_like(Y)
    if len(times) > 1 and isinstance(est, HeatEmbedding):
        blocks, centres, distances = _mapped(est, times, at, leading)
    elif len(times) > 1:
        blocks = _of_a_copy(est, list(times), at)
    axes, names = np.eye(Y.shape[1]), [f"coordinate {k + 1}" for k in range(Y.shape[1])]
    if len(axes) > MOST_DIMENSIONS:
        axes, names = principal_axes(Y, MOST_DIMENSIONS)
    views, sizes = zip(*(scaled((block @ axes)[shown]) for block in blocks), strict=True)
    places = without_means((centres @ axes)[shown]) / sizes[at]
    return {
        "axes": names,
        "times": [None if t is None else float(t) for t in times],
        "positions": [packed_places(view + places) for view in views],
        "sizes": sizes,
        "chosen": at,
        "distances": [one and distortion_facts(one, shown) for one in distances],
    }


def _from_before(before: Array, Y: Array, time: Any, shown: Array) -> dict[str, Any]:
    """Return frames of the old places, NaN where a point had none, and of the new ones Y (n, k)."""
    new, size = scaled(Y[shown])
    moves = np.where(np.isnan(before), 0.0, before - Y)[shown] / size
    return {
        "axes": [f"coordinate {k + 1}" for k in range(Y.shape[1])],
        "times": [None if time is None else float(time)] * 2,
        "labels": ["old places", "new places"],
        "positions": [packed_places(view) for view in (new + moves, new)],
        "sizes": [size, size],
        "chosen": 1,
        "distances": [None, None],
    }


def beside_facts(beside: Any, shown: Array, n: int) -> dict[str, Any] | None:
    """Return another picture of the same points: an array (n, c), an estimator, or {title: it}."""
    if beside is None:
        return None
    title, other = next(iter(beside.items())) if isinstance(beside, Mapping) else ("", beside)
    is_estimator = hasattr(other, "embedding_")
    title = title or (type(other).__name__ if is_estimator else "another picture")
    Y = np.asarray(other.embedding_ if is_estimator else other, dtype=float)
    if Y.ndim != 2 or len(Y) != n or not np.isfinite(Y).all():
        raise ValueError(f"beside has shape {Y.shape}; pass a finite array ({n}, 2) or ({n}, 3).")
    return {"title": title, "positions": [packed_places(scaled(Y[shown, :3])[0])]}


def distortion_facts(found: Distortion, shown: Array, is_free: bool = False) -> dict[str, Any]:
    """Return the distortion of distances, and the worst pairs as places among the points shown."""
    worst = {
        end: np.searchsorted(shown, pairs[np.isin(pairs, shown).all(axis=1)])
        for end, pairs in found.worst_pairs.items()
    }
    return found._asdict() | {"line": kept(found, is_free), "worst_pairs": worst}


def _of_a_copy(est: Any, times: list[Any], at: int) -> Array:
    """Return coordinates (T, n, k) at all times, from the same random numbers or eigenvectors."""
    k = est.embedding_.shape[1]
    fixed = {"affinity": "precomputed", "neighbors": None, "metric": "euclidean"}
    with warnings.catch_warnings(action="ignore"):  # those at other times do not matter
        copy = clone(est).set_params(**fixed, time=times, n_components=k)
        copy.fit(est._current_diffusion())
    blocks = np.asarray(copy.embedding_, float).reshape(-1, len(times), k).swapaxes(0, 1).copy()
    blocks[at] = est.embedding_
    return blocks


def _mapped(
    est: Any, times: Sequence[Any], at: int, leading: LeadingPairs
) -> tuple[Array, Array, list[Distortion | None]]:
    """Map the coordinates at other times by the linear map of a `HeatEmbedding`.

    The coordinates are the leading eigenvectors and a sketch of the rest with the same random
    numbers at all times. The map is found by least squares, with a ridge, because a direction that
    hardly counts at the time of the embedding may be large at others. Each block is rotated to the
    one before. Results are blocks (T, n, k) around the centres of their components, the centres (n,
    k), and the distortions at the other times.
    """
    diffusion, filter = est._current_diffusion(), est._fitted_as.filter
    wanted = DiffusionDistances.from_operator(diffusion, times[at], filter, within_components=True)
    operator, labels = wanted.rows.operator, None
    if wanted.labels is not None:
        labels = diffusion.component_of
    coordinates = leading(operator, N_LEADING)
    Y = np.asarray(est.embedding_, dtype=float)
    i, j = within_labels(*sampled_pairs(len(Y), _PAIRS), labels)
    logger.info("the points at %d times", len(times))
    each = [replace(diffusion.rows(t, filter=filter), operator=operator) for t in times]
    before = coordinates.under([rows.filter for rows in each], _SKETCH_COLUMNS, seed=0)
    # Each block is freed after its use, because those of many points are large.
    found = [without_means(rows.at_points(before.pop(0)).astype(float), labels) for rows in each]
    own = found[at]
    inner = without_means(Y, labels)
    gram = own.T @ own
    ridge = _RIDGE**2 * np.linalg.norm(gram, 2) * np.eye(len(gram))
    W = np.linalg.lstsq(gram + ridge, own.T @ inner, rcond=None)[0]
    blocks = np.empty((len(times), *Y.shape))
    distortions: list[Distortion | None] = [None] * len(times)
    blocks[at] = inner
    for t in [*range(at + 1, len(times)), *range(at - 1, -1, -1)]:
        F, before = found[t], t - 1 if t > at else t + 1
        count = min(len(W), F.shape[1])  # without a sketch if there is none at this time
        blocks[t] = F[:, :count] @ W[:count]
        distances = pair_distances(F, F, i, j)
        apart = distances > _DEGENERATE * distances.max(initial=0.0)
        if not apart.any():
            continue
        measured = distortion(blocks[t], distances[apart], pairs=(i[apart], j[apart]))
        blocks[t] = blocks[t] @ orthogonal_procrustes(blocks[t], blocks[before])[0]
        blocks[t] /= measured.median or 1.0
        distortions[t] = measured
    return blocks, Y - inner, distortions


def scaled(Y: Array) -> tuple[Array, float]:
    """Return centred coordinates with mean square 1, and their former scale."""
    Y = without_means(Y)
    size = float(np.sqrt(np.mean(np.sum(Y**2, axis=1)))) or 1.0
    return Y / size, size


def without_means(Y: Array, labels: Array | None = None) -> Array:
    """Subtract the mean of all rows, or of those with the same label."""
    if labels is None:
        return Y - Y.mean(axis=0)
    groups = sparse.csr_array((np.ones(len(Y)), (labels, np.arange(len(Y)))))
    return np.asarray(Y - ((groups @ Y) / groups.sum(axis=1)[:, None])[labels])


_PROBES = 8  # for more than 2,048 points


def summary(estimator: Any, share: ExplainedVariance | None = None) -> dict[str, str]:
    """Return names and texts: what the fit chose, the graph, the picture, the variance explained.

    `share` is the result of `explained`, if it is known already.

    Examples
    --------
    >>> import heatsketch as hs
    >>> from heatsketch.reports.facts import summary
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> summary(hs.HeatSketch(random_state=0).fit(X))["graph"]
    '1 connected component(s), 0 isolated point(s)'
    """
    lines = {}
    given, epsilon = estimator.get_params(deep=False), estimator._result("epsilon_")
    if isinstance(given.get("time"), str):
        lines["time"] = str(estimator.time_)
    if given.get("layout") == "auto":
        lines["layout"] = "free" if estimator._has_free_layout else "linear"
    if np.ndim(epsilon):  # one scale for each point
        low, median, high = (f"{value:.4g}" for value in np.nanquantile(epsilon, [0, 0.5, 1]))
        lines["bandwidth"] = f"local scales from {low} to {high}, median {median}"
    elif epsilon is not None:
        given = np.isnan(epsilon)
        lines["bandwidth"] = "of the given affinity" if given else f"epsilon {epsilon:.6g}"
    facts = estimator._result("diagnostics_") or {}
    if "dimension" in facts:
        lines["bandwidth"] += f"; dimension {facts['dimension']:.3g}"
    lines |= _model(facts)
    if (quality := estimator._result("quality_")) is not None:
        lines["picture"] = quality.describe()
    if (distortion := estimator._result("distortion_")) is not None:
        held_out, line = distortion.held_out_log_L, kept(distortion, estimator._has_free_layout)
        more = "" if math.isnan(held_out) else f", {held_out:.2f} for points not learned from"
        lines["distances"] = line + more
    if estimator._states_variance:
        times = estimator._fit_times
        shares = [share] if share else [explained(estimator, place) for place in range(len(times))]
        words = [f"{one.describe()} (time {t:g})" for t, one in zip(times, shares, strict=True)]
        count = estimator.embedding_.shape[1] // len(times)
        lines["explained"] = f"{', '.join(words)}, by {count} coordinates"
        if 1 in times:
            lines["explained"] += "; a walk of one step is still in many other directions"
    return lines


def parameters(estimator: Any) -> str:
    """Return the parameters that are not the defaults: "n_components=3, layout='linear'"."""
    usual = defaults(type(estimator))
    given = estimator.get_params(deep=False)
    own = [f"{name}={x!r}" for name, x in given.items() if not np.array_equal(x, usual[name])]
    return ", ".join(own) or "all parameters as by default"


def reading(estimator: Any, components: int) -> str:
    """Say what a picture is of, and what is not to be read from it."""
    free = ": a free layout, which keeps neighbours and the order of distances"
    places = free if getattr(estimator, "_has_free_layout", False) else ""
    gaps, facts = "", estimator._result("diagnostics_") or {}
    if components > 1 and places and "layout" not in facts:
        places += ", and between components, which no path joins, the order of straight distances"
    elif components > 1:
        gaps = ", or the gaps between components, between which nothing diffuses"
    return (
        f"The picture shows the coordinates of {type(estimator).__name__}{places}. The figures "
        f"compare it with the points and their graph. Do not read areas or densities from it{gaps}."
    )


def kept(distortion: Any, is_free: bool = False) -> str:
    """Return the line about how well an embedding keeps distances.

    It leaves out the worst pairs of a free layout, which are chance.
    """
    line: str = distortion.describe().removeprefix("distances ")
    if is_free:
        return line.partition(";")[0]
    return line if math.isinf(distortion.log_L) else f"{line}; log L {distortion.log_L:.2f}"


def explained(estimator: Any, index: int = 0) -> ExplainedVariance:
    """Return the diffusion variance explained at one of the times."""
    # A fraction that the user requested is reported with the probes by which it was reached.
    fewer = {} if isinstance(estimator.n_components, float) else {"n_probes": _PROBES}
    share: ExplainedVariance = estimator.explained_diffusion_variance(index=index, **fewer)
    return share


def _model(facts: dict[str, Any]) -> dict[str, str]:
    """Describe the graph or the mixture of the points, or list the other numbers known."""
    if "mixture_components" in facts:
        error = facts["distance_error"] / facts["typical_distance"]
        words = f"{facts['mixture_components']} Gaussians, {facts['n_features']} coordinates"
        kept = f"within {100 * error:.2g} % of their root mean square"
        if facts["time_error"] > 0:  # time without a closed form
            kept += f" (estimated); steps known to {100 * facts['time_error']:.2g} %"
        return {"mixture": words, "distances": kept}
    if "isolated" not in facts:
        numbers = {k: v for k, v in facts.items() if isinstance(v, int | float)}
        return {"found": ", ".join(f"{k} {v:.4g}" for k, v in numbers.items())} if numbers else {}
    components = facts.get("components", "unknown number of")
    text = f"{components} connected component(s), {facts['isolated']} isolated point(s)"
    if "layout" in facts:
        text += f"; {facts['layout']}: gaps between them mean nothing"
    return {"graph": text}


MOST_POINTS = 1_000_000  # beyond, a random sample is shown
AUDITED = ("trust", "neighbors_kept", "false_neighbors", "order_kept")
_TRACE_TIMES = 2.0 ** np.arange(11)
_FEW_POINTS = 5_000
_SEARCHED = 16  # neighbours of each point, for the tree, which they mostly join
_MOST_HALVINGS = 255  # of the scale of a step
_LEVEL = 0.95

Sketch = tuple[Array, str, float]  # rows (n, k), filter and time


class Room(NamedTuple):
    """What a page keeps of the distances of its points: the more points, the less of each."""

    columns: int  # of a sketch
    kind: str  # of a step
    neighbors: int  # of each point, for paths


def room_for(points: int) -> Room:
    """Return what a page of so many points keeps of their distances."""
    if points <= _FEW_POINTS:
        return Room(64, "i2", 5)
    if points <= 20_000:
        return Room(32, "i2", 5)
    return Room(16, "i1", 5) if points <= 200_000 else Room(12, "i1", 2)


def report(
    est: Any,
    X: Any = None,
    *,
    labels: Any = None,
    colors: Mapping[str, Mapping[str, str]] | None = None,
    ids: Any = None,
    path: str | Path | None = None,
    times: Sequence[float] | None = None,
    title: str = "",
    beside: Any = None,
    images: tuple[int, int] | None = None,
) -> Report:
    """Show an embedding in one page of HTML for any browser, offline.

    The points can be zoomed, rotated (with three or more coordinates), coloured and filtered by any
    column, pointed at to see their ids, and circled to list, name and save them, and to see which
    columns distinguish them from the others. A slider moves them through diffusion times, or from
    the old places that a picture was given to the new ones. Sketches and diffusion maps use the
    same random numbers, eigenvectors and axes at all times; the picture of a `HeatEmbedding` at
    each time is rotated to the one before. Each time has a scale of its own, and between times
    points move on straight lines. A click on a point colours all others by their diffusion distance
    to it, with its interval under the pointer; a second click shows the path between two points.
    Beside the picture the page has the distortion of distances with the worst pairs, the Ksum test,
    the scales of the data, the diffusion variance explained, the components of the graph,
    parameters and versions.

    Parameters
    ----------
    est : fitted estimator or Audit
        An estimator with one time. Methods without a diffusion have no slider. For an `Audit`, the
        page shows the picture, coloured by trust, torn and merged groups, and gaps.
    X : io.Table or {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        The points of the fit, for the Ksum test. A dense X of up to 50 columns also gives colours,
        for a table in the units of its file; of more than 20,000 points those of the largest
        variance.
    labels : array-like of shape (n_samples,), DataFrame or mapping of columns, default=None
        Columns for the colours; the first one is shown at the start. `plot.categories` tells
        categories from numbers. Text that never repeats, in more than 20 rows, is an id.
    colors : dict of dicts, default=None
        Colours of categories of `labels`, as {column: {category: "#rrggbb"}}; by default a palette.
    ids : array-like of shape (n_samples,) or mapping of columns, default=None
        Names of the points; by default their numbers from 0.
    path : path, default=None
        File to write, .html; an existing one is replaced.
    times : sequence of numbers, default=None
        Diffusion times of the slider in addition to that of the embedding; by default some smaller
        and larger by powers of two.
    title : str, default=None
        Title of the page.
    beside : array-like of shape (n_samples, n_coordinates), fitted estimator or dict, default=None
        Another picture of the same points (an array of coordinates, a fitted estimator, or a dict
        with one of them and its title as the key), shown at the side of the first. Points that are
        pointed at or selected in one are marked in both.
    images : tuple (height, width), default=None
        Size of images whose pixels are the features of X; they are shown under the pointer.

    Returns
    -------
    Report
        `.html`, `.facts` and `.save(path)`.

    Raises
    ------
    ValueError
        An estimator with several times; points that are not those of its fit; columns of another
        length than these; times that its filter does not allow, or times without a diffusion;
        images of another size than the points; a suffix that is not .html.
    TypeError
        `est` is neither an estimator of heatsketch nor an `Audit`.

    See Also
    --------
    audit : Find the points of a picture that can be believed.
    plot.scatter : Draw an embedding in the plane.
    compare : Embed data by several methods and measure each.

    Notes
    -----
    Beyond a million points a random sample is shown, with the ends of the worst pairs; all numbers
    are still those of all points. The cost is mostly that of the frames of the slider, each a few
    products or a quick map, and of the error of distances (`metrics.diffusion_distortion`). A page
    has about 6 bytes for each point, time and two coordinates; distances take 160 bytes for each of
    up to 5,000 points, 100 up to 20,000, 36 up to 200,000, and 26 beyond.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> page = hs.report(hs.DiffusionMap(2, 8).fit(X), labels=angle)
    >>> page.facts["frames"]["times"]
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]
    >>> page.html.startswith("<!doctype html>")
    True
    """
    if path is not None:
        check_suffix(path)
    is_audit = isinstance(est, Audit)
    if not is_audit and not isinstance(est, Embedder):
        raise TypeError(
            f"est is of type {type(est).__name__}; pass a fitted estimator of heatsketch, or an "
            "Audit, and the points after it: report(est, X)."
        )
    if not is_audit:
        est = est._as_fitted()
    if len(fit_times_of(est)) > 1:
        raise ValueError(
            f"est has the coordinates of {len(fit_times_of(est))} times side by side; fit it with "
            "one time, the report moves through others."
        )
    X = as_floats(vectors, "X") if holds_vectors(vectors := column_of_vectors(X)) else X
    features = names_of_columns(X)
    if features is None and not is_audit:
        features = est._result("feature_names_in_")
    X, in_units = (X.values, in_units_of_source(X)) if isinstance(X, Table) else (X, X)
    model, Y = (est.model, est.picture) if is_audit else (est, est.embedding_)
    # The distortion, the frames and the sketch need the same eigenpairs.
    leading = cache(model._leading_pairs)
    distortion = est.distortion if is_audit else fitted_distortion(est, leading)
    n = len(Y)
    if X is not None and np.shape(X)[0] != n:
        raise ValueError(
            f"X has {np.shape(X)[0]} rows but est was fitted to {n}; pass the same points."
        )
    if X is not None:
        model._refuse_other_points(X)
    shown = shown_points(n, distortion)
    facts = of_audit(est, shown) if is_audit else of_estimator(est, X, shown)
    labels, ids = labels_and_ids(labels, ids, n)
    columns = [
        column(name, values, shown, (colors or {}).get(name)) for name, values in labels.items()
    ]
    diffusion = diffusion_of(model)
    components = np.zeros(n, int) if diffusion is None else diffusion.component_of
    own = facts.pop("own columns")
    columns = own + columns if is_audit else columns + own
    of_features = feature_columns(in_units, features, shown)
    if 0 < len(of_features) < np.shape(X)[1]:
        facts["lines"]["features"] = (
            f"{len(of_features)} of {np.shape(X)[1]} are colours, those of the largest variance, "
            f"because the page shows more than {MANY_POINTS:,} points"
        )
    facts |= {
        "title": str(title or facts["title"]),
        "palette": palette(MAX_CATEGORIES),  # of groups that are named in the page
        "n_points": n,
        "n_coordinates": Y.shape[1],
        "shown": None if len(shown) == n else packed(shown, "i4"),
        "frames": frames(est, Y, slider_times(est, times, len(shown)), shown, leading),
        "ids": {name: texts(values, shown) for name, values in ids.items()},
        "columns": columns + of_features,
        "distortion": distortion and distortion_facts(distortion, shown, model._has_free_layout),
        "parameters": {name: repr(value) for name, value in model.get_params(deep=False).items()},
        "versions": {
            "heatsketch": __version__,
            "Python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
            "platform": f"{sys.platform} {platform.machine()}",
        },
        "sketch": sketch_facts(sketch_of(model, leading=leading), components, shown),
        "beside": beside_facts(beside, shown, n),
        "images": image_facts(X, images, shown),
    }
    again = None
    if (
        facts["again"] is not None
        and X is not None
        and "precomputed" not in est.get_params().values()
    ):

        def again(rows: Array) -> Report:
            points = _safe_indexing(X, rows)
            own, names = ({name: x[rows] for name, x in given.items()} for given in (labels, ids))
            found = report(clone(est).fit(points), points, labels=own, colors=colors, ids=names)
            found.facts.update(subset=True, shown=packed(rows, "i4"), title=facts["title"])
            return found

    found = Report(facts, again)
    if path is not None:
        found.save(path)
    return found


def shown_points(n: int, distortion: Distortion | None) -> Array:
    """Return the points that are shown, ascending: all, or a sample with the worst pairs."""
    if n <= MOST_POINTS:
        return np.arange(n)
    worst = {} if distortion is None else distortion.worst_pairs
    named = np.unique(np.concatenate([np.empty(0, int), *map(np.ravel, worst.values())]))
    others = np.setdiff1d(np.arange(n), named)
    others = np.random.default_rng(ORDER_SEED).permutation(others)[: MOST_POINTS - len(named)]
    return np.sort(np.concatenate([named, others]))


def of_audit(audit: Audit, shown: Array) -> dict[str, Any]:
    """Return the facts of an audit alone: gaps, and groups as places among the points shown."""
    place = np.full(len(audit.trust), -1)
    place[shown] = np.arange(len(shown))
    groups = {"torn": audit.torn, "merged": audit.merged}
    lines = dict(zip(("trust", "neighbours", "groups"), audit.describe().splitlines(), strict=True))
    if (quality := audit.quality) is not None:
        lines["verdict"] = quality.describe()
    measures = {name.replace("_", " "): getattr(audit, name) for name in AUDITED}
    measures["dubious"] = np.where(audit.undecided, "undecided", audit.dubious.astype(str))
    return {
        "title": "Audit of a picture",
        "command": "heatsketch.audit(X, Y)",
        "verdict": lines.get("verdict", lines["trust"]),
        "reading": "The figures compare this picture with the data. Do not read areas or densities "
        "from it, nor gaps that the table of gaps does not believe.",
        "again": None,
        "lines": lines,
        "own columns": [column(name, values, shown) for name, values in measures.items()],
        "gaps": [gap._asdict() | {"labels": [*map(str, gap.labels)]} for gap in audit.gaps],
        "groups": {
            kind: [
                packed(kept, "i4")
                for group in found
                if len(kept := place[group][place[group] >= 0])
            ]
            for kind, found in groups.items()
        },
    }


def of_estimator(est: Any, X: Any, shown: Array) -> dict[str, Any]:
    """Return the facts of an estimator alone: the Ksum test, scales, and the variance explained."""
    name, diffusion, columns = type(est).__name__, diffusion_of(est), []
    if isinstance(est, HeatSketch):
        columns.append(column("neighbor_confidence", est.neighbor_confidence_, shown))
    share, scales = None, None
    if diffusion is not None:
        share, scales = explained(est), _scale_facts(est, diffusion)
        if scales["components"] > 1 and diffusion.component_of.any():
            names = _names_of_components(diffusion.component_of)
            columns.append(column("component", names, shown))
    lines = summary(est, share)
    scaling = None if diffusion is None else diffusion.scaling
    is_weighed = scaling is not None and scaling.weights is not None  # those of rows are not kept
    if (moved := est._result("moved_")) is not None:
        columns.append(column("moved against old neighbours", moved, shown))
    again = f"rows = np.loadtxt('rows.txt', dtype=int)\nhs.report(hs.{est!r}.fit(X[rows]), X[rows])"
    return {
        "title": name,
        "command": f"hs.report(hs.{est!r}.fit(X), X)".replace("\n", " "),
        "verdict": "" if (found := est._result("quality_")) is None else found.describe(),
        "reading": reading(est, 1 if scales is None else scales["components"]),
        "again": None if is_weighed or moved is not None else again,
        "lines": {
            "input": f"{len(est.embedding_):,} points",
            "method": f"{name}, {parameters(est)}",
            **lines,
        },
        "own columns": columns,
        "ksum": _ksum_facts(est, X),
        "scales": scales,
        "explained": None if share is None else {"line": share.describe(), **share._asdict()},
    }


def _ksum_facts(est: Any, X: Any) -> dict[str, Any] | None:
    """Return the Ksum curve of the points with the bandwidth of the estimator, or the error."""
    given = est.get_params(deep=False)
    metric = given.get("metric")
    if X is None or metric is None or "precomputed" in (metric, given.get("affinity")):
        return None
    logger.info("the Ksum test")
    if (diffusion := diffusion_of(est)) is not None and diffusion.beside is not None:
        X = _safe_indexing(X, np.flatnonzero(diffusion.counted))
    try:
        found = ksum(X, metric=metric)
    except ValueError as error:  # points that suffice for an estimator but not for the test
        return {"why_not": str(error)}
    used = est._result("epsilon_")
    if used is None:
        used = np.nan
    return {**found._asdict(), "used": float(used) if np.ndim(used) == 0 else None}


def _scale_facts(est: Any, diffusion: Any) -> dict[str, Any]:
    """Return the numbers of directions that are left at times."""
    curve = est._result("time_curve_")
    times = _TRACE_TIMES if curve is None else np.asarray(curve.times, dtype=float)
    trace = heat_trace(diffusion, times, rng=0)
    low, high = trace.effective_rank_interval
    return {
        "times": times,
        "time": fit_times_of(est)[0],
        "effective_rank": trace.effective_rank,
        "low": low,
        "high": high,
        "components": diffusion.diagnostics.get("components", 1),
    }


def _names_of_components(labels: Array) -> Array:
    """Return a name for the component of each point, numbered by size; single points share one."""
    sizes = np.bincount(labels)
    rank = np.argsort(np.argsort(-sizes, kind="stable"))
    digits = len(str(len(sizes)))
    names = [
        "isolated" if size == 1 else f"{place + 1:0{digits}d} ({size:,} points)"
        for place, size in zip(rank, sizes, strict=True)
    ]
    return np.array(names, dtype=object)[labels]


def distances_of(est: Any) -> tuple[Any, float, str] | None:
    """Return diffusion, time and filter of the distances that an estimator keeps, None without any.

    A diffusion map may have any time, because it can use powers of the modulus of an eigenvalue.
    Distances exist from one step on, and for parts of steps only if no eigenvalue is negative.
    """
    diffusion, (time,) = diffusion_of(est), fit_times_of(est)
    if diffusion is None:
        return None
    whole = time == int(time) or diffusion.operator.ends[0][0] >= 0
    exist = est._fitted_as.filter == "heat" or (time >= 1 and whole)
    return (diffusion, time, est._fitted_as.filter) if exist else None


def fitted_distortion(est: Any, leading: LeadingPairs = leading_pairs) -> Distortion | None:
    """Return the distortion of the diffusion distances of an estimator; None if it has none."""
    if isinstance(est, HeatEmbedding):
        return est._verdict(leading)[0]
    measured: Distortion | None = est._result("distortion_")
    if measured is not None:
        return measured
    if (kept := distances_of(est)) is None:
        return None
    logger.info("how distances are kept")
    wanted = DiffusionDistances.from_operator(*kept, within_components=True, leading=leading)
    return distortion_from(est.embedding_, wanted)


def sketch_of(est: Any, seed: int = 0, leading: LeadingPairs = leading_pairs) -> Sketch | None:
    """Return a sketch of the diffusion distances of an estimator; None if it has none."""
    if isinstance(est, HeatSketch):
        return est.embedding_, est._fitted_as.filter, est._fit_times[0]
    if (kept := distances_of(est)) is None:
        return None
    logger.info("a sketch of the distances")
    diffusion, time, filter = kept
    rows = diffusion.rows(time, filter=filter)
    F = leading(rows.operator, N_LEADING).sketch(rows.filter, room_for(diffusion.n).columns, seed)
    return rows.at_points(F), filter, time


def sketch_facts(sketch: Sketch | None, labels: Array, shown: Array) -> dict[str, Any] | None:
    """Return the sketch of the points shown and their neighbours, for the page.

    `labels` (n,) are the components of the points. Each row is kept as its step from another row,
    in whole numbers of 16 bits (8 for many points) with a scale of its own. The steps are the edges
    of a tree that is nearly the shortest spanning one of the component. So the steps between two
    points are hardly longer than their distance, and rounding loses no distance, however small.
    """
    if sketch is None:
        return None
    F, filter, time = sketch
    F, labels = F[shown].astype(float), np.unique(labels[shown], return_inverse=True)[1]
    room = room_for(len(F))
    k = min(F.shape[1], room.columns)
    F = F[:, :k] * np.sqrt(F.shape[1] / k)
    least, most = ratio_bounds(k, (1 - _LEVEL) / 2)
    near, before = _neighbors_and_tree(F, labels, room.neighbors)
    steps = F - F[before]
    lengths = np.abs(steps).max(axis=1)
    longest = float(lengths.max()) or 1.0
    shares = np.maximum(lengths / longest, 0.5**_MOST_HALVINGS)
    halvings = np.floor(-np.log2(shares))
    largest = np.iinfo(room.kind).max
    steps *= (largest / longest * 2.0**halvings)[:, None]
    times = "distances added up over times from" if filter == "accumulated" else "distances at"
    kind = "u2" if len(F) < 2**16 else "i4"
    return {
        "steps": packed(np.rint(steps), room.kind),
        "halvings": packed(halvings, "u1"),
        "unit": longest / largest,
        "before": packed(before, kind),
        "near": packed(near, kind),
        "mean": mean_root(k),
        "low": (1 - 2 / largest) / np.sqrt(most),  # rounding moves 1 of 1,000 distances by more
        "high": (1 + 2 / largest) / np.sqrt(least),
        "level": round(100 * _LEVEL),
        "what": f"diffusion {times} time {time:g}",
    }


def _neighbors_and_tree(F: Array, labels: Array, count: int) -> tuple[Array, Array]:
    """Return neighbours (n, r) of each row in its component, and a spanning tree (n,).

    The tree has for each row the one before it on the way from the first row of its component. It
    is the shortest one of the neighbours and of the links between the parts that they do not join.
    Where a row has fewer neighbours, it stands for them; the first one also stands before itself.
    """
    n = len(F)
    near = np.tile(np.arange(n)[:, None], min(count, n - 1))
    firsts = np.unique(labels, return_index=True)[1]
    links = [(np.full(len(firsts), n), firsts, np.ones(len(firsts)))]  # one more row before all
    for members in members_of(labels):
        if len(members) == 1:
            continue
        G, searched = F[members] - F[members[0]], min(_SEARCHED, len(members))
        found = NeighborIndex(G).query(None, searched)
        others = members[found.indices[:, 1 : count + 1]]  # the first is mostly the row itself
        near[members, : others.shape[1]] = others
        i, j = np.repeat(np.arange(len(G)), searched), found.indices.ravel()
        parts = connected_components(found.as_csr(len(G)), directed=False)[1]
        for a, b, d in ((i, j, found.distances.ravel()), shortest_links(G, parts)):
            links.append((members[a], members[b], d))
    i, j, d = (np.concatenate(side) for side in zip(*links, strict=True))
    graph = sparse.csr_matrix((positive(d), (i, j)), shape=(n + 1, n + 1))
    before = breadth_first_order(minimum_spanning_tree(graph), n, directed=False)[1][:n]
    return near, np.where(before == n, np.arange(n), before)
