"""Filters: identities of scalar functions, and three ways to apply them that must agree."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.sparse.linalg import expm_multiply
from scipy.special import ive
from scipy.stats import binom

import heatsketch as hs
from heatsketch.operators import Operator
from heatsketch.spectral import apply as filters
from heatsketch.spectral.apply import Block, apply, chebyshev_coefficients
from heatsketch.spectral.filters import Filter, make_filter

TIMES = (1e-3, 0.1, 1.0, 7.5, 1e2, 1e4)
POWERS = (1, 2, 3, 8, 101)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)
LAMBDAS = np.array([-1.0, -0.3, -1e-5, -1e-12, -1e-300, 0.0, 1e-300, 1e-12, 1e-5, 0.2, 0.999, 1.0])
ANY = [hs.Power(p) for p in (0, *POWERS)] + [hs.Heat(t) for t in TIMES]


def heat_quotient(t: float, lam: float) -> float:
    """(e^{-t(1-λ)} - e^{-t}) / λ as t e^{-t} ∫_0^1 e^{tλu} du, by Gauss's rule."""
    u = (NODES + 1) / 2
    return float(t * np.exp(-t * (1 - lam * u)) @ WEIGHTS / 2)


# Scalar identities


@pytest.mark.parametrize("f", [f for f in ANY if f != hs.Power(0)], ids=str)
def test_quotient_is_what_is_left_before_a_last_product(f: hs.Power | hs.Heat) -> None:
    whole, at_zero = f(LAMBDAS), f(np.zeros(1))
    rebuilt = at_zero + LAMBDAS * f.quotient()(LAMBDAS)
    # Below zero the sum cancels down from f(0).
    assert (np.abs(rebuilt - whole) <= 1e-12 * np.maximum(np.abs(whole), at_zero)).all()


@pytest.mark.parametrize("t", [1e-3, 0.1, 1.0, 7.5, 50.0])
def test_heat_quotient_keeps_its_digits_near_zero(t: float) -> None:
    # f = f(0) + λ q does not see q where λ is tiny; the integral does.
    lam = np.concatenate([LAMBDAS, np.linspace(-1, 1, 41), 0.5 / t * np.array([0.999, 1.001])])
    values = hs.Heat(t).quotient()(lam)
    np.testing.assert_allclose(values, [heat_quotient(t, v) for v in lam], rtol=1e-12)


@pytest.mark.parametrize("p", POWERS)
def test_power_quotient_is_the_power_before(p: int) -> None:
    assert hs.Power(p).quotient() == hs.Power(p - 1)


@pytest.mark.parametrize("f", [hs.Power(0), hs.Heat(0.0)], ids=str)
def test_time_zero_has_no_last_product(f: hs.Power | hs.Heat) -> None:
    with pytest.raises(ValueError, match="time"):
        f.quotient()


@pytest.mark.parametrize("f", [hs.Power(1), hs.Power(5), hs.Heat(0.5), hs.Heat(30.0)], ids=str)
def test_what_has_moved_is_all_but_the_value_at_zero(f: hs.Power | hs.Heat) -> None:
    at_zero = f(np.zeros(1))
    np.testing.assert_allclose(f.moved()(LAMBDAS), f(LAMBDAS) - at_zero, rtol=0, atol=1e-15)
    tiny = np.array([1e-12, -1e-12])  # f(0) = e^-t is far larger
    if isinstance(f, hs.Heat):
        np.testing.assert_allclose(f.moved()(tiny), f.t * np.exp(-f.t) * tiny, rtol=1e-9)
    with pytest.raises(ValueError, match="time=0"):
        hs.Power(0).moved()


MOVED = [hs.Heat(0.5).moved(), hs.Heat(90.0).moved()]


