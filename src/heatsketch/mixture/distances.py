"""Diffusion distances |p(x, ·) - p(z, ·)| in closed form, from x to ν, and their gradients.

Functions of blocks of points leave out the unit of densities (`Components.density_unit`).
"""

from typing import Any, NamedTuple, Self

import numpy as np

from heatsketch._tiles import row_tiles
from heatsketch._typing import Array
from heatsketch.mixture.components import CHUNK_NUMBERS, Components
from heatsketch.mixture.densities import transitions
from heatsketch.mixture.overlaps import Mixtures, RightSide

_RESOLVED_FRACTION = 1e-10  # of its terms; a squared distance below is nothing but rounding
_CANCELLED_FRACTION = 1e-4  # of its terms; a squared distance below is computed from differences
_LARGEST_EXPONENT = 500.0  # whose exponential certainly does not overflow


class Anchors(NamedTuple):
    """Points, with all that their distances to other points are computed from."""

    points: Array  # (n, m)
    transitions: Mixtures
    norms: Array  # (n,)
    right: RightSide | None = None

    @classmethod
    def of(cls, c: Components, points: Array) -> Self:
        """Compute transition densities and norms of points (n, m)."""
        p = transitions(c, points)
        return cls(points, p, c.overlaps.norms(p))

    def take(self, rows: Any) -> Self:
        """Return some of the points."""
        return type(self)(self.points[rows], self.transitions.take(rows), self.norms[rows])

    def prepared(self, c: Components) -> Self:
        """Return the same, prepared to be the right side of many distances."""
        return self._replace(right=c.overlaps.prepare(self.transitions))


def to_stationary(c: Components, x: Array) -> Array:
    """Return |p(x, ·) - ν|², (n,), or raise where nothing but rounding is left of it."""
    d2, length, _ = difference(c, transitions(c, x), None)
    if not (d2 > _RESOLVED_FRACTION * length).all():
        raise ValueError(
            f"At epsilon={c.epsilon:g} the walk reaches its stationary density in one step, to ten "
            "digits; pass kind='density', or a smaller epsilon."
        )
    return d2


def row_chunk(c: Components) -> int:
    """Return the rows of a chunk of work on pairs of components."""
    return max(1, min(1024, CHUNK_NUMBERS // (8 * c.n_components**2 * c.n_features)))


def difference(
    c: Components, p: Mixtures, r: Mixtures | None
) -> tuple[Array, Array, Array | float]:
    """Return |p - r|², |p|² and |r|² row by row, from inner products; r=None stands for ν."""
    of_p = c.overlaps.norms(p)
    if r is None:
        of_r: Array | float = c.stationary_norm
        inner = c.overlaps_with_stationary.rows(p, c.stationary)
    else:
        of_r, inner = c.overlaps.norms(r), c.overlaps.rows(p, r)
    return of_p + of_r - 2 * inner, of_p, of_r


def between(c: Components, x: Anchors, z: Anchors) -> Array:
    """Return the squared distances of all pairs, (n, n')."""
    terms = x.norms[:, None] + z.norms
    d2 = c.overlaps.gram(x.transitions, z.right or c.overlaps.prepare(z.transitions))
    d2 *= -2
    d2 += terms
    rows, columns = np.nonzero(d2 < _CANCELLED_FRACTION * terms)
    for chunk in row_tiles(len(rows), row_chunk(c)):
        i, j = rows[chunk], columns[chunk]
        p, r = x.transitions.take(i), z.transitions.take(j)
        d2[i, j] = _from_differences(c, x.points[i], z.points[j], p, r)
    return np.maximum(d2, 0.0, out=d2)


def of_rows(c: Components, x: Array, z: Array) -> Array:
    """Return the squared distances row by row, (n,)."""
    p, r = transitions(c, x), transitions(c, z)
    plain, of_p, of_r = difference(c, p, r)
    near = _from_differences(c, x, z, p, r)
    return np.where(plain < _CANCELLED_FRACTION * (of_p + of_r), near, np.maximum(plain, 0.0))


def _from_differences(c: Components, x: Array, z: Array, p: Mixtures, r: Mixtures) -> Array:
    """Return squared distances of near rows, where those from inner products cancel."""
    step = (x - z) / c.unit  # exact for near points, as differences from a centre are not
    dc = np.einsum("nb,kab->nka", step, c.gain_matrices)
    # log h_j(x) - log h_j(z) = -(x - z)ᵀ S_j⁻¹ (x + z - 2 θ_j) / 2
    along = np.einsum("nb,kbc->nkc", step, c.axes)
    place = (c.local(x) + c.local(z))[:, None] - 2 * c.means
    place = np.einsum("nkb,kbc->nkc", place, c.axes)
    change = -0.5 * np.einsum("nkc,nkc,kc->nk", along, place, 1 / c.variances)
    change -= np.einsum("nk,nk->n", r.weights, np.where(r.weights > 0, change, 0.0))[:, None]
    small = change.max(axis=1) < _LARGEST_EXPONENT
    growth = np.expm1(np.where(small[:, None], change, 0.0))
    mean = np.einsum("nk,nk->n", r.weights, growth)[:, None]
    dw = r.weights * (growth - mean) / (1 + mean)
    dw = np.where(small[:, None], dw, p.weights - r.weights)
    return c.overlaps.squared_differences(r, p.weights, dw, dc)


def score_gradients(c: Components, x: Array) -> Array:
    """Return -∇ log ν(x), (n, m), without the unit."""
    return -np.einsum("nk,nka->na", transitions(c, x).weights, _component_gradients(c, x))


def _component_gradients(c: Components, x: Array) -> Array:
    """Return ∇ log h_j(x) = -S_j⁻¹ (x - θ_j), (n, K, m)."""
    along = np.einsum("nkb,kbc->nkc", c.local(x)[:, None] - c.means, c.axes)
    return -np.einsum("nkc,kc,kac->nka", along, 1 / c.variances, c.axes)


def distance_gradients(c: Components, x: Array, r: Mixtures | None) -> Array:
    """Return ∇d = (⟨∇p_x, p_x⟩ - ⟨∇p_x, r⟩) / d, without units; r=None stands for ν."""
    p, of_components = transitions(c, x), _component_gradients(c, x)
    overlaps, end = (c.overlaps_with_stationary, c.stationary) if r is None else (c.overlaps, r)
    by_weight, by_mean = c.overlaps.gradients(p, p)
    less_weight, less_mean = overlaps.gradients(p, end)
    by_weight, by_mean = by_weight - less_weight, by_mean - less_mean
    change = p.weights * (by_weight - np.einsum("nk,nk->n", p.weights, by_weight)[:, None])
    slope = np.einsum("nk,nka->na", change, of_components)
    slope += np.einsum("nkb,kab->na", by_mean, c.gain_matrices)
    d2, length, _ = difference(c, p, r)  # from the same inner products as the slope
    with np.errstate(invalid="ignore"):
        d = np.sqrt(np.where(d2 > _RESOLVED_FRACTION * length, d2, np.nan))
    return slope / d[:, None]
