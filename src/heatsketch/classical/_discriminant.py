"""What the linear discriminants share: directions that separate classes, and scores on them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular, svd
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from heatsketch._checks import check_number, refuse_masked
from heatsketch._tiles import filled, single_threaded_blas
from heatsketch._typing import Array
from heatsketch.classical._base import Embedding

_EPS = float(np.finfo(float).eps)
_ROUNDING_MARGIN = 4.0  # a length counts as zero up to this multiple of the rounding of the data


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions w in standard units of the features, in descending order of J(w)."""

    W: Array  # (d, r), directions in columns: Wᵀ S_w W = n I
    J: Array  # (r,), wᵀ S_b w / wᵀ S_w w
    counts: Array  # (c,), number of points of each class


class Discriminant(Embedding):
    """Abstract base: scores wᵀ(x - m) of points on directions w that maximise J."""

    shrinkage: float
    classes_: Array

    @abstractmethod
    def _choose(self, found: Directions) -> Array:
        """Return the directions to keep (d, k) in standard units; set further attributes."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the directions that separate the classes y (n,), numbers or text, and score X.

        Raises
        ------
        ValueError, TypeError
            Bad points or parameters; the class says which.
        """
        gamma = check_number(self.shrinkage, "shrinkage", low=0, high=1)
        X = self._read(X, reset=True)
        self.classes_, labels = self._read_labels(y, X)
        Z = self._standardize(X)
        sizes = np.abs(X).max(axis=0).astype(float)
        rounding = float(np.finfo(X.dtype).eps) * sizes / self._scale  # of the entries of Z
        with single_threaded_blas():  # the same bits for any number of threads
            found = _directions(Z, labels, gamma, rounding)
        self._W = self._choose(found)
        self.components_ = (self._W / self._scale[:, None]).T
        self.mean_ = self._shift + self._mean
        self.diagnostics_ = {"classes": len(self.classes_), "discriminants": len(found.J)}
        self.embedding_ = self._score(X)
        return self

    def transform(self, X: Any) -> Array:
        """Return the scores (m, k) of points (m, d), new or old.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit.
        """
        check_is_fitted(self)
        return self._score(self._read(X, reset=False))

    def _standardize(self, X: Array) -> Array:
        """Choose units in which features have mean 0 and variance 1; return the points in them."""
        self._shift = X[0].astype(float)  # near the others: an offset costs no digits
        Z = X - self._shift
        self._mean = Z.mean(axis=0)
        self._scale = Z.std(axis=0)
        self._scale[self._scale == 0] = 1.0
        return (Z - self._mean) / self._scale

    def _score(self, X: Array) -> Array:
        def work(rows: slice) -> Array:
            return ((X[rows] - self._shift - self._mean) / self._scale) @ self._W

        return filled(work, (len(X), self._W.shape[1])).astype(X.dtype)

    def _read_labels(self, y: Any, X: Array) -> tuple[Array, Array]:
        """Return the classes, sorted, and the class index of each point (n,), or raise."""
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
                "y has missing labels, or labels of several types; pass labels (n,) of one type."
            ) from error
        if len(classes) < 2:
            raise ValueError(f"y has one class, {classes[0]!r}; pass at least two classes.")
        return classes, labels

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _directions(Z: Array, labels: Array, gamma: float, rounding: Array) -> Directions:
    """Solve S_b w = λ S_w w in the range of S_t = S_w + S_b; Z (n, d) in standard units.

    In this range S_t is invertible, and S_b w = ρ S_t w has the same w, with λ = ρ / (1 - ρ). No
    scatter matrix is formed: S_t = Rᵀ R by a QR decomposition of a square root of S_t, and ρ are
    squared singular values.
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
    limit = _rounding_limit(axes @ C, rounding, n) + _ROUNDING_MARGIN * _EPS * np.sqrt(n)
    separate = s > limit
    if not separate.any():
        raise ValueError(
            "The means of the classes coincide, so no direction separates them; pass features in "
            "which they differ."
        )
    C = C[:, separate]
    width = np.linalg.norm(within @ C, axis=0)
    flat = np.count_nonzero(width <= limit[separate])
    if flat:
        raise ValueError(
            f"S_w is singular: in {flat} direction(s) the classes differ and no class varies, so "
            "that J is infinite (more features than points, or a feature that is constant in every "
            "class?); pass shrinkage=0.01 or more."
        )
    signs = np.where((means[-1] - means[0]) @ C < 0, -1.0, 1.0)
    W = axes @ (C * (signs * np.sqrt(n) / width))
    return Directions(W, (s[separate] / width) ** 2, counts)


def _range(Z: Array, rounding: Array) -> Array:
    """Return orthonormal directions (d, r) in which Z varies by more than rounding, or raise."""
    n, d = Z.shape
    _, sigma, axes = svd(np.linalg.qr(Z, mode="r"), full_matrices=False)
    own_rounding = _ROUNDING_MARGIN * _EPS * np.sqrt(n + d) * sigma[0]  # of this decomposition
    varies = sigma > _rounding_limit(axes.T, rounding, n) + own_rounding
    if not varies.any():
        raise ValueError("The points of X do not differ beyond rounding; pass points that differ.")
    return axes[varies].T


def _rounding_limit(W: Array, rounding: Array, n: int) -> Array:
    """Return how much rounding of n points can add up to along directions W (d, r), with margin."""
    return _ROUNDING_MARGIN * np.sqrt(n) * np.linalg.norm(W * rounding[:, None], axis=0)
