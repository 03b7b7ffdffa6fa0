"""Classical scaling and landmarks: identities with PCA, closed spectra, exact recovery."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist, pdist, squareform

import heatsketch as hs
from heatsketch.classical import PCA, ClassicalMDS, LandmarkMDS, MetricMDS
from heatsketch.neighbors.graph import max_min
from problems.checks import up_to_signs
from problems.spectra import cycle_graph, star_graph


@pytest.fixture
def flat():
    """Points of R^10 in a three-dimensional affine subspace."""
    rng = np.random.default_rng(2)
    frame, _ = np.linalg.qr(rng.normal(size=(10, 3)))
    return (rng.normal(size=(150, 3)) * [3.0, 2.0, 1.0]) @ frame.T + rng.normal(size=10)


def along(graph):
    """Lengths of the shortest paths of a graph."""
    return shortest_path(graph, unweighted=True)


# Classical scaling of Euclidean distances


def test_columns_are_centred_orthogonal_and_of_length_lambda(X):
    mds = ClassicalMDS(4).fit(X)
    Z = mds.embedding_
    assert_allclose(Z.sum(axis=0), 0, atol=1e-11)
    assert_allclose(Z.T @ Z, np.diag(mds.eigenvalues_), atol=1e-10)
    largest = Z[np.abs(Z).argmax(axis=0), np.arange(4)]
    assert (largest > 0).all()


def test_more_points_than_lapack_is_given():
    X = np.random.default_rng(4).normal(size=(1600, 3)) * [3.0, 2.0, 1.0]
    mds = ClassicalMDS(3).fit(X)
    given = ClassicalMDS(3, metric="precomputed").fit(cdist(X, X))
    expected = mds.embedding_
    assert_allclose(up_to_signs(given.embedding_, expected), expected, atol=1e-9)


# Distances that are not Euclidean


@pytest.mark.parametrize("n", [5, 8, 13])
def test_the_cycle_has_the_positive_part_of_a_circulant_matrix(n):
    D, j = along(cycle_graph(n)), np.arange(n)
    squares = D[0] ** 2
    values = np.array([-0.5 * squares @ np.cos(2 * np.pi * m * j / n) for m in range(1, n)])
    positive, negative = values[values > 1e-9], values[values < -1e-9]
    mds = ClassicalMDS(len(positive), metric="precomputed").fit(D)
    assert_allclose(mds.eigenvalues_, np.sort(positive)[::-1], rtol=1e-12)
    assert mds.diagnostics_["negative_eigenvalues"] == len(negative) > 0
    share = -negative.sum() / np.abs(values).sum()
    assert_allclose(mds.diagnostics_["negative_share"], share, rtol=1e-12)
    steps, kept = np.subtract.outer(j, j), np.flatnonzero(values > 1e-9) + 1
    part = sum(values[m - 1] * np.cos(2 * np.pi * m * steps / n) / n for m in kept)
    assert_allclose(mds.embedding_ @ mds.embedding_.T, part, atol=1e-11)


def test_the_star_has_eigenvalues_two_two_and_minus_a_quarter():
    D, mds = along(star_graph(4)), ClassicalMDS(3, metric="precomputed")
    with pytest.warns(UserWarning, match="Only 2 of 3 eigenvalues"):
        mds.fit(D)
    assert_allclose(mds.eigenvalues_, [2, 2, 0], atol=1e-12)
    assert_allclose(mds.transform(D), mds.embedding_, atol=1e-12)
    assert_allclose(pdist(mds.embedding_[1:]), 2, atol=1e-12)  # of the leaves
    assert_allclose(mds.embedding_[0], 0, atol=1e-12)


def test_positive_only_has_as_many_columns_as_positive_eigenvalues():
    """d_+ = min(m_+, d) of the notes, steps 4 and 5."""
    D = along(star_graph(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mds = ClassicalMDS(3, metric="precomputed", positive_only=True).fit(D)
    assert mds.embedding_.shape == (4, 2)
    assert_allclose(mds.eigenvalues_, [2, 2], atol=1e-12)
    assert_allclose(mds.transform(D), mds.embedding_, atol=1e-12)
    assert list(mds.get_feature_names_out()) == ["classicalmds0", "classicalmds1"]
    one = ClassicalMDS(1, metric="precomputed", positive_only=True).fit(D)
    assert one.embedding_.shape == (4, 1)


def test_cities_of_the_united_states_are_nearly_flat():
    miles, position = hs.datasets.us_cities()
    assert_array_equal(miles, miles.T)
    a, b = np.radians(position).T
    sphere = np.column_stack([np.cos(b) * np.cos(a), np.cos(b) * np.sin(a), np.sin(b)])
    along_circles = 3959 * np.arccos(np.clip(sphere @ sphere.T, -1, 1))  # the Earth's radius
    off = np.abs(along_circles - miles)[np.triu_indices(10, 1)]
    assert off.max() < 12  # miles
    mds = ClassicalMDS(metric="precomputed").fit(miles)
    assert mds.diagnostics_["negative_eigenvalues"] > 0
    assert mds.diagnostics_["negative_share"] < 0.01
    assert_allclose(cdist(mds.embedding_, mds.embedding_), miles, atol=60)


# Landmarks


@pytest.mark.parametrize("landmarks", ["maxmin", "random", [3, 1, 4, 15, 9]])
def test_landmarks_that_span_the_data_give_exact_distances(flat, landmarks):
    old, new = flat[:100], flat[100:]
    mds = LandmarkMDS(3, landmarks, n_landmarks=6, random_state=0).fit(old)
    assert_allclose(cdist(mds.embedding_, mds.embedding_), cdist(old, old), atol=1e-10)
    assert_allclose(cdist(mds.transform(new), mds.embedding_), cdist(new, old), atol=1e-10)


def test_distances_to_landmarks_are_enough(flat):
    rows = np.array([3, 1, 4, 15, 9])
    mds = LandmarkMDS(3, rows, metric="precomputed").fit(cdist(flat[:100], flat[rows]))
    points = LandmarkMDS(3, rows).fit(flat[:100])
    assert_allclose(mds.embedding_, points.embedding_, atol=1e-10)
    new = cdist(flat[100:], flat[rows])
    assert_allclose(mds.transform(new), points.transform(flat[100:]), atol=1e-10)


def test_all_points_as_landmarks_is_classical_scaling(X):
    Z = ClassicalMDS(2).fit_transform(X)
    assert_allclose(LandmarkMDS(landmarks=np.arange(40)).fit_transform(X), Z, atol=1e-12)
    D = along(cycle_graph(9))
    landmark = LandmarkMDS(landmarks=np.arange(9), metric="precomputed").fit_transform(D)
    whole = ClassicalMDS(metric="precomputed").fit_transform(D)
    assert_allclose(landmark, whole, atol=1e-12)


def test_euclidean_distances_project_on_the_axes_of_the_landmarks(X):
    rows = np.arange(0, 40, 3)
    placed = LandmarkMDS(2, rows).fit_transform(X)
    expected = PCA(2).fit(X[rows]).transform(X)
    assert_allclose(up_to_signs(placed, expected), expected, atol=1e-11)


@given(st.integers(0, 2**32 - 1), st.integers(2, 30))
def test_max_min_takes_the_farthest_point_each_time(seed, count):
    points = np.random.default_rng(seed).integers(0, 6, size=(30, 2)).astype(float)
    D = cdist(points, points)  # with ties and copies
    chosen = max_min(points, count, seed % 30)
    assert chosen[0] == seed % 30
    for i in range(1, len(chosen)):
        nearest = D[:, chosen[:i]].min(axis=1)
        assert nearest[chosen[i]] == nearest.max() > 0
    distinct = len(np.unique(points, axis=0))
    assert len(chosen) == min(count, distinct)


def test_fewer_points_than_landmarks_are_all_landmarks(X):
    for rule in ("maxmin", "random"):
        mds = LandmarkMDS(landmarks=rule, random_state=0).fit(np.vstack([X, X[:1]]))
        expected = 40 if rule == "maxmin" else 41  # max-min leaves out the copy
        assert mds.diagnostics_["n_landmarks"] == len(mds.landmarks_) == expected


def test_points_that_coincide_have_no_coordinates():
    assert_array_equal(ClassicalMDS().fit_transform(np.ones((5, 3))), 0)
    with pytest.warns(UserWarning, match="Only 0 of 2"):
        Z = ClassicalMDS(metric="precomputed").fit_transform(np.zeros((5, 5)))
    assert_array_equal(Z, 0)
    with pytest.raises(ValueError, match="there are 1 distinct points or landmarks"):
        LandmarkMDS().fit(np.ones((5, 3)))


def test_dimensions_beside_an_outlier_are_kept(X):
    X[7] = [1e8, 0, 0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Z = ClassicalMDS(4).fit_transform(X)
    assert_allclose(cdist(Z, Z), cdist(X, X), rtol=1e-12, atol=1e-6)  # 1e8 is rounded by 1e-8
    D = cdist(X, X)
    with pytest.warns(UserWarning, match=r"Only . of 4 .* outlier"):
        ClassicalMDS(4, metric="precomputed").fit(D)


# The least stress


def cloud(n=40, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)) * [3, 2, 1][:d]


def noisy_distances(n=40, seed=0):
    rng = np.random.default_rng(seed)
    noise = rng.uniform(0.6, 1.4, n * (n - 1) // 2)
    return squareform(pdist(cloud(n, 2, seed)) * noise)


def raw_stress(Y, D):
    return ((pdist(Y) - squareform(D)) ** 2).sum()


def fitted(X, **parameters):
    return MetricMDS(**({"max_iter": 3000, "tol": 1e-12} | parameters)).fit(X)


def test_the_stress_is_least_nearby_and_less_than_that_of_classical_scaling():
    D = noisy_distances()
    model = fitted(D, metric="precomputed")
    best = raw_stress(model.embedding_, D)
    rng = np.random.default_rng(1)
    for size in (1e-3, 1e-2, 0.1):
        moved = model.embedding_ + size * rng.standard_normal(model.embedding_.shape)
        assert raw_stress(moved, D) > best
    classical = ClassicalMDS(metric="precomputed").fit_transform(D)
    assert best < 0.95 * raw_stress(classical, D)
    for name, Y in (("stress", model.embedding_), ("classical_stress", classical)):
        kruskal = np.sqrt(raw_stress(Y, D) / (pdist(Y) ** 2).sum())
        assert model.diagnostics_[name] == pytest.approx(kruskal)


def test_a_square_with_long_diagonals_has_a_stress_that_can_be_computed():
    """Sides 1 and diagonals s in the plane: a square of side a, 4 (a - 1)² + 2 (a √2 - s)²."""
    s = 1.8
    D = np.array([[0, 1, s, 1], [1, 0, 1, s], [s, 1, 0, 1], [1, s, 1, 0]])
    a = (1 + s / np.sqrt(2)) / 2
    model = fitted(D, metric="precomputed")
    assert_allclose(np.sort(pdist(model.embedding_)), np.sort([a] * 4 + [a * np.sqrt(2)] * 2))
    expected = 4 * (a - 1) ** 2 + 2 * (a * np.sqrt(2) - s) ** 2
    assert raw_stress(model.embedding_, D) == pytest.approx(expected)


def test_new_points_have_the_least_stress_of_their_own():
    X, new = cloud(), cloud(10, seed=5)
    model = fitted(X)
    Z = model.transform(new)
    delta = squareform(pdist(np.vstack([X, new])))[len(X) :, : len(X)]

    def own(Z):
        distances = np.linalg.norm(Z[:, None] - model.embedding_, axis=2)
        return ((distances - delta) ** 2).sum(axis=1)

    for angle in np.arange(8):
        step = 1e-3 * np.array([np.cos(angle), np.sin(angle)])
        assert (own(Z + step) > own(Z)).all()
    given = fitted(squareform(pdist(X)), metric="precomputed")
    assert_allclose(given.transform(delta), Z, atol=1e-5)


def test_exact_places_are_found():
    for X in (cloud(d=3), cloud(d=2)):
        model = fitted(X, n_components=X.shape[1])
        assert_allclose(pdist(model.embedding_), pdist(X), rtol=1e-9)
        assert model.stress_ < 1e-9
    new = cloud(10, 2, seed=5)
    together = pdist(np.vstack([model.embedding_, model.transform(new)]))
    assert_allclose(together, pdist(np.vstack([X, new])), atol=1e-5)


def test_it_says_when_it_stopped_too_early():
    with pytest.warns(hs.ConvergenceWarning, match="max_iter=2 iterations; raise max_iter"):
        MetricMDS(max_iter=2, tol=1e-12).fit(cloud())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MetricMDS().fit(cloud())
