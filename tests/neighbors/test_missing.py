"""Missing entries are filled by the nearest rows, alike whenever a row comes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import pairwise_distances

import heatsketch as hs
from heatsketch.neighbors.missing import Donors, _slopes

RNG = np.random.default_rng(0)
T = RNG.uniform(0, 2 * np.pi, 200)
FULL = np.c_[np.cos(T), np.sin(T), np.cos(2 * T), np.sin(2 * T), T / 3] + 0.02 * RNG.normal(
    size=(200, 5)
)
GAPS = RNG.random(FULL.shape) < 0.2
GAPS[GAPS.all(axis=1), 0] = False
X = np.where(GAPS, np.nan, FULL)


def test_entries_that_are_there_stay():
    filled = Donors.of(X, 10).fill(X)
    assert_array_equal(filled[~GAPS], X[~GAPS])
    assert np.isfinite(filled).all()


def test_entries_on_a_curve_come_back():
    """Means of all rows are off by the spread of a column, 0.7; a curve is known by the others."""
    filled = Donors.of(X, 10).fill(X)
    assert np.sqrt(np.mean((filled - FULL)[GAPS] ** 2)) < 0.25


def test_the_first_round_weighs_the_entries_that_both_have(limits):
    limits(fill_rounds=1, trended=0)
    filled = Donors.of(X, 9).fill(X)
    squared = pairwise_distances(X, metric="nan_euclidean") ** 2
    squared[np.isnan(squared)] = np.inf
    np.fill_diagonal(squared, np.inf)
    for i, j in zip(*GAPS.nonzero(), strict=True):
        nearest = np.argsort(squared[i])[:9]
        w = np.exp(-squared[i, nearest] / np.sort(squared[i, nearest])[4])
        there = ~GAPS[nearest, j]
        want = w[there] @ X[nearest[there], j] / w[there].sum() if there.any() else np.nan
        want = np.nanmean(X[:, j]) if np.isnan(want) else want
        assert filled[i, j] == pytest.approx(want, abs=1e-9)


def plane(n=400, noise=0.0):
    """Return points of a tilted plane in four dimensions, and a tenth of the entries to delete."""
    rng = np.random.default_rng(3)
    P = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 4)) + noise * rng.normal(size=(n, 4))
    gaps = rng.random(P.shape) < 0.1
    gaps[gaps.sum(axis=1) > 1] = False  # three entries determine the fourth
    return P, gaps


def test_on_a_plane_trends_find_what_means_of_neighbours_miss(limits):
    P, gaps = plane()
    holes = np.where(gaps, np.nan, P)
    trended = Donors.of(holes, 15)
    assert_allclose(trended.share, 1.0, atol=0.05)
    error = np.sqrt(np.mean((trended.fill(holes) - P)[gaps] ** 2))
    limits(trended=0)
    of_means = np.sqrt(np.mean((Donors.of(holes, 15).fill(holes) - P)[gaps] ** 2))
    assert error < of_means / 4


def test_slopes_are_those_of_regression():
    """B has for each column the coefficients of a ridge on all others."""
    P, _ = plane(noise=0.5)
    Z = P - P.mean(axis=0)
    B, ridge = _slopes(Z), 4 / 400 * (Z**2).sum(axis=0)
    for j in range(4):
        others = np.arange(4) != j
        root = np.diag(np.sqrt(ridge[others]))
        A, b = np.vstack([Z[:, others], root]), np.r_[Z[:, j], np.zeros(3)]
        assert_allclose(B[j, others], np.linalg.lstsq(A, b)[0], rtol=1e-9)
        assert B[j, j] == 0


def test_noise_gets_no_trend():
    noise = np.where(RNG.random((600, 5)) < 0.1, np.nan, RNG.normal(size=(600, 5)))
    donors = Donors.of(noise[~np.isnan(noise).all(axis=1)], 15)
    scale = np.abs(donors.slopes).max()
    assert scale < 0.2  # correlations of 600 rows: 0.04, below 5 of their errors
    assert (donors.share * scale < 0.2).all()


def test_a_row_is_filled_alike_with_others_or_alone():
    donors = Donors.of(X, 10)
    whole, order = donors.fill(X), RNG.permutation(200)
    assert_array_equal(donors.fill(X[order]), whole[order])
    assert_array_equal(np.vstack([donors.fill(row[None]) for row in X]), whole)
    assert_array_equal(Donors.of(X[order], 10).fill(X), whole)


@pytest.mark.parametrize("levels", [2, 4, 20])
def test_neighbors_that_are_equally_far_are_those_of_the_content(levels, limits):
    """Distances of whole numbers are tied, and rounded otherwise beside other rows."""
    limits(donors=100)
    rng = np.random.default_rng(2)
    whole = rng.integers(0, levels, (400, 5)).astype(float)
    whole[rng.random(whole.shape) < 0.15] = np.nan
    whole = whole[~np.isnan(whole).all(axis=1)]
    donors, order = Donors.of(whole, 15), rng.permutation(len(whole))
    filled = donors.fill(whole)
    assert_array_equal(np.vstack([donors.fill(row[None]) for row in whole]), filled)
    assert_array_equal(Donors.of(whole[order], 15).fill(whole[order]), filled[order])


def test_rows_that_are_no_donors_are_filled_by_them(limits):
    limits(donors=100)
    donors = Donors.of(X, 10)
    filled = donors.fill(X)
    assert len(donors.rows) == 100
    assert_array_equal(np.vstack([donors.fill(row[None]) for row in X]), filled)
    assert np.sqrt(np.mean((filled - FULL)[GAPS] ** 2)) < 0.3
    assert_array_equal(donors.fill(X[::-1])[::-1], filled)


def test_equal_rows_are_filled_alike():
    twice = np.vstack([X, X])
    filled = Donors.of(twice, 10).fill(twice)
    assert_array_equal(filled[:200], filled[200:])


def test_an_offset_of_a_column_moves_what_is_filled():
    shift = np.array([0, 1e3, 0, -50, 0])
    moved = Donors.of(X + shift, 10).fill(X + shift) - shift
    assert_allclose(moved, Donors.of(X, 10).fill(X), atol=1e-8)


def test_a_unit_changes_nothing_where_half_of_the_neighbors_are_at_distance_0():
    """Six of ten neighbours have the same two entries; the others are at different distances."""
    rng = np.random.default_rng(1)
    place = np.repeat([0.0, 10.0, 20.0], 46)
    apart = np.where(np.arange(138) % 46 < 6, 0.0, rng.uniform(-1, 1, (2, 138)))
    rows = np.c_[place + apart[0], apart[1], rng.normal(size=138)]
    new = np.array([[0.0, 0.0, np.nan], [10.0, 0.0, np.nan], [20.0, 0.0, np.nan]])
    donors, larger = Donors.of(rows, 10), Donors.of(1024 * rows, 10)
    assert_allclose(larger.fill(1024 * new), 1024 * donors.fill(new), rtol=1e-9)
    ones = np.tile(np.eye(3), (3, 1, 1))
    found = donors.by_given(new, ones)
    assert_allclose(larger.by_given(1024 * new, ones), found, rtol=1e-9, atol=1e-12)


ESTIMATORS = [
    hs.DiffusionMap(2, 2),
    hs.HeatSketch(8, random_state=0),
    hs.HeatEmbedding(random_state=0),
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=["map", "sketch", "picture"])


@every_estimator
def test_what_is_filled_is_no_parameter(estimator):
    assert not [name for name in estimator.get_params() if name.startswith("_")]


@every_estimator
def test_a_fit_with_gaps_is_that_of_the_filled_points(estimator):
    filled = Donors.of(X, 15).fill(X)
    model = estimator.fit(X)
    Y, facts = model.embedding_, model.diagnostics_
    assert_array_equal(facts["filled"], filled[GAPS])
    assert facts["fill_rounds"] >= 2
    assert_allclose(model.transform(X), Y, atol=1e-9)
    assert_allclose(model.transform(filled), Y, atol=1e-9)
    assert_array_equal(estimator.fit_transform(filled), Y)
    assert "filled" not in estimator.diagnostics_


@pytest.mark.parametrize("layout", ["linear", "free"])
def test_the_picture_is_that_of_the_rows_in_any_order(layout):
    order, model = RNG.permutation(200), hs.HeatEmbedding(random_state=0, layout=layout)
    Y = model.fit(X).embedding_
    assert_array_equal(model.fit(X[order]).embedding_, Y[order])


@every_estimator
def test_new_points_with_gaps_are_near_those_without(estimator):
    model = estimator.fit(FULL[:150])
    gaps, whole = model.transform(X[150:]), model.transform(FULL[150:])
    size = np.linalg.norm(whole - whole.mean(axis=0), axis=1).mean()
    assert np.median(np.linalg.norm(gaps - whole, axis=1)) < 0.3 * size
    assert_array_equal(model.transform(X[150:][::-1])[::-1], gaps)
    assert np.isfinite(model.novelty(X[150:])).all()


def test_a_model_with_gaps_is_kept(tmp_path):
    model = hs.DiffusionMap(2, 2).fit(X)
    hs.save_model(model, tmp_path / "gaps.model")
    again = hs.load_model(tmp_path / "gaps.model")
    assert_array_equal(again.transform(X), model.transform(X))


def test_what_cannot_be_filled_is_refused():
    row, column, infinite = X.copy(), X.copy(), X.copy()
    row[3], column[:, 2], infinite[0, 0] = np.nan, np.nan, np.inf
    for bad, says in ((row, "row 3"), (column, "column 2"), (infinite, "infinity")):
        with pytest.raises(ValueError, match=says):
            hs.DiffusionMap().fit(bad)
    model = hs.DiffusionMap().fit(X)
    with pytest.raises(ValueError, match="row 0"):
        model.transform(row[3:4])
    with pytest.raises(ValueError, match="NaN"):
        hs.DiffusionMap(affinity="precomputed").fit(np.full((4, 4), np.nan))
    with pytest.raises(ValueError, match="are not known"):
        hs.DiffusionMap(metric="cosine").fit(FULL).transform(X)
    assert model.__sklearn_tags__().input_tags.allow_nan
    assert not hs.DiffusionMap(affinity="precomputed").__sklearn_tags__().input_tags.allow_nan


def test_points_without_weight_do_not_judge():
    """Weights 1 and 0 of whole copies: neighbours, of all 200 points, are those of one copy."""
    model = hs.HeatEmbedding().fit(X)
    w = np.repeat([1.0, 0.0], len(X))
    twice = hs.HeatEmbedding().fit(np.vstack([X, X]), sample_weight=w)
    assert twice.quality_.neighbors == pytest.approx(model.quality_.neighbors, abs=1e-4)
