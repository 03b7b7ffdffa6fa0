"""Diffusion distances |p(x, ·) - p(z, ·)| in closed form, from x to ν, and their gradients.

Functions of blocks of points do not apply the unit of densities (`Components.density_unit`).
"""

import numpy as np

from heatsketch._arrays import Array
from heatsketch._threads import row_tiles
from heatsketch.mixture.components import Components
from heatsketch.mixture.overlaps import NEGLIGIBLE_WEIGHT, Mixtures

_RESOLVED_FRACTION = 1e-10  # of its terms; a squared distance below is only rounding
_CANCELLED_FRACTION = 1e-4  # of its terms; a squared distance below is computed from differences
_LARGEST_EXPONENT = 500.0  # its exponential does not overflow


def between(c: Components, x: Mixtures, z: Mixtures, factors: Array | None) -> Array:
    """Return the squared distances of all pairs, (n, n'); `Overlaps.factors` has those of z."""
    terms = x.norms[:, None] + z.norms
    d2 = c.overlaps.gram(x, z, factors)
    d2 *= -2
    d2 += terms
    rows, columns = np.nonzero(d2 < _CANCELLED_FRACTION * terms)
    for chunk in row_tiles(len(rows), c.pair_rows):
        i, j = rows[chunk], columns[chunk]
        d2[i, j] = _from_differences(c, x.take(i), z.take(j))
    return np.maximum(d2, 0.0, out=d2)


def of_rows(c: Components, x: Array, z: Array) -> Array:
    """Return the squared distances row by row, (n,)."""
    p, r = c.transitions(x), c.transitions(z)
    terms = p.norms + r.norms
    plain = terms - 2 * c.overlaps.rows(p, r)
    near = _from_differences(c, p, r)
    return np.where(plain < _CANCELLED_FRACTION * terms, near, np.maximum(plain, 0.0))


def to_stationary(c: Components, x: Array) -> Array:
    """Return |p(x, ·) - ν|², (n,), or raise if it is only rounding."""
    p, (nu, overlaps) = c.transitions(x), c.stationary
    d2 = p.norms + nu.norms - 2 * overlaps.rows(p, nu)
    if not (d2 > _RESOLVED_FRACTION * p.norms).all():
        raise ValueError(
            f"At epsilon={c.epsilon:g} the walk reaches its stationary density in one step, to ten "
            "digits; pass kind='density', or a smaller epsilon."
        )
    return d2


def _from_differences(c: Components, p: Mixtures, r: Mixtures) -> Array:
    """Return squared distances of near rows, for which inner products would cancel."""
    return c.overlaps.squared_differences(r, p.weights, *changes(c, p, r))


def changes(c: Components, p: Mixtures, r: Mixtures) -> tuple[Array, Array]:
    """Return how weights (n, K) and means (n, K, m) of p differ from those of r, row by row."""
    # Differences of the points themselves are exact for near points, unlike those from a centre.
    difference = (p.points - r.points) / c.unit
    dc = np.einsum("nb,kab->nka", difference, c.gain_matrices)
    # log h_j(x) - log h_j(z) = -(x - z)ᵀ S_j⁻¹ (x + z - 2 θ_j) / 2
    along = np.einsum("nb,kbc->nkc", difference, c.axes)
    place = (c.local(p.points) + c.local(r.points))[:, None] - 2 * c.means
    place = np.einsum("nkb,kbc->nkc", place, c.axes)
    change = -0.5 * np.einsum("nkc,nkc,kc->nk", along, place, 1 / c.variances)
    change -= np.einsum("nk,nk->n", r.weights, np.where(r.weights > 0, change, 0.0))[:, None]
    small = change.max(axis=1, keepdims=True) < _LARGEST_EXPONENT
    growth = np.expm1(np.where(small, change, 0.0))
    mean = np.einsum("nk,nk->n", r.weights, growth)[:, None]
    dw = np.where(small, r.weights * (growth - mean) / (1 + mean), p.weights - r.weights)
    return dw, dc


def projection_gradients(
    c: Components, x: Array, origin: Mixtures, w: Array, dw: Array, dc: Array
) -> Array:
    """Return ∇⟨p_x, p_i - p_o⟩, (n, r, m), without units, for ends p_i given by their `changes`.

    The weights of p_i are w (r, K), those of p_o plus dw, and the means those of p_o plus dc.
    """
    p, by_weight = c.transitions(x), c.responsibility_gradients(x)
    found = np.zeros((len(x), len(w), c.n_features))
    for j, gain in enumerate(c.gain_matrices):
        rows = np.flatnonzero(p.weights[:, j] > NEGLIGIBLE_WEIGHT)
        values, slopes = c.overlaps.differences(j, p.means[rows, j], origin, w, dw, dc)
        found[rows] += values[:, :, None] * by_weight[rows, None, j]
        found[rows] += p.weights[rows, j, None, None] * (slopes @ gain)
    return found


def gradients(c: Components, x: Array, z: Array | None) -> Array:
    """Return ∇d = (⟨∇p_x, p_x⟩ - ⟨∇p_x, p_z⟩) / d, (n, m), without units; z=None stands for ν."""
    p, of_components = c.transitions(x), c.log_joint_gradients(x)
    r, overlaps = c.stationary if z is None else (c.transitions(z), c.overlaps)
    by_weight, by_mean = c.overlaps.gradients(p, p)
    less_weight, less_mean = overlaps.gradients(p, r)
    d2 = p.norms + r.norms - 2 * np.einsum("nk,nk->n", p.weights, less_weight)
    by_weight, by_mean = by_weight - less_weight, by_mean - less_mean
    change = p.weights * (by_weight - np.einsum("nk,nk->n", p.weights, by_weight)[:, None])
    slope = np.einsum("nk,nka->na", change, of_components)
    slope += np.einsum("nkb,kab->na", by_mean, c.gain_matrices)
    d = np.sqrt(np.where(d2 > _RESOLVED_FRACTION * p.norms, d2, np.nan))
    return slope / d[:, None]
