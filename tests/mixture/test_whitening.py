"""Whitening: as many directions as the points have, in any units."""

import numpy as np
import pytest

from heatsketch.mixture.fitting import Whitening


@pytest.mark.parametrize("offset", [0, 1e6])
@pytest.mark.parametrize("n", [50, 150, 20_000])
def test_collinear_features_add_no_direction(n, offset):
    rng = np.random.default_rng(0)
    rank, m = 5, 12
    X = 10 * rng.standard_normal((n, rank)) @ rng.standard_normal((rank, m))
    assert len(Whitening.from_points(X + offset, seed=0).lengths) == rank


def test_short_directions_are_kept():
    lengths = 10.0 ** -np.arange(0, 12, 3)
    X = np.random.default_rng(0).standard_normal((1000, 4)) * lengths
    found = Whitening.from_points(X, seed=0).lengths
    np.testing.assert_allclose(found, X.std(axis=0, ddof=1), rtol=0.05)


def test_a_large_feature_hides_no_small_one():
    rng = np.random.default_rng(0)
    X = np.column_stack([1e9 + rng.standard_normal(500), 1e-6 * rng.standard_normal(500)])
    assert len(Whitening.from_points(X, seed=0).lengths) == 2
