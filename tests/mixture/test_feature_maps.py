"""Coordinates of the mixture's diffusion: projections on pivots, and their certificates."""

import logging
import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import norm, ortho_group
from sklearn.exceptions import NotFittedError

from heatsketch import ConvergenceWarning
from heatsketch.mixture import CholeskyMap, HermiteMap, MixtureKernel, TaylorMap, TensorSketch
from heatsketch.mixture.cholesky_map import draw
from problems.mixtures import agree, cloud, mixture_of
from problems.slopes import differences


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


@pytest.mark.parametrize("kind", [CholeskyMap, TaylorMap, HermiteMap, TensorSketch])
def test_map_can_be_fitted_again(kind):
    options = {"random_state": 0} if kind is TensorSketch else {}
    first, second = (MixtureKernel([0.4, 0.6], [[0.0], [d]], [1.0, 1.0], d) for d in (1.0, 3.0))
    x, again = cloud(1, 60), kind(**options).fit(first)
    again.transform(x)  # computes what a map keeps
    again.fit(second, points=2 * x)
    fresh = kind(**options).fit(second, points=2 * x)
    np.testing.assert_array_equal(again.transform(x), fresh.transform(x))
    for name in ("gradient", "residual") if kind is not TensorSketch else ():
        np.testing.assert_array_equal(getattr(again, name)(x), getattr(fresh, name)(x))


@pytest.mark.parametrize("m", [1, 2, 5, 10])
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 2.0**10, 2.0**20])
@pytest.mark.parametrize(("n", "time"), [(3, 1), (1, 3)])
def test_gradients_are_slopes_near_and_far(m, epsilon, n, time):
    """The largest slope near the mixture is the unit. Far away coordinates lose digits."""
    kernel, points = mixture_of(m, epsilon, n, time), cloud(m, 60)
    tolerance = 1e-3 * np.sqrt(kernel.squared_distance(points, points).max())
    features = CholeskyMap().fit(kernel, tolerance, points)
    near = features.gradient(cloud(m))
    for times, error in ((1, 1e-7), (5, 1e-7), (20, 1e-5)):
        x = times * cloud(m, seed=9)
        found = features.gradient(x)
        want = differences(features.transform, x, 0.02 * np.sqrt(epsilon))
        assert found.shape == (8, features.n_features, m)
        assert np.abs(found - want).max() <= error * np.abs(near).max()


def test_gradients_of_distances_tend_to_those_in_closed_form():
    kernel, x = mixture_of(2, 2.0), cloud(2, 40)
    features = CholeskyMap().fit(kernel, 1e-5 * np.sqrt(kernel.squared_distance(x, x).max()), x)
    off = features.transform(x) - features.transform(x[::-1])
    d = np.linalg.norm(off, axis=1)
    found = np.einsum("nr,nra->na", off / d[:, None], features.gradient(x))
    want = kernel.gradient(x, x[::-1])
    np.testing.assert_allclose(found, want, atol=1e-4 * np.abs(want).max())


def test_gradients_turn_with_the_space():
    """The coordinates stay, so that each of their gradients is the old one, turned."""
    kernel, x = mixture_of(3, 2.0), cloud(3, 30)
    turn = ortho_group.rvs(3, random_state=0)
    covariances = turn @ kernel.covariances @ turn.T
    turned = MixtureKernel(kernel.weights, kernel.means @ turn.T, covariances, kernel.epsilon)
    now = CholeskyMap().fit(kernel, 1e-3, x)
    later = CholeskyMap().fit(turned, 1e-3, x @ turn.T)
    agree(later.gradient(x @ turn.T), now.gradient(x) @ turn.T, 1e-8)


def test_gradients_of_no_coordinates_are_none():
    features = CholeskyMap().fit(mixture_of(2), points=np.ones((3, 2)))
    assert features.gradient(cloud(2)).shape == (8, 0, 2)


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
