"""Isomap: classical scaling of shortest paths in a neighbourhood graph, from all or few points."""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from heatsketch._arrays import Array
from heatsketch._checks import check_choice, check_number
from heatsketch._messages import logger, texts_from, warn_of_rows
from heatsketch._threads import filled, require_memory
from heatsketch.classical._base import Embedding, check_fewer_components
from heatsketch.neighbors.graph import check_indices, off_diagonal, shortest_paths, spread_vertices
from heatsketch.spectral.eigen import classical_scaling

_TILE_ENTRIES = 2**18  # distances of points to landmarks at a time: 2 MB for each neighbour


@dataclass(eq=False, repr=False)
class PathScaling(Embedding):
    """Abstract base: classical scaling of shortest paths in a neighbourhood graph."""

    _takes_sparse = True
    _takes_graphs = True

    n_components: int = 2
    _: KW_ONLY
    n_neighbors: int = 10
    radius: float | None = None
    neighbors: Any = None
    metric: str = "euclidean"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed points, or the distances between them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points. With ``metric="precomputed"`` X holds distances of shape (n_samples, n_samples);
            sparse ones are those between neighbours, which a `KNeighborsTransformer` returns.
        y : ignored
            Present for the interface of scikit-learn.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError, MemoryError
            Invalid points or parameters, or too many points; see the docstring of the class.
        """
        X = self._read_either(X, reset=True)
        graph, self._neighborhoods = self._graph_of(X)
        self.diagnostics_ = self._neighborhoods.counts(off_diagonal(graph))
        graph = self._neighborhoods.connected(graph)
        n, (count, landmarks) = graph.shape[0], self._landmarks(graph.shape[0])
        k = check_fewer_components(self.n_components, count)
        logger.info("paths from %d of %d points, over %d edges", count, n, graph.nnz // 2)
        what = f"Paths between {count:,} and {n:,} points"
        require_memory(8.0 * count * (n + count), what, "pass LandmarkIsomap with fewer landmarks.")
        if landmarks is None:
            landmarks = spread_vertices(graph, count, self._neighborhoods.vertex[0])
        self._paths = shortest_paths(graph, landmarks)
        first_points = np.unique(self._neighborhoods.vertex, return_index=True)[1]
        self.landmarks_ = first_points[landmarks]
        squares = self._paths[:, landmarks]
        self._scaling = classical_scaling(np.square(squares, out=squares), k)
        itself = sparse.csr_matrix((np.zeros(n), np.arange(n), np.arange(n + 1)))
        self.embedding_ = self._neighborhoods.spread(self._place(itself).astype(X.dtype))
        return self

    def transform(self, X: Any) -> Array:
        """Embed points, each row independently; warn of points far from all training points.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new_samples, n_features)
            Points. With ``metric="precomputed"`` X holds the distances to the training points, of
            shape (n_new_samples, n_samples); a sparse X those to the nearest of them.

        Returns
        -------
        ndarray of shape (n_new_samples, n_components)
            Coordinates of the points.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit.
        """
        X = self._read_either(X, reset=False)
        rows = self._neighborhoods.rows(X)
        nearest = np.minimum.reduceat(rows.data, rows.indptr[:-1])
        far = np.flatnonzero(nearest > self._paths.max())
        if len(far):
            warn_of_rows(
                far,
                "are farther from every training point than the longest path in the graph; their "
                "coordinates are unreliable.",
            )
        return self._place(rows).astype(X.dtype)

    @abstractmethod
    def _landmarks(self, n: int) -> tuple[int, Array | None]:
        """Return the number of vertices, of n, from which paths start, and their indices.

        None for indices means vertices spread over the graph.
        """

    def _place(self, rows: sparse.csr_matrix) -> Array:
        """Return coordinates (m, k) of points with these distances to vertices."""
        from heatsketch.core.loops import shortest_through  # compiled loops

        def place(points: slice) -> Array:
            starts = rows.indptr[points.start : points.stop + 1]
            squares = np.empty((len(starts) - 1, len(self._paths)))
            shortest_through(starts, rows.indices, rows.data, self._paths, squares)
            return self._scaling.place(np.square(squares, out=squares))

        shape = (rows.shape[0], len(self._scaling.values))
        return filled(place, shape, _TILE_ENTRIES // len(self._paths) + 1)


@texts_from(Embedding)
@dataclass(eq=False, repr=False)
class Isomap(PathScaling):
    """Embed points so that distances are path lengths in a neighbourhood graph.

    The method has three steps [1]_ [2]_:

    1. a graph G joins each point to its k nearest others (or to all within ε); an edge exists if
       either end has the other as a neighbour: max(G, Gᵀ);
    2. Δ holds the lengths of the shortest paths between all points;
    3. classical scaling of Δ gives the coordinates.

    A new point x is at distance δ_j = min over its neighbours i of |x - x_i| + Δ_ij from point j,
    and is placed by these distances; training points get their own coordinates.

    When to use it: for data on a surface that unrolls to a convex region of the plane, because it
    keeps geodesic distances. When not: for noisy data, because a few edges across a gap shorten all
    paths; for surfaces with holes or curvature, which it distorts; for more than about 20,000
    points (see `LandmarkIsomap`).

    Parameters
    ----------
    n_components : int >= 1, default=2
        Number of coordinates.
    n_neighbors : int >= 1, default=10
        Neighbours k of each point. A small k keeps paths on the surface; a larger k brings their
        lengths closer to the geodesic distances.
    radius : float > 0, optional
        Distance ε, in the units of X: join all points up to it instead of the k nearest.
    neighbors : NeighborIndex, transformer or sparse matrix, default=None
        As in `Embedding`.
    metric : str or callable, default="euclidean"
        As in `Embedding`. "precomputed": X holds the distances between all points, of shape
        (n_samples, n_samples), or, if it is sparse, those to at least `n_neighbors` of them.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates in the units and the precision of X, with mean 0 over points with different
        coordinates.
    diagnostics_ : dict
        `mean_neighbors`, `components` (number of components of the graph before these are joined),
        `duplicates` (points that share the vertex of an equal point).
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.

    Raises
    ------
    ValueError
        Too few points for the neighbours or coordinates; invalid numbers in X; a sparse graph of
        distances with several components.
    MemoryError
        The paths would take more memory than is available.

    See Also
    --------
    classical.LandmarkIsomap : Embed by path lengths to a few landmarks.
    classical.ClassicalMDS : Embed distances by classical scaling.
    HeatEmbedding : Embed data in few dimensions that keep diffusion distances.
    sklearn.manifold.Isomap : Isomap of scikit-learn.

    Notes
    -----
    Components of the graph are joined by the shortest link between every two (more than 4 √n
    components by a minimum spanning tree), with a warning, because paths between far clusters are
    then nearly straight.

    The cost for n points is n searches of the graph (3 ms each for 10,000 points), and about 50
    products with a matrix of n² numbers. Memory is 16 n² bytes, half of which are kept for
    `transform`.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §6.
    .. [2] J. B. Tenenbaum, V. de Silva and J. C. Langford, "A global geometric framework for
       nonlinear dimensionality reduction", Science 290 (2000), 2319-2323.

    Examples
    --------
    >>> import heatsketch as hs, numpy as np
    >>> from heatsketch.classical import Isomap
    >>> X, flat = hs.datasets.swiss_roll(500, rng=0)
    >>> model = Isomap(n_neighbors=8).fit(X)
    >>> print(abs(np.corrcoef(model.embedding_[:, 0], flat[:, 0])[0, 1]) > 0.99)
    True
    """

    def _landmarks(self, n: int) -> tuple[int, Array | None]:
        return n, np.arange(n)


@texts_from(Embedding)
@dataclass(eq=False, repr=False)
class LandmarkIsomap(PathScaling):
    """Embed points by the lengths of their shortest paths to a few landmarks.

    It is `Isomap` [1]_ with landmark scaling [2]_ as step 3: classical scaling embeds l landmarks,
    and every other point is placed by its path lengths to them. With all points as landmarks it
    equals Isomap. If path lengths are Euclidean distances in the plane, any three landmarks that
    are not on a line give the distances of Isomap, on axes and around an origin of their own.

    When to use it: for many points, if n² path lengths take too much time or memory. Use at least
    about ten landmarks for each coordinate, so that errors of paths average out.

    Parameters
    ----------
    n_components : int >= 1, default=2
        Number of coordinates.
    n_neighbors : int >= 1, default=10
        Neighbours k of each point. A small k keeps paths on the surface; a larger k brings their
        lengths closer to the geodesic distances.
    radius : float > 0, default=None
        Distance ε, in the units of X: join all points up to it instead of the k nearest.
    neighbors : NeighborIndex, transformer or sparse matrix, default=None
        As in `Embedding`.
    metric : str or callable, default="euclidean"
        As in `Embedding`. "precomputed": X holds the distances between all points, of shape
        (n_samples, n_samples), or, if it is sparse, those to at least `n_neighbors` of them.
    n_landmarks : int > n_components, default=200
        Number of landmarks to choose; all points if there are fewer.
    landmarks : "maxmin" or array-like of int of shape (n_landmarks,), default="maxmin"
        "maxmin": each is the farthest along the graph from those before, the first one far from the
        first point. They reach the boundary of the data, so that most points lie between them.
        Otherwise the row indices of the landmarks.

    Attributes
    ----------
    landmarks_ : ndarray of int of shape (n_landmarks,)
        The row indices of the landmarks, in an order of their own; for a row that repeats another,
        the first of these.
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates in the units and the precision of X; the mean of the landmarks is 0.
    diagnostics_ : dict
        `mean_neighbors`, `components` (number of components of the graph before these are joined),
        `duplicates` (points that share the vertex of an equal point).
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.

    Raises
    ------
    ValueError
        Too few points for the neighbours or coordinates; invalid numbers in X; a sparse graph of
        distances with several components; landmarks that are not row indices of X.
    MemoryError
        The paths would take more memory than is available.

    See Also
    --------
    classical.Isomap : Embed by path lengths in a neighbourhood graph.
    classical.LandmarkMDS : Embed by distances to a few landmarks.

    Notes
    -----
    For l landmarks and n points the cost is l searches of the graph
    (30 ms each for 100,000 points). Memory is 8 l n bytes, which are kept for `transform`.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §6.
    .. [2] V. de Silva and J. B. Tenenbaum, "Sparse multidimensional scaling using landmark points",
       technical report, Stanford University (2004).

    Examples
    --------
    >>> import heatsketch as hs, numpy as np
    >>> from heatsketch.classical import LandmarkIsomap
    >>> X, flat = hs.datasets.swiss_roll(2000, rng=0)
    >>> Y = LandmarkIsomap(n_landmarks=50).fit_transform(X)
    >>> print(abs(np.corrcoef(Y[:, 0], flat[:, 0])[0, 1]) > 0.99)
    True
    """

    n_landmarks: int = 200
    landmarks: Any = "maxmin"

    def _landmarks(self, n: int) -> tuple[int, Array | None]:
        if isinstance(self.landmarks, str):
            check_choice(self.landmarks, "landmarks", ("maxmin",))
            return min(n, check_number(self.n_landmarks, "n_landmarks", low=1, integer=True)), None
        vertex = self._neighborhoods.vertex
        chosen = np.unique(vertex[check_indices(self.landmarks, len(vertex))])
        return len(chosen), chosen
