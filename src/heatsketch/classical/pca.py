"""Principal components: coordinates along the directions in which points vary most."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn import decomposition
from sklearn.utils.validation import check_is_fitted

from heatsketch._arrays import Array
from heatsketch._checks import check_n_components, check_points
from heatsketch._random import seed_entropy
from heatsketch._threads import filled
from heatsketch.classical._base import Embedding
from heatsketch.spectral.eigen import fix_signs

_MAX_EXACT_SIZE = 1000  # features, or points, up to which factoring takes no longer than iterating
_MIN_RESOLVED_RATIO = 1e-3  # σ_m / σ_1 below which YᵀY loses digits of the axis
_TALL = 10  # times as many points as features, from which on YᵀY is much cheaper than factors of Y


@dataclass(eq=False, repr=False)
class PCA(Embedding):
    """Project points on the directions in which they vary most.

    With Y the points less their mean [1]_,

        C = Yᵀ Y / n = W Λ Wᵀ,  Y = U Σ Wᵀ,  n Λ = Σ²,  z_m = Y w_m,  m = 1, …, k.

    Among all projections to k dimensions it keeps the most variance and moves points least. It is
    scikit-learn's PCA of Y in float64. Dense points are moved near the origin before anything is
    squared, and factored if directions of little variance are needed, so that neither an offset nor
    the size of other directions costs digits of distances.

    When to use it: as the first method to try; for data near a plane; to remove noisy dimensions
    before a method that compares all points. When not: for curved data, whose distant ends it may
    map to the same place (see `Isomap`, `DiffusionMap`); for features in different units (scale
    them first).

    Parameters
    ----------
    n_components : int or None, 1 <= k <= min(n_samples, n_features), default=2
        Number of coordinates k; None: all min(n_samples, n_features).
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the starting vector of the iteration that is used beyond 1,000 features and points;
        it changes only rounding.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates z, in the units and the precision of X.
    components_ : ndarray of shape (n_components, n_features)
        The rows w_m, orthonormal; the entry of largest modulus of each is positive.
    mean_ : ndarray of shape (n_features,)
        Mean of the points.
    singular_values_ : ndarray of shape (n_components,)
        Singular values σ_m, descending, in the units of X.
    explained_variance_ : ndarray of shape (n_components,)
        Variances σ_m² / (n - 1) = λ_m n / (n - 1), the unbiased estimates, as in scikit-learn.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Fractions σ_m² / Σ σ², with the sum over all σ; 0 if all points coincide.
    diagnostics_ : dict
        `explained_share`, the sum of these ratios.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.

    Raises
    ------
    ValueError
        More components than features or points.

    See Also
    --------
    classical.ClassicalMDS : Embed distances by classical scaling.
    DiffusionMap : Embed data by the leading eigenvectors of the diffusion.
    sklearn.decomposition.PCA : The implementation that this estimator calls.

    Notes
    -----
    With n points and d features, the cost is n d min(n, d) operations if n or d is at most 1,000 or
    all components are wanted (fewest by C, if there are ten times as many points as features);
    otherwise it is some hundred products with Y (ARPACK). A new point costs d k operations. Sparse
    X stays sparse: up to 1,000 features use C, whose directions below 1e-8 of the largest σ are
    rounding; more use ARPACK.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §2.2.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, t = hs.datasets.swiss_roll(500, rng=0)
    >>> hs.classical.PCA().fit_transform(X).shape
    (500, 2)
    """

    _takes_sparse = True

    n_components: int | None = 2
    _: KW_ONLY
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the axes of the points.

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
        X = self._read(X, reset=True)
        n, d = X.shape
        most = min(n, d)
        wanted = most if self.n_components is None else self.n_components
        k = check_n_components(wanted, most, f"X has {n} points of {d} features")
        points, near = X.astype(np.float64), np.zeros(d)
        if not sparse.issparse(X):
            near = points[0].copy()  # near the others, so that an offset costs no digits
            points -= near
        pca = self._axes(points, k)
        self.components_, self.mean_ = fix_signs(pca.components_.T).T, near + pca.mean_
        self.singular_values_ = pca.singular_values_
        self.explained_variance_ = pca.explained_variance_
        self.explained_variance_ratio_ = np.nan_to_num(pca.explained_variance_ratio_)
        self.embedding_ = self._project(X)
        self.diagnostics_ = {"explained_share": float(self.explained_variance_ratio_.sum())}
        return self

    def transform(self, X: Any) -> Array:
        """Project points, new or old: (x - x̄) W.

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
        return self._project(self._read(X, reset=False))

    def inverse_transform(self, Z: Any) -> Array:
        """Return the points with given coordinates: x̄ + Z Wᵀ.

        Parameters
        ----------
        Z : array-like of shape (n_new_samples, n_components)
            Coordinates.

        Returns
        -------
        ndarray of shape (n_new_samples, n_features)
            The points.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; coordinates that are not a finite table of as many columns as
            components.
        """
        check_is_fitted(self)
        Z, k = check_points(Z, "Z", min_rows=1), len(self.components_)
        if Z.shape[1] != k:
            raise ValueError(f"Z has {Z.shape[1]} columns but there are {k} components; pass {k}.")
        return (Z @ self.components_ + self.mean_).astype(Z.dtype)

    def _axes(self, points: Any, k: int) -> Any:
        """Return a fitted PCA of scikit-learn; dense points are overwritten."""
        n, d = points.shape
        thin = sparse.issparse(points)
        iterated = k < min(n, d) and (d if thin else min(n, d)) > _MAX_EXACT_SIZE
        iterated = iterated and (thin or points.any())  # points that coincide: nothing to iterate
        with np.errstate(invalid="ignore"):  # the ratios of points that coincide
            if iterated or thin or n >= _TALL * d:
                solver = "arpack" if iterated else "covariance_eigh"
                seed = seed_entropy(self.random_state)[0]
                pca = decomposition.PCA(k, svd_solver=solver, random_state=seed).fit(points)
                sigma = pca.singular_values_
                if thin or sigma[-1] > _MIN_RESOLVED_RATIO * sigma[0]:
                    return pca
            return decomposition.PCA(k, svd_solver="full", copy=False).fit(points)

    def _project(self, X: Any) -> Array:
        W = self.components_.T
        if sparse.issparse(X):
            Y = X.astype(np.float64) @ W - self.mean_ @ W
        else:
            Y = filled(lambda rows: (X[rows] - self.mean_) @ W, (len(X), W.shape[1]))
        return Y.astype(X.dtype)
