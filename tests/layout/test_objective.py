"""Pairs whose distances a layout should keep: the same descent for linear and for free layouts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.spatial.distance import pdist

from heatsketch.layout.linear import (
    LinearLayout,
    PairObjective,
    half_whitening_axes,
    log_distortion,
    outside_fraction,
    stress,
)
from problems.clouds import cloud

N, R, K = 12, 4, 2
every_loss = pytest.mark.parametrize(
    ("loss", "options"),
    [(stress, {}), (outside_fraction, {"factor": 2.0}), (log_distortion, {"beta": 4.0})],
    ids=["stress", "outside", "log L"],
)


class FreeLayout:
    """Y = S Z with rows of S that sum to 1, and Z (n, k) free."""

    def __init__(self, S):
        self.S = S / S.sum(axis=1, keepdims=True)

    def images(self, Z):
        return self.S @ Z

    def pull(self, Z, slope):
        assert Z.shape == slope.shape
        return self.S.T @ slope


def layouts():
    """Return layouts of some points with the shapes of their parameters."""
    F = cloud(N, R)
    near = np.exp(-((F[:, None] - F) ** 2).sum(axis=2))
    linear = LinearLayout(F, half_whitening_axes(F, R), np.triu_indices(N, 1))
    return {
        "linear": (linear, (R, K)),
        "linear, of fewer directions": (linear, (R - 1, K)),
        "free": (FreeLayout(near), (N, K)),
    }


every_layout = pytest.mark.parametrize("name", layouts())


def random(shape, seed):
    return np.random.default_rng(seed).normal(size=shape)


def all_pairs():
    pairs = PairObjective(N)
    pairs.add(*np.triu_indices(N, 1), pdist(cloud(N, R)))
    return pairs


def test_log_ratios_are_those_of_distances_and_pairs_join():
    F, Y = cloud(N, R), random((N, K), 1)
    i, j = np.triu_indices(N, 1)
    pairs = PairObjective(N)
    pairs.add(i[:9], j[:9], pdist(F)[:9])
    pairs.add(i[9:], j[9:], pdist(F)[9:])
    assert_allclose(pairs.log_ratios(Y), np.log(pdist(Y) / pdist(F)), atol=1e-12)


def test_any_distances_may_be_wanted():
    Y, wanted = random((N, K), 1), np.exp(random(N * (N - 1) // 2, 2))
    pairs = PairObjective(N)
    pairs.add(*np.triu_indices(N, 1), wanted)
    assert_allclose(pairs.log_ratios(Y), np.log(pdist(Y) / wanted), atol=1e-12)


@every_layout
def test_pull_is_the_transposed_of_images(name):
    """Images are linear in the parameters, so <G, images(P)> = <pull(G), P>."""
    layout, shape = layouts()[name]
    P, G = random(shape, 1), random((N, K), 2)
    assert np.vdot(G, layout.images(P)) == pytest.approx(np.vdot(layout.pull(P, G), P), rel=1e-12)


@every_loss
def test_the_slope_at_the_points_is_that_of_differences(loss, options):
    pairs, Y = all_pairs(), random((N, K), 1)
    value, slope = pairs.evaluate(Y, loss, **options)
    assert value == loss(pairs.log_ratios(Y), **options)[0]
    differences = approx_fprime(
        Y.ravel(), lambda flat: pairs.evaluate(flat.reshape(N, K), loss, **options)[0]
    )
    assert_allclose(slope.ravel(), differences, rtol=0, atol=1e-5 * np.abs(slope).max())


@every_loss
@every_layout
def test_a_descent_ends_where_the_pulled_slope_vanishes(name, loss, options):
    layout, shape = layouts()[name]
    pairs, start = all_pairs(), random(shape, 1)
    found = pairs.descend(layout, start, loss, 3_000, **options)
    pulled = []
    for parameters in (start, found):
        slope = pairs.evaluate(layout.images(parameters), loss, **options)[1]
        pulled.append(np.linalg.norm(layout.pull(parameters, slope)))
    assert pulled[1] < 0.02 * pulled[0]


def test_a_penalty_joins_the_loss():
    """|Z - T|² alone counts where its weight is large."""
    layout, shape = layouts()["free"]
    target = random(shape, 3)

    def penalty(Z):
        return 1e6 * float(np.sum((Z - target) ** 2)), 2e6 * (Z - target)

    found = all_pairs().descend(layout, random(shape, 1), stress, 100, penalty)
    assert_allclose(found, target, atol=1e-4)
