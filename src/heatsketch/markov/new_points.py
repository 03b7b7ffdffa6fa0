"""Affinities of points, and the rules by which new points get theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from heatsketch._checks import name_rows
from heatsketch._tiles import for_each_tile
from heatsketch._typing import Array
from heatsketch.graphs.far_points import HARDLY_ANY, warn_of_faint_points, warn_of_far_points
from heatsketch.graphs.neighborhoods import Neighborhoods
from heatsketch.markov.novelty import KnnNovelty, LeaveOneOutScores
from heatsketch.mixture import MixtureKernel
from heatsketch.neighbors import Distances, NeighborIndex, in_metric
from heatsketch.operators.kernel import Kernel
from heatsketch.operators.operator import Operator

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


@dataclass(frozen=True, eq=False)
class PointRows:
    """Affinities of new points in the metric of the data, and their novelty."""

    rows: Callable[[Any], Any]
    near: KnnNovelty

    @property
    def width(self) -> int:
        """Columns of the new points."""
        return int(self.near.points.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are CSR."""
        return isinstance(self.rows, NeighborRows)

    def __call__(self, X: Any) -> Any:
        """Return affinities of new points (m, n), array or CSR."""
        metric = self.near.metric
        return self.rows(X if Distances.of(metric) else in_metric(X, metric))

    def novelty(self, X: Any) -> Array:
        """Return the novelty (m,), by the nearest training points."""
        return self.near(X)


@dataclass(frozen=True, eq=False)
class NeighborRows:
    """Affinities of points to their neighbours, those of new points included."""

    neighborhoods: Neighborhoods
    scales: float | Array  # ε in squared data units, or local scales (n,)
    order: int | None = None  # of the local scales, see `local_scales`
    weight: Array | None = None  # (n,), a factor of the affinities to each vertex

    def __call__(self, X: Any) -> sparse.csr_matrix:
        """Return affinities of new points, CSR (m, n)."""
        k = self.neighborhoods.n_neighbors
        distances = self.neighborhoods.rows(X, None if k is None else k + 1)  # with itself
        own = local_scales(distances, self.order) if np.ndim(self.scales) else None
        K = self._with_far_rows(self.weights(distances, own), distances)
        if self.weight is not None:
            K.data *= self.weight[K.indices]
        return K

    def weights(
        self, distances: sparse.csr_matrix, own: Array | None = None, out: Array | None = None
    ) -> sparse.csr_matrix:
        """Return the affinities at these distances (m, n), without those that underflow.

        `own` (m,) are the local scales of the rows, by default those of the vertices; `out` (nnz,)
        may be the distances, which are lost then.
        """
        weights, scales = np.empty(distances.nnz) if out is None else out, self.scales
        left = scales if own is None else own

        def work(tile: slice) -> None:
            entries = slice(distances.indptr[tile.start], distances.indptr[tile.stop])
            d = distances.data[entries]
            if np.ndim(scales) == 0:
                weights[entries] = np.exp(-(d**2) / scales)
                return
            counts = np.diff(distances.indptr[tile.start : tile.stop + 1])
            row = np.repeat(left[tile], counts)  # type: ignore[index]
            column = scales[distances.indices[entries]]  # type: ignore[index]
            weights[entries] = np.exp(-(d / row) * (d / column))

        for_each_tile(work, distances.shape[0])
        csr = (weights, distances.indices, distances.indptr)
        K = sparse.csr_matrix(csr, shape=distances.shape)
        if not weights.all():
            K = K.copy()  # keeps the pattern of `distances`
            K.eliminate_zeros()
        return K

    def _with_far_rows(
        self, K: sparse.csr_matrix, distances: sparse.csr_matrix
    ) -> sparse.csr_matrix:
        """Replace rows that underflow by the nearest point as the only neighbour; warn."""
        starts, counts = distances.indptr[:-1], np.diff(distances.indptr)
        far = np.asarray(K.sum(axis=1)).ravel() < _MIN_ROW_SUM
        self._warn_of_faint_rows(distances, far)
        rows = np.flatnonzero(far)
        if len(rows) == 0:
            return K
        if (counts[rows] > 1).any():  # the search has warned of those with one entry
            warn_of_far_points(rows[counts[rows] > 1])
        lists = ((starts[i], distances.data[starts[i] : starts[i] + counts[i]]) for i in rows)
        nearest = [start + int(np.argmin(lengths)) for start, lengths in lists]
        entries = (np.ones(len(rows)), (rows, distances.indices[nearest]))
        return sparse.csr_matrix(K + sparse.csr_matrix(entries, shape=K.shape))

    def _warn_of_faint_rows(self, distances: sparse.csr_matrix, far: Array) -> None:
        """Warn of rows with hardly any affinity at the scale of the training points."""
        scales, starts = self.scales, distances.indptr[:-1]
        reach = scales[distances.indices] if np.ndim(scales) else np.sqrt(scales)  # type: ignore[index]
        faint = np.minimum.reduceat(distances.data / reach, starts) > np.sqrt(-np.log(HARDLY_ANY))
        if self.neighborhoods.radius is not None:  # the search has warned of points beyond it
            faint &= distances.data[starts] <= self.neighborhoods.radius
        warn_of_faint_points(np.flatnonzero(faint & ~far))


