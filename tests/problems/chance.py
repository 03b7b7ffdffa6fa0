"""What chance allows, where statistical tests count."""

import numpy as np
from scipy.stats import binom

ALARM = 1e-6  # how often a test may fail where nothing is wrong
Z_ALARM = 5.0  # of a normal score: two-sided 6e-7


def in_band(hits, trials, level, upper=None, alarm=ALARM):
    """Say whether all numbers of hits are as binomial ones at this rate, or at those up to `upper`.

    Half of the alarm is beyond each end; `upper=1` leaves the lower end alone.
    """
    low = binom.ppf(alarm / 2, trials, level)
    high = binom.isf(alarm / 2, trials, level if upper is None else upper)
    return np.all((low <= hits) & (hits <= high))
