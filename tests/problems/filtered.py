"""Filters of an operator by its eigenpairs, and blocks to compare with."""

import numpy as np

import heatsketch as hs
from problems.clouds import cloud


def by_eigh(filters, matrix, X):
    lam, V = np.linalg.eigh(matrix)
    return [V @ (f(lam)[:, None] * (V.T @ X)) for f in filters]


def cloud_operator(n=120):
    points = np.random.default_rng(0).standard_normal((n, 2))
    return hs.symmetric_normalize(hs.Kernel(points, 0.5))


def symmetric(n=60, epsilon=0.5, seed=0):
    """Return the normalised affinity of points of the plane."""
    return hs.symmetric_normalize(hs.gaussian_affinity(cloud(n, 2, seed), epsilon))


def normals(n, k=3):
    return np.random.default_rng(1).standard_normal((n, k))


def relative_error(Y, expected):
    return float(np.linalg.norm(Y - expected) / np.linalg.norm(expected))


SOME = [hs.Power(0), hs.Power(1), hs.Power(7), hs.Power(64)]
SOME += [hs.Heat(0.0), hs.Heat(0.7), hs.Heat(40.0), hs.Accumulated(3)]
SOME += [hs.Heat(5.0).reduced(), hs.Heat(5.0).minus_constant()]
