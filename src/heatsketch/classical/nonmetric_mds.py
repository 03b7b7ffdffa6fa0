"""Nonmetric multidimensional scaling: only the order of distances counts."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.isotonic import isotonic_regression

from heatsketch._docstrings import texts_from
from heatsketch._exceptions import ConvergenceWarning, logger, warn
from heatsketch._memory import require_memory
from heatsketch._tiles import filled, single_threaded_blas
from heatsketch._typing import Array
from heatsketch._validation import check_number
from heatsketch.classical._base import Embedding, check_fewer_components
from heatsketch.classical.mds import placed_by_stress
from heatsketch.spectral.classical_scaling import classical_scaling
from heatsketch.spectral.eigenpairs import fix_signs

_SHORTEST = 1e-12  # distance, relative to the root mean square, that an embedding divides by


@texts_from(Embedding)
@dataclass(eq=False, repr=False)
class NonmetricMDS(Embedding):
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
        components; distances that are all equal.

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

    n_components: int = 2
    metric: str = "euclidean"
    _: KW_ONLY
    max_iter: int = 300
    tol: float = 1e-6

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
        require_memory(64.0 * n * n, f"Distances between {n:,} points", "use LandmarkMDS.")
        self._points = None if self._precomputed else X
        D = self._distances(X)
        D = (D + D.T) / 2  # rounding
        np.fill_diagonal(D, 0.0)
        delta = squareform(D, checks=False)
        Y, disparities = classical_scaling(D**2, k).coordinates, Disparities(delta)
        logger.info("nonmetric scaling of %s points", f"{n:,}")
        with single_threaded_blas():  # the same bits for any number of threads
            Y, stresses = _lowered(Y, disparities, max_iter, tol)
        self.n_iter_ = len(stresses) - 1
        if self.n_iter_ == max_iter and stresses[-2] - stresses[-1] >= tol:
            warn(
                ConvergenceWarning,
                f"The stress still falls after max_iter={max_iter} iterations; raise max_iter or "
                "tol.",
            )
        U, sizes, _ = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)
        Y = fix_signs(U) * sizes  # along the principal axes
        d = pdist(Y)
        scale = float(np.linalg.norm(delta) / (np.linalg.norm(d) or 1.0))
        self._Y = scale * Y
        self.disparities_ = disparities(scale * d)
        self.stress_ = stresses[-1]
        known, at = np.unique(delta, return_inverse=True)
        targets = np.bincount(at, self.disparities_) / np.bincount(at)
        self._known, self._targets = np.append(0.0, known), np.append(0.0, targets)
        self.embedding_ = self._Y.astype(X.dtype)
        self.diagnostics_ = {"stress": self.stress_, "classical_stress": stresses[0]}
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
            return placed_by_stress(D, self._disparities_at(D), self._Y)

        return filled(place, (len(X), self._Y.shape[1])).astype(X.dtype)

    def _disparities_at(self, D: Array) -> Array:
        """Return the disparities of distances (m, n), beyond the largest known in proportion."""
        last, largest = self._known[-1], self._targets[-1]
        found = np.interp(D, self._known, self._targets)
        return np.where(last < D, D * (largest / (last or 1.0)), found)

    def _distances(self, X: Array) -> Array:
        """Return the distances of rows of X to the training points, (m, n)."""
        return X.astype(float) if self._points is None else cdist(X, self._points)


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
