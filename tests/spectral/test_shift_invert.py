"""Eigenpairs by solving systems, against closed forms and the dense matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import heatsketch as hs
from heatsketch.core.operators import Deflated
from heatsketch.spectral.eigen import inverse_eigenpairs, slowest_eigenpairs
from problems.checks import same_for_any_threads, up_to_signs
from problems.spectra import cycle_graph


def ring(n):
    """The lazy walk on a ring: λ_m = (1 + 2 cos 2πm/n) / 3, twice each."""
    return sparse.csr_matrix(cycle_graph(n) + sparse.identity(n)) / 3


def ring_values(n, k):
    m = 1 + np.arange(k) // 2
    return 4 / 3 * np.sin(np.pi * m / n) ** 2  # 1 - λ, without cancellation


def strip(n, seed=0):
    X = np.random.default_rng(seed).uniform(size=(n, 2)) * [20, 1]
    return hs.Diffusion.from_points(X, n_neighbors=10, alpha=0).deflated


@pytest.mark.parametrize("n", [1500, 40_000])
@pytest.mark.parametrize("k", [1, 2, 6])
def test_slow_rings_keep_the_digits_of_1_minus_lambda(n, k):
    A = Deflated(hs.Sparse(ring(n), (-1.0, 1.0)), np.full(n, n**-0.5))
    values, V = inverse_eigenpairs(A, k, 0)
    want = ring_values(n, k)
    assert_allclose(1 - values, want, rtol=1e-8, atol=4e-15)  # μ is 1e-8 on the larger ring
    assert_allclose(V.T @ V, np.eye(k), atol=1e-12)
    assert np.abs(V.sum(axis=0)).max() < 1e-9 * n**0.5
    assert np.linalg.norm(A @ V - V * values, axis=0).max() < 1e-8 * want[-1] + 2e-11


@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
def test_agrees_with_the_dense_matrix():
    A = strip(400)
    values, V = inverse_eigenpairs(A, 5, 0)
    want, W = np.linalg.eigh(A @ np.eye(400))
    assert_allclose(values, want[::-1][:5], atol=1e-13)
    assert_allclose(up_to_signs(V, W[:, :-6:-1]), W[:, :-6:-1], atol=1e-6)


@pytest.mark.parametrize("rings", [1, 3, 5])
@pytest.mark.parametrize("k", [3, 11, 20])
def test_all_copies_of_an_eigenvalue_are_found(rings, k):
    # Without their constants, equal rings have each eigenvalue 2, 6 or 10 times.
    n = 1500
    K = sparse.block_diag([ring(n)] * rings, format="csr")
    A = Deflated(hs.Sparse(K, (-1.0, 1.0)), np.kron(np.eye(rings), np.full((n, 1), n**-0.5)))
    values, V = inverse_eigenpairs(A, k, 0)
    assert_allclose(1 - values, np.repeat(ring_values(n, k), rings)[:k], rtol=1e-8, atol=4e-15)
    assert_allclose(V.T @ V, np.eye(k), atol=1e-12)


@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
def test_the_seed_decides_no_more_than_the_tolerance():
    A = strip(3000)
    one, again, other = (inverse_eigenpairs(A, 2, seed) for seed in (0, 0, 1))
    assert_array_equal(one[1], again[1])
    assert_allclose(one[0], other[0], rtol=0, atol=1e-13)


@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
def test_wide_graphs_many_pairs_and_operators_without_a_matrix_are_left_to_iteration():
    X = np.random.default_rng(0).normal(size=(2000, 6))
    A = hs.Diffusion.from_points(X).deflated
    assert inverse_eigenpairs(A, 2, 0) is None
    assert inverse_eigenpairs(strip(400), 200, 0) is None
    dense = hs.Diffusion.from_points(X[:200], affinity="dense", epsilon=1.0)
    assert inverse_eigenpairs(dense.deflated, 2, 0) is None


@pytest.mark.parametrize("n", [300, pytest.param(1500, marks=pytest.mark.slow)])
def test_pieces_have_their_eigenvectors_exactly_and_in_order_of_mass(n):
    # Five clouds of unequal size far apart: the eigenvalue 1 five times, √π among them.
    sizes = (np.array([0.4, 0.25, 0.2, 0.1, 0.05]) * n).astype(int)
    piece = np.repeat(np.arange(5), sizes)
    X = np.random.default_rng(0).normal(size=(len(piece), 2)) + 100 * piece[:, None]
    with pytest.warns(hs.DisconnectedWarning):
        d = hs.Diffusion.from_points(X, n_neighbors=10, alpha=0.0)
    A, root = d.operator @ np.eye(d.n), np.sqrt(d.measure)
    values = np.linalg.eigvalsh(A)[::-1]
    for k in (2, 4, 7):
        s = slowest_eigenpairs(d.deflated, k, rng=0)
        assert_allclose(s.values, values[1 : k + 1], atol=1e-12)
        assert_allclose(A @ s.vectors, s.vectors * s.values, atol=1e-9)
        V = np.column_stack([root, s.vectors])
        assert_allclose(V.T @ V, np.eye(k + 1), atol=1e-12)
        for m in range(min(k, 4)):
            R = d.expand(s.vectors[:, m] / root)
            assert_allclose(R[piece > m + 1], 0, atol=1e-12)
            assert np.ptp(R[piece <= m]) < 1e-9 > np.ptp(R[piece == m + 1])
            assert R[piece <= m][0] * R[piece == m + 1][0] < 0


def test_the_bits_do_not_depend_on_the_number_of_threads():
    """Outside of a fit, which sets the threads of BLAS by itself."""
    n = 40_000  # so many that sums of threads differ
    A = Deflated(hs.Sparse(ring(n), (-1.0, 1.0)), np.full(n, n**-0.5))
    same_for_any_threads(lambda: inverse_eigenpairs(A, 6, 0)[1])
