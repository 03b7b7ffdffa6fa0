"""Linear discriminants: scores on the directions in which classes are most separate."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular, svd
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.utils import ClassifierTags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from heatsketch._arrays import Array
from heatsketch._checks import check_n_components, check_number, is_missing, read_labels
from heatsketch._messages import name_rows
from heatsketch.classical._base import Embedding

_EPS = float(np.finfo(float).eps)
_ROUNDING_MARGIN = 4.0  # lengths up to this multiple of the rounding of the data count as zero


class Discriminant(Embedding):
    """Abstract base: scores wᵀ(x - m) of points on directions w that maximise J."""

    shrinkage: float
    classes_: Array

    @abstractmethod
    def _choose(self, W: Array, J: Array, counts: Array) -> Array:
        """Return the directions to keep (d, k) of W (d, r); set further attributes.

        Directions are in standard units of the features, with Wᵀ S_w W = n I, ordered by J (r,),
        descending; counts (c,) are the numbers of points of the classes.
        """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the directions that separate the classes, and score X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points.
        y : array-like of shape (n_samples,)
            Class of each point, numbers or text.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            Invalid points or parameters, listed in the docstring of the class.
        """
        gamma = check_number(self.shrinkage, "shrinkage", low=0, high=1)
        X = self._read(X, reset=True)
        if y is None:
            name = type(self).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None.")
        check_consistent_length(X, y)
        missing = np.flatnonzero([is_missing(value) for value in read_labels(y).tolist()])
        if len(missing):
            raise ValueError(
                f"y has no label in {len(missing)} row(s) ({name_rows(missing)}); leave out these "
                "points."
            )
        encoder = LabelEncoder()
        labels = encoder.fit_transform(y)
        check_classification_targets(y)
        self.classes_ = encoder.classes_
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {self.classes_[0]!r}; pass at least two classes.")
        units = StandardScaler().fit(X.astype(float))
        self.mean_, self._scale = units.mean_, units.scale_  # arrays, for model files
        # The rounding of the entries of Z.
        rounding = float(np.finfo(X.dtype).eps) * np.abs(X).max(axis=0).astype(float) / self._scale
        W, J = _directions((X - self.mean_) / self._scale, labels, gamma, rounding)
        self._W = self._choose(W, J, np.bincount(labels))
        self.components_ = (self._W / self._scale[:, None]).T
        self.diagnostics_ = {"classes": len(self.classes_), "discriminants": len(J)}
        self.embedding_ = self._score(X)
        return self

    def transform(self, X: Any) -> Array:
        """Return the scores of points, new or old.

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
        return self._score(self._read(X, reset=False))

    def _score(self, X: Array) -> Array:
        return (((X - self.mean_) / self._scale) @ self._W).astype(X.dtype)

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


@dataclass(eq=False, repr=False)
class FisherDiscriminant(Discriminant):
    """Project points of two classes on the line that separates the classes most.

    With the means m_1, m_2 of the classes and the sum S_w of their scatters, the maximiser [1]_
    [2]_ of

        J(w) = (wᵀ(m_2 - m_1))² / wᵀ S_w w,  is  w = S_w⁻¹ (m_2 - m_1),  normalised to |w| = 1.

    So the second class has the larger scores; in [1]_ w is minus this. For two classes this is the
    only direction of `MultipleDiscriminant`, which also takes more classes, and whose scores are in
    units of the spread within classes.

    When to use it: for two classes of about the same shape; it gives one number per point that
    separates them, and weights that show the importance of each feature if all have the same unit.
    When not: if the classes have the same mean, so that J is 0.

    Parameters
    ----------
    shrinkage : float in [0, 1], default=0
        Weight γ: S_w is replaced by (1 - γ) S_w + γ diag(S_w + S_b). γ > 0 also allows a singular
        S_w.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, 1)
        Scores wᵀ(x - m), where m is the mean of all points: wᵀx of [1]_ up to a constant.
    components_ : ndarray of shape (1, n_features)
        The direction w.
    mean_ : ndarray of shape (n_features,)
        The mean m of all points.
    objective_ : float
        J(w), with S_b = (m_2 - m_1)(m_2 - m_1)ᵀ and the S_w that `shrinkage` gives.
    classes_ : ndarray of shape (2,)
        The first and the second class, sorted.
    diagnostics_ : dict
        `classes`, the number of classes; `discriminants`, the rank of S_b.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.

    Raises
    ------
    ValueError
        One class, or more than two; class means that coincide; S_w singular in a direction in
        which the classes differ.

    See Also
    --------
    classical.MultipleDiscriminant : Project classes on the directions that separate them most.
    classical.PCA : Project on the directions of largest variance.

    Notes
    -----
    The cost is that of `MultipleDiscriminant`. If features are constant or dependent, w lies in the
    range of the data.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §4, equation
       (1).
    .. [2] R. A. Fisher, "The use of multiple measurements in taxonomic problems", Annals of
       Eugenics 7 (1936), 179-188.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.classical import FisherDiscriminant
    >>> X = np.array([[2, 1], [2, -1], [-2, 1], [-2, -1]])
    >>> fisher = FisherDiscriminant().fit(np.vstack([X, X + [12, 4]]), list("aaaabbbb"))
    >>> fisher.components_.round(12)  # S_w = diag(32, 8), so w ~ (12 / 32, 4 / 8)
    array([[0.6, 0.8]])
    """

    shrinkage: float = 0.0

    def _choose(self, W: Array, J: Array, counts: Array) -> Array:
        if len(counts) > 2:
            raise ValueError(
                f"y has {len(counts)} classes but FisherDiscriminant separates two; use "
                "MultipleDiscriminant."
            )
        self.objective_ = float(J[0] * counts.sum() / counts.prod())
        return W / np.linalg.norm(W / self._scale[:, None])

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn: two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


@dataclass(eq=False, repr=False)
class MultipleDiscriminant(Discriminant):
    """Project points of several classes on the directions that separate the classes most.

    With class means m_i of n_i points each, mean m and [1]_

        S_w = Σ_i Σ_{k in class i} (x_k - m_i)(x_k - m_i)ᵀ,  S_b = Σ_i n_i (m_i - m)(m_i - m)ᵀ,

    the directions are the top eigenvectors of S_b w = λ S_w w: the maximisers of J(w) = wᵀ S_b w /
    wᵀ S_w w = λ. With c classes S_b has at most rank c - 1, so there are at most c - 1 directions.
    The result is independent of the units of the features, and of any other invertible linear map
    of them.

    When to use it: if labels are available and each class is a single cloud of about the same
    shape; it is a good first step before a search of nearest neighbours. When not: without labels
    (see `PCA`); if classes are curved or consist of several clouds, so that means describe them
    badly.

    Parameters
    ----------
    n_components : int, 1 <= k <= c - 1, or None, default=None
        Number of coordinates k; None: the rank of S_b.
    shrinkage : float in [0, 1], default=0
        Weight γ: S_w is replaced by (1 - γ) S_w + γ diag(S_w + S_b). Needed if S_w is singular in a
        direction in which the classes differ, as with more features than points; helpful if there
        are few points for the number of features. With γ > 0 the result is independent of the units
        of the features, but not of other linear maps.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Scores wᵀ(x - m). With shrinkage 0 their covariance within classes is I, so that their
        distances are Mahalanobis distances. Signs: the mean of the last class is above that of the
        first.
    components_ : ndarray of shape (n_components, n_features)
        The rows w: ``embedding_`` is ``(X - mean_) @ components_.T``.
    mean_ : ndarray of shape (n_features,)
        The mean m of all points.
    eigenvalues_ : ndarray of shape (n_components,)
        λ = J(w), descending, with the S_w that `shrinkage` gives.
    explained_ratio_ : ndarray of shape (n_components,)
        Fraction of the sum of all nonzero λ.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    diagnostics_ : dict
        `classes`, the number c; `discriminants`, the rank of S_b.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.

    Raises
    ------
    ValueError
        A single class; class means that coincide; more components than the rank of S_b; S_w
        singular in a direction in which the classes differ, because λ would be infinite.

    See Also
    --------
    classical.FisherDiscriminant : Project two classes on the line that separates them most.
    classical.PCA : Project on the directions of largest variance.
    sklearn.discriminant_analysis.LinearDiscriminantAnalysis : Also classifies points.

    Notes
    -----
    Directions in which the data do not vary beyond rounding (constant or dependent features) are
    removed by a singular value decomposition of the centred data, in units of standard deviation.
    The cost is some 4 n d² operations (n² d if d > n) for n points with d features, and twice the
    data in memory. `sklearn.discriminant_analysis.LinearDiscriminantAnalysis`, which also
    classifies, removes the directions in which S_w is singular, although these separate the classes
    best.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §5.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, label = hs.datasets.gaussian_clouds(500, n_labels=3, dim=5, rng=0)
    >>> hs.classical.MultipleDiscriminant().fit_transform(X, label).shape
    (500, 2)
    """

    n_components: int | None = None
    shrinkage: float = 0.0

    def _choose(self, W: Array, J: Array, counts: Array) -> Array:
        rank = len(J)
        why = f"the means of {len(counts)} classes differ in {rank} direction(s)"
        wanted = rank if self.n_components is None else self.n_components
        k = check_n_components(wanted, rank, why)
        self.eigenvalues_ = J[:k]
        self.explained_ratio_ = J[:k] / J.sum()
        return W[:, :k]


def _directions(Z: Array, labels: Array, gamma: float, rounding: Array) -> tuple[Array, Array]:
    """Solve S_b w = λ S_w w in the range of S_t = S_w + S_b; Z (n, d) in standard units.

    In this range S_t is invertible, and S_b w = ρ S_t w has the same w, with λ = ρ / (1 - ρ). No
    scatter matrix is formed: S_t = Rᵀ R by a QR decomposition of a square root of S_t, and ρ are
    squared singular values.
    """
    n, d = Z.shape

    def limit(W: Array) -> Array:
        """Return a bound on the rounding of all points along W (d, r), with margin."""
        return _ROUNDING_MARGIN * np.sqrt(n) * np.linalg.norm(W * rounding[:, None], axis=0)

    _, sigma, axes = svd(np.linalg.qr(Z, mode="r"), full_matrices=False)
    varies = sigma > limit(axes.T) + _ROUNDING_MARGIN * _EPS * np.sqrt(n + d) * sigma[0]
    if not varies.any():
        raise ValueError("The points of X do not differ beyond rounding; pass points that differ.")
    axes = axes[varies].T
    P = Z @ axes  # (n, r)
    counts = np.bincount(labels)
    means = sparse.csr_matrix((1 / counts[labels], (labels, np.arange(n)))) @ P
    within = np.sqrt(1 - gamma) * (P - means[labels])
    within = np.vstack([within, np.sqrt(gamma * n) * np.eye(P.shape[1])])
    between = np.sqrt(counts)[:, None] * means
    R = np.linalg.qr(np.vstack([within, between]), mode="r")
    _, s, right = svd(solve_triangular(R, between.T, trans="T").T, full_matrices=False)
    C = solve_triangular(R, right.T)  # (r, r or c): |within C|² + |between C|² = 1
    zero = limit(axes @ C) + _ROUNDING_MARGIN * _EPS * np.sqrt(n)
    C, s, zero = C[:, s > zero], s[s > zero], zero[s > zero]
    if not len(s):
        raise ValueError(
            "The means of the classes coincide, so no direction separates them; pass features in "
            "which they differ."
        )
    width = np.linalg.norm(within @ C, axis=0)
    flat = np.count_nonzero(width <= zero)
    if flat:
        raise ValueError(
            f"S_w is singular: in {flat} direction(s) the classes differ and no class varies, so "
            "that J is infinite (more features than points, or a feature that is constant in every "
            "class?); pass shrinkage=0.01 or more."
        )
    signs = np.where((means[-1] - means[0]) @ C < 0, -1.0, 1.0)
    return axes @ (C * (signs * np.sqrt(n) / width)), (s / width) ** 2
