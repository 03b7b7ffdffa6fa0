"""The metric of sketches of even circles and tori: its limit, and the law of its error."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import heatsketch as hs
from papers.output import random
from papers.sketching.induced_metric import (
    expected_spread,
    limit_metric,
    limit_rows,
    metric_errors,
    metric_example,
    run_induced_metric,
    whitened_gradients,
)
from papers.sketching.periodic import (
    Circles,
    covariance,
    derivative,
    grid_lags,
    kernel,
    realizations,
)

CIRCLE = Circles("circle", (64,), (1.0,), 0.25, 8)
TORUS = Circles("torus", (16, 36), (1.0, 2.0), 0.5, 8)
SPACES = pytest.mark.parametrize("circles", [CIRCLE, TORUS], ids=lambda circles: circles.name)


@SPACES
def test_covariance_is_that_of_the_matrix_and_its_derivatives_those_of_the_grid(circles):
    steps = np.eye(circles.dimension, dtype=int)
    filter = hs.Power(2 * circles.power)
    identity = np.sqrt(circles.size) * np.eye(circles.size)
    of_matrix = circles.size * hs.sketch(kernel(circles), filter, G=identity, deflate=False)[0]
    C = covariance(circles, grid_lags(circles))
    assert_allclose(C, of_matrix, atol=1e-7)
    for order in [*steps, *(2 * steps), steps.sum(axis=0)]:
        want = covariance(circles, grid_lags(circles), order)
        assert_allclose(derivative(C, circles, *order), want, atol=1e-8)


@SPACES
def test_the_limit_is_that_of_the_matrix_and_the_squared_speed_of_the_distance(circles):
    for row in limit_rows([circles], [4, 8]):
        assert row.of_matrix == pytest.approx(row.closed, rel=2e-6)
        assert row.of_distance == pytest.approx(row.of_matrix, rel=1e-9)


@SPACES
def test_the_sketch_by_all_unit_vectors_has_the_limit_metric_itself(circles):
    identity = np.sqrt(circles.size) * np.eye(circles.size)
    F = hs.sketch(kernel(circles), hs.Power(circles.power), G=identity, deflate=False)
    gradients = whitened_gradients(circles.size * F, circles)
    assert_allclose(metric_errors(gradients, circles.size), 0, atol=1e-6)


@SPACES
def test_errors_have_the_mean_square_of_a_wishart_matrix(circles):
    """Means of 2,000 draws, within 6 of their standard errors: a false alarm in 5e8."""
    k, draws = 4, 2000
    gradients = whitened_gradients(realizations(circles, k * draws, random(1)), circles)
    E = metric_errors(gradients, k)
    d = circles.dimension
    squares = np.square(E).sum(axis=(0, 1))
    for own, want in (
        (squares.mean(axis=0), d * (d + 1) / k),
        (squares.mean(axis=0) - np.square(E.mean(axis=2)).sum(axis=(0, 1)), None),
    ):
        want = expected_spread(circles, k) ** 2 if want is None else want
        error = own.std() / np.sqrt(draws)
        assert error < 0.05 * want
        assert abs(own.mean() - want) <= 6 * error


def test_the_error_falls_like_the_root_of_k_and_a_diffusion_map_is_blind_to_the_short_circle():
    rows = metric_example(0, spaces=(TORUS,), sizes=(2, 4, 64), columns=1024)
    assert all(row.expected == pytest.approx(np.sqrt(6 / row.k)) for row in rows)
    # 1,024 columns of 576 points: about 2 % of standard error at each k, 8 of them.
    assert all(row.error == pytest.approx(row.expected, rel=0.16) for row in rows)
    assert min(row.diffusion_map for row in rows[:2]) > 1  # ∂/∂x of all four coordinates is 0
    assert rows[2].diffusion_map < 0.01
    assert rows[0].first > rows[1].first > rows[2].first
    assert rows[0].second > rows[1].second > rows[2].second


def test_the_limit_of_a_large_time_forgets_the_short_circle():
    short, long = limit_metric(TORUS._replace(power=60))
    assert short < 1e-3 * long


def test_tables_and_picture_are_written(tmp_path):
    pytest.importorskip("matplotlib")
    small = TORUS._replace(shape=(8, 12))
    found = run_induced_metric(tmp_path, spaces=(CIRCLE, small), sizes=(2, 8), columns=16)
    assert len(found) == 4
    assert {path.name for path in tmp_path.iterdir()} == {
        "induced-metric.csv",
        "induced-metric-limit.csv",
        "induced-metric.png",
    }
