"""Missing entries in mixtures: integrals in closed form, and fits that count what is there."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.mixture import GaussianMixture

import heatsketch as hs
from heatsketch.mixture.marginal import (
    Observation,
    fit_with_gaps,
    marginal_log_density,
    marginal_places,
    marginal_slopes,
)
from problems.slopes import differences

RNG = np.random.default_rng(0)
PLANE = hs.MixtureKernel(
    [0.4, 0.6],
    [[0.0, 0.0], [2.0, 1.0]],
    [[[1.0, 0.6], [0.6, 0.8]], [[0.5, -0.2], [-0.2, 0.4]]],
    epsilon=0.7,
)
PLAIN = Observation.of(None, 2)
POINTS = np.array([[0.3, np.nan], [2.5, np.nan], [np.nan, 0.4], [-1.0, np.nan]])
GRID = np.linspace(-12, 12, 4801)


def on_lines(point):
    """Return points with the missing entry of one at the places of a grid."""
    line = np.repeat(point[None], len(GRID), axis=0)
    line[:, np.isnan(point)] = GRID[:, None]
    return line


def test_the_density_of_what_is_there_is_the_integral_over_the_rest():
    found = np.exp(marginal_log_density(PLANE, PLAIN, POINTS))
    step = GRID[1] - GRID[0]
    want = [PLANE.stationary(on_lines(point)).sum() * step for point in POINTS]
    assert_allclose(found, want, rtol=1e-9)


def test_the_place_is_the_mean_over_the_missing_entry():
    """Coordinates are linear in transition densities, and these in the density of the entry."""
    features = hs.mixture.CholeskyMap().fit(PLANE, tolerance=1e-3)
    found = marginal_places(features, PLAIN, POINTS)
    for place, point in zip(found, POINTS, strict=True):
        line = on_lines(point)
        w = PLANE.stationary(line)
        assert_allclose(place, w @ features.transform(line) / w.sum(), atol=1e-8)


def test_several_steps_of_a_single_component():
    kernel = hs.MixtureKernel([1.0], [[0.0, 1.0]], [[[1.0, 0.5], [0.5, 2.0]]], 0.5, time=3)
    features = hs.mixture.CholeskyMap().fit(kernel, tolerance=1e-3)
    found = marginal_places(features, PLAIN, POINTS)
    line = on_lines(POINTS[0])
    w = kernel.stationary(line)
    assert_allclose(found[0], w @ features.transform(line) / w.sum(), atol=1e-8)


def clouds(m=14, noise=0.1):
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(200, 4))
    Z[100:, :2] += 4
    return Z @ rng.normal(size=(4, m)) + noise * rng.normal(size=(200, m))


X = clouds()
GAPS = RNG.random(X.shape) < 0.2
HOLED = np.where(GAPS, np.nan, X)


def test_with_all_entries_it_is_the_plain_map_and_density():
    model = hs.MixtureDiffusion(random_state=0).fit(X)
    seen = Observation.of(model.whitening_, X.shape[1])
    z = model._coordinates(X)
    places = marginal_places(model.features_, seen, X)
    assert_allclose(places, model.features_.transform(z), atol=1e-10)
    assert_allclose(marginal_log_density(model.kernel_, seen, X), model.score_samples(X), rtol=1e-9)


def test_a_fit_with_gaps_is_near_that_of_all_entries():
    model, whole = hs.MixtureDiffusion(random_state=0), hs.MixtureDiffusion(random_state=0).fit(X)
    Y = model.fit_transform(HOLED)
    assert_array_equal(model.transform(HOLED), Y)
    assert model.diagnostics_["rows_with_gaps"] == GAPS.any(axis=1).sum()
    assert_array_equal(np.isnan(model.stationary_), GAPS.any(axis=1))
    assert model.kernel_.n_components == whole.kernel_.n_components
    apart = np.linalg.norm(whole.transform(HOLED) - whole.embedding_, axis=1)
    size = np.linalg.norm(whole.embedding_ - whole.embedding_.mean(axis=0), axis=1)
    assert np.median(apart) < 0.5 * np.median(size)
    labels = np.arange(200) // 100
    assert hs.metrics.knn_accuracy(Y, labels) > 0.95
    with pytest.raises(ValueError, match="NaN"):
        model.novelty(HOLED)
    assert np.isfinite(model.score_samples(HOLED)).all()


def test_a_row_with_gaps_is_placed_alike_with_others_or_alone():
    model = hs.MixtureDiffusion(random_state=0).fit(X)
    Y = model.transform(HOLED[:30])
    alone = np.vstack([model.transform(row[None]) for row in HOLED[:30]])
    assert_allclose(Y, alone, atol=1e-12)


def test_rows_with_gaps_have_the_precision_of_all_rows():
    model = hs.MixtureDiffusion(random_state=0).fit(X)
    model.diagnostics_["typical_distance"] = 1e-60  # as in many dimensions: too small for float32
    alone = model.transform(HOLED[GAPS.any(axis=1)].astype(np.float32))
    assert alone.dtype == model.transform(HOLED.astype(np.float32)).dtype == np.float64


def start(X):
    return GaussianMixture(1, random_state=0).fit(np.where(np.isnan(X), 0.0, X))


def test_a_single_gaussian_with_a_monotone_pattern_has_the_known_estimate(limits):
    """Where the second entry is missing, the regression on the first counts (Anderson 1957)."""
    limits(mixture_gain=1e-12, mixture_rounds=2000)
    Z = RNG.multivariate_normal([1.0, 2.0], [[1.0, 0.7], [0.7, 1.5]], 300)
    Z[::3, 1] = np.nan
    made = fit_with_gaps(start(Z), PLAIN, Z)
    whole = Z[~np.isnan(Z[:, 1])]
    slope = np.cov(whole.T)[0, 1] / np.var(whole[:, 0], ddof=1)
    want = whole[:, 1].mean() + slope * (Z[:, 0].mean() - whole[:, 0].mean())
    assert_allclose(made.means_[0], [Z[:, 0].mean(), want], rtol=1e-5)
    assert made.covariances_[0, 0, 0] == pytest.approx(np.var(Z[:, 0]), rel=1e-4)
    assert made.covariances_[0, 0, 1] == pytest.approx(slope * np.var(Z[:, 0]), rel=1e-4)


def test_without_gaps_it_stays_at_the_optimum_of_scikit_learn():
    Z = np.r_[RNG.normal(size=(200, 2)), RNG.normal(size=(100, 2)) + 5]
    fitted = GaussianMixture(2, random_state=0, tol=1e-12, max_iter=1000).fit(Z)
    made = fit_with_gaps(fitted, PLAIN, Z)
    assert_allclose(made.means_, fitted.means_, atol=1e-4)
    assert_allclose(made.covariances_, fitted.covariances_, atol=1e-4)
    assert_allclose(made.predict_proba(Z), fitted.predict_proba(Z), atol=1e-4)


def test_mixtures_without_full_covariances_say_what_to_do():
    mixture = GaussianMixture(2, covariance_type="diag", random_state=0)
    with pytest.raises(ValueError, match="covariance_type='full'"):
        hs.MixtureDiffusion(mixture=mixture, random_state=0).fit(HOLED)


@pytest.mark.parametrize("options", [{}, {"epsilon": "median", "mixture": 1, "time": 3}])
def test_derivatives_by_what_is_there_are_finite_differences(options):
    model = hs.MixtureDiffusion(random_state=0, **options).fit(X[:, :5])
    holed = HOLED[:20, :5]
    found = model.sensitivity(holed)
    want = differences(model.transform, holed, 0.002)
    assert_allclose(found, want, atol=1e-7 * np.abs(want).max())
    missing = np.isnan(holed)
    assert missing.any()
    assert_array_equal(found.transpose(0, 2, 1)[missing], 0)  # nothing depends on these
    assert_allclose(model.sensitivity(holed[:3]), found[:3], atol=1e-12 * np.abs(found).max())


def test_with_all_entries_derivatives_are_those_of_the_plain_map():
    model = hs.MixtureDiffusion(random_state=0).fit(X)
    seen = Observation.of(model.whitening_, X.shape[1])
    found = marginal_slopes(model.features_, seen, X)
    want = model.features_.gradient(model._coordinates(X)) @ model.whitening_.slopes
    assert_allclose(found, want, atol=1e-9 * np.abs(want).max())


def test_maps_of_taylor_series_have_no_rule_for_gaps():
    few = HOLED[:, :2][~GAPS[:, :2].all(axis=1)]
    with pytest.raises(ValueError, match="features='cholesky'"):
        hs.MixtureDiffusion(2, features="taylor", random_state=0).fit(few)
    model = hs.MixtureDiffusion(2, features="taylor", random_state=0).fit(X[:, :2])
    with pytest.raises(ValueError, match="features='cholesky'"):
        model.sensitivity(few)
