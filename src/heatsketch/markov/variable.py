"""The affinity that takes the density of the sample out of a neighbour graph."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._checks import ScaleWarning, logger
from heatsketch._tiles import for_each_tile
from heatsketch._typing import Array
from heatsketch.graphs.neighborhoods import neighborhood_graph
from heatsketch.markov.new_points import Affinity, NeighborRows, check_scales, local_scales
from heatsketch.neighbors import Distances
from heatsketch.operators.operator import Sparse
from heatsketch.scales.dimension import graph_dimension

_MOST_WAITING = 1000.0  # steps that the median point waits for its first move
_SAMPLING_ERROR = 1.25  # of an estimate of the dimension: uniform points may exceed their features
_MOST_LOG_DENSITY = 250.0  # of a density relative to the typical one: products of two are held


def variable_affinity(
    X: Any, epsilon: float | str, n_neighbors: int, neighbors: Any = None
) -> Affinity:
    """Build the affinity of a neighbour graph on which all points move at the same speed.

    A kernel of variable bandwidth, K_ij = exp(-|x_i - x_j|²/(s_i s_j)) with s² twice the mean
    square of the distances to the k neighbours, moves a point by about s, less where points are
    dense. Berry and Harlim (2016) divide its generator by s². Here the square of the way is
    measured, e_i = Σ_j K_ij |x_i - x_j|², and the density too, q_i = Σ_j K_ij / s_i^d with the
    intrinsic dimension d. Off the diagonal the affinity is

        c K_ij √(q_i q_j / (e_i e_j)),

    whose Dirichlet form is that of the density squared, whatever the points are like; on the
    diagonal is what brings the row sums to q: the share of the time that a point waits. So the
    normalisation with α has the limit that it has for a fixed bandwidth (Coifman and Lafon 2006):
    with α = 1 the Laplace-Beltrami operator.

    c is as large as it can be, so that somewhere nobody waits; but the median point does not wait
    more than 1,000 steps: steps in places still denser are shortened.

    The dimension is at most the number of features: ties between distances give any number.

    `neighbors` is the search to use (see `ordered_search`). Cost: that of the neighbour graph.
    """
    _check_arguments(X.shape[0], epsilon, n_neighbors)
    logger.info("graph of the nearest neighbours of %s points", f"{X.shape[0]:,}")
    graph, near = neighborhood_graph(X, n_neighbors=n_neighbors, neighbors=neighbors)
    _check_arguments(near.n, epsilon, n_neighbors)
    scales = check_scales(local_scales(graph, None), near.inputs)
    coordinates = not isinstance(neighbors, Distances)  # without, features are no bound
    dimension = _dimension(graph, X.shape[1] if coordinates else np.inf)
    directed = NeighborRows(near, scales).weights(graph, out=graph.data)
    K = sparse.csr_matrix(directed.maximum(directed.T))
    mass, energy = _moments(K, scales)
    density = _density(mass, scales, dimension)
    weight = np.sqrt(density / np.where(energy > 0, energy, scales**2))  # 0 without any neighbour
    holding_time = _equalize(K, weight, density)
    directed.data *= weight[directed.indices]
    return Affinity(
        Sparse(K),
        NeighborRows(near, scales, weight=weight),
        near.vertex,
        near.by_content,
        directed_step=directed,
        epsilon=scales,
        diagnostics={
            "n_neighbors": int(near.n_neighbors),  # type: ignore[arg-type]
            "duplicates": X.shape[0] - near.n,
            "dimension": dimension,
            "median_holding_time": holding_time,
            **near.recall,
        },
    )


def _check_arguments(n: int, epsilon: float | str, n_neighbors: int) -> None:
    if epsilon != "self-tuning":
        raise ValueError(
            f"epsilon={epsilon!r} but affinity='variable' finds the bandwidth at each point; pass "
            "epsilon='self-tuning', or affinity='radius' for one bandwidth."
        )
    k = min(n_neighbors, n - 1)
    if k < 2:
        raise ValueError(
            f"Points have {k} neighbour(s), but affinity='variable' estimates the dimension from "
            "the distances to two or more; pass n_neighbors >= 2 and at least 3 distinct points, "
            "or affinity='knn'."
        )


def _dimension(graph: sparse.csr_matrix, n_features: float) -> float:
    """Return the intrinsic dimension; no more than there are features, with a warning."""
    dimension = graph_dimension(graph)
    if dimension <= n_features * _SAMPLING_ERROR:
        return dimension
    warnings.warn(
        f"affinity='variable' estimates the intrinsic dimension from the distances to neighbours, "
        f"which gives {dimension:.3g} but X has {n_features} features: the distances hardly "
        f"differ, as with ties. {n_features} is used, and the density is rough; pass "
        "affinity='knn', or a larger n_neighbors.",
        ScaleWarning,
        stacklevel=7,
    )
    return float(n_features)


def _moments(K: sparse.csr_matrix, scales: Array) -> tuple[Array, Array]:
    """Return Σ_j K_ij and Σ_j K_ij |x_i - x_j|², (n,) each; K has a diagonal of ones."""
    mass, energy = np.empty(K.shape[0]), np.empty(K.shape[0])

    def work(rows: slice) -> None:
        starts, entries, row = _entries(K, rows)
        weights = K.data[entries]
        mass[rows] = np.add.reduceat(weights, starts)
        # K is all that is left of the distances
        weights = -weights * np.log(weights) * (scales[row] * scales[K.indices[entries]])
        energy[rows] = np.add.reduceat(weights, starts)

    for_each_tile(work, K.shape[0])
    return mass, np.maximum(energy, 0.0)


def _density(mass: Array, scales: Array, dimension: float) -> Array:
    """Return mass / s^d relative to the typical one."""
    log_density = np.log(mass) - dimension * np.log(scales / np.median(scales))
    log_density -= np.median(log_density)
    return np.exp(np.clip(log_density, -_MOST_LOG_DENSITY, _MOST_LOG_DENSITY))


def _equalize(K: sparse.csr_matrix, weight: Array, density: Array) -> float:
    """Replace K_ij by c K_ij w_i w_j, and the diagonal so that the row sums are the density.

    Return the number of steps that the median point waits for its first move.
    """
    n = K.shape[0]
    moving = np.empty(n)
    slow = np.ones(n)

    def weigh(rows: slice) -> None:
        starts, entries, row = _entries(K, rows)
        column = K.indices[entries]
        K.data[entries] *= weight[row] * weight[column] * (row != column)
        moving[rows] = np.add.reduceat(K.data[entries], starts)

    def shorten(rows: slice) -> None:
        starts, entries, row = _entries(K, rows)
        column = K.indices[entries]
        K.data[entries] *= c / np.maximum(slow[row], slow[column])
        moving[rows] = np.add.reduceat(K.data[entries], starts)
        K.data[entries][row == column] = np.maximum(density[rows] - moving[rows], 0.0)

    for_each_tile(weigh, n)
    speed = moving / density
    median = float(np.median(speed))
    c = 1 / max(min(float(speed.max()), _MOST_WAITING * median), np.finfo(float).tiny)
    slow = np.maximum(1.0, c * speed)
    for_each_tile(shorten, n)
    return 1 / (c * median) if median > 0 else np.inf


def _entries(K: sparse.csr_matrix, rows: slice) -> tuple[Array, slice, Array]:
    """Return where rows start among the entries of a tile, the entries, and the row of each."""
    bounds = K.indptr[rows.start : rows.stop + 1]
    row = np.repeat(np.arange(rows.start, rows.start + len(bounds) - 1), np.diff(bounds))
    return bounds[:-1] - bounds[0], slice(bounds[0], bounds[-1]), row
