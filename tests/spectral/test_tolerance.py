"""Filters to a tolerance, banks of them, and how many products these take."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.stats import binom

import heatsketch as hs
from heatsketch.operators import Operator
from heatsketch.spectral import apply as filters
from heatsketch.spectral.apply import apply, chebyshev_coefficients
from heatsketch.spectral.filters import Filter
from problems.filtered import random_block


class Counting(Operator):
    """An operator that counts the products of blocks and of single vectors."""

    def __init__(self, A: Operator) -> None:
        self.A, self.blocks, self.vectors = A, 0, 0
        self.n, self.dtype, self.spectrum = A.n, A.dtype, A.spectrum

    def asarray(self, X: np.ndarray) -> np.ndarray:
        return self.A.asarray(X)

    def _matmul(self, X: np.ndarray) -> np.ndarray:
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
    Y = filters._by_chebyshev([hs.Power(p)], count, X, A.spectrum, tol=1e-6)[0]
    assert count.blocks <= most
    assert np.abs(Y[:, 0] - lam**p).max() <= 1e-6


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6, 1e-9])
@pytest.mark.parametrize("f", [hs.Power(700), hs.Heat(300.0)], ids=str)
def test_the_error_on_the_spectrum_stays_below_the_tolerance(f: Filter, tol: float) -> None:
    A, lam = line(low=-0.3)
    count, exact = Counting(A), f(lam)
    Y = apply([f], count, np.ones((A.n, 60)), tol=tol)[0]
    assert np.abs(Y - exact[:, None]).max() <= tol
    rounded = Counting(A)
    apply([f], rounded, np.ones((A.n, 60)))
    assert count.blocks < rounded.blocks


def test_the_tolerance_is_relative_to_the_spectrum_not_to_the_interval() -> None:
    # The largest eigenvalue is 0.98: there λ^1000 is 1.7e-9 of what it is at 1.
    A, lam = line(low=-0.3, high=0.98)
    Y = apply([hs.Power(1000)], A, np.ones((A.n, 40)), tol=1e-3)[0]
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
    Y = apply([hs.Power(1024)], count, np.ones((A.n, 64)), tol=1e-6)[0]
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
        assert np.abs(block[:, 0] - f(lam)).max() <= 1e-6


def test_a_small_bank_takes_plain_products() -> None:
    A, lam = line()
    count = Counting(A)
    blocks = apply([hs.Power(p) for p in (1, 2, 4, 8)], count, np.ones((A.n, 1)))
    assert count.blocks == 8
    assert_allclose(blocks[3][:, 0], lam**8, rtol=1e-14)


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
    single = apply([hs.Power(p)], count, X)[0].astype(float)
    double = apply([hs.Power(p)], wide, X)[0]
    assert count.blocks <= min(p, 290)
    i, j = np.random.default_rng(2).integers(0, d.n, (2, 5000))
    i, j = i[i != j], j[i != j]
    one = np.linalg.norm(single[i] - single[j], axis=1)
    other = np.linalg.norm(double[i] - double[j], axis=1)
    assert_allclose(one, other, rtol=1e-3)
