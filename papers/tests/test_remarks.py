"""Remarks of the three texts that have no number, each by the library and by hand."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import eigh
from scipy.sparse.csgraph import dijkstra
from sklearn.neighbors import kneighbors_graph

import heatsketch as hs
from papers.notes.measures import middle_share
from papers.sketching.figures import FIGURES
from papers.sketching.trials import Sample
from problems.clouds import cloud

X = cloud(40, 2, seed=3)
K = hs.gaussian_affinity(X, 1.0)
MIXTURE = hs.MixtureKernel([0.3, 0.7], [[0.0, 0.0], [2.0, 1.0]], [1.0, 0.5], 0.8)


# Sketching the heat kernel


def test_the_top_eigenvector_of_the_symmetric_form_is_the_root_of_its_row_sums():
    """§4.2: A √v = √v, v the row sums of K / (q qᵀ); of the bistochastic form it is constant."""
    q = K.sum(axis=1)
    root = np.sqrt((K / np.outer(q, q)).sum(axis=1))
    A, B = hs.symmetric_normalize(K), hs.bistochastic_normalize(K, 1e-12)
    assert_allclose(A @ root, root, rtol=1e-12)
    assert_allclose(B @ np.ones(40), 1, rtol=1e-10)
    found = hs.Diffusion.from_affinity(K, normalization="symmetric").root
    assert_allclose(found, root / np.linalg.norm(root), rtol=1e-12)
    assert root.max() > 1.05 * root.min()


def test_orthonormal_coordinates_of_2_are_not_of_unit_length():
    """§2.1 calls (e^{-λt} φ) an orthonormal basis of ℓ² functions; it is orthogonal only."""
    angle = 2 * np.pi * np.arange(50) / 50
    m = np.arange(1, 5)
    phi = np.sqrt(2) * np.cos(np.outer(angle, m))  # of unit mean square
    gram = (np.exp(-(m**2) * 0.3) * phi).T @ (np.exp(-(m**2) * 0.3) * phi) / 50
    assert_allclose(gram - np.diag(np.diag(gram)), 0, atol=1e-12)
    assert (np.diag(gram) < 0.6).all()


def test_sketches_by_both_normalisations_are_much_alike():
    """§5: "very similar results", which holds for sketches and not for diffusion maps."""
    setting = replace(FIGURES["2a"].setting, n=200)
    samples = [Sample(setting, 0, trial) for trial in range(6)]
    log_L = {
        m: np.array([s.log_L(m, 10, 6) for s in samples]) for m in ("GPS", "GPB", "DMS", "DMB")
    }
    assert np.abs(log_L["GPS"] - log_L["GPB"]).mean() < 0.3 * log_L["GPS"].std() + 0.2
    assert (log_L["DMB"] - log_L["DMS"]).mean() > 0.2


def test_the_first_coordinates_of_a_stretched_torus_do_not_see_the_short_circle():
    """§2.2: 2[r] = 6 for r = 3.5, because (m/r)² < 1 for m = 1, 2, 3."""
    u, v = (2 * np.pi * np.arange(n) / n for n in (12, 40))
    grid = np.array(
        [(np.cos(a), np.sin(a), 3.5 * np.cos(b), 3.5 * np.sin(b)) for a in u for b in v]
    )
    A = hs.bistochastic_normalize(hs.gaussian_affinity(grid, 0.3), 1e-12)
    vectors = hs.eigh(A, 9).vectors.reshape(12, 40, 9)
    along_short = np.ptp(vectors, axis=0).max(axis=0)  # of each, at any place of the long circle
    assert (along_short[:7] < 1e-6).all()  # the constant and six more
    assert (along_short[7:] > 0.01).all()


# Linear and nonlinear dimensionality reduction


def test_a_walk_forgets_its_start_is_in_detailed_balance_and_has_gershgorins_bound():
    """§9.1: λPᵏ → π for any start, ΠP = PᵀΠ, and |λ| <= 1."""
    P = hs.markov_normalize(K, alpha=0)
    pi = hs.Diffusion.from_affinity(K, alpha=0).measure
    start = np.random.default_rng(0).dirichlet(np.ones(40))
    assert_allclose(start @ np.linalg.matrix_power(P, 4096), pi, atol=1e-12)
    assert_allclose(pi[:, None] * P, (pi[:, None] * P).T, atol=1e-15)
    values = np.linalg.eigvals(P)
    assert np.abs(values).max() <= 1 + 1e-12
    centres, radii = np.diag(P), P.sum(axis=1) - np.diag(P)
    inside = np.abs(values[:, None] - centres) <= radii + 1e-12
    assert inside.any(axis=1).all()


@pytest.mark.parametrize("seed", [5, 6])
def test_diffusion_distances_change_less_by_noise_than_those_along_the_graph(seed):
    """§9.2, on the roll of Figure 2: shortcuts move geodesic distances more than the others.

    Rank correlations of all pairs without and with noise of .8: .86 and .73 against .51 and .47.
    """
    by_noise = []
    for noise in (0.0, 0.8):
        roll, _ = hs.datasets.swiss_roll(400, noise=noise, rng=np.random.default_rng(seed))
        graph = kneighbors_graph(roll, 10, mode="distance")
        along = dijkstra(graph.maximum(graph.T), directed=False)[np.triu_indices(400, 1)]
        d = hs.diffusion(roll, epsilon="nearest", affinity="dense", alpha=0.0)
        by_noise.append((along, hs.diffusion_distance(d, time=100)))
    geodesic, diffused = (
        hs.metrics.rank_correlation(*pair) for pair in zip(*by_noise, strict=True)
    )
    assert diffused > geodesic + 0.1


def test_at_infinite_bandwidth_the_eigenmap_has_the_weights_of_the_adjacency():
    """§9.3: e^{-d²/t} of neighbours tends to 1 as t → ∞."""
    Y = hs.classical.LaplacianEigenmap(2, n_neighbors=6, weights="binary").fit_transform(X)
    joined = kneighbors_graph(X, 6)
    W = joined.maximum(joined.T).toarray()
    W += np.eye(40)  # a point is its own neighbour, at distance 0
    D = np.diag(W.sum(axis=1))
    values, vectors = eigh(D - W, D)
    for column, vector in zip(Y.T, vectors[:, 1:3].T, strict=True):
        cosine = column @ vector / (np.linalg.norm(column) * np.linalg.norm(vector))
        assert abs(cosine) == pytest.approx(1, abs=1e-8)
    assert values[1] > 1e-6


def test_the_eigenmap_is_least_of_all_admissible_coordinates():
    """§9.3, the exercise on (40): tr YᵀLY under Yᵀ Q Y = I is least for the eigenvectors."""
    q = K.sum(axis=1)
    L, Q = np.diag(q) - K, np.diag(q)
    values, best = eigh(L, Q)
    rng = np.random.default_rng(1)
    ones = np.ones(40) / np.sqrt(q.sum())
    for _ in range(50):
        Y = rng.standard_normal((40, 2)) + rng.uniform(0, 100) * best[:, 1:3]
        Y -= np.outer(ones, ones @ Q @ Y)
        Y = Y @ np.linalg.inv(np.linalg.cholesky(Y.T @ Q @ Y)).T
        assert_allclose(Y.T @ Q @ Y, np.eye(2), atol=1e-9)
        assert np.trace(Y.T @ L @ Y) >= values[1:3].sum() - 1e-9
    R = hs.DiffusionMap(2, 0, affinity="precomputed", alpha=0.0).fit(K).embedding_
    Y = R / np.sqrt(q.sum())  # (22): RᵀΠR = I
    assert np.trace(Y.T @ L @ Y) == pytest.approx(values[1:3].sum(), rel=1e-9)


def test_weights_of_few_neighbours_need_no_regularisation():
    """§7: at k <= D, in general position, C is regular, and `reg` changes nothing."""
    points = cloud(60, 6, seed=2)
    few, other = (
        hs.classical.LocallyLinearEmbedding(2, n_neighbors=4, reg=reg).fit(points).embedding_
        for reg in (1e-3, 1e-6)
    )
    assert_allclose(few, other, atol=1e-9)
    many, changed = (
        hs.classical.LocallyLinearEmbedding(2, n_neighbors=8, reg=reg).fit(points).embedding_
        for reg in (1e-3, 1e-6)
    )
    assert np.abs(many - changed).max() > 1e-3


def test_the_smallest_bandwidth_that_keeps_the_generator_irreducible():
    """§9.7: at `connecting_epsilon` the graph is connected, and a hair below it is not."""
    epsilon = hs.connecting_epsilon(X)
    for factor, groups in ((1.0, 1), (0.99, 2)):
        radius = 5 * np.sqrt(factor * epsilon / 2)
        gaps = np.linalg.norm(X[:, None] - X[None], axis=2)
        steps = dijkstra(np.where(gaps <= radius, 1.0, 0.0))
        assert len(np.unique(np.isfinite(steps), axis=0)) == groups


@pytest.mark.slow
def test_sne_crowds_and_t_sne_does_not():
    """§8.1: more points of a picture by SNE are in the middle half of its radius."""
    points = hs.datasets.digits()[0][:300]
    middle = []
    for method in (hs.classical.SNE(2, random_state=0), hs.classical.TSNE(2, random_state=0)):
        Y = method.fit_transform(points)
        middle.append(middle_share(Y))
    assert middle[0] > middle[1] + 0.02


# Diffusion representation


def test_the_density_tends_to_the_stationary_one():
    """§2.1, the ergodic limit: p^(t)(x, ·) → ν for any x."""
    grid = np.linspace(-12, 14, 900)[:, None]
    kernel = hs.MixtureKernel([0.4, 0.6], [[0.0], [3.0]], [1.0, 0.5], 0.8)
    step = kernel.transition_density(grid, grid) * (grid[1] - grid[0])
    far = np.linalg.matrix_power(step, 512)
    nu = kernel.stationary(grid)[:, None] * (grid[1] - grid[0])
    nu /= nu.sum()
    assert_allclose(far[[300, 450, 600]], np.tile(nu.T, (3, 1)), atol=1e-8)


def test_the_diffusion_map_of_the_kernel_has_its_distances():
    """§2.2: by the eigenvectors of the kernel on a sample."""
    points = cloud(50, 2, seed=4)
    d = hs.Diffusion.from_mixture(points, MIXTURE)
    A = d.operator @ np.eye(d.n)
    values, vectors = np.linalg.eigh(A)
    Y = vectors * values / d.root[:, None]
    want = np.linalg.norm(Y[3] - Y[17])
    assert hs.diffusion_distance(d, time=1, pairs=([3], [17]))[0] == pytest.approx(want, rel=1e-9)