def local_scales(distances: sparse.csr_matrix, order: int | None) -> Array:
    """Return the scales (m,) of rows with the distances to as many neighbours each, CSR (m, n).

    The distance number `order`, that of a point to itself being number 0; None: √(2 mean of d²)
    over all but this one.
    """
    near = distances.data.reshape(distances.shape[0], -1)
    if order is not None:
        return np.asarray(np.partition(near, order, axis=1)[:, order])
    return np.asarray(np.sqrt(2 * np.mean(np.sort(near, axis=1)[:, 1:] ** 2, axis=1)))


def scales_by_search(index: NeighborIndex, X: Any, order: int) -> Array:
    """Return the distances (m,) of points to their neighbour number `order`, in data units."""
    return check_scales(index.query(X, order + 1).distances[:, -1])


def check_scales(scales: Array, points: Array | None = None) -> Array:
    """Return local scales (n,), or raise if one is zero; `points` (n,) are their numbers."""
    bad = np.flatnonzero(scales == 0)
    if len(bad):
        raise ValueError(
            f"Around point(s) {name_rows(bad if points is None else np.sort(points[bad]))} "
            "distances are too small for float64 relative to the size of X; leave out points that "
            "are very far away."
        )
    return scales


@dataclass(frozen=True, eq=False)
class DenseRows:
    """Affinities of new points to all points by a Gaussian kernel."""

    kernel: Kernel
    index: NeighborIndex | None = None  # of the distinct points, for local scales
    order: int = 0  # the neighbour whose distance is the scale

    def __call__(self, X: Any) -> Array:
        """Return affinities of new points (m, n)."""
        kernel, scales = self.kernel, None
        if self.index is not None:
            scales = scales_by_search(self.index, X, self.order)
        rows = kernel.rows(X, scales)
        far = rows.sum(axis=1) < _MIN_ROW_SUM
        if scales is None:
            faint = rows.max(axis=1) < HARDLY_ANY
        else:  # at the scale of the training points
            with np.errstate(divide="ignore"):  # of log 0
                near = np.log(rows) / np.asarray(kernel.epsilon)
            faint = near.max(axis=1) * scales < np.log(HARDLY_ANY)
        warn_of_faint_points(np.flatnonzero(faint & ~far))
        if far.any():
            warn_of_far_points(np.flatnonzero(far))
            rows[far] = 0.0
            rows[far, kernel.nearest(X[far])] = 1.0
        return rows


@dataclass(frozen=True, eq=False)
class MixtureRows:
    """Affinities of new points by the kernel of a mixture."""

    kernel: MixtureKernel
    points: Array
    log_unit: float
    is_sparse: ClassVar[bool] = False

    @property
    def width(self) -> int:
        """Columns of the new points."""
        return int(self.points.shape[1])

    def __call__(self, X: Any) -> Array:
        """Return affinities of new points (m, n)."""
        self._scores.warn(self.kernel.log_stationary(X))
        log_k = self.kernel.log_kernel(X, self.points) - self.log_unit
        # Rows of far points would underflow; normalisation cancels a factor of a row.
        log_k -= np.minimum(log_k.max(axis=1, keepdims=True) + _MAX_NEGATIVE_LOG, 0.0)
        return np.exp(log_k)

    def novelty(self, X: Any) -> Array:
        """Return the novelty (m,), by the stationary density: the integral of the affinities."""
        return self._scores.fraction(self.kernel.log_stationary(X))

    @cached_property
    def _scores(self) -> LeaveOneOutScores:
        return LeaveOneOutScores.of(self.kernel.log_stationary(self.points))
