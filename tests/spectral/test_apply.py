"""Applying filters: three ways that must agree, at small and large times, in any precision."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.sparse.linalg import expm_multiply
from scipy.special import ive

import heatsketch as hs
from heatsketch.operators import Operator
from heatsketch.spectral import apply as filters
from heatsketch.spectral.apply import apply, log_peak, on_scale
from heatsketch.spectral.filters import Filter
from problems.filtered import (
    SOME,
    by_eigh,
    cloud_operator,
    random_block,
    relative_error,
)

# The three ways


@pytest.mark.parametrize("f", SOME, ids=str)
@pytest.mark.parametrize("deflated", [False, True], ids=["whole", "deflated"])
def test_products_eigenpairs_and_chebyshev_agree(f: Filter, deflated: bool) -> None:
    S = cloud_operator()
    A: Operator = hs.Deflated(S, S.leading) if deflated else S
    X = random_block(A.n)
    X = A.project(X) if isinstance(A, hs.Deflated) else X
    expected = by_eigh([f], A @ np.eye(A.n), X)[0]
    ways = [filters._by_eigenpairs([f], A, X)[0], filters._by_chebyshev([f], A, X, A.spectrum)[0]]
    if isinstance(f, hs.Power):
        ways.append(filters._by_products([f], {0: f.p}, A, X)[0])
    for block in ways:
        assert relative_error(block, expected) < 1e-10


def test_apply_takes_each_of_the_three_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    for name in ("_by_eigenpairs", "_by_chebyshev", "_by_products"):
        way = getattr(filters, name)

        def spy(*args: object, name: str = name, way: object = way) -> object:
            if args[0]:
                taken.append(name)
            return way(*args)  # type: ignore[operator]

        monkeypatch.setattr(filters, name, spy)
    A = cloud_operator()
    X = random_block(A.n, 40)
    for f, k, way in [
        (hs.Power(3), 1, "_by_products"),
        (hs.Heat(2.0), 1, "_by_chebyshev"),
        (hs.Heat(500.0), 40, "_by_eigenpairs"),
        (hs.Power(5000), 40, "_by_eigenpairs"),
    ]:
        taken.clear()
        Y = apply([f], A, X[:, :k])[0]
        assert taken == [way]
        assert relative_error(Y, by_eigh([f], A @ np.eye(A.n), X[:, :k])[0]) < 1e-10


@pytest.mark.parametrize("k", [None, 1, 4])
def test_a_bank_is_its_filters_one_by_one(k: int | None) -> None:
    A = cloud_operator()
    X = random_block(A.n, k or 1)
    X = X[:, 0] if k is None else X
    for f, block in zip(SOME, apply(SOME, A, X), strict=True):
        single = apply([f], A, X)[0]
        assert block.shape == X.shape
        assert relative_error(block, single) < 1e-12


@given(p=st.integers(0, 12), r=st.integers(0, 12))
def test_first_p_steps_then_r_more_are_p_plus_r_steps(p: int, r: int) -> None:
    A = cloud_operator(40)
    X = random_block(40)
    for f in (hs.Power, hs.Heat):
        middle = apply([f(p)], A, X)[0]
        Y = apply([f(r)], A, middle)[0]
        assert relative_error(Y, apply([f(p + r)], A, X)[0]) < 1e-12


@given(a=st.floats(-1e3, 1e3), b=st.floats(-1e3, 1e3), f=st.sampled_from(SOME))
def test_apply_is_linear(a: float, b: float, f: Filter) -> None:
    A = cloud_operator(40)
    X, Y = random_block(40), np.random.default_rng(2).standard_normal((40, 3))
    fX, fY, fXY = (apply([f], A, Z)[0] for Z in (X, Y, a * X + b * Y))
    size = abs(a) * np.linalg.norm(fX) + abs(b) * np.linalg.norm(fY)
    assert np.linalg.norm(fXY - (a * fX + b * fY)) <= 1e-12 * size


def test_the_block_given_is_not_modified() -> None:
    A = cloud_operator()
    X = random_block(A.n)
    before = X.copy()
    X.flags.writeable = False
    apply([hs.Power(3), hs.Heat(4.0), hs.Power(900)], A, X)
    np.testing.assert_array_equal(X, before)


def test_heat_of_a_large_sparse_graph_is_the_matrix_exponential() -> None:
    n = 2400  # beyond the limit for all eigenpairs
    rng = np.random.default_rng(3)
    links = sparse.coo_matrix((rng.random(6 * n), rng.integers(0, n, (2, 6 * n))), shape=(n, n))
    K = (links + links.T + sparse.eye(n)).tocsr()
    A = hs.symmetric_normalize(K)
    X = random_block(n)
    bank = [hs.Heat(t) for t in (0.3, 5.0, 60.0)]
    known, wide = hs.Sparse(A, (-1.0, 1.0)), hs.Sparse(A)
    assert wide.spectrum[1] > 1.05
    for f, sharp, rough in zip(bank, apply(bank, known, X), apply(bank, wide, X), strict=True):
        exact = expm_multiply(f.t * (A - sparse.eye(n)).tocsr(), X)
        assert relative_error(sharp, exact) < 1e-11
        # On an interval too wide what rounds is the largest f on it.
        peak = math.exp(log_peak(f, np.array(wide.spectrum))) * np.linalg.norm(X)
        assert np.linalg.norm(rough - exact) < 1e-14 * peak


# Large times


def circle(n: int, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """The bistochastic circle and its eigenvalues I_m(2/ε)/I_0(2/ε), m = 0, 1, 1, 2, 2, ..."""
    angles = 2 * np.pi * np.arange(n) / n
    squared = 2 - 2 * np.cos(angles[:, None] - angles)
    K = np.exp(-squared / epsilon)
    m = (np.arange(n) + 1) // 2
    return K / K.sum(axis=1, keepdims=True), ive(m, 2 / epsilon) / ive(0, 2 / epsilon)


@pytest.mark.parametrize("p", [10**3, 10**6])
def test_a_million_steps_are_right_in_logs(p: int) -> None:
    n, epsilon = 60, 0.5
    matrix, lam = circle(n, epsilon)
    A = hs.Deflated(hs.Dense(matrix), np.full(n, n**-0.5))
    X = A.project(random_block(n))
    # The next eigenvalue after the first pair is less than 0.7 of it: all that is left is the pair.
    angles = 2 * np.pi * np.arange(n) / n
    pair = np.stack([np.cos(angles), np.sin(angles)], axis=1) * math.sqrt(2 / n)
    expected = pair @ (pair.T @ X)
    f, log_scale = on_scale(hs.Power(p), A)
    (values,) = apply([f], A, X)
    assert np.isfinite(values).all()
    log_size = log_scale + math.log(np.linalg.norm(values))
    # Eigenvalues are known to a few roundings, and each of them counts p times.
    log_exact = p * math.log(lam[1]) + math.log(np.linalg.norm(expected))
    assert log_size == pytest.approx(log_exact, abs=p * 2e-15 + 1e-12)
    direction = values / np.linalg.norm(values)
    np.testing.assert_allclose(direction, expected / np.linalg.norm(expected), atol=1e-10)


def test_products_do_not_underflow_either() -> None:
    matrix, lam = circle(60, 0.5)
    A = hs.Deflated(hs.Dense(matrix), np.full(60, 60**-0.5))
    X = A.project(random_block(60))
    found, log_scales = zip(*(on_scale(hs.Power(p), A) for p in (1000, 9000)), strict=True)
    short, long = filters._by_products(found, {0: 1000, 1: 9000}, A, X).values()
    log_ratio = math.log(np.linalg.norm(long) / np.linalg.norm(short))
    log_ratio += log_scales[1] - log_scales[0]
    assert lam[1] ** 9000 == 0.0  # what plain float64 would have said
    assert log_ratio == pytest.approx(8000 * math.log(lam[1]), rel=1e-10)


def test_products_do_not_overflow_either() -> None:
    A = hs.Dense(np.diag([100.0, 50.0]))
    f, log_scale = on_scale(hs.Power(1000), A)
    block = filters._by_products([f], {0: 1000}, A, np.ones((2, 1)))[0]
    assert log_scale + math.log(block[0, 0]) == pytest.approx(1000 * math.log(100))


@pytest.mark.parametrize("f", [hs.Power(2000), hs.Heat(800.0)], ids=str)
def test_an_interval_far_too_wide_costs_no_digits(f: hs.Power | hs.Heat) -> None:
    # On [-3, 3] the filter reaches 3^2000 or e^1600, where all eigenvalues are below 1.
    n = 150
    matrix = cloud_operator(n) @ np.eye(n)
    A = hs.Dense(matrix, (-3.0, 3.0))
    X = random_block(n, 1)
    assert relative_error(apply([f], A, X)[0], by_eigh([f], matrix, X)[0]) < 1e-9


@pytest.mark.parametrize("t", [500.0, 5000.0])
def test_heat_that_leaves_next_to_nothing_keeps_its_digits(t: float) -> None:
    # e^{-t(1-λ)} is below e^{-190} and e^{-1900}; one column goes through Chebyshev.
    lam = np.linspace(0.1, 0.62, 200)
    X = np.ones((200, 1))
    A = hs.Sparse(sparse.diags(lam).tocsr(), (-1.0, 1.0))
    f, log_scale = on_scale(hs.Heat(t), A)
    (values,) = apply([f], A, X)
    visible = lam > lam[-1] - 20 / t
    log_values = np.log(values[visible, 0]) + log_scale
    np.testing.assert_allclose(log_values, -t * (1 - lam[visible]), rtol=0, atol=1e-4)
    assert log_values[-1] == pytest.approx(-t * (1 - lam[-1]), abs=1e-8)


@pytest.mark.parametrize("p", [1, 16, 300])
def test_the_scale_is_one_unless_numbers_do_not_suffice(p: int) -> None:
    A = hs.Deflated(hs.Dense(circle(60, 0.5)[0]), np.full(60, 60**-0.5))
    assert on_scale(hs.Power(p), A) == (hs.Power(p), 0.0)


def test_float32_has_limits_of_its_own() -> None:
    matrix, lam = circle(60, 0.5)
    single = hs.Deflated(hs.Dense(matrix.astype(np.float32)), np.full(60, 60**-0.5))
    double = hs.Deflated(hs.Dense(matrix), np.full(60, 60**-0.5))
    p = round(-100 / math.log(lam[1]))  # e^-100
    assert on_scale(hs.Power(p), double)[1] == 0.0
    f, log_scale = on_scale(hs.Power(p), single)
    assert log_scale == pytest.approx(-100, abs=1)
    assert 1e-3 < np.abs(apply([f], single, single.project(random_block(60)))[0]).max() < 10


@pytest.mark.parametrize("f", SOME, ids=str)
def test_float32_stays_float32_on_every_way(f: Filter) -> None:
    n = 120
    matrix = (cloud_operator(n) @ np.eye(n)).astype(np.float32)
    A, X = hs.Dense(matrix), random_block(n).astype(np.float32)
    ways = [filters._by_eigenpairs([f], A, X)[0], filters._by_chebyshev([f], A, X, (-1.0, 1.0))[0]]
    if isinstance(f, hs.Power):
        ways.append(filters._by_products([f], {0: f.p}, A, X)[0])
    expected = by_eigh([f], matrix.astype(float), X.astype(float))[0]
    for block in ways:
        assert block.dtype == np.float32
        assert relative_error(block, expected) < 1e-3


@pytest.mark.parametrize("p", [400, 3000])
def test_powers_in_single_precision_keep_the_digits_of_plain_products(p):
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(2500, 30)))[0].astype(np.float32)
    values = np.concatenate([1 - np.geomspace(1e-5, 1e-2, 29), [1.0]])
    A = hs.LowRank((Q * np.sqrt(values)).astype(np.float32), (0.0, 1.0))
    X = rng.normal(size=(2500, 4)).astype(np.float32)
    exact = X.astype(float)
    F = A.factor.astype(float)
    gram = np.linalg.matrix_power(F.T @ F, p - 1)  # (FFᵀ)^p = F (FᵀF)^(p-1) Fᵀ
    exact = F @ (gram @ (F.T @ exact))
    found = filters.apply([hs.Power(p)], A, X)[0]
    assert found.dtype == np.float32
    assert np.abs(found - exact).max() < 4 * p * 6e-8 * np.abs(exact).max()


def test_heat_on_a_wide_spectrum_goes_through_eigenpairs_where_they_can_be_had():
    """e^{-tL}, L = I - A an unnormalised Laplacian, as large as float64 allows."""
    n = 120
    L = 1e8 * (np.diag(np.full(n, 2.0)) - np.eye(n, k=1) - np.eye(n, k=-1))
    L[0, 0] = L[-1, -1] = 1e8
    X = np.random.default_rng(0).normal(size=(n, 2))
    found = filters.apply([hs.Heat(1.0)], hs.Dense(np.eye(n) - L), X)[0]
    assert_allclose(found, np.broadcast_to(X.mean(axis=0), (n, 2)), atol=1e-6)


def test_the_quotient_does_not_overflow_where_its_result_does_not():
    with np.errstate(all="raise", under="ignore"):
        for lam in ([0.0, 0.5, 0.9], [-0.9, -0.1, 0.0], [0.0]):
            values, log_scale = hs.Heat(1e5).quotient().scaled(np.array(lam))
            assert np.isfinite(values).all()
            assert np.isfinite(log_scale)
