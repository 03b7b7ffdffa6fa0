"""Locally linear embedding: each point is the same combination of its neighbours as in the data."""

import warnings
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.linalg import svd
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh, splu
from sklearn.utils.validation import check_is_fitted

from heatsketch._checks import DisconnectedWarning, check_number, name_rows
from heatsketch._random import seed_entropy
from heatsketch._tiles import for_each_tile, single_threaded_blas
from heatsketch._typing import Array, Points
from heatsketch.classical._base import Embedding
from heatsketch.graphs.neighborhoods import off_diagonal
from heatsketch.spectral.eigenpairs import fix_signs

_TILE_COORDINATES = 2**20  # of neighbours that are gathered at a time: 8 MB
_EPS = float(np.finfo(float).eps)
_MAX_DENSE_POINTS = 500  # up to which LAPACK takes no longer than iterating


class LocallyLinearEmbedding(Embedding):
    """Embed points so that each is the same combination of its neighbours as in the data.

    *Linear and nonlinear dimensionality reduction*, §7 (Roweis and Saul 2000):

    1. the neighbours of each point are the k nearest other points (or all within ε);
    2. weights w of point i minimise |x_i - Σ_j w_j x_j|² with Σ_j w_j = 1, (3): w ∝ C⁻¹1,
       C = ZᵀZ, the columns of Z being x_i - x_j. Where C is singular, `reg` trace(C) is added to
       its diagonal;
    3. Y minimises |Y - WY|_F² with mean 0 and YᵀY/n = I, (4): eigenvectors 2 to d + 1 of
       M = (I - W)ᵀ(I - W), in ascending order of eigenvalues.

    A new point is embedded as the combination of its neighbours among the training points. A
    training point is its own neighbour at distance zero, with all the weight, so that `transform`
    returns its place in `embedding_`.

    When to use it: for data on a smooth surface that is sampled evenly and densely. When not: where
    lengths matter, because every coordinate has variance 1 whatever the shape of the surface (see
    `Isomap`); for data in clusters, where the first coordinates only separate a few points from the
    rest (the eigenvalues then differ by orders of magnitude); for noise as large as the
    neighbourhoods.

    Parameters
    ----------
    n_components : int >= 1, default 2
        Number of coordinates d.
    n_neighbors : int >= 1, default 12
        k; more than d are needed, but few enough that each neighbourhood is nearly flat.
    radius : float > 0, optional
        ε, in the units of X: all other points within ε are neighbours, whatever their number.
    reg : float >= 0, default 1e-3
        Share of trace(C) that is added to the diagonal of C where the smallest eigenvalue of C is
        less than this: everywhere if k exceeds the number of features, as in the notes, and where
        neighbours lie in a plane of fewer dimensions. 0: among all weights that reconstruct the
        point equally well, those with the smallest sum of squares.
    neighbors : None, NeighborIndex, transformer or CSR matrix (n, n), optional
        Search, or graph, that supplies the neighbours (see `HeatSketch`); by
        default a search that suits the data.
    metric : "euclidean", "cosine" or "correlation", default "euclidean"
        The distance of points, as in `HeatSketch`; the weights then reconstruct directions.
    tol : float >= 0, default 0
        Relative accuracy of the eigenvalues of M⁻¹ for more than 500 points; 0: rounding.
    random_state : int, RandomState or None
        Seed of the first step; up to `tol` it changes only rotations among eigenvectors of equal
        eigenvalues.

    Attributes
    ----------
    embedding_ : array (n, n_components)
        Mean 0 and covariance I (equal points count as one), in the precision of X; the entry of
        largest modulus of each column is positive.
    eigenvalues_ : array (n_components,)
        μ of M, ascending, without the 0 of the constant vector.
    reconstruction_error_ : float
        |Y - WY|_F² / n = Σ μ.
    diagnostics_ : dict
        groups (number of components of the graph without neighbours outside; should be 1), residual
        (the largest |My - μy| for |y| = 1), largest_weight, mean_neighbors, duplicates (points that
        share the vertex of an equal point).
    n_features_in_, feature_names_in_ : as in scikit-learn

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

    Notes
    -----
    Cost: that of the neighbours, n decompositions of k × min(k, D) numbers, one sparse LU
    factorisation of M and some twenty solutions with it (SciPy's eigsh). On surfaces the factors
    have some hundred n entries; for data of more dimensions they have more, at worst n².

    Examples
    --------
    >>> import heatsketch as hs, numpy as np
    >>> X, flat = hs.datasets.swiss_roll(1000, rng=0)
    >>> model = hs.classical.LocallyLinearEmbedding(n_components=1, random_state=0).fit(X)
    >>> bool(abs(np.corrcoef(model.embedding_[:, 0], flat[:, 0])[0, 1]) > 0.9)
    True
    """

    _takes_sparse = True

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 12,
        radius: float | None = None,
        reg: float = 1e-3,
        neighbors: Any = None,
        metric: str = "euclidean",
        tol: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.reg = reg
        self.neighbors = neighbors
        self.metric = metric
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed the points X, array, DataFrame or sparse matrix (n, d).

        Raises
        ------
        ValueError, TypeError
            Bad points or parameters; the class says which.
        """
        k = check_number(self.n_components, "n_components", low=1, integer=True)
        reg = check_number(self.reg, "reg", low=0)
        tol = check_number(self.tol, "tol", low=0)
        X = self._read_points(X, reset=True)
        graph, found = self._graph_of(X)
        self._neighborhoods, graph = found, off_diagonal(graph)
        n = found.n
        _check_sizes(k, graph, self.radius)
        W = reconstruction_weights(found.points, found.points, graph, reg)
        L = _residual_operator(W)
        sizes = closed_components(W)
        _warn_of_components(sizes, k)
        with single_threaded_blas():  # the same bits for any number of threads
            self.eigenvalues_, vectors = lowest_eigenpairs(L, k, tol, self.random_state)
        residuals = L.T @ (L @ vectors) - vectors * self.eigenvalues_
        self._Y = vectors * np.sqrt(n)
        self.embedding_ = found.spread(self._Y).astype(X.dtype)
        self.reconstruction_error_ = float(self.eigenvalues_.sum())
        self.diagnostics_ = found.counts(graph) | {
            "groups": len(sizes),
            "residual": float(np.linalg.norm(residuals, axis=0).max()),
            "largest_weight": float(np.abs(W.data).max()),
        }
        return self

    def transform(self, X: Any) -> Array:
        """Embed points (m, d), new or old, as y = Σ_j w_j y_j over training neighbours, (m, k).

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit.
        """
        check_is_fitted(self)
        X = self._read_points(X, reset=False)
        found = self._neighborhoods
        W = reconstruction_weights(found.frame(X), found.points, found.rows(X), self.reg)
        return np.asarray(W @ self._Y).astype(X.dtype)


def reconstruction_weights(
    x: Points, points: Points, graph: sparse.csr_matrix, reg: float
) -> sparse.csr_matrix:
    """Return the weights (3) of each row of x over its neighbours in points, CSR (m, n).

    For x (m, d) and points (n, d), both dense or CSR. The stored entries of `graph` (m, n) are the
    neighbours, any number in a row; an empty row stays empty, all others sum to 1. Neighbours at
    distance zero share all the weight. The share `reg` of trace(C) is added to the diagonal of C
    where its smallest eigenvalue is less. Cost: m decompositions of k × min(k, d) numbers: 12
    microseconds each for k = 12 in 3 dimensions, 70 in 784.
    """
    counts = np.diff(graph.indptr)
    weights = np.empty(graph.nnz)
    for count in np.unique(counts[counts > 0]):
        rows = np.flatnonzero(counts == count)
        entries = graph.indptr[rows, None] + np.arange(count)

        def work(tile: slice, rows: Array = rows, entries: Array = entries) -> None:
            own = entries[tile]
            weights[own] = _solve(_differences(x, points, rows[tile], graph.indices[own]), reg)

        for_each_tile(work, len(rows), max(1, _TILE_COORDINATES // (int(count) * _width(points))))
    return sparse.csr_matrix((weights, graph.indices, graph.indptr), shape=graph.shape)


def _width(points: Points) -> int:
    """Return the number of coordinates of a point, for sparse points about that of nonzero ones."""
    if sparse.issparse(points):
        return min(points.shape[1], 4 * (1 + points.nnz // points.shape[0]))
    return points.shape[1]


def _differences(x: Points, points: Points, rows: Array, columns: Array) -> Array:
    """Return x_i - x_j (m, k, d) for each row i and its neighbours j, columns (m, k)."""
    m, k = columns.shape
    if not sparse.issparse(points):
        return x[rows][:, None, :] - points[columns]
    own, others = x[rows], points[columns.ravel()]
    used = np.union1d(own.indices, others.indices)
    return own[:, used].toarray()[:, None, :] - others[:, used].toarray().reshape(m, k, -1)


def _solve(Z: Array, reg: float) -> Array:
    """Return the weights (m, k) from the differences Z (m, k, d), through ZZᵀ = V diag(s) Vᵀ.

    (V diag(s) Vᵀ + r I)⁻¹ 1 = V (Vᵀ1 / (s + r)) + (1 - VVᵀ1) / r. In place of r = 0 the smallest r
    of effect is used: the second term, unless it is rounding, then dominates, as in the limit.
    """
    k, d = Z.shape[1:]
    largest = np.abs(Z).max(axis=(1, 2), initial=0.0, keepdims=True)
    Z = Z / np.where(largest > 0, largest, 1.0)
    trace = np.einsum("mkd,mkd->m", Z, Z)[:, None]
    rounding = k * _EPS
    if d < k:
        V, s, _ = np.linalg.svd(Z, full_matrices=False)
        s = s**2
    else:
        s, V = np.linalg.eigh(Z @ Z.transpose(0, 2, 1))
        s = np.maximum(s, 0.0)
    singular = (d < k) | (s.min(axis=1, initial=np.inf, keepdims=True) < reg * trace)
    r = np.maximum(np.where(singular, reg, 0.0), rounding) * np.maximum(trace, _EPS)
    share = V.sum(axis=1)  # Vᵀ1
    share[np.abs(share) < 8 * rounding] = 0.0
    rest = 1.0 - np.einsum("mkr,mr->mk", V, share)
    rest[np.abs(rest) < 8 * rounding] = 0.0
    w = np.einsum("mkr,mr->mk", V, share / (s + r)) + rest / r
    copies = (Z == 0).all(axis=2)
    w = np.where(copies.any(axis=1, keepdims=True), copies, w)
    return w / w.sum(axis=1, keepdims=True)


def _residual_operator(W: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return I - W, with an empty row for each point without neighbours."""
    diagonal = (np.diff(W.indptr) > 0).astype(float)
    return sparse.csr_matrix(sparse.diags_array(diagonal) - W)


