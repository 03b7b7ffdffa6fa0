"""Audits of pictures that are right, and of pictures in which a fault is planted."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import heatsketch as hs
from heatsketch.classical import PCA
from heatsketch.comparison import audit
from heatsketch.comparison.audit import Evidence, columns_for_points, drawn_places
from problems.chance import ALARM, in_band
from problems.clouds import on_circle, rotation


def plane(n=900, seed=0):
    """Return noisy points of a square in ten dimensions, and the square."""
    rng = np.random.default_rng(seed)
    Y = rng.random((n, 2))
    X = Y @ np.linalg.qr(rng.standard_normal((10, 2)))[0].T
    return X + 0.005 * rng.standard_normal(X.shape), Y


def ring(n=900, seed=0):
    """Return points of a circle in six dimensions, their places on it, and their angles."""
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * rng.random(n)
    Y = on_circle(angle)
    X = Y @ rng.standard_normal((2, 6))
    return X + 0.02 * rng.standard_normal(X.shape), Y, angle


def clusters(seed=0):
    """Return three clusters in a row that touch, a picture of them that is right, and labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([0, 1, 2], 300)
    Y = rng.standard_normal((900, 2)) + np.c_[3.5 * labels, np.zeros(900)]
    return np.c_[Y, 0.1 * rng.standard_normal((900, 4))], Y, np.array(list("abc"))[labels]


def near(Y, place, count):
    """Say which are the `count` points nearest to a place."""
    found = np.zeros(len(Y), bool)
    found[np.argsort(np.linalg.norm(Y - place, axis=1))[:count]] = True
    return found


def turned(Y):
    return 1e3 * Y @ rotation(2) + 5.0


RIGHT = {"plane": plane, "ring": ring, "clusters": clusters}


@cache
def fitted(name):
    """Return the sketch that `audit` makes of points, and a right picture of them."""
    X, Y, *_ = RIGHT[name]()
    return hs.HeatSketch(64, 8, filter="accumulated", random_state=0).fit(X), Y


@pytest.mark.parametrize("name", RIGHT)
def test_right_pictures_have_hardly_a_dubious_point_and_noise_hardly_another(name):
    model, Y = fitted(name)
    found = hs.audit(model, turned(Y), random_state=0)
    assert found.dubious.mean() <= 0.01
    assert not found.torn
    assert not found.merged
    noise = np.random.default_rng(1).standard_normal(Y.shape)
    assert hs.audit(model, noise, random_state=0).dubious.mean() >= 0.95


def test_audits_know_neither_scale_nor_rotation_nor_shift_of_a_picture():
    X, Y = plane(400)
    first, second = (hs.audit(X, picture, random_state=0) for picture in (Y, turned(Y)))
    np.testing.assert_allclose(first.trust, second.trust, atol=1e-5)  # of float32 means
    np.testing.assert_array_equal(first.neighbors_kept, second.neighbors_kept)


@pytest.mark.parametrize("name", RIGHT)
def test_points_moved_at_random_are_found(name):
    model, Y = fitted(name)
    rng = np.random.default_rng(2)
    moved = rng.permutation(len(Y)) < len(Y) // 20
    wrong = Y.copy()
    wrong[moved] = rng.uniform(Y.min(axis=0), Y.max(axis=0), (moved.sum(), 2))
    found = hs.audit(model, wrong, random_state=0)
    assert roc_auc_score(~moved, found.trust) >= 0.98
    assert found.dubious[moved].mean() >= 0.8
    assert found.dubious[~moved].mean() <= 0.02


def test_a_group_moved_onto_another_is_trusted_less_and_called_merged():
    model, Y = fitted("plane")
    moved = near(Y, [0.2, 0.2], 90)
    wrong = Y + 0.6 * moved[:, None]
    found = hs.audit(model, wrong, random_state=0)
    assert roc_auc_score(~moved, found.trust) >= 0.95
    both = moved | near(Y, [0.8, 0.8], 90)
    assert np.mean(np.isin(np.flatnonzero(both), found.merged[0])) >= 0.8
    assert np.mean(both[found.merged[0]]) >= 0.8


