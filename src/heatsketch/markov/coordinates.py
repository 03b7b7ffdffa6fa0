"""Diffusion coordinates of each component, side by side, and times chosen from their spectrum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from heatsketch._arrays import Array
from heatsketch.core.operators import Deflated, between_components, members_of
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import N_LEADING, Coordinates, LeadingPairs, leading_pairs
from heatsketch.spectral.filters import Filter, make_filter
from heatsketch.spectral.functions import time_excess

_MAX_ENTRIES = 2**25  # between components: as much as some blocks of columns


def component_labels(diffusion: Diffusion) -> Array | None:
    """Return the component of each vertex (n,), or None where only the whole is looked at.

    That is where there is one component, or more than can be taken out (all are up to 2,048 points,
    335 of 100,000 points); and in the symmetric form, where a component is not a point at large
    times.
    """
    count = diffusion.diagnostics.get("components", 1)
    if count == 1 or diffusion.normalization == "symmetric" or count * diffusion.n > _MAX_ENTRIES:
        return None
    return diffusion.operator.components()


def deflate_components(diffusion: Diffusion, labels: Array) -> Deflated:
    """Return A without the directions that are multiples of √π on each component.

    Distances within a component are the same without them, in the Markov and the bistochastic form.
    """
    A = diffusion.deflated
    between = between_components(diffusion.root, labels, A.n)
    between /= np.linalg.norm(between, axis=0)
    return A.deflated(between)


def within_component(diffusion: Diffusion, vertices: Array) -> Deflated:
    """Return A between the vertices of one component, without its trivial direction √π."""
    root = diffusion.root[vertices]
    A = diffusion.operator.restricted(vertices)
    return Deflated.of(A, (root / np.sqrt(np.sum(root**2)))[:, None])


@dataclass(frozen=True, eq=False)
class ComponentCoordinates:
    """Coordinates of the vertices of each component by itself, the largest component first.

    Between components nothing diffuses, so that the same columns serve all of them.
    """

    components: list[Array]
    each: list[Coordinates]

    @classmethod
    def from_diffusion(
        cls, diffusion: Diffusion, count: int = N_LEADING, leading: LeadingPairs = leading_pairs
    ) -> ComponentCoordinates:
        """Compute `count` leading eigenpairs of each component; all of up to 512 vertices."""
        labels = component_labels(diffusion)
        if labels is None:
            return cls.from_operator(diffusion.deflated, count, leading)
        components = sorted(members_of(labels), key=len, reverse=True)
        return cls(components, [leading(within_component(diffusion, c), count) for c in components])

    @classmethod
    def from_operator(
        cls, A: Deflated, count: int = N_LEADING, leading: LeadingPairs = leading_pairs
    ) -> ComponentCoordinates:
        """Compute the same of an operator as a whole."""
        return cls([np.arange(A.n)], [leading(A, count)])

    @property
    def values(self) -> Array:
        """The eigenvalues of all pairs."""
        return np.concatenate([one.values for one in self.each])

    def enough_for(self, f: Filter) -> ComponentCoordinates:
        """Return the same, with the pairs that a filter needs; see `Coordinates.enough_for`."""
        return ComponentCoordinates(self.components, [one.enough_for(f) for one in self.each])

    def under(
        self, f: Filter, n_sketch: int, *, numbers: Array | None = None, exact: bool = False
    ) -> tuple[Array, float]:
        """Return the coordinates (n, r) under a filter, and their error.

        The error is the relative one of a mean squared distance. Where the leading eigenpairs are
        not enough (or if `exact`), all are computed for up to 2,048 vertices; for more, a sketch of
        the others is added. `numbers` (n,) of the vertices choose its random rows.
        """
        blocks, error = [], 0.0
        for vertices, one in zip(self.components, self.enough_for(f).each, strict=True):
            one = one.completed if exact or one.remaining_part(f)[1] else one
            named = None if numbers is None else numbers[vertices]
            blocks += one.under([f], n_sketch, seed=0, numbers=named)
            error = max(error, one.remaining_part(f)[0] * math.sqrt(2 / n_sketch))
        width = max(block.shape[1] for block in blocks)
        F = np.zeros((sum(map(len, self.components)), width), blocks[0].dtype)
        for vertices, block in zip(self.components, blocks, strict=True):
            F[vertices, : block.shape[1]] = block
        return F, error


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
