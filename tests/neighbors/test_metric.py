"""Cosine and correlation distances: Euclidean ones of rows scaled to unit length."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import heatsketch as hs
from heatsketch import classical
from heatsketch.neighbors import COORDINATES, NeighborIndex, in_metric

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 5)) * np.exp(RNG.normal(size=(80, 1))) + 1.0
NEW = RNG.normal(size=(20, 5)) + 1.0
DIRECTIONS = ("cosine", "correlation")

ESTIMATORS = {
    "heat-sketch": hs.HeatSketch(4, random_state=0),
    "heat-sketch, radius": hs.HeatSketch(4, affinity="radius", epsilon="ksum", random_state=0),
    "heat-sketch, dense": hs.HeatSketch(4, affinity="dense", random_state=0),
    "heat-embedding": hs.HeatEmbedding(2, 8, random_state=0),
    "diffusion-map": hs.DiffusionMap(2, random_state=0),
    "classical-mds": classical.ClassicalMDS(2),
    "landmark-mds": classical.LandmarkMDS(2, n_landmarks=20, random_state=0),
    "isomap": classical.Isomap(2),
    "landmark-isomap": classical.LandmarkIsomap(2, n_landmarks=20),
    "lle": classical.LocallyLinearEmbedding(2, random_state=0),
    "laplacian-eigenmap": classical.LaplacianEigenmap(2, random_state=0),
    "sne": classical.SNE(2, perplexity=10, n_iter=20, early_iter=5, random_state=0),
}
WITH_RULE = [name for name, e in ESTIMATORS.items() if hasattr(e, "transform")]


FUNCTIONS = {
    "gaussian_affinity": lambda X, metric: hs.gaussian_affinity(X, metric=metric),
    "ksum": lambda X, metric: hs.ksum(X, metric=metric).slopes,
    "connecting_epsilon": lambda X, metric: hs.connecting_epsilon(X, metric=metric),
    "intrinsic_dimension": lambda X, metric: hs.intrinsic_dimension(X, metric=metric).dimension,
    "diffusion": lambda X, metric: hs.HeatSketch(4, metric=metric, random_state=0).fit_transform(X),
}


def scaled(X, metric):
    """Return rows at other scales and, for correlation, with another mean."""
    rng = np.random.default_rng(1)
    Y = X * 2.0 ** rng.integers(-40, 40, size=(len(X), 1))
    means = rng.normal(size=(len(X), 1)) * Y.std(axis=1, keepdims=True)
    return Y + means if metric == "correlation" else Y


def test_euclidean_is_the_points_themselves():
    assert in_metric(X, "euclidean") is X
    assert set(COORDINATES) == {"euclidean", *DIRECTIONS}  # all are tested here


every_metric = pytest.mark.parametrize("metric", DIRECTIONS)


@every_metric
def test_half_squared_chords_are_the_distances_of_scipy(metric):
    u = in_metric(X, metric)
    np.testing.assert_allclose(cdist(u, u, "sqeuclidean") / 2, cdist(X, X, metric), atol=1e-14)


@every_metric
def test_rows_have_unit_length_at_any_scale(metric):
    for scale in (1e-50, 1e50):
        u = in_metric(X * scale, metric)
        np.testing.assert_allclose(np.linalg.norm(u, axis=1), 1, rtol=1e-14)
        np.testing.assert_allclose(u, in_metric(X, metric), rtol=1e-9, atol=1e-15)


def test_powers_of_two_change_no_bit():
    assert np.array_equal(in_metric(scaled(X, "cosine"), "cosine"), in_metric(X, "cosine"))


def test_shift_is_forgotten_even_far_from_zero():
    steps = np.arange(12.0).reshape(2, 6) ** 2
    far = in_metric(steps + 2.0**50, "correlation")  # exact in float64
    np.testing.assert_allclose(far, in_metric(steps, "correlation"), rtol=1e-14)


@every_metric
def test_row_depends_on_itself_alone_in_any_order(metric):
    many = np.random.default_rng(2).normal(size=(3000, 7))
    u = in_metric(many, metric)
    assert np.array_equal(in_metric(many[1500:1501], metric), u[1500:1501])
    assert np.array_equal(in_metric(np.asfortranarray(many), metric), u)


@every_metric
def test_single_precision_stays(metric):
    single = X.astype(np.float32)
    u = in_metric(single, metric)
    assert u.dtype == np.float32
    np.testing.assert_allclose(u, in_metric(single.astype(float), metric), atol=1e-7)


def test_sparse_rows_are_the_dense_ones():
    counts = sparse.random(60, 200, 0.05, format="csr", random_state=0) + sparse.eye(60, 200)
    for scale, dtype in ((1.0, float), (1e-50, float), (1e50, float), (1.0, np.float32)):
        given = sparse.csr_matrix(counts * scale).astype(dtype)
        found = in_metric(given, "cosine")
        assert sparse.issparse(found)
        assert found.dtype == dtype
        dense = in_metric(given.toarray(), "cosine")
        np.testing.assert_allclose(found.toarray(), dense, rtol=1e-14 if dtype is float else 1e-6)


@pytest.mark.parametrize("name", ESTIMATORS)
@every_metric
def test_estimator_embeds_the_directions(name, metric):
    estimator = ESTIMATORS[name]
    there = estimator.set_params(metric="euclidean").fit_transform(in_metric(X, metric))
    here = estimator.set_params(metric=metric).fit_transform(X)
    estimator.set_params(metric="euclidean")
    assert np.array_equal(here, there)


@pytest.mark.parametrize("name", WITH_RULE)
@every_metric
def test_new_points_are_mapped_by_their_directions(name, metric):
    estimator = ESTIMATORS[name].set_params(metric=metric).fit(X)
    found, again = estimator.transform(X), estimator.transform(scaled(NEW, metric))
    near = 1e-6 * np.abs(found).max()
    np.testing.assert_allclose(found, estimator.embedding_, atol=near)
    np.testing.assert_allclose(again, estimator.transform(NEW), atol=near)
    estimator.set_params(metric="euclidean")


@pytest.mark.parametrize("name", FUNCTIONS)
@every_metric
def test_function_takes_the_directions(name, metric):
    function = FUNCTIONS[name]
    assert np.array_equal(function(X, metric), function(in_metric(X, metric), "euclidean"))
    np.testing.assert_allclose(function(scaled(X, metric), metric), function(X, metric), rtol=1e-6)


@every_metric
def test_index_finds_the_neighbors_of_scipy(metric):
    index = NeighborIndex(X, metric=metric)
    order = np.argsort(cdist(NEW, X, metric), axis=1, kind="stable")[:, :6]
    assert np.array_equal(index.query(NEW, 6).indices, order)
    own = index.query(None, 3)
    assert np.array_equal(own.indices[:, 0], np.arange(len(X)))


@every_metric
def test_index_is_shared_in_its_metric_only(metric):
    index = NeighborIndex(X, metric=metric)
    sketch = hs.HeatSketch(4, metric=metric, random_state=0)
    shared = hs.HeatSketch(4, metric=metric, neighbors=index, random_state=0)
    assert np.array_equal(shared.fit_transform(X), sketch.fit_transform(X))
    assert np.array_equal(shared.transform(NEW), sketch.transform(NEW))
    with pytest.raises(ValueError, match=r"in another metric; pass NeighborIndex\(X\) with"):
        hs.HeatSketch(neighbors=index).fit(X)


@pytest.mark.parametrize(
    ("metric", "row", "message"),
    [
        ("cosine", 0.0, r"metric='cosine' but row\(s\) 7 of X hold only zeros"),
        ("correlation", 0.1, r"metric='correlation' but row\(s\) 7 of X hold equal numbers"),
    ],
)
def test_row_without_direction_is_named(metric, row, message):
    bad = X.copy()
    bad[7] = row
    for estimator in ESTIMATORS.values():
        with pytest.raises(ValueError, match=message):
            estimator.set_params(metric=metric).fit(bad)
        estimator.set_params(metric="euclidean")
    sketch = hs.HeatSketch(4, metric=metric).fit(X)
    with pytest.raises(ValueError, match=message):
        sketch.transform(bad)


STORED_ZEROS = sparse.csr_matrix(X)
STORED_ZEROS.data[10:15] = 0.0  # row 2


@pytest.mark.parametrize(
    ("points", "parameters", "message"),
    [
        (STORED_ZEROS, {"metric": "cosine"}, r"row\(s\) 2 of X hold only zeros"),
        (sparse.csr_matrix(X), {"metric": "correlation"}, r"X is sparse.*X\.toarray\(\)"),
        (X @ X.T, {"metric": "cosine", "affinity": "precomputed"}, "precomputed'.*leave out"),
    ],
)
def test_what_has_no_direction_is_refused(points, parameters, message):
    with pytest.raises(ValueError, match=message):
        hs.HeatSketch(4, **parameters).fit(points)
