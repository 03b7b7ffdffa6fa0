"""Affinities of points, and the rules by which new points get theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from heatsketch._checks import (
    ScaleWarning,
    check_points,
    is_tensor,
    logger,
    name_rows,
    require,
    returned_for,
    warn,
)
from heatsketch._random import content_order
from heatsketch._tiles import row_tiles
from heatsketch._typing import Array
from heatsketch.graphs.neighborhoods import (
    HARDLY_ANY,
    Neighborhoods,
    feasible_neighbors,
    neighborhood_graph,
    scale_order,
    warn_of_faint_points,
    warn_of_far_points,
)
from heatsketch.markov.novelty import fraction_less_new, warn_of_new_points
from heatsketch.mixture import MixtureKernel
from heatsketch.mixture.kernel import affinity_factor
from heatsketch.neighbors import Distances, in_metric, ordered_search
from heatsketch.operators.graph import as_graph, as_operator
from heatsketch.operators.kernel import EXPONENT_BOUND, Kernel
from heatsketch.operators.operator import (
    Dense,
    LinearMap,
    LowRank,
    Operator,
    Sparse,
    inverse_permutation,
)
from heatsketch.scales.bandwidth import WIDE_CUT, rule_epsilon
from heatsketch.scales.dimension import graph_dimension

STORED_POINTS = 4096  # up to here a dense kernel is stored (134 MB), else computed in blocks
MOST_POINTS = 2**18  # of a dense kernel: a product takes minutes, and a fit a dozen of them
_MAX_HOLDING_TIME = 1000.0  # steps that the median point waits for its first move
_SAMPLING_ERROR = 1.25  # of an estimate of the dimension: uniform points may exceed their features
_MOST_LOG_DENSITY = 250.0  # of a density relative to the typical one: products of two are finite
_MIN_ROW_SUM = 1e-290  # smaller ones are inexact from underflow, their inverse powers overflow
_MAX_NEGATIVE_LOG = 500.0  # rows whose largest affinity is below e^-500 are rescaled


@dataclass(frozen=True, eq=False)
class Affinity:
    """An affinity K of points, with the rule for new points.

    Attributes
    ----------
    operator : Operator
        K, on the vertices.
    rows : callable
        New points (m, d) -> K(x, x_j), array or CSR (m, n).
    vertex : array (points,)
        The vertex of each input point.
    by_content : array (n,) or None
        The vertices in an order that looks random and depends on the data alone, if it is known.
    directed_step : CSR (n, n) or None
        The `rows` of the vertices, where they differ from K: a neighbour graph is symmetrised,
        rows of new points cannot be.
    epsilon : float or array (n,)
        Bandwidth in squared data units, or the local scales s with ε_ij = s_i s_j in data units.
    diagnostics : dict
    """

    operator: Operator
    rows: Callable[[Any], Any]
    vertex: Array
    by_content: Array | None = None
    directed_step: sparse.csr_matrix | None = None
    epsilon: float | Array = np.nan
    diagnostics: dict[str, Any] = field(default_factory=dict)


def gaussian_affinity(X: Any, epsilon: float | str = "ksum", *, metric: str = "euclidean") -> Array:
    """Compute the matrix exp(-|x_i - x_j|² / ε), dense (n, n).

    Parameters
    ----------
    X : array, CSR matrix or tensor (n, d)
    epsilon : float > 0 or "ksum", "median", "nearest", default "ksum"
        In squared data units; for the rules see `HeatSketch`.
    metric : "euclidean", "cosine" or "correlation", default "euclidean"
        The distance |x_i - x_j|, as in `HeatSketch`.

    Returns
    -------
    array (n, n), float64
        Exactly symmetric, with ones on the diagonal. For a tensor the result is a tensor like it,
        computed on the processor.

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
    kernel = Kernel(points, rule_epsilon(points, epsilon), float)
    return returned_for(_stored(kernel), X)  # type: ignore[no-any-return]


