"""Pairs to learn from and to judge by: which they are, their distances, what they find."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.stats import binom, chi2

from heatsketch.layout.linear import (
    log_ratio_evaluator,
    nearest_pairs,
    sampled_pairs,
    shortest_pairs,
    within_labels,
)
from heatsketch.metrics import row_distortion
from problems.clouds import cloud

seeds = st.integers(0, 10**6)


def codes(pairs, n):
    """Return the pairs without their direction, each once."""
    low, high = np.minimum(*pairs), np.maximum(*pairs)
    return np.unique(low * n + high)


# Which pairs


@given(seeds, st.integers(2, 50))
def test_sampled_pairs_are_all_or_of_two_different_points_and_always_the_same(seed, n):
    few = n * (n - 1) // 2
    assert_array_equal(np.stack(sampled_pairs(n, few)), np.triu_indices(n, 1))
    rng = partial(np.random.default_rng, seed)
    for draw in (lambda: sampled_pairs(n, few - 1), lambda: sampled_pairs(n, few - 1, rng())):
        i, j = draw()
        assert (i != j).all()
        assert ((i >= 0) & (i < n) & (j >= 0) & (j < n)).all()
        assert_array_equal(np.stack(draw()), np.stack([i, j]))


@pytest.mark.statistical
def test_no_pair_is_favoured():
    """Each ordered pair of 10 points is drawn with probability 1/90; 90 of them are looked at."""
    rng = np.random.default_rng(0)
    i, j = np.hstack([sampled_pairs(10, 40, rng) for _ in range(225)])  # of 45
    counts = np.bincount(10 * i + j, minlength=100).reshape(10, 10)
    low, high = binom.ppf([1e-6 / 180, 1 - 1e-6 / 180], 9_000, 1 / 90)
    off = counts[~np.eye(10, dtype=bool)]
    assert low <= off.min()
    assert off.max() <= high
    assert_array_equal(np.diag(counts), 0)


def neighbour_codes(F, rows, k):
    D = squareform(pdist(F))
    np.fill_diagonal(D, np.inf)
    near = np.argsort(D, axis=1)[rows, :k]
    return codes((np.repeat(rows, k), near.ravel()), len(F))


@pytest.mark.parametrize("n", [2, 4, 60])
def test_shortest_pairs_are_those_of_nearest_neighbours(n):
    F = cloud(n, 3)
    assert_array_equal(codes(shortest_pairs(F), n), neighbour_codes(F, np.arange(n), min(5, n - 1)))
    some = np.arange(0, n, 2)
    assert_array_equal(codes(nearest_pairs(F, some, 1), n), neighbour_codes(F, some, 1))


# The evaluator


def test_log_ratios_are_those_of_distances():
    F, Y = cloud(30, 5), cloud(30, 2, seed=1)
    ratios, i, j = log_ratio_evaluator(F)(Y)
    assert_array_equal(np.stack([i, j]), np.triu_indices(30, 1))
    assert_allclose(ratios, np.log(pdist(Y) / pdist(F)), rtol=0, atol=1e-12)


def test_coinciding_points_have_a_finite_ratio():
    F, Y = cloud(10, 3), cloud(10, 2, seed=1)
    Y[3] = Y[5]
    ratios, i, j = log_ratio_evaluator(F)(Y)
    assert np.isfinite(ratios).all()
    assert np.ptp(ratios) > 30
    assert (i[ratios.argmin()], j[ratios.argmin()]) == (3, 5)
    assert np.isfinite(log_ratio_evaluator(F)(np.zeros((10, 2)))[0]).all()


@pytest.fixture
def large(limits):
    """Take a hundred points for many."""
    limits(all_pairs=100, random_pairs=4_000)


@pytest.mark.usefixtures("large")
def test_some_pairs_of_many_points_show_nearly_what_all_do():
    F, W = cloud(400, 4), cloud(4, 2, seed=1)
    (ratios, i, j), all_pairs = log_ratio_evaluator(F)(F @ W), row_distortion(F @ W, F)
    assert_allclose(ratios, np.log(cdist(F @ W, F @ W)[i, j] / cdist(F, F)[i, j]), atol=1e-6)
    assert 0.9 * all_pairs.log_L <= np.ptp(ratios) <= all_pairs.log_L + 1e-6


@pytest.mark.usefixtures("large")
def test_planted_collisions_are_found():
    # Twenty pairs of points far apart that an embedding puts on each other: 20 of 79,800 pairs.
    F, Y = cloud(400, 6), cloud(400, 2, seed=1)
    far = np.arange(20)
    Y[200 + far] = Y[far] + 1e-5
    ratios, i, j = log_ratio_evaluator(F)(Y)
    assert np.ptp(ratios) > math.log(1e4)
    worst = np.argsort(ratios)[:40]
    assert np.isin(codes((far, 200 + far), 400), codes((i[worst], j[worst]), 400)).all()


@pytest.mark.usefixtures("large")
def test_tears_between_neighbours_are_found():
    F = cloud(400, 2)
    i, j = nearest_pairs(F, np.array([7]), 1)
    Y = F.copy()
    Y[j] += 1e3
    ratios, *pairs = log_ratio_evaluator(F)(Y)
    worst = np.argsort(ratios)[-5:]
    assert codes((i, j), 400)[0] in codes((pairs[0][worst], pairs[1][worst]), 400)


def test_pairs_within_groups_are_drawn_with_equal_probability():
    labels = np.array([0, 1, 0, 2, 1, 0, 2, 0, 3])  # 6 + 1 + 1 pairs, and one alone
    i, j = sampled_pairs(9, 16_000, np.random.default_rng(0), labels)
    assert (labels[i] == labels[j]).all()
    assert (i != j).all()
    found = np.unique(np.sort([i, j], axis=0), axis=1, return_counts=True)[1]
    assert len(found) == 8
    assert chi2.sf(((found - 2_000) ** 2 / 2_000).sum(), 7) > 1e-6


def test_pairs_within_groups_are_those_of_one_label():
    i, j = within_labels(np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([5, 5, 6]))
    assert_array_equal([i, j], [[0], [1]])
    assert_array_equal(within_labels(i, j, None), [i, j])


def test_without_two_points_in_a_group_there_is_no_pair():
    with pytest.raises(ValueError, match="same component"):
        sampled_pairs(3, 5, np.random.default_rng(0), np.arange(3))
