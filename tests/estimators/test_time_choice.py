"""The time that `HeatEmbedding` chooses: the directions of a time, and where the search ends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist

import heatsketch as hs
from heatsketch.core.operators import Dense
from heatsketch.markov.coordinates import DIRECTIONS_PER_DIMENSION, choose_time, direction_curve
from heatsketch.markov.rows import Coordinates
from heatsketch.spectral.recurrences import SpectralDensity
from problems.clouds import cloud


def spectrum(values, others=(), counts=()):
    values = np.asarray(values, float)
    density = SpectralDensity(np.asarray(others, float), np.asarray(counts, float))
    return Coordinates(Dense(np.eye(1)), values, np.eye(len(values)), density)


def directions(values, time):
    squares = np.asarray(values, float) ** (2 * time)
    return squares.sum() ** 2 / (squares**2).sum()


# How many directions a time has


@given(st.lists(st.floats(0.05, 1), min_size=2, max_size=30), st.integers(1, 200))
def test_directions_fall_with_time(values, time):
    first, second = (spectrum(values).directions(hs.Power(t)) for t in (time, time + 1))
    assert 1 - 1e-9 <= second <= first + 1e-9


def test_eigenvalues_that_are_only_counted_are_directions_too():
    values = np.linspace(1, 0.5, 30)
    known = spectrum(values[:10], values[10:], np.ones(20))
    assert known.directions(hs.Power(3)) == pytest.approx(directions(values, 3))


# The time


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("slow", [1e-1, 1e-3, 1e-5])
def test_the_time_is_the_smallest_with_few_enough_directions(k, slow):
    values = np.exp(-slow * np.arange(1, 300))
    curve = direction_curve(spectrum(values), "power", k)
    wanted = DIRECTIONS_PER_DIMENSION * k
    assert directions(values, curve.time) <= wanted
    earlier = curve.time - max(1, curve.time // 32)
    assert curve.time == 1 or directions(values, earlier) > wanted
    assert curve.wanted == wanted
    assert curve.time in curve.times
    assert_allclose(curve.directions, [directions(values, t) for t in curve.times], rtol=1e-9)
    assert (np.diff(curve.times) > 0).all()


def test_the_time_of_a_diffusion_is_that_of_its_embedding():
    X = np.vstack([cloud(200, 3), cloud(60, 3) + 100])
    model = hs.HeatEmbedding(3, layout="linear", random_state=0).fit(X)
    curve = choose_time(model.diffusion_, 3)
    assert curve.time == model.time_
    assert_array_equal(curve.directions, model.time_curve_.directions)


def test_groups_that_hardly_touch_end_the_search_before_each_is_one_place():
    """Thirty equal groups: 29 eigenvalues stay at 1 until all others have gone."""
    values = np.append(np.full(29, 1 - 1e-9), np.linspace(0.9, 0.3, 300))
    time = direction_curve(spectrum(values), "power", 2).time
    assert time <= 100
    # So late that groups are not torn apart, so early that what goes on inside is not nothing.
    assert 29 < directions(values, time) < 1.3 * 29
    assert 0.9**time > 1e-4


@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
def test_tight_groups_keep_their_shape():
    rng = np.random.default_rng(0)
    centres = 30 * rng.normal(size=(15, 5))
    X = (centres[:, None] + rng.normal(size=(15, 30, 5))).reshape(-1, 5)
    X[::30] = centres.mean(axis=0) + 0.5 * rng.normal(size=(15, 5))  # a bridge
    Y = hs.HeatEmbedding(random_state=0).fit_transform(X)
    places = np.unique(np.round(Y / np.ptp(Y), 6), axis=0)
    assert len(places) > 0.95 * len(X)


def complete(n, noise=0.0):
    K = 1.0 + noise * np.random.default_rng(0).normal(size=(n, n))
    K = (K + K.T) / 2
    np.fill_diagonal(K, 0)
    return K


def star(n):
    K = np.zeros((n, n))
    K[0, 1:] = K[1:, 0] = 1
    return K


@pytest.mark.parametrize("filter", ["accumulated", "power", "heat"])
@pytest.mark.parametrize("layout", ["free", "linear"])
@pytest.mark.parametrize(
    ("K", "count"),
    [
        (star(61), 1),  # λ = -1, and 0 otherwise
        (complete(50), 49),  # λ = -1/49
        (complete(50, 1e-6), 49),
        (np.kron(complete(4), np.ones((9, 9))), 3),  # λ = -1/3, and 0
    ],
    ids=["star", "complete", "nearly complete", "four parts"],
)
@pytest.mark.filterwarnings("ignore:K is zero on its diagonal|:UserWarning")
def test_directions_that_do_not_fall_end_the_search_at_once(K, count, filter, layout):
    model = hs.HeatEmbedding(affinity="precomputed", filter=filter, layout=layout)
    Y = model.fit_transform(K)
    if layout == "linear":
        assert model.time_ == 1
        assert model.time_curve_.directions[0] == pytest.approx(count, rel=1e-4)
    else:  # which chooses no time
        assert (model.time_, model.time_curve_) == (8, None)
    assert np.isfinite(Y).all()
    for i, j in [(1, 2), (0, 1)]:  # walks from points with the same edges are the same
        assert np.array_equal(K[i], K[j]) == np.allclose(Y[i], Y[j], atol=1e-6 * np.ptp(Y))


def test_directions_of_waiting_walks_are_those_of_walks_that_have_moved():
    lam = np.linspace(0.95, -0.4, 40)
    for time, found in zip(*direction_curve(spectrum(lam), "heat", 2)[:2], strict=True):
        squares = (np.exp(-time * (1 - lam)) - np.exp(-time)) ** 2
        assert found == pytest.approx(squares.sum() ** 2 / (squares**2).sum(), rel=1e-9)


def test_a_sum_starts_at_the_time_that_is_chosen_for_one():
    X, _ = hs.datasets.swiss_roll(150, rng=0)
    times = [
        hs.HeatEmbedding(filter=f, layout="linear").fit(X).time_ for f in ("power", "accumulated")
    ]
    assert times[0] == times[1]


def test_a_time_that_is_given_leaves_no_curve():
    X = cloud(30, 3, seed=1)
    model = hs.HeatEmbedding(time=3.0, affinity="dense", epsilon=1.0).fit(X)
    assert (model.time_, model.time_curve_) == (3, None)
    same = hs.HeatEmbedding(time=[3], affinity="dense", epsilon=1.0).fit(X)
    assert_array_equal(same.embedding_, model.embedding_)


@pytest.mark.parametrize("affinity", ["knn", "dense", "radius"])
@pytest.mark.parametrize("layout", ["free", "linear"])
def test_many_copies_of_one_point_leave_the_others_to_be_seen(affinity, layout):
    X = np.vstack([np.zeros((60, 2)), np.eye(2)])
    how = {"affinity": affinity, "layout": layout}
    model = hs.HeatEmbedding(epsilon=1.0, n_neighbors=2, **how).fit(X)
    assert model.time_ == (1 if layout == "linear" else 8)  # three points have two directions
    Y = model.embedding_
    assert np.abs(Y[:60] - Y[0]).max() < 1e-12
    assert pdist(Y[-3:]).min() > 0.1 * pdist(Y[-3:]).max()
