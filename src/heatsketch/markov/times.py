"""The diffusion time of a picture, chosen by the number of directions."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from heatsketch._typing import Array
from heatsketch.markov.components import ComponentCoordinates
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import N_LEADING, Coordinates, LeadingPairs, leading_pairs
from heatsketch.spectral.apply import time_excess
from heatsketch.spectral.filters import Filter, make_filter

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
        Effective number of directions of the diffusion distances at one time t: (Σ λ^2t)² / Σ λ^4t,
        with e^{-t(1-λ)} - e^{-t} in place of λ^t for the heat filter.
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
    """Choose the time as a linear `HeatEmbedding` does; see `direction_curve`."""
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
    are required.) If all times in the range of numbers have too many, as of a complete graph, whose
    eigenvalues are equal, it is the smallest that has about as few as the last of these.
    """
    wanted = float(DIRECTIONS_PER_DIMENSION * k)
    count = len(coordinates.values) + coordinates.remaining.counts.sum()  # of eigenvalues
    values = coordinates.values
    ends = float(values.min()), float(values.max())

    def weights(time: int) -> Filter:  # also for sums, those of one time
        return make_filter("power" if filter == "accumulated" else filter, time).minus_constant()

    def directions(time: int) -> float:
        return coordinates.directions(weights(time))

    def is_in_range(time: int) -> bool:
        return time_excess(weights(time), coordinates.operator, ends) <= 1

    def are_few(time: int) -> bool:
        now = directions(time)
        still = now <= count / _LEAST_GROUP and now <= _STILL * directions(4 * time)
        return now <= wanted or still

    chosen = _first(are_few)
    if not is_in_range(chosen):
        last = 1
        while is_in_range(2 * last):
            last *= 2
        least = directions(last)
        chosen = _first(lambda time: directions(time) <= _STILL * least)
    most = math.ceil(math.log2(chosen)) + _BEYOND
    times = np.union1d(2 ** np.arange(most + 1), [chosen])
    curve = np.array([directions(int(time)) for time in times])
    return TimeCurve(times, curve, wanted, chosen)


def _first(is_enough: Callable[[int], bool]) -> int:
    """Return the smallest time at which there is enough, at most 2^40."""
    low, time, high = 0, 1, _LAST_TIME
    while high - low > 1:
        if is_enough(time):
            high = time
        else:
            low = time
        time = min(2 * time, (low + high + 1) // 2)
    return high
