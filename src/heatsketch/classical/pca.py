"""Principal components: the directions along which points vary most, and coordinates on them."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heatsketch._checks import as_floats, check_number, check_points
from heatsketch._typing import Array
from heatsketch.classical._base import Embedding
from heatsketch.classical._principal_axes import PrincipalAxes


class PCA(Embedding):
    """Project points on the directions in which they vary most.

    *Linear and nonlinear dimensionality reduction*, §2.2: with Y the points less their mean,

        C = Yᵀ Y / n = W Λ Wᵀ,  Y = U Σ Wᵀ,  n Λ = Σ²,  z_m = Y w_m,  m = 1, …, k.

    Of all projections to k dimensions it keeps most variance and moves points least. It is computed
    from the singular values of Y, never from C, in which directions of little variance are lost; Y
    is scaled and centred before anything is squared, so that offsets and sizes cost no digits.

    When to use it: as the first method to try; for data near a plane; to remove noisy dimensions
    before a method that compares all points. When not: on curved data, whose distant ends it may
    map to the same place (see `Isomap`, `DiffusionMap`); where features have different units (scale
    them first).

    Parameters
    ----------
    n_components : int or None, 1 <= k <= min(n, d), default 2
        Number of coordinates k; None: all min(n, d).
    random_state : int, RandomState, Generator or None, default None
        Seed of the starting vector of the iteration that is used beyond 1,000 features and points;
        it changes only rounding.

    Attributes
    ----------
    embedding_ : array (n, k)
        z, in the units and the precision of X.
    components_ : array (k, d)
        The rows w_m, orthonormal; the entry of largest modulus of each is positive.
    mean_ : array (d,)
    singular_values_ : array (k,)
        σ_m, descending, in the units of X.
    explained_variance_ : array (k,)
        σ_m² / (n - 1), the unbiased estimate, as in scikit-learn: λ_m n / (n - 1). Infinite where
        σ exceeds some 1e154, 0 where it is below 1e-162; σ and the ratios remain correct.
    explained_variance_ratio_ : array (k,)
        σ_m² / Σ σ², the sum over all σ; 0 where all points coincide.
    diagnostics_ : dict
        `explained_share`, the sum of these ratios.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Raises
    ------
    ValueError
        More components than features or points; coordinates too large for the precision of X.
    MemoryError
        All components of more points and features than the memory allows.

    Notes
    -----
    Cost: n d min(n, d) operations and little memory where n or d is at most 1,000, or where all
    components are wanted; otherwise some hundred products with Y. A new point costs d k operations.
    Sparse X stays sparse, except where n <= d and n is at most 1,000.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, t = hs.datasets.swiss_roll(500, rng=0)
    >>> hs.classical.PCA().fit_transform(X).shape
    (500, 2)
    """

    _takes_sparse = True

    def __init__(self, n_components: int | None = 2, *, random_state: Any = None) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the axes of the points X, array, DataFrame or sparse matrix (n, d).

        Raises
        ------
        ValueError, TypeError, MemoryError
            Bad points or parameters, or too many points; the class says which.
        """
        X = self._read(X, reset=True)
        n = X.shape[0]
        axes = self._axes = PrincipalAxes.of(X, self._count(*X.shape), self.random_state)
        self.components_ = axes.components
        self.mean_ = np.ldexp(axes.mean + axes.shift, axes.exponent)
        squares = axes.singular_values**2
        with np.errstate(over="ignore", under="ignore"):
            self.singular_values_ = np.ldexp(axes.singular_values, axes.exponent)
            self.explained_variance_ = np.ldexp(squares / (n - 1), 2 * axes.exponent)
        self.explained_variance_ratio_ = squares / (axes.sum_of_squares or 1.0)
        self.embedding_ = axes.project(X)
        self.diagnostics_ = {"explained_share": float(self.explained_variance_ratio_.sum())}
        return self

    def transform(self, X: Any) -> Array:
        """Project points (m, d), dense or sparse, new or old: (x - x̄) W, (m, k).

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit.
        """
        check_is_fitted(self)
        return self._axes.project(self._read(X, reset=False))

    def inverse_transform(self, Z: Any) -> Array:
        """Return the points (m, d) with the coordinates Z (m, k): x̄ + Z Wᵀ.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; coordinates that are not a finite table of as many columns as
            components.
        """
        check_is_fitted(self)
        Z = check_points(as_floats(Z, "Z"), "Z", min_rows=1)
        if Z.shape[1] != len(self.components_):
            raise ValueError(
                f"Z has {Z.shape[1]} columns but there are {len(self.components_)} components; "
                f"pass (m, {len(self.components_)})."
            )
        return self._axes.restore(Z)

    def _count(self, n: int, d: int) -> int:
        if self.n_components is None:
            return min(n, d)
        k = check_number(self.n_components, "n_components", low=1, integer=True)
        if k > min(n, d):
            raise ValueError(
                f"n_components={k} but X has {n} points of {d} features; pass n_components <= "
                f"{min(n, d)}."
            )
        return k
