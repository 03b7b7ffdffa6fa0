"""Noise of different sizes, and the eigenpairs of §4.5."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

import heatsketch as hs
from papers.sketching.manifolds import MANIFOLDS
from papers.sketching.noise import EPSILON, FORMS, LAWS, noise_example, normalized, run_noise
from papers.sketching.power_iteration import eigenpairs_by_powers


@pytest.fixture(scope="module")
def rows():
    return noise_example(1, points=100, dimensions=1000, draws=1, levels=(0.0, 0.4, 1.6), jobs=1)


def test_bistochastic_forms_without_a_diagonal_change_least(rows):
    """On every manifold, by every law of noise."""
    at = {(row.manifold, row.law, row.form, row.level): row.difference for row in rows}
    assert len(at) == 9 * 4 * 3
    for manifold in MANIFOLDS:
        for law in LAWS:
            for level in (0.4, 1.6):
                one, two, three, four = (at[manifold, law, form, level] for form in FORMS)
                assert four < three < min(one, two) / 3


def test_factors_of_the_two_points_are_taken_out_without_a_diagonal_only():
    rng = np.random.default_rng(0)
    K = hs.gaussian_affinity(rng.standard_normal((40, 2)), 0.7)
    u = rng.uniform(0.5, 1, 40)  # e^{-s_i/ε}, off the diagonal
    noisy = K * np.outer(u, u)
    clean, moved = (normalized(M, "bistochastic, zero diagonal") for M in (K, noisy))
    assert_allclose(moved, clean, atol=1e-7)
    clean, moved = (normalized(M, "symmetric, zero diagonal") for M in (K, noisy))
    assert np.abs(moved - clean).max() > 1e-3
    np.fill_diagonal(noisy, 1)
    with_diagonal = [normalized(M, "bistochastic") for M in (K, noisy)]
    assert np.abs(with_diagonal[0] - with_diagonal[1]).max() > 0.01


def test_sketches_with_one_matrix_tell_the_difference(rows):
    """6 standard deviations of χ(64): a false alarm in 2e8, and 72 rows have noise."""
    for row in rows:
        assert abs(row.sketched - row.difference) <= 6 * row.spread
        assert (row.difference == 0) == (row.level == 0)


def test_the_kernel_with_its_diagonal_is_compared_too(rows):
    """Without noise the forms without a diagonal are off by what the diagonal was."""
    for row in rows:
        if "zero" not in row.form:
            assert row.original == row.difference
        elif row.level == 0:
            assert row.original > 0.1
    X = MANIFOLDS["sphere"](100, np.random.default_rng(2))
    K = hs.gaussian_affinity(X, EPSILON["sphere"])
    A, B = (normalized(K, form) for form in (FORMS[1], FORMS[3]))
    assert np.all(np.diag(B) == 0)
    assert_allclose([A.sum(axis=1), B.sum(axis=1)], 1, atol=1e-8)


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        ("normal", scipy.stats.norm()),
        ("uniform", scipy.stats.uniform(-np.sqrt(3), 2 * np.sqrt(3))),
        ("Student t", scipy.stats.t(5, scale=np.sqrt(0.6))),
    ],
)
def test_laws_have_variance_one(law, expected):
    """Kolmogorov-Smirnov: one false alarm in 1e7 for each law."""
    assert expected.var() == pytest.approx(1)
    found = LAWS[law](np.random.default_rng(3), (200, 500))
    assert scipy.stats.kstest(found.ravel(), expected.cdf).pvalue > 1e-7


def test_the_table_and_the_picture_are_written(tmp_path):
    pytest.importorskip("matplotlib")
    some = {"manifolds": ("circle", "sphere"), "laws": ("uniform", "Student t")}
    found = run_noise(tmp_path, 0, points=60, dimensions=50, draws=2, jobs=1, **some)
    assert {path.name for path in tmp_path.iterdir()} == {"noise.csv", "noise.png"}
    assert len(found) == 4 * 4 * 5
    assert all((row.deviation > 0) == (row.level > 0) for row in found)


@pytest.mark.parametrize(("m", "accuracy"), [(8, 1e-2), (30, 1e-8)])
def test_eigenpairs_by_powers_are_as_good_as_the_power_is_high(m, accuracy):
    values = np.concatenate([[1, 0.9, -0.85, 0.8], np.linspace(0.5, -0.5, 96)])
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((100, 100)))[0]
    A = (Q * values) @ Q.T
    lam, V = eigenpairs_by_powers(A, 4, m, np.random.default_rng(1))
    assert_allclose(lam, values[:4], atol=accuracy)
    residual = np.linalg.norm(A @ V - V * lam, axis=0)
    assert (residual <= 3 * np.sqrt(accuracy)).all()
    assert_allclose(np.linalg.norm(V, axis=0), 1, rtol=1e-12)
