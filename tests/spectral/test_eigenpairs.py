"""Eigenpairs against closed forms, dense and by iteration, with residuals that are honest."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import heatsketch as hs
from heatsketch.spectral import eigen
from heatsketch.spectral.eigen import DENSE_LIMIT, _rayleigh_ritz, all_eigenpairs, leading_vector
from problems.checks import same_for_any_threads
from problems.clouds import cloud, even_angles, on_circle
from problems.counting import Counting
from problems.estimators import operator_of
from problems.spectra import PROBLEMS, circle, lazy_torus, lazy_torus_eigenvalues, problem

LARGE = DENSE_LIMIT + 100  # goes through the iteration
SIZES = pytest.mark.parametrize("n", [100, LARGE], ids=["dense", "iteration"])


def assert_honest(spectrum: eigen.Spectrum, A: object) -> None:
    """Orthonormal, descending, and with the residuals that one product shows."""
    values, vectors, residuals = spectrum
    k = len(values)
    assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-10)
    assert (np.diff(values) <= 1e-12).all()
    again = np.linalg.norm(A @ vectors - vectors * values, axis=0)  # type: ignore[operator]
    assert_allclose(residuals, again, rtol=1e-6, atol=1e-13)
    assert residuals.max() < 1e-7


@SIZES
@pytest.mark.parametrize(("epsilon", "affinity"), [(0.1, hs.gaussian_affinity), (0.6, hs.Kernel)])
def test_circle_has_bessel_eigenvalues_twice_each(n, epsilon, affinity) -> None:
    A, exact = circle(n, epsilon, affinity)
    spectrum = hs.eigh(A, 9, rng=0)
    assert_allclose(spectrum.values, exact[:9], atol=1e-10)
    assert_honest(spectrum, A)
    # Eigenvectors 2m-1 and 2m span cos mφ and sin mφ.
    for m in (1, 4):
        pair = on_circle(m * even_angles(n)) * np.sqrt(2 / n)
        overlap = pair.T @ spectrum.vectors[:, 2 * m - 1 : 2 * m + 1]
        assert_allclose(overlap @ overlap.T, np.eye(2), atol=1e-8)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("k", [1, 4, 10])
def test_eigenvalues_are_those_known(name, k):
    A, values = problem(name)
    found = hs.eigh(A, k, rng=0)
    assert_allclose(found.values, values[:k], rtol=0, atol=1e-12)
    assert_allclose(A @ found.vectors, found.vectors * found.values, rtol=0, atol=1e-10)


@SIZES
def test_signs_and_values_are_the_same_every_time(n: int) -> None:
    A = hs.Sparse(sparse.diags(np.linspace(-1, 1, n) ** 3).tocsr())
    A = hs.Deflated(A, np.full(n, n**-0.5))
    first, again, other_start = (hs.eigh(A, 4, rng=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.vectors, again.vectors)
    assert_allclose(other_start.vectors, first.vectors, atol=1e-5)
    largest = np.argmax(np.abs(first.vectors), axis=0)
    assert (first.vectors[largest, np.arange(4)] > 0).all()


@pytest.mark.parametrize(
    ("A", "k", "message"),
    [
        (np.eye(5), 6, "n_components=6 .* pass n_components <= 5"),
        (hs.Deflated(hs.Dense(np.eye(5)), np.eye(5)[0]), 5, "at least 6 .*n_components <= 4"),
        (np.eye(5), 0, "n_components=0 is out of range"),
        (np.ones((2, 3)), 1, "square"),
    ],
    ids=["more-than-points", "more-than-deflation-leaves", "none", "not-square"],
)
def test_bad_arguments_are_refused(A: object, k: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hs.eigh(A, k)


def test_stopping_short_warns_and_says_how_far_off_it_is(limits) -> None:
    # Eigenvalues crowded at the top: 1 - j²/n², far too close for a few products.
    n = LARGE
    A = sparse.diags(1 - (np.arange(n) / n) ** 2).tocsr()
    limits(products=1)
    with pytest.warns(UserWarning, match="residuals up to .* after 1 products; read .residuals"):
        spectrum = hs.eigh(A, 4, rng=0)
    again = np.linalg.norm(A @ spectrum.vectors - spectrum.vectors * spectrum.values, axis=0)
    assert_allclose(spectrum.residuals, again, rtol=1e-9)
    assert spectrum.residuals.max() > 1e-8
    exact = 1 - (np.arange(n) / n) ** 2
    for value, residual in zip(spectrum.values, spectrum.residuals, strict=True):
        assert np.abs(exact - value).min() <= residual


# The leading vector


@pytest.mark.parametrize("kind", ["array", "sparse", "operator", "bistochastic"])
def test_leading_vector_is_the_root_of_the_stationary_measure(kind: str) -> None:
    K = hs.gaussian_affinity(cloud(80, 2), 0.5)
    A = hs.symmetric_normalize(K)
    operator = {
        "array": lambda: hs.Dense(A),
        "sparse": lambda: hs.Sparse(sparse.csr_matrix(A)),
        "operator": lambda: hs.symmetric_normalize(hs.Kernel(cloud(80, 2), 0.5)),
        "bistochastic": lambda: hs.Dense(hs.bistochastic_normalize(K, tol=1e-12)),
    }[kind]()
    u = leading_vector(operator)
    assert np.linalg.norm(u) == pytest.approx(1.0, rel=1e-12)
    measure = operator_of(K, "bistochastic" if kind == "bistochastic" else "symmetric")[1]
    assert_allclose(u, np.sqrt(measure), atol=1e-8)


def test_a_guess_that_is_an_eigenvector_but_not_the_leading_one_is_passed_over() -> None:
    ones, other = np.full(4, 0.5), np.array([1.0, -1.0, 1.0, -1.0]) / 2
    A = hs.Dense(0.3 * np.multiply.outer(ones, ones) + 0.9 * np.multiply.outer(other, other))
    for B in (A, hs.Scaled(A, np.ones(4), leading=ones)):
        assert_allclose(leading_vector(B) * np.sign(leading_vector(B) @ other), other, atol=1e-12)


@pytest.mark.parametrize("factor", [900.0, 1e4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_bound_far_above_the_top_does_not_keep_eigh_from_it(factor, dtype):
    n, top = 1500, np.array([3.0, 2.0, 1.5])
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(n, 40)))[0]
    values = np.concatenate([top, np.linspace(1, 0.01, 37)])
    F = (Q * np.sqrt(values)).astype(dtype)
    found = hs.eigh(hs.LowRank(F, (0.0, 3.0 * factor)), 3, rng=0)
    assert (np.abs(found.values - top) <= found.residuals + 100 * np.finfo(dtype).eps).all()
    assert found.residuals.max() <= 3 * max(1e-8, 50 * np.finfo(dtype).eps * (1 + factor / 10))


def test_deflation_does_not_depend_on_the_size_of_the_operator():
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(20, 20)))[0]
    values = np.linspace(1.0, 0.05, 20)
    for size in (1.0, 1e-12, 1e-100):
        A = hs.Deflated(hs.Dense(size * (Q * values) @ Q.T), Q[:, 0])
        assert_allclose(hs.eigh(A, 5).values / size, values[1:6], rtol=1e-12)


def test_a_leading_vector_in_single_precision_has_unit_length_in_double():
    """A float32 vector has length 1 to 1e-8 only, and columns to deflate must have it to 1e-13."""
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(80, 2))
        A = hs.symmetric_normalize(hs.Kernel(X, 10.0))
        single = hs.Scaled(A.A, A.s, A.spectrum, leading=A.leading.astype(np.float32))
        assert np.linalg.norm(leading_vector(single)) == pytest.approx(1.0, abs=1e-13)
        sketches = [hs.sketch(B, hs.Power(2), 3, rng=0) for B in (single, A)]
        assert_allclose(*sketches, atol=1e-6 * np.abs(sketches[1]).max())


def test_of_a_multiple_top_the_leading_vector_is_positive_on_every_component():
    K = np.zeros((25, 25))
    K[:10, :10], K[10:, 10:] = 0.5, 0.25
    np.fill_diagonal(K, 1.0)
    A = hs.symmetric_normalize(K)
    u = leading_vector(hs.Dense(A))
    assert (u > 0).all()
    assert_allclose(A @ u, u, atol=1e-12)


def hub_graph(n: int) -> sparse.csr_matrix:
    """One point linked to all others, which form a ring."""
    rim = np.arange(1, n)
    rows, columns = np.concatenate([0 * rim, rim]), np.concatenate([rim, np.roll(rim, 1)])
    links = sparse.coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(n, n))
    return (links + links.T).tocsr()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lanczos_bounds_lie_on_either_side_of_the_spectrum(dtype) -> None:
    # The bound from outside fails with probability 1e-6; the start is fixed.
    # 1 ± √n on the hub and the constant; on the ring all are between -2 and 2.
    low, high = 1 - np.sqrt(LARGE), 1 + np.sqrt(LARGE)
    A = hs.Sparse(hub_graph(LARGE).astype(dtype))
    outer, inner = A.ends
    slack = 100 * np.finfo(dtype).eps * high
    assert A.spectrum[0] <= outer[0] <= low + slack
    assert high - slack <= outer[1] <= A.spectrum[1]
    assert low - slack <= inner[0] < inner[1] <= high + slack
    assert outer[1] - outer[0] < 1.2 * (high - low)


def test_the_threads_do_not_change_a_bit() -> None:
    A = hs.Sparse(hub_graph(20_000) / 200.0)
    same_for_any_threads(lambda: hs.eigh(A, 2, tol=1e-2, rng=0).vectors)


# By levels


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
@pytest.mark.parametrize("taken_out", [False, True], ids=["whole", "deflated"])
def test_slow_diffusion_on_a_torus_by_levels(tol: float, taken_out: bool) -> None:
    # Eigenvalues four times each, the first ones within 1e-3 of the top.
    shape = (110, 90)
    n, k = shape[0] * shape[1], 20
    A, exact = hs.Sparse(lazy_torus(*shape), (-1.0, 1.0)), lazy_torus_eigenvalues(*shape)
    spectrum = hs.eigh(hs.Deflated(A, np.full(n, n**-0.5)) if taken_out else A, k, tol=tol, rng=0)
    exact = exact[taken_out : k + taken_out]
    assert spectrum.residuals.max() <= tol
    # The error of a Ritz value is of the order of the square of that of its vector.
    assert_allclose(
        1 - spectrum.values, 1 - exact, rtol=min(0.1, 1e4 * tol), atol=max(tol**2, 1e-14)
    )


def test_components_are_not_lost_by_levels() -> None:
    # Three tori have the eigenvalue 1 three times, two equal ones all others twice as often.
    one, other = (60, 50), (45, 70)
    A = sparse.block_diag([lazy_torus(*one), lazy_torus(*one), lazy_torus(*other)], format="csr")
    exact = [*lazy_torus_eigenvalues(*one)[:30], *lazy_torus_eigenvalues(*other)[:30]]
    exact = np.sort(exact + exact[:30])[::-1]
    spectrum = hs.eigh(hs.Sparse(A, (-1.0, 1.0)), 24, rng=0)
    assert_allclose(spectrum.values, exact[:24], atol=1e-9)
    assert_honest(spectrum, A)


# Spectra that are hard to iterate on


J = np.arange(600)  # what is hard is in the values, not in their number
HARD = {
    "tenths": 0.1**J,
    "fiftieths": 0.02**J,
    "halves": 0.5**J,
    "bell": np.exp(-(J**2) / 50.0),
    "clustered": np.where(J < 20, 1 - 1e-6 * J, np.where(J < 120, 0.5 - 1e-4 * J, 0.0)),
    "multiple": np.repeat([1.0, 0.9, 0.5, 0.1, 0.0], 120),
    "zeros": np.zeros(600),
    "ones": np.ones(600),
    "negative": -np.linspace(0.1, 1, 600),
    "zero on top": np.where(J < 300, -1.0, 0.0),
    "near both ends": np.where(J % 2, 1 - 1e-9 * J, -1 + 1e-9 * J),
    "rank three": np.where(J < 3, 1.0, 0.0),
}


@pytest.mark.parametrize("k", [1, 40])
@pytest.mark.parametrize("taken_out", [False, True], ids=["whole", "deflated"])
@pytest.mark.parametrize("values", HARD.values(), ids=HARD)
@pytest.mark.filterwarnings("error")
def test_hard_spectra_are_found_and_certified(values, taken_out: bool, k: int, limits) -> None:
    limits(dense_eigenpairs=8, points_per_column=8)  # of blocks of 64 columns at most
    A = hs.Sparse(sparse.diags(values).tocsr(), (-1.0, 1.0))
    u = np.full(600, 600**-0.5)
    B = hs.Deflated(A, u) if taken_out else A
    spectrum = hs.eigh(B, k, rng=0)
    assert_honest(spectrum, B)
    exact = np.sort(values)[::-1]
    if not taken_out:
        assert_allclose(spectrum.values, exact[:k], atol=2e-8)
    else:  # a direction less: the values lie between those of A (Cauchy)
        assert (spectrum.values <= exact[:k] + 2e-8).all()
        assert (spectrum.values >= np.append(exact, -1.0)[1 : k + 1] - 2e-8).all()
        assert_allclose(u @ spectrum.vectors, 0.0, atol=1e-10)


# The block iteration


@pytest.mark.parametrize("gap", [1e-3, 1e-2, 0.1])
def test_an_iteration_takes_twice_the_products_of_one_chebyshev_polynomial_at_most(gap):
    """That polynomial takes the start, at random, to a residual of 1e-8.

    It grows by T_d(1 + 2 γ) ~ exp(d arccosh(1 + 2 γ)) / 2, for the relative gap γ between the top
    and the values that the block leaves out, here 16 or more below it.
    """
    values = np.append(np.linspace(-0.5, 1 - gap, LARGE - 1), 1.0)
    A = Counting(hs.Sparse(sparse.diags(values).tocsr(), (-1.0, 1.0)))
    assert hs.eigh(A, 1, rng=0).residuals[0] <= 2e-8
    cut = values[-17]
    growth = np.sqrt(LARGE) / 1e-8
    degree = np.log(2 * growth) / np.arccosh(1 + 2 * (1 - cut) / (cut + 0.5))
    assert A.products <= 2 * degree


def test_eigenvalues_below_an_interval_do_not_get_in(monkeypatch):
    # A bound that is wrong: two eigenvalues lie below it, and grow faster than those on top.
    values = np.concatenate([[-2.0, -1.9], np.linspace(0, 0.9, 1300 - 4), [0.95, 1.0]])
    A = hs.Sparse(sparse.diags(values).tocsr())
    monkeypatch.setattr(A, "ends", ((0.0, 1.0), (0.0, 1.0)))
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
    _, Q, _ = _rayleigh_ritz(hs.Sparse(sparse.eye(n, dtype=dtype).tocsr()), X)
    assert Q.dtype == dtype
    Q = Q.astype(float)
    assert_allclose(Q.T @ Q, np.eye(8), atol=100 * eps)
    # All of the span is kept, to rounding of the largest column.
    rest = np.linalg.norm(span - Q @ (Q.T @ span), axis=0).max()
    assert rest <= 10 * eps**0.5 * np.linalg.norm(span, axis=0).max()


def test_a_basis_of_too_few_directions_is_filled_outside_of_what_is_deflated():
    u = np.full(500, 500**-0.5)
    A = hs.Deflated(hs.Sparse(sparse.eye(500).tocsr()), u)
    _, Q, _ = _rayleigh_ritz(A, np.outer(np.arange(500.0), np.ones(6)))
    assert_allclose(Q.T @ Q, np.eye(6), atol=1e-12)
    assert_allclose(u @ Q, 0.0, atol=1e-12)


# The dense matrix


def test_all_eigenpairs_of_a_deflated_operator_are_those_of_the_complement() -> None:
    rng = np.random.default_rng(1)
    M = rng.standard_normal((25, 25))
    M = M + M.T
    V = np.linalg.qr(rng.standard_normal((25, 3)))[0]
    values, vectors = all_eigenpairs(hs.Deflated(hs.Dense(M), V))
    complement = np.linalg.qr(np.hstack([V, rng.standard_normal((25, 22))]))[0][:, 3:]
    exact = np.linalg.eigvalsh(complement.T @ M @ complement)
    assert_allclose(values, exact, atol=1e-12)
    assert_allclose(V.T @ vectors, 0.0, atol=1e-13)
    assert_allclose(vectors.T @ vectors, np.eye(22), atol=1e-12)


def test_an_interval_that_is_far_too_wide_costs_no_digits() -> None:
    rng = np.random.default_rng(2)
    scale = np.exp(rng.uniform(-20, 20, size=30))
    Q = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    exact = np.append(1.0, np.linspace(0.9, -0.2, 29))
    M = (Q * exact) @ Q.T
    A = hs.Scaled(hs.Dense(M / np.outer(scale, scale)), scale)
    assert A.spectrum[1] > 1e10
    values, _ = all_eigenpairs(hs.Deflated(A, Q[:, :1]))
    assert_allclose(values[::-1], exact[1:], atol=1e-12)
