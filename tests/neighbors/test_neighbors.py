import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from heatsketch.neighbors import NeighborIndex, distinct_rows, pair_distances

# Small integers: sums of squares are exact, and ties and duplicates are common.
grids = hnp.arrays(
    float, st.tuples(st.integers(3, 14), st.integers(1, 3)), elements=st.integers(-2, 2).map(float)
)


def brute(x, y):
    return np.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1))


def cloud(n=60, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


# Data on which |x|² + |y|² - 2xy has no digits left for the nearest neighbours.
HARD = {
    "offset in 3-d": cloud(d=3) + 1e8,
    "offset in 20-d": cloud(d=20) + 1e8,
    "tight clusters in 2-d": np.sign(cloud(d=1)) + 1e-7 * cloud(d=2),
    "tight clusters in 20-d": np.sign(cloud(d=1)) + 1e-7 * cloud(d=20),
    "outlier in 20-d": np.vstack([cloud(d=20), np.full((1, 20), 1e9)]),
}
hard = pytest.mark.parametrize("X", HARD.values(), ids=HARD.keys())


@given(grids, st.integers(1, 3))
def test_query_finds_the_smallest_distances_in_order(X, k):
    found = NeighborIndex(X).of_points(k)
    D = brute(X, X)
    np.testing.assert_array_equal(found.distances, np.sort(D, axis=1)[:, :k])
    np.testing.assert_array_equal(np.take_along_axis(D, found.indices, axis=1), found.distances)
    assert all(len(set(row)) == k for row in found.indices.tolist())


@hard
def test_query_is_right_where_the_gram_form_is_not(X):
    found = NeighborIndex(X).of_points(6)
    D = brute(X, X)
    np.testing.assert_array_equal(found.indices, np.argsort(D, axis=1)[:, :6])
    np.testing.assert_allclose(found.distances, np.sort(D, axis=1)[:, :6], rtol=1e-15)


@hard
def test_within_is_right_where_the_gram_form_is_not(X):
    D = brute(X, X)
    radius = np.median(np.sort(D, axis=1)[:, 4]) * (1 + 1e-9)
    found, inside = NeighborIndex(X).points_within(radius), radius >= D
    assert found.nnz == inside.sum()
    np.testing.assert_allclose(found.toarray(), np.where(inside, D, 0), rtol=1e-15)


@pytest.mark.parametrize("d", [2, 30])
def test_new_points_are_compared_with_the_points_only(d):
    X, new = cloud(d=d), cloud(7, d, seed=1)
    found = NeighborIndex(X).query(new, 4)
    np.testing.assert_array_equal(found.indices, np.argsort(brute(new, X), axis=1)[:, :4])
    assert found.distances.min() > 0


@pytest.mark.parametrize("d", [2, 30])
def test_duplicates_are_at_distance_exactly_zero(d):
    X = np.repeat(cloud(20, d) * np.pi, 3, axis=0)
    distances = NeighborIndex(X).of_points(4).distances
    assert (distances[:, :3] == 0).all()
    assert (distances[:, 3] > 0).all()


@given(grids, st.sampled_from([0.0, 1.0, np.sqrt(2), 2.0, np.sqrt(5)]))
def test_within_keeps_pairs_exactly_at_the_radius_and_stores_zeros(X, radius):
    found = NeighborIndex(X).points_within(radius).tocoo()
    rows, columns = np.nonzero(brute(X, X) <= radius)
    assert set(zip(found.row, found.col, strict=True)) == set(zip(rows, columns, strict=True))
    np.testing.assert_array_equal(found.data, brute(X, X)[found.row, found.col])


@pytest.mark.parametrize("d", [3, 20])
def test_within_is_symmetric_to_the_last_bit(d):
    X = cloud(100, d) + 1e3
    radius = np.sort(brute(X, X), axis=1)[17, 5]  # one pair lies exactly on the border
    found = NeighborIndex(X).points_within(radius)
    assert found[17].nnz == 6
    assert (found != found.T).nnz == 0


def test_within_of_points_far_away_is_empty():
    found = NeighborIndex(cloud()).within(cloud(4) + 100, 1.0)
    assert found.shape == (4, 60)
    assert found.nnz == 0


@pytest.mark.parametrize("d", [3, 20])
def test_sparse_points_have_the_neighbours_of_dense_ones(d):
    X = cloud(d=d) * (cloud(d=d, seed=1) > 0)
    dense, thin = NeighborIndex(X), NeighborIndex(sparse.csr_matrix(X))
    found = thin.query(thin.points, 5)
    np.testing.assert_allclose(found.distances, dense.query(X, 5).distances, rtol=1e-14)
    D = np.take_along_axis(brute(X, X), found.indices, axis=1)
    np.testing.assert_allclose(found.distances, D, rtol=1e-14)
    difference = thin.within(thin.points, 1.5) - dense.within(X, 1.5)
    assert abs(difference).max() < 1e-14


def test_candidates_are_put_in_the_order_of_explicit_differences():
    # Sparse points have no tree; with all points as candidates the Gram form still orders nothing.
    X = 1e6 + 1e-4 * cloud(12, 20)
    found = NeighborIndex(sparse.csr_matrix(X)).query(sparse.csr_matrix(X), 12)
    D = brute(X, X)
    np.testing.assert_array_equal(found.indices, np.argsort(D, axis=1))
    np.testing.assert_allclose(found.distances, np.sort(D, axis=1), rtol=1e-14)


def test_pair_distances_keep_the_digits_of_close_pairs_in_any_chunking(monkeypatch):
    steps = np.array([2.0**-30, 2.0**-20, 1.0, 3.0])
    x = np.full((4, 1), 2.0**20)
    for chunk in (1, 3, 100):
        monkeypatch.setattr("heatsketch.neighbors.exact.DIFFERENCES_AT_A_TIME", chunk)
        distances = pair_distances(x + steps[:, None], x, np.arange(4), np.zeros(4, dtype=int))
        np.testing.assert_array_equal(distances, steps)


@given(grids)
def test_distinct_rows_are_the_first_of_each_value_in_an_order_that_rows_do_not_change(X):
    first, vertex = distinct_rows(X)
    np.testing.assert_array_equal(X[first][vertex], X)
    assert len(first) == len(np.unique(X + 0.0, axis=0))
    assert all(i == np.flatnonzero(vertex == v)[0] for v, i in enumerate(first))
    np.testing.assert_array_equal(X[::-1][distinct_rows(X[::-1])[0]] + 0.0, X[first] + 0.0)


@given(grids)
def test_distinct_rows_of_sparse_points_are_those_of_dense_ones(X):
    for ours, want in zip(distinct_rows(sparse.csr_matrix(X)), distinct_rows(X), strict=True):
        np.testing.assert_array_equal(ours, want)


def test_distinct_rows_take_minus_zero_for_zero():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, np.nextafter(1.0, 2.0)]])
    for points in (X, sparse.csr_matrix(X)):
        first, inverse = distinct_rows(points)
        assert sorted(first) == [0, 2]
        np.testing.assert_array_equal(first[inverse], [0, 0, 2])


