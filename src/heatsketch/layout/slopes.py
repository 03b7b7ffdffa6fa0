"""Derivatives of the place of a new point by its features, from those of its affinities."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch.layout.free import geometric_medians
from heatsketch.markov.normalization import Scaling

_AT_A_DATUM = 1e-12  # of the farthest place: a median so near to a place stays there


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
    scaling : Scaling
        From K to A.
    """

    affinities: Array
    columns: Array
    apart: Array
    log_slopes: Array
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


def slopes_of_median(places: Array, pulling: Array, strength: Array, beside: Beside) -> Array:
    """Return the derivatives (k, d) of the median of the places that pull with these strengths."""
    k, d = places.shape[1], beside.apart.shape[1]
    others = np.isfinite(strength)
    if not others.any():
        return np.zeros((k, d))
    pulling, c = pulling[others], strength[others] / strength[others].max()
    row: Any = sparse.csr_matrix((c, pulling, [0, len(c)]), (1, len(places)))
    y = geometric_medians(places, row)[0]
    away = y - places[pulling]  # (j, k)
    lengths = np.linalg.norm(away, axis=1)
    if (lengths <= _AT_A_DATUM * lengths.max()).any():
        return np.zeros((k, d))
    order = np.argsort(beside.columns)
    at = order[np.searchsorted(beside.columns[order], pulling)]
    apart = beside.apart[at]
    turned = beside.log_slopes[at] - apart / np.einsum("jd,jd->j", apart, apart)[:, None]
    units, over = away / lengths[:, None], c / lengths
    curvature = over.sum() * np.eye(k) - (over[:, None] * units).T @ units
    return np.asarray(-np.linalg.pinv(curvature) @ ((c[:, None] * units).T @ turned))
