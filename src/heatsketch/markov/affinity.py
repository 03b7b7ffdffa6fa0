"""Gaussian affinities of points: dense, radius-truncated, nearest neighbours; rows for new ones."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._array import Frame, for_each_tile, row_tiles
from heatsketch._checks import ScaleWarning, check_number, check_points, name_rows
from heatsketch._typing import Array
from heatsketch.neighbors import (
    NeighborIndex,
    Neighbors,
    Search,
    distinct_rows,
    distinct_search,
    search_of,
)
from heatsketch.operators import Dense, Kernel, Operator, Sparse
from heatsketch.operators.base import Reordered, places_of, take_rows
from heatsketch.operators.kernel import EXPONENT_BOUND
from heatsketch.operators.sparse import StoredRows, is_large, larger_of_both
from heatsketch.scales.bandwidth import rule_epsilon, scale_order

logger = logging.getLogger("heatsketch")

STORED_POINTS = 4096  # a dense kernel is stored up to here (134 MB), made on the fly beyond
WIDE_CUT = 5.0  # radius in units of √(ε/2): K is dropped below e^-12.5 = 4e-6
_FAINT = 1e-290  # a row sum below has lost digits to underflow, its inverse powers overflow
_RADIUS_BUDGET = 8 * 2**30  # bytes that building a radius graph may take
_RADIUS_BYTES = 70  # an entry at the peak of building it

Rows = Callable[[Any], "Array | sparse.csr_matrix | StoredRows"]


@dataclass(frozen=True, eq=False)
class Affinity:
    """An affinity K of points and what belongs to it.

    Attributes
    ----------
    operator : Operator
        K, on the distinct points.
    rows : callable
        New points (m, d) -> K(x, x_j), (m, n) array, CSR or StoredRows.
    own_rows : CSR (n, n), Reordered or None
        What `rows` gives for the points themselves, where that differs from K: a neighbour graph
        is symmetrised, rows of new points cannot be.
    vertex : array (points,) or None
        The vertex of each input point, where duplicates share one.
    epsilon : float or array (n,)
        Bandwidth in squared data units, or the local scales s with ε_ij = s_i s_j in data units.
    diagnostics : dict
    """

    operator: Operator
    rows: Rows
    own_rows: sparse.csr_matrix | Reordered | None = None
    vertex: Array | None = None
    epsilon: float | Array = np.nan
    diagnostics: dict[str, Any] = field(default_factory=dict)


def gaussian_affinity(X: Any, epsilon: float | str = "ksum") -> Array:
    """Compute the matrix exp(-|x_i - x_j|² / ε), dense (n, n).

    Parameters
    ----------
    X : array or CSR matrix (n, d)
    epsilon : float > 0 or "ksum", "median", "nearest", default "ksum"
        In squared data units.

    Returns
    -------
    array (n, n), float64
        Exactly symmetric, with ones on the diagonal.

    Raises
    ------
    ValueError
        X not finite, not two-dimensional or with fewer than two rows; epsilon out of range.

    Notes
    -----
    Cost: n² (d + 1) operations, 8 n² bytes. `Kernel` does the same without storing the matrix.
    The largest error of the exponent is 1e-8 (usually 1e-14).
    *Sketching the heat kernel*, Algorithm 1.

    Examples
    --------
    >>> import heatsketch as hs
    >>> hs.gaussian_affinity([[0.0], [2.0]], epsilon=4.0).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """
    X = check_points(X)
    return _stored(Kernel(X, resolve_epsilon(X, epsilon), np.dtype(np.float64)))


def resolve_epsilon(X: Any, epsilon: float | str) -> float:
    """Return the number that a rule's name stands for, or the number itself, checked."""
    if isinstance(epsilon, str):
        return rule_epsilon(X, epsilon)
    return check_number(epsilon, "epsilon", low=0, open_low=True)


def dense_affinity(X: Any, epsilon: float | str, n_neighbors: int) -> Affinity:
    """Build the full Gaussian affinity, stored up to 4,096 points, else made on the fly."""
    scales = None
    if epsilon == "self-tuning":
        scales = _LocalScales.of(X, n_neighbors)
        kernel = Kernel(X, scales(X), np.dtype(np.float64))
    else:
        kernel = Kernel(X, resolve_epsilon(X, epsilon), np.dtype(np.float64))
    stored = kernel.n <= STORED_POINTS
    return Affinity(
        Dense(_stored(kernel), kernel.spectrum) if stored else kernel,
        _KernelRows(kernel, scales),
        epsilon=kernel.epsilon,
        diagnostics={"exponent_error": min(kernel.exponent_error, EXPONENT_BOUND)},
    )