def knn_affinity(X: Any, epsilon: float | str, n_neighbors: int, neighbors: Any = None) -> Affinity:
    """Build the Gaussian affinity on the nearest-neighbour graph, symmetrised.

    `neighbors` is the search to use (see `ordered_search`). Duplicates share a vertex, except in a
    given graph.
    """
    logger.info("graph of the nearest neighbours of %s points", f"{X.shape[0]:,}")
    graph, near = neighborhood_graph(X, n_neighbors=n_neighbors, neighbors=neighbors)
    k, n = int(near.n_neighbors), near.search.n  # type: ignore[arg-type]
    if epsilon == "self-tuning":
        scales = local_scales(graph.data.reshape(n, -1), scale_order(k), near.vertex)
    else:
        distances = neighbors if isinstance(neighbors, Distances) else None
        scales = rule_epsilon(near.search.points, epsilon, distances)
    rows = NeighborRows(near, scales, scale_order(k))
    directed = rows.weights(graph, out=graph.data)
    directed.eliminate_zeros()
    K, numbers = Sparse(directed.maximum(directed.T)), (near.vertex, near.by_content)
    diagnostics = {"n_neighbors": k, "duplicates": X.shape[0] - n, **near.recall}
    return Affinity(K, rows, *numbers, directed, scales, diagnostics)


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

    whose Dirichlet form is that of the density squared, whatever the points are like; the
    diagonal brings the row sums to q: it is the fraction of the time that a point waits. So the
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
    k, n = int(near.n_neighbors), near.search.n  # type: ignore[arg-type]
    if k < 2:
        raise ValueError(
            f"Points have {k} neighbour(s), but affinity='variable' estimates the dimension from "
            "the distances to two or more; pass n_neighbors >= 2 and at least 3 distinct points, "
            "or affinity='knn'."
        )
    scales = local_scales(graph.data.reshape(n, -1), None, near.vertex)
    coordinates = not isinstance(neighbors, Distances)  # without, features are no bound
    dimension = _dimension(graph, X.shape[1] if coordinates else np.inf)
    directed = NeighborRows(near, scales).weights(graph, out=graph.data)
    directed.eliminate_zeros()
    K = sparse.csr_matrix(directed.maximum(directed.T))
    row, column = np.repeat(np.arange(n), np.diff(K.indptr)), K.indices

    def row_sums(entries: Array) -> Array:
        return np.add.reduceat(entries, K.indptr[:-1])

    log_density = np.log(row_sums(K.data)) - dimension * np.log(scales / np.median(scales))
    log_density -= np.median(log_density)
    density = np.exp(np.clip(log_density, -_MOST_LOG_DENSITY, _MOST_LOG_DENSITY))
    # The distances are those of K: their memory has been used.
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
    rows, numbers = NeighborRows(near, scales, weight=weight), (near.vertex, near.by_content)
    diagnostics = {"n_neighbors": k, "duplicates": X.shape[0] - n, "dimension": dimension}
    diagnostics["median_holding_time"] = 1 / (c * median) if median > 0 else np.inf
    return Affinity(Sparse(K), rows, *numbers, directed, scales, diagnostics | near.recall)


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


def dense_affinity(X: Any, epsilon: Any, n_neighbors: int) -> Affinity:
    """Build the full Gaussian affinity, stored for up to 4,096 points, else computed in blocks."""
    if X.shape[0] > MOST_POINTS:
        raise ValueError(
            f"affinity='dense' of {X.shape[0]:,} points takes hours; pass affinity='knn', fewer "
            "points, or the operator itself (heatsketch.Kernel) as a precomputed affinity."
        )
    order, scales, index, k = content_order(X), epsilon, None, 0
    X = X[order]
    if epsilon == "self-tuning":
        index, _, _ = ordered_search(None, X)
        k = scale_order(feasible_neighbors(n_neighbors, index.n))
        scales = local_scales(index.query(X, k + 1).distances, k)
    kernel = Kernel(X, rule_epsilon(X, scales), float)
    K = kernel if kernel.n > STORED_POINTS else Dense(_stored(kernel), kernel.spectrum)
    numbers = inverse_permutation(order), np.arange(kernel.n)
    diagnostics = {"exponent_error": min(kernel.exponent_error, EXPONENT_BOUND)}
    return Affinity(K, DenseRows(kernel, index, k), *numbers, None, kernel.epsilon, diagnostics)


def radius_affinity(
    X: Any, epsilon: Any, cut: float | None = WIDE_CUT, distances: Any = None, n_neighbors: int = 0
) -> Affinity:
    """Build the Gaussian affinity of points at distances up to cut √(ε/2), or of all for None.

    All points are taken only in a metric without coordinates, `distances`; there "self-tuning"
    takes `n_neighbors`. Equal points do not share a vertex.
    """
    n = X.shape[0]
    scales = epsilon if epsilon == "self-tuning" else rule_epsilon(X, epsilon, distances)
    radius = float(np.finfo(float).max) if cut is None else cut * np.sqrt(scales / 2)
    if distances is not None:
        require(3 * 8.0 * n * n, f"All distances of {n:,} points", "pass affinity='knn'.")
    graph, near = neighborhood_graph(X, radius=radius, neighbors=distances, merge=False)
    order = distinct = None
    if epsilon == "self-tuning":  # copies of a point do not count among its neighbours
        distinct = near.vertex[ordered_search(distances, X)[1]]
        order = scale_order(feasible_neighbors(n_neighbors, len(distinct)))
        scales = local_scales(graph.data.reshape(n, -1)[:, distinct], order, near.vertex)
    rows = NeighborRows(near, scales, order, distinct=distinct)
    K = rows.weights(graph, out=graph.data)
    K.eliminate_zeros()
    K = K if distances is None else K.maximum(K.T)
    operator = Dense(K.toarray()) if cut is None and n <= STORED_POINTS else Sparse(K)
    diagnostics = {} if cut is None else {"mean_neighbors": K.nnz / n - 1}
    return Affinity(operator, rows, near.vertex, near.by_content, None, scales, diagnostics)


