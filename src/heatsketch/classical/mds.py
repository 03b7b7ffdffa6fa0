"""Multidimensional scaling: classical, of landmarks, metric (by stress) and non-metric."""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.isotonic import isotonic_regression
from sklearn.manifold import smacof
from sklearn.preprocessing import KernelCenterer

from heatsketch._arrays import Array
from heatsketch._checks import check_number
from heatsketch._messages import ConvergenceWarning, logger, texts_from, warn
from heatsketch._threads import filled, require_memory
from heatsketch.classical._base import Embedding, check_fewer_components
from heatsketch.classical.pca import PCA
from heatsketch.neighbors.graph import check_indices, choose_landmarks
from heatsketch.neighbors.search import check_distances, check_non_negative, in_metric
from heatsketch.spectral.eigen import ClassicalScaling, classical_scaling, fix_signs

_MAX_STEPS, _SHORTEST_STEP = 300, 1e-9  # of a new point; length relative to its distances


@dataclass(eq=False, repr=False)
class StressScaling(Embedding):
    """Abstract base: coordinates of the least stress, from the start of classical scaling."""

    n_components: int = 2
    metric: str = "euclidean"
    _: KW_ONLY
    max_iter: int = 300
    tol: float = 1e-6

    _bytes_of_pair: ClassVar[float]  # of points, in a fit

    @abstractmethod
    def _lower(self, D: Array, start: Array, max_iter: int, tol: float) -> tuple[Array, bool]:
        """Return coordinates (n, k) of less stress than the start, and whether it falls no more.

        D (n, n) are the distances. Sets `n_iter_`, `stress_` and `diagnostics_`.
        """

    @abstractmethod
    def _targets_of(self, D: Array) -> Array:
        """Return what distances in the embedding should be, for distances (m, n)."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed points, or the distances between them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points. With ``metric="precomputed"`` X holds distances of shape (n_samples, n_samples).
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
        max_iter = check_number(self.max_iter, "max_iter", low=1, integer=True)
        tol = check_number(self.tol, "tol", low=0, open_low=True)
        X = self._read_either(X, reset=True)
        n = len(X)
        k = check_fewer_components(self.n_components, n)
        size = self._bytes_of_pair * n * n
        require_memory(size, f"Distances between {n:,} points", "use LandmarkMDS.")
        self._points = None if self._precomputed else X.copy()  # X may be changed in place later
        D = self._distances(X)
        D = (D + D.T) / 2  # rounding
        np.fill_diagonal(D, 0.0)
        start = classical_scaling(D**2, k).coordinates
        logger.info("%s of %s points", type(self).__name__, f"{n:,}")
        self._Y, settled = self._lower(D, start, max_iter, tol)
        if not settled:
            warn(
                ConvergenceWarning,
                f"The stress still falls after max_iter={max_iter} iterations; raise max_iter or "
                "tol.",
            )
        self.embedding_ = self._Y.astype(X.dtype)
        return self

    def transform(self, X: Any) -> Array:
        """Place points, new or old, among the training points.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new_samples, n_features)
            Points. With ``metric="precomputed"`` X holds the distances to the training points, of
            shape (n_new_samples, n_samples).

        Returns
        -------
        ndarray of shape (n_new_samples, n_components)
            Coordinates of the points.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit, or
            distances to other points.
        """
        X = self._read_either(X, reset=False)

        def place(rows: slice) -> Array:
            D = self._distances(X[rows])
            return placed_by_stress(D, self._targets_of(D), self._Y)

        return filled(place, (len(X), self._Y.shape[1])).astype(X.dtype)

    def _distances(self, X: Array) -> Array:
        """Return the distances of rows of X to the training points, (m, n)."""
        return X.astype(float) if self._points is None else cdist(X, self._points)


def on_principal_axes(Y: Array) -> Array:
    """Return Y (n, k) with its mean at 0 and along its principal axes."""
    U, sizes, _ = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)
    return np.asarray(fix_signs(U) * sizes)


def placed_by_stress(D: Array, targets: Array, Y: Array) -> Array:
    """Place points (m, k) among the Y (n, k), each at a minimum of the stress of its own targets.

    They start from the place of the nearest point by the distances D (m, n), and stay there if that
    distance is zero.
    """
    Z, moving = Y[D.argmin(axis=1)], np.flatnonzero(D.min(axis=1))
    for _ in range(_MAX_STEPS):  # z <- mean of y_j + δ_j (z - y_j) / |z - y_j|, as SMACOF
        z, delta = Z[moving], targets[moving]
        d = cdist(z, Y)
        ratios = np.divide(delta, d, out=np.zeros_like(d), where=d > 0)
        Z[moving] = (ratios.sum(axis=1)[:, None] * z - ratios @ Y) / len(Y)
        moved = np.abs(Z[moving] - z).max(axis=1)
        moving = moving[moved > _SHORTEST_STEP * delta.max(axis=1)]
    return Z


_SPECTRUM_POINTS = 1000  # most points for the whole spectrum


class ProjectiveScaling(Embedding):
    """Abstract base: coordinates from l reference points, or from distances to them."""

    _scaling: ClassicalScaling  # of given distances
    _pca: PCA  # of points

    def transform(self, X: Any) -> Array:
        """Project points, new or old.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new_samples, n_features)
            Points. With ``metric="precomputed"`` X holds the distances to the training points of
            `ClassicalMDS`, of shape (n_new_samples, n_samples), or to the landmarks of
            `LandmarkMDS`, of shape (n_new_samples, n_landmarks).

        Returns
        -------
        ndarray of shape (n_new_samples, n_components)
            Coordinates of the points.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit, or
            distances to other points.
        """
        return self._place(self._read_either(X, reset=False))

    def _scale(self, X: Array, k: int, *, positive_only: bool = False) -> None:
        """Scale the reference points (l, d), or their distances (l, l)."""
        self.diagnostics_ = {"negative_eigenvalues": 0, "negative_share": 0.0}
        if self._precomputed:
            squares = np.square(X, dtype=float)
            stride = -(-len(squares) // _SPECTRUM_POINTS)
            values = eigvalsh(KernelCenterer().fit_transform(-0.5 * squares[::stride, ::stride]))
            negative = values[values < -1e-12 * np.abs(values).max()]  # beyond rounding
            share = float(np.abs(negative).sum() / (np.abs(values).sum() or 1.0))
            self.diagnostics_ = {"negative_eigenvalues": len(negative), "negative_share": share}
            self._scaling = classical_scaling(squares, k, positive_only=positive_only)
            self.eigenvalues_ = self._scaling.values
        else:  # B = Y Yᵀ of the centred points, so that V √Λ = U Σ = Y W
            self._pca = pca = PCA(k).fit(X)
            kept = (fix_signs(pca.embedding_) == pca.embedding_).all(axis=0)
            pca.components_ *= np.where(kept, 1, -1)[:, None]
            self.eigenvalues_ = pca.singular_values_**2

    def _place(self, X: Array) -> Array:
        if not self._precomputed:
            return self._pca.transform(X)
        shape = (len(X), len(self._scaling.values))
        Y = filled(lambda rows: self._scaling.place(np.square(X[rows], dtype=float)), shape)
        return Y.astype(X.dtype)


@texts_from(Embedding)
@dataclass(eq=False, repr=False)
class ClassicalMDS(ProjectiveScaling):
    """Embed points so that Euclidean distances approximate given ones, by projection.

    The squared distances Δ_ij, with row means μ_i and total mean μ, give [1]_

        B_ij = ½ (μ_i + μ_j - Δ_ij - μ),  B = V Λ Vᵀ,  Z = [v_1 √λ_1, …, v_k √λ_k].

    For points, B = Y Yᵀ with Y the centred points, and Z equals the result of `PCA` up to signs; it
    is computed from the singular values of Y, without the distances. If distances are not
    Euclidean, B may have negative eigenvalues; these are left out.

    When to use it: for distances that are given, such as travel times, dissimilarities stated by
    people, or distances between strings. When not: for more than some 15,000 points all distances
    take too much memory, see `LandmarkMDS`; on curved data straight distances mislead, see
    `Isomap`.

    Parameters
    ----------
    n_components : int, 1 <= k < n, default=2
        Number of coordinates k; for points at most the number of features. If B of distances has
        fewer positive eigenvalues, the last coordinates are zero, with a warning.
    metric : str or callable, default="euclidean"
        As in `Embedding`. "precomputed": X holds distances of shape (n_samples, n_samples), not
        squared, symmetric, zero on the diagonal.
    positive_only : bool, default=False
        True: if B of distances has m_+ < k positive eigenvalues, there are d_+ = m_+ coordinates,
        steps 4 and 5 of [1]_, in place of further ones that are zero.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Columns of mean zero, orthogonal, of squared length λ_m; the entry of largest modulus of
        each is positive. With `positive_only` there may be fewer.
    eigenvalues_ : ndarray of shape (n_components,)
        λ_m, descending, in squared units of the distances.
    diagnostics_ : dict
        `negative_eigenvalues`, their number, and `negative_share`, Σ|λ| over them as a fraction of
        Σ|λ| over all: 0 for points. For distances between more than 1,000 points both describe at
        most 1,000 points, evenly spaced in the order of the rows.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.

    Raises
    ------
    MemoryError
        Matrices (n, n) exceed the available memory; use `LandmarkMDS`.
    ValueError
        Distances that are negative, not symmetric, or not zero on the diagonal; too many
        components.

    See Also
    --------
    classical.PCA : Project on the directions of largest variance.
    classical.LandmarkMDS : Embed by distances to a few landmarks.
    classical.MetricMDS : Embed so that squared errors of distances are least.
    classical.Isomap : Embed by path lengths in a neighbourhood graph.

    Notes
    -----
    The cost for points is that of `PCA`. For distances it is 16 n² bytes; n³ operations for the
    eigenpairs of up to 1,500 points, some 50 products with B for more; n k operations for a new
    point. A new point at squared distances δ_j from the n points is placed at y_m = ½ λ_m^-½ Σ_j
    v_m(j) (μ_j - δ_j). This returns training points to their places [2]_, and for Euclidean
    distances it is the projection; far outside the data, digits of δ are lost.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §3.
    .. [2] J. C. Gower, "Adding a point to vector diagrams in multivariate analysis", Biometrika 55
       (1968), 582-585.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.classical import ClassicalMDS
    >>> D = np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]])
    >>> Z = ClassicalMDS(metric="precomputed").fit_transform(D)
    >>> float(np.linalg.norm(Z[1] - Z[2]).round(12))
    5.0
    """

    n_components: int = 2
    metric: str = "euclidean"
    _: KW_ONLY
    positive_only: bool = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed points, or the distances between them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points. With ``metric="precomputed"`` X holds distances of shape (n_samples, n_samples).
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
        n = len(X)
        k = check_fewer_components(self.n_components, n)
        if self._precomputed:  # at the peak two matrices (n, n), beside the given one
            require_memory(16.0 * n * n, f"Distances between {n:,} points", "use LandmarkMDS.")
        logger.info("classical scaling of %s points", f"{n:,}")
        self._scale(X, k, positive_only=self.positive_only)
        self.embedding_ = self._place(X)
        return self


@texts_from(in_metric)
@dataclass(eq=False, repr=False)
class LandmarkMDS(ProjectiveScaling):
    """Embed many points by their distances to a few landmarks, embedded by classical scaling.

    The l landmarks of this method [1]_ [2]_ are embedded by `ClassicalMDS`, with eigenpairs (λ_m,
    v_m) of B and row means μ_j of their squared distances. A point at squared distances δ_j from
    them is placed at

        y_m = ½ λ_m^-½ Σ_j v_m(j) (μ_j - δ_j).

    This is exact if the points lie in k dimensions that the landmarks span. The map depends on the
    landmarks alone, and axes and origin are those of the landmarks. The last step of [2]_, a
    rotation to the principal axes of all points, is left out; `PCA` of the embedding performs it.

    When to use it: for more points than fit in memory with `ClassicalMDS`, or if distances are
    expensive, because n l of them are enough. When not: for Euclidean distances of points, because
    the map is then only the projection on the principal axes of the landmarks (and computed as
    such); `PCA` uses those of all points.

    Parameters
    ----------
    n_components : int, 1 <= k < l, default=2
        Number k of coordinates.
    landmarks : {"maxmin", "random"} or array-like of int of shape (n_landmarks,), default="maxmin"
        "maxmin": after a random first one, always the point farthest from the landmarks chosen so
        far, which covers the data evenly but prefers outliers. "random": points drawn at random.
        Otherwise the indices of rows of X.
    n_landmarks : int, default=200
        Number l of landmarks that the two rules choose; all points if there are fewer. More than k
        + 1 make the result less sensitive to noise.
    metric : {"euclidean", "cosine", "correlation", "precomputed"}, default="euclidean"
        As in `in_metric`. "precomputed": X holds the distances to the landmarks, of shape
        (n_samples, n_landmarks), not squared; `landmarks` are then the indices of the rows of X
        that are the landmarks, in the order of the columns.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the two rules.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates; those of the landmarks have mean zero and orthogonal columns.
    landmarks_ : ndarray of shape (n_landmarks,)
        The indices of the rows of X that are landmarks.
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues λ_m of the landmarks, descending.
    diagnostics_ : dict
        `n_landmarks`; for the landmarks `negative_eigenvalues`, their number, and `negative_share`,
        Σ|λ| over them as a fraction of Σ|λ| over all.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.

    Raises
    ------
    ValueError
        As many components as landmarks, or more; indices out of range or repeated; distances
        between landmarks that are not symmetric or not zero on the diagonal.

    See Also
    --------
    classical.ClassicalMDS : Embed distances by classical scaling.
    classical.LandmarkIsomap : Embed by path lengths to a few landmarks.

    Notes
    -----
    For n points with d features, the cost is n l d operations for "maxmin", and memory for the data
    twice; l d min(l, d) for the scaling, n d k for the coordinates. For distances it is l³ and n l
    k.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §3, last
       remark.
    .. [2] V. de Silva and J. B. Tenenbaum, "Sparse multidimensional scaling using landmark points",
       technical report, Stanford University (2004).

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, t = hs.datasets.swiss_roll(5000, rng=0)
    >>> hs.classical.LandmarkMDS(n_landmarks=50, random_state=0).fit_transform(X).shape
    (5000, 2)
    """

    n_components: int = 2
    landmarks: Any = "maxmin"
    n_landmarks: int = 200
    metric: str = "euclidean"
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose and scale the landmarks, and place all points.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points. With ``metric="precomputed"`` X holds the distances to the landmarks, of shape
            (n_samples, n_landmarks).
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
        X = self._read_either(X, reset=True)
        if self._precomputed and np.shape(self.landmarks) != (X.shape[1],):
            raise ValueError(
                f"X has shape {X.shape} but landmarks {np.shape(self.landmarks)}; with "
                "metric='precomputed' pass the distances to the landmarks, (n, l), and the indices "
                "of their l rows, in the order of the columns."
            )
        if isinstance(self.landmarks, str):
            count = check_number(self.n_landmarks, "n_landmarks", low=2, integer=True)
            points = X.astype(float)
            self.landmarks_ = choose_landmarks(points, self.landmarks, count, self.random_state)
        else:
            self.landmarks_ = check_indices(self.landmarks, len(X))
        landmarks, count = X[self.landmarks_], len(self.landmarks_)
        k = check_fewer_components(self.n_components, count)
        if self._precomputed:
            check_distances(landmarks)
        logger.info("placing %s points by %s landmarks", f"{len(X):,}", f"{count:,}")
        self._scale(landmarks, k)
        self.diagnostics_["n_landmarks"] = count
        self.embedding_ = self._place(X)
        return self

    def _read_either(self, X: Any, reset: bool) -> Any:
        X = self._read(X, reset)
        if self._fit_metric != "precomputed":
            return in_metric(X, self._fit_metric)
        check_non_negative(X)  # distances to the landmarks, so that `fit` checks the rows of these
        return X


@texts_from(Embedding)
@dataclass(eq=False, repr=False)
class MetricMDS(StressScaling):
    """Embed points so that the sum of squared errors of their distances is least.

    SMACOF of scikit-learn [1]_ lowers the raw stress Σ_{i<j} (|y_i - y_j| - δ_ij)². It starts from
    `ClassicalMDS`, so that the result depends on no random numbers and is never worse. For
    the stress of order alone, of Kruskal and of `mdscale` in [2]_, see `NonmetricMDS`.

    When to use it: for given distances whose errors should be measured in their own units;
    `ClassicalMDS` makes errors of squared distances small, which come mostly from the longest ones.
    When not: for more than some 3,000 points; if neighbours matter more than distances.

    Parameters
    ----------
    n_components : int, 1 <= k < n, default=2
        Number k of coordinates.
    metric : str or callable, default="euclidean"
        As in `Embedding`. "precomputed": X holds distances of shape (n_samples, n_samples), not
        squared, symmetric, zero on the diagonal.
    max_iter : int, default=300
        Largest number of iterations of SMACOF.
    tol : float > 0, default=1e-6
        SMACOF ends when the stress falls by less than this fraction of Σ |y_i - y_j|².

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates of mean zero, along principal axes; the entry of largest modulus of each column
        is positive.
    stress_ : float
        Kruskal's stress, √(Σ (|y_i - y_j| - δ_ij)² / Σ |y_i - y_j|²): 0 where all distances are
        kept, .05 good, .2 poor.
    n_iter_ : int
        Number of iterations of SMACOF.
    diagnostics_ : dict
        `stress`, and `classical_stress`, the stress of the start.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.

    Raises
    ------
    MemoryError
        Matrices (n, n) exceed the available memory; use `LandmarkMDS`.
    ValueError
        Distances that are negative, not symmetric, or not zero on the diagonal; too many
        components.

    Warns
    -----
    ConvergenceWarning
        The stress still falls after `max_iter`.

    See Also
    --------
    classical.ClassicalMDS : Embed distances by classical scaling.
    classical.NonmetricMDS : Embed so that the order of distances is kept best.
    classical.Isomap : Embed by path lengths in a neighbourhood graph.

    Notes
    -----
    The cost is n² (k + 10) operations for each iteration, and memory of 48 n² bytes. The minimum
    found is local. New points are placed one by one among the fixed training points, at a minimum
    of their own stress, starting from the place of the nearest one; a training point keeps its
    place.

    References
    ----------
    .. [1] I. Borg and P. J. F. Groenen, *Modern multidimensional scaling*, 2nd edition, Springer
       (2005).
    .. [2] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §6.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.classical import MetricMDS
    >>> D = np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]])
    >>> model = MetricMDS(metric="precomputed").fit(D)
    >>> float(np.linalg.norm(model.embedding_[1] - model.embedding_[2]).round(6))
    5.0
    """

    _bytes_of_pair: ClassVar[float] = 48.0

    def _lower(self, D: Array, start: Array, max_iter: int, tol: float) -> tuple[Array, bool]:
        Y, _, self.n_iter_ = smacof(
            D, init=start, n_init=1, max_iter=max_iter, eps=tol, return_n_iter=True
        )
        Y = on_principal_axes(Y)
        self.stress_ = _stress(Y, D)
        self.diagnostics_ = {"stress": self.stress_, "classical_stress": _stress(start, D)}
        return Y, bool(self.n_iter_ < max_iter)

    def _targets_of(self, D: Array) -> Array:
        return D


def _stress(Y: Array, D: Array) -> float:
    distances = pdist(Y)
    error = distances - squareform(D, checks=False)
    return float(np.linalg.norm(error) / (np.linalg.norm(distances) or 1.0))


_EQUAL = 1e-12  # relative difference of distances that only differ by rounding
_SHORTEST = 1e-12  # distance, relative to the root mean square, that an embedding divides by


@texts_from(Embedding)
@dataclass(eq=False, repr=False)
class NonmetricMDS(StressScaling):
    """Embed points so that the order of their distances is kept best: Kruskal's scaling.

    It lowers Kruskal's stress1 √(Σ (d_ij - d̂_ij)² / Σ d_ij²) [2]_, where d are distances in the
    embedding and the disparities d̂ those numbers closest to d that have the order of the given
    distances δ (isotonic regression; equal δ may have different d̂). So any increasing function of
    δ gives the same embedding, up to scale. Steps are those of SMACOF [3]_ and start from
    `ClassicalMDS`, so that the result depends on no random numbers. This is what `mdscale` does in
    the Isomap of [1]_: pass path lengths with ``metric="precomputed"``.

    When to use it: for dissimilarities of which the order alone is known, such as judgements. When
    not: for distances that are known as numbers, see `MetricMDS` and `ClassicalMDS`; for more than
    some 3,000 points.

    Parameters
    ----------
    n_components : int, 1 <= k < n, default=2
        Number k of coordinates.
    metric : str or callable, default="euclidean"
        As in `Embedding`. "precomputed": X holds distances of shape (n_samples, n_samples),
        symmetric, zero on the diagonal.
    max_iter : int, default=300
        Largest number of steps.
    tol : float > 0, default=1e-6
        The steps end when the stress falls by less than this.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates of mean zero, along principal axes, of the scale at which Σ d² = Σ δ²; the entry
        of largest modulus of each column is positive.
    stress_ : float
        Kruskal's stress1: 0 where the order is kept, .05 good, .2 poor.
    disparities_ : ndarray of shape (n_samples * (n_samples - 1) / 2,)
        d̂ of the pairs, as `scipy.spatial.distance.pdist` orders them.
    n_iter_ : int
        Number of steps.
    diagnostics_ : dict
        `stress`, and `classical_stress`, the stress1 of the start.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.

    Raises
    ------
    MemoryError
        Matrices (n, n) exceed the available memory; use `LandmarkMDS`.
    ValueError
        Distances that are negative, not symmetric, or not zero on the diagonal; too many
        components; distances of more than k + 1 distinct points that are all equal, whose order
        says nothing: any places would have the stress 0.

    Warns
    -----
    ConvergenceWarning
        The stress still falls after `max_iter`.

    See Also
    --------
    classical.MetricMDS : Embed so that squared errors of distances are least.
    classical.ClassicalMDS : Embed distances by classical scaling.
    classical.Isomap : Embed by path lengths in a neighbourhood graph.

    Notes
    -----
    The cost is n² (k + log n) operations for each step, and memory of 64 n² bytes. The minimum
    found is local. A new point is placed at a minimum of the raw stress of its disparities, which
    are read from those of the fit at its distances; a training point keeps its place.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §6, step 3.
    .. [2] J. B. Kruskal, "Nonmetric multidimensional scaling: a numerical method", Psychometrika 29
       (1964), 115-129.
    .. [3] I. Borg and P. J. F. Groenen, *Modern multidimensional scaling*, 2nd edition, Springer
       (2005), chapter 9.

    Examples
    --------
    >>> import heatsketch as hs
    >>> miles, position = hs.datasets.us_cities()
    >>> model = hs.classical.NonmetricMDS(metric="precomputed").fit(miles)
    >>> bool(model.stress_ < 0.01)
    True
    """

    _bytes_of_pair: ClassVar[float] = 64.0

    def _lower(self, D: Array, start: Array, max_iter: int, tol: float) -> tuple[Array, bool]:
        delta = squareform(D, checks=False)
        k, longest = start.shape[1], delta.max()
        far = delta >= _EQUAL * longest  # all if all are 0
        m = connected_components(squareform(~far))[0]
        if m > k + 1 and np.ptp(delta[far]) <= _EQUAL * longest:
            raise ValueError(
                f"All distances of the {m} {'distinct ' * (m < len(D))}points are {longest:.4g}, "
                f"so that their order says nothing of places in {k} dimensions; pass distances "
                f"that differ, or n_components={m - 1}, in which they are kept."
            )
        disparities = Disparities(delta)
        Y, stresses = _lowered(start, disparities, max_iter, tol)
        Y = on_principal_axes(Y)
        d = pdist(Y)
        scale = float(np.linalg.norm(delta) / (np.linalg.norm(d) or 1.0))
        self.disparities_ = disparities(scale * d)
        known, at = np.unique(delta, return_inverse=True)
        targets = np.bincount(at, self.disparities_) / np.bincount(at)
        self._known, self._targets = np.append(0.0, known), np.append(0.0, targets)
        self.n_iter_, self.stress_ = len(stresses) - 1, stresses[-1]
        self.diagnostics_ = {"stress": self.stress_, "classical_stress": stresses[0]}
        settled = self.n_iter_ < max_iter or stresses[-2] - stresses[-1] < tol
        return scale * Y, settled

    def _targets_of(self, D: Array) -> Array:
        """Return the disparities of distances (m, n), beyond the largest known in proportion."""
        last, largest = self._known[-1], self._targets[-1]
        found = np.interp(D, self._known, self._targets)
        return np.where(last < D, D * (largest / (last or 1.0)), found)


class Disparities:
    """The numbers nearest to d (m,) that have the order of delta (m,), ties in any order.

    What does not depend on d is sorted once: only equal numbers are sorted again, by d.
    """

    def __init__(self, delta: Array) -> None:
        self._order = np.argsort(delta, kind="stable")
        known = delta[self._order]
        same = known[1:] == known[:-1]
        self._tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        self._known = known[self._tied]

    def __call__(self, d: Array) -> Array:
        """Return the disparities of d (m,): isotonic regression on the order."""
        order = self._order.copy()
        own = order[self._tied]
        order[self._tied] = own[np.lexsort((d[own], self._known))]
        found = np.empty_like(d)
        found[order] = isotonic_regression(d[order])
        return found


def _lowered(
    Y: Array, disparities: Disparities, max_iter: int, tol: float
) -> tuple[Array, list[float]]:
    """Return Y (n, k) after steps of SMACOF, and stress1 before the first and after each."""
    stresses: list[float] = []
    while True:
        d = pdist(Y)
        wanted = disparities(d)
        stresses.append(float(np.linalg.norm(d - wanted) / (np.linalg.norm(d) or 1.0)))
        falls = len(stresses) < 2 or stresses[-2] - stresses[-1] >= tol
        if not falls or stresses[-1] == 0 or len(stresses) > max_iter:
            return Y, stresses
        shortest = _SHORTEST * np.sqrt(np.mean(np.square(d)))
        ratios = squareform(np.divide(wanted, d, out=np.zeros_like(d), where=d > shortest))
        Y = (ratios.sum(axis=1)[:, None] * Y - ratios @ Y) / len(Y)  # Guttman's transform
        # A larger scale of d̂ does not change stress1, and keeps the points from shrinking.
        Y *= np.linalg.norm(d) / (np.linalg.norm(wanted) or 1.0)
