"""The diffusion time of a picture, chosen by the number of directions."""

import math
from typing import NamedTuple

import numpy as np

from heatsketch._typing import Array
from heatsketch.markov.components import ComponentCoordinates
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import N_LEADING, Coordinates, LeadingPairs, leading_pairs
from heatsketch.spectral.filters import FILTERS

DIRECTIONS_PER_DIMENSION = 4
_STILL = 1.25  # directions no longer fall if those at t are at most so many times those at 4 t
_LEAST_GROUP = 10  # points
_LAST_TIME = 2**40
_BEYOND = 4  # doublings of the chosen time up to which the curve goes


class TimeCurve(NamedTuple):
    """The effective number of directions against diffusion time, and the time chosen.

    Attributes
    ----------
    times : array (m,)
        Ascending: 1, 2, 4, ..., and the time chosen.
    directions : array (m,)
        Effective number of directions of the diffusion distances at one time t: (Σ λ^2t)² / Σ λ^4t.
    wanted : float
        The largest number that k dimensions can show: 4 k.
    time : int
        The smallest time with at most `wanted` directions, or from which on they no longer fall.
    """

    times: Array
    directions: Array
    wanted: float
    time: int


def choose_time(
    diffusion: Diffusion,
    n_components: int = 2,
    *,
    filter: str = "accumulated",
    leading: LeadingPairs = leading_pairs,
) -> TimeCurve:
    """Choose the time as `HeatEmbedding` does, without the embedding; see `direction_curve`."""
    count = max(N_LEADING, 4 * n_components)
    coordinates = ComponentCoordinates.from_diffusion(diffusion, count, leading)
    return direction_curve(coordinates.each[0], filter, n_components)


def direction_curve(coordinates: Coordinates, filter: str, k: int) -> TimeCurve:
    """Choose the diffusion time for a picture in k dimensions.

    A linear map from m directions to k dimensions keeps most distances if m is not much larger than
    k. Smaller times have more directions, which the map cannot show; larger times lose structure.
    If there are more than 4 k tight groups that hardly touch, each stays a direction until times at
    which it is a single place. Therefore the search ends earlier, where the directions no longer
    fall. (With waiting walks they do not fall at first either, so at least ten points per direction
    are required.)
    """
    wanted = float(DIRECTIONS_PER_DIMENSION * k)
    count = len(coordinates.values) + coordinates.remaining.counts.sum()  # of eigenvalues
    f = FILTERS["power" if filter == "accumulated" else filter]  # also for sums, one time
    low, time, high = 0, 1, _LAST_TIME  # too many directions at low, few enough at high
    while high - low > 1:
        now, later = (coordinates.directions(f(t)) for t in (time, 4 * time))
        if now <= wanted or now <= min(count / _LEAST_GROUP, _STILL * later):
            high = time
        else:
            low = time
        time = min(2 * time, (low + high + 1) // 2)
    last = math.ceil(math.log2(high)) + _BEYOND
    times = np.union1d(2 ** np.arange(last + 1), [high])
    curve = np.array([coordinates.directions(f(int(time))) for time in times])
    return TimeCurve(times, curve, wanted, high)
