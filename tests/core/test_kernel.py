"""The fused product of the Gaussian kernel: exponential, precision, bits."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

import heatsketch as hs
from heatsketch.core.kernel import (
    EXPONENT_BOUND,
    SINGLE_EXPONENT_BOUND,
    exponent_error,
    exponent_factors,
)
from heatsketch.core.loops import exp2
from problems.checks import same_for_any_threads
from problems.clouds import cloud
from problems.matrices import kernel_matrix

TILE = 512
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
PRECISIONS = pytest.mark.parametrize("dtype", [SINGLE, DOUBLE], ids=str)
SIZES = (1, 2, 3, TILE - 1, TILE, TILE + 1, 2 * TILE + 3)


def block(n, k=5, dtype=DOUBLE):
    return np.random.default_rng(99).standard_normal((n, k)).astype(dtype)


def allowed(kernel, X):
    """|Σ (K' - K)_ij x_j| <= (exponent error + rounding of K and of a sum over a tile) Σ |x_j|."""
    eps = np.finfo(kernel.dtype).eps
    error = min(kernel.exponent_error, SINGLE_EXPONENT_BOUND)
    per_entry = 1.1 * error + (TILE + 8) * eps
    return per_entry * np.abs(X.astype(np.float64)).sum(axis=0)


# The exponential


@PRECISIONS
def test_exponential_is_numpys_wherever_the_result_is_normal(dtype):
    info = np.finfo(dtype)
    x = np.linspace(info.minexp + 1, 0, 200_003).astype(dtype)
    x = np.concatenate([x, -np.arange(-info.minexp - 1) - dtype.type(0.5), -np.logspace(-40, 0)])
    x = x.astype(dtype)
    got = x.copy()
    exp2(got)
    expected = np.exp(x.astype(np.longdouble) * np.log(np.longdouble(2)))
    assert np.abs(got / expected - 1).max() <= 2 * info.eps


@PRECISIONS
def test_powers_of_two_are_exact(dtype):
    j = np.arange(np.finfo(dtype).minexp + 1, 1)
    got = j.astype(dtype)
    exp2(got)
    assert_array_equal(got, np.ldexp(dtype.type(1), j))


@PRECISIONS
def test_exponential_underflows_to_zero_and_never_exceeds_one(dtype):
    info = np.finfo(dtype)
    far = np.array([info.minexp - 0.5, info.minexp - 1, -1e4, -1e30, info.min, -np.inf], dtype)
    exp2(far)
    assert_array_equal(far, 0)
    above = np.array([0.0, -0.0, info.tiny, 1e-6, 3.0], dtype)
    exp2(above)
    assert_array_equal(above, 1)


# Products


@PRECISIONS
@pytest.mark.parametrize("n", SIZES)
def test_product_is_that_of_the_matrix(n, dtype):
    X, V = cloud(n, 4, dtype=dtype), block(n, dtype=dtype)
    kernel = hs.Kernel(X, 3.0)
    assert kernel.dtype == dtype
    assert 0 < kernel.exponent_error < SINGLE_EXPONENT_BOUND or n == 1
    Y = kernel @ V
    assert Y.dtype == dtype
    expected = kernel_matrix(X, 3.0) @ V.astype(np.float64)
    assert (np.abs(Y - expected) <= allowed(kernel, V)).all()


@PRECISIONS
@pytest.mark.parametrize("d", [1, 10, 200])
def test_exponents_keep_their_bound(d, dtype):
    X = cloud(300, d, dtype=dtype)
    kernel = hs.Kernel(X, 2.0 * d)
    x = kernel.centred_points
    s = kernel.scales
    left, right = exponent_factors(x, s, dtype)
    exponents = (left @ right.T).astype(np.float64) * np.log(2)
    exact = -cdist(x, x, "sqeuclidean") / np.multiply.outer(s, s)
    bound = exponent_error(x, s[0] ** 2, dtype)
    assert np.abs(exponents - exact).max() <= bound
    # One GEMM in this precision loses digits: a bound near zero would not be one.
    assert np.abs(exponents - exact).max() >= bound / 1000


@PRECISIONS
def test_points_and_bandwidth_scaled_by_a_power_of_two_give_the_same_bits(dtype):
    X, V = cloud(TILE + 9, 4, dtype=dtype), block(TILE + 9, dtype=dtype)
    Y = hs.Kernel(X, 3.0) @ V
    for j in (-30, 1, 30):
        moved = hs.Kernel(np.ldexp(X, j), 3.0 * 4.0**j)
        assert_array_equal(moved @ V, Y)


@PRECISIONS
def test_translated_points_give_the_product_of_the_points_as_rounded(dtype):
    offset = 1e6
    X, V = cloud(TILE + 9, 4, dtype=dtype), block(TILE + 9, dtype=dtype)
    shifted = X + dtype.type(offset)  # rounded to eps · 1e6: 0.06 in float32
    kernel = hs.Kernel(shifted, 3.0)
    assert kernel.exponent_error < 4 * hs.Kernel(X, 3.0).exponent_error
    expected = kernel_matrix(shifted - dtype.type(offset), 3.0) @ V.astype(np.float64)
    assert (np.abs(kernel @ V - expected) <= allowed(kernel, V)).all()


@PRECISIONS
@pytest.mark.parametrize("epsilon", [3.0, 1e-4, 1e-20], ids=["gram", "near", "direct"])
def test_same_bits_for_any_number_of_threads(epsilon, dtype):
    n = 4 * TILE + 1
    kernel, V = hs.Kernel(cloud(n, 4, dtype=dtype), epsilon), block(n, 3, dtype)
    same_for_any_threads(lambda: kernel @ V)


# Where float32 is not good enough


@pytest.mark.parametrize("epsilon", [1e-3, 1e-8], ids=["gram in float64", "differences"])
def test_small_bandwidths_are_worked_out_in_float64(epsilon):
    near = cloud(200, 3, dtype=SINGLE) * np.float32(np.sqrt(epsilon) / 2)
    X = (np.repeat([[-1.0], [1.0]], 100, axis=0) + near).astype(SINGLE)
    V = block(200, dtype=SINGLE)
    kernel = hs.Kernel(X, epsilon)
    assert kernel.dtype == SINGLE
    assert exponent_error(kernel.centred_points, float(kernel.scales[0] ** 2), SINGLE) > (
        SINGLE_EXPONENT_BOUND
    )
    expected = kernel_matrix(X, epsilon) @ V.astype(np.float64)
    rounding = np.finfo(SINGLE).eps * np.abs(expected)
    assert (np.abs(kernel @ V - expected) <= rounding + EXPONENT_BOUND * np.abs(V).sum(0)).all()
    # In float32 this would be wrong by far more than that.
    factors = exponent_factors(kernel.centred_points, kernel.scales, SINGLE)
    single = np.exp2(np.minimum(factors[0] @ factors[1].T, 0)) @ V
    assert np.abs(single - expected).max() > 1e-3


@PRECISIONS
def test_local_scales_of_very_different_size(dtype):
    X, V = cloud(60, 4, dtype=dtype), block(60, dtype=dtype)
    s = np.geomspace(1.0, 1e100, 60)
    got = hs.Kernel(X, s) @ V
    expected = kernel_matrix(X, s) @ V.astype(np.float64)
    assert (np.abs(got - expected) <= allowed(hs.Kernel(X, s), V)).all()


# Precision asked for


def test_precision_is_that_of_the_points_unless_asked_for():
    X = cloud(30, 4)
    assert hs.Kernel(X, 1.0).dtype == DOUBLE
    assert hs.Kernel(X.astype(np.float32), 1.0).dtype == SINGLE
    assert hs.Kernel(X, 1.0, SINGLE).dtype == SINGLE
    exact = hs.Kernel(X.astype(np.float32), 1.0, DOUBLE)
    expected = kernel_matrix(X.astype(np.float32), 1.0) @ block(30)
    assert_allclose(exact @ block(30), expected, rtol=0, atol=1e-12)
    assert (exact @ block(30, 0)).shape == (30, 0)
    with pytest.raises(ValueError, match="pass one of 'float32', 'float64'"):
        hs.Kernel(X, 1.0, np.dtype(np.int64))


def test_no_matrix_is_stored():
    n = 6 * TILE
    kernel, V = hs.Kernel(cloud(n, 4, dtype=SINGLE), 3.0), block(n, 4, SINGLE)
    kernel @ V  # compiled
    tracemalloc.start()
    kernel @ V
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * n**2 / 3  # six tiles in six threads: a fifth of the matrix
