"""The affinities of points, by name."""

from __future__ import annotations

from typing import Any

from heatsketch.markov.affinity import Affinity, dense_affinity, knn_affinity, radius_affinity
from heatsketch.markov.variable import variable_affinity

AFFINITIES = ("knn", "dense", "radius", "variable")


def affinity_of(
    X: Any, affinity: str, epsilon: float | str, n_neighbors: int, neighbors: Any, cut: float
) -> Affinity:
    """Build the affinity that `Diffusion.from_points` describes."""
    if affinity == "knn":
        return knn_affinity(X, epsilon, n_neighbors, neighbors)
    if affinity == "variable":
        return variable_affinity(X, epsilon, n_neighbors, neighbors)
    if affinity == "dense":
        return dense_affinity(X, epsilon, n_neighbors)
    return radius_affinity(X, epsilon, cut)
