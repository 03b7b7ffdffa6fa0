"""Chebyshev series of filters, against their closed forms."""

import math

import numpy as np
import pytest
from scipy.special import ive
from scipy.stats import binom

import heatsketch as hs
from heatsketch.core.operators import Bounds
from heatsketch.spectral.filters import Filter
from heatsketch.spectral.functions import chebyshev_coefficients
from heatsketch.spectral.recurrences import recurrence

FILTERS = [hs.Power(p) for p in (0, 1, 2, 3, 8, 101)]
FILTERS += [hs.Heat(t) for t in (1e-3, 0.1, 1.0, 7.5, 1e2, 1e4)] + [hs.Heat(90.0).reduced()]


@pytest.mark.parametrize(
    "interval", [(-1.0, 1.0), (0.0, 1.0), (-0.2, 1.0), (0.3, 0.4), (-3.0, 1.02)]
)
@pytest.mark.parametrize("f", FILTERS, ids=str)
def test_coefficients_give_the_filter_back(f: Filter, interval: Bounds) -> None:
    low, high = interval
    tol = 1e-12
    c = chebyshev_coefficients(f, interval, tol)
    x = np.linspace(-1, 1, 301)
    values = f((high - low) / 2 * x + (high + low) / 2)
    size = np.abs(values).max()
    # Each coefficient left out is at most `tol`, falling geometrically over the last eighth.
    series = np.polynomial.chebyshev.chebval(x, c)
    np.testing.assert_allclose(series, values, rtol=0, atol=100 * tol * size)


@pytest.mark.parametrize("t", [10.0, 1e3, 1e4])
def test_degree_grows_like_the_root_of_time(t: float) -> None:
    # e^{t(x-1)} has the coefficients 2 e^{-t} I_j(t), below tol from j = √(2 t ln(2/tol)) on.
    tol = 1e-10
    c = chebyshev_coefficients(hs.Heat(t), (-1.0, 1.0), tol)
    exact = 2 * ive(np.arange(len(c)), t)
    exact[0] /= 2
    np.testing.assert_allclose(c, exact, atol=1e-14 * math.sqrt(t), rtol=0)
    assert 2 * ive(len(c), t) <= tol * 1.001
    assert len(c) <= math.sqrt(2 * t * math.log(2 / tol)) + 20


@pytest.mark.parametrize("p", [256, 1024, 4096])
def test_a_left_out_tail_is_bounded_by_its_sum(p: int) -> None:
    # The coefficients of x^p are binomial: those of the walk of p steps, twice.
    tol = 1e-6
    c = chebyshev_coefficients(hs.Power(p), (-1.0, 1.0), tol)
    j = np.arange(0, p + 1, 2)
    exact = 2 * binom.pmf((p - j) // 2, p, 0.5)
    exact[0] /= 2
    np.testing.assert_allclose(c[::2], exact[: len(c[::2])], atol=1e-13)
    left_out = exact[len(c[::2]) :].sum()
    assert left_out <= tol < left_out + abs(c[-1])


def test_a_time_beyond_all_degrees_is_refused() -> None:
    with pytest.raises(ValueError, match="smaller time"):
        chebyshev_coefficients(hs.Heat(1e12), (-1.0, 1.0), 1e-15)


@pytest.mark.parametrize("interval", [(-0.5, 0.7), (0.2, 0.9), (-3.0, -1.0)])
@pytest.mark.parametrize("known", [False, True], ids=["product", "image"])
def test_terms_are_chebyshev_polynomials_of_the_operator(interval: Bounds, known: bool) -> None:
    low, high = interval
    values = np.linspace(low - 0.1, high + 0.2, 40)
    A = hs.Deflated(hs.Dense(np.diag(values)), np.eye(40)[:, :1])
    X = A.project(np.random.default_rng(0).standard_normal((40, 3)))
    x = (2 * values - low - high) / (high - low)
    terms = recurrence(A, X, interval, 7, A @ X if known else None)
    for j, T in enumerate(terms, start=1):
        want = np.polynomial.chebyshev.Chebyshev.basis(j)(x)[:, None] * X
        np.testing.assert_allclose(T, want, rtol=1e-11, atol=1e-11)
    assert j == 7
