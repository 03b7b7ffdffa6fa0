"""Derivatives of places are finite differences; points at places are exact at training points."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import heatsketch as hs
from heatsketch.neighbors.missing import Donors

RNG = np.random.default_rng(0)
SIZES = np.array([3, 2, 1, 0.5])
X, NEW = RNG.normal(size=(200, 4)) * SIZES, RNG.normal(size=(12, 4)) * SIZES / 2
WIDE = {"affinity": "dense", "epsilon": 4.0}
MODELS = {
    "knn": hs.DiffusionMap(3, 2),
    "knn-one-scale": hs.DiffusionMap(3, 2, epsilon=4.0),
    "variable": hs.DiffusionMap(3, 2, affinity="variable"),
    "dense": hs.DiffusionMap(3, 2, **WIDE),
    "dense-scales": hs.DiffusionMap(3, 2, affinity="dense"),
    "radius": hs.DiffusionMap(3, 2, affinity="radius", epsilon=4.0),
    "symmetric": hs.DiffusionMap(3, 2, normalization="symmetric"),
    "bistochastic": hs.DiffusionMap(3, 2, normalization="bistochastic", tol=1e-12, **WIDE),
    "sketch": hs.HeatSketch(5, 3, random_state=0),
    "linear": hs.HeatEmbedding(2, 4, layout="linear", random_state=0),
    "free": hs.HeatEmbedding(2, 4, layout="free", random_state=0),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def differences(place, points, h=1e-6):
    steps = h * np.eye(points.shape[1])
    return np.stack([(place(points + e) - place(points - e)) / (2 * h) for e in steps], axis=2)


@every_model
def test_derivatives_are_finite_differences(model):
    model.fit(X)
    found, want = model.sensitivity(NEW), differences(model.transform, NEW)
    assert found.shape == (12, model.embedding_.shape[1], 4)
    assert_allclose(found, want, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("gaps_in_fit", [True, False])
@every_model
def test_derivatives_of_points_with_gaps_go_through_the_fill(model, gaps_in_fit):
    rng = np.random.default_rng(3)
    holes = [np.where(rng.random(T.shape) < 0.15, np.nan, T) for T in (X, NEW)]
    fitted, new = (T[~np.isnan(T).all(axis=1)] for T in holes)
    model.fit(fitted if gaps_in_fit else X)
    found, want = model.sensitivity(new), differences(model.transform, new)
    assert (np.moveaxis(found, 1, 2)[np.isnan(new)] == 0).all()
    assert_allclose(found, want, atol=2e-6 * np.abs(want).max())


@pytest.mark.parametrize(("columns", "trends"), [(3, True), (6, True), (6, False)])
def test_derivatives_of_the_fill_are_finite_differences(columns, trends):
    """Of many gaps, in a column that hardly any row has, and beside few neighbours."""
    rng = np.random.default_rng(4)
    T = rng.normal(size=(300, columns)) @ rng.normal(size=(columns, columns))
    new = T[:40] + 0.1 * rng.normal(size=(40, columns))
    for points in (T, new):
        points[:, 1:][rng.random(points[:, 1:].shape) < 0.3] = np.nan
    T[:250, 1] = np.nan
    donors = Donors.of(T, 7, trends=trends)
    found = donors.by_given(new, np.tile(np.eye(columns), (40, 1, 1)))
    assert_allclose(found, differences(donors.fill, new), atol=1e-6 * np.abs(found).max())


def test_derivatives_at_training_points_with_gaps_are_finite_and_0_by_what_is_missing():
    holes = np.where(np.random.default_rng(5).random(X.shape) < 0.1, np.nan, X)
    found = MODELS["knn"].fit(holes).sensitivity(holes[:20])
    assert np.isfinite(found).all()
    assert (np.moveaxis(found, 1, 2)[np.isnan(holes[:20])] == 0).all()


def test_derivatives_with_weights_and_several_times():
    model = hs.DiffusionMap(2, [1, 4]).fit(X, sample_weight=RNG.uniform(0.5, 3, 200))
    want = differences(model.transform, NEW)
    assert_allclose(model.sensitivity(NEW), want, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("name", ["knn", "dense-scales", "linear"])
def test_derivatives_at_training_points_of_linear_maps(name):
    model = MODELS[name].fit(X)
    want = differences(model.transform, X[:9], 1e-7)
    assert_allclose(model.sensitivity(X[:9]), want, atol=1e-5 * np.abs(want).max())


def test_a_training_point_of_a_free_layout_is_compared_with_the_others():
    model = MODELS["free"].fit(X)
    found = model.sensitivity(X)
    assert np.isfinite(found).all()
    assert (np.abs(found).max(axis=(1, 2)) > 0).mean() > 0.4  # the others stay at a datum


def test_features_that_make_the_groups_move_points_most():
    rng = np.random.default_rng(1)
    T = rng.normal(size=(300, 10))
    T[:, :3] += 3 * rng.normal(size=(300, 1))
    S = hs.DiffusionMap(1, 2).fit(T).sensitivity(T)
    strength = np.sqrt((S**2).mean(axis=(0, 1)))
    assert strength[:3].min() > strength[3:].max()


@every_model
def test_a_training_point_comes_back(model):
    model.fit(X)
    assert_array_equal(model.inverse_transform(model.embedding_), X)


@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_places_that_differ_by_rounding_have_no_slope(k, dtype):
    """In three components up to two coordinates are constant in each of them, up to rounding."""
    rng = np.random.default_rng(0)
    T = rng.normal(size=(300, 4)) + 40 * rng.integers(0, 3, 300)[:, None]
    model = hs.DiffusionMap(k).fit(T.astype(dtype))
    Y = model.embedding_
    assert len(np.unique(model.diffusion_.component_of)) == 3
    for step in (0.0, 1e-12, 1e-7):
        near = Y + step * np.abs(Y).max() * rng.normal(size=Y.shape)
        for places in (near, near.astype(np.float32)):
            assert np.abs(model.inverse_transform(places) - T).max() < 2 * np.ptp(T)


@every_model
def test_a_training_point_comes_back_in_single_precision(model):
    model.fit(X.astype(np.float32))
    assert_array_equal(model.inverse_transform(model.embedding_), X.astype(np.float32))


def test_the_inverse_of_a_linear_picture_is_linear():
    """A plane in five dimensions, whose picture is a rotation: the fit is exact everywhere."""
    T = RNG.uniform(-1, 1, (500, 2))
    A = np.linalg.qr(RNG.normal(size=(5, 2)))[0].T
    from heatsketch.estimators.local_maps import points_at

    inside = RNG.uniform(-0.8, 0.8, (20, 2))
    found = points_at(T, T @ A + 7, inside)
    assert_allclose(found, inside @ A + 7, atol=1e-3)  # of the penalty


def test_new_points_come_back_roughly():
    angle = np.linspace(0, 2 * np.pi, 300, endpoint=False)
    circle = np.c_[np.cos(angle), np.sin(angle), np.zeros(300)]
    model = hs.HeatEmbedding(random_state=0).fit(circle[::2])
    found = model.inverse_transform(model.transform(circle[1::2]))
    assert np.abs(found - circle[1::2]).max() < 0.1


def test_places_far_from_all_are_named():
    model = MODELS["knn"].fit(X)
    far = model.embedding_[:3] + 1e3
    with pytest.warns(hs.ScaleWarning, match="farther from all training places"):
        found = model.inverse_transform(far)
    assert found.shape == (3, 4)


def test_what_has_no_derivatives_or_inverse_is_refused():
    K = hs.gaussian_affinity(X, 4.0)
    given = hs.DiffusionMap(affinity="precomputed").fit(K)
    with pytest.raises(ValueError, match="metric='euclidean'"):
        given.sensitivity(K)
    with pytest.raises(ValueError, match="fit points"):
        given.inverse_transform(given.embedding_)
    cosine = hs.DiffusionMap(metric="cosine").fit(X)
    with pytest.raises(ValueError, match="metric='euclidean'"):
        cosine.sensitivity(X)
    counts = hs.DiffusionMap().fit(sparse.csr_matrix(np.maximum(X, 0)))
    with pytest.raises(ValueError, match=r"pass X.toarray\(\)"):
        hs.DiffusionMap().fit(X).sensitivity(sparse.csr_matrix(X))
    with pytest.raises(ValueError, match="toarray"):
        counts.inverse_transform(counts.embedding_)
    with pytest.raises(ValueError, match="2 coordinates"):
        hs.DiffusionMap().fit(X).inverse_transform(X)
