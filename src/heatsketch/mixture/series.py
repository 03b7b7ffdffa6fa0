"""Feature maps by series: Taylor and Hermite, and random projections of tensor products.

The problem of the trust region is within the bounds of the Taylor map.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from itertools import combinations_with_replacement, count
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainc, gammaln
from sklearn.kernel_approximation import PolynomialCountSketch

from heatsketch._arrays import Array
from heatsketch._checks import check_number
from heatsketch._messages import ConvergenceWarning, warn
from heatsketch._random import seed_entropy
from heatsketch._state import at_once
from heatsketch.mixture.cholesky_map import FeatureMap, SmoothMap, draw
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


_EQUAL_EIGENVALUES = 1e-12  # relative difference of eigenvalues that count as one


class BallMaximum(NamedTuple):
    """The largest value over a ball, and a point (m,) where it is reached."""

    value: float
    point: Array


def largest_in_ball(A: Array, b: Array, radius: float) -> BallMaximum:
    """Return max |A x + b|² over |x| <= radius: a trust-region problem.

    With B = AᵀA and u = Aᵀb the maximum is where (τ I - B) x = u, |x| = radius and τ >= λ_max(B).
    In the hard case u is orthogonal to the leading eigenvectors and |x| is too small at τ = λ_max;
    a multiple of one of them is added then. *Diffusion representation*, (5.11), where argmax is
    missing, and Appendix B.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.mixture.series import largest_in_ball
    >>> largest_in_ball(np.eye(2), [3.0, 4.0], radius=1.0)
    BallMaximum(value=36.0, point=array([0.6, 0.8]))
    >>> largest_in_ball(np.diag([2.0, 1.0]), [0.0, 1.0], radius=1.0).value  # the hard case
    5.333333333333333
    """
    A, b = np.asarray(A, dtype=float), np.asarray(b, dtype=float)
    lam, V = np.linalg.eigh(A.T @ A)
    size = np.linalg.norm(A, 2) * radius + np.linalg.norm(b)
    if size == 0 or radius == 0 or lam[-1] <= 0:
        return BallMaximum(float(b @ b), np.zeros(A.shape[1]))
    u = V.T @ (A.T @ b)
    top = lam >= lam[-1] * (1 - _EQUAL_EIGENVALUES)
    gap, length = lam[-1] - lam, np.linalg.norm(u)
    if np.linalg.norm(u[top]) <= _EQUAL_EIGENVALUES * size * np.sqrt(lam[-1]):
        u = np.where(top, 0.0, u)
    x = np.zeros_like(u)
    x[~top] = u[~top] / gap[~top]
    if not u[top].any() and np.linalg.norm(x) <= radius:  # the hard case
        x[-1] = np.sqrt(max(radius**2 - x @ x, 0.0))
    else:
        # 1/|x(τ)| is nearly linear in τ: a root between bounds of τ - λ_max.
        low = float(max(np.linalg.norm(u[top]), length * _EQUAL_EIGENVALUES**2) / radius)
        high = length / radius * (1 + _EQUAL_EIGENVALUES) + np.finfo(float).tiny

        def excess(shift: float) -> float:
            return float(1 / np.linalg.norm(u / (shift + gap)) - 1 / radius)

        shift = low if excess(low) >= 0 else brentq(excess, low, high, xtol=1e-15 * low)
        x = u / (shift + gap)
        x *= radius / np.linalg.norm(x)
    point = V @ x
    image = A @ point + b
    return BallMaximum(float(image @ image), point)


class PrintedBounds(NamedTuple):
    """The printed error bounds of orders 0, ..., l.

    Attributes
    ----------
    G_b1, G_b2 : float
        Σ_j s_j^(l+1) / (l+1)!, (5.10), and Σ_j P(l+1, s_j), (5.12), which is smaller.
    eta : float
        Bound on |f - f_l|², (5.18): the smaller of the two times (2π)^(-m/2) |2D|^(-1/2), divided
        by ν_min² if that is given.
    """

    G_b1: float
    G_b2: float
    eta: float


class TaylorMap(SeriesMap):
    """Coordinates f_l(x) by a Taylor series, for a mixture with one covariance.

    f(x) = peak Σ_j w_j(x) exp(-|ĉ_j|²/2) (ĉ_j^α / √α!)_α, |α| <= l, with ĉ_j = (2D)^(-1/2) c_j(x)
    and peak = (2π)^(-m/4) |2D|^(-1/4) [1]_. Distances of f are diffusion distances; those of f_l
    differ from them by at most `error_bound` in a whole ball, also at points that were never seen.
    The C(m + l, l) coordinates have the inner products of the 1 + m + ... + m^l coordinates of the
    Kronecker basis (`n_kronecker`), in which the map is printed. The origin is moved to the middle
    of the ĉ_j, which changes no distance of f and saves orders.

    The bound is sharp: |f - f_l|² <= peak² max_j P(l + 1, s_j), P the regularised incomplete gamma
    function and s_j the largest |ĉ_j(x)|² over the ball (`reach_`, a trust-region problem). It
    needs neither a least density ν_min nor the number of components, unlike the printed bound η
    (`printed_bounds`). `residual` is peak Σ_j w_j(x) √P(l + 1, |ĉ_j(x)|²), exact for one component.
    In print the recursion of the basis lacks a square root, and "the first l terms" must be orders
    0, ..., l for the bounds to hold.

    When to use it: in one to three dimensions, for a map and a bound that depend on no points. When
    not: `CholeskyMap` keeps the same distances with far fewer coordinates, and takes any
    covariances; so does `HermiteMap`.

    Parameters
    ----------
    order : int, default=None
        l. By default the smallest order whose bound meets the tolerance.
    radius : float, default=None
        Radius of the ball, about the middle of the points. By default the ball contains them.
    centred : bool, default=True
        False: the ball and the series are about the origin of the coordinates, as printed.
    max_features : int, default=10000
        Largest number of coordinates that a tolerance may choose.

    Attributes
    ----------
    kernel : MixtureKernel
        The kernel of the fit.
    error_bound : float
        Bound on | |f_l(x) - f_l(z)| - d(x, z) | for all x and z in the ball.
    centre_ : ndarray of shape (n_features,)
        Middle of the ball.
    radius_ : float
        Its radius.

    Warns
    -----
    ConvergenceWarning
        The tolerance needs more than `max_features` coordinates; `error_bound` is the tolerance
        reached.

    See Also
    --------
    mixture.CholeskyMap : Coordinates whose distances approximate those of a mixture kernel.
    mixture.HermiteMap : The same for any covariances, by Hermite functions.
    mixture.TensorSketch : Random projections of the Kronecker features.
    MixtureDiffusion : Embed data by the diffusion of a Gaussian mixture.

    Notes
    -----
    The cost of a point is K C(m + l, l) products for K components, beside the K m² of its step.

    References
    ----------
    .. [1] *Diffusion representation*, on the measure-based Gaussian correlation (MGC) kernel,
       equations (4.1)-(5.20), Lemmas 4.1, 5.1 and 5.2, and Appendix B.

    Examples
    --------
    >>> import heatsketch as hs
    >>> kernel = hs.MixtureKernel([0.5, 0.5], [[0.0], [2.0]], [1.0, 1.0], epsilon=1.0)
    >>> features = hs.TaylorMap().fit(kernel, tolerance=1e-3, points=[[-1.0], [3.0]])
    >>> features.order_, features.n_features, bool(features.error_bound <= 1e-3)
    (11, 12, True)
    >>> features.l_max(1e-3, nu_min=1e-3)  # as printed
    17
    """

    def fit(self, kernel: MixtureKernel, tolerance: float = 0.01, points: Any = None) -> Self:
        """Choose the ball, the origin and the order, and return the map.

        Parameters
        ----------
        kernel : MixtureKernel
            Its components have the same covariance.
        tolerance : float > 0, default=0.01
            ζ, the largest error of a distance in the ball. It chooses the order, unless `order` is
            given.
        points : array-like of shape (n_samples, n_features), default=None
            Points that the ball holds. By default 2,000 points drawn from the stationary density.

        Raises
        ------
        ValueError, TypeError
            Covariances that differ; a tolerance that is not positive; points that are not a finite
            table (n, m) of the features of the mixture.
        """
        if np.ptp(kernel.covariances, axis=0).max() > _EQUAL_COVARIANCES * kernel.epsilon:
            raise ValueError(
                "The covariances of the components differ, but a Taylor map needs them equal; pass "
                "a mixture with covariance_type='tied', or use CholeskyMap or HermiteMap."
            )
        return super().fit(kernel, tolerance, points)

    @property
    def n_kronecker(self) -> int:
        """Number of coordinates of the Kronecker basis, 1 + m + ... + m^l."""
        return sum(self.kernel.n_features**i for i in range(self.order_ + 1))

    @cached_property
    def reach_(self) -> Array:
        """The largest |ĉ_j(x)|² over the ball, s_j, (K,): (5.11)."""
        ends = zip(self._slopes, self._offsets, strict=True)
        return np.array([largest_in_ball(A, b, self.radius_).value / 2 for A, b in ends])

    @property
    def _log_norm(self) -> float:
        """log |g|² = log (4π)^(-m/2), in units of M."""
        return -0.5 * self.kernel.n_features * math.log(4 * math.pi)

    def _log_tails(self, order: int) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(gammainc(order + 1, self.reach_)) + self._log_norm  # type: ignore[no-any-return]

    def _missed(self, x: Array) -> Array:
        """Return peak Σ_j w_j(x) √P(l + 1, |ĉ_j(x)|²), which is exact for one component."""
        tails = gammainc(self.order_ + 1, np.square(self._hatted(x)).sum(axis=2))
        w = self.kernel.components.responsibilities(x)
        return self._peak * (w * np.sqrt(tails)).sum(axis=1)  # type: ignore[no-any-return]

    @property
    def _peak(self) -> float:
        """(2π)^(-m/4) |2D|^(-1/4)."""
        return math.exp(self._log_norm / 2 + self._log_scale)

    def _hatted(self, x: Array) -> Array:
        """Return ĉ_j(x), (n, K, m)."""
        return (self._means(x) - self._origin) @ self._to_unit / math.sqrt(2)  # type: ignore[no-any-return]

    def scaled_centres(self, x: Array) -> tuple[Array, Array]:
        """Return ĉ_j(x), (n, K, m), and peak w_j(x) exp(-|ĉ_j|²/2), (n, K).

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table (n, m) of the features of the mixture.
        """
        x = self._checked(x)
        c, weights = self._hatted(x), self.kernel.components.responsibilities(x)
        return c, self._peak * weights * np.exp(-0.5 * np.square(c).sum(axis=2))

    def printed_bounds(self, order: int, nu_min: float | None = None) -> PrintedBounds:
        """Return G_b1, G_b2 and η of the same ball for the orders 0, ..., l, (5.8)-(5.18).

        In print η is divided by ν_min², with a proof that uses |h| <= 1 and so fails for densities
        above 1. Without `nu_min` it is not divided, and holds, since |h| <= ν.

        Parameters
        ----------
        order : int
            l.
        nu_min : float, default=None
            The least density ν_min.

        Raises
        ------
        NotFittedError, ValueError
            Before `fit`; an order below 0, or a ν_min that is not positive.
        """
        self._check_fitted()
        order = check_number(order, "order", low=0, integer=True)
        if nu_min is not None:
            nu_min = check_number(nu_min, "nu_min", low=0, open_low=True)
        s = self.reach_
        with np.errstate(divide="ignore", over="ignore"):
            G_b1 = float(np.sum(np.exp((order + 1) * np.log(s) - gammaln(order + 2))))
        G_b2 = float(np.sum(gammainc(order + 1, s)))
        eta = self._peak**2 * min(G_b1, G_b2)
        return PrintedBounds(G_b1, G_b2, eta if nu_min is None else eta / nu_min**2)

    def l_max(self, zeta: float, nu_min: float | None = None) -> int:
        """Return the smallest order l >= 1 with η <= ζ² / 4, (5.19) and (5.20).

        Parameters
        ----------
        zeta : float > 0
            ζ, the largest error of a distance.
        nu_min : float, default=None
            As in `printed_bounds`.

        Raises
        ------
        NotFittedError, ValueError
            Before `fit`; a ζ or ν_min that is not positive.
        """
        self._check_fitted()
        zeta = check_number(zeta, "zeta", low=0, open_low=True)
        return 1 + first_order(lambda n: self.printed_bounds(n + 1, nu_min).eta <= zeta**2 / 4)


class TensorSketch(FeatureMap):
    """Random projections of the Kronecker features of a Taylor map, never formed.

    Order i of the Taylor map consists of the m^i entries of ĉ ⊗ ... ⊗ ĉ / √i! [1]_. A tensor sketch
    (Pham and Pagh) [2]_ projects them to k coordinates at a cost of k log k for each factor; the
    projections of all orders are added. So the number of coordinates does not depend on the order.
    Squared distances are right on average, with a relative standard deviation of at most
    √((2 + 3^l) / k) [3]_; the factor 3^l counts only as far as order l counts in the distance.

    When to use it: if C(m + l, l) coordinates are too many, and errors of √(2/k) or more are
    acceptable. When not: `CholeskyMap` needs fewer coordinates and has a certificate.

    Parameters
    ----------
    n_components : int, default=256
        Number k of coordinates.
    order : int, default=None
        As in `TaylorMap`.
    radius : float, default=None
        As in `TaylorMap`.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the projections.

    Attributes
    ----------
    taylor_ : TaylorMap
        The map whose coordinates are projected: its order, `n_features` and `n_kronecker`, and its
        bounds on what truncation leaves out.
    relative_error_ : float
        √((2 + 3^l) / k), a bound on the root mean square, over seeds, of the relative error of a
        squared distance of f_l.

    See Also
    --------
    TaylorMap : Coordinates by a Taylor series, for one covariance.
    mixture.CholeskyMap : Coordinates whose distances approximate those of a mixture kernel.

    Notes
    -----
    The cost of a point is K l² (m + k log k) for K components.

    References
    ----------
    .. [1] *Diffusion representation*, on the measure-based Gaussian correlation (MGC) kernel, §7.1.
    .. [2] N. Pham and R. Pagh, "Fast and scalable polynomial kernels via explicit feature maps",
       KDD (2013).
    .. [3] H. Avron, H. L. Nguyen and D. P. Woodruff, "Subspace embeddings for the polynomial
       kernel", NeurIPS (2014), Lemma 9.

    Examples
    --------
    >>> import heatsketch as hs
    >>> kernel = hs.MixtureKernel([1.0], [[0.0] * 6], [1.0], epsilon=4.0)
    >>> features = hs.mixture.TensorSketch(64, order=4, random_state=0).fit(kernel)
    >>> features.transform([[0.0] * 6, [0.5] * 6]).shape, features.taylor_.n_kronecker
    ((2, 64), 1555)
    """

    def __init__(
        self,
        n_components: int = 256,
        *,
        order: int | None = None,
        radius: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = check_number(n_components, "n_components", low=1, integer=True)
        self.order, self.radius, self.random_state = order, radius, random_state

    @at_once
    def fit(self, kernel: MixtureKernel, tolerance: float = 0.01, points: Any = None) -> Self:
        """Choose the order as `TaylorMap.fit`, and draw the projections.

        Parameters
        ----------
        kernel : MixtureKernel
            Its components have the same covariance.
        tolerance : float > 0, default=0.01
            Largest error of a distance by truncation; the random error comes on top.
        points : array-like of shape (n_samples, n_features), default=None
            Points that the ball holds. By default 2,000 points drawn from the stationary density.

        Raises
        ------
        ValueError, TypeError
            As `TaylorMap.fit`.
        """
        unlimited = np.iinfo(np.int64).max
        taylor = TaylorMap(self.order, radius=self.radius, max_features=unlimited)
        self.kernel, self.taylor_ = kernel, taylor.fit(kernel, tolerance, points)
        rng = np.random.default_rng(seed_entropy(self.random_state))
        k, zero = self.n_components, np.zeros((1, kernel.n_features))
        self._constant = np.zeros(k)  # the projection of order 0
        self._constant[rng.integers(k)] = rng.choice([-1.0, 1.0])
        self._sketches = [
            PolynomialCountSketch(
                degree=i, coef0=0, n_components=k, random_state=int(rng.integers(2**31))
            ).fit(zero)
            for i in range(1, taylor.order_ + 1)
        ]
        self.relative_error_ = math.sqrt((2 + 3**taylor.order_) / k)
        return self

    @property
    def n_features(self) -> int:
        """Number of coordinates, `n_components`."""
        return self.n_components

    def _coordinates(self, x: Array) -> Array:
        centres, sizes = self.taylor_.scaled_centres(x)
        y = sizes.sum(axis=1)[:, None] * self._constant
        for i, sketch in enumerate(self._sketches, start=1):
            for j in range(sizes.shape[1]):
                part = sketch.transform(centres[:, j])
                y += (sizes[:, j] / math.sqrt(math.factorial(i)))[:, None] * part
        return y


_SQUARED_RATIOS = np.geomspace(1.001, 1e3, 200)  # r² tried in the bound
_LARGEST_RATIO = 0.999  # of r² |B|: the series diverges at 1
_ROUNDING = 1e-13  # of |p|², which is the error of a difference of two such numbers


class HermiteMap(SeriesMap):
    """Coordinates by Hermite functions of a common scale up to an order, for any covariances.

    The Taylor map [1]_ needs one covariance. All eigenvalues of the D_j lie between ε/2 and ε, so a
    series of Hermite functions whose scale is the mean of the D_j converges fast for any
    covariances; where they agree it is the Taylor map. The bound is rigorous, but not sharp: for
    every r > 1 with r² |B| < 1 the tail of a component is at most r^(-2(l+1)) Σ_α r^(2|α|) f_α², a
    Gaussian integral in closed form whose maximum over the ball is again a trust-region problem.

    Parameters
    ----------
    order : int, default=None
        l. By default the smallest order whose bound meets the tolerance.
    radius : float, default=None
        Radius of the ball, about the middle of the points. By default the ball contains them.
    centred : bool, default=True
        False: the ball and the series are about the origin of the coordinates.
    max_features : int, default=10000
        Largest number of coordinates that a tolerance may choose.

    Attributes
    ----------
    kernel : MixtureKernel
        The kernel of the fit.
    error_bound : float
        Bound on the error of the distances of all x and z in the ball.
    centre_ : ndarray of shape (n_features,)
        Middle of the ball.
    radius_ : float
        Its radius.

    See Also
    --------
    TaylorMap : Coordinates by a Taylor series, for one covariance.
    mixture.CholeskyMap : Coordinates whose distances approximate those of a mixture kernel.

    Notes
    -----
    The cost of a point is K m C(m + l, l) products for K components.

    References
    ----------
    .. [1] *Diffusion representation*, on the measure-based Gaussian correlation (MGC) kernel,
       equation (4.10).

    Examples
    --------
    >>> import heatsketch as hs
    >>> kernel = hs.MixtureKernel([0.5, 0.5], [[0.0], [2.0]], [1.0, 0.25], epsilon=1.0)
    >>> features = hs.mixture.HermiteMap().fit(kernel, points=[[-1.0], [3.0]])
    >>> bool(features.error_bound <= 0.01)
    True
    """

    def _missed(self, x: Array) -> Array:
        """Return a difference of squared norms, up to rounding from above."""
        c = self.kernel.components
        norms = c.transitions(x).norms * c.density_unit
        missing = np.maximum(norms - np.square(self._coordinates(x)).sum(axis=1), 0.0)
        return np.sqrt(missing + _ROUNDING * norms)  # type: ignore[no-any-return]

    def _log_tails(self, order: int) -> Array:
        return (self._log_sums - (order + 1) * np.log(_SQUARED_RATIOS)).min(axis=1)  # type: ignore[no-any-return]

    @cached_property
    def _log_sums(self) -> Array:
        """The largest log Σ_α r^(2|α|) f_α² in the ball, (K, number of r²); ∞ if it diverges."""
        components = zip(
            *np.linalg.eigh(self._covariances), self._slopes, self._offsets, strict=True
        )
        return np.array([[self._log_sum(r2, *c) for r2 in _SQUARED_RATIOS] for c in components])

    def _log_sum(self, r2: float, d: Array, axes: Array, A: Array, b: Array) -> float:
        B = (d - 1) / (d + 1)
        if r2 * np.abs(B).max() > _LARGEST_RATIO:
            return np.inf
        root = (axes * np.sqrt((r2 - 1) / (1 + d - r2 * (d - 1)))).T
        constant = -0.5 * len(d) * math.log(math.pi) - np.log1p(d).sum()
        constant -= 0.5 * np.log1p(-((r2 * B) ** 2)).sum()
        return float(constant + largest_in_ball(root @ A, root @ b, self.radius_).value)
