"""Affinities of new points, and which training points are near them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from heatsketch._arrays import Array, Points, is_tensor, on_host
from heatsketch._checks import check_new_points
from heatsketch._messages import name_rows
from heatsketch.core.blocks import (
    HOST,
    Block,
    Blocks,
    blocks_of,
    inverse_permutation,
    largest_of_rows,
    scale_both_sides,
)
from heatsketch.core.kernel import Kernel
from heatsketch.core.operators import Operator
from heatsketch.mixture import MixtureKernel
from heatsketch.neighbors import (
    Distances,
    Search,
    in_metric,
    ordered_search,
    pair_distances,
)
from heatsketch.neighbors.graph import (
    HARDLY_ANY,
    Neighborhoods,
    local_scales,
    scale_order,
    warn_of_faint_points,
    warn_of_far_points,
)
from heatsketch.neighbors.search import Metric, PointSearch

N_NEAREST = 15  # training points, or more where several are equally near, that pull at a new point
_NEARER = 0.01  # τ, the u at which a training point pulls twice as much as K says


@dataclass(frozen=True, eq=False)
class Near:
    """The training points near to new points, found by one search for all that asks for them.

    Attributes
    ----------
    affinities : array or CSR matrix (m, n)
        K(x, x_j), on the host or a device, where the search was made.
    pulls : function
        Returns about K(x, x_j), CSR (m, n), infinite at a training point.
    scaling : Scaling
        Its `new_rows` turn affinities into rows of A.
    """

    affinities: Any
    pulls: Callable[[], Any]
    scaling: Any

    def rows(self, dtype: Any) -> Any:
        """Return the rows a(x, x_j) of A, array or CSR (m, n)."""
        return self.scaling.new_rows(self.affinities, dtype)

    def attraction(self) -> Any:
        """Return the pulls of the 15 nearest, CSR (m, n); a point that counts w times pulls so."""
        pulls, weights = self.pulls(), self.scaling.weights
        if weights is not None:
            blocks = blocks_of(pulls)
            once = np.ones(pulls.shape[0])
            once, weights = blocks.native(once), blocks.native(weights)
            pulls = scale_both_sides(pulls, once, weights, pulls.data.dtype)
        return largest_of_rows(pulls, N_NEAREST)


def pulls_of(K: Array, u: Array, xp: Any = np) -> Array:
    """Return K (1 + τ / u), infinite where u = 0; u: squared distances in units of local scales.

    So the place of a new point tends to that of a training point to which it comes near, and else
    hardly changes: neighbours have u about 1.
    """
    with np.errstate(divide="ignore"):
        return xp.where(u > 0, K * (1 + _NEARER / u), np.inf)


def pull_slopes(u: Array, apart: Array) -> Array:
    """Return the derivatives (j, d) of log(1 + τ / u) by x; `apart` is x - x_j."""
    squares = np.square(apart).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        factors = -2 * _NEARER / ((u + _NEARER) * squares)
    return np.where(squares > 0, factors, 0.0)[:, None] * apart


_HARDLY_ANY = float(np.log(HARDLY_ANY))
_MOST_LEFT_OUT = 2048  # training points: a fraction of 1 % has a standard error of 0.2 %
_MIN_ROW_SUM = 1e-290  # smaller ones are inexact from underflow, their inverse powers overflow
_MAX_NEGATIVE_LOG = 500.0  # rows whose largest affinity is below e^-500 are rescaled
_SAME_ROW = 1e-10  # relative difference of the keys of equal rows


def fraction_less_new(left_out: Array, affinity: Array) -> Array:
    """Return which fraction of training points has more affinity than each of these points (m,).

    `left_out` (c,): logarithms of the affinity of training points to the others, ascending.
    """
    return 1.0 - np.searchsorted(left_out, affinity, side="right") / len(left_out)


def warn_of_new_points(left_out: Array, affinity: Array) -> None:
    """Warn of points with less than 1e-6 of the least affinity of any training point."""
    warn_of_faint_points(np.flatnonzero(affinity < left_out[0] + _HARDLY_ANY))


Affinities = tuple[Any, Callable[[Array], Any]]


class OutOfSampleKernel(Protocol):
    """The rule by which new points get their affinities to the training points."""

    @property
    def width(self) -> int:
        """Columns of the new points."""

    def affinities(self, X: Any, blocks: Blocks = HOST) -> Affinities:
        """Return the affinities K(x, x_j) of new points, array or CSR (m, n), and their pulls.

        These are a function of a training point at each vertex (n,) that returns about K(x, x_j),
        CSR (m, n), infinite at a training point. Matrices are where `blocks` are, if the rule can
        compute there, else on the host.
        """

    def novelty(self, X: Any) -> Array:
        """Return the fraction of training points that are less new than each new point (m,)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PointKernel(ABC):
    """Abstract base: affinities of new points to training points, and how new these points are.

    A subclass has `new_rows`. Novelty goes by Σ_j exp(-|x - x_j|² / s_j²) over the k nearest
    training points of x, s_j the distance of x_j to its own (k // 2)-th neighbour. A training point
    is left out of its neighbours and of their scales.

    Attributes
    ----------
    points : array or CSR matrix (n, d)
        The training points, in the metric.
    n_neighbors : int
    neighborhoods : Neighborhoods or None
        The neighbourhoods of the points with this number of neighbours, if there are any.
    metric : str or callable
        In which new points are given; by default they are in the metric already.
    """

    points: Points
    n_neighbors: int
    neighborhoods: Neighborhoods | None = None
    metric: Metric = "euclidean"

    @abstractmethod
    def new_rows(self, X: Any) -> Any:
        """Return affinities of new points in the metric, array or CSR (m, n), where these are."""

    def log_slopes(self, apart: Array, columns: Array) -> Array:
        """Return the derivatives (j, d) of log K(x, x_j) by x, x - x_j `apart` from vertices (j,).

        Raises
        ------
        ValueError
            The rule has none in closed form.
        """
        raise ValueError(
            f"{type(self).__name__} has no derivatives in closed form; fit affinity='knn', "
            "'radius', 'dense' or 'variable'."
        )

    @property
    def units(self) -> float | Array:
        """Bandwidth ε, or local scales (n,), of the vertices; 0: affinities have none."""
        return 0.0

    def pulls(self, K: Any, distances: Array) -> Any:
        """Return the pulls (m, n), CSR, of affinities K at distances (nnz,)."""
        blocks = blocks_of(K)
        u = self._squares(distances, K.indices, blocks)
        return blocks.csr((pulls_of(K.data, u, blocks.xp), K.indices, K.indptr), K.shape)

    def pull_slopes(self, apart: Array, columns: Array) -> Array:
        """Return the derivatives (j, d) of the logarithm of the pull by x, see `log_slopes`."""
        u = self._squares(np.linalg.norm(apart, axis=1), columns, HOST)
        return self.log_slopes(apart, columns) + pull_slopes(u, apart)

    def _squares(self, distances: Array, columns: Array, blocks: Blocks) -> Array:
        """Return squared distances to vertices in units of these."""
        units = blocks.native(self.units)
        with np.errstate(divide="ignore", invalid="ignore"):
            u = (distances / units[columns]) ** 2 if units.ndim else distances**2 / units
        return blocks.xp.where(distances > 0, u, 0.0)  # type: ignore[no-any-return]

    @property
    def width(self) -> int:
        """Columns of the new points."""
        return int(self.points.shape[1])

    @property
    def distances_are_given(self) -> bool:
        """Whether the points are rows of distances to all of them."""
        return self.metric == "precomputed"

    def affinities(self, X: Points, blocks: Blocks = HOST) -> Affinities:
        """Return affinities of new points (m, n), array or CSR, and their pulls.

        Lists of neighbours are found where `blocks` are.
        """
        x = self.as_training(X)
        K = self.new_rows(x)

        def pulls(first_points: Array) -> Any:
            largest = K if sparse.issparse(K) else largest_of_rows(K, N_NEAREST)
            row, columns = HOST.row_numbers(largest), first_points[largest.indices]
            metric = Distances.from_metric(self.metric)
            if metric is None:
                return self.pulls(largest, pair_distances(x, self.points, row, columns))
            return self.pulls(largest, metric(x, self.points)[row, columns])

        return K, pulls

    def novelty(self, X: Points) -> Array:
        """Return the novelty of new points (m,)."""
        distances, nearest = self._near[0].query(self.as_training(X), self._k)
        affinity = _log_affinity(distances, self._scales(nearest)[0])
        return fraction_less_new(self._left_out, affinity)

    def as_training(self, X: Points) -> Points:
        """Return new points (m, d) in the form of the training points `points`, or raise."""
        distances = Distances.from_metric(self.metric)
        if distances is not None:
            return distances.points(X)
        return in_metric(check_new_points(X, self.points, "the diffusion"), self.metric)

    @cached_property
    def _near(self) -> tuple[Search, Array]:
        """A search among the distinct points, by content, and how often each of them occurs."""
        near = self.neighborhoods
        if near is not None and near.n_neighbors is not None:
            return near.search, np.bincount(near.vertex)[near.by_content]
        search, _, place = ordered_search(Distances.from_metric(self.metric), self.points)
        return search, np.bincount(place)

    @property
    def _k(self) -> int:
        return min(self.n_neighbors, self._near[0].n - 1)

    @cached_property
    def _left_out(self) -> Array:
        """The affinities of up to 2,048 training points, each left out; a copy of it stays."""
        search, copies = self._near
        by_content = np.repeat(np.arange(len(copies)), copies)
        count = min(len(by_content), _MOST_LEFT_OUT)
        points = by_content[np.linspace(0, len(by_content) - 1, count).astype(int)]
        distances, others = search.query(search.points[points], self._k + 1)
        scales, without = self._scales(others)
        copied = _log_affinity(distances[:, :-1], scales[:, :-1])
        nearer = distances <= scales * (1 + 1e-9)  # a search may round d(i, j) and d(j, i) apart
        scales = np.where(nearer, without, scales)
        alone = _log_affinity(distances[:, 1:], scales[:, 1:])
        return np.sort(np.where(copies[points] > 1, copied, alone))

    def _scales(self, points: Array) -> Array:
        """Return the scales of training points, and those without a point that is nearer."""
        search, order = self._near[0], scale_order(self._k)
        distinct, place = np.unique(points, return_inverse=True)
        distances, _ = search.query(search.points[distinct], self._k + 1)
        scales = distances.T[[order, min(order + 1, self._k)]]
        return scales[:, place.reshape(points.shape)]