def test_a_cluster_laid_over_another_is_trusted_less_in_a_noisy_picture():
    """Both clusters are wrong where a fifth of the neighbours are of the other."""
    (model, Y), labels = fitted("clusters"), clusters()[2]
    moved, there = labels == "a", labels == "c"
    wrong = (
        Y + 0.3 * np.random.default_rng(1).standard_normal(Y.shape) + [7.0, 0.0] * moved[:, None]
    )
    found = hs.audit(model, wrong, random_state=0)
    others = moved[np.argsort(cdist(wrong, wrong), axis=1)[:, 1:16]] != moved[:, None]
    mixed = (moved | there) & (others.mean(axis=1) >= 0.2)
    counted = mixed | (labels == "b")
    assert roc_auc_score(~mixed[counted], found.trust[counted]) >= 0.95


@pytest.mark.parametrize("seed", [0, 3])
def test_points_on_both_sides_of_a_cut_are_trusted_less(seed):
    X, _Y, angle = ring(1200, seed)
    cut = on_circle(angle * (2 * np.pi - 1) / (2 * np.pi))
    near_cut = np.argsort(np.argsort(np.minimum(angle, 2 * np.pi - angle))) < 40
    trusts = [hs.audit(X, cut, random_state=draw).trust for draw in range(3)]
    assert np.median([roc_auc_score(~near_cut, trust) for trust in trusts]) >= 0.85


def test_two_halves_pulled_apart_are_trusted_less_and_called_torn():
    model, Y = fitted("plane")
    half = near(Y, [0.5, 0.5], 180) & (Y[:, 0] > 0.5)
    wrong = Y + [2.0, 0.0] * half[:, None]
    found = hs.audit(model, wrong, random_state=0)
    assert roc_auc_score(~half, found.trust) >= 0.9
    torn = np.concatenate(found.torn)
    rim = near(Y, [0.5, 0.5], 300) & (Y[:, 0] > 0.4)  # where the half was cut out
    assert np.mean(rim[torn]) >= 0.95


def test_a_cut_ring_is_torn_at_the_cut():
    X, _Y, angle = ring(1200)
    opened = angle * (2 * np.pi - 1.5) / (2 * np.pi)
    found = hs.audit(X, on_circle(opened), random_state=0)
    at_cut = np.minimum(angle, 2 * np.pi - angle) < 0.1
    assert len(found.torn) == 1
    assert at_cut[found.torn[0]].all()
    assert len(found.torn[0]) >= 0.2 * at_cut.sum()
    assert roc_auc_score(np.minimum(angle, 2 * np.pi - angle) > 0.05, found.trust) >= 0.9


def test_fractions_and_orders_are_those_of_their_definition():
    X, Y = plane(300)
    found = hs.audit(X, Y, n_neighbors=5, random_state=0)
    before, after = cdist(found.model.embedding_, found.model.embedding_), cdist(Y, Y)
    orders = [np.argsort(D + np.diag(np.full(300, -1.0)), axis=1)[:, 1:] for D in (before, after)]
    for p in range(0, 300, 7):
        true, seen = (order[p] for order in orders)
        assert found.neighbors_kept[p] == np.isin(true[:5], seen[:10]).mean()
        np.testing.assert_allclose(
            found.false_neighbors[p], 1 - np.isin(seen[:5], true[:10]).mean()
        )
        rho = spearmanr(before[p], after[p]).statistic
        np.testing.assert_allclose(found.order_kept[p], rho, atol=1e-5)


def test_trust_is_that_of_its_definition():
    """Landmarks are all points, so that the definition needs no choice of them."""
    X, Y = plane(300)
    model = hs.HeatSketch(16, random_state=0).fit(X)
    wrong = Y + 0.05 * np.random.default_rng(1).standard_normal(Y.shape)
    k, n, F = 6, 300, model.embedding_
    found = hs.audit(model, wrong, n_neighbors=k, random_state=0)
    evidence = Evidence.from_points(F, wrong - wrong.mean(axis=0), k, np.arange(n))
    placement = evidence.believed().placement
    before, after = cdist(F, F), cdist(wrong, wrong)
    true, seen = (np.argsort(D, axis=1)[:, 1:] for D in (before, after))
    least = 4 * k / n
    torn, false = np.zeros(n), np.zeros(n)
    for i in range(n):
        nearer = [np.mean(after[i] < after[i, j] - 1e-6) for j in true[i, :k]]
        torn[i] = np.mean(np.array(nearer) > least)
        nearer = np.array([np.mean(before[i] < before[i, j] - 1e-6) for j in seen[i, :k]])
        false[i] = np.mean(np.maximum(nearer - least, 0) / (1 - least))
    whole = [1 - torn[np.append(i, true[i, : 2 * k])].mean() for i in range(n)]
    scores = np.column_stack([*placement, 1 - np.minimum(2 * false, 1), whole])
    spread = [max(0.05, np.median(abs(score - np.median(score)))) for score in scores.T]
    weights = np.array([0.5, 1, 1, 1]) / spread
    mean = scores @ weights / weights.sum()
    trust = mean * np.median(placement.mean) / np.median(mean)
    np.testing.assert_allclose(found.trust, np.minimum(trust, 1), atol=1e-3)


