"""The diffusion distances inside a page, as a sketch of few columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from heatsketch._checks import logger
from heatsketch._typing import Array
from heatsketch.estimators import HeatSketch
from heatsketch.markov.rows import N_LEADING, Coordinates
from heatsketch.metrics import Distortion, diffusion_distortion
from heatsketch.neighbors import NeighborIndex
from heatsketch.reports.columns import packed
from heatsketch.reports.frames import diffusion_of, times_of
from heatsketch.uncertainty.intervals import mean_root, ratio_bounds

Sketch = tuple[Array, str, float]  # rows (n, k), filter and time

_COLUMNS, _MOST_POINTS = 64, 5_000  # of a sketch; half of them for more points
_NEIGHBORS = 6  # of each point, for paths
_LEVEL = 0.95


def distances_of(est: Any) -> tuple[Any, float, str] | None:
    """Return diffusion, time and filter of the distances that an estimator keeps, None without any.

    A diffusion map may have any time, because it can use powers of the modulus of an eigenvalue.
    Distances exist from one step on, and for parts of steps only if no eigenvalue is negative.
    """
    diffusion, (time,) = diffusion_of(est), times_of(est)
    if diffusion is None:
        return None
    whole = time == int(time) or diffusion.operator.ends[0][0] >= 0
    exist = est._fit_filter == "heat" or (time >= 1 and whole)
    return (diffusion, time, est._fit_filter) if exist else None


def distortion_of(est: Any) -> Distortion | None:
    """Return the distortion of the diffusion distances of an estimator; None if it has none."""
    if hasattr(est, "distortion_"):
        known: Distortion | None = est.distortion_
        return known
    if (compared := distances_of(est)) is None:
        return None
    logger.info("how distances are kept")
    diffusion, time, filter = compared
    return diffusion_distortion(est.embedding_, diffusion, time, filter=filter)


def sketch_of(est: Any, seed: int = 0) -> Sketch | None:
    """Return a sketch of the diffusion distances of an estimator; None if it has none."""
    if isinstance(est, HeatSketch):
        return est.embedding_, est._fit_filter, est._fit_times[0]
    if (compared := distances_of(est)) is None:
        return None
    logger.info("a sketch of the distances")
    diffusion, time, filter = compared
    rows = diffusion.rows(time, filter=filter)
    columns = _COLUMNS if diffusion.n <= _MOST_POINTS else _COLUMNS // 2
    F = Coordinates.of(rows.operator, N_LEADING).sketch(rows.filter, columns, seed)
    return rows.of_points(F), filter, time


def sketch_facts(sketch: Sketch | None, shown: Array) -> dict[str, Any] | None:
    """Return the sketch of the points shown in half precision, and neighbours, for the page."""
    if sketch is None:
        return None
    F, filter, time = sketch
    F = F[shown].astype(float)
    k = min(F.shape[1], _COLUMNS if len(F) <= _MOST_POINTS else _COLUMNS // 2)
    F = (F - F.mean(axis=0))[:, :k] * np.sqrt(F.shape[1] / k)
    scale = float(np.abs(F).max(initial=0.0)) or 1.0
    least, most = ratio_bounds(k, (1 - _LEVEL) / 2)
    near = NeighborIndex(F).query(None, min(_NEIGHBORS + 1, len(F))).indices  # and the point itself
    times = "distances added up over times from" if filter == "accumulated" else "distances at"
    return {
        "values": packed(F / scale, "f2"),
        "scale": scale,
        "mean": mean_root(k),
        "low": 1 / np.sqrt(most),
        "high": 1 / np.sqrt(least),
        "level": round(100 * _LEVEL),
        "near": packed(near, "u2" if len(F) < 2**16 else "i4"),
        "what": f"diffusion {times} time {time:g}",
    }