def test_distinct_rows_see_through_the_storage_of_sparse_points():
    # Row 0 with a stored zero, row 1 in reverse order, row 2 as a sum of two entries.
    data = np.array([1.0, 0.0, 2.0, 2.0, 1.0, 0.5, 0.5, 2.0])
    columns = np.array([0, 1, 2, 2, 0, 0, 0, 2])
    X = sparse.csr_matrix((data, columns, [0, 3, 5, 8]), shape=(3, 3))
    first, inverse = distinct_rows(X)
    assert (first.tolist(), inverse.tolist()) == ([0], [0, 0, 0])
    assert X.nnz == 8


def test_among_points_equally_far_those_of_lowest_index_are_taken_however_many_are_asked():
    """Binary points: nearly every list of neighbours ends in a tie."""
    X = np.random.default_rng(3).integers(0, 2, (1500, 20)).astype(float)
    index = NeighborIndex(X)
    together = index.query(X, 12)
    distances = np.abs(X[:, None, :] - X).sum(axis=2)  # squared, and whole
    order = np.lexsort((np.broadcast_to(np.arange(1500), (1500, 1500)), distances), axis=1)[:, :12]
    assert np.array_equal(together.indices, order)
    for rows in (slice(0, 1), slice(700, 731), slice(400, 1424)):
        assert np.array_equal(index.query(X[rows], 12).indices, together.indices[rows])
