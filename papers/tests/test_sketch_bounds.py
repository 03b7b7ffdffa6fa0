"""Bounds and laws of Gaussian sketches, against closed forms and against sketches themselves."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import pdist, squareform

import heatsketch as hs
from papers.sketching.bounds import CHAINING, sketch_difference, sketch_error_bound

Z_ALARM = 5.0  # of a normal score: two-sided 6e-7


def bistochastic(n=60, epsilon=0.5, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, 2))
    return hs.bistochastic_normalize(hs.gaussian_affinity(X, epsilon), tol=1e-12)


# Theorem 3.3


@pytest.mark.parametrize("n", [2, 3, 10, 200])
def test_of_points_at_equal_distances_every_number_is_known(n):
    """N(ε) = n below the distance r, so that the integral is r log(n + 1)."""
    r, k = 0.7, 25
    bound = sketch_error_bound(r * (1 - np.eye(n)), k)
    assert bound.diameter == r
    assert bound.integral == pytest.approx(r * math.log(n + 1))
    assert bound.theorem == pytest.approx(106 * r**2 * math.log(n + 1) / 5)
    L = math.log(n * (n - 1))
    assert bound.pairs == pytest.approx(r**2 * (2 * math.sqrt(L) / 5 + 2 * L / 25))


def test_the_integral_of_points_on_a_line():
    """2^m equispaced points: an interval of length 1 takes 1/(2ε) balls; the cover found, twice."""
    X = np.linspace(0, 1, 1025)[:, None]
    bound = sketch_error_bound(pdist(X), 1)
    epsilon = (np.arange(100_000) + 0.5) / 200_000  # up to ½; one ball beyond
    best = np.log(np.minimum(np.ceil(1 / (2 * epsilon)), 1025) + 1).mean() / 2 + math.log(2) / 2
    assert best <= bound.integral <= best + math.log(2) / 2


def test_bounds_scale_and_do_not_depend_on_the_order():
    X = np.random.default_rng(0).standard_normal((50, 3))
    one, four = sketch_error_bound(pdist(X), 10), sketch_error_bound(4 * pdist(X), 10)
    assert_allclose(four, np.array(one) * [16, 16, 4, 4], rtol=1e-12)
    order = np.random.default_rng(1).permutation(50)
    assert_allclose(sketch_error_bound(squareform(pdist(X))[np.ix_(order, order)], 10), one)
    more = sketch_error_bound(pdist(X), 1000)
    assert more.theorem == pytest.approx(one.theorem / 10)
    assert one.pairs / 100 < more.pairs < one.pairs / 10


def test_the_constant_is_large_enough_and_no_larger():
    N = np.arange(2, 10**6, dtype=float)
    L = np.log(2 * N**2)
    needed = 32 * ((np.sqrt(L) + L) / np.log(N + 1)).max()
    assert needed <= CHAINING < needed + 1
    one = math.sqrt(math.log(2)) + math.log(2)
    assert one / math.log(2) < needed / 32  # N = 1


@pytest.mark.parametrize("k", [1, 4, 64])
@pytest.mark.parametrize("equal", [True, False])
def test_sketches_stay_below_the_bounds(k, equal):
    """The mean of 300 worst errors; its own error is some 1 % of it."""
    n = 40
    C = np.eye(n) if equal else np.linalg.matrix_power(bistochastic(n), 4)
    i, j = np.triu_indices(n, 1)
    D = np.sqrt(C[i, i] + C[j, j] - 2 * C[i, j])
    worst = []
    for seed in range(300):
        Y = hs.sketch(C, hs.Power(0.5), k, deflate=False, rng=seed)
        worst.append(np.abs(pdist(Y, "sqeuclidean") - D**2).max())
    bound = sketch_error_bound(D, k)
    assert np.mean(worst) < bound.pairs < bound.theorem
    if equal:  # then the bound of pairs cannot be far off
        assert bound.pairs < 3 * np.mean(worst)


# Proposition 3.4


@pytest.mark.parametrize("filter", [hs.Power(1), hs.Power(3), hs.Heat(2.5), hs.Power(0.5)], ids=str)
def test_mean_and_variance_are_sums_over_eigenvalues(filter):
    A, B = bistochastic(epsilon=0.5), bistochastic(epsilon=0.7)
    roots = []
    for matrix in (A, B):
        lam, V = np.linalg.eigh(matrix)
        roots.append((V * filter(lam)) @ V.T)
    mu = np.linalg.eigvalsh(roots[0] - roots[1])
    law = sketch_difference(A, B, filter, 16)  # both lose the same constant direction
    assert_allclose(law, [(mu**2).sum(), 2 * (mu**4).sum() / 16], rtol=1e-9)


@pytest.mark.statistical
def test_sketches_of_two_data_sets_obey_the_law():
    """Alarm 1e-6 each: 4,000 differences, whose cumulants are those of Σ μ²χ²/k.

    Columns are independent: those of one wide sketch are 4,000 sketches of k columns.
    """
    A, B, k = bistochastic(30, 0.5), bistochastic(30, 0.8), 4
    law = sketch_difference(A, B, hs.Power(2), k)
    Y, Z = (hs.sketch(M, hs.Power(2), 4000 * k, rng=0) for M in (A, B))
    draws = 4000 * ((Y - Z) ** 2).sum(axis=0).reshape(4000, k).sum(axis=1)
    mu = np.linalg.eigvalsh(np.linalg.matrix_power(A, 2) - np.linalg.matrix_power(B, 2))
    fourth = 48 * (mu**8).sum() / k**3  # cumulant of order 4
    assert abs(draws.mean() - law.mean) < Z_ALARM * math.sqrt(law.variance / 4000)
    spread = math.sqrt((fourth + 2 * law.variance**2) / 4000)
    assert abs(draws.var() - law.variance) < Z_ALARM * spread
    assert abs(draws.var() - 2 * law.mean / k) > Z_ALARM * spread  # as printed
