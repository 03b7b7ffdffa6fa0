"""Free layouts: gradient, descent, cartogram, invariances; places of new points."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.spatial import cKDTree
from scipy.stats import spearmanr

import heatsketch as hs
from heatsketch._threads import in_one_thread
from heatsketch.core import loops
from heatsketch.core.blocks import HOST, blocks_of
from heatsketch.layout.free import (
    LogDistances,
    Neighbors,
    edges_of,
    evened,
    free_layout,
    spread_targets,
    with_few_digits,
)
from heatsketch.layout.maps import (
    NewPoint,
    located,
    locations,
    slope_and_curvature,
    slopes_of_location,
)
from problems.limits import set_limits
from problems.slopes import differences

seeds = st.integers(0, 10**6)
dimensions = pytest.mark.parametrize("c", [2, 3])


def graph(X, k=8):
    """Return the affinities of points to their k nearest and themselves, CSR."""
    distances, indices = cKDTree(X).query(X, k + 1)
    weights = np.exp(-np.square(distances / distances[:, k // 2 : k // 2 + 1]))
    starts = np.arange(0, indices.size + 1, k + 1)
    return sparse.csr_matrix((weights.ravel(), indices.ravel(), starts), (len(X), len(X)))


def problem(n=300, c=2, seed=0):
    """Return M, start, pairs and their log distances, of two groups of unequal tightness."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    X = rng.normal(size=(n, c + 1)) * np.where(group, 0.3, 1.0)[:, None]
    X[:, 0] += 3 * group
    i = rng.integers(0, n, 10 * n)
    j = (i + rng.integers(1, n, len(i))) % n
    return graph(X), X[:, :c], (i, j), np.log(np.linalg.norm(X[i] - X[j], axis=1))


def terms_of(M, pairs, targets, a, opening=None):
    """Return the terms of J, for points where M is."""
    blocks, n = blocks_of(M), M.shape[0]
    dtype = float if blocks is HOST else M.data.dtype
    own = Neighbors(edges_of(M, dtype), a, opening)
    return own, LogDistances(n, pairs, targets, blocks, dtype)


def gradient_of(terms, Y, s):
    return sum(term.gradient(Y, s) for term in terms)


def value(M, pairs, targets, a, Y, s):
    """Return J from its definition."""
    P = M.toarray()
    np.fill_diagonal(P, 0)
    P /= P.sum(axis=1, keepdims=True)
    P = (P + P.T) / (2 * len(P))
    q = 1 / (1 + np.square(Y[:, None] - Y).sum(axis=2) / s**2)
    np.fill_diagonal(q, 0)
    used = P > 0
    divergence = np.sum(P[used] * np.log(P[used] * q.sum() / q[used]))
    off = np.log(np.linalg.norm(Y[pairs[0]] - Y[pairs[1]], axis=1)) - targets
    huber = np.where(np.abs(off) <= 1, off**2 / 2, np.abs(off) - 0.5)
    return a * divergence + huber.mean()


@dimensions
@pytest.mark.parametrize("a", [0.0, 0.3, 5.0])
def test_the_gradient_is_that_of_j(c, a):
    M, Y, pairs, targets = problem(60, c)
    s, h, rng = 0.7, 1e-5, np.random.default_rng(1)
    targets = targets + rng.normal(size=len(targets))  # some beyond the bend of huber's loss
    terms = terms_of(M, pairs, targets, a, 0.0)
    gradient = gradient_of(terms, Y, s)
    found = sum(term.value(Y, s) for term in terms)
    assert found == pytest.approx(value(M, pairs, targets, a, Y, s), rel=1e-9)
    for _ in range(5):
        step = rng.normal(size=Y.shape)
        up, down = (value(M, pairs, targets, a, Y + sign * h * step, s) for sign in (1, -1))
        assert np.sum(gradient * step) == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-9)


