"""Diffusion at later times: one fixed matrix between coordinates.

With p(x, ·) = b + Σ_m y_m(x) ψ_m, ψ_m orthonormal, two steps from x have the density
∫ p(x, u) p(u, ·) du = b' + Σ_m (Σ_n y_n(x) T_nm) ψ_m, T_nm = ∫ ψ_n(u) y_m(u) du: differences
of coordinates after t steps are (y(x) - y(z)) T^(t-1). The normalised t-th power of the kernel, a
possible reading of *Diffusion representation*, §7.1, is another process.
"""

import warnings

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from heatsketch._tiles import row_tiles
from heatsketch._typing import Array
from heatsketch.mixture.cholesky_map import CholeskyMap
from heatsketch.mixture.components import Components

_MAX_GRID_FEATURES = 3  # with more features, samples are used instead of a grid
_GRID_SPACINGS = (0.8, 0.4, 0.2, 0.1)  # in units of √(ε/2), tried until two shifted grids agree
_GRID_TOLERANCE = 1e-9  # relative difference at which two grids agree
_MARGIN_WIDTHS = 7.0  # of the grid around all means after a step, in units of √ε
_MAX_GRID_NODES = 2**18
_BATCHES, _BATCH_SAMPLES = 16, 1024  # of independently scrambled Sobol nets
_BLOCK_DENSITIES = 2**22  # computed at a time: 32 MB


class Steps:
    """The matrix T of one more step, the mean of several estimates, and its error.

    T comes from the mean of the coordinates after a step from each pivot and the origin. For up to
    three features these are sums over a grid, which is refined until the same grid shifted by half
    its spacing agrees. For more features, or if the first grid would have more than 2^18 nodes,
    they come from 16 batches of about 1,000 samples of the steps from all pivots, weighted by the
    inverse of their mean density over the pivots.

    Attributes
    ----------
    matrix : array (r, r)
        Differences after t steps are (y(x) - y(z)) @ T^(t-1).
    versions : array (b, r, r)
        Estimates of T from independent samples, or from two grids.
    sampled : bool
        Whether the estimates are from samples.
    """

    def __init__(self, features: CholeskyMap, seed: int) -> None:
        c = features.kernel.components
        starts = np.concatenate([features.origin, features.pivots])
        p = c.transitions(starts)
        means = c.in_data_units(p.means[p.weights > 1e-12])
        margin = _MARGIN_WIDTHS * np.sqrt(c.epsilon)
        low, high = means.min(axis=0) - margin, means.max(axis=0) + margin
        versions: list[Array] = []
        for fineness in _GRID_SPACINGS if c.n_features <= _MAX_GRID_FEATURES else ():
            spacing = fineness * c.unit
            counts = np.ceil((high - low) / spacing).astype(int)
            if counts.prod(dtype=float) > _MAX_GRID_NODES:
                break
            axes = [start + spacing * np.arange(n) for start, n in zip(low, counts, strict=True)]
            nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, c.n_features)
            cell = spacing**c.n_features
            first, second = versions = [
                _matrix(features, starts, nodes + shift, cell) for shift in (0.0, spacing / 2)
            ]
            if np.linalg.norm(first - second) <= _GRID_TOLERANCE * np.linalg.norm(first):
                break
        self.sampled = not versions
        if self.sampled:
            rng = np.random.default_rng(seed)
            batches = [_sample(c, starts, rng) for _ in range(_BATCHES)]
            versions = [_matrix(features, starts, nodes, None) for nodes in batches]
        self.versions = np.array(versions)
        self.matrix = self.versions.mean(axis=0)

    def after(self, y: Array, time: int) -> Array:
        """Return coordinates (n, r) after `time` steps, given those after one step."""
        return y @ np.linalg.matrix_power(self.matrix, time - 1)

    def error(self, y: Array, time: int) -> float:
        """Return the relative error of the coordinates y (n, r) after `time` steps.

        It is the standard error of the samples (or half the difference of the two grids), as a root
        mean square over points and coordinates, relative to that of the coordinates.
        """
        y = y - y.mean(axis=0)
        later = self.after(y, time)
        off = [y @ np.linalg.matrix_power(T, time - 1) - later for T in self.versions]
        mean_square = float(np.mean(np.square(off)))
        if self.sampled:
            mean_square /= len(self.versions) - 1
        return float(np.sqrt(mean_square / np.mean(np.square(later)))) if later.any() else 0.0


def _sample(c: Components, starts: Array, rng: np.random.Generator) -> Array:
    """Draw points (N, m) of the steps from all starts, equally many from each."""
    each = -(-_BATCH_SAMPLES // len(starts))
    # SciPy 1.13 knows no other name of seed; N need not be a power of 2.
    with warnings.catch_warnings(action="ignore"):
        net = qmc.Sobol(c.n_features, seed=rng).random(each * len(starts))
    noise = ndtri(np.clip(net, 2.0**-40, 1 - 2.0**-40))
    p = c.transitions(np.repeat(starts, each, axis=0))
    chance = rng.random((len(noise), 1))
    j = np.minimum((p.weights.cumsum(axis=1) < chance).sum(axis=1), c.n_components - 1)
    roots = c.axes * np.sqrt(c.spreads)[:, None]
    ends = p.means[np.arange(len(noise)), j] + np.einsum("nab,nb->na", roots[j], noise)
    return c.in_data_units(ends)


def _matrix(features: CholeskyMap, starts: Array, nodes: Array, cell: float | None) -> Array:
    """Solve Y T = E: rows of Y are pivots minus the origin, of E their means after a step.

    The means are sums over the nodes of a grid with this volume of a cell, or over samples (None).
    """
    means = np.zeros((len(starts), features.n_features))
    for tile in row_tiles(len(nodes), max(1, _BLOCK_DENSITIES // len(starts))):
        weights = features.kernel.transition_density(starts, nodes[tile])
        weights *= cell or 1 / (len(nodes) * weights.mean(axis=0))
        means += weights @ features.transform(nodes[tile])
    y = features.transform(starts)
    return np.linalg.solve(y[1:] - y[0], means[1:] - means[0])
