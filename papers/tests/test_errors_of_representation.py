"""Errors in print of *Diffusion representation*: the printed form fails, the correct one holds."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import squareform

import heatsketch as hs
from heatsketch.mixture.series import largest_in_ball
from papers.representation.stationary import SQUARES, two_squares


def series(gamma, order):
    """Σ γ^i / i! of the orders 0, ..., l."""
    return sum(gamma**i / math.factorial(i) for i in range(order + 1))


class Taylor:
    """The vectors and matrices of (4.4)-(4.10) and (5.3)-(5.6), for two components on a line."""

    weights, means, sigma, epsilon, order = (
        np.array([0.3, 0.7]),
        np.array([-0.5, 0.4]),
        0.2,
        0.6,
        40,
    )

    def __init__(self):
        self.S = self.sigma + self.epsilon / 2
        self.D = 1 / (1 / self.epsilon + 1 / (self.epsilon + 4 * self.sigma))

    def h(self, x):
        g = np.exp(-((x - self.means) ** 2) / (2 * self.S)) / np.sqrt(2 * np.pi * self.S)
        return self.weights * g

    def hatted(self, x):
        c = self.D * (x / self.epsilon + (2 * self.means - x) / (self.epsilon + 4 * self.sigma))
        return c / np.sqrt(2 * self.D)

    def F(self, x):
        """(4.8): a column for each component, (l + 1, n)."""
        c, orders = self.hatted(x), np.arange(self.order + 1)
        roots = np.sqrt([float(math.factorial(i)) for i in orders])
        return np.exp(-(c**2) / 2) * c ** orders[:, None] / roots[:, None]

    @property
    def constant(self):
        return (2 * np.pi) ** -0.5 * (2 * self.D) ** -0.5

    def G(self, x, z):
        """(4.5), in closed form."""
        return self.constant * np.exp(-((self.hatted(x)[:, None] - self.hatted(z)) ** 2) / 2)


def test_a_matrix_of_the_pixels_takes_550_gigabytes():
    """262,144 × 262,144 numbers of 8 bytes; one triangle, as `pdist` stores it, is half of it."""
    n = 512 * 512
    full = np.broadcast_to(0.0, (n, n)).nbytes
    triangle = np.dtype(float).itemsize * n * (n - 1) // 2
    assert len(squareform(np.zeros((5, 5)))) == 5 * 4 // 2  # the count of a triangle
    assert abs(full / 1e9 - 550) < 1
    assert abs(triangle / 1e9 - 275) < 1
    assert full > 2 * 270e9


def test_normal_densities_have_unit_norm_in_l1_and_not_in_l2():
    """(A.3) needs ∫ g = 1; with ∫ g² = 1 it fails."""
    r, step = np.linspace(-20, 20, 4001, retstep=True)

    def g(mean, variance, x=r):
        return np.exp(-((x - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)

    first, second = g(0.3, 0.5), g(-0.4, 1.2)
    assert_allclose(step * first.sum(), 1)
    squares = [step * np.square(f).sum() for f in (first, second)]
    assert max(squares) < 0.5
    of_a3 = g(0.3, 0.5 + 1.2, -0.4)
    assert_allclose(step * np.sum(first * second), of_a3)
    of_l2 = step * np.sum(first * second) / math.sqrt(squares[0] * squares[1])
    assert of_l2 > 1.5 * of_a3


def test_the_exponent_of_the_expansion_is_an_inner_product():
    """(4.2) expands e^γ at γ = xᵀy, and not at the printed -|x - y|²/2."""
    x, y = np.array([0.6, -0.3]), np.array([0.2, 0.5])
    left, factors = np.exp(-((x - y) @ (x - y)) / 2), np.exp(-(x @ x + y @ y) / 2)
    assert_allclose(factors * series(x @ y, 20), left)
    assert abs(factors * series(-((x - y) @ (x - y)) / 2, 20) - left) > 0.1 * left


def test_the_outer_product_has_x_on_one_side_and_z_on_the_other():
    """(4.7): G(x, z) = constant F(x)ᵀ F(z); the printed F of z alone is the G of z and z."""
    t, x, z = Taylor(), -0.7, 0.5
    G = t.G(x, z)
    assert_allclose(t.constant * t.F(x).T @ t.F(z), G)
    printed = t.constant * t.F(z).T @ t.F(z)
    assert_allclose(printed, t.G(z, z))
    W = t.h(x) @ G @ t.h(z)
    assert_allclose(t.h(x) @ t.F(x).T @ t.F(z) @ t.h(z) * t.constant, W)
    assert abs(t.h(x) @ printed @ t.h(z) - W) > 0.1 * W
    kernel = hs.MixtureKernel(t.weights, t.means[:, None], [t.sigma] * 2, t.epsilon)
    x, z = np.array([[x]]), np.array([[z]])
    norms = kernel.squared_norm(x) + kernel.squared_norm(z)
    inner = (norms - kernel.squared_distance(x, z, pairwise=False)) / 2
    assert_allclose(W / (kernel.stationary(x) * kernel.stationary(z)), inner)


def test_the_truncated_matrix_is_not_transposed_once_more():
    """(5.4) stacks rows, where (4.8) has columns, and (5.3) transposes it as (4.10) does."""
    t, x = Taylor(), 0.5
    stacked = t.F(x).T  # (5.4): a row for each component, (n, l + 1)
    with pytest.raises(ValueError, match="mismatch"):
        t.h(x) @ stacked.T  # (5.3)
    f = math.sqrt(t.constant) * t.h(x) @ stacked / t.h(x).sum()
    assert_allclose(f, math.sqrt(t.constant) * t.h(x) @ t.F(x).T / t.h(x).sum())  # (4.10)
    kernel = hs.MixtureKernel(t.weights, t.means[:, None], [t.sigma] * 2, t.epsilon)
    assert_allclose(f @ f, kernel.squared_norm([[x]])[0])


def test_the_density_of_the_data_exceeds_one_in_the_unit_ball():
    """§2 has |x| <= 1 and q from R^m to [0, 1], which cannot hold for the data of §6."""
    scale = np.linalg.norm(two_squares(3000, np.random.default_rng(0)), axis=1).max()
    areas = [((b - a) / scale) ** 2 for _, a, b in SQUARES]
    densities = [share / area for (share, *_), area in zip(SQUARES, areas, strict=True)]
    assert_allclose(np.dot(densities, areas), 1)  # a density
    assert min(densities) > 5


def test_the_maximum_over_the_ball_is_the_same_for_both_signs():
    """(5.11): |Ax - b|² at x is |Ax + b|² at -x, so that only the point is wrong."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((2, 2)), rng.standard_normal(2)
    angle = np.linspace(0, 2 * np.pi, 20_001)
    x = np.stack([np.cos(angle), np.sin(angle)])
    right, printed = (np.square(A @ x + sign * b[:, None]).sum(axis=0) for sign in (1, -1))
    assert_allclose(right.max(), printed.max(), rtol=1e-6)
    assert_allclose(largest_in_ball(A, b, 1.0).value, right.max(), rtol=1e-6)
    at_printed = right[np.argmax(printed)]
    assert at_printed < 0.5 * right.max()
