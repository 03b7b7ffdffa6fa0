"""Diffusion distances added up over times: the filter `Accumulated`."""

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.spectral.functions import apply
from problems.clouds import even_circle
from problems.spectra import cycle_graph


@pytest.mark.parametrize(("t", "end"), [(0, 1), (0, 7), (1, 2), (3, 50), (8, 512)])
def test_the_square_is_the_sum_of_squared_powers(t, end):
    # Also at 1, on both sides of it and below 0, where powers of -1 alternate in sign.
    near = 1 + np.array([-1e-9, -1e-13, 1e-13, 1e-9])
    lam = np.concatenate([[-0.7, -1e-9, 0.0, 1e-12, 0.3, 0.99, 1.0, 1.5], near, -near, [-1.0]])
    expected = np.sqrt(sum(lam ** (2 * s) for s in range(t, end))) * np.sign(lam) ** t
    f = hs.Accumulated(t, end)
    np.testing.assert_allclose(f(lam), expected, rtol=1e-13)


def test_large_times_neither_under_nor_overflow():
    values, log_scale = hs.Accumulated(10**6).with_log_scale(np.array([0.9, 0.8999999]))
    assert log_scale == pytest.approx(10**6 * np.log(0.9) - 0.5 * np.log(1 - 0.81), rel=1e-12)
    np.testing.assert_allclose(values, [1, np.exp(10**6 * np.log(0.8999999 / 0.9))], rtol=1e-6)
    assert np.isfinite(hs.Accumulated(3).with_log_scale(np.array([7.0, -7.0]))[0]).all()


@pytest.mark.parametrize(("t", "tol"), [(1, None), (8, None), (100, None), (8, 1e-6)])
@pytest.mark.parametrize("n", [400, 6000], ids=["ring", "large ring"])
def test_the_series_gives_what_the_eigenvalues_say(n, t, tol):
    # Eigenvectors of a ring are waves, its eigenvalues cos(2πm/n) from 1 to -1.
    A = hs.Sparse(cycle_graph(n) / 2, (-1.0, 1.0))
    m, i = np.array([0, 1, 3, n // 8, n // 4 + 1, n // 2]), np.arange(n)
    waves = np.cos(2 * np.pi * np.outer(i, m) / n)
    found = apply([hs.Accumulated(t)], A, waves, tol)[0]
    expected = hs.Accumulated(t)(np.cos(2 * np.pi * m / n))
    assert np.abs(found - waves * expected).max() <= max(tol or 0.0, 1e-11) * expected.max()


@pytest.mark.parametrize("time", [1, 8])
def test_a_diffusion_map_is_the_eigenvectors_weighed(time):
    model = hs.DiffusionMap(4, time, filter="accumulated", affinity="dense").fit(even_circle(200))
    weighed = model.eigenvectors_ * hs.Accumulated(time)(model.eigenvalues_)
    np.testing.assert_allclose(model.embedding_, weighed, atol=1e-6)


def test_components_are_apart_by_the_number_of_times():
    # Of eigenvalue 1 there is one for each component: √(T - t), not infinite.
    A = np.kron(np.eye(2), np.full((3, 3), 1 / 3))
    D = hs.diffusion_distance(hs.Dense(A), 2, filter="accumulated", pairs=([0], [3]))
    assert D[0] == pytest.approx(np.sqrt((128 - 2) * 2 / 3))