@dimensions
def test_the_gradient_of_neighbours_turns_and_moves_with_the_points(c):
    M, Y, pairs, targets = problem(200, c)
    terms = terms_of(M, pairs, targets, 0.3, 0.0)
    Q = np.linalg.qr(np.random.default_rng(2).normal(size=(c, c)))[0]
    gradient = gradient_of(terms, Y, 0.5)
    assert_allclose(gradient_of(terms, Y @ Q + 3.0, 0.5), gradient @ Q, atol=1e-12)
    assert_allclose(gradient.sum(axis=0), 0, atol=1e-12)  # no force from within moves the whole
    torque = Y[:, :, None] * gradient[:, None]
    assert_allclose(torque.sum(axis=0), torque.sum(axis=0).T, atol=1e-12)  # nor turns it


@dimensions
@pytest.mark.parametrize("a", [0.0, 0.3])
def test_arrays_and_compiled_loops_agree(monkeypatch, c, a):
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(200, c)) * np.where(np.arange(200) % 2, 1.0, 0.01)[:, None] + 5.0
    i = rng.integers(0, 200, 900)
    pairs = i, (i + rng.integers(1, 200, 900)) % 200
    M = sparse.random(200, 200, 0.05, "csr", rng=rng) + sparse.eye(200, format="csr")
    for term in terms_of(M, pairs, rng.normal(size=900), a):
        set_limits(monkeypatch, uncompiled_points=200)
        found, value = term.gradient(Y, 0.2), term.value(Y, 0.2)
        set_limits(monkeypatch, uncompiled_points=0)
        atol = 1e-11 * np.abs(found).max()
        assert_allclose(found, term.gradient(Y, 0.2), rtol=0, atol=atol)
        assert value == pytest.approx(term.value(Y, 0.2), rel=1e-12)


@pytest.mark.parametrize("loop", ["along_edges", "between_pairs", "repulsion"])
def test_small_data_are_work_for_several_threads(monkeypatch, loop):
    M, start, pairs, logs = problem(1_800)
    compiled, tiles = getattr(loops, loop), []

    def counted(*arguments):
        tiles.append(arguments)
        compiled(*arguments)

    monkeypatch.setattr(loops, loop, counted)
    gradient_of(terms_of(M, pairs, logs, 0.3), start, 0.5)
    assert len(tiles) >= 3


@dimensions
@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0])
def test_the_descent_lowers_j(c, spread):
    M, start, pairs, logs = problem(400, c)
    targets = spread_targets(logs, spread, c)
    Y = free_layout(M, start, pairs, targets)
    s = HOST.median_length(Y, edges_of(M, float)) / 2
    at_start = value(M, pairs, targets, 0.3, start, s)
    assert value(M, pairs, targets, 0.3, Y, s) < at_start - 0.05


def test_a_tight_group_gets_its_share_of_the_frame():
    """Distances alone leave the group of scale .3 a ninth of the area of the other."""
    M, start, pairs, logs = problem(600)

    def share(Y):
        extents = [np.sqrt(np.linalg.det(np.cov(Y[part::2].T))) for part in (0, 1)]
        return extents[1] / extents[0]

    Y = free_layout(M, start, pairs, spread_targets(logs, 0.5, 2))
    assert share(start) < 0.12
    assert share(Y) > 0.25


def test_neither_threads_nor_the_order_of_points_nor_scale_count():
    M, start, pairs, logs = problem(1_500)
    Y = free_layout(M, start, pairs, logs, steps=100)
    with in_one_thread():
        assert_array_equal(free_layout(M, start, pairs, logs, steps=100), Y)
    size = np.ptp(Y)
    order = np.random.default_rng(3).permutation(len(Y))
    place = np.argsort(order)
    moved = M[order][:, order], start[order], tuple(place[side] for side in pairs)
    assert_allclose(free_layout(*moved, logs, steps=100), Y[order], rtol=0, atol=1e-6 * size)
    larger = free_layout(M, 1e3 * start, pairs, logs + np.log(1e3), steps=100)
    # The descent increases the rounding of logarithms in another unit.
    assert_allclose(larger, 1e3 * Y, rtol=0, atol=1e-4 * 1e3 * size)


def test_the_picture_turns_with_its_start():
    """Exact sums: those of a tree depend on the axes."""
    M, start, pairs, logs = problem(400)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    Y = free_layout(M, start, pairs, logs)
    turned = free_layout(M, start @ turn, pairs, logs)
    assert_allclose(turned, Y @ turn, rtol=0, atol=1e-6 * np.ptp(Y))