def mixture_affinity(X: Array, kernel: MixtureKernel, rank_tol: float) -> Affinity:
    """Build the affinity of points (n, m) by the kernel of a mixture, of low rank."""
    if not isinstance(kernel, MixtureKernel):
        raise TypeError(
            f"kernel is of type {type(kernel).__name__}; pass a MixtureKernel, such as "
            "MixtureKernel.from_sklearn(mixture, epsilon)."
        )
    log_unit = float(kernel.log_diagonal(X).max())
    K = LowRank(affinity_factor(kernel, X, rank_tol, log_unit))
    rows, numbers = MixtureRows(kernel, X, log_unit), (np.arange(len(X)), content_order(X))
    return Affinity(K, rows, *numbers, None, kernel.epsilon, {"rank": K.factor.shape[1]})


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


def local_scales(distances: Array, order: int | None, vertex: Array | None = None) -> Array:
    """Return the scales (m,) of rows of distances to neighbours (m, k); raise if one is 0.

    The distance number `order`, that of a point to itself being number 0; None: √(2 mean of d²)
    over all but this one. `vertex` (points,): the row of each input point, for messages.
    """
    if order is None:
        scales = np.sqrt(2 * np.mean(np.sort(distances, axis=1)[:, 1:] ** 2, axis=1))
    else:
        scales = np.partition(distances, order, axis=1)[:, order]
    bad = np.flatnonzero(scales == 0)
    if len(bad):
        bad = bad if vertex is None else np.flatnonzero(np.isin(vertex, bad))
        raise ValueError(
            f"Around point(s) {name_rows(bad)} distances are too small for float64 relative to the "
            "size of X; leave out points that are very far away."
        )
    return np.asarray(scales)


# The rules for new points


@dataclass(frozen=True, eq=False)
class NeighborRows:
    """Affinities of points to their neighbours, those of new points included."""

    neighborhoods: Neighborhoods
    scales: float | Array  # ε in squared data units, or local scales (n,)
    order: int | None = None  # of the local scales, see `local_scales`
    weight: Array | None = None  # (n,), a factor of the affinities to each vertex
    distinct: Array | None = None  # the first vertex of each point, where copies have their own

    def __call__(self, X: Any) -> sparse.csr_matrix:
        """Return affinities of new points, CSR (m, n)."""
        k, scales = self.neighborhoods.n_neighbors, np.asarray(self.scales)
        # A training point finds itself first, and a new point has as many neighbours.
        distances = self.neighborhoods.rows(X, None if k is None else k + 1)
        starts, row_scales = distances.indptr[:-1], None
        if scales.ndim:
            width = self.neighborhoods.search.n if k is None else k + 1
            lists = distances.data.reshape(-1, width)
            lists = lists if self.distinct is None else lists[:, self.distinct]
            row_scales = local_scales(lists, self.order)
        K = self.weights(distances, row_scales)
        relative = distances.data / (scales[distances.indices] if scales.ndim else np.sqrt(scales))
        faint = np.minimum.reduceat(relative, starts) > np.sqrt(-np.log(HARDLY_ANY))
        far = np.add.reduceat(K.data, starts) < _MIN_ROW_SUM
        # The search has warned of points beyond the radius, which have one entry.
        beyond = distances.data[starts] > (self.neighborhoods.radius or np.inf)
        _warn_of_far_and_faint(far & ~beyond, faint & ~beyond)
        for i in np.flatnonzero(far):  # the nearest point is the only neighbour
            row = slice(*distances.indptr[i : i + 2])
            K.data[row] = 0.0
            K.data[row.start + distances.data[row].argmin()] = 1.0
        if self.weight is not None:
            K.data *= self.weight[K.indices]
        return K

    def weights(
        self,
        distances: sparse.csr_matrix,
        row_scales: Array | None = None,
        out: Array | None = None,
    ) -> sparse.csr_matrix:
        """Return the affinities at these distances (m, n).

        `row_scales` (m,) are local scales of the rows, by default those of the vertices; `out`
        (nnz,) may be the distances, which are lost then.
        """
        d, scales = distances.data, np.asarray(self.scales)
        if scales.ndim:
            row = np.repeat(scales if row_scales is None else row_scales, np.diff(distances.indptr))
            exponents = -(d / row) * (d / scales[distances.indices])
        else:
            exponents = -(d**2) / scales
        csr = (np.exp(exponents, out=out), distances.indices, distances.indptr)
        return sparse.csr_matrix(csr, shape=distances.shape)