def radius_affinity(X: Any, epsilon: float | str, cut: float = WIDE_CUT) -> Affinity:
    """Build the Gaussian affinity truncated at |x - y| <= cut √(ε/2), sparse; exact new rows."""
    if epsilon == "self-tuning":
        raise ValueError(
            "epsilon='self-tuning' with affinity='radius' has no common radius; pass a number or "
            "'ksum', or affinity='knn'."
        )
    epsilon = resolve_epsilon(X, epsilon)
    cut = check_number(cut, "cut", low=0, open_low=True)
    frame = Frame.of(X)
    rows = _RadiusRows(frame, NeighborIndex(frame(X)), frame.squared(epsilon), cut)
    rows.check_budget()
    K = rows(X)
    logger.info("radius graph: %.1f neighbours a point", K.nnz / K.shape[0] - 1)
    return Affinity(
        Sparse(K), rows, epsilon=epsilon, diagnostics={"mean_neighbors": K.nnz / K.shape[0] - 1}
    )


def knn_affinity(X: Any, epsilon: float | str, n_neighbors: int, neighbors: Any = None) -> Affinity:
    """Build the Gaussian affinity on the nearest-neighbour graph, symmetrised; duplicates merge.

    `neighbors`: the search to use (see `search_of`). A given graph is taken as it is: duplicates
    stay points of their own.
    """
    k = check_number(n_neighbors, "n_neighbors", low=1, integer=True)
    frame, n, vertex = Frame.of(X), X.shape[0], None
    index, k = search_of(neighbors, X, frame), _feasible_neighbors(k, n)
    logger.info("graph of the %d nearest neighbours of %s points", k, f"{n:,}")
    found = index.query(X, k + 1)
    if not sparse.issparse(neighbors) and (found.distances[:, 1] == 0).any():
        X, vertex, index = distinct_search(neighbors, X, frame)
        k = _feasible_neighbors(k, index.n)
        found = index.query(X, k + 1)
    if epsilon == "self-tuning":
        middle: int | None = scale_order(k)
        scales = _check_scales(found.distances[:, middle])
        bandwidth: float | Array = np.ldexp(scales, frame.exponent)
    else:
        middle = None
        bandwidth = resolve_epsilon(X, epsilon)
        scales = np.full(index.n, np.sqrt(frame.squared(bandwidth)))
    order = index.order() if is_large(index.n) else None
    places = None if order is None else _Places(order, places_of(order))
    rows = _NeighborRows(index, k, scales, middle, places)
    graph, own = _graph(rows, found)
    return Affinity(
        graph,
        rows,
        own_rows=own,
        vertex=vertex,
        epsilon=bandwidth,
        diagnostics={"n_neighbors": k, "duplicates": n - index.n, **index.diagnostics},
    )


def _graph(rows: _NeighborRows, found: Neighbors) -> tuple[Operator, Any]:
    """Return the symmetrised graph of the neighbours found, and the one-sided one."""
    if rows.places is None:
        own = rows.of(found)
        return Sparse(larger_of_both(own)), own
    order = rows.places.order
    inner = rows.of(Neighbors(*(take_rows(values, order) for values in found)))
    return (
        Reordered(Sparse(larger_of_both(inner)), order),
        Reordered(Sparse(inner, (-np.inf, np.inf)), order),
    )


def _stored(kernel: Kernel) -> Array:
    K = np.empty((kernel.n, kernel.n))
    for rows in row_tiles(kernel.n):
        K[rows] = kernel.own_rows(rows)
    K = np.triu(K, 1)  # one of two roundings, so that the matrix is symmetric to the last bit
    K += K.T
    np.fill_diagonal(K, 1.0)
    return K


def _feasible_neighbors(k: int, n: int) -> int:
    if k < n:
        return k
    warnings.warn(
        f"n_neighbors={k} but X has {n} distinct points; using n_neighbors={n - 1}.", stacklevel=5
    )
    return n - 1


def _check_distinct(n: int) -> None:
    if n < 2:
        raise ValueError(
            "All distances are zero: every row of X is the same point; pass points that differ, "
            "or affinity='dense' with a number as epsilon."
        )


def _check_scales(scales: Array) -> Array:
    if (scales > 0).all():
        return scales
    raise ValueError(
        f"Around point(s) {name_rows(np.flatnonzero(scales == 0))} distances are beyond float64 "
        "next to the size of X; leave out the points that lie so far off."
    )