def _log_affinity(distances: Array, scales: Array) -> Array:
    """Return log Σ_j exp(-d_j²/s_j²) over the columns, (m,)."""
    with np.errstate(over="ignore"):
        ratios = distances / np.maximum(scales, np.finfo(float).tiny)
        return logsumexp(-(ratios**2), axis=1)


# Kernels of points


@dataclass(frozen=True, eq=False, kw_only=True)
class NeighborKernel(PointKernel):
    """Affinities of points to their neighbours, those of new points included."""

    neighborhoods: Neighborhoods
    scales: float | Array  # ε in squared data units, or local scales (n,)
    order: int | None = None  # of the local scales, see `local_scales`
    weight: Array | None = None  # (n,), a factor of the affinities to each vertex
    distinct: Array | None = None  # the first vertex of each point, where copies have their own

    @property
    def units(self) -> float | Array:
        """Bandwidth ε, or local scales (n,), of the vertices."""
        return self.scales

    def affinities(self, X: Points, blocks: Blocks = HOST) -> Affinities:
        """Return affinities of new points, CSR (m, n), and their pulls, from one search."""
        x, near = self.as_training(X), self.neighborhoods
        lists = near.radius is None and isinstance(near.search, PointSearch)
        x = blocks.native(x) if lists and not sparse.issparse(x) else x
        K, distances = self.with_distances(x)
        return K, lambda first_points: self.pulls(K, distances.data)

    def new_rows(self, X: Any) -> Any:
        """Return affinities of new points, CSR (m, n), where these points are."""
        if Distances.from_metric(self.metric) is None and not is_tensor(X):
            X = check_new_points(X, self.points, "the diffusion")
        return self.with_distances(X)[0]

    def log_slopes(self, apart: Array, columns: Array) -> Array:
        """Return those of a Gaussian; copies of a point count as one where they have one vertex."""
        copies_count_once = self.distinct is not None
        return _log_slopes(apart, self.scales, columns, self.order, copies_count_once)

    def with_distances(self, X: Any) -> tuple[Any, Any]:
        """Return affinities and distances of new points, CSR (m, n), where these points are."""
        blocks, k = blocks_of(X), self.neighborhoods.n_neighbors
        scales = blocks.native(self.scales)
        # A training point finds itself first, and a new point has as many neighbours.
        distances = self.neighborhoods.rows(X, None if k is None else k + 1)
        starts, row_scales = distances.indptr, None
        if scales.ndim:
            width = self.neighborhoods.search.n if k is None else k + 1
            lists = distances.data.reshape(-1, width)
            lists = lists if self.distinct is None else lists[:, self.distinct]
            row_scales = local_scales(lists, self.order)
        K = self.weights(distances, row_scales)
        units = scales[distances.indices] if scales.ndim else blocks.xp.sqrt(scales)
        nearest = blocks.over_rows("min", distances.data / units, starts)
        faint = nearest > np.sqrt(-np.log(HARDLY_ANY))
        far = blocks.over_rows("sum", K.data, starts) < _MIN_ROW_SUM
        # The search has warned of points beyond the radius, which have one entry.
        beyond = distances.data[starts[:-1]] > (self.neighborhoods.radius or np.inf)
        alone = blocks.where(far)
        _warn_of_far_and_faint(blocks.where(far & ~beyond), blocks.where(faint & ~far & ~beyond))
        for i in alone:  # the nearest point is the only neighbour
            row = slice(*map(int, starts[i : i + 2]))
            K.data[row] = 0.0
            K.data[row.start + int(distances.data[row].argmin())] = 1.0
        if self.weight is not None:
            K.data *= blocks.native(self.weight)[K.indices]
        return K, distances

    def weights(
        self, distances: Any, row_scales: Block | None = None, out: Block | None = None
    ) -> Any:
        """Return the affinities at these distances, CSR (m, n), where these are.

        `row_scales` (m,) are local scales of the rows, by default those of the vertices; `out`
        (nnz,) may be the distances, which are lost then.
        """
        blocks, d = blocks_of(distances), distances.data
        scales = blocks.native(self.scales)
        if scales.ndim:
            row = blocks.repeated(scales if row_scales is None else row_scales, distances)
            exponents = -(d / row) * (d / scales[distances.indices])
        else:
            exponents = -(d**2) / scales
        csr = (blocks.xp.exp(exponents, out=out), distances.indices, distances.indptr)
        return blocks.csr(csr, distances.shape)


