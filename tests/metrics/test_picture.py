"""How far a picture can be believed: planes, noise, far points, and what scale does not change."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import cdist
from scipy.stats import rankdata, spearmanr
from sklearn.manifold import trustworthiness
from sklearn.metrics.pairwise import nan_euclidean_distances

import heatsketch as hs
from heatsketch.metrics import picture as module
from heatsketch.metrics.picture import PictureQuality

POOR = "Poor, this picture does not show the neighbours of the data"


def quality(X, Y, **options):
    d = hs.diffusion(X, **options)
    distortion = hs.metrics.diffusion_distortion(Y, d)
    return module.picture_quality(Y, d, distortion, module.sampled_geodesics(d))


@pytest.fixture(scope="module")
def sheet():
    return np.random.default_rng(0).uniform(size=(400, 2))


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_the_plane_itself_is_a_good_picture_at_any_scale(sheet, scale):
    turned = scale * sheet @ [[0.0, 1.0], [-1.0, 0.0]]
    found = quality(sheet, turned)
    assert found.neighbors == 1
    assert found.distances > 0.97
    assert found.outside == 0
    assert found.verdict == "Good"


def test_a_random_picture_is_poor(sheet):
    found = quality(sheet, np.random.default_rng(1).normal(size=(400, 2)))
    assert found.neighbors == pytest.approx(0.5, abs=0.05)
    assert abs(found.distances) < 0.1
    assert found.verdict == POOR


def test_noise_is_told_apart():
    X = np.random.default_rng(0).normal(size=(600, 20))
    found = hs.HeatEmbedding(random_state=0).fit(X).quality_
    assert found.describe().startswith(POOR)


def test_a_sheet_that_is_folded_keeps_neighbours_alone(sheet):
    folded = np.column_stack([np.abs(sheet[:, 0] - 0.5), sheet[:, 1]])
    found = quality(sheet, folded)
    assert found.distances < quality(sheet, sheet).distances - 0.2


def test_far_points_are_counted(sheet):
    Y = sheet.copy()
    Y[:5] += 100
    assert quality(sheet, Y).outside == 5


def test_neighbors_are_judged_by_trustworthiness(sheet):
    Y = sheet + 0.05 * np.random.default_rng(1).normal(size=sheet.shape)
    found = quality(sheet, Y).neighbors  # 300 of the 400 points
    assert found == pytest.approx(trustworthiness(sheet, Y, n_neighbors=15), abs=0.01)


def test_without_a_graph_of_neighbours_there_are_no_geodesics(sheet):
    found = quality(sheet, sheet, affinity="dense", epsilon=0.1)
    assert math.isnan(found.distances)
    assert found.describe().startswith(
        "Good for neighbours, large distances were not judged: on average 15.0 of "
    )


def test_points_that_repeat_count_once(sheet):
    X = np.vstack([sheet, sheet[:100]])
    assert quality(X, X).neighbors == 1


@pytest.mark.parametrize(
    ("neighbors", "distances", "verdict"),
    [
        (0.95, 0.9, "Good"),
        (0.95, 0.4, "Good for neighbours, not for large distances"),
        (0.8, 0.9, "Good for large distances, not for neighbours"),
        (0.8, 0.4, "Rough"),
        (0.95, math.nan, "Good for neighbours, large distances were not judged"),
        (0.8, math.nan, "Rough for neighbours, large distances were not judged"),
        (0.6, 0.9, POOR),
    ],
)
def test_verdicts(neighbors, distances, verdict):
    found = PictureQuality(neighbors, distances, 0, 0.9)
    assert found.verdict == verdict
    assert found.describe().startswith(verdict + ": ")


@pytest.mark.parametrize(
    ("neighbors", "distances", "true_neighbors", "start"),
    [
        (0.94, 0.96, 2.0, "Good for large distances, not for neighbours: on average 2.0 of"),
        (0.94, 0.96, 2.8, "Good for large distances, not for neighbours: on average 2.8 of"),
        (0.97, 0.43, 2.1, "Good for regions, not for neighbours or large distances: on"),
        (0.97, math.nan, 2.1, "Good for regions, not for neighbours, large distances were not j"),
        (0.89, 0.42, 6.4, "Borderline for neighbours, not for large distances: on average 6.4"),
        (0.9, 0.43, 6.5, "Good for neighbours, not for large distances: on average 6.5 of"),
    ],
)
def test_few_true_neighbours_are_not_good(neighbors, distances, true_neighbors, start):
    found = PictureQuality(neighbors, distances, 0, 0.5, true_neighbors=true_neighbors)
    assert found.describe().startswith(start)


@pytest.mark.parametrize("measure", ["neighbors", "distances", "true_neighbors"])
@pytest.mark.parametrize("others", [{"neighbors": 0.95, "distances": 0.4}, {"distances": 0.9}])
def test_a_measure_passes_by_borderline_between_good_and_not(measure, others):
    given = {"neighbors": 0.95, "distances": 0.9, "true_neighbors": 8.0} | others
    low, high = {"neighbors": (0.76, 1), "distances": (0, 1), "true_neighbors": (0, 15)}[measure]
    words = []
    for value in np.linspace(low, high, 201):
        found = PictureQuality(**given | {measure: value}, outside=0, within=0.5)
        words += [found.verdict] * (found.verdict not in words[-1:])
        is_between = "borderline" in found.verdict.lower()
        assert ("with care" in found.describe()) == is_between
        assert ("(good from" in found.describe()) == is_between
    assert ["borderline" in word.lower() for word in words] == [False, True, False]


@pytest.mark.parametrize(
    ("measure", "limit", "shown"),
    [
        ("neighbors", 0.75, "trustworthiness .74"),
        ("neighbors", 0.85, "trustworthiness .84"),
        ("neighbors", 0.9, "trustworthiness .89"),
        ("distances", 0.6, "along the data .59"),
        ("distances", 0.7, "along the data .69"),
        ("true_neighbors", 3.0, "on average 2.9 of"),
    ],
)
def test_a_number_below_a_limit_is_not_shown_as_the_limit(measure, limit, shown):
    given = {"neighbors": 0.95, "distances": 0.9, "true_neighbors": 8.0}
    words = [
        PictureQuality(**given | {measure: value}, outside=0, within=0.5).describe()
        for value in (limit - 1e-3, limit)
    ]
    assert shown in words[0]
    assert shown not in words[1]


@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
def test_distances_that_are_given_judge_the_picture(sheet, metric):
    D = cdist(sheet[:250], sheet[:250], metric)
    D = np.vstack([D, D[:20]])[:, [*range(250), *range(20)]]  # points that repeat count once
    # Linear, because landmarks of free layouts are chosen by what is given.
    model = hs.HeatEmbedding(metric="precomputed", layout="linear", random_state=0).fit(D)
    found, Y = model.quality_, model.embedding_[:250]
    want = trustworthiness(D[:250, :250], Y, n_neighbors=15, metric="precomputed")
    np.testing.assert_allclose(found.neighbors, want, rtol=1e-12)
    if metric == "euclidean":  # as the points do; other sources of geodesics are drawn
        linear = hs.HeatEmbedding(layout="linear", random_state=0)
        of_points = linear.fit(sheet[:250]).quality_
        np.testing.assert_allclose(found.neighbors, of_points.neighbors, atol=1e-3)
        np.testing.assert_allclose(found.distances, of_points.distances, atol=0.05)
    assert found.describe().startswith("Good")


@pytest.mark.parametrize("n", [3, 8, 49])
def test_of_few_points_nothing_is_said(sheet, n):
    model = hs.HeatEmbedding(random_state=0, n_neighbors=min(5, n - 1)).fit(sheet[:n])
    assert math.isnan(model.quality_.neighbors)
    assert math.isnan(model.quality_.distances)
    assert model.quality_.describe().startswith("Fewer than 50 points, too few to judge. ")


def test_fifty_points_are_judged(sheet):
    assert quality(sheet[:50], sheet[:50]).neighbors == 1


def test_the_verdict_is_in_words_of_neighbours_and_path_lengths():
    verdict = PictureQuality(0.97, 0.92, 0, 0.89, is_free=True, true_neighbors=11.44).describe()
    assert verdict == (
        "Good: on average 11.4 of a point's 15 neighbours in the picture are among its 30 nearest "
        "in the data, trustworthiness .97, rank correlation of distances with path lengths along "
        "the data .92. Read near and far, not exact distances. "
        "The picture keeps 89 % of diffusion distances within a factor of 1.5."
    )


STRETCHED = [(0.08, "with little"), (0.5, "only with some"), (1.0, "only with much")]


@pytest.mark.parametrize(("misfit", "held"), STRETCHED)
def test_the_verdict_says_what_the_dimensions_hold(misfit, held):
    found = PictureQuality(0.97, 0.92, 0, 0.89, is_free=True, misfit=misfit).describe()
    assert f". The data fit into so few dimensions {held} stretching (misfit " in found
    assert "misfit" not in PictureQuality(math.nan, math.nan, 0, 0.9, misfit=misfit).describe()


def test_a_sheet_has_room_for_its_paths_and_a_cloud_in_many_dimensions_has_not(sheet):
    cloud = np.random.default_rng(0).normal(size=(len(sheet), 20))
    flat, full = (hs.HeatEmbedding().fit(X) for X in (sheet, cloud))
    assert flat.quality_.misfit < 1 / 3 < 2 / 3 < full.quality_.misfit
    assert flat.quality_.misfit == flat.diagnostics_["misfit"]
    assert math.isnan(hs.HeatEmbedding(layout="linear").fit(sheet).quality_.misfit)


@pytest.mark.parametrize(
    ("neighbors", "distances", "within", "is_free", "use"),
    [
        (0.97, 0.92, 0.79, False, "Read near and far, not exact distances"),
        (0.97, 0.92, 0.81, False, "Distances can be compared by eye"),
        (0.97, 0.92, 0.81, True, "Read near and far, not exact distances"),
        (0.97, 0.5, 0.85, False, "Read who is near, not how far others are"),
        (0.97, math.nan, 0.85, False, "Distances can be compared by eye"),
        (0.97, math.nan, 0.5, False, "Read who is near, not how far others are"),
        (0.8, 0.9, 0.85, False, "Read which groups are far apart, not who is near"),
        (0.8, 0.4, 0.85, False, "Trust neither neighbours nor distances"),
        (0.6, 0.1, 0.0, False, "Trust neither neighbours nor distances"),
    ],
)
def test_the_verdict_says_how_to_read_the_picture(neighbors, distances, within, is_free, use):
    found = PictureQuality(neighbors, distances, 0, within, is_free=is_free).describe()
    end = f"keeps {100 * within:.0f} % of diffusion distances within a factor of 1.5."
    assert found.endswith(f". {use}. The picture {end}")


def test_of_pictures_that_are_not_judged_nothing_is_to_be_read():
    found = PictureQuality(math.nan, math.nan, 0, 1.0).describe()
    assert found == (
        "Fewer than 50 points, too few to judge. "
        "The picture keeps 100 % of diffusion distances within a factor of 1.5."
    )


def test_true_neighbours_are_counted(sheet):
    Y = sheet + 0.05 * np.random.default_rng(1).normal(size=sheet.shape)
    Y[:50] = Y[0]  # at one place, so that ties count by index
    found = quality(sheet, Y).true_neighbors
    d = hs.diffusion(sheet)
    rows = d.sample(300)
    P, Q = Y[d.first_points], sheet[d.first_points]
    near = [np.argsort(cdist(Z[rows], Z), axis=1, kind="stable") for Z in (P, Q)]
    seen, true = near[0][:, :16], near[1][:, 1:31]
    seen = [row[row != i][:15] for row, i in zip(seen, rows, strict=True)]
    want = np.mean([len(np.intersect1d(*pair)) for pair in zip(seen, true, strict=True)])
    assert found == want


def test_crowding_is_the_fraction_in_the_densest_cells():
    rng = np.random.default_rng(0)
    Y = rng.random((4_000, 2))
    Y[:2_400] = 0.5 + 0.01 * rng.random((2_400, 2))
    found = module._crowding(Y)
    assert found == pytest.approx(0.6, abs=0.03)
    assert module._crowding(rng.random((20_000, 2))) < 0.03
    assert module._crowding(rng.random((20_000, 3))) < 0.03
    assert math.isnan(module._crowding(rng.random((50, 2))))


def test_a_crowded_picture_says_so():
    crowded = PictureQuality(0.97, 0.92, 0, 0.89, crowding=0.8).describe()
    assert "Most points are crowded in 1 % of the frame." in crowded
    assert "crowded" not in PictureQuality(0.97, 0.92, 0, 0.89, crowding=0.4).describe()


def helix_with_gaps():
    """Return points of a curve in five dimensions, and some of their entries to delete."""
    rng = np.random.default_rng(5)
    t = np.sort(rng.uniform(0, 9, 250))
    X = np.c_[np.cos(t), np.sin(t), np.cos(2 * t), t / 3, t**2 / 30] + 7.0
    gaps = rng.random(X.shape) < 0.35
    gaps[gaps.all(axis=1), 0] = False
    return X, gaps


def test_a_picture_is_judged_by_the_entries_that_both_points_have():
    X, gaps = helix_with_gaps()
    model = hs.HeatEmbedding(random_state=0).fit(np.where(gaps, np.nan, X))
    D = nan_euclidean_distances(np.where(gaps, np.nan, X))
    assert np.isnan(D).any()  # some pairs share no entry: they do not count
    between, lost = cdist(model.embedding_, model.embedding_), []
    for i in range(250):
        others = np.flatnonzero(~np.isnan(D[i]) & (np.arange(250) != i))
        rank = rankdata(D[i, others])
        near = np.argsort(between[i, others])[:15]
        n = len(others) + 1
        lost.append(2 / (15 * (2 * n - 46)) * np.maximum(rank[near] - 15, 0).sum())
    assert model.quality_.neighbors == pytest.approx(1 - np.mean(lost), abs=1e-10)
    step = model.diffusion_.directed_step.tocoo()
    first = model.diffusion_.first_points
    edges = {*zip(first[step.row], first[step.col], strict=True)}
    i, j = np.array([(a, b) for a, b in edges if a != b and not np.isnan(D[a, b])]).T
    assert len(i) < len([1 for a, b in edges if a != b])
    graph = csr_matrix((D[i, j], (i, j)), D.shape)
    sources = first[model.diffusion_.sample(50)]
    paths = dijkstra(graph.maximum(graph.T), indices=sources)
    known = np.isfinite(paths) & (paths > 0)
    want = spearmanr(paths[known], between[sources][known])[0]
    assert model.quality_.distances == pytest.approx(want, abs=1e-9)
    assert model.diagnostics_["judged_by"] == "entries that both points have"
    of_filled = hs.HeatEmbedding(random_state=0).fit(model.diffusion_.out_of_sample.points)
    assert of_filled.quality_.neighbors > model.quality_.neighbors  # an estimate repeats itself
    assert "judged_by" not in of_filled.diagnostics_


def test_without_gaps_the_verdict_has_the_same_bits(sheet):
    Y = sheet + 0.05 * np.random.default_rng(1).normal(size=sheet.shape)
    d, none = hs.diffusion(sheet), np.zeros(sheet.shape, bool)
    distortion = hs.metrics.diffusion_distortion(Y, d)
    geodesics = module.sampled_geodesics(d, gaps=none)
    np.testing.assert_array_equal(geodesics[1], module.sampled_geodesics(d)[1])
    assert module.picture_quality(Y, d, distortion, geodesics, gaps=none) == quality(sheet, Y)


def test_points_that_share_entries_with_few_others_judge_by_these():
    """Two groups that share no entry, one of three points: each judges within itself."""
    X = np.full((63, 2), np.nan)
    X[:60, 0], X[60:, 1] = np.arange(60.0), np.arange(3.0)
    lost = module.losses(*module.excess_ranks(X, np.arange(63.0)[:, None], 15, np.arange(63)))
    np.testing.assert_array_equal(lost, 0.0)
    X[60:, 1] = 0, 2, 3
    moved = np.r_[np.arange(60.0), 60, 62, 61.5][:, None]
    # Point 60 is next to 62, which has the rank 2 among two: 2 / (6 - 4) is lost.
    lost = module.losses(*module.excess_ranks(X, moved, 15, np.arange(60, 63)))
    np.testing.assert_array_equal(lost, [1, 0, 0])
