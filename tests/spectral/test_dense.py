"""Eigenpairs by the dense matrix."""

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.spectral.dense import all_eigenpairs, dense_eigenpairs


def test_all_eigenpairs_of_a_deflated_operator_are_those_of_the_complement() -> None:
    rng = np.random.default_rng(1)
    M = rng.standard_normal((25, 25))
    M = M + M.T
    V = np.linalg.qr(rng.standard_normal((25, 3)))[0]
    values, vectors = all_eigenpairs(hs.Deflated(hs.Dense(M), V))
    complement = np.linalg.qr(np.hstack([V, rng.standard_normal((25, 22))]))[0][:, 3:]
    exact = np.linalg.eigvalsh(complement.T @ M @ complement)
    np.testing.assert_allclose(values, exact, atol=1e-12)
    np.testing.assert_allclose(V.T @ vectors, 0.0, atol=1e-13)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(22), atol=1e-12)


@pytest.mark.parametrize("k", [1, 10, 60])
def test_the_leading_ones_are_those_of_all_also_where_they_are_multiple(k: int) -> None:
    n = 100
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(n, n)))[0]
    exact = np.repeat([1.0, 0.5, 0.1, -0.3], 25)
    A = hs.Dense((Q * exact) @ Q.T)
    values, vectors = dense_eigenpairs(A, k)
    np.testing.assert_allclose(values, exact[:k], atol=1e-13)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-12)


def test_an_interval_that_is_far_too_wide_costs_no_digits() -> None:
    rng = np.random.default_rng(2)
    scale = np.exp(rng.uniform(-20, 20, size=30))
    Q = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    exact = np.append(1.0, np.linspace(0.9, -0.2, 29))
    M = (Q * exact) @ Q.T
    A = hs.Scaled(hs.Dense(M / np.outer(scale, scale)), scale)
    assert A.spectrum[1] > 1e10
    values, _ = all_eigenpairs(hs.Deflated(A, Q[:, :1]))
    np.testing.assert_allclose(values[::-1], exact[1:], atol=1e-12)
