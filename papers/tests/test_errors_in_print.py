"""The page errors-in-print: in each test the printed form fails and the correct one holds."""

import ast
import math
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import cdist
from scipy.special import gammainc
from sklearn.neighbors import NearestNeighbors

import heatsketch as hs

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "papers" / "errors-in-print.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| text")
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_each_row_names_a_test_or_says_that_there_is_none(row):
    *_, printed, correct, test = row
    assert printed
    assert correct
    for name in re.findall(r"`([^`]+)`", test):
        path, _, function = name.partition("::")
        file = ROOT / path if path.startswith("papers/") else ROOT / "tests" / path
        tree = ast.parse(file.read_text(encoding="utf-8"))
        assert function in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    assert "`" in test or test.startswith("none: ")


def symmetric(n=30, seed=0):
    """A normalised kernel of points, its eigenvalues and its eigenvectors."""
    X = np.random.default_rng(seed).standard_normal((n, 2))
    A = hs.symmetric_normalize(hs.gaussian_affinity(X, 1.0))
    return A, *np.linalg.eigh(A)


# Sketching the heat kernel


@pytest.mark.parametrize("n", [10, 1000])
def test_row_sums_of_algorithm_2_as_printed_are_unbounded(n):
    """Of n equal points d_i is 1 and n in turn, where √n is right."""
    K = np.ones((n, n))
    d = [np.ones(n)]
    for _ in range(4):
        d.append(K @ (1 / d[-1]))
    for first, right in ((1, False), (2, False), (1, True)):
        combined = np.sqrt(d[first] * d[first + (1 if right else 2)])
        sums = (K / np.outer(combined, combined)).sum(axis=1)
        if right:
            assert_allclose(sums, 1)
        else:
            assert_allclose(np.abs(np.log(sums)), math.log(n))


def test_the_truncated_distance_has_squares_of_the_powers():
    A, lam, V = symmetric()
    t = 3
    D2 = hs.diffusion_distance(A, time=t) ** 2
    i, j = np.triu_indices(len(A), 1)
    assert_allclose(((V[i] - V[j]) ** 2) @ lam ** (2 * t), D2, atol=1e-12)
    assert np.abs(((V[i] - V[j]) ** 2) @ lam**t - D2).max() > 0.1 * D2.max()


def test_distances_at_a_time_are_of_rows_of_the_power():
    A, lam, V = symmetric()
    want = ((V[0] - V[1]) ** 2) @ lam**6
    rows = np.linalg.matrix_power(A, 3)
    assert_allclose(np.sum((rows[0] - rows[1]) ** 2), want, rtol=1e-9)
    assert np.sum((A[0] - A[1]) ** 2) > 2 * want


def test_normalising_sums_are_over_all_points():
    """The sum from j = i leaves rows of A that do not sum to 1."""
    K = hs.gaussian_affinity(np.random.default_rng(0).standard_normal((9, 2)), 1.0)
    q = K.sum(axis=1)
    K = K / np.outer(q, q)
    v = K.sum(axis=1)
    assert_allclose((K / v[:, None]).sum(axis=1), 1)
    printed = np.triu(K).sum(axis=1)
    assert ((K / printed[:, None]).sum(axis=1)[1:] > 1.01).all()


def test_kernels_are_of_the_point_of_the_row():
    X = np.random.default_rng(0).standard_normal((5, 2))
    assert_allclose(hs.gaussian_affinity(X, 1.0), np.exp(-(cdist(X, X) ** 2)))
    printed = np.tile(np.exp(-((X - X[0]) ** 2).sum(axis=1)), (5, 1))
    assert not np.allclose(printed, printed.T)


def test_the_argument_of_h_is_a_squared_distance_over_epsilon():
    """With h(x) = e^{-x²/ε} as printed, h(|x - y|/ε) has ε³ where Algorithm 1 has ε."""
    epsilon, X = 0.3, np.array([[0.0], [0.5]])
    algorithm = np.exp(-0.25 / epsilon)
    assert_allclose(hs.kernel_affinity(X, lambda s: np.exp(-s), epsilon)[0, 1], algorithm)
    printed = np.exp(-((0.5 / epsilon) ** 2) / epsilon)
    assert_allclose(printed, np.exp(-0.25 / epsilon**3))
    assert printed < 0.01 * algorithm


