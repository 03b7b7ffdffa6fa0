"""Sketches of a kernel that is not symmetric."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import heatsketch as hs
from papers.sketching.row_stochastic import row_stochastic_sketch

K = hs.gaussian_affinity(np.random.default_rng(0).standard_normal((30, 2)), 0.8)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("p", [1, 5])
def test_it_is_the_power_times_g(alpha, p):
    P = np.linalg.matrix_power(hs.markov_normalize(K, alpha), p)
    G = np.random.default_rng(1).standard_normal((30, 4))
    assert_allclose(row_stochastic_sketch(K, p, G, alpha), P @ G / 2, atol=1e-12)


def test_by_its_singular_vectors_it_is_the_expansion_27():
    """Σ σ u (vᵀG)/√k: left vectors in place of eigenvectors, which are not orthogonal."""
    P = hs.markov_normalize(K)
    U, s, V = np.linalg.svd(P)
    G = np.random.default_rng(2).standard_normal((30, 3))
    F = row_stochastic_sketch(K, 1, G)
    assert_allclose(F, U @ (s[:, None] * (V @ G)) / np.sqrt(3), atol=1e-12)
    lam, R = np.linalg.eig(P)
    first = R[:, np.argsort(-lam.real)[:2]].real
    assert abs(first[:, 0] @ first[:, 1]) > 0.01  # of eigenvectors of length 1


def test_its_mean_distances_are_those_of_the_rows():
    """Over all columns of √n I, whose mean square is that of any G of Theorem 3.1."""
    P = np.linalg.matrix_power(hs.markov_normalize(K), 3)
    F = row_stochastic_sketch(K, 3, np.sqrt(30) * np.eye(30))
    gaps = [np.linalg.norm(M[:, None] - M[None], axis=2) for M in (F, P)]
    assert_allclose(*gaps, atol=1e-12)