def test_gaps_of_labels_are_root_mean_squares_and_their_order_is_judged():
    (model, Y), labels = fitted("clusters"), clusters()[2]
    found = hs.audit(model, Y, labels=labels, random_state=0)
    assert [gap.labels for gap in found.gaps][-1] == ("a", "c")
    assert all(gap.believed for gap in found.gaps)
    for gap in found.gaps:
        a, b = (found.model.embedding_[labels == name] for name in gap.labels)
        np.testing.assert_allclose(gap.distance.value, np.sqrt(np.mean(cdist(a, b) ** 2)))
        assert gap.distance.low < gap.distance.value < gap.distance.high
    swapped = Y.copy()
    swapped[labels == "b"] += [10.0, 0.0]  # a - b is now the largest gap of the picture
    wrong = hs.audit(model, swapped, labels=labels, random_state=0)
    by_labels = {gap.labels: gap for gap in wrong.gaps}
    assert by_labels["a", "b"].rank == 3
    assert not by_labels["a", "b"].believed
    contrast = wrong.contrast
    near, far = (by_labels["a", other] for other in (contrast.nearer, contrast.farther))
    assert (contrast.label, contrast.nearer, contrast.farther) == ("a", "c", "b")
    np.testing.assert_allclose(contrast.picture, far.picture / near.picture)
    np.testing.assert_allclose(contrast.truth.value, far.distance.value / near.distance.value)
    assert contrast.describe() in wrong.describe()
    assert "3 gaps between labels by size: 0 wrong" in found.describe()
    torn = [np.arange(size) for size in (1200, 9, 8, 7)]
    assert "Torn: 4 group(s) of 1,200, 9, 8, … points. " in replace(found, torn=torn).describe()


def sketch_of(d, seed, k=64):
    options = {"filter": "accumulated", "affinity": "precomputed", "random_state": seed}
    return hs.HeatSketch(k, 8, **options).fit(d)


@pytest.mark.slow
def test_a_contrast_is_seldom_false():
    """At most 5 % of sketches of a right picture have one: 200 of them at most the quantile 1e-6.

    Were 20 % false, the test would find it with probability .99.
    """
    X, _, labels = clusters()
    X, labels = X[::10], labels[::10]
    d = hs.diffusion(X)
    Y, false = sketch_of(d, 1, 4096).embedding_, 0
    for seed in range(2, 202):
        false += hs.audit(sketch_of(d, seed), Y, labels=labels).contrast is not None
    assert in_band(false, 200, 0, 0.05, alarm=2 * ALARM)


@pytest.mark.parametrize("k", [8, 16, 64])
@pytest.mark.parametrize("decay", [1.0, 0.8, 0.3])
def test_intervals_of_root_mean_squares_of_gaussian_columns_hold_95_percent(k, decay):
    """Of 1,500 sketches of rows whose directions fall by a factor: at least 95 % less 1 point.

    Intervals that hold 89 %, as those by the variance of 16 columns, are found out with
    probability .99.
    """
    rng, trials, held = np.random.default_rng(k), 1500, 0
    rows = rng.standard_normal((40, 60)) * decay ** np.arange(60)
    rows[:20, 30:] = rows[20:, :30] = 0.0  # two components, in different directions
    codes, components = np.arange(40) % 2, [np.arange(20), np.arange(20, 40)]
    true = np.sqrt(np.mean([cdist(rows[c[::2]], rows[c[1::2]]) ** 2 for c in components]))
    for _ in range(trials):
        F = rows @ rng.standard_normal((60, k)) / np.sqrt(k)
        columns, squares = audit._square_columns(F, codes, components, 2)
        low, high = audit._root_mean_squares(columns, squares)[1:]
        held += low <= true <= high
    assert in_band(held, trials, 0.94, 1, alarm=2 * ALARM / 9)


