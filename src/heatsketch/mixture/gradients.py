"""Gradients of diffusion distances and of the anomaly score with respect to the point x."""

import numpy as np

from heatsketch._array import row_tiles
from heatsketch._typing import Array
from heatsketch.mixture.components import Components
from heatsketch.mixture.densities import transitions
from heatsketch.mixture.distances import RESOLVED_SHARE, difference, row_chunk
from heatsketch.mixture.overlaps import Mixtures


def score_gradient(c: Components, x: Array) -> Array:
    """Return -∇ log ν(x), (n, m)."""

    def of_tile(rows: slice) -> Array:
        weights = transitions(c, x[rows]).weights
        return -np.einsum("nk,nka->na", weights, _component_gradients(c, x[rows]))

    return c.by_tiles(of_tile, len(x), c.n_features) / c.unit


def distance_gradient(c: Components, x: Array, z: Array | None) -> Array:
    """Return ∇ |p(x, ·) - p(z, ·)| row by row, (n, m); z=None: ∇ |p(x, ·) - ν|."""

    def of_tile(rows: slice) -> Array:
        return _distance_gradients(c, x[rows], None if z is None else transitions(c, z[rows]))

    slopes = c.by_tiles(of_tile, len(x), c.n_features)
    return slopes * (np.sqrt(c.density_unit) / c.unit)


def _component_gradients(c: Components, x: Array) -> Array:
    """Return ∇ log h_j(x) = -S_j⁻¹ (x - θ_j), (n, K, m)."""
    along = np.einsum("nkb,kbc->nkc", c.local(x)[:, None] - c.means, c.axes)
    return -np.einsum("nkc,kc,kac->nka", along, 1 / c.variances, c.axes)


def _distance_gradients(c: Components, x: Array, r: Mixtures | None) -> Array:
    """Return ∇d = (⟨∇p_x, p_x⟩ - ⟨∇p_x, r⟩) / d, without units; r=None stands for ν."""
    slopes = np.empty_like(x)
    overlaps = c.overlaps_with_stationary if r is None else c.overlaps
    for rows in row_tiles(len(x), row_chunk(c)):
        p, of_components = transitions(c, x[rows]), _component_gradients(c, x[rows])
        end = None if r is None else r.take(rows)
        by_weight, by_mean = c.overlaps.gradients(p, p)
        less_weight, less_mean = overlaps.gradients(p, c.stationary if end is None else end)
        by_weight, by_mean = by_weight - less_weight, by_mean - less_mean
        change = p.weights * (by_weight - np.einsum("nk,nk->n", p.weights, by_weight)[:, None])
        slope = np.einsum("nk,nka->na", change, of_components)
        slope += np.einsum("nkb,kab->na", by_mean, c.gain_matrices)
        d2, length, _ = difference(c, p, end)  # from the same inner products as the slope
        with np.errstate(invalid="ignore"):
            d = np.sqrt(np.where(d2 > RESOLVED_SHARE * length, d2, np.nan))
        slopes[rows] = slope / d[:, None]
    return slopes
