"""Losses of log distance ratios: formulas, slopes, limits, and what they do not depend on."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp, ndtri, softmax

from heatsketch.layout import linear
from heatsketch.layout.linear import log_distortion, outside_fraction, stress

seeds = st.integers(0, 10**6)
BETAS = [2.0, 16.0, 128.0, 1024.0]
LOSSES = {
    "stress": stress,
    "outside": partial(outside_fraction, factor=1.5),
    "soft": partial(log_distortion, beta=4),
    "hard": partial(log_distortion, beta=64),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def log_ratios(m=40, seed=0, scale=0.3):
    return scale * np.random.default_rng(seed).normal(size=m)


@every_loss
@pytest.mark.parametrize("seed", range(3))
def test_the_slope_is_that_of_the_value(loss, seed):
    ell, h = log_ratios(seed=seed), 1e-6
    slope = [(loss(ell + h * e)[0] - loss(ell - h * e)[0]) / (2 * h) for e in np.eye(len(ell))]
    assert_allclose(loss(ell)[1], slope, rtol=1e-6, atol=1e-8)


@every_loss
@given(seeds, st.integers(1, 50), st.floats(-30, 30))
def test_the_scale_and_the_order_of_the_pairs_do_not_count(loss, seed, m, shift):
    ell = log_ratios(m, seed, scale=0.1)
    value, slope = loss(ell)
    moved, moved_slope = loss(ell[::-1] + shift)
    assert moved == pytest.approx(value, rel=1e-9, abs=1e-9)
    assert_allclose(moved_slope, slope[::-1], rtol=1e-6, atol=1e-9)
    assert slope.sum() == pytest.approx(0, abs=1e-9)


@every_loss
def test_equal_ratios_cost_nothing(loss):
    value, slope = loss(np.full(7, -3.5))
    assert value == pytest.approx(0, abs=1e-14)
    assert_allclose(slope, 0, atol=1e-14)


# Stress


@pytest.mark.parametrize("seed", range(3))
def test_stress_is_the_limit_of_log_distortion(seed):
    # log mean e^{βℓ} has the cumulants as coefficients: J_β / β = κ₂ + κ₄ β² / 12 + ....
    ell = log_ratios(seed=seed, scale=1.0)
    (variance, slope), centred = stress(ell), ell - ell.mean()
    fourth = np.mean(centred**4) - 3 * variance**2
    for beta in (0.04, 0.02):
        value, its_slope = log_distortion(ell, beta)
        rest = (value / beta - variance) / beta**2
        assert rest == pytest.approx(fourth / 12, abs=10 * beta**2)
        assert_allclose(its_slope / beta, slope, atol=beta**2)


# The smoothed fraction outside


@pytest.mark.parametrize("factor", [1.25, 1.5, 2.0])
def test_outside_fraction_of_a_bell_curve(factor):
    # The mean of exp(-x²/2w²) over a normal distribution of deviation s is w / √(w² + s²).
    s = 0.2
    ell = s * ndtri((np.arange(20_000) + 0.5) / 20_000)
    width = linear._WIDTH * math.log(factor)
    expected = 1 - width / math.hypot(width, s)
    assert outside_fraction(ell, factor)[0] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_the_centre_is_where_least_is_outside(seed):
    # A lopsided cloud: its mean is not its centre. Elsewhere the same window leaves more outside.
    ell = np.random.default_rng(seed).exponential(0.3, 200)
    width = linear._WIDTH * math.log(1.5)
    around = np.linspace(ell.min(), ell.max(), 2001)[:, None]
    least = (1 - np.exp(-(((ell - around) / width) ** 2) / 2)).mean(axis=1).min()
    assert outside_fraction(ell, 1.5)[0] == pytest.approx(least, abs=1e-4)


# Log-distortion


@pytest.mark.parametrize("beta", BETAS)
def test_log_distortion_is_that_of_the_formula(beta):
    ell = log_ratios()
    value, slope = log_distortion(ell, beta)
    want = (logsumexp(beta * ell) + logsumexp(-beta * ell) - 2 * math.log(len(ell))) / beta
    assert value == pytest.approx(want, rel=1e-12)
    assert_allclose(slope, softmax(beta * ell) - softmax(-beta * ell), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("beta", BETAS)
def test_forty_powers_of_ten_of_distance_ratios_do_not_overflow(beta):
    ell = np.linspace(-20, 20, 401) * math.log(10)
    value, slope = log_distortion(ell, beta)
    log_L = 40 * math.log(10)
    assert log_L - 2 * math.log(401) / beta - 1e-4 <= value <= log_L + 1e-4
    assert np.isfinite(slope).all()
    assert slope[-1] > 0.1
    assert slope[0] < -0.1
