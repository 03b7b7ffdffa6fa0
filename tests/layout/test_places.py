"""Places that a picture keeps: a term of the layout, pins, new points, what moved."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import heatsketch as hs
from heatsketch.core.blocks import HOST
from heatsketch.layout.free import Places, in_frame
from heatsketch.layout.maps import started
from heatsketch.metrics.neighborhoods import moves_against_neighbors
from problems.clouds import cloud

X = np.asarray(hs.datasets.digits()[0][:500], float)
BEFORE = hs.HeatEmbedding(random_state=0).fit_transform(X[:400])
KNOWN = np.vstack([BEFORE, np.full((100, 2), np.nan)])
SIZE = np.ptp(BEFORE, axis=0).max()


def kept(places=KNOWN, points=X, **parameters):
    return hs.HeatEmbedding(random_state=0, **parameters).fit(points, places=places)


@pytest.fixture(scope="module")
def model():
    return kept()


# The term


@pytest.mark.parametrize("mass", [None, np.arange(1.0, 9.0)])
def test_the_gradient_is_the_slope_of_the_value_and_the_stiffness_that_of_the_gradient(mass):
    rng = np.random.default_rng(0)
    places = rng.standard_normal((8, 2))
    places[5:] = np.nan
    term, s = Places(places, 0.7, HOST, float, mass), 0.4
    Y = places + rng.uniform(-2, 2, (8, 2)) * np.where(np.arange(8) < 3, 0.1, 1.0)[:, None]
    Y[5:] = rng.standard_normal((3, 2))
    slope = np.empty_like(Y)
    for place in np.ndindex(*Y.shape):
        step = np.zeros_like(Y)
        step[place] = 1e-6
        slope[place] = (term.value(Y + step, s) - term.value(Y - step, s)) / 2e-6
    assert_allclose(term.gradient(Y, s), slope, atol=1e-8)
    assert_array_equal(term.gradient(Y, s)[5:], 0)
    near = Y.copy()
    near[:5] = places[:5] + 0.01
    change = term.gradient(near, s)[:5] / 0.01
    assert_allclose(change, np.repeat(term.stiffness(s)[:5], 2, axis=1), rtol=1e-9)


def test_a_mass_counts_as_so_many_copies():
    places = np.array([[0.0, 0.0], [2.0, 1.0]])
    Y = np.array([[0.3, 0.1], [1.0, -1.0]])
    of_mass = Places(places, 0.5, HOST, float, np.array([1.0, 3.0]))
    copies = Places(places[[0, 1, 1, 1]], 0.5, HOST, float)
    assert of_mass.value(Y, 0.2) == pytest.approx(copies.value(Y[[0, 1, 1, 1]], 0.2))
    pulled = copies.gradient(Y[[0, 1, 1, 1]], 0.2)
    assert_allclose(of_mass.gradient(Y, 0.2), [pulled[0], pulled[1:].sum(axis=0)])


def test_a_layout_in_another_frame_is_brought_to_that_of_the_places():
    full = np.random.default_rng(0).standard_normal((40, 2))
    places = full.copy()
    places[30:] = np.nan
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    assert_allclose(in_frame(3 * full @ turn + [4, -1], places), full, atol=1e-12)
    places[7] += 1e4  # one place in the void
    assert_allclose(in_frame(3 * full @ turn + [4, -1], places), full, atol=1e-9)
    one = np.full((3, 2), np.nan)
    one[1] = [2.0, 3.0]
    assert_allclose(in_frame(np.eye(3)[:, :2], one), [[3, 2], [2, 3], [2, 2]])


def test_new_points_start_among_those_that_they_are_near_to():
    F = np.repeat(np.eye(3) * 10, 8, axis=0) + 0.01 * np.random.default_rng(0).random((24, 3))
    places = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]], 8, axis=0) + F[:, :2] % 1
    known = places.copy()
    known[::4] = np.nan
    found = started(known, F, places, 1.0, hold=False)
    assert_array_equal(found[~np.isnan(known)], known[~np.isnan(known)])
    assert np.abs(found - places).max() < 0.1


@pytest.mark.parametrize("hold", [False, True])
def test_a_known_point_among_strangers_starts_among_those_that_it_is_near_to(hold):
    rng = np.random.default_rng(0)
    F = np.repeat(np.eye(2) * 10, 40, axis=0) + rng.normal(0, 0.1, (80, 2))
    places = np.repeat([[0.0, 0.0], [50.0, 0.0]], 40, axis=0) + rng.normal(0, 1, (80, 2))
    F[3] = F[60] + 0.01  # was of the first group and is of the second one
    found = started(places, F, places, 1.0, hold=hold)
    assert_array_equal(np.delete(found, 3, axis=0), np.delete(places, 3, axis=0))
    assert (np.abs(found[3] - [50, 0]).max() < 5) != hold


# Pictures


def test_known_points_stay_and_new_ones_fit_in(model):
    moves = np.linalg.norm(model.embedding_[:400] - BEFORE, axis=1)
    assert np.median(moves) < 0.01 * SIZE
    free = hs.HeatEmbedding(random_state=0).fit_transform(X)
    trust = [hs.metrics.trustworthiness(X, Y, 15).value for Y in (model.embedding_, free)]
    assert trust[0] > trust[1] - 0.01
    assert_array_equal(model.transform(X[::50]), model.embedding_[::50])


def test_the_same_places_give_the_same_picture(model):
    assert_array_equal(kept().embedding_, model.embedding_)
    assert_array_equal(kept().moved_, model.moved_)


def test_a_fit_without_places_is_as_if_there_were_none(model):
    again = clone(model).fit(X)
    free = hs.HeatEmbedding(random_state=0).fit(X)
    assert_array_equal(again.embedding_, free.embedding_)
    assert again.moved_ is None
    assert_array_equal(kept(np.full((500, 2), np.nan)).embedding_, free.embedding_)
    assert kept(np.full((500, 2), np.nan)).quality_ == free.quality_


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_the_frame_of_the_places_is_that_of_the_picture(model, scale):
    """Twice the places give twice the picture: a power of two up to rounding, others nearly."""
    moved = kept(scale * KNOWN + 7.0)
    off = np.linalg.norm((moved.embedding_ - 7.0) / scale - model.embedding_, axis=1)
    assert np.median(off) < 2e-3 * SIZE


def test_pins_do_not_move_and_hold_the_others():
    pins = np.full((500, 2), np.nan)
    rows = [3, 77, 200, 350]
    pins[rows] = BEFORE[rows] + [5.0, 0.0]
    found = kept(pins, place_weight=float("inf"))
    assert_array_equal(found.embedding_[rows], pins[rows])
    assert np.isfinite(found.embedding_).all()
    assert hs.metrics.trustworthiness(X, found.embedding_, 15).value > 0.9


def test_a_strip_goes_on_beyond_its_old_end():
    Z = np.c_[np.linspace(0, 30, 300), 3 * np.random.default_rng(0).random(300)]
    places = np.full((300, 2), np.nan)
    places[:240] = hs.HeatEmbedding(random_state=0).fit_transform(Z[:240])
    Y = kept(places, Z).embedding_[240:]
    i, j = np.triu_indices(60, 1)
    gaps = [np.linalg.norm(P[i] - P[j], axis=1) for P in (Z[240:], Y)]
    assert hs.metrics.rank_correlation(*gaps) > 0.95


@pytest.mark.parametrize("weight", [0.3, float("inf")])
@pytest.mark.parametrize("rows", [[5], [5, 90], [5, 90, 200], [1, 60, 120, 180]])
def test_few_known_places_hold_a_whole_picture(rows, weight):
    places = np.full((300, 2), np.nan)
    free = hs.HeatEmbedding(random_state=0).fit_transform(X[:300])
    places[rows] = free[rows] + [3.0, 0.0]
    Y = kept(places, X[:300], place_weight=weight).embedding_
    sizes = np.linalg.svd(Y - Y.mean(axis=0), compute_uv=False)
    assert sizes[1] > 0.3 * sizes[0]
    assert hs.metrics.trustworthiness(X[:300], Y, 15).value > 0.95
    assert np.linalg.norm(Y[rows] - places[rows], axis=1).max() < 0.5 * np.ptp(free)


def test_places_on_a_line_are_a_hint_only():
    places = KNOWN.copy()
    places[:, 1] = np.where(np.isnan(places[:, 0]), np.nan, 0.0)
    Y = kept(places).embedding_
    sizes = np.linalg.svd(Y - Y.mean(axis=0), compute_uv=False)
    assert sizes[1] > 0.05 * sizes[0]
    assert hs.metrics.trustworthiness(X, Y, 15).value > 0.9


@pytest.mark.parametrize("far", [30.0, 1000.0])
def test_a_place_in_the_void_is_left_and_bends_nothing(model, far):
    places = KNOWN.copy()
    places[7] += far
    found = kept(places)
    others = np.arange(400) != 7
    moves = np.linalg.norm(found.embedding_[:400] - BEFORE, axis=1)[others]
    assert np.median(moves) < 0.01 * SIZE
    assert found.moved_[7] > 3
    assert np.linalg.norm(found.embedding_[7] - BEFORE[7]) < 0.3 * SIZE


def test_pins_of_points_of_no_weight_are_refused():
    weights = np.ones(500)
    weights[:20] = 0
    with pytest.raises(ValueError, match=r"20 point\(s\) of weight 0 have places"):
        hs.HeatEmbedding(place_weight=float("inf")).fit(X, sample_weight=weights, places=KNOWN)
    weights[:400] = 0
    with pytest.raises(ValueError, match=r"400 point\(s\) of weight 0 have places"):
        hs.HeatEmbedding().fit(X, sample_weight=weights, places=KNOWN)


def test_frames_and_masked_places_have_their_gaps(model):
    pd = pytest.importorskip("pandas")
    for places in (
        pd.DataFrame(KNOWN),
        pd.DataFrame(KNOWN).convert_dtypes(),
        np.ma.masked_invalid(KNOWN),
    ):
        assert_array_equal(kept(places).embedding_, model.embedding_)


def test_no_weight_lets_places_be_a_start_only(model):
    loose = kept(place_weight=0.0)
    moves = [np.median(np.linalg.norm(m.embedding_[:400] - BEFORE, axis=1)) for m in (loose, model)]
    assert moves[0] > 3 * moves[1]


def test_three_dimensions_weights_and_copies():
    before = hs.HeatEmbedding(3, random_state=0).fit_transform(X[:400])
    places = np.vstack([before, np.full((100, 3), np.nan)])
    found = hs.HeatEmbedding(3, random_state=0).fit(X, places=places)
    moves = np.linalg.norm(found.embedding_[:400] - before, axis=1)
    assert np.median(moves) < 0.01 * np.ptp(before, axis=0).max()
    weights = np.ones(500)
    weights[:20] = 0  # placed beside the fit
    some = hs.HeatEmbedding(random_state=0).fit(X, sample_weight=weights, places=KNOWN)
    assert np.isfinite(some.embedding_).all()
    twice = np.vstack([X, X[:5]])
    copied = np.vstack([KNOWN, KNOWN[:5]])
    assert_array_equal(kept(copied, twice).embedding_[500:], kept(copied, twice).embedding_[:5])


@pytest.mark.parametrize("metric", ["cosine", "precomputed"])
def test_other_doors(metric):
    points = X if metric == "cosine" else np.linalg.norm(X[:, None] - X, axis=2)
    found = kept(points=points, metric=metric)
    assert np.median(np.linalg.norm(found.embedding_[:400] - BEFORE, axis=1)) < 0.03 * SIZE


def test_parts_without_known_places_stand_beside_the_others():
    """Components of given affinities, of which one has no place."""
    K = hs.gaussian_affinity(cloud(60, 2), 1.0)
    both = np.kron(np.eye(2), K)
    before = hs.HeatEmbedding(affinity="precomputed", random_state=0).fit_transform(K)
    places = np.vstack([before, np.full((60, 2), np.nan)])
    Y = hs.HeatEmbedding(affinity="precomputed", random_state=0).fit(both, places=places).embedding_
    assert Y[60:, 0].min() > Y[:60, 0].max()
    lengths = [np.median(np.linalg.norm(part[:, None] - part, axis=2)) for part in (Y[:60], Y[60:])]
    assert lengths[1] == pytest.approx(lengths[0], rel=0.3)
    nothing = np.full((120, 2), np.nan)
    found = hs.HeatEmbedding(affinity="precomputed", random_state=0).fit(both, places=nothing)
    free = hs.HeatEmbedding(affinity="precomputed", random_state=0).fit(both)
    assert_array_equal(found.embedding_, free.embedding_)
    assert np.isnan(found.moved_).all()
    assert np.median(np.linalg.norm(Y[:60] - before, axis=1)) < 0.02 * np.ptp(before)


# What moved


def test_a_group_that_moves_together_does_not_move_against_its_neighbours():
    rng = np.random.default_rng(0)
    before = np.vstack([rng.standard_normal((50, 2)), rng.standard_normal((50, 2)) + 20])
    after = before + np.repeat([[0.0, 0.0], [3.0, -8.0]], 50, axis=0)
    assert_allclose(moves_against_neighbors(before, after, 1.0), 0, atol=1e-12)
    angle = 1.2
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    assert_allclose(moves_against_neighbors(before, before @ turn + 5, 1.0), 0, atol=1e-9)
    after[7] += [0.0, 6.0]
    moved = moves_against_neighbors(before, after, 2.0)
    assert 2 < moved[7] <= 3
    assert np.delete(moved, 7).max() < 1e-12
    gaps = before.copy()
    gaps[3] = np.nan
    assert_array_equal(np.flatnonzero(np.isnan(moves_against_neighbors(gaps, after, 1.0))), [3])
    assert_array_equal(moves_against_neighbors(before[:1], after[:1], 1.0), [0])


def test_points_that_change_their_group_are_found():
    labels = hs.datasets.digits()[1][:500]
    rng = np.random.default_rng(1)
    changed = rng.choice(400, 20, replace=False)
    points = X.copy()
    for row in changed:
        points[row] = X[rng.choice(np.flatnonzero(labels != labels[row]))] + rng.normal(0, 0.5, 64)
    moved = kept(points=points).moved_[:400]
    is_changed = np.isin(np.arange(400), changed)
    assert (moved[is_changed][:, None] > moved[~is_changed]).mean() > 0.9


def test_the_verdict_says_how_many_moved_and_where_to():
    """Twenty points take the places of another group, of whose features they now are."""
    labels = hs.datasets.digits()[1][:500]
    points, group = X.copy(), np.flatnonzero(labels[:400] == 0)[:20]
    threes = np.flatnonzero(labels == 3)
    points[group] = X[threes[:20]] + np.random.default_rng(0).normal(0, 0.5, (20, 64))
    found = kept(points=points)
    count, near = found.quality_.moved, found.quality_.moved_to
    assert count == np.count_nonzero(found.moved_ > 3) >= 10
    assert near in group
    words = f"{count} known points moved more than 3 edges against old neighbours, most of them"
    assert found.quality_.describe().endswith(f"{words} to near row {near}.")


def test_the_page_and_the_model_have_what_moved(model, tmp_path):
    page = hs.report(model, X)
    assert page.facts["columns"][0]["name"] == "moved against old neighbours"
    assert page.facts["frames"]["labels"] == ["old places", "new places"]
    assert len(page.facts["frames"]["positions"]) == 2
    assert "labels" not in hs.report(clone(model).fit(X), X).facts["frames"]
    hs.save_model(model, tmp_path / "model.hs")
    loaded = hs.load_model(tmp_path / "model.hs")
    assert_array_equal(loaded.moved_, model.moved_)
    assert loaded.quality_ == model.quality_


# Bad input


@pytest.mark.parametrize(
    ("places", "parameters", "match"),
    [
        (KNOWN[:, :1], {}, r"places has shape .500, 1. but n_components=2"),
        (KNOWN[:7], {}, "places has 7 rows but X has 500 points"),
        (np.where(np.isnan(KNOWN), np.inf, KNOWN), {}, "infinite"),
        (KNOWN, {"layout": "linear"}, "places are for a free layout"),
        (KNOWN, {"objective": "worst"}, "places are for a free layout"),
        (KNOWN, {"place_weight": -1.0}, "place_weight"),
        (KNOWN, {"place_weight": float("nan")}, "place_weight"),
    ],
)
def test_bad_places_are_refused(places, parameters, match):
    with pytest.raises(ValueError, match=match):
        kept(places, **parameters)


def test_half_a_place_and_words_are_refused():
    half = KNOWN.copy()
    half[450, 0] = 1.0
    with pytest.raises(ValueError, match="known in part at rows 450"):
        kept(half)
    with pytest.raises(TypeError, match="places is no table of numbers"):
        kept([["a", "b"]] * 500)


def test_equal_points_with_two_pins_are_refused():
    twice = np.vstack([X[:50], X[:1]])
    pins = np.full((51, 2), np.nan)
    pins[0], pins[50] = [0, 0], [1, 1]
    with pytest.raises(ValueError, match="equal points have different places"):
        kept(pins, twice, place_weight=float("inf"))
