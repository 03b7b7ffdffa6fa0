"""Bases, descents and annealing: gradients by differences, and maps that are known."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import check_grad
from scipy.spatial.distance import pdist
from threadpoolctl import threadpool_limits

from heatsketch.isometry import objective as module
from heatsketch.isometry.losses import LogDistortion, OutsideFraction, stress
from heatsketch.isometry.objective import Basis, PairObjective
from problems.clouds import cloud


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread():
    """Products are small here: threads would take longer to wake than to work."""
    with threadpool_limits(1, "blas"):
        yield


SCALES = np.array([3, 2.5, 2, 1.5, 1, 0.5])


def ellipsoid(n=30, scales=SCALES, seed=0):
    return cloud(n, len(scales), seed) * scales


def stated(F, max_rank=256):
    """Return the problem of keeping all distances between the rows, and their basis."""
    basis = Basis.of(F, max_rank)
    pairs = np.triu_indices(len(F), 1)
    return PairObjective(basis.coordinates(F), pdist(F), pairs), basis


def express(basis, W):
    """Write a linear map (r, k) in a basis, (R, k), up to what lies outside its span."""
    return basis.weights[:, None] * ((basis.axes * basis.weights).T @ W)


def random_map(shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape)


# Bases


def principal(F):
    """Return scores, axes and standard deviations."""
    centred = F - F.mean(axis=0)
    U, scales, axes = np.linalg.svd(centred, full_matrices=False)
    return U * scales, axes, scales / math.sqrt(len(F))


@pytest.mark.parametrize("wide", [1, 512], ids=["Gram matrix", "factors"])
@pytest.mark.parametrize(
    "shape", [(30, 6), (6, 30), (30, 30)], ids=lambda v: getattr(v, "__name__", str(v))
)
@pytest.mark.parametrize("max_rank", [3, 256])
def test_coordinates_times_weights_are_principal_components(shape, max_rank, wide, monkeypatch):
    monkeypatch.setattr(module, "_WIDE", wide)
    n, r = shape
    F = ellipsoid(n, 0.8 ** np.arange(r)) + 5.0
    basis, (scores, _, deviations) = Basis.of(F, max_rank), principal(F)
    R = min(max_rank, n - 1, r)
    assert basis.rank == R
    assert_allclose(basis.weights**2, deviations[:R], rtol=1e-5)
    Z = basis.coordinates(F)
    assert_allclose(np.abs(Z * basis.weights), np.abs(scores[:, :R]), rtol=1e-5, atol=1e-6)
    assert_allclose(Z.std(axis=0), basis.weights, rtol=1e-5)  # in coordinates of scale √σ
    lead = basis.leading(2)
    assert_allclose(pdist(Z @ lead), pdist(scores[:, :2]), rtol=1e-5)


def test_directions_that_are_rounding_do_not_count():
    F = np.hstack([ellipsoid(), 1e-9 * cloud(30, 3, seed=2)])
    assert Basis.of(F, 256).rank == 6


@pytest.mark.parametrize("rank", [3, 6])
def test_a_map_is_written_in_a_basis_as_far_as_that_goes(rank):
    F, W = ellipsoid(), random_map((6, 2))
    basis, axes = Basis.of(F, rank), principal(F)[1][:rank]
    assert_allclose(basis.axes @ express(basis, W), axes.T @ axes @ W, atol=1e-12)


def test_a_basis_is_cut_to_its_first_directions():
    F = ellipsoid()
    some, cut = Basis.of(F, 3), Basis.of(F, 6).cut(3)
    assert_allclose(cut.axes, some.axes, rtol=1e-12)
    assert_allclose(cut.weights, some.weights, rtol=1e-12)


# The pairs of a problem


def test_pairs_that_join_are_kept_as_those_before_them():
    F, W = ellipsoid(), random_map((6, 2))
    (i, j), distances = np.triu_indices(len(F), 1), pdist(F)
    basis = Basis.of(F, 6)
    problem = PairObjective(basis.coordinates(F), distances[:9], (i[:9], j[:9]))
    problem.add(i[9:], j[9:], distances[9:])
    assert problem.count == len(i)
    expected = np.log(pdist(F @ W) / distances)
    assert_allclose(problem.log_ratios(express(basis, W)), expected, atol=1e-5)


def test_a_map_of_few_rows_maps_the_first_coordinates():
    problem, _ = stated(ellipsoid())
    Q = random_map((6, 2))
    Q[3:] = 0.0
    assert_allclose(problem.log_ratios(Q[:3]), problem.log_ratios(Q), atol=1e-6)
    lower = problem.descend(Q[:3], stress, 50)
    assert lower.shape == (3, 2)
    assert stress(problem.log_ratios(lower))[0] < stress(problem.log_ratios(Q))[0]


@given(st.integers(0, 10**6), st.integers(1, 3))
def test_all_pairs_cost_what_they_cost_as_a_list(seed, k):
    rng = np.random.default_rng(seed)
    Z, Q, w = cloud(12, 5, seed=seed), rng.standard_normal((5, k)), rng.random(66)
    distances = pdist(Z)
    together, listed = (PairObjective(Z, distances, p) for p in (None, np.triu_indices(12, 1)))
    assert together.count == listed.count == 66
    (squares, pull), (expected, pull_expected) = (o.squared_ratios(Q) for o in (together, listed))
    # In float32 a length is known to 1e-7 of the longest.
    assert_allclose(
        np.sqrt(squares), np.sqrt(expected), rtol=1e-4, atol=1e-6 * squares.max() ** 0.5
    )
    slope = pull_expected(w)
    assert_allclose(pull(w), slope, atol=1e-5 * np.abs(slope).max())


def test_log_ratios_are_those_of_distances():
    F, W = ellipsoid(), random_map((6, 2))
    problem, basis = stated(F)
    expected = np.log(pdist(F @ W) / pdist(F))
    assert_allclose(problem.log_ratios(express(basis, W)), expected, atol=1e-5)


# Descent


@pytest.mark.parametrize(
    "loss",
    [stress, OutsideFraction(2.0), LogDistortion(4)],
    ids=lambda v: getattr(v, "__name__", str(v)),
)
@pytest.mark.parametrize("kept", [None, 2])
def test_the_objective_has_the_gradient_that_differences_give(loss, kept, monkeypatch):
    problem, _ = stated(ellipsoid())
    seen = {}

    def look(objective, start, **options):
        gradient = objective(start)[1]
        seen["error"] = check_grad(lambda q: objective(q)[0], lambda q: objective(q)[1], start)
        seen["size"] = np.linalg.norm(gradient)
        return minimize(objective, start, **options)

    minimize = module.minimize
    monkeypatch.setattr(module, "minimize", look)
    problem.descend(random_map((6, 3)), loss, 1, kept, 0.3 if kept else 0.0)
    assert seen["error"] < 1e-5 * seen["size"]


@pytest.mark.parametrize(
    "loss",
    [stress, OutsideFraction(2.0), LogDistortion(16)],
    ids=lambda v: getattr(v, "__name__", str(v)),
)
def test_descent_lowers_the_loss_and_keeps_a_record(loss):
    problem, _ = stated(ellipsoid())
    Q = random_map((6, 2))
    lower = problem.descend(Q, loss, 50)
    before, after = (loss(problem.log_ratios(at))[0] for at in (Q, lower))
    assert lower.shape == (6, 2)
    assert np.linalg.norm(lower) == pytest.approx(1)
    assert after < 0.8 * before
    (record,) = problem.history
    assert record["pairs"] == 30 * 29 // 2
    assert record["objective"] == pytest.approx(after, rel=1e-3)
    assert 1 <= record["iterations"] <= 50
    assert record["loss"] == ("stress" if loss is stress else str(loss))


def test_a_minimum_is_left_as_it_is():
    problem, _ = stated(ellipsoid(scales=SCALES[:2]))
    Q = np.diag(Basis.of(ellipsoid(scales=SCALES[:2]), 2).weights)  # all distances are kept
    after = problem.descend(Q, stress, 50)
    assert_allclose(after * Q[0, 0] / after[0, 0], Q, rtol=0, atol=1e-4)


def test_points_that_coincide_are_moved_apart():
    # The grid seen along an axis: without a push the gradient keeps points of a line together.
    grid = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    problem, basis = stated(grid)
    start = express(basis, np.array([[1.0], [0.0]]))
    assert problem.log_ratios(start).min() < -20
    after = problem.descend(start, LogDistortion(16), 60)
    assert problem.log_ratios(after).min() > -4
    again = problem.descend(start, LogDistortion(16), 60)
    assert_array_equal(again, after)  # the push is always the same


# Annealing


@given(st.integers(0, 10**6), st.integers(1, 5))
def test_the_fraction_of_spare_dimensions_has_this_gradient(seed, kept):
    Q, F = random_map((6, 5), seed), ellipsoid()
    variances = F.T @ F
    share, slope = module._spare_fraction(Q, variances, kept)
    of_columns = ((F @ Q) ** 2).sum(axis=0)
    assert share == pytest.approx(of_columns[kept:].sum() / of_columns.sum(), rel=1e-12)
    error = check_grad(
        lambda q: module._spare_fraction(q.reshape(6, 5), variances, kept)[0],
        lambda q: module._spare_fraction(q.reshape(6, 5), variances, kept)[1].ravel(),
        Q.ravel(),
    )
    assert error < 1e-5 * (1 + np.linalg.norm(slope))


def test_principal_axes_change_no_distance():
    F = ellipsoid()
    problem, basis = stated(F)
    Q, Z = random_map((6, 3)), basis.coordinates(F)
    Y, turned = Z @ Q, Z @ problem.principal(Q)
    assert_allclose(pdist(turned), pdist(Y), rtol=1e-12)
    covariance = turned.T @ turned
    assert (np.diff(np.diag(covariance)) < 0).all()
    assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-10)


@pytest.mark.parametrize("width", [3, 5])
@pytest.mark.parametrize("seed", range(2))
def test_a_map_is_annealed_out_of_the_dimensions_it_has_to_spare(seed, width):
    # Points of the plane in R^5: the way to keep all distances is in reach of any start.
    F = cloud(30, 2, seed) @ cloud(2, 5, seed=9) + 1e-3 * cloud(30, 5, seed=8)
    problem, _ = stated(F)
    annealed = problem.annealed(random_map((5, width), seed), 2)
    assert annealed.shape == (5, 2)
    assert np.ptp(problem.log_ratios(annealed)) < 0.2


def test_a_flat_arrangement_stays_as_it_is():
    F = np.hstack([ellipsoid(60, [3.0, 1.0]), 1e-6 * cloud(60, 4, seed=3)])
    problem, basis = stated(F)
    annealed = problem.annealed(basis.leading(6), 2)
    assert np.ptp(problem.log_ratios(annealed)) < 1e-3


def test_without_spare_dimensions_annealing_only_rotates():
    F = ellipsoid()
    problem, basis = stated(F)
    Q, Z = random_map((6, 2)), basis.coordinates(F)
    assert_allclose(pdist(Z @ problem.annealed(Q, 2)), pdist(Z @ Q), rtol=1e-12)
    assert problem.history == []


def figure_eight(n=60):
    u = 2 * np.pi * np.arange(n) / n
    return np.c_[1.5 * np.cos(u), 1.4 * np.sin(2 * u), 1.3 * np.sin(u), 0.5 * np.cos(3 * u)]


@pytest.mark.parametrize(
    "F", [figure_eight(), ellipsoid(60, 0.8 ** np.arange(10))], ids=["loop", "cloud"]
)
def test_with_dimensions_to_spare_the_start_hardly_counts(F):
    problem, basis = stated(F)

    def least_stress(width, seed):
        Q = basis.weights[:, None] * random_map((basis.rank, width), seed)
        Q = problem.descend(problem.annealed(Q, 2), stress, 100)
        return stress(problem.log_ratios(Q))[0]

    plane, spare = ([least_stress(width, s) for s in range(3)] for width in (2, basis.rank))
    assert max(plane) > 1.1 * min(plane)
    assert max(spare) < 1.01 * min(spare)
    assert max(spare) < 1.01 * min(plane)