@dataclass(frozen=True, eq=False)
class DenseRows:
    """Affinities of new points to all points by a Gaussian kernel."""

    kernel: Kernel
    index: Any = None  # a search among the distinct points, for local scales
    order: int = 0  # the neighbour whose distance is the scale

    def __call__(self, X: Any) -> Array:
        """Return affinities of new points (m, n)."""
        scales = None
        if self.index is not None:
            scales = local_scales(self.index.query(X, self.order + 1).distances, self.order)
        rows = self.kernel.rows(X, scales)
        with np.errstate(divide="ignore"):  # of log 0
            if scales is None:
                relative = np.log(rows.max(axis=1))
            else:  # at the scale of the training points
                relative = (np.log(rows) / np.asarray(self.kernel.epsilon)).max(axis=1) * scales
        far = rows.sum(axis=1) < _MIN_ROW_SUM
        _warn_of_far_and_faint(far, relative < np.log(HARDLY_ANY))
        if far.any():  # the nearest point is the only neighbour
            rows[far] = 0.0
            rows[far, self.kernel.nearest(X[far])] = 1.0
        return rows


def _warn_of_far_and_faint(far: Array, faint: Array) -> None:
    """Warn of new points whose affinities underflow, and of others with hardly any."""
    warn_of_faint_points(np.flatnonzero(faint & ~far))
    if far.any():
        warn_of_far_points(np.flatnonzero(far))


@dataclass(frozen=True, eq=False)
class MixtureRows:
    """Affinities of new points by the kernel of a mixture."""

    kernel: MixtureKernel
    points: Array
    log_unit: float

    @property
    def width(self) -> int:
        """Columns of the new points."""
        return int(self.points.shape[1])

    def __call__(self, X: Any) -> Array:
        """Return affinities of new points (m, n)."""
        warn_of_new_points(self._left_out, self.kernel.log_stationary(X))
        log_k = self.kernel.log_kernel(X, self.points) - self.log_unit
        # Rows of far points would underflow; normalisation cancels a factor of a row.
        log_k -= np.minimum(log_k.max(axis=1, keepdims=True) + _MAX_NEGATIVE_LOG, 0.0)
        return np.exp(log_k)

    def novelty(self, X: Any) -> Array:
        """Return the novelty (m,), by the stationary density: the integral of the affinities."""
        return fraction_less_new(self._left_out, self.kernel.log_stationary(X))

    @cached_property
    def _left_out(self) -> Array:
        return np.sort(self.kernel.log_stationary(self.points))


@dataclass(frozen=True, eq=False)
class PrecomputedRows:
    """Affinities of new points to the input points, computed by the caller."""

    points: Array  # (n,), the input point at each vertex
    left_out: Array  # logarithms of the sums of their affinities to the others, ascending

    @classmethod
    def of(cls, K: Operator, vertex: Array) -> Self:
        """Prepare rows for the affinity K with these vertices of input points (n,)."""
        diagonal = K.diagonal()
        others = K @ np.ones(K.n, K.dtype) - (0.0 if diagonal is None else diagonal)
        return cls(inverse_permutation(vertex), np.sort(_logarithm(others)))

    @property
    def width(self) -> int:
        """Columns of the affinities of new points."""
        return len(self.points)

    def __call__(self, rows: Any) -> Any:
        """Return the affinities to the vertices, checked."""
        sums = np.asarray(rows.sum(axis=1)).ravel()
        least = rows.min(axis=1)
        least = np.asarray(least.todense() if sparse.issparse(least) else least).ravel()
        bad = np.flatnonzero((least < 0) | ~(sums > 0) | np.isinf(sums))
        if len(bad):
            raise ValueError(
                "Affinities of new points must be non-negative with positive, finite row sums (bad "
                f"rows: {name_rows(bad)}); leave these points out."
            )
        warn_of_new_points(self.left_out, _logarithm(sums))
        return rows[:, self.points]

    def novelty(self, rows: Any) -> Array:
        """Return the novelty of points (m,) with these affinities (m, n), by their sums."""
        sums = np.asarray(rows.sum(axis=1)).ravel()
        return fraction_less_new(self.left_out, _logarithm(sums))


def _logarithm(sums: Array) -> Array:
    """Return the logarithm; -∞ where there is nothing, or only rounding."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(sums, 0.0))
