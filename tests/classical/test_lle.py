"""Locally linear embedding against its definition, (3) and (4), and closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import eigh, subspace_angles
from scipy.spatial.distance import cdist

import heatsketch as hs
from heatsketch.classical.lle import LocallyLinearEmbedding, reconstruction_weights
from problems.clouds import even_circle


def lle(k=2, **changes):
    return LocallyLinearEmbedding(k, **{"n_neighbors": 8, "random_state": 0} | changes)


def uniform(n=120, d=3, seed=3):
    return np.random.default_rng(seed).uniform(-1, 1, size=(n, d))


def neighbor_lists(X, x=None, n_neighbors=None, radius=None):
    """The neighbours of every point (or of new points x), from all distances."""
    D = cdist(X if x is None else x, X)
    if x is None:
        np.fill_diagonal(D, np.inf)
    if radius is not None:
        return [np.flatnonzero(row <= radius) for row in D]
    return list(np.sort(np.argsort(D, axis=1)[:, :n_neighbors], axis=1))


def weights_of(Z, reg):
    """(3) for one point, Z (k, d) the differences: the KKT equations of the constraint."""
    k = len(Z)
    if k == 0:
        return Z[:, 0]
    C = Z @ Z.T
    if k > Z.shape[1] or np.linalg.eigvalsh(C)[0] < reg * np.trace(C):
        C = C + reg * np.trace(C) * np.eye(k)
    kkt = np.block([[C, np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
    return np.linalg.solve(kkt, np.append(np.zeros(k), 1.0))[:k]


def weight_matrix(X, x=None, reg=1e-3, **graph):
    own = X if x is None else x
    W = np.zeros((len(own), len(X)))
    for i, near in enumerate(neighbor_lists(X, x, **graph)):
        W[i, near] = weights_of(own[i] - X[near], reg)
    return W


def alignment(W):
    """M of (4)."""
    L = np.eye(len(W)) - W
    return L.T @ L


# Weights, (3)


@pytest.mark.parametrize("d", [1, 2, 5, 8, 30])
@pytest.mark.parametrize("reg", [1e-3, 0.1])
def test_weights_minimise_the_error_of_reconstruction(d, reg):
    X = uniform(40, d)
    for reach in ({"n_neighbors": 6}, {"radius": 0.6 * np.sqrt(d)}):  # also rows without any
        want = weight_matrix(X, reg=reg, **reach)
        W = reconstruction_weights(X, X, sparse.csr_matrix(want != 0, dtype=float), reg).toarray()
        assert_allclose(W, want, atol=1e-9)
        assert_allclose(W.sum(axis=1), want.any(axis=1), atol=1e-12)


@given(
    seed=st.integers(0, 10**6),
    exponent=st.integers(-300, 300),
    d=st.sampled_from([2, 3, 9]),
)
def test_weights_do_not_see_rotations_shifts_and_scales(seed, exponent, d):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, d))
    graph = sparse.csr_matrix(weight_matrix(X, n_neighbors=5) != 0, dtype=float)
    W = reconstruction_weights(X, X, graph, 1e-3)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    moved = X @ turn + rng.normal(size=d)
    assert_allclose(reconstruction_weights(moved, moved, graph, 1e-3).data, W.data, atol=1e-9)
    scaled = np.ldexp(X, exponent)
    assert_array_equal(reconstruction_weights(scaled, scaled, graph, 1e-3).data, W.data)


# Eigenvectors, (4)


@pytest.mark.parametrize("graph", [{"n_neighbors": 8}, {"radius": 0.7, "n_neighbors": 1}])
def test_solves_the_eigenproblem_of_the_definition(graph):
    X = uniform(150, 3)
    model = lle(3, **graph).fit(X)
    given = {"radius": graph["radius"]} if "radius" in graph else graph
    M = alignment(weight_matrix(X, **given))
    mu, V = eigh(M)
    assert mu[4] > 1.1 * mu[3] > 1e-7  # in one piece, and the space sought is well defined
    Y = model.embedding_
    assert_allclose(model.eigenvalues_, mu[1:4], rtol=1e-6)
    assert_allclose(model.reconstruction_error_, mu[1:4].sum(), rtol=1e-6)
    assert subspace_angles(Y, V[:, 1:4]).max() < 1e-6
    assert_allclose(Y.mean(axis=0), 0, atol=1e-10)
    assert_allclose(Y.T @ Y / 150, np.eye(3), atol=1e-10)
    assert (Y[np.abs(Y).argmax(axis=0), range(3)] > 0).all()
    residual = np.linalg.norm(M @ Y - Y * model.eigenvalues_, axis=0) / np.sqrt(150)
    assert residual.max() < 1e-10
    assert model.diagnostics_["residual"] < 1e-10


@pytest.mark.parametrize("graph", [{"n_neighbors": 2}, {"radius": 1.5}])
@pytest.mark.parametrize("n", [100, 600])
def test_ring_has_the_eigenvalues_of_its_circulant(n, graph):
    """Neighbours on both sides with weights 1/2: μ_m = (1 - cos(2πm/n))², each twice."""
    if "radius" in graph:
        graph = {"radius": 1.5 * 2 * np.sin(np.pi / n)}
    model = lle(4, **graph).fit(even_circle(n))
    angle = 2 * np.pi * np.array([1, 1, 2, 2]) / n
    assert_allclose(model.eigenvalues_, (2 * np.sin(angle / 2) ** 2) ** 2, rtol=1e-6)
    Y = model.embedding_
    assert_allclose(np.hypot(Y[:, 0], Y[:, 1]), np.sqrt(2), rtol=1e-5)


@pytest.mark.parametrize("n", [100, 700])  # by LAPACK, by factors
def test_recovers_a_plane_up_to_an_affine_map(n):
    """Weights are those of the plane up to reg, so its coordinates have eigenvalues of reg²."""
    U, reg = uniform(n, 2), 1e-5
    X = U @ np.random.default_rng(0).normal(size=(2, 5)) + 3
    model = lle(3, reg=reg, n_neighbors=10).fit(X)
    A = np.column_stack([np.ones(n), U])
    Y = model.embedding_[:, :2]
    assert_allclose(A @ np.linalg.lstsq(A, Y, rcond=None)[0], Y, atol=1e3 * reg)
    mu = eigh(alignment(weight_matrix(X, reg=reg, n_neighbors=10)), eigvals_only=True)
    assert model.eigenvalues_[1] < 10 * reg**2 < 1e-7 < model.eigenvalues_[2]
    assert_allclose(model.eigenvalues_, mu[1:4], rtol=0.01)


# Components


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("n", [70, 300])
def test_disconnected_data_warn_and_stay_finite(n, k):
    X = np.vstack([uniform(n, 2), uniform(n + 5, 2, seed=1) + 9, [[4.0, 4.0]]])
    with pytest.warns(hs.DisconnectedWarning, match=rf"2 components \(sizes {n + 5}, {n}\)"):
        model = lle(k).fit(X)
    Y = model.embedding_
    assert model.diagnostics_["groups"] == 2
    assert_allclose(Y.T @ Y / len(X), np.eye(k), atol=1e-9)
    assert_allclose(Y[:n, 0], Y[0, 0], atol=1e-7)  # the stray point belongs to neither group
    assert_allclose(Y[n : 2 * n + 5, 0], Y[n, 0], atol=1e-7)
    assert abs(Y[0, 0] - Y[n, 0]) > 1


# Points old and new


@pytest.mark.parametrize("graph", [{"n_neighbors": 8}, {"radius": 0.7}])
def test_new_points_are_combinations_of_their_neighbours(graph):
    X, x = uniform(200, 3), 0.6 * uniform(20, 3, seed=8)
    model = lle(**graph).fit(X)
    assert_allclose(model.transform(x), weight_matrix(X, x, **graph) @ model.embedding_, atol=1e-8)


# The square of a graph Laplacian


def test_on_an_even_circle_it_is_the_square_of_the_graph_laplacian():
    """With two neighbours W = ½ (left + right), so that I - W = L/2 and λ = (1 - cos 2πm/n)²."""
    n = 60
    X = even_circle(n)
    model = lle(4, n_neighbors=2, reg=1e-12).fit(X)
    m = np.array([1, 1, 2, 2])
    assert_allclose(model.eigenvalues_, (1 - np.cos(2 * np.pi * m / n)) ** 2, rtol=1e-6)
    laplacian = hs.classical.LaplacianEigenmap(4, n_neighbors=2, weights="binary").fit(X)
    for first in (0, 2):
        pair = slice(first, first + 2)
        angles = subspace_angles(model.embedding_[:, pair], laplacian.embedding_[:, pair])
        assert angles.max() < 1e-4


def test_eigenvalues_on_a_curve_grow_like_the_fourth_power_where_those_of_the_laplacian_square():
    X = even_circle(200)
    model = lle(6, n_neighbors=2, reg=1e-12).fit(X)
    laplacian = hs.classical.LaplacianEigenmap(6, n_neighbors=2).fit(X)
    fourth, second = (v[::2] / v[0] for v in (model.eigenvalues_, laplacian.eigenvalues_))
    assert_allclose(fourth, [1, 16, 81], rtol=0.02)
    assert_allclose(second, [1, 4, 9], rtol=0.02)
    assert_allclose(fourth, second**2, rtol=1e-4)