def _check_sizes(k: int, graph: sparse.csr_matrix, radius: float | None) -> None:
    n = graph.shape[0]
    if k >= n:
        raise ValueError(
            f"n_components={k} but X has {n} distinct points; pass n_components <= {n - 1}."
        )
    if graph.nnz == 0:
        raise ValueError(f"No two points are within radius={radius}; pass a larger one.")


def closed_components(W: sparse.csr_matrix) -> Array:
    """Return the sizes of the sets of points that no neighbour leads out of, the largest first."""
    count, label = connected_components(W, connection="strong")
    i, j = W.nonzero()
    closed = np.ones(count, bool)
    closed[label[i[label[i] != label[j]]]] = False
    return -np.sort(-np.bincount(label)[closed])


def lowest_eigenpairs(
    L: sparse.csr_matrix, k: int, tol: float, random_state: Any
) -> tuple[Array, Array]:
    """Return the k smallest eigenvalues of M = LᵀL, ascending, with vectors (n, k) of mean 0.

    They are Ritz values of L, not of M, so that those far below the rounding of M are small, too.
    """
    n = L.shape[0]
    if n <= max(_MAX_DENSE_POINTS, 2 * k + 2):
        V = svd(L.toarray())[2][::-1][: k + 1].T
    else:
        M = sparse.csc_matrix(L.T @ L)
        shift = _EPS * float(M.diagonal().max())  # M is singular: M 1 = 0
        factors = splu(
            M + shift * sparse.identity(n, format="csc"),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        inverse = LinearOperator((n, n), matvec=factors.solve, dtype=float)
        start = np.random.default_rng(seed_entropy(random_state)).standard_normal(n)
        _, V = eigsh(M, k + 1, sigma=-shift, OPinv=inverse, v0=start, tol=tol)
    U = svd(V - V.mean(axis=0), full_matrices=False)[0][:, :k]  # without the constant vector
    _, sigma, R = svd(L @ U, full_matrices=False)
    return sigma[::-1] ** 2, fix_signs(U @ R[::-1].T)


def _warn_of_components(sizes: Array, k: int) -> None:
    count = len(sizes)
    if count > 1:
        warnings.warn(
            f"The graph has {count} components (sizes {name_rows(sizes)}) without neighbours "
            f"outside: the first {min(k, count - 1)} coordinate(s) only separate these. Raise "
            "n_neighbors or radius to connect them, or embed one component.",
            DisconnectedWarning,
            stacklevel=3,
        )
