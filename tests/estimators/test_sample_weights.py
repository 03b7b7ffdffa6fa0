"""Points that count more or less often: whole weights are repeated rows, 0 is a place alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import heatsketch as hs
from heatsketch.scales.bandwidth import rule_epsilon
from problems.checks import up_to_signs

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3)) + 1.5 * (np.arange(50) % 2)[:, None]
NEW = RNG.normal(size=(9, 3))
WHOLE = RNG.integers(1, 5, 50)
REPEATED = np.repeat(np.arange(50), WHOLE)
FIRST = np.r_[0, np.cumsum(WHOLE)[:-1]]  # the first copy of each point
DENSE = {"affinity": "dense", "epsilon": 3.0}
ESTIMATORS = [
    hs.DiffusionMap(3, 2),
    hs.HeatSketch(6, 2, random_state=0),
    hs.HeatEmbedding(2, 2, random_state=0),
    hs.HeatEmbedding(2, 2, layout="linear", random_state=0),
]
every_estimator = pytest.mark.parametrize(
    "estimator", ESTIMATORS, ids=["map", "sketch", "free", "linear"]
)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("epsilon", [3.0, "self-tuning", "ksum", "median"])
def test_whole_weights_are_repeated_rows(epsilon, alpha):
    how = {"affinity": "dense", "epsilon": epsilon, "alpha": alpha, "random_state": 0}
    weighed = hs.DiffusionMap(3, 2, **how).fit(X, sample_weight=WHOLE)
    repeated = hs.DiffusionMap(3, 2, **how).fit(X[REPEATED])
    assert_allclose(weighed.eigenvalues_, repeated.eigenvalues_, atol=1e-10)
    want = up_to_signs(repeated.embedding_[FIRST], weighed.embedding_)
    assert_allclose(weighed.embedding_, want, atol=1e-10)
    want = up_to_signs(repeated.transform(NEW), weighed.transform(NEW))
    assert_allclose(weighed.transform(NEW), want, atol=1e-10)


@pytest.mark.parametrize("filter", ["power", "heat", "accumulated"])
def test_diffusion_distances_are_those_of_repeated_rows(filter):
    i, j = np.triu_indices(50, 1)
    weighed = hs.diffusion(X, **DENSE, sample_weight=WHOLE)
    repeated = hs.diffusion(X[REPEATED], **DENSE)
    found = hs.diffusion_distance(weighed, 3, pairs=(i, j), filter=filter)
    want = hs.diffusion_distance(repeated, 3, pairs=(FIRST[i], FIRST[j]), filter=filter)
    assert_allclose(found, want, rtol=1e-10)


def test_the_measure_of_repeated_rows_adds_up():
    weighed = hs.diffusion(X, **DENSE, sample_weight=WHOLE)
    repeated = hs.diffusion(X[REPEATED], **DENSE)
    want = np.add.reduceat(repeated.expand(repeated.measure), FIRST)
    assert_allclose(weighed.expand(weighed.measure), want, rtol=1e-10)


def test_precomputed_affinities_are_weighed_alike():
    K = hs.gaussian_affinity(X, 3.0)
    given = hs.Diffusion.from_affinity(K, sample_weight=WHOLE)
    points = hs.diffusion(X, **DENSE, sample_weight=WHOLE)
    assert_allclose(given.expand(given.measure), points.expand(points.measure), rtol=1e-12)


@every_estimator
def test_equal_weights_of_any_size_are_none(estimator):
    one = estimator.fit_transform(X)
    assert_allclose(estimator.fit_transform(X, sample_weight=np.ones(50)), one, atol=1e-9)
    more = estimator.fit_transform(X, sample_weight=np.full(50, 4.0))  # whose root is exact
    assert_allclose(more, one, atol=1e-9)


@every_estimator
def test_training_points_get_the_places_of_transform(estimator):
    weights = RNG.uniform(0.1, 5, 50)
    model = estimator.fit(X, sample_weight=weights)
    assert_allclose(model.transform(X), model.embedding_, atol=1e-9)


@every_estimator
def test_a_point_with_weight_0_is_placed_and_does_not_count(estimator):
    weights = np.where(np.arange(50) % 5, 2.0, 0.0)
    counted = weights > 0
    model = estimator.fit(X, sample_weight=weights)
    Y = model.embedding_.copy()
    alone = estimator.fit(X[counted], sample_weight=weights[counted])
    assert_array_equal(Y[counted], alone.embedding_)
    assert_array_equal(Y[~counted], alone.transform(X[~counted]))


def test_heavier_points_pull_more_at_a_new_one():
    places = hs.HeatEmbedding(2, 2, layout="free", random_state=0)
    model = places.fit(X, sample_weight=np.ones(50))
    near = model.diffusion_.near(NEW).attraction()
    doubled = places.fit(X, sample_weight=np.full(50, 2.0)).diffusion_.near(NEW).attraction()
    assert_allclose(doubled.toarray(), 2 * near.toarray(), rtol=1e-12)


def test_ksum_and_the_median_are_those_of_repeated_rows():
    weighed, repeated = hs.ksum(X, sample_weight=WHOLE), hs.ksum(X[REPEATED])
    assert_allclose(weighed.slopes, repeated.slopes, rtol=1e-10)
    assert weighed.epsilon == pytest.approx(repeated.epsilon, rel=1e-10)
    zeros = np.where(np.arange(50) < 40, 1, 0)
    assert hs.ksum(X, sample_weight=zeros).epsilon == pytest.approx(hs.ksum(X[:40]).epsilon)
    assert rule_epsilon(X, "median", None, WHOLE) == pytest.approx(
        rule_epsilon(X[REPEATED], "median")
    )


def test_resampling_counts_the_weights_of_the_fit():
    model = hs.DiffusionMap(2, 2, **DENSE, random_state=0).fit(X, sample_weight=WHOLE)
    again = model._under_weights(NEW)(np.ones(50))
    assert_allclose(up_to_signs(again, model.transform(NEW)), model.transform(NEW), atol=1e-9)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        (np.ones(49), "one number for each"),
        (-np.ones(50), "out of range"),
        (np.full(50, np.nan), "not finite"),
        (np.zeros(50), "zero for all points"),
        (["a"] * 50, "one number for each"),
    ],
)
def test_wrong_weights_are_refused(weights, says):
    with pytest.raises(ValueError, match=says):
        hs.DiffusionMap().fit(X, sample_weight=weights)
    with pytest.raises(ValueError, match=says):
        hs.ksum(X, sample_weight=weights)


def test_weights_need_a_form_that_they_fit():
    for how in ({"normalization": "symmetric"}, {"normalization": "bistochastic"}):
        with pytest.raises(ValueError, match="normalization='markov'"):
            hs.DiffusionMap(**how).fit(X, sample_weight=WHOLE)
    with pytest.raises(ValueError, match="cannot be weighed"):
        hs.DiffusionMap(affinity="variable").fit(X, sample_weight=WHOLE)
    with pytest.raises(ValueError, match="weights of its own"):
        hs.DiffusionMap(affinity="precomputed").fit(hs.diffusion(X), sample_weight=WHOLE)
    sketch = hs.HeatSketch(4, random_state=0).fit(X, ids=range(50), sample_weight=WHOLE)
    with pytest.raises(ValueError, match="have weights"):
        sketch.update(NEW, ids=range(50, 59))
