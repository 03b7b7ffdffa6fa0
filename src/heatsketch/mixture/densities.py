"""Densities of a mixture's diffusion: stationary, transition, and the kernel itself."""

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from heatsketch._typing import Array
from heatsketch.mixture.components import Components
from heatsketch.mixture.overlaps import Mixtures
from heatsketch.operators.kernel import squared_norms


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


def log_steps(c: Components, x: Array, z: Array, log_weights: Array) -> Array:
    """Return log Σ_j e^(log_weights_j) g(z; c_j(x), D_j) for all pairs, (n, n'), without units.

    With `log_joint` as weights (n, K) it is log k_ε(x, z); with responsibilities, log p(x, z).
    """
    y, v, total = c.local(x), c.local(z), np.full((len(x), len(z)), -np.inf)
    for j, theta in enumerate(c.means):
        whiten = c.whitening(j, c.spreads)
        log_p = cdist((y - theta) @ (whiten * c.gains[j]), (v - theta) @ whiten, "sqeuclidean")
        log_p *= -0.5
        log_p += log_weights[:, j, None] - 0.5 * np.log(2 * np.pi * c.spreads[j]).sum()
        np.logaddexp(total, log_p, out=total)
    return total


def log_diagonal(c: Components, x: Array) -> Array:
    """Return log k_ε(x, x), (n,), without units."""
    terms = log_joint(c, x)
    for j, theta in enumerate(c.means):
        step = (c.local(x) - theta) @ (c.whitening(j, c.spreads) * (1 - c.gains[j]))
        terms[:, j] -= 0.5 * (squared_norms(step) + np.log(2 * np.pi * c.spreads[j]).sum())
    return logsumexp(terms, axis=1)
