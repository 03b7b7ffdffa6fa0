"""Metric scaling: exact where distances are Euclidean, least stress elsewhere."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold import smacof
from sklearn.neighbors import kneighbors_graph

import heatsketch as hs
from heatsketch.classical import ClassicalMDS, MetricMDS
from problems.checks import estimator_checks


def cloud(n=40, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)) * [3, 2, 1][:d]


def noisy_distances(n=40, seed=0):
    rng = np.random.default_rng(seed)
    noise = rng.uniform(0.6, 1.4, n * (n - 1) // 2)
    return squareform(pdist(cloud(n, 2, seed)) * noise)


def raw_stress(Y, D):
    return ((pdist(Y) - squareform(D)) ** 2).sum()


def fitted(X, **parameters):
    return MetricMDS(**({"max_iter": 3000, "tol": 1e-12} | parameters)).fit(X)


@pytest.mark.parametrize("k", [2, 3])
def test_points_in_as_many_dimensions_keep_their_distances(k):
    X = cloud(d=k)
    model = MetricMDS(k).fit(X)
    assert_allclose(pdist(model.embedding_), pdist(X), rtol=1e-9)
    assert model.stress_ < 1e-9


def test_points_and_their_distances_give_the_same_map():
    X = cloud()
    given = fitted(squareform(pdist(X)), metric="precomputed")
    assert_allclose(fitted(X).embedding_, given.embedding_, rtol=1e-6, atol=1e-6)


def test_the_stress_is_least_nearby_and_less_than_that_of_classical_scaling():
    D = noisy_distances()
    model = fitted(D, metric="precomputed")
    best = raw_stress(model.embedding_, D)
    rng = np.random.default_rng(1)
    for size in (1e-3, 1e-2, 0.1):
        moved = model.embedding_ + size * rng.standard_normal(model.embedding_.shape)
        assert raw_stress(moved, D) > best
    classical = ClassicalMDS(metric="precomputed").fit_transform(D)
    assert best < 0.95 * raw_stress(classical, D)
    diagnostics = model.diagnostics_
    assert diagnostics["stress"] == pytest.approx(
        np.sqrt(best / (pdist(model.embedding_) ** 2).sum())
    )
    assert diagnostics["classical_stress"] == pytest.approx(
        np.sqrt(raw_stress(classical, D) / (pdist(classical) ** 2).sum())
    )


def test_it_is_as_good_as_the_best_of_random_starts():
    D = noisy_distances()
    options = {"n_components": 2, "max_iter": 3000, "eps": 1e-10, "random_state": 0}
    theirs = smacof(D, n_init=8, normalized_stress=False, **options)[1]
    assert raw_stress(fitted(D, metric="precomputed").embedding_, D) <= theirs * (1 + 1e-4)


def test_a_square_with_long_diagonals_has_a_stress_that_can_be_computed():
    """Sides 1 and diagonals s in the plane: a square of side a, 4 (a - 1)² + 2 (a √2 - s)²."""
    s = 1.8
    D = np.array([[0, 1, s, 1], [1, 0, 1, s], [s, 1, 0, 1], [1, s, 1, 0]])
    a = (1 + s / np.sqrt(2)) / 2
    model = fitted(D, metric="precomputed")
    assert_allclose(np.sort(pdist(model.embedding_)), np.sort([a] * 4 + [a * np.sqrt(2)] * 2))
    expected = 4 * (a - 1) ** 2 + 2 * (a * np.sqrt(2) - s) ** 2
    assert raw_stress(model.embedding_, D) == pytest.approx(expected)


@pytest.mark.parametrize("scale", [1e-150, 1e-6, 1e6, 1e150])
def test_units_do_not_matter(scale):
    X = cloud()
    assert_allclose(fitted(X * scale).embedding_ / scale, fitted(X).embedding_, rtol=1e-4)


def test_the_order_of_points_does_not_matter():
    D = noisy_distances()
    order = np.random.default_rng(2).permutation(len(D))
    one = fitted(D, metric="precomputed").embedding_
    other = fitted(D[np.ix_(order, order)], metric="precomputed").embedding_
    assert_allclose(other, one[order], atol=1e-4)


def test_new_points_have_the_least_stress_of_their_own():
    X, new = cloud(), cloud(10, seed=5)
    model = fitted(X)
    Z = model.transform(new)
    delta = squareform(pdist(np.vstack([X, new])))[len(X) :, : len(X)]

    def own(Z):
        distances = np.linalg.norm(Z[:, None] - model.embedding_, axis=2)
        return ((distances - delta) ** 2).sum(axis=1)

    for angle in np.arange(8):
        step = 1e-3 * np.array([np.cos(angle), np.sin(angle)])
        assert (own(Z + step) > own(Z)).all()
    given = fitted(squareform(pdist(X)), metric="precomputed")
    assert_allclose(given.transform(delta), Z, atol=1e-5)


def test_training_points_stay_and_exact_places_are_found():
    X = cloud(d=2)
    model = fitted(X)
    assert_allclose(model.transform(X), model.embedding_, atol=1e-12)
    new = cloud(10, 2, seed=5)
    together = pdist(np.vstack([model.embedding_, model.transform(new)]))
    assert_allclose(together, pdist(np.vstack([X, new])), atol=1e-5)


def test_path_lengths_unroll_a_roll():
    """Step 3 of the notes' Isomap: mdscale of the path lengths."""
    X, flat = hs.datasets.swiss_roll(400, rng=0)
    paths = shortest_path(kneighbors_graph(X, 8, mode="distance"), directed=False)
    model = MetricMDS(metric="precomputed").fit(paths)
    assert model.stress_ < model.diagnostics_["classical_stress"] < 0.1
    assert np.corrcoef(pdist(model.embedding_), pdist(flat))[0, 1] > 0.999


def test_copies_share_a_place_and_single_precision_stays():
    X = np.vstack([cloud(), cloud()[:5]])
    Y = fitted(X).embedding_
    assert_allclose(Y[40:], Y[:5], atol=1e-4)
    assert MetricMDS().fit_transform(X.astype(np.float32)).dtype == np.float32


def test_it_says_when_it_stopped_too_early():
    with pytest.warns(hs.ConvergenceWarning, match="max_iter=2 iterations; raise max_iter"):
        MetricMDS(max_iter=2, tol=1e-12).fit(cloud())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MetricMDS().fit(cloud())


@pytest.mark.parametrize(
    ("parameters", "X", "match"),
    [
        ({"n_components": 40}, cloud(), "n_components=40 but X has 40 points"),
        ({"n_components": 0}, cloud(), "n_components=0"),
        ({"max_iter": 0}, cloud(), "max_iter=0"),
        ({"tol": 0.0}, cloud(), "tol=0.0"),
        ({"metric": "precomputed"}, np.abs(cloud()), "pass the distances"),
        ({"metric": "precomputed"}, -np.ones((4, 4)), "negative"),
        ({"metric": "cosin"}, cloud(), "metric='cosin'"),
    ],
)
def test_bad_arguments_are_refused(parameters, X, match):
    with pytest.raises(ValueError, match=match):
        MetricMDS(**parameters).fit(X)


@estimator_checks(MetricMDS())
def test_scikit_learn_checks(estimator, check):
    check(estimator)