@pytest.mark.parametrize("lam", [LAMBDAS, LAMBDAS[:7] / 3, np.array([0.4, 0.9])], ids=len)
@pytest.mark.parametrize(
    "f", [*ANY, hs.Heat(0.5).quotient(), hs.Heat(90.0).quotient(), *MOVED], ids=str
)
def test_scaled_values_multiply_out_to_the_filter(f: Filter, lam: np.ndarray) -> None:
    values, log_scale = f.scaled(lam)
    assert np.isfinite(values).all()
    np.testing.assert_allclose(values * math.exp(log_scale), f(lam), rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("f", [hs.Power(10**6), hs.Heat(1e6)], ids=str)
def test_scaled_values_neither_under_nor_overflow(f: hs.Power | hs.Heat) -> None:
    for lam in (np.array([0.1, 0.5]), np.array([1.5, 2.0])):
        with np.errstate(over="ignore"):
            assert f(lam[1:])[0] in (0.0, np.inf)
        values, log_scale = f.scaled(lam)
        assert values.max() == pytest.approx(1.0)
        log_f = f.p * math.log(lam[1]) if isinstance(f, hs.Power) else -f.t * (1 - lam[1])
        assert log_scale == pytest.approx(log_f, rel=1e-14)


def test_zero_spectrum_scales_to_zero() -> None:
    values, log_scale = hs.Power(3).scaled(np.zeros(2))
    np.testing.assert_array_equal(values, 0.0)
    assert log_scale == 0.0
    np.testing.assert_array_equal(hs.Power(0).scaled(np.zeros(2))[0], 1.0)


@given(p=st.integers(0, 60), r=st.integers(0, 60), lam=st.floats(-1, 1))
def test_times_add(p: int, r: int, lam: float) -> None:
    x = np.array([lam])
    for f in (hs.Power, hs.Heat):
        np.testing.assert_allclose(f(p)(x) * f(r)(x), f(p + r)(x), rtol=1e-12, atol=1e-200)


@pytest.mark.parametrize(
    ("p", "error"), [(-0.5, ValueError), (np.nan, ValueError), (True, TypeError), ("2", TypeError)]
)
def test_a_power_is_a_number_from_zero(p: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"p=.*pass a"):
        hs.Power(p)  # type: ignore[arg-type]


@pytest.mark.parametrize("p", [3, 3.0, np.int64(3), np.float64(3.0)], ids=repr)
def test_a_whole_power_of_any_type_is_an_integer(p: int) -> None:
    assert hs.Power(p) == hs.Power(3)
    assert type(hs.Power(p).p) is int


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: hs.Power(-1), ValueError),
        (lambda: hs.Power(True), TypeError),
        (lambda: hs.Heat(-0.1), ValueError),
        (lambda: hs.Heat(math.nan), ValueError),
        (lambda: hs.Heat(math.inf), ValueError),
        (lambda: hs.Heat("1"), TypeError),  # type: ignore[arg-type]
        (lambda: make_filter("warm", 1), ValueError),
    ],
)
def test_bad_times_are_refused(make: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="pass"):
        make()  # type: ignore[operator]


def test_filters_have_names() -> None:
    assert make_filter("power", 3) == hs.Power(3)
    assert make_filter("heat", 3) == hs.Heat(3.0)


# Chebyshev series


@pytest.mark.parametrize(
    "interval", [(-1.0, 1.0), (0.0, 1.0), (-0.2, 1.0), (0.3, 0.4), (-3.0, 2.0)]
)
@pytest.mark.parametrize("f", [*ANY, hs.Heat(90.0).quotient()], ids=str)
def test_coefficients_give_the_filter_back(f: Filter, interval: tuple[float, float]) -> None:
    low, high = interval
    tol = 1e-12
    c, log_scale = chebyshev_coefficients(f, interval, tol)
    x = np.linspace(-1, 1, 301)
    lam = (high - low) / 2 * x + (high + low) / 2
    values, log_peak = f.scaled(np.append(lam, interval))
    assert log_scale == pytest.approx(log_peak, rel=1e-12)
    # What is left out: at most tol each, falling geometrically over the last eighth or more.
    series = np.polynomial.chebyshev.chebval(x, c)
    np.testing.assert_allclose(series, values[:-2], rtol=0, atol=100 * tol * np.abs(values).max())


