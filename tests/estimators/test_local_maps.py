"""Derivatives of places are finite differences; points at places are exact at training points."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import heatsketch as hs

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
    with pytest.raises(ValueError, match="toarray"):
        counts.inverse_transform(counts.embedding_)
    with pytest.raises(ValueError, match="2 coordinates"):
        hs.DiffusionMap().fit(X).inverse_transform(X)
