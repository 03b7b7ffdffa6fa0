"""Random points of three manifolds, for experiments with noise and with outliers.

Each lies on a sphere about the origin: points moved outward by d have the distance d from it.
"""

from collections.abc import Callable

import numpy as np

import heatsketch as hs


def sphere(n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw uniform points (n, 3) of the unit sphere."""
    X = rng.standard_normal((n, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def circle(n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw uniform points (n, 2) of the unit circle."""
    return hs.datasets.circle(n, rng=rng)[0]


def torus(n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw uniform points (n, 4) of the flat torus S¹ × 3.5 S¹."""
    return hs.datasets.stretched_torus(n, rng=rng)[0]


MANIFOLDS: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "circle": circle,
    "torus": torus,
    "sphere": sphere,
}
