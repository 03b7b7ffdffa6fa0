"""Gaussian affinities of points, by name, and that of a mixture."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from heatsketch._checks import check_choice, check_number, check_points, logger, require
from heatsketch._random import content_order, distinct_rows
from heatsketch._tensors import returned_for
from heatsketch._tiles import row_tiles
from heatsketch._typing import Array
from heatsketch.graphs.neighborhoods import feasible_neighbors, neighborhood_graph
from heatsketch.markov.new_points import (
    Affinity,
    DenseRows,
    MixtureRows,
    NeighborRows,
    PointRows,
    check_scales,
    local_scales,
    scales_by_search,
)
from heatsketch.markov.novelty import KnnNovelty
from heatsketch.markov.variable import variable_affinity
from heatsketch.mixture import MixtureKernel
from heatsketch.mixture.cholesky import affinity_factor
from heatsketch.neighbors import Distances, NeighborIndex, in_metric
from heatsketch.neighbors.metric import Metric
from heatsketch.operators.kernel import EXPONENT_BOUND, Kernel
from heatsketch.operators.operator import Dense, LowRank, Sparse, inverse_permutation
from heatsketch.operators.torch import on_device
from heatsketch.scales.bandwidth import RULES, WIDE_CUT, rule_epsilon, scale_order

AFFINITIES = ("knn", "dense", "radius", "variable")
STORED_POINTS = 4096  # up to here a dense kernel is stored (134 MB), else computed in blocks
MOST_POINTS = 2**18  # of a dense kernel: a product takes minutes, and a fit a dozen of them
_RADIUS_BYTES_PER_ENTRY = 70  # at the peak


def gaussian_affinity(X: Any, epsilon: float | str = "ksum", *, metric: str = "euclidean") -> Array:
    """Compute the matrix exp(-|x_i - x_j|² / ε), dense (n, n).

    Parameters
    ----------
    X : array, CSR matrix or tensor (n, d)
    epsilon : float > 0 or "ksum", "median", "nearest", default "ksum"
        In squared data units.
    metric : "euclidean", "cosine" or "correlation", default "euclidean"
        The distance |x_i - x_j|, as in `HeatSketch`.

    Returns
    -------
    array (n, n), float64
        Exactly symmetric, with ones on the diagonal. Of a tensor a tensor like it, computed on the
        processor.

    Raises
    ------
    ValueError
        X is not finite, not two-dimensional or has fewer than two rows; epsilon is out of range.

    Notes
    -----
    Cost: n² (d + 1) operations, 8 n² bytes. `Kernel` is the same without a stored matrix.
    The largest error of the exponent is 1e-8 (usually 1e-14).
    *Sketching the heat kernel*, Algorithm 1.

    Examples
    --------
    >>> import heatsketch as hs
    >>> hs.gaussian_affinity([[0.0], [2.0]], epsilon=4.0).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """
    points = in_metric(check_points(X), metric)
    n = points.shape[0]
    require(
        2 * 8.0 * n * n, f"All affinities of {n:,} points", "pass an operator, heatsketch.Kernel."
    )
    kernel = Kernel(points, resolve_epsilon(points, epsilon), np.dtype(np.float64))
    K: Array = returned_for(_stored(kernel), X)
    return K


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
    check_choice(affinity, "affinity", AFFINITIES)
    check_number(cut, "cut", low=0, open_low=True)
    check_number(n_neighbors, "n_neighbors", low=1, integer=True)
    if isinstance(epsilon, str):
        check_choice(epsilon, "epsilon", ("self-tuning", *RULES))
    else:
        check_number(epsilon, "epsilon", low=0, open_low=True)
    if affinity == "radius" and epsilon == "self-tuning":
        raise ValueError(
            "epsilon='self-tuning' gives affinity='radius' no common radius; pass a number or "
            "'ksum', or affinity='knn'."
        )
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
    elif affinity == "dense" and distances is None:
        built = dense_affinity(X, epsilon, n_neighbors)
    else:
        widest = cut if affinity == "radius" else None
        built = radius_affinity(X, epsilon, widest, distances, n_neighbors)
    operator = built.operator if device is None else on_device(built.operator, device)
    built.diagnostics["affinity_seconds"] = time.perf_counter() - started
    near = KnnNovelty(X, n_neighbors, getattr(built.rows, "neighborhoods", None), metric)
    return replace(built, operator=operator, rows=PointRows(built.rows, near))


def resolve_epsilon(X: Any, epsilon: float | str, distances: Distances | None = None) -> float:
    """Return the ε of a named rule, or the given number, checked."""
    if isinstance(epsilon, str):
        return rule_epsilon(X, epsilon, distances=distances)
    return check_number(epsilon, "epsilon", low=0, open_low=True)


def knn_affinity(X: Any, epsilon: float | str, n_neighbors: int, neighbors: Any = None) -> Affinity:
    """Build the Gaussian affinity on the nearest-neighbour graph, symmetrised.

    `neighbors` is the search to use (see `ordered_search`). Duplicates share a vertex, except in a
    given graph.
    """
    logger.info("graph of the nearest neighbours of %s points", f"{X.shape[0]:,}")
    graph, near = neighborhood_graph(X, n_neighbors=n_neighbors, neighbors=neighbors)
    k = int(near.n_neighbors)  # type: ignore[arg-type]
    if epsilon == "self-tuning":
        order = scale_order(k)
        scales = check_scales(local_scales(graph, order), near.inputs)
        rows = NeighborRows(near, scales, order)
        bandwidth: float | Array = scales
    else:
        distances = neighbors if isinstance(neighbors, Distances) else None
        bandwidth = resolve_epsilon(near.search.points, epsilon, distances)
        rows = NeighborRows(near, bandwidth)
    directed = rows.weights(graph, out=graph.data)
    return Affinity(
        Sparse(directed.maximum(directed.T)),
        rows,
        near.vertex,
        near.by_content,
        directed_step=directed,
        epsilon=bandwidth,
        diagnostics={"n_neighbors": k, "duplicates": X.shape[0] - near.n, **near.recall},
    )


def dense_affinity(X: Any, epsilon: float | str, n_neighbors: int) -> Affinity:
    """Build the full Gaussian affinity, stored for up to 4,096 points, else computed in blocks."""
    if X.shape[0] > MOST_POINTS:
        raise ValueError(
            f"affinity='dense' of {X.shape[0]:,} points takes hours; pass affinity='knn', fewer "
            "points, or the operator itself (heatsketch.Kernel) as a precomputed affinity."
        )
    order, double = content_order(X), np.dtype(np.float64)
    X = X[order]
    if epsilon == "self-tuning":
        first = distinct_rows(X)[0]
        if len(first) < 2:
            raise ValueError(
                "All distances are zero: every row of X is the same point; pass distinct points, "
                "or affinity='dense' with a number as epsilon."
            )
        k = scale_order(feasible_neighbors(n_neighbors, len(first)))
        index = NeighborIndex(X[first])
        kernel = Kernel(X, scales_by_search(index, X, k), double)
        rows = DenseRows(kernel, index, k)
    else:
        kernel = Kernel(X, resolve_epsilon(X, epsilon), double)
        rows = DenseRows(kernel)
    stored = kernel.n <= STORED_POINTS
    return Affinity(
        Dense(_stored(kernel), kernel.spectrum) if stored else kernel,
        rows,
        inverse_permutation(order),
        np.arange(kernel.n),
        epsilon=kernel.epsilon,
        diagnostics={"exponent_error": min(kernel.exponent_error, EXPONENT_BOUND)},
    )


def _stored(kernel: Kernel) -> Array:
    K = np.empty((kernel.n, kernel.n))
    for rows in row_tiles(kernel.n):
        K[rows] = kernel.matrix_rows(rows)
    K = np.triu(K, 1)  # half of it, so that rounding cannot break the symmetry
    K += K.T
    np.fill_diagonal(K, 1.0)
    return K


def radius_affinity(
    X: Any,
    epsilon: float | str,
    cut: float | None = WIDE_CUT,
    distances: Distances | None = None,
    n_neighbors: int = 0,
) -> Affinity:
    """Build the Gaussian affinity of points at distances up to cut √(ε/2), or of all for None.

    Of all points only in a metric without coordinates, `distances`; there "self-tuning" takes
    `n_neighbors`. Equal points do not share a vertex.
    """
    n = X.shape[0]
    search: Any = distances or NeighborIndex(X)
    bandwidth: Any = None
    radius = float(np.finfo(float).max)
    if epsilon != "self-tuning":
        bandwidth = resolve_epsilon(X, epsilon, distances)
        radius = radius if cut is None else cut * np.sqrt(bandwidth / 2)
    if distances is not None:
        require(3 * 8.0 * n * n, f"All distances of {n:,} points", "pass affinity='knn'.")
    else:
        sample = X[:: max(1, n // 100)]
        mean = search.within(sample, radius).nnz / sample.shape[0]
        what = f"The {mean:,.0f} neighbours of a point that affinity='radius' gives at this epsilon"
        instead = "pass a smaller epsilon, or affinity='knn'."
        require(_RADIUS_BYTES_PER_ENTRY * mean * n, what, instead)
    graph, near = neighborhood_graph(X, radius=radius, neighbors=search, merge=False)
    if epsilon != "self-tuning":
        rows = NeighborRows(near, bandwidth)
    else:
        order = scale_order(feasible_neighbors(n_neighbors, n))
        bandwidth = check_scales(local_scales(graph, order), near.inputs)
        rows = NeighborRows(near, bandwidth, order)
    K = rows.weights(graph, out=graph.data)
    K = K if distances is None else K.maximum(K.T)
    return Affinity(
        Sparse(K) if cut is not None or n > STORED_POINTS else Dense(K.toarray()),
        rows,
        near.vertex,
        near.by_content,
        epsilon=bandwidth,
        diagnostics={} if cut is None else {"mean_neighbors": K.nnz / n - 1},
    )


def mixture_affinity(X: Array, kernel: MixtureKernel, rank_tol: float) -> Affinity:
    """Build the affinity of points (n, m) by the kernel of a mixture, of low rank."""
    if not isinstance(kernel, MixtureKernel):
        raise TypeError(
            f"kernel is of type {type(kernel).__name__}; pass a MixtureKernel, such as "
            "MixtureKernel.from_sklearn(mixture, epsilon)."
        )
    log_unit = float(kernel.log_diagonal(X).max())
    operator = LowRank(affinity_factor(kernel.components, X, rank_tol, log_unit))
    return Affinity(
        operator,
        MixtureRows(kernel, X, log_unit),
        np.arange(len(X)),
        content_order(X),
        epsilon=kernel.epsilon,
        diagnostics={"rank": operator.factor.shape[1]},
    )
