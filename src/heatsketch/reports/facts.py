"""A report on an embedding: what its page says, as plain numbers and text."""

import platform
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import (
    breadth_first_order,
    connected_components,
    minimum_spanning_tree,
)
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from heatsketch import __version__
from heatsketch._exceptions import logger
from heatsketch._typing import Array
from heatsketch._validation import names_of_columns
from heatsketch.comparison.audit import Audit
from heatsketch.estimators import HeatEmbedding, HeatSketch
from heatsketch.estimators._embedder import Embedder
from heatsketch.graphs.links import shortest_links
from heatsketch.graphs.neighborhoods import positive
from heatsketch.io.refine import in_units_of_source
from heatsketch.io.table import Table
from heatsketch.markov.rows import N_LEADING, LeadingPairs, leading_pairs
from heatsketch.metrics.distances import DiffusionDistances
from heatsketch.metrics.distortions import Distortion, distortion_from
from heatsketch.neighbors import NeighborIndex
from heatsketch.operators.components import members_of
from heatsketch.plot.labels import MAX_CATEGORIES, palette
from heatsketch.plot.points import ORDER_SEED
from heatsketch.reports.columns import (
    MANY_POINTS,
    column,
    feature_columns,
    image_facts,
    labels_and_ids,
    packed,
    texts,
)
from heatsketch.reports.frames import (
    beside_facts,
    diffusion_of,
    distortion_facts,
    fit_times_of,
    frames,
    slider_times,
)
from heatsketch.reports.summary import explained, parameters, reading, summary
from heatsketch.reports.writer import Report, check_suffix
from heatsketch.scales.bandwidth import ksum
from heatsketch.spectral.traces import heat_trace
from heatsketch.uncertainty.intervals import mean_root, ratio_bounds

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
    columns distinguish them from the others. A slider moves them
    through diffusion times. Sketches and diffusion maps use the same random numbers, eigenvectors
    and axes at all times; the picture of a `HeatEmbedding` at each time is rotated to the one
    before. Each time has a scale of its own, and between times points move on straight lines. A
    click on a point colours all others by their diffusion distance to it, with its interval under
    the pointer; a second click shows the path between two points. Beside the picture the page has
    the distortion of distances with the worst pairs, the Ksum test, the scales of the data, the
    diffusion variance explained, the components of the graph, parameters and versions.

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
    if (quality := audit._quality) is not None:
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
    again = f"rows = np.loadtxt('rows.txt', dtype=int)\nhs.report(hs.{est!r}.fit(X[rows]), X[rows])"
    return {
        "title": name,
        "command": f"hs.report(hs.{est!r}.fit(X), X)".replace("\n", " "),
        "verdict": "" if (found := est._result("quality_")) is None else found.describe(),
        "reading": reading(est, 1 if scales is None else scales["components"]),
        "again": None if is_weighed else again,
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
