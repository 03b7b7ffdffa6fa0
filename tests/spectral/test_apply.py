"""Applying filters: three ways that must agree, at small and large times, in any precision."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.sparse.linalg import expm_multiply

import heatsketch as hs
from heatsketch.spectral import functions as module
from heatsketch.spectral.functions import apply, check_range, time_excess
from problems.clouds import even_circle
from problems.counting import Counting
from problems.filtered import SOME, by_eigh, cloud_operator, normals, relative_error
from problems.spectra import circle


@pytest.mark.parametrize("f", SOME, ids=str)
@pytest.mark.parametrize("form", ["whole", "deflated", "single"])
def test_products_eigenpairs_and_chebyshev_agree(f, form):
    A = cloud_operator()
    if form == "deflated":
        A = hs.Deflated(A, A.leading)
    if form == "single":
        A = hs.Dense((A @ np.eye(A.n)).astype(np.float32))
    X = A.project(normals(A.n).astype(A.dtype))
    X.flags.writeable = False
    expected = by_eigh([f], (A @ np.eye(A.n)).astype(float), X.astype(float))[0]
    ways = [module._by_eigenpairs, module._by_chebyshev]
    ways += [module._by_products] if f.steps is not None else []
    for way in ways:
        (block,) = way([f], A, X)
        assert block.dtype == A.dtype
        assert relative_error(block, expected) < (1e-3 if form == "single" else 1e-10)


def test_heat_of_a_large_sparse_graph_is_the_matrix_exponential():
    n = 2400  # beyond the limit for all eigenpairs
    rng = np.random.default_rng(3)
    links = sparse.coo_matrix((rng.random(6 * n), rng.integers(0, n, (2, 6 * n))), shape=(n, n))
    K = (links + links.T + sparse.eye(n)).tocsr()
    A = hs.symmetric_normalize(K)
    X = normals(n)
    bank = [hs.Heat(t) for t in (0.3, 5.0, 60.0)]
    known, wide = hs.Sparse(A, (-1.0, 1.0)), hs.Sparse(A)
    assert wide.spectrum[1] > 1.05
    for f, sharp, rough in zip(bank, apply(bank, known, X), apply(bank, wide, X), strict=True):
        exact = expm_multiply(f.t * (A - sparse.eye(n)).tocsr(), X)
        assert relative_error(sharp, exact) < 1e-11
        # On an interval too wide the rounding is relative to the largest f on it.
        peak = float(f(np.array(wide.spectrum)).max()) * np.linalg.norm(X)
        assert np.linalg.norm(rough - exact) < 1e-14 * peak


# Large times


def without_constant(matrix):
    return hs.Deflated(hs.Dense(matrix), np.full(len(matrix), len(matrix) ** -0.5))


def test_powers_that_leave_next_to_nothing_keep_their_digits():
    n = 60
    matrix, lam = circle(n, 0.5)
    A = without_constant(matrix)
    X = A.project(normals(n))
    p = round(-300 / math.log(lam[1]))  # e^-300
    # The next eigenvalue after the first pair is less than 0.7 of it: all that is left is the pair.
    pair = even_circle(n) * math.sqrt(2 / n)
    expected = lam[1] ** p * (pair @ (pair.T @ X))
    for way in (module._by_products, apply):
        (values,) = way([hs.Power(p)], A, X)
        # Eigenvalues are known to a few roundings, and each of them counts p times.
        assert relative_error(values, expected) < p * 2e-15 + 1e-10


def test_heat_that_leaves_next_to_nothing_keeps_its_digits():
    # e^{-t(1-λ)} is below e^{-190}; one column goes through Chebyshev.
    t = 500.0
    lam = np.linspace(0.1, 0.62, 200)
    A = hs.Sparse(sparse.diags(lam).tocsr(), (-1.0, 1.0))
    (values,) = apply([hs.Heat(t)], A, np.ones((200, 1)))
    visible = lam > lam[-1] - 20 / t
    log_values = np.log(values[visible, 0])
    np.testing.assert_allclose(log_values, -t * (1 - lam[visible]), rtol=0, atol=1e-4)
    assert log_values[-1] == pytest.approx(-t * (1 - lam[-1]), abs=1e-8)


@pytest.mark.parametrize(("dtype", "factor"), [(np.float64, 4), (np.float32, 37)])
def test_each_precision_has_a_range_of_its_own(dtype, factor):
    matrix, lam = circle(60, 0.5)
    A = without_constant(matrix.astype(dtype))
    p = round(-1000 / math.log(lam[1]))  # e^-1000
    with pytest.raises(ValueError, match=f"time is too large.*by a factor {factor}\\."):
        check_range(hs.Power(p), A)
    check_range(hs.Power(p // factor), A)
    assert time_excess(hs.Power(2 * p), A) == pytest.approx(2 * time_excess(hs.Power(p), A))


def test_growing_powers_have_a_range_too_and_nothing_is_in_range_at_any_time():
    A = hs.Dense(np.diag([100.0, 50.0]))
    most = math.log(np.finfo(float).max) / 2
    assert time_excess(hs.Power(1000), A) == pytest.approx(1000 * math.log(100) / most)
    assert time_excess(hs.Power(70), A) < 1
    assert time_excess(hs.Power(10**6), hs.Dense(np.zeros((3, 3)))) == 0.0
    assert time_excess(hs.Power(10**6), hs.Dense(1e-16 * np.eye(3))) == 0.0


@pytest.mark.parametrize("k", [1, 30])
def test_a_block_without_part_in_the_top_is_exact_by_powers_or_refused(k):
    # λ^900 is 1 at the top, which the block has no part in, and 1e-41 where it has.
    n = 2400
    lam = np.append(np.linspace(-0.9, 0.9, n - 1), 1.0)
    A = hs.Sparse(sparse.diags(lam).tocsr(), (-1.0, 1.0))
    X = np.ones((n, k))
    X[-1] = 0.0
    (block,) = apply([hs.Power(900)], A, X)
    assert_allclose(block[:-1, 0], lam[:-1] ** 900, rtol=1e-10, atol=1e-300)
    with pytest.raises(ValueError, match="leaves nothing of the block but rounding"):
        apply([hs.Heat(900.0)], A, X)


@pytest.mark.parametrize("p", [400, 3000])
def test_powers_in_single_precision_keep_the_digits_of_plain_products(p):
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(2500, 30)))[0].astype(np.float32)
    values = np.concatenate([1 - np.geomspace(1e-5, 1e-2, 29), [1.0]])
    A = hs.LowRank((Q * np.sqrt(values)).astype(np.float32), (0.0, 1.0))
    X = rng.normal(size=(2500, 4)).astype(np.float32)
    F = A.factor.astype(float)
    gram = np.linalg.matrix_power(F.T @ F, p - 1)  # (FFᵀ)^p = F (FᵀF)^(p-1) Fᵀ
    exact = F @ (gram @ (F.T @ X.astype(float)))
    (block,) = apply([hs.Power(p)], A, X)
    assert block.dtype == np.float32
    assert np.abs(block - exact).max() < 4 * p * 6e-8 * np.abs(exact).max()


# Tolerances, banks, and the number of products


def line(low=-1.0, high=1.0):
    """A diagonal operator, whose products are counted: f(A) is f of the diagonal."""
    lam = np.linspace(low, high, 2400)
    return Counting(hs.Sparse(sparse.diags(lam).tocsr(), (-1.0, 1.0))), lam


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6, 1e-9])
@pytest.mark.parametrize("f", [hs.Power(700), hs.Heat(300.0)], ids=str)
def test_the_error_on_the_spectrum_stays_below_the_tolerance(f, tol):
    A, lam = line(low=-0.3)
    X = np.ones((A.n, 60))
    Y = apply([f], A, X, tol=tol)[0]
    assert np.abs(Y - f(lam)[:, None]).max() <= tol
    rounded = line(low=-0.3)[0]
    apply([f], rounded, X)
    assert A.products < rounded.products


@pytest.mark.parametrize("tol", [None, 1e-6])
@pytest.mark.parametrize("filter", [hs.Power, hs.Heat])
def test_a_bank_costs_no_more_than_its_largest_time(filter, tol):
    bank = [filter(2**j) for j in range(1, 11)]
    (A, lam), (alone, _) = line(), line()
    X = np.broadcast_to(1.0, (A.n, 2))  # read-only
    blocks = apply(bank, A, X, tol)
    apply(bank[-1:], alone, X, tol)
    assert 0 < A.products <= 1.1 * alone.products <= 1.1 * np.sqrt(70 * 1024) + 32
    for f, block in zip(bank, blocks, strict=True):
        assert np.abs(block[:, 0] - f(lam)).max() <= (tol or 1e-12)


def test_distances_in_single_precision_agree_with_double():
    points = hs.datasets.swiss_roll(2400, rng=0)[0]
    d = hs.Diffusion.from_points(points, n_neighbors=15)
    matrix = sparse.csr_matrix(d.operator @ np.eye(d.n)).astype(np.float32)
    u = np.sqrt(d.measure / d.measure.sum())
    narrow = hs.Deflated(hs.Sparse(matrix, (-1.0, 1.0)), u)
    wide = hs.Deflated(hs.Sparse(matrix.astype(float), (-1.0, 1.0)), u)
    X = wide.project(normals(d.n, 32))
    i, j = np.random.default_rng(2).integers(0, d.n, (2, 5000))
    i, j = i[i != j], j[i != j]
    for p in (64, 1024):
        count = Counting(narrow)
        single = apply([hs.Power(p)], count, X)[0].astype(float)
        double = apply([hs.Power(p)], wide, X)[0]
        assert count.products <= min(p, 290)
        one = np.linalg.norm(single[i] - single[j], axis=1)
        other = np.linalg.norm(double[i] - double[j], axis=1)
        assert_allclose(one, other, rtol=1e-3)


def test_a_sum_of_powers_finds_a_low_end_that_is_the_largest(limits):
    """The interval is too wide; e^(-20 000 · .001) of its largest power is all that there is."""
    limits(all_eigenpairs=20)
    lam = np.append(np.linspace(-0.7, 0.9, 99), -0.999)
    A, f = hs.Dense(np.diag(lam), (-1.5, 1.5)), hs.Accumulated(20_000)
    X = np.random.default_rng(0).normal(size=(100, 3))
    expected = f(lam)[:, None] * X
    [image] = apply([f], A, X)
    assert_allclose(image, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
