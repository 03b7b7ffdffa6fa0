"""Nonmetric scaling: what depends on the order alone, Kruskal's stress, and its descent."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist, pdist, squareform

import heatsketch as hs
from heatsketch.classical import ClassicalMDS, MetricMDS, NonmetricMDS
from heatsketch.classical.mds import Disparities
from problems.checks import up_to_signs


def fitted(D, k=2, **options):
    return NonmetricMDS(k, metric="precomputed", **options).fit(D)


def stress1(d, delta):
    """By the definition: the least over sequences in the order of delta, from pools of averages."""
    order = np.lexsort((d, delta))
    pools = []
    for value in d[order]:
        pools.append([value, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, m), (b, n) = pools[-2], pools.pop()
            pools[-1] = [(a * m + b * n) / (m + n), m + n]
    wanted = np.concatenate([np.full(n, value) for value, n in pools])
    return np.linalg.norm(d[order] - wanted) / np.linalg.norm(d)


def test_disparities_are_the_nearest_numbers_in_the_order_wanted():
    rng = np.random.default_rng(0)
    for _ in range(20):
        d, delta = rng.random(6), rng.integers(0, 4, 6).astype(float)
        found = Disparities(delta)(d)
        for i, j in itertools.permutations(range(6), 2):
            assert found[i] <= found[j] or delta[i] >= delta[j]
        # A projection on a convex cone: d - d̂ is orthogonal to d̂, and at most to all others.
        assert abs((d - found) @ found) < 1e-12
        for _ in range(50):
            other = Disparities(delta)(rng.random(6))
            assert (d - found) @ other <= 1e-12


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_stress_is_that_of_kruskal_and_no_more_than_at_the_start(X, k):
    D = cdist(X, X, "cityblock")
    model = fitted(D, k)
    d, delta = pdist(model.embedding_), squareform(D)
    assert_allclose(model.stress_, stress1(d, delta), rtol=1e-9)
    assert_allclose(np.linalg.norm(d - model.disparities_) / np.linalg.norm(d), model.stress_)
    start = ClassicalMDS(k, metric="precomputed").fit_transform(D)
    assert_allclose(model.diagnostics_["classical_stress"], stress1(pdist(start), delta), rtol=1e-9)
    assert model.stress_ < model.diagnostics_["classical_stress"]
    metric = MetricMDS(k, metric="precomputed").fit_transform(D)
    assert model.stress_ <= stress1(pdist(metric), delta) + 1e-3
    assert_allclose(np.linalg.norm(d), np.linalg.norm(delta))
    assert_allclose(model.embedding_.mean(axis=0), 0, atol=1e-10)


def test_each_step_lowers_the_stress(X):
    D = cdist(X, X, "chebyshev")
    stresses = []
    for steps in range(1, 15):
        with pytest.warns(hs.ConvergenceWarning, match="raise max_iter"):
            stresses.append(fitted(D, max_iter=steps, tol=1e-12).stress_)
    assert (np.diff(stresses) < 0).all()


@pytest.mark.parametrize("power", [0.5, 2.0, 5.0])
def test_a_function_of_the_distances_changes_nothing_but_the_start(X, power):
    """Only the order counts: at a minimum of one, steps from there for the other stay."""
    D = cdist(X[:, :2], X[:, :2])
    model = fitted(D**power, max_iter=1000, tol=1e-5)
    assert model.stress_ < 1e-2
    assert model.stress_ < model.diagnostics_["classical_stress"] / 3
    d, delta = pdist(X), squareform(D)
    assert_allclose(Disparities(delta)(d), Disparities(delta**power)(d))


def test_distances_in_the_plane_come_out_without_stress(X):
    D = cdist(X[:, :2], X[:, :2])
    model = fitted(D)
    assert (model.stress_, model.n_iter_) == (pytest.approx(0, abs=1e-12), model.n_iter_)
    expected = ClassicalMDS(metric="precomputed").fit_transform(D)
    assert_allclose(up_to_signs(model.embedding_, expected), expected, atol=1e-8)
    points = NonmetricMDS().fit(X[:, :2])
    assert_allclose(points.embedding_, model.embedding_, atol=1e-8)


def test_cities_are_mapped_by_their_order():
    miles, _ = hs.datasets.us_cities()
    model, known = fitted(miles), ClassicalMDS(metric="precomputed").fit_transform(miles)
    U, s, V = np.linalg.svd(known.T @ model.embedding_)  # Procrustes
    turned = model.embedding_ @ (U @ V).T
    turned *= s.sum() / np.square(turned).sum()
    assert np.linalg.norm(turned - known) < 0.1 * np.linalg.norm(known)
    assert model.stress_ < 1e-3 < MetricMDS(metric="precomputed").fit(miles).stress_


def test_training_points_keep_their_places_and_new_ones_are_near_them(X):
    model = NonmetricMDS().fit(X)
    assert_allclose(model.transform(X), model.embedding_, atol=1e-12)
    moved = model.transform(X + 1e-6)
    assert_allclose(moved, model.embedding_, atol=1.0)
    flat = NonmetricMDS().fit(X[:30, :2])
    scale = np.linalg.norm(pdist(flat.embedding_)) / np.linalg.norm(pdist(X[:30, :2]))
    assert_allclose(scale, 1)
    new = cdist(flat.transform(X[30:, :2]), flat.embedding_)
    assert_allclose(new, cdist(X[30:, :2], X[:30, :2]), atol=0.5)


def test_equal_distances_and_equal_points_are_told_or_kept():
    assert fitted(1.0 - np.eye(3)).stress_ < 1e-12  # a triangle
    assert_allclose(pdist(fitted(1.0 - np.eye(10), 9).embedding_), 1, rtol=1e-8)  # a simplex
    for D in (1.0 - np.eye(10), 1e-9 * (1 - np.eye(4)), np.zeros((5, 5))):
        with pytest.raises(ValueError, match=f"order says nothing.* n_components={len(D) - 1}"):
            fitted(D)
    with pytest.raises(ValueError, match="order says nothing"):  # but for rounding
        NonmetricMDS().fit(np.linalg.qr(np.vander(np.arange(7.0)))[0])
    for copies in (np.repeat(np.eye(5), 2, axis=0), np.eye(5)[[0, 1, 2, 3, 4, 4]]):
        with pytest.raises(ValueError, match=r"5 distinct points are 1\.414, .* n_components=4"):
            NonmetricMDS().fit(copies)
        Y = NonmetricMDS(4).fit(copies).embedding_
        assert_allclose(pdist(Y), pdist(copies), rtol=1e-8, atol=1e-8)
    D = 1.0 - np.eye(10)
    D[0, 1] = D[1, 0] = 2.0
    assert fitted(D).stress_ < 1  # one that differs has an order
    Y = NonmetricMDS().fit(np.repeat(np.eye(3), 2, axis=0)).embedding_
    assert_allclose(Y[::2], Y[1::2], atol=1e-8)
    assert_array_equal(np.isfinite(Y), True)
