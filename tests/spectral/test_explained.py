"""The explained diffusion variance and the eigengap."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import heatsketch as hs
from heatsketch.spectral.traces import explained_variance, largest_gap
from problems.chance import ALARM, in_band
from problems.clouds import cloud, even_circle
from problems.spectra import (
    circle_eigenvalues,
    circle_frequencies,
    lazy_torus,
    lazy_torus_eigenvalues,
)

TORUS = 24, 22


@pytest.mark.parametrize("time", [1, 3, [1, 4]])
def test_circle(time):
    """λ_m = I_m(2/ε) / I_0(2/ε), each m >= 1 twice."""
    model = hs.DiffusionMap(4, time, affinity="dense", epsilon=0.25, alpha=0).fit(even_circle(120))
    lam = circle_eigenvalues(circle_frequencies(120)[1:], 0.25)
    want = [lam[:4] ** (2 * t) / np.sum(lam ** (2 * t)) for t in np.atleast_1d(time)]
    assert_allclose(model.explained_diffusion_variance_ratio_, np.concatenate(want), rtol=1e-9)
    found = model.explained_diffusion_variance()
    assert found.exact
    assert_allclose(found.cumulative, np.cumsum(want[0]), rtol=1e-9)
    assert_array_equal(found.low, found.high)


SQUARES = {
    "power": lambda lam, time: np.abs(lam) ** (2 * time),
    "heat": lambda lam, time: (np.exp(-time * (1 - lam)) - np.exp(-time)) ** 2,  # those that moved
}


@pytest.mark.parametrize(
    ("filter", "time"), [*(("power", t) for t in (0, 0.5, 1.5, 4)), ("heat", 2.5)]
)
def test_shares_are_squares_of_the_filter(filter, time):
    X = np.random.default_rng(0).normal(size=(150, 3))
    model, square = hs.DiffusionMap(3, time, filter=filter).fit(X), SQUARES[filter]
    d = model.diffusion_
    lam = np.linalg.eigvalsh(d.operator @ np.eye(d.n))[:-1]
    assert lam.min() < 0.01  # there are negative ones, and ones near 0
    want = square(model.eigenvalues_, time) / square(lam, time).sum()
    assert_allclose(model.explained_diffusion_variance_ratio_, want, rtol=1e-6)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("time", [1, 8, [8, 2]])
def test_a_share_keeps_as_many_as_needed(share, time):
    X = hs.datasets.swiss_roll(300, rng=0)[0]
    model = hs.DiffusionMap(share, time).fit(X)
    k = model.eigenvalues_.size
    index = int(np.argmin(np.atleast_1d(time)))
    cumulative = model.explained_diffusion_variance(index=index).cumulative
    assert k >= 1
    assert cumulative[k - 1] >= share - 1e-12
    assert k == 1 or cumulative[k - 2] < share
    assert_allclose(model.embedding_, hs.DiffusionMap(k, time).fit_transform(X), atol=1e-7)


def test_a_share_of_many_points():
    X = hs.datasets.swiss_roll(2500, rng=0)[0]
    model = hs.DiffusionMap(0.9, 400).fit(X)
    found = model.explained_diffusion_variance()
    assert not found.exact
    assert found.cumulative_high[-1] >= 0.9
    assert found.cumulative_low[-2] < 0.9


def test_a_share_out_of_reach_is_a_warning_and_never_nothing(limits):
    limits(explaining=100)
    X = np.random.default_rng(0).normal(size=(2200, 3))
    with pytest.warns(UserWarning, match="takes more than 100 coordinates; 64 are kept"):
        model = hs.DiffusionMap(0.99, 1).fit(X)
    assert model.embedding_.shape == (2200, 64)


def test_any_coordinates_that_span_the_same_hold_the_same():
    diffusion = hs.Diffusion.from_graph(lazy_torus(12, 10))
    A, f = diffusion.deflated, hs.Power(3)
    pairs = hs.eigh(A, 4, rng=0)
    mixed = pairs.vectors @ np.random.default_rng(0).normal(size=(4, 4))
    found = explained_variance(A, f, np.hstack([mixed, mixed]))  # the others add nothing
    known = explained_variance(A, f, pairs.vectors, values=pairs.values)
    assert_allclose(found.cumulative[3], known.cumulative[3], rtol=1e-9)
    assert_allclose(found.ratio[4:], 0, atol=1e-12)


def test_a_sketch_holds_what_its_columns_span():
    """All of it with as many columns as points, less with few; the best k columns hold more."""
    X = hs.datasets.swiss_roll(200, rng=0)[0]
    shares = [
        hs.HeatSketch(k, 8, random_state=0).fit(X).explained_diffusion_variance().cumulative[-1]
        for k in (4, 20, 199)
    ]
    best = hs.DiffusionMap(20, 8).fit(X).explained_diffusion_variance().cumulative[-1]
    assert 0 < shares[0] < shares[1] < best < shares[2]
    assert_allclose(shares[2], 1, rtol=1e-6)


def test_fewer_probes_make_the_interval_wider():
    model = hs.DiffusionMap(2, 8).fit(cloud(2100, 2, seed=1))
    few, many = (model.explained_diffusion_variance(n_probes=k) for k in (4, 64))
    assert few.cumulative_low[-1] < many.cumulative_low[-1]
    assert many.cumulative_high[-1] < few.cumulative_high[-1]
    with pytest.raises(ValueError, match="n_probes"):
        model.explained_diffusion_variance(n_probes=1)


@pytest.mark.parametrize("scale", [1e-5, 3e-7])
def test_points_that_hardly_differ(scale):
    """Eigenvalues are of size scale², and f there is as small beside f(1)."""
    X = scale * np.random.default_rng(0).normal(size=(60, 3))
    A, f = hs.diffusion(X, affinity="dense", epsilon=1.0).deflated, hs.Heat(4).minus_constant()
    pairs = hs.eigh(A, 2, rng=0)
    known = explained_variance(A, f, pairs.vectors, values=pairs.values)
    assert_allclose(explained_variance(A, f, pairs.vectors).cumulative, known.cumulative, rtol=0.01)


def test_components_side_by_side_count_each_by_itself():
    X = even_circle(60)
    apart = np.vstack([X, X + 100])
    options = {"affinity": "radius", "epsilon": 0.5, "random_state": 0, "layout": "linear"}
    one = hs.HeatEmbedding(2, 16, **options).fit(X).explained_diffusion_variance()
    with pytest.warns(hs.DisconnectedWarning):
        both = hs.HeatEmbedding(2, 16, **options).fit(apart).explained_diffusion_variance()
    assert_allclose(both.cumulative[-1], one.cumulative[-1], rtol=1e-6)


def test_intervals_hold_as_often_as_they_say(limits):
    """Of eigenvectors and of other columns, for which they may be too wide."""
    limits(all_eigenpairs=500)
    diffusion = hs.Diffusion.from_graph(lazy_torus(*TORUS))
    A, f, level, trials = diffusion.deflated, hs.Power(8), 0.9, 60
    pairs = hs.eigh(A, 12, rng=0)
    lam = lazy_torus_eigenvalues(*TORUS)[1:]
    share = np.sum(pairs.values**16) / np.sum(lam**16)
    hits, halved = 0, 0
    for seed in range(trials):
        limits(trace_seed=seed)
        found = explained_variance(A, f, pairs.vectors, level, values=pairs.values, n_probes=16)
        low, high = found.cumulative_low[-1], found.cumulative_high[-1]
        assert not found.exact
        hits += low <= share <= high
        halved += abs(share - (low + high) / 2) <= (high - low) / 4
    assert in_band(hits, trials, level, upper=1, alarm=2 * ALARM)
    assert not in_band(halved, trials, level, upper=1, alarm=2 * ALARM)


@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
def test_a_flat_diffusion_has_shares_that_are_numbers():
    model = hs.DiffusionMap(0.5, affinity="precomputed").fit(np.ones((10, 10)))
    assert model.embedding_.shape[1] >= 1
    assert np.isfinite(model.explained_diffusion_variance_ratio_).all()


def test_gaps_and_their_errors():
    found = largest_gap(np.array([0.9, 0.8, 0.3, 0.25]), np.array([0.0, 0.01, 0.02, 0.0]))
    assert found.n_components == 2
    assert_allclose([found.gap, found.low, found.high], [0.5, 0.47, 0.53])
    assert found.certain
    assert not largest_gap(np.array([0.9, 0.8, 0.69]), np.full(3, 0.01)).certain
    alone = largest_gap(np.array([0.9]), np.zeros(1))
    assert alone.n_components == 1
    assert np.isnan(alone.gap)


@pytest.mark.parametrize(
    ("share", "time", "error", "message"),
    [
        *((share, 1, TypeError, "n_components") for share in (0.0, 1.0, -0.5, 1.5)),
        *((0.9, rule, ValueError, "pass a number for n_components") for rule in ("auto", "gap")),
    ],
)
def test_what_is_no_share_or_has_no_time_is_refused(share, time, error, message):
    with pytest.raises(error, match=message):
        hs.DiffusionMap(share, time).fit(even_circle(30))


@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
@pytest.mark.parametrize("filter", ["power", "heat", "accumulated"])
@pytest.mark.parametrize("affinity", ["dense", "radius"])
def test_of_components_of_equal_points_nothing_is_left_out(affinity, filter):
    """Eigenvalues are rounding: of a dense kernel, of distances from a product of matrices."""
    X = np.repeat(100 * np.random.default_rng(0).normal(size=(3, 4)), 20, axis=0)
    model = hs.HeatEmbedding(filter=filter, affinity=affinity, epsilon=1.0, random_state=0).fit(X)
    assert len(np.unique(model.embedding_, axis=0)) == 3
    if affinity == "radius":
        assert_allclose(model.explained_diffusion_variance().cumulative[-1], 1)