@pytest.mark.slow
def test_intervals_of_gaps_hold_the_true_distance_as_often_as_they_say():
    """Of 400 sketches 95 % ± the binomial quantiles at 1e-6, widened by 2 points of each end.

    The widening is for the chi-square law, which is not exact for means over pairs: intervals that
    hold 90 % of the time would be found out with probability .9.
    """
    X, Y, labels = clusters()
    picks = np.r_[0:300:10, 300:600:10]
    X, Y, labels = X[picks], Y[picks], labels[picks]
    d = hs.diffusion(X)
    i, j = (np.flatnonzero(labels == name) for name in "ab")
    pairs = np.repeat(i, len(j)), np.tile(j, len(i))
    D = hs.diffusion_distance(d, 8, filter="accumulated", pairs=pairs)
    true, trials, held = np.sqrt(np.mean(D**2)), 400, 0
    for seed in range(trials):
        interval = hs.audit(sketch_of(d, seed), Y, labels=labels, random_state=0).gaps[0].distance
        held += interval.low <= true <= interval.high
    assert in_band(held, trials, 0.93, 0.97, alarm=2 * ALARM)


def test_estimators_graphs_and_points_are_audited_alike():
    X, Y = plane(300)
    options = {"filter": "accumulated", "random_state": 0}
    points = hs.audit(X, Y, random_state=0)
    model = hs.HeatSketch(columns_for_points(300), 8, **options).fit(X)
    of_sketch = hs.audit(model, Y, random_state=0)
    assert of_sketch.distance(3, 5) == model.distance(3, 5)
    np.testing.assert_array_equal(points.trust, of_sketch.trust)
    of_map = hs.audit(hs.DiffusionMap(2, 8).fit(X), Y, random_state=0)
    np.testing.assert_allclose(points.model.embedding_, of_map.model.embedding_, atol=1e-9)
    distances = cdist(X, X)
    graph = hs.graph(np.exp(-((distances / 0.1) ** 2)) - np.eye(300))
    assert hs.audit(graph, Y, random_state=0).trust.mean() > 0.7


def test_an_audit_does_not_know_a_layout_whose_distances_can_be_compared_by_eye():
    X = hs.datasets.circle(300, rng=0)[0]
    said = {}
    for layout in ("linear", "free"):
        picture = hs.HeatEmbedding(layout=layout, random_state=0).fit(X)
        said[layout] = picture.quality_.describe()
        audited = hs.audit(X, picture.embedding_, random_state=0).quality
        assert audited.within >= 0.8
        assert "compared by eye" not in audited.describe()
    assert "compared by eye" in said["linear"]
    assert "compared by eye" not in said["free"]


def blobs(count=8, size=60, seed=0):
    """Return separate blobs on a circle, and the number of the blob of each point."""
    blob = np.repeat(np.arange(count), size)
    X = np.random.default_rng(seed).standard_normal((count * size, 2))
    return X + 100.0 * on_circle(2 * np.pi * blob / count + 1), blob


@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
@pytest.mark.parametrize(("count", "size"), [(1, 60), (1, 100), (2, 60), (4, 50), (4, 100)])
def test_rotated_copies_of_few_points_have_hardly_a_dubious_one(count, size):
    """At most 5 % of such pictures have more than 1 % of dubious points: the quantile 1e-6 of 20.

    If every point were dubious whose score a random place explains, 16 to 20 of them would.
    """
    trials, alarms = 20, 0
    for seed in range(trials):
        X, _ = blobs(count, size, seed)
        found = hs.audit(X, turned(X), random_state=seed)
        alarms += found.dubious.mean() > 0.01
    assert in_band(alarms, trials, 0, 0.05, alarm=2 * ALARM)


@pytest.mark.parametrize("n", [100, 200])
def test_points_moved_at_random_among_few_are_found(n):
    """Of one in twenty at least 75 %, of the others at most 3 %: the quantiles 1e-6."""
    found, others, moved = 0, 0, n // 20
    for seed in range(12):
        X, Y = plane(n, seed)
        Y[:moved] = np.random.default_rng([seed, 1]).random((moved, 2))
        dubious = hs.audit(X, Y, random_state=seed).dubious
        found, others = found + dubious[:moved].sum(), others + dubious[moved:].sum()
    assert in_band(found, 12 * moved, 0.75, 1, alarm=2 * ALARM)
    assert in_band(others, 12 * (n - moved), 0, 0.03, alarm=2 * ALARM)


