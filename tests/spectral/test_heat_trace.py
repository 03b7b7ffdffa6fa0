"""The heat trace: closed forms, coverage of its intervals, one pass for all times."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

import heatsketch as hs
from heatsketch.spectral.traces import _variance
from problems.chance import ALARM, in_band
from problems.counting import Counting
from problems.spectra import PROBLEMS, lazy_torus, lazy_torus_eigenvalues, problem

TIMES = 2.0 ** np.arange(-1, 12)
TORUS = 24, 22


@pytest.fixture
def few_eigenvalues(limits):
    """Compute all eigenvalues of fewer points than the torus has."""
    limits(all_eigenpairs=500)


def torus_operator():
    return hs.Diffusion.from_graph(lazy_torus(*TORUS)).operator


def closed_form(lam, times):
    """Return Z, entropy and spectral dimension of eigenvalues at times."""
    x = np.multiply.outer(np.asarray(times, dtype=float), 1 - lam)
    least = x.min(axis=1, keepdims=True)
    p = np.exp(least - x)
    p /= p.sum(axis=1, keepdims=True)
    entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1)
    return np.exp(-x).sum(axis=1), entropy, 2 * (p * x).sum(axis=1)


@pytest.mark.parametrize("name", PROBLEMS)
def test_traces_of_known_spectra(name):
    A, values = problem(name)
    n = A.shape[0] if isinstance(A, np.ndarray) else A.n
    lam = np.zeros(n)
    lam[: min(n, len(values))] = values[:n]
    found = hs.heat_trace(A, TIMES)
    Z, entropy, dimension = closed_form(lam, TIMES)
    assert found.exact
    assert_allclose(found.values, Z, rtol=1e-9)
    assert_allclose(found.entropy, entropy, rtol=1e-9, atol=1e-9)
    assert_allclose(found.effective_rank, np.exp(entropy), rtol=1e-9)
    assert_allclose(found.dimension, dimension, rtol=1e-9, atol=1e-9)
    assert_allclose(found.low, found.high)


def test_dimension_is_the_slope_of_the_heat_trace():
    A, _ = problem("torus")
    h = 1e-4
    for t in (0.5, 3.0, 40.0):
        below, above = hs.heat_trace(A, [t * np.exp(-h), t * np.exp(h)]).values
        slope = -2 * np.log(above / below) / (2 * h)
        assert_allclose(hs.heat_trace(A, t).dimension, slope, rtol=1e-6)


def test_the_direction_taken_out_does_not_count():
    diffusion = hs.Diffusion.from_graph(lazy_torus(12, 10))
    whole = hs.heat_trace(diffusion, TIMES)
    without = hs.heat_trace(diffusion.deflated, TIMES)
    assert_allclose(whole.values - without.values, 1, rtol=0, atol=1e-9)


@pytest.mark.usefixtures("few_eigenvalues")
def test_intervals_hold_as_often_as_they_say():
    """All together, at each time."""
    A, trials, level, times = torus_operator(), 60, 0.9, [1.0, 8.0, 64.0]
    Z, entropy, dimension = closed_form(lazy_torus_eigenvalues(*TORUS), times)
    hits, halved = np.zeros((2, 3, len(times)))
    for seed in range(trials):
        found = hs.heat_trace(A, times, n_probes=24, level=level, rng=seed)
        half = norm.ppf((1 + level) / 2) * found.dimension_error
        around = found.dimension - half, found.dimension + half
        ends = (found.low, found.high), found.effective_rank_interval, around
        for row, want in enumerate((Z, np.exp(entropy), dimension)):
            low, high = ends[row]
            hits[row] += (low <= want * (1 + 1e-6)) & (want <= high * (1 + 1e-6))
            middle, half = (low + high) / 2, (high - low) / 4
            halved[row] += np.abs(want - middle) <= half
    assert in_band(hits, trials, level, upper=1, alarm=2 * ALARM)
    assert hits.mean() <= trials * (1 + level) / 2  # not far too wide
    # Half as wide would be noticed.
    assert not in_band(halved, trials, level, upper=1, alarm=2 * ALARM)


@pytest.mark.usefixtures("few_eigenvalues")
@pytest.mark.parametrize("n_times", [1, 10])
def test_all_times_cost_the_products_of_the_largest(n_times):
    A = Counting(torus_operator(), 9)
    hs.heat_trace(hs.Deflated(A, np.ones(A.n) / np.sqrt(A.n)), np.geomspace(512, 1, n_times), rng=0)
    assert 0 < A.products <= np.sqrt(35 * 512)


@pytest.mark.usefixtures("few_eigenvalues")
def test_a_trace_depends_on_the_seed_alone():
    A = torus_operator()
    one, same, other = (hs.heat_trace(A, [4.0], rng=seed).values for seed in (0, 0, 1))
    assert one == same != other


@pytest.mark.parametrize(
    ("times", "options", "words"),
    [
        ([], {}, "times is an empty sequence"),
        ([0.0], {}, "times=0.0 is out of range"),
        ([1.0, 1e20], {}, "times go up to 1e\\+20, where .* pass times <= 5e\\+13"),
        ([1.0], {"n_probes": 1}, "n_probes=1"),
        ([1.0], {"level": 1}, "level=1"),
    ],
)
def test_what_is_refused(times, options, words):
    with pytest.raises(ValueError, match=words):
        hs.heat_trace(np.eye(3), times, **options)


def test_the_variance_is_that_of_all_eigenvalues_however_small():
    """2/k Σ ((x + s) e^-x)², of Gaussian probes, from its three moments."""
    x, k = np.random.default_rng(5).uniform(5, 30, (1, 40)), 16
    f = np.exp(-x)
    moments = [((x**j) * f**2).sum(axis=1) for j in (0, 1, 2)]
    for shift in (-7.0, 0.0, 2.5):
        law = 2 / k * (((x + shift) * f) ** 2).sum(axis=1)
        np.testing.assert_allclose(_variance(*moments, np.array([shift]), k), law, rtol=1e-6)
