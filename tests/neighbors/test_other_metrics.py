"""Metrics without coordinates: by all distances, exact."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist

import heatsketch as hs
from heatsketch.classical import ClassicalMDS, Isomap, LandmarkMDS, LocallyLinearEmbedding
from heatsketch.neighbors import Distances
from heatsketch.neighbors.search import DistanceSearch
from problems.clouds import cloud
from problems.matrices import of_points

pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
POINTS = cloud(70, 4)
WORDS = (np.random.default_rng(1).random((70, 40)) < 0.3).astype(float)


def squared_chord(x, y):
    return float(np.sqrt(np.abs(x - y).sum()))


CASES = {
    "manhattan": (POINTS, cdist(POINTS, POINTS, "cityblock")),
    "hamming": (WORDS, cdist(WORDS, WORDS, "hamming")),
    "jaccard": (2 * WORDS, cdist(WORDS > 0, WORDS > 0, "jaccard")),
    "callable": (POINTS, np.sqrt(cdist(POINTS, POINTS, "cityblock"))),
}
every_case = pytest.mark.parametrize("name", CASES)
WAYS = {
    "knn": {"n_neighbors": 9},
    "knn with a number": {"n_neighbors": 9, "epsilon": "median"},
    "dense": {"affinity": "dense", "epsilon": "median"},
    "dense self-tuning": {"affinity": "dense", "n_neighbors": 9},
    "radius": {"affinity": "radius", "epsilon": "nearest"},
    "variable": {"affinity": "variable", "n_neighbors": 9},
    "ksum": {"affinity": "dense", "epsilon": "ksum"},
}
# A metric has distances, a way has neighbours and scales of distances: each with one of the others.
PAIRS = [("manhattan", way) for way in WAYS]
PAIRS += [(name, way) for name in ("hamming", "jaccard", "callable") for way in ("dense", "radius")]
every_pair = pytest.mark.parametrize(("name", "way"), PAIRS)


def case(name):
    X, D = CASES[name]
    return X, D, squared_chord if name == "callable" else name


@every_case
def test_the_search_finds_the_nearest_and_of_ties_the_first(name):
    X, D, metric = case(name)
    search = DistanceSearch(Distances.from_metric(metric).points(X), Distances.from_metric(metric))
    want = np.argsort(D - 2 * np.eye(70), axis=1, kind="stable")[:, :12]
    found = search.query(None, 12)
    assert_array_equal(found.indices, want)
    assert_allclose(found.distances, np.take_along_axis(D, want, axis=1), rtol=1e-12, atol=1e-15)
    within = search.within(None, np.median(D)).toarray()
    assert_allclose(within, np.where(np.median(D) >= D, D, 0), rtol=1e-12, atol=1e-15)


@every_pair
def test_points_and_their_distances_have_one_diffusion(name, way):
    X, D, metric = case(name)
    options = WAYS[way]
    d = hs.diffusion(X, metric=metric, **options)
    e = hs.diffusion(D, metric="precomputed", **options)
    assert_allclose(of_points(d), of_points(e), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.7, "self-tuning"])
def test_the_dense_affinity_is_its_definition(epsilon):
    X, D, metric = case("manhattan")
    s = np.sort(D, axis=1)[:, 7] if epsilon == "self-tuning" else np.full(70, np.sqrt(0.7))
    d = hs.diffusion(X, metric=metric, affinity="dense", epsilon=epsilon, alpha=0.0)
    K = np.exp(-(D**2) / np.outer(s, s))
    q = K.sum(axis=1)
    assert_allclose(of_points(d), K / np.sqrt(np.outer(q, q)), rtol=1e-9, atol=1e-15)


@every_pair
def test_training_points_are_mapped_to_where_they_are(name, way):
    X, D, metric = case(name)
    for points, kind in ((X, metric), (D, "precomputed")):
        model = hs.HeatSketch(8, 3, metric=kind, random_state=0, **WAYS[way]).fit(points)
        assert_allclose(model.transform(points), model.embedding_, rtol=1e-7, atol=1e-9)
        assert ((model.novelty(points) >= 0) & (model.novelty(points) <= 1)).all()


@pytest.mark.parametrize("metric", ["manhattan", "jaccard", squared_chord, "precomputed"])
def test_the_order_of_rows_says_nothing(metric):
    order = np.random.default_rng(3).permutation(70)
    X = POINTS if metric != "jaccard" else WORDS
    shuffled = X[order]
    if metric == "precomputed":
        X = CASES["manhattan"][1]
        shuffled = X[np.ix_(order, order)]
    sketch = hs.HeatSketch(8, metric=metric, random_state=0)
    Y, Z = sketch.fit(X, ids=np.arange(70)).embedding_, sketch.fit(shuffled, ids=order).embedding_
    assert_allclose(Z, Y[order], rtol=0, atol=1e-9 * np.abs(Y).max())


def test_copies_share_a_vertex_also_of_given_distances():
    X = np.vstack([POINTS, POINTS[:5]])
    for points, metric in ((X, "manhattan"), (cdist(X, X, "cityblock"), "precomputed")):
        d = hs.diffusion(points, metric=metric, n_neighbors=9)
        assert d.n == 70
        assert_array_equal(d.vertex[:5], d.vertex[70:])
        once = hs.diffusion(POINTS, metric="manhattan", n_neighbors=9)
        assert_allclose(of_points(d)[:70, :70], of_points(once), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("make", [hs.HeatEmbedding, hs.DiffusionMap])
@pytest.mark.parametrize("metric", ["manhattan", squared_chord])
def test_other_estimators_take_it(make, metric):
    model = make(2, time=4, metric=metric).fit(POINTS)
    assert_allclose(model.transform(POINTS), model.embedding_, atol=1e-8)


@pytest.mark.parametrize("make", [ClassicalMDS, Isomap])
@every_case
def test_classical_methods_embed_the_distances(make, name):
    X, D, metric = case(name)
    model, given = make(2, metric=metric).fit(X), make(2, metric="precomputed").fit(D)
    assert_allclose(model.embedding_, given.embedding_, atol=1e-8)
    assert_allclose(model.transform(X[:9] * 1.0), given.transform(D[:9]), atol=1e-8)


FALSE_ZERO = CASES["manhattan"][1].copy()
FALSE_ZERO[3, 8] = FALSE_ZERO[8, 3] = 0.0


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        (sparse.csr_matrix(WORDS), {"metric": "hamming"}, "metric='hamming' but X is sparse"),
        (np.triu(CASES["manhattan"][1]), {"metric": "precomputed"}, "not symmetric"),
        (sparse.csr_matrix(FALSE_ZERO), {"metric": "precomputed"}, "neighbors=X, or weights"),
        (POINTS, {"metric": lambda x, y: -1.0}, "negative or not finite"),
        (POINTS, {"metric": "manhatten"}, "metric"),
        (POINTS, {"metric": "manhattan", "neighbors": sparse.eye(70).tocsr()}, "are both given"),
        (FALSE_ZERO, {"metric": "precomputed"}, "a distance of 0 between points whose"),
    ],
)
def test_what_cannot_be_is_refused(points, options, message):
    with pytest.raises(ValueError, match=message):
        hs.diffusion(points, **options)


def test_methods_of_coordinates_refuse_a_metric_that_has_none():
    fits = [make(2, metric="manhattan").fit for make in (LandmarkMDS, LocallyLinearEmbedding)]
    for door in (lambda X: hs.ksum(X, metric="manhattan"), *fits):
        with pytest.raises(ValueError, match="metric='manhattan' has no coordinates"):
            door(POINTS)


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
