"""Feature maps by series: monomials for one covariance, Hermite functions for several."""

import math
from abc import abstractmethod
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
from scipy.special import gammainc

from heatsketch._checks import check_number
from heatsketch._typing import Array
from heatsketch.mixture.bounds import (
    MAX_ORDERS,
    PaperBounds,
    largest_in_ball,
    paper_bounds,
    paper_order,
)
from heatsketch.mixture.densities import transitions
from heatsketch.mixture.maps import FeatureMap
from heatsketch.operators.kernel import squared_norms

_EQUAL_COVARIANCES = 1e-12  # relative difference of covariances D_j that count as one
_TILE_NUMBERS = 2**22  # of a tile of points: 32 MB
_SQUARED_RATIOS = np.geomspace(1.001, 1e3, 200)  # r² tried in the bound of Hermite functions


class SeriesMap(FeatureMap):
    """Abstract base: Hermite functions of orders 0, ..., l about an origin, in all m variables.

    With lengths in units of M^(1/2), M the mean of the D_j, the function of order α is
    ψ_α ∝ He_α(√2 r) exp(-|r|²/2), and ⟨ψ_α, g(·; c, D)⟩ = f_α with
    √(α_i + 1) f_{α+e_i} = b_i f_α + Σ_k B_ik √α_k f_{α-e_k}, B = (D - I)(D + I)⁻¹ and
    b = √2 (I + D)⁻¹ c. Where D = M these are monomials in ĉ = (2D)^(-1/2) c.

    Parameters
    ----------
    order : int, optional
        l; by default the smallest order whose bound meets the tolerance.
    radius : float, optional
        Radius of the domain, a ball about the middle of the points; by default it contains them.
    max_features : int, default 4,000
        Largest number C(m + l, l) of coordinates.

    Attributes
    ----------
    order_ : int
    centre_, radius_ : array (m,), float
        Centre and radius of the domain.
    """

    def __init__(
        self,
        order: int | None = None,
        *,
        radius: float | None = None,
        max_features: int = 4000,
    ) -> None:
        self.order = order if order is None else check_number(order, "order", low=0, integer=True)
        self.radius = radius if radius is None else check_number(radius, "radius", low=0)
        self.max_features = check_number(max_features, "max_features", low=1, integer=True)

    def _choose(self, x: Array, tolerance: float) -> None:
        c = self.kernel.components
        for known in ("reach", "_log_sums"):  # cached by an earlier fit
            self.__dict__.pop(known, None)
        y = c.local(x)
        middle = (y.min(axis=0) + y.max(axis=0)) / 2
        largest = np.sqrt(squared_norms(y - middle).max())
        self._radius = largest if self.radius is None else self.radius / c.unit
        self.centre_ = c.in_data_units(middle)
        self.radius_ = float(self._radius * c.unit)
        self._set_scale()
        # c_j over the ball is A_j v + (c_j(middle) - origin), |v| <= radius
        centres = c.means + np.einsum("ka,kab->kb", middle - c.means, c.gain_matrices)
        self._origin = (centres.min(axis=0) + centres.max(axis=0)) / 2
        self._slopes = np.einsum("ab,kbc->kac", self._to_unit, c.gain_matrices)
        self._offsets = (centres - self._origin) @ self._to_unit
        if self.order is None:
            self.order_ = self._smallest_order(tolerance)
        else:
            self.order_ = self.order
            self._check_count(self.order_)
        self._indices = multi_indices(c.n_features, self.order_)
        self._plan = _plan(self._indices)
        self.error_bound = 2 * self._bound(self.order_)
        self.domain = f"the ball of radius {self.radius_:.4g} about the points"

    def _set_scale(self) -> None:
        """Choose M, and express D_j in its units."""
        c = self.kernel.components
        D = c.spread_matrices
        M = np.einsum("k,kab->ab", c.weights, D)
        values, axes = np.linalg.eigh(M)
        self._to_unit = (axes / np.sqrt(values)) @ axes.T
        self._covariances = self._to_unit @ D @ self._to_unit
        self._log_scale = c.log_unit / 2 - np.log(values).sum() / 4  # of a coordinate
        eye = np.eye(c.n_features)
        if np.abs(self._covariances - eye).max() < _EQUAL_COVARIANCES:
            self._covariances = np.broadcast_to(eye, D.shape)
        self._inverses = np.linalg.inv(self._covariances + eye)
        self._B = (self._covariances - eye) @ self._inverses

    @abstractmethod
    def _log_tails(self, order: int) -> Array:
        """Return log bounds on what orders 0..l lack of |g_j|² in the ball, (K,), in units of M."""

    def bound(self, order: int) -> float:
        """Return a bound on |p(x, ·) - its orders 0, ..., l| for all x in the ball.

        It is the largest of the bounds of components, as the weights w_j(x) sum to 1.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; an order that is not an integer >= 0.
        """
        self._check_fitted()
        return self._bound(check_number(order, "order", low=0, integer=True))

    def _bound(self, order: int) -> float:
        return float(np.exp(self._log_tails(order).max() / 2 + self._log_scale))

    def _smallest_order(self, tolerance: float) -> int:
        for order in range(MAX_ORDERS):
            self._check_count(order, f" for tolerance={tolerance:.3g}")
            if 2 * self._bound(order) <= tolerance:
                return order
        raise ValueError(
            f"tolerance={tolerance:.3g} needs more than {MAX_ORDERS} orders; pass a larger one."
        )

    def _check_count(self, order: int, reason: str = "") -> None:
        m = self.kernel.n_features
        count = math.comb(m + order, order)
        if count > self.max_features:
            raise ValueError(
                f"Order {order} in {m} dimensions has {count:,} coordinates{reason}, more than "
                f"max_features={self.max_features:,}; pass a larger max_features or tolerance, or "
                "use CholeskyMap."
            )

    @property
    def _tile(self) -> int:
        return max(1, _TILE_NUMBERS // (len(self._indices) * self.kernel.n_components))

    def _raw(self, x: Array) -> Array:
        p = transitions(self.kernel.components, x)
        c = (p.means - self._origin) @ self._to_unit  # (n, K, m)
        b = math.sqrt(2) * np.einsum("nka,kab->nkb", c, self._inverses)
        halves = 0.5 * np.linalg.slogdet(self._inverses)[1]
        first = halves - 0.5 * np.einsum("nka,kab,nkb->nk", c, self._inverses, c)
        mixed = bool(self._B.any())
        f = np.empty((len(self._indices), *first.shape))  # (r, n, K)
        f[0] = np.exp(first - 0.25 * c.shape[2] * math.log(math.pi))
        for target, (parent, i, lower) in enumerate(self._plan, start=1):
            f[target] = b[:, :, i] * f[parent]
            for k, place, root in lower if mixed else ():
                f[target] += (root * self._B[:, i, k]) * f[place]
            f[target] /= math.sqrt(self._indices[target][i])
        return np.exp(self._log_scale) * np.einsum("rnk,nk->nr", f, p.weights)

    def _residual(self, x: Array) -> Array:
        """Return the residuals (n,), from |p|² and the raw coordinates."""
        lengths = np.square(self._by_tiles(self._raw, x)).sum(axis=1)
        return np.sqrt(np.maximum(self.kernel.squared_norm(x) - lengths, 0.0))


class TaylorMap(SeriesMap):
    """Monomials of ĉ_j(x) up to an order: for components with the same covariance.

    f(x) = peak Σ_j w_j(x) exp(-|ĉ_j|²/2) (ĉ_j^α / √α!)_α, |α| <= l, with the origin moved to the
    middle of the ĉ_j: C(m + l, l) coordinates, with the inner products of the Σ m^i coordinates of
    the Kronecker basis. *Diffusion representation*, §4 and §5, where the printed recursion lacks a
    square root, and the bounds hold for orders 0, ..., l.

    The bound is sharp: |f - f_l|² <= peak² max_j P(l + 1, s_j), P the regularised incomplete
    gamma function and s_j the largest |ĉ_j(x)|² over the ball; it needs neither ν_min nor the
    number of components. `paper_bounds` and `paper_order` are the bounds of the paper.

    Parameters
    ----------
    order : int, optional
        l; by default the smallest order whose bound meets the tolerance.
    radius : float, optional
        Radius of the domain, a ball about the middle of the points; by default it contains them.
    max_features : int, default 4,000
        Largest number of coordinates.

    Raises
    ------
    ValueError
        The covariances differ; more than `max_features` coordinates are needed.

    Notes
    -----
    Cost of `transform`: C(m + l, l) operations for each point and component.

    Examples
    --------
    >>> import heatsketch as hs
    >>> kernel = hs.MixtureKernel([0.5, 0.5], [[0.0], [2.0]], [1.0, 1.0], epsilon=1.0)
    >>> features = hs.mixture.TaylorMap().fit(kernel, tolerance=1e-3)
    >>> y = features.transform([[0.0], [1.0]])
    >>> d = kernel.squared_distance([[0.0]], [[1.0]])[0, 0] ** 0.5
    >>> bool(abs(((y[0] - y[1]) ** 2).sum() ** 0.5 - d) <= features.error_bound <= 1e-3)
    True
    """

    def _set_scale(self) -> None:
        super()._set_scale()
        if self._B.any():
            raise ValueError(
                "The components have different covariances, but TaylorMap needs equal ones; use "
                "HermiteMap or CholeskyMap, or fit the mixture with covariance_type='tied'."
            )

    @cached_property
    def reach(self) -> Array:
        """The largest |ĉ_j(x)|² over the ball, s_j, (K,)."""
        root = math.sqrt(2)
        return np.array(
            [
                largest_in_ball(A / root, b / root, self._radius).value
                for A, b in zip(self._slopes, self._offsets, strict=True)
            ]
        )

    @property
    def _log_norm(self) -> float:
        """log |g|² = log (4π)^(-m/2), in units of M."""
        return -0.5 * self.kernel.n_features * math.log(4 * math.pi)

    def _log_tails(self, order: int) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(gammainc(order + 1, self.reach)) + self._log_norm

    def paper_bounds(self, order: int, nu_min: float | None = None) -> PaperBounds:
        """Return G_b1, G_b2 and η of the paper for the same ball and orders 0, ..., l.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; an order that is not an integer >= 0, or a density that is not positive.
        """
        self._check_fitted()
        return paper_bounds(self.reach, order, self._log_norm + 2 * self._log_scale, nu_min)

    def paper_order(self, tolerance: float, nu_min: float | None = None) -> int:
        """Return the l_max of the paper, (5.20).

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; a tolerance or density that is not positive; no order that can be computed
            reaches the tolerance.
        """
        self._check_fitted()
        return paper_order(self.reach, tolerance, self._log_norm + 2 * self._log_scale, nu_min)


class HermiteMap(SeriesMap):
    """Hermite functions of a common scale up to an order: for any covariances.

    All eigenvalues of D_j lie between ε/2 and ε, so the series converges fast for any covariances.
    The bound is rigorous, but not sharp: for every r > 1 with r² |B| < 1 the tail of a component is
    at most r^(-2(l+1)) Σ_α r^(2|α|) f_α², a Gaussian integral in closed form whose maximum over the
    ball is again a trust-region problem.

    Parameters
    ----------
    order : int, optional
        l; by default the smallest order whose bound meets the tolerance.
    radius : float, optional
        Radius of the domain, a ball about the middle of the points; by default it contains them.
    max_features : int, default 4,000
        Largest number of coordinates.

    Notes
    -----
    Cost of `transform`: C(m + l, l) m operations for each point and component.

    Examples
    --------
    >>> import heatsketch as hs
    >>> kernel = hs.MixtureKernel([0.5, 0.5], [[0.0], [2.0]], [1.0, 0.25], epsilon=1.0)
    >>> features = hs.mixture.HermiteMap().fit(kernel, tolerance=1e-3)
    >>> bool(features.residual([[0.0], [1.0]]).max() <= features.error_bound / 2 <= 5e-4)
    True
    """

    def _log_tails(self, order: int) -> Array:
        return (self._log_sums - (order + 1) * np.log(_SQUARED_RATIOS)).min(axis=1)

    @cached_property
    def _log_sums(self) -> Array:
        """The largest log Σ_α r^(2|α|) f_α² in the ball, (K, number of r²); ∞ if it diverges."""
        components = zip(
            *np.linalg.eigh(self._covariances), self._slopes, self._offsets, strict=True
        )
        return np.array([[self._log_sum(r2, *c) for r2 in _SQUARED_RATIOS] for c in components])

    def _log_sum(self, r2: float, d: Array, axes: Array, A: Array, b: Array) -> float:
        B = (d - 1) / (d + 1)
        if r2 * np.abs(B).max() > 0.999:
            return np.inf
        widths = 1 + d - r2 * (d - 1)
        root = (axes * np.sqrt((r2 - 1) / widths)).T
        constant = -0.5 * len(d) * math.log(math.pi) - np.log1p(d).sum()
        constant -= 0.5 * np.log1p(-((r2 * B) ** 2)).sum()
        return float(constant + largest_in_ball(root @ A, root @ b, self._radius).value)


def multi_indices(m: int, order: int) -> list[tuple[int, ...]]:
    """Return the multi-indices α of m variables with |α| <= order, by total order."""
    found = []
    for total in range(order + 1):
        for factors in combinations_with_replacement(range(m), total):
            alpha = [0] * m
            for i in factors:
                alpha[i] += 1
            found.append(tuple(alpha))
    return found


def _plan(indices: list[tuple[int, ...]]) -> list[tuple[int, int, list[tuple[int, int, float]]]]:
    """Return for every α but 0 the earlier coordinates that its recursion uses.

    (parent, i, [(k, place of parent - e_k, √parent_k), ...]) with α = parent + e_i.
    """
    place = {alpha: j for j, alpha in enumerate(indices)}
    plan = []
    for alpha in indices[1:]:
        i = next(j for j, power in enumerate(alpha) if power)
        parent = _less(alpha, i)
        lower = [
            (k, place[_less(parent, k)], math.sqrt(power))
            for k, power in enumerate(parent)
            if power
        ]
        plan.append((place[parent], i, lower))
    return plan


def _less(alpha: tuple[int, ...], i: int) -> tuple[int, ...]:
    return (*alpha[:i], alpha[i] - 1, *alpha[i + 1 :])