def test_points_that_all_start_at_one_place_stay_finite():
    M, start, pairs, logs = problem(100)
    assert np.isfinite(free_layout(M, 0 * start, pairs, logs, steps=20)).all()


def test_order_of_distances_is_kept_on_a_strip():
    """A strip has nearly the distances of its picture: a free layout leaves it a strip."""
    rng = np.random.default_rng(0)
    X = rng.random((500, 2)) * [4, 1]
    i = rng.integers(0, 500, 5_000)
    j = (i + rng.integers(1, 500, len(i))) % 500
    logs = np.log(np.linalg.norm(X[i] - X[j], axis=1))
    Y = free_layout(graph(X), X, (i, j), logs)
    kept = spearmanr(np.linalg.norm(Y[i] - Y[j], axis=1), logs)[0]
    assert kept > 0.98


# New points


def weights_of(weights, indices, n):
    starts = np.arange(0, indices.size + 1, indices.shape[1])
    return sparse.csr_matrix((weights.ravel(), indices.ravel(), starts), (len(indices), n))


def draws(seed, c, m=30, n=80, k=7):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(n, c)) + 6 * rng.integers(0, 3, (n, 1))
    indices = np.array([rng.choice(n, k, replace=False) for _ in range(m)])
    return Y, indices, rng.exponential(size=(m, k)) / rng.random((m, k))


def attraction(y, places, weights, s):
    """Return Σ_j w_j log(1 + |y - y_j|² / s²)."""
    return np.sum(weights * np.log1p(np.square(y - places).sum(axis=1) / s**2))


@dimensions
@given(seeds, st.sampled_from([0.1, 1.0, 30.0]))
def test_locations_are_minima(c, seed, s):
    """Where the best of the places leads; for a wide s the sum is that of least squares."""
    Y, indices, weights = draws(seed, c, m=10)
    for y, some, w in zip(
        locations(Y, weights_of(weights, indices, len(Y)), s), indices, weights, strict=True
    ):
        own, w = Y[some], w / w.sum()
        best = min(own, key=lambda one: attraction(one, own, w, s))
        descent = minimize(attraction, best, (own, w, s), tol=1e-12)
        reached = attraction(y, own, w, s)
        assert reached <= min(attraction(best, own, w, s), descent.fun) + 1e-7
        away = y - own
        slope = (w / (1 + np.square(away).sum(axis=1) / s**2)) @ away
        assert np.linalg.norm(slope) <= 1e-6 * (s + np.linalg.norm(away, axis=1).max())


@dimensions
@given(seeds)
def test_locations_move_with_similarities_and_depend_on_their_row_alone(c, seed):
    Y, indices, weights = draws(seed, c)
    rows = weights_of(weights, indices, len(Y))
    places = locations(Y, rows, 0.8)
    rng = np.random.default_rng(seed)
    Q, shift = np.linalg.qr(rng.normal(size=(c, c)))[0], rng.normal(size=c)
    assert_allclose(locations(3 * Y @ Q + shift, rows, 2.4), 3 * places @ Q + shift, atol=1e-5)
    assert_allclose(locations(Y, 2.5 * rows, 0.8), places, atol=1e-5)
    assert_array_equal(locations(Y, rows[3:4], 0.8), places[3:4])
    few = weights_of(weights[:, :3], indices[:, :3], len(Y))  # beside rows of more entries
    both = locations(Y, sparse.vstack([rows, few], "csr"), 0.8)
    assert_array_equal(both, np.vstack([places, locations(Y, few, 0.8)]))
    order = rng.permutation(indices.shape[1])
    other = locations(Y, weights_of(weights[:, order], indices[:, order], len(Y)), 0.8)
    assert_allclose(other, places, atol=1e-5)


def test_a_minority_far_away_moves_a_location_little():
    """Its pull is at most 1 / 2 s each; that of a near place grows like the distance, up to s."""
    rng = np.random.default_rng(0)
    Y = np.vstack([rng.uniform(-1, 1, (9, 2)) / math.sqrt(2), 1e9 + rng.normal(size=(6, 2))])
    place = locations(Y, sparse.csr_matrix(np.ones((1, 15))), 1.0)[0]
    assert_allclose(place, locations(Y[:9], sparse.csr_matrix(np.ones((1, 9))), 1.0)[0], atol=1e-7)


