"""Filters: identities of scalar functions, and their Chebyshev series."""

import math

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.spectral.filters import make_filter

LAMBDAS = np.array([-1.0, -0.3, -1e-5, -1e-12, -1e-300, 0.0, 1e-300, 1e-12, 1e-5, 0.2, 0.999, 1.0])
ANY = [hs.Power(p) for p in (0, 1, 2, 3, 8, 101)]
ANY += [hs.Heat(t) for t in (1e-3, 0.1, 1.0, 7.5, 1e2, 1e4)]
ANY += [hs.Accumulated(t) for t in (1, 2, 8)]


# Scalar identities


@pytest.mark.parametrize("f", [f for f in ANY if f != hs.Power(0)], ids=str)
def test_reduced_is_what_is_left_before_a_last_product(f):
    whole, at_zero = f(LAMBDAS), f(np.zeros(1))
    rebuilt = at_zero + LAMBDAS * f.reduced()(LAMBDAS)
    # Below zero the sum cancels down from f(0).
    assert (np.abs(rebuilt - whole) <= 1e-12 * np.maximum(np.abs(whole), at_zero)).all()


@pytest.mark.parametrize("t", [1e-3, 0.1, 1.0, 7.5, 50.0])
def test_reduced_heat_keeps_its_digits_near_zero(t):
    # f = f(0) + λ q does not see q where λ is tiny; q = t e^{-t} ∫_0^1 e^{tλu} du does.
    nodes, weights = np.polynomial.legendre.leggauss(60)
    lam = np.concatenate([LAMBDAS, np.linspace(-1, 1, 41), 0.5 / t * np.array([0.999, 1.001])])
    values = hs.Heat(t).reduced()(lam)
    exponents = -t * (1 - np.multiply.outer(lam, (nodes + 1) / 2))
    np.testing.assert_allclose(values, t * np.exp(exponents) @ weights / 2, rtol=1e-12)


@pytest.mark.parametrize(
    "f", [hs.Power(1), hs.Power(5), hs.Heat(0.5), hs.Heat(30.0), hs.Accumulated(2)], ids=str
)
def test_minus_constant_is_all_but_the_value_at_zero(f):
    found, expected = f.minus_constant()(LAMBDAS), f(LAMBDAS) - f(np.zeros(1))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)
    tiny = np.array([1e-12, -1e-12])  # f(0) = e^-t is far larger
    if isinstance(f, hs.Heat):
        np.testing.assert_allclose(f.minus_constant()(tiny), f.t * np.exp(-f.t) * tiny, rtol=1e-9)


HEATS = [hs.Heat(0.5), hs.Heat(90.0)]
OF_HEATS = [f.reduced() for f in HEATS] + [f.minus_constant() for f in HEATS]


@pytest.mark.parametrize("lam", [LAMBDAS, LAMBDAS[:7] / 3, np.array([0.4, 0.9])], ids=len)
@pytest.mark.parametrize(
    "f", [*ANY, *(g for f in HEATS for g in (f.reduced(), f.minus_constant()))], ids=str
)
def test_scaled_values_multiply_out_to_the_filter(f, lam):
    values, log_scale = f.with_log_scale(lam)
    assert np.isfinite(values).all()
    np.testing.assert_allclose(values * math.exp(log_scale), f(lam), rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("f", [hs.Power(10**6), hs.Heat(1e6)], ids=str)
def test_scaled_values_neither_under_nor_overflow(f):
    for lam in (np.array([0.1, 0.5]), np.array([1.5, 2.0])):
        with np.errstate(over="ignore"):
            assert f(lam[1:])[0] in (0.0, np.inf)
        values, log_scale = f.with_log_scale(lam)
        assert values.max() == pytest.approx(1.0)
        log_f = f.p * math.log(lam[1]) if isinstance(f, hs.Power) else -f.t * (1 - lam[1])
        assert log_scale == pytest.approx(log_f, rel=1e-14)


@pytest.mark.parametrize("p", [3, 3.0, np.int64(3), np.float64(3.0)], ids=repr)
def test_a_whole_power_of_any_type_is_an_integer(p):
    assert hs.Power(p) == hs.Power(3)
    assert type(hs.Power(p).p) is int


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: hs.Power(-1), ValueError),
        (lambda: hs.Power(np.nan), ValueError),
        (lambda: hs.Power(True), TypeError),
        (lambda: hs.Power("2"), TypeError),
        (lambda: hs.Heat(-0.1), ValueError),
        (lambda: hs.Heat(math.nan), ValueError),
        (lambda: hs.Heat(math.inf), ValueError),
        (lambda: hs.Heat("1"), TypeError),
        (lambda: make_filter("warm", 1), ValueError),
        (lambda: hs.Accumulated(-1), ValueError),
        (lambda: hs.Accumulated(3, 3), ValueError),
        (lambda: hs.Accumulated(0).reduced(), ValueError),
        (lambda: hs.Accumulated(0.5).reduced(), ValueError),
        (lambda: hs.Accumulated(0.5)(np.array([-0.5])), ValueError),
        (lambda: hs.HeatSketch(filter="accumulated", time=1.5).fit(np.eye(20)), ValueError),
    ],
)
def test_bad_times_are_refused(make, error):
    with pytest.raises(error, match="pass"):
        make()