@dataclass(frozen=True, eq=False, kw_only=True)
class DenseKernel(PointKernel):
    """Affinities of new points to all points by a Gaussian kernel."""

    kernel: Kernel
    index: Any = None  # a search among the distinct points, for local scales
    order: int = 0  # the neighbour whose distance is the scale

    @property
    def units(self) -> float | Array:
        """Bandwidth ε, or local scales (n,), of the vertices."""
        return self.kernel.epsilon

    def new_rows(self, X: Any) -> Array:
        """Return affinities of new points (m, n)."""
        scales = None
        if self.index is not None:
            X = check_new_points(X, self.points, "the diffusion")
            scales = local_scales(self.index.query(X, self.order + 1).distances, self.order)
        rows = self.kernel.rows(X, scales)
        with np.errstate(divide="ignore"):  # of log 0
            if scales is None:
                relative = np.log(rows.max(axis=1))
            else:  # at the scale of the training points
                relative = (np.log(rows) / np.asarray(self.kernel.epsilon)).max(axis=1) * scales
        far = rows.sum(axis=1) < _MIN_ROW_SUM
        faint = relative < np.log(HARDLY_ANY)
        _warn_of_far_and_faint(np.flatnonzero(far), np.flatnonzero(faint & ~far))
        if far.any():  # the nearest point is the only neighbour
            rows[far] = 0.0
            rows[far, self.kernel.nearest(X[far])] = 1.0
        return rows

    def log_slopes(self, apart: Array, columns: Array) -> Array:
        """Return those of a Gaussian, whose scales count copies of a point as one."""
        return _log_slopes(apart, self.kernel.epsilon, columns, self.order, True)


