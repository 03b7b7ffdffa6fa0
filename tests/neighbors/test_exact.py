"""The exact search beside all distances from differences; distinct rows."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from heatsketch.neighbors import NeighborIndex, distinct_rows, pair_distances
from problems.clouds import cloud
from problems.matrices import dense

# Small integers: sums of squares are exact, and ties and duplicates are common.
grids = hnp.arrays(
    float, st.tuples(st.integers(3, 14), st.integers(1, 3)), elements=st.integers(-2, 2).map(float)
)
CLOUD = cloud(1500, 30)
CASES = {
    "cloud": CLOUD,
    "one outlier": np.vstack([CLOUD[:300], np.full((1, 30), 1e7)]),
    "outlier": np.vstack([cloud(60, 20), np.full((1, 20), 1e9)]),
    "copies": np.repeat(CLOUD[:40], 20, axis=0),
    "binary": np.random.default_rng(0).integers(0, 2, (600, 20)).astype(float),
    "bytes": np.random.default_rng(3).integers(0, 255, (60, 30)).astype(np.uint8),
    "squares below float32": 1e-25 * CLOUD[:300],
    "squares above float32": 1e25 * CLOUD[:300],
    "few points": CLOUD[:12],
    "wide": cloud(200, 3000),
    # |x|² + |y|² - 2xy has no digits left for the nearest neighbours.
    "far from zero": CLOUD + 1e6,
    "offset in 3-d": cloud(60, 3) + 1e8,
    "offset in 20-d": cloud(60, 20) + 1e8,
    "tight clusters in 2-d": np.sign(cloud(60, 1)) + 1e-7 * cloud(60, 2),
    "tight clusters in 20-d": np.sign(cloud(60, 1)) + 1e-7 * cloud(60, 20),
    "sparse": sparse.csr_matrix(np.where(cloud(300, 20) > 0.5, cloud(300, 20), 0)),
}
cases = pytest.mark.parametrize("points", CASES.values(), ids=CASES.keys())


def brute(x, y):
    return np.sqrt(np.stack([((row - y.astype(float)) ** 2).sum(axis=1) for row in x]))


def nearest(D, k):
    """Return the k smallest of all distances; of equal ones the lowest index first."""
    order = np.argsort(D, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(D, order, axis=1), order


@cases
def test_the_nearest_and_all_within_are_exact_and_the_first_of_equally_distant_points(points):
    found, D = NeighborIndex(points).query(None, 6), brute(dense(points), dense(points))
    distances, indices = nearest(D, 6)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-14)
    np.testing.assert_array_equal(found.indices, indices)
    # All within a radius: symmetric, zeros are stored.
    radius = np.sort(D[5])[4]  # one pair lies exactly on the border, or nearly
    found = NeighborIndex(points).within(None, radius)
    inside = radius >= D
    np.testing.assert_allclose(found.toarray(), np.where(inside, D, 0), rtol=1e-14)
    assert found.nnz == inside.sum()
    assert (found != found.T).nnz == 0


@cases
def test_new_points_have_the_nearest_too(points):
    x = dense(points)
    x = np.vstack([x[::7], x[::11] * (1 + 2.0**-10), 1e8 * x[:2]])
    distances, _ = nearest(brute(x, dense(points)), 8)
    found = NeighborIndex(points).query(sparse.csr_matrix(x) if sparse.issparse(points) else x, 8)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-8)


@given(grids, st.integers(1, 3), st.sampled_from([0.0, 1.0, np.sqrt(2), 2.0, np.sqrt(5)]))
def test_ties_copies_and_pairs_exactly_at_the_radius(X, k, radius):
    found, D = NeighborIndex(X), brute(X, X)
    for ours, want in zip(found.query(None, k), nearest(D, k), strict=True):
        np.testing.assert_array_equal(ours, want)
    within = found.within(None, radius).tocoo()
    rows, columns = np.nonzero(radius >= D)
    assert set(zip(within.row, within.col, strict=True)) == set(zip(rows, columns, strict=True))
    np.testing.assert_array_equal(within.data, D[within.row, within.col])


@pytest.mark.parametrize("points", [CLOUD, CASES["binary"], CLOUD[:, :3]])
def test_rows_do_not_depend_on_the_tiles(points, limits):
    index = NeighborIndex(points)
    whole = index.query(None, 9)
    for rows in (slice(7, 8), slice(300, 331), slice(200, 500)):
        for ours, want in zip(index.query(points[rows], 9), whole, strict=True):
            np.testing.assert_array_equal(ours, want[rows])
    limits(search_tile=1)
    for ours, want in zip(NeighborIndex(points).query(None, 9), whole, strict=True):
        np.testing.assert_array_equal(ours, want)


def test_pair_distances_keep_the_digits_of_close_pairs_in_any_chunking(limits):
    steps = np.array([2.0**-30, 2.0**-20, 1.0, 3.0])
    x = np.full((4, 1), 2.0**20)
    for chunk in (1, 3, 100):
        limits(differences_at_a_time=chunk)
        distances = pair_distances(x + steps[:, None], x, np.arange(4), np.zeros(4, dtype=int))
        np.testing.assert_array_equal(distances, steps)


@pytest.mark.parametrize("points", [cloud(200, 800), sparse.csr_matrix(cloud(200, 800))])
def test_pair_distances_take_little_memory_beyond_their_result(points):
    """Differences of all pairs at once would be 64 MB; the caches of a core have one or two."""
    i, j = np.divmod(np.arange(10_000), 50)
    pair_distances(points, points, i[:5], j[:5])  # imports
    tracemalloc.start()
    pair_distances(points, points, i, j)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6


@given(grids)
def test_distinct_rows_are_the_first_of_each_value_in_an_order_that_rows_do_not_change(X):
    first, vertex = distinct_rows(X)
    np.testing.assert_array_equal(X[first][vertex], X)
    assert len(first) == len(np.unique(X + 0.0, axis=0))
    assert all(i == np.flatnonzero(vertex == v)[0] for v, i in enumerate(first))
    np.testing.assert_array_equal(X[::-1][distinct_rows(X[::-1])[0]] + 0.0, X[first] + 0.0)
    for ours, want in zip(distinct_rows(sparse.csr_matrix(X)), (first, vertex), strict=True):
        np.testing.assert_array_equal(ours, want)
