"""Classical scaling and landmarks: identities with PCA, closed spectra, exact recovery."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import clone

from heatsketch import _checks
from heatsketch.classical import PCA, ClassicalMDS, LandmarkMDS
from heatsketch.graphs.landmarks import max_min
from problems.checks import estimator_checks


@pytest.fixture
def X():
    """Forty points in general position, of different spread along the axes."""
    return np.random.default_rng(1).normal(size=(40, 4)) * [5.0, 4.0, 3.0, 2.0]


@pytest.fixture
def flat():
    """Points of R^10 in a three-dimensional affine subspace."""
    rng = np.random.default_rng(2)
    frame, _ = np.linalg.qr(rng.normal(size=(10, 3)))
    return (rng.normal(size=(150, 3)) * [3.0, 2.0, 1.0]) @ frame.T + rng.normal(size=10)


def cycle(n):
    """Distances along a cycle of n vertices."""
    steps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return np.minimum(steps, n - steps).astype(float)


def cycle_spectrum(n):
    """Eigenvalues of B for the cycle, a circulant matrix: those of frequencies 1 to n - 1."""
    squares, j = cycle(n)[0] ** 2, np.arange(n)
    return np.array([-0.5 * squares @ np.cos(2 * np.pi * m * j / n) for m in range(1, n)])


def star():
    """Distances on a star of three leaves: the leaves are the first three vertices."""
    D = 2.0 * (1 - np.eye(4))
    D[3, :3] = D[:3, 3] = 1.0
    return D


def assert_equal_up_to_signs(A, B, atol):
    signs = np.sign(np.sum(A * B, axis=0))
    assert_allclose(A * signs, B, atol=atol)


# Classical scaling of Euclidean distances


def test_scaling_of_points_is_pca(X):
    assert_equal_up_to_signs(ClassicalMDS(3).fit_transform(X), PCA(3).fit_transform(X), 1e-11)


def test_given_distances_say_the_same_as_points(X):
    given_distances = ClassicalMDS(3, metric="precomputed").fit_transform(cdist(X, X))
    assert_allclose(given_distances, ClassicalMDS(3).fit_transform(X), atol=1e-11)


def test_columns_are_centred_orthogonal_and_of_length_lambda(X):
    mds = ClassicalMDS(4).fit(X)
    Z = mds.embedding_
    assert_allclose(Z.sum(axis=0), 0, atol=1e-11)
    assert_allclose(Z.T @ Z, np.diag(mds.eigenvalues_), atol=1e-10)
    largest = Z[np.abs(Z).argmax(axis=0), np.arange(4)]
    assert (largest > 0).all()


def test_rigid_motions_change_nothing_and_permutations_permute(X):
    rng = np.random.default_rng(3)
    Q, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    order = rng.permutation(len(X))
    Z = ClassicalMDS(4).fit_transform(X)
    assert_allclose(ClassicalMDS(4).fit_transform(X @ Q + 7), Z, atol=1e-10)
    assert_allclose(ClassicalMDS(4).fit_transform(X[order]), Z[order], atol=1e-10)


def test_an_offset_costs_no_digits_but_those_of_the_data(X):
    moved = X + 1e8  # entries are off by 7e-9
    Z = ClassicalMDS(4).fit_transform(moved)
    assert_allclose(cdist(Z, Z), cdist(X, X), atol=1e-6)
    assert_allclose(ClassicalMDS(4).fit(moved).transform(moved), Z, atol=1e-11)


def test_more_points_than_lapack_is_given():
    X = np.random.default_rng(4).normal(size=(1600, 3)) * [3.0, 2.0, 1.0]
    mds = ClassicalMDS(3).fit(X)
    assert mds.diagnostics_["spectrum_points"] == 1600
    given = ClassicalMDS(3, metric="precomputed").fit(cdist(X, X))
    assert_equal_up_to_signs(given.embedding_, mds.embedding_, 1e-9)
    assert given.diagnostics_["spectrum_points"] == 1000


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_new_points_keep_their_distances(X, metric):
    X_new = np.random.default_rng(5).normal(size=(9, 4)) * 20
    data, new = (X, X_new) if metric == "euclidean" else (cdist(X, X), cdist(X_new, X))
    mds = ClassicalMDS(4, metric=metric).fit(data)
    assert_allclose(cdist(mds.transform(new), mds.embedding_), cdist(X_new, X), rtol=1e-11)


def test_too_few_dimensions_are_filled_with_zeros(X):
    with pytest.warns(UserWarning, match="Only 2 of 3 eigenvalues"):
        Z = ClassicalMDS(3).fit_transform(X[:, :2])
    assert_array_equal(Z[:, 2], 0)
    assert_allclose(cdist(Z, Z), cdist(X[:, :2], X[:, :2]), atol=1e-11)


# Distances that are not Euclidean


@pytest.mark.parametrize("n", [5, 8, 13])
def test_the_cycle_has_the_spectrum_of_a_circulant_matrix(n):
    values = cycle_spectrum(n)
    positive, negative = values[values > 1e-9], values[values < -1e-9]
    mds = ClassicalMDS(len(positive), metric="precomputed").fit(cycle(n))
    assert_allclose(mds.eigenvalues_, np.sort(positive)[::-1], rtol=1e-12)
    assert len(negative) > 0
    assert mds.diagnostics_["negative_eigenvalues"] == len(negative)
    share = -negative.sum() / np.abs(values).sum()
    assert_allclose(mds.diagnostics_["negative_share"], share, rtol=1e-12)


@pytest.mark.parametrize("n", [5, 8, 13])
def test_the_positive_part_of_the_cycle_is_reproduced(n):
    values, steps = cycle_spectrum(n), np.subtract.outer(np.arange(n), np.arange(n))
    kept = [m for m in range(1, n) if values[m - 1] > 1e-9]
    part = sum(values[m - 1] * np.cos(2 * np.pi * m * steps / n) / n for m in kept)
    Z = ClassicalMDS(len(kept), metric="precomputed").fit_transform(cycle(n))
    assert_allclose(Z @ Z.T, part, atol=1e-11)


def test_the_star_has_eigenvalues_two_two_and_minus_a_quarter():
    mds = ClassicalMDS(3, metric="precomputed")
    with pytest.warns(UserWarning, match="Only 2 of 3 eigenvalues"):
        mds.fit(star())
    assert_allclose(mds.eigenvalues_, [2, 2, 0], atol=1e-12)
    assert mds.diagnostics_["negative_eigenvalues"] == 1
    assert_allclose(mds.diagnostics_["negative_share"], 0.25 / 4.25, rtol=1e-12)
    leaves = mds.embedding_[:3]
    assert_allclose(cdist(leaves, leaves), star()[:3, :3], atol=1e-12)
    assert_allclose(mds.embedding_[3], 0, atol=1e-12)


@pytest.mark.parametrize("D", [cycle(9), star()], ids=["cycle", "star"])
def test_training_points_fall_on_themselves_for_any_distances(D):
    mds = ClassicalMDS(2, metric="precomputed").fit(D)
    assert_allclose(mds.transform(D), mds.embedding_, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda D: D[:, :-1], r"shape \(6, 5\)"),
        (lambda D: -D, "negative"),
        (lambda D: D + np.eye(6), "diagonal"),
        (lambda D: D + np.tri(6, k=-1), "not symmetric"),
        (lambda D: D * np.nan, "NaN"),
    ],
)
def test_matrices_other_than_distances_are_refused(change, match):
    with pytest.raises(ValueError, match=match):
        ClassicalMDS(metric="precomputed").fit(change(cycle(6)))


def test_memory_is_looked_at_before_it_is_taken(X, monkeypatch):
    monkeypatch.setattr(_checks, "available", lambda: 1e4)
    with pytest.raises(MemoryError, match=r"40 points .* use LandmarkMDS"):
        ClassicalMDS(metric="precomputed").fit(cdist(X, X))
    ClassicalMDS().fit(X)  # needs no distances


# Landmarks

LANDMARKS = {
    "maxmin": lambda X: {"landmarks": "maxmin", "n_landmarks": 6},
    "random": lambda X: {"landmarks": "random", "n_landmarks": 6},
    "indices": lambda X: {"landmarks": [3, 1, 4, 15, 9]},
    "coordinates": lambda X: {"landmarks": X[:5] + X[5:10] - X[10:15]},  # in the subspace
}
every_form = pytest.mark.parametrize("options", LANDMARKS.values(), ids=LANDMARKS)


@every_form
def test_landmarks_that_span_the_data_give_exact_distances(flat, options):
    old, new = flat[:100], flat[100:]
    mds = LandmarkMDS(3, random_state=0, **options(flat)).fit(old)
    assert_allclose(cdist(mds.embedding_, mds.embedding_), cdist(old, old), atol=1e-10)
    assert_allclose(cdist(mds.transform(new), mds.embedding_), cdist(new, old), atol=1e-10)
    assert_array_equal(mds.transform(old), mds.embedding_)


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
    D = cycle(9)
    landmark = LandmarkMDS(landmarks=np.arange(9), metric="precomputed").fit_transform(D)
    whole = ClassicalMDS(metric="precomputed").fit_transform(D)
    assert_allclose(landmark, whole, atol=1e-12)


def test_the_map_depends_on_the_landmarks_alone(X):
    some = LandmarkMDS(landmarks=X[:8]).fit(X[8:20])
    assert_allclose(some.transform(X), LandmarkMDS(landmarks=X[:8]).fit_transform(X), atol=1e-12)


def test_euclidean_distances_project_on_the_axes_of_the_landmarks(X):
    rows = np.arange(0, 40, 3)
    placed = LandmarkMDS(2, rows).fit_transform(X)
    assert_equal_up_to_signs(placed, PCA(2).fit(X[rows]).transform(X), 1e-11)


def test_tiles_change_nothing():
    X = np.random.default_rng(6).normal(size=(2500, 3))
    mds = LandmarkMDS(2, n_landmarks=20, random_state=0).fit(X)
    parts = [mds.transform(part) for part in np.array_split(X, 7)]
    assert_allclose(np.vstack(parts), mds.embedding_, atol=1e-13)


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


def test_max_min_beyond_one_tile():
    points = np.random.default_rng(7).normal(size=(40_000, 2))
    chosen = max_min(points, 5, 0)
    for i in range(1, 5):
        assert chosen[i] == cdist(points, points[chosen[:i]]).min(axis=1).argmax()


@pytest.mark.parametrize("rule", ["maxmin", "random"])
def test_a_seed_decides_the_landmarks(X, rule):
    def rows(seed):
        return LandmarkMDS(landmarks=rule, n_landmarks=8, random_state=seed).fit(X).landmarks_

    assert_array_equal(rows(0), rows(0))
    assert len(np.unique(rows(0))) == 8
    assert any(not np.array_equal(rows(0), rows(seed)) for seed in range(1, 20))


def test_fewer_points_than_landmarks_are_all_landmarks(X):
    for rule in ("maxmin", "random"):
        mds = LandmarkMDS(landmarks=rule, random_state=0).fit(np.vstack([X, X[:1]]))
        expected = 40 if rule == "maxmin" else 41  # max-min leaves out the copy
        assert mds.diagnostics_["n_landmarks"] == len(mds.landmarks_) == expected


@pytest.mark.parametrize("estimator", [ClassicalMDS(2), LandmarkMDS(2, np.arange(9))])
@pytest.mark.parametrize("scale", [1e100, 1e-100])
def test_large_and_small_sizes_change_nothing(X, estimator, scale):
    Z = estimator.fit_transform(X)
    assert_allclose(estimator.fit_transform(X * scale) / scale, Z, atol=1e-10)


def test_float32_stays_float32_and_keeps_its_digits(X):
    for mds in (ClassicalMDS(4), LandmarkMDS(4, n_landmarks=9, random_state=0)):
        Z = mds.fit_transform((X + 1000).astype(np.float32))
        assert Z.dtype == mds.transform(X.astype(np.float32)).dtype == np.float32
        assert_allclose(cdist(Z, Z), cdist(X, X), atol=2e-3)  # entries are off by 3e-5


def test_points_that_coincide_have_no_coordinates():
    with pytest.warns(UserWarning, match="Only 0 of 2"):
        Z = ClassicalMDS().fit_transform(np.ones((5, 3)))
    assert_array_equal(Z, 0)
    with pytest.raises(ValueError, match=r"1 distinct landmark\(s\)"):
        LandmarkMDS().fit(np.ones((5, 3)))


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (ClassicalMDS(40), "pass n_components <= 39"),
        (ClassicalMDS(metric="cosin"), "metric='cosin' is unknown"),
        (LandmarkMDS(landmarks="far"), "landmarks='far'"),
        (LandmarkMDS(landmarks=[0, 1, 40]), "0 <= index < 40"),
        (LandmarkMDS(landmarks=[0, 1, -1]), "0 <= index < 40"),
        (LandmarkMDS(landmarks=[0, 1, 1]), "more than once"),
        (LandmarkMDS(landmarks=[0.0, 1.0, 2.0]), "integers"),
        (LandmarkMDS(landmarks=[True] * 40), "integers"),
        (LandmarkMDS(landmarks=[0, 1]), "2 distinct landmark"),
        (LandmarkMDS(landmarks=np.ones((5, 3))), r"pass \(l, 4\)"),
        (LandmarkMDS(landmarks=np.full((5, 4), np.nan)), "landmarks contains NaN"),
        (LandmarkMDS(landmarks=[0, 1, 2], metric="precomputed"), r"X has shape \(40, 4\)"),
        (LandmarkMDS(landmarks=[0, 1, 2, 3], metric="precomputed"), "diagonal"),
        (LandmarkMDS(metric="precomputed"), "pass the indices of the rows of X that are"),
        (LandmarkMDS(landmarks=[]), "landmarks is empty; pass row indices"),
        (LandmarkMDS(landmarks=[], metric="precomputed"), "landmarks is empty; pass row indices"),
    ],
)
def test_parameters_out_of_range_are_refused(X, estimator, match):
    with pytest.raises(ValueError, match=match):
        estimator.fit(np.abs(X))


@pytest.mark.parametrize("size", [1e17, 1e150])
@pytest.mark.parametrize("mds", [ClassicalMDS(4), LandmarkMDS(4, n_landmarks=9, random_state=0)])
def test_points_far_away_keep_their_distances(X, mds, size):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = np.random.default_rng(8).normal(size=(6, 4))
        placed = mds.fit(X).transform(new * size) / size
    assert_allclose(cdist(placed, placed), cdist(new, new), rtol=1e-12)


@pytest.mark.parametrize("offset", [1e7, 1e14])
def test_landmarks_far_from_the_data_keep_the_distances(X, offset):
    mds = LandmarkMDS(4, X[:10] + offset).fit(X)
    error = offset * 1e-15
    assert_allclose(cdist(mds.embedding_, mds.embedding_), cdist(X, X), atol=200 * error)


@pytest.mark.parametrize("mds", [ClassicalMDS(1), LandmarkMDS(1, landmarks=[0, 1])])
def test_coordinates_beyond_the_precision_of_the_data_are_refused(mds):
    line = np.linspace(-3e38, 3e38, 30, dtype=np.float32)[:, None] * np.ones((1, 9), np.float32)
    with pytest.raises(ValueError, match="too large for float32"):
        mds.fit(line)
    given = clone(mds).set_params(metric="precomputed").fit(1 - np.eye(2, dtype=np.float32))
    far = np.array([[0, 1e10]])  # from two points at ±½, which gives y = 1e20 / 2
    assert_allclose(np.abs(given.transform(far)), 5e19, rtol=1e-12)
    with pytest.raises(ValueError, match="too large for float32"):
        given.transform((far * 1e20).astype(np.float32))


def test_dimensions_beside_an_outlier_are_kept(X):
    X[7] = [1e8, 0, 0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Z = ClassicalMDS(4).fit_transform(X)
    assert_allclose(cdist(Z, Z), cdist(X, X), rtol=1e-12, atol=1e-6)  # 1e8 is rounded by 1e-8
    D = cdist(X, X)
    with pytest.warns(UserWarning, match=r"Only . of 4 .* outlier"):
        ClassicalMDS(4, metric="precomputed").fit(D)


def test_only_distances_of_all_to_all_are_pairwise():
    def pairwise(estimator):
        return estimator.__sklearn_tags__().input_tags.pairwise

    assert pairwise(ClassicalMDS(metric="precomputed"))
    assert not pairwise(ClassicalMDS())
    assert not pairwise(LandmarkMDS(landmarks=[0, 1, 2], metric="precomputed"))


@estimator_checks(ClassicalMDS(), LandmarkMDS(n_landmarks=9))
@pytest.mark.filterwarnings("ignore:Only . of . eigenvalues")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