def test_infinite_weights_alone_count():
    Y = np.array([[0.1, 0.2], [3.0, 5.0], [-7.0, 1.0], [0.1, 0.2]])
    indices = np.array([[0, 1, 2], [2, 1, 0], [0, 3, 1]])
    weights = np.array([[np.inf, 5.0, 1.0], [1.0, np.inf, 9.0], [np.inf, np.inf, 9.0]])
    places = locations(Y, weights_of(weights, indices, 4), 0.5)
    assert_array_equal(places, Y[[0, 1, 0]])


def test_a_single_neighbour_and_equal_positions_are_exact():
    Y = np.vstack([np.full((7, 2), [0.1, 0.7]), [[4.0, 4.0]]])
    rows = np.zeros((3, 8))
    rows[0, 7], rows[1, :7], rows[2, :7] = 2.0, np.inf, 1.0
    found = locations(Y, sparse.csr_matrix(rows), 1.0)
    assert_array_equal(found[:2], Y[[7, 0]])
    assert_allclose(found[2], Y[0], rtol=1e-15)


@pytest.mark.parametrize("width", [0.5, 0.9, 3.0])
def test_two_equal_weights_meet_or_part(width):
    """Of y = ±1 on a line: the middle up to s = 1, below it ±√(1 - s²), the zeros of the slope."""
    Y = np.array([[-1.0, 0.0], [1.0, 0.0]])
    found = locations(Y, sparse.csr_matrix([[1.0, 1.0]]), width)[0]
    wanted = math.sqrt(max(0.0, 1 - width**2))
    assert_allclose([abs(found[0]), found[1]], [wanted, 0], atol=1e-7)


def test_the_location_of_a_regular_triangle_is_its_centre():
    angles = 2 * np.pi * np.arange(3) / 3
    Y = np.column_stack([np.cos(angles), np.sin(angles)]) + 5.0
    found = locations(Y, sparse.csr_matrix(np.ones((1, 3))), 2.0)
    assert_allclose(found, [[5.0, 5.0]], atol=1e-9)


@dimensions
def test_slopes_of_locations_are_differences(c):
    """Weights exp(-|x - x_j|²): log slopes 2 (x_j - x)."""
    rng = np.random.default_rng(0)
    X, Y, x = rng.normal(size=(12, 4)), rng.normal(size=(12, c)), rng.normal(size=(3, 4))

    def weights(x):
        return np.exp(-np.square(x[:, None] - X).sum(axis=2))

    def place(x):
        return locations(Y, sparse.csr_matrix(weights(x)), 3.0)

    wanted, columns = differences(place, x, 1e-3), np.arange(12)
    for one, w, slopes in zip(x, weights(x), wanted, strict=True):
        order = rng.permutation(12)  # the weights come in another order than the affinities
        beside = NewPoint(w, columns, one - X, None, 2 * (X - one), None)
        found = slopes_of_location(Y, 3.0, order, w[order], beside)
        assert_allclose(found, slopes, atol=1e-6)


def test_what_a_layout_starts_from_has_few_digits():
    rng = np.random.default_rng(0)
    M = sparse.random(40, 40, 0.2, "csr", rng=rng)
    given = 5 + rng.normal(size=(40, 2)), rng.normal(size=90)
    found = with_few_digits(M, *given)
    assert_allclose(found[0].data, M.data, rtol=2**-8)
    assert_allclose(found[1], given[0], atol=2**-10 * np.abs(given[0]).max())
    assert_allclose(found[2], given[1], atol=2**-6)
    noisy = [x + 1e-12 * rng.normal(size=x.shape) for x in given]
    M.data += 1e-12
    for one, same in zip(found[1:], with_few_digits(M, *noisy)[1:], strict=True):
        assert_array_equal(one, same)
    for scale in (2.0**-100, 2.0**100):
        assert_array_equal(with_few_digits(M, scale * given[0], given[1])[1], scale * found[1])


# The cartogram


def uneven(n=3_000):
    """Return a wide group and a tight one beside it."""
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(size=(n, 2)), 0.1 * rng.normal(size=(n, 2)) + [3.0, 1.0]])