@pytest.mark.parametrize("t", [10.0, 1e3, 1e4])
def test_degree_grows_like_the_root_of_time(t: float) -> None:
    # e^{t(x-1)} has the coefficients 2 e^{-t} I_j(t), below tol from j = √(2 t ln(2/tol)) on.
    tol = 1e-10
    c, log_scale = chebyshev_coefficients(hs.Heat(t), (-1.0, 1.0), tol)
    exact = 2 * ive(np.arange(len(c)), t)
    exact[0] /= 2
    assert log_scale == 0.0
    np.testing.assert_allclose(c, exact, atol=1e-14 * math.sqrt(t), rtol=0)
    assert 2 * ive(len(c), t) <= tol * 1.001
    assert len(c) <= math.sqrt(2 * t * math.log(2 / tol)) + 20


def test_a_time_beyond_all_degrees_is_refused() -> None:
    with pytest.raises(ValueError, match="smaller time"):
        chebyshev_coefficients(hs.Heat(1e12), (-1.0, 1.0), 1e-15)


# Applying filters


def by_eigh(filters: Sequence[Filter], matrix: np.ndarray, X: np.ndarray) -> list[np.ndarray]:
    lam, V = np.linalg.eigh(matrix)
    return [V @ (f(lam)[:, None] * (V.T @ X)) for f in filters]


def multiplied(block: Block) -> np.ndarray:
    return block.values * math.exp(block.log_scale)


def cloud_operator(n: int = 120) -> hs.Scaled:
    points = np.random.default_rng(0).standard_normal((n, 2))
    return hs.symmetric_normalize(hs.Kernel(points, 0.5))


def random_block(n: int, k: int = 3) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((n, k))


def relative_error(Y: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(Y - expected) / np.linalg.norm(expected))


SOME: list[Filter] = [hs.Power(0), hs.Power(1), hs.Power(7), hs.Power(64)]
SOME += [hs.Heat(0.0), hs.Heat(0.7), hs.Heat(40.0), hs.Heat(5.0).quotient(), hs.Heat(5.0).moved()]


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
        ways.append(filters._by_products({0: f.p}, A, X)[0])
    for block in ways:
        assert relative_error(multiplied(block), expected) < 1e-10


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
        Y = multiplied(apply([f], A, X[:, :k])[0])
        assert taken == [way]
        assert relative_error(Y, by_eigh([f], A @ np.eye(A.n), X[:, :k])[0]) < 1e-10


@pytest.mark.parametrize("k", [None, 1, 4])
def test_a_bank_is_its_filters_one_by_one(k: int | None) -> None:
    A = cloud_operator()
    X = random_block(A.n, k or 1)
    X = X[:, 0] if k is None else X
    for f, block in zip(SOME, apply(SOME, A, X), strict=True):
        single = apply([f], A, X)[0]
        assert block.values.shape == X.shape
        assert relative_error(multiplied(block), multiplied(single)) < 1e-12


@given(p=st.integers(0, 12), r=st.integers(0, 12))
def test_first_p_steps_then_r_more_are_p_plus_r_steps(p: int, r: int) -> None:
    A = cloud_operator(40)
    X = random_block(40)
    for f in (hs.Power, hs.Heat):
        middle = multiplied(apply([f(p)], A, X)[0])
        Y = multiplied(apply([f(r)], A, middle)[0])
        assert relative_error(Y, multiplied(apply([f(p + r)], A, X)[0])) < 1e-12


