"""Affinities of points."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from scipy.spatial.distance import pdist, squareform

from heatsketch._arrays import Array, is_tensor, returned_for
from heatsketch._checks import check_points
from heatsketch._messages import ScaleWarning, logger, texts_from, warn
from heatsketch._random import content_order
from heatsketch._threads import require_memory, row_tiles
from heatsketch.core.blocks import blocks_of, inverse_permutation
from heatsketch.core.graph import as_graph, as_operator
from heatsketch.core.kernel import EXPONENT_BOUND, Kernel
from heatsketch.core.operators import Dense, LinearMap, Operator, Sparse
from heatsketch.markov.new_points import DenseKernel, NeighborKernel, OutOfSampleKernel
from heatsketch.neighbors import Distances, in_metric, ordered_search
from heatsketch.neighbors.graph import (
    feasible_neighbors,
    local_scales,
    neighborhood_graph,
    scale_order,
)
from heatsketch.scales import WIDE_CUT, density_estimate, graph_dimension, rule_epsilon

STORED_POINTS = 4096  # up to here a dense kernel is stored (134 MB), else computed in blocks
MOST_POINTS = 2**18  # of a dense kernel: a product takes minutes, and a fit a dozen of them
_MAX_HOLDING_TIME = 1000.0  # steps that the median point waits for its first move
_SAMPLING_ERROR = 1.25  # of an estimate of the dimension: uniform points may exceed their features
_MOST_LOG_DENSITY = 250.0  # of a density relative to the typical one: products of two are finite


@dataclass(frozen=True, eq=False)
class Affinity:
    """An affinity K of points.

    Attributes
    ----------
    operator : Operator
        K, on the vertices.
    vertex : array (points,)
        The vertex of each input point.
    kernel : OutOfSampleKernel
        The rule for the affinities K(x, x_j) of new points, and how new they are; of points a
        `PointKernel`.
    by_content : array (n,) or None
        The vertices in an order that looks random and depends on the data alone, if it is known.
    directed_step : CSR (n, n) or None
        The `new_rows` of the vertices, where they differ from K: a neighbour graph is symmetrised,
        rows of new points cannot be.
    epsilon : float or array (n,)
        Bandwidth in squared data units, or the local scales s with ε_ij = s_i s_j in data units.
    diagnostics : dict
    dtype : numpy.dtype
        Precision of products by a large A.
    weighable : bool
        Whether K_ij depends on the points i and j alone, so that points can count more often.
    """

    operator: Operator
    vertex: Array
    kernel: OutOfSampleKernel
    by_content: Array | None = None
    directed_step: sparse.csr_matrix | None = None
    epsilon: float | Array = np.nan
    diagnostics: dict[str, Any] = field(default_factory=dict)
    dtype: Any = np.float64
    weighable: bool = True


@texts_from(in_metric, density_estimate)
def gaussian_affinity(X: Any, epsilon: float | str = "ksum", *, metric: str = "euclidean") -> Array:
    """Compute the dense matrix exp(-|x_i - x_j|² / ε) of all pairs of points [1]_.

    Parameters
    ----------
    X : {array-like, sparse matrix, tensor} of shape (n_samples, n_features)
        Points.
    epsilon : float or {"ksum", "median", "nearest"}, default="ksum"
        As in `density_estimate`.
    metric : {"euclidean", "cosine", "correlation"}, default="euclidean"
        As in `in_metric`.

    Returns
    -------
    ndarray of shape (n_samples, n_samples), dtype float64
        Exactly symmetric, with ones on the diagonal. For a tensor the result is a tensor like it,
        computed on the processor.

    Raises
    ------
    ValueError
        X is not finite, not two-dimensional or has fewer than two rows; epsilon is out of range.

    See Also
    --------
    Kernel : The Gaussian kernel of points, never stored.
    ksum : Choose a bandwidth and estimate the dimension.
    symmetric_normalize : Normalise an affinity to a symmetric matrix.
    Diffusion.from_affinity : Build the diffusion of an affinity.

    Notes
    -----
    The cost is n² (d + 1) operations and 8 n² bytes for n points with d features. `Kernel` is the
    same without a stored matrix. The largest error of the exponent is 1e-8 (usually 1e-14).

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), Algorithm 1.

    Examples
    --------
    >>> import heatsketch as hs
    >>> hs.gaussian_affinity([[0.0], [2.0]], epsilon=4.0).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """
    points = in_metric(check_points(X), metric)
    n = points.shape[0]
    require_memory(
        2 * 8.0 * n * n, f"All affinities of {n:,} points", "pass an operator, heatsketch.Kernel."
    )
    kernel = Kernel(points, rule_epsilon(points, epsilon), float)
    return returned_for(_stored(kernel), X)  # type: ignore[no-any-return]


@texts_from(in_metric, density_estimate)
def kernel_affinity(
    X: Any,
    h: Callable[[Array], Array],
    epsilon: float | str = "ksum",
    *,
    metric: str = "euclidean",
) -> Array:
    """Compute the dense matrix h(|x_i - x_j|² / ε) of all pairs of points, for a kernel h [1]_.

    h is any smooth function that falls off fast: ``lambda s: np.exp(-s)`` gives
    `gaussian_affinity`. Normalised, each of them approximates the heat kernel, at a time that
    depends on h.

    Parameters
    ----------
    X : {array-like, sparse matrix, tensor} of shape (n_samples, n_features)
        Points.
    h : callable
        Maps an array of numbers >= 0 to one of the same shape, of affinities >= 0.
    epsilon : float or {"ksum", "median", "nearest"}, default="ksum"
        As in `density_estimate`. The rules are those for the Gaussian kernel.
    metric : {"euclidean", "cosine", "correlation"}, default="euclidean"
        As in `in_metric`.

    Returns
    -------
    ndarray of shape (n_samples, n_samples), dtype float64
        Exactly symmetric, with h(0) on the diagonal. It need not be positive semidefinite.

    Raises
    ------
    ValueError, TypeError
        X is not finite, not two-dimensional or has fewer than two rows; epsilon is out of range; h
        is no function, or its values are not finite, negative, or of another shape.

    See Also
    --------
    gaussian_affinity : Compute the Gaussian affinity of all pairs of points.
    symmetric_normalize : Normalise an affinity to a symmetric matrix.
    Diffusion.from_affinity : Build the diffusion of an affinity.

    Notes
    -----
    The cost is n² (d + 1) operations beside those of h, and 24 n² bytes for n points with d
    features.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), §4.1, where the argument is |x_i - x_j|/ε in print.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.kernel_affinity([[0.0], [2.0]], lambda s: np.exp(-(s**2)), epsilon=4.0).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """
    if not callable(h):
        raise TypeError(f"h={h!r} is no function; pass one of |x - y|²/ε, such as a lambda.")
    points = in_metric(check_points(X), metric)
    n = points.shape[0]
    require_memory(3 * 8.0 * n * n, f"All affinities of {n:,} points", "pass fewer points.")
    dense = points.toarray() if sparse.issparse(points) else points
    s = squareform(pdist(dense, "sqeuclidean")) / rule_epsilon(points, epsilon)
    K = np.asarray(h(s), dtype=float)
    if K.shape != s.shape or not np.isfinite(K).all() or (K < 0).any():
        raise ValueError(
            f"h maps an array of shape {s.shape} to one of shape {K.shape}, with values that are "
            "not all finite and >= 0; pass a function of arrays, such as lambda s: np.exp(-s)."
        )
    K = np.triu(K) + np.triu(K, 1).T  # so that rounding in h cannot break the symmetry
    return returned_for(K, X)  # type: ignore[no-any-return]


def knn_affinity(
    X: Any, epsilon: Any, n_neighbors: int, search: Any = None, cut: float = WIDE_CUT
) -> Affinity:
    """Build the Gaussian affinity on the nearest-neighbour graph, symmetrised.

    Duplicates share a vertex, except in a given graph.
    """
    logger.info("graph of the nearest neighbours of %s points", f"{X.shape[0]:,}")
    graph, near = neighborhood_graph(X, n_neighbors=n_neighbors, neighbors=search)
    k, n = int(near.n_neighbors), near.search.n  # type: ignore[arg-type]
    if epsilon == "self-tuning":
        scales = local_scales(graph.data.reshape(n, -1), scale_order(k), near.vertex)
    else:
        distances = search if isinstance(search, Distances) else None
        scales = rule_epsilon(near.search.points, epsilon, distances)
    kernel = NeighborKernel(
        points=X, n_neighbors=n_neighbors, neighborhoods=near, scales=scales, order=scale_order(k)
    )
    directed = kernel.weights(graph, out=graph.data)
    directed.eliminate_zeros()
    symmetric = blocks_of(directed).both_ways(directed)
    if sparse.issparse(symmetric):
        K: Operator = Sparse.of(symmetric)
    else:
        from heatsketch.device.operators import TorchSparse

        K = TorchSparse(symmetric)
    return Affinity(
        operator=K,
        vertex=near.vertex,
        kernel=kernel,
        by_content=near.by_content,
        directed_step=directed,
        epsilon=scales,
        diagnostics={"n_neighbors": k, "duplicates": X.shape[0] - n, **near.recall},
        dtype=X.dtype,
    )


def variable_affinity(
    X: Any, epsilon: Any, n_neighbors: int, search: Any = None, cut: float = WIDE_CUT
) -> Affinity:
    """Build the affinity of a neighbour graph on which all points move at the same speed.

    A kernel of variable bandwidth, K_ij = exp(-|x_i - x_j|²/(s_i s_j)) with s² twice the mean
    square of the distances to the k neighbours, moves a point by about s, less where points are
    dense. Berry and Harlim (2016) divide its generator by s². Here the square of the way is
    measured, e_i = Σ_j K_ij |x_i - x_j|², and the density too, q_i = Σ_j K_ij / s_i^d with the
    intrinsic dimension d. Off the diagonal the affinity is

        c K_ij √(q_i q_j / (e_i e_j)),

    whose Dirichlet form is that of the density squared, whatever the points are like; the
    diagonal brings the row sums to q: it is the fraction of the time that a point waits. So the
    normalisation with α has the limit that it has for a fixed bandwidth (Coifman and Lafon 2006):
    with α = 1 the Laplace-Beltrami operator.

    c is as large as it can be, so that somewhere nobody waits; but the median point does not wait
    more than 1,000 steps: steps in places still denser are shortened.

    The dimension is at most the number of features: ties between distances give any number.

    Products are in float64: where steps wait, λ is close to 1 and float32 loses 1 - λ. Cost: that
    of the neighbour graph.
    """
    if epsilon != "self-tuning":
        raise ValueError(
            f"epsilon={epsilon!r} but affinity='variable' finds the bandwidth at each point; pass "
            "epsilon='self-tuning', or affinity='radius' for one bandwidth."
        )
    logger.info("graph of the nearest neighbours of %s points", f"{X.shape[0]:,}")
    graph, near = neighborhood_graph(X, n_neighbors=n_neighbors, neighbors=search)
    k, n = int(near.n_neighbors), near.search.n  # type: ignore[arg-type]
    if k < 2:
        raise ValueError(
            f"Points have {k} neighbour(s), but affinity='variable' estimates the dimension from "
            "the distances to two or more; pass n_neighbors >= 2 and at least 3 distinct points, "
            "or affinity='knn'."
        )
    scales = local_scales(graph.data.reshape(n, -1), None, near.vertex)
    # Without coordinates the features are no bound.
    dimension = _dimension(graph, np.inf if isinstance(search, Distances) else X.shape[1])
    kernel = NeighborKernel(points=X, n_neighbors=n_neighbors, neighborhoods=near, scales=scales)
    directed = kernel.weights(graph, out=graph.data)
    directed.eliminate_zeros()
    K = sparse.csr_matrix(directed.maximum(directed.T))
    row, column = np.repeat(np.arange(n), np.diff(K.indptr)), K.indices

    def row_sums(entries: Array) -> Array:
        return np.add.reduceat(entries, K.indptr[:-1])

    log_density = np.log(row_sums(K.data)) - dimension * np.log(scales / np.median(scales))
    log_density -= np.median(log_density)
    density = np.exp(np.clip(log_density, -_MOST_LOG_DENSITY, _MOST_LOG_DENSITY))
    # |x_i - x_j|² = -s_i s_j log K_ij: K has overwritten the distances, to save their memory.
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
    diagnostics = {"n_neighbors": k, "duplicates": X.shape[0] - n, "dimension": dimension}
    diagnostics["median_holding_time"] = 1 / (c * median) if median > 0 else np.inf
    return Affinity(
        operator=Sparse.of(K),
        vertex=near.vertex,
        kernel=replace(kernel, weight=weight),
        by_content=near.by_content,
        directed_step=directed,
        epsilon=scales,
        diagnostics=diagnostics | near.recall,
        weighable=False,
    )


def _dimension(graph: sparse.csr_matrix, n_features: float) -> float:
    """Return the intrinsic dimension; no more than there are features, with a warning."""
    dimension = graph_dimension(graph)
    if dimension <= n_features * _SAMPLING_ERROR:
        return dimension
    message = (
        f"affinity='variable' estimates the dimension {dimension:.3g} from the distances to "
        f"neighbours but X has {n_features} features: the distances hardly differ, as with ties. "
        f"{n_features} is used, and the density is rough; pass affinity='knn', or a larger "
        "n_neighbors."
    )
    warn(ScaleWarning, message)
    return float(n_features)


def dense_affinity(
    X: Any, epsilon: Any, n_neighbors: int, search: Any = None, cut: float = WIDE_CUT
) -> Affinity:
    """Build the full Gaussian affinity, stored for up to 4,096 points, else computed in blocks."""
    if isinstance(search, Distances):
        return radius_affinity(X, epsilon, n_neighbors, search, None)
    if X.shape[0] > MOST_POINTS:
        raise ValueError(
            f"affinity='dense' of {X.shape[0]:,} points takes hours; pass affinity='knn', fewer "
            "points, or the operator itself (heatsketch.Kernel) as a precomputed affinity."
        )
    order, scales, index, k = content_order(X), epsilon, None, 0
    x = X[order]
    if epsilon == "self-tuning":
        index, _, _ = ordered_search(None, x)
        k = scale_order(feasible_neighbors(n_neighbors, index.n))
        scales = local_scales(index.query(x, k + 1).distances, k)
    kernel = Kernel(x, rule_epsilon(x, scales), float)
    K = kernel if kernel.n > STORED_POINTS else Dense.of(_stored(kernel), kernel.spectrum)
    new = DenseKernel(points=X, n_neighbors=n_neighbors, kernel=kernel, index=index, order=k)
    return Affinity(
        operator=K,
        vertex=inverse_permutation(order),
        kernel=new,
        by_content=np.arange(kernel.n),
        epsilon=kernel.epsilon,
        diagnostics={"exponent_error": min(kernel.exponent_error, EXPONENT_BOUND)},
        dtype=X.dtype,
    )


def radius_affinity(
    X: Any, epsilon: Any, n_neighbors: int = 0, search: Any = None, cut: float | None = WIDE_CUT
) -> Affinity:
    """Build the Gaussian affinity of points at distances up to cut √(ε/2), or of all for None.

    All points are taken only in a metric without coordinates. Equal points do not share a vertex.
    """
    if cut is not None and epsilon == "self-tuning":
        raise ValueError(
            "epsilon='self-tuning' gives affinity='radius' no common radius; pass a number or "
            "'ksum', or affinity='knn'."
        )
    n, distances = X.shape[0], search if isinstance(search, Distances) else None
    scales = epsilon if epsilon == "self-tuning" else rule_epsilon(X, epsilon, distances)
    radius = float(np.finfo(float).max) if cut is None else cut * np.sqrt(scales / 2)
    if distances is not None:
        require_memory(3 * 8.0 * n * n, f"All distances of {n:,} points", "pass affinity='knn'.")
    graph, near = neighborhood_graph(X, radius=radius, neighbors=distances, merge=False)
    order = distinct = None
    if epsilon == "self-tuning":  # copies of a point do not count among its neighbours
        distinct = near.vertex[ordered_search(distances, X)[1]]
        order = scale_order(feasible_neighbors(n_neighbors, len(distinct)))
        scales = local_scales(graph.data.reshape(n, -1)[:, distinct], order, near.vertex)
    kernel = NeighborKernel(
        points=X,
        n_neighbors=n_neighbors,
        neighborhoods=near,
        scales=scales,
        order=order,
        distinct=distinct,
    )
    K = kernel.weights(graph, out=graph.data)
    K.eliminate_zeros()
    K = K if distances is None else K.maximum(K.T)
    operator = Dense.of(K.toarray()) if cut is None and n <= STORED_POINTS else Sparse.of(K)
    return Affinity(
        operator=operator,
        vertex=near.vertex,
        kernel=kernel,
        by_content=near.by_content,
        epsilon=scales,
        diagnostics={} if cut is None else {"mean_neighbors": K.nnz / n - 1},
        dtype=X.dtype,
    )


# The affinities of `Diffusion.from_points` by name: functions of points (n, d) in the metric, ε,
# the number of neighbours, the search to use or None (see `ordered_search`), and the cut.
AFFINITIES: dict[str, Callable[[Any, Any, int, Any, float], Affinity]] = {
    "knn": knn_affinity,
    "dense": dense_affinity,
    "radius": radius_affinity,
    "variable": variable_affinity,
}
WITHOUT_NEIGHBORS = ("dense", "radius")  # given: they take pairs by distance


# Affinities that are precomputed


def as_matrix(K: Any) -> Any:
    """Return K, or the matrix of a graph; a SciPy `LinearOperator` as an operator.

    A node of a graph that has no edges stays where it is: it gets a self-loop of the mean degree.
    (An empty row of a matrix may be a mistake, and is refused where it is divided by.)
    """
    if isinstance(K, LinearOperator):
        return LinearMap(K)
    graph = as_graph(K, "K")
    if graph is None:
        return K
    degrees = np.asarray(graph.matrix.sum(axis=1)).ravel()
    alone = degrees == 0
    if not alone.any():
        return graph.matrix
    loops = np.where(alone, 1.0 if alone.all() else degrees[~alone].mean(), 0.0)
    return sparse.csr_matrix(graph.matrix + sparse.diags(loops))


def as_affinity(K: Any) -> Operator:
    """Return an operator for the affinity K in float64, or say why K is not one."""
    K = as_matrix(K)
    if not isinstance(K, Operator):
        if is_tensor(K):
            K = K.double()
        elif hasattr(K, "dtype") and K.dtype.kind == "f":
            K = K.astype(np.float64, copy=False)
        K = as_operator(K, "K")
    matrix = K.matrix
    if matrix is not None and not K.is_non_negative():
        raise ValueError(
            f"Negative values in data: the affinity goes down to {matrix.min():.3g}; pass "
            "non-negative weights, e.g. exp(-distance**2 / epsilon)."
        )
    return K


# Local scales and stored kernels


def _stored(kernel: Kernel) -> Array:
    K = np.empty((kernel.n, kernel.n))
    for rows in row_tiles(kernel.n):
        K[rows] = kernel.matrix_rows(rows)
    K = np.triu(K, 1)  # half of it, so that rounding cannot break the symmetry
    K += K.T
    np.fill_diagonal(K, 1.0)
    return K
