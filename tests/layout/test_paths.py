"""Lengths of free layouts: landmarks, pairs, misfit, targets; what pictures gain by them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist, pdist
from scipy.stats import spearmanr

import heatsketch as hs
from heatsketch.core.blocks import HOST
from heatsketch.layout.free import (
    Lengths,
    LogDistances,
    followed,
    graph_of_lengths,
    log_quantiles,
    spread_targets,
    wanted_distances,
)
from heatsketch.layout.maps import step_graph
from heatsketch.metrics.picture import excess_ranks, sampled_geodesics
from problems.clouds import cloud, even_circle, noisy_tree, rings, rotation

seeds = st.integers(0, 10**6)
dimensions = pytest.mark.parametrize("c", [2, 3])
pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")


def lengths_of(X, **options):
    """Return the lengths along the graph of points, and the diffusion."""
    d = hs.diffusion(X, **options)
    return Lengths.along_graph(d, step_graph(d)), d


def straight(X, count=20):
    """Return straight lengths between points X (n, c)."""
    order = np.random.default_rng(0).permutation(len(X))
    along = cdist(X[order[:count]], X)
    return Lengths(order, along, np.ones(along.shape, bool), X)


def strip(n=600, length=12, seed=0):
    """Return points of a strip in eight dimensions with noise, and their places."""
    rng = np.random.default_rng(seed)
    flat = rng.uniform(size=(n, 2)) * [length, 1]
    isometry = np.linalg.qr(rng.standard_normal((8, 2)))[0]
    return flat @ isometry.T + 0.03 * rng.standard_normal((n, 8)), flat


# Lengths, landmarks, pairs


def test_lengths_on_a_circle_are_those_of_the_polygon():
    n = 60
    lengths, d = lengths_of(even_circle(n), n_neighbors=2)
    steps = np.abs(d.first_points[lengths.landmarks][:, None] - d.first_points)
    steps = np.minimum(steps, n - steps)
    assert_allclose(lengths.along, 2 * np.sin(np.pi / n) * steps, atol=1e-12)


def test_landmarks_are_the_same_points_in_any_order_with_copies_and_in_float32():
    X = cloud(400, 5, seed=1)
    rows = np.random.default_rng(0).permutation(np.append(np.arange(400), np.arange(50)))
    lengths, d = lengths_of(X)
    expected = X[d.first_points[lengths.order]]
    for points in (X[rows], X.astype(np.float32)):
        other, of_other = lengths_of(points)
        assert_allclose(points[of_other.first_points[other.order]], expected, rtol=1e-6)
        along = lengths.along[:, lengths.order]
        assert_allclose(other.along[:, other.order], along, rtol=1e-5)
        (i, at), (same, same_at) = lengths.pairs(), other.pairs()
        assert_allclose(points[of_other.first_points[same]], X[d.first_points[i]], rtol=1e-6)
        assert_array_equal(same_at, at)


@pytest.mark.parametrize("n", [11, 300])
def test_every_point_has_pairs_with_landmarks_but_not_with_itself(n):
    lengths = straight(cloud(n, 2))
    i, at = lengths.pairs()
    assert (i != lengths.landmarks[at]).all()
    others = np.delete(np.arange(n), lengths.landmarks)
    assert set(np.bincount(i, minlength=n)[others]) <= {min(len(lengths.landmarks), 12)}
    assert (np.bincount(i, minlength=n) > 0).all()


def test_lengths_of_given_distances_are_those_of_the_points():
    X = cloud(120, 3)
    own, other = (
        graph_of_lengths(d)
        for d in (hs.diffusion(X), hs.diffusion(cdist(X, X), metric="precomputed"))
    )
    assert sorted(own.data) == pytest.approx(sorted(other.data), rel=1e-12)


@pytest.mark.parametrize(
    "options", [{"affinity": "dense", "epsilon": 2.0}, {"affinity": "radius", "epsilon": 2.0}]
)
def test_without_a_graph_of_neighbours_paths_go_along_the_largest_affinities(options):
    X = cloud(80, 3)
    lengths, d = lengths_of(X, **options)
    points = X[d.first_points]
    distances = cdist(points[lengths.landmarks], points)
    assert (lengths.along >= distances * (1 - 1e-12)).all()
    own = np.arange(len(lengths.along))[:, None]
    some = own, np.argsort(distances, axis=1)[:, :6]  # edges, on which paths are straight
    assert_allclose(lengths.along[some], distances[some], rtol=1e-12)


def test_without_distances_of_pairs_there_are_no_paths():
    X = cloud(80, 3)
    assert lengths_of(X, metric="manhattan")[0] is None
    d = hs.Diffusion.from_affinity(np.exp(-cdist(X, X)))
    assert Lengths.along_graph(d, step_graph(d)) is None


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_between_components_lengths_are_straight_by_the_typical_ratio(metric):
    X = rings((90, 40))
    given = cdist(X, X) if metric == "precomputed" else X
    lengths, d = lengths_of(given, n_neighbors=4, metric=metric)
    labels, points = d.operator.components(), X[d.first_points]
    same = labels[lengths.landmarks][:, None] == labels
    assert_array_equal(lengths.joined, same)
    distances = cdist(points[lengths.landmarks], points)
    ratios = lengths.along[~same] / distances[~same]
    assert_allclose(ratios, ratios[0], rtol=1e-12)
    within = lengths.along[same & (distances > 0)] / distances[same & (distances > 0)]
    assert within.min() <= ratios[0] <= within.max()
    assert 1 <= ratios[0] <= np.pi / 2 * 1.01  # a half circle over its diameter
    i, j = lengths.pairs()
    assert_allclose(
        lengths.straight(i, lengths.landmarks[j]),
        np.linalg.norm(points[i] - points[lengths.landmarks[j]], axis=1),
        rtol=1e-12,
    )


def test_the_verdict_takes_lengths_within_components():
    lengths, d = lengths_of(rings((90, 40)), n_neighbors=4)
    labels = d.operator.components()
    sources = lengths.landmarks[:50]
    along = np.where(lengths.joined, lengths.along, np.inf)[:50]
    assert_array_equal(np.isfinite(along), labels[sources][:, None] == labels)
    known = sampled_geodesics(d)
    both = [np.flatnonzero(known[0] == s) for s in sources]
    for row, at in zip(along, both, strict=True):
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
@pytest.mark.parametrize("of", [1, 2, 3])
def test_the_start_has_the_distances_of_lengths_that_fit(c, of):
    X = np.random.default_rng(0).uniform(size=(150, min(of, c)))
    X = X if min(of, c) > 1 else np.arange(150.0)[:, None]  # within 3.5 medians: an even line
    lengths = straight(X, 100)
    assert_allclose(pdist(lengths.placed(c)), pdist(X), rtol=1e-9)
    assert lengths.misfit(c) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("part", [0.0, 0.4, 1.0])
def test_spread_lengths_are_those_of_spread_targets(part):
    X = cloud(150, 8)
    X[:75] /= 100
    lengths = straight(X, 60)
    moved = lengths.spread(part, 2)
    assert (np.diff(moved.along.ravel()[np.argsort(lengths.along, axis=None)]) >= -1e-12).all()
    i, at = lengths.pairs()
    apart = np.log(moved.along[at, i]) - spread_targets(np.log(lengths.along[at, i]), part, 2)
    assert np.ptp(apart) < 1e-9
    assert (moved.along[np.arange(60), lengths.landmarks] == 0).all()
    twice = straight(2.0**-200 * X, 60).spread(part, 2)
    assert_array_equal(twice.along, moved.along)


def test_the_start_shows_a_dense_group_that_lies_far_from_a_wide_one():
    """It would not open later: steps are as long as its edges, which are the median ones."""
    X = cloud(300, 10)
    X[:150] = 50 + X[:150] / 100
    start = straight(X, 120).spread(1.0, 2).placed(2)
    assert np.ptp(start[:150], axis=0).max() > 0.04 * np.ptp(start)
    plain = straight(X, 120).placed(2)
    assert np.ptp(plain[:150], axis=0).max() < 1e-3 * np.ptp(plain)


@pytest.mark.parametrize(("corners", "expected"), [(10, 1.0), (5, 1.0), (4, 2 / 3), (3, 0.0)])
def test_the_misfit_of_equally_far_groups(corners, expected):
    """Of m corners of a simplex two dimensions hold 2 / (m - 1) of the spectrum."""
    X = np.repeat(np.eye(corners), 20, axis=0)
    assert straight(X, len(X)).misfit(2) == pytest.approx(expected, abs=1e-9)


def test_the_misfit_looks_near_where_a_few_far_groups_take_the_spectrum():
    """Three heaps, one with two thirds of the points, whose near halves are within it."""
    corners = np.pad(even_circle(3), ((0, 0), (0, 28)))[np.repeat([0, 1, 2], [80, 20, 20])]
    X = 300 * corners + np.random.default_rng(0).normal(size=(120, 30))
    flat = X * (np.arange(30) < 2)
    assert straight(flat, 120).misfit(2) < 0.2
    assert straight(X, 120).misfit(2) > 0.9


def test_the_distances_wanted_are_lengths_where_the_plane_holds_them():
    X, F = cloud(200, 2), cloud(200, 5, seed=1)
    lengths = straight(X)
    misfit = lengths.misfit(2)
    assert misfit == pytest.approx(0, abs=1e-9)
    (i, j), T = wanted_distances(lengths, F, misfit)
    log_g = np.log(np.linalg.norm(X[i] - X[j], axis=1))
    assert_allclose(T - T.mean(), log_g - log_g.mean(), atol=1e-6)


def test_the_distances_wanted_are_half_of_diffusion_half_straight_where_it_does_not():
    X, F = cloud(200, 20), cloud(200, 5, seed=1)
    lengths = straight(X)
    lengths.along[:] = np.square(lengths.along)  # which do not count
    assert lengths.misfit(2) == 1
    (i, j), T = wanted_distances(lengths, F, 1.0)
    log_e, log_d = (np.log(np.linalg.norm(one[i] - one[j], axis=1)) for one in (X, F))
    stretch = max(
        1,
        *(np.ptp(np.quantile(log_d, [0.025, 0.975])) / np.ptp(np.quantile(log_e, [0.025, 0.975])),),
    )
    wanted = (log_d + stretch * log_e) / 2
    assert_allclose(T - T.mean(), wanted - wanted.mean(), atol=1e-9)
    followed_T = wanted_distances(lengths, F, 0.0)[1]
    log_g = 2 * log_e
    stretch = max(
        1, np.ptp(np.quantile(log_d, [0.025, 0.975])) / np.ptp(np.quantile(log_g, [0.025, 0.975]))
    )
    assert_allclose(followed_T - followed_T.mean(), stretch * (log_g - log_g.mean()), atol=1e-9)


def test_between_components_diffusion_does_not_count():
    lengths, d = lengths_of(rings((90, 40)), n_neighbors=4)
    F = cloud(d.n, 5)
    (i, j), T = wanted_distances(lengths, F, lengths.misfit(2))
    labels = d.operator.components()
    other = F.copy()
    other[labels == 1] *= -1
    again = wanted_distances(lengths, other, lengths.misfit(2))[1]
    assert_allclose(again, T, atol=1e-9)
    assert (labels[i] != labels[j]).any()


def test_rows_alone_are_what_is_wanted_where_points_are_not_known():
    F = cloud(150, 4)
    lengths = Lengths.of_rows(F, np.random.default_rng(0).permutation(150))
    (i, j), T = wanted_distances(lengths, F, 0.5)
    distances = np.linalg.norm(F[i] - F[j], axis=1)
    assert_allclose(T - T.mean(), np.log(distances) - np.log(distances).mean(), atol=1e-12)


@pytest.mark.parametrize("scale", [2.0**-300, 2.0**300])
def test_the_unit_of_lengths_does_not_count(scale):
    X, F = cloud(120, 6), cloud(120, 5, seed=1)
    lengths, others = straight(X), straight(scale * X)
    misfit = lengths.misfit(2)
    assert others.misfit(2) == pytest.approx(misfit, rel=1e-9)
    _, T = wanted_distances(lengths, F, misfit)
    _, scaled = wanted_distances(others, scale * F, misfit)
    assert_allclose(scaled - scaled.mean(), T - T.mean(), atol=1e-9)


# Spread


@dimensions
def test_quantiles_are_those_of_random_points(c):
    """False alarms 1e-6 for both together, by the inequality of Massart."""
    rng, m = np.random.default_rng(0), 200_000
    ends = rng.normal(size=(2, m, c))
    ends *= (rng.random((2, m)) ** (1 / c) / np.linalg.norm(ends, axis=2))[..., None]
    distances = np.sort(np.linalg.norm(ends[0] - ends[1], axis=1))
    ranks = (np.arange(m) + 0.5) / m
    found = np.searchsorted(distances, np.exp(log_quantiles(ranks, c))) / m
    assert np.abs(found - ranks).max() <= math.sqrt(math.log(2 / 5e-7) / (2 * m))


@dimensions
def test_moments_of_quantiles(c):
    """E |x - y|² = 2 c / (c + 2); E |x - y| = 128 / 45 π in a disc, 36 / 35 in a ball."""
    distances = np.exp(log_quantiles((np.arange(10**6) + 0.5) / 10**6, c))
    assert np.mean(distances**2) == pytest.approx(2 * c / (c + 2), rel=1e-5)
    mean = {2: 128 / (45 * math.pi), 3: 36 / 35}[c]
    assert distances.mean() == pytest.approx(mean, rel=1e-5)


@dimensions
@given(seeds, st.floats(0, 1))
def test_targets_keep_order_and_move_with_scale(c, seed, spread):
    logs = 3 * np.random.default_rng(seed).normal(size=101)
    targets = spread_targets(logs, spread, c)
    assert (np.diff(targets[np.argsort(logs)]) >= -1e-12).all()
    assert_allclose(spread_targets(logs + 5, spread, c), targets + 5, atol=1e-9)
    assert np.median(targets) == pytest.approx(np.median(logs), abs=0.05)


@dimensions
def test_targets_at_both_ends(c):
    logs = np.random.default_rng(0).normal(size=1_001)
    assert_allclose(spread_targets(logs, 0.0, c), logs, atol=1e-12)
    stretched = np.where(logs > 0, 7 * logs, logs**3)  # only the order counts
    same = spread_targets(logs, 1.0, c) - np.median(logs)
    assert_allclose(spread_targets(stretched, 1.0, c) - np.median(stretched), same, atol=1e-12)


def test_equal_distances_have_equal_targets():
    logs = np.repeat([0.0, 1.0, 2.0], [5, 3, 4])
    for spread in (0.3, 1.0):
        assert len(np.unique(spread_targets(logs, spread, 2))) == 3


# Pictures


def kept(Y, places):
    return spearmanr(pdist(Y), pdist(places))[0]


def test_a_strip_stays_straight():
    """More than by diffusion and straight distances alone, of which the first fold it."""
    X, flat = strip()
    assert kept(hs.HeatEmbedding().fit_transform(X), flat) > 0.98


def test_a_circle_stays_a_circle():
    n = 200
    X = even_circle(n) @ rotation(5)[:2] + 0.01 * cloud(n, 5)
    Y = hs.HeatEmbedding().fit_transform(X)
    assert kept(Y, even_circle(n)) > 0.9


def test_a_roll_is_unrolled():
    X, unrolled = hs.datasets.swiss_roll(1_000, rng=0)
    assert kept(hs.HeatEmbedding().fit_transform(X), unrolled) > 0.98


def test_the_spread_follows_the_data():
    """A strip keeps nearly its distances by default, a simplex of groups their order."""
    X, _ = strip()
    by_data, given = (hs.HeatEmbedding(spread=s).fit_transform(X) for s in ("auto", 0.0))
    assert hs.metrics.stability([by_data, given]) > 0.99


def test_gaps_between_components_are_in_the_order_of_distances():
    """Three clouds on a line, 10 and 20 apart."""
    group = np.arange(180) % 3
    X = 0.5 * np.random.default_rng(0).normal(size=(180, 4))
    X[:, 0] += np.array([0.0, 10.0, 30.0])[group]
    model = hs.HeatEmbedding(n_neighbors=8).fit(X)
    assert model.diagnostics_["components"] == 3
    assert "layout" not in model.diagnostics_
    centres = np.array([model.embedding_[group == g].mean(axis=0) for g in range(3)])
    near, far, both = np.linalg.norm(centres[[0, 1, 0]] - centres[[1, 2, 2]], axis=1)
    assert near < far < both
    widest = max(pdist(model.embedding_[group == g]).max() for g in range(3))
    assert near > widest / 2


@pytest.mark.parametrize("normalization", ["markov", "symmetric", "bistochastic"])
def test_several_components_have_pictures_in_every_form(normalization):
    X = rings((90, 40))
    model = hs.HeatEmbedding(n_neighbors=4, normalization=normalization).fit(X)
    assert model._has_free_layout
    assert_array_equal(model.transform(X), model.embedding_)


@pytest.mark.parametrize("name", ["roll", "groups", "tree"])
def test_pictures_are_the_same_in_both_precisions(name):
    """Most points stay, and single ones end elsewhere: a descent may decide by the last digit."""
    X = {
        "roll": lambda: hs.datasets.swiss_roll(400, rng=0)[0],
        "groups": lambda: cloud(300, 6) + 4 * np.eye(5, 6)[np.arange(300) % 5],
        "tree": noisy_tree,
    }[name]()
    one, other = (pdist(hs.HeatEmbedding().fit_transform(X.astype(t))) for t in (float, np.float32))
    moved = np.abs(one - other) / one.max()
    assert np.median(moved) < 5e-3
    assert np.quantile(moved, 0.9) < 0.03  # a point takes part in a 150th of the pairs


def test_the_gradient_is_that_of_the_value_at_a_point_of_many_pairs():
    rng = np.random.default_rng(0)
    Y, step = rng.normal(size=(2, 400, 2))
    pairs = np.arange(1, 400), np.zeros(399, int)
    term = LogDistances(400, pairs, rng.normal(size=399), HOST, float)
    up, down = (term.value(Y + sign * 1e-6 * step, 1.0) for sign in (1, -1))
    assert np.sum(term.gradient(Y, 1.0) * step) == pytest.approx((up - down) / 2e-6, rel=1e-6)
    assert_allclose(term.gradient(Y, 1.0).sum(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize("seed", [1, 4])
def test_no_point_and_its_neighbours_drive_each_other_away(seed):
    """Forces that are not mutual did so on these rolls."""
    X, unrolled = hs.datasets.swiss_roll(3_000, rng=seed)
    Y = hs.HeatEmbedding(random_state=0).fit_transform(X)
    far = np.linalg.norm(Y - np.median(Y, axis=0), axis=1)
    assert far.max() < 1.2 * np.quantile(far, 0.98)
    some = np.random.default_rng(0).choice(3_000, 500, replace=False)
    assert spearmanr(pdist(Y[some]), pdist(unrolled[some]))[0] > 0.995


def test_landmarks_stay_among_their_neighbours():
    X = cloud(3_000, 4)
    model = hs.HeatEmbedding().fit(X)
    d, Y = model.diffusion_, model.embedding_
    landmarks = Lengths.along_graph(d, None).landmarks
    others = np.setdiff1d(np.arange(d.n), landmarks)[:600]
    lost = [excess_ranks(X, Y, 15, d.first_points[rows])[0].mean() for rows in (landmarks, others)]
    assert lost[0] < 1.1 * lost[1]


@pytest.mark.parametrize("spread", ["auto", 1.0])
def test_a_few_far_points_do_not_take_the_frame(spread):
    """Twelve points 300 times as far out as the others, which then span a 150th of the frame."""
    X = cloud(600, 2)
    X[:12] *= 300
    Y = hs.HeatEmbedding(spread=spread).fit_transform(X)
    assert np.ptp(X[12:], axis=0).max() / np.ptp(X, axis=0).max() < 0.02
    assert np.ptp(Y[12:], axis=0).max() / np.ptp(Y, axis=0).max() > 0.1


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("size", "gap"), [(0.1, 10), (0.01, 50)])
def test_a_dense_group_far_from_a_wide_one_is_no_dot(size, gap, seed):
    X = np.random.default_rng(seed).normal(size=(1_500, 10))
    X[:750] = gap + size * X[:750]
    model = hs.HeatEmbedding().fit(X)
    assert np.ptp(model.embedding_[:750], axis=0).min() > 0.25 * np.ptp(model.embedding_)
    assert model.quality_.crowding < 0.2


@pytest.mark.parametrize("n", [12, 18, 64, 200])
def test_a_line_stays_a_line(n):
    """Its start is right, and is not torn by steps that are as long as its edges."""
    Y = hs.HeatEmbedding().fit_transform(np.arange(float(n))[:, None])
    assert abs(spearmanr(Y[:, 0], np.arange(n))[0]) > 0.99
    assert np.abs(Y[:, 1]).max() < 1e-6 * np.ptp(Y)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [12, 15, 20, 30])
def test_few_points_of_a_plane_keep_their_distances(n, seed):
    X = np.random.default_rng(seed).uniform(size=(n, 2))
    Y = hs.HeatEmbedding().fit_transform(X)
    assert np.corrcoef(pdist(X), pdist(Y))[0, 1] > 0.9


def test_a_small_component_is_no_dot():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(300, 5)), 20 + rng.normal(size=(10, 5))])
    Y = hs.HeatEmbedding().fit_transform(X)
    assert pdist(Y[300:]).mean() > 0.2 * pdist(Y[:300]).mean()


def test_components_on_a_line_stand_on_a_line():
    """Lines of points, whose lengths fit on every scale, so that far ones are not cut."""
    starts = np.array([0.0, 20.0, 200.0])
    X = np.zeros((360, 3))
    X[:, 0] = np.repeat(starts, 120) + np.random.default_rng(0).uniform(-2, 2, 360)
    Y = hs.HeatEmbedding().fit_transform(X).reshape(3, 120, 2).mean(axis=1)
    assert_allclose(pdist(Y) / pdist(Y).max(), pdist(starts[:, None]) / 200, atol=0.02)


def test_lengths_of_a_line_fit_however_they_are_spaced():
    x = np.sort(np.random.default_rng(0).normal(size=300))[:, None]
    model = hs.HeatEmbedding().fit(x)
    assert model.quality_.misfit < 1e-9
    assert np.abs(model.embedding_[:, 1]).max() < 1e-6 * np.ptp(model.embedding_)
