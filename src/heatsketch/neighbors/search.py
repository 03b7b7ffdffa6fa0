"""Nearest neighbours: metrics, the exact search on the host, and `NeighborIndex`.

Squared distances |x|² - 2xy + |y|² are computed in float32, with a bound of their rounding. The
distances of all points that may be among the nearest are then computed from differences in float64,
so that among equally distant points those of lowest index are found, however many there are. Where
float32 leaves too many of them, as in tight clusters far apart, the block is computed in float64.
Many points are searched by `neighbors.lists`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import pairwise_distances
from sklearn.utils.extmath import row_norms

from heatsketch._arrays import Array, Points, is_tensor, on_host
from heatsketch._checks import check_choice, check_new_points, check_number, check_points
from heatsketch._messages import name_rows, numbered, texts_from
from heatsketch._random import content_order
from heatsketch._threads import for_each_tile, row_tiles, single_threaded_blas, track
from heatsketch._words import optional
from heatsketch.core.blocks import (
    HOST,
    Block,
    Blocks,
    HostBlocks,
    blocks_at,
    blocks_of,
    inverse_permutation,
    pair_distances,
)

COORDINATES = ("euclidean", "cosine", "correlation")  # metrics of points in a space
METRICS = (*COORDINATES, "manhattan", "hamming", "jaccard")
Metric = str | Callable[[Any, Any], float]


@dataclass(frozen=True)
class Distances:
    """All distances between points, in a metric that has no coordinates: (m, d), (n, d) -> (m, n).

    Attributes
    ----------
    metric : "manhattan", "hamming", "jaccard", "precomputed", or callable
        "jaccard" is that of the sets of features that are not 0. "precomputed": points are rows of
        distances to all training points, whose own places are those of their zeros. A callable
        takes two rows and returns a number.
    """

    metric: Metric

    @classmethod
    def from_metric(cls, metric: Metric) -> Distances | None:
        """Return the distances in a metric, or None where it has coordinates (`in_metric`)."""
        if callable(metric):
            return cls(metric)
        check_choice(metric, "metric", (*METRICS, "precomputed"))
        return None if metric in COORDINATES else cls(metric)

    @property
    def precomputed(self) -> bool:
        """Whether points are rows of distances."""
        return self.metric == "precomputed"

    def points(self, X: Points, *, training: bool = False) -> Points:
        """Return points as they are compared, or raise if the metric does not take them."""
        if sparse.issparse(X) and self.precomputed:
            raise ValueError(
                "metric='precomputed' but X is sparse, and what it does not hold is no distance of "
                "0; pass all distances, or points with neighbors=X, or weights of the edges with "
                "affinity='precomputed'."
            )
        if sparse.issparse(X) and self.metric != "manhattan":
            raise ValueError(f"metric={self.metric!r} but X is sparse; pass X.toarray().")
        if self.precomputed and training:
            check_distances(X)
            X = np.array(X)
            np.fill_diagonal(X, 0.0)
            same = X.argmin(axis=1)
            copies = np.flatnonzero(same != np.arange(len(X)))
            apart = np.abs(X[copies] - X[same[copies]]).max(initial=0.0)
            if apart > 1e-6 * X.max():
                raise ValueError(
                    "X holds a distance of 0 between points whose other distances differ; pass "
                    "distances that are 0 for equal points only."
                )
        return (X != 0).astype(X.dtype) if self.metric == "jaccard" else X

    def __call__(self, x: Points, y: Points) -> Array:
        """Return the distances (m, n) from x to y."""
        if self.precomputed:
            return np.asarray(x[:, y.argmin(axis=1)], dtype=float)
        if self.metric == "jaccard":
            x, y = x.astype(bool), y.astype(bool)
        D = np.asarray(pairwise_distances(x, y, metric=self.metric), dtype=float)
        if callable(self.metric) and not (np.isfinite(D).all() and D.min(initial=0.0) >= 0):
            raise ValueError(
                "metric returns distances that are negative or not finite; pass a function of two "
                "rows that returns a number >= 0."
            )
        return D


def check_distances(D: Points) -> None:
    """Raise unless D is non-negative, square, symmetric to rounding, and zero on its diagonal.

    A sparse D holds distances to neighbours, and need not be symmetric.
    """
    if D.shape[0] != D.shape[1]:
        raise ValueError(
            f"X has shape {D.shape} but metric='precomputed'; pass the distances between all "
            "points, (n, n)."
        )
    check_non_negative(D)
    rounding = 1e-6 * float(D.max())
    if D.diagonal().max() > rounding:
        raise ValueError("X is not zero on its diagonal; pass distances, not affinities.")
    if sparse.issparse(D):
        return
    error = max(float(np.abs(D[rows] - D[:, rows].T).max()) for rows in row_tiles(len(D)))
    if error > rounding:
        raise ValueError(
            f"X is not symmetric (|X - X.T| is up to {error:.3g}); pass (X + X.T) / 2 if the "
            "difference is only rounding."
        )


def check_non_negative(D: Points) -> None:
    """Raise if a distance is negative."""
    if (D.data if sparse.issparse(D) else D).min(initial=0.0) < 0:
        raise ValueError("X holds negative numbers but metric='precomputed'; pass distances.")


def in_metric(X: Points, metric: Metric) -> Points:
    """Return points whose Euclidean distances are those of a metric, in the precision of X.

    "euclidean": X itself. "cosine": u(x) = x / |x|, whose distances |u(x) - u(y)| are the lengths
    of chords, with |u(x) - u(y)|² / 2 = 1 - cos(x, y), the cosine distance: neighbours are the
    same. "correlation": the same after the mean of each row has been subtracted from it. A row of
    the result depends on that row of X alone, so new points are mapped alike.

    Parameters
    ----------
    X : array or CSR matrix (n, d)
        Checked points; sparse ones stay sparse.
    metric : {"euclidean", "cosine", "correlation"}
        Distance between points. "cosine": the chord √(2 - 2 cos(x, y)). "correlation": the chord
        after the mean of each row has been subtracted from it.

    Raises
    ------
    ValueError
        A row without a direction: of zeros ("cosine") or of equal numbers ("correlation"); sparse
        X with "correlation".

    Notes
    -----
    Cost: some ten operations for each coordinate; a copy of X in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.neighbors import in_metric
    >>> in_metric(np.array([[3.0, 4.0], [300.0, 400.0]]), "cosine")
    array([[0.6, 0.8],
           [0.6, 0.8]])
    """
    if callable(metric) or check_choice(metric, "metric", METRICS) not in COORDINATES:
        raise ValueError(
            f"metric={metric!r} has no coordinates, which are needed here; pass one of "
            f"{', '.join(map(repr, COORDINATES))}."
        )
    if metric == "euclidean":
        return X
    if metric == "correlation" and sparse.issparse(X):
        raise ValueError(
            "metric='correlation' but X is sparse, and rows less their means are not; pass "
            "X.toarray() if the memory suffices, or metric='cosine', which hardly differs where "
            "most entries are zero."
        )
    # C order, because sums in Fortran order round differently.
    x: Any = X.astype(np.float64) if sparse.issparse(X) else np.array(X, np.float64, order="C")
    if metric == "correlation":
        constant = (x == x[:, :1]).all(axis=1)
        for _ in range(2):  # the second time what rounding left of a large mean
            x -= x.mean(axis=1, keepdims=True)
        x[constant] = 0.0
    norms = row_norms(x)
    lost = np.flatnonzero(norms == 0)
    if len(lost):
        what = "only zeros" if metric == "cosine" else "equal numbers"
        rows = name_rows(numbered(lost))
        raise ValueError(
            f"metric={metric!r} but row(s) {rows} of X hold {what}, which have no "
            "direction; leave out these rows, or pass metric='euclidean'."
        )
    if sparse.issparse(x):
        x.data /= np.repeat(norms, np.diff(x.indptr))
    else:
        x /= norms[:, None]
    return x.astype(X.dtype, copy=False)


def in_unit(X: Array) -> Array:
    """Return numbers times the power of two that makes the largest modulus 0.5 to 1.

    So the unit of X changes no bit of what follows, and no square or float32 leaves its range.
    """
    return X * 2.0 ** -np.frexp(np.abs(X).max(initial=0.0))[1]  # type: ignore[no-any-return]


_CANCELLED = 1e-6  # of |x|² + |y|²: smaller squares come from differences; 1e-9 is lost else


class Neighbors(NamedTuple):
    """The nearest points of each query, nearest first."""

    distances: Array  # (m, k)
    indices: Array  # (m, k)

    def without_itself(self) -> Neighbors:
        """Return neighbours of all points, in their order, with each left out of its own list."""
        itself = self.indices == np.arange(len(self.indices))[:, None]
        itself[~itself.any(axis=1), -1] = True  # copies have displaced the point itself
        return Neighbors(*(values[~itself].reshape(len(itself), -1) for values in self))

    def as_csr(self, n: int) -> Any:
        """Return the distances where they are, as entries of CSR (m, n), zeros stored."""
        (m, k), blocks = self.indices.shape, blocks_of(self.indices)
        starts = blocks.arange(m + 1) * k
        return blocks.csr((self.distances.ravel(), self.indices.ravel(), starts), (m, n))


def all_distances(x: Array) -> Array:
    """Return the distances of all pairs of x (n, d), in the order of `pdist`.

    By a product of matrices; where that would lose digits, from explicit differences.
    """
    i, j = np.triu_indices(len(x), 1)
    sizes = row_norms(x, squared=True)
    with single_threaded_blas():  # the same bits for any number of threads
        products = (x @ x.T)[i, j]
    sums = sizes[i] + sizes[j]
    squares = sums - 2 * products
    distances = np.sqrt(np.maximum(squares, 0.0))
    lost = np.flatnonzero(squares < _CANCELLED * sums)
    distances[lost] = pair_distances(x, x, i[lost], j[lost])
    return distances


class Search(ABC):
    """Abstract base: a search for the nearest of some points, array or CSR (n, d)."""

    points: Points
    n: int  # of points
    distances: Distances | None = None  # of a metric without coordinates
    of_coordinates = False  # whether distances are those of the coordinates of `points`
    columns: Array | None = None  # of the points, where all that is known is a graph of distances

    def order(self) -> Array | None:
        """An order (n,) that puts neighbours close together, if the search has one."""
        return None

    def diagnostics(self, k: int) -> dict[str, float]:
        """Return measures of the quality of a search for k neighbours."""
        return {}

    @abstractmethod
    def query(self, x: Any, k: int) -> Neighbors:
        """Return the k nearest points of each row of x, (m, k).

        If x is None, those of the points themselves; a point is then in its own list, at
        distance 0, unless k or more others are equal to it.

        Raises
        ------
        ValueError, TypeError
            k is not a number of neighbours, or is more than the number of points; points that are
            not a finite table of the features of the search, or that its metric has no direction
            for.
        """

    @abstractmethod
    def within(self, x: Any, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored.

        If x is None, those between the points.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table of the features of the search, or that its metric has
            no direction for; a radius that is not a finite number >= 0.
        """


