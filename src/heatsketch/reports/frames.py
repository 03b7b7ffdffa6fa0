"""The points of an embedding at other diffusion times, for the slider of a report."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import orthogonal_procrustes
from sklearn.base import clone

from heatsketch._exceptions import logger
from heatsketch._typing import Array
from heatsketch.estimators import HeatEmbedding
from heatsketch.estimators._base import DiffusionEstimator
from heatsketch.layout.objective import sampled_pairs, within_labels
from heatsketch.markov.rows import N_LEADING, LeadingPairs, leading_pairs
from heatsketch.metrics.distances import DiffusionDistances
from heatsketch.metrics.distortions import Distortion, distortion
from heatsketch.neighbors.exact import pair_distances
from heatsketch.plot.points import principal_axes
from heatsketch.reports.columns import packed_places
from heatsketch.reports.summary import kept
from heatsketch.spectral.apply import time_excess
from heatsketch.spectral.filters import FILTERS, make_filter

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
