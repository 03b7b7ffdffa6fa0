"""The place of a new point among those near to it, and its derivatives by the features."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from heatsketch._tiles import row_tiles
from heatsketch._typing import Array
from heatsketch.backend import blocks_of
from heatsketch.markov.normalization import Scaling

_STEPS = 200  # at most, that find a location
_ROUNDING = 1e-13  # of a curvature
_LOCATED = 2**21  # pairs of places looked at together


@dataclass(frozen=True, eq=False)
class Beside:
    """A point beside the training points that it has affinities to.

    Attributes
    ----------
    affinities : array (j,)
        K_j.
    columns : array (j,)
        The vertices of the x_j.
    apart : array (j, d)
        x - x_j.
    log_slopes : array (j, d)
        The derivatives of log K_j by x.
    pull_slopes : array (j, d)
        Those of the logarithm of the pull of x_j.
    scaling : Scaling
        From K to A.
    """

    affinities: Array
    columns: Array
    apart: Array
    log_slopes: Array
    pull_slopes: Array
    scaling: Scaling


def slopes_of_row(H: Array, is_markov: bool, beside: Beside) -> Array:
    """Return the derivatives (k, d) of a row of A H, or in the Markov form of the quotient.

    The last column of H (n, k + 1) is √π.
    """
    K, scaling, log_slopes = beside.affinities, beside.scaling, beside.log_slopes
    H = np.asarray(H, float)[beside.columns]
    weight = K * np.asarray(scaling.s)[beside.columns]
    if is_markov:
        total = weight @ H[:, -1]
        y = weight @ H[:, :-1] / total
        moved = weight[:, None] * (H[:, :-1] - np.outer(H[:, -1], y))
        return np.asarray(moved.T @ log_slopes / total)
    if scaling.density_weight is None:
        scale, turn = 1 / weight.sum(), -(weight @ log_slopes) / weight.sum()
    else:
        dense = K * np.asarray(scaling.density_weight)[beside.columns]
        scale = K.sum() ** (-scaling.alpha / 2) / np.sqrt(dense.sum())
        turn = -(scaling.alpha / 2) * (K @ log_slopes) / K.sum()
        turn -= (dense @ log_slopes) / (2 * dense.sum())
    weight *= scale
    y = weight @ H[:, :-1]
    return np.asarray((weight[:, None] * H[:, :-1]).T @ log_slopes + np.outer(y, turn))


def slopes_of_location(
    places: Array, s: float, pulling: Array, strength: Array, beside: Beside
) -> Array:
    """Return the derivatives (k, d) of the location of the places that pull with these strengths.

    Of a training point, which is at its own place, those of the location among the others.
    """
    k, d = places.shape[1], beside.apart.shape[1]
    others = np.isfinite(strength)
    if not others.any():
        return np.zeros((k, d))
    pulling, w = pulling[others], strength[others] / strength[others].max()
    y = located(places[pulling][None], w[None], s)
    curvature = slope_and_curvature(y, places[pulling][None], w[None], s)[1][0]
    order = np.argsort(beside.columns)
    at = order[np.searchsorted(beside.columns[order], pulling)]
    away = y - places[pulling]  # (j, k)
    pull = w / (1 + np.square(away).sum(axis=1) / s**2)
    turned = (pull[:, None] * away).T @ beside.pull_slopes[at]
    return np.asarray(-np.linalg.pinv(curvature) @ turned)


# Locations of places that attract


def locations(places: Array, rows: Any, s: float) -> Array:
    """Return the minima y (m, c) of Σ_j w_j log(1 + |y - y_j|² / s²), y_j (n, c) the places.

    `rows` (m, n) contains the weights, a CSR matrix. Of infinite ones only these count: a training
    point has its own place exactly. The search starts at the place that has the least sum. A row
    depends on that row only.
    """
    blocks = blocks_of(rows)
    indptr, indices, data = (blocks.host(part) for part in (rows.indptr, rows.indices, rows.data))
    counts, found = np.diff(indptr), np.empty((len(indptr) - 1, places.shape[1]))
    for count in np.unique(counts):
        alike = np.flatnonzero(counts == count)
        for tile in row_tiles(len(alike), max(1, _LOCATED // count**2)):
            rows = alike[tile]
            entries = indptr[rows, None] + np.arange(count)
            w, j = data[entries].astype(float), indices[entries]
            infinite = np.isinf(w)
            known = infinite.any(axis=1)
            found[rows[known]] = places[j[known, infinite[known].argmax(axis=1)]]
            w, j = w[~known], j[~known]
            w /= w.max(axis=1, keepdims=True)
            found[rows[~known]] = located(places[j], w, s)
    return found


def located(P: Array, w: Array, s: float) -> Array:
    """Return the locations (m, c) of places P (m, k, c) with weights (m, k).

    A step of Newton is taken where the sum curves upwards and its slope gets smaller, else one by
    means that are weighted again, which never increases the sum.
    """
    between = np.square(P[:, :, None] - P[:, None]).sum(axis=3) / s**2
    start = (np.log1p(between) * w[:, None]).sum(axis=2)
    start[w == 0] = np.inf
    found = P[np.arange(len(P)), start.argmin(axis=1)]
    left = np.arange(len(P))  # that move
    for _ in range(_STEPS):
        Q, v, y = P[left], w[left], found[left]
        slope, curvature = slope_and_curvature(y, Q, v, s)
        pull = v / (1 + np.square(Q - y[:, None]).sum(axis=2) / s**2)
        moved = y - slope / pull.sum(axis=1)[:, None]
        upwards = _is_positive(curvature)
        step = np.linalg.solve(curvature[upwards], slope[upwards, :, None])[:, :, 0]
        tried = moved.copy()
        tried[upwards] = y[upwards] - step
        lower = np.linalg.norm(slope_and_curvature(tried, Q, v, s)[0], axis=1)
        better = lower < np.linalg.norm(slope, axis=1)
        moved = np.where(better[:, None], tried, moved)
        found[left] = moved
        left = left[np.abs(moved - y).max(axis=1, initial=0.0) > _ROUNDING * s]
        if not len(left):
            break
    return found


def _is_positive(curvature: Array) -> Array:
    """Return which matrices (m, c, c) are positive definite: by their leading minors."""
    minors = [np.linalg.det(curvature[:, :i, :i]) for i in range(1, curvature.shape[1] + 1)]
    return np.all(np.array(minors) > 0, axis=0)  # type: ignore[no-any-return]


def slope_and_curvature(y: Array, P: Array, w: Array, s: float) -> tuple[Array, Array]:
    """Return half the slope (m, c) and curvature (m, c, c) of the sum that a location minimises.

    In units of s².
    """
    away = y[:, None] - P
    near = 1 / (1 + np.square(away).sum(axis=2) / s**2)
    pull = w * near
    slope = (pull[:, :, None] * away).sum(axis=1)
    along = np.sqrt(2 * pull * near)[:, :, None] * away / s
    own = (1 + _ROUNDING) * pull.sum(axis=1)
    curvature = own[:, None, None] * np.eye(P.shape[2])
    return slope, curvature - (along[:, :, :, None] * along[:, :, None]).sum(axis=1)