@given(a=st.floats(-1e3, 1e3), b=st.floats(-1e3, 1e3), f=st.sampled_from(SOME))
def test_apply_is_linear(a: float, b: float, f: Filter) -> None:
    A = cloud_operator(40)
    X, Y = random_block(40), np.random.default_rng(2).standard_normal((40, 3))
    fX, fY, fXY = (multiplied(apply([f], A, Z)[0]) for Z in (X, Y, a * X + b * Y))
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
        assert relative_error(multiplied(sharp), exact) < 1e-11
        # On an interval too wide what rounds is the largest f on it.
        peak = math.exp(rough.log_scale) * np.linalg.norm(X)
        assert np.linalg.norm(multiplied(rough) - exact) < 1e-14 * peak


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
    values, log_scale, _ = apply([hs.Power(p)], A, X)[0]
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
    short, long = filters._by_products({0: 1000, 1: 9000}, A, X).values()
    log_ratio = math.log(np.linalg.norm(long.values) / np.linalg.norm(short.values))
    log_ratio += long.log_scale - short.log_scale
    assert lam[1] ** 9000 == 0.0  # what plain float64 would have said
    assert log_ratio == pytest.approx(8000 * math.log(lam[1]), rel=1e-10)


def test_products_do_not_overflow_either() -> None:
    A = hs.Dense(np.diag([100.0, 50.0]))
    block = filters._by_products({0: 1000}, A, np.ones((2, 1)))[0]
    assert block.log_scale + math.log(block.values[0, 0]) == pytest.approx(1000 * math.log(100))


@pytest.mark.parametrize("f", [hs.Power(2000), hs.Heat(800.0)], ids=str)
def test_an_interval_far_too_wide_costs_no_digits(f: hs.Power | hs.Heat) -> None:
    # On [-3, 3] the filter reaches 3^2000 or e^1600, where all eigenvalues are below 1.
    n = 150
    matrix = cloud_operator(n) @ np.eye(n)
    A = hs.Dense(matrix, (-3.0, 3.0))
    X = random_block(n, 1)
    assert relative_error(multiplied(apply([f], A, X)[0]), by_eigh([f], matrix, X)[0]) < 1e-9


@pytest.mark.parametrize("t", [500.0, 5000.0])
def test_heat_that_leaves_next_to_nothing_keeps_its_digits(t: float) -> None:
    # e^{-t(1-λ)} is below e^{-190} and e^{-1900}; one column goes through Chebyshev.
    lam = np.linspace(0.1, 0.62, 200)
    X = np.ones((200, 1))
    A = hs.Sparse(sparse.diags(lam).tocsr(), (-1.0, 1.0))
    values, log_scale, _ = apply([hs.Heat(t)], A, X)[0]
    visible = lam > lam[-1] - 20 / t
    log_values = np.log(values[visible, 0]) + log_scale
    np.testing.assert_allclose(log_values, -t * (1 - lam[visible]), rtol=0, atol=1e-4)
    assert log_values[-1] == pytest.approx(-t * (1 - lam[-1]), abs=1e-8)


# Blocks


def test_a_block_multiplies_out() -> None:
    values = np.array([[1.0, -2.0]])
    assert Block(values, 0.0).unscaled() is values
    np.testing.assert_allclose(Block(values, -100.0).unscaled(), values * np.exp(-100), rtol=1e-13)
    # e^log_scale alone is beyond float64, the product is not
    np.testing.assert_allclose(
        Block(values * 1e-200, 800.0).unscaled(),
        values * np.exp(800 - 200 * np.log(10)),
        rtol=1e-12,
    )


@pytest.mark.parametrize("log_scale", [-720.0, -1e5, 800.0])
def test_a_block_beyond_float64_is_refused(log_scale: float) -> None:
    with pytest.raises(ValueError, match=r"result is of size e\^.*smaller time"):
        Block(np.ones((2, 2)), log_scale).unscaled()


@pytest.mark.parametrize("log_scale", [-80.0, 100.0])
def test_float32_blocks_have_limits_of_their_own(log_scale: float) -> None:
    with pytest.raises(ValueError, match="float32"):
        Block(np.ones((2, 2), dtype=np.float32), log_scale).unscaled()
    assert np.isfinite(Block(np.ones((2, 2)), log_scale).unscaled()).all()


