"""What Isomap and landmark Isomap share: shortest paths along a graph, and their scaling."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from heatsketch._checks import check_number, logger, require, warn_of_rows
from heatsketch._tiles import filled
from heatsketch._typing import Array
from heatsketch.classical._base import Embedding, check_non_negative, in_units
from heatsketch.graphs.given_distances import graph_of_distances
from heatsketch.graphs.neighborhoods import off_diagonal
from heatsketch.graphs.shortest_paths import shortest_paths
from heatsketch.spectral.classical_scaling import classical_scaling

_TILE_ENTRIES = 2**20  # distances computed at a time: 8 MB


class PathScaling(Embedding):
    """Abstract base: classical scaling of shortest paths in a neighbourhood graph."""

    n_components: int
    n_neighbors: int
    radius: float | None
    neighbors: Any
    _instead: str  # what to pass where memory is too small
    _takes_sparse = True

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed points (n, d), dense or sparse; or, "precomputed", distances or a graph (n, n).

        Raises
        ------
        ValueError, TypeError, MemoryError
            Bad points or parameters, or too many points; the class says which.
        """
        k = check_number(self.n_components, "n_components", low=1, integer=True)
        X = self._read_any(X, reset=True)
        graph, self._neighborhoods = self._neighborhood_graph(X)
        counts = self._neighborhoods.counts(off_diagonal(graph))
        graph = self._neighborhoods.connected(graph)
        logger.info("neighbourhood graph of %d points and %d edges", graph.shape[0], graph.nnz // 2)
        landmarks = self._landmarks(graph, X.shape[0])
        self._check_sizes(k, graph.shape[0], len(landmarks))
        self._paths = shortest_paths(graph, landmarks)
        squares = self._paths[:, landmarks]
        self._scaling = classical_scaling(np.square(squares, out=squares), k)
        Y = self._place(_self_distances(graph.shape[0]))
        self.residual_variance_ = _residual_variance(self._paths, Y, landmarks)
        self.embedding_ = self._neighborhoods.spread(self._in_units(Y, X.dtype))
        self.diagnostics_ = counts | {"residual_variance": float(self.residual_variance_[-1])}
        return self

    def transform(self, X: Any) -> Array:
        """Embed points (m, d), each row independently; warn of points far from all training points.

        With ``metric="precomputed"`` X holds the distances to the training points, (m, n).

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit.
        """
        check_is_fitted(self)
        X = self._read_any(X, reset=False)
        rows = self._neighborhoods.rows(X)
        _warn_of_far(rows, float(self._paths.max()))
        return self._in_units(self._place(rows), X.dtype)

    @abstractmethod
    def _landmarks(self, graph: sparse.csr_matrix, n: int) -> Array:
        """Return the vertices of the graph from which paths start; n is the number of points."""

    def _check_sizes(self, k: int, n: int, count: int) -> None:
        """Raise if the landmarks are too few, or their paths to n vertices need too much memory."""
        if k >= count:
            raise ValueError(
                f"n_components={k} but there are {count} distinct points or landmarks; pass "
                f"fewer components, or at least {k + 1} points or landmarks."
            )
        what = f"Paths between {count:,} and {n:,} points"
        require(8.0 * count * (n + count), what, self._instead)

    def _neighborhood_graph(self, X: Any) -> tuple[sparse.csr_matrix, Any]:
        if self._precomputed:
            return graph_of_distances(X, self.n_neighbors, self.radius)
        return self._graph_of(X)

    def _in_units(self, Y: Array, dtype: np.dtype) -> Array:
        return in_units(Y, self._neighborhoods.frame.exponent, dtype)

    def _read_any(self, X: Any, reset: bool) -> Any:
        if self._precomputed and not (sparse.issparse(X) and self._metric == "precomputed"):
            return self._read_distances(X, reset)
        if not self._precomputed:
            return self._read_points(X, reset)
        X = self._read(X, reset)
        _check_graph(X, reset)
        return X

    def _place(self, rows: sparse.csr_matrix) -> Array:
        """Return coordinates in the frame (m, k) of points with these distances to vertices."""
        from heatsketch.graphs.path_kernels import shortest_through  # compiled loops

        def place(points: slice) -> Array:
            starts = rows.indptr[points.start : points.stop + 1]
            squares = np.empty((len(starts) - 1, len(self._paths)))
            shortest_through(starts, rows.indices, rows.data, self._paths, squares)
            return self._scaling.place(np.square(squares, out=squares))

        shape = (rows.shape[0], len(self._scaling.values))
        return filled(place, shape, _tile(len(self._paths)))


def _check_graph(graph: sparse.csr_matrix, square: bool) -> None:
    """Raise unless the edges of a graph have non-negative lengths."""
    if square and graph.shape[0] != graph.shape[1]:
        raise ValueError(
            f"X has shape {graph.shape}, but metric='precomputed'; pass a graph (n, n)."
        )
    check_non_negative(graph.data)


def _self_distances(n: int) -> sparse.csr_matrix:
    """Return the distances of n points each of which has only itself as a neighbour."""
    return sparse.csr_matrix((np.zeros(n), np.arange(n), np.arange(n + 1)), shape=(n, n))


def _tile(width: int) -> int:
    """Return the number of rows of this width that are computed at a time."""
    return max(1, _TILE_ENTRIES // width)


def _warn_of_far(rows: sparse.csr_matrix, longest: float) -> None:
    """Warn of points that are farther from their neighbours than the longest path."""
    nearest = np.minimum.reduceat(rows.data, rows.indptr[:-1])
    far = np.flatnonzero(nearest > longest)
    if len(far):
        warn_of_rows(
            far,
            "are farther from every training point than the longest path in the graph; their "
            "coordinates are unreliable.",
            stacklevel=4,
        )


def _residual_variance(paths: Array, Y: Array, landmarks: Array) -> Array:
    """Return 1 - R² between paths (l, n) and distances in the first 1, …, k columns of Y (k,)."""
    n, k = Y.shape

    def moments(rows: slice) -> Array:
        g, squares = paths[rows], np.zeros((rows.stop - rows.start, n))
        sums = np.empty((len(g), 3 * k + 2))
        sums[:, 0], sums[:, 1] = g.sum(axis=1), np.einsum("ij,ij->i", g, g)
        for m in range(k):
            squares += (Y[landmarks[rows], m, None] - Y[:, m]) ** 2
            d = np.sqrt(squares)
            sums[:, 2 + 3 * m] = d.sum(axis=1)
            sums[:, 3 + 3 * m] = squares.sum(axis=1)
            sums[:, 4 + 3 * m] = np.einsum("ij,ij->i", g, d)
        return sums

    means = filled(moments, (len(paths), 3 * k + 2), _tile(n)).sum(axis=0) / paths.size
    g, gg, (d, dd, gd) = means[0], means[1], means[2:].reshape(k, 3).T
    return 1 - (gd - g * d) ** 2 / ((gg - g * g) * (dd - d * d))
