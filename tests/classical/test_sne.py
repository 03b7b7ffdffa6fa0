"""SNE and t-SNE: probabilities, divergences and gradients written out from the notes' §8."""

import sys
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse.csgraph import laplacian
from scipy.spatial.distance import cdist
from scipy.special import rel_entr, softmax
from scipy.stats import entropy
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsTransformer
from threadpoolctl import threadpool_limits

import heatsketch as hs
from heatsketch.classical import SNE, TSNE
from heatsketch.classical.sne import Compression, GaussianNeighbors, conditional, gaussian_forces
from heatsketch.layout.free import Neighbors as StudentNeighbors
from heatsketch.neighbors import NeighborIndex
from problems.checks import up_to_signs

needs_opentsne = pytest.mark.skipif(find_spec("openTSNE") is None, reason="needs openTSNE")
both = pytest.mark.parametrize("method", [SNE, TSNE])
SHORT = {SNE: {"n_iter": 30, "early_iter": 10}, TSNE: {"n_iter": 250}}


def gaussian_rows(squares, sigma):
    """p_{j|i}, (13), written out."""
    exponents = -squares / (2 * sigma[:, None] ** 2)
    np.fill_diagonal(exponents, -np.inf)
    return softmax(exponents, axis=1)


def student_q(Y):
    """q_ij, (17), written out."""
    W = 1 / (1 + cdist(Y, Y, "sqeuclidean"))
    np.fill_diagonal(W, 0)
    return W / W.sum()


def gaussian_q(Y):
    return gaussian_rows(cdist(Y, Y, "sqeuclidean"), np.full(len(Y), np.sqrt(0.5)))


def t_sne_gradient(p, Y):
    """4 Σ_j (p_ij - q_ij) (y_i - y_j) / (1 + |y_i - y_j|²), (19)."""
    F = (p - student_q(Y)) / (1 + cdist(Y, Y, "sqeuclidean"))
    return 4 * (F.sum(axis=1)[:, None] * Y - F @ Y)