@pytest.mark.parametrize("f", SOME, ids=str)
def test_float32_stays_float32_on_every_way(f: Filter) -> None:
    n = 120
    matrix = (cloud_operator(n) @ np.eye(n)).astype(np.float32)
    A, X = hs.Dense(matrix), random_block(n).astype(np.float32)
    ways = [filters._by_eigenpairs([f], A, X)[0], filters._by_chebyshev([f], A, X, (-1.0, 1.0))[0]]
    if isinstance(f, hs.Power):
        ways.append(filters._by_products({0: f.p}, A, X)[0])
    expected = by_eigh([f], matrix.astype(float), X.astype(float))[0]
    for block in ways:
        assert block.unscaled().dtype == np.float32
        assert relative_error(block.unscaled(), expected) < 1e-3


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
    found = filters.apply([hs.Power(p)], A, X)[0].unscaled()
    assert found.dtype == np.float32
    assert np.abs(found - exact).max() < 4 * p * 6e-8 * np.abs(exact).max()


def test_heat_on_a_wide_spectrum_goes_through_eigenpairs_where_they_can_be_had():
    """e^{-tL}, L = I - A an unnormalised Laplacian, as large as float64 allows."""
    n = 120
    L = 1e8 * (np.diag(np.full(n, 2.0)) - np.eye(n, k=1) - np.eye(n, k=-1))
    L[0, 0] = L[-1, -1] = 1e8
    X = np.random.default_rng(0).normal(size=(n, 2))
    found = filters.apply([hs.Heat(1.0)], hs.Dense(np.eye(n) - L), X)[0].unscaled()
    assert_allclose(found, np.broadcast_to(X.mean(axis=0), (n, 2)), atol=1e-6)


def test_the_quotient_does_not_overflow_where_its_result_does_not():
    with np.errstate(all="raise", under="ignore"):
        for lam in ([0.0, 0.5, 0.9], [-0.9, -0.1, 0.0], [0.0]):
            values, log_scale = hs.Heat(1e5).quotient().scaled(np.array(lam))
            assert np.isfinite(values).all()
            assert np.isfinite(log_scale)


# Tolerance, banks, and how many products they take


class Counting:
    """An operator that counts the products of blocks and of single vectors."""

    def __init__(self, A: Operator) -> None:
        self.A, self.blocks, self.vectors = A, 0, 0
        self.n, self.dtype, self.spectrum = A.n, A.dtype, A.spectrum

    def asarray(self, X: np.ndarray) -> np.ndarray:
        return self.A.asarray(X)

    def __matmul__(self, X: np.ndarray) -> np.ndarray:
        self.blocks += X.ndim == 2
        self.vectors += X.ndim == 1
        return self.A @ X


def line(n: int = 2400, low: float = -1.0, high: float = 1.0) -> tuple[hs.Sparse, np.ndarray]:
    """A diagonal operator: f(A) is f of the diagonal."""
    lam = np.linspace(low, high, n)
    return hs.Sparse(sparse.diags(lam).tocsr(), (-1.0, 1.0)), lam


@pytest.mark.parametrize(("p", "most"), [(256, 78), (1024, 156), (4096, 312)])
def test_a_power_to_a_tolerance_takes_the_root_of_its_products(p: int, most: int) -> None:
    A, lam = line()
    count = Counting(A)
    X = np.ones((A.n, 1))
    Y = multiplied(filters._by_chebyshev([hs.Power(p)], count, X, A.spectrum, tol=1e-6)[0])
    assert count.blocks <= most
    assert np.abs(Y[:, 0] - lam**p).max() <= 1e-6


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6, 1e-9])
@pytest.mark.parametrize("f", [hs.Power(700), hs.Heat(300.0)], ids=str)
def test_the_error_on_the_spectrum_stays_below_the_tolerance(f: Filter, tol: float) -> None:
    A, lam = line(low=-0.3)
    count, exact = Counting(A), f(lam)
    Y = multiplied(apply([f], count, np.ones((A.n, 60)), tol=tol)[0])
    assert np.abs(Y - exact[:, None]).max() <= tol
    rounded = Counting(A)
    apply([f], rounded, np.ones((A.n, 60)))
    assert count.blocks < rounded.blocks


