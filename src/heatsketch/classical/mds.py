"""Classical multidimensional scaling: of all points, or of landmarks that place the others."""

from __future__ import annotations

import logging
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.linalg import eigvalsh
from sklearn.utils.validation import check_is_fitted

from heatsketch import memory
from heatsketch._array import Frame, filled
from heatsketch._checks import as_floats, check_number, check_points
from heatsketch._typing import Array
from heatsketch.classical._base import Embedding, check_distances, check_non_negative, in_units
from heatsketch.classical.pca import Axes
from heatsketch.graphs.landmarks import check_indices, choose_landmarks
from heatsketch.spectral.classical_scaling import Scaling, classical_scaling, warn_of_zeros

logger = logging.getLogger("heatsketch")

_MATRICES = 2  # (n, n) at the peak, beside distances that are given
_FAR = 2.0**480  # distances up to here have squares that can be summed
_SPECTRUM_POINTS = 1000  # whose whole spectrum is looked at
_ZERO = 1e-12  # share of the largest eigenvalue that is rounding


@dataclass(frozen=True)
class _Distances:
    """Squares of given distances, in units of 2^exponent: none over- or underflows."""

    exponent: int

    @classmethod
    def of(cls, D: Array) -> _Distances:
        return cls(int(np.frexp(float(D.max()))[1]))

    def __call__(self, D: Array) -> Array:
        with np.errstate(over="ignore", under="ignore"):
            return np.minimum(np.ldexp(D.astype(float), -self.exponent), _FAR) ** 2


class _Scaling(Embedding):
    """Abstract base: coordinates from l points that are kept, or from distances to them."""

    n_components: int
    metric: str
    _squares: _Distances  # of distances
    _scaling: Scaling
    _axes: Axes  # of points

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep l points, scale them, and place all."""

    def transform(self, X: Any) -> Array:
        """Place points, new or old: by projection, or by their distances to those kept.

        Parameters
        ----------
        X : array or DataFrame (m, d)
            With ``metric="precomputed"`` the distances (m, l) to the training points of
            `ClassicalMDS`, to the landmarks of `LandmarkMDS`.

        Returns
        -------
        array (m, k)
        """
        check_is_fitted(self)
        return self._place(self._read_rows(X, reset=False))

    def _read_rows(self, X: Any, reset: bool) -> Array:
        return self._read_distances(X, reset) if self._precomputed else self._read(X, reset)

    def _scale_distances(self, D: Array, k: int) -> None:
        """Scale the kept points by the distances between them (l, l)."""
        squares = filled(lambda rows: self._squares(D[rows]), D.shape)
        self.diagnostics_ = _negative_part(squares)
        self._scaling = classical_scaling(squares, k)
        self.eigenvalues_ = _squared_units(self._scaling.values, self._squares.exponent)

    def _scale_points(self, kept: Array, k: int) -> None:
        """Scale the kept points (l, d): B = Y Yᵀ for the centred ones, so V √Λ = U Σ = Y W."""
        found = Axes.of(kept, min(k, *kept.shape))
        sigma, rounding = found.deviations, np.finfo(float).eps * max(kept.shape)
        positive = int(np.count_nonzero(sigma > rounding * sigma[0]))
        warn_of_zeros(positive, k)
        W, values = np.zeros((k, kept.shape[1])), np.zeros(k)
        W[:positive], values[:positive] = found.components[:positive], sigma[:positive] ** 2
        Z = found.project(kept)[:, :positive]
        W[:positive] *= np.sign(Z[np.abs(Z).argmax(axis=0), np.arange(positive)])[:, None]
        self._axes = replace(found, components=W)
        self.eigenvalues_ = _squared_units(values, found.exponent)
        nothing = {"negative_eigenvalues": 0, "negative_share": 0.0}
        self.diagnostics_ = nothing | {"spectrum_points": len(kept)}

    def _place(self, X: Array) -> Array:
        if not self._precomputed:
            return self._axes.project(X)
        shape = (len(X), len(self._scaling.values))
        Y = filled(lambda rows: self._scaling.place(self._squares(X[rows])), shape)
        return in_units(Y, self._squares.exponent, X.dtype)


class ClassicalMDS(_Scaling):
    """Embed points so that Euclidean distances come as near to given ones as projections can.

    *Linear and nonlinear dimensionality reduction*, §3: from the squared distances Δ_ij with row
    means μ_i of mean μ,

        B_ij = ½ (μ_i + μ_j - Δ_ij - μ),  B = V Λ Vᵀ,  Z = [v_1 √λ_1, …, v_k √λ_k].

    Of points B = Y Yᵀ, with Y the centred ones, and Z is what `PCA` gives, up to signs; it comes
    from the singular values of Y, without the distances. Distances that are not Euclidean may give
    B negative eigenvalues; these are left out.

    When to use it: for distances that are given, such as travel times, dissimilarities people have
    stated, or distances of strings. When not: of more than some 15,000 points all distances take
    too much memory, see `LandmarkMDS`; along curved data straight distances mislead, see `Isomap`.

    Parameters
    ----------
    n_components : int, 1 <= k < n, default 2
        Coordinates k. Where fewer eigenvalues are positive the last ones are zero, with a warning.
    metric : "euclidean" or "precomputed", default "euclidean"
        X are points (n, d), or distances (n, n): not squared, symmetric, zero on the diagonal.

    Attributes
    ----------
    embedding_ : array (n, k)
        Columns of mean zero, orthogonal, of squared length λ_m; the entry of largest modulus of
        each is positive.
    eigenvalues_ : array (k,)
        λ_m, descending, in squared units of the distances: infinite for lengths beyond 1e154.
    diagnostics_ : dict
        `negative_eigenvalues`, their number, and `negative_share`, Σ|λ| over them as a share of
        Σ|λ| over all: 0 for points. Of more than 1,000 points' distances both are those of
        `spectrum_points` = 1,000 points, evenly spaced in the order of the rows.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    MemoryError
        (n, n) is more than there is; use `LandmarkMDS`.
    ValueError
        Distances that are negative, not symmetric, or not zero on the diagonal; too many
        components; coordinates too large for the precision of X.

    Notes
    -----
    Cost: of points as of `PCA`. Of distances 16 n² bytes, and n³ operations for the eigenpairs up
    to 1,500 points and beyond some 50 products with B; a new point, n k. From its squared distances
    δ_j to the n it is placed at y_m = ½ λ_m^-½ Σ_j v_m(j) (μ_j - δ_j), which puts training points
    where they are (Gower 1968) and, where they are points, says the same as projection; far
    outside them, in δ, digits are lost.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.classical import ClassicalMDS
    >>> D = np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]])
    >>> Z = ClassicalMDS(metric="precomputed").fit_transform(D)
    >>> float(np.linalg.norm(Z[1] - Z[2]).round(12))
    5.0
    """

    def __init__(self, n_components: int = 2, metric: str = "euclidean") -> None:
        self.n_components = n_components
        self.metric = metric

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed points, or what distances say of them.

        Parameters
        ----------
        X : array or DataFrame (n, d)
            With ``metric="precomputed"`` distances (n, n).
        y : ignored

        Returns
        -------
        self
        """
        k = check_number(self.n_components, "n_components", low=1, integer=True)
        X = self._read_rows(X, reset=True)
        n = len(X)
        if k >= n:
            raise ValueError(
                f"n_components={k} but X has {n} points; pass n_components <= {n - 1}."
            )
        logger.info("classical scaling of %s points", f"{n:,}")
        if not self._precomputed:
            self._scale_points(X, k)
            self.embedding_ = self._place(X)
            return self
        memory.require(8.0 * _MATRICES * n * n, f"Distances of {n:,} points", "use LandmarkMDS.")
        self._squares = _Distances.of(X)
        self._scale_distances(X, k)
        Z = self._scaling.coordinates
        self.embedding_ = in_units(Z, self._squares.exponent, X.dtype)
        return self


