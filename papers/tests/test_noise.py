"""Noise of different sizes, and the eigenpairs of §4.5."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import heatsketch as hs
from papers.sketching.noise import FORMS, noise_example, normalized, run_noise
from papers.sketching.power_iteration import eigenpairs_by_powers


@pytest.fixture(scope="module")
def rows():
    return noise_example(1, points=150, dimensions=4000, levels=(0.0, 0.1, 0.4))


def test_bistochastic_forms_without_a_diagonal_change_least(rows):
    """A product of functions of i and of j is taken out exactly; with a diagonal it is not."""
    at = {(row.form, row.level): row for row in rows}
    for level in (0.1, 0.4):
        one, two, three, four = (at[form, level].difference for form in FORMS)
        assert four < three < min(one, two) / 4
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
    for row in rows:
        assert abs(row.sketched - row.difference) <= 6 * row.spread
        assert (row.difference == 0) == (row.level == 0)


def test_the_table_and_the_picture_are_written(tmp_path):
    pytest.importorskip("matplotlib")
    found = run_noise(tmp_path, 0, points=30, dimensions=50)
    assert {path.name for path in tmp_path.iterdir()} == {"noise.csv", "noise.png"}
    assert len(found) == 4 * 5


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
