"""Which rows say how well a map does on points that it has not seen.

From rows far out on one line every other row lies in nearly the direction of that line, so that a
linear map stretches all these distances alike: over pairs with one of these rows log L is zero,
over others it is not.
"""

import numpy as np
import pytest

from heatsketch.isometry import learn as module
from heatsketch.isometry.learn import Settings
from problems.clouds import cloud

N, D, K = 90, 30, 2
WORST = Settings("worst", 1.5, None, 1, 30, 0.2)
ONE_RANK = Settings("worst", 1.5, D, 1, 30, 0.2)


def held_out_log_L(on_the_line, n_held, settings=WORST):
    """Return log L on unseen pairs where some rows lie on the line."""
    F = cloud(N, D)
    F[list(on_the_line)] = 0
    F[list(on_the_line), 0] = 1e7 * np.arange(1, len(on_the_line) + 1)
    return module.validate(F, n_held, K, settings, True, np.random.default_rng(0))[1]


@pytest.mark.parametrize("n_held", [20, 21, 24])
def test_the_second_half_of_the_rows_held_out_measures_and_all_of_it(n_held):
    measuring = range(n_held // 2, n_held)
    assert held_out_log_L(measuring, n_held) < 1e-4
    for row in (measuring[0], measuring[-1]):
        others = [other for other in measuring if other != row]
        assert held_out_log_L(others, n_held) > 0.5


@pytest.mark.parametrize(("n_held", "settings"), [(19, WORST), (24, ONE_RANK)])
def test_all_rows_held_out_measure_where_none_choose(n_held, settings):
    assert held_out_log_L(range(n_held), n_held, settings) < 1e-4
    for row in (0, n_held - 1):
        others = [other for other in range(n_held) if other != row]
        assert held_out_log_L(others, n_held, settings) > 0.5
