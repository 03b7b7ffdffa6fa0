"""The linear layout: bases, descents, annealing; gradients by differences, maps that are known."""

import math
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import check_grad
from scipy.spatial.distance import pdist

from heatsketch.layout import linear
from heatsketch.layout.linear import (
    OBJECTIVES,
    LinearLayout,
    half_whitening_axes,
    log_distortion,
    outside_fraction,
    stress,
)
from problems.clouds import cloud

SCALES = np.array([3, 2.5, 2, 1.5, 1, 0.5])
every_loss = pytest.mark.parametrize(
    ("loss", "parameters"),
    [(stress, {}), (outside_fraction, {"factor": 2.0}), (log_distortion, {"beta": 4})],
    ids=["stress", "outside", "log L"],
)


def ellipsoid(n=30, scales=SCALES, seed=0):
    return cloud(n, len(scales), seed) * scales


def stated(F, max_rank=256):
    """Return the layout that should keep all distances between the rows."""
    return LinearLayout(F, half_whitening_axes(F, max_rank), np.triu_indices(len(F), 1))


def express(layout, F, W):
    """Write a linear map (r, k) in the coordinates, (R, k), up to what lies outside their span."""
    axes = half_whitening_axes(F, 256)
    return layout.deviations[:, None] * ((axes * layout.deviations).T @ W)


def annealed(layout, Q, k, max_iter):
    return layout.annealed(Q, k, max_iter, OBJECTIVES["most"].penalties)


def random_map(shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape)


# Bases


@pytest.mark.parametrize("wide", [1, 512], ids=["Gram matrix", "factors"])
@pytest.mark.parametrize("shape", [(30, 6), (6, 30), (30, 30)], ids=str)
@pytest.mark.parametrize("max_rank", [3, 256])
def test_coordinates_times_weights_are_principal_components(shape, max_rank, wide, limits):
    limits(gram_columns=wide)
    n, r = shape
    F = ellipsoid(n, 0.8 ** np.arange(r)) + 5.0
    layout = stated(F, max_rank)
    U, sizes, _ = np.linalg.svd(F - F.mean(axis=0), full_matrices=False)
    scores, R = U * sizes, min(max_rank, n - 1, r)
    Z, deviations = layout.Z, layout.deviations
    assert_allclose(deviations**2, sizes[:R] / math.sqrt(n), rtol=1e-5)
    assert_allclose(np.abs(Z * deviations), np.abs(scores[:, :R]), rtol=1e-5, atol=1e-6)
    assert_allclose(Z.std(axis=0), deviations, rtol=1e-5)  # in coordinates of scale √σ
    assert_allclose(pdist(layout.images(layout.leading[:, :2])), pdist(scores[:, :2]), rtol=1e-5)


def test_directions_that_are_rounding_do_not_count():
    F = np.hstack([ellipsoid(), 1e-9 * cloud(30, 3, seed=2)])
    assert half_whitening_axes(F, 256).shape[1] == 6


def test_a_map_of_the_coordinates_gives_the_images_of_a_map_of_the_rows():
    F, W = ellipsoid(), random_map((6, 2))
    layout = stated(F)
    expected = np.log(pdist(F @ W) / pdist(F))
    assert_allclose(layout.log_ratios(express(layout, F, W)), expected, atol=1e-12)


# Descent


@every_loss
@pytest.mark.parametrize("kept", [None, 2])
def test_the_objective_has_the_gradient_that_differences_give(loss, parameters, kept, monkeypatch):
    layout = stated(ellipsoid())
    seen = {}

    def look(function, start, **options):
        seen["error"] = check_grad(lambda q: function(q)[0], lambda q: function(q)[1], start)
        seen["size"] = np.linalg.norm(function(start)[1])
        seen["value"] = function(start)[0]
        return minimize(function, start, **options)

    minimize = linear.minimize
    monkeypatch.setattr(linear, "minimize", look)
    Q = random_map((6, 3))
    penalty = partial(layout.spare_variance, k=kept, weight=0.3) if kept else None
    layout.descend(Q, loss, 1, penalty=penalty, **parameters)
    assert seen["error"] < 1e-5 * seen["size"]
    variances = layout.images(Q).var(axis=0)
    spare = 0.3 * variances[2:].sum() / variances.sum() if kept else 0.0
    value = loss(layout.log_ratios(Q), **parameters)[0]
    assert seen["value"] == pytest.approx(value + spare)


