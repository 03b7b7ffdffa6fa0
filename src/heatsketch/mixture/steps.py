"""Diffusion at later times: one fixed matrix between coordinates.

With p(x, ·) = b + Σ_m y_m(x) ψ_m, ψ_m orthonormal, two steps from x have the density
∫ p(x, u) p(u, ·) du = b' + Σ_m (Σ_n y_n(x) T_nm) ψ_m, T_nm = ∫ ψ_n(u) y_m(u) du: differences
of coordinates after t steps are (y(x) - y(z)) T^(t-1). Normalising the t-th power of the kernel
instead, as one might read *Diffusion representation*, §7.1, is another process.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import ndtri
from scipy.stats import qmc

from heatsketch._typing import Array
from heatsketch.mixture.pivoted import CholeskyMap

QUADRATURE_FEATURES = 3  # up to here a grid of nodes does
_NODES = {1: (24, 48, 96), 2: (10, 16, 24, 32), 3: (8, 12, 16)}  # a side, until nothing changes
_CONVERGED = 1e-6
_BATCHES, _SAMPLES = 16, 128  # of scrambled nets, each with an error of its own
_COUNTS = 1e-9  # weights of components below are left out


@dataclass(frozen=True, eq=False)
class Steps:
    """The matrix T of one more step, and how well it is known.

    Attributes
    ----------
    matrix : array (r, r)
        Differences of coordinates after t steps: (y(x) - y(z)) @ T^(t-1).
    versions : array (b, r, r)
        Estimates of T from independent samples, or from two numbers of nodes.
    sampled : bool
        Whether T was sampled.
    """

    matrix: Array
    versions: Array
    sampled: bool

    @classmethod
    def of(cls, features: CholeskyMap, seed: int) -> Steps:
        """Compute T: the mean of the coordinates after a step from each pivot and the origin.

        By Gauss-Hermite quadrature up to three dimensions, beyond from 16 scrambled Sobol nets of
        128 points for each component.
        """
        m = features.kernel.n_features
        if m > QUADRATURE_FEATURES:
            rng = np.random.default_rng(seed)
            share = np.full(_SAMPLES, 1 / _SAMPLES)
            versions = [_matrix(features, _normal_net(m, rng), share) for _ in range(_BATCHES)]
            return cls(np.mean(versions, axis=0), np.array(versions), True)
        found: list[Array] = []
        for nodes, weights in _grids(m):
            found.append(_matrix(features, nodes, weights))
            if len(found) > 1 and _close(found[-1], found[-2]):
                break
        return cls(found[-1], np.array(found[-2:]), False)

    def after(self, y: Array, time: int) -> Array:
        """Return coordinates (n, r) after `time` steps, from those after one."""
        return y @ np.linalg.matrix_power(self.matrix, time - 1)

    def error(self, y: Array, time: int) -> float:
        """Return the relative error of the coordinates y (n, r) after `time` steps.

        The root mean square, over points and coordinates, of the standard error of the sample (or
        the change between the last two numbers of nodes), as a share of that of the coordinates.
        """
        y = y - y.mean(axis=0)
        later = self.after(y, time)
        off = [y @ np.linalg.matrix_power(T, time - 1) - later for T in self.versions]
        mean_square = float(np.mean(np.square(off)))
        if self.sampled:
            mean_square /= len(self.versions) - 1
        return float(np.sqrt(mean_square / np.mean(np.square(later)))) if later.any() else 0.0


def _normal_net(m: int, rng: np.random.Generator) -> Array:
    """Return a scrambled Sobol net mapped to N(0, I), (128, m)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the new name is younger than 1.13
        net = qmc.Sobol(m, seed=rng).random(_SAMPLES)
    return ndtri(np.clip(net, 2.0**-40, 1 - 2.0**-40))


def _grids(m: int) -> Iterator[tuple[Array, Array]]:
    """Yield nodes (N, m) and weights (N,) of tensor grids for N(0, I), finer and finer."""
    for side in _NODES[m]:
        nodes, weights = hermegauss(side)
        weights = weights / weights.sum()
        grid = np.stack(np.meshgrid(*[nodes] * m, indexing="ij"), axis=-1).reshape(-1, m)
        product = np.prod(np.meshgrid(*[weights] * m, indexing="ij"), axis=0).ravel()
        kept = product > _COUNTS * product.max()
        yield grid[kept], product[kept] / product[kept].sum()


def _close(T: Array, U: Array) -> bool:
    return bool(np.linalg.norm(T - U) <= _CONVERGED * np.linalg.norm(T))


def _matrix(features: CholeskyMap, nodes: Array, weights: Array) -> Array:
    """Solve Y T = E for T: rows of Y are pivots less the origin, of E their means after a step."""
    starts = np.concatenate([features.origin, features.pivots])
    y = features.transform(starts)
    means = np.array([_mean_after_step(features, start, nodes, weights) for start in starts])
    return np.linalg.solve(y[1:] - y[0], means[1:] - means[0])


def _mean_after_step(features: CholeskyMap, start: Array, nodes: Array, weights: Array) -> Array:
    """Return ∫ p(start, u) y(u) du, (r,)."""
    kernel = features.kernel
    steps = kernel._steps(start[None])
    total = np.zeros(features.n_features)
    for j in np.flatnonzero(steps.weights[0] > _COUNTS):
        root = kernel._axes[j] * np.sqrt(kernel._spreads[j])
        ends = steps.means[0, j] + nodes @ root.T
        total += steps.weights[0, j] * (
            weights @ features.transform(kernel._centre + kernel._unit * ends)
        )
    return total