def _log_slopes(
    apart: Array, scales: Any, columns: Array, order: int | None, copies_count_once: bool
) -> Array:
    """Return the derivatives (j, d) of -|x - x_j|² / ε, or of -|x - x_j|² / (s s_j) with s(x).

    s is the distance of the neighbour with the number `order`; None: √2 times the root of the mean
    squared distance of all others.
    """
    scales = np.asarray(scales)
    if not scales.ndim:
        return np.asarray(-2 * apart / float(scales))
    squared = np.einsum("jd,jd->j", apart, apart)
    distances = np.sqrt(squared)
    if order is None:
        others = np.argsort(distances, kind="stable")[1:]
        s = np.sqrt(2 * np.mean(squared[others]))
        turn = 2 / (len(others) * s) * apart[others].sum(axis=0)
    else:
        by_distance = np.argsort(distances, kind="stable")
        if copies_count_once:
            by_distance = np.unique(distances, return_index=True)[1]
        at = by_distance[order]
        s = distances[at]
        turn = apart[at] / s
    own = scales[columns]
    return np.asarray(-2 * apart / (s * own)[:, None] + np.outer(squared / (s**2 * own), turn))


def _warn_of_far_and_faint(far: Array, faint: Array) -> None:
    """Warn of new points whose affinities underflow, and of others with hardly any."""
    warn_of_faint_points(faint)
    if len(far):
        warn_of_far_points(far)


