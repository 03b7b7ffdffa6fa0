"""Linear discriminants: the directions in which classes lie apart most, for how wide they are."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular, svd
from sklearn.utils import ClassifierTags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from heatsketch._array import filled, single_threaded_blas
from heatsketch._checks import check_number, name_rows, refuse_masked
from heatsketch._typing import Array
from heatsketch.classical._base import Embedding

_EPS = float(np.finfo(float).eps)
_MARGIN = 4.0  # times the rounding of the data, beyond which something is not zero
_CENTRE_ROWS = 1000  # about so many rows say where a feature has its middle


@dataclass(frozen=True, eq=False)
class _Units:
    """Features of mean 0 and variance 1, whatever their scales and offsets.

    Attributes
    ----------
    shift : array (d,)
        An entry of each feature near its median: taking it off keeps the digits of the rest.
    scale : array (d,)
        Standard deviations; 1 for constant features.
    mean : array (d,)
        After shift and scale.
    rounding : array (d,)
        Of an entry, after shift and scale.
    """

    shift: Array
    scale: Array
    mean: Array
    rounding: Array

    @classmethod
    def of(cls, X: Array) -> _Units:
        sample = np.asarray(X[:: max(1, len(X) // _CENTRE_ROWS)], dtype=float)
        shift = np.quantile(sample, 0.5, axis=0, method="lower")
        low, high = X.min(axis=0).astype(float), X.max(axis=0).astype(float)
        with np.errstate(over="ignore"):
            spread = np.maximum(high - shift, shift - low)
        if not np.isfinite(spread).all():
            raise ValueError(
                f"Feature(s) {name_rows(np.flatnonzero(np.isinf(spread)))} range further than "
                "float64 does; divide them by a constant."
            )
        spread[spread == 0] = 1.0
        Z = (X - shift) / spread
        deviation = Z.std(axis=0)
        constant = deviation == 0
        deviation[constant] = 1.0
        scale = spread * deviation
        size = np.where(constant, 0.0, np.maximum(high, -low))
        rounding = float(np.finfo(X.dtype).eps) * (size / scale)
        return cls(shift, scale, Z.mean(axis=0) / deviation, rounding)

    def __call__(self, X: Array) -> Array:
        return (X - self.shift) / self.scale - self.mean


@dataclass(frozen=True, eq=False)
class _Directions:
    """Directions w as columns of W (d, r), in `_Units`, J(w) descending.

    Attributes
    ----------
    W : array (d, r)
        Wᵀ S_w W = n I.
    J : array (r,)
        wᵀ S_b w / wᵀ S_w w.
    counts : array (c,)
        Points of each class.
    """

    W: Array
    J: Array
    counts: Array


class _Discriminant(Embedding):
    """Abstract base: scores wᵀ(x - m) of points on directions w that maximise J."""

    shrinkage: float
    classes_: Array

    @abstractmethod
    def _choose(self, found: _Directions) -> Array:
        """Return the directions to keep (d, k), in `_Units`, and set what a subclass has to say."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the directions in which classes lie apart, and score X on them.

        Parameters
        ----------
        X : array or DataFrame (n, d)
        y : array (n,)
            Labels of the classes: numbers or text.

        Returns
        -------
        self
        """
        gamma = check_number(self.shrinkage, "shrinkage", low=0, high=1)
        X = self._read(X, reset=True)
        self.classes_, labels = self._read_labels(y, X)
        self._units = _Units.of(X)
        with single_threaded_blas():  # the same bits for any number of threads
            found = _directions(self._units(X), labels, gamma, self._units.rounding)
        self._W = self._choose(found)
        self.components_ = (self._W / self._units.scale[:, None]).T
        self.mean_ = self._units.shift + self._units.scale * self._units.mean
        self.diagnostics_ = {"classes": len(self.classes_), "discriminants": len(found.J)}
        self.embedding_ = self._score(X)
        return self

    def transform(self, X: Any) -> Array:
        """Return the scores of points, new or old.

        Parameters
        ----------
        X : array or DataFrame (m, d)

        Returns
        -------
        array (m, k)
        """
        check_is_fitted(self)
        return self._score(self._read(X, reset=False))

    def _score(self, X: Array) -> Array:
        shape = (len(X), self._W.shape[1])
        return filled(lambda rows: self._units(X[rows]) @ self._W, shape).astype(X.dtype)

    def _read_labels(self, y: Any, X: Array) -> tuple[Array, Array]:
        """Return the classes, sorted, and the number of that of each point (n,), or raise."""
        name = type(self).__name__
        if y is None:
            raise ValueError(
                f"{name} requires y to be passed, but the target y is None; pass labels (n,)."
            )
        refuse_masked(y, "y")
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        try:
            check_classification_targets(y)
            classes, labels = np.unique(y, return_inverse=True)
        except TypeError as error:
            raise ValueError(
                "y has labels that are missing, or of several types; pass labels (n,) of one type."
            ) from error
        if len(classes) < 2:
            raise ValueError(f"y has one class, {classes[0]!r}; {name} tells two or more apart.")
        return classes, labels

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class MultipleDiscriminant(_Discriminant):
    """Project points of several classes to where the classes lie apart most.

    *Linear and nonlinear dimensionality reduction*, §5: with class means m_i of n_i points each,
    mean m and

        S_w = Σ_i Σ_{k in class i} (x_k - m_i)(x_k - m_i)ᵀ,  S_b = Σ_i n_i (m_i - m)(m_i - m)ᵀ,

    the directions are the top eigenvectors of S_b w = λ S_w w: the maximisers of
    J(w) = wᵀ S_b w / wᵀ S_w w = λ. S_b has at most rank c - 1 with c classes, so there are no more.
    Units of the features do not matter, nor does any other invertible linear map of them.

    When to use it: labels are there, and classes are single clouds of about the same shape; it is a
    good first step before nearest neighbours. When not: labels are what is to be found (`PCA`);
    classes are curved, or of several clouds, whose means say little.

    Parameters
    ----------
    n_components : int, 1 <= k <= c - 1, or None, default None
        Coordinates k; None: as many as S_b has rank.
    shrinkage : float in [0, 1], default 0
        γ: (1 - γ) S_w + γ diag(S_w + S_b) stands for S_w. Needed where S_w is singular though the
        classes differ, as with more features than points, and helpful where points are few for the
        number of features. With γ > 0 features are weighed by their units of standard deviation.

    Attributes
    ----------
    embedding_ : array (n, k)
        Scores wᵀ(x - m). Their covariance within classes is I, so that their distances are
        Mahalanobis distances; the last class has the mean above the first one's.
    components_ : array (k, d)
        w as rows: ``embedding_`` is ``(X - mean_) @ components_.T``.
    mean_ : array (d,)
        m.
    eigenvalues_ : array (k,)
        λ = J(w), descending.
    explained_ratio_ : array (k,)
        λ as a share of the sum over all of S_b's rank.
    classes_ : array (c,)
    diagnostics_ : dict
        `classes` c; `discriminants`, the rank of S_b.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    ValueError
        One class only; class means that coincide; more components than S_b has rank; S_w singular
        in a direction in which the classes differ, where λ would be infinite.

    Notes
    -----
    Directions in which the data do not vary beyond rounding (constant or dependent features) are
    left out by a singular value decomposition of the centred data, in units of standard deviation.
    Cost: some 4 n d² operations (n² d where d > n); twice the data in memory.
    `sklearn.discriminant_analysis.LinearDiscriminantAnalysis`, which classifies too, leaves out
    those in which S_w is singular: the very ones that tell the classes apart best.

    Examples
    --------
    >>> import heatsketch as hs
    >>> from heatsketch.classical import MultipleDiscriminant
    >>> X, label = hs.datasets.gaussian_clouds(500, n_labels=3, dim=5, rng=0)
    >>> MultipleDiscriminant().fit_transform(X, label).shape
    (500, 2)
    """

    def __init__(self, n_components: int | None = None, shrinkage: float = 0.0) -> None:
        self.n_components = n_components
        self.shrinkage = shrinkage

    def _choose(self, found: _Directions) -> Array:
        rank = len(found.J)
        k = rank
        if self.n_components is not None:
            k = check_number(self.n_components, "n_components", low=1, integer=True)
        if k > rank:
            raise ValueError(
                f"n_components={k} but the means of {len(self.classes_)} classes differ in {rank} "
                f"direction(s); pass n_components <= {rank}."
            )
        self.eigenvalues_ = found.J[:k]
        self.explained_ratio_ = found.J[:k] / found.J.sum()
        return found.W[:, :k]


class FisherDiscriminant(_Discriminant):
    """Project points of two classes to the line on which the classes lie apart most.

    *Linear and nonlinear dimensionality reduction*, §4: with the means m_1, m_2 of the classes and
    the sum S_w of their scatters, the maximiser of (1),

        J(w) = (wᵀ(m_1 - m_2))² / wᵀ S_w w,  is  w = S_w⁻¹ (m_1 - m_2),  normalised to |w| = 1.

    The sign is such that the second class lies above. For more classes, and for scores in units of
    the spread within classes, see `MultipleDiscriminant`, whose only direction this is.

    When to use it: two classes of about the same shape; one number a point that tells them apart,
    and weights of the features that can be read if their units agree. When not: classes of the
    same mean, which J does not see.

    Parameters
    ----------
    shrinkage : float in [0, 1], default 0
        γ: (1 - γ) S_w + γ diag(S_w + S_b) stands for S_w, as in `MultipleDiscriminant`.

    Attributes
    ----------
    embedding_ : array (n, 1)
        Scores wᵀ(x - m), m the mean of all points: the notes' wᵀx but for a constant.
    components_ : array (1, d)
        w.
    mean_ : array (d,)
        m.
    objective_ : float
        J(w), with S_b = (m_1 - m_2)(m_1 - m_2)ᵀ.
    classes_ : array (2,)
        Sorted: the first and the second class.
    diagnostics_, n_features_in_, feature_names_in_
        As in `MultipleDiscriminant`.

    Raises
    ------
    ValueError
        Another number of classes than two; class means that coincide; S_w singular in a direction
        in which the classes differ.

    Notes
    -----
    Cost: as of `MultipleDiscriminant`, and where features are constant or dependent w has no part
    in what they leave open.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.classical import FisherDiscriminant
    >>> X = np.array([[2, 1], [2, -1], [-2, 1], [-2, -1]])
    >>> fisher = FisherDiscriminant().fit(np.vstack([X, X + [12, 4]]), list("aaaabbbb"))
    >>> fisher.components_.round(12)  # S_w = diag(32, 8), so w ~ (12 / 32, 4 / 8)
    array([[0.6, 0.8]])
    """

    def __init__(self, shrinkage: float = 0.0) -> None:
        self.shrinkage = shrinkage

    def _read_labels(self, y: Any, X: Array) -> tuple[Array, Array]:
        classes, labels = super()._read_labels(y, X)
        if len(classes) > 2:
            raise ValueError(
                f"y has {len(classes)} classes but FisherDiscriminant tells two apart; use "
                "MultipleDiscriminant."
            )
        return classes, labels

    def _choose(self, found: _Directions) -> Array:
        n_1, n_2 = found.counts
        self.objective_ = float(found.J[0] * (n_1 + n_2) / (n_1 * n_2))
        w = found.W / self._units.scale[:, None]
        largest = np.abs(w).max()  # squares must not overflow
        return found.W / (largest * np.linalg.norm(w / largest))

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn: two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


def _directions(Z: Array, labels: Array, gamma: float, rounding: Array) -> _Directions:
    """Solve S_b w = λ S_w w in the range of S_t = S_w + S_b; Z (n, d) in `_Units`.

    There S_t has an inverse, and S_b w = ρ S_t w has the same w, with λ = ρ / (1 - ρ). No scatter
    matrix is formed: S_t = Rᵀ R by a QR decomposition of its root, ρ are squared singular values.
    """
    n = len(Z)
    axes = _range(Z, rounding)
    P = Z @ axes  # (n, r)
    counts = np.bincount(labels)
    means = sparse.csr_matrix((1 / counts[labels], (labels, np.arange(n)))) @ P
    P -= means[labels]
    within = np.vstack([np.sqrt(1 - gamma) * P, np.sqrt(gamma * n) * np.eye(P.shape[1])])
    between = np.sqrt(counts)[:, None] * means
    R = np.linalg.qr(np.vstack([within, between]), mode="r")
    _, s, right = svd(solve_triangular(R, between.T, trans="T").T, full_matrices=False)
    C = solve_triangular(R, right.T)  # (r, r or c): |within C|² + |between C|² = 1
    limit = _limit(axes @ C, rounding, n) + _MARGIN * _EPS * np.sqrt(n)
    apart = s > limit
    if not apart.any():
        raise ValueError(
            "The means of the classes coincide, so no direction tells them apart; pass features "
            "in which they differ."
        )
    C = C[:, apart]
    a = np.linalg.norm(within @ C, axis=0)
    if (a <= limit[apart]).any():
        raise ValueError(
            f"S_w is singular: in {np.count_nonzero(a <= limit[apart])} direction(s) the classes "
            "differ and no class varies, so that J is infinite (more features than points, or a "
            "feature that is constant in every class?); pass shrinkage=0.01 or more."
        )
    upward = np.where((means[-1] - means[0]) @ C < 0, -1.0, 1.0)
    return _Directions(axes @ (C * (upward * np.sqrt(n) / a)), (s[apart] / a) ** 2, counts)


def _range(Z: Array, rounding: Array) -> Array:
    """Return orthonormal directions (d, r) in which Z varies by more than rounding, or raise."""
    n, d = Z.shape
    _, size, axes = svd(np.linalg.qr(Z, mode="r"), full_matrices=False)
    limit = _limit(axes.T, rounding, n) + _MARGIN * _EPS * np.sqrt(n + d) * size[0]
    varies = size > limit
    if not varies.any():
        raise ValueError("The points of X do not differ beyond rounding; pass points that differ.")
    return axes[varies].T


def _limit(W: Array, rounding: Array, n: int) -> Array:
    """Return what rounding of n points can add up to along directions W (d, r), with a margin."""
    return _MARGIN * np.sqrt(n) * np.linalg.norm(W * rounding[:, None], axis=0)
