"""The points of an embedding at other diffusion times, so that they can be moved through them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import orthogonal_procrustes
from sklearn.base import clone

from heatsketch._checks import logger
from heatsketch._typing import Array
from heatsketch.markov.rows import N_LEADING, Coordinates
from heatsketch.metrics.distances import compared_rows
from heatsketch.metrics.distortions import Distortion, distortion
from heatsketch.neighbors.exact import pair_distances
from heatsketch.plot.scatter import principal_axes, principal_name
from heatsketch.reports.columns import packed
from heatsketch.reports.summary import kept
from heatsketch.spectral.apply import time_excess
from heatsketch.spectral.filters import FILTERS, make_filter

MOST_DIMENSIONS = 3
_DOUBLINGS = 4  # of the time, on either side
_SKETCH_COLUMNS = 64
_RIDGE = 0.03  # size of a direction next to the first, below which the map hardly uses it
_PAIRS = 16_000  # by which it is judged how distances are kept
_DEGENERATE = 1e-12  # distance of a pair next to the largest, from which on it counts


def slider_times(est: Any, times: Sequence[Any] | None = None) -> list[Any]:
    """Return the times of the slider, that of the embedding among them; one if it has no other.

    Times at which f(A) is beyond the range of numbers are left out.
    """
    own = time_of(est)
    diffusion = getattr(est, "diffusion_", None)
    if diffusion is None and times is not None:
        raise ValueError(
            f"times={times!r} but {type(est).__name__} has no diffusion; leave it out."
        )
    if diffusion is None or diffusion.diagnostics["is_constant"] or own is None:
        return [own]
    if times is not None:
        whole = not hasattr(est, "eigenvalues_")  # else a time counts products
        checked = [FILTERS[est.filter].check_time(t, whole=whole) for t in times]
        found = sorted({own, *(int(t) if t.is_integer() else t for t in map(float, checked))})
    elif (curve := getattr(est, "time_curve_", None)) is not None:
        at = int(np.flatnonzero(curve.times == own)[0])
        found = curve.times[max(0, at - _DOUBLINGS) : at + _DOUBLINGS + 1].tolist()
    else:
        doubled = [(own or 1) * 2.0**j for j in range(-_DOUBLINGS, _DOUBLINGS + 1)]
        if float(own).is_integer():
            found = sorted({own, *(int(t) for t in doubled if t.is_integer())})
        else:
            found = [t for t in doubled if t >= min(own, 1)]
    A = diffusion.deflated()
    return [t for t in found if t == own or time_excess(make_filter(est.filter, t), A) <= 1]


def frames(est: Any, times: Sequence[Any], shown: Array) -> dict[str, Any]:
    """Return the points `shown` (m,) at the times, of which one is the embedding's, as plain JSON.

    `positions` (T, m, d), d from 1 to 3, have mean square 1 at each time; multiplied by `sizes`
    (T,) their distances are diffusion distances. At time number `chosen` the embedding stands as it
    is (of more than three coordinates on its principal axes). `distances` (T,) says how a
    `HeatEmbedding` keeps those of random pairs at each other time.
    """
    at = list(times).index(time_of(est))
    distances: Sequence[Distortion | None] = [None] * len(times)
    Y = np.asarray(est.embedding_, dtype=float)
    centres = np.zeros_like(Y)
    if len(times) == 1:
        blocks = Y[None]
    elif hasattr(est, "time_curve_"):
        blocks, centres, distances = _mapped(est, times, at)
    else:
        blocks = _of_a_copy(est, list(times), at)
    axes, names = np.eye(Y.shape[1]), est.get_feature_names_out().tolist()
    if len(axes) > MOST_DIMENSIONS:
        axes, shares = principal_axes(Y, MOST_DIMENSIONS)
        names = [principal_name(j, share) for j, share in enumerate(shares)]
    views = [_centred((block @ axes)[shown]) for block in blocks]
    sizes = np.array([np.sqrt(np.mean(np.sum(view**2, axis=1))) or 1.0 for view in views])
    places = _centred((centres @ axes)[shown]) / sizes[at]
    positions = [view / size + places for view, size in zip(views, sizes, strict=True)]
    return {
        "axes": names,
        "times": [None if t is None else float(t) for t in times],
        "positions": packed(np.stack(positions), "f4"),
        "sizes": sizes.tolist(),
        "chosen": at,
        "distances": [one and distortion_facts(one, shown) for one in distances],
    }


def distortion_facts(found: Distortion, shown: Array) -> dict[str, Any]:
    """Return how distances are kept, and the worst pairs as places among the points shown."""
    worst = {
        end: np.searchsorted(shown, pairs[np.isin(pairs, shown).all(axis=1)])
        for end, pairs in found.worst_pairs.items()
    }
    return found._asdict() | {"line": kept(found), "worst_pairs": worst}


def time_of(est: Any) -> Any:
    """Return the time of an embedding, or None."""
    return getattr(est, "time_", getattr(est, "time", None))


def _of_a_copy(est: Any, times: list[Any], at: int) -> Array:
    """Return coordinates (T, n, k) at all times, by the same random numbers or eigenvectors."""
    k = est.embedding_.shape[1]
    fixed = {"affinity": "precomputed", "neighbors": None, "metric": "euclidean"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sizes at other times do not matter
        copy = clone(est).set_params(**fixed, time=times, n_components=k).fit(est.diffusion_)
    blocks = np.asarray(copy.embedding_, float).reshape(-1, len(times), k).swapaxes(0, 1).copy()
    blocks[at] = est.embedding_
    return blocks


def _mapped(
    est: Any, times: Sequence[Any], at: int
) -> tuple[Array, Array, list[Distortion | None]]:
    """Move the coordinates that a `HeatEmbedding` is a linear map of, and keep the map.

    The coordinates are the leading eigenvectors and a sketch of the rest with the same random
    numbers at all times. The map is found by least squares, with a ridge: a direction that hardly
    counts at the time of the embedding may be large at others. Each block is turned to the one
    before. Returns blocks (T, n, k) around the centres of their components, the centres (n, k), and
    how distances are kept at the other times.
    """
    diffusion = est.diffusion_
    compared = compared_rows(diffusion, est.time_, est.filter, within_components=True)
    operator, labels = compared.rows.operator, compared.labels
    coordinates = Coordinates.of(operator, N_LEADING)
    Y = np.asarray(est.embedding_, dtype=float)
    n = len(Y)
    rng = np.random.default_rng(0)
    i, j = rng.integers(n, size=(2, _PAIRS))
    if labels is not None:
        i, j = i[labels[i] == labels[j]], j[labels[i] == labels[j]]

    logger.info("the points at %d times", len(times))
    each = [replace(diffusion.rows(t, filter=est.filter), operator=operator) for t in times]
    known = coordinates.under([rows.filter for rows in each], _SKETCH_COLUMNS, seed=0)
    # Of many points no block stays longer than it must.
    found = [_centred(rows.of_points(known.pop(0)).astype(float), labels) for rows in each]
    own = found[at]
    inner = _centred(Y, labels)
    gram = own.T @ own
    ridge = _RIDGE**2 * np.linalg.norm(gram, 2) * np.eye(len(gram))
    W = np.linalg.lstsq(gram + ridge, own.T @ inner, rcond=None)[0]
    blocks = np.empty((len(times), *Y.shape))
    distortions: list[Distortion | None] = [None] * len(times)
    blocks[at] = inner
    for t in [*range(at + 1, len(times)), *range(at - 1, -1, -1)]:
        F, before = found[t], t - 1 if t > at else t + 1
        count = min(len(W), F.shape[1])  # without a sketch where it does not count
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


def _centred(Y: Array, labels: Array | None = None) -> Array:
    """Subtract the mean of all rows, or of those with the same label."""
    if labels is None:
        return Y - Y.mean(axis=0)
    groups = sparse.csr_array((np.ones(len(Y)), (labels, np.arange(len(Y)))))
    return np.asarray(Y - ((groups @ Y) / groups.sum(axis=1)[:, None])[labels])
