"""The learned projection: loss and gradient, choice of pairs, descent, and the estimator."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.special import logsumexp, softmax
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

import heatsketch as hs
from heatsketch import NearIsometricProjection
from heatsketch.estimators import near_isometric as estimator_module
from heatsketch.isometry import descent, learn, loss, pairs
from heatsketch.isometry.loss import LogDistortion
from heatsketch.isometry.pairs import PairList
from heatsketch.metrics import distortions as metrics
from heatsketch.metrics import row_distortion
from problems.checks import estimator_checks
from problems.clouds import even_circle, on_torus
from problems.spectra import log_L_of_first_pair

seeds = st.integers(0, 10**6)
BETAS = [2**j for j in range(1, 11)]
TAU = 2 * np.pi


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread():
    """Products are small here: threads would take longer to wake than to work."""
    with threadpool_limits(1, "blas"):
        yield


# The loss


def every_pair(n):
    return np.triu_indices(n, 1)


def some_pairs(n, share, rng):
    """Part of the pairs, ordered by their first points."""
    i, j = every_pair(n)
    kept = rng.uniform(size=len(i)) < share
    kept[0] = True
    return i[kept], j[kept]


def listed(n, i, j, squares):
    starts = np.searchsorted(i, np.arange(n + 1))
    return LogDistortion(n, squares, starts, j.astype(np.int32))


def direct(Y, i, j, squares, beta):
    """J_β and its gradient (n, k), by the formula."""
    difference = Y[i] - Y[j]
    square = (difference**2).sum(axis=1)
    ell = (np.log(square) - np.log(squares)) / 2
    value = (logsumexp(beta * ell) + logsumexp(-beta * ell) - 2 * np.log(len(i))) / beta
    weight = (softmax(beta * ell) - softmax(-beta * ell)) / square
    slope = np.zeros_like(Y)
    np.add.at(slope, i, weight[:, None] * difference)
    np.add.at(slope, j, -weight[:, None] * difference)
    return value, slope


@pytest.fixture(params=[False, True], ids=["one part", "eight parts"])
def in_parts(request, monkeypatch):
    monkeypatch.setattr(loss, "_MIN_PARALLEL_PAIRS", 0 if request.param else 10**9)


@pytest.mark.parametrize("share", [1.0, 0.4], ids=["all pairs", "listed pairs"])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.usefixtures("in_parts")
def test_value_and_gradient_are_those_of_the_formula(beta, k, share):
    rng = np.random.default_rng(k)
    n = 5 if k == 3 else 19  # five points: some of the eight parts have none
    i, j = every_pair(n) if share == 1 else some_pairs(n, share, rng)
    Y, squares = rng.normal(size=(n, k)), rng.uniform(0.1, 10, len(i))
    J = LogDistortion(n, squares) if share == 1 else listed(n, i, j, squares)
    value, slope = J(Y.T.copy(), beta)
    want, want_slope = direct(Y, i, j, squares, beta)
    assert value == pytest.approx(want, rel=1e-11)
    assert_allclose(slope.T, want_slope, rtol=1e-10, atol=1e-10 * np.abs(want_slope).max())
    ratio = np.linalg.norm(Y[i] - Y[j], axis=1) / np.sqrt(squares)
    assert J.log_L(Y.T.copy()) == pytest.approx(np.log(ratio.max() / ratio.min()), rel=1e-12)
    assert J.n_pairs == len(i)


@pytest.mark.parametrize("beta", [2, 16, 1024])
def test_gradient_is_the_slope_of_the_value(beta):
    rng = np.random.default_rng(0)
    Y, step = rng.normal(size=(2, 7)), 1e-5 / beta
    J = LogDistortion(7, rng.uniform(0.5, 2, 21))
    slope = np.zeros_like(Y)
    for at in np.ndindex(Y.shape):
        for h in (step, -step):
            moved = Y.copy()
            moved[at] += h
            slope[at] += J(moved, beta)[0] / (2 * h)
    assert_allclose(J(Y, beta)[1], slope, rtol=1e-5, atol=1e-6)


@given(seeds, st.integers(2, 12), st.integers(1, 4), st.sampled_from(BETAS))
def test_the_loss_is_log_L_from_below(seed, n, k, beta):
    rng = np.random.default_rng(seed)
    J, Y = LogDistortion(n, rng.uniform(0.01, 1, n * (n - 1) // 2)), rng.normal(size=(k, n))
    log_L, value = J.log_L(Y), J(Y, beta)[0]
    assert value <= log_L + 1e-12
    assert value >= log_L - 2 * math.log(J.n_pairs) / beta - 1e-12


@given(seeds, st.integers(1, 4), st.sampled_from(BETAS), st.floats(1e-8, 1e8), st.floats(-9, 9))
def test_the_loss_sees_neither_scale_nor_rotation_nor_shift(seed, k, beta, scale, shift):
    rng = np.random.default_rng(seed)
    J, Y = LogDistortion(9, rng.uniform(0.1, 1, 36)), rng.normal(size=(k, 9))
    turn = np.linalg.qr(rng.normal(size=(k, k)))[0]
    value, slope = J(Y, beta)
    moved, moved_slope = J(scale * (turn @ Y + shift), beta)
    assert moved == pytest.approx(value, rel=1e-8, abs=1e-8)
    atol = 1e-5 * np.abs(slope).max()
    assert_allclose(scale * moved_slope, turn @ slope, rtol=1e-5, atol=atol)
    # So its gradient has no part along scale, shift or rotation.
    assert_allclose(slope.sum(axis=1), 0, atol=atol)
    assert_allclose(slope @ Y.T, (slope @ Y.T).T, atol=atol)
    assert np.trace(slope @ Y.T) == pytest.approx(0, abs=atol)


@pytest.mark.usefixtures("in_parts")
def test_a_list_of_all_pairs_is_all_pairs():
    rng = np.random.default_rng(0)
    i, j = every_pair(40)
    squares, Y = rng.uniform(0.1, 1, len(i)), rng.normal(size=(3, 40))
    whole, lists = LogDistortion(40, squares), listed(40, i, j, squares)
    assert lists.log_L(Y) == pytest.approx(whole.log_L(Y), rel=1e-14)
    for beta in (4, 256):
        (value, slope), (other, other_slope) = whole(Y, beta), lists(Y, beta)
        assert other == pytest.approx(value, rel=1e-13)
        assert_allclose(other_slope, slope, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("share", [1.0, 0.3], ids=["all pairs", "listed pairs"])
def test_any_number_of_threads_finds_the_same_bits(share, monkeypatch):
    monkeypatch.setattr(loss, "_MIN_PARALLEL_PAIRS", 0)
    rng = np.random.default_rng(0)
    i, j = some_pairs(200, share, rng)
    squares, Y = rng.uniform(0.1, 1, len(i)), rng.normal(size=(3, 200))
    J = LogDistortion(200, squares) if share == 1 else listed(200, i, j, squares)
    found = []
    for threads in (1, 2, 4):
        with threadpool_limits(threads, "blas"):
            found.append((*J(Y, 64), J.log_L(Y)))
    for other in found[1:]:
        assert other[0] == found[0][0]
        assert_array_equal(other[1], found[0][1])
        assert other[2] == found[0][2]


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.usefixtures("in_parts")
def test_forty_powers_of_ten_of_dilation_do_not_overflow(beta):
    rng = np.random.default_rng(0)
    i, j = every_pair(20)
    Y = rng.normal(size=(20, 2))
    dilation = 10 ** np.r_[-20, 20, rng.uniform(-20, 20, len(i) - 2)]
    squares = ((Y[i] - Y[j]) ** 2).sum(axis=1) / dilation**2
    J = LogDistortion(20, squares)
    value, slope = J(Y.T.copy(), beta)
    want, want_slope = direct(Y, i, j, squares, beta)
    assert value == pytest.approx(want, rel=1e-12)
    assert_allclose(slope.T, want_slope, rtol=1e-9, atol=1e-10 * np.abs(want_slope).max())
    assert J.log_L(Y.T.copy()) == pytest.approx(40 * math.log(10), rel=1e-12)


@pytest.mark.parametrize("beta", [4, 1024])
@pytest.mark.parametrize("gap", [1e-6, 1e-25, 1e-40])
def test_points_that_nearly_coincide_are_pushed_apart(gap, beta):
    rng = np.random.default_rng(0)
    Y, J = rng.normal(size=(2, 8)), LogDistortion(8, rng.uniform(0.5, 1, 28))
    direction = np.array([0.6, 0.8])
    Y[:, 0], Y[:, 1] = 0.0, gap * direction
    value, slope = J(Y, beta)
    assert np.isfinite(slope).all()
    assert value > -math.log(gap) / 2  # half of what it costs
    downhill = -(slope[:, 1] - slope[:, 0])
    assert downhill @ direction > 0.99 * np.linalg.norm(downhill)


@pytest.mark.parametrize("beta", BETAS)
def test_points_that_coincide_have_a_finite_loss(beta):
    rng = np.random.default_rng(0)
    Y, J = rng.normal(size=(2, 8)), LogDistortion(8, rng.uniform(0.5, 1, 28))
    Y[:, 3] = Y[:, 5]
    value, slope = J(Y, beta)
    assert math.isfinite(value)
    assert np.isfinite(slope).all()
    assert 50 < J.log_L(Y) < 100  # a dilation that counts as 1e-30


# Pairs


@given(seeds, st.integers(2, 30), st.integers(1, 4))
def test_a_list_holds_each_pair_once_whatever_the_order_of_adding(seed, n, k):
    rng = np.random.default_rng(seed)
    F, (i, j) = rng.normal(size=(n, k)), every_pair(n)
    codes = i * n + j
    sizes = rng.integers(1, len(codes) + 1, 4)
    batches = [np.sort(rng.choice(codes, size, replace=False)) for size in sizes]
    lists = [PairList(F), PairList(F)]
    for order, chosen in zip((batches, batches[::-1] + batches), lists, strict=True):
        for batch in order:
            chosen.add(batch)
    first, second = lists
    assert_array_equal(first.codes, np.unique(np.concatenate(batches)))
    assert_array_equal(second.codes, first.codes)
    assert_array_equal(second.squares, first.squares)
    i, j = np.divmod(first.codes, n)
    assert_allclose(first.squares, ((F[i] - F[j]) ** 2).sum(axis=1), rtol=1e-12)


def test_a_list_states_the_loss_over_its_pairs():
    rng = np.random.default_rng(0)
    F, Y, n = rng.normal(size=(25, 5)), rng.normal(size=(25, 2)), 25
    i, j = some_pairs(n, 0.3, rng)
    chosen = PairList(F)
    chosen.add((i * n + j)[::2])
    chosen.add((i * n + j)[1::2])
    want, want_slope = direct(Y, i, j, ((F[i] - F[j]) ** 2).sum(axis=1), 16)
    value, slope = chosen.loss()(Y.T.copy(), 16)
    assert value == pytest.approx(want, rel=1e-12)
    assert_allclose(slope.T, want_slope, rtol=1e-10, atol=1e-12)


def test_all_pairs_are_those_of_the_rows():
    rng = np.random.default_rng(0)
    F, W = rng.normal(size=(30, 4)), rng.normal(size=(4, 2))
    log_L = hs.distortion(F @ W, pdist(F)).log_L
    assert pairs.all_pairs(F).log_L((F @ W).T.copy()) == pytest.approx(log_L, rel=1e-12)


@pytest.mark.parametrize("n", [2, 10, 2000])
def test_random_pairs_are_distinct_and_none_is_favoured(n, monkeypatch):
    monkeypatch.setattr(pairs, "RANDOM_PAIRS", 4000)
    codes = pairs.random_codes(n, np.random.default_rng(0))
    i, j = np.divmod(codes, n)
    assert (np.diff(codes) > 0).all()
    assert (i < j).all()
    if n <= 10:  # each of 45 pairs is missed by 4,000 with probability e^-89
        assert len(codes) == n * (n - 1) // 2
    else:  # 2,000,000 pairs: 4 of the 4,000 are expected twice; the mean of i/n is 1/3 ± 0.0037
        assert len(codes) > 3960
        assert np.mean(i) / n == pytest.approx(1 / 3, abs=0.02)


def neighbour_codes(F, rows, k):
    D = cdist(F, F)
    np.fill_diagonal(D, np.inf)
    near = np.argsort(D, axis=1)[:, :k]
    low, high = (op(np.arange(len(F))[:, None], near) for op in (np.minimum, np.maximum))
    return np.unique((low * len(F) + high)[rows])


@pytest.mark.parametrize("n", [4, 60])
def test_near_and_active_pairs_are_the_nearest_neighbours(n):
    F = np.random.default_rng(0).normal(size=(n, 3))
    near = pairs.near_codes(F, np.random.default_rng(0))
    assert_array_equal(near, neighbour_codes(F, slice(None), min(10, n - 1)))
    active = pairs.active_codes(F)
    assert_array_equal(active, neighbour_codes(F, slice(None), min(5, n - 1)))


def test_near_pairs_are_looked_for_around_some_points(monkeypatch):
    monkeypatch.setattr(pairs, "NEAR_ROWS", 7)
    F = np.random.default_rng(0).normal(size=(60, 3))
    near = pairs.near_codes(F, np.random.default_rng(0))
    assert 35 <= len(near) <= 70
    assert np.isin(near, neighbour_codes(F, slice(None), 10)).all()


# Descent


def problem_of(F):
    basis = learn._Basis.of(F, 256)
    return basis.problem(F, pairs.all_pairs(F))


@pytest.mark.parametrize("rank", [3, 6])
def test_a_map_is_written_in_a_basis_as_far_as_that_goes(rank):
    rng = np.random.default_rng(0)
    F, W = rng.normal(size=(30, 6)) * [3, 2.5, 2, 1.5, 1, 0.5], rng.normal(size=(6, 2))
    basis = learn._Basis.of(F, rank)
    axes = np.linalg.svd(F - F.mean(axis=0), full_matrices=False)[2][:rank]
    assert_allclose(basis.axes @ basis.express(W), axes.T @ axes @ W, atol=1e-12)


def test_descent_lowers_the_loss_and_keeps_the_shape_of_the_map():
    problem = problem_of(np.random.default_rng(0).normal(size=(30, 6)))
    Q = np.random.default_rng(1).normal(size=(6, 2))
    lower = problem.descend(Q, 4, 50)
    assert lower.shape == (6, 2)
    assert problem.value(lower, 4) < 0.8 * problem.value(Q, 4)
    (record,) = problem.history
    assert (record["beta"], record["pairs"]) == (4, 30 * 29 // 2)
    assert record["objective"] == pytest.approx(problem.value(lower, 4), rel=1e-9)
    assert 1 <= record["iterations"] <= 50


def test_refinement_returns_the_best_it_has_seen():
    worse = 0
    for seed in range(8):
        problem = problem_of(np.random.default_rng(seed).normal(size=(20, 4)))
        Q = descent.refine(problem, np.eye(4, 2), descent.REFINEMENT_BETAS, 60)
        moved = problem.descend(Q, 2, 60)  # β = 2 hardly looks at the worst pairs
        worse += problem.log_L(moved) > problem.log_L(Q)
        least = min(problem.log_L(Q), problem.log_L(moved))
        assert problem.log_L(descent.refine(problem, Q, [2], 60)) == least
    assert worse >= 2


def test_a_search_starts_with_the_leading_directions():
    X = np.random.default_rng(0).normal(size=(30, 6)) * [3, 2.5, 2, 1.5, 1, 0.5]
    problem = problem_of(X)
    maps = descent.search(problem, 2, 3, 5, np.random.default_rng(0))
    assert [Q.shape for Q in maps] == [(6, 2)] * 4
    assert_allclose(pdist(problem.Z @ maps[0]), pdist(principal(X, 2)), rtol=1e-10)


def test_the_share_of_spare_dimensions_has_this_gradient():
    Yt, step = np.random.default_rng(0).normal(size=(4, 6)), 1e-6
    share, slope = descent._spare_share(Yt, 3)
    assert share == pytest.approx((Yt[3] ** 2).sum() / (Yt**2).sum(), rel=1e-14)
    for at in np.ndindex(Yt.shape):
        ends = []
        for h in (step, -step):
            moved = Yt.copy()
            moved[at] += h
            ends.append(descent._spare_share(moved, 3)[0])
        assert slope[at] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-8)


def test_principal_axes_change_no_distance():
    problem = problem_of(np.random.default_rng(0).normal(size=(30, 6)))
    Q = np.random.default_rng(1).normal(size=(6, 3))
    Y, turned = problem.Z @ Q, problem.Z @ problem.principal(Q)
    assert_allclose(pdist(turned), pdist(Y), rtol=1e-12)
    covariance = turned.T @ turned
    assert (np.diff(np.diag(covariance)) < 0).all()
    assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-12)


def test_a_map_is_pressed_out_of_the_dimensions_it_has_to_spare():
    # Points of the plane in R^5: the way to keep all distances is in reach of any start.
    rng = np.random.default_rng(0)
    F = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 5)) + 1e-3 * rng.normal(size=(30, 5))
    problem = problem_of(F)
    squeezed = descent.squeezed(problem, rng.normal(size=(5, 4)), 2)
    assert squeezed.shape == (5, 2)
    assert problem.log_L(squeezed) < 0.2


# The projection: what it reaches


def fitted(X, k, **changes):
    settings = {"n_init": 2, "max_iter": 30, "validation_fraction": 0, "random_state": 0}
    return NearIsometricProjection(k, **(settings | changes)).fit(X)


def principal(X, k):
    centred = X - X.mean(axis=0)
    return centred @ np.linalg.svd(centred, full_matrices=False)[2][:k].T


@given(seeds, st.integers(1, 4), st.integers(0, 4), st.floats(-50, 50))
def test_flat_data_keep_all_distances_old_and_new(seed, k, more, shift):
    rng = np.random.default_rng(seed)
    plane = np.linalg.qr(rng.normal(size=(k + more, k + more)))[0][:k]
    old, new = rng.normal(size=(2, 12, k))
    projection = fitted(old @ plane + shift, k)
    assert projection.distortion_.log_L < 1e-10
    Y = projection.transform(np.vstack([old, new]) @ plane + shift)
    assert hs.distortion(Y, pdist(np.vstack([old, new]))).log_L < 1e-9
    assert_allclose(pdist(Y), pdist(np.vstack([old, new])), rtol=1e-9)  # the scale is right too


# n points at equal distances may go anywhere in R^k, so log L is the least ratio between the
# largest and the smallest distance of n points there: on a line n - 1; in the plane the square, the
# pentagon, the pentagon and the hexagon with their centres (Bateman and Erdős); in space a pyramid
# on both sides of a triangle (Seidel) and the octahedron.
@pytest.mark.parametrize(
    ("n", "k", "L"),
    [
        (3, 1, 2),
        (4, 1, 3),
        (5, 1, 4),
        (6, 1, 5),
        (4, 2, math.sqrt(2)),
        (5, 2, (1 + math.sqrt(5)) / 2),
        (6, 2, 2 * math.sin(math.radians(72))),
        (7, 2, 2),
        (5, 3, math.sqrt(12 / 7)),
        (6, 3, math.sqrt(2)),
    ],
)
def test_a_simplex_becomes_the_best_arrangement_there_is(n, k, L):
    log_L = fitted(np.eye(n), k, n_init=6, max_iter=60).distortion_.log_L
    assert math.log(L) - 1e-9 <= log_L <= math.log(L) + 0.005


@pytest.mark.parametrize("seed", range(5))
def test_the_best_line_for_five_points_of_the_plane_is_found(seed):
    X = np.random.default_rng(seed).normal(size=(5, 2))
    i, j = every_pair(5)
    angle = np.linspace(0, np.pi, 20_001)
    shadow = np.abs((X[i] - X[j]) @ np.array([np.cos(angle), np.sin(angle)]))
    ratio = shadow / pdist(X)[:, None]
    with np.errstate(divide="ignore"):
        least = np.log(ratio.max(axis=0) / ratio.min(axis=0)).min()
    log_L = fitted(X, 1, n_init=6, max_iter=60).distortion_.log_L
    assert least - 0.002 <= log_L <= least + 0.002  # the grid of angles is as fine


@pytest.mark.parametrize("n_init", [1, 6])
def test_a_square_is_seen_from_between_its_side_and_its_diagonal(n_init):
    # Its sides, its axes, let corners coincide. At 22.5° all four directions are seen at 22.5° or
    # at 67.5°: L = tan 67.5°.
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    projection = fitted(square, 1, n_init=n_init, max_iter=60)
    best = math.log(1 + math.sqrt(2))
    assert best - 1e-9 <= projection.distortion_.log_L <= best + 0.005


@pytest.mark.parametrize("validation_fraction", [0, 0.2])
@pytest.mark.parametrize(("side", "r", "k"), [(3, 3, 2), (5, 2, 1), (2, 4, 2)])
def test_points_of_a_grid_do_not_coincide(side, r, k, validation_fraction):
    grid = np.stack(np.meshgrid(*[np.arange(side)] * r), axis=-1).reshape(-1, r).astype(float)
    projection = fitted(grid, k, validation_fraction=validation_fraction)
    assert np.isinf(row_distortion(grid[:, :k], grid).log_L)
    assert projection.distortion_.log_L < 4


@given(
    seeds,
    st.integers(4, 20),
    st.integers(2, 8),
    st.integers(1, 7),
    st.sampled_from([0, 0.3]),
    st.sampled_from([1, 30]),
)
def test_no_worse_than_the_leading_directions(seed, n, r, k, validation_fraction, max_iter):
    rng = np.random.default_rng(seed)
    X, k = rng.normal(size=(n, r)) * rng.uniform(0.1, 1, r), min(k, r)
    projection = fitted(X, k, validation_fraction=validation_fraction, max_iter=max_iter)
    assert projection.distortion_.log_L <= row_distortion(principal(X, k), X).log_L + 1e-9


def diffusion_factor(X, epsilon, p):
    """V λ^p: distances between its rows are diffusion distances."""
    A = hs.bistochastic_normalize(hs.gaussian_affinity(X, epsilon), tol=1e-12)
    values, vectors = np.linalg.eigh(A)
    kept = values > 1e-12 ** (1 / p)
    return vectors[:, kept] * values[kept] ** p


def test_on_the_circle_no_worse_than_its_two_eigenvectors():
    n, epsilon, p = 300, 0.25, 8
    F = diffusion_factor(even_circle(n), epsilon, p)
    pair = log_L_of_first_pair(n, epsilon, p)
    assert pair == pytest.approx(0.0770, abs=5e-5)
    assert fitted(F, 2).distortion_.log_L <= pair + 1e-6


@pytest.mark.parametrize("seed", range(2))
def test_a_small_circle_is_not_lost_beside_a_large_one(seed):
    # Three leading directions of the torus are of the large circle, but for one.
    u, v = np.random.default_rng(seed).uniform(0, TAU, (2, 150))
    X = on_torus(u, v, 3.5)
    F = diffusion_factor(X, 0.3, 10)
    log_L = fitted(F, 3).distortion_.log_L
    assert log_L <= 0.5 * row_distortion(principal(F, 3), F).log_L


# The projection: what it does not depend on


def dyadic(n=15, r=4, seed=0):
    """Points on a grid of powers of two, so that shifts and scales of it are exact."""
    X = np.random.default_rng(seed).normal(size=(n, r)) * np.array([2, 1, 0.7, 0.3])[:r]
    return np.round(X * 2**10) / 2**10


@pytest.mark.parametrize("exponent", [-500, -3, 8, 500])
def test_powers_of_two_change_no_bit(exponent):
    X = dyadic()
    one, other = fitted(X, 2), fitted(np.ldexp(X, exponent), 2)
    assert_array_equal(other.components_, one.components_)
    assert_array_equal(other.embedding_, np.ldexp(one.embedding_, exponent))
    assert other.distortion_.log_L == one.distortion_.log_L


def test_a_shift_changes_no_bit_of_the_map():
    X = dyadic()
    one, other = fitted(X, 2), fitted(X + np.array([1000.0, -5.0, 0.0, 3e6]), 2)
    assert_array_equal(other.components_, one.components_)
    assert_allclose(np.diff(other.embedding_, axis=0), np.diff(one.embedding_, axis=0), atol=1e-8)


def turned(X):
    return X @ np.linalg.qr(np.random.default_rng(3).normal(size=(X.shape[1],) * 2))[0]


def shuffled(X):
    return X[np.random.default_rng(3).permutation(len(X))]


CHANGES = {
    "scale": lambda X: 3.7 * X,
    "rotation": turned,
    "order": shuffled,
    "column order": lambda X: X[:, ::-1],
    "duplicates": lambda X: np.vstack([X, X[:5], X[:5]]),
    "nearly duplicates": lambda X: np.vstack([X, X * (1 + 1e-15), X - 1e-16]),
    "more columns": lambda X: np.hstack([X, np.zeros((len(X), 2))]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("seed", range(3))
def test_log_L_does_not_depend_on(change, seed):
    X = np.random.default_rng(seed).normal(size=(15, 4)) * [2, 1, 0.7, 0.3]
    one, other = (fitted(Z, 2).distortion_ for Z in (X, change(X)))
    assert other.log_L == pytest.approx(one.log_L, rel=1e-5)


@pytest.mark.parametrize("shift", [0, 1 / 3, 2 / 3])
def test_rows_that_a_grid_parts_are_one_point(shift):
    cell = 2.0**-40
    rim = (np.array([3, 7, -2]) + 0.5 - shift) * cell
    points = np.vstack([rim - 1e-17, rim + 1e-17, rim + 10 * cell, rim - 1e-17, rim + 1e-17])
    assert_array_equal(estimator_module._first_equal(points), [0, 0, 2, 0, 0])


def test_duplicates_that_rounding_has_parted_do_not_count():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 60))
    noisy = np.vstack([X, X + 4e-16 * rng.normal(size=X.shape)])
    projection = fitted(noisy, 3)
    clean = row_distortion(X @ projection.components_.T, X).log_L
    assert projection.distortion_.log_L == pytest.approx(clean, rel=1e-6)


def test_single_precision_finds_the_same_map():
    X = dyadic()
    double, single = fitted(X, 2), fitted(X.astype(np.float32), 2)
    for values in (single.components_, single.embedding_, single.transform(X.astype(np.float32))):
        assert values.dtype == np.float32
    assert_array_equal(single.components_, double.components_.astype(np.float32))
    assert single.distortion_.log_L == double.distortion_.log_L


def test_the_same_seed_finds_the_same_bits_and_another_one_others():
    X = np.random.default_rng(0).normal(size=(30, 6))
    first, second, third = (
        fitted(X, 2, n_init=4, validation_fraction=0.2, random_state=seed) for seed in (0, 0, 1)
    )
    assert_array_equal(second.embedding_, first.embedding_)
    assert second.distortion_.held_out_log_L == first.distortion_.held_out_log_L
    assert not np.array_equal(third.embedding_, first.embedding_)


def test_a_generator_moves_on_and_a_random_state_is_taken():
    X = np.random.default_rng(0).normal(size=(30, 6))

    def held_out(state):
        projection = fitted(X, 2, validation_fraction=0.3, random_state=state)
        return projection.distortion_.held_out_log_L

    rng = np.random.default_rng(5)
    assert held_out(rng) != held_out(rng)
    assert held_out(np.random.RandomState(5)) == held_out(np.random.RandomState(5))


# The projection: what it is


def test_rows_are_mapped_one_by_one():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(25, 6)), rng.normal(size=(9, 6))
    projection = fitted(X, 3)
    assert_array_equal(projection.transform(X), projection.embedding_)
    assert_array_equal(
        NearIsometricProjection(**projection.get_params()).fit_transform(X), projection.embedding_
    )
    assert_allclose(projection.embedding_, X @ projection.components_.T, rtol=1e-12, atol=1e-12)
    together = projection.transform(new)
    for row, y in zip(new, together, strict=True):
        assert_allclose(projection.transform(row[None]), y[None], rtol=1e-12, atol=1e-13)
    new[1:] = 1e3 * rng.normal(size=(8, 6))
    assert_array_equal(projection.transform(new)[0], together[0])


def test_columns_are_uncorrelated_and_ordered_by_variance():
    projection = fitted(np.random.default_rng(0).normal(size=(40, 6)), 3)
    covariance = np.cov(projection.embedding_.T)
    assert (np.diff(np.diag(covariance)) < 0).all()
    assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-12)
    W = projection.components_
    assert (W[np.arange(3), np.abs(W).argmax(axis=1)] > 0).all()


def test_distortion_is_that_of_the_embedding():
    X = np.random.default_rng(0).normal(size=(40, 6))
    projection = fitted(X, 2)
    q, ratio = projection.distortion_, pdist(projection.embedding_) / pdist(X)
    assert q.log_L == pytest.approx(np.log(ratio.max() / ratio.min()), rel=1e-10)
    assert q.expansion == pytest.approx(ratio.max(), rel=1e-10)
    assert q.contraction == pytest.approx(ratio.min(), rel=1e-10)
    assert q.median == 1
    assert np.median(ratio) == pytest.approx(1, rel=1e-10)
    for level, value in q.quantiles.items():
        assert value == pytest.approx(np.quantile(ratio, level), rel=1e-10)
    for factor, share in q.within.items():
        assert share == np.mean((ratio <= factor) & (ratio >= 1 / factor))
    assert q.worst_factor == pytest.approx(max(ratio.max(), 1 / ratio.min()), rel=1e-10)
    assert (q.n_pairs, q.looked_at) == (780, "all pairs")
    assert math.isnan(q.held_out_log_L)
    i, j = q.worst_pairs["contraction"][0]
    assert squareform(ratio)[i, j] == ratio.min()


def test_history_tells_of_the_refinement():
    projection = fitted(np.random.default_rng(0).normal(size=(30, 6)), 2)
    assert [stage["beta"] for stage in projection.history_][-3:] == list(descent.REFINEMENT_BETAS)
    assert {stage["pairs"] for stage in projection.history_} == {435}
    assert all(1 <= stage["iterations"] <= 30 for stage in projection.history_)
    assert projection.n_iter_ == sum(stage["iterations"] for stage in projection.history_)
    assert 0 < projection.seconds_ < 60


@pytest.mark.parametrize("rank", [2, 3, 5])
@pytest.mark.parametrize("validation_fraction", [0, 0.3])
def test_the_map_stays_in_the_leading_directions(rank, validation_fraction):
    X = np.random.default_rng(0).normal(size=(30, 8)) * 0.8 ** np.arange(8)
    projection = fitted(X, 2, rank=rank, validation_fraction=validation_fraction)
    axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2]
    assert projection.rank_ == rank
    W = projection.components_
    assert_allclose(W @ axes[rank:].T, 0, atol=1e-12)
    assert np.linalg.norm(W @ axes[rank - 1]) > 1e-6


def test_more_directions_do_not_keep_distances_worse():
    X = np.random.default_rng(0).normal(size=(30, 8))
    log_L = [fitted(X, 2, rank=rank, n_init=6).distortion_.log_L for rank in (2, 4, 8)]
    assert log_L[0] > log_L[1] > log_L[2]


@pytest.mark.parametrize("scales", [[1, 1, 1], [1e10, 1, 1e-2], [1, 1, 0]], ids=str)
def test_all_directions_are_a_similarity(scales):
    X = np.random.default_rng(0).normal(size=(20, 3)) * scales
    projection = fitted(X, 3)
    assert projection.distortion_.log_L < 1e-12
    assert_allclose(projection.components_ @ projection.components_.T, np.eye(3), atol=1e-12)


def test_directions_that_are_missing_are_zeros():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 6))
    projection = fitted(X, 4)
    assert projection.rank_ == 2
    assert projection.distortion_.log_L < 1e-12
    assert projection.embedding_.shape == (20, 4)
    assert_array_equal(projection.embedding_[:, 2:], 0)
    assert_allclose(pdist(projection.embedding_), pdist(X), rtol=1e-10)


def test_two_points_keep_their_distance():
    projection = fitted([[0.0, 3.0, 1.0], [4.0, 0.0, 1.0]], 2)
    assert projection.distortion_.log_L == 0
    assert pdist(projection.embedding_)[0] == pytest.approx(5, rel=1e-14)


def test_a_map_that_lets_most_points_coincide_says_so():
    # Beside two far points the others are a billionth apart: too near to be seen as a direction.
    X = np.zeros((10, 4))
    X[:8, 1] = 1e-9 * np.array([-1, 1, -2, 2, -3, 3, -4, 4])
    X[:8, 0], X[9, 0] = 1, -1
    projection = fitted(X, 1)
    assert projection.distortion_.log_L == math.inf
    assert np.isfinite(projection.components_).all()
    assert abs(projection.embedding_[8, 0] - projection.embedding_[9, 0]) == pytest.approx(1)


# New points


def test_held_out_distances_are_kept_worse_where_there_is_nothing_to_learn():
    # 80 points in general position of R^79: a map can fit these, and says nothing of others.
    for seed in range(4):
        noise = np.random.default_rng(seed).normal(size=(80, 79))
        checked = fitted(noise, 2, validation_fraction=0.2).distortion_
        full = fitted(noise, 2, rank=79).distortion_
        assert full.log_L + 0.5 < checked.held_out_log_L < math.inf


@pytest.mark.statistical
def test_fewer_directions_are_taken_where_new_points_are_the_better_for_it():
    """Clouds of 4 directions and 116 of a thousandth of their size, which only fitted pairs need.

    Nothing here is drawn afresh: no false alarms. A choice by the fitted pairs, or none, takes all
    directions every time and gains nothing.
    """
    gains, ranks = [], []
    for seed in range(8):
        X = np.random.default_rng(seed).normal(size=(120, 120)) * np.r_[np.ones(4), [1e-3] * 116]
        chosen, full = (fitted(X, 2, rank=rank, validation_fraction=0.2) for rank in (None, 119))
        assert full.rank_ == 119  # although the rows that it was checked on have 95
        gains.append(chosen.distortion_.held_out_log_L - full.distortion_.held_out_log_L)
        ranks.append(chosen.rank_)
        # By J_16, which is within 2 log(m) / 16 of log L over the m pairs.
        assert gains[-1] <= 2 * math.log(24 * 120) / 16
    assert set(ranks) <= {119, 47, 23}
    assert sum(rank < 119 for rank in ranks) >= 5
    assert np.median(gains) < -0.2


def test_held_out_distances_are_those_of_pairs_with_points_left_out():
    judge = learn._pairs_of_first(np.arange(5.0)[:, None] ** 2, 2)
    J = LogDistortion(5, *judge)
    want = [1, 16, 81, 256, 9, 64, 225]  # of points 0 and 1 with all others, squared
    assert_allclose(1 / J.inverse, want)
    Y = np.random.default_rng(0).normal(size=(5, 2))
    i, j = np.array([0, 0, 0, 0, 1, 1, 1]), np.array([1, 2, 3, 4, 2, 3, 4])
    value, slope = J(Y.T.copy(), 4)
    expected, expected_slope = direct(Y, i, j, np.array(want), 4)
    assert value == pytest.approx(expected, rel=1e-12)
    assert_allclose(slope.T, expected_slope, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("validation_fraction", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 40])
def test_however_many_rows_are_left_out_some_are_fitted(n, validation_fraction):
    X = np.random.default_rng(0).normal(size=(n, 6))
    projection = fitted(X, 2, validation_fraction=validation_fraction)
    assert np.isfinite(projection.embedding_).all()
    assert math.isfinite(projection.distortion_.log_L)
    if n == 40:
        assert math.isfinite(projection.distortion_.held_out_log_L)


# Many points


@pytest.fixture
def sampled(monkeypatch):
    """Treat a hundred points as many."""
    monkeypatch.setattr(pairs, "ALL_PAIRS_UP_TO", 100)
    monkeypatch.setattr(metrics, "ALL_PAIRS_UP_TO", 100)
    monkeypatch.setattr(learn, "SEARCH_ROWS", 100)
    monkeypatch.setattr(pairs, "RANDOM_PAIRS", 20_000)
    monkeypatch.setattr(pairs, "NEAR_ROWS", 200)


def torus_factor(n=600, seed=0):
    u, v = np.random.default_rng(seed).uniform(0, TAU, (2, n))
    waves = [f(m * u) for m in (1, 2) for f in (np.cos, np.sin)]
    waves += [3.5 / m * f(m * v) for m in (1, 2, 3) for f in (np.cos, np.sin)]
    waves += [0.5 * np.cos(u) * np.cos(v), 0.5 * np.sin(u) * np.sin(v)]
    return np.column_stack(waves)


@pytest.fixture
def whole():
    """The fit over all pairs of 600 points: made before `sampled` lowers the limits."""
    return fitted(torus_factor(), 3)


def test_some_pairs_do_nearly_as_well_as_all(whole, sampled):
    F = torus_factor()
    projection = fitted(F, 3)
    every = hs.distortion(projection.embedding_, pdist(F)).log_L
    assert whole.distortion_.looked_at == "all pairs"
    assert every <= 1.4 * whole.distortion_.log_L
    # What is reported is over pairs looked at, among them, by now, nearly the worst.
    q = projection.distortion_
    assert 0.9 * every <= q.log_L <= every + 1e-9
    for part in (
        "random pairs",
        "nearest in the input",
        "nearest in the embedding",
        "used for fitting",
    ):
        assert part in q.looked_at
    used = [stage["pairs"] for stage in projection.history_]
    assert used == sorted(used)
    assert used[0] < used[-1] < 30_000  # pairs of points that come near are added
    assert f"{used[-1]:,} used for fitting" in q.looked_at
    again = fitted(F, 3)
    assert_array_equal(again.embedding_, projection.embedding_)
    assert again.distortion_.log_L == q.log_L


@pytest.mark.usefixtures("sampled")
def test_pairs_used_are_those_of_the_input_rows(monkeypatch):
    # Duplicates in front: numbers of distinct rows are not numbers of rows.
    F = torus_factor(200)
    seen = []
    monkeypatch.setattr(pairs, "RANDOM_PAIRS", 50)
    monkeypatch.setattr(pairs, "NEAR_ROWS", 5)
    honest = row_distortion
    monkeypatch.setattr(
        "heatsketch.estimators.near_isometric.row_distortion",
        lambda Y, F, *, used, rng: seen.append(used) or honest(Y, F, used=used, rng=rng),
    )
    fitted(np.vstack([F[:1]] * 50 + [F[1:]]), 3)
    i, j = seen[0]
    assert min(i.min(), j.min()) == 0
    assert max(i.max(), j.max()) > 200
    assert not np.isin(np.arange(1, 50), np.concatenate([i, j])).any()


@pytest.mark.usefixtures("sampled")
def test_no_more_rows_are_learned_from_than_enough(monkeypatch):
    monkeypatch.setattr("heatsketch.estimators.near_isometric.MAX_ROWS", 150)
    F = torus_factor(400)
    projection = fitted(F, 3)
    assert projection.embedding_.shape == (400, 3)
    assert projection.history_[0]["pairs"] <= 150 * 149 // 2
    leading = row_distortion(principal(F, 3), F).log_L
    assert row_distortion(projection.embedding_, F).log_L < leading


# Rules and errors


@estimator_checks(
    NearIsometricProjection(n_init=1, max_iter=5, validation_fraction=0),
    NearIsometricProjection(1, n_init=2, max_iter=3),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_columns_of_the_output_have_names():
    projection = fitted(np.random.default_rng(0).normal(size=(10, 4)), 2)
    names = ["nearisometricprojection0", "nearisometricprojection1"]
    assert list(projection.get_feature_names_out()) == names
    with pytest.raises(NotFittedError):
        NearIsometricProjection().transform(np.ones((2, 3)))


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        ({"n_components": 0}, ValueError, "n_components=0 is out of range"),
        ({"n_components": 5}, ValueError, "X has 4 features; pass n_components <= 4"),
        ({"n_components": 1.5}, TypeError, "pass an integer"),
        ({"rank": 1}, ValueError, "rank=1 is out of range; pass an integer >= 2"),
        ({"rank": 2.5}, TypeError, "rank"),
        ({"n_init": 0}, ValueError, "n_init=0"),
        ({"max_iter": 0}, ValueError, "max_iter=0"),
        ({"validation_fraction": 1}, ValueError, "validation_fraction=1"),
        ({"validation_fraction": -0.1}, ValueError, "validation_fraction"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, error, match):
    X = np.random.default_rng(0).normal(size=(10, 4))
    with pytest.raises(error, match=match):
        NearIsometricProjection(**parameters).fit(X)


@pytest.mark.parametrize(
    ("X", "match"),
    [
        (np.ones((5, 3)), "All 5 rows of X are equal"),
        (np.ones((5, 3)) + 1e-16 * np.eye(5, 3), "All 5 rows of X are equal"),
        ([[1.0, 2.0], [np.nan, 1.0], [0.0, 1.0]], "NaN.*row 1, column 0"),
        ([[1.0, 2.0], [np.inf, 1.0], [0.0, 1.0]], "infinity.*row 1, column 0"),
        ([[1.0, 2.0]], "minimum of 2"),
        ([1.0, 2.0], "2D array"),
        ([["a", "b"], ["c", "d"]], "text"),
        (pd.DataFrame({"size": [1.0, 2.0], "kind": ["a", "b"]}), "'kind' are not numeric"),
    ],
    ids=["equal", "nearly equal", "nan", "infinite", "one row", "flat", "text", "text column"],
)
def test_data_without_distances_are_refused(X, match):
    with pytest.raises(ValueError, match=match):
        NearIsometricProjection().fit(X)
