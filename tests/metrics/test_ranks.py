"""Rank correlations against their definition, random pairs, and agreement of several runs."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from heatsketch.metrics import random_pairs, rank_correlation, stability
from problems.clouds import cloud, rotation

# Distances


def test_rank_correlation_is_that_of_the_ranks():
    D, E = np.abs(cloud(200, 2).T)
    E = E + D
    ranks = [[sum(a < b for a in values) for b in values] for values in (D, E)]
    assert rank_correlation(D, E) == pytest.approx(np.corrcoef(ranks)[0, 1], abs=1e-12)
    assert rank_correlation(np.exp(D), E**3) == pytest.approx(rank_correlation(D, E), abs=1e-12)
    assert rank_correlation(D, -D) == pytest.approx(-1, abs=1e-12)


def test_rank_correlation_of_paths_that_do_not_exist_and_of_nothing():
    D = [1.0, 2.0, 3.0, 3.0]
    assert rank_correlation(D, [1.0, 2.0, math.inf, math.inf]) == pytest.approx(1, abs=1e-12)
    assert math.isnan(rank_correlation(D, np.zeros(4)))


@pytest.mark.parametrize("n", [2, 3, 10, 11])
@pytest.mark.parametrize("count", [1, 7, 44, 10**6])
def test_pairs_are_distinct(n, count):
    i, j = random_pairs(n, count, rng=3)
    assert len(i) == min(count, math.comb(n, 2))
    assert (i < j).all()
    assert set(zip(i, j, strict=True)) <= set(combinations(range(n), 2))
    assert len(set(zip(i, j, strict=True))) == len(i)


@pytest.mark.statistical
@pytest.mark.parametrize("n", [8, 9])
def test_every_pair_is_as_likely(n):
    """Alarm 1e-6 over the pairs, 5.6 deviations each; sees a pair of probability 0 or doubled."""
    draws, count = 600, 5
    rng = np.random.default_rng(0)
    seen = np.zeros((n, n))
    for _ in range(draws):
        np.add.at(seen, random_pairs(n, count, rng), 1)
    p = count / math.comb(n, 2)
    times = seen[np.triu_indices(n, 1)]
    assert times.sum() == draws * count
    assert np.abs(times - draws * p).max() < 5.6 * math.sqrt(draws * p * (1 - p))


def test_pairs_of_many_points_take_little_memory():
    i, j = random_pairs(10**9, 1000)
    assert (i < j).all()
    assert len(np.unique(np.column_stack([i, j]), axis=0)) == 1000
    assert j.max() < 10**9


# Runs


def test_stability_ignores_turning_mirroring_and_scale():
    Y = cloud(80, 2)
    same = [Y, Y @ rotation(2), Y * [1, -1] * 1e50, np.hstack([Y, Y]) * 1e-50, Y + 1e6]
    assert stability(same) == pytest.approx(1, abs=1e-6)


def test_stability_is_the_mean_over_pairs_of_runs():
    runs = [cloud(40, 2, seed=seed) + 2 * cloud(40, 2) for seed in (1, 2, 3)]
    D = [pdist(Y) for Y in runs]
    want = np.mean([rank_correlation(a, b) for a, b in combinations(D, 2)])
    assert stability(runs) == pytest.approx(want, abs=1e-12)
    assert stability(runs[::-1], n_pairs=780) == pytest.approx(want, abs=1e-12)
    assert 0 < want < 1


def test_stability_of_a_run_that_collapsed_is_unknown():
    assert math.isnan(stability([cloud(20, 2), np.ones((20, 2))]))


# Bad input


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (rank_correlation, (np.zeros((3, 3)), np.zeros((3, 3))), "one distance per pair"),
        (rank_correlation, ([1.0, 2.0], [1.0, 2.0, 3.0]), "one distance per pair"),
        (rank_correlation, ([1.0], [1.0]), "at least 2 pairs"),
        (rank_correlation, ([1.0, 2.0], [np.nan, 2.0]), "E holds NaN"),
        (stability, ([cloud(10, 3)],), "pass at least two"),
        (stability, ([cloud(10, 3), cloud(9, 3)],), r"\[1\] has 9 rows but embeddings\[0\] has 10"),
        (stability, ([cloud(10, 3), np.full((10, 2), np.nan)],), r"embeddings\[1\] contains NaN"),
        (stability, ([cloud(2, 3), cloud(2, 3)],), "minimum of 3"),
        (random_pairs, (1, 5), "n=1"),
        (random_pairs, (5, 0), "count=0"),
    ],
)
def test_bad_input(function, given, message):
    with pytest.raises(ValueError, match=message):
        function(*given)
