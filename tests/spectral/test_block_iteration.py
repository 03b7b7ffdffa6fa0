"""The parts of the block iteration."""

import numpy as np
import pytest
from scipy import sparse

import heatsketch as hs
from heatsketch.spectral import block_iteration
from heatsketch.spectral.block_iteration import _orthonormal


def test_eigenvalues_below_an_interval_do_not_get_in(monkeypatch: pytest.MonkeyPatch) -> None:
    # A bound that is wrong: two eigenvalues lie below it, and grow faster than those on top.
    values = np.concatenate([[-2.0, -1.9], np.linspace(0, 0.9, 1300 - 4), [0.95, 1.0]])
    A = hs.Sparse(sparse.diags(values).tocsr())
    monkeypatch.setattr(block_iteration, "spectrum_ends", lambda A, steps: ((0.0, 1.0), (0.0, 1.0)))
    np.testing.assert_allclose(hs.eigh(A, 2, rng=0).values, [1.0, 0.95], atol=1e-9)


@pytest.mark.parametrize("columns", ["zero", "twice", "graded"])
def test_a_basis_of_nearly_dependent_columns_is_orthonormal(columns: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 8))
    if columns == "zero":
        X[:, 3] = 0.0
    elif columns == "twice":
        X[:, 3] = X[:, 5]
    else:
        X = X[:, :1] + X * 10.0 ** -np.arange(0, 16, 2)
    span = X.copy()
    Q = _orthonormal(hs.Sparse(sparse.eye(3000).tocsr()), X)
    np.testing.assert_allclose(Q.T @ Q, np.eye(8), atol=1e-12)
    # All of the span is kept, to rounding of the largest column.
    rest = span - Q @ (Q.T @ span)
    assert np.linalg.norm(rest, axis=0).max() < 1e-7 * np.linalg.norm(span, axis=0).max()


def test_a_basis_of_too_few_directions_is_filled_outside_of_what_is_deflated() -> None:
    u = np.full(500, 500**-0.5)
    A = hs.Deflated(hs.Sparse(sparse.eye(500).tocsr()), u)
    X = np.outer(np.arange(500.0), np.ones(6))
    Q = _orthonormal(A, X)
    np.testing.assert_allclose(Q.T @ Q, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(u @ Q, 0.0, atol=1e-12)