class LandmarkMDS(_Scaling):
    """Embed many points by their distances to a few landmarks, which classical scaling places.

    De Silva and Tenenbaum (2004), the remark that ends §3 of *Linear and nonlinear dimensionality
    reduction*: the l landmarks are embedded by `ClassicalMDS`, with eigenpairs (λ_m, v_m) of B and
    row means μ_j of their squared distances; a point at squared distances δ_j from them goes to

        y_m = ½ λ_m^-½ Σ_j v_m(j) (μ_j - δ_j).

    Exact where the points lie in k dimensions that the landmarks span. The map depends on the
    landmarks alone, so that the paper's last step, which turns all points to their principal
    axes, is left out: axes and origin are the landmarks', and `PCA` of the embedding turns it.

    When to use it: for more points than `ClassicalMDS` has room for, or where distances are costly,
    for n l of them are enough. When not: of points the map is linear, the projection on the
    principal axes of the landmarks (and computed so); `PCA` projects on those of all points.

    Parameters
    ----------
    n_components : int, 1 <= k < l, default 2
        Coordinates k. Where fewer eigenvalues are positive the last ones are zero, with a warning.
    landmarks : "maxmin", "random", indices (l,) or coordinates (l, d), default "maxmin"
        "maxmin": from a random point on, always the point farthest from the landmarks there are,
        which covers the data evenly but seeks out outliers; "random": any points. Or rows of X by
        their numbers, or points that need not be data.
    n_landmarks : int, default 200
        How many l the two rules choose; all points where there are fewer. Beyond k + 1 more make
        the result less sensitive to noise.
    metric : "euclidean" or "precomputed", default "euclidean"
        X are points (n, d), or their distances to the landmarks (n, l), not squared; `landmarks`
        are then the rows of X that belong to the landmarks, in the order of the columns.
    random_state : int, RandomState, Generator or None, default None
        Of the two rules.

    Attributes
    ----------
    embedding_ : array (n, k)
        The coordinates of the landmarks have mean zero and are orthogonal.
    landmarks_ : array (l,) or (l, d)
        The rows of X that are landmarks, or the coordinates given.
    eigenvalues_ : array (k,)
        Of the landmarks: λ_m, descending.
    diagnostics_ : dict
        `n_landmarks`; the others as in `ClassicalMDS`, of the landmarks.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    ValueError
        No more landmarks than components; indices out of range or twice; coordinates of another
        dimension; distances of the landmarks that are not symmetric or not zero on the diagonal.

    Notes
    -----
    Cost: n l d operations for max-min, and memory for the data twice; l d min(l, d) for the scaling
    of points and n d k for the coordinates; of distances l³ and n l k.

    Examples
    --------
    >>> import heatsketch as hs
    >>> from heatsketch.classical import LandmarkMDS
    >>> X, t = hs.datasets.swiss_roll(5000, rng=0)
    >>> LandmarkMDS(n_landmarks=50, random_state=0).fit_transform(X).shape
    (5000, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        landmarks: Any = "maxmin",
        n_landmarks: int = 200,
        metric: str = "euclidean",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.landmarks = landmarks
        self.n_landmarks = n_landmarks
        self.metric = metric
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose landmarks, scale them and place all points.

        Parameters
        ----------
        X : array or DataFrame (n, d)
            With ``metric="precomputed"`` distances to the landmarks (n, l).
        y : ignored

        Returns
        -------
        self
        """
        k = check_number(self.n_components, "n_components", low=1, integer=True)
        X = self._read_rows(X, reset=True)
        kept = self._kept_distances(X) if self._precomputed else self._kept_points(X)
        if len(kept) <= k:
            raise ValueError(
                f"n_components={k} but there are {len(kept)} landmark(s) that differ; pass fewer "
                f"components, or at least {k + 1} landmarks."
            )
        logger.info("placing %s points by %s landmarks", f"{len(X):,}", f"{len(kept):,}")
        if self._precomputed:
            self._scale_distances(kept, k)
        else:
            self._scale_points(kept, k)
        self.diagnostics_["n_landmarks"] = len(kept)
        self.embedding_ = self._place(X)
        return self

    def _read_distances(self, X: Any, reset: bool) -> Array:
        # All to all they need not be: the rows of the landmarks are checked when they are known.
        X = self._read(X, reset)
        check_non_negative(X)
        return X

    def _kept_distances(self, X: Array) -> Array:
        """Return the distances (l, l) between the landmarks, rows of X (n, l)."""
        if isinstance(self.landmarks, str):
            raise ValueError(
                f"landmarks={self.landmarks!r} but metric='precomputed'; pass the numbers of the "
                "rows of X that are the landmarks', in the order of the columns."
            )
        self.landmarks_ = check_indices(self.landmarks, len(X))
        if len(self.landmarks_) != X.shape[1]:
            raise ValueError(
                f"X has shape {X.shape} but there are {len(self.landmarks_)} landmarks; with "
                "metric='precomputed' pass the distances to the landmarks, (n, l), and the l rows "
                "of X that are theirs."
            )
        self._squares = _Distances.of(X)
        kept = X[self.landmarks_]
        check_distances(kept)
        return kept

    def _kept_points(self, X: Array) -> Array:
        """Return the coordinates (l, d) of the landmarks."""
        if isinstance(self.landmarks, str):
            count = check_number(self.n_landmarks, "n_landmarks", low=2, integer=True)
            points = Frame.of(X)(X)
            self.landmarks_ = choose_landmarks(points, self.landmarks, count, self.random_state)
        elif np.ndim(self.landmarks) == 2:
            self.landmarks_ = self._check_coordinates(X.shape[1])
        else:
            self.landmarks_ = check_indices(self.landmarks, len(X))
        return self.landmarks_ if self.landmarks_.ndim == 2 else X[self.landmarks_]

    def _check_coordinates(self, d: int) -> Array:
        given = check_points(as_floats(self.landmarks, "landmarks"), "landmarks")
        if given.shape[1] != d:
            raise ValueError(
                f"landmarks has shape {given.shape} but X has {d} features; pass (l, {d})."
            )
        return given

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn: distances to landmarks are no square."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = False
        return tags


def _squared_units(values: Array, exponent: int) -> Array:
    """Return eigenvalues in squared units: infinite beyond 1e308, of lengths beyond 1e154."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(values, 2 * exponent)


def _negative_part(squares: Array) -> dict[str, Any]:
    """Say how many eigenvalues of B are negative, of a sample where there are many points."""
    n = len(squares)
    sample = np.unique(np.linspace(0, n - 1, min(n, _SPECTRUM_POINTS)).astype(int))
    B = -0.5 * squares[np.ix_(sample, sample)]
    B -= B.mean(axis=0)
    B -= B.mean(axis=1, keepdims=True)
    values = eigvalsh(B)
    negative = values[values < -_ZERO * np.abs(values).max()]
    return {
        "negative_eigenvalues": len(negative),
        "negative_share": float(np.abs(negative).sum() / (np.abs(values).sum() or 1.0)),
        "spectrum_points": len(sample),
    }