@pytest.mark.parametrize("part", [0.3, 0.8])
def test_a_cartogram_is_one_to_one(part):
    """The determinant of its derivatives is above 0: no triangle of a grid is turned over."""
    Y = uneven()
    low, high = Y.min(axis=0), Y.max(axis=0)
    x, y = np.meshgrid(*np.linspace(low, high, 90).T, indexing="ij")
    corners = np.column_stack([x.ravel(), y.ravel()])
    moved = evened(np.vstack([np.tile(Y, (30, 1)), corners]), part)[-len(corners) :]
    moved = moved.reshape(90, 90, 2)
    right, up = np.diff(moved, axis=0), np.diff(moved, axis=1)
    for a, b in ((right[:, :-1], up[:-1]), (right[:, 1:], up[1:])):
        assert (a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0] > 0).all()


def test_a_cartogram_makes_densities_more_equal():
    Y = uneven()

    def ratio(Y):
        areas = [np.linalg.det(np.cov(part.T)) for part in np.split(Y, 2)]
        return math.sqrt(areas[1] / areas[0])

    ratios = [ratio(evened(Y, part)) for part in (0.0, 0.3, 1.0)]
    assert ratios[0] < 0.6 * ratios[1] < 0.6 * ratios[2]
    assert ratios[2] < 1


def test_a_cartogram_of_part_0_or_of_one_place_is_the_picture():
    Y = uneven(50)
    assert_array_equal(evened(Y, 0.0), Y)
    assert_array_equal(evened(np.full((9, 2), 3.0), 1.0), np.full((9, 2), 3.0))


def test_a_disc_of_one_density_grows_alone():
    """All over by one factor, but for its rim, beyond which there is only the ground."""
    rng, n = np.random.default_rng(0), 200_000
    angle, radius = 2 * np.pi * rng.random(n), np.sqrt(rng.random(n))
    Y = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    moved = np.linalg.norm(evened(Y, 1.0), axis=1) / radius
    inner = (radius > 0.1) & (radius < 0.8)
    assert_allclose(moved[inner], np.median(moved), rtol=0.04)


def test_a_cartogram_turns_and_grows_with_the_picture():
    Y = uneven(500)
    quarter, found = np.array([[0.0, 1.0], [-1.0, 0.0]]), evened(Y, 0.7)
    size = np.ptp(found)
    assert_allclose(evened(Y @ quarter, 0.7), found @ quarter, rtol=0, atol=1e-9 * size)
    assert_allclose(evened(7 * Y + 2, 0.7), 7 * found + 2, rtol=0, atol=1e-8 * size)
    order = np.random.default_rng(1).permutation(len(Y))
    assert_allclose(evened(Y[order], 0.7), found[order], rtol=0, atol=1e-9 * size)


@dimensions
def test_a_mass_is_so_many_copies_at_one_place(c):
    """Of both terms, over pairs at different places: values, and gradients summed over copies."""
    M, Y, pairs, logs = problem(90, c)
    mass = np.random.default_rng(3).integers(1, 5, 90)
    of = np.repeat(np.arange(90), mass)
    first = np.r_[0, np.cumsum(mass)[:-1]]
    p, s = edges_of(M, float, mass.astype(float)), 0.7
    copies = p.toarray()[np.ix_(of, of)] / np.outer(mass[of], mass[of])
    u = Y[of][:, None] - Y[of]
    squares = np.square(u).sum(axis=2)
    q = (of[:, None] != of) / (1 + squares / s**2)
    used = copies > 0
    want = 0.3 * np.sum(copies[used] * np.log(copies[used] / (q[used] / q.sum())))
    term = Neighbors(p, 0.3, 0.0, mass.astype(float))
    assert term.value(Y, s) == pytest.approx(want, rel=1e-10)
    forces = 4 * 0.3 / s**2 * np.einsum("ij,ijk->ik", (copies - q / q.sum()) * q, u)
    forces = np.add.reduceat(forces, first)
    assert_allclose(term.gradient(Y, s), forces, atol=1e-10 * np.abs(forces).max())
    i, j = (np.concatenate(side) for side in zip(*map(np.nonzero, both(of, pairs)), strict=True))
    off = np.log(squares[i, j]) / 2 - np.concatenate(
        [np.full(mass[a] * mass[b], t) for a, b, t in zip(*pairs, logs, strict=True)]
    )
    term = LogDistances(90, pairs, logs, HOST, float, mass)
    want = np.mean(np.where(abs(off) <= 1, off**2 / 2, abs(off) - 0.5))
    assert term.value(Y, s) == pytest.approx(want, rel=1e-10)
    pull = (np.clip(off, -1, 1) / squares[i, j] / len(i))[:, None] * u[i, j]
    forces = np.zeros((90, c))
    np.add.at(forces, of[i], pull)
    np.add.at(forces, of[j], -pull)
    assert_allclose(term.gradient(Y, s), forces, atol=1e-10 * np.abs(forces).max())


