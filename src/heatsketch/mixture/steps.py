"""Diffusion at later times: one fixed matrix between coordinates.

With p(x, ·) = b + Σ_m y_m(x) ψ_m, ψ_m orthonormal, two steps from x have the density
∫ p(x, u) p(u, ·) du = b' + Σ_m (Σ_n y_n(x) T_nm) ψ_m, T_nm = ∫ ψ_n(u) y_m(u) du: differences
of coordinates after t steps are (y(x) - y(z)) T^(t-1). Normalising the t-th power of the kernel
instead, as one might read *Diffusion representation*, §7.1, is another process.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from heatsketch._tiles import row_tiles
from heatsketch._typing import Array
from heatsketch.mixture.cholesky_map import CholeskyMap
from heatsketch.mixture.densities import transitions

_MAX_GRID_FEATURES = 3  # with more features, samples are used instead of a grid
_GRID_SPACINGS = (0.8, 0.4, 0.2, 0.1)  # in units of √(ε/2), tried until two shifted grids agree
_GRID_TOLERANCE = 1e-9  # relative difference at which two grids agree
_MARGIN_WIDTHS = 7.0  # of the grid around all means after a step, in units of √ε
_MAX_GRID_NODES = 2**18
_BATCHES, _BATCH_SAMPLES = 16, 1024  # of independently scrambled Sobol nets
_BLOCK_DENSITIES = 2**22  # computed at a time: 32 MB


@dataclass(frozen=True, eq=False)
class Steps:
    """The matrix T of one more step, the mean of several estimates, and its error."""

    matrix: Array  # (r, r); differences after t steps: (y(x) - y(z)) @ T^(t-1)
    versions: Array  # (b, r, r), estimates of T from independent samples, or from two grids
    sampled: bool  # whether the estimates are from samples

    @classmethod
    def of(cls, features: CholeskyMap, seed: int) -> Steps:
        """Compute T: the mean of the coordinates after a step from each pivot and the origin.

        For up to three features by sums over a grid, which is refined until the same grid shifted
        by half its spacing agrees. For more features, or if the first grid would have more than
        2^18 nodes, from 16 batches of about 1,000 samples of the steps from all pivots, weighted by
        the inverse of their mean density over the pivots.
        """
        starts = np.concatenate([features.origin, features.pivots])
        versions = np.zeros((0, 0, 0))
        for spacing in _GRID_SPACINGS:
            grids = _grids(features, starts, spacing)
            if not grids:
                break
            versions = np.array([_matrix(features, starts, *grid, False) for grid in grids])
            first, second = versions
            if np.linalg.norm(first - second) <= _GRID_TOLERANCE * np.linalg.norm(first):
                break
        sampled = not len(versions)
        if sampled:
            rng = np.random.default_rng(seed)
            nodes = [_sample(features, starts, rng) for _ in range(_BATCHES)]
            versions = np.array([_matrix(features, starts, *drawn, True) for drawn in nodes])
        return cls(versions.mean(axis=0), versions, sampled)

    def after(self, y: Array, time: int) -> Array:
        """Return coordinates (n, r) after `time` steps, from those after one."""
        return y @ np.linalg.matrix_power(self.matrix, time - 1)

    def error(self, y: Array, time: int) -> float:
        """Return the relative error of the coordinates y (n, r) after `time` steps.

        The standard error of the samples (or half the difference of the two grids), as a root
        mean square over points and coordinates, relative to that of the coordinates.
        """
        y = y - y.mean(axis=0)
        later = self.after(y, time)
        off = [y @ np.linalg.matrix_power(T, time - 1) - later for T in self.versions]
        mean_square = float(np.mean(np.square(off)))
        if self.sampled:
            mean_square /= len(self.versions) - 1
        return float(np.sqrt(mean_square / np.mean(np.square(later)))) if later.any() else 0.0


def _grids(features: CholeskyMap, starts: Array, spacing: float) -> list[tuple[Array, float]]:
    """Return (nodes, cell volume) of two grids half a spacing apart; empty if too large."""
    c = features.kernel.components
    m, spacing = c.n_features, spacing * c.unit
    margin = _MARGIN_WIDTHS * np.sqrt(c.epsilon)
    p = transitions(c, starts)
    means = c.in_data_units(p.means[p.weights > 1e-12])
    low, high = means.min(axis=0) - margin, means.max(axis=0) + margin
    counts = np.ceil((high - low) / spacing).astype(int)
    if m > _MAX_GRID_FEATURES or counts.prod(dtype=float) > _MAX_GRID_NODES:
        return []
    axes = [start + spacing * np.arange(n) for start, n in zip(low, counts, strict=True)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, m)
    return [(nodes, spacing**m), (nodes + spacing / 2, spacing**m)]


def _sample(features: CholeskyMap, starts: Array, rng: np.random.Generator) -> tuple[Array, float]:
    """Draw points (N, m) of the steps from all starts, equally many from each; return also 1/N."""
    c = features.kernel.components
    m, each = c.n_features, -(-_BATCH_SAMPLES // len(starts))
    with warnings.catch_warnings():
        # SciPy 1.13 knows no other name of seed; N need not be a power of 2.
        warnings.simplefilter("ignore")
        net = qmc.Sobol(m, seed=rng).random(each * len(starts))
    noise = ndtri(np.clip(net, 2.0**-40, 1 - 2.0**-40))
    p = transitions(c, np.repeat(starts, each, axis=0))
    chance = rng.random((len(noise), 1))
    j = np.minimum((p.weights.cumsum(axis=1) < chance).sum(axis=1), c.n_components - 1)
    roots = c.axes * np.sqrt(c.spreads)[:, None]
    ends = p.means[np.arange(len(noise)), j] + np.einsum("nab,nb->na", roots[j], noise)
    return c.in_data_units(ends), 1 / len(noise)


def _matrix(
    features: CholeskyMap, starts: Array, nodes: Array, fraction: float, sampled: bool
) -> Array:
    """Solve Y T = E: rows of Y are pivots minus the origin, of E their means after a step."""
    means = np.zeros((len(starts), features.n_features))
    for tile in row_tiles(len(nodes), max(1, _BLOCK_DENSITIES // len(starts))):
        densities = features.kernel.transition_density(starts, nodes[tile])
        if sampled:
            densities /= densities.mean(axis=0)
        means += fraction * densities @ features.transform(nodes[tile])
    y = features.transform(starts)
    return np.linalg.solve(y[1:] - y[0], means[1:] - means[0])
