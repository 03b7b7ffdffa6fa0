"""Eigenpairs, filters and sketches of operators whose eigenvalues are known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import heatsketch as hs
from problems.spectra import PROBLEMS, problem

every_problem = pytest.mark.parametrize("name", PROBLEMS)


@every_problem
@pytest.mark.parametrize("k", [1, 4, 10])
def test_eigenvalues_are_those_known(name, k):
    A, values = problem(name)
    found = hs.eigh(A, k, rng=0)
    assert_allclose(found.values, values[:k], rtol=0, atol=1e-12)
    assert_allclose(A @ found.vectors, found.vectors * found.values, rtol=0, atol=1e-10)


@every_problem
@pytest.mark.parametrize("filter", [hs.Power(1), hs.Power(4), hs.Heat(2.5)], ids=str)
def test_a_sketch_by_the_identity_has_the_sum_of_squared_weights(name, filter):
    """‖f(A)‖² = Σ f(λ)², in the Frobenius norm, whatever the eigenvectors."""
    A, values = problem(name)
    n = A.shape[0] if isinstance(A, np.ndarray) else A.n
    F = hs.sketch(A, filter, G=np.eye(n), deflate=False) * np.sqrt(n)
    weights = np.zeros(n)
    weights[: len(values)] = values
    assert_allclose((F**2).sum(), (filter(weights) ** 2).sum(), rtol=1e-10)
