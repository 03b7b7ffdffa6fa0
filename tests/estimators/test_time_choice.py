"""The time that `HeatEmbedding` chooses: the curve of shares, its promise, and where it ends."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist

import heatsketch as hs
from heatsketch._checks import ConvergenceWarning
from heatsketch.estimators import _time_choice as module
from heatsketch.estimators import heat_embedding
from heatsketch.markov import coordinates
from heatsketch.metrics import diffusion_distortion
from problems.clouds import cloud, noisy_tree

every_filter = pytest.mark.parametrize("filter", ["power", "heat"])


def make(n_components=2, time="auto", **changes):
    return hs.HeatEmbedding(n_components, time, **{"random_state": 0} | changes)


@cache
def torus(**changes):
    X, _ = hs.datasets.stretched_torus(50, rng=0)
    return make(affinity="dense", epsilon=1.0, **changes).fit(X)


SETS = {
    "digits": lambda: hs.datasets.digits()[0][:250],
    "tree": noisy_tree,
    "roll": lambda: hs.datasets.swiss_roll(250, rng=0)[0],
    "torus": lambda: hs.datasets.stretched_torus(200, rng=0)[0],
    "circle": lambda: hs.datasets.circle(150, rng=0)[0],
    "noise": lambda: cloud(150, 4),
}


@cache
def fitted(name, objective="most"):
    return make(objective=objective).fit(SETS[name]())


# The time


@every_filter
def test_the_time_is_the_smallest_that_keeps_the_share(filter):
    model = torus(filter=filter)
    times, shares, factor, share, time = model.time_curve_
    assert (factor, share) == (1.5, 0.8)
    assert_array_equal(times[1:], 2 * times[:-1])
    assert (shares[times < time] < share - 0.01 + 1e-12).all()
    assert (shares[times >= time] >= share - 0.02).all()
    assert model.time_ == time
    assert times[0] < time < times[-1]


@pytest.mark.parametrize(
    ("name", "objective"), [*((name, "most") for name in SETS), ("tree", "worst")]
)
@pytest.mark.filterwarnings("ignore::heatsketch.ConvergenceWarning")
def test_what_the_curve_promises_is_kept(name, objective):
    """On its sample (all points here) the share at the time chosen is that of the map returned."""
    model = fitted(name, objective)
    curve = model.time_curve_
    promised = curve.shares[curve.times == model.time_][0]
    # 16,000 pairs: five standard errors are 2 %, which a share is off by with probability 6e-7.
    assert model.distortion_.within[1.5] == pytest.approx(promised, abs=0.02)
    if objective == "most":
        assert promised >= 0.8 - 0.03


def test_the_distances_are_those_of_the_time_chosen():
    model = torus()
    expected = diffusion_distortion(model.embedding_, model.diffusion_, model.time_)
    assert model.distortion_.log_L == pytest.approx(expected.log_L, rel=1e-8)
    assert model.distortion_.within == expected.within
    same = make(time=model.time_, affinity="dense", epsilon=1.0)
    same.fit(hs.datasets.stretched_torus(50, rng=0)[0])
    assert_allclose(same.distortion_.median, 1, rtol=1e-9)


def test_larger_shares_take_longer():
    some, most, all_of_them = (torus(share=share) for share in (0.6, 0.8, 0.99))
    assert some.time_ < most.time_ < all_of_them.time_
    # The curve is the same as far as both have it, but where the map returned is told.
    first, second = some.time_curve_, all_of_them.time_curve_
    common = np.intersect1d(first.times, second.times)
    common = common[(common != some.time_) & (common != all_of_them.time_) & (common > 32)]
    assert len(common)
    for t in common:
        assert first.shares[first.times == t] == pytest.approx(
            second.shares[second.times == t], abs=0.01
        )


def test_larger_factors_take_less():
    times = [torus(share=0.9, factor=factor).time_ for factor in (1.2, 1.5, 2.0)]
    assert times[0] > times[1] > times[2]


@pytest.mark.parametrize("changes", [{"share": 1e-9}, {"factor": 1e9}, {"factor": 1e9, "share": 1}])
def test_what_is_easy_to_keep_takes_one_step(changes):
    assert torus(**changes).time_ == 1


def test_a_time_that_is_given_leaves_no_curve():
    X = cloud(30, 3, seed=1)
    model = make(time=3.0, affinity="dense", epsilon=1.0).fit(X)
    assert (model.time_, model.time_curve_) == (3, None)
    same = make(time=[3], affinity="dense", epsilon=1.0).fit(X)
    assert_array_equal(same.embedding_, model.embedding_)


# Where it ends


@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
def test_there_is_no_upper_end_but_that_of_the_directions():
    # A strip k times as long mixes k² times more slowly.
    rng = np.random.default_rng(0)
    times = []
    for length in (10, 30):
        strip = rng.uniform(size=(250, 2)) * [length, 1]
        model = make(n_neighbors=10).fit(strip)
        times.append(model.time_)
        curve = model.time_curve_
        # At the last time two directions are left, or fewer.
        d = model.diffusion_
        lam = np.linalg.eigvalsh(d.deflated() @ np.eye(d.n))
        left = np.abs(lam / lam[-1]) ** (curve.times[-1] - 1) > 1e-3
        assert left.sum() <= 2
    assert times[1] >= 2 * times[0]


@pytest.mark.slow
def test_a_roll_of_two_thousand_points_needs_more_than_a_hundred_steps():
    X, _ = hs.datasets.swiss_roll(2_000, rng=0)
    model = make().fit(X)
    assert model.time_ >= 128
    assert model.distortion_.within[1.5] >= 0.8
    longer = make().fit(X * [2.0, 1.0, 2.0])  # the strip between twice as far turns
    assert longer.time_ >= model.time_


@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
def test_components_never_mix_and_the_curve_ends():
    X = np.vstack([cloud(40, 3, seed=1) + 1000 * i for i in range(3)])
    model = make().fit(X)
    assert len(model.time_curve_.times) <= 41
    assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize("limit", [20, 2048], ids=["sketch", "exact"])
def test_a_share_out_of_reach_gives_the_best_time_and_a_warning(limit, monkeypatch):
    # A small window is out of reach until two directions are left, and these are not looked at.
    monkeypatch.setattr(coordinates, "SPECTRAL_LIMIT", limit)
    monkeypatch.setattr(coordinates, "N_LEADING", 12)
    monkeypatch.setattr(module, "_LAST_DOUBLING", 3)
    monkeypatch.setattr(module, "_HOPELESS", 1.0)
    X = cloud(60, 6, seed=1)
    with pytest.warns(ConvergenceWarning, match=r"No time keeps 1 of .* in 2 dim.*larger n_comp"):
        model = make(affinity="dense", epsilon=4.0, share=1.0, factor=1.01).fit(X)
    curve = model.time_curve_
    assert model.time_ == curve.time
    assert (curve.shares < 0.98).all()
    best = curve.times[np.argmax(curve.shares)]
    assert curve.time in (best, curve.time)
    assert model.distortion_.median == pytest.approx(1, abs=0.1)


# The sample


@pytest.mark.slow
def test_the_sample_is_part_of_the_points(monkeypatch):
    # 100 of 300 points: a share has a standard error of some 4 % by the points.
    X = hs.datasets.stretched_torus(300, rng=0)[0]
    whole = make().fit(X)
    monkeypatch.setattr(heat_embedding, "CURVE_ROWS", 100)
    part = make().fit(X)
    assert part.time_ in (whole.time_ // 2, whole.time_, 2 * whole.time_)
    assert part.distortion_.within[1.5] >= 0.7


@pytest.mark.parametrize("affinity", ["knn", "dense", "radius"])
def test_many_copies_of_one_point_leave_the_others_to_be_seen(affinity, monkeypatch):
    # Of five random rows, so many as the curve is drawn from, all are copies more often than not.
    monkeypatch.setattr(heat_embedding, "CURVE_ROWS", 5)
    X = np.vstack([np.zeros((60, 2)), np.eye(2)])
    model = make(affinity=affinity, epsilon=1.0, n_neighbors=2).fit(X)
    assert model.time_ == 1
    assert model.time_curve_.shares[0] == 1  # three points fit in the plane
    Y = model.embedding_
    assert np.abs(Y[:60] - Y[0]).max() < 1e-12
    assert pdist(Y[-3:]).min() > 0.1 * pdist(Y[-3:]).max()


def test_a_sample_of_points_that_coincide_has_nothing_to_lose():
    sample = module._Sample(np.ones((10, 3)), 2)
    Y = sample.followed(None, module.stress)
    assert Y.shape == sample.squeezed().shape == (10, 2)
    assert np.isfinite(Y).all()
    assert sample.kept(Y, 1.5) == 1
    assert sample.log_L(Y) == 0


def test_maps_of_a_sample_are_those_of_its_rows():
    S = cloud(40, 5) * [3, 2, 1, 0.5, 0.1]
    sample = module._Sample(S, 2)
    W = sample.map(None, module.stress)
    Y = sample.followed(None, module.stress)
    assert_allclose(pdist(S @ W), pdist(Y), rtol=1e-6)
    assert sample.kept(S @ W, 1.5) == sample.kept(Y, 1.5)
    assert sample.kept(3 * Y, 1.5) == sample.kept(Y, 1.5)


@pytest.mark.parametrize("slow", [1e-2, 1e-4, 1e-5])
def test_slow_diffusions_are_followed_until_two_directions_are_left(slow):
    # λ_j = 1 - j slow: λ_3^t falls to 1e-3 of λ_1^t at t = 3 log 10 / 2 slow, about, whatever n is.
    choice = module.TimeChoice(None, lambda t: hs.Power(t), [], None, [], None, 2, 0.8, 1.5)
    times = choice._times_of(1, 1 - slow * np.arange(1, 65))
    wanted = np.log(1e3) / np.log((1 - slow) / (1 - 3 * slow))
    assert wanted <= times[-1] < 2 * wanted
