"""Scores of the places of points in a picture, by their neighbours and by landmarks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy import stats
from scipy.optimize import isotonic_regression
from scipy.spatial.distance import cdist

from heatsketch._tiles import filled, row_tiles
from heatsketch._typing import Array
from heatsketch.metrics.neighborhoods import nearest_others
from heatsketch.neighbors.metric import in_unit

_TINY = 1e-12

Places = Array | slice  # points at whose places others are
OWN = slice(None)


_LANDMARKS, _LANDMARK_ENTRIES = 400, 12_000_000  # points that all others are compared with


def landmarks_of(n: int, rng: np.random.Generator) -> Array:
    """Return points (m,) that all others are compared with; fewer of many points."""
    count = min(n, _LANDMARKS, max(100, _LANDMARK_ENTRIES // n))
    return rng.choice(n, count, replace=False)


_FAR = 0.05  # fraction of the points that are nearer than a pair that is far apart


@dataclass(frozen=True, eq=False)
class View:
    """The points of a component as they are in truth, or in a picture: neighbours, landmarks."""

    points: Array  # (n, c)
    near: Array  # (n, 2 k), the nearest points
    far: Array  # (n, m), distances to landmarks
    ranks: Array  # (n, m), of these distances

    @classmethod
    def from_points(cls, P: Array, k: int, landmarks: Array) -> Self:
        """Find the 2 k nearest points, and distances to landmarks (m,)."""
        shape = len(P), len(landmarks)
        # By differences, so that equal points are at distance 0.
        far = filled(lambda rows: cdist(P[rows], P[landmarks]), shape).astype(np.float32)
        ranks = filled(lambda rows: stats.rankdata(far[rows], axis=1), shape).astype(np.float32)
        return cls(P, nearest_others(P, 2 * k), far, ranks)

    def beyond(self, near: Array) -> Array:
        """Say how far beyond a neighbourhood the points `near` (n, k) are, from 0 to 1.

        By the fraction of landmarks that are nearer. A neighbourhood has 5 % of them.
        """
        P, least = self.points, max(_FAR, 4 * near.shape[1] / len(self.points))

        def beyond(rows: slice) -> Array:
            lengths = np.linalg.norm(P[near[rows]] - P[rows, None], axis=2).astype(np.float32)
            nearer = (self.far[rows, None, :] < lengths[:, :, None]).mean(axis=2)
            return np.maximum(nearer - least, 0.0) / (1 - least)

        return filled(beyond, near.shape)


class Placement(NamedTuple):
    """How well points are placed, each by itself: their near and far scores (n,), from 0 to 1."""

    near: Array
    far: Array

    @property
    def mean(self) -> Array:
        """The mean of both scores."""
        return (self.near + self.far) / 2


class Believed(NamedTuple):
    """The placement of points, of whom those that are believed less count less in the means."""

    placement: Placement
    weights: Array  # (n,), of the points whose means these scores are
    typical: Array  # (bins,), log D as a function of the distance in the picture


class Scores(NamedTuple):
    """The scores of points (n,) that an audit shows; NaN for points that are not judged."""

    neighbors_kept: Array
    false_neighbors: Array
    order_kept: Array
    trust: Array

    @classmethod
    def from_components(cls, n: int, points: Sequence[Array], each: Sequence[Self]) -> Self:
        """Return the scores of all n points, from those of the points of some components."""
        found = cls(*np.full((len(cls._fields), n), np.nan))
        for whole, *parts in zip(found, *each, strict=True):
            whole[np.concatenate(points)] = np.concatenate(parts)
        return found


_BINS = 256  # of distances in the picture, in which true distances have one typical value
_ROUNDS = 6  # in which points that are believed less count less
_LEAST_TRUST, _POWER = 1e-3, 4  # weights of points are powers of their scores
_EQUAL_RANKS = 1e-3  # variance of ranks below which all distances are equal
_COUNTS = np.array([0.5, 1.0, 1.0, 1.0])  # of scores near, far, true, whole
_LEAST_SPREAD = 0.05  # of a score: one that varies less counts no more


@dataclass(frozen=True, eq=False)
class Evidence:
    """Distances to landmarks, and neighbours, in truth and as seen in a picture."""

    k: int  # points of a neighbourhood
    landmarks: Array  # (m,)
    truth: View
    picture: View
    torn: Array  # (n, k), how far beyond a neighbourhood of the picture true neighbours are
    merged: Array  # (n, k), how far beyond a true neighbourhood those in the picture are
    logs: Array  # (n, m), of true distances to landmarks
    bins: Array  # (n, m), of those in the picture

    @classmethod
    def from_points(cls, F: Array, Y: Array, k: int, landmarks: Array) -> Self:
        """Gather the evidence on a picture Y (n, c) of points whose true rows are F (n, r)."""
        truth, picture = (View.from_points(P, k, landmarks) for P in (F, in_unit(Y)))
        D, E = truth.far, picture.far
        some = E.ravel()[:: max(1, E.size // 1_000_000)]
        edges = np.quantile(some, np.linspace(0, 1, _BINS + 1)[1:-1])
        return cls(
            k,
            landmarks,
            truth,
            picture,
            torn=picture.beyond(truth.near[:, :k]),
            merged=truth.beyond(picture.near[:, :k]),
            logs=np.log(D, out=np.zeros_like(D), where=D > 0),  # equal points do not count
            bins=np.searchsorted(edges, E).astype(np.uint8),  # equally many distances in each
        )

    def scores(self, placement: Placement) -> Scores:
        """Return the scores of all points at their own places, with this near and far."""
        return Scores(
            neighbors_kept=self.kept(OWN).mean(axis=1),
            false_neighbors=1 - self.true(OWN).mean(axis=1),
            order_kept=self.order(OWN, np.ones(len(self.landmarks))),
            trust=self.trust(placement),
        )

    def kept(self, places: Places) -> Array:
        """Say which true neighbours (n, k) are near, if points are at the places of others."""
        return _contained(self.truth.near[:, : self.k], self.picture.near[places])

    def true(self, places: Places) -> Array:
        """Say which neighbours (n, k) of these places in the picture are near in truth."""
        return _contained(self.picture.near[places, : self.k], self.truth.near)

    def order(self, places: Places, weights: Array) -> Array:
        """Return the rank correlations (n,) of distances to weighted landmarks."""
        w = (weights / weights.sum()).astype(np.float32)
        A, B = self.truth.ranks, self.picture.ranks[places]
        a, b = A @ w, B @ w
        moments = (np.einsum("ij,ij,j->i", P, Q, w) for P, Q in ((A, B), (A, A), (B, B)))
        covariance, before, after = (
            m - mean for m, mean in zip(moments, (a * b, a**2, b**2), strict=True)
        )
        sizes = np.sqrt(np.maximum(before * after, 0.0))
        return np.divide(covariance, sizes, out=np.zeros(len(A)), where=sizes > _EQUAL_RANKS)

    def typical(self, weights: Array) -> Array:
        """Return log D as an increasing function (bins,) of the distance in the picture."""
        pairs = (weights[:, None] * weights[self.landmarks]) * (self.truth.far > 0)
        totals = np.bincount(self.bins.ravel(), pairs.ravel(), _BINS) + _TINY
        sums = np.bincount(self.bins.ravel(), (pairs * self.logs).ravel(), _BINS)
        return isotonic_regression(sums / totals, weights=totals).x.astype(np.float32)

    def placement(self, places: Places, weights: Array, typical: Array) -> Placement:
        """Return the near and far scores of points at places, by weights of all points."""
        before, after = self.truth.near[:, : self.k], self.picture.near[places, : self.k]
        near_kept, near_true = (
            (values * weights[near]).sum(axis=1) / weights[near].sum(axis=1)
            for values, near in ((self.kept(places), before), (self.true(places), after))
        )
        w = weights[self.landmarks]
        errors = np.abs(self.logs - typical[self.bins[places]])
        errors[self.truth.far == 0] = 0.0
        far = np.maximum(self.order(places, w), 0.0) * np.exp(-(errors @ w) / w.sum())
        return Placement((near_kept + near_true) / 2, far)

    def believed(self) -> Believed:
        """Return the placement of all points at their own places, and how points are weighed."""
        weights = np.ones(len(self.bins))
        for _ in range(_ROUNDS):
            typical = self.typical(weights)
            placement = self.placement(OWN, weights, typical)
            used, weights = weights, np.maximum(placement.mean, _LEAST_TRUST) ** _POWER
        return Believed(placement, used, typical)

    def trust(self, placement: Placement) -> Array:
        """Return the trust (n,): the mean of four scores, those that vary less counting more.

        Its median is that of the mean of near and far: how good the picture is as a whole.
        """
        torn, near = (self.torn > 0).mean(axis=1), self.truth.near
        whole = 1 - (torn + torn[near].sum(axis=1)) / (1 + near.shape[1])
        true = 1 - np.minimum(2 * self.merged.mean(axis=1), 1.0)
        scores = np.column_stack([placement.near, placement.far, true, whole])
        spreads = np.median(np.abs(scores - np.median(scores, axis=0)), axis=0)
        mean = np.average(scores, axis=1, weights=_COUNTS / np.maximum(spreads, _LEAST_SPREAD))
        level = np.median(placement.mean) / max(np.median(mean), _TINY)
        return np.minimum(mean * level, 1.0)


def _contained(some: Array, others: Array) -> Array:
    """Say of each entry of rows (n, k) whether the same row of others (n, m) has it."""
    found = np.empty(some.shape, bool)
    for tile in row_tiles(len(some)):
        found[tile] = (some[tile, :, None] == others[tile, None, :]).any(axis=2)
    return found
