"""The density estimate (52) against closed forms."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import ive
from scipy.stats import norm

import heatsketch as hs
from problems.chance import Z_ALARM
from problems.clouds import cloud, even_circle
from problems.matrices import kernel_matrix


@pytest.mark.parametrize("epsilon", [0.02, 0.3, 2.0])
def test_on_an_even_circle_it_is_a_bessel_function(epsilon):
    """The mean of exp(-(2 - 2 cos t)/ε) is e^(-2/ε) I_0(2/ε)."""
    rho = hs.density_estimate(even_circle(200), epsilon, 1)
    assert_allclose(rho, ive(0, 2 / epsilon) / math.sqrt(math.pi * epsilon), rtol=1e-12)


def test_its_error_is_of_the_order_of_epsilon():
    """1/2π on the circle, with the relative error ε/16 + O(ε²) of I_0."""
    exact = 1 / (2 * math.pi)
    for epsilon in (0.01, 0.02, 0.04):
        rho = hs.density_estimate(even_circle(400), epsilon, 1)[0]
        assert rho / exact - 1 == pytest.approx(epsilon / 16, rel=0.1)


def test_it_is_the_formula():
    X = cloud(50, 3)
    expected = (math.pi * 0.7) ** (-3 / 2) * kernel_matrix(X, 0.7).mean(axis=1)
    assert_allclose(hs.density_estimate(X, 0.7, 3), expected, rtol=1e-12)
    for form, at in ((X, X), (sparse.csr_matrix(X), None)):
        assert_allclose(hs.density_estimate(form, 0.7, 3, at=at), expected, rtol=1e-9)


@pytest.mark.parametrize("d", [1, 2])
def test_away_from_the_points_it_integrates_to_one(d):
    X = np.random.default_rng(1).standard_normal((30, d))
    axis = np.linspace(-8, 8, 161)
    grid = np.stack(np.meshgrid(*[axis] * d), axis=-1).reshape(-1, d)
    total = hs.density_estimate(X, 0.5, d, at=grid).sum() * (axis[1] - axis[0]) ** d
    assert total == pytest.approx(1, abs=1e-9)


def test_units_count_as_they_should():
    X = cloud(40, 2)
    rho = hs.density_estimate(X, 0.5, 2)
    assert_allclose(hs.density_estimate(10 * X, 50.0, 2), rho / 100, rtol=1e-9)
    for same in (X + 3, np.vstack([X, X])):
        assert_allclose(hs.density_estimate(same, 0.5, 2)[:40], rho, rtol=1e-9)


@pytest.mark.statistical
def test_of_a_normal_sample_it_is_the_wider_normal_density():
    """E ρ(x) = N(x; 0, 1 + ε/2); alarm 1e-6 for each x; sees 3 % at 0."""
    n, epsilon = 40_000, 0.2
    X = np.random.default_rng(3).standard_normal((n, 1))
    at = np.array([[0.0], [1.0], [-2.0]])
    mean = norm.pdf(at[:, 0], scale=math.sqrt(1 + epsilon / 2))
    error = norm.pdf(X, at.T, math.sqrt(epsilon / 2)).std(axis=0) / math.sqrt(n)
    rho = hs.density_estimate(X, epsilon, 1, at=at)
    assert (np.abs(rho - mean) < Z_ALARM * error).all()
    assert Z_ALARM * error[0] < 0.03 * mean[0]


def test_it_is_what_alpha_divides_by():
    """K / (ρ ρᵀ) has the same walk as K / (q qᵀ)."""
    X = cloud(40, 2)
    K, rho = hs.gaussian_affinity(X, 0.5), hs.density_estimate(X, 0.5, 2)
    by_hand = hs.markov_normalize(K / np.outer(rho, rho), alpha=0)
    assert_allclose(hs.markov_normalize(K, alpha=1), by_hand, rtol=1e-10)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0"),
        ({"epsilon": "self-tuning"}, "is unknown"),
        ({"dimension": 0}, "dimension=0"),
        ({"dimension": 10_000, "epsilon": 1e-3}, "beyond float64"),
        ({"at": [[np.nan, 0.0]]}, "at contains NaN"),
        ({"at": [[0.0]]}, "at has 1 columns, but X has 2 features"),
    ],
)
def test_bad_arguments_are_refused(changes, match):
    with pytest.raises(ValueError, match=match):
        hs.density_estimate(even_circle(20), **({"epsilon": 1.0, "dimension": 1} | changes))


def test_a_rule_chooses_epsilon():
    X = even_circle(100)
    epsilon = hs.ksum(X).epsilon
    assert_allclose(hs.density_estimate(X, "ksum", 1), hs.density_estimate(X, epsilon, 1))
