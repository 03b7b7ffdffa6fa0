"""Closed forms of the parts of the block iteration: polynomials, degrees, Ritz pairs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg, sparse

import heatsketch as hs
from heatsketch.spectral.block_iteration import (
    _amplify,
    _cut,
    _degree_for,
    _growing_cut,
    _orthonormal,
    _rayleigh_ritz,
    _safe_degree,
    in_the_range,
    ritz_pairs,
)


def diagonal(values, dtype=float):
    return hs.Sparse(sparse.diags(np.asarray(values, dtype)).tocsr())


def chebyshev(degree, value, low, cut):
    """T_degree of [low, cut] mapped to [-1, 1]."""
    x = (2 * value - low - cut) / (cut - low)
    return np.polynomial.chebyshev.Chebyshev.basis(degree)(x)


INTERVALS = [(-0.5, 0.7, 1.0), (0.2, 0.9, 1.1), (-3.0, -1.0, -0.5)]


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("degree", [1, 2, 3, 7])
def test_amplify_is_the_polynomial_scaled_to_one_at_the_top(interval, degree):
    low, cut, top = interval
    values = np.linspace(low, top, 40)
    A, X = diagonal(values), np.random.default_rng(0).standard_normal((40, 3))
    got = _amplify(A, X.copy(), A @ X, interval, degree)
    want = chebyshev(degree, values, low, cut) / chebyshev(degree, top, low, cut)
    assert_allclose(got, want[:, None] * X, rtol=1e-11, atol=1e-13)
    assert_allclose(got[-1], X[-1])


@pytest.mark.parametrize("growth", [10.0, 1e4])
@pytest.mark.parametrize("degree", [3, 10])
def test_the_cut_of_a_growth_gives_that_growth(growth, degree):
    low, value = -0.4, 0.9
    cut = _growing_cut(low, value, growth, degree)
    assert low < cut < value
    # cosh(log 2g) = g + 1 / 4g
    assert chebyshev(degree, value, low, cut) == pytest.approx(growth + 1 / (4 * growth))


@pytest.mark.parametrize("growth", [10.0, 1e4, 1e8])
@pytest.mark.parametrize("value", [0.51, 0.6, 0.95])
def test_the_degree_for_a_growth_is_enough_and_hardly_more(growth, value):
    degree = _degree_for(growth, value, -0.4, 0.5)
    assert chebyshev(degree, value, -0.4, 0.5) >= growth
    assert chebyshev(degree - 2, value, -0.4, 0.5) <= growth * (1 + 1e-9)


def test_no_growth_below_the_cut_asks_for_a_finite_degree():
    assert _degree_for(10.0, 0.2, -0.4, 0.5) == _degree_for(10.0, 0.5, -0.4, 0.5) < 10_000


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_safe_degree_loses_half_of_the_digits(dtype):
    degree = _safe_degree(diagonal([1.0], dtype), 0.9, -0.4, 0.5)
    assert degree == _degree_for(float(np.finfo(dtype).eps) ** -0.5, 0.9, -0.4, 0.5)


@pytest.mark.parametrize(
    ("best", "low", "ritz", "want"),
    [
        (0.5, 0.0, [1.0, 0.6], (0.5, 1.0)),
        (-9.0, 0.0, [1.0, 0.6], (1e-3, 1.0)),  # never at the lower end,
        (9.0, 0.0, [1.0, 0.6], (1 - 1e-6, 1.0)),  # nor at the top
        (-9.0, -4.0, [-2.0], (-4 + 2e-3, -2.0)),
        (0.0, -2.0, [-2.0], (-2 + (1 - 1e-6) * 2e-12, -2 + 2e-12)),  # all values are one
    ],
)
def test_the_cut_stays_within_the_spectrum(best, low, ritz, want):
    assert_allclose(_cut(best, low, np.array(ritz)), want, rtol=0, atol=1e-15)


def test_ritz_pairs_of_a_basis_that_is_not_orthonormal():
    rng = np.random.default_rng(0)
    M = rng.standard_normal((30, 30))
    M = M + M.T
    span = rng.standard_normal((30, 4)) * [1.0, 3.0, 0.2, 1.0]
    X, image = span.copy(), M @ span
    ritz = _rayleigh_ritz(X, image)
    Q = linalg.orth(span)
    assert_allclose(ritz, np.linalg.eigvalsh(Q.T @ M @ Q)[::-1], rtol=1e-11)
    assert_allclose(image, M @ X, atol=1e-11)
    assert_allclose(X.T @ X, np.eye(4), atol=1e-11)
    assert_allclose(X.T @ M @ X, np.diag(ritz), atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bases_keep_span_and_precision_over_many_tiles(dtype):
    X = np.random.default_rng(0).standard_normal((20_000, 3)).astype(dtype)
    span = X.astype(float)
    Q = _orthonormal(hs.Sparse(sparse.eye(20_000, dtype=dtype).tocsr()), X)
    eps = float(np.finfo(dtype).eps)
    assert Q.dtype == dtype
    assert_allclose(Q.T.astype(float) @ Q, np.eye(3), atol=10 * eps)
    assert_allclose(Q @ (Q.T.astype(float) @ span), span, atol=100 * eps)


def test_nothing_spans_nothing_yet_gives_a_basis():
    Q = _orthonormal(hs.Sparse(sparse.eye(50).tocsr()), np.zeros((50, 3)))
    assert_allclose(Q.T @ Q, np.eye(3), atol=1e-14)


def low_rank(values, n=80):
    Q = linalg.orth(np.random.default_rng(0).standard_normal((n, len(values))))
    return hs.Dense((Q * values) @ Q.T), Q


def test_zeros_beside_a_low_rank_count():
    A, _ = low_rank(np.array([3.0, 2.0]))
    X = np.random.default_rng(1).standard_normal((80, 6))
    found = in_the_range(A, X, 3, lambda ritz: 1e-10)
    assert found is not None
    assert_allclose(found[0][:3], [3.0, 2.0, 0.0], atol=1e-12)


def test_residuals_of_all_points_count():
    A = diagonal(np.concatenate([np.zeros(40), np.linspace(1, 2, 40)]))
    X = np.random.default_rng(1).standard_normal((80, 6))
    assert in_the_range(A, X, 3, lambda ritz: 1e-10) is None


def test_ritz_pairs_of_an_invariant_span_are_eigenpairs():
    span = np.eye(5)[:, 1:3] @ np.array([[1.0, 2.0], [0.5, -1.0]])
    values, vectors = ritz_pairs(diagonal([5.0, 4.0, 3.0, 2.0, 1.0]), span)
    assert_allclose(values, [4.0, 3.0])
    assert_allclose(np.abs(vectors), np.eye(5)[:, 1:3], atol=1e-12)


@pytest.mark.parametrize("values", [[3.0, 2.0, 1.0], [3.0, 3.0, 0.5], [5.0]])
def test_a_low_rank_is_found_in_the_range(values):
    A, Q = low_rank(np.array(values))
    X = np.random.default_rng(1).standard_normal((80, 6))
    k = len(values)
    found = in_the_range(A, X, k, lambda ritz: 1e-10)
    assert found is not None
    assert_allclose(found[0][:k], values, rtol=1e-12)
    assert_allclose(Q @ (Q.T @ found[1][:, :k]), found[1][:, :k], atol=1e-12)


@pytest.mark.parametrize(
    ("values", "k"),
    [
        (np.linspace(1, 2, 40), 3),  # of a rank above the number of columns
        (np.array([3.0, -2.0, -1.0]), 6),  # negative ones are not the largest beside zeros
        (np.linspace(1, 2, 40), 1),
        (np.array([3.0, -2.0]), 6),
    ],
)
def test_what_is_not_accurate_or_not_largest_is_not_returned(values, k):
    A, _ = low_rank(values)
    X = np.random.default_rng(1).standard_normal((80, 6))
    assert in_the_range(A, X, k, lambda ritz: 1e-10) is None
