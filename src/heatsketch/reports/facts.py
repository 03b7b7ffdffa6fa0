"""What a report says of an embedding: plain numbers and text, without any drawing."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from heatsketch import __version__
from heatsketch._checks import logger
from heatsketch._typing import Array
from heatsketch.comparison.audit import Audit
from heatsketch.metrics import Distortion
from heatsketch.plot.scatter import ORDER_SEED
from heatsketch.reports.columns import (
    column,
    columns_of,
    feature_columns,
    image_facts,
    packed,
    texts,
)
from heatsketch.reports.frames import (
    beside_facts,
    diffusion_of,
    distortion_facts,
    frames,
    slider_times,
    times_of,
)
from heatsketch.reports.summary import explained, summary
from heatsketch.reports.truth import distortion_of, sketch_facts, sketch_of
from heatsketch.scales.bandwidth import ksum
from heatsketch.spectral.traces import heat_trace

MOST_POINTS = 20_000  # of more points a random sample is shown
AUDITED = ("trust", "neighbors_kept", "false_neighbors", "order_kept")
CONFIDENCE, COMPONENT = "neighbor_confidence", "component"
_TRACE_TIMES = 2.0 ** np.arange(11)


def collect(
    est: Any,
    X: Any = None,
    *,
    title: str,
    command: str,
    labels: Any = None,
    colors: Mapping[str, Mapping[str, str]] | None = None,
    ids: Any = None,
    times: Sequence[Any] | None = None,
    features: Sequence[str] | None = None,
    in_units: Any = None,
    beside: Any = None,
    images: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Return the facts of a page on a fitted estimator or an `Audit`: text, numbers and `packed`.

    The parameters are those of `report`; `features` are names of the columns of X, `in_units` is X
    in the units that are shown, if these are others, and `command` says how the page was made.
    """
    if len(times_of(est)) > 1:
        raise ValueError(
            f"est has the coordinates of {len(times_of(est))} times side by side; fit it with "
            "one time, the report moves through others."
        )
    audit = est if isinstance(est, Audit) else None
    model, Y = (est, est.embedding_) if audit is None else (audit.model, audit.picture)
    n = len(Y)
    if X is not None and np.shape(X)[0] != n:
        raise ValueError(
            f"X has {np.shape(X)[0]} rows but est was fitted to {n}; pass the same points."
        )
    distortion = distortion_of(est) if audit is None else audit.distortion
    shown = shown_points(n, distortion)
    columns = [
        column(name, values, shown, (colors or {}).get(name))
        for name, values in columns_of(labels, "label", n).items()
    ]
    if audit is None:
        facts = _of_estimator(est, X)
        columns += _own_columns(est, shown)
    else:
        facts = _of_audit(audit, shown)
        measures = [(name.replace("_", " "), getattr(audit, name)) for name in AUDITED]
        measures.append(("dubious", audit.dubious.astype(str)))
        columns = [*(column(name, values, shown) for name, values in measures), *columns]
    if features is None:
        features = getattr(X, "columns", getattr(est, "feature_names_in_", None))
    return facts | {
        "title": title,
        "command": command,
        "n_points": n,
        "n_coordinates": Y.shape[1],
        "shown": None if len(shown) == n else packed(shown, "i4"),
        "frames": frames(est, Y, slider_times(est, times), shown),
        "ids": {name: texts(values, shown) for name, values in columns_of(ids, "id", n).items()},
        "columns": columns + feature_columns(X if in_units is None else in_units, features, shown),
        "distortion": None if distortion is None else distortion_facts(distortion, shown),
        "parameters": {name: repr(value) for name, value in model.get_params(deep=False).items()},
        "versions": {
            "heatsketch": __version__,
            "Python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
            "platform": f"{sys.platform} {platform.machine()}",
        },
        "sketch": sketch_facts(sketch_of(model), shown),
        "beside": beside_facts(beside, shown, n),
        "images": image_facts(X, images, shown),
    }


