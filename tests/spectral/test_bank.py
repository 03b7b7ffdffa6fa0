"""Many times from one Chebyshev pass, and the error of its polynomial."""

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.spectral.apply import apply
from problems.counting import Counting
from problems.spectra import lazy_torus, lazy_torus_eigenvalues

TORUS = 48, 44  # more points than all eigenpairs are computed of


def products(filters):
    A = Counting(hs.Diffusion.from_graph(lazy_torus(*TORUS)).operator)
    apply(filters, A, np.ones((A.n, 2)))
    return A.products


@pytest.mark.parametrize("filter", [hs.Power, hs.Heat])
def test_a_bank_costs_no_more_than_its_largest_time(filter):
    bank = [filter(2**j) for j in range(1, 11)]
    assert 0 < products(bank) <= 1.1 * products(bank[-1:]) <= 1.1 * np.sqrt(70 * 1024) + 32


@pytest.mark.parametrize("make", [hs.Power, hs.Heat])
def test_the_error_of_a_series_is_below_its_tolerance(make):
    A = hs.Diffusion.from_graph(lazy_torus(*TORUS)).deflated()
    X = A.project(np.random.default_rng(0).normal(size=(A.n, 3)))
    (block,), (exact,) = apply([make(256)], A, X, 1e-4), apply([make(256)], A, X)
    top = make(256)(lazy_torus_eigenvalues(*TORUS)[1:2])
    wrong = np.linalg.norm(block - exact, axis=0)
    assert (wrong <= 1.01e-4 * top * np.linalg.norm(X, axis=0)).all()
    assert wrong.max() > 0
