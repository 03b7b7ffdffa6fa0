"""Searches for neighbours: an index of points, all distances in any metric, a given graph.

Each finds the nearest points, or those within a radius, of its own points and of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone

from heatsketch._docstrings import texts_from
from heatsketch._random import content_order
from heatsketch._tensors import is_tensor, on_host
from heatsketch._tiles import row_tiles
from heatsketch._typing import Array, Points
from heatsketch._validation import check_new_points, check_number, check_points
from heatsketch.backend import HOST, Block, Blocks, blocks_at, blocks_of
from heatsketch.backend.host_search import smallest_of_rows
from heatsketch.neighbors.exact import Neighbors, pair_distances
from heatsketch.neighbors.metric import Distances, in_metric
from heatsketch.neighbors.placed import PlacedSearch, is_approximate
from heatsketch.neighbors.search import Search
from heatsketch.operators.csr import inverse_permutation

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
    _subset: tuple[Array, NeighborIndex] | None = None
    _not_stored = ("_subset",)  # in files of models

    def __init__(
        self,
        points: Any,
        *,
        metric: str = "euclidean",
        recall: float = 0.98,
        n_neighbors: int = 0,
        device: Any = None,
    ) -> None:
        self.metric = metric
        self.recall = check_number(recall, "recall", low=0, high=1, open_low=True)
        self.points = in_metric(check_points(points, "points", min_rows=1), metric)
        check_number(n_neighbors, "n_neighbors", low=0, integer=True)
        self.n = self.points.shape[0]
        self._n_kept = min(n_neighbors + 1, self.n) if n_neighbors else 0  # with itself
        if device is not None and not sparse.issparse(self.points):
            self.device = str(blocks_at(device).device)
        self.approximate = is_approximate(self.points, self.recall, self.blocks)

    def __sklearn_clone__(self) -> NeighborIndex:
        """Return the index itself: clones of an estimator share it, since it does not change."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is on a device."""
        return {**vars(self), "_searches": self._searches_here()}

    @property
    def blocks(self) -> Blocks:
        """Where the index searches for arrays."""
        return blocks_at(self.device)

    def order(self) -> Array | None:
        """An order (n,) that puts neighbours close together, if the search has one."""
        return on_host(self.search_in(self.blocks).order())

    def diagnostics(self, k: int) -> dict[str, float]:
        """Return the recall of k neighbours and its standard error, if search is approximate.

        Raises
        ------
        ValueError, TypeError
            As in `Search`.
        """
        return self.search_in(self.blocks).diagnostics(self._searched(k))

    def search_in(self, blocks: Blocks) -> PlacedSearch:
        """Return the search in a place; that on the host and that on the last device are kept."""
        if blocks not in self._searches:
            self._searches = self._searches_here()
            self._searches[blocks] = PlacedSearch(self.points, self.recall, blocks)
        return self._searches[blocks]

    def among(self, rows: Block, points: Points) -> Search:
        """Return the search among some of the points, where the numbers (m,) of these are.

        The points (m, d) are on the host, or there.
        """
        blocks = blocks_of(rows)

        def landed() -> NeighborIndex:
            return self._subset_of(on_host(rows), on_host(points))

        return landed() if blocks is HOST else PlacedSearch(points, self.recall, blocks, landed)

    def _subset_of(self, rows: Array, points: Points) -> NeighborIndex:
        """Return the index of these rows, the points given, on the host; the last one is kept."""
        # The points are in the metric already, and `_n_kept` counts each point itself.
        if self._subset is None or not np.array_equal(self._subset[0], rows):
            others = max(0, self._n_kept - 1)
            index = NeighborIndex(points, recall=self.recall, n_neighbors=others)
            self._subset = rows, index
        return self._subset[1]

    def query(self, x: Any, k: int) -> Neighbors:
        """Return the k nearest points of each row of x (m, k), None: of the points themselves.

        Raises
        ------
        ValueError, TypeError
            As in `Search`.
        """
        count, x = self._searched(k), None if x is None else self._checked(x)
        there = blocks_of(x)  # where the results are wanted
        if x is None and count <= self._n_kept:
            found = self._stored
        else:
            search = self.search_in(self.blocks if there is HOST else there)
            found = search.query(None if x is None else search.blocks.native_if_small(x), count)
        return Neighbors(*(there.copied(there.native(values[:, :k])) for values in found))

    def within(self, x: Any, radius: float) -> sparse.csr_matrix:
        """Return the distances up to `radius` from each row of x, CSR (m, n), zeros stored.

        Raises
        ------
        ValueError, TypeError
            As in `Search`.
        """
        x = None if x is None else self._checked(x)
        return self.search_in(HOST).within(x, check_number(radius, "radius", low=0))

    def _searched(self, k: int) -> int:
        """Return how many neighbours are searched for k: the cells of a search depend on it."""
        if check_number(k, "k", low=1, integer=True) > self.n:
            raise ValueError(f"k={k} but the index has {self.n} points; pass k <= {self.n}.")
        return max(k, self._n_kept)

    def _checked(self, x: Any) -> Any:
        """Return points in the metric, tensors where they are."""
        if is_tensor(x):
            blocks = blocks_of(x)
            fits = x.ndim == 2 and x.shape[1] == self.points.shape[1] and x.is_floating_point()
            if fits and self.metric == "euclidean" and bool(x.isfinite().all()):
                return x.detach()
            return blocks.native(self._checked(on_host(x)))
        return in_metric(check_new_points(x, self.points, "the index", "x"), self.metric)

    @cached_property
    def _stored(self) -> Neighbors:
        found = self.search_in(self.blocks).query(None, self._n_kept)
        return Neighbors(*map(HOST.native, found))

    @cached_property
    def _searches(self) -> dict[Blocks, PlacedSearch]:
        return {}

    def _searches_here(self) -> dict[Blocks, PlacedSearch]:
        return {place: search for place, search in self._searches.items() if place is HOST}


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
        None: a new NeighborIndex. Distances: a search of all pairs in their metric, or, where X is
        a sparse matrix of precomputed ones, among those that it holds. A transformer
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
    points: Points = given[blocks_of(given).native(rows)]
    search: Search
    if of_index:
        search = neighbors.among(rows, points)
    elif neighbors is None:
        search = NeighborIndex(points)
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


def are_equal(a: Points, b: Points) -> bool:
    """Say whether two arrays or two CSR matrices hold the same numbers."""
    if a is b:
        return True
    if a.shape != b.shape or sparse.issparse(a) != sparse.issparse(b):
        return False
    return (a != b).nnz == 0 if sparse.issparse(a) else bool(np.array_equal(a, b))