# Other rules for new points


@dataclass(frozen=True, eq=False)
class OutOfSampleMixture:
    """Affinities of new points by the kernel of a mixture."""

    kernel: MixtureKernel
    points: Array

    @cached_property
    def log_unit(self) -> float:
        """Logarithm of the unit of the affinities: the largest k(x, x) of a training point."""
        return float(self.kernel.log_diagonal(self.points).max())

    @property
    def width(self) -> int:
        """Columns of the new points."""
        return int(self.points.shape[1])

    def affinities(self, X: Any, blocks: Blocks = HOST) -> Affinities:
        """Return affinities of new points (m, n), and their pulls."""
        warn_of_new_points(self._left_out, self.kernel.log_stationary(X))
        log_k = self.kernel.log_kernel(X, self.points) - self.log_unit
        # Rows of far points would underflow; normalisation cancels a factor of a row.
        log_k -= np.minimum(log_k.max(axis=1, keepdims=True) + _MAX_NEGATIVE_LOG, 0.0)
        K = np.exp(log_k)

        def pulls(first_points: Array) -> Any:
            return sparse.csr_matrix(np.where(cdist(X, self.points) > 0, K, np.inf))

        return K, pulls

    def novelty(self, X: Any) -> Array:
        """Return the novelty (m,), by the stationary density: the integral of the affinities."""
        return fraction_less_new(self._left_out, self.kernel.log_stationary(X))

    @cached_property
    def _left_out(self) -> Array:
        return np.sort(self.kernel.log_stationary(self.points))


@dataclass(frozen=True, eq=False)
class OutOfSampleAffinities:
    """Affinities of new points to the input points, computed by the caller."""

    points: Array  # (n,), the input point at each vertex
    left_out: Array  # logarithms of the sums of their affinities to the others, ascending
    keys: Array  # (n, 2), weighted sums of the row of each vertex, by which it is recognised

    @classmethod
    def from_operator(cls, K: Operator, vertex: Array) -> Self:
        """Prepare rows for the affinity K with these vertices of input points (n,)."""
        diagonal = K.diagonal()
        others = K @ np.ones(K.n, K.dtype) - (0.0 if diagonal is None else on_host(diagonal))
        keys = K @ _key_weights(K.n).astype(K.dtype)
        return cls(inverse_permutation(vertex), np.sort(_logarithm(others)), keys)

    @property
    def width(self) -> int:
        """Columns of the affinities of new points."""
        return len(self.points)

    def affinities(self, rows: Any, blocks: Blocks = HOST) -> Affinities:
        """Return the affinities to the vertices, checked, and their pulls.

        Without distances the pulls are infinite where a row is that of a training point.
        """
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
        K = rows[:, self.points]

        def pulls(first_points: Array) -> Any:
            own = sparse.csr_matrix(K)
            keys = own @ _key_weights(own.shape[1])
            apart, vertex = cKDTree(self.keys).query(keys)
            same = np.flatnonzero(apart <= _SAME_ROW * np.linalg.norm(keys, axis=1))
            here = np.full(len(same), np.inf), (same, vertex[same])
            return own + sparse.csr_matrix(here, own.shape)

        return K, pulls

    def novelty(self, rows: Any) -> Array:
        """Return the novelty of points (m,) with these affinities (m, n), by their sums."""
        sums = np.asarray(rows.sum(axis=1)).ravel()
        return fraction_less_new(self.left_out, _logarithm(sums))


def _key_weights(n: int) -> Array:
    """Return positive weights (n, 2); the sums of two rows agree by chance alone."""
    return np.random.default_rng(0).uniform(1, 2, (n, 2))


def _logarithm(sums: Array) -> Array:
    """Return the logarithm; -∞ where there is nothing, or only rounding."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(sums, 0.0))