def random_graph(n, seed=0):
    """Conditional probabilities with about half of the entries zero."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.5)
    np.fill_diagonal(p, 0)
    p[:, 0] += 0.1
    p[0] = np.r_[0, np.full(n - 1, 0.1)]
    return sparse.csr_matrix(p / p.sum(axis=1, keepdims=True))


# Probabilities


@given(
    seed=st.integers(0, 2**31),
    width=st.integers(3, 200),
    share=st.floats(0.0, 1.0),
    spread=st.floats(-12, 3),
)
def test_perplexity_is_met_to_ten_digits(seed, width, share, spread):
    """Uniform to very unequal distances; perplexities up to the number of neighbours."""
    rng = np.random.default_rng(seed)
    d = np.sort(np.exp(rng.normal(scale=10.0**spread, size=(5, width)).clip(-80, 80)), axis=1)
    perplexity = 1.02 + share * (width - 1.05)
    p = conditional(d, perplexity)[0]
    assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert (np.diff(p, axis=1) <= 0).all()  # nearer ones are likelier
    unequal = (d == d[:, :1]).sum(axis=1) <= perplexity
    assert_allclose(2 ** entropy(p[unequal], base=2, axis=1), perplexity, rtol=1e-10)


@pytest.mark.parametrize("perplexity", [1.5, 12, 38.5])
def test_sigma_is_the_bandwidth_of_the_definition(X, perplexity):
    model = TSNE(perplexity=perplexity, n_iter=250).fit(X)
    p = gaussian_rows(cdist(X, X, "sqeuclidean"), model.sigmas_)
    assert_allclose(2 ** entropy(p, base=2, axis=1), perplexity, rtol=1e-10)
    assert_allclose(model.affinities_.toarray(), (p + p.T) / 80, rtol=1e-8, atol=1e-14)
    rows = SNE(perplexity=perplexity, n_iter=1, early_iter=0).fit(X).affinities_
    assert_allclose(rows.toarray(), p, rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("method", ["exact", "barnes-hut"])
def test_the_fewest_steps_have_a_cost(X, method):
    """scikit-learn has none without a step after the 250 early ones."""
    few, more = (TSNE(perplexity=10, n_iter=n, method=method).fit(X) for n in (250, 251))
    assert few.kl_divergence_ == more.kl_divergence_ < 10


def test_too_many_equally_near_share_the_probability():
    """Of a perplexity of 2 with three points at the least distance only the limit is left."""
    d = np.array([[0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 2.0]])
    p, sigma = conditional(d, 2.0)
    assert_array_equal(p, [[1 / 3, 1 / 3, 1 / 3, 0]] * 2)
    assert_array_equal(sigma, 0)
    assert_allclose(conditional(d[1:], 3.0)[0], [[1 / 3, 1 / 3, 1 / 3, 0]])


def test_copies_are_neighbours_of_each_other_not_of_themselves():
    """More copies than neighbours are found: the own point need not be among them."""
    X = np.vstack([np.zeros((60, 3)), np.random.default_rng(0).normal(size=(1000, 3))])
    near, _ = SNE()._neighbors_of_points(X, 10.0)
    assert near.indices.shape == (1060, 31)
    assert (near.indices != np.arange(1060)[:, None]).all()
    assert (near.distances[:60] == 0).all()
    assert (near.indices[:60] < 60).all()


# Divergences and gradients


@pytest.mark.parametrize("n", [30, 600])
@pytest.mark.parametrize("scale", [1e-4, 3.0, 100.0])  # at 100 every e^(-|y_i - y_j|²) is 0
def test_sne_written_out(n, scale):
    graph = random_graph(n)
    Y = np.random.default_rng(4).normal(size=(n, 2), scale=scale)
    p, q, L = graph.toarray(), gaussian_q(Y), laplacian(graph + graph.T)
    forces, log_Z = gaussian_forces(Y)
    F = q + q.T
    expected = F.sum(axis=1)[:, None] * Y - F @ Y
    assert_allclose(forces, expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max())
    F = p + p.T
    assert_allclose(L @ Y, F.sum(axis=1)[:, None] * Y - F @ Y, rtol=1e-9, atol=1e-11 * scale)
    assert np.isfinite(log_Z).all()
    if scale < 100:  # beyond, q is 0 in float64 and the sum of p log(p / q) not a number
        divergence = np.sum(Y * (L @ Y)) + log_Z.sum() + graph.data @ np.log(graph.data)
        assert_allclose(divergence, rel_entr(p, q).sum(), rtol=1e-10)


@pytest.mark.parametrize("method", [SNE, partial(TSNE, method="exact")])
@pytest.mark.parametrize("slow", [2, None, 4])
def test_steps_of_the_descent_written_out(method, slow):
    """(20) with -η, Jacobs' gains, both momenta, exaggeration and compression, step by step."""
    start = np.random.default_rng(6).normal(size=(20, 2))
    start -= start.mean(axis=0)
    options = {"early_iter": 3, "early_exaggeration": 4.0, "early_compression": 0.5}
    options |= {"perplexity": 5, "learning_rate": 0.01, "momentum_iter": slow}
    model = method(n_iter=5, init=start, **options)
    model.fit(np.random.default_rng(7).normal(size=(20, 3)))
    p = model.affinities_
    L = laplacian(p + p.T)

    def gradient_of(Y, factor):
        if isinstance(model, TSNE):  # (19)
            return t_sne_gradient(factor * p.toarray(), Y)
        return 2 * (factor * (L @ Y) - gaussian_forces(Y)[0])

    Y, before, gains = start.copy(), start.copy(), np.ones_like(start)
    for t in range(5):
        early = t < 3
        if t == 3:  # from rest again
            before, gains = Y, np.ones_like(start)
        gradient = gradient_of(Y, 4.0 if early else 1.0) + 2 * early * 0.5 * Y
        agree = gradient * (Y - before) < 0
        gains = np.maximum(np.where(agree, gains + 0.2, 0.8 * gains), 0.01)
        new = Y - 0.01 * gains * gradient + (0.5 if t < (slow or 3) else 0.8) * (Y - before)
        shift = new.mean(axis=0)  # nothing depends on the origin: it is the centre
        before, Y = Y - shift, new - shift
    assert_allclose(model.embedding_, Y, rtol=1e-9, atol=1e-12)
    q = student_q(Y) if isinstance(model, TSNE) else gaussian_q(Y)
    assert model.kl_divergence_ == pytest.approx(rel_entr(p.toarray(), q).sum(), rel=1e-9)


def test_t_sne_as_printed():
    """One call (notes, §8): points of two clouds come out as two clouds."""
    X = np.random.default_rng(0).normal(size=(100, 4))
    X[50:] += 20
    early = {"early_exaggeration": 4, "early_iter": 50, "early_compression": 0.01}
    options = {"init": "random", "learning_rate": 100, "momentum_iter": 250, **early}
    model = TSNE(2, 20, method="exact", random_state=0, **options).fit(X)
    Y = model.embedding_
    assert np.ptp(Y[:50], axis=0).max() < np.linalg.norm(Y[:50].mean(axis=0) - Y[50:].mean(axis=0))
    assert model.n_iter_ == 1000


