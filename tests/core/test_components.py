import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.linalg import block_diag
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

import heatsketch as hs
from heatsketch import Dense, DisconnectedWarning, Kernel, LowRank, Sparse, gaussian_affinity
from heatsketch.core.operators import NEGLIGIBLE
from heatsketch.markov.diffusion import connectivity


def same_partition(ours, want):
    """Whether two labellings agree up to the names of the labels."""
    pairs = set(zip(ours.tolist(), want.tolist(), strict=True))
    return len(pairs) == len(set(ours.tolist())) == len(set(want.tolist()))


def components(linked):
    return connected_components(sparse.csr_matrix(linked), directed=False)[1]


def groups(sizes, gap=100.0, seed=0):
    """Points in groups a gap apart, in random order, with the group of each."""
    rng = np.random.default_rng(seed)
    label = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return np.column_stack([gap * label, rng.random(len(label))]), label


@given(st.integers(2, 40), st.floats(0, 0.12), st.integers(0, 10**6))
def test_components_are_those_of_the_graph_of_affinities_that_count(n, density, seed):
    links = np.triu(np.random.default_rng(seed).random((n, n)) < density, 1)
    links |= links.T
    K = np.where(links, 1e-3, 1e-30)  # everyone is linked, but 1e-30 of a sum near 1 is nothing
    np.fill_diagonal(K, 1.0)
    want = components(links)
    assert same_partition(Dense(K).components(), want)
    assert same_partition(Sparse(sparse.csr_matrix(links * K + np.eye(n))).components(), want)


@pytest.mark.parametrize(("share", "count"), [(30.0, 1), (1 / 30, 2)], ids=["above", "below"])
def test_an_affinity_counts_from_the_rounding_of_a_row_sum_on(share, count):
    K = np.array([[1.0, share * NEGLIGIBLE], [share * NEGLIGIBLE, 1.0]])
    assert Dense(K).components().max() + 1 == count


def test_explicit_zeros_do_not_link():
    K = sparse.csr_matrix(([1.0, 0.0, 0.0, 1.0], ([0, 0, 1, 1], [0, 1, 0, 1])), shape=(2, 2))
    assert Sparse(K).components().max() == 1
    assert K.nnz == 4


@pytest.mark.parametrize("sizes", [[40], [20, 5], [30, 12, 1], [15] * 12])
def test_groups_of_points_are_found_without_storing_the_kernel(sizes):
    X, label = groups(sizes)
    found = Kernel(X, 1.0).components()
    assert same_partition(found, label)
    assert same_partition(Dense(gaussian_affinity(X, 1.0)).components(), label)


def test_kernel_with_local_scales():
    X, label = groups([25, 25], gap=1000.0)
    wide = np.where(label == 0, 1.0, 50.0)
    assert same_partition(Kernel(X, wide).components(), label)
    # exp(-1000² / (s s')) links the groups once s s' exceeds 1000² / 32.
    assert Kernel(X, np.full(50, 250.0)).components().max() == 0


def test_a_factor_tells_where_it_is_sparse_and_non_negative():
    F = sparse.random(40, 90, density=0.015, random_state=4, format="csr")
    assert LowRank(F).is_non_negative()
    found = LowRank(F).components()
    assert same_partition(found, components(F @ F.T))
    assert found.max() + 1 == len(set(found.tolist())) > 1
    K = LowRank(np.ones((4, 1)))
    assert not LowRank(-F).is_non_negative()
    assert LowRank(-F).components() is K.components() is None
    assert connectivity(K, K @ np.ones(4), np.arange(4)) == {"isolated": 0}


def test_isolated_points_have_affinity_to_nobody_else():
    X, _ = groups([20, 1, 1, 6], seed=3)
    K = gaussian_affinity(X, 1.0)
    (i, j) = np.flatnonzero((K > 0.1).sum(axis=1) == 1)
    for operator in (Dense(K), Kernel(X, 1.0), Sparse(sparse.csr_matrix(K * (K > 1e-3)))):
        with pytest.warns(DisconnectedWarning, match=rf"\b{i}, {j}\b"):
            found = connectivity(operator, operator @ np.ones(28), np.arange(28))
        assert found["isolated"] == 2


def test_the_size_of_the_diagonal_does_not_matter():
    K = np.array([[7.0, 0.0, 0.0], [0.0, 0.0, 2.0], [0.0, 2.0, 5.0]])
    with pytest.warns(DisconnectedWarning):
        assert connectivity(Dense(K), K.sum(axis=1), np.arange(len(K)))["isolated"] == 1


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_the_trivial_direction_of_many_components_is_that_of_each(form):
    """Twelve components: √π of A is known by construction, and does not depend on the order."""
    K = block_diag(*[np.ones((3 + i % 2,) * 2) for i in range(12)])
    rng = np.random.default_rng(0)
    weights, order = rng.random(len(K)), rng.permutation(len(K))
    A = hs.symmetric_normalize(K * np.add.outer(weights, weights))
    D, E = (
        squareform(hs.diffusion_distance(form(M), 3, deflate=True))
        for M in (A, A[np.ix_(order, order)])
    )
    assert_allclose(D[np.ix_(order, order)], E, atol=1e-9)
