"""The contents of a report on an embedding: plain numbers and text, without any drawing."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version
from typing import Any

import numpy as np

from heatsketch import __version__
from heatsketch._checks import logger
from heatsketch._typing import Array
from heatsketch.comparison.audit import Audit
from heatsketch.metrics import Distortion
from heatsketch.plot.scatter import ORDER_SEED
from heatsketch.reports.columns import column
from heatsketch.reports.frames import diffusion_of, times_of
from heatsketch.reports.summary import explained, parameters, summary
from heatsketch.scales.bandwidth import ksum
from heatsketch.spectral.traces import heat_trace

MOST_POINTS = 20_000  # beyond, a random sample is shown
AUDITED = ("trust", "neighbors_kept", "false_neighbors", "order_kept")
_TRACE_TIMES = 2.0 ** np.arange(11)


def versions() -> dict[str, str]:
    """Return the versions on which the numbers depend."""
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


def of_audit(audit: Audit, shown: Array) -> dict[str, Any]:
    """Return the facts of an audit alone: gaps, and groups as places among the points shown."""
    place = np.full(len(audit.trust), -1)
    place[shown] = np.arange(len(shown))
    groups = {"torn": audit.torn, "merged": audit.merged}
    names = "trust", "neighbours", "groups"
    measures = {name.replace("_", " "): getattr(audit, name) for name in AUDITED}
    measures["dubious"] = audit.dubious.astype(str)
    return {
        "title": "Audit of a picture",
        "command": "heatsketch.audit(X, Y)",
        "lines": dict(zip(names, audit.describe().splitlines(), strict=True)),
        "own columns": [column(name, values, shown) for name, values in measures.items()],
        "gaps": [gap._asdict() | {"labels": [*map(str, gap.labels)]} for gap in audit.gaps],
        "groups": {
            kind: [kept.tolist() for group in found if len(kept := place[group][place[group] >= 0])]
            for kind, found in groups.items()
        },
    }


def of_estimator(est: Any, X: Any, shown: Array) -> dict[str, Any]:
    """Return the facts of an estimator alone: the Ksum test, scales, and the variance explained."""
    name, diffusion, columns = type(est).__name__, diffusion_of(est), []
    if hasattr(type(est), "neighbor_confidence_"):
        columns.append(column("neighbor_confidence", est.neighbor_confidence_, shown))
    share, scales = None, None
    if diffusion is not None:
        share, scales = explained(est), _scale_facts(est, diffusion)
        if scales["components"] > 1 and (labels := diffusion.operator.components()) is not None:
            names = _names_of_components(diffusion.expand(labels))
            columns.append(column("component", names, shown))
    points = f"{len(est.embedding_):,} points"
    return {
        "title": name,
        "command": f"hs.report(hs.{est!r}.fit(X), X)".replace("\n", " "),
        "lines": {"input": points, "method": f"{name}, {parameters(est)}", **summary(est, share)},
        "own columns": columns,
        "ksum": _ksum_facts(est, X),
        "scales": scales,
        "explained": None if share is None else {"line": share.describe(), **share._asdict()},
    }


def _ksum_facts(est: Any, X: Any) -> dict[str, Any] | None:
    """Return the Ksum curve of the points with the bandwidth of the estimator, or the error."""
    metric = getattr(est, "metric", None)
    if X is None or metric is None or "precomputed" in (metric, getattr(est, "affinity", None)):
        return None
    logger.info("the Ksum test")
    try:
        found = ksum(X, metric=metric)
    except ValueError as error:  # points that suffice for an estimator but not for the test
        return {"why_not": str(error)}
    used: Any = getattr(est, "epsilon_", np.nan)
    return {**found._asdict(), "used": float(used) if np.ndim(used) == 0 else None}


def _scale_facts(est: Any, diffusion: Any) -> dict[str, Any]:
    """Return the numbers of directions that are left at times."""
    curve = getattr(est, "time_curve_", None)
    times = _TRACE_TIMES if curve is None else np.asarray(curve.times, dtype=float)
    trace = heat_trace(diffusion, times, rng=0)
    low, high = trace.effective_rank_interval
    return {
        "times": times,
        "time": times_of(est)[0],
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
