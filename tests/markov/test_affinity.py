import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist

from heatsketch import (
    Dense,
    Kernel,
    Sparse,
    gaussian_affinity,
    kernel_affinity,
    symmetric_normalize,
)
from heatsketch._threads import row_tiles
from heatsketch.markov.affinity import dense_affinity, knn_affinity, radius_affinity
from heatsketch.scales import rule_epsilon
from problems.clouds import cloud, even_circle, rotation
from problems.matrices import kernel_matrix, of_points, rows_of_points

SELF_TUNING = "self-tuning"


def dyadic(n=40, d=3):
    """Points on a grid of 2^-20, which keeps every digit when 2^27 is added."""
    return np.round(np.ldexp(cloud(n, d), 20)) / 2**20


def all_affinities(X, epsilon):
    n = X.shape[0]
    return {
        "dense": gaussian_affinity(X, epsilon),
        "radius": of_points(radius_affinity(X, epsilon)),
        "knn": of_points(knn_affinity(X, epsilon, min(6, n - 1))),
        "dense self-tuning": of_points(dense_affinity(X, SELF_TUNING, 6)),
        "knn self-tuning": of_points(knn_affinity(X, SELF_TUNING, 6)),
    }


# The definition


@given(st.integers(0, 10**6), st.floats(0.01, 100), st.integers(1, 5))
def test_dense_affinity_is_its_definition(seed, epsilon, d):
    X = cloud(20, d, seed=seed)
    K = gaussian_affinity(X, epsilon)
    assert_allclose(K, kernel_matrix(X, epsilon), rtol=1e-11)
    assert (K == K.T).all()
    assert (np.diag(K) == 1).all()


@pytest.mark.parametrize("rule", ["ksum", "median", "nearest"])
def test_rules_give_the_bandwidth(rule):
    X = cloud(40, 3)
    want = gaussian_affinity(X, rule_epsilon(X, rule))
    assert_array_equal(gaussian_affinity(X, rule), want)
    if rule == "ksum":
        assert_array_equal(gaussian_affinity(X), want)


def test_symmetric_to_the_last_bit_across_row_tiles():
    X = cloud(1_500, 7)
    assert len(list(row_tiles(len(X)))) > 1
    K = gaussian_affinity(X, 3.0)
    assert (K == K.T).all()
    assert_allclose(K, kernel_matrix(X, 3.0), rtol=1e-12)


@pytest.mark.parametrize("epsilon", [0, -1.0, np.nan, np.inf])
def test_an_epsilon_that_is_no_bandwidth_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon="):
        gaussian_affinity(cloud(40, 3), epsilon)


# Metamorphic relations


UNCHANGED = {
    "smaller": lambda X: (1e-6 * X, 1e-12),
    "larger": lambda X: (1e6 * X, 1e12),
    "moved": lambda X: (X + 2.0**10, 1.0),
    "moved far": lambda X: (X + 2.0**27, 1.0),
    "turned": lambda X: (X @ rotation(3), 1.0),
    "sparse": lambda X: (sparse.csr_matrix(X), 1.0),
    "with a constant column": lambda X: (np.column_stack([X, np.full(len(X), 1e4)]), 1.0),
}


@pytest.mark.parametrize("change", UNCHANGED.values(), ids=UNCHANGED)
def test_distances_and_epsilon_alone_decide(change):
    X = dyadic()
    changed, scale = change(X)
    changed = all_affinities(changed, scale * 1.5)
    for name, K in all_affinities(X, 1.5).items():
        assert_allclose(changed[name], K, rtol=1e-11, err_msg=name)


@pytest.mark.parametrize("width", [1e-7, 1e-3])
def test_two_narrow_clusters_far_apart_keep_their_digits(width):
    # In float64 the form |x|² + |y|² - 2xy is off by 1e-16, the squared width 1e-14.
    shape = np.vstack([dyadic(20), dyadic(20) + 2.0 / width])
    X = width * shape
    K = gaussian_affinity(X, width**2)
    assert_allclose(K[:20, :20], kernel_matrix(X[:20], width**2), rtol=1e-7)
    assert (K[:20, 20:] == 0).all()


def test_single_precision_points_are_computed_in_double():
    X = cloud(40, 3).astype(np.float32)
    K = gaussian_affinity(X, 1.5)
    assert K.dtype == np.float64
    assert_array_equal(K, gaussian_affinity(X.astype(np.float64), 1.5))


# Dense, as an operator


def test_dense_self_tuning_uses_the_distance_to_the_middle_neighbour():
    X = cloud(40, 3)
    built = dense_affinity(X, SELF_TUNING, 7)  # 7 // 2 = 3rd neighbour
    s = np.sort(cdist(X, X), axis=1)[:, 3]
    assert_allclose(built.epsilon[built.vertex], s, rtol=1e-12)
    assert_allclose(of_points(built), kernel_matrix(X, s), rtol=1e-11)


def test_a_dense_kernel_of_many_points_is_not_stored():
    X = cloud(5000, 2)
    assert isinstance(dense_affinity(X, 0.1, 6).operator, Kernel)  # in a fifth: test_kernel.py
    assert isinstance(dense_affinity(X[:100], 0.1, 6).operator, Dense)


def test_stored_and_unstored_kernels_are_the_same_operator(limits):
    X = cloud(40, 3)
    stored = of_points(dense_affinity(X, SELF_TUNING, 6))
    limits(stored_points=10)
    assert_allclose(of_points(dense_affinity(X, SELF_TUNING, 6)), stored, rtol=1e-12)