def test_the_first_case_of_corollary_2_10_needs_another_inequality():
    """(23) needs K' >= K/(cN); the K' of (21) is at least cK/N, and (23) fails at cN < log 2."""
    c, N, K = 0.5, 1, 1.0
    of_21 = K / math.sqrt(c * math.log(2) * N)
    assert of_21 >= c * K / N
    t = 2 * K  # t >= K, the first case
    assert math.exp(-c * N * t / K) > math.exp(-t / of_21)
    for N in (2, 100):  # cN >= log 2
        of_21 = K / math.sqrt(c * math.log(2) * N)
        assert of_21 >= K / (c * N)
        assert math.exp(-c * N * t / K) <= math.exp(-t / of_21)


# Linear and nonlinear dimensionality reduction


def t_sne(Y, P):
    """The cost (18) and its gradient (19)."""
    off = Y[:, None] - Y
    w = 1 / (1 + np.square(off).sum(axis=2))
    np.fill_diagonal(w, 0)
    Q = w / w.sum()
    others = ~np.eye(len(Y), dtype=bool)
    cost = np.sum(P[others] * np.log(P[others] / Q[others]))
    return cost, 4 * np.einsum("ij,ij,ijk->ik", P - Q, w, off)


def test_a_step_with_the_printed_sign_climbs():
    rng = np.random.default_rng(0)
    P = rng.random((12, 12))
    P = np.triu(P, 1) + np.triu(P, 1).T
    P /= P.sum()
    Y, eta = rng.standard_normal((12, 2)), 1e-3
    cost, slope = t_sne(Y, P)
    assert t_sne(Y - eta * slope, P)[0] < cost < t_sne(Y + eta * slope, P)[0]


def test_the_listing_of_isomap_counts_the_point_itself_and_edges_twice():
    X = np.array([[0.0], [1.0], [2.1], [3.3], [7.0]])
    d = cdist(X, X)
    listed = np.argsort(d, axis=1)[:, :2]  # sort, then the first k = 2
    assert (listed[:, 0] == np.arange(5)).all()
    near = NearestNeighbors(n_neighbors=1).fit(X).kneighbors(return_distance=False)
    G = np.zeros((5, 5))
    G[np.arange(5), near[:, 0]] = d[np.arange(5), near[:, 0]]
    printed = G + np.abs(G - G.T)
    assert_allclose(printed[4, 3], 2 * 3.7)  # 3 is nearest to 4, and not 4 to 3
    assert_allclose(np.maximum(G, G.T)[4, 3], 3.7)
    assert dijkstra(printed)[4, 0] > dijkstra(printed)[0, 4]


def test_the_objective_of_the_eigenmap_is_twice_the_trace():
    rng = np.random.default_rng(0)
    K = rng.random((8, 8))
    K, Y = K + K.T, rng.standard_normal((8, 2))
    L = np.diag(K.sum(axis=1)) - K
    total = np.sum(K * cdist(Y, Y) ** 2)
    assert_allclose(total, 2 * np.trace(Y.T @ L @ Y))


def test_the_mean_kernel_has_the_volume_in_its_denominator():
    length, epsilon = 3.0, 1e-3
    x = length * (np.arange(3000) + 0.5) / 3000
    S = np.mean(np.exp(-((x[:, None] - x) ** 2) / epsilon))
    printed = math.sqrt(math.pi * epsilon) * length
    assert_allclose(S, printed / length**2, rtol=0.01)
    assert printed > 8 * S


def test_the_gradient_of_the_entropy_has_minus_one():
    p, step = np.array([0.2, 0.3, 0.5]), 1e-6

    def lagrangian(p):
        return -np.sum(p * np.log(p)) - 0.7 * (p.sum() - 1)

    e = step * np.eye(3)
    slope = [(lagrangian(p + row) - lagrangian(p - row)) / (2 * step) for row in e]
    assert_allclose(slope, -1 - np.log(p) - 0.7, rtol=1e-6)
    assert np.abs(slope - (1 - np.log(p) - 0.7)).min() > 1.9