_TILE_ROWS, _TILE_ENTRIES = 4096, 2**21  # of a tree; of a block: 8 MB
_GROUPS = 16  # times k, of points, whose minima are compared first
_MOST_CANDIDATES = 8  # times k, for each row; more are reduced by a block in float64
_TOLERANCE = 1e-7  # relative, by which a tree looks beyond a radius


class ExactSearch:
    """The search of all nearest points among points (n, d), dense in C order or CSR.

    Attributes
    ----------
    order : array (n,) or None
        The points in the order of the leaves of the tree, which puts neighbours close together.
    """

    def __init__(self, points: Points) -> None:
        self._points = points.astype(np.float64, copy=False)
        n, d = points.shape
        self.order: Array | None = None
        if d <= HOST.tree_features and not sparse.issparse(points):
            self._tree, self._tile = cKDTree(self._points), _TILE_ROWS
            self.order = self._tree.indices
        else:
            self._centre, self._tile = HOST.centre(self._points), max(16, _TILE_ENTRIES // n)
            near = self._points - self._centre
            self._norms = row_norms(near, squared=True)
            with np.errstate(over="ignore"):  # then the search is in float64
                self._single = near.astype(np.float32)

    def nearest(self, k: int, x: Points | None = None) -> tuple[Array, Array]:
        """Return the k nearest points of rows x (m, d), by default of the points themselves."""
        order = self.order if x is None else None
        x = self._points if x is None else x.astype(np.float64, copy=False)
        m = x.shape[0]
        distances, indices = np.empty((m, k)), np.empty((m, k), np.int64)
        nearest = self._nearest_in_blocks if self.order is None else self._nearest_in_tree

        def work(tile: slice) -> None:
            rows = tile if order is None else order[tile]
            distances[rows], indices[rows] = nearest(x[rows], k)

        for_each_tile(work, m, self._tile, track(None, "nearest neighbours", m, "points"))
        return distances, indices

    def pairs_within(self, x: Points, radii: Array) -> tuple[Array, Array, Array]:
        """Return (i, j, distance) of row i of x and the points j up to radii[i] from it."""
        x = x.astype(np.float64, copy=False)
        pairs = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        for rows in row_tiles(x.shape[0], self._tile):
            reach = radii[rows] * (1 + _TOLERANCE)
            if self.order is None:
                lower, _, _ = self._bounds(x[rows], np.float64)
                i, j = np.nonzero(~(lower > np.square(reach)[:, None]))
            else:
                lists = self._tree.query_ball_point(x[rows], reach)
                i = np.repeat(np.arange(len(lists)), [len(near) for near in lists])
                j = np.concatenate([*lists, np.empty(0, np.int64)]).astype(np.int64)
            d = pair_distances(x[rows], self._points, i, j)
            inside = d <= radii[rows][i]
            pairs.append((i[inside] + rows.start, j[inside], d[inside]))
        i, j, d = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return i, j, d

    def _nearest_in_tree(self, x: Array, k: int, spare: int = 4) -> tuple[Array, Array]:
        count = min(k + spare, len(self._points))
        d, near = self._tree.query(x, np.arange(1, count + 1))
        by_distance = np.lexsort((near, d), axis=1)[:, :k]
        last, d = d[:, -1], np.take_along_axis(d, by_distance, axis=1)
        near = np.take_along_axis(near, by_distance, axis=1)
        tied = np.flatnonzero(last <= d[:, -1])
        if len(tied) and count < len(self._points):
            d[tied], near[tied] = self._nearest_in_tree(x[tied], k, 4 * spare)
        return d, near

    def _nearest_in_blocks(self, x: Points, k: int) -> tuple[Array, Array]:
        m, n = x.shape[0], self._points.shape[0]
        # The k-th least of minima over groups of points is hardly larger than that of all points.
        groups = n // max(1, n // (_GROUPS * k))
        for dtype in (np.float32, np.float64):
            with np.errstate(over="ignore", invalid="ignore"):  # of far points in float32
                lower, errors, own = self._bounds(x, dtype)
            upper = (lower + errors)[:, : n // groups * groups].reshape(m, -1, groups).min(axis=1)
            kth = np.partition(upper, k - 1, axis=1)[:, k - 1] + own
            # As `np.nonzero`, ten times as fast.
            i, j = np.divmod(np.flatnonzero(~(lower > kth[:, None])), n)
            if len(i) <= _MOST_CANDIDATES * k * m:
                break
        return smallest_of_rows(i, j, pair_distances(x, self._points, i, j), k)

    def _bounds(self, x: Points, dtype: Any) -> tuple[Array, Array, Array]:
        """Return B (m, n), e (n,), e' (m,) with B_ij <= |x_i - y_j|² <= B_ij + e_j + e'_i."""
        x, limits = x - self._centre, np.finfo(dtype)
        y = self._single if dtype == np.float32 else self._points - self._centre
        product = x.astype(dtype) @ y.T
        bounds = np.asarray(product.toarray() if sparse.issparse(product) else product)
        # Sums of d products, in any order, and of three terms; some may underflow.
        error, least = ((x.shape[1] + 16) * float(e) for e in (limits.eps, limits.tiny))
        own = row_norms(x, squared=True)
        bounds *= -2
        bounds += ((1 - error) * self._norms - least).astype(dtype)
        bounds += ((1 - error) * own).astype(dtype)[:, None]
        of_points, of_rows = 2 * (error * self._norms + least), 2 * (error * own + least)
        return bounds, of_points.astype(dtype), of_rows.astype(dtype)


def smallest_of_rows(i: Array, j: Array, d: Array, k: int) -> tuple[Array, Array]:
    """Return the k smallest d and their columns j (m, k) of each row i, from entries (i, j, d).

    Equal ones are ordered by column. Every row has at least k.
    """
    order = np.lexsort((j, d, i))
    starts = np.flatnonzero(np.diff(i[order], prepend=-1))
    chosen = order[starts[:, None] + np.arange(k)]
    return d[chosen], j[chosen]


_EXACT_POINTS = 16_384  # up to here all pairs are compared
_RECALL = 0.98
_FEW = 1_000  # points, all of which are compared even where another library is to search


class PointSearch(Search):
    """A search among points (n, d) in a place: exact by a tree or by blocks, or in inverted lists.

    Nothing is checked: `NeighborIndex` is for users. Tensors are searched where they are: the same
    search in another place is kept, the last one.

    Parameters
    ----------
    points : array, tensor or CSR matrix (n, d)
        Brought to the place, if they do not take too much of its memory.
    recall : float in (0, 1]
    blocks : Blocks
        The place. Results are blocks there.
    kept : int
        How many neighbours of every point, itself among them, are stored once found.
    source : function, optional
        Returns the same search on the host.
    """

    of_coordinates = True
    blocks: Blocks = HOST
    _source: Callable[[], PointSearch] | None = None
    _elsewhere: PointSearch | None = None
    _not_stored = ("_elsewhere",)  # in files of models

    def __init__(
        self,
        points: Points,
        recall: float = _RECALL,
        blocks: Blocks = HOST,
        kept: int = 0,
        source: Callable[[], PointSearch] | None = None,
    ) -> None:
        self.points, (self.n, d), self._recall, self._kept = points, points.shape, recall, kept
        if blocks is not HOST:
            self.blocks, self._source = blocks, source
            self.points = blocks.native_if_small(points)
        always_exact = sparse.issparse(points) or d <= blocks.tree_features
        self.approximate = not always_exact and self.n > _EXACT_POINTS and recall < 1

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is on a device."""
        return {name: value for name, value in vars(self).items() if name != "_elsewhere"}

    def landed(self) -> PointSearch:
        """Return the search on the host."""
        return self if self._source is None else self._source()

    def at(self, blocks: Blocks) -> PointSearch:
        """Return the same search in a place."""
        if blocks == self.blocks:
            return self
        if self._elsewhere is None or self._elsewhere.blocks != blocks:
            points = on_host(self.points) if blocks is HOST else self.points
            self._elsewhere = PointSearch(points, self._recall, blocks, self._kept)
        return self._elsewhere

    def order(self) -> Block | None:
        """The points in an order that puts neighbours close together, if the search has one."""
        return self._engine.order

    def diagnostics(self, k: int) -> dict[str, float]:
        """Return the recall of k neighbours and its standard error, if search is approximate."""
        if not self.approximate:
            return {}
        probes = self._engine.probes_for(max(k, self._kept))
        return {"recall": probes.recall, "recall_error": probes.recall_error}

    def query(self, x: Block | None, k: int) -> Neighbors:
        """Return the k nearest points of each row of x (m, k), None: of the points themselves."""
        if sparse.issparse(x) and not sparse.issparse(self.points):
            raise ValueError("x is sparse, but the index has dense points; pass x.toarray().")
        there = blocks_of(x)  # of points on the host: here
        if there is not HOST and there != self.blocks:
            return self.at(there).query(x, k)
        # The cells that are searched depend on the number: it is the same for all queries.
        count = max(k, self._kept)
        if count == k and not self._kept:
            return Neighbors(*self._engine.nearest(k, x))
        if x is None and count == self._kept:
            found = self._stored
        else:
            found = Neighbors(*self._engine.nearest(count, x))
        return Neighbors(*(self.blocks.copied(values[:, :k]) for values in found))

    def within(self, x: Block | None, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored."""
        x = on_host(self.points if x is None else x)
        exact = PointSearch(self.points, 1.0, self.blocks) if self.approximate else self
        i, j, d = exact._engine.pairs_within(x, np.full(x.shape[0], float(radius)))
        return sparse.csr_matrix((d, (i, j)), shape=(x.shape[0], self.n))

    @cached_property
    def _stored(self) -> Neighbors:
        return Neighbors(*self._engine.nearest(self._kept, None))

    @cached_property
    def _engine(self) -> Any:
        """What searches: a tree or blocks of distances, there or here, or inverted lists."""
        if self.approximate:
            from heatsketch.neighbors.lists import InvertedLists  # compiled loops

            return InvertedLists(self.points, self._recall, self.blocks)
        if isinstance(self.blocks, HostBlocks):
            return ExactSearch(self.points)
        from heatsketch.device.search import DeviceSearch

        return DeviceSearch(self.points, self.blocks)


_BLOCK_ENTRIES = 2**22  # distances computed at a time: 32 MB


@texts_from(in_metric)
class NeighborIndex(Search):
    """A search structure over points, dense or sparse.

    The search is exact by a tree in at most 8 dimensions, and by blocks of all distances for up to
    16,384 points and for sparse data. Otherwise inverted lists find nearly all neighbours.
    Distances are computed from differences of coordinates, so that equal points are at distance
    exactly zero.

    Parameters
    ----------
    points : {array-like, sparse matrix} of shape (n_samples, n_features)
        Points. They are not copied; do not change them.
    metric : {"euclidean", "cosine", "correlation"}, default="euclidean"
        As in `in_metric`. `query` and `within` give distances in it, too.
    recall : float in (0, 1], default=0.98
        Fraction of the exact neighbours that an approximate search must find. It is measured on 512
        of the points, whose exact neighbours are known, and as many cells are searched as it
        requires. Outliers do not lower the recall of the other points. 1: the search is exact.
    n_neighbors : int >= 0, default=0
        Number of neighbours of every point that are stored once found (16 bytes each), so that
        estimators that share the index and need at most this number search once. 0: none.
    device : str or torch.device, optional
        Where dense points are searched, by torch; fits that get the index compute there, too. The
        search is then exact for up to 16,384 points, whatever the number of features. A search for
        tensors is always on their device, and its results are tensors.

    Attributes
    ----------
    points : {ndarray, sparse matrix} of shape (n_samples, n_features)
        The points, transformed so that their Euclidean distances are those of the metric.
    n : int
        Number of points.
    approximate : bool
        Whether neighbours may be missed.

    See Also
    --------
    diffusion : Build the diffusion on points.
    HeatSketch : Embed data by random columns; distances are right on average.
    anndata.neighbors : Compute the neighbours of cells.

    Notes
    -----
    `query(None, k)` returns the neighbours of the points of the index, `query(x, k)` those of any
    points. For a row equal to a point of the index both return the same. The cost of a search by
    blocks is n d operations for each point; by inverted lists it is a fraction of this.

    Examples
    --------
    >>> from heatsketch.neighbors import NeighborIndex
    >>> NeighborIndex([[0.0], [1.0], [3.0]]).query([[0.9]], 2).indices
    array([[1, 0]])
    """

    of_coordinates = True
    device: Any = None
    _subset: tuple[Array, PointSearch] | None = None
    _not_stored = ("_subset",)  # in files of models

    def __init__(
        self,
        points: Any,
        *,
        metric: str = "euclidean",
        recall: float = _RECALL,
        n_neighbors: int = 0,
        device: Any = None,
    ) -> None:
        self.metric = metric
        self.recall = check_number(recall, "recall", low=0, high=1, open_low=True)
        self.points = in_metric(check_points(points, "points", min_rows=1), metric)
        check_number(n_neighbors, "n_neighbors", low=0, integer=True)
        self.n = self.points.shape[0]
        self._kept = min(n_neighbors + 1, self.n) if n_neighbors else 0  # with itself
        if device is not None and not sparse.issparse(self.points):
            self.device = str(blocks_at(device).device)

    def __sklearn_clone__(self) -> NeighborIndex:
        """Return the index itself: clones of an estimator share it, since it does not change."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is on a device."""
        device = () if self.device is None else ("search",)
        return {name: value for name, value in vars(self).items() if name not in device}

    @cached_property
    def search(self) -> PointSearch:
        """The search for arrays; it is on the device of the index, if there is one."""
        return PointSearch(self.points, self.recall, blocks_at(self.device), self._kept)

    @property
    def blocks(self) -> Blocks:
        """Where the index searches for arrays."""
        return self.search.blocks

    @property
    def approximate(self) -> bool:
        """Whether neighbours may be missed."""
        return self.search.approximate

    def order(self) -> Array | None:
        """An order (n,) that puts neighbours close together, if the search has one."""
        return on_host(self.search.order())

    def diagnostics(self, k: int) -> dict[str, float]:
        """Return the recall of k neighbours and its standard error, if search is approximate.

        Raises
        ------
        ValueError, TypeError
            As in `Search`.
        """
        return self.search.diagnostics(self._checked_count(k))

    def among(self, rows: Block, points: Points) -> PointSearch:
        """Return the search among some of the points, where the numbers (m,) of these are.

        The points (m, d), in the metric, are on the host, or there. The last one on the host is
        kept, with its stored neighbours.
        """
        blocks = blocks_of(rows)

        def on_the_host() -> PointSearch:
            own, there = on_host(rows), on_host(points)
            if self._subset is None or not np.array_equal(self._subset[0], own):
                self._subset = own, PointSearch(there, self.recall, HOST, min(self._kept, len(own)))
            return self._subset[1]

        if blocks is HOST:
            return on_the_host()
        return PointSearch(points, self.recall, blocks, source=on_the_host)

    def query(self, x: Any, k: int) -> Neighbors:
        """Return the k nearest points of each row of x (m, k), None: of the points themselves.

        Raises
        ------
        ValueError, TypeError
            As in `Search`.
        """
        self._checked_count(k)
        x = None if x is None else self._checked(x)
        there = blocks_of(x)  # where the results are wanted
        search = self.search if there is HOST else self.search.at(there)
        x = x if x is None or search.blocks is HOST else search.blocks.native_if_small(x)
        return Neighbors(*map(there.brought, search.query(x, k)))

    def within(self, x: Any, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored.

        Raises
        ------
        ValueError, TypeError
            As in `Search`.
        """
        x = None if x is None else self._checked(x)
        return self.search.at(HOST).within(x, check_number(radius, "radius", low=0))

    def _checked_count(self, k: int) -> int:
        if check_number(k, "k", low=1, integer=True) > self.n:
            raise ValueError(f"k={k} but the index has {self.n} points; pass k <= {self.n}.")
        return k

    def _checked(self, x: Any) -> Any:
        """Return points in the metric, tensors where they are."""
        if is_tensor(x):
            blocks = blocks_of(x)
            fits = x.ndim == 2 and x.shape[1] == self.points.shape[1] and x.is_floating_point()
            if fits and self.metric == "euclidean" and bool(x.isfinite().all()):
                return x.detach()
            return blocks.native(self._checked(on_host(x)))
        return in_metric(check_new_points(x, self.points, "the index", "x"), self.metric)


class DistanceSearch(Search):
    """An exact search among points by all distances in any metric, ties by lowest index.

    Cost: n distances for each row.
    """

    def __init__(self, points: Points, distances: Distances) -> None:
        self.points, self.n, self.distances = points, points.shape[0], distances

    def _blocks(self, x: Any, itself: float) -> Iterator[Array]:
        """Yield distances of some rows of x to all points; `itself` is that of a point to itself.

        It is so by definition, whatever a callable says.
        """
        distances = self.distances
        assert distances is not None
        rows_of = self.points if x is None else distances.points(x)
        for rows in row_tiles(rows_of.shape[0], max(1, _BLOCK_ENTRIES // self.n)):
            D = distances(rows_of[rows], self.points)
            if x is None:
                D[np.arange(len(D)), np.arange(rows.start, rows.stop)] = itself
            yield D

    def query(self, x: Any, k: int) -> Neighbors:
        """Return the k nearest points of each row of x (m, k), None: of the points themselves."""
        found = []
        for D in self._blocks(x, -1.0):
            i, j = np.nonzero(np.partition(D, k - 1, axis=1)[:, k - 1, None] >= D)
            found.append(smallest_of_rows(i, j, D[i, j], k))
        distances, indices = (np.concatenate(side) for side in zip(*found, strict=True))
        return Neighbors(np.maximum(distances, 0.0), indices)

    def within(self, x: Any, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored."""
        blocks = []
        for D in self._blocks(x, 0.0):
            i, j = np.nonzero(radius >= D)
            blocks.append(sparse.csr_matrix((D[i, j], (i, j)), shape=D.shape))
        return sparse.vstack(blocks, format="csr")


class GraphSearch(Search):
    """A search in a graph of distances between points, and in those of a transformer to new ones.

    Parameters
    ----------
    points : array or CSR matrix (n, d)
    graph : CSR (n, n)
        Distances, at least those of the neighbours.
    transformer : optional
        Fitted to the points; returns the graph of distances from new points, CSR (m, n).
    columns : array (n,), optional
        Where points are known by these distances alone: the column of each in `points` and in rows
        of distances from new points.
    """

    def __init__(
        self,
        points: Points,
        graph: sparse.csr_matrix,
        transformer: Any = None,
        columns: Array | None = None,
    ) -> None:
        self.points, self.n, self.columns = points, points.shape[0], columns
        self._graph, self._transformer = graph, transformer
        self._name = "neighbors" if columns is None else "X"
        if columns is None and graph.nnz and (graph.data == 1).all():
            entries = graph.tocoo()
            stride = max(1, graph.nnz // 100)
            distances = pair_distances(points, points, entries.row[::stride], entries.col[::stride])
            if not np.allclose(distances, 1, rtol=1e-3):
                raise ValueError(
                    "neighbors holds only ones, which mark neighbours but are not their distances; "
                    "pass distances (mode='distance')."
                )

    def _entries(self, x: Any) -> tuple[int, Array, Array, Array]:
        """Return the number of rows, and the stored entries (i, j, distance), row by row."""
        graph = self._graph
        if x is not None and self.columns is not None:
            graph = x[:, self.columns]
            if not sparse.issparse(graph):  # all distances, zeros too
                ends = np.indices(graph.shape).reshape(2, -1)
                graph = sparse.csr_matrix((graph.ravel(), tuple(ends)), shape=graph.shape)
        elif x is not None:
            if self._transformer is None:
                raise ValueError(
                    "neighbors is a graph of the training points and has no distances to new "
                    "points; pass a KNeighborsTransformer instead."
                )
            with config_context(transform_output="default"):  # a table cannot be sparse
                graph = sparse.csr_matrix(self._transformer.transform(x))
        if graph.nnz and not (np.isfinite(graph.data).all() and graph.data.min() >= 0):
            raise ValueError("neighbors holds negative or non-finite numbers; pass distances.")
        rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
        return graph.shape[0], rows, graph.indices.astype(np.int64), graph.data.astype(float)

    def query(self, x: Any, k: int) -> Neighbors:
        """Return the k nearest points of each row of x (m, k), None: of the points themselves."""
        m, i, j, d = self._entries(x)
        if x is None:
            own, others = np.arange(m), i != j
            i, j = np.append(own, i[others]), np.append(own, j[others])
            d = np.append(np.full(m, -1.0), d[others])  # the point itself sorts first
        counts = np.bincount(i, minlength=m)
        if counts.min() < k:
            itself = int(x is None)
            raise ValueError(
                f"{self._name} has only {counts.min() - itself} neighbours for row "
                f"{counts.argmin()}, but {k - itself} are needed; pass a smaller n_neighbors, or "
                "more neighbours."
            )
        distances, indices = smallest_of_rows(i, j, d, k)
        return Neighbors(np.maximum(distances, 0.0), indices)

    def within(self, x: Any, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored."""
        m, i, j, d = self._entries(x)
        inside = d <= radius
        return sparse.csr_matrix((d[inside], (i[inside], j[inside])), shape=(m, self.n))


def ordered_search(neighbors: Any, X: Points, *, join: bool = True) -> tuple[Search, Array, Array]:
    """Return the search that `neighbors` specifies among the points X in order of their content.

    Ties between neighbours, samples and whatever else is chosen by position then depend on the
    points alone.

    Parameters
    ----------
    neighbors : None, NeighborIndex, Distances, transformer or CSR matrix (n, n)
        None: a new search of points. Distances: a search of all pairs in their metric, or, where X
        is a sparse matrix of precomputed ones, among those that it holds. A transformer
        (scikit-learn's KNeighborsTransformer, or any with `fit_transform` and `transform` that
        return sparse graphs of distances) is cloned and fitted to the points. A matrix holds
        distances between rows of X, at least those of the neighbours.
    X : array or CSR matrix (n, d)
        As `in_metric` returns them; so are the points that a transformer gets.
    join : bool, default True
        Whether equal points become one; those of a given graph never do.

    Returns
    -------
    search : Search
    rows : array (n,)
        The first row of X that is each point of the search.
    place : array (points,)
        The number among these points of each row of X.

    Of an index on a device the results of the search, and the others, are tensors.
    """
    of_index = isinstance(neighbors, NeighborIndex)
    if of_index and not are_equal(neighbors.points, X):
        raise ValueError(
            f"neighbors is an index of {neighbors.n} points but X has {X.shape[0]}, or they are "
            "other points, or in another metric; pass NeighborIndex(X) with the same metric."
        )
    precomputed = isinstance(neighbors, Distances) and neighbors.precomputed
    blocks = neighbors.blocks if of_index else HOST
    given = blocks.native_if_small(neighbors.points) if of_index else X
    is_a_graph = precomputed and sparse.issparse(X)
    join = join and not (sparse.issparse(neighbors) or is_a_graph)
    if precomputed:
        same = X.argmin(axis=1) if join else np.arange(X.shape[0])  # copies are at distance 0
        distinct = np.unique(same)
        rows = distinct[content_order(X[distinct], columns=False)]
        place = inverse_permutation(rows, X.shape[0])[same]
    elif join:
        rows, place = blocks.distinct_rows(given)
    else:
        rows = content_order(X)
        place = inverse_permutation(rows)
    if join and len(rows) < 2 <= X.shape[0]:
        raise ValueError(
            "All distances are zero: every row of X is the same point; pass distinct points."
        )
    # Points that are too many for the device are here.
    points: Points = given[rows if blocks is HOST else blocks_of(given).brought(rows)]
    search: Search
    if of_index:
        search = neighbors.among(rows, points)
    elif neighbors is None:
        search = PointSearch(points)
    elif is_a_graph:
        search = GraphSearch(points, points[:, rows], columns=rows)
    elif isinstance(neighbors, Distances):
        search = DistanceSearch(points, neighbors)
    elif sparse.issparse(neighbors):
        if neighbors.shape != (X.shape[0], X.shape[0]):
            raise ValueError(
                f"neighbors has shape {neighbors.shape} but X has {X.shape[0]} points; pass the "
                f"distances between these points, shape ({X.shape[0]}, {X.shape[0]})."
            )
        search = GraphSearch(points, sparse.csr_matrix(neighbors)[rows][:, rows])
    elif hasattr(neighbors, "fit_transform") and hasattr(neighbors, "transform"):
        transformer = clone(neighbors)
        with config_context(transform_output="default"):
            graph = transformer.fit_transform(points)
        search = GraphSearch(points, sparse.csr_matrix(graph), transformer)
    else:
        raise TypeError(
            f"neighbors is of type {type(neighbors).__name__}; pass a NeighborIndex, a "
            "KNeighborsTransformer or a sparse matrix of distances (n, n)."
        )
    return search, rows, place


def search_by_name(name: str, X: Points, n_neighbors: int) -> Any:
    """Return the transformer of another library that finds neighbours; None for few points."""
    check_choice(name, "neighbors", ("pynndescent",))
    if X.shape[0] <= max(_FEW, n_neighbors):
        return None
    library = optional(name, f"neighbors={name!r} needs that library", name)
    return library.PyNNDescentTransformer(n_neighbors=n_neighbors + 1, random_state=0)


def are_equal(a: Points, b: Points) -> bool:
    """Say whether two arrays or two CSR matrices hold the same numbers."""
    if a is b:
        return True
    if a.shape != b.shape or sparse.issparse(a) != sparse.issparse(b):
        return False
    return (a != b).nnz == 0 if sparse.issparse(a) else bool(np.array_equal(a, b))
