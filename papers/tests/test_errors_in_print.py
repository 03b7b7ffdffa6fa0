"""The page errors-in-print: in each test the printed form fails and the correct one holds."""

import ast
import math
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.linalg import sqrtm
from scipy.optimize import brentq
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.special import gammainc, log_ndtr, ndtr
from sklearn.neighbors import NearestNeighbors

import heatsketch as hs
from papers.sketching.bounds import entropy_integral

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


def psi_1(deviation):
    """The least K with E e^(|X|/K) <= 2 of a normal X, where 2 e^(s²/2K²) Φ(s/K) = 2."""
    return brentq(
        lambda K: deviation**2 / (2 * K**2) + log_ndtr(deviation / K), deviation, 2 * deviation
    )


@pytest.mark.parametrize("N", [4, 64, 1024])
def test_corollary_2_10_is_about_the_mean(N):
    """Of normal X_i, in (18) and in (19) at t = K, with c = 1/2."""
    K = psi_1(1.0)
    assert_allclose(psi_1(1 / math.sqrt(N)), K / math.sqrt(N))
    assert_allclose(psi_1(math.sqrt(N)), N * K / math.sqrt(N))  # no C is large enough
    bound = 2 * math.exp(-N / 2)
    assert 2 * ndtr(-K * math.sqrt(N)) <= bound < 2 * ndtr(-K / math.sqrt(N))


def test_dudleys_inequality_is_about_differences():
    """X_0 = cZ and X_1 = cZ + W, normal: the distance is that of W, and |X_0| grows with c."""
    d = psi_1(1.0)
    right = 8 * d * math.log(2 + 1)  # two balls for every radius below d
    mean = math.sqrt(2 / math.pi)  # E |Z|
    assert mean <= right  # E |X_1 - X_0|
    assert 100 * mean > right  # E |X_0| at c = 100


def test_the_sub_gaussian_norm_is_not_the_standard_deviation():
    def moment(K, end):
        return quad(lambda x: math.exp(x**2 / K**2 - x**2 / 2), -end, end)[0] / math.sqrt(
            2 * math.pi
        )

    assert_allclose(moment(math.sqrt(8 / 3), 40), 2)
    assert moment(1, 2) > 2  # and without bound as the end goes to infinity


def test_both_sides_of_theorem_2_5_scale_as_the_covariance():
    rng, r = np.random.default_rng(0), 9.0
    X, g = rng.random((12, 2)), rng.standard_normal((12, 5))
    C = np.exp(-cdist(X, X, "sqeuclidean"))

    def sides(C):
        root, diagonal = sqrtm(C).real, np.diag(C)
        D2 = np.maximum(diagonal[:, None] + diagonal - 2 * C, 0)
        Y = root @ g / math.sqrt(5)
        D = np.sqrt(D2)
        return np.abs(cdist(Y, Y, "sqeuclidean") - D2).max(), D.max() * entropy_integral(D)

    assert_allclose(sides(r * C), r * np.array(sides(C)), rtol=1e-6)


def test_the_metric_of_l2_in_print_has_no_triangle_inequality():
    a, b, c = np.zeros(3), np.ones(3), 2 * np.ones(3)
    assert np.sum((a - c) ** 2) > np.sum((a - b) ** 2) + np.sum((b - c) ** 2)
    assert_allclose(math.dist(a, c), math.dist(a, b) + math.dist(b, c))


def test_eigenfunctions_times_their_eigenvalues_are_not_normalised():
    """On the circle: 1/√2π, cos(jx)/√π and sin(jx)/√π, with λ = 0 and j²."""
    x, t = 2 * np.pi * np.arange(100) / 100, 0.3
    j = np.array([1, 1, 2, 2])
    waves = np.cos(np.outer(j, x) - np.array([0, np.pi / 2, 0, np.pi / 2])[:, None])
    phi = np.vstack([np.full(100, 1 / math.sqrt(2 * np.pi)), waves / math.sqrt(np.pi)])
    weight = 2 * np.pi / 100
    assert_allclose(weight * phi @ phi.T, np.eye(5), atol=1e-12)
    printed = np.exp(-t * np.array([0, 1, 1, 4, 4]))[:, None] * phi
    gram = weight * printed @ printed.T
    assert_allclose(gram, np.diag(np.exp(-2 * t * np.array([0, 1, 1, 4, 4]))), atol=1e-12)
    assert gram[4, 4] < 0.1


def test_the_eigenfunctions_of_the_torus_are_orthogonal_and_not_normalised():
    r, turns = 3.5, 2 * np.pi * np.arange(40) / 40
    x, y = (part.ravel() for part in np.meshgrid(turns, r * turns))
    waves = [np.ones_like(x), np.cos(x), np.cos(x) * np.cos(y / r), np.sin(x) * np.cos(2 * y / r)]
    gram = (2 * np.pi / 40) ** 2 * r * np.array(waves) @ np.array(waves).T
    norms = np.pi**2 * r * np.array([4, 2, 1, 1])
    assert_allclose(gram, np.diag(norms), atol=1e-10)
    assert norms.min() > 34.5


