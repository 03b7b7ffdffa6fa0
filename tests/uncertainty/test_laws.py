"""How far a sketched distance is from the true one: closed forms, enumeration, and columns."""

import numpy as np
import pytest
from scipy.stats import binom, chi2

import heatsketch as hs
from heatsketch.uncertainty.intervals import mean_log, mean_root, ratio_bounds


@pytest.mark.parametrize("k", [1, 2, 7, 64, 1000])
def test_means_of_the_chi_square_law(k):
    x = chi2.ppf((np.arange(200_000) + 0.5) / 200_000, k) / k
    assert mean_root(k) == pytest.approx(np.sqrt(x).mean(), rel=1e-4)
    assert mean_log(k) == pytest.approx(np.log(x).mean(), abs=1e-4)


def tail_of_signs(m, k, ratio):
    """P(mean of k squares of (±1 ± … ± 1)/√m below, and above, a ratio), exactly."""
    values = np.abs(2 * np.arange(m + 1) - m) ** 2
    one = np.zeros(m * m + 1)
    np.add.at(one, values, binom.pmf(np.arange(m + 1), m, 0.5))
    law = np.ones(1)
    for _ in range(k):
        law = np.convolve(law, one)
    at = np.arange(len(law)) / (m * k)
    return law[at < ratio - 1e-12].sum(), law[at > ratio + 1e-12].sum()


@pytest.mark.parametrize("k", [1, 4, 16, 32])
@pytest.mark.parametrize("m", [2, 3, 5, 8])
def test_bounds_for_signs_hold_in_the_far_tails(k, m):
    for tail in (0.2, 0.025, 1e-3, 1e-6, 1e-9):
        low, high = ratio_bounds(k, tail, "rademacher", several=True)
        assert tail_of_signs(m, k, low)[0] <= tail
        assert tail_of_signs(m, k, high)[1] <= tail * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize("k", [16, 32])
@pytest.mark.parametrize("m", [2, 3, 4, 6, 12])
def test_the_chi_square_law_is_wide_enough_for_signs_from_16_columns_on(k, m):
    for level in (0.5, 0.9, 0.95, 0.99):
        low, high = ratio_bounds(k, (1 - level) / 2, "rademacher")
        assert tail_of_signs(m, k, low)[0] + tail_of_signs(m, k, high)[1] <= 1 - level


def test_with_few_columns_it_is_not_which_the_bounds_know():
    low, _ = ratio_bounds(4, 0.025, "rademacher")
    assert tail_of_signs(2, 4, low)[0] > 0.025
    assert ratio_bounds(4, 0.025, "rademacher", several=True)[0] == 0  # d = 0 has 1/16


def test_bounds_by_moments_are_those_of_chernoff():
    k, tail = 50, 0.01
    low, most = ratio_bounds(k, tail, "rademacher", several=True)
    a = np.linspace(0, 1, 100_001)
    bound = np.exp(k * (a * low + np.log1p(-a + 1.5 * a**2))).min()
    assert bound == pytest.approx(tail, rel=1e-6)
    a = np.linspace(0, 0.4999, 100_001)
    bound = np.exp(-a * k * most - k / 2 * np.log1p(-2 * a)).min()
    assert bound == pytest.approx(tail, rel=1e-6)


@pytest.mark.parametrize("error", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("n_pairs", [1, 1000])
def test_the_columns_are_enough_and_the_least(error, n_pairs):
    for level in (0.5, 0.95):
        k = hs.columns_for(error, n_pairs, level)

        def outside(k):
            return chi2.cdf(k * (1 - error) ** 2, k), chi2.sf(k * (1 + error) ** 2, k)

        assert sum(outside(k)) * n_pairs <= 1 - level
        assert max(outside(k - 1)) * n_pairs > (1 - level) / 2


def test_half_the_error_takes_four_times_the_columns_and_pairs_a_logarithm():
    k = [hs.columns_for(e) for e in (0.08, 0.04, 0.02, 0.01)]
    assert np.diff(np.log2(k)) == pytest.approx(2, abs=0.02)
    many = [hs.columns_for(0.1, 10**p) for p in (3, 6, 9, 12)]
    steps = np.diff(many)
    assert steps == pytest.approx(steps.mean(), rel=0.1)
    assert hs.columns_for(0.1, 10**6, kind="rademacher") > hs.columns_for(0.1, 10**6)
    assert hs.columns_for(0.1, kind="rademacher") == hs.columns_for(0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0,), "relative_error=0.0 is out of range; pass a number > 0 and < 1"),
        ((1.0,), "relative_error=1.0 is out of range"),
        ((0.1, 0), "n_pairs=0 is out of range"),
        ((0.1, 1, 1.0), "level=1.0 is out of range"),
        ((1e-4,), "more than 1,000,000 columns"),
    ],
)
def test_what_cannot_be_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        hs.columns_for(*arguments)


def test_a_sketch_takes_the_columns_that_the_tolerance_needs():
    X = np.random.default_rng(0).normal(size=(40, 3))
    for tolerance, kind in ((0.1, "gaussian"), (0.25, "gaussian"), (0.25, "rademacher")):
        model = hs.HeatSketch("auto", tolerance=tolerance, kind=kind, n_neighbors=5, random_state=0)
        assert model.fit_transform(X).shape[1] == hs.columns_for(tolerance, kind=kind)
    assert hs.HeatSketch("auto", [2, 4], n_neighbors=5).fit_transform(X).shape[1] == 2 * 192
    with pytest.raises(ValueError, match=r"relative_error|tolerance"):
        hs.HeatSketch("auto", tolerance=0.0).fit(X)
    with pytest.raises(TypeError, match="n_components='many' is of type str; pass an integer"):
        hs.HeatSketch("many").fit(X)