@dataclass(frozen=True, eq=False)
class _LocalScales:
    """The distance of a point to its m-th distinct neighbour, in data units."""

    frame: Frame
    index: NeighborIndex
    order: int

    @classmethod
    def of(cls, X: Any, n_neighbors: int) -> _LocalScales:
        frame = Frame.of(X)
        points = frame(X)
        first, _ = distinct_rows(points)
        _check_distinct(len(first))
        k = _feasible_neighbors(n_neighbors, len(first))
        return cls(frame, NeighborIndex(points[first]), scale_order(k))

    def __call__(self, X: Any) -> Array:
        distances = self.index.query(self.frame(X), self.order + 1).distances
        return np.ldexp(_check_scales(distances[:, -1]), self.frame.exponent)


@dataclass(frozen=True, eq=False)
class _KernelRows:
    kernel: Kernel
    scales: _LocalScales | None

    def __call__(self, X: Any) -> Array:
        rows = self.kernel.rows(X, None if self.scales is None else self.scales(X))
        return _fill_empty(rows, lambda far: self.kernel.nearest(X[far]))


@dataclass(frozen=True, eq=False)
class _RadiusRows:
    frame: Frame
    index: NeighborIndex
    epsilon: float  # in the frame's squared units
    cut: float

    @property
    def radius(self) -> float:
        return self.cut * np.sqrt(self.epsilon / 2)

    def __call__(self, X: Any) -> sparse.csr_matrix:
        x = self.frame(X)
        rows = self.index.within(x, self.radius)
        rows.data = np.exp(-(rows.data**2) / self.epsilon)
        return _fill_empty(rows, lambda far: self.index.query(x[far], 1).indices[:, 0])

    def check_budget(self) -> None:
        """Raise before a radius graph is built that would not fit."""
        n = self.index.n
        sample = self.index.points[:: max(1, n // 100)]
        mean = self.index.within(sample, self.radius).nnz / sample.shape[0]
        size = _RADIUS_BYTES * n * mean
        if size > _RADIUS_BUDGET:
            raise MemoryError(
                f"affinity='radius' at this epsilon joins a point with about {mean:,.0f} others: "
                f"{size / 2**30:.0f} GB; pass a smaller epsilon, or affinity='knn'."
            )


class _Places(NamedTuple):
    """Where points are stored, so that near ones are near each other."""

    order: Array  # (n,), the point at each place
    place: Array  # (n,), the place of each point


@dataclass(frozen=True, eq=False)
class _NeighborRows:
    index: Search
    k: int
    scales: Array  # (n,) in the frame's units
    middle: int | None  # which neighbour's distance is the scale of a new point; None: all equal
    places: _Places | None

    def __call__(self, X: Any) -> sparse.csr_matrix | StoredRows:
        rows = self.of(self.index.query(X, self.k + 1))
        return rows if self.places is None else StoredRows(rows, self.places.order)

    def of(self, found: Neighbors) -> sparse.csr_matrix:
        """Return the affinities of points to the neighbours found, CSR (m, n), sorted by place."""
        (m, width), n = found.indices.shape, self.index.n
        place = np.arange(n) if self.places is None else self.places.place
        weights, columns = np.empty((m, width)), np.empty((m, width), place.dtype)

        def work(rows: slice) -> None:
            d, indices = found.distances[rows], found.indices[rows]
            own = self.scales[0] if self.middle is None else d[:, [self.middle]]
            near, at = np.exp(-(d / own) * (d / self.scales[indices])), place[indices]
            by_place = np.argsort(at, axis=1)
            weights[rows] = np.take_along_axis(near, by_place, axis=1)
            columns[rows] = np.take_along_axis(at, by_place, axis=1)

        for_each_tile(work, m)
        starts = np.arange(0, weights.size + 1, width)
        rows = sparse.csr_matrix((weights.ravel(), columns.ravel(), starts), shape=(m, n))
        if not weights.all():
            rows.eliminate_zeros()
        return _fill_empty(rows, lambda far: place[found.indices[far, 0]])


def _fill_empty(rows: Any, nearest: Callable[[Array], Array]) -> Any:
    """Give a point that no affinity reaches its nearest neighbour: the limit from nearer by."""
    far = np.flatnonzero(np.asarray(rows.sum(axis=1)).ravel() < _FAINT)
    if len(far) == 0:
        return rows
    warnings.warn(
        f"{len(far)} new point(s) (rows {name_rows(far)}) are too far from all training points "
        "for any affinity; each is given its nearest training point as only neighbour.",
        ScaleWarning,
        stacklevel=4,
    )
    filled = sparse.csr_matrix((np.ones(len(far)), (far, nearest(far))), shape=rows.shape)
    return rows + filled if sparse.issparse(rows) else rows + filled.toarray()