@every_loss
def test_descent_lowers_the_loss_and_keeps_a_record(loss, parameters):
    layout = stated(ellipsoid())
    Q = random_map((6, 2))
    lower = layout.descend(Q, loss, 50, **parameters)
    before, after = (loss(layout.log_ratios(at), **parameters)[0] for at in (Q, lower))
    assert np.linalg.norm(lower) == pytest.approx(1)
    assert after < 0.8 * before
    (record,) = layout.pairs.history
    assert record["pairs"] == 30 * 29 // 2
    assert record["objective"] == pytest.approx(after, rel=1e-9)
    assert 1 <= record["iterations"] <= 50
    assert record.items() >= {"loss": loss.__name__, **parameters}.items()


def test_a_minimum_is_left_as_it_is():
    F = ellipsoid(scales=SCALES[:2])
    layout = stated(F)
    Q = layout.leading[:, :2]  # all distances are kept
    after = np.abs(layout.descend(Q, stress, 50))
    assert_allclose(after * Q[0, 0] / after[0, 0], Q, rtol=0, atol=1e-4)


def test_points_that_coincide_are_moved_apart():
    # The grid seen along an axis: without a push the gradient keeps points of a line together.
    grid = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    layout = stated(grid)
    start = express(layout, grid, np.array([[1.0], [0.0]]))
    assert layout.log_ratios(start).min() < -20
    after = layout.descend(start, log_distortion, 60, beta=16.0)
    assert layout.log_ratios(after).min() > -4
    # The push is always the same.
    assert_array_equal(layout.descend(start, log_distortion, 60, beta=16.0), after)


# Annealing


def test_columns_of_a_map_are_uncorrelated_and_ordered_by_variance():
    layout = stated(ellipsoid())
    for found in (
        layout.descend(random_map((6, 3)), stress, 5),
        annealed(layout, random_map((6, 5)), 3, 5),
    ):
        Y = layout.images(found)
        covariance = Y.T @ Y
        assert (np.diff(np.diag(covariance)) < 0).all()
        assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-10)


@pytest.mark.parametrize("width", [3, 5])
@pytest.mark.parametrize("seed", range(2))
def test_a_map_is_annealed_out_of_the_dimensions_it_has_to_spare(seed, width):
    # Points of the plane in R^5: the way to keep all distances is in reach of any start.
    F = cloud(30, 2, seed) @ cloud(2, 5, seed=9) + 1e-3 * cloud(30, 5, seed=8)
    layout = stated(F)
    Q = annealed(layout, random_map((5, width), seed), 2, 30)
    assert Q.shape == (5, 2)
    assert np.ptp(layout.log_ratios(Q)) < 0.2


def figure_eight(n=60):
    u = 2 * np.pi * np.arange(n) / n
    return np.c_[1.5 * np.cos(u), 1.4 * np.sin(2 * u), 1.3 * np.sin(u), 0.5 * np.cos(3 * u)]


@pytest.mark.parametrize(
    "F", [figure_eight(), ellipsoid(60, 0.8 ** np.arange(10))], ids=["loop", "cloud"]
)
def test_with_dimensions_to_spare_the_start_hardly_counts(F):
    layout = stated(F)
    count = len(layout.deviations)

    def least_stress(width, seed):
        Q = layout.deviations[:, None] * random_map((count, width), seed)
        return stress(layout.log_ratios(annealed(layout, Q, 2, 100)))[0]

    plane, spare = ([least_stress(width, s) for s in range(3)] for width in (2, count))
    assert max(plane) > 1.1 * min(plane)
    assert max(spare) < 1.01 * min(spare)
    assert max(spare) < 1.01 * min(plane)
