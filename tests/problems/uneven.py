"""Uneven samples of shapes whose eigenfunctions are known: a circle, a sphere, a flat torus."""

import numpy as np

from problems.clouds import on_circle

CONTRAST = 19.0  # density at the densest place over that at the sparsest


def uneven_circle(n, seed, contrast=CONTRAST):
    """Points of the unit circle with density 1 + a cos θ; cos θ, sin θ."""
    X = on_circle(_angles(n, contrast, np.random.default_rng(seed)))
    return X, X


def uneven_sphere(n, seed, contrast=CONTRAST):
    """Points of the unit sphere with density 1 + a z; x, y, z."""
    rng, a = np.random.default_rng(seed), _slope(contrast)
    z = (np.sqrt(1 - 2 * a * (1 - a / 2 - 2 * rng.random(n))) - 1) / a  # inverts the distribution
    phi, radius = rng.uniform(0, 2 * np.pi, n), np.sqrt(1 - z**2)
    X = np.c_[radius * np.cos(phi), radius * np.sin(phi), z]
    return X, X


def uneven_torus(n, seed, contrast=CONTRAST):
    """Points of a flat torus of radii 2 and 1, in R⁴; cosine and sine of the longer way around."""
    rng = np.random.default_rng(seed)
    u, v = (_angles(n, np.sqrt(contrast), rng) for _ in range(2))
    X = np.c_[2 * on_circle(u), on_circle(v)]
    return X, X[:, :2] / 2


def misfit(Y, functions):
    """Root mean square distance of functions (n, m) from their best affine fit by Y (n, k)."""
    basis = np.c_[np.ones(len(Y)), Y]
    fit = basis @ np.linalg.lstsq(basis, functions, rcond=None)[0]
    return float(np.sqrt(np.mean(np.sum((fit - functions) ** 2, axis=1))))


def _slope(contrast):
    """The a of 1 + a x, x in [-1, 1]."""
    return (contrast - 1) / (contrast + 1)


def _angles(n, contrast, rng):
    """Draw angles with density 1 + a cos θ, by rejection."""
    a, found = _slope(contrast), np.empty(0)
    while len(found) < n:
        theta = rng.uniform(-np.pi, np.pi, 2 * n)
        kept = rng.uniform(0, 1 + abs(a), 2 * n) < 1 + a * np.cos(theta)
        found = np.append(found, theta[kept])
    return found[:n]
