"""The points of an embedding at other diffusion times, so that they can be moved through them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import orthogonal_procrustes
from sklearn.base import clone

from heatsketch._checks import logger
from heatsketch._typing import Array
from heatsketch.isometry.losses import stress
from heatsketch.isometry.objective import Basis, SampledPairs
from heatsketch.isometry.pairs import log_ratios, random_pairs
from heatsketch.markov.coordinates import Coordinates
from heatsketch.markov.rows import N_LEADING
from heatsketch.metrics.distances import rows_within_components
from heatsketch.neighbors import pair_distances
from heatsketch.plot.scatter import principal_axes
from heatsketch.spectral.apply import SPECTRAL_LIMIT
from heatsketch.spectral.filters import FILTERS

MOST_DIMENSIONS = 3
_DOUBLINGS = 4  # of the time, on either side
_ROWS, _PAIRS, _ITERATIONS = 1_000, 16_000, 60  # that a map is fitted to
_LEAST_ROWS = 32  # of a component whose map is fitted, and not only followed
_DIRECTIONS, _RANK = 256, 64
_LEFT = 1e-3  # weight of a direction next to the first, from which on it counts
_SKETCH_COLUMNS = 128
_DOT = 1e-12  # size of a component next to the largest, below which it is a dot


class Frames(NamedTuple):
    """Positions of points at several times, each on the scale at which the mean square is 1.

    Attributes
    ----------
    times : list of numbers
        Ascending.
    positions : array (T, m, d)
        d is 1 to 3.
    sizes : array (T,)
        What positions are multiplied by to have diffusion distances: the root mean square radius
        (of components side by side: within these).
    chosen : int
        The index of the time of the embedding, at which it stands as it is (of more than three
        coordinates on its principal axes).
    kept : array (T,) or None
        Of a learned map: the share of the distances of a sample that are within `factor` of the
        median.
    """

    times: list[Any]
    positions: Array
    sizes: Array
    chosen: int
    kept: Array | None = None


def slider_times(est: Any, times: Sequence[Any] | None = None) -> list[Any]:
    """Return the times of the slider, that of the embedding among them; one if it has no other."""
    own = _time_of(est)
    diffusion = getattr(est, "diffusion_", None)
    if diffusion is None and times is not None:
        raise ValueError(
            f"times={times!r} but {type(est).__name__} has no diffusion; leave it out."
        )
    if diffusion is None or diffusion.diagnostics["flat"] or own is None:
        return [own]
    if times is not None:
        whole = not hasattr(est, "eigenvalues_")  # else a time counts products
        checked = [FILTERS[est.filter].check_time(t, whole=whole) for t in times]
        return sorted({own, *(int(t) if t.is_integer() else t for t in map(float, checked))})
    curve = getattr(est, "time_curve_", None)
    if curve is not None:
        at = int(np.flatnonzero(curve.times == own)[0])
        return [t.item() for t in curve.times[max(0, at - _DOUBLINGS) : at + _DOUBLINGS + 1]]
    if own == 0:
        return [0, *(2**j for j in range(_DOUBLINGS + 1))]
    found = [own * 2.0**j for j in range(-_DOUBLINGS, _DOUBLINGS + 1)]
    if est.filter == "power" and float(own).is_integer():
        return [int(t) for t in found if t.is_integer()]
    return [t for t in found if t >= min(own, 1)]


def frames(est: Any, times: Sequence[Any], shown: Array) -> Frames:
    """Return positions of the points `shown` (m,) at the times, of which one is the embedding's.

    Of a sketch and a diffusion map the same random numbers, eigenvectors and axes are used at all
    times. A learned map is followed from time to time: each one is found from that of the time
    beside it, and turned to it.
    """
    at = list(times).index(_time_of(est))
    if len(times) == 1:
        return _still(est, shown)
    if hasattr(est, "time_curve_"):
        return _followed(est, list(times), at, shown)
    blocks, log_scales = (
        _by_eigenvalues(est, times, at)
        if hasattr(est, "eigenvalues_")
        else _of_a_copy(est, list(times), at)
    )
    return _on_the_same_axes(blocks, log_scales, list(times), at, shown)


def _time_of(est: Any) -> Any:
    return getattr(est, "time_", getattr(est, "time", None))


def _still(est: Any, shown: Array) -> Frames:
    Y = np.asarray(est.embedding_, dtype=float)
    view = _centred(Y @ _axes(Y))[None, shown]
    size = _size(view[0])
    return Frames([_time_of(est)], view / size, np.array([size]), 0)


def _by_eigenvalues(est: Any, times: Sequence[Any], at: int) -> tuple[Array, Array]:
    """Return the coordinates at all times (n, T, k), each divided by e^log_scale, and these (T,).

    Those of an eigenvector change by a factor of its eigenvalue, whatever the last step is.
    """
    found = [FILTERS[est.filter].step_weights(t, est.eigenvalues_) for t in times]
    weights = np.array([weight for weight, _ in found])  # (T, k)
    own = np.where(weights[at] == 0, 1.0, weights[at])
    blocks = est.embedding_[:, None, :].astype(float) * (weights / own)
    log_scales = np.array([log_scale for _, log_scale in found])
    return blocks, log_scales - log_scales[at] + est.diagnostics_["log_scale"]


def _of_a_copy(est: Any, times: list[Any], at: int) -> tuple[Array, Array]:
    """Fit a copy at all times, which takes the same random numbers; as `_by_eigenvalues`."""
    given = est.embedding_
    k = given.shape[1]
    fixed = {"affinity": "precomputed", "neighbors": None, "metric": "euclidean"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sizes at other times do not matter
        copy = clone(est).set_params(**fixed, time=times, n_components=k).fit(est.diffusion_)
    blocks = copy.embedding_.astype(float).reshape(len(given), len(times), k)
    blocks[:, at] = given
    log_scales = np.asarray(copy.diagnostics_["log_scale"], dtype=float)
    log_scales[at] = est.diagnostics_["log_scale"]
    return blocks, log_scales


def _on_the_same_axes(
    blocks: Array, log_scales: Array, times: list[Any], at: int, shown: Array
) -> Frames:
    axes = _axes(blocks[:, at])
    views = [_centred(blocks[:, t] @ axes)[shown] for t in range(len(times))]
    sizes = np.array([_size(view) for view in views])
    positions = np.stack([view / size for view, size in zip(views, sizes, strict=True)])
    return Frames(times, positions, _true_sizes(sizes, log_scales), at)


class _Rows:
    """Coordinates of points at any time, whose distances are diffusion distances."""

    def __init__(self, est: Any, shown: Array) -> None:
        compared = rows_within_components(est.diffusion_, est.time_, est.filter)
        self._est, self._shown, self.labels = est, shown, compared.labels
        self._operator = compared.rows.operator
        few = self._operator.n <= SPECTRAL_LIMIT
        make = Coordinates.complete if few else Coordinates.of
        self._coordinates = make(self._operator, *([] if few else [N_LEADING]))

    def at(self, time: Any) -> tuple[Array, float]:
        """Return coordinates (m, r) divided by e^s, the first ones largest, and s."""
        rows = self._est.diffusion_.rows(time, filter=self._est.filter)
        rows = replace(rows, operator=self._operator)
        F, log_scale = self._coordinates.under(rows.filter, _SKETCH_COLUMNS, seed=0)
        size = np.abs(F).max(axis=0)
        used = np.argsort(-size, kind="stable")[:_DIRECTIONS]
        F = F[:, used[size[used] > _LEFT * size.max()]] * math.exp(log_scale - rows.log_scale)
        return rows.of_points(rows.stepped(F))[self._shown].astype(float), rows.log_scale


def _followed(est: Any, times: list[Any], at: int, shown: Array) -> Frames:
    rows = _Rows(est, shown)
    labels = np.zeros(len(shown), int) if rows.labels is None else rows.labels[shown]
    parts = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    Y = np.asarray(est.embedding_[shown], dtype=float)
    centres = np.zeros_like(Y)
    for part in parts:
        centres[part] = Y[part].mean(axis=0)
    inner = {at: Y - centres}
    kept = {at: _kept_of(est, inner[at], parts, rows.at(times[at])[0])}
    log_scales = {at: float(est.diagnostics_["log_scale"])}
    for step in (1, -1):
        for t in range(at + step, len(times) if step > 0 else -1, step):
            logger.info("the points at time %g", times[t])
            block, log_scales[t] = rows.at(times[t])
            inner[t], kept[t] = _next(inner[t - step], parts, block, est.factor)
    order = range(len(times))
    sizes = np.array([_size(inner[t]) for t in order])
    centres = (centres - centres.mean(axis=0)) / sizes[at]
    positions = np.stack([inner[t] / sizes[t] + centres for t in order])
    sizes = _true_sizes(sizes, np.array([log_scales[t] for t in order]))
    return Frames(times, positions, sizes, at, np.array([kept[t] for t in order]))


def _next(before: Array, parts: list[Array], F: Array, factor: float) -> tuple[Array, float]:
    """Follow the maps of the parts to the coordinates F (m, r) of another time."""
    Y, kept, weights = np.zeros_like(before), [], []
    size = np.abs(F).max(initial=0.0)
    for part in parts:
        if np.ptp(F[part], axis=0).max(initial=0.0) <= _DOT * size:
            continue
        Y[part], share = _follow(before[part], F[part], factor)
        kept.append(share)
        weights.append(len(part) * (len(part) - 1))
    return Y, float(np.average(kept, weights=weights)) if kept else 1.0


def _follow(before: Array, F: Array, factor: float) -> tuple[Array, float]:
    """Return the image (p, k) of F (p, r) by the map found from that of the time beside it."""
    some = np.random.default_rng(0).permutation(len(F))[:_ROWS]
    basis = Basis.of(F[some], _RANK)
    Z = (F - F[some].mean(axis=0)) @ basis.axes
    Q = np.linalg.lstsq(Z[some], before[some], rcond=None)[0]
    i, j, D = _pairs_of(F[some])
    if len(some) >= _LEAST_ROWS and Q.any():
        Q = SampledPairs.of(Z[some], i, j, D).descend(Q, stress, _ITERATIONS)
    Y = _centred(Z @ Q)
    if Y.any() and before.any():
        Y = Y @ orthogonal_procrustes(Y, before)[0]
    found = log_ratios(Y[some], i, j, D)
    return Y / math.exp(float(np.median(found.values))), found.fraction(factor)


def _kept_of(est: Any, Y: Array, parts: list[Array], F: Array) -> float:
    """Return the share of the distances that the embedding keeps, as `_follow` measures it."""
    kept, weights = [], []
    for part in parts:
        some = part[np.random.default_rng(0).permutation(len(part))[:_ROWS]]
        if len(part) > 1 and np.ptp(F[some], axis=0).any() and Y[some].any():
            kept.append(log_ratios(Y[some], *_pairs_of(F[some])).fraction(est.factor))
            weights.append(len(part) * (len(part) - 1))
    return float(np.average(kept, weights=weights)) if kept else 1.0


def _pairs_of(F: Array) -> tuple[Array, Array, Array]:
    """Return pairs i, j of rows that differ, and their distances."""
    i, j = random_pairs(len(F), _PAIRS)
    D = pair_distances(F, F, i, j)
    apart = _DOT * D.max(initial=0.0) < D
    return i[apart], j[apart], D[apart]


def _axes(Y: Array) -> Array:
    """Return the axes (k, d) of the picture: of more than three coordinates the principal ones."""
    k = Y.shape[1]
    return np.eye(k) if k <= MOST_DIMENSIONS else principal_axes(Y, MOST_DIMENSIONS)[0]


def _centred(Y: Array) -> Array:
    return Y - Y.mean(axis=0)


def _true_sizes(sizes: Array, log_scales: Array) -> Array:
    """Return sizes e^log_scale; beyond the range of numbers they are not told."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(sizes * np.exp(log_scales))


def _size(Y: Array) -> float:
    """Return the root mean square radius, 1 if all points are in one place."""
    return float(np.sqrt(np.mean(np.sum(Y**2, axis=1)))) or 1.0
