"""The density of eigenvalues: exact moments of the probes, counts, what is taken out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import heatsketch as hs
from heatsketch._random import random_block
from heatsketch.core.operators import Deflated
from heatsketch.spectral import recurrences as module
from heatsketch.spectral.recurrences import spectral_density
from problems.clouds import cloud


def deflated(n=60, taken_out=3, seed=0):
    """A matrix with eigenvalues between -0.5 and 1, without some of its eigenvectors."""
    Q = np.linalg.qr(cloud(n, n, seed))[0]
    values = np.random.default_rng(seed).uniform(-0.5, 1, n)
    return Deflated(hs.Dense((Q * values) @ Q.T), Q[:, :taken_out]), values[taken_out:]


@pytest.mark.parametrize("power", [0, 1, 2, 7])
def test_moments_are_those_of_the_probes(power):
    # A Gauss quadrature of m nodes is exact up to degree 2m - 1.
    A, values = deflated()
    G = A.project(random_block(A.n, 4, "gaussian", np.random.default_rng(5)))
    G /= np.linalg.norm(G, axis=0)
    moved = G.copy()
    for _ in range(power):
        moved = A @ moved
    expected = len(values) * np.mean(np.einsum("ij,ij->j", G, moved))
    found = spectral_density(A, G * np.sqrt(len(values) / 4))
    assert_allclose(found.counts @ found.values**power, expected, rtol=1e-9)


def test_the_counts_are_those_of_all_eigenvalues_that_are_left():
    A, values = deflated()
    found = spectral_density(A)
    assert found.counts.sum() == pytest.approx(len(values))
    assert found.values.min() == pytest.approx(values.min(), abs=1e-3)
    assert found.values.max() == pytest.approx(values.max(), abs=1e-3)


def test_a_trace_is_within_the_error_of_the_probes():
    """Four probes, 1,000 points: |error| < 5 standard deviations but for 1e-6 of the seeds."""
    rng = np.random.default_rng(0)
    values = rng.uniform(0, 1, 1_000)
    A = Deflated(hs.Sparse(np.diag(values)), np.empty((1_000, 0)))
    found = spectral_density(A)
    f = values**2
    deviation = np.sqrt(2 * np.sum((f - f.mean()) ** 2) / module._PROBES)
    assert abs(found.counts @ found.values**2 - f.sum()) < 5 * deviation


def test_few_eigenvalues_are_found_exactly():
    A = Deflated(hs.Dense(np.diag([0.5, 0.25, 0.25])), np.array([1.0, 0, 0]))
    found = spectral_density(A)
    counted = found.counts > 1e-12
    assert_allclose(found.values[counted], 0.25, rtol=1e-12)
    assert found.counts.sum() == pytest.approx(2)
