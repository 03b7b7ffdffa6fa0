"""Isomap and landmark Isomap: the definition written out, closed forms, new points, bad input."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse.csgraph import dijkstra, floyd_warshall, minimum_spanning_tree
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.manifold import Isomap as TheirIsomap
from sklearn.neighbors import KNeighborsTransformer, RadiusNeighborsTransformer
from sklearn.pipeline import make_pipeline

import heatsketch as hs
from heatsketch.classical import Isomap, LandmarkIsomap
from problems.checks import up_to_signs
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
    assert_allclose(up_to_signs(Y, expected), expected, atol=rtol * np.abs(expected).max())


# The definition


@ESTIMATORS
@MODES
def test_points_old_and_new_are_placed_by_shortest_paths(make, mode):
    model = make(3, **mode).fit(X)
    paths, chosen = paths_of(X, **mode), getattr(model, "landmarks_", np.arange(len(X)))
    Y, values, means = scaled(paths[np.ix_(chosen, chosen)], 3)
    D = cdist(NEW, X)
    reach = mode.get("radius", np.sort(D, axis=1)[:, 6, None])
    first = np.where(reach >= D, D, np.inf)
    to_all = (first[:, :, None] + paths[None, :, chosen]).min(axis=1)
    expected = 0.5 * (means - to_all**2) @ Y / values
    all_old = 0.5 * (means - paths[:, chosen] ** 2) @ Y / values
    together = np.vstack([model.embedding_, model.transform(NEW)])  # one sign for both
    assert_equal_up_to_signs(together, np.vstack([all_old, expected]))
    assert_allclose(model.embedding_[chosen].mean(axis=0), 0, atol=1e-10)


def test_all_points_as_landmarks_are_isomap():
    expected = Isomap(3, n_neighbors=7).fit(X)
    every = np.arange(80)
    for given in ({}, {"n_landmarks": 80}, {"landmarks": every}, {"landmarks": every[::-1]}):
        model = LandmarkIsomap(3, n_neighbors=7, **given).fit(X)
        assert sorted(model.landmarks_) == list(range(80))
        assert_equal_up_to_signs(model.embedding_, expected.embedding_)


# Closed forms


def test_a_complete_graph_gives_the_principal_components():
    U, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    model = Isomap(3, n_neighbors=79).fit(X)
    assert_equal_up_to_signs(model.embedding_, U * s)
    assert_equal_up_to_signs(Isomap(3, radius=100.0).fit_transform(X), U * s)
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


# Kinds of input


def paths_between_points(model):
    """The lengths of paths, in the order of the points."""
    vertex = model._neighborhoods.vertex
    return model._paths[np.ix_(vertex, vertex)]


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


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_very_many_components_are_joined_by_a_tree(metric):
    points = np.random.default_rng(0).normal(size=(300, 3))
    points = np.vstack([points, points + 1e-9])  # 300 pairs
    D = cdist(points, points)
    model = Isomap(2, n_neighbors=1, metric=metric)
    with pytest.warns(hs.DisconnectedWarning, match="300 components"):
        model.fit(points if metric == "euclidean" else D)
    along = dijkstra(minimum_spanning_tree(D[:300, :300]), directed=False)
    assert_allclose(paths_between_points(model)[:300, :300], along, rtol=0, atol=1e-6)


@pytest.mark.parametrize("more", [0, 5])
def test_a_graph_of_distances_in_a_pipeline_is_as_in_scikit_learn(more, tmp_path):
    rng = np.random.default_rng(3)
    X, new = rng.normal(size=(150, 3)), rng.normal(size=(20, 3))
    graphs = KNeighborsTransformer(n_neighbors=8 + more, mode="distance")
    ours = make_pipeline(graphs, Isomap(2, n_neighbors=8, metric="precomputed")).fit(X)
    theirs = TheirIsomap(n_neighbors=8, metric="precomputed", eigen_solver="dense")
    theirs = make_pipeline(clone(graphs), theirs).fit(X)
    points = Isomap(2, n_neighbors=8).fit(X)
    for Y in (X, new):
        found = ours.transform(Y)
        assert_allclose(found, up_to_signs(theirs.transform(Y), found), rtol=1e-6, atol=1e-8)
        assert_allclose(found, up_to_signs(points.transform(Y), found), rtol=1e-6, atol=1e-8)
    assert_allclose(ours.transform(X), ours[-1].embedding_, rtol=1e-9, atol=1e-12)
    for Y in (X, new):  # all distances, not only those to neighbours
        assert_allclose(ours[-1].transform(cdist(Y, X)), ours.transform(Y), rtol=1e-6, atol=1e-8)
    hs.save_model(ours[-1], tmp_path / "isomap.model")
    again = hs.load_model(tmp_path / "isomap.model")
    np.testing.assert_array_equal(again.transform(ours[0].transform(new)), ours.transform(new))


def test_graphs_of_distances_within_a_radius_and_to_landmarks():
    X = np.random.default_rng(4).uniform(size=(120, 2))
    graphs = RadiusNeighborsTransformer(radius=0.4).fit(X)
    new = X[:10] + 0.01
    for model in (Isomap(2, radius=0.4), LandmarkIsomap(2, radius=0.4, landmarks=[0, 40, 7, 90])):
        given = clone(model).set_params(metric="precomputed").fit(graphs.transform(X))
        expected = model.fit(X)
        for found, want in (
            (given.embedding_, expected.embedding_),
            (given.transform(graphs.transform(new)), expected.transform(new)),
        ):
            assert_allclose(up_to_signs(found, want), want, rtol=1e-6, atol=1e-8)


def test_graphs_of_distances_that_are_not_enough_are_refused():
    rng = np.random.default_rng(5)
    X = np.vstack([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 100])
    graph = KNeighborsTransformer(n_neighbors=4).fit_transform(X)
    model = Isomap(2, n_neighbors=4, metric="precomputed")
    for given, message in (
        (graph, r"X is a graph of 2 components \(sizes 20, 20\) without a distance"),
        (graph[:20], r"X has shape \(20, 40\) but metric='precomputed'"),
        (-graph, "X holds negative numbers"),
        (KNeighborsTransformer(n_neighbors=3).fit_transform(X), "X has only 3 neighbours for row"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(given)


def test_two_points_have_one_coordinate():
    pair = [[0.0, 0.0], [3.0, 4.0]]
    for model in (Isomap(1, n_neighbors=1), LandmarkIsomap(1, n_landmarks=2, n_neighbors=1)):
        assert_allclose(np.sort(model.fit_transform(pair), axis=0), [[-2.5], [2.5]], atol=1e-12)
    with pytest.raises(ValueError, match="there are 2 distinct points"):
        Isomap(2, n_neighbors=1).fit(pair)