def both(of, pairs):
    """Yield for each pair of points which pairs of their copies there are, (copies, copies)."""
    for a, b in zip(*pairs, strict=True):
        yield np.outer(of == a, of == b)


def test_edges_of_masses_are_those_of_repeated_rows():
    """Without those between copies: rows of sum 1 each, added up over the copies."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    mass = np.random.default_rng(1).integers(1, 4, 60)
    of = np.repeat(np.arange(60), mass)
    how = {"affinity": "dense", "epsilon": 2.0}
    one = hs.diffusion(X, **how, sample_weight=mass)
    many = hs.diffusion(X[of], **how)
    A = many.operator @ np.eye(len(of))
    A = A[np.ix_(many.vertex, many.vertex)] * (of[:, None] != of)
    A /= A.sum(axis=1, keepdims=True)
    first = np.r_[0, np.cumsum(mass)[:-1]]
    want = np.add.reduceat(np.add.reduceat((A + A.T) / (2 * len(of)), first), first, axis=1)
    weights = one.scaling.weights
    found = edges_of(sparse.csr_matrix(one.operator @ np.eye(60)), float, weights).toarray()
    found = found[np.ix_(one.vertex, one.vertex)]
    assert_allclose(found, want, atol=1e-12)


def test_a_tree_and_compiled_loops_count_masses(monkeypatch):
    _, Y, pairs, logs = problem(900)
    mass = np.random.default_rng(1).uniform(0.1, 5, 900)
    exact = HOST.all_repulsion(Y, 0.7, mass)
    for opening, error in ((0.0, 1e-11), (0.25, 1e-3)):
        force, total = HOST.repulsion(opening, mass)(Y, 0.7)
        assert np.linalg.norm(force - exact[0]) <= error * np.linalg.norm(exact[0])
        assert total == pytest.approx(exact[1], rel=error)
    term, found = LogDistances(900, pairs, logs, HOST, float, mass), []
    for limit in (0, 900):
        set_limits(monkeypatch, uncompiled_points=limit)
        found.append(term.gradient(Y, 0.7))
    assert_allclose(found[0], found[1], rtol=0, atol=1e-11 * np.abs(found[1]).max())


def test_weights_of_a_fit_count_in_its_layout():
    """A group whose points count ten times takes more of the picture, as one of more points."""
    X = np.random.default_rng(0).normal(size=(300, 4)) + 4.0 * (np.arange(300) % 2)[:, None]
    heavy = np.arange(300) % 2 == 1
    sizes = []
    for weight in (1.0, 10.0):
        w = np.where(heavy, weight, 1.0)
        Y = hs.HeatEmbedding(random_state=0).fit_transform(X, sample_weight=w)
        spread = [
            np.median(np.linalg.norm(G - np.median(G, axis=0), axis=1))
            for G in (Y[heavy], Y[~heavy])
        ]
        sizes.append(spread[0] / spread[1])
    assert sizes[1] > sizes[0]


def test_a_location_is_a_minimum():
    """Also where the sum is flat: slopes of the place follow from those at a true minimum."""
    rng = np.random.default_rng(0)
    P, w = rng.normal(size=(3_000, 15, 2)), rng.random((3_000, 15)) ** 4
    y = located(P, w, 0.3)
    slope, curvature = slope_and_curvature(y, P, w, 0.3)
    assert np.linalg.norm(slope, axis=1).max() < 1e-9
    assert np.linalg.eigvalsh(curvature).min() > -1e-9