def test_the_tolerance_is_relative_to_the_spectrum_not_to_the_interval() -> None:
    # The largest eigenvalue is 0.98: there λ^1000 is 1.7e-9 of what it is at 1.
    A, lam = line(low=-0.3, high=0.98)
    Y = multiplied(apply([hs.Power(1000)], A, np.ones((A.n, 40)), tol=1e-3)[0])
    assert np.abs(Y[:, 0] - lam**1000).max() <= 1e-3 * 0.98**1000


def test_a_left_out_tail_is_bounded_by_its_sum() -> None:
    # The coefficients of x^p are binomial: those of the walk of p steps, twice.
    p, tol = 1024, 1e-6
    c, _ = chebyshev_coefficients(hs.Power(p), (-1.0, 1.0), tol)
    j = np.arange(0, p + 1, 2)
    exact = 2 * binom.pmf((p - j) // 2, p, 0.5)
    exact[0] /= 2
    np.testing.assert_allclose(c[::2], exact[: len(c[::2])], atol=1e-13)
    left_out = exact[len(c[::2]) :].sum()
    assert left_out <= tol < left_out + abs(c[-1])


def test_a_narrower_spectrum_takes_fewer_products() -> None:
    A, lam = line(low=-0.2)
    count = Counting(A)
    Y = multiplied(apply([hs.Power(1024)], count, np.ones((A.n, 64)), tol=1e-6)[0])
    assert 0 < count.vectors <= 40
    assert count.blocks <= 130  # 156 on [-1, 1], 111 on [0, 1]
    assert np.abs(Y[:, 0] - lam**1024).max() <= 1e-6


def test_a_bank_takes_one_recurrence() -> None:
    A, lam = line()
    bank = [hs.Power(2**i) for i in range(1, 11)]
    count = Counting(A)
    blocks = apply(bank, count, np.ones((A.n, 1)), tol=1e-6)
    # 156 on [-1, 1]; but the tolerance is next to max f on the spectrum: 40 steps see 0.2 of it.
    assert count.blocks <= 170
    for f, block in zip(bank, blocks, strict=True):
        assert np.abs(multiplied(block)[:, 0] - f(lam)).max() <= 1e-6


def test_a_small_bank_takes_plain_products() -> None:
    A, lam = line()
    count = Counting(A)
    blocks = apply([hs.Power(p) for p in (1, 2, 4, 8)], count, np.ones((A.n, 1)))
    assert count.blocks == 8
    assert_allclose(multiplied(blocks[3])[:, 0], lam**8, rtol=1e-14)


@pytest.mark.parametrize("p", [64, 1024])
def test_distances_in_single_precision_agree_with_double(p: int) -> None:
    points = hs.datasets.swiss_roll(2400, rng=0)[0]
    d = hs.Diffusion.from_points(points, n_neighbors=15)
    matrix = sparse.csr_matrix(d.operator @ np.eye(d.n)).astype(np.float32)
    u = np.sqrt(d.measure / d.measure.sum())
    narrow = hs.Deflated(hs.Sparse(matrix, (-1.0, 1.0)), u)
    wide = hs.Deflated(hs.Sparse(matrix.astype(float), (-1.0, 1.0)), u)
    X = wide.project(random_block(d.n, 32))
    count = Counting(narrow)
    single = multiplied(apply([hs.Power(p)], count, X)[0]).astype(float)
    double = multiplied(apply([hs.Power(p)], wide, X)[0])
    assert count.blocks <= min(p, 290)
    i, j = np.random.default_rng(2).integers(0, d.n, (2, 5000))
    i, j = i[i != j], j[i != j]
    one = np.linalg.norm(single[i] - single[j], axis=1)
    other = np.linalg.norm(double[i] - double[j], axis=1)
    assert_allclose(one, other, rtol=1e-3)
