"""The sketch f(A) G / √k: exact identities, limits and closed forms."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

import heatsketch as hs
from heatsketch._random import random_block
from heatsketch.core.operators import Operator
from heatsketch.spectral.filters import Filter
from problems.clouds import cloud
from problems.estimators import operator_of
from problems.filtered import by_eigh, normals, symmetric

K = hs.gaussian_affinity(cloud(60, 2), 0.5)


def bistochastic():
    return hs.bistochastic_normalize(K, tol=1e-13)


# The formula

FILTERS = [hs.Power(0), hs.Power(1), hs.Power(3), hs.Heat(0.4), hs.Heat(30.0)]


@pytest.mark.parametrize("f", FILTERS, ids=str)
def test_the_identity_as_g_gives_the_filtered_matrix(f):
    A = symmetric()
    F = hs.sketch(A, f, G=math.sqrt(60) * np.eye(60), deflate=False)
    np.testing.assert_allclose(F, by_eigh([f], A, np.eye(60))[0], atol=1e-12)


@pytest.mark.parametrize("kind", ["gaussian", "rademacher"])
def test_the_seed_stands_for_the_block_of_that_seed(kind):
    A = symmetric()
    G = random_block(60, 7, kind, 3)
    drawn = hs.sketch(A, hs.Power(2), 7, kind=kind, rng=3)
    np.testing.assert_array_equal(drawn, hs.sketch(A, hs.Power(2), G=G))
    assert not np.array_equal(drawn, hs.sketch(A, hs.Power(2), 7, kind=kind, rng=4))


def test_a_given_g_makes_the_other_arguments_idle_and_is_not_modified():
    A, G = symmetric(), normals(60, 5)
    before = G.copy()
    G.flags.writeable = False
    rng = np.random.default_rng(0)
    F = hs.sketch(A, hs.Power(2), 99, kind="anything", G=G, rng=rng)
    assert F.shape == (60, 5)
    np.testing.assert_array_equal(G, before)
    assert rng.bit_generator.state == np.random.default_rng(0).bit_generator.state


@pytest.mark.parametrize("deflate", [True, False])
def test_a_bank_is_its_sketches_one_by_one(deflate):
    A = symmetric()
    bank = hs.sketch(A, FILTERS, 6, deflate=deflate, rng=np.random.default_rng(2))  # draws one G
    assert isinstance(bank, list)
    for f, F in zip(FILTERS, bank, strict=True):
        single = hs.sketch(A, f, 6, deflate=deflate, rng=2)
        np.testing.assert_allclose(F, single, rtol=0, atol=1e-13 * np.abs(single).max())


@pytest.mark.parametrize("f", FILTERS[2:], ids=str)
def test_float32_stays_float32(f):
    F, exact = (hs.sketch(A, f, 4, rng=0) for A in (symmetric().astype(np.float32), symmetric()))
    assert F.dtype == np.float32
    assert np.linalg.norm(F - exact) < 1e-4 * np.linalg.norm(exact)


# Deflation


@pytest.mark.parametrize("f", [hs.Power(1), hs.Power(4), hs.Heat(2.5)], ids=str)
@pytest.mark.parametrize("form", ["array", "csr", "operator", "bistochastic", "deflated"])
def test_deflating_subtracts_the_trivial_part(form, f):
    normalization = "bistochastic" if form == "bistochastic" else "symmetric"
    u = np.sqrt(operator_of(K, normalization)[1])
    A = {
        "array": symmetric(),
        "csr": sparse.csr_matrix(symmetric()),
        "operator": hs.symmetric_normalize(hs.Kernel(cloud(60, 2), 0.5)),
        "bistochastic": bistochastic(),
        "deflated": hs.Deflated(hs.Dense(symmetric()), u),
    }[form]
    G = normals(60, 5)
    whole = symmetric() if form == "deflated" else A
    difference = hs.sketch(whole, f, G=G, deflate=False) - hs.sketch(A, f, G=G)
    # The eigenvalue of u is 1, and so is f there.
    trivial = np.multiply.outer(u, u @ G) / math.sqrt(5)
    np.testing.assert_allclose(difference, trivial, atol=1e-7 if form == "csr" else 1e-8)
    assert np.abs(trivial).max() > 1e-2


def test_between_disconnected_groups_the_difference_stays():
    X, first = cloud(60, 2), np.arange(60) < 20
    X[first] += 1000.0
    A = hs.symmetric_normalize(hs.Kernel(X, 0.5))
    G = normals(60, 5)
    F = hs.sketch(A, hs.Power(20_000), G=G)
    # After that long each group is at rest; what is left is the other combination of the two.
    root = A.leading / np.linalg.norm(A.leading)
    one, two = np.where(first, root, 0.0), np.where(first, 0.0, root)
    contrast = one / (one @ one) - two / (two @ two)
    contrast /= np.linalg.norm(contrast)
    expected = np.multiply.outer(contrast, contrast @ G) / math.sqrt(5)
    np.testing.assert_allclose(F, expected, atol=1e-9)


def test_columns_of_a_bistochastic_sketch_keep_their_mass_and_obey_the_maximum_principle():
    B, G = bistochastic(), normals(60, 5)
    for f in FILTERS:
        whole, rest = hs.sketch(B, f, G=G, deflate=False), hs.sketch(B, f, G=G)
        np.testing.assert_allclose(whole.sum(axis=0), G.sum(axis=0) / math.sqrt(5), atol=1e-10)
        np.testing.assert_allclose(rest.sum(axis=0), 0.0, atol=1e-12)
        assert (whole.min(axis=0) * math.sqrt(5) >= G.min(axis=0) - 1e-12).all()
        assert (whole.max(axis=0) * math.sqrt(5) <= G.max(axis=0) + 1e-12).all()


# Relations between sketches


@settings(max_examples=25)
@given(p=st.integers(0, 6), r=st.integers(0, 6), a=st.floats(-5, 5))
def test_semigroup_and_linearity(p, r, a):
    A, G, H = symmetric(30), normals(30, 5), np.random.default_rng(2).standard_normal((30, 5))
    for f in (hs.Power, hs.Heat):
        F = hs.sketch(A, f(p), G=G)
        again = hs.sketch(A, f(r), G=math.sqrt(5) * F)
        np.testing.assert_allclose(again, hs.sketch(A, f(p + r), G=G), atol=1e-12)
        mixed = hs.sketch(A, f(p), G=a * G + H)
        np.testing.assert_allclose(mixed, a * F + hs.sketch(A, f(p), G=H), atol=1e-11)


@settings(max_examples=15)
@given(seed=st.integers(0, 2**20))
def test_permuting_the_points_permutes_the_rows(seed):
    A, G = symmetric(30), normals(30, 5)
    order = np.random.default_rng(seed).permutation(30)
    for f, deflate in itertools.product((hs.Power(3), hs.Heat(4.0)), (False, True)):
        moved = hs.sketch(A[np.ix_(order, order)], f, G=G[order], deflate=deflate)
        plain = hs.sketch(A, f, G=G, deflate=deflate)
        np.testing.assert_allclose(moved, plain[order], atol=1e-8 if deflate else 1e-13)


# Limits and closed forms


def test_bandwidths_at_both_ends_move_nothing_or_leave_the_mean():
    (none, all_), G = (symmetric(epsilon=epsilon) for epsilon in (1e-9, 1e20)), normals(60, 5)
    for f in FILTERS:
        F = hs.sketch(none, f, G=G, deflate=False)
        np.testing.assert_allclose(F, G / math.sqrt(5), rtol=1e-13)
    F = hs.sketch(all_, hs.Power(2), G=G, deflate=False)
    np.testing.assert_allclose(F, np.ones((60, 1)) * G.mean(axis=0) / math.sqrt(5), atol=1e-14)
    assert np.abs(hs.sketch(all_, hs.Power(3), G=G)).max() < 1e-13


def ornstein_uhlenbeck(rho, sigma, nodes):
    """The bistochastic Gaussian kernel under N(0, σ²), on Gauss-Hermite nodes, and √weights.

    exp(-(x-y)²/ε) with ε = 2σ²(1-ρ²)/ρ, scaled by s(x) = (1-ρ²)^-1/4 exp(x² ρ/(2σ²(1+ρ))), is the
    density of two normal variables of correlation ρ over the product of theirs (Mehler).
    """
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    x, root = sigma * x, np.sqrt(w / w.sum())
    epsilon = 2 * sigma**2 * (1 - rho**2) / rho
    s = (1 - rho**2) ** -0.25 * np.exp(x**2 * rho / (2 * sigma**2 * (1 + rho)))
    kernel = hs.Kernel(x[:, None], epsilon)
    return hs.Scaled(kernel, s * root, (0.0, 1.0), leading=root), root


@pytest.mark.parametrize("rho", [0.3, 0.6])
def test_a_gaussian_kernel_under_a_gaussian_density_has_powers_as_eigenvalues(rho):
    A, root = ornstein_uhlenbeck(rho, 1.7, 60)
    values, vectors, _ = hs.eigh(A, 8)
    np.testing.assert_allclose(values, rho ** np.arange(8), atol=1e-10)
    hermite = np.polynomial.hermite_e.hermegauss(60)[0]  # the first is x itself
    np.testing.assert_allclose(np.abs(vectors[:, 1]), np.abs(hermite) * root, atol=1e-8)


@pytest.mark.parametrize("p", [1, 2, 5])
def test_steps_of_mehlers_kernel_multiply_the_correlation(p):
    rho, nodes = 0.6, 60
    A, root = ornstein_uhlenbeck(rho, 1.7, nodes)
    F = hs.sketch(A, hs.Power(p), G=math.sqrt(nodes) * np.eye(nodes), deflate=False)
    r = rho**p
    x = np.polynomial.hermite_e.hermegauss(nodes)[0]
    squares = np.add.outer(x**2, x**2)
    exponent = (2 * r * np.multiply.outer(x, x) - r**2 * squares) / (2 * (1 - r**2))
    log_root = np.log(root)
    exact = np.exp(exponent + np.add.outer(log_root, log_root)) / math.sqrt(1 - r**2)
    np.testing.assert_allclose(F, exact, atol=1e-10)


# Loose intervals, large times, bad arguments


@pytest.mark.parametrize("f", [hs.Power(2000), hs.Heat(300.0)], ids=str)
@pytest.mark.parametrize("deflate", [True, False])
def test_long_times_are_right_where_only_row_sums_bound_the_spectrum(f, deflate):
    # Row sums of the symmetric form exceed 1, and 1.2^2000 is 10^158.
    A, G = symmetric(200, 0.5), normals(200, 1)
    lam, V = np.linalg.eigh(A)
    assert hs.Dense(A).spectrum[1] > 1.1
    V = V[:, :-1] if deflate else V
    exact = (V * f(lam)[: V.shape[1]]) @ (V.T @ G)
    F = hs.sketch(A, f, G=G, deflate=deflate)
    assert np.linalg.norm(F - exact) < 1e-9 * np.linalg.norm(exact)


def test_a_time_so_large_that_nothing_is_left_is_refused():
    with pytest.raises(ValueError, match=r"time is too large.*smaller time"):
        hs.sketch(symmetric(epsilon=2.0), hs.Power(10**7), 8, rng=0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_components": 0}, ValueError, "n_components=0 is out of range"),
        ({"n_components": 2.5}, TypeError, "n_components=2.5"),
        ({"n_components": 10**9}, ValueError, "n_components=1000000000"),
        ({"kind": "cauchy"}, ValueError, "'cauchy' is unknown; pass one of 'gaussian'"),
        ({"G": np.ones((59, 2))}, ValueError, r"\(59, 2\) but the operator has 60 points"),
        ({"G": np.ones(60)}, ValueError, r"\(60,\); pass \(60, k\)"),
        ({"G": np.ones((60, 0))}, ValueError, r"\(60, 0\); pass \(60, k\)"),
        ({"filter": 8}, TypeError, r"filter=8 .*pass Power"),
        ({"filter": [hs.Power(1), 8]}, TypeError, r"filter=.* .*pass Power"),
        ({"filter": []}, TypeError, "is not a filter"),
        ({"G": np.full((60, 2), np.nan)}, ValueError, "G contains NaN"),
        *(({"tol": tol}, ValueError, "tol") for tol in (0, -1e-3, np.nan)),
        ({"A": np.ones((60, 59))}, ValueError, "square"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_arguments_are_refused(arguments, error, message):
    call = {"A": symmetric(), "filter": hs.Power(2), **arguments}
    with pytest.raises(error, match=message):
        hs.sketch(**call)


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
@pytest.mark.parametrize("p", [60, 900])
@pytest.mark.parametrize("scale", [1.0, 0.9, 1.2])
def test_a_tolerance_bounds_the_error_of_the_filter(tol, p, scale):
    # |f(A) - p(A)| <= tol max|f| in the spectral norm, so a column errs by at most that times |g|;
    # max|f| is that on the spectrum, scale^p, though the interval known is wider.
    A, f = scale * symmetric(), hs.Power(p)
    G = np.random.default_rng(0).standard_normal((60, 2))
    exact = by_eigh([f], A, G)[0] / math.sqrt(2)
    got = hs.sketch(A, f, G=G, deflate=False, tol=tol)
    allowed = (tol + 1e-11) * scale**p * np.linalg.norm(G, axis=0) / math.sqrt(2)
    assert (np.linalg.norm(got - exact, axis=0) <= allowed).all()


# What an operator or a filter may leave out


class Reversal(Operator):
    """The reversal of the order: eigenvalues 1 and -1, and products that are views."""

    def __init__(self, n):
        self.n, self.spectrum = n, (-1.0, 1.0)

    def _matmul(self, X):
        return X[::-1]


class Peak(Filter):
    """A filter that leaves out how sharp it is."""

    def with_log_scale(self, lam):
        return np.exp(-5 * (np.asarray(lam) - 0.3) ** 2), 0.0


@pytest.mark.parametrize("n", [6, 700, 2500])
def test_products_may_be_views_of_the_block(n):
    G = np.random.default_rng(0).normal(size=(n, 2))
    found = hs.sketch(Reversal(n), hs.Heat(40.0), G=G.copy(), deflate=False)
    assert_allclose(found, (G + G[::-1]) / 2 / np.sqrt(2), atol=1e-8)


def test_a_filter_need_not_say_how_sharp_it_is_where_the_spectrum_is_known_badly():
    lam = np.random.default_rng(0).random(200)
    A, G = hs.Sparse(sparse.diags(lam), (-1e4, 1e4)), np.eye(200)[:, :2]
    found = hs.sketch(A, Peak(), G=G, deflate=False)
    assert_allclose(found, Peak()(lam)[:, None] * G / np.sqrt(2), atol=1e-9)


# Columns of f(A) as a sketch, and the limits of §5.4


@pytest.mark.parametrize("f", [hs.Power(2), hs.Heat(3.0)], ids=str)
def test_subsampled_columns_are_a_sketch_that_is_right_on_average(f):
    """G = √n times columns of I: over all choices of a column the mean of F Fᵀ is f(A)²."""
    A, n = symmetric(), 60
    squares = [hs.sketch(A, f, G=math.sqrt(n) * np.eye(n)[:, [j]], deflate=False) for j in range(n)]
    filtered = by_eigh([f], A, np.eye(n))[0]
    mean = sum(F @ F.T for F in squares) / n
    np.testing.assert_allclose(mean, filtered @ filtered, atol=1e-12)
    chosen = [3, 17, 40]
    F = hs.sketch(A, f, G=math.sqrt(n) * np.eye(n)[:, chosen], deflate=False)
    np.testing.assert_allclose(F, filtered[:, chosen] * math.sqrt(n / 3), atol=1e-12)


def test_at_low_powers_a_sketch_is_noise_and_at_high_ones_a_multiple_of_an_eigenvector():
    A = bistochastic()
    G = random_block(60, 8, "gaussian", 0)
    low = hs.sketch(A, hs.Power(0), G=G, deflate=False)  # λ^0 = 1: N(0, I)
    np.testing.assert_allclose(low, G / math.sqrt(8), atol=1e-13)
    values, V = np.linalg.eigh(A)
    p = math.ceil(math.log(1e-9) / math.log(values[-3] / values[-2]))
    for deflate, v in ((False, V[:, -1]), (True, V[:, -2])):
        F = hs.sketch(A, hs.Power(p if deflate else 10**6), G=G, deflate=deflate)
        of_v = np.outer(v, v @ F)
        assert np.linalg.norm(F - of_v) <= 1e-6 * np.linalg.norm(F)
        r = v @ F * math.sqrt(8) / (values[-2] ** p if deflate else 1)
        np.testing.assert_allclose(r, v @ G, rtol=1e-6)


@pytest.mark.parametrize(("given", "wanted"), [("f2", "f4"), ("g", "f8"), ("i4", "f8")])
@pytest.mark.parametrize("f", [hs.Power(3), hs.Heat(2.0)], ids=str)
def test_matrices_of_other_precisions_are_taken_in_single_or_double(given, wanted, f):
    M = np.round(8 * np.eye(30) + 4 * np.eye(30, k=1) + 4 * np.eye(30, k=-1)).astype(given)
    for matrix in (M, sparse.csr_matrix(M) if given != "f2" else M):
        found = hs.sketch(matrix / np.array(32, given) if given != "i4" else matrix, f, 3, rng=0)
        assert found.dtype == wanted
