from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import heatsketch as hs
from heatsketch.markov.normalization import bistochastic_scaling, markov_scaling
from problems.estimators import operator_of, walk_of

NORMALIZE = {
    "symmetric": hs.symmetric_normalize,
    "markov": hs.markov_normalize,
    "bistochastic": hs.bistochastic_normalize,
}
normalizers = pytest.mark.parametrize("normalize", NORMALIZE.values(), ids=NORMALIZE.keys())
ALPHAS = [0.0, 0.3, 0.5, 1.0]


def cloud(n=50, d=2, seed=0):
    """Points of very uneven density."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * np.exp(rng.normal(size=(n, 1)))


def affinity(n=50, epsilon=0.5, seed=0):
    return hs.gaussian_affinity(cloud(n, seed=seed), epsilon)


# Symmetric and Markov


def test_symmetric_is_algorithm_1():
    K = affinity()
    A = hs.symmetric_normalize(K)
    assert_allclose(A, operator_of(K, "symmetric")[0], rtol=1e-13)
    assert (A == A.T).all()


@pytest.mark.parametrize("a", [0.0, 0.25, 0.9, 1.0])
@pytest.mark.parametrize("normalize", [hs.symmetric_normalize, hs.bistochastic_normalize])
def test_two_points_have_their_closed_form(normalize, a):
    A = normalize(np.array([[1.0, a], [a, 1.0]]))
    assert_allclose(np.linalg.eigvalsh(A), [(1 - a) / (1 + a), 1], atol=1e-8)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_markov_is_its_definition(alpha):
    P = hs.markov_normalize(affinity(), alpha)
    assert_allclose(P, walk_of(affinity(), alpha)[0], rtol=1e-12)
    assert_allclose(P.sum(axis=1), 1, rtol=1e-13)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_dividing_the_columns_alone_gives_the_same_markov_matrix(alpha):
    K = affinity()
    one_sided = K / K.sum(axis=1) ** alpha
    one_sided /= one_sided.sum(axis=1, keepdims=True)
    assert_allclose(hs.markov_normalize(K, alpha), one_sided, rtol=1e-12)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_symmetric_operator_is_similar_to_the_markov_matrix(alpha):
    K = affinity()
    scaling = markov_scaling(hs.Dense(K), alpha)
    A = scaling.normalized(hs.Dense(K)) @ np.eye(50)
    root = np.sqrt(scaling.measure)
    assert_allclose(A * root / root[:, None], walk_of(K, alpha)[0], rtol=1e-12)
    assert_allclose(scaling.measure @ walk_of(K, alpha)[0], scaling.measure, rtol=1e-12)
    assert scaling.measure.sum() == pytest.approx(1)


# Bistochastic


@pytest.mark.parametrize("tol", [1e-4, 1e-8, 1e-12])
def test_the_row_sums_are_as_good_as_asked_for(tol):
    K = affinity()
    scaling = bistochastic_scaling(hs.Dense(K), tol)
    error = np.abs(scaling.s * (K @ scaling.s) - 1).max()
    assert error <= tol
    assert scaling.diagnostics["scaling_residual"] == pytest.approx(error, abs=1e-14)
    assert_array_equal(scaling.measure, np.full(50, 1 / 50))
    B = hs.bistochastic_normalize(K, tol)
    assert np.abs(B.sum(axis=0) - 1).max() <= 1.01 * tol + 1e-14
    assert (B == B.T).all()


def test_bistochastic_is_where_the_fixed_point_of_the_paper_leads():
    K = hs.gaussian_affinity(cloud(6), 2.0)
    d = np.ones(6)
    for _ in range(20_000):
        d, previous = K @ (1 / d), d
    d = np.sqrt(d * previous)  # two consecutive iterates
    want = K / np.outer(d, d)
    assert_allclose(want.sum(axis=1), 1, atol=1e-12)
    assert_allclose(hs.bistochastic_normalize(K, tol=1e-13), want, rtol=1e-11)


def test_bistochastic_does_not_see_a_scaling_of_the_affinity():
    K = affinity()
    D = 10.0 ** np.random.default_rng(0).uniform(-3, 3, 50)
    B = hs.bistochastic_normalize(K, tol=1e-13)
    DKD = D[:, None] * K * D
    assert_allclose(hs.bistochastic_normalize(DKD, tol=1e-13), B, rtol=1e-9, atol=1e-14)
    # The symmetric normalisation does see it.
    assert np.abs(hs.symmetric_normalize(DKD) - hs.symmetric_normalize(K)).max() > 0.01


def test_copies_of_all_points_share_the_weight():
    # K ⊗ 11ᵀ is the kernel of r copies; then B' = B ⊗ 11ᵀ / r.
    K = affinity(20)
    B = hs.bistochastic_normalize(K, tol=1e-13)
    copies = hs.bistochastic_normalize(np.kron(K, np.ones((3, 3))), tol=1e-13)
    assert_allclose(copies, np.kron(B, np.ones((3, 3)) / 3), rtol=1e-10, atol=1e-15)


@given(st.integers(0, 10**6), st.floats(1e-3, 1e3))
def test_with_a_unit_diagonal_the_scales_lie_between_one_over_n_and_one(seed, epsilon):
    s = bistochastic_scaling(hs.Dense(affinity(30, epsilon, seed)), 1e-10).s
    assert s.min() >= 1 / 30 - 1e-10
    assert s.max() <= 1 + 1e-10


@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 0.5, 10.0, 1e4])
def test_the_error_falls_to_a_third_with_each_product(epsilon):
    # s <- s r^-ω contracts an eigenvector of eigenvalue λ by |1 - ω(1 + λ)|, at most 1/3 for
    # ω = 2/3 and 0 <= λ <= 1: a factor 1e-6 takes log 1e6 / log 3 = 12.6 products. ω = 1/2 would
    # take 20, and ω = 1 for ever.
    K = hs.Dense(affinity(100, epsilon))
    few, many = (
        bistochastic_scaling(K, tol).diagnostics["scaling_iterations"] for tol in (1e-4, 1e-10)
    )
    assert many - few <= 14
    assert many <= 30


def test_slow_diffusion_does_not_slow_the_scaling_down():
    # Two groups linked by 1e-10: the printed iteration contracts by λ₁² = 1 - 4e-10 only.
    K = np.maximum(np.kron(np.eye(2), affinity(20)), 1e-10)
    scaling = bistochastic_scaling(hs.Dense(K), 1e-10)
    assert scaling.diagnostics["scaling_iterations"] <= 30


def test_too_few_iterations_are_an_error_far_off_and_a_warning_close_by():
    K = affinity()
    with pytest.raises(ValueError, match=r"row sums off by .* worst at rows .*; raise max_iter"):
        hs.bistochastic_normalize(K, max_iter=1)
    with pytest.warns(hs.ConvergenceWarning, match="not tol=1.0e-13, in 14 iterations"):
        B = hs.bistochastic_normalize(K, tol=1e-13, max_iter=14)
    assert 1e-13 < np.abs(B.sum(axis=1) - 1).max() < 1e-3


# A zero diagonal


def test_the_rows_named_are_those_of_the_stray_edge():
    # Two pairs, joined by an edge (1, 2) that no perfect matching uses; the triangle is innocent.
    K = np.zeros((7, 7))
    i, j = np.array([(0, 1), (2, 3), (1, 2), (4, 5), (5, 6), (6, 4)]).T
    K[i, j] = K[j, i] = 1.0
    with pytest.raises(ValueError, match="at rows 1, 2; give"):
        hs.bistochastic_normalize(K)


def has_total_support(K):
    """Every positive entry lies on a positive diagonal: by trying all n! of them."""
    columns = np.array(list(permutations(range(len(K)))))
    diagonals = columns[(K[np.arange(len(K)), columns] > 0).all(axis=1)]
    covered = np.zeros(K.shape, dtype=bool)
    for diagonal in diagonals:
        covered[np.arange(len(K)), diagonal] = True
    return bool((covered == (K > 0)).all())


@given(st.integers(2, 6), st.integers(0, 10**6), st.sampled_from([np.asarray, sparse.csr_matrix]))
def test_zero_diagonals_are_refused_exactly_without_total_support(n, seed, form):
    rng = np.random.default_rng(seed)
    K = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.55), 1)
    K += K.T
    K[0, 0] = rng.integers(0, 2)  # sometimes one self-loop
    if not K.any(axis=1).all():
        with pytest.raises(ValueError, match="no affinity to anything"):
            hs.bistochastic_normalize(form(K))
    elif has_total_support(K):
        B = hs.bistochastic_normalize(form(K), max_iter=20_000)
        assert_allclose(np.asarray(B.sum(axis=1)).ravel(), 1, atol=1e-8)
    else:
        with pytest.raises(ValueError, match=r"no total support.*K_ii > 0"):
            hs.bistochastic_normalize(form(K))


# Forms and refusals


@normalizers
@pytest.mark.parametrize(("dtype", "rounding"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_sparse_gives_the_matrix_of_dense_in_its_precision(normalize, dtype, rounding):
    K = affinity()
    K[K < 0.1] = 0
    thin, want = sparse.csr_matrix(K.astype(dtype)), normalize(K)
    got, dense = normalize(thin), normalize(K.astype(dtype))
    assert sparse.issparse(got)
    assert got.nnz == thin.nnz
    assert got.dtype == dense.dtype == dtype
    assert_allclose(got.toarray(), want, rtol=rounding)
    assert_allclose(dense, want, rtol=rounding)
    assert_array_equal(thin.toarray(), K.astype(dtype))


@normalizers
def test_whole_numbers_are_weights(normalize):
    K = np.array([[2, 1, 0], [1, 1, 3], [0, 3, 5]])
    assert_array_equal(normalize(K), normalize(K.astype(float)))


@pytest.mark.parametrize("normalize", [hs.symmetric_normalize, hs.bistochastic_normalize])
def test_an_operator_stays_an_operator(normalize):
    X = cloud()
    got = normalize(hs.Kernel(X, 0.5))
    assert isinstance(got, hs.Scaled)
    assert_allclose(
        got @ np.eye(50), normalize(hs.gaussian_affinity(X, 0.5)), rtol=1e-7, atol=1e-15
    )
    u = got.leading / np.linalg.norm(got.leading)
    assert_allclose(got @ u, u, atol=1e-8)


def test_a_markov_matrix_is_no_symmetric_operator():
    with pytest.raises(TypeError, match=r"use Diffusion\.from_affinity"):
        hs.markov_normalize(hs.Dense(np.ones((2, 2))))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"tol": 0}, "tol=0 is"),
        ({"tol": 0.01}, r"tol=0\.01 is out of range; pass a number > 0 and <= 0\.001"),
        ({"tol": np.nan}, "tol=nan"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"weights": "q"}, "weights='q' is unknown"),
        ({"alpha": np.nan}, "alpha=nan"),
    ],
    ids=["exact", "coarse", "nan", "no iterations", "weights", "alpha"],
)
def test_bad_options_are_refused(arguments, match):
    normalize = hs.markov_normalize if "alpha" in arguments else hs.bistochastic_normalize
    with pytest.raises(ValueError, match=match):
        normalize(affinity(), **arguments)


# Weights


def wide_cloud(n=80, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 2)) * [2, 0.5]


def test_it_is_bistochastic_with_respect_to_the_reciprocal_row_sums():
    K = hs.gaussian_affinity(wide_cloud(), 0.5)
    w = 1 / K.sum(axis=1)
    A = hs.bistochastic_normalize(K, tol=1e-13, weights="1/q")
    B = A / np.sqrt(np.outer(w, w)) * w.mean()
    assert_allclose(B @ w, w.mean(), rtol=1e-12)
    assert_allclose(A @ np.sqrt(w), np.sqrt(w), rtol=1e-12)
    assert_array_equal(A, A.T)
    ratio = B / K  # a scaling of K: of rank one
    assert_allclose(ratio * ratio[0, 0], np.outer(ratio[0], ratio[0]), rtol=1e-9)
    lam = np.linalg.eigvalsh(A)
    assert lam[-1] == pytest.approx(1, abs=1e-12)
    assert lam[0] > -1e-12


def uneven_circle(n):
    """Points at equal steps of the distribution (t + .7 sin t) / 2π: no sampling error."""
    angle = np.linspace(0, 2 * np.pi, 20_001)
    t = np.interp((np.arange(n) + 0.5) / n, (angle + 0.7 * np.sin(angle)) / (2 * np.pi), angle)
    return np.c_[np.cos(t), np.sin(t)]


def test_with_one_over_q_the_density_has_no_effect():
    """(1 - λ) 4/ε -> m² on the circle, for any density; B alone has that of Langevin dynamics."""
    epsilon = 0.01
    K = hs.gaussian_affinity(uneven_circle(400), epsilon)
    exact = np.array([1, 1, 4, 4, 9, 9])

    def generator(A):
        return (1 - np.linalg.eigvalsh(A)[::-1][1:7]) * 4 / epsilon

    assert_allclose(generator(hs.bistochastic_normalize(K, weights="1/q")), exact, rtol=0.02)
    plain = generator(hs.bistochastic_normalize(K))
    assert np.abs(plain / exact - 1).max() > 0.1
    langevin = generator(hs.Diffusion.from_affinity(K, alpha=0.5).operator @ np.eye(400))
    assert_allclose(plain, langevin, rtol=0.02)


def test_the_diffusion_of_the_docstring():
    X, K = wide_cloud(), hs.gaussian_affinity(wide_cloud(), 0.5)
    A = hs.bistochastic_normalize(K, tol=1e-12, weights="1/q")
    r = 1 / np.sqrt(K.sum(axis=1))
    d = hs.Diffusion.from_affinity(r[:, None] * A * r, alpha=0)
    assert_allclose(d.operator @ np.eye(80), A, atol=1e-11)
    assert_allclose(d.measure, r**2 / (r @ r), rtol=1e-10)
    assert hs.DiffusionMap(2, affinity="precomputed").fit(d).embedding_.shape == (len(X), 2)


FORMS = {
    "array": np.asarray,
    "CSR": sparse.csr_matrix,
    "COO": sparse.coo_matrix,
    "list": lambda K: K.tolist(),
    "graph": lambda K: hs.graph(sparse.csr_matrix(K)),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@normalizers
def test_without_its_diagonal_an_affinity_is_that_with_zeros(normalize, form):
    K = affinity(12, 2.0)
    given = form(K)
    want = normalize(K - np.diag(np.diag(K)))
    found = normalize(given, zero_diagonal=True)
    assert sparse.issparse(found) == (form not in (FORMS["array"], FORMS["list"]))
    found = found.toarray() if sparse.issparse(found) else found
    assert_allclose(found, want, atol=1e-12)
    assert_array_equal(np.diag(found), 0)
    assert_array_equal(K, affinity(12, 2.0))


def test_factors_of_both_points_are_taken_out_where_the_diagonal_is_zero():
    """Noise divides K_ij, i != j, by u_i u_j."""
    K, u = affinity(30, 2.0), np.random.default_rng(1).uniform(0.3, 1, 30)
    noisy = K * np.outer(u, u)
    np.fill_diagonal(noisy, np.diag(K))
    clean, moved = (hs.bistochastic_normalize(M, 1e-9, zero_diagonal=True) for M in (K, noisy))
    assert_allclose(moved, clean, atol=1e-7)
    with_diagonal = [hs.bistochastic_normalize(M) for M in (K, noisy)]
    assert np.abs(with_diagonal[0] - with_diagonal[1]).max() > 1e-2


def test_without_diagonal_a_far_point_has_no_scaling_by_the_reciprocal_row_sums():
    """Its weight 1/q is larger than all others together, and row i of B sums to it."""
    X = np.append(np.linspace(0, 1, 9), 4.0)[:, None]
    K = hs.gaussian_affinity(X, 0.5)
    with pytest.raises(ValueError, match=r"weights='1/q' exists: the weight of rows 9 is larger"):
        hs.bistochastic_normalize(K, weights="1/q", zero_diagonal=True)
    near = hs.gaussian_affinity(X[:9], 0.5)
    A = hs.bistochastic_normalize(near, weights="1/q", zero_diagonal=True)
    root = 1 / np.sqrt(near.sum(axis=1) - 1)
    assert_allclose(A @ root, root, rtol=1e-7)


@pytest.mark.parametrize(("d", "epsilon", "most"), [(1, 0.05, 200), (2, 0.1, 400)])
def test_points_that_are_near_to_one_other_only_do_not_slow_the_scaling(d, epsilon, most):
    """Two points with most of their affinity to each other have an eigenvalue near -1."""
    K = hs.gaussian_affinity(np.random.default_rng(0).normal(size=(300, d)), epsilon)
    np.fill_diagonal(K, 0)
    found = bistochastic_scaling(hs.Dense(K), 1e-8)
    assert found.diagnostics["scaling_iterations"] < most
    B = found.s[:, None] * K * found.s
    assert_allclose(B.sum(axis=1), 1, rtol=1e-8)
    assert np.linalg.eigvalsh(B)[0] < -0.97  # a damped iteration needs thousands of products


@pytest.mark.parametrize("pairs", [1, 3])
def test_pairs_share_their_weight_by_either_weights(pairs):
    K = np.kron(np.eye(pairs), [[0, 1.0], [1, 0]])
    assert_allclose(hs.bistochastic_normalize(2 * K, weights="1/q"), K, atol=1e-12)
    assert_allclose(hs.bistochastic_normalize(2 * K + np.eye(2 * pairs), zero_diagonal=True), K)


def test_sides_of_unequal_weight_have_no_scaling():
    """Of a bipartite affinity both sides must have the same sum of weights."""
    B = np.random.default_rng(0).uniform(0.1, 1, (6, 6)) * np.arange(1, 7)[:, None]
    K = np.block([[np.zeros((6, 6)), B], [B.T, np.zeros((6, 6))]])
    with pytest.raises(ValueError, match="row sums off by"):
        hs.bistochastic_normalize(K, weights="1/q")


def test_only_a_stored_affinity_loses_its_diagonal():
    with pytest.raises(TypeError, match=r"zero_diagonal=True needs a stored K, .*pass K @ np.eye"):
        hs.symmetric_normalize(hs.Dense(np.ones((2, 2))), zero_diagonal=True)
    with pytest.raises(ValueError, match="no affinity to anything"):
        hs.symmetric_normalize(np.eye(3), zero_diagonal=True)
    for wrong in ([1.0, 2.0], np.ones((2, 3))):
        with pytest.raises(ValueError, match="pass"):
            hs.bistochastic_normalize(wrong, zero_diagonal=True)
    with pytest.raises(TypeError, match="zero_diagonal='no' is of type str; pass True or False"):
        hs.symmetric_normalize(np.ones((3, 3)), zero_diagonal="no")