@both
def test_a_random_start_has_the_printed_variance(method):
    """1e-4 in each coordinate: of 1,000 normal numbers it is known to 4.5 %, five times over."""
    X = np.random.default_rng(0).normal(size=(500, 3))
    options = {"init": "random", "learning_rate": 1e-300, "perplexity": 5, **SHORT[method]}
    Y = method(random_state=0, **options).fit_transform(X)
    assert Y.var() == pytest.approx(1e-4, rel=5 * np.sqrt(2 / Y.size))


@pytest.mark.parametrize(
    ("method", "option", "has"),
    [
        ("barnes-hut", {"early_iter": 50}, "250"),
        ("barnes-hut", {"momentum_iter": 50}, "250"),
        ("auto", {"early_compression": 0.1}, "0"),
        ("fft", {"early_compression": 0.1}, "0"),
    ],
)
def test_options_that_a_library_lacks(X, method, option, has):
    name = next(iter(option))
    with pytest.raises(ValueError, match=rf"{name}=.* has {has}; pass method='exact'"):
        TSNE(perplexity=8, method=method, **option).fit(X)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [20, 400])  # up to 320 points nothing is compiled
def test_gradients_are_derivatives_of_values(n, k):
    """Along a random direction, at a unit of length that is not 1."""
    rng = np.random.default_rng(k)
    graph, Y = random_graph(n), rng.normal(size=(n, k))
    direction, s, h = rng.normal(size=(n, k)), 0.7, 1e-5
    joint = sparse.csr_matrix(graph + graph.T) / (2 * n)
    exaggerated = GaussianNeighbors(graph, 4.0)
    for term in (exaggerated, StudentNeighbors(3.0 * joint, 1.0, opening=0.0), Compression(0.3)):
        difference = term.value(Y + h * direction, s) - term.value(Y - h * direction, s)
        assert np.sum(term.gradient(Y, s) * direction) == pytest.approx(difference / (2 * h), 1e-6)


# Estimators


def test_t_sne_written_out(X):
    """Where it ends, the divergence (18) of p (15) and q (17) is stationary, (19)."""
    model = TSNE(method="exact", perplexity=8, n_iter=2000, random_state=0).fit(X)
    p, Y = model.affinities_.toarray(), model.embedding_
    assert_allclose(model.kl_divergence_, rel_entr(p, student_q(Y)).sum(), rtol=1e-4)
    pulls = np.abs(t_sne_gradient(p, Y) + t_sne_gradient(0 * p, Y)).max()
    assert np.abs(t_sne_gradient(p, Y)).max() < 1e-3 * pulls


@both
def test_where_all_pairs_count_nothing_is_searched(X, method, monkeypatch):
    """Their distances, of close pairs far from zero, too, are those of the definition."""
    far = X + 1e6
    D = cdist(far, far)
    wanted = method(perplexity=8, metric="precomputed", **SHORT[method]).fit(D).affinities_
    monkeypatch.setattr(NeighborIndex, "query", None)
    found = method(perplexity=8, **SHORT[method]).fit(far).affinities_
    assert_allclose(found.toarray(), wanted.toarray(), rtol=1e-10, atol=1e-15)


def test_new_points_are_where_their_divergence_is_stationary(X):
    """The gradient of -Σ p_j log q_j, by differences, is nothing there; rows stand alone."""
    model = TSNE(perplexity=8, random_state=0).fit(X[:30])
    places = model.transform(X[30:])
    D = cdist(X[30:], X[:30])
    order = np.argsort(D, axis=1)[:, :29]
    near = conditional(np.take_along_axis(D, order, axis=1), 8.0)[0]

    def cost(y, i):
        w = 1 / (1 + ((y - model.embedding_) ** 2).sum(axis=1))
        return -near[i] @ np.log(w[order[i]] / w.sum())

    for i, y in enumerate(places):
        for step in 1e-4 * np.eye(2):
            assert abs(cost(y + step, i) - cost(y - step, i)) < 2e-4 * 1e-5
        assert_allclose(model.transform(X[30 + i : 31 + i])[0], y, rtol=1e-9)


@both
def test_start_is_the_principal_components(X, method):
    """A learning rate of nothing leaves the start; distances in place of points tell as much."""
    model = method(perplexity=8, learning_rate=1e-300, **SHORT[method]).fit(X)
    given = clone(model).set_params(metric="precomputed").fit(cdist(X, X))
    expected = PCA(2).fit_transform(X)
    expected *= 1e-4 / expected[:, 0].std()
    for Y in (model.embedding_, given.embedding_):
        assert_allclose(up_to_signs(Y, expected), expected, atol=1e-10)
    assert_allclose(given.sigmas_, model.sigmas_, rtol=1e-10)
    assert abs(given.affinities_ - model.affinities_).max() < 1e-12


