"""Densities of a mixture's diffusion: stationary, transition, and the kernel itself."""

import functools
from collections.abc import Iterable, Iterator

import numpy as np
from scipy.special import logsumexp

from heatsketch._typing import Array
from heatsketch.mixture.components import Components
from heatsketch.mixture.overlaps import Mixtures
from heatsketch.operators.kernel import squared_distances, squared_norms


def log_joint(c: Components, x: Array) -> Array:
    """Return log h_j(x) = log a_j g(x; θ_j, S_j), (n, K), without the unit."""
    y = c.local(x)
    log_h = np.empty((len(y), c.n_components))
    constants = np.log(c.weights) - 0.5 * np.log(2 * np.pi * c.variances).sum(axis=1)
    for j, theta in enumerate(c.means):
        log_h[:, j] = constants[j] - 0.5 * squared_norms((y - theta) @ c.whitening(j, c.variances))
    return log_h


def transitions(c: Components, x: Array) -> Mixtures:
    """Return the transition densities p(x, ·)."""
    y, log_h = c.local(x), log_joint(c, x)
    weights = np.exp(log_h - log_h.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    means = np.empty((len(x), *c.means.shape))
    for j, theta in enumerate(c.means):
        np.matmul(y - theta, c.gain_matrices[j], out=means[:, j])
        means[:, j] += theta
    return Mixtures(weights, means)


def log_kernel(c: Components, x: Array, z: Array) -> Array:
    """Return log k_ε for all pairs, (n, n')."""
    y, v = c.local(x), c.local(z)
    return c.by_tiles(lambda r: log_sum(_log_kernels(c, y[r], v)), len(y), len(v))


def log_diagonal(c: Components, x: Array) -> Array:
    """Return log k_ε(x, x), (n,)."""
    y = c.local(x)
    terms = np.empty((len(y), c.n_components))
    for j, theta in enumerate(c.means):
        z = (y - theta) @ c.whitening(j, c.midpoint_variances)
        terms[:, j] = np.log(c.weights[j]) - 0.5 * (squared_norms(z) + _log_pair_volume(c, j))
    return logsumexp(terms, axis=1) + 2 * c.log_unit


def _log_kernels(c: Components, y: Array, v: Array) -> Iterator[Array]:
    """Yield the logarithm of each component's kernel: x - y and (x + y)/2 are independent."""
    for j, theta in enumerate(c.means):
        across = c.whitening(j, c.difference_variances)
        along = c.whitening(j, c.midpoint_variances) / 2
        log_k = squared_distances(y @ across, v @ across, direct=True)
        log_k += squared_distances((y - theta) @ along, (theta - v) @ along, direct=True)
        log_k *= -0.5
        log_k += np.log(c.weights[j]) - 0.5 * _log_pair_volume(c, j) + 2 * c.log_unit
        yield log_k


def log_transitions(c: Components, x: Array, v: Array) -> Iterator[Array]:
    """Yield the logarithm of each component of the transition densities, without the unit."""
    log_w, y = log_joint(c, x), c.local(x)
    log_w -= logsumexp(log_w, axis=1, keepdims=True)
    for j, theta in enumerate(c.means):
        whiten = c.whitening(j, c.spreads)
        log_p = squared_distances(
            (y - theta) @ (whiten * c.gains[j]), (v - theta) @ whiten, direct=True
        )
        log_p *= -0.5
        log_p += log_w[:, j, None] - 0.5 * np.log(2 * np.pi * c.spreads[j]).sum()
        yield log_p


def _log_pair_volume(c: Components, j: int) -> float:
    """Return log |2π V| of the covariances V of x - y and of (x + y)/2 together."""
    return float(np.log(4 * np.pi**2 * c.difference_variances[j] * c.midpoint_variances[j]).sum())


def log_sum(terms: Iterable[Array]) -> Array:
    """Return the logarithm of the sum of exponentials of arrays, which are overwritten."""
    return functools.reduce(lambda total, term: np.logaddexp(total, term, out=total), terms)
