"""Isomap and landmark Isomap: the definition written out, closed forms, new points, bad input."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse.csgraph import dijkstra, floyd_warshall, minimum_spanning_tree
from scipy.spatial import procrustes
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.neighbors import (
    KNeighborsTransformer,
    RadiusNeighborsTransformer,
    kneighbors_graph,
)
from sklearn.pipeline import make_pipeline

import heatsketch as hs
from heatsketch.classical import Isomap, LandmarkIsomap
from heatsketch.neighbors import NeighborIndex
from problems.checks import estimator_checks
from problems.clouds import even_angles, even_circle

X = np.random.default_rng(0).uniform(size=(80, 3)) * [6, 4, 2]
NEW = np.random.default_rng(1).uniform(size=(9, 3)) * [6, 4, 2]
MODES = pytest.mark.parametrize("mode", [{"n_neighbors": 7}, {"radius": 1.8}], ids=["k", "radius"])
ESTIMATORS = pytest.mark.parametrize(
    "make",
    [Isomap, lambda *args, **kwargs: LandmarkIsomap(*args, n_landmarks=20, **kwargs)],
    ids=["all", "landmarks"],
)


def paths_of(X, n_neighbors=7, radius=None):
    """Lengths of all shortest paths, by the definition."""
    D = cdist(X, X)
    reach = np.sort(D, axis=1)[:, n_neighbors, None] if radius is None else radius
    G = np.where(reach >= D, D, np.inf)
    return floyd_warshall(np.minimum(G, G.T))


def scaled(paths, k):
    """Coordinates, eigenvalues and mean squares of classical scaling, written out."""
    n = len(paths)
    J = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-0.5 * J @ paths**2 @ J)
    values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    return vectors * np.sqrt(values), values, (paths**2).mean(axis=1)


def assert_equal_up_to_signs(Y, expected, rtol=1e-9):
    assert Y.shape == expected.shape
    assert np.isfinite(expected).all()
    signs = np.sign((Y * expected).sum(axis=0))
    assert_allclose(Y * signs, expected, rtol=0, atol=rtol * np.abs(expected).max())


@estimator_checks(
    Isomap(n_neighbors=4), Isomap(radius=1.0), LandmarkIsomap(n_landmarks=6, n_neighbors=4)
)
@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning", "ignore:Only")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# The definition


@MODES
def test_isomap_is_classical_scaling_of_shortest_paths(mode):
    Y = Isomap(4, **mode).fit_transform(X)
    assert_equal_up_to_signs(Y, scaled(paths_of(X, **mode), 4)[0])


@MODES
def test_landmarks_place_all_points(mode):
    model = LandmarkIsomap(3, n_landmarks=15, **mode).fit(X)
    paths, chosen = paths_of(X, **mode), model.landmarks_
    Y, values, means = scaled(paths[np.ix_(chosen, chosen)], 3)
    expected = 0.5 * (means - paths[:, chosen] ** 2) @ Y / values
    assert_equal_up_to_signs(model.embedding_, expected)
    assert_allclose(model.embedding_[chosen].mean(axis=0), 0, atol=1e-10)


@ESTIMATORS
@MODES
def test_new_points_go_to_their_neighbours_first(make, mode):
    model = make(3, **mode).fit(X)
    paths, chosen = paths_of(X, **mode), getattr(model, "landmarks_", np.arange(len(X)))
    Y, values, means = scaled(paths[np.ix_(chosen, chosen)], 3)
    D = cdist(NEW, X)
    reach = mode.get("radius", np.sort(D, axis=1)[:, 6, None])
    first = np.where(reach >= D, D, np.inf)
    to_all = (first[:, :, None] + paths[None, :, chosen]).min(axis=1)
    expected = 0.5 * (means - to_all**2) @ Y / values
    together = np.vstack([model.embedding_[chosen], model.transform(NEW)])  # one sign for both
    assert_equal_up_to_signs(together, np.vstack([Y, expected]))


@ESTIMATORS
@MODES
def test_training_points_come_out_as_they_went_in(make, mode):
    twice = np.vstack([X, X[:10]])
    model = make(3, **mode).fit(twice)
    scale = np.abs(model.embedding_).max()
    assert_allclose(model.transform(twice), model.embedding_, rtol=0, atol=1e-12 * scale)
    assert_array_equal(model.embedding_[80:], model.embedding_[:10])
    single = make(3, **mode).fit(X).embedding_[np.r_[:80, :10]]
    assert_allclose(model.embedding_, single, rtol=0, atol=1e-12 * scale)
    assert model.diagnostics_["duplicates"] == 10


def test_all_points_as_landmarks_are_isomap():
    expected = Isomap(3, n_neighbors=7).fit(X)
    every = np.arange(80)
    for given in ({}, {"n_landmarks": 80}, {"landmarks": every}, {"landmarks": every[::-1]}):
        model = LandmarkIsomap(3, n_neighbors=7, **given).fit(X)
        assert sorted(model.landmarks_) == list(range(80))
        assert_equal_up_to_signs(model.embedding_, expected.embedding_)
        assert_allclose(model.residual_variance_, expected.residual_variance_, rtol=1e-9)


def test_the_residual_variance_is_that_of_all_pairs():
    model = Isomap(3, n_neighbors=7).fit(X)
    paths = paths_of(X)
    for k in (1, 2, 3):
        D = cdist(model.embedding_[:, :k], model.embedding_[:, :k])
        expected = 1 - np.corrcoef(paths.ravel(), D.ravel())[0, 1] ** 2
        assert_allclose(model.residual_variance_[k - 1], expected, rtol=1e-9)
    assert model.diagnostics_["residual_variance"] == model.residual_variance_[2]


# Closed forms


def test_a_complete_graph_gives_the_principal_components():
    U, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    model = Isomap(3, n_neighbors=79).fit(X)
    assert_equal_up_to_signs(model.embedding_, U * s)
    assert_equal_up_to_signs(Isomap(3, radius=100.0).fit_transform(X), U * s)
    assert abs(model.residual_variance_[2]) < 1e-12
    few = LandmarkIsomap(3, landmarks=[5, 17, 40, 70], n_neighbors=79).fit(X)
    assert_allclose(cdist(few.embedding_, few.embedding_), cdist(X, X), atol=1e-9)


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("landmarks", [None, 2, 9])
def test_a_line_is_laid_along_its_length(k, landmarks):
    t = np.arange(40.0)
    line = np.outer(t, [3, 4]) + 7
    model = Isomap(1) if landmarks is None else LandmarkIsomap(1, n_landmarks=landmarks)
    Y = model.set_params(n_neighbors=k).fit_transform(line)
    assert_allclose(cdist(Y, Y), 5 * np.abs(t[:, None] - t), rtol=1e-9, atol=1e-9)


def test_a_circle_is_a_circle_of_known_radius():
    n = 24
    steps = np.minimum(np.arange(n), n - np.arange(n))
    squares = (steps * 2 * np.sin(np.pi / n)) ** 2  # paths go along the chords
    eigenvalue = -0.5 * squares @ np.cos(even_angles(n))  # of a circulant matrix, twice
    Y = Isomap(2, n_neighbors=2).fit_transform(even_circle(n))
    assert_allclose(np.linalg.norm(Y, axis=1), np.sqrt(2 * eigenvalue / n), rtol=1e-9)
    turn = np.einsum("ij,ij->i", Y, np.roll(Y, 1, axis=0)) / (2 * eigenvalue / n)
    assert_allclose(turn, np.cos(2 * np.pi / n), rtol=1e-9)


def test_a_flat_convex_piece_in_five_dimensions_is_laid_flat():
    rng = np.random.default_rng(3)
    flat = rng.uniform(size=(400, 2)) * [2, 1]
    basis = np.linalg.qr(rng.normal(size=(5, 2)))[0]
    model = Isomap(2, n_neighbors=20).fit(flat @ basis.T + 5)
    assert procrustes(flat, model.embedding_)[2] < 1e-3
    assert model.residual_variance_[1] < 1e-3 < 0.01 < model.residual_variance_[0]


@pytest.mark.parametrize("cls", [Isomap, LandmarkIsomap])
def test_the_flat_roll_is_unrolled(cls):
    roll, flat = hs.datasets.swiss_roll(800, mesh="uniform", rng=0)
    model = cls().fit(roll)
    assert abs(np.corrcoef(model.embedding_[:, 0], flat[:, 0])[0, 1]) > 0.999
    assert_allclose(np.ptp(model.embedding_[:, 0]), np.ptp(flat[:, 0]), rtol=0.02)
    middle, _ = hs.datasets.swiss_roll(200, rng=1)
    assert model.transform(middle).shape == (200, 2)
    assert abs(np.corrcoef(model.transform(roll[::7])[:, 0], flat[::7, 0])[0, 1]) > 0.999


def test_clouds_far_apart_are_joined_with_a_warning():
    clouds = np.vstack([X, X + np.array([100, 0, 0])])
    for make in (Isomap(n_neighbors=7), LandmarkIsomap(n_landmarks=30, n_neighbors=7)):
        with pytest.warns(hs.DisconnectedWarning, match="graph has 2 components"):
            model = make.fit(clouds)
        assert model.diagnostics_["components"] == 2
        assert np.isfinite(model.embedding_).all()
        sides = model.embedding_[:80, 0], model.embedding_[80:, 0]
        assert max(map(np.max, sides)) - min(map(np.min, sides)) > 60
        assert min(np.max(side) for side in sides) < max(np.min(side) for side in sides)


# Covariance


@ESTIMATORS
@MODES
@pytest.mark.parametrize("exponent", [-600, 500])
def test_a_power_of_two_scales_every_bit(make, mode, exponent):
    moved = {
        name: np.ldexp(1.0, exponent) * v if name == "radius" else v for name, v in mode.items()
    }
    one, other = make(**mode).fit(X), make(**moved).fit(np.ldexp(X, exponent))
    assert_array_equal(other.embedding_, np.ldexp(one.embedding_, exponent))
    assert_array_equal(
        other.transform(np.ldexp(NEW, exponent)), np.ldexp(one.transform(NEW), exponent)
    )


def test_offsets_and_rotations_change_nothing_but_rounding():
    expected = Isomap(3, n_neighbors=7).fit_transform(X)
    rotation = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
    assert_equal_up_to_signs(Isomap(3, n_neighbors=7).fit_transform(X @ rotation), expected)
    assert_equal_up_to_signs(Isomap(3, n_neighbors=7).fit_transform(X + 1e8), expected, 1e-6)


def test_order_does_not_matter():
    order = np.random.default_rng(5).permutation(80)
    expected = Isomap(3, n_neighbors=7).fit_transform(X)[order]
    assert_equal_up_to_signs(Isomap(3, n_neighbors=7).fit_transform(X[order]), expected)
    rows = np.arange(0, 80, 4)
    some = LandmarkIsomap(3, n_neighbors=7, landmarks=rows).fit_transform(X)[order]
    moved = LandmarkIsomap(3, n_neighbors=7, landmarks=np.argsort(order)[rows])
    assert_equal_up_to_signs(moved.fit_transform(X[order]), some)


# Kinds of input


@ESTIMATORS
def test_distances_in_place_of_points(make):
    for mode in ({"n_neighbors": 7}, {"radius": 1.8}):
        points = make(3, **mode).fit(X)
        given = make(3, metric="precomputed", **mode).fit(cdist(X, X))
        assert_equal_up_to_signs(given.embedding_, points.embedding_)
        assert_allclose(given.transform(cdist(NEW, X)), points.transform(NEW), rtol=0, atol=1e-8)
    assert make(metric="precomputed").__sklearn_tags__().input_tags.pairwise


@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
def test_a_graph_is_taken_as_it_is():
    graph = kneighbors_graph(X, 7, mode="distance")
    expected = Isomap(3, n_neighbors=7).fit(X)
    model = Isomap(3, n_neighbors=2, metric="precomputed").fit(graph)
    assert_equal_up_to_signs(model.embedding_, expected.embedding_)
    D = cdist(NEW, X)
    rows = sparse.csr_matrix(np.where(np.sort(D, axis=1)[:, 6, None] >= D, D, 0.0))
    assert_allclose(model.transform(rows), expected.transform(NEW), rtol=0, atol=1e-8)
    apart = sparse.block_diag([graph, graph], format="csr")
    with pytest.raises(ValueError, match="a graph of 2 components"):
        Isomap(metric="precomputed").fit(apart)
    with pytest.raises(ValueError, match=r"Row\(s\) 0, 1 of X have no stored distance"):
        model.transform(sparse.csr_matrix((2, 80)))


@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
def test_distances_of_clouds_are_joined_as_points_are():
    clouds = np.vstack([X, X + np.array([100, 0, 0]), X - np.array([0, 70, 0])])
    with pytest.warns(hs.DisconnectedWarning, match="3 components"):
        points = Isomap(3, n_neighbors=7).fit(clouds)
    with pytest.warns(hs.DisconnectedWarning, match="3 components"):
        given = Isomap(3, n_neighbors=7, metric="precomputed").fit(cdist(clouds, clouds))
    assert_equal_up_to_signs(given.embedding_, points.embedding_)
    far = cdist([[0.0, 0, 500]], clouds)
    near = Isomap(3, radius=120.0, metric="precomputed").fit(cdist(clouds, clouds))
    with pytest.warns(hs.ScaleWarning, match="too far from all training points"):
        assert np.isfinite(near.transform(far)).all()


def paths_between_points(model):
    """The lengths of paths in data units, in the order of the points."""
    vertex = model._neighborhoods.vertex
    paths = model._paths if vertex is None else model._paths[np.ix_(vertex, vertex)]
    return np.ldexp(paths, model._neighborhoods.frame.exponent)


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
@pytest.mark.parametrize("n_clusters", [3, 7, 12])
def test_paths_between_small_clusters_are_straight(metric, n_clusters):
    rng = np.random.default_rng(n_clusters)
    radius, size = 0.1, 8
    centres = 30 * rng.normal(size=(n_clusters, 3))
    offsets = rng.uniform(-1, 1, size=(n_clusters, size, 3)) * radius / np.sqrt(3)
    points = (centres[:, None] + offsets).reshape(-1, 3)
    D = cdist(points, points)
    model = Isomap(3, n_neighbors=size - 1, metric=metric)
    with pytest.warns(hs.DisconnectedWarning, match=f"{n_clusters} components"):
        model.fit(points if metric == "euclidean" else D)
    # Inside a cluster all points are joined; two clusters by one link, and what a path is longer
    # than a straight line is at most twice the way to its ends, each of 2 radii.
    paths = paths_between_points(model)
    assert (paths - D > -1e-9).all()
    assert (paths - D <= 8 * radius).all()


def test_very_many_components_are_joined_by_a_tree():
    points = np.random.default_rng(0).normal(size=(300, 3))
    points = np.vstack([points, points + 1e-9])  # 300 pairs
    D = cdist(points, points)
    with pytest.warns(hs.DisconnectedWarning, match="300 components"):
        far = Isomap(2, n_neighbors=1).fit(points)
    with pytest.warns(hs.DisconnectedWarning, match="300 components"):
        given = Isomap(2, n_neighbors=1, metric="precomputed").fit(D)
    between = minimum_spanning_tree(D[:300, :300])
    along = dijkstra(between, directed=False)
    for model in (far, given):
        paths = paths_between_points(model)
        assert_allclose(paths[:300, :300], along, rtol=0, atol=1e-6)


def test_a_pipeline_of_a_transformer_gives_new_points_as_many_neighbours():
    transformer = KNeighborsTransformer(n_neighbors=7)
    pipeline = make_pipeline(transformer, Isomap(3, n_neighbors=7, metric="precomputed")).fit(X)
    expected = Isomap(3, n_neighbors=7).fit(X)
    assert_allclose(pipeline.transform(NEW), expected.transform(NEW), rtol=0, atol=1e-9)
    assert_allclose(pipeline.transform(X), expected.transform(X), rtol=0, atol=1e-9)
    # Of a graph whose points have different numbers of neighbours, all entries are edges.
    within = RadiusNeighborsTransformer(radius=1.8)
    by_radius = make_pipeline(within, Isomap(3, metric="precomputed")).fit(X)
    expected = Isomap(3, radius=1.8).fit(X)
    assert_allclose(by_radius.transform(NEW), expected.transform(NEW), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("D", "message"),
    [
        (np.ones((4, 5)), "pass the distances between all"),
        (-cdist(X, X), "negative numbers"),
        (np.triu(cdist(X, X)), "not symmetric"),
        (cdist(X, X) + np.eye(80), "not zero on its diagonal"),
        (np.zeros((9, 9)), "Every distance is zero"),
        (sparse.csr_matrix(np.ones((4, 5))), "pass a graph"),
        (sparse.csr_matrix(-cdist(X, X)), "negative numbers"),
        (np.full((9, 9), np.nan), "NaN"),
    ],
)
def test_what_are_no_distances_is_refused(D, message):
    with pytest.raises(ValueError, match=message):
        Isomap(n_neighbors=3, metric="precomputed").fit(D)


@pytest.mark.parametrize(
    "neighbors",
    [NeighborIndex(X, n_neighbors=12), KNeighborsTransformer(n_neighbors=7)],
    ids=["index", "transformer"],
)
def test_neighbours_may_come_from_the_caller(neighbors):
    own = Isomap(3, n_neighbors=7).fit(X)
    given = Isomap(3, n_neighbors=7, neighbors=neighbors).fit(X)
    assert_equal_up_to_signs(given.embedding_, own.embedding_)
    assert_allclose(given.transform(NEW), own.transform(NEW), rtol=0, atol=1e-8)


@ESTIMATORS
def test_single_precision_stays_it(make):
    single = make(n_neighbors=7).fit(X.astype(np.float32))
    assert single.embedding_.dtype == single.transform(NEW.astype(np.float32)).dtype == np.float32
    double = make(n_neighbors=7).fit(X.astype(np.float32).astype(float))
    assert_allclose(single.embedding_, double.embedding_, rtol=1e-6, atol=1e-6)


@ESTIMATORS
def test_data_frames_clones_and_pickles(make):
    frames = pytest.importorskip("pandas")
    frame = frames.DataFrame(X, columns=["width", "height", "depth"])
    model = make(n_neighbors=7).set_output(transform="pandas").fit(frame)
    assert list(model.feature_names_in_) == ["width", "height", "depth"]
    out = model.transform(frame[:5])
    prefix = type(model).__name__.lower()
    assert list(out.columns) == [f"{prefix}0", f"{prefix}1"]
    plain = make(n_neighbors=7).fit(X)
    for again in (pickle.loads(pickle.dumps(plain)), clone(plain).fit(X)):
        assert_array_equal(again.transform(NEW), plain.transform(NEW))


def test_sparse_points_and_lists_are_points():
    points = np.where(np.abs(X) < 0.4, 0.0, X)
    expected = Isomap(n_neighbors=7).fit(points)
    for form in (sparse.csr_matrix, sparse.coo_array, np.ndarray.tolist):
        model = Isomap(n_neighbors=7).fit(form(points))
        assert_equal_up_to_signs(model.embedding_, expected.embedding_)


def test_two_points_have_one_coordinate():
    pair = [[0.0, 0.0], [3.0, 4.0]]
    for model in (Isomap(1, n_neighbors=1), LandmarkIsomap(1, n_landmarks=2, n_neighbors=1)):
        assert_allclose(np.sort(model.fit_transform(pair), axis=0), [[-2.5], [2.5]], atol=1e-12)
    with pytest.raises(ValueError, match="there are 2 distinct points"):
        Isomap(2, n_neighbors=1).fit(pair)


@ESTIMATORS
@MODES
@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
def test_points_beyond_the_longest_path_are_named(make, mode):
    model = make(**mode).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.transform(NEW)
    for size in (1e3, 1e150, 1e300):
        far = np.vstack([NEW, [[size, 0, 0]]])
        with pytest.warns(hs.ScaleWarning, match=r"\(rows 9\) are farther from every training"):
            model.transform(far)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Isomap(80), ValueError, "n_components=80 but there are 80 distinct points"),
        (lambda: Isomap(0), ValueError, "n_components=0"),
        (lambda: Isomap(metric="cosin"), ValueError, "metric='cosin' is unknown"),
        (lambda: LandmarkIsomap(3, n_landmarks=3), ValueError, "there are 3 distinct points"),
        (lambda: LandmarkIsomap(1, n_landmarks=1), ValueError, "at least 2 points or landmarks"),
        (lambda: LandmarkIsomap(landmarks=[]), ValueError, "landmarks is empty"),
        (lambda: LandmarkIsomap(n_landmarks=0), ValueError, "n_landmarks=0"),
        (lambda: LandmarkIsomap(landmarks="random"), ValueError, "landmarks='random'"),
        (lambda: LandmarkIsomap(landmarks=[3, 80, -1]), ValueError, "pass 0 <= index < 80"),
        (lambda: LandmarkIsomap(landmarks=[0.5, 1.0]), ValueError, "dtype float64; pass a rule"),
    ],
)
def test_parameters_out_of_range_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make().fit(X)


def test_coordinates_beyond_the_precision_of_the_data_are_refused():
    line = np.linspace(-3e38, 3e38, 30, dtype=np.float32)[:, None] * np.ones((1, 9), np.float32)
    with pytest.raises(ValueError, match="too large for float32"):
        Isomap(1, n_neighbors=2).fit(line)


def test_memory_is_looked_at_before_the_paths_are(monkeypatch):
    monkeypatch.setattr("heatsketch._checks.available", lambda: 90_000.0)
    with pytest.raises(MemoryError, match="is available; pass LandmarkIsomap"):
        Isomap(n_neighbors=7).fit(X)
    with pytest.raises(MemoryError, match="pass fewer landmarks"):
        LandmarkIsomap(n_neighbors=7, n_landmarks=75).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LandmarkIsomap(n_neighbors=7, n_landmarks=20).fit(X)
