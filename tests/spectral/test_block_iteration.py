"""The block iteration: its polynomials, bases and Ritz pairs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg, sparse

import heatsketch as hs
from heatsketch.spectral import block_iteration
from heatsketch.spectral.block_iteration import (
    _amplify,
    _degree_for,
    _growing_cut,
    _orthonormal,
    _rayleigh_ritz,
    in_the_range,
    ritz_pairs,
)


def chebyshev(degree, value, low, cut):
    """T_degree of [low, cut] mapped to [-1, 1]."""
    x = (2 * value - low - cut) / (cut - low)
    return np.polynomial.chebyshev.Chebyshev.basis(degree)(x)


@pytest.mark.parametrize("interval", [(-0.5, 0.7, 1.0), (0.2, 0.9, 1.1), (-3.0, -1.0, -0.5)])
@pytest.mark.parametrize("degree", [1, 2, 3, 7])
def test_amplify_is_the_polynomial_scaled_to_one_at_the_top(interval, degree):
    low, cut, top = interval
    values = np.linspace(low, top, 40)
    A = hs.Sparse(sparse.diags(values).tocsr())
    X = np.random.default_rng(0).standard_normal((40, 3))
    got = _amplify(A, X.copy(), A @ X, interval, degree)
    want = chebyshev(degree, values, low, cut) / chebyshev(degree, top, low, cut)
    assert_allclose(got, want[:, None] * X, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("growth", [10.0, 1e4])
@pytest.mark.parametrize("value", [0.51, 0.6, 0.95])
def test_cuts_and_degrees_are_those_of_a_growth(growth, value):
    degree = _degree_for(growth, value, -0.4, 0.5)
    assert chebyshev(degree, value, -0.4, 0.5) >= growth
    assert chebyshev(degree - 2, value, -0.4, 0.5) <= growth * (1 + 1e-9)
    cut = _growing_cut(-0.4, value, growth, 10)
    # cosh(log 2g) = g + 1 / 4g
    assert chebyshev(10, value, -0.4, cut) == pytest.approx(growth + 1 / (4 * growth))


def test_eigenvalues_below_an_interval_do_not_get_in(monkeypatch):
    # A bound that is wrong: two eigenvalues lie below it, and grow faster than those on top.
    values = np.concatenate([[-2.0, -1.9], np.linspace(0, 0.9, 1300 - 4), [0.95, 1.0]])
    A = hs.Sparse(sparse.diags(values).tocsr())
    monkeypatch.setattr(block_iteration, "spectrum_ends", lambda A, steps: ((0.0, 1.0), (0.0, 1.0)))
    assert_allclose(hs.eigh(A, 2, rng=0).values, [1.0, 0.95], atol=1e-9)


@pytest.mark.parametrize("columns", ["random", "zero", "nothing", "twice", "graded"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_basis_is_orthonormal_and_keeps_the_span(columns, dtype):
    n, eps = 20_000, float(np.finfo(dtype).eps)  # more rows than a tile has
    X = np.random.default_rng(0).standard_normal((n, 8))
    if columns in ("zero", "nothing"):
        X[:, slice(None) if columns == "nothing" else 3] = 0.0
    elif columns == "twice":
        X[:, 3] = X[:, 5]
    elif columns == "graded":
        X = X[:, :1] + X * 10.0 ** -np.arange(0, 16, 2)
    X = X.astype(dtype)
    span = X.astype(float)
    Q = _orthonormal(hs.Sparse(sparse.eye(n, dtype=dtype).tocsr()), X)
    assert Q.dtype == dtype
    Q = Q.astype(float)
    assert_allclose(Q.T @ Q, np.eye(8), atol=100 * eps)
    # All of the span is kept, to rounding of the largest column.
    rest = np.linalg.norm(span - Q @ (Q.T @ span), axis=0).max()
    assert rest <= 10 * eps**0.5 * np.linalg.norm(span, axis=0).max()


def test_a_basis_of_too_few_directions_is_filled_outside_of_what_is_deflated():
    u = np.full(500, 500**-0.5)
    A = hs.Deflated(hs.Sparse(sparse.eye(500).tocsr()), u)
    Q = _orthonormal(A, np.outer(np.arange(500.0), np.ones(6)))
    assert_allclose(Q.T @ Q, np.eye(6), atol=1e-12)
    assert_allclose(u @ Q, 0.0, atol=1e-12)


def test_ritz_pairs_are_those_of_the_span():
    rng = np.random.default_rng(0)
    M = rng.standard_normal((30, 30))
    M = M + M.T
    span = rng.standard_normal((30, 4)) * [1.0, 3.0, 0.2, 1.0]  # not orthonormal
    Q = linalg.orth(span)
    exact = np.linalg.eigvalsh(Q.T @ M @ Q)[::-1]
    X, image = span.copy(), M @ span
    assert_allclose(_rayleigh_ritz(X, image), exact, rtol=1e-11)
    assert_allclose(image, M @ X, atol=1e-11)
    assert_allclose(X.T @ X, np.eye(4), atol=1e-11)
    values, vectors = ritz_pairs(hs.Dense(M), span.copy())
    assert_allclose(values, exact, rtol=1e-11)
    assert_allclose(vectors.T @ M @ vectors, np.diag(exact), atol=1e-10)


def of_low_rank(values, n=80):
    Q = linalg.orth(np.random.default_rng(0).standard_normal((n, len(values))))
    return hs.Dense((Q * values) @ Q.T)


@pytest.mark.parametrize("values", [[3.0, 2.0, 1.0], [3.0, 3.0, 0.5], [5.0], [3.0, 2.0, 0.0]])
def test_a_low_rank_is_found_in_the_range(values):
    A, k = of_low_rank(np.array(values)), len(values)
    X = np.random.default_rng(1).standard_normal((80, 6))
    ritz, vectors = in_the_range(A, X, k, lambda ritz: 1e-10)
    assert_allclose(ritz[:k], values, atol=1e-12)
    assert_allclose(A @ vectors[:, :k], vectors[:, :k] * values, atol=1e-11)


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
    X = np.random.default_rng(1).standard_normal((80, 6))
    assert in_the_range(of_low_rank(values), X, k, lambda ritz: 1e-10) is None
