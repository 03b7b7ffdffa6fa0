"""Feature maps by series: monomials for one covariance, Hermite functions for several.

Coordinates y(x) with | |y(x) - y(z)| - d(x, z) | <= error_bound in a ball of points: orthogonal
projections of the densities p(x, ·) in L²(dr). The library's own map is `CholeskyMap`, with the
same guarantee for given points and far fewer coordinates.
"""

import math
from abc import ABC, abstractmethod
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Self

import numpy as np
from scipy.special import gammainc

from heatsketch import MixtureKernel
from papers.representation.bounds import (
    PaperBounds,
    first_order,
    largest_in_ball,
    paper_bounds,
    paper_order,
)

EQUAL_COVARIANCES = 1e-12  # relative difference of covariances D_j that count as one
SQUARED_RATIOS = np.geomspace(1.001, 1e3, 200)  # r² tried in the bound of Hermite functions


class SeriesMap(ABC):
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

    Attributes
    ----------
    kernel : MixtureKernel
    n_features : int
        Number of coordinates, C(m + l, l).
    error_bound : float
        Of | |y(x) - y(z)| - d(x, z) |, for all x and z in the ball, in √density.
    order_, radius_ : int, float
    """

    def __init__(self, order: int | None = None, *, radius: float | None = None) -> None:
        self.order, self.radius = order, radius

    def fit(self, kernel: MixtureKernel, points: np.ndarray, tolerance: float = 0.01) -> Self:
        """Choose the origin, the ball and the order for points (n, m), and return the map."""
        self.kernel = kernel
        middle = (points.min(axis=0) + points.max(axis=0)) / 2
        largest = float(np.linalg.norm(points - middle, axis=1).max())
        self.radius_ = largest if self.radius is None else self.radius
        eye = np.eye(kernel.n_features)
        S = kernel.covariances + kernel.epsilon / 2 * eye
        one_step = np.linalg.solve(S, kernel.covariances)
        self._C = np.linalg.matrix_power(one_step, kernel.time)  # (K, m, m)
        D = S - self._C @ S @ self._C
        values, axes = np.linalg.eigh(np.einsum("k,kab->ab", kernel.weights, D))
        self._to_unit = (axes / np.sqrt(values)) @ axes.T
        self._log_scale = -np.log(values).sum() / 4  # of a coordinate
        self._covariances = self._to_unit @ D @ self._to_unit
        if np.abs(self._covariances - eye).max() < EQUAL_COVARIANCES:
            self._covariances = np.broadcast_to(eye, D.shape)
        self._inverses = np.linalg.inv(self._covariances + eye)
        self._B = (self._covariances - eye) @ self._inverses
        # c_j over the ball is A_j v + (c_j(middle) - origin), |v| <= radius
        centres = self._means(middle[None])[0]
        self._origin = (centres.min(axis=0) + centres.max(axis=0)) / 2
        self._slopes = np.einsum("ab,kbc->kac", self._to_unit, self._C)
        self._offsets = (centres - self._origin) @ self._to_unit
        self.__dict__.pop("reach", None)  # of an earlier fit
        self.__dict__.pop("_log_sums", None)
        if self.order is None:
            self.order_ = first_order(lambda order: 2 * self.bound(order) <= tolerance)
        else:
            self.order_ = self.order
        self._indices = multi_indices(kernel.n_features, self.order_)
        self.n_features = len(self._indices)
        self.error_bound = 2 * self.bound(self.order_)
        return self

    @abstractmethod
    def log_tails(self, order: int) -> np.ndarray:
        """Return log bounds on what orders 0..l lack of |g_j|² in the ball, (K,), in units of M."""

    def bound(self, order: int) -> float:
        """Return a bound on |p(x, ·) - its orders 0, ..., l| for all x in the ball.

        It is the largest of the bounds of components, as the weights w_j(x) sum to 1.
        """
        return float(np.exp(self.log_tails(order).max() / 2 + self._log_scale))

    def transform(self, x: np.ndarray) -> np.ndarray:
        """Return the coordinates (n, n_features) of points (n, m)."""
        weights = self.kernel.responsibilities(x)
        c = (self._means(x) - self._origin) @ self._to_unit  # (n, K, m)
        b = math.sqrt(2) * np.einsum("nka,kab->nkb", c, self._inverses)
        halves = 0.5 * np.linalg.slogdet(self._inverses)[1]
        first = halves - 0.5 * np.einsum("nka,kab,nkb->nk", c, self._inverses, c)
        place = {alpha: j for j, alpha in enumerate(self._indices)}
        f = np.empty((len(place), *first.shape))  # (r, n, K)
        f[0] = np.exp(first - 0.25 * c.shape[2] * math.log(math.pi))
        for target, alpha in enumerate(self._indices[1:], start=1):
            i = next(j for j, power in enumerate(alpha) if power)
            parent = lowered(alpha, i)
            f[target] = b[:, :, i] * f[place[parent]]
            for k, power in enumerate(parent):
                if power and self._B.any():
                    below = f[place[lowered(parent, k)]]
                    f[target] += math.sqrt(power) * self._B[:, i, k] * below
            f[target] /= math.sqrt(alpha[i])
        return np.exp(self._log_scale) * np.einsum("rnk,nk->nr", f, weights)

    def _means(self, x: np.ndarray) -> np.ndarray:
        """Return c_j(x) = θ_j + C_j (x - θ_j), (n, K, m)."""
        steps = np.asarray(x)[:, None] - self.kernel.means
        return self.kernel.means + np.einsum("nka,kab->nkb", steps, self._C)


class TaylorMap(SeriesMap):
    """Monomials of ĉ_j(x) up to an order: for components with the same covariance.

    f(x) = peak Σ_j w_j(x) exp(-|ĉ_j|²/2) (ĉ_j^α / √α!)_α, |α| <= l, with the origin moved to the
    middle of the ĉ_j: C(m + l, l) coordinates, with the inner products of the Σ m^i coordinates of
    the Kronecker basis. *Diffusion representation*, §4 and §5, where the printed recursion lacks a
    square root, and the bounds hold for orders 0, ..., l.

    The bound is sharp: |f - f_l|² <= peak² max_j P(l + 1, s_j), P the regularised incomplete
    gamma function and s_j the largest |ĉ_j(x)|² over the ball; it needs neither ν_min nor the
    number of components. `paper_bounds` and `paper_order` are the bounds of the paper.

    Examples
    --------
    >>> import numpy as np
    >>> import heatsketch as hs
    >>> from papers.representation.series import TaylorMap
    >>> kernel = hs.MixtureKernel([0.5, 0.5], [[0.0], [2.0]], [1.0, 1.0], epsilon=1.0)
    >>> x = np.array([[0.0], [1.0]])
    >>> features = TaylorMap().fit(kernel, x, tolerance=1e-3)
    >>> y = features.transform(x)
    >>> d = kernel.squared_distance(x[:1], x[1:])[0, 0] ** 0.5
    >>> bool(abs(((y[0] - y[1]) ** 2).sum() ** 0.5 - d) <= features.error_bound <= 1e-3)
    True
    """

    def fit(self, kernel: MixtureKernel, points: np.ndarray, tolerance: float = 0.01) -> Self:
        """As `SeriesMap.fit`; raise if the covariances differ."""
        if np.ptp(kernel.covariances, axis=0).max() > EQUAL_COVARIANCES * kernel.epsilon:
            raise ValueError("The covariances differ; use HermiteMap, or a tied mixture.")
        return super().fit(kernel, points, tolerance)

    @cached_property
    def reach(self) -> np.ndarray:
        """The largest |ĉ_j(x)|² over the ball, s_j, (K,)."""
        ends = zip(self._slopes, self._offsets, strict=True)
        return np.array([largest_in_ball(A, b, self.radius_).value / 2 for A, b in ends])

    @property
    def _log_norm(self) -> float:
        """log |g|² = log (4π)^(-m/2), in units of M."""
        return -0.5 * self.kernel.n_features * math.log(4 * math.pi)

    def log_tails(self, order: int) -> np.ndarray:
        """See `SeriesMap`."""
        with np.errstate(divide="ignore"):
            return np.log(gammainc(order + 1, self.reach)) + self._log_norm

    def paper_bounds(self, order: int, nu_min: float | None = None) -> PaperBounds:
        """Return G_b1, G_b2 and η of the paper for the same ball and orders 0, ..., l."""
        return paper_bounds(self.reach, order, self._log_norm + 2 * self._log_scale, nu_min)

    def paper_order(self, tolerance: float, nu_min: float | None = None) -> int:
        """Return the l_max of the paper, (5.20)."""
        return paper_order(self.reach, tolerance, self._log_norm + 2 * self._log_scale, nu_min)


class HermiteMap(SeriesMap):
    """Hermite functions of a common scale up to an order: for any covariances.

    All eigenvalues of D_j lie between ε/2 and ε, so the series converges fast for any covariances.
    The bound is rigorous, but not sharp: for every r > 1 with r² |B| < 1 the tail of a component is
    at most r^(-2(l+1)) Σ_α r^(2|α|) f_α², a Gaussian integral in closed form whose maximum over the
    ball is again a trust-region problem.
    """

    def log_tails(self, order: int) -> np.ndarray:
        """See `SeriesMap`."""
        return (self._log_sums - (order + 1) * np.log(SQUARED_RATIOS)).min(axis=1)

    @cached_property
    def _log_sums(self) -> np.ndarray:
        """The largest log Σ_α r^(2|α|) f_α² in the ball, (K, number of r²); ∞ if it diverges."""
        components = zip(
            *np.linalg.eigh(self._covariances), self._slopes, self._offsets, strict=True
        )
        return np.array([[self._log_sum(r2, *c) for r2 in SQUARED_RATIOS] for c in components])

    def _log_sum(
        self, r2: float, d: np.ndarray, axes: np.ndarray, A: np.ndarray, b: np.ndarray
    ) -> float:
        B = (d - 1) / (d + 1)
        if r2 * np.abs(B).max() > 0.999:
            return np.inf
        root = (axes * np.sqrt((r2 - 1) / (1 + d - r2 * (d - 1)))).T
        constant = -0.5 * len(d) * math.log(math.pi) - np.log1p(d).sum()
        constant -= 0.5 * np.log1p(-((r2 * B) ** 2)).sum()
        return float(constant + largest_in_ball(root @ A, root @ b, self.radius_).value)


def multi_indices(m: int, order: int) -> list[tuple[int, ...]]:
    """Return the multi-indices α of m variables with |α| <= order, by total order."""
    return [
        tuple(factors.count(i) for i in range(m))
        for total in range(order + 1)
        for factors in combinations_with_replacement(range(m), total)
    ]


def lowered(alpha: tuple[int, ...], i: int) -> tuple[int, ...]:
    """Return α - e_i."""
    return (*alpha[:i], alpha[i] - 1, *alpha[i + 1 :])
