"""Eigenpairs, filters and sketches of operators whose eigenvalues are known."""

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
