"""Laws that all classical methods obey: containers, precision, units, order, points old and new."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.base import clone
from sklearn.neighbors import KNeighborsTransformer

import heatsketch as hs
from heatsketch.classical import (
    PCA,
    SNE,
    TSNE,
    ClassicalMDS,
    FisherDiscriminant,
    Isomap,
    LandmarkIsomap,
    LandmarkMDS,
    LaplacianEigenmap,
    LocallyLinearEmbedding,
    MetricMDS,
    MultipleDiscriminant,
    NonmetricMDS,
)
from heatsketch.neighbors import NeighborIndex
from problems.checks import estimator_checks
from problems.clouds import cloud

X = np.random.default_rng(0).uniform(size=(80, 3)) * [6, 4, 2]
NEW = np.random.default_rng(1).uniform(size=(9, 3)) * [6, 4, 2]
Y = (X[:, 0] + X[:, 1] > 5).astype(int)
SCALED = {  # coordinates have the unit of the points
    "pca": PCA(2),
    "fisher": FisherDiscriminant(),
    "classical": ClassicalMDS(2),
    "landmarks": LandmarkMDS(2, np.arange(9)),
    "metric": MetricMDS(2, tol=1e-12, max_iter=3000),
    "nonmetric": NonmetricMDS(2, tol=1e-9, max_iter=3000),
    "isomap": Isomap(2, n_neighbors=7),
    "isomap of a radius": Isomap(2, radius=1.8),
    "landmark isomap": LandmarkIsomap(2, n_neighbors=7, landmarks=np.arange(20)),
}
UNIT_FREE = {
    "multiple": MultipleDiscriminant(),
    "lle": LocallyLinearEmbedding(2, n_neighbors=8, random_state=0),
    "laplacian": LaplacianEigenmap(2, n_neighbors=6),
    "binary laplacian": LaplacianEigenmap(2, n_neighbors=6, weights="binary"),
    "laplacian of a radius": LaplacianEigenmap(2, radius=1.8),
}
PLACING = SCALED | UNIT_FREE  # training points come out as they went in
SNES = {
    "sne": SNE(perplexity=8, n_iter=30, early_iter=10, random_state=0),
    "t-sne": TSNE(perplexity=8, n_iter=250, random_state=0),
}
PLACED_ANEW = ("check_transformer_general", "check_transformer_data_not_an_array")
SPARSE = {
    name: model
    for name, model in (PLACING | SNES).items()
    if model.__sklearn_tags__().input_tags.sparse
}


def every(methods):
    return pytest.mark.parametrize("model", methods.values(), ids=methods)


def fitted(model, points=X):
    return clone(model).fit(points, np.resize(Y, points.shape[0]))


def assert_close(found, expected, tol):
    assert found.shape == expected.shape
    assert_allclose(found, expected, rtol=0, atol=tol * np.abs(expected).max())


@estimator_checks(
    PCA(),
    FisherDiscriminant(),
    MultipleDiscriminant(),
    ClassicalMDS(),
    LandmarkMDS(n_landmarks=9),
    MetricMDS(),
    Isomap(n_neighbors=4),
    LandmarkIsomap(n_landmarks=6, n_neighbors=4),
    LocallyLinearEmbedding(n_neighbors=5, random_state=0),
    LocallyLinearEmbedding(radius=3.0),
    LaplacianEigenmap(n_neighbors=5),
    LaplacianEigenmap(radius=3.0),
    SNE(perplexity=2, n_iter=20, early_iter=5),
    TSNE(perplexity=2, n_iter=250),
    expected_failed_checks=lambda estimator: dict.fromkeys(
        PLACED_ANEW if isinstance(estimator, TSNE) else (),
        "training points are placed anew by transform",
    ),
)
@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning", "ignore:Only")
@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
@pytest.mark.filterwarnings("ignore::heatsketch.ConvergenceWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@every(PLACING)
def test_training_points_come_out_as_they_went_in(model):
    twice = np.vstack([X, X[:10]])
    found = fitted(model, twice)
    assert_close(found.transform(twice), found.embedding_, 1e-12)
    assert_close(
        found.embedding_[80:], found.embedding_[:10], 1e-5 if "metric" in str(model) else 1e-12
    )
    if "duplicates" in found.diagnostics_:  # they share a vertex
        assert found.diagnostics_["duplicates"] == 10
        assert_close(found.embedding_[:80], fitted(model).embedding_, 1e-8)


@every(PLACING | SNES)
def test_single_precision_stays_and_keeps_its_digits(model):
    points = (X + 100).astype(np.float32)
    single, double = fitted(model, points), fitted(model, points.astype(float))
    assert single.embedding_.dtype == np.float32
    if hasattr(model, "transform"):
        assert single.transform(points).dtype == np.float32
    assert_close(single.embedding_, double.embedding_, 1 if isinstance(model, TSNE) else 1e-4)


@every(PLACING | {"sne": SNES["sne"]})
@pytest.mark.parametrize("scale", [2.0**-150, 1e-6, 1e50])
def test_units_do_not_matter(model, scale):
    unit = 1.0 if model in [*UNIT_FREE.values(), SNES["sne"]] else scale
    moved = clone(model)
    if getattr(model, "radius", None) is not None:
        moved.set_params(radius=model.radius * scale)
    one, other = fitted(model), fitted(moved, X * scale)
    assert_close(other.embedding_ / unit, one.embedding_, 1e-6)
    if hasattr(model, "transform"):
        assert_close(other.transform(NEW * scale) / unit, one.transform(NEW), 1e-6)


@every(PLACING)
def test_an_offset_costs_no_digits_but_those_of_the_data(model):
    rounded = np.round(X * 2**20) / 2**20  # so that X + 10^8 is off by 2^-27 at most
    one, other = fitted(model, rounded), fitted(model, rounded + 1e8)
    assert_close(other.embedding_, one.embedding_, 1e-5)
    assert_close(other.transform(rounded + 1e8), other.embedding_, 1e-11)


@every(PLACING | {"sne": SNES["sne"]})
def test_order_of_points_does_not_matter(model):
    order = np.random.default_rng(5).permutation(80)
    moved = clone(model)
    if hasattr(model, "landmarks"):
        moved.set_params(landmarks=np.argsort(order)[model.landmarks])
    found = moved.fit(X[order], Y[order]).embedding_
    assert_close(
        found, fitted(model).embedding_[order], 1e-4 if isinstance(model, MetricMDS) else 1e-6
    )


@every(SPARSE)
def test_sparse_points_and_lists_are_points(model):
    points = np.where(np.abs(X) < 0.4, 0.0, X)
    expected = fitted(model, points)
    for form in (sparse.csr_matrix, sparse.coo_array):
        found = fitted(model, form(points))
        assert_close(found.embedding_, expected.embedding_, 1e-6)
        if hasattr(model, "transform"):
            assert_close(found.transform(form(NEW)), expected.transform(NEW), 1e-6)
    listed = clone(model).fit(points.tolist())
    assert_array_equal(listed.embedding_, expected.embedding_)


@every(PLACING | SNES)
def test_frames_keep_their_kind_and_names(model):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"width": X[:, 0], "height": X[:, 1], "depth": X[:, 2]})
    with config_context(transform_output="polars"):
        out = clone(model).fit_transform(frame, Y)
    assert isinstance(out, polars.DataFrame)
    assert out.columns[0] == f"{type(model).__name__.lower()}0"
    assert_close(np.asarray(out), fitted(model).embedding_, 1e-9)


@every({name: PLACING[name] for name in ("isomap", "lle", "laplacian")})
def test_neighbours_may_be_given(model):
    expected, k = fitted(model), model.n_neighbors
    transformer = KNeighborsTransformer(n_neighbors=k)
    graph = transformer.fit_transform(X)
    for neighbors in (NeighborIndex(X), transformer, graph):
        found = clone(model).set_params(neighbors=neighbors).fit(X)
        assert_close(found.embedding_, expected.embedding_, 1e-7)
        if neighbors is graph:
            with pytest.raises(ValueError, match="no distances to new points"):
                found.transform(NEW)
        elif neighbors is not transformer or not isinstance(model, LaplacianEigenmap):
            assert_close(found.transform(NEW), expected.transform(NEW), 1e-7)


@every({name: SCALED[name] for name in ("classical", "metric", "isomap", "isomap of a radius")})
def test_distances_in_place_of_points(model):
    given = clone(model).set_params(metric="precomputed").fit(cdist(X, X))
    assert_close(given.embedding_, fitted(model).embedding_, 1e-5)
    assert_close(given.transform(cdist(NEW, X)), fitted(model).transform(NEW), 1e-5)
    assert given.__sklearn_tags__().input_tags.pairwise


def test_memory_is_looked_at_before_it_is_taken(limits):
    limits(available=lambda: 90_000.0)
    for model, instead in (
        (ClassicalMDS(metric="precomputed"), "use LandmarkMDS"),
        (Isomap(n_neighbors=7), "pass LandmarkIsomap with fewer landmarks"),
        (LandmarkIsomap(n_neighbors=7, n_landmarks=75), "pass LandmarkIsomap with fewer"),
    ):
        with pytest.raises(MemoryError, match=instead):
            model.fit(cdist(X, X) if model.metric == "precomputed" else X)
    LandmarkIsomap(n_neighbors=7, n_landmarks=20).fit(X)
    ClassicalMDS().fit(X)  # needs no distances


@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
@every({name: PLACING[name] for name in ("isomap", "isomap of a radius", "landmark isomap")})
def test_points_beyond_the_longest_path_are_named(model):
    found = fitted(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.transform(NEW)
    for size in (1e3, 1e50):
        with pytest.warns(hs.ScaleWarning, match=r"\(rows 9\) are farther from every training"):
            found.transform(np.vstack([NEW, [[size, 0, 0]]]))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PCA(5), "n_components=5 but X has 80 points of 3 features; pass n_components <= 3"),
        (ClassicalMDS(80), "pass n_components <= 79"),
        (LandmarkMDS(landmarks=[0, 1, 1]), "more than once"),
        (LandmarkMDS(landmarks=[0.0, 1.0, 2.0]), "integers"),
        (LandmarkMDS(landmarks=[0, 1]), "n_components=2 but there are 2 distinct points or landm"),
        (LandmarkMDS(landmarks=[0, 1], metric="precomputed"), r"X has shape \(80, 3\)"),
        (LandmarkMDS(landmarks=[0, 1, 2], metric="precomputed"), "diagonal"),
        (LandmarkMDS(metric="precomputed"), "the indices of their l rows"),
        (LandmarkMDS(landmarks=[]), r"landmarks has shape \(0,\)"),
        (LandmarkIsomap(1, n_landmarks=1), "n_components=1 but there are 1 distinct points or"),
        (LandmarkIsomap(landmarks="random"), "landmarks='random'"),
        (LandmarkIsomap(landmarks=[3, 80, -1]), "pass 0 <= index < 80"),
        (LocallyLinearEmbedding(reg=-1.0), "reg=-1.0 is out of range; pass a number > 0"),
        (LocallyLinearEmbedding(radius=1e-3), "No two points are within radius=0.001; pass a larg"),
        (LaplacianEigenmap(80), "pass n_components <= 79"),
        (LaplacianEigenmap(weights="cosine"), "weights='cosine' is unknown"),
        (SNE(2, 79), "perplexity=79 but X has 80 samples; pass perplexity < 79"),
        (TSNE(2, 1), "perplexity=1 is out of range"),
        (TSNE(2, 8, n_iter=200), "n_iter=200"),
        (TSNE(2, 8, momentum_iter=-1), "momentum_iter=-1 is out of range"),
        (TSNE(2, 8, early_compression=-1.0), "early_compression=-1.0 is out of range"),
        (TSNE(2, 8, init="spectral"), "init='spectral' is unknown"),
        (TSNE(2, 8, init=np.zeros((80, 3))), r"init has shape \(80, 3\).*pass \(80, 2\)"),
        (TSNE(2, 8, init=np.full((80, 2), np.inf)), "init contains infinity"),
    ],
    ids=str,
)
def test_parameters_out_of_range_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)


@pytest.mark.parametrize(
    ("D", "message"),
    [
        (np.ones((4, 5)), r"shape \(4, 5\).* pass the distances between all"),
        (-cdist(X, X), "negative numbers"),
        (np.triu(cdist(X, X)), "not symmetric"),
        (cdist(X, X) + np.eye(80), "not zero on its diagonal"),
        (np.full((9, 9), np.nan), "NaN"),
    ],
)
@every({"mds": ClassicalMDS(), "metric": MetricMDS(), "isomap": Isomap(), "sne": SNE(perplexity=2)})
def test_what_are_no_distances_is_refused(model, D, message):
    with pytest.raises(ValueError, match=message):
        clone(model).set_params(metric="precomputed").fit(D)


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
