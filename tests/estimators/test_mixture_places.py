"""MixtureDiffusion: derivatives of coordinates, and points with given coordinates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import heatsketch as hs
from heatsketch.mixture.cholesky_map import draw
from heatsketch.plot import biplot
from problems.slopes import differences

# The clouds are small, so that rows of them are far from the mixture.
pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")


def clouds(m, n=240, seed=0):
    """Three clouds of different shapes; further features are sums of the first ones."""
    rng = np.random.default_rng(seed)
    label = rng.integers(3, size=n)
    return 4 * np.eye(3, m)[label] + rng.normal(size=(n, m)) * (0.5 + 0.25 * label)[:, None]


def wide(n=240, seed=0):
    """About five of twelve dimensions, of which whitening takes ten."""
    near = clouds(5, n, seed) @ np.random.default_rng(1).normal(size=(5, 12)) + 3
    return near + np.random.default_rng(seed).normal(size=(n, 12))


MODELS = {
    "default": {},
    "epsilon": {"epsilon": 2.0, "mixture": 3},
    "one-component": {"epsilon": 2.0, "mixture": 1, "time": 3},
    "later": {"mixture": 3, "time": 3},
    "taylor": {"features": "taylor", "epsilon": 8.0, "mixture": 2},
    "first-two": {"n_components": 2, "mixture": 3},
}
every_model = pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)


def fitted(X, **options):
    return hs.MixtureDiffusion(**{"random_state": 0} | options).fit(X)


@every_model
@pytest.mark.parametrize("m", [1, 2])
def test_derivatives_are_finite_differences_near_and_far(options, m):
    model = fitted(clouds(m), **options)
    unit = np.abs(model.sensitivity(clouds(m))).max()
    for x in (clouds(m, 9, seed=1), 4 * clouds(m, 9, seed=1)):
        found = model.sensitivity(x)
        assert found.shape == (9, model.embedding_.shape[1], m)
        assert_allclose(found, differences(model.transform, x, 0.02), atol=1e-7 * unit)


def test_derivatives_by_features_of_which_whitening_leaves_some_out():
    model, x = fitted(wide(), mixture=3), wide(9, seed=1)
    found = model.sensitivity(x)
    want = differences(model.transform, x, 0.002)
    assert_allclose(found, want, atol=1e-7 * np.abs(want).max())
    across = np.linalg.svd(wide() - wide().mean(axis=0))[2][10:]
    assert_allclose(found @ across.T, 0, atol=1e-9 * np.abs(found).max())


@pytest.mark.parametrize("features", ["cholesky", "taylor"])
def test_the_metric_of_one_gaussian_is_the_same_everywhere(features):
    """p(x, ·) = N(C x, D), so that |∂p|² = Cᵀ D⁻¹ C |N(0, 2D)| / 2 at every x."""
    X = clouds(2, 100)
    model = fitted(X, features=features, epsilon=8.0, mixture=1, tolerance=1e-4)
    S = model.kernel_.covariances[0] + 4 * np.eye(2)
    C = model.kernel_.covariances[0] @ np.linalg.inv(S)
    D = S - C @ S @ C
    peak = np.linalg.det(4 * np.pi * D) ** -0.5
    slopes = model.sensitivity(X)
    want = np.broadcast_to(peak / 2 * C @ np.linalg.inv(D) @ C, (100, 2, 2))
    assert_allclose(slopes.transpose(0, 2, 1) @ slopes, want, atol=1e-3 * np.abs(want).max())


@pytest.mark.parametrize("options", [*MODELS.values()][:-1], ids=[*MODELS][:-1])
@pytest.mark.parametrize("m", [1, 2])
def test_points_come_back(options, m):
    model = fitted(clouds(m), **options)
    for x in (clouds(m), clouds(m, 50, seed=1)):
        assert_allclose(model.inverse_transform(model.transform(x)), x, atol=1e-8)


def test_points_of_a_mixture_of_many_dimensions_come_back():
    model = fitted(clouds(10, 400), epsilon="median", mixture=3)
    x = draw(model.kernel_, 100, 1)
    assert_allclose(model.inverse_transform(model.transform(x)), x, atol=1e-8)


def test_what_whitening_leaves_out_comes_back_as_its_mean():
    X = wide()
    model = fitted(X, mixture=3)
    whitening = model.whitening_
    found = model.inverse_transform(model.embedding_)
    assert_allclose(whitening(found), whitening(X), atol=1e-8)
    rest = np.eye(12) - whitening.axes @ whitening.axes.T
    assert_allclose((found - X.mean(axis=0)) @ rest, 0, atol=1e-9)


@pytest.mark.parametrize("k", [1, 2])
def test_points_of_fewer_coordinates_have_these(k):
    model = fitted(clouds(4), n_components=k, mixture=3)
    found = model.inverse_transform(model.embedding_)
    typical = model.diagnostics_["typical_distance"]
    assert_allclose(model.transform(found), model.embedding_, atol=1e-9 * typical)


def test_where_no_point_is_the_nearest_place_is_found_and_named():
    """What is left is orthogonal to all directions in which the place of the point can move."""
    model = fitted(clouds(2), mixture=3)
    typical = model.diagnostics_["typical_distance"]
    k = model.embedding_.shape[1]
    Y = model.embedding_[:40] + 0.1 * typical * np.random.default_rng(0).normal(size=(40, k))
    with pytest.warns(hs.ScaleWarning, match="that no point was found to have"):
        found = model.inverse_transform(Y)
    off, slopes = Y - model.transform(found), model.sensitivity(found)
    sizes = np.linalg.norm(off, axis=1)[:, None] * np.linalg.norm(slopes, axis=1)
    assert (np.abs(np.einsum("nk,nkm->nm", off, slopes)) <= 1e-5 * sizes).all()
    near = np.linalg.norm(Y[:, None] - model.embedding_, axis=2).min(axis=1)
    assert (np.linalg.norm(off, axis=1) <= near + 1e-12).all()


@pytest.mark.filterwarnings("error")
def test_places_of_points_are_not_named():
    model = fitted(clouds(2), mixture=3)
    model.inverse_transform(model.embedding_)


def test_a_loaded_model_has_the_same_derivatives_and_inverse(tmp_path):
    X = clouds(3).astype(np.float32)
    model = fitted(X, mixture=3)
    hs.save_model(model, tmp_path / "a.model")
    again = hs.load_model(tmp_path / "a.model")
    assert_array_equal(again.sensitivity(X), model.sensitivity(X))
    found = again.inverse_transform(model.embedding_)
    assert_array_equal(found, model.inverse_transform(model.embedding_))
    assert_allclose(found, X, atol=1e-4)


@pytest.mark.parametrize("factor", [2.0**-40, 2.0**40])
def test_units_of_the_data_do_not_matter(factor):
    X = clouds(2)
    now, later = (fitted(s * X, epsilon="median", mixture=3) for s in (1.0, factor))
    for model, s in ((now, 1.0), (later, factor)):
        assert_allclose(model.inverse_transform(model.embedding_), s * X, atol=1e-8 * s)
    # d² is a density, so coordinates have the unit length^-m/2 = length^-1.
    want = now.sensitivity(X) / factor**2
    sign = np.sign(np.einsum("nk,nk->k", now.embedding_, later.embedding_))[:, None]
    assert_allclose(later.sensitivity(factor * X) * sign, want, atol=1e-6 * np.abs(want).max())


def test_arrows_of_a_mixture_are_its_derivatives():
    X = clouds(3)
    model = fitted(X, n_components=2)
    figure = biplot(model, X, features=[0, 2])
    quivers = [one for one in figure.axes[0].collections if hasattr(one, "U")]
    assert [one.get_label() for one in quivers] == ["0", "2"]
    S = model.sensitivity(X)
    for one in quivers:
        at = np.linalg.norm(model.embedding_ - one.XY[:, None], axis=2).argmin(axis=1)
        wanted, moves = S[at, :, int(one.get_label())], np.column_stack([one.U, one.V])
        lengths = np.linalg.norm(moves, axis=1) * np.linalg.norm(wanted, axis=1)
        assert_allclose(np.einsum("ni,ni->n", moves, wanted), lengths)


def test_what_has_no_derivatives_or_inverse_is_refused():
    model = fitted(clouds(2), mixture=3)
    k = model.embedding_.shape[1]
    with pytest.raises(ValueError, match=f"Y has 1 columns but there are {k} coordinates; pass"):
        model.inverse_transform(model.embedding_[:, :1])
    with pytest.raises(ValueError, match="3 features"):
        model.sensitivity(clouds(3))
