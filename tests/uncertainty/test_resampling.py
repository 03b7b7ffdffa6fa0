"""Intervals by drawing columns or points again."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

import heatsketch as hs
from heatsketch.uncertainty import neighbor_confidence
from problems.chance import in_band
from problems.clouds import cloud, on_circle
from problems.spectra import circle_distances


def ratio(Y):
    return np.linalg.norm(Y[1] - Y[0]) / np.linalg.norm(Y[2] - Y[0])


@pytest.mark.statistical
def test_intervals_from_columns_hold_what_they_say_if_there_are_many():
    """Alarm 1e-6: 200 sketches of 256 columns; half the width, or eight equal columns, fails."""
    R, k, trials = cloud(3, 10, seed=2), 256, 200
    G = np.random.default_rng(3).standard_normal((trials, 10, k)) / np.sqrt(k)
    true, held, half, doubled = ratio(R), 0, 0, 0
    for seed, block in enumerate(G):
        found = hs.sketch_interval(R @ block, ratio, n_resamples=100, rng=seed)
        held += found.low <= true <= found.high
        half += abs(found.value - true) <= (found.high - found.low) / 4
        equal = np.repeat(R @ block[:, : k // 8], 8, axis=1)
        found = hs.sketch_interval(equal, ratio, n_resamples=100, rng=seed)
        doubled += found.low <= true <= found.high
    assert in_band(held, trials, 0.95)
    assert not in_band(half, trials, 0.95)
    assert not in_band(doubled, trials, 0.95)


def test_the_width_falls_as_one_over_the_root_of_the_columns():
    R = cloud(3, 10, seed=2)
    G = np.random.default_rng(0).standard_normal((10, 4096))
    widths = []
    for k in (64, 4096):
        found = hs.sketch_interval(R @ G[:, :k] / np.sqrt(k), ratio, rng=0)
        widths.append(found.high - found.low)
    assert widths[0] / widths[1] == pytest.approx(8, rel=0.35)


def test_labels_have_a_share_and_no_ends():
    R = np.array([[0.0, 0], [1, 0], [1.01, 0], [9, 9]])
    F = R @ np.random.default_rng(0).standard_normal((2, 64)) / 8

    def nearest(Y):
        return np.array(["a", "b", "c"])[np.argmin(np.linalg.norm(Y[1:] - Y[0], axis=1))]

    found = hs.sketch_interval(F, nearest, rng=0)
    assert found.low is None
    assert found.bias is None
    assert found.value == "a"
    sure = hs.sketch_interval(F, lambda Y: np.linalg.norm(Y[3]) > np.linalg.norm(Y[1]), rng=0)
    assert (sure.value, sure.low, sure.high, sure.agreement) == (True, 1, 1, 1)


def test_arrays_are_taken_entry_by_entry():
    F = cloud(6, 32)
    several = hs.sketch_interval(F, lambda Y: np.linalg.norm(Y, axis=1), 0.9, rng=1)
    one = hs.sketch_interval(F, lambda Y: np.linalg.norm(Y[2]), 0.9, rng=1)
    assert several.low.shape == several.agreement.shape == (6,)
    assert_allclose([several.low[2], several.high[2]], [one.low, one.high])
    assert one.low < one.value < one.high


def test_what_is_exact_has_no_width_and_the_seed_decides():
    model = hs.HeatSketch(16, 4, n_neighbors=5, random_state=0).fit(cloud(20, 3))
    assert hs.sketch_interval(model, len, rng=0)[:4] == (20, 20, 20, 1)
    first, again, other = (hs.sketch_interval(model, ratio, rng=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_columns_of_all_times_are_drawn_together():
    """Both halves are the same sketch: they must be so in every resample."""
    model = hs.HeatSketch(16, [3, 3], n_neighbors=5, random_state=0).fit(cloud(20, 3))
    found = hs.sketch_interval(model, lambda Y: np.abs(Y[:, :16] - Y[:, 16:]).max(), rng=0)
    assert found.high < 1e-12
    assert found.agreement == 1


@pytest.mark.parametrize("make", [hs.HeatEmbedding, hs.DiffusionMap])
def test_maps_of_eigenvectors_have_no_columns_to_draw(make):
    X = cloud(30, 3)
    model = make(2, n_neighbors=5, random_state=0).fit(X)
    with pytest.raises(TypeError, match=f"{make.__name__} has no independent random columns"):
        hs.sketch_interval(model, ratio)
    time = getattr(model, "time_", 8)  # what the message says works
    same = hs.HeatSketch(time=time, affinity="precomputed").fit(model.diffusion_)
    assert same.neighbor_confidence_.shape == (30,)


@pytest.mark.parametrize(
    ("columns", "statistic", "options", "message"),
    [
        (16, lambda Y: np.nan, {}, "not finite"),
        (16, lambda Y: np.zeros(len(np.unique(Y[0]))), {}, "shape"),
        (16, ratio, {"level": 2}, "level=2 is out of range"),
        (16, ratio, {"n_resamples": 3}, "n_resamples=3 is out of range"),
        (1, ratio, {}, "one column"),
    ],
)
def test_wrong_statistics_are_refused(columns, statistic, options, message):
    with pytest.raises(ValueError, match=message):
        hs.sketch_interval(cloud(4, columns), statistic, rng=0, **options)


# Confidence of neighbours


def by_the_definition(F, nearest, n_resamples):
    def near(Y):
        D = cdist(Y, Y)
        np.fill_diagonal(D, np.inf)
        return np.sort(D, axis=1)[:, [nearest - 1]] >= D

    k, own = F.shape[1], near(F)
    draws = np.random.default_rng(0).integers(0, k, (n_resamples, k))
    return np.mean([(own & near(F[:, drawn])).sum(axis=1) / nearest for drawn in draws], axis=0)


def test_confidence_is_the_share_of_the_same_neighbours():
    F = cloud(30, 24)
    assert_allclose(neighbor_confidence(F, 5, n_resamples=40), by_the_definition(F, 5, 40))


def test_few_candidates_are_enough():
    X, _ = hs.datasets.digits()
    F = hs.HeatSketch(32, random_state=0).fit_transform(X[:400])
    error = neighbor_confidence(F, 10) - by_the_definition(F, 10, 50)
    assert error.min() > -1e-12
    assert error.max() < 0.05
    assert error.mean() < 0.001


def test_certain_neighbours_have_confidence_one_and_more_columns_more():
    R = np.repeat(100 * cloud(20, 5, seed=1), 2, axis=0) + cloud(40, 5, seed=2)
    G = np.random.default_rng(0).standard_normal((5, 512))
    F = R @ G / np.sqrt(512)
    assert_array_equal(neighbor_confidence(F, 1), 1)
    means = [neighbor_confidence(F[:, :k], 8).mean() for k in (8, 64, 512)]
    assert means[0] < means[1] < means[2] < 1


def test_of_a_model_it_is_an_attribute_for_its_own_number_of_neighbours():
    X = cloud(40, 3)
    model = hs.HeatSketch(16, 4, n_neighbors=6, random_state=0)
    assert not hasattr(model, "neighbor_confidence_")
    c = model.fit(X).neighbor_confidence_
    assert_array_equal(c, neighbor_confidence(model, 6))
    assert not np.array_equal(model.fit(X[::-1] * [1, 2, 3]).neighbor_confidence_, c)
    small = hs.HeatSketch(8, 2, n_neighbors=3).fit(cloud(4, 2))
    assert_array_equal(small.neighbor_confidence_, 1)  # all others


# Other data


def first_pair(Y):
    return np.linalg.norm(Y[0] - Y[1])


@pytest.mark.statistical
@pytest.mark.slow
def test_intervals_from_weights_hold_the_distance_of_infinitely_many_points():
    """Alarm 1e-6: 120 samples of 80 points of a circle; a third of the width fails."""
    epsilon, time, step, held, narrow = 0.5, 3, 1.0, 0, 0
    true = np.sqrt(60) * circle_distances([step * 60 / (2 * np.pi)], 60, epsilon, time)[0]
    for seed in range(120):
        angle = np.random.default_rng(seed).uniform(0, 2 * np.pi, 80)
        model = hs.DiffusionMap(12, time, affinity="dense", epsilon=epsilon).fit(on_circle(angle))
        ends = on_circle(np.array([0.0, step]))
        found = hs.data_interval(model, ends, first_pair, 0.9, n_resamples=40, rng=seed)
        held += found.low <= true <= found.high
        narrow += abs(found.value - true) < (found.high - found.low) / 6
    assert in_band(held, 120, 0.9)
    assert not in_band(narrow, 120, 0.9)


def test_the_width_for_other_data_falls_as_one_over_the_root_of_the_points():
    widths = []
    for n in (60, 375):
        X = cloud(n, 2, seed=n)
        X[:2] = [[0, 0], [1, 0]]
        model = hs.DiffusionMap(8, 4, affinity="dense", epsilon=1.0).fit(X)
        found = hs.data_interval(model, X[:2], first_pair, n_resamples=30, rng=0)
        widths.append(found.high - found.low)
    assert widths[0] / widths[1] == pytest.approx(2.5, rel=0.5)


@pytest.mark.parametrize(
    "model",
    [
        hs.HeatSketch("auto", 3, tolerance=0.3, n_neighbors=5, random_state=0),
        hs.HeatSketch(8, [2, 4], affinity="radius", epsilon=2.0, random_state=0),
        hs.HeatSketch(8, 4.5, filter="heat", metric="cosine", n_neighbors=5, random_state=0),
        hs.HeatEmbedding(2, n_neighbors=5, random_state=0),
        hs.DiffusionMap("auto", 4, n_neighbors=5, random_state=0),
    ],
    ids=["auto", "times", "heat", "embedding", "map"],
)
def test_equal_weights_are_the_model_itself_for_old_and_new_points(model):
    X = cloud(40, 3)
    model.fit(np.vstack([X, X[:3]]))
    embed = model._under_weights(X[:10])
    D = np.linalg.norm(model.transform(X[:10])[:, None] - model.transform(X[:10]), axis=2)
    Y = embed(np.ones(model.diffusion_.n))
    # Rounding moves a learned map where its descent is slow.
    atol = 5e-3 * D.max() if isinstance(model, hs.HeatEmbedding) else 1e-9 * D.max()
    assert_allclose(np.linalg.norm(Y[:, None] - Y, axis=2), D, atol=atol)


def test_other_weights_use_the_same_random_numbers():
    X = cloud(200, 3)
    model = hs.HeatSketch(16, 8, random_state=0).fit(X)
    Y, Z = (model._under_weights(X)(w) for w in (np.ones(200), 1 + 0.01 * cloud(200, 1)[:, 0]))
    assert np.linalg.norm(Y - Z) < 0.05 * np.linalg.norm(Y)


def test_what_cannot_be_weighed_is_refused():
    X = cloud(40, 3)
    for options, message in (
        ({"normalization": "symmetric"}, "normalization='symmetric', whose distances depend"),
        ({"affinity": "variable"}, "cannot be weighed"),
    ):
        model = hs.HeatSketch(4, 2, n_neighbors=5, random_state=0, **options).fit(X)
        with pytest.raises(ValueError, match=message):
            hs.data_interval(model, X, first_pair)
    model = hs.HeatSketch(4, 2, n_neighbors=5).fit(X)
    with pytest.raises(TypeError, match="random_state=None does not give every resample the same"):
        hs.data_interval(model, X, first_pair)
    with pytest.raises(TypeError, match="PCA has no diffusion"):
        hs.data_interval(hs.classical.PCA(2).fit(X), X, first_pair)
