"""Laws that the sketch f(A) G / √k obeys as a random matrix."""

import itertools
import math

import numpy as np
import pytest
from numpy.linalg import matrix_power
from scipy import sparse, stats
from scipy.stats import chi2

import heatsketch as hs
from problems.chance import ALARM, Z_ALARM
from problems.filtered import symmetric


@pytest.mark.statistical
def test_squared_distances_are_chi_square():
    """Alarm 1e-6 each; 4.8e5 degrees of freedom see 2 % in the sum with a miss rate of 1e-6.

    k |F_i - F_j|²/D² of the same pair in 1100 copies of four points: independent draws.
    """
    A, k, copies = symmetric(4, 2.0, seed=3), 16, 1100  # 4400 rows: G comes from two random tiles
    many = hs.Sparse(sparse.block_diag([A] * copies, format="csr"))
    row_difference = matrix_power(A, 2)[0] - matrix_power(A, 2)[2]
    draws = []
    for seed in range(27):
        F = hs.sketch(many, hs.Power(2), k, deflate=False, rng=seed).reshape(copies, 4, k)
        draws.append(((F[:, 0] - F[:, 2]) ** 2).sum(axis=1))
    ratios = k * np.concatenate(draws) / (row_difference @ row_difference)
    total = chi2(k * len(ratios))
    assert total.ppf(ALARM / 2) < ratios.sum() < total.isf(ALARM / 2)
    assert stats.kstest(ratios, chi2(k).cdf).pvalue > ALARM
    for mutant in (1.02, 0.98, k / (k - 1), 1 / k):  # ..., 1/√(k-1), 1/k
        assert not total.ppf(ALARM / 2) < mutant * ratios.sum() < total.isf(ALARM / 2)


@pytest.mark.statistical
def test_the_spread_of_signs_is_that_of_their_law():
    """Variance (2 - 2Σu⁴/(Σu²)²)/k, alarm 1e-6; told from the 2/k of normals.

    Columns are independent: k columns are k draws of the law for one. The errors of mean and
    variance come from the exact moments over all 2^n signs.
    """
    n, k = 8, 40_000
    A = symmetric(n, 2.0)
    u = matrix_power(A, 2)[0] - matrix_power(A, 2)[5]
    size = u @ u
    law = 2 - 2 * (u**4).sum() / size**2
    all_signs = np.array(list(itertools.product([-1.0, 1.0], repeat=n)))
    every = (all_signs @ u) ** 2 / size
    assert every.mean() == pytest.approx(1.0)
    assert every.var() == pytest.approx(law)
    error = math.sqrt((((every - 1) ** 4).mean() - law**2) / k)

    def scores(kind):
        F = hs.sketch(A, hs.Power(2), k, kind=kind, deflate=False, rng=11)
        ratios = k * (F[0] - F[5]) ** 2 / size
        return (ratios.mean() - 1) * math.sqrt(k / law), (ratios.var() - law) / error

    assert np.abs(scores("rademacher")).max() < Z_ALARM
    assert abs(scores("gaussian")[1]) > Z_ALARM


@pytest.mark.statistical
def test_the_gram_error_falls_like_the_root_of_k():
    """E|FFᵀ - K|² = (tr(K)² + |K|²)/k exactly; alarm 1e-6 a size; sees 10 %, and 1/√(k-1) at 8."""
    A, copies = symmetric(30, 1.0), 100  # independent, for they share no entry of G
    many = hs.Sparse(sparse.block_diag([A] * copies, format="csr"))
    gram = matrix_power(A, 4)
    law = np.trace(gram) ** 2 + (gram**2).sum()
    sizes, runs = np.array([8, 32, 128]), 3600
    errors = np.empty((len(sizes), runs // copies, copies))
    mutant = np.empty(errors.shape[1:])
    for row, k in enumerate(sizes):
        for seed in range(runs // copies):
            F = hs.sketch(many, hs.Power(2), int(k), deflate=False, rng=seed)
            F = F.reshape(copies, 30, k)
            grams = F @ F.transpose(0, 2, 1)
            errors[row, seed] = ((grams - gram) ** 2).sum(axis=(1, 2))
            if row == 0:
                mutant[seed] = ((grams * 8 / 7 - gram) ** 2).sum(axis=(1, 2))
    errors = errors.reshape(len(sizes), runs)
    ratios = errors * sizes[:, None] / law
    spread = ratios.std(axis=1) / math.sqrt(runs)
    assert Z_ALARM * spread.max() < 0.1
    assert (np.abs(ratios.mean(axis=1) - 1) < Z_ALARM * spread).all()
    assert abs(mutant.mean() * 8 / law - 1) > Z_ALARM * mutant.std() / math.sqrt(runs) * 8 / law
    slope = np.polyfit(np.log(sizes), np.log(errors.mean(axis=1)) / 2, 1)[0]
    # Two ends a factor 16 apart carry the slope.
    assert abs(slope + 0.5) < Z_ALARM * spread.max() / math.log(16)


@pytest.mark.statistical
def test_two_data_sets_with_one_seed_differ_by_their_operators():
    """Proposition 3.4, alarm 1e-6: E|Y-Z|² = |A-B|², variance 2|(A-B)²|²/k, not 2|A-B|²/k.

    The columns are independent: k of them are k draws for k = 1. Cumulants of Σ μ²χ² give the
    errors. Sees 1 % of the mean and 4 % of the variance.
    """
    n, k = 12, 100_000
    X = np.random.Generator(np.random.PCG64(0)).standard_normal((n, 2))  # HEATSKETCH_SEED or not
    A, B = (hs.symmetric_normalize(hs.gaussian_affinity(X, epsilon)) for epsilon in (1.0, 1.3))
    mu = np.linalg.eigvalsh(A - B)
    mean, variance = (mu**2).sum(), 2 * (mu**4).sum()
    assert mean == pytest.approx(((A - B) ** 2).sum())
    assert variance == pytest.approx(2 * (matrix_power(A - B, 2) ** 2).sum())
    Y, Z = (hs.sketch(M, hs.Power(1), k, deflate=False, rng=5) for M in (A, B))
    squared = k * ((Y - Z) ** 2).sum(axis=0)
    mean_error = math.sqrt(variance / k)
    variance_error = math.sqrt((48 * (mu**8).sum() + 2 * variance**2) / k)
    assert abs(squared.mean() - mean) < Z_ALARM * mean_error
    assert abs(squared.var() - variance) < Z_ALARM * variance_error
    assert Z_ALARM * mean_error < 0.01 * mean
    assert Z_ALARM * variance_error < 0.04 * variance
    assert abs(squared.var() - 2 * mean) > Z_ALARM * variance_error  # as printed
    other = hs.sketch(B, hs.Power(1), k, deflate=False, rng=6)  # another G: the sum, not |A-B|²
    unpaired = k * ((Y - other) ** 2).sum(axis=0).mean()
    assert unpaired > 10 * mean
