"""Coordinates of the mixture's diffusion: projections on pivots, and their certificates."""

import logging
import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

from heatsketch import ConvergenceWarning
from heatsketch.mixture import CholeskyMap, MixtureKernel
from heatsketch.mixture.cholesky_map import draw
from problems.mixtures import cloud, mixture_of


def fitted(points=cloud(2, 60), **options):
    return CholeskyMap().fit(mixture_of(2, 0.5), points=points, **options)


def distances(features, x, z):
    """Those of the coordinates, and those that they approximate."""
    of_map = cdist(features.transform(x), features.transform(z))
    return of_map, np.sqrt(features.kernel.squared_distance(x, z))


@pytest.mark.parametrize("m", [1, 2, 5, 10])
@pytest.mark.parametrize("log_epsilon", [-10, -2, 2, 10, 20])
@pytest.mark.parametrize("share", [0.2, 1e-3])
def test_tolerance_holds_for_all_pairs(m, log_epsilon, share):
    kernel, x = mixture_of(m, 2.0**log_epsilon), cloud(m, 40)
    tolerance = share * np.sqrt(kernel.squared_distance(x, x).max())
    features = CholeskyMap().fit(kernel, tolerance=tolerance, points=x)
    assert 0 < features.error_bound <= tolerance or features.n_features == len(x) - 1
    found, d = distances(features, x, x)
    assert np.abs(found - d).max() <= features.error_bound + 1e-7 * d.max()
    assert (found <= d * (1 + 1e-7) + 1e-9 * d.max()).all()
    assert 2 * features.residual(x).max() <= tolerance * (1 + 1e-6) + 1e-6 * d.max()


def test_residual_is_what_the_pivots_miss():
    kernel = mixture_of(1, 0.5)
    features = CholeskyMap().fit(kernel, tolerance=0.05, points=cloud(1, 60))
    r = np.arange(-12, 12, 0.05)[:, None]
    o, *pivots = kernel.transition_density(np.vstack([features.origin, features.pivots]), r)
    x = 2 * cloud(1, 30, seed=8)
    p = kernel.transition_density(x, r) - o
    basis = np.array(pivots) - o
    missed = p - p @ np.linalg.pinv(basis) @ basis
    want = np.sqrt(0.05 * np.square(missed).sum(axis=1))
    np.testing.assert_allclose(features.residual(x), want, atol=1e-6 * want.max())
    assert want.max() > 0.05  # outside the points


def test_points_that_the_candidates_miss_are_certified_too(caplog):
    rng = np.random.default_rng(10)
    x = 0.3 * rng.standard_normal((12_000, 2))
    strays = rng.permutation(len(x))[:12]  # a third of the points are candidates
    x[strays] = 6 + 0.7 * rng.standard_normal((12, 2))
    kernel = MixtureKernel([0.9, 0.1], [[0.0, 0.0], [6.0, 6.0]], [0.1, 0.5], 0.3)
    with caplog.at_level(logging.INFO, "heatsketch"):
        features = CholeskyMap().fit(kernel, tolerance=0.05, points=x)
    assert "exceed" in caplog.text  # else the candidates have missed none
    assert 2 * features.residual(x).max() <= features.error_bound * (1 + 1e-6) <= 0.05 * (1 + 1e-6)
    z = x[np.append(strays, range(100))]
    found, d = distances(features, z, z)
    assert np.abs(found - d).max() <= features.error_bound + 1e-9


@pytest.mark.parametrize(("most", "tolerance"), [(3, 1e-3), (1000, 1e-9)])
def test_tolerance_out_of_reach_is_told_and_the_bound_holds(most, tolerance):
    kernel, x = mixture_of(2, 0.5), cloud(2, 60) / 3
    with pytest.warns(ConvergenceWarning, match=f"tolerance={tolerance:.3g} is not .* larger"):
        features = CholeskyMap(most).fit(kernel, tolerance=tolerance, points=x)
    assert features.n_features <= most
    assert features.error_bound > tolerance
    found, d = distances(features, x, x)
    assert np.abs(found - d).max() <= features.error_bound + 1e-7 * d.max()
    assert features.error_bound <= 2.1 * features.residual(x).max() + 1e-6 * d.max()


@pytest.mark.parametrize("n", [1, 7])
def test_points_that_coincide_have_no_coordinates(n):
    features = fitted(np.full((n, 2), 0.5))
    assert features.n_features == 0
    found, d = distances(features, cloud(2), features.origin)
    np.testing.assert_array_equal(found, 0)
    np.testing.assert_allclose(features.residual(cloud(2)), d[:, 0], rtol=1e-12)


def test_coordinates_are_principal_axes_of_the_points():
    y = fitted().transform(cloud(2, 60))
    products = y.T @ y
    variances = np.diag(products)
    assert np.abs(y.mean(axis=0)).max() <= 1e-13
    assert (np.diff(variances) <= 1e-13 * variances[0]).all()
    assert np.abs(products - np.diag(variances)).max() <= 1e-12 * variances[0]


def test_coordinates_of_a_point_do_not_depend_on_the_others():
    features, x = fitted(), cloud(2, 2500, seed=11)
    y = features.transform(x)
    some = [0, 3, 1023, 1024, 2499]
    alone = np.vstack([features.transform(x[[i]]) for i in some])
    np.testing.assert_allclose(alone, y[some], atol=1e-10 * np.abs(y).max())
    np.testing.assert_allclose(features.transform(x[::-1]), y[::-1], atol=1e-10 * np.abs(y).max())


def test_map_can_be_fitted_again():
    second, x = mixture_of(2, 3.0), cloud(2, 60)
    again, fresh = (features.fit(second, points=2 * x) for features in (fitted(), CholeskyMap()))
    assert again.error_bound == fresh.error_bound
    np.testing.assert_array_equal(again.transform(x), fresh.transform(x))


@pytest.mark.statistical
def test_points_are_drawn_from_the_stationary_density():
    """False alarms 1e-6 (Dvoretzky-Kiefer-Wolfowitz); sees noise missing or doubled for certain."""
    kernel = MixtureKernel([0.7, 0.3], [[0.0], [3.0]], [0.3, 0.1], 1.0)
    n = 20_000
    x = np.sort(draw(kernel, n, 0)[:, 0])
    below = 0.7 * norm.cdf(x, 0, math.sqrt(0.8)) + 0.3 * norm.cdf(x, 3, math.sqrt(0.6))
    assert np.abs(below - np.arange(0.5, n) / n).max() <= math.sqrt(math.log(2e6) / (2 * n)) + 1 / n
    np.testing.assert_array_equal(np.sort(draw(kernel, n, 0)[:, 0]), x)


def test_points_may_be_left_to_the_map():
    given, features = fitted(draw(mixture_of(2, 0.5), 2000, 0)), fitted(None)
    np.testing.assert_array_equal(features.transform(cloud(2)), given.transform(cloud(2)))


def test_bad_input_is_told_what_to_do():
    with pytest.raises(ValueError, match=r"tolerance=.*pass a number > 0"):
        fitted(tolerance=0.0)
    with pytest.raises(NotFittedError, match="not fitted; call fit first"):
        CholeskyMap().transform(cloud(2))
