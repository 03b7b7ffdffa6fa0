"""Decisions on the points of a picture: which are dubious or undecided, which torn or merged."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.sparse.csgraph import connected_components

from heatsketch._typing import Array
from heatsketch.comparison.scores import Believed, Evidence
from heatsketch.neighbors import Neighbors
from heatsketch.operators.components import members_of

FALSE_DISCOVERIES = 0.05


class PlaceTests(NamedTuple):
    """The places of the points (m,) of a component, tested."""

    p: Array  # p-values of the hypothesis that a place is that of a random point
    drawn: Array  # of bool: the largest p-values, of which at least half are drawn so


class Groups(NamedTuple):
    """Groups of points: arrays of their numbers."""

    torn: list[Array]
    merged: list[Array]


class Decisions(NamedTuple):
    """What an audit decides of all points (n,), of bool; those that are not judged are believed."""

    dubious: Array
    undecided: Array


def decide(n: int, points: Sequence[Array], each: Sequence[PlaceTests]) -> Decisions:
    """Decide which of n points are not believed, by the tests of the points of some components."""
    p, drawn = (np.concatenate(parts) for parts in zip(*each, strict=True))
    # Benjamini and Hochberg 1995
    explained = stats.false_discovery_control(p) > FALSE_DISCOVERIES
    decisions = Decisions(*np.zeros((2, n), bool))
    judged = np.concatenate(points)
    decisions.dubious[judged] = explained & drawn
    decisions.undecided[judged] = explained & ~drawn
    return decisions


_LEAST_NULL = 2_000  # values of the null distribution


def tests_of(evidence: Evidence, believed: Believed, rng: np.random.Generator) -> PlaceTests:
    """Test the mean of the near and far scores of each point against those at random places."""
    n = len(believed.weights)
    null = [
        evidence.placement(rng.permutation(n), believed.weights, believed.typical).mean
        for _ in range(-(-_LEAST_NULL // n))
    ]
    explained = np.sort(np.concatenate(null))
    at_least = len(explained) - np.searchsorted(explained, believed.placement.mean, side="left")
    p = (1 + at_least) / (1 + len(explained))
    return PlaceTests(p, drawn_places(p, len(np.unique(evidence.truth.points[:, 0]))))


_AS_GOOD = 50  # random places that may be as good as a right one


def drawn_places(p: Array, places: int) -> Array:
    """Say which points have the largest p-values, as many as are at least half of them drawn.

    p-values of drawn places are uniform. Those of right places are small, but a right place may be
    no better than some 50 of the others. So all p-values that exceed 50 / places are of drawn ones,
    and tell how many smaller ones are.
    """
    least = np.clip(_AS_GOOD / places, FALSE_DISCOVERIES, 0.5)
    count = np.count_nonzero(p > least) / (1 - least)  # Storey 2002
    ordered = np.sort(p)
    not_less = len(p) - np.searchsorted(ordered, ordered)
    mostly = (ordered > least) | (2 * count * (1 - ordered) >= not_less)
    return p >= ordered[mostly].min(initial=np.inf)


_GROUP = 5  # points of the least group that is torn or merged


def groups_of(evidence: Evidence, points: Array) -> Groups:
    """Return groups of the points of the evidence that are torn, and that are merged."""
    k = evidence.k
    torn = _connected(evidence.truth.near[:, :k], evidence.torn)
    merged = _connected(evidence.picture.near[:, :k], evidence.merged)
    return Groups(*([points[group] for group in found] for found in (torn, merged)))


def _connected(near: Array, beyond: Array) -> list[Array]:
    """Return groups of points, each other's neighbours, a third of whose neighbours are beyond."""
    flagged = (beyond > 0).mean(axis=1) >= 1 / 3
    links = Neighbors(np.ones(near.shape), near).as_csr(len(near))
    labels = connected_components(links[flagged][:, flagged], directed=False)[1]
    groups = [np.flatnonzero(flagged)[members] for members in members_of(labels)]
    return [group for group in groups if len(group) >= _GROUP]