# Radius


@pytest.mark.parametrize("cut", [1.0, 3.0, 5.0])
def test_radius_keeps_the_dense_entries_within_the_cut(cut):
    X, epsilon = cloud(80, 3), 0.4
    built = radius_affinity(X, epsilon, cut=cut)
    D, K = cdist(X, X), gaussian_affinity(X, epsilon)
    inside = cut * np.sqrt(epsilon / 2) >= D
    assert 80 < inside.sum() < 80**2
    assert_allclose(of_points(built), np.where(inside, K, 0), rtol=1e-12)
    assert isinstance(built.operator, Sparse)
    assert (built.operator.matrix != built.operator.matrix.T).nnz == 0
    assert built.diagnostics["mean_neighbors"] == pytest.approx(inside.sum() / 80 - 1)


# Nearest neighbours


def neighbour_graph(X, k, s):
    """The symmetrised graph of the k nearest neighbours, from its definition."""
    D = cdist(X, X)
    near = np.argsort(D, axis=1)[:, : k + 1]
    linked = np.zeros_like(D, dtype=bool)
    np.put_along_axis(linked, near, True, axis=1)
    W = kernel_matrix(X, s)
    return np.where(linked, W, 0), np.where(linked | linked.T, W, 0)


@pytest.mark.parametrize("epsilon", [0.7, SELF_TUNING])
@pytest.mark.parametrize(("k", "d"), [(1, 2), (2, 25), (5, 2), (8, 25)])
def test_knn_is_its_definition(k, d, epsilon):
    X = cloud(60, d) * (1 if d == 2 else 0.3)
    built = knn_affinity(X, epsilon, k)
    s = np.full(60, np.sqrt(0.7))
    if epsilon == SELF_TUNING:
        s = np.sort(cdist(X, X), axis=1)[:, max(1, k // 2)]
        assert_allclose(built.epsilon[built.vertex], s, rtol=1e-12)
    own, both = neighbour_graph(X, k, s)
    assert_allclose(of_points(built), both, rtol=1e-10)
    assert_allclose(of_points(built, built.directed_step), own, rtol=1e-10)


@pytest.mark.parametrize("epsilon", [0.7, SELF_TUNING])
def test_knn_graph_is_symmetric_to_the_last_bit_with_unit_diagonal(epsilon):
    graph = knn_affinity(cloud(200, 5) + 1e4, epsilon, 10).operator.matrix
    assert (graph != graph.T).nnz == 0
    assert (graph.diagonal() == 1).all()


def test_a_new_point_takes_its_scale_from_its_neighbours():
    X, new = cloud(40, 3), cloud(3, 3, seed=5)
    built = knn_affinity(X, SELF_TUNING, 6)
    D = cdist(new, X)
    # The k + 1 nearest, scale the (k//2 + 1)-th: what a training point, 0 from itself, has.
    s_new = np.sort(D, axis=1)[:, 3]
    W = np.exp(-(D**2) / np.outer(s_new, built.epsilon[built.vertex]))
    inside = np.sort(D, axis=1)[:, [6]] >= D
    assert_allclose(rows_of_points(built, new), np.where(inside, W, 0), rtol=1e-10)


# Kernels other than the Gaussian


@pytest.mark.parametrize("epsilon", [0.3, "median"])
def test_any_kernel_is_a_function_of_squared_distances_over_epsilon(epsilon):
    X = cloud(30, 3)
    assert_allclose(
        kernel_affinity(X, lambda s: np.exp(-s), epsilon), gaussian_affinity(X, epsilon), rtol=1e-7
    )
    eps = rule_epsilon(X, epsilon)
    K = kernel_affinity(X, lambda s: 1 / np.cosh(np.sqrt(s)), epsilon)
    assert_allclose(K, 1 / np.cosh(cdist(X, X) / np.sqrt(eps)), rtol=1e-12)
    assert (K == K.T).all()
    of_sparse = kernel_affinity(sparse.csr_matrix(X), lambda s: np.exp(-s), eps)
    assert_allclose(of_sparse, np.exp(-(cdist(X, X) ** 2) / eps), rtol=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "cosh", "bump"])
def test_on_an_even_circle_its_eigenvalues_are_a_fourier_transform(name):
    """And (1 - λ_m)/(1 - λ_1) tends to m², whatever h: the Laplacian."""
    h = {
        "gaussian": lambda s: np.exp(-s),
        "cosh": lambda s: 1 / np.cosh(3 * np.sqrt(s)),
        "bump": lambda s: np.maximum(1 - s, 0) ** 3,
    }[name]
    n = 1000
    K = kernel_affinity(even_circle(n), h, 1e-2)
    A = symmetric_normalize(K)
    row = K[0]
    want = np.fft.fft(row).real / row.sum()
    found = np.linalg.eigvalsh(A)
    assert_allclose(np.sort(want), found, atol=1e-12)
    moved = 1 - np.sort(want)[::-1][[1, 3, 5]]
    assert_allclose(moved / moved[0], [1, 4, 9], rtol=0.02)


def test_a_kernel_that_is_none_is_told_what_to_do():
    X = cloud(5, 2)
    with pytest.raises(TypeError, match=r"h='gaussian' is no function; pass one"):
        kernel_affinity(X, "gaussian", 1.0)
    for h in (lambda s: -s, lambda s: s[0], lambda s: s / 0.0 + np.inf):
        with (
            np.errstate(all="ignore"),
            pytest.raises(ValueError, match="pass a function of arr"),
        ):
            kernel_affinity(X, h, 1.0)
