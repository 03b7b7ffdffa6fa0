"""The Laplacian eigenmap against its definition, (35)-(40), and closed forms on a ring."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

import heatsketch as hs
from heatsketch.classical.laplacian_eigenmap import LaplacianEigenmap
from problems.checks import up_to_signs
from problems.clouds import even_circle, even_torus

GRAPHS = {
    "k, heat": {"n_neighbors": 6, "epsilon": 0.7},
    "k, binary": {"n_neighbors": 6, "weights": "binary"},
    "radius, heat": {"radius": 1.5, "epsilon": 0.7},
    "radius, binary": {"radius": 1.5, "weights": "binary"},
}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)


def blob(n=60, d=2, seed=3):
    """Points without outliers, in one piece."""
    return np.random.default_rng(seed).uniform(-2, 2, size=(n, d))


def edges(X, Y, n_neighbors=None, radius=None):
    """Which rows of X (m, d), new ones or all of Y, are joined to which of Y (n, d)."""
    d, own = cdist(X, Y), cdist(Y, Y)
    if radius is not None:
        return d <= radius
    count = n_neighbors + (X is Y)  # a point is its own neighbour
    nearest = d <= np.sort(d, axis=1)[:, count - 1, None]
    return nearest | (d <= np.sort(own, axis=1)[:, n_neighbors])


def affinity(X, new=None, weights="heat", epsilon=0.7, **graph):
    """K of the points, or of new ones to the points, written out."""
    new = X if new is None else new
    heat = np.exp(-(cdist(new, X) ** 2) / epsilon) if weights == "heat" else 1.0
    return edges(new, X, **graph) * heat


# The eigenproblem


@every_graph
def test_solves_the_generalised_eigenproblem(graph):
    X = blob()
    model = LaplacianEigenmap(4, **graph).fit(X)
    K = affinity(X, **graph)
    Q = np.diag(K.sum(axis=1))
    mu, Y = eigh(Q - K, Q)  # (35), (36), with YᵀQY = I
    assert mu[1] > 1e-3  # in one piece
    assert_allclose(model.eigenvalues_, mu[1:5], rtol=1e-11, atol=1e-13)
    R, M = Y[:, 1:5] * np.sqrt(K.sum()), np.diag(model.eigenvalues_)
    assert_allclose(up_to_signs(R, model.embedding_), model.embedding_, rtol=0, atol=1e-9)
    R = model.embedding_
    assert_allclose((Q - K) @ R, Q @ R @ M, atol=1e-11)
    assert_allclose(R.T @ Q @ R / K.sum(), np.eye(4), atol=1e-12)  # RᵀΠR = I
    assert model.residuals_.max() < 1e-13
    places = R / np.sqrt(K.sum())  # of (40), with its factor 2: Σ k_ij |y_i - y_j|² = 2 tr YᵀLY
    total = (K * cdist(places, places, "sqeuclidean")).sum()
    assert_allclose(total, 2 * model.eigenvalues_.sum(), rtol=1e-11)


def test_is_the_diffusion_map_without_its_powers():
    """(38): μ = 1 - λ and the same R, where the radius is the cut of the kernel and α = 0."""
    X, epsilon = blob(), 0.5
    common = {"affinity": "radius", "epsilon": epsilon, "alpha": 0, "cut": 3.0}
    walk = hs.DiffusionMap(3, time=2, **common).fit(X)
    model = LaplacianEigenmap(3, radius=3 * np.sqrt(epsilon / 2), epsilon=epsilon).fit(X)
    assert_allclose(model.eigenvalues_, 1 - walk.eigenvalues_, atol=1e-13)
    expected = walk.embedding_ / walk.eigenvalues_**2
    assert_allclose(up_to_signs(model.embedding_, expected), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("half", [1, 2, 3])
@pytest.mark.parametrize("weights", ["heat", "binary"])
def test_a_ring_has_the_eigenvalues_of_a_circulant_matrix(half, weights):
    n, epsilon = 40, 0.3
    X = even_circle(n)
    steps = np.arange(1, half + 1)
    chord = 2 * np.sin(np.pi * steps / n)
    w = np.exp(-(chord**2) / epsilon) if weights == "heat" else np.ones(half)
    m = np.arange(n)[:, None]
    lam = (1 + 2 * (w * np.cos(2 * np.pi * m * steps / n)).sum(axis=1)) / (1 + 2 * w.sum())
    rules = {"weights": weights, "epsilon": epsilon}
    want = np.sort(1 - lam)[1:7]
    wide = (chord[-1] + 2 * np.sin(np.pi * (half + 1) / n)) / 2
    for graph in ({"n_neighbors": 2 * half}, {"radius": wide}):
        model = LaplacianEigenmap(6, **graph, **rules).fit(X)
        assert_allclose(model.eigenvalues_, want, atol=1e-12)
        F = model.embedding_[:, :2]  # the pair of cos and sin, turned: a circle of radius √2
        assert_allclose((F**2).sum(axis=1), 2.0, rtol=1e-9)


def test_many_points_are_as_few_are():
    """A flat torus beyond all limits (stored order, iteration) keeps the closed form."""
    m = 130
    place = np.random.default_rng(0).permutation(m * m)
    X = even_torus(m, m)[place]
    # Each is joined to the 8 around it: λ = (1 + 2 cos 2πi/m) (1 + 2 cos 2πj/m) / 9.
    lam = (1 + 2 * np.cos(2 * np.pi / m)) / 3
    chord = 2 * np.sin(np.pi / m)
    model = LaplacianEigenmap(4, radius=1.7 * chord, weights="binary", random_state=0).fit(X)
    assert model.diagnostics_["mean_neighbors"] == 8
    assert_allclose(model.eigenvalues_, 1 - lam, atol=1e-8)
    assert_allclose((model.embedding_**2).sum(axis=1), 4, rtol=1e-3)  # cos, sin of both, times √2
    new = np.arange(0, m * m, 1000)
    assert_array_equal(model.transform(X[new]), model.embedding_[new])
    assert_allclose(model.transform(X[new] + 1e-9), model.embedding_[new], atol=1e-5)


# New points


@every_graph
def test_new_points_follow_the_rule_of_the_rows(graph):
    X, new = blob(80), blob(9, seed=8)
    model = LaplacianEigenmap(3, **graph).fit(X)
    K = affinity(X, new, **graph)
    P = K / K.sum(axis=1, keepdims=True)
    want = P @ model.embedding_ / (1 - model.eigenvalues_)
    assert_allclose(model.transform(new), want, rtol=1e-9, atol=1e-11)


@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
def test_far_points_are_where_their_neighbours_are():
    X = blob()
    model = LaplacianEigenmap(2, n_neighbors=6).fit(X)
    far = np.array([[1e6, 3e5], [-1e50, 0.0]])
    assert np.isfinite(model.transform(far)).all()
    nearest = np.argmin(cdist(far[:1], X))
    want = model.embedding_[nearest] / (1 - model.eigenvalues_)
    assert_allclose(model.transform(far[:1])[0], want, rtol=1e-9)


def test_no_division_by_nothing():
    X = blob(30)
    model = LaplacianEigenmap(29, n_neighbors=10).fit(X)
    lam = 1 - model.eigenvalues_
    assert lam[-1] < 0.1  # λ goes down to where new points make no sense
    assert_array_equal(model.transform(X), model.embedding_)
    first = int(np.flatnonzero(lam < 0.1)[0])
    with pytest.warns(hs.ScaleWarning, match=f"n_components={first}"):
        LaplacianEigenmap(first + 1, n_neighbors=10).fit(X).transform(X + 0.1)
    # The star's coordinates beyond the first have λ = 1/2 each; those of a triangle have 0.
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])
    with pytest.warns(hs.ScaleWarning, match="same affinities"):
        model = LaplacianEigenmap(2, n_neighbors=2, weights="binary").fit(triangle)
    assert_array_equal(model.embedding_, 0.0)
    with pytest.raises(ValueError, match="the rule for new points divides by λ"):
        model.transform(triangle + 0.1)


# What must not matter, and what does


@pytest.mark.parametrize("rule", ["edges", "nearest", "median", "ksum"])
def test_rules_for_the_bandwidth_are_numbers(rule):
    X = blob()
    model = LaplacianEigenmap(2, n_neighbors=6, epsilon=rule).fit(X)
    D = np.sort(cdist(X, X), axis=1)[:, 1:]
    wanted = {
        "edges": np.median(D[:, :6]) ** 2,
        "nearest": 2 * np.mean(D[:, 0] ** 2),
        "median": np.median(D**2),
        "ksum": hs.ksum(X).epsilon,
    }
    assert_allclose(model.epsilon_, wanted[rule], rtol=1e-12)
    same = LaplacianEigenmap(2, n_neighbors=6, epsilon=model.epsilon_).fit(X)
    assert_allclose(same.embedding_, model.embedding_, atol=1e-9)


@pytest.mark.parametrize("degrees_of_freedom", [1, 2, 30])
def test_far_points_of_heavy_tails_are_no_components(degrees_of_freedom):
    X = np.random.default_rng(0).standard_t(degrees_of_freedom, size=(400, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", hs.DisconnectedWarning)
        model = LaplacianEigenmap(3, n_neighbors=15).fit(X)
    assert model.diagnostics_["components"] == 1
    assert model.eigenvalues_[0] > 1e-5
    D = cdist(X, X)
    near = np.sort(D, axis=1)[:, 1:16]
    own = np.maximum(np.median(near) ** 2, np.median(near, axis=1) ** 2 / 5)
    joined = affinity(X, weights="binary", n_neighbors=15)
    K = joined * np.exp(-(D**2) / np.maximum(own, own[:, None]))
    Q = np.diag(K.sum(axis=1))
    assert_allclose(model.eigenvalues_, eigh(Q - K, Q)[0][1:4], rtol=1e-9)
    assert_allclose(model.epsilon_, np.median(near) ** 2, rtol=1e-12)


def test_pieces_are_told_apart_and_named():
    X = np.vstack([blob(40), blob(20, seed=9) + 50])
    with pytest.warns(hs.DisconnectedWarning, match="2 components"):
        model = LaplacianEigenmap(2, n_neighbors=6).fit(X)
    assert_allclose(model.eigenvalues_[0], 0, atol=1e-12)
    assert model.eigenvalues_[1] > 1e-3
    first = model.embedding_[:, 0]
    assert np.ptp(first[:40]) < 1e-9
    assert np.ptp(first[40:]) < 1e-9
    assert abs(first[0] - first[-1]) > 1
    assert model.diagnostics_["components"] == 2
