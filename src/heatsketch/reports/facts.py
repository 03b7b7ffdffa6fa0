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
from heatsketch.metrics import Distortion, diffusion_distortion
from heatsketch.plot.scatter import ORDER_SEED
from heatsketch.reports.columns import column, columns_of, feature_columns, packed, texts
from heatsketch.reports.frames import distortion_facts, frames, slider_times, time_of
from heatsketch.reports.summary import explained, kept, parameters, summary
from heatsketch.reports.truth import (
    beside_facts,
    flat_picture,
    gap_facts,
    group_facts,
    image_facts,
    sketch_facts,
    sketch_of,
)
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
    labels: Any = None,
    colors: Mapping[str, Mapping[str, str]] | None = None,
    ids: Any = None,
    features: Sequence[str] | None = None,
    in_units: Any = None,
    title: str = "",
    command: str = "",
    beside: Any = None,
    images: tuple[int, int] | None = None,
    **of_estimator: Any,
) -> dict[str, Any]:
    """Return the facts of a page on a fitted estimator or an `Audit`: text, numbers and `packed`.

    The parameters are those of `report`; `features` are names of the columns of X, `in_units` is X
    in the units that are shown, if these are others; those of an estimator are in `_of_estimator`.
    """
    audited = isinstance(est, Audit)
    if not audited and np.size(time_of(est)) > 1:
        raise ValueError(
            f"est has the coordinates of {np.size(time_of(est))} times side by side; fit it with "
            "one time, the report moves through others."
        )
    Y = est.picture if audited else est.embedding_
    n = len(Y)
    if X is not None and np.shape(X)[0] != n:
        raise ValueError(
            f"X has {np.shape(X)[0]} rows but est was fitted to {n}; pass the same points."
        )
    distortion = est.distortion if audited else _distortion_of(est)
    shown = shown_points(n, distortion)
    if audited:
        facts = _of_audit(est, shown)
    else:
        facts = _of_estimator(est, X, shown, distortion, **of_estimator)
    own, colors = facts.pop("own columns"), colors or {}
    given = [
        column(name, values, shown, colors.get(name))
        for name, values in columns_of(labels, "label", n).items()
    ]
    if features is None:
        features = getattr(X, "columns", getattr(est, "feature_names_in_", None))
    return facts | {
        "title": title or facts["title"],
        "n_points": n,
        "n_coordinates": Y.shape[1],
        "shown": None if len(shown) == n else packed(shown, "i4"),
        "ids": {name: texts(values, shown) for name, values in columns_of(ids, "id", n).items()},
        "columns": [
            *(own + given if audited else given + own),
            *feature_columns(X if in_units is None else in_units, features, shown),
        ],
        "distortion": None if distortion is None else distortion_facts(distortion, shown),
        "versions": versions(),
        "command": command or facts["command"],
        "sketch": sketch_facts(sketch_of(est), shown),
        "beside": beside_facts(beside, shown, n),
        "images": image_facts(X, images, shown),
    }


def _of_estimator(
    est: Any,
    X: Any,
    shown: Array,
    distortion: Distortion | None,
    *,
    times: Sequence[Any] | None = None,
    lines: Mapping[str, str] | None = None,
    share: Any = None,
) -> dict[str, Any]:
    """Return what only an estimator has.

    `lines` stand in place of `summary`, and `share` is the result of `explained`.
    """
    diffusion = _diffusion_of(est)
    if share is None and diffusion is not None:
        share = explained(est)
    return {
        "title": type(est).__name__,
        "lines": dict(lines or _lines(est, distortion, share)),
        "frames": frames(est, slider_times(est, times), shown),
        "own columns": _own_columns(est, diffusion, shown),
        "ksum": _ksum_facts(est, X),
        "scales": None if diffusion is None else _scale_facts(est, diffusion),
        "explained": _explained_facts(share),
        "parameters": {name: repr(value) for name, value in est.get_params(deep=False).items()},
        "command": f"hs.report(hs.{est!r}.fit(X), X)".replace("\n", " "),
    }


