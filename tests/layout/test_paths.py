"""Paths of free layouts: landmarks, pairs, targets, the start; what pictures gain by them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist, pdist
from scipy.stats import spearmanr

import heatsketch as hs
from heatsketch.backend import HOST
from heatsketch.layout import maps
from heatsketch.layout.free import among_neighbors
from heatsketch.layout.paths import (
    Paths,
    followed,
    graph_of_lengths,
    paths_of_few,
    paths_within,
    with_few_digits,
)
from heatsketch.layout.terms import LogDistances
from heatsketch.metrics.picture import excess_ranks, sampled_geodesics
from problems.clouds import cloud, even_circle, noisy_tree, rings

pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")


def paths_of(X, **options):
    """Return the paths of connected points, and the diffusion."""
    d = hs.diffusion(X, **options)
    (paths,) = paths_within(d, [np.arange(d.n)])
    return paths, d


def given_paths(X, count=20):
    """Return straight paths between points X (n, c)."""
    order = np.random.default_rng(0).permutation(len(X))
    return Paths(np.arange(len(X)), order, cdist(X[order[:count]], X))


def strip(n=600, length=12, seed=0):
    """Return points of a strip in eight dimensions with noise, and their places."""
    rng = np.random.default_rng(seed)
    flat = rng.uniform(size=(n, 2)) * [length, 1]
    isometry = np.linalg.qr(rng.standard_normal((8, 2)))[0]
    return flat @ isometry.T + 0.03 * rng.standard_normal((n, 8)), flat


# Lengths, landmarks, pairs


def test_lengths_on_a_circle_are_those_of_the_polygon():
    n = 60
    paths, d = paths_of(even_circle(n), n_neighbors=2)
    steps = np.abs(d.first_points[paths.landmarks][:, None] - d.first_points)
    steps = np.minimum(steps, n - steps)
    assert_allclose(paths.lengths, 2 * np.sin(np.pi / n) * steps, atol=1e-12)


def test_landmarks_are_the_same_points_in_any_order_with_copies_and_in_float32():
    X = cloud(400, 5, seed=1)
    rows = np.random.default_rng(0).permutation(np.append(np.arange(400), np.arange(50)))
    paths, d = paths_of(X)
    expected = X[d.first_points[paths.order]]
    for points in (X[rows], X.astype(np.float32)):
        other, of_other = paths_of(points)
        assert_allclose(points[of_other.first_points[other.order]], expected, rtol=1e-6)
        assert_allclose(other.lengths[:, other.order], paths.lengths[:, paths.order], rtol=1e-5)
        for one, same in zip(paths.pairs()[0], other.pairs()[0], strict=True):
            assert_allclose(points[of_other.first_points[same]], X[d.first_points[one]], rtol=1e-6)


@pytest.mark.parametrize("n", [11, 300])
def test_pairs_have_a_landmark_and_its_length(n):
    X = cloud(n, 2)
    paths = given_paths(X)
    (i, j), logs = paths.pairs()
    assert set(j) <= set(paths.landmarks)
    ratios = np.exp(logs) / np.linalg.norm(X[i] - X[j], axis=1)
    assert_allclose(ratios, 2.0 ** np.round(np.log2(ratios[0])), rtol=1e-9)  # of one unit
    others = np.delete(np.arange(n), paths.landmarks)  # which have no pair with themselves
    assert set(np.bincount(i, minlength=n)[others]) <= {min(len(paths.landmarks), 12)}


def test_lengths_of_given_distances_are_those_of_the_points():
    X = cloud(120, 3)
    own, other = (
        graph_of_lengths(d)
        for d in (hs.diffusion(X), hs.diffusion(cdist(X, X), metric="precomputed"))
    )
    assert sorted(own.data) == pytest.approx(sorted(other.data), rel=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"affinity": "dense", "epsilon": 2.0},
        {"affinity": "radius", "epsilon": 2.0},
        {"metric": "manhattan"},
    ],
)
def test_without_a_graph_of_lengths_there_are_no_paths(options):
    X = cloud(80, 3)
    d = hs.diffusion(X, **options)
    assert paths_within(d, [np.arange(d.n)]) is None
    half, off = (hs.HeatEmbedding(path_weight=w, **options).fit_transform(X) for w in (0.5, 0.0))
    assert_array_equal(half, off)


def test_components_have_paths_of_their_own_and_the_verdict_takes_them():
    d = hs.diffusion(rings((90, 40)), n_neighbors=4)
    labels = d.operator.components()
    components = [np.flatnonzero(labels == label) for label in range(2)]
    paths = paths_within(d, components)
    assert [one.lengths.shape for one in paths] == [(len(c), len(c)) for c in components]
    assert paths_within(d, [np.arange(d.n)]) is None
    sources, lengths = paths_of_few(paths, 50)
    assert_array_equal(np.bincount(labels[sources]), [35, 15])
    assert_array_equal(np.isfinite(lengths), labels[sources][:, None] == labels)
    known = sampled_geodesics(d)
    both = [np.flatnonzero(known[0] == s) for s in sources]
    for row, at in zip(lengths, both, strict=True):
        assert_allclose(known[1][at], row[None].repeat(len(at), axis=0), rtol=1e-12)


# Targets, start, spread


def test_the_weight_leads_from_distances_to_lengths():
    logs, lengths = np.random.default_rng(0).normal(size=(2, 101))
    assert_array_equal(followed(logs, lengths, 0.0), logs)
    wider = 2 * lengths
    for w in (0.3, 1.0):
        found = followed(logs, wider, w)
        assert_allclose(np.diff(found), (1 - w) * np.diff(logs) + w * np.diff(wider), atol=1e-12)
    assert np.median(followed(logs, lengths, 1.0)) == pytest.approx(np.median(logs))


def test_lengths_that_are_nearly_equal_get_the_range_of_the_distances():
    logs, lengths = np.random.default_rng(0).normal(size=(2, 1_001))
    found = followed(logs, 5 + lengths / 20, 1.0)
    ranges = [np.ptp(np.quantile(x, [0.025, 0.975])) for x in (found, logs)]
    assert ranges[0] == pytest.approx(ranges[1])
    assert spearmanr(found, lengths)[0] == pytest.approx(1)
    assert_array_equal(followed(logs, np.full(1_001, 3.0), 1.0), np.full(1_001, np.median(logs)))


@pytest.mark.parametrize("c", [2, 3])
def test_the_start_has_the_distances_of_paths_that_fit(c):
    X = cloud(100, c)
    places, misfit = given_paths(X).start(c)
    assert_allclose(pdist(places), pdist(X), rtol=1e-9)
    assert misfit == pytest.approx(0, abs=1e-9)


def test_the_start_of_a_line_is_a_line():
    places, misfit = given_paths(np.arange(50.0)[:, None]).start(2)
    assert_allclose(pdist(places), pdist(np.arange(50.0)[:, None]), rtol=1e-9)
    assert misfit == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("corners", "expected"), [(10, 1.0), (5, 1.0), (4, 2 / 3), (3, 0.0)])
def test_the_misfit_of_equally_far_groups(corners, expected):
    """Of m corners of a simplex two dimensions hold 2 / (m - 1) of the spectrum."""
    X = np.repeat(np.eye(corners), 20, axis=0)
    assert given_paths(X, len(X)).start(2)[1] == pytest.approx(expected, abs=1e-9)


def test_the_weight_0_aims_at_diffusion_distances_of_random_pairs(monkeypatch):
    given = []

    def free_layout(M, root, start, pairs, targets, **options):
        given.append((pairs, targets, options))
        return start

    monkeypatch.setattr(maps, "free_layout", free_layout)
    model = hs.HeatEmbedding(2, 8, path_weight=0).fit(cloud(200, 3))
    ((pairs, targets, options),) = given
    D = hs.diffusion_distance(
        model.diffusion_,
        8,
        filter="accumulated",
        pairs=tuple(model.diffusion_.first_points[side] for side in pairs),
    )
    assert len(targets) == 20 * 200
    assert options["spread"] == 0.5
    assert_allclose(targets, np.log(D), atol=1e-9)


# Pictures


def kept(Y, places):
    return spearmanr(pdist(Y), pdist(places))[0]


def test_a_strip_stays_straight():
    X, flat = strip()
    followed, off = (kept(hs.HeatEmbedding(path_weight=w).fit_transform(X), flat) for w in (0.5, 0))
    assert followed > 0.95
    assert followed > off + 0.02


def test_the_spread_follows_the_data():
    """A strip keeps nearly its distances by default, a simplex of groups their order."""
    X, _ = strip()
    by_data, given = (hs.HeatEmbedding(spread=s).fit_transform(X) for s in ("auto", 0.0))
    assert hs.metrics.stability([by_data, given]) > 0.99


@pytest.mark.parametrize("normalization", ["markov", "symmetric", "bistochastic"])
def test_several_components_have_pictures_in_every_form(normalization):
    X = rings((90, 40))
    model = hs.HeatEmbedding(n_neighbors=4, normalization=normalization).fit(X)
    assert model._has_free_layout
    assert_array_equal(model.transform(X), model.embedding_)


def test_what_a_layout_starts_from_has_few_digits():
    rng = np.random.default_rng(0)
    M = sparse.random(40, 40, 0.2, "csr", rng=rng)
    given = (rng.random(40), 5 + rng.normal(size=(40, 2)), rng.normal(size=90))
    found = with_few_digits(M, *given)
    assert_allclose(found[0].data, M.data, rtol=2**-8)
    assert_allclose(found[1], given[0], rtol=2**-8)
    assert_allclose(found[2], given[1], atol=2**-9)
    assert_allclose(found[3], given[2], atol=2**-6)
    noisy = [x + 1e-12 * rng.normal(size=x.shape) for x in given]
    M.data += 1e-12
    for one, same in zip(found[1:], with_few_digits(M, *noisy)[1:], strict=True):
        assert_array_equal(one, same)


@pytest.mark.parametrize("name", ["roll", "groups", "tree"])
def test_pictures_are_the_same_in_both_precisions(name):
    """No pair moves by more than a twentieth of the picture."""
    X = {
        "roll": lambda: hs.datasets.swiss_roll(400, rng=0)[0],
        "groups": lambda: cloud(300, 6) + 4 * np.eye(5, 6)[np.arange(300) % 5],
        "tree": noisy_tree,
    }[name]()
    one, other = (pdist(hs.HeatEmbedding().fit_transform(X.astype(t))) for t in (float, np.float32))
    assert np.abs(one - other).max() < 0.05 * one.max()


def test_the_gradient_is_that_of_the_value_at_a_point_of_many_pairs():
    rng = np.random.default_rng(0)
    Y, step = rng.normal(size=(2, 400, 2))
    pairs = np.arange(1, 400), np.zeros(399, int)
    term = LogDistances(400, pairs, rng.normal(size=399), HOST, float)
    up, down = (term.value(Y + sign * 1e-6 * step, 1.0) for sign in (1, -1))
    assert np.sum(term.gradient(Y, 1.0) * step) == pytest.approx((up - down) / 2e-6, rel=1e-6)
    assert_allclose(term.gradient(Y, 1.0).sum(axis=0), 0, atol=1e-12)


def test_points_go_near_the_median_of_their_neighbours_and_stay_apart():
    Y = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [9.0, 9.0], [7.0, 7.0], [1.0, 1.0]])
    M = sparse.csr_matrix((6, 6)).tolil()
    M[3, [0, 1, 2, 3]] = 1.0  # the median of three points with a right angle between equal sides
    M[4, [3, 4, 5]] = [1.0, 5.0, 9.0]  # of two points: the heavier one, and a little of the mean
    M[5, 5] = 1.0  # no neighbour: it stays
    found = among_neighbors(Y, M.tocsr(), np.array([3, 4, 5]))
    assert_array_equal(found[[0, 1, 2, 5]], Y[[0, 1, 2, 5]])
    fermat = 4 / (3 + np.sqrt(3))
    assert_allclose(found[3], 0.9 * fermat + 0.1 * 4 / 3, rtol=1e-9)
    assert_allclose(found[4], 0.9 * 1 + 0.1 * (9 + 9) / 10, rtol=1e-9)


@pytest.mark.parametrize("seed", [1, 4])
def test_no_point_and_its_neighbours_drive_each_other_away(seed):
    """Forces that are not mutual did so on these rolls."""
    X, unrolled = hs.datasets.swiss_roll(3_000, rng=seed)
    Y = hs.HeatEmbedding(random_state=0).fit_transform(X)
    far = np.linalg.norm(Y - np.median(Y, axis=0), axis=1)
    assert far.max() < 1.2 * np.quantile(far, 0.98)
    some = np.random.default_rng(0).choice(3_000, 500, replace=False)
    assert spearmanr(pdist(Y[some]), pdist(unrolled[some]))[0] > 0.999


def test_landmarks_stay_among_their_neighbours():
    X = cloud(3_000, 4)
    model = hs.HeatEmbedding().fit(X)
    d, Y = model.diffusion_, model.embedding_
    (paths,) = paths_within(d, [np.arange(d.n)])
    others = np.setdiff1d(np.arange(d.n), paths.landmarks)[:600]
    lost = [
        excess_ranks(X, Y, 15, d.first_points[rows])[0].mean() for rows in (paths.landmarks, others)
    ]
    assert lost[0] < 1.1 * lost[1]
