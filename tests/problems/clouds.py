"""Point clouds: the same points for the same arguments."""

import numpy as np

from heatsketch._random import content_order


def cloud(n, d, seed=0, dtype=float):
    """Draw n points of R^d from the standard normal distribution.

    They come in the order of their content, in which diffusions number their vertices: matrices of
    vertices are then matrices of points (others: `problems.matrices`).
    """
    X = np.random.default_rng(seed).normal(size=(n, d)).astype(dtype, copy=False)
    return X[content_order(X)]


def rotation(d, seed=1):
    """Return an orthogonal matrix (d, d)."""
    return np.linalg.qr(cloud(d, d, seed=seed))[0]


def even_angles(n):
    """Return n angles at equal steps from 0 on."""
    return 2 * np.pi * np.arange(n) / n


def on_circle(angle):
    """Return the points of the unit circle at these angles, (n, 2)."""
    return np.column_stack([np.cos(angle), np.sin(angle)])


def even_circle(n):
    """Return n points at equal steps of the unit circle."""
    return on_circle(even_angles(n))


def rings(sizes):
    """Return circles in the plane of radii 2, 3, ..., far apart, with so many points each."""
    return np.vstack([(2 + c) * even_circle(n) + [100 * c, 0] for c, n in enumerate(sizes)])


def on_torus(u, v, radius=1.0):
    """Return points of the flat torus in R^4: the unit circle times one of this radius."""
    return np.hstack([on_circle(u), radius * on_circle(v)])


def even_torus(n, m, radius=1.0):
    """Return the grid of n × m angles on the torus."""
    return on_torus(np.repeat(even_angles(n), m), np.tile(even_angles(m), n), radius)


def noisy_tree(n=200, branches=5, d=10):
    """Return points of branches of unit length from one point, at right angles, with noise."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.normal(size=(d, branches)))[0].T
    on = directions[rng.integers(0, branches, n)] * rng.uniform(size=(n, 1))
    return on + 0.03 * rng.normal(size=(n, d))


def torus_factor(n):
    """Waves of the two angles of random points of a torus: rows for maps to three dimensions."""
    u, v = np.random.default_rng(0).uniform(0, 2 * np.pi, (2, n))
    waves = [f(m * u) for m in (1, 2) for f in (np.cos, np.sin)]
    waves += [3.5 / m * f(m * v) for m in (1, 2, 3) for f in (np.cos, np.sin)]
    waves += [0.5 * np.cos(u) * np.cos(v), 0.5 * np.sin(u) * np.sin(v)]
    return np.column_stack(waves)
