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


@pytest.mark.parametrize("filter", ["power", "heat"])
def test_the_error_of_the_polynomial_is_stated_and_holds(filter):
    times = [2, 16, 1024] if filter == "power" else [1.5, 16.25, 256.0]
    graph = lazy_torus(*TORUS)
    model = hs.HeatSketch(
        4, times, filter=filter, affinity="precomputed", alpha=0, random_state=0
    ).fit(graph)
    errors = model.diagnostics_["polynomial_error"]
    assert len(errors) == 3
    assert 0 < errors[2] < 1e-10
    # Of a bank with a looser tolerance, against eigenvalues that are known.
    make = hs.Power if filter == "power" else hs.Heat
    A, X = model.diffusion_.deflated(), np.random.default_rng(0).normal(size=(graph.shape[0], 3))
    X = A.project(X)
    block = apply([make(256)], A, X, 1e-4)[0]
    exact = apply([make(256)], A, X)[0]
    top = make(256).scaled(lazy_torus_eigenvalues(*TORUS)[1:2])[1]
    wrong = np.linalg.norm(
        block.values * np.exp(block.log_scale - top) - exact.values * np.exp(exact.log_scale - top),
        axis=0,
    )
    assert 1e-12 < block.error <= 1.01e-4
    assert (wrong <= block.error * np.linalg.norm(X, axis=0)).all()


def test_products_and_eigenpairs_have_no_polynomial():
    X = np.random.default_rng(0).normal(size=(60, 3))
    assert hs.HeatSketch(4, 3, random_state=0).fit(X).diagnostics_["polynomial_error"] == 0
