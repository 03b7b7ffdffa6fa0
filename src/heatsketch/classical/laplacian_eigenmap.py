"""The Laplacian eigenmap: eigenvectors of the random walk on a neighbourhood graph."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy import ndimage, sparse

from heatsketch._arrays import Array
from heatsketch._checks import check_choice, check_number
from heatsketch._messages import ScaleWarning, name_rows, texts_from, warn
from heatsketch.classical._base import Embedding
from heatsketch.core.operators import Sparse
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.new_points import NeighborKernel
from heatsketch.neighbors import NeighborIndex, in_metric, pair_distances
from heatsketch.neighbors.graph import (
    HARDLY_ANY,
    off_diagonal,
    positive,
    symmetric,
    warn_of_faint_points,
)
from heatsketch.neighbors.search import ExactSearch
from heatsketch.scales import RULES, rule_epsilon
from heatsketch.spectral.eigen import slowest_eigenpairs

_EDGES = "edges"
_LEAST_FRACTION = 0.2  # least ε at a point, as a fraction of a usual squared length there
_FAR = math.sqrt(-math.log(HARDLY_ANY))  # in units of the usual lengths at neighbours
_MIN_LAMBDA, _RELIABLE_LAMBDA = 1e-3, 0.1  # to embed new points at all, and without a warning


@texts_from(Embedding, in_metric)
@dataclass(eq=False, repr=False)
class LaplacianEigenmap(Embedding):
    """Embed data by the lowest eigenvectors of a graph Laplacian: x_i ↦ (r_1(i), …, r_k(i)).

    Points x_i and x_j are joined if one is among the nearest neighbours of the other, or if they
    lie within a radius [1]_ [2]_. The edge has the weight k_ij = exp(-|x_i - x_j|² / ε) or 1. With
    Q = diag(Σ_j k_ij) and the graph Laplacian L = Q - K (35), L R = Q R M (36), 0 = μ_0 <= μ_1 <= …
    (37), the map is (r_1, …, r_k) (39), and Y = R minimises ½ Σ_ij k_ij |y_i - y_j|² = tr(Yᵀ L Y)
    (40). M = I - Λ (38): R and Λ are those of the diffusion map of the same kernel with α = 0,
    whose coordinates are λ_m^t r_m.

    When to use it: to see clusters, or the shape of a curve or surface that neighbours describe
    well; all coordinates have the same size. When not: for distances, because `DiffusionMap`
    weights the coordinates for them (and removes the effect of the density); for long thin sheets,
    whose second coordinate is a function of the first.

    Parameters
    ----------
    n_components : int, default=2
        Number of coordinates k.
    n_neighbors : int, default=15
        Nearest neighbours to which a point is joined; choose enough to keep the graph connected.
    radius : float > 0, default=None
        Join all points up to this distance, in data units, instead. Suitable for evenly sampled
        data; otherwise some points have no neighbours and others very many.
    weights : {"heat", "binary"}, default="heat"
        exp(-|x_i - x_j|² / ε), or 1 for every edge (t = ∞ in [1]_).
    epsilon : float or {"edges", "nearest", "ksum", "median"}, default="edges"
        Bandwidth ε for "heat", in squared data units (t in [1]_). "edges": the median of the
        squared lengths of the edges, but not below a fifth of this median over the neighbours of
        either end of an edge. This lower bound is needed because, with one ε, a point several times
        as far from its neighbours as others are would have no weight next to its own of 1, and
        would be a component. The others are the rules of `DiffusionMap` ("nearest": twice the mean
        of §9.2 of [1]_). Like a number, they give one ε for every edge.
    neighbors : NeighborIndex, transformer or sparse matrix, default=None
        As in `Embedding`.
    metric : {"euclidean", "cosine", "correlation"}, default="euclidean"
        As in `in_metric`.
    tol : float, default=1e-8
        Largest residual of the eigenpairs for more than 1,200 points (for fewer, they are exact);
        relative to μ where the graph is that of a curve or surface.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the start of the iteration; it changes the result by no more than `tol`.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        R, with Rᵀ Π R = I (22), Π = Q / Σq: entries of order one for any n and ε. The Y of (40),
        with Yᵀ Q Y = I, is R / √Σq. Signs: the largest entry of √Π r_m in modulus is positive.
    eigenvalues_ : ndarray of shape (n_components,)
        μ_1 <= … <= μ_k in [0, 2).
    residuals_ : ndarray of shape (n_components,)
        |A v - λ v| of the eigenpairs, A = Q^-1/2 K Q^-1/2.
    epsilon_ : float
        ε in squared data units; infinite for "binary". With "edges", the least over all edges.
    diagnostics_ : dict
        Facts of the graph and its components.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.

    Raises
    ------
    ValueError
        Invalid parameters or points; in `transform`, coordinates with |λ| < 0.001.

    Warns
    -----
    DisconnectedWarning
        The graph has several components: as many μ, including μ_0, are 0, and their coordinates
        only tell the components apart.
    ScaleWarning
        `transform` has coordinates with λ < 0.1.

    See Also
    --------
    DiffusionMap : Embed data by the leading eigenvectors of the diffusion.
    classical.LocallyLinearEmbedding : Embed points as combinations of their neighbours.
    sklearn.manifold.SpectralEmbedding : Laplacian eigenmaps of scikit-learn.

    Notes
    -----
    A point is its own neighbour, with k_ii = 1, because its distance is zero. L does not depend on
    k_ii, but Q does, and with k_ii = 1 Λ is that of the diffusion map. Equal points share a vertex.

    New points (Nyström): r(x) = λ^-1 Σ_j k(x, x_j) r(j) / Σ_j k(x, x_j), over neighbours by the
    same rule. These are the points within the radius, or the nearest ones and points to which x is
    nearer than their own farthest neighbour. With a transformer as `neighbors` these are only the
    nearest ones. Training points keep their coordinates.

    The cost is the search for neighbours, and the eigenpairs. For more than 1,200 points these come
    from a sparse factorisation if the graph is that of a curve or surface (a few seconds for
    100,000 points), else from about a hundred sparse products with k + 8 columns.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §9.3,
       equations (35)-(40).
    .. [2] M. Belkin and P. Niyogi, "Laplacian eigenmaps for dimensionality reduction and data
       representation", Neural Computation 15 (2003), 1373-1396.

    Examples
    --------
    >>> import heatsketch as hs
    >>> from heatsketch.classical.laplacian_eigenmap import LaplacianEigenmap
    >>> X, angle = hs.datasets.circle(200, rng=0)
    >>> model = LaplacianEigenmap(2, n_neighbors=10).fit(X)
    >>> model.embedding_.shape, bool(abs(model.transform(X) - model.embedding_).max() < 1e-9)
    ((200, 2), True)
    """

    _takes_sparse = True

    n_components: int = 2
    _: KW_ONLY
    n_neighbors: int = 15
    radius: float | None = None
    weights: str = "heat"
    epsilon: float | str = _EDGES
    neighbors: Any = None
    metric: str = "euclidean"
    tol: float = 1e-8
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Build the graph of the points and compute its lowest eigenvectors.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points.
        y : ignored
            Present for the interface of scikit-learn.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            Invalid points or parameters, listed in the docstring of the class.
        """
        check_choice(self.weights, "weights", ("heat", "binary"))
        check_number(self.n_components, "n_components", low=1, integer=True)
        X = self._read_points(X, reset=True)
        graph, self._neighborhoods = self._graph_of(X)
        vertices, graph = self._neighborhoods, off_diagonal(graph)
        n, starts = graph.shape[0], graph.tocoo().row
        joined = np.unique(starts)
        self._usual = np.zeros(n)  # the median length of the edges from each vertex
        self._usual[joined] = ndimage.median(graph.data, starts, joined)
        self.epsilon_ = self._least_epsilon(graph)
        self._epsilons = np.full(n, self.epsilon_)  # the least of the edges of each
        if self.epsilon == _EDGES:
            self._epsilons = np.maximum(_LEAST_FRACTION * self._usual**2, self.epsilon_)
        K = symmetric(graph)
        K.data = np.exp(-(self._relative(K, np.arange(n)) ** 2))
        K.eliminate_zeros()
        A = Sparse(K + sparse.identity(n, format="csr"))
        diffusion = Diffusion.from_affinity(A, alpha=0.0)
        top = slowest_eigenpairs(
            diffusion.deflated, self.n_components, tol=self.tol, rng=self.random_state
        )
        self._R, self._lam = top.vectors / diffusion.root[:, None], top.values
        if diffusion.diagnostics["is_constant"]:
            self._R[:] = 0.0  # eigenvectors of equal eigenvalues would be arbitrary
        self._reach = None  # distance (n,) to the farthest neighbour, if needed for new points
        if self.radius is None and isinstance(self.neighbors, NeighborIndex | None):
            self._reach = graph.max(axis=1).toarray().ravel()
        self._kernel = NeighborKernel(
            points=X.copy(),  # X may be changed in place later
            n_neighbors=int(self.n_neighbors),
            neighborhoods=vertices,
            scales=self.epsilon_,
        )
        self.eigenvalues_ = np.maximum(1.0 - top.values, 0.0)
        self.residuals_ = top.residuals
        self.embedding_ = vertices.spread(self._R).astype(X.dtype, copy=False)
        self.diagnostics_ = vertices.counts(graph) | diffusion.diagnostics
        return self

    def transform(self, X: Any) -> Array:
        """Embed points, each row independently; training points keep their coordinates.

        A warning names points that are far from all training points, relative to the scale of
        these.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_new_samples, n_components)
            Coordinates of the points.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; invalid points; a coordinate whose λ is too small to divide by.
        """
        X = self._read_points(X, reset=False)
        vertices, x = self._neighborhoods, X.astype(np.float64, copy=False)
        distances = vertices.rows(X)
        rows = distances.tocoo().row
        equal = pair_distances(x, vertices.points, rows, distances.indices) == 0
        Y, new = np.empty((X.shape[0], self._R.shape[1]), X.dtype), np.ones(X.shape[0], bool)
        Y[rows[equal]], new[rows[equal]] = self._R[distances.indices[equal]], False
        if new.any():
            _check_extension(self._lam)
            distances = distances[new]
            if self._reach is not None:  # points that have x among their own neighbours
                j, i, d = ExactSearch(x[new]).pairs_within(vertices.points, self._reach)
                entries = sparse.csr_matrix((positive(d), (i, j)), shape=distances.shape)
                distances = sparse.csr_matrix(distances.maximum(entries))
            if vertices.radius is None:  # with a radius the search has warned
                ratios = distances.data / self._usual[distances.indices]
                far = np.minimum.reduceat(ratios, distances.indptr[:-1]) > _FAR
                warn_of_faint_points(np.flatnonzero(new)[far])
            Y[new] = (self._walk(distances) @ self._R) / self._lam
        return Y

    def novelty(self, X: Any) -> Array:
        """Compute the novelty of points compared with the training points, from 0 to 1.

        The novelty of a point is the fraction of training points that have a larger affinity to the
        other training points than this point has to them, see `HeatSketch.novelty`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_new_samples,)
            Novelty of each point.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; invalid points.
        """
        points = self._read_points(X, reset=False)
        return self._kernel.novelty(points)

    def _least_epsilon(self, graph: sparse.csr_matrix) -> float:
        """Return the ε of all edges, or with "edges" the least; `graph` has the edge lengths."""
        if self.weights == "binary":
            return math.inf
        if not isinstance(self.epsilon, str):
            return float(check_number(self.epsilon, "epsilon", low=0, open_low=True))
        if check_choice(self.epsilon, "epsilon", (_EDGES, *RULES)) != _EDGES:
            return float(rule_epsilon(self._neighborhoods.points, self.epsilon))
        least = float(np.median(graph.data)) ** 2 if graph.nnz else math.inf
        if least == 0:
            raise ValueError(
                "epsilon='edges' but most edges have length zero; pass a number, "
                "weights='binary', or distinct points."
            )
        return least

    def _relative(self, distances: sparse.csr_matrix, vertices: Array) -> Array:
        """Return d/√ε of distances CSR (m, n) from points at, or near, these vertices (m,)."""
        rows = np.repeat(self._epsilons[vertices], np.diff(distances.indptr))
        return distances.data / np.sqrt(np.maximum(rows, self._epsilons[distances.indices]))

    def _walk(self, distances: sparse.csr_matrix) -> sparse.csr_matrix:
        """Return p(x, x_j), CSR (m, n), without underflow for far points."""
        rows = distances.tocoo().row
        places = ndimage.minimum_position(distances.data, rows, np.arange(distances.shape[0]))
        d = self._relative(distances, distances.indices[np.ravel(places)])
        least = np.minimum.reduceat(d, distances.indptr[:-1])[rows]
        # A common factor of a row cancels; here the largest weight is 1.
        with np.errstate(over="ignore"):
            weights = np.exp(-(d - least) * (d + least))
        weights /= np.bincount(rows, weights)[rows]
        return sparse.csr_matrix((weights, distances.indices, distances.indptr), distances.shape)


def _check_extension(lam: Array) -> None:
    """Raise if the rule for new points divides by a λ near 0, warn if λ is small."""
    small = np.flatnonzero(lam < _RELIABLE_LAMBDA)
    if not len(small):
        return
    remedies = [f"n_components={small[0]}"] if small[0] else []
    remedies += ["fewer neighbours", "a smaller radius or epsilon (for weights='heat')"]
    message = (
        f"Coordinate(s) {name_rows(small)} have λ = 1 - μ down to {lam[small].min():.2g}; the rule "
        "for new points divides by λ, which amplifies noise; pass "
        f"{', or '.join(remedies)}."
    )
    if np.abs(lam).min() < _MIN_LAMBDA:
        raise ValueError(message)
    warn(ScaleWarning, message)