def test_scatters_are_of_centred_columns():
    X = np.random.default_rng(0).standard_normal((7, 3)) + 5
    S = sum(np.outer(x - X.mean(axis=0), x - X.mean(axis=0)) for x in X)
    centred = X - X.mean(axis=0)
    assert_allclose(centred.T @ centred, S)
    assert (X @ X.T).shape == (7, 7) != S.shape


def test_eigenvectors_of_the_walk_are_inverted():
    K = hs.gaussian_affinity(np.random.default_rng(0).standard_normal((6, 2)), 1.0)
    root = np.sqrt(K.sum(axis=1))
    lam, V = np.linalg.eigh(K / np.outer(root, root))
    P, R = K / K.sum(axis=1)[:, None], V / root[:, None]
    assert_allclose(np.linalg.inv(R) @ P @ R, np.diag(lam), atol=1e-12)
    values, U = np.linalg.eig(R.astype(complex))
    inverse_root = (U / np.sqrt(values)) @ np.linalg.inv(U)  # R^-1/2
    assert np.abs(inverse_root @ P @ R - np.diag(lam)).max() > 0.1


# Diffusion representation


def test_the_distance_in_print_is_its_square():
    kernel = hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0)
    r = np.arange(-30, 30, 0.01)[:, None]
    p, q = kernel.transition_density([[0.0], [1.5]], r)
    printed = kernel.squared_distance([[0.0]], [[1.5]])[0, 0]
    assert_allclose(0.01 * np.sum((p - q) ** 2), printed, rtol=1e-9)
    assert math.sqrt(printed) > 2 * printed


def test_the_recursion_of_the_basis_has_a_root_of_the_order():
    x, y = 0.7, 0.9
    right, printed, f, g = 0.0, 0.0, [1.0, 1.0], [1.0, 1.0]
    for i in range(1, 40):
        right, printed = right + f[0] * f[1], printed + g[0] * g[1]
        f = [f[0] * x / math.sqrt(i), f[1] * y / math.sqrt(i)]
        g = [g[0] * x / math.sqrt(i + 1), g[1] * y / math.sqrt(i + 1)]
    assert_allclose(right, math.exp(x * y))
    assert printed < 0.9 * math.exp(x * y)


def test_densities_may_exceed_one():
    kernel = hs.MixtureKernel([1.0], [[0.0]], [1e-4], 1e-4)
    assert kernel.stationary([[0.0]])[0] > 1  # h of the only component
    assert_allclose(kernel.responsibilities([[0.0]]), 1)


def test_what_the_first_l_terms_lack_is_above_the_bound():
    kernel, x = hs.MixtureKernel([1.0], [[0.0]], [1.0], 1.0), np.array([[-1.0], [1.0]])
    l_terms = hs.TaylorMap(2).fit(kernel, points=x)  # orders 0, 1, 2: the first three
    missing = kernel.squared_norm(x) - np.square(l_terms.transform(x)).sum(axis=1)
    s = l_terms.reach_[0]
    norm = kernel.squared_norm(x)[0]
    assert_allclose(missing, norm * gammainc(3, s), rtol=1e-6)
    assert (missing > norm * gammainc(4, s)).all()  # (5.12) with l = 3


def test_the_centre_of_the_ball_problem_has_the_other_sign():
    epsilon, sigma, theta, x = 0.7, 0.4, 1.3, 0.6
    D = 1 / (1 / epsilon + 1 / (epsilon + 4 * sigma))
    c = D * (x / epsilon + (2 * theta - x) / (epsilon + 4 * sigma))
    A = (D / 2) ** 0.5 * (1 / epsilon - 1 / (epsilon + 4 * sigma))
    b = (2 * D) ** 0.5 * theta / (epsilon + 4 * sigma)
    assert_allclose(A * x + b, c / math.sqrt(2 * D))
    assert abs(abs(A * x - b) - abs(c) / math.sqrt(2 * D)) > 0.1


def test_the_length_of_the_representation_is_counted_with_other_exponents():
    m, l_max = 2, 3
    kernel = hs.MixtureKernel([1.0], [[0.0] * m], [1.0], 1.0)
    of_orders = [hs.TaylorMap(n).fit(kernel).n_kronecker for n in (l_max - 1, l_max)]
    assert of_orders == [1 + 2 + 4, 1 + 2 + 4 + 8]
    printed = sum(m ** (i - 1) for i in range(1, l_max + 1)) + 1
    assert printed not in of_orders
