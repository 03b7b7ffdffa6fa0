"""Abstract base of feature maps by series: Hermite functions up to an order."""

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from itertools import combinations_with_replacement, count
from typing import Any, Self

import numpy as np

from heatsketch._exceptions import ConvergenceWarning, warn
from heatsketch._state import at_once
from heatsketch._typing import Array
from heatsketch._validation import check_number
from heatsketch.mixture.cholesky_map import draw
from heatsketch.mixture.feature_map import SmoothMap
from heatsketch.mixture.mixture_kernel import MixtureKernel

_EQUAL_COVARIANCES = 1e-12  # relative difference of covariances D_j that count as one
_DRAWN_POINTS = 2000  # if no points are given


class SeriesMap(SmoothMap):
    """Abstract base: Hermite functions of orders 0, ..., l about an origin, in all m variables.

    With lengths in units of M^(1/2), M the mean of the D_j, the function of order α is
    ψ_α ∝ He_α(√2 r) exp(-|r|²/2), and ⟨ψ_α, g(·; c, D)⟩ = f_α with
    √(α_i + 1) f_{α+e_i} = b_i f_α + Σ_k B_ik √α_k f_{α-e_k}, B = (D - I)(D + I)⁻¹ and
    b = √2 (I + D)⁻¹ c. Where D = M these are monomials in ĉ = (2D)^(-1/2) c. The orders 0, ..., l
    project p(x, ·) orthogonally in L²(dr), so distances grow with l, up to the true one.
    """

    def __init__(
        self,
        order: int | None = None,
        *,
        radius: float | None = None,
        centred: bool = True,
        max_features: int = 10_000,
    ) -> None:
        if order is not None:
            check_number(order, "order", low=0, integer=True)
        if radius is not None:
            check_number(radius, "radius", low=0)
        self.order, self.radius, self.centred = order, radius, centred
        self.max_features = check_number(max_features, "max_features", low=1, integer=True)

    @at_once
    def fit(self, kernel: MixtureKernel, tolerance: float = 0.01, points: Any = None) -> Self:
        """Choose the ball, the origin and the order, and return the map.

        Parameters
        ----------
        kernel : MixtureKernel
        tolerance : float > 0, default=0.01
            ζ, the largest difference between a distance of coordinates and the diffusion distance
            in the ball, in units of the latter (√density: see `kernel.squared_distance`). It
            chooses the order, unless `order` is given.
        points : array-like of shape (n_samples, n_features), default=None
            Points that the ball holds. By default 2,000 points drawn from the stationary density.

        Raises
        ------
        ValueError, TypeError
            A tolerance that is not positive; points that are not a finite table (n, m) of the
            features of the mixture.

        Warns
        -----
        ConvergenceWarning
            The tolerance needs more than `max_features` coordinates; `error_bound` is the tolerance
            reached.
        """
        self.kernel, m = kernel, kernel.n_features
        tolerance = check_number(tolerance, "tolerance", low=0, open_low=True)
        x = kernel.components.checked(
            draw(kernel, _DRAWN_POINTS, 0) if points is None else points, "points"
        )
        middle = (x.min(axis=0) + x.max(axis=0)) / 2 if self.centred else np.zeros(m)
        largest = float(np.linalg.norm(x - middle, axis=1).max())
        self.centre_, self.radius_ = middle, largest if self.radius is None else float(self.radius)
        eye = np.eye(m)
        S = kernel.covariances + kernel.epsilon / 2 * eye
        one_step = np.linalg.solve(S, kernel.covariances)
        self._C = np.linalg.matrix_power(one_step, kernel.time)  # (K, m, m)
        D = S - self._C @ S @ self._C
        values, axes = np.linalg.eigh(np.einsum("k,kab->ab", kernel.weights, D))
        self._to_unit = (axes / np.sqrt(values)) @ axes.T
        self._log_scale = float(-np.log(values).sum() / 4)  # of a coordinate
        self._covariances = self._to_unit @ D @ self._to_unit
        if np.abs(self._covariances - eye).max() < _EQUAL_COVARIANCES:
            self._covariances = np.broadcast_to(eye, D.shape)
        self._inverses = np.linalg.inv(self._covariances + eye)
        self._B = (self._covariances - eye) @ self._inverses
        # c_j over the ball is A_j v + (c_j(middle) - origin), |v| <= radius
        centres = self._means(middle[None])[0]
        between = (centres.min(axis=0) + centres.max(axis=0)) / 2
        self._origin = between if self.centred else np.zeros(m)
        self._slopes = np.einsum("ab,kbc->kac", self._to_unit, self._C)
        self._offsets = (centres - self._origin) @ self._to_unit
        self._order = self._order_for(tolerance) if self.order is None else int(self.order)
        self.error_bound = 2 * self._bound(self._order)
        return self

    def _order_for(self, tolerance: float) -> int:
        """Return the smallest order for the tolerance, or the largest that fits, with a warning."""
        m = self.kernel.n_features

        def is_last(order: int) -> bool:
            return 2 * self._bound(order) <= tolerance or (
                math.comb(m + order + 1, m) > self.max_features
            )

        order = first_order(is_last)
        if (error := 2 * self._bound(order)) > tolerance:
            warn(
                ConvergenceWarning,
                f"tolerance={tolerance:.3g} is not reached with max_features={self.max_features} "
                f"coordinates, which hold orders 0 to {order}: distances have errors of up to "
                f"{error:.3g}; pass a larger tolerance, max_features or epsilon, or use "
                "CholeskyMap.",
            )
        return order

    @property
    def order_(self) -> int:
        """The order l of the map; an AttributeError before `fit`."""
        return self._order

    @property
    def n_features(self) -> int:
        """Number of coordinates, C(m + l, l); an AttributeError before `fit`."""
        return math.comb(self.kernel.n_features + self._order, self._order)

    @abstractmethod
    def _log_tails(self, order: int) -> Array:
        """Return log bounds on what orders 0..l lack of |g_j|² in the ball, (K,), in units of M."""

    def bound(self, order: int) -> float:
        """Return a bound on |p(x, ·) - its orders 0, ..., l| for all x in the ball.

        It is the largest of the bounds of the components, as the weights w_j(x) sum to 1. By the
        triangle inequality a distance is wrong by at most twice as much.

        Parameters
        ----------
        order : int
            l.

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        self._check_fitted()
        return self._bound(check_number(order, "order", low=0, integer=True))

    def _bound(self, order: int) -> float:
        return float(np.exp(self._log_tails(order).max() / 2 + self._log_scale))

    @cached_property
    def _indices(self) -> list[tuple[int, ...]]:
        return multi_indices(self.kernel.n_features, self._order)

    def _coordinates(self, x: Array) -> Array:
        """By order."""
        f, w = self._functions(x, self._indices), self.kernel.components.responsibilities(x)
        return np.exp(self._log_scale) * np.einsum("rnk,nk->nr", f, w)  # type: ignore[no-any-return]

    def _derivatives(self, x: Array) -> Array:
        c, m, r = self.kernel.components, self.kernel.n_features, self.n_features
        longer = multi_indices(m, self._order + 1)
        place = {alpha: j for j, alpha in enumerate(longer)}
        weights, f = c.responsibilities(x), self._functions(x, longer)
        by_centre = np.zeros((r, *f.shape[1:], m))  # ∂f_α/∂c_i, (r, n, K, m)
        for row, alpha in enumerate(longer[:r]):
            for i in range(m):
                above = place[raised(alpha, i)]
                by_centre[row, :, :, i] = -math.sqrt((alpha[i] + 1) / 2) * f[above]
                if alpha[i]:
                    below = place[lowered(alpha, i)]
                    by_centre[row, :, :, i] += math.sqrt(alpha[i] / 2) * f[below]
        found = np.einsum("rnk,nka->nra", f[:r], c.responsibility_gradients(x) / c.unit)
        found += np.einsum("rnka,nk,kab->nrb", by_centre, weights, self._slopes)
        return np.exp(self._log_scale) * found  # type: ignore[no-any-return]

    def _functions(self, x: Array, indices: list[tuple[int, ...]]) -> Array:
        """Return f_α of the components, (r, n, K), for all multi-indices up to an order."""
        c = (self._means(x) - self._origin) @ self._to_unit  # (n, K, m)
        b = math.sqrt(2) * np.einsum("nka,kab->nkb", c, self._inverses)
        halves = 0.5 * np.linalg.slogdet(self._inverses)[1]
        first = halves - 0.5 * np.einsum("nka,kab,nkb->nk", c, self._inverses, c)
        place = {alpha: j for j, alpha in enumerate(indices)}
        f = np.empty((len(place), *first.shape))
        f[0] = np.exp(first - 0.25 * c.shape[2] * math.log(math.pi))
        for target, alpha in enumerate(indices[1:], start=1):
            i = next(j for j, power in enumerate(alpha) if power)
            parent = lowered(alpha, i)
            f[target] = b[:, :, i] * f[place[parent]]
            for k, power in enumerate(parent):
                if power and self._B.any():
                    below = f[place[lowered(parent, k)]]
                    f[target] += math.sqrt(power) * self._B[:, i, k] * below
            f[target] /= math.sqrt(alpha[i])
        return f

    def _means(self, x: Array) -> Array:
        """Return c_j(x) = θ_j + C_j (x - θ_j), (n, K, m)."""
        steps = x[:, None] - self.kernel.means
        return self.kernel.means + np.einsum("nka,kab->nkb", steps, self._C)


def first_order(is_enough: Callable[[int], bool]) -> int:
    """Return the first of the orders 0, 1, ... that is enough."""
    return next(order for order in count() if is_enough(order))


def multi_indices(m: int, order: int) -> list[tuple[int, ...]]:
    """Return the multi-indices α of m variables with |α| <= order, by total order."""
    return [
        tuple(factors.count(i) for i in range(m))
        for total in range(order + 1)
        for factors in combinations_with_replacement(range(m), total)
    ]


def raised(alpha: tuple[int, ...], i: int) -> tuple[int, ...]:
    """Return α + e_i."""
    return (*alpha[:i], alpha[i] + 1, *alpha[i + 1 :])


def lowered(alpha: tuple[int, ...], i: int) -> tuple[int, ...]:
    """Return α - e_i."""
    return (*alpha[:i], alpha[i] - 1, *alpha[i + 1 :])
