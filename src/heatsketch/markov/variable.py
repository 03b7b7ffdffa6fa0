"""The affinity that takes the density of the sample out of a neighbour graph."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._checks import ScaleWarning, logger
from heatsketch._typing import Array
from heatsketch.graphs.neighborhoods import neighborhood_graph
from heatsketch.markov.affinity import Affinity, NeighborRows, local_scales
from heatsketch.neighbors import Distances
from heatsketch.operators.operator import Sparse
from heatsketch.scales.dimension import graph_dimension

_MAX_HOLDING_TIME = 1000.0  # steps that the median point waits for its first move
_SAMPLING_ERROR = 1.25  # of an estimate of the dimension: uniform points may exceed their features
_MOST_LOG_DENSITY = 250.0  # of a density relative to the typical one: products of two are finite


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
    if epsilon != "self-tuning":
        raise ValueError(
            f"epsilon={epsilon!r} but affinity='variable' finds the bandwidth at each point; pass "
            "epsilon='self-tuning', or affinity='radius' for one bandwidth."
        )
    logger.info("graph of the nearest neighbours of %s points", f"{X.shape[0]:,}")
    graph, near = neighborhood_graph(X, n_neighbors=n_neighbors, neighbors=neighbors)
    k = int(near.n_neighbors)  # type: ignore[arg-type]
    if k < 2:
        raise ValueError(
            f"Points have {k} neighbour(s), but affinity='variable' estimates the dimension from "
            "the distances to two or more; pass n_neighbors >= 2 and at least 3 distinct points, "
            "or affinity='knn'."
        )
    scales = local_scales(graph, None, near.inputs)
    coordinates = not isinstance(neighbors, Distances)  # without, features are no bound
    dimension = _dimension(graph, X.shape[1] if coordinates else np.inf)
    directed = NeighborRows(near, scales).weights(graph, out=graph.data)
    K = sparse.csr_matrix(directed.maximum(directed.T))
    row, column = np.repeat(np.arange(near.n), np.diff(K.indptr)), K.indices

    def row_sums(entries: Array) -> Array:
        return np.add.reduceat(entries, K.indptr[:-1])

    log_density = np.log(row_sums(K.data)) - dimension * np.log(scales / np.median(scales))
    log_density -= np.median(log_density)
    density = np.exp(np.clip(log_density, -_MOST_LOG_DENSITY, _MOST_LOG_DENSITY))
    # K is all that is left of the distances.
    energy = row_sums(-K.data * np.log(K.data) * (scales[row] * scales[column]))
    weight = np.sqrt(density / np.where(energy > 0, energy, scales**2))  # 0 without any neighbour
    K.data *= weight[row] * weight[column] * (row != column)
    speed = row_sums(K.data) / density
    median = float(np.median(speed))
    fastest = min(float(speed.max()), _MAX_HOLDING_TIME * median)
    c = 1 / max(fastest, np.finfo(float).tiny)
    slow = np.maximum(1.0, c * speed)
    K.data *= c / np.maximum(slow[row], slow[column])
    K.data[row == column] = np.maximum(density - row_sums(K.data), 0.0)
    directed.data *= weight[directed.indices]
    return Affinity(
        Sparse(K),
        NeighborRows(near, scales, weight=weight),
        near.vertex,
        near.by_content,
        directed_step=directed,
        epsilon=scales,
        diagnostics={
            "n_neighbors": k,
            "duplicates": X.shape[0] - near.n,
            "dimension": dimension,
            "median_holding_time": 1 / (c * median) if median > 0 else np.inf,
            **near.recall,
        },
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