@pytest.mark.parametrize("n", [60, 200, 1500])
def test_drawn_places_are_counted_by_large_p_values(n):
    right = np.full(n, 1e-3)
    assert not drawn_places(right, n).any()
    near = np.where(np.arange(n) < n // 3, min(0.5, 50 / n), 1e-3)
    assert not drawn_places(near, n).any()
    uniform = (np.arange(n) + 0.5) / n
    assert np.mean(drawn_places(uniform, n)) >= 0.99
    worst = np.where(np.arange(n) < 3, 1.0, right)  # no random place is worse than theirs
    np.testing.assert_array_equal(drawn_places(worst, n), worst == 1)
    some = np.r_[np.linspace(0.1, 1, n // 5), right[n // 5 :]]
    np.testing.assert_array_equal(drawn_places(some, n), some >= 0.1)


def test_half_of_the_dubious_points_are_drawn_by_the_estimate():
    """The definition, for all sets of largest p-values: half, or all, as of those above ½."""
    p = np.round(np.random.default_rng(0).random(80) ** 3, 2)  # some are equal
    count = 2 * np.sum(p > 0.5)
    sets = [p >= least for least in p if 2 * count * (1 - least) >= np.sum(p >= least)]
    sets += [p >= least for least in p if least > 0.5]
    largest = max(sets, key=np.sum)
    assert 0 < largest.sum() < 80
    np.testing.assert_array_equal(drawn_places(p, 80), largest)


def test_points_that_cannot_be_told_from_random_ones_are_undecided():
    X = np.random.default_rng(0).standard_normal((60, 3))
    found = hs.audit(X, X, random_state=0)
    assert found.undecided.sum() >= 5
    assert not (found.undecided & found.dubious).any()
    assert f" {found.undecided.sum()} are undecided" in found.describe().splitlines()[0]
    more, Y = fitted("plane")
    assert "undecided" not in hs.audit(more, Y, random_state=0).describe()


@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
@pytest.mark.parametrize("seed", range(4))
def test_an_exact_copy_of_separate_blobs_is_believed(seed):
    X, blob = blobs(seed=seed)
    model = hs.HeatSketch(64, 8, filter="accumulated", random_state=seed).fit(X)
    copy = model.embedding_ + 30.0 * np.random.default_rng(seed).normal(size=(8, 64))[blob]
    found = hs.audit(model, copy, labels=blob, random_state=seed)
    assert not found.dubious.any()
    assert np.median(found.trust) > 0.99
    assert not found.torn
    assert not found.merged
    assert found.gaps == []
    assert found.contrast is None
    assert found.describe().endswith(
        "28 gaps between labels in different components are not judged."
    )


@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
def test_where_components_lie_changes_no_audit():
    X, blob = blobs(3, 100)
    labels = np.where(np.arange(300) % 3 == 0, "a", "b")
    labels[blob == 2] = "c"
    model = hs.HeatSketch(16, random_state=0).fit(X)
    moved = X * [-1, 1] + 1e3 * np.random.default_rng(0).normal(size=(3, 2))[blob]
    one, other = (hs.audit(model, Y, labels=labels, random_state=0) for Y in (X, moved))
    np.testing.assert_allclose(one.trust, other.trust, atol=1e-5)
    assert len(one.gaps) == len(other.gaps) == 1
    assert one.gaps_not_judged == 2
    assert one.gaps[0].distance == other.gaps[0].distance
    np.testing.assert_allclose(one.gaps[0].picture, other.gaps[0].picture, rtol=1e-9)
    squares = [
        cdist(F[(labels == "a") & (blob == c)], F[(labels == "b") & (blob == c)]) ** 2
        for F in [model.embedding_]
        for c in (0, 1)
    ]
    mean = np.mean(np.concatenate([s.ravel() for s in squares]))
    np.testing.assert_allclose(one.gaps[0].distance.value, np.sqrt(mean))


@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
def test_small_components_are_not_judged():
    X, blob = blobs(2, 100)
    found = hs.audit(X[:130], X[:130], random_state=0)
    np.testing.assert_array_equal(np.isnan(found.trust), blob[:130] == 1)
    assert not found.dubious[100:].any()
    assert "30 points in components of fewer than 50 are not judged" in found.describe()
    whole = hs.report(found).facts["columns"][0]
    assert whole["name"] == "trust"


@pytest.mark.parametrize("n", [2, 3, 6, 30, 49])
@pytest.mark.filterwarnings("ignore:n_neighbors")
def test_too_few_points_are_refused(n):
    with pytest.raises(ValueError, match=f"largest component has {n} of {n} points"):
        hs.audit(*plane(n))


def test_equal_points_are_at_distance_zero():
    """Ranks of distances are those of the definition, where ties are exact."""
    X, Y = (np.repeat(P, 3, axis=0) for P in plane(80))
    model = hs.HeatSketch(64, random_state=0).fit(X)
    found = hs.audit(model, Y, random_state=0)
    before, after = cdist(model.embedding_, model.embedding_), cdist(Y, Y)
    orders = [spearmanr(D, E).statistic for D, E in zip(before, after, strict=True)]
    np.testing.assert_allclose(found.order_kept, orders, atol=1e-5)
    evidence = Evidence.from_points(model.embedding_, Y, 2, np.arange(240))
    np.testing.assert_array_equal(
        evidence.truth.far == 0, np.kron(np.eye(80), np.ones((3, 3))) == 1
    )


def test_a_generator_is_a_random_state():
    X, Y = plane(200)
    rngs = np.random.default_rng(3), np.random.default_rng(3)
    first, second = (hs.audit(X, Y, random_state=rng) for rng in rngs)
    np.testing.assert_array_equal(first.trust, second.trust)
    assert rngs[0].random() == rngs[1].random()


@pytest.mark.parametrize("k", [1, 2])
def test_sketches_of_few_columns_are_audited_with_labels(k):
    X, Y, labels = clusters()
    found = hs.audit(X, Y, labels=labels, n_components=k, random_state=0)
    assert len(found.gaps) == 3
    for gap in found.gaps:
        assert 0 < gap.distance.low < gap.distance.value < gap.distance.high < np.inf


@pytest.mark.filterwarnings("error")
def test_a_picture_in_the_place_of_the_data_is_asked_about():
    X, Y = plane(100)
    with pytest.warns(UserWarning, match=r"X has 2 columns and Y has 10: .* audit\(Y, X\)"):
        hs.audit(Y, X, random_state=0)
    hs.audit(X, Y, random_state=0)
    hs.audit(Y, X[:, :3], random_state=0)
    hs.audit(hs.HeatSketch(16, random_state=0).fit(Y), X, random_state=0)


def test_coincident_points_of_a_picture_have_little_trust():
    X, Y = plane(300)
    assert hs.audit(X, np.zeros_like(Y), random_state=0).trust.max() < 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, Y: (X, Y[:-1], None), "Y has 299 rows but X has 300 points"),
        (lambda X, Y: (X, np.where(Y > 0.99, np.nan, Y), None), "NaN"),
        (lambda X, Y: (X, Y, np.zeros(300)), "labels have 1 different values"),
        (lambda X, Y: (X, Y, np.arange(300)), "labels have 300 different values"),
        (lambda X, Y: (X, Y, np.zeros(3)), "labels has shape"),
        (lambda X, Y: (X, Y, [None] * 299 + ["a"]), "labels have 1 different values"),
        (lambda X, Y: (hs.HeatSketch(4, (2, 4)).fit(X), Y, None), "several times"),
        (lambda X, Y: (PCA(2).fit(X), Y, None), "PCA"),
    ],
)
def test_audit_refuses(change, message):
    X, Y, labels = change(*plane(300))
    with pytest.raises((TypeError, ValueError), match=message):
        hs.audit(X, Y, labels=labels)


@pytest.mark.parametrize("n_neighbors", [0, -1, 2.5, "a", True])
def test_numbers_of_neighbours_are_checked(n_neighbors):
    with pytest.raises(
        (TypeError, ValueError), match=f"n_neighbors={n_neighbors!r} is .*integer >= 1"
    ):
        hs.audit(*plane(100), n_neighbors=n_neighbors)
