import numpy as np
import pytest
from scipy import sparse
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from heatsketch.scales import graph_dimension, intrinsic_dimension


def graph_of(X, k, boxsize=None):
    """Distances to k nearest others, and 0; on a torus of this size no point is at a boundary."""
    distances, indices = cKDTree(X, boxsize=boxsize).query(X, k + 1)
    starts = np.arange(0, indices.size + 1, k + 1)
    return sparse.csr_matrix((distances.ravel(), indices.ravel(), starts), (len(X), len(X)))


def cloud(n=400, d=2, seed=0):
    return np.random.default_rng(seed).random((n, d))


def log_ratios(X, k):
    """Return log(T_k / T_j), (n, k - 1), of the distances T to the nearest others."""
    T = np.sort(cdist(X, X))[:, 1 : k + 1]
    return np.log(T[:, -1:] / T[:, :-1])


@pytest.mark.parametrize("k", [2, 3, 10])
def test_estimates_follow_the_definition_for_every_number_of_neighbours(k):
    X = cloud(60, 3)
    found = intrinsic_dimension(X, n_neighbors=k)
    np.testing.assert_array_equal(found.n_neighbors, np.arange(2, k + 1))
    want = [1 / np.mean(log_ratios(X, j).sum(axis=1) / (j - 1)) for j in range(2, k + 1)]
    np.testing.assert_allclose(found.dimensions, want, rtol=1e-10)
    assert found.dimension == found.dimensions[-1]


@pytest.mark.statistical
@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_law_of_one_neighbourhood(d):
    # Given T_k, the k - 1 nearer ones are uniform in its ball: the sum of log(T_k / T_j) has the
    # Gamma law of shape k - 1 and rate d. On the torus this holds for all points (T_k < 1/2), so
    # that the mean inverse is 1/d exactly. 60 sets of 300 points, k = 6: z-test at 5 sigma (1e-6),
    # with the standard deviation over the sets. A divisor of k or k - 2 in place of k - 1 is off
    # by 17 and 25 %, where 5 sigma are 2 %.
    inverses = [1 / graph_dimension(graph_of(cloud(300, d, seed), 6, 1.0)) for seed in range(60)]
    sigma = np.std(inverses, ddof=1) / np.sqrt(60)
    assert 5 * sigma < 0.03 / d
    assert np.mean(inverses) == pytest.approx(1 / d, abs=5.5 * sigma)


@pytest.mark.statistical
@pytest.mark.parametrize("d", [1, 3])
def test_the_error_is_that_over_draws(d):
    # Standard deviations over 100 draws to 7 %; 4.9 sigma, and 10 % for the estimate's own bias:
    # 45 %. Errors of independent points would be 25 to 30 % too small: a one-sided 0.8 is below
    # them only in the worst draws, so that the mean inverse is looked at, too, in the next test.
    found = [intrinsic_dimension(cloud(300, d, seed), n_neighbors=10) for seed in range(100)]
    dimension, error = np.transpose([one[:2] for one in found])
    assert error.mean() == pytest.approx(dimension.std(), rel=0.45)


def test_the_error_knows_that_copies_of_a_set_are_independent():
    # m sets far apart, the same in each: a standard error of 1/√m of one of them.
    X = cloud(100, 2)
    one = intrinsic_dimension(X, n_neighbors=8)
    nine = intrinsic_dimension(np.vstack([X + 100.0 * i for i in range(9)]), n_neighbors=8)
    assert nine.dimension == pytest.approx(one.dimension, rel=1e-9)
    assert nine.error == pytest.approx(one.error / 3, rel=1e-6)


def test_the_error_counts_shared_neighbours():
    X, k = cloud(200, 2), 7
    member = graph_of(X, k)
    member.data[:] = 1.0
    z = log_ratios(X, k).mean(axis=1)
    z -= z.mean()
    variance = z @ (member @ member.T / (k + 1)) @ z / 200**2
    found = intrinsic_dimension(X, n_neighbors=k)
    assert found.error == pytest.approx(found.dimension**2 * np.sqrt(variance), rel=1e-9)


def test_the_estimate_of_a_graph_is_the_same():
    graph = graph_of(cloud(200, 3), 5)
    graph.sort_indices()
    want = intrinsic_dimension(cloud(200, 3), n_neighbors=5).dimension
    assert graph_dimension(graph) == pytest.approx(want, rel=1e-12)


def test_fewer_points_than_neighbours_are_all_used():
    with pytest.warns(UserWarning, match="n_neighbors=15 but X has 10 distinct points"):
        found = intrinsic_dimension(cloud(10))
    assert found.n_neighbors[-1] == 9
    assert found.error > 0


def test_what_has_no_dimension_is_refused():
    with pytest.raises(ValueError, match="2 distinct points; pass at least 3"):
        intrinsic_dimension([[0.0], [1.0], [0.0]])
    with pytest.raises(ValueError, match="equally distant, as on a grid"):
        intrinsic_dimension(np.eye(8), n_neighbors=4)
    with pytest.raises(ValueError, match="n_neighbors=1 is out of range"):
        intrinsic_dimension(cloud(), n_neighbors=1)
    with pytest.raises(ValueError, match="too small for float64"):
        intrinsic_dimension([[0.0], [1e-300], [2e-300], [1.0]], n_neighbors=2)


CHANGES = {
    "tiny": lambda X: 1e-50 * X,
    "huge": lambda X: 1e50 * X,
    "order": lambda X: X[::-1],
    "copies": lambda X: np.repeat(X, 30, axis=0),
    "more coordinates": lambda X: X @ np.linalg.qr(cloud(20, 20, 1))[0][:2],
    "sparse": sparse.csr_matrix,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_it_does_not_depend_on_units_order_copies_or_form(change):
    X = cloud() * (cloud(seed=1) > 0.2)
    found, want = intrinsic_dimension(change(X)), intrinsic_dimension(X)
    assert found.dimension == pytest.approx(want.dimension, rel=1e-9)
    assert found.error == pytest.approx(want.error, rel=1e-9)
