"""Locally linear embedding: each point stays the same combination of its neighbours."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.linalg import orth, svd
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh, splu

from heatsketch._arrays import Array, Points
from heatsketch._checks import check_number
from heatsketch._messages import DisconnectedWarning, name_rows, texts_from, warn
from heatsketch._random import seed_entropy
from heatsketch._threads import for_each_tile
from heatsketch.classical._base import Embedding, check_fewer_components
from heatsketch.core.operators import members_of
from heatsketch.neighbors import in_metric
from heatsketch.neighbors.graph import off_diagonal
from heatsketch.spectral.eigen import fix_signs

_TILE_POINTS = 64  # points whose neighbours are gathered at a time
_EPS = float(np.finfo(float).eps)
_MAX_DENSE_POINTS = 500  # up to here LAPACK takes no longer than iterating


@texts_from(Embedding, in_metric)
@dataclass(eq=False, repr=False)
class LocallyLinearEmbedding(Embedding):
    """Embed points so that each is the same combination of its neighbours as in the data.

    The method has three steps [1]_ [2]_:

    1. the neighbours of each point are the k nearest other points (or all within ε);
    2. weights w of point i minimise |x_i - Σ_j w_j x_j|² with Σ_j w_j = 1, (3): w ∝ C⁻¹1,
       C = ZᵀZ, the columns of Z being x_i - x_j. If C is singular, `reg` trace(C) is added to
       its diagonal;
    3. Y minimises |Y - WY|_F² with mean 0 and YᵀY/n = I, (4): eigenvectors 2 to d + 1 of
       M = (I - W)ᵀ(I - W), in ascending order of eigenvalues.

    A new point is embedded as the combination of its neighbours among the training points. A
    training point is its own neighbour at distance zero, with all the weight, so `transform`
    returns its place in `embedding_`.

    When to use it: for data on a smooth surface that is sampled evenly and densely. When not: if
    lengths matter, because every coordinate has variance 1 for any shape of the surface (see
    `Isomap`); for data in clusters, because the first coordinates only separate a few points from
    the rest (the eigenvalues then differ by orders of magnitude); if noise is as large as the
    neighbourhoods.

    Parameters
    ----------
    n_components : int >= 1, default=2
        Number of coordinates d.
    n_neighbors : int >= 1, default=12
        Neighbours k of each point: more than d, but few enough that each neighbourhood is nearly
        flat.
    radius : float > 0, default=None
        Distance ε, in the units of X: all other points within ε are neighbours instead of the k
        nearest.
    reg : float > 0, default=1e-3
        Fraction of trace(C) that is added to the diagonal of C if the smallest eigenvalue of C is
        less than it. This happens at every point if k exceeds the number of features, as in [1]_,
        and at points whose neighbours lie in a plane of fewer dimensions.
    neighbors : NeighborIndex, transformer or sparse matrix, default=None
        As in `Embedding`.
    metric : {"euclidean", "cosine", "correlation"}, default="euclidean"
        As in `in_metric`. With the last two the weights reconstruct directions.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the start of the iteration; it changes only rotations among eigenvectors of equal
        eigenvalues.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates with mean 0 and covariance I over different points, in the precision of X; the
        entry of largest modulus of each column is positive.
    eigenvalues_ : ndarray of shape (n_components,)
        μ of M, ascending, without the 0 of the constant vector.
    reconstruction_error_ : float
        |Y - WY|_F² / n = Σ μ.
    diagnostics_ : dict
        groups (number of components of the graph without neighbours outside; should be 1), residual
        (the largest |My - μy| for |y| = 1), largest_weight, mean_neighbors, components (of the
        graph), duplicates (points that share the vertex of an equal point).
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.

    Raises
    ------
    ValueError
        Not enough distinct points for the neighbours or coordinates; no neighbours within the
        radius; X not finite.

    Warns
    -----
    DisconnectedWarning
        The graph has several components without neighbours outside: the first coordinates only
        separate these.

    See Also
    --------
    classical.Isomap : Embed by path lengths in a neighbourhood graph.
    classical.LaplacianEigenmap : Embed by the lowest eigenvectors of a graph Laplacian.
    sklearn.manifold.LocallyLinearEmbedding : Locally linear embedding of scikit-learn.

    Notes
    -----
    The cost is the search for neighbours, n systems of k equations, one sparse LU factorisation of
    I - W and some forty solutions with it (SciPy's eigsh). On surfaces the factors have some
    hundred n entries; in more dimensions they have more, at worst n².

    I - W is nearly a graph Laplacian L, so that (I - W)ᵀ(I - W) is nearly L², whose eigenvectors
    are those of `LaplacianEigenmap` (§9.3 of [1]_): on an even curve eigenvalues grow like m⁴.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §7, equations
       (3) and (4).
    .. [2] S. T. Roweis and L. K. Saul, "Nonlinear dimensionality reduction by locally linear
       embedding", Science 290 (2000), 2323-2326.

    Examples
    --------
    >>> import heatsketch as hs, numpy as np
    >>> X, flat = hs.datasets.swiss_roll(1000, rng=0)
    >>> model = hs.classical.LocallyLinearEmbedding(n_components=1, random_state=0).fit(X)
    >>> bool(abs(np.corrcoef(model.embedding_[:, 0], flat[:, 0])[0, 1]) > 0.9)
    True
    """

    _takes_sparse = True

    n_components: int = 2
    _: KW_ONLY
    n_neighbors: int = 12
    radius: float | None = None
    reg: float = 1e-3
    neighbors: Any = None
    metric: str = "euclidean"
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed the points.

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
        reg = self._reg = check_number(self.reg, "reg", low=0, open_low=True)
        X = self._read_points(X, reset=True)
        graph, vertices = self._graph_of(X)
        self._neighborhoods, graph = vertices, off_diagonal(graph)
        k = check_fewer_components(self.n_components, graph.shape[0])
        if graph.nnz == 0:
            raise ValueError(f"No two points are within radius={self.radius}; pass a larger one.")
        W = reconstruction_weights(vertices.points, vertices.points, graph, reg)
        # Points without neighbours have an empty row.
        L = sparse.csr_matrix(sparse.diags_array((np.diff(W.indptr) > 0).astype(float)) - W)
        closed = closed_components(W)
        count = len(closed)
        if count > 1:
            copies = np.bincount(vertices.vertex)
            sizes = sorted((copies[own].sum() for own in closed), reverse=True)
            warn(
                DisconnectedWarning,
                f"The graph has {count} components (sizes {name_rows(sizes)}) without neighbours "
                f"outside: the first {min(k, count - 1)} coordinate(s) only separate these. Raise "
                "n_neighbors or radius to connect them, or embed one component.",
            )
        self.eigenvalues_, vectors = lowest_eigenpairs(L, closed, k, self.random_state)
        residuals = L.T @ (L @ vectors) - vectors * self.eigenvalues_
        self._Y = vectors * np.sqrt(len(vectors))
        self.embedding_ = vertices.spread(self._Y).astype(X.dtype)
        self.reconstruction_error_ = float(self.eigenvalues_.sum())
        self.diagnostics_ = vertices.counts(graph) | {
            "groups": count,
            "residual": float(np.linalg.norm(residuals, axis=0).max()),
            "largest_weight": float(np.abs(W.data).max()),
        }
        return self

    def transform(self, X: Any) -> Array:
        """Embed points, new or old, as y = Σ_j w_j y_j over training neighbours.

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
            Before `fit`; points that are not a finite table of the features of the fit.
        """
        X = self._read_points(X, reset=False)
        vertices = self._neighborhoods
        x = X.astype(np.float64, copy=False)
        W = reconstruction_weights(x, vertices.points, vertices.rows(X), self._reg)
        return np.asarray(W @ self._Y).astype(X.dtype)


def reconstruction_weights(
    x: Points, points: Points, graph: sparse.csr_matrix, reg: float
) -> sparse.csr_matrix:
    """Return the weights (3) of each row of x over its neighbours in points, CSR (m, n).

    x (m, d) and points (n, d) are both dense or both CSR. The stored entries of `graph` (m, n) are
    the neighbours, any number in a row. An empty row stays empty; all others sum to 1. Neighbours
    at distance zero share all the weight. The fraction `reg` of trace(C) is added to the diagonal
    of C if its smallest eigenvalue is less.
    """
    counts = np.diff(graph.indptr)
    weights = np.empty(graph.nnz)
    for count in np.unique(counts[counts > 0]):
        rows = np.flatnonzero(counts == count)
        entries = graph.indptr[rows, None] + np.arange(count)

        def work(tile: slice, rows: Array = rows, entries: Array = entries) -> None:
            columns = graph.indices[entries[tile]]
            Z = x[np.repeat(rows[tile], columns.shape[1])] - points[columns.ravel()]
            if sparse.issparse(Z):
                Z = Z[:, np.unique(Z.indices)].toarray()
            weights[entries[tile]] = _solve(Z.reshape(*columns.shape, -1), reg)

        for_each_tile(work, len(rows), _TILE_POINTS)
    return sparse.csr_matrix((weights, graph.indices, graph.indptr), shape=graph.shape)


def _solve(Z: Array, reg: float) -> Array:
    """Return the weights (m, k) from the differences Z (m, k, d); C is singular where d < k."""
    k, d = Z.shape[1:]
    C = Z @ Z.transpose(0, 2, 1)
    trace = np.trace(C, axis1=1, axis2=2)
    trace = np.where(trace > 0, trace, 1.0)
    singular = d < k or np.linalg.eigvalsh(C)[:, 0] < reg * trace
    C += np.where(singular, reg * trace, 0.0)[:, None, None] * np.eye(k)
    w = np.linalg.solve(C, np.ones((len(C), k, 1)))[:, :, 0]
    copies = (Z == 0).all(axis=2)
    w = np.where(copies.any(axis=1, keepdims=True), copies, w)
    return w / w.sum(axis=1, keepdims=True)


def closed_components(W: sparse.csr_matrix) -> list[Array]:
    """Return the smallest sets of points whose neighbours are all inside, the largest first.

    For each set there is a null vector of I - W that is constant on it and 0 on the others.
    """
    count, label = connected_components(W, connection="strong")
    i, j = W.nonzero()
    closed = np.setdiff1d(np.arange(count), label[i[label[i] != label[j]]])
    members = members_of(label)
    return sorted((members[number] for number in closed), key=len, reverse=True)


def lowest_eigenpairs(
    L: sparse.csr_matrix, closed: list[Array], k: int, random_state: Any
) -> tuple[Array, Array]:
    """Return the k smallest eigenvalues of M = LᵀL, ascending, with vectors (n, k) of mean 0.

    `closed` are the closed components of I - L. Values are Ritz values of L, not of M, so that
    those far below the rounding of M are small, too.
    """
    n = L.shape[0]
    if n <= max(_MAX_DENSE_POINTS, 2 * k + 2):
        V = svd(L.toarray())[2][::-1][: k + 1].T
    else:
        start = np.random.default_rng(seed_entropy(random_state)).standard_normal(n)
        V = _lowest_vectors(L, np.array([points[0] for points in closed]), k + 1, start)
    U = svd(V - V.mean(axis=0), full_matrices=False)[0][:, :k]  # without the constant vector
    _, sigma, R = svd(L @ U, full_matrices=False)
    return sigma[::-1] ** 2, fix_signs(U @ R[::-1].T)


def _lowest_vectors(L: sparse.csr_matrix, pins: Array, k: int, start: Array) -> Array:
    """Return orthonormal vectors (n, k) that span those of the smallest singular values of L.

    L is factored, because its factors have a fraction of the entries of those of M. L has a null
    vector for each pin, a point of each closed component. With 1 added to the diagonal at the pins
    it is regular, and solves L x = y for every y that is orthogonal to the null vectors of Lᵀ. M⁺
    is applied by two solutions, without the null vectors V of L and U of Lᵀ.
    """
    n = L.shape[0]
    pinned = np.full(n, _EPS)  # a further value of 0 would end the factorisation
    pinned[pins] += 1.0
    factors = splu(
        sparse.csc_matrix(L + sparse.diags_array(pinned)),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.01,
        options={"SymmetricMode": True},
    )
    units = sparse.eye_array(n, format="csc")[:, pins[:k]].toarray()
    U, V = orth(factors.solve(units, "T")), orth(factors.solve(units))
    if V.shape[1] == k:
        return V

    def inverse(x: Array) -> Array:
        y = factors.solve(x, "T")
        z = factors.solve(y - U @ (U.T @ y))
        return z - V @ (V.T @ z)

    operator = LinearOperator((n, n), matvec=inverse, dtype=float)
    return np.hstack([V, eigsh(operator, k - V.shape[1], v0=inverse(start))[1]])