def shown_points(n: int, distortion: Distortion | None) -> Array:
    """Return the points that are shown, ascending: all, or a sample with the worst pairs."""
    if n <= MOST_POINTS:
        return np.arange(n)
    worst = {} if distortion is None else distortion.worst_pairs
    named = np.unique(np.concatenate([np.empty(0, int), *map(np.ravel, worst.values())]))
    others = np.setdiff1d(np.arange(n), named)
    others = np.random.default_rng(ORDER_SEED).permutation(others)[: MOST_POINTS - len(named)]
    return np.sort(np.concatenate([named, others]))


def _of_audit(audit: Audit, shown: Array) -> dict[str, Any]:
    """Return what only an audit has: gaps, and groups as places among the points shown."""
    place = np.full(len(audit.trust), -1)
    place[shown] = np.arange(len(shown))
    groups = {"torn": audit.torn, "merged": audit.merged}
    names = "trust", "neighbours", "groups"
    return {
        "lines": dict(zip(names, audit.describe().splitlines(), strict=True)),
        "gaps": [gap._asdict() | {"labels": [*map(str, gap.labels)]} for gap in audit.gaps],
        "groups": {
            kind: [kept.tolist() for group in found if len(kept := place[group][place[group] >= 0])]
            for kind, found in groups.items()
        },
    }


def _of_estimator(est: Any, X: Any) -> dict[str, Any]:
    """Return what only an estimator has: the Ksum test, scales, and the variance explained."""
    diffusion = diffusion_of(est)
    share = None if diffusion is None else explained(est)
    facts: dict[str, Any] = {
        "lines": summary(est, share),
        "ksum": None,
        "scales": None,
        "explained": None if share is None else {"line": share.describe(), **share._asdict()},
    }
    metric = getattr(est, "metric", None)
    if not (
        X is None or metric is None or "precomputed" in (metric, getattr(est, "affinity", None))
    ):
        logger.info("the Ksum test")
        used: Any = getattr(est, "epsilon_", np.nan)
        try:
            facts["ksum"] = ksum(X, metric=metric)._asdict()
            facts["ksum"]["used"] = float(used) if np.ndim(used) == 0 else None
        except ValueError as error:  # points that an estimator can do with
            facts["ksum"] = {"why_not": str(error)}
    if diffusion is not None:
        curve = getattr(est, "time_curve_", None)
        times = _TRACE_TIMES if curve is None else np.asarray(curve.times, dtype=float)
        trace = heat_trace(diffusion, times, rng=0)
        low, high = trace.effective_rank_interval
        facts["scales"] = {
            "times": times,
            "time": times_of(est)[0],
            "effective_rank": trace.effective_rank,
            "low": low,
            "high": high,
            "n_coordinates": est.embedding_.shape[1],
            "components": diffusion.diagnostics.get("components", 1),
        }
    return facts


def _own_columns(est: Any, shown: Array) -> list[dict[str, Any]]:
    """Return what the estimator knows of each point: how certain neighbours are, its component."""
    found, diffusion = [], diffusion_of(est)
    if hasattr(type(est), "neighbor_confidence_"):
        found.append(column(CONFIDENCE, est.neighbor_confidence_, shown))
    if diffusion is not None and diffusion.diagnostics.get("components", 1) > 1:
        labels = diffusion.operator.components()
        if labels is not None:
            names = _names_of_components(diffusion.expand(labels))
            found.append(column(COMPONENT, names, shown))
    return found


def _names_of_components(labels: Array) -> Array:
    """Return a name for each component, the largest first; points alone are named as such."""
    sizes = np.bincount(labels)
    rank = np.argsort(np.argsort(-sizes, kind="stable"))
    digits = len(str(len(sizes)))
    names = [
        "isolated" if size == 1 else f"{place + 1:0{digits}d} ({size:,} points)"
        for place, size in zip(rank, sizes, strict=True)
    ]
    return np.array(names, dtype=object)[labels]
