"""Nonmetric multidimensional scaling: only the order of distances counts."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist, squareform
from sklearn.isotonic import isotonic_regression

from heatsketch._docstrings import texts_from
from heatsketch._typing import Array
from heatsketch.classical._base import Embedding
from heatsketch.classical.stress import StressScaling, on_principal_axes

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
