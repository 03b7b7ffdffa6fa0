"""±1 columns from few random bits: exactly how independent they are, and what follows."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from papers.sketching.signs import field_product, pairwise_signs, signs, times_signs

POLYNOMIAL = (1 << 64) | 0b11011


def multiplied(x: int, y: int) -> int:
    """The product in GF(2^64), as in a book: polynomials, then the remainder."""
    product = 0
    for bit in range(y.bit_length()):
        product ^= (x << bit) if y >> bit & 1 else 0
    for bit in range(product.bit_length() - 1, 63, -1):
        product ^= (POLYNOMIAL << (bit - 64)) if product >> bit & 1 else 0
    return product


def test_products_are_those_of_the_field() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2**64, (2, 50), dtype=np.uint64)
    expected = [multiplied(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    assert [int(v) for v in field_product(x, y)] == expected


def test_the_polynomial_has_no_factors() -> None:
    """Rabin: t^(2^64) = t, and t^(2^32) - t has no factor in common with it (2 is the prime)."""
    powers = [2]
    for _ in range(64):
        powers.append(multiplied(powers[-1], powers[-1]))
    assert powers[64] == 2
    a, b = POLYNOMIAL, powers[32] ^ 2
    while b:
        while a.bit_length() >= b.bit_length():
            a ^= b << (a.bit_length() - b.bit_length())
        a, b = b, a
    assert a == 1


def test_any_five_entries_of_a_column_are_independent() -> None:
    """Of any five different numbers no sum of (1, x, x³) is 0, as bits; six can be."""
    x = np.append(np.arange(16), np.random.default_rng(1).integers(16, 2**62, 8)).astype(np.uint64)
    cubes = field_product(field_product(x, x), x)
    vectors = [(1 << 128) | (int(a) << 64) | int(b) for a, b in zip(x, cubes, strict=True)]
    for size in range(1, 6):
        for chosen in itertools.combinations(vectors, size):
            total = 0
            for vector in chosen:
                total ^= vector
            assert total


def every_column(n: int = 16) -> np.ndarray:
    """All columns of n = 16 points: their x have 4 bits and their x³ 10."""
    a, b, c = np.meshgrid(np.arange(16), np.arange(2**10), np.arange(2), indexing="ij")
    keys = np.array([v.ravel() for v in (a, b, c)]).astype(np.uint64)
    return signs(np.arange(n, dtype=np.uint64), keys)


def test_moments_over_all_columns_are_those_of_independent_signs() -> None:
    G = every_column()
    assert set(np.unique(G)) == {-1.0, 1.0}
    assert np.linalg.matrix_rank(G) == 16
    np.testing.assert_array_equal(G.mean(axis=1), np.zeros(16))
    np.testing.assert_array_equal(G @ G.T / G.shape[1], np.eye(16))
    for four in itertools.combinations(range(16), 4):
        assert G[list(four)].prod(axis=0).sum() == 0


@pytest.mark.parametrize("u", [np.ones(16), np.arange(16.0), np.sin(np.arange(16.0))], ids=str)
def test_the_variance_is_that_of_independent_signs(u: np.ndarray) -> None:
    """Also where signs that are linear in x, and independent in threes, have n/2 times as much."""
    squares = (u @ every_column()) ** 2 / (u @ u)
    assert squares.mean() == pytest.approx(1)
    assert squares.var() == pytest.approx(2 - 2 * (u**4).sum() / (u @ u) ** 2)
    keys = np.array([np.arange(32) >> 1, np.zeros(32), np.arange(32) & 1]).astype(np.uint64)
    linear = (np.ones(16) @ signs(np.arange(16, dtype=np.uint64), keys)) ** 2 / 16
    assert linear.mean() == pytest.approx(1)
    assert linear.var() == pytest.approx(15)  # n - 1, not 2 - 2/n


def test_products_by_signs_that_are_not_stored_are_those_of_the_stored_ones() -> None:
    A = np.random.default_rng(0).random((5, 3000))
    want = A @ pairwise_signs(3000, 4, np.random.default_rng(2))
    for matrix in (A, sparse.csr_matrix(A)):
        found = times_signs(matrix, 4, np.random.default_rng(2))
        np.testing.assert_allclose(found, want, rtol=1e-12)
