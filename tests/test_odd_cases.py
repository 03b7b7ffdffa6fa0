"""Cases that a tester of the whole library found wrong, each against its definition."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import block_diag
from scipy.spatial.distance import squareform
from sklearn.exceptions import NotFittedError

import heatsketch as hs
from heatsketch.operators.operator import Operator
from heatsketch.spectral.filters import Filter
from problems.clouds import cloud


class Reversal(Operator):
    """The reversal of the order: eigenvalues 1 and -1, and products that are views."""

    def __init__(self, n):
        self.n, self.spectrum = n, (-1.0, 1.0)

    def _matmul(self, X):
        return X[::-1]


class Peak(Filter):
    """A filter that leaves out how sharp it is."""

    def with_log_scale(self, lam):
        return np.exp(-5 * (np.asarray(lam) - 0.3) ** 2), 0.0


@pytest.mark.parametrize("n", [6, 700, 2500])
def test_products_may_be_views_of_the_block(n):
    G = np.random.default_rng(0).normal(size=(n, 2))
    found = hs.sketch(Reversal(n), hs.Heat(40.0), G=G.copy(), deflate=False)
    assert_allclose(found, (G + G[::-1]) / 2 / np.sqrt(2), atol=1e-8)


def test_a_filter_need_not_say_how_sharp_it_is_where_the_spectrum_is_known_badly():
    lam = np.random.default_rng(0).random(200)
    A, G = hs.Sparse(sparse.diags(lam), (-1e4, 1e4)), np.eye(200)[:, :2]
    found = hs.sketch(A, Peak(), G=G, deflate=False)
    assert_allclose(found, Peak()(lam)[:, None] * G / np.sqrt(2), atol=1e-9)


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


def test_copies_are_no_neighbours_in_a_metric_without_coordinates():
    """On a line the distances of all metrics are the same."""
    x = np.random.default_rng(0).normal(size=(60, 1))
    x = np.vstack([x, x[:6], np.repeat(x[:1], 20, axis=0)])
    pairs = np.arange(30), np.arange(30, 60)
    found = []
    for metric in ("euclidean", "manhattan"):
        d = hs.Diffusion.from_points(x, affinity="dense", metric=metric)
        found.append(hs.diffusion_distance(d, 4, pairs=pairs))
        rows = (d.operator @ np.eye(len(x)))[d.vertex[:5]][:, d.vertex]
        new = d.kernel_rows(x[:5])
        new = new.toarray() if sparse.issparse(new) else new
        assert_allclose(new[:, d.vertex], rows, atol=1e-12)
    assert_allclose(*found, rtol=1e-9)


@pytest.mark.parametrize(("filter", "time"), [("heat", 2.5), ("accumulated", 2)])
def test_points_with_equal_rows_are_at_distance_0(filter, time):
    X = cloud(60, 3, seed=5)
    twice = hs.Diffusion.from_points(np.vstack([X, X[:5]]), affinity="dense", epsilon=2.0)
    star = np.zeros((8, 8))
    star[0, 1:] = star[1:, 0] = 1
    cases = (twice, 0, 60), (hs.Diffusion.from_graph(star), 1, 2)
    for d, i, j in cases:
        assert hs.diffusion_distance(d, time, filter=filter, pairs=([i], [j]))[0] < 1e-12


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_real_power_of_an_operator_that_is_positive_by_its_interval(n):
    lam = np.random.default_rng(0).random(n)
    A = hs.LinearMap(sparse.linalg.aslinearoperator(np.diag(lam)), (lam.min(), lam.max()))
    D = hs.diffusion_distance(A, 200.5, deflate=False, pairs=([0], [1]))
    assert_allclose(D, np.hypot(lam[0] ** 200.5, lam[1] ** 200.5), rtol=1e-9)


def test_missing_labels_beside_text_are_left_out():
    Y = [[0.0], [1.0], [9.0], [8.0], [5.0]]
    for missing in (None, float("nan")):
        assert hs.metrics.knn_accuracy(Y, ["a", "a", "b", "b", missing], 1) == 1.0
    assert hs.metrics.knn_accuracy(Y, pd.array([1, 1, 2, 2, None], dtype="Int64"), 1) == 1.0


@pytest.mark.parametrize("metric", ["manhattan", "cosine"])
def test_points_are_added_in_any_metric(metric):
    X = cloud(120, 3, seed=5)
    model = hs.HeatSketch(5, metric=metric, random_state=0).fit(X[:100], ids=range(100))
    refreshed = model.update(X[100:], ids=range(100, 120)).refresh()
    whole = hs.HeatSketch(5, metric=metric, random_state=0).fit(X, ids=range(120))
    assert_allclose(refreshed.embedding_, whole.embedding_, atol=1e-12)


def test_ids_of_both_signs_and_text_beside_bytes():
    X = cloud(120, 3)

    def sketch(ids):
        return hs.HeatSketch(5, random_state=3).fit(X[:100], ids=ids)

    signed, unsigned = (sketch(np.arange(100, dtype=kind)) for kind in ("i8", "u8"))
    assert hs.diffusion_discrepancy(signed, unsigned, rng=0).value == 0
    assert len(signed.update(X[100:], ids=np.arange(100, 120, dtype="u8")).ids_) == 120
    text = [f"é{i}" for i in range(100)]
    both = sketch(text), sketch([one.encode() for one in text])
    assert hs.diffusion_discrepancy(*both, rng=0).value == 0


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        *((name, {"metric": "cosine"}) for name in ("Isomap", "LaplacianEigenmap", "ClassicalMDS")),
        *((name, {"metric": "manhattan"}) for name in ("Isomap", "LandmarkMDS", "MetricMDS")),
        ("LocallyLinearEmbedding", {"reg": 0.5}),
        ("TSNE", {"perplexity": 5.0}),
    ],
)
def test_a_fitted_method_keeps_the_parameters_of_its_fit(name, changed):
    X = cloud(90, 4) + 2
    model = getattr(hs.classical, name)().fit(X)
    before = model.transform(X[:9] + 0.01)
    assert_array_equal(model.set_params(**changed).transform(X[:9] + 0.01), before)


@pytest.mark.parametrize("make", [hs.HeatSketch, hs.MixtureDiffusion, hs.classical.Isomap])
def test_a_fit_that_failed_leaves_nothing_fitted(make):
    model = make()
    with pytest.raises(ValueError):  # noqa: PT011
        model.fit(np.ones((5, 2)))
    with pytest.raises(NotFittedError):
        model.transform(np.ones((5, 2)))


def test_a_time_may_be_a_number_of_numpy():
    X = cloud(60, 2)
    models = (hs.HeatSketch(3, time=time, random_state=0) for time in (4, np.array(4)))
    assert_array_equal(*(model.fit_transform(X) for model in models))


def test_a_metric_that_cannot_be_stored_is_refused_by_name(tmp_path):
    with pytest.raises(TypeError, match="leave out memory"):
        hs.HeatSketch(metric=lambda a, b: abs(a - b).sum(), memory=str(tmp_path)).fit(cloud(30, 2))
