"""Coarser graphs keep what is known of the finer one, and represent its slow eigenvectors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import heatsketch as hs
from heatsketch.spectral.eigen import aggregates, coarser
from problems.spectra import lazy_torus, path_graph, star_graph

GRAPHS = {
    "path": path_graph(50),
    "star": star_graph(20),
    "torus": lazy_torus(20, 30),
    "points": hs.diffusion(np.random.default_rng(0).normal(size=(600, 3))).operator.matrix,
    "isolated": sparse.csr_matrix((7, 7)),
}


@pytest.mark.parametrize("matrix", GRAPHS.values(), ids=GRAPHS)
def test_aggregates_are_points_around_roots_three_links_apart(matrix):
    label, roots = aggregates(matrix)
    links = (matrix + sparse.identity(matrix.shape[0])).toarray() > 0
    near = links @ links
    assert_array_equal(near[np.ix_(roots, roots)], np.eye(len(roots), dtype=bool))
    assert near[roots].any(axis=0).all()  # no other root could be added
    assert_array_equal(np.unique(label), np.arange(len(roots)))
    assert_array_equal(label[roots], np.arange(len(roots)))
    assert near[np.arange(len(label)), roots[label]].all()


def uneven(shape=(60, 40)):
    """A graph with uneven weights, normalised, as an operator that knows its leading vector."""
    K = lazy_torus(*shape)
    w = np.exp(np.random.default_rng(1).normal(size=K.shape[0]))
    d = hs.Diffusion.from_affinity(hs.Sparse(sparse.diags(w) @ K @ sparse.diags(w)))
    return d.deflated


def test_the_leading_vector_stays_and_what_was_taken_out_is_taken_out():
    A = uneven()
    B, prolongation = coarser(A, 8)
    u = np.asarray(B.V[:, 0])
    assert B.n < A.n / 3
    assert_allclose(B.A @ u, u, atol=1e-13)  # the eigenvalue 1
    fine = prolongation @ u
    fine *= np.sign(fine[0]) / np.linalg.norm(fine)
    assert_allclose(fine, A.V[:, 0], atol=1e-13)


def test_coarser_graphs_have_coarser_ones():
    sizes, A = [], uneven((80, 70))
    while (coarse := coarser(A, 2)) is not None:
        sizes.append(A.n)
        A = coarse[0]
    assert len(sizes) >= 2
    assert A.n < 60


def test_components_have_the_eigenvalue_of_the_top_each():
    K = sparse.block_diag([lazy_torus(20, 20), lazy_torus(30, 15)], format="csr")
    A = hs.Sparse(K, (-1.0, 1.0))
    B = coarser(A, 4)[0]
    values = np.linalg.eigvalsh(B @ np.eye(B.n))
    assert_allclose(values[-2:], 1.0, atol=1e-13)
    assert values[-3] < 1 - 1e-4


def test_slow_eigenvectors_are_near_those_of_the_finer_graph():
    X = np.random.default_rng(0).uniform(size=(3000, 2)) * [2, 1]
    A = hs.Diffusion.from_points(X, alpha=0).deflated
    (B, prolongation), exact = coarser(A, 8), hs.eigh(A, 8, rng=0)
    near = np.linalg.qr(prolongation @ hs.eigh(B, 8, rng=0).vectors)[0]
    assert np.linalg.svd(near.T @ exact.vectors[:, :5])[1].min() > 0.98
    # Rayleigh quotients are never above the eigenvalues, and not far below.
    rates = 1 - np.linalg.eigvalsh(near.T @ (A @ near))[::-1]
    assert (rates > 1 - exact.values - 1e-12).all()
    assert (rates < 2.5 * (1 - exact.values)).all()


def test_operators_without_a_sparse_non_negative_matrix_have_no_coarser_graph():
    rng = np.random.default_rng(0)
    M = rng.normal(size=(300, 300))
    assert coarser(hs.Dense(M @ M.T), 8) is None
    assert coarser(hs.Sparse(-lazy_torus(30, 20)), 8) is None
    assert coarser(hs.Sparse(sparse.csr_matrix((300, 300))), 8) is None


def test_a_graph_that_spreads_everywhere_at_once_has_no_coarser_one():
    n, rng = 3000, np.random.default_rng(0)
    links = sparse.coo_matrix((np.ones(10 * n), rng.integers(n, size=(2, 10 * n))), (n, n))
    d = hs.Diffusion.from_graph((links + links.T).tocsr())
    assert coarser(d.deflated, 8) is None
