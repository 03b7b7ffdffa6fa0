"""Kernels of Gaussian mixtures, points for them, and differences relative to the largest value."""

import numpy as np
from scipy.stats import ortho_group

from heatsketch.mixture import MixtureKernel

WEIGHTS = np.array([0.5, 0.3, 0.2])


def covariances_of(m, n=3, seed=0):
    """Unequal ones that do not commute, eigenvalues from 0.3 to 1.8."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.3, 1.8, (n, m))
    axes = [np.eye(1) if m == 1 else ortho_group.rvs(m, random_state=rng) for _ in range(n)]
    return np.array([(a * v) @ a.T for a, v in zip(axes, values, strict=True)])


def means_of(m, n=3, seed=1):
    return np.random.default_rng(seed).uniform(-2, 2, (n, m))


def mixture_of(m, epsilon=0.8, n=3, time=1):
    """A kernel of n components in m dimensions."""
    weights = WEIGHTS[:n] / WEIGHTS[:n].sum()
    return MixtureKernel(weights, means_of(m, n), covariances_of(m, n), epsilon, time=time)


def cloud(m, n=8, seed=2):
    return np.random.default_rng(seed).uniform(-3, 3, (n, m))


def agree(got, want, tolerance):
    assert np.abs(np.asarray(got) - want).max() <= tolerance * np.abs(want).max()
