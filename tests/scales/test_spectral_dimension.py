"""The spectral dimension of points on surfaces, beside that of the surfaces themselves.

A graph does not know the unit of time of its surface, but the effective rank tells: at the same
rank both have the same dimension, in closed form. 2,000 points with 15 neighbours leave an error
(the steps are a fortieth of the torus long), for which the tolerance allows 0.2.
"""

import numpy as np
import pytest
from scipy.optimize import brentq

import heatsketch as hs
from problems.clouds import on_torus

TIMES = 2.0 ** np.arange(3, 10)
TOLERANCE = 0.2


def dimension_at_rank(frequencies, rank):
    """Return the spectral dimension of Σ e^(-τ μ) at the τ at which the effective rank is this."""

    def of(log_tau):
        x = np.exp(log_tau) * frequencies
        weight = np.exp(-x)
        energy = (weight * x).sum() / weight.sum()
        return np.log(weight.sum()) + energy, 2 * energy

    return of(brentq(lambda s: of(s)[0] - np.log(rank), -20, 15))[1]


def torus(seed):
    """Points of the flat torus, and the frequencies m² + n²."""
    u, v = np.random.default_rng(seed).uniform(0, 2 * np.pi, (2, 2000))
    m = np.arange(-150, 151.0)
    return on_torus(u, v), np.add.outer(m**2, m**2).ravel()


def roll(seed):
    """Points of the roll, and the frequencies of its strip, on whose edges nothing is lost."""
    X, places = hs.datasets.swiss_roll(2000, rng=seed)
    m = np.arange(400.0)
    length, height = np.ptp(places, axis=0)
    return X, np.add.outer((np.pi * m / length) ** 2, (np.pi * m / height) ** 2).ravel()


@pytest.mark.statistical
@pytest.mark.parametrize(("surface", "plateau"), [(torus, slice(1, 5)), (roll, slice(0, 1))])
def test_it_is_that_of_the_surface(surface, plateau):
    X, frequencies = surface(0)
    trace = hs.heat_trace(hs.diffusion(X), TIMES)
    assert trace.exact
    exact = [dimension_at_rank(frequencies, rank) for rank in trace.effective_rank]
    np.testing.assert_allclose(trace.dimension, exact, atol=TOLERANCE)
    # Two, as long as walks do not see the ends; of the strip also its edges, which are a line.
    edges = 2 - np.array(exact)[plateau]
    assert (np.abs(trace.dimension[plateau] - 2) < TOLERANCE + edges).all()
    assert trace.dimension[-1] < 1.1  # at large times there is one circle, or a line
