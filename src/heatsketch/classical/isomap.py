"""Isomap: shortest paths along a neighbourhood graph, and classical scaling of their lengths."""

from __future__ import annotations

import logging
import time
import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from heatsketch._array import filled
from heatsketch._budget import require
from heatsketch._checks import ScaleWarning, check_choice, check_number, name_rows
from heatsketch._typing import Array
from heatsketch.classical._base import Embedding, check_non_negative, in_units
from heatsketch.graphs.given_distances import graph_of_distances
from heatsketch.graphs.landmarks import check_indices
from heatsketch.graphs.neighborhoods import neighborhood_graph, off_diagonal
from heatsketch.graphs.shortest_paths import shortest_paths, spread_vertices
from heatsketch.spectral.classical_scaling import classical_scaling

logger = logging.getLogger("heatsketch")

_TILE = 2**20  # numbers at a time: 8 MB


class _PathScaling(Embedding):
    """Abstract base: classical scaling of paths from some vertices of a neighbourhood graph."""

    n_components: int
    n_neighbors: int
    radius: float | None
    neighbors: Any
    _instead: str  # of what needs too much memory
    _takes_sparse = True

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed the points X.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix (n, d)
            Points; with ``metric="precomputed"`` distances or a graph (n, n).
        y : ignored

        Returns
        -------
        self
        """
        k = check_number(self.n_components, "n_components", low=1, integer=True)
        started = time.perf_counter()
        X = self._read_any(X, reset=True)
        graph, self._neighborhoods = self._neighborhood_graph(X)
        counts = self._neighborhoods.counts(off_diagonal(graph))
        graph = self._neighborhoods.connected(graph)
        logger.info("a graph of %d points and %d edges", graph.shape[0], graph.nnz // 2)
        found = time.perf_counter()
        landmarks = self._landmarks(graph, X.shape[0])
        n, count = graph.shape[0], len(landmarks)
        if k >= count:
            raise ValueError(
                f"n_components={k} but there are {count} distinct points to scale; pass "
                f"fewer components, or at least {k + 1} points or landmarks."
            )
        what = f"Paths between {count:,} and {n:,} points"
        require(8.0 * count * (n + count), what, self._instead)
        self._paths = shortest_paths(graph, landmarks)
        walked = time.perf_counter()
        squares = self._paths[:, landmarks]
        self._scaling = classical_scaling(np.square(squares, out=squares), k)
        Y = self._placed(_from_themselves(n))
        self.residual_variance_ = _residual_variance(self._paths, Y, landmarks)
        self.embedding_ = self._neighborhoods.spread(self._in_units(Y, X.dtype))
        self.diagnostics_ = counts | {
            "residual_variance": float(self.residual_variance_[-1]),
            "graph_seconds": found - started,
            "paths_seconds": walked - found,
            "scaling_seconds": time.perf_counter() - walked,
        }
        return self

    def transform(self, X: Any) -> Array:
        """Embed points, new or old: row by row, each depending on itself alone.

        Warns of points farther from every training point than the longest path.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix (m, d)
            With ``metric="precomputed"``: distances to the training points (m, n).

        Returns
        -------
        array (m, n_components)
        """
        check_is_fitted(self)
        X = self._read_any(X, reset=False)
        rows = self._neighborhoods.rows(X)
        _warn_of_far(rows, float(self._paths.max()))
        return self._in_units(self._placed(rows), X.dtype)

    @abstractmethod
    def _landmarks(self, graph: sparse.csr_matrix, n: int) -> Array:
        """Return the vertices of the graph from which paths start; n is the number of points."""

    def _neighborhood_graph(self, X: Any) -> tuple[sparse.csr_matrix, Any]:
        k, radius = self.n_neighbors, self.radius
        if self._precomputed:
            return graph_of_distances(X, k, radius)
        return neighborhood_graph(X, n_neighbors=k, radius=radius, neighbors=self.neighbors)

    def _in_units(self, Y: Array, dtype: np.dtype) -> Array:
        return in_units(Y, self._neighborhoods.frame.exponent, dtype)

    def _read_any(self, X: Any, reset: bool) -> Any:
        if self._precomputed and not sparse.issparse(X):
            return self._read_distances(X, reset)
        X = self._read(X, reset, accept_sparse="csr")
        if self._precomputed:
            _check_graph(X, reset)
        return X

    def _placed(self, rows: sparse.csr_matrix) -> Array:
        """Return coordinates in the frame (m, k) of points with these distances to vertices."""
        from heatsketch.graphs.path_kernels import shortest_through  # compiled loops

        def place(points: slice) -> Array:
            starts = rows.indptr[points.start : points.stop + 1]
            squares = np.empty((len(starts) - 1, len(self._paths)))
            shortest_through(starts, rows.indices, rows.data, self._paths, squares)
            return self._scaling.place(np.square(squares, out=squares))

        shape = (rows.shape[0], len(self._scaling.values))
        return filled(place, shape, _tile(len(self._paths)))


class Isomap(_PathScaling):
    """Embed points so that distances are those along a neighbourhood graph.

    *Linear and nonlinear dimensionality reduction*, §6 (Tenenbaum, de Silva and Langford 2000):

    1. a graph G joins each point to its k nearest others (or to all within ε), where either end
       has the other as a neighbour: max(G, Gᵀ);
    2. Δ holds the lengths of the shortest paths between all points;
    3. classical scaling (§3) of Δ gives the coordinates.

    A new point x is at δ_j = min over its neighbours i of |x - x_i| + Δ_ij from point j, and placed
    by these (`Scaling.place`); training points come out as they went in.

    For data on a surface that unrolls to a convex region of the plane, whose geodesic distances it
    keeps. Not for noisy data, where a few edges across a gap shorten all paths, nor for surfaces
    with holes or without a flat chart, which it distorts; not for more than some 20,000 points (see
    `LandmarkIsomap`).

    Parameters
    ----------
    n_components : int >= 1, default 2
        Coordinates.
    n_neighbors : int >= 1, default 10
        k, as in the notes; fewer keep paths on the surface, more make their lengths closer to
        geodesic ones.
    radius : float > 0, optional
        ε, in the units of X: the graph joins points this near, whatever their number.
    neighbors : None, NeighborIndex, transformer or CSR matrix (n, n), optional
        Where neighbours come from (see `HeatSketch`); by default an own search.
    metric : "euclidean" or "precomputed", default "euclidean"
        "precomputed": X holds the distances between all points (n, n), of which the graph takes the
        nearest; or it is a sparse matrix, whose entries are the edges, whatever their number.

    Attributes
    ----------
    embedding_ : array (n, n_components)
        In the units of X, in its precision; mean 0 (points of equal coordinates count as one).
    residual_variance_ : array (n_components,)
        1 - R² between the lengths of paths and the distances in the first 1, 2, … coordinates; the
        dimension of the data is where it stops to fall.
    diagnostics_ : dict
        mean_neighbors, components (of the graph before they are joined), duplicates (points that
        share the vertex of an equal one), residual_variance (of all coordinates), and the seconds
        of the stages: graph, paths, scaling.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    ValueError
        Not enough points for the neighbours or coordinates; bad numbers in X.
    MemoryError
        The paths would take more memory than there is.

    Notes
    -----
    Cost: n searches of the graph (3 ms each for 10,000 points, on every core), and some 50
    products with an (n, n) matrix. Memory: 16 n² bytes, of which half are kept for `transform`.

    Examples
    --------
    >>> import heatsketch as hs, numpy as np
    >>> from heatsketch.classical.isomap import Isomap
    >>> X, flat = hs.datasets.swiss_roll(500, rng=0)
    >>> model = Isomap(n_neighbors=8).fit(X)
    >>> print(abs(np.corrcoef(model.embedding_[:, 0], flat[:, 0])[0, 1]) > 0.99)
    True
    """

    _instead = "pass LandmarkIsomap, which needs the paths from some points only."

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 10,
        radius: float | None = None,
        neighbors: Any = None,
        metric: str = "euclidean",
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.neighbors = neighbors
        self.metric = metric

    def _landmarks(self, graph: sparse.csr_matrix, n: int) -> Array:
        return np.arange(graph.shape[0])


class LandmarkIsomap(_PathScaling):
    """Embed points by the lengths of their shortest paths to a few of them.

    Isomap (which see) with landmark scaling in place of step 3 (de Silva and Tenenbaum 2004):
    classical scaling embeds l landmarks, and every other point is placed by its distances to them.
    With all points as landmarks it is Isomap; where path lengths are Euclidean distances in the
    plane it is the same from three landmarks on that do not lie on a line.

    For many points, where n² path lengths are too many to compute or to keep. Not where landmarks
    are fewer than some ten for each coordinate: errors of the paths average out over them.

    Parameters
    ----------
    n_components, n_neighbors, radius, neighbors, metric
        As in `Isomap`.
    n_landmarks : int >= 1, default 200
        Landmarks that are chosen; all points where there are fewer.
    landmarks : "maxmin" or array of int (l,), default "maxmin"
        "maxmin": each the one farthest, along the graph, from those before, beginning far from the
        first point. They reach the edges of the data, so that most points lie between them, and
        need no random numbers. Or the rows of X that are to be landmarks, however many.

    Attributes
    ----------
    landmarks_ : array of int (l,)
        The rows of X that are landmarks.
    embedding_ : array (n, n_components)
        In the units of X, in its precision; the mean of the landmarks is 0.
    residual_variance_, diagnostics_, n_features_in_, feature_names_in_
        As in `Isomap`; the residual variance is that of the pairs of a landmark and any point.

    Raises
    ------
    ValueError, MemoryError
        As in `Isomap`; and landmarks that are no rows of X.

    Notes
    -----
    Cost: l searches of the graph (30 ms each for 100,000 points, on every core). Memory: 8 l n
    bytes, which are kept for `transform`.

    Examples
    --------
    >>> import heatsketch as hs, numpy as np
    >>> from heatsketch.classical.isomap import LandmarkIsomap
    >>> X, flat = hs.datasets.swiss_roll(2000, rng=0)
    >>> Y = LandmarkIsomap(n_landmarks=50).fit_transform(X)
    >>> print(abs(np.corrcoef(Y[:, 0], flat[:, 0])[0, 1]) > 0.99)
    True
    """

    _instead = "pass fewer landmarks."

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_landmarks: int = 200,
        landmarks: Any = "maxmin",
        n_neighbors: int = 10,
        radius: float | None = None,
        neighbors: Any = None,
        metric: str = "euclidean",
    ) -> None:
        self.n_components = n_components
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.neighbors = neighbors
        self.metric = metric

    def _landmarks(self, graph: sparse.csr_matrix, n: int) -> Array:
        vertex = self._neighborhoods.vertex
        vertex = np.arange(n) if vertex is None else vertex
        if isinstance(self.landmarks, str):
            check_choice(self.landmarks, "landmarks", ("maxmin",))
            count = check_number(self.n_landmarks, "n_landmarks", low=1, integer=True)
            chosen = spread_vertices(graph, min(count, graph.shape[0]), vertex[0])
        else:
            chosen = np.unique(vertex[check_indices(np.asarray(self.landmarks), n)])
        self.landmarks_ = np.unique(vertex, return_index=True)[1][chosen]
        return chosen


def _check_graph(graph: sparse.csr_matrix, square: bool) -> None:
    """Raise unless the edges of a graph have lengths that are not negative."""
    if square and graph.shape[0] != graph.shape[1]:
        raise ValueError(
            f"X has shape {graph.shape}, but metric='precomputed'; pass a graph (n, n)."
        )
    check_non_negative(graph.data)


def _from_themselves(n: int) -> sparse.csr_matrix:
    """Return the distances of n points that have themselves as only neighbours."""
    return sparse.csr_matrix((np.zeros(n), np.arange(n), np.arange(n + 1)), shape=(n, n))


def _tile(width: int) -> int:
    """Return how many rows of this width are worked on at a time."""
    return max(1, _TILE // width)


def _warn_of_far(rows: sparse.csr_matrix, longest: float) -> None:
    """Warn of points that are farther from their neighbours than the longest path."""
    nearest = np.minimum.reduceat(rows.data, rows.indptr[:-1])
    far = np.flatnonzero(nearest > longest)
    if len(far):
        warnings.warn(
            f"{len(far)} new point(s) (rows {name_rows(far)}) are farther from every training "
            "point than these are from each other along the graph; their coordinates mean little.",
            ScaleWarning,
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
