"""The estimator of near-isometric maps: what it is, what it does not depend on, what it refuses."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA

import heatsketch as hs
from heatsketch import NearIsometricProjection
from heatsketch.layout.linear import OBJECTIVES
from heatsketch.metrics import row_distortion
from heatsketch.neighbors import pair_distances
from problems.checks import assert_distortion, estimator_checks
from problems.clouds import cloud, rotation, torus_factor

seeds = st.integers(0, 10**6)
every_objective = pytest.mark.parametrize("objective", OBJECTIVES)


def fitted(X, k, **changes):
    settings = {"n_init": 2, "max_iter": 60, "validation_fraction": 0, "random_state": 0}
    return NearIsometricProjection(k, **(settings | changes)).fit(X)


# What it does not depend on


CHANGES = {
    "scale": lambda X: 3.7 * X,
    "shift": lambda X: np.add(X, [1000.0, -5.0, 0.0, 3e6]),
    "rotation": lambda X: X @ rotation(4),
    "column order": lambda X: X[:, ::-1],
    "duplicates": lambda X: np.vstack([X, X[:5], X[:5]]),
    "nearly duplicates": lambda X: np.vstack([X, X * (1 + 1e-15), X - 1e-16]),
    "more columns": lambda X: np.hstack([X, np.zeros((len(X), 2))]),
}


@pytest.mark.parametrize("seed", range(2))
def test_log_L_does_not_depend_on(seed):
    X = np.random.default_rng(seed).normal(size=(15, 4)) * [2, 1, 0.7, 0.3]
    log_L = fitted(X, 2).distortion_.log_L
    for name, change in CHANGES.items():  # learned in single precision
        assert fitted(change(X), 2).distortion_.log_L == pytest.approx(log_L, rel=1e-3), name


@every_objective
def test_only_starts_beyond_the_fourth_know_the_seed(objective):
    X = cloud(30, 6)
    options = {"objective": objective, "validation_fraction": 0.2, "max_iter": 3}
    first, again = (fitted(X, 2, n_init=4, random_state=seed, **options) for seed in (0, 1))
    assert_array_equal(again.embedding_, first.embedding_)
    assert again.distortion_.held_out_log_L == first.distortion_.held_out_log_L
    first, again, other = (
        fitted(X, 2, n_init=7, random_state=seed, **options) for seed in (0, 0, 1)
    )
    assert_array_equal(again.embedding_, first.embedding_)
    assert other.history_ != first.history_


@every_objective
def test_rows_in_another_order_have_the_same_map(objective):
    # With ten rows left out: they are the same ones, too.
    X, order = cloud(50, 6), np.random.default_rng(1).permutation(50)
    options = {"objective": objective, "validation_fraction": 0.2}
    one, other = fitted(X, 3, **options), fitted(X[order], 3, **options)
    assert_allclose(other.components_, one.components_, rtol=0, atol=1e-10)
    assert_allclose(other.embedding_, one.embedding_[order], rtol=0, atol=1e-9)
    held_out = [model.distortion_.held_out_log_L for model in (one, other)]
    assert held_out[0] == pytest.approx(held_out[1], rel=1e-6)


# What it is


@given(seeds, st.integers(1, 4), st.integers(0, 4), st.floats(-50, 50))
def test_flat_data_keep_all_distances_old_and_new(seed, k, more, shift):
    rng = np.random.default_rng(seed)
    plane = np.linalg.qr(rng.normal(size=(k + more, k + more)))[0][:k]
    old, new = rng.normal(size=(2, 12, k))
    projection = fitted(old @ plane + shift, k + more // 2)
    assert projection.rank_ == k
    assert_array_equal(projection.embedding_[:, k:], 0)  # of directions that there are not
    assert projection.distortion_.log_L < 1e-10
    Y = projection.transform(np.vstack([old, new]) @ plane + shift)
    assert hs.distortion(Y, pdist(np.vstack([old, new]))).log_L < 1e-9
    assert_allclose(pdist(Y), pdist(np.vstack([old, new])), rtol=1e-9)  # the scale is right too


def test_columns_are_uncorrelated_and_ordered_by_variance():
    projection = fitted(np.random.default_rng(0).normal(size=(40, 6)), 3)
    covariance = np.cov(projection.embedding_.T)
    assert (np.diff(np.diag(covariance)) < 0).all()
    assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-12)


def test_the_longer_tail_of_each_column_points_up():
    # Also where every weight has the other sign: the rule is about points, not about weights.
    X = np.random.default_rng(0).exponential(size=(60, 6)) * [1, 2, 3, 4, 5, 6]
    for sign in (1, -1):
        Y = fitted(sign * X, 2).embedding_
        assert (((Y - Y.mean(axis=0)) ** 3).sum(axis=0) > 0).all()


def test_where_both_tails_are_alike_the_largest_weight_is_positive():
    X = np.random.default_rng(0).normal(size=(30, 5))
    W = fitted(np.vstack([X, -X]), 2).components_
    assert (W[np.arange(2), np.abs(W).argmax(axis=1)] > 0).all()


def test_distortion_is_that_of_the_embedding():
    X = np.random.default_rng(0).normal(size=(40, 6))
    projection = fitted(X, 2)
    assert_distortion(projection.distortion_, hs.distortion(projection.embedding_, pdist(X)))
    assert math.isnan(projection.distortion_.held_out_log_L)


@every_objective
def test_history_tells_of_every_descent(objective):
    started = time.perf_counter()
    projection = fitted(cloud(30, 6), 2, objective=objective)
    assert 0 < projection.seconds_ < time.perf_counter() - started
    history = projection.history_
    assert all(0 <= stage["iterations"] <= 60 for stage in history)
    assert all(math.isfinite(stage["objective"]) for stage in history)
    pairs_used = [stage["pairs"] for stage in history]
    assert pairs_used[0] == 30 * 29 // 2
    assert pairs_used == sorted(pairs_used)  # the worst ones join
    assert history[0]["loss"] == "stress"
    assert projection.n_iter_ == sum(stage["iterations"] for stage in history)


@every_objective
@pytest.mark.parametrize("rank", [2, 3, 5])
@pytest.mark.parametrize("validation_fraction", [0, 0.3])
def test_a_rank_that_is_given_is_kept(rank, validation_fraction, objective):
    X = cloud(30, 8) * 0.8 ** np.arange(8)
    options = {"rank": rank, "validation_fraction": validation_fraction, "objective": objective}
    projection = fitted(X, 2, **options)
    axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2]
    assert projection.rank_ == rank
    assert_allclose(projection.components_ @ axes[rank:].T, 0, atol=1e-12)
    assert np.linalg.norm(projection.components_ @ axes[rank - 1]) > 1e-6


@pytest.mark.parametrize("factor", [1.25, 2.0])
def test_most_keeps_more_pairs_and_worst_a_smaller_log_L(factor):
    X = cloud(120, 8) * 0.7 ** np.arange(8)
    most, worst = (
        fitted(X, 2, objective=objective, factor=factor, n_init=1).distortion_
        for objective in ("most", "worst")
    )
    assert most.within[factor] > worst.within[factor]
    assert worst.log_L < most.log_L


@pytest.mark.parametrize("scales", [[1, 1, 1], [1e10, 1, 1e-2], [1, 1, 0]], ids=str)
def test_all_directions_are_a_similarity(scales):
    X = np.random.default_rng(0).normal(size=(20, 3)) * scales
    projection = fitted(X, 3)
    assert projection.distortion_.log_L < 1e-12
    assert_allclose(projection.components_ @ projection.components_.T, np.eye(3), atol=1e-12)


def test_a_map_that_lets_most_points_coincide_says_so():
    # Beside two far points the others are a billionth apart: too near to be seen as a direction.
    X = np.zeros((10, 4))
    X[:8, 1] = 1e-9 * np.array([-1, 1, -2, 2, -3, 3, -4, 4])
    X[:8, 0], X[9, 0] = 1, -1
    projection = fitted(X, 1)
    assert projection.distortion_.log_L > 50  # rounding apart, if not equal
    assert np.isfinite(projection.components_).all()
    assert abs(projection.embedding_[8, 0] - projection.embedding_[9, 0]) == pytest.approx(1)


# Many points


@every_objective
def test_no_more_rows_are_learned_from_than_enough(objective, monkeypatch, limits):
    limits(all_pairs=100, random_pairs=20_000, near_rows=200)
    monkeypatch.setitem(OBJECTIVES, objective, replace(OBJECTIVES[objective], rows=150))
    X = torus_factor(400)
    projection = fitted(X, 3, objective=objective, n_init=1)
    assert projection.embedding_.shape == (400, 3)
    assert projection.history_[0]["pairs"] == min(150 * 149 // 2, OBJECTIVES[objective].pairs)
    order = np.random.default_rng(1).permutation(400)
    again = fitted(X[order], 3, objective=objective, n_init=1)  # the same 150 in other places
    one, other = (W / np.linalg.norm(W) for W in (projection.components_, again.components_))
    assert_allclose(other, one, rtol=0, atol=1e-6)  # the median is that of other random pairs
    found, leading = projection.distortion_, row_distortion(PCA(3).fit_transform(X), X)
    assert "random pairs" in found.looked_at
    if objective == "most":
        assert found.within[1.5] > leading.within[1.5]
    else:
        assert found.log_L < leading.log_L


# Rules and errors


@estimator_checks(
    NearIsometricProjection(n_init=1, max_iter=5, validation_fraction=0),
    NearIsometricProjection(1, n_init=2, max_iter=3),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "X", [np.ones((5, 3)), np.ones((5, 3)) + 1e-16 * np.eye(5, 3)], ids=["equal", "nearly equal"]
)
def test_data_without_distances_are_refused(X):
    with pytest.raises(ValueError, match="All 5 rows of X are equal"):
        NearIsometricProjection().fit(X)


# New points


@pytest.mark.parametrize("k", [2, 10])
def test_new_points_are_kept_at_least_as_well_as_by_principal_components(k):
    X, _ = hs.datasets.digits()
    X = X[np.random.default_rng(1).permutation(len(X))].astype(float)
    seen, new = X[:500], X[500:]
    W = hs.NearIsometricProjection(k).fit(seen).components_
    axes = np.linalg.svd(seen - seen.mean(axis=0), full_matrices=False)[2][:k]
    # Of all but 0.1 % at each end: the extreme pair of one draw says little.
    ends = [np.quantile(pdist(new @ V.T) / pdist(new), [0.001, 0.999]) for V in (W, axes)]
    ours, theirs = (math.log(high / low) for low, high in ends)
    assert ours <= theirs + 0.05


@pytest.mark.slow
def test_the_figure_of_rows_held_out_is_that_of_new_points():
    # Mean over 60 draws, each beside as many new points: within five standard errors, which is a
    # false alarm in 10⁶ runs, and shows a bias of 0.4.
    rng, k, differences = np.random.default_rng(2), 5, []
    scales = 0.9 ** np.arange(40)
    for _ in range(60):
        X = scales * rng.normal(size=(350, 40))
        seen, new = X[:300], X[300:330]
        projection = hs.NearIsometricProjection(k, n_init=1).fit(seen)
        both = np.vstack([new, seen[:270]])  # 30 new ones beside 240 known ones and each other
        i, j = np.triu_indices(30, 1, len(both))
        W = projection.components_.T
        ratios = pair_distances(both @ W, both @ W, i, j) / pair_distances(both, both, i, j)
        differences.append(projection.distortion_.held_out_log_L - np.ptp(np.log(ratios)))
    error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    assert abs(np.mean(differences)) < 5 * error
    assert error < 0.08
