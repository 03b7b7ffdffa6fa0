"""The affinities of points, by name, and that of a mixture."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from heatsketch._checks import check_choice, check_number
from heatsketch._random import content_order
from heatsketch._typing import Array
from heatsketch.markov.affinity import (
    Affinity,
    dense_affinity,
    distance_affinity,
    knn_affinity,
    radius_affinity,
)
from heatsketch.markov.extension import MetricRows, MixtureRows
from heatsketch.markov.variable import variable_affinity
from heatsketch.mixture import MixtureKernel
from heatsketch.mixture.cholesky import affinity_factor
from heatsketch.neighbors import Distances
from heatsketch.neighbors.metric import Metric
from heatsketch.operators import LowRank
from heatsketch.operators.torch import on_device
from heatsketch.scales.bandwidth import RULES

AFFINITIES = ("knn", "dense", "radius", "variable")


def check_affinity(affinity: str, epsilon: float | str, n_neighbors: int, cut: float) -> None:
    """Raise unless these are parameters of an affinity of points."""
    check_choice(affinity, "affinity", AFFINITIES)
    check_number(cut, "cut", low=0, open_low=True)
    check_number(n_neighbors, "n_neighbors", low=1, integer=True)
    if isinstance(epsilon, str):
        check_choice(epsilon, "epsilon", ("self-tuning", *RULES))
    else:
        check_number(epsilon, "epsilon", low=0, open_low=True)


def affinity_of(
    X: Any,
    metric: Metric,
    affinity: str,
    epsilon: float | str,
    n_neighbors: int,
    neighbors: Any,
    cut: float,
    device: Any = None,
) -> Affinity:
    """Build the affinity that `Diffusion.from_points` describes, with products on a device.

    X is as `in_metric` returns it, or, in a metric without coordinates, as `Distances.points` does.
    """
    started = time.perf_counter()
    distances = Distances.of(metric)
    if distances is not None:
        if neighbors is not None:
            raise ValueError(
                f"metric={metric!r} and neighbors are both given; pass one of them, such as a "
                "KNeighborsTransformer with this metric."
            )
        neighbors = distances
    if affinity == "knn":
        built = knn_affinity(X, epsilon, n_neighbors, neighbors)
    elif affinity == "variable":
        built = variable_affinity(X, epsilon, n_neighbors, neighbors)
    elif distances is not None:
        radius = cut if affinity == "radius" else None
        built = distance_affinity(X, distances, epsilon, n_neighbors, radius)
    elif affinity == "dense":
        built = dense_affinity(X, epsilon, n_neighbors)
    else:
        built = radius_affinity(X, epsilon, cut)
    if device is not None:
        built = replace(built, operator=on_device(built.operator, device))
    built.diagnostics["affinity_seconds"] = time.perf_counter() - started
    return replace(built, rows=MetricRows.of(built.rows, X, metric, n_neighbors))


def mixture_affinity(X: Array, kernel: MixtureKernel, rank_tol: float) -> Affinity:
    """Build the affinity of points (n, m) by the kernel of a mixture, of low rank."""
    if not isinstance(kernel, MixtureKernel):
        raise TypeError(
            f"kernel is of type {type(kernel).__name__}; pass a MixtureKernel, such as "
            "MixtureKernel.from_sklearn(mixture, epsilon)."
        )
    log_unit = float(kernel.log_diagonal(X).max())
    operator = LowRank(affinity_factor(kernel.components, X, rank_tol, log_unit))
    rows = MixtureRows(kernel, X, log_unit)
    built = Affinity(operator, rows, np.arange(len(X)), content_order(X), epsilon=kernel.epsilon)
    built.diagnostics["rank"] = operator.factor.shape[1]
    return built