def test_the_sums_in_the_proof_of_proposition_3_4_are_over_the_columns():
    """With N columns in place of the k of Y, the sum over j to N is too large."""
    rng, N, k = np.random.default_rng(0), 20, 5
    A, B = (part + part.T for part in rng.standard_normal((2, N, N)))
    G = rng.standard_normal((N, N))
    squares = np.square((A - B) @ G).sum(axis=0) / k
    Y, Z = A @ G[:, :k] / math.sqrt(k), B @ G[:, :k] / math.sqrt(k)
    assert_allclose(squares[:k].sum(), np.sum((Y - Z) ** 2))
    assert squares.sum() > 2 * np.sum((Y - Z) ** 2)


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


def test_the_objective_of_the_eigenmap_is_twice_the_trace_and_of_rows():
    rng = np.random.default_rng(0)
    K = rng.random((8, 8))
    K, Y = K + K.T, rng.standard_normal((8, 2))
    L = np.diag(K.sum(axis=1)) - K
    total = np.sum(K * cdist(Y, Y) ** 2)
    assert_allclose(total, 2 * np.trace(Y.T @ L @ Y))
    of_columns = np.sum(K[:2, :2] * cdist(Y.T, Y.T) ** 2)
    assert abs(of_columns - total) > 0.1 * total


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


def test_the_total_scatter_as_printed_is_a_difference():
    rng, label = np.random.default_rng(0), np.repeat([0, 1, 2], [4, 7, 9])
    X = rng.standard_normal((20, 3)) + 4 * rng.standard_normal((3, 3))[label]
    own = np.array([X[label == i].mean(axis=0) for i in range(3)])[label]
    m = X.mean(axis=0)
    within, between = (X - own).T @ (X - own), (own - m).T @ (own - m)
    assert_allclose((X - own + own - m).T @ (X - m), within + between)
    assert_allclose((X - own + own - m).T @ (X - own - own + m), within - between)
    assert np.trace(between) > np.trace(within)


def test_the_embedding_of_lle_is_in_columns():
    """Columns satisfy (4), and have one entry a point."""
    X = np.random.default_rng(0).standard_normal((60, 3))
    Y = hs.classical.LocallyLinearEmbedding(2, n_neighbors=8).fit_transform(X)
    assert_allclose(Y.sum(axis=0), 0, atol=1e-6)
    assert_allclose(Y.T @ Y / 60, np.eye(2), atol=1e-6)
    assert Y.shape == (60, 2)
    assert np.abs(Y[:2] @ Y[:2].T / 60 - np.eye(2)).max() > 0.5  # of the first d rows


def test_only_the_probability_of_the_point_itself_is_set_to_zero():
    """(13) has k != i in its denominator: with p_{i|i} = 0 it sums to 1, by (13) to more."""
    squares = squareform(pdist(np.random.default_rng(0).standard_normal((9, 2)), "sqeuclidean"))
    others = ~np.eye(9, dtype=bool)
    P = np.exp(-squares / 2) / np.sum(np.exp(-squares / 2) * others, axis=1)[:, None]
    assert_allclose(np.where(others, P, 0).sum(axis=1), 1)
    assert (P.sum(axis=1) > 1.1).all()


def test_the_last_line_of_proposition_1_is_of_the_square():
    K = hs.gaussian_affinity(np.random.default_rng(0).standard_normal((8, 2)), 1.0)
    pi, t = K.sum(axis=1) / K.sum(), 3
    lam, V = np.linalg.eigh(K / (K.sum() * np.sqrt(np.outer(pi, pi))))
    R = V / np.sqrt(pi)[:, None]
    rows = np.linalg.matrix_power(K / K.sum(axis=1)[:, None], t)
    D = cdist(rows / np.sqrt(pi), rows / np.sqrt(pi))  # (23)
    last_line = np.sum(lam ** (2 * t) * np.square(R[:, None] - R), axis=2)
    assert_allclose(last_line, D**2, atol=1e-12)
    assert np.abs(last_line - D).max() > 0.1 * D.max()


def test_the_walk_is_the_kernel_divided_by_its_sums():
    X = np.random.default_rng(0).standard_normal((9, 1))
    K, f = hs.gaussian_affinity(X, 1.0), np.sin(X[:, 0])
    q = K.sum(axis=1)
    walk = (K / q[:, None]) @ f
    assert_allclose(K @ f / q, walk)
    assert np.abs(walk / q - walk).max() > 0.5 * np.abs(walk).max()


def test_the_density_under_the_integral_is_that_of_the_other_point():
    """In one dimension, f = sin and ρ normal: (47) needs the ratio with ρ(x')."""
    x, epsilon = 0.7, 1e-3
    others = x + np.linspace(-0.5, 0.5, 20001)
    kernel = np.exp(-((others - x) ** 2) / epsilon)

    def generator(rho):
        return (
            np.sum(kernel * np.sin(others) * rho) / np.sum(kernel * rho) - math.sin(x)
        ) / epsilon

    limit = (-math.sin(x) - 2 * x * math.cos(x)) / 4  # ρ'/ρ = -x
    assert_allclose(generator(np.exp(-(others**2) / 2)), limit, rtol=0.01)
    assert_allclose(generator(math.exp(-(x**2) / 2)), -math.sin(x) / 4, rtol=0.01)


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
