"""The embedding by the heat kernel: its pullback metric, Theorem 2.1."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ive, lpmv

import heatsketch as hs
from problems.clouds import even_circle


def circle(angles, radius=1.0, most=60):
    """Eigenvalues m²/r², and cosines and sines that are orthonormal in L² of the circle."""
    m = np.arange(1, most)
    waves = [np.cos(np.outer(angles, m)), np.sin(np.outer(angles, m))]
    return np.tile(m / radius, 2) ** 2, np.hstack(waves) / np.sqrt(np.pi * radius)


def test_the_factor_in_print_has_another_limit():
    """The root over 2 alone leaves (4π)^(n/4), the root over all t^(-(n+2)/8)."""
    n = 1
    for t in (1e-1, 1e-3):
        right = np.sqrt(2) * (4 * np.pi) ** (n / 4) * t ** ((n + 2) / 4)
        over_two = np.sqrt(2) * (4 * np.pi) ** (n / 2) * t ** ((n + 2) / 4)
        over_all = np.sqrt(2 * (4 * np.pi) ** (n / 2) * t ** ((n + 2) / 4))
        Y = hs.heat_kernel_embedding(*circle([0.0, 1e-4], most=200), t, n)
        length = np.linalg.norm(Y[1] - Y[0])
        assert_allclose(length, 1e-4, rtol=1e-4)  # of the right factor
        assert_allclose(length * over_two / right, 1e-4 * (4 * np.pi) ** 0.25, rtol=1e-4)
        assert_allclose(length * over_all / right, 1e-4 * t ** (-3 / 8), rtol=1e-4)


@pytest.mark.parametrize("radius", [0.5, 1.0, 3.0])
def test_the_pullback_metric_of_the_circle_tends_to_its_own(radius):
    step, deviations = 1e-4, []
    for t in (0.02 * radius**2, 0.08 * radius**2):
        Y = hs.heat_kernel_embedding(*circle([0.3, 0.3 + step], radius), t, 1)
        deviations.append(np.linalg.norm(Y[1] - Y[0]) / (radius * step) - 1)
        # Σ m² e^{-m²τ} over all m by Poisson's formula: √π/(4 τ^{3/2}) up to e^{-π²/τ}.
        assert abs(deviations[-1]) < 1e-7


def test_on_the_flat_torus_the_product_has_the_sum_of_the_metrics():
    t, step = 0.02, np.array([2e-4, 1e-4])
    one = [circle([0.0, h], most=30) for h in step]
    waves = [np.hstack([np.full((2, 1), (2 * np.pi) ** -0.5), phi]) for _, phi in one]
    lam = [np.append(0.0, values) for values, _ in one]
    phi = np.einsum("ni,nj->nij", *waves).reshape(2, -1)
    values = np.add.outer(*lam).ravel()
    Y = hs.heat_kernel_embedding(values[1:], phi[:, 1:], t, 2)
    assert_allclose(np.linalg.norm(Y[1] - Y[0]), np.linalg.norm(step), rtol=1e-6)


def test_on_the_sphere_it_tends_to_one_with_t():
    """By zonal functions: |ψ(x) - ψ(y)|² = 2 factor² Σ (2l+1)/4π e^{-l(l+1)t} (1 - P_l(cos a))."""
    a, ratios = 1e-3, []
    degree = np.arange(1, 200)
    for t in (0.1, 0.05, 0.025):
        factor = np.sqrt(2) * (4 * np.pi) ** 0.5 * t
        legendre = np.array([lpmv(0, n, np.cos(a)) for n in degree])
        heat = (2 * degree + 1) / (4 * np.pi) * np.exp(-degree * (degree + 1) * t)
        ratios.append(factor * np.sqrt(2 * heat @ (1 - legendre)) / a - 1)
    assert np.abs(ratios[2]) < np.abs(ratios[1]) < np.abs(ratios[0]) < 0.05
    # The same by rows: harmonics of degree 1 of three points.
    X = np.eye(3)
    Y = hs.heat_kernel_embedding([2.0] * 3, np.sqrt(3 / (4 * np.pi)) * X, 0.1, 2)
    want = 2 * np.sqrt(np.pi) * np.sqrt(2) * 0.1 * np.exp(-0.1) * np.sqrt(3 / (4 * np.pi))
    assert_allclose(Y, want * X, rtol=1e-12)


@pytest.mark.parametrize("epsilon", [0.02, 0.04])
def test_coordinates_of_points_have_the_lengths_of_the_circle(epsilon):
    """By log λ at every time; the generator 1 - λ is right at long ones only."""
    n, times = 400, np.array([1, 2, 5, 10]) * epsilon
    model = hs.DiffusionMap(60, affinity="dense", epsilon=epsilon).fit(even_circle(n))
    phi = model.eigenvectors_ / np.sqrt(2 * np.pi)
    off = []
    for generator in (-np.log(model.eigenvalues_), 1 - model.eigenvalues_):
        for t in times:
            Y = hs.heat_kernel_embedding(4 / epsilon * generator, phi, t, 1)
            lengths = np.linalg.norm(Y - np.roll(Y, 1, axis=0), axis=1)
            assert_allclose(lengths, lengths[0], rtol=1e-6)
            off.append(lengths[0] * n / (2 * np.pi) - 1)
    assert np.abs(off[:4]).max() < 0.3 * epsilon
    assert (np.array(off[4:]) > [0.5, 0.15, 0.04, 0.01]).all()


def test_on_the_sphere_log_lambda_has_the_lengths_that_one_minus_lambda_has_not():
    """λ_l of the Gaussian kernel is I_{l+½}(2/ε) / I_½(2/ε); |∇φ|² sums to l(l+1)(2l+1)/4π."""
    epsilon, degree = 0.02, np.arange(1, 60)
    lam = ive(degree + 0.5, 2 / epsilon) / ive(0.5, 2 / epsilon)
    slopes = np.sqrt(degree * (degree + 1) * (2 * degree + 1) / (8 * np.pi))  # in one direction
    for ratio, wrong in ((2, 1.0), (5, 0.05)):
        speeds = [
            np.linalg.norm(hs.heat_kernel_embedding(4 / epsilon * g, [slopes], ratio * epsilon, 2))
            for g in (-np.log(lam), 1 - lam)
        ]
        assert abs(speeds[0] - 1) < 0.3 * epsilon
        assert speeds[1] - 1 > wrong


def test_what_does_not_fit_together_is_told():
    with pytest.raises(ValueError, match=r"shape .2,.*pass 3 numbers >= 0"):
        hs.heat_kernel_embedding([1.0, 2.0], np.ones((4, 3)), 1.0, 1)
    with pytest.raises(ValueError, match="the smallest is -1"):
        hs.heat_kernel_embedding([-1.0], np.ones((4, 1)), 1.0, 1)
