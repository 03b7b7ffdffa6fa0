"""True distances inside a page: a sketch of few columns, and what an audit found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from heatsketch._checks import logger
from heatsketch._typing import Array
from heatsketch.comparison.audit import Audit
from heatsketch.estimators import HeatSketch
from heatsketch.markov.rows import N_LEADING, Coordinates
from heatsketch.neighbors import NeighborIndex
from heatsketch.reports.columns import packed
from heatsketch.reports.frames import time_of
from heatsketch.uncertainty.intervals import mean_root, ratio_bounds

Sketch = tuple[Array, str, float]  # rows (n, k), filter and time

_COLUMNS, _MOST_POINTS = 64, 5_000  # of a sketch; half of them for more points
_NEIGHBORS = 6  # by which paths go
_LEVEL = 0.95
_IMAGE_BYTES = 1_000_000


def sketch_of(est: Any, seed: int = 0) -> Sketch | None:
    """Return a sketch of the diffusion distances of an estimator; None where it has none."""
    own = est.model if isinstance(est, Audit) else est
    if isinstance(own, HeatSketch):
        one = len(own._fit_times) == 1
        return (own.embedding_, own.filter, own.time) if one else None
    diffusion = getattr(est, "diffusion_", None)
    if diffusion is None or diffusion.diagnostics["is_constant"] or not hasattr(est, "filter"):
        return None
    time = time_of(est)
    if time != int(time) and est.filter != "heat":
        return None
    rows = diffusion.rows(time, filter=est.filter)
    columns = _COLUMNS if diffusion.n <= _MOST_POINTS else _COLUMNS // 2
    logger.info("a sketch of the distances")
    F = Coordinates.of(rows.operator, N_LEADING).sketch(rows.filter, columns, seed)
    return rows.of_points(F), est.filter, time


def sketch_facts(sketch: Sketch | None, shown: Array) -> dict[str, Any] | None:
    """Return what the page needs for the distances of the points shown, in half precision."""
    if sketch is None:
        return None
    F, filter, time = sketch
    F = F[shown].astype(float)
    k = min(F.shape[1], _COLUMNS if len(F) <= _MOST_POINTS else _COLUMNS // 2)
    F = (F - F.mean(axis=0))[:, :k] * np.sqrt(F.shape[1] / k)
    scale = float(np.abs(F).max(initial=0.0)) or 1.0
    least, most = ratio_bounds(k, (1 - _LEVEL) / 2)
    near = NeighborIndex(F).query(None, min(_NEIGHBORS + 1, len(F))).indices  # and itself
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


def image_facts(X: Any, images: tuple[int, int] | None, shown: Array) -> dict[str, Any] | None:
    """Return the points shown as grey images (m, h, w); of large ones every second pixel."""
    if images is None:
        return None
    if X is None or np.shape(X)[1] != images[0] * images[1]:
        raise ValueError(
            f"images={images!r} but X has {None if X is None else np.shape(X)[1]} features; pass "
            "the points, and the height and width of an image of them."
        )
    values = np.asarray(X, dtype=float)[shown].reshape(-1, *images)
    while values.size > _IMAGE_BYTES and min(values.shape[1:]) > 1:
        values = values[:, ::2, ::2]
    low, high = values.min(), values.max()
    return packed(255 * (values - low) / ((high - low) or 1.0), "u1")


def beside_facts(beside: Any, shown: Array, n: int) -> dict[str, Any] | None:
    """Return another picture of the same points: an array (n, c), an estimator, or {title: it}."""
    if beside is None:
        return None
    title, other = next(iter(beside.items())) if isinstance(beside, Mapping) else ("", beside)
    title = title or (type(other).__name__ if hasattr(other, "embedding_") else "another picture")
    Y = np.asarray(getattr(other, "embedding_", other), dtype=float)
    if Y.ndim != 2 or len(Y) != n or not np.isfinite(Y).all():
        raise ValueError(f"beside has shape {Y.shape}; pass a finite array ({n}, 2) or ({n}, 3).")
    return {"title": title, "positions": packed(flat_picture(Y)[None, shown], "f4")}


def flat_picture(Y: Array) -> Array:
    """Return at most three coordinates, around 0, of mean square 1."""
    Y = Y[:, :3] - Y[:, :3].mean(axis=0)
    return Y / (np.sqrt(np.mean(np.sum(Y**2, axis=1))) or 1.0)


def gap_facts(audit: Audit) -> dict[str, Any] | None:
    """Return the table of gaps between labels."""
    if not audit.gaps:
        return None
    believed = sum(gap.believed for gap in audit.gaps)
    return {
        "line": f"{believed} of {len(audit.gaps)} gaps are in the place that they have in truth.",
        "rows": [gap._asdict() | {"labels": [*map(str, gap.labels)]} for gap in audit.gaps],
    }


def group_facts(audit: Audit, shown: Array) -> dict[str, Any]:
    """Return torn and merged groups as places among the points shown."""
    place = np.full(len(audit.trust), -1)
    place[shown] = np.arange(len(shown))
    groups = {"torn": audit.torn, "merged": audit.merged}
    return {
        kind: [kept.tolist() for group in found if len(kept := place[group][place[group] >= 0])]
        for kind, found in groups.items()
    }