def _of_audit(audit: Audit, shown: Array) -> dict[str, Any]:
    """Return what only an audit has; its points are coloured by trust at first."""
    own = [column(name.replace("_", " "), getattr(audit, name), shown) for name in AUDITED]
    names = "trust", "neighbours", "groups"
    return {
        "title": "Audit of a picture",
        "lines": dict(zip(names, audit.describe().splitlines(), strict=True)),
        "frames": {
            "axes": [f"coordinate {k + 1}" for k in range(min(audit.picture.shape[1], 3))],
            "times": [None],
            "positions": packed(flat_picture(audit.picture)[None, shown], "f4"),
            "sizes": [1.0],
            "chosen": 0,
        },
        "own columns": [*own, column("dubious", audit.dubious.astype(str), shown)],
        "parameters": {key: repr(value) for key, value in audit.model.get_params().items()},
        "command": "heatsketch.audit(X, Y)",
        "gaps": gap_facts(audit),
        "groups": group_facts(audit, shown),
    }


def _diffusion_of(est: Any) -> Any:
    """Return the diffusion of an estimator; None where it has none, or points do not differ."""
    diffusion = getattr(est, "diffusion_", None)
    return None if diffusion is None or diffusion.diagnostics["is_constant"] else diffusion


def _distortion_of(est: Any) -> Distortion | None:
    """Return how an estimator keeps its diffusion distances; None where it has none."""
    if hasattr(est, "distortion_"):
        known: Distortion | None = est.distortion_
        return known
    diffusion = _diffusion_of(est)
    if diffusion is None or (time_of(est) < 1 and est.filter == "power"):
        return None
    logger.info("how distances are kept")
    return diffusion_distortion(est.embedding_, diffusion, time_of(est), filter=est.filter)


def _lines(est: Any, distortion: Distortion | None, share: Any) -> dict[str, str]:
    lines = {
        "input": f"{len(est.embedding_):,} points",
        "method": f"{type(est).__name__}, {parameters(est)}",
        **summary(est, share),
    }
    return lines if distortion is None else {"distances": kept(distortion)} | lines


def versions() -> dict[str, str]:
    """Return the versions that the numbers depend on."""
    return {
        "heatsketch": __version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        "platform": f"{sys.platform} {platform.machine()}",
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


def _own_columns(est: Any, diffusion: Any, shown: Array) -> list[dict[str, Any]]:
    """Return what the estimator knows of each point: how certain neighbours are, its component."""
    found = []
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


def _ksum_facts(est: Any, X: Any) -> dict[str, Any] | None:
    """Return the Ksum curve of the points, with the bandwidth of the estimator, or why not."""
    metric = getattr(est, "metric", None)
    if X is None or metric is None or "precomputed" in (metric, getattr(est, "affinity", None)):
        return None
    logger.info("the Ksum test")
    try:
        found = ksum(X, metric=metric)
    except ValueError as error:  # points that an estimator can do with
        return {"why_not": str(error)}
    used: Any = getattr(est, "epsilon_", np.nan)
    return {**found._asdict(), "used": float(used) if np.ndim(used) == 0 else None}


def _scale_facts(est: Any, diffusion: Any) -> dict[str, Any]:
    """Return how many directions are left at times."""
    curve = getattr(est, "time_curve_", None)
    times = _TRACE_TIMES if curve is None else np.asarray(curve.times, dtype=float)
    trace = heat_trace(diffusion, times, rng=0)
    low, high = trace.effective_rank_interval
    return {
        "times": times,
        "time": time_of(est),
        "effective_rank": trace.effective_rank,
        "low": low,
        "high": high,
        "n_coordinates": est.embedding_.shape[1],
        "components": diffusion.diagnostics.get("components", 1),
    }


def _explained_facts(share: Any) -> dict[str, Any] | None:
    if share is None or isinstance(share, str):  # why it is not known
        return None
    return {"line": share.describe(), **share._asdict()}