@both
def test_flat_coordinates_start_at_random(method):
    """Points on a line: without that the second coordinate would stay zero for ever."""
    X = np.linspace(0, 1, 30)[:, None]
    Y = method(perplexity=5, random_state=0, n_iter=300).fit_transform(X)
    assert Y[:, 1].std() > 1e-3 * Y[:, 0].std()


def test_neighbors_of_the_caller(limits):
    """A transformer and a graph of enough neighbours give the probabilities of our own search."""
    limits(sne_points=100)
    X = np.random.default_rng(0).normal(size=(300, 3))
    options = {"perplexity": 5, "n_iter": 1, "early_iter": 0}
    model = SNE(**options).fit(X)
    assert model.diagnostics_["neighbors"] == 16  # 3 · 5 + 1, of more than 100 points
    distances = SNE(metric="precomputed", **options).fit(cdist(X, X))
    assert abs(distances.affinities_ - model.affinities_).max() < 1e-12
    transformer = KNeighborsTransformer(n_neighbors=20)
    for neighbors in (transformer, transformer.fit_transform(X), NeighborIndex(X)):
        P = SNE(neighbors=neighbors, **options).fit(X).affinities_
        assert abs(P - model.affinities_).max() < 1e-12
    with pytest.raises(ValueError, match=r"only 10 neighbours for row \d+, but 16 are needed"):
        TSNE(perplexity=5, neighbors=KNeighborsTransformer(n_neighbors=10)).fit(X)
    graph = transformer.fit_transform(X[:60])
    with pytest.raises(ValueError, match="no distances to new points"):
        TSNE(perplexity=5, n_iter=250, neighbors=graph).fit(X[:60]).transform(X[:3])


@both
def test_all_points_equal(method):
    """Nothing can be said, and nothing breaks."""
    for X in (np.ones((20, 3)), sparse.csr_matrix((20, 3))):
        Y = method(perplexity=5, random_state=0, n_iter=300).fit_transform(X)
        assert np.isfinite(Y).all()


@pytest.mark.parametrize(
    "method", ["barnes-hut", pytest.param("fft", marks=[pytest.mark.slow, needs_opentsne])]
)
def test_approximations_are_the_same_picture(method):
    """Of two clouds of 75 points, beside the model of all pairs."""
    X = np.random.default_rng(0).normal(size=(150, 4))
    X[75:] += 20
    exact = TSNE(method="exact", perplexity=10, random_state=0).fit(X)
    with threadpool_limits(1, "openmp"):  # threads that wait for each other take minutes
        model = TSNE(method=method, perplexity=10, random_state=0).fit(X)
    q = student_q(model.embedding_.astype(float))
    own = rel_entr(model.affinities_.toarray(), q).sum()
    assert abs(own - exact.kl_divergence_) < 0.1 * exact.kl_divergence_
    assert abs(own - model.kl_divergence_) < 0.05 * own
    assert model.transform(X[:3]).shape == (3, 2)


def test_fft_without_its_library(X, monkeypatch):
    monkeypatch.setitem(sys.modules, "openTSNE", None)
    with pytest.raises(ImportError, match=r"pip install .heatsketch\[tsne\]"):
        TSNE(method="fft", perplexity=8).fit(X)


def test_a_learning_rate_that_is_too_large(X):
    """Steps are taken back until it fits; where it never does, a warning says so."""
    model = SNE(perplexity=8, learning_rate=100, random_state=0).fit(X)
    assert model.diagnostics_["setbacks"] > 0
    usual = SNE(perplexity=8, random_state=0).fit(X)
    assert model.kl_divergence_ < 1.3 * usual.kl_divergence_
    with pytest.warns(hs.ConvergenceWarning, match="smaller learning_rate"):
        Y = SNE(perplexity=8, learning_rate=1e300, random_state=0).fit_transform(X)
    assert np.isfinite(Y).all()


@pytest.mark.parametrize("n", [4, 6, 30])
def test_sne_of_almost_disconnected_points_ends_low(X, n):
    """At these perplexities SNE's forces overshoot more and more unless steps are taken back.

    Places where q is uniform have the divergence Σ_i log((n - 1) / perplexity).
    """
    model = SNE(perplexity=1.2, random_state=0).fit(X[:n])
    assert 0 <= model.kl_divergence_ < 0.5 * n * np.log((n - 1) / 1.2)


def test_neighbors_of_distances(X):
    with pytest.raises(ValueError, match="pass neighbors=None"):
        TSNE(metric="precomputed", neighbors=NeighborIndex(X), perplexity=8).fit(cdist(X, X))
