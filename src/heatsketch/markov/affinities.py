"""The affinities of points, by name, and that of a mixture."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from heatsketch._checks import check_choice, check_number
from heatsketch._typing import Array
from heatsketch.markov.affinity import Affinity, dense_affinity, knn_affinity, radius_affinity
from heatsketch.markov.extension import MetricRows, MixtureRows
from heatsketch.markov.table import bipartite_affinity, cosine_affinity
from heatsketch.markov.variable import variable_affinity
from heatsketch.mixture import MixtureKernel
from heatsketch.mixture.lowrank import affinity_factor
from heatsketch.neighbors import NeighborIndex
from heatsketch.operators import LowRank
from heatsketch.operators.properties import on_device
from heatsketch.scales.bandwidth import RULES
from heatsketch.scales.connecting_scale import advice

TABLE_AFFINITIES = ("bipartite", "cosine")  # of rows of counts, without any distance
AFFINITIES = ("knn", "dense", "radius", "variable", *TABLE_AFFINITIES)


def has_distances(affinity: str) -> bool:
    """Say whether an affinity is one of distances between points."""
    return affinity not in TABLE_AFFINITIES


def check_affinity(affinity: str, epsilon: float | str, n_neighbors: int, cut: float) -> None:
    """Raise unless these are parameters of an affinity of points."""
    check_choice(affinity, "affinity", AFFINITIES)
    check_number(cut, "cut", low=0, open_low=True)
    check_number(n_neighbors, "n_neighbors", low=1, integer=True)
    if isinstance(epsilon, str):
        check_choice(epsilon, "epsilon", ("self-tuning", *RULES))
    else:
        check_number(epsilon, "epsilon", low=0, open_low=True)


def affinity_and_advice(
    X: Any,
    metric: str,
    affinity: str,
    epsilon: float | str,
    n_neighbors: int,
    neighbors: Any,
    cut: float,
    device: Any,
) -> tuple[Affinity, Callable[[Array], str]]:
    """Build the affinity of points in a metric, and what says how to connect its components."""
    started = time.perf_counter()
    built = affinity_of(X, affinity, epsilon, n_neighbors, neighbors, cut, device)
    built.diagnostics["affinity_seconds"] = time.perf_counter() - started
    built = replace(built, rows=MetricRows.of(built.rows, X, metric, n_neighbors))
    return built, functools.partial(
        advice,
        X=X,
        metric=metric,
        affinity=affinity,
        epsilon=built.epsilon,
        n_neighbors=n_neighbors,
        neighbors=neighbors,
        cut=cut,
        vertex=built.vertex,
    )


def affinity_of(
    X: Any,
    affinity: str,
    epsilon: float | str,
    n_neighbors: int,
    neighbors: Any,
    cut: float,
    device: Any = None,
) -> Affinity:
    """Build the affinity that `Diffusion.from_points` describes, with products on a device."""
    if device is None:
        return _affinity_of(X, affinity, epsilon, n_neighbors, neighbors, cut)
    if neighbors is None and affinity in ("knn", "variable"):
        neighbors = NeighborIndex(X, device=device)
    built = _affinity_of(X, affinity, epsilon, n_neighbors, neighbors, cut)
    return replace(built, operator=on_device(built.operator, device))


def _affinity_of(
    X: Any, affinity: str, epsilon: float | str, n_neighbors: int, neighbors: Any, cut: float
) -> Affinity:
    if affinity == "knn":
        return knn_affinity(X, epsilon, n_neighbors, neighbors)
    if affinity == "variable":
        return variable_affinity(X, epsilon, n_neighbors, neighbors)
    if affinity == "dense":
        return dense_affinity(X, epsilon, n_neighbors)
    if affinity in TABLE_AFFINITIES:
        return bipartite_affinity(X) if affinity == "bipartite" else cosine_affinity(X)
    return radius_affinity(X, epsilon, cut)


def mixture_affinity(X: Array, kernel: MixtureKernel, rank_tol: float) -> Affinity:
    """Build the affinity of points (n, m) by the kernel of a mixture, of low rank."""
    if not isinstance(kernel, MixtureKernel):
        raise TypeError(
            f"kernel is of type {type(kernel).__name__}; pass a MixtureKernel, such as "
            "MixtureKernel.from_sklearn(mixture, epsilon)."
        )
    log_unit = float(kernel.log_diagonal(X).max())
    operator = LowRank(affinity_factor(kernel.components, X, rank_tol, log_unit))
    built = Affinity(operator, MixtureRows(kernel, X, log_unit), epsilon=kernel.epsilon)
    built.diagnostics["rank"] = operator.factor.shape[1]
    return built
