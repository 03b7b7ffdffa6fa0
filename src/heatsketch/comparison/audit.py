"""`audit`: how far each point, group and gap of a picture can be believed.

Scores of each point, decisions with a rate of false findings, contrasts of gaps between labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, compress
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import stats
from scipy.optimize import isotonic_regression
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.utils import check_array, check_random_state

from heatsketch._arrays import Array
from heatsketch._checks import check_number, check_parameters, grouped
from heatsketch._messages import warn
from heatsketch._threads import filled, row_tiles
from heatsketch.core.graph import is_graph
from heatsketch.core.operators import members_of
from heatsketch.estimators import HeatSketch
from heatsketch.estimators._base import DiffusionEstimator
from heatsketch.layout.free import is_measurable
from heatsketch.markov.diffusion import Diffusion
from heatsketch.metrics import Distortion, diffusion_distortion
from heatsketch.metrics.neighborhoods import nearest_others
from heatsketch.metrics.picture import (
    LEAST_JUDGED,
    PictureQuality,
    picture_quality,
    sampled_geodesics,
)
from heatsketch.neighbors import Neighbors
from heatsketch.neighbors.search import in_unit
from heatsketch.spectral.functions import SPECTRAL_LIMIT
from heatsketch.uncertainty.intervals import Interval

_TINY = 1e-12

Places = Array | slice  # points at whose places others are
OWN = slice(None)


_LANDMARKS, _LANDMARK_ENTRIES = 400, 12_000_000  # points that all others are compared with
_CHEAP_ENTRIES = 1_000_000  # distances that few points always have, so that the draw counts less


def landmarks_of(n: int, rng: np.random.Generator) -> Array:
    """Return points (m,) that all others are compared with: up to 1,000 points all of them."""
    most = max(_LANDMARKS, _CHEAP_ENTRIES // n)
    count = min(n, most, max(100, _LANDMARK_ENTRIES // n))
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


_LEAST_NULL = 20_000  # values of the null distribution


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


MOST_LABELS = 60
_CROSSED = 64  # columns of a sketch whose products tell the variance of gaps


class Gap(NamedTuple):
    """How far two labels are apart, truly and in the picture.

    Attributes
    ----------
    labels : tuple of two labels
    distance : Interval
        Root mean square of the diffusion distances between their points, of pairs in a component.
        The interval holds it with a probability of 95 %, if the sketch has 8 columns or more.
    picture : float
        The same of the distances of these pairs in the picture.
    rank : int
        Place of this gap among all gaps of the picture, 1 for the smallest.
    true_ranks : tuple (lowest, highest)
        Places that it can have among the true gaps, by their intervals.
    believed : bool
        Whether `rank` is one of `true_ranks`: the truth does not refute it. It confirms it only if
        there is one.
    """

    labels: tuple[Any, Any]
    distance: Interval
    picture: float
    rank: int
    true_ranks: tuple[int, int]
    believed: bool


class Contrast(NamedTuple):
    """Two gaps of one label whose ratio in the picture differs most from the true one.

    Attributes
    ----------
    label, nearer, farther
        The picture shows `label` nearer to the second than to the third.
    picture : float
        Distance to the third over that to the second, in the picture; at least 1. Distances are
        root mean squares of all pairs, as in `Gap`: a stray point can change that of a small label.
    truth : Interval
        The same ratio of diffusion distances; it does not contain `picture`.
    """

    label: Any
    nearer: Any
    farther: Any
    picture: float
    truth: Interval

    def describe(self) -> str:
        """Describe the contrast in one sentence."""
        looks = f"{self.picture:.1f} times as far" if self.picture >= 1.05 else "as far"
        error = (self.truth.high - self.truth.low) / 2
        return (
            f"{self.label} looks {looks} from {self.farther} as from {self.nearer}; in truth it is "
            f"{self.truth.value:.2g} ± {error:.1g} times as far (root mean squares of all pairs)."
        )


class Gaps(NamedTuple):
    """Gaps of labels, the nearest first, the contrast, and how many gaps could not be judged."""

    each: list[Gap]
    contrast: Contrast | None
    not_judged: int


NO_GAPS = Gaps([], None, 0)


def compare_gaps(F: Array, Y: Array, labels: Any, components: list[Array]) -> Gaps:
    """Compare the distances between labels, truly and in the picture."""
    codes, names = grouped(labels, len(Y))
    if not 2 <= len(names) <= MOST_LABELS:
        raise ValueError(
            f"labels have {len(names)} different values; pass 2 to {MOST_LABELS} groups, or "
            "leave labels out."
        )
    (true, squares), (seen, _) = (_square_columns(P, codes, components, len(names)) for P in (F, Y))
    joined = ~np.isnan(true[:, 0])
    pairs = compress(combinations(names, 2), joined)
    distances = _root_mean_squares(true[joined], squares[joined])
    lengths = np.sqrt(seen[joined].sum(axis=1))
    ranks = stats.rankdata(lengths, method="min").astype(int)
    lowest = 1 + np.searchsorted(np.sort(distances.high), distances.low, side="left")
    highest = np.searchsorted(np.sort(distances.low), distances.high, side="right")
    believed = (lowest <= ranks) & (ranks <= highest)
    columns = (lengths, ranks, np.column_stack([lowest, highest]), believed)
    gaps = [
        Gap(pair, Interval(*ends), length, rank, tuple(possible), is_believed)
        for pair, ends, length, rank, possible, is_believed in zip(
            pairs, np.transpose(distances).tolist(), *(c.tolist() for c in columns), strict=True
        )
    ]
    gaps.sort(key=lambda gap: gap.distance.value)
    contrast = _contrast(names, true, np.sqrt(seen.sum(axis=1)))
    return Gaps(gaps, contrast, int(np.count_nonzero(~joined)))


def _contrast(names: list[Any], columns: Array, lengths: Array) -> Contrast | None:
    """Return the two gaps of a label whose ratio in the picture is farthest outside its interval.

    The variance of log √(Σ x_c/Σ y_c) of independent columns (x_c, y_c) is, to first order, that
    of Σ (x_c/Σ x - y_c/Σ y)/2. The intervals hold for all ratios together (Bonferroni), because
    the most extreme one is chosen.
    """
    count, k = len(names), columns.shape[1]
    if count < 3 or k < 2:
        return None
    # Labels of equal points, and those of different components, have no ratio.
    totals, lengths = (np.where(x > 0, x, np.nan) for x in (columns.sum(axis=1), lengths))
    quantile = stats.t.isf(0.05 / (count * (count - 1) * (count - 2)), k - 1)
    i, j = np.triu_indices(count, 1)
    parts, logs = np.zeros((count, count, k)), np.zeros((2, count, count))
    parts[i, j] = parts[j, i] = columns / totals[:, None]
    logs[:, i, j] = logs[:, j, i] = np.log(totals) / 2, np.log(lengths)
    true, seen = logs[..., None] - logs[..., None, :]  # ratios (label, far, near)
    centred = parts - parts.mean(axis=2, keepdims=True)
    covariance = k / (k - 1) * centred @ centred.swapaxes(1, 2)  # (label, other, other)
    variance = np.einsum("aii->ai", covariance)
    spread = variance[:, :, None] + variance[:, None] - 2 * covariance
    errors = quantile * np.sqrt(np.maximum(spread, 0.0)) / 2
    excess = np.where((seen >= 0) & (errors >= 0), np.abs(true - seen) - errors, -np.inf)
    own = np.arange(count)
    excess[own, own] = excess[own, :, own] = -np.inf
    most = label, far, near = np.unravel_index(excess.argmax(), excess.shape)
    if not excess[most] > 0:
        return None
    truth = Interval(*np.exp(true[most] + errors[most] * np.array([0, -1, 1])).tolist())
    return Contrast(names[label], names[near], names[far], float(np.exp(seen[most])), truth)


def _square_columns(
    P: Array, codes: Array, components: list[Array], count: int
) -> tuple[Array, Array]:
    """Return the means of (p_i - p_j)² between labels, and what tells their variance.

    For each pair of labels, over its pairs of points i, j in a component: C is the mean of
    (p_i - p_j)(p_i - p_j)ᵀ. The first result (pairs, k) is its diagonal, NaN without such points.
    The second (pairs,) is the mean square of its other entries (0 for one column), of the first 64
    columns. The columns of a sketch are independent and Gaussian, and so are its rows of different
    components. Therefore the variance of an entry of the diagonal is twice the mean of the second.
    """
    place = {pair: row for row, pair in enumerate(combinations(range(count), 2))}
    columns, squares = np.zeros((len(place), P.shape[1])), np.zeros(len(place))
    weights = np.zeros(len(place))
    for rows in components:
        moments = {}
        for a in np.unique(codes[rows][codes[rows] >= 0]):
            own = P[rows[codes[rows] == a]].astype(float)
            some = own[:, :_CROSSED] - own[:, :_CROSSED].mean(axis=0)
            moments[int(a)] = len(own), own.mean(axis=0), own.var(axis=0), some.T @ some / len(own)
        for pair in combinations(moments, 2):
            (n_a, mean_a, var_a, C_a), (n_b, mean_b, var_b, C_b) = (moments[a] for a in pair)
            step, weight = mean_a - mean_b, n_a * n_b
            C = C_a + C_b + np.outer(step[:_CROSSED], step[:_CROSSED])
            others = np.sum(C**2) - np.sum(np.diagonal(C) ** 2)
            columns[place[pair]] += weight * (var_a + var_b + step**2)
            squares[place[pair]] += weight**2 * others / max(1, len(C) * (len(C) - 1))
            weights[place[pair]] += weight
    weights[weights == 0] = np.nan
    return columns / weights[:, None], squares / weights**2


def _root_mean_squares(columns: Array, squares: Array) -> Interval:
    """Return √Σ of columns (p, k) with intervals of 95 %: chi-square of as many degrees of freedom.

    As many as the sum has by its mean and variance, at least k. 2 are taken off because the square
    of the sum exceeds that of its mean, and a part 2 / k because k columns tell the variance (at
    most 64).
    """
    total, k = columns.sum(axis=1), columns.shape[1]
    variance = k * squares
    degrees = np.divide(total**2, variance, out=np.zeros(len(total)), where=variance > 0)
    degrees = np.maximum((degrees - 2) * (1 - 2 / min(k, _CROSSED)), k)
    ends = total * degrees / stats.chi2.isf([[0.025], [0.975]], degrees)
    return Interval(*np.sqrt([total, *ends]))


NEIGHBORS = 15


@dataclass(eq=False, repr=False)
class Audit:
    """The result of `audit` of a picture of n points.

    Points in components of fewer than 50 points are not judged: NaN, and not dubious.

    Attributes
    ----------
    neighbors_kept : array (n,)
        Fraction of the `n_neighbors` points nearest by diffusion distance that are among the
        2 `n_neighbors` nearest in the picture.
    false_neighbors : array (n,)
        Fraction of the `n_neighbors` nearest in the picture that are not among the
        2 `n_neighbors` nearest by diffusion distance.
    order_kept : array (n,)
        Rank correlation of a point's distances in the picture with its diffusion distances.
    trust : array (n,), in [0, 1]
        How far the place of the point can be believed, by itself and by its group.
    dubious : array of bool (n,)
        Points whose place is no better than that of another point would be, by themselves.
    undecided : array of bool (n,)
        Points whose place may be right or such a place: both give scores like theirs, in components
        of fewer than 1,000 points above all.
    torn, merged : list of index arrays
        Groups of points whose true neighbours are far away in the picture; groups of points whose
        neighbours in the picture are far away in truth. The largest first.
    gaps : list of Gap
        A row for each pair of labels with points in one component, the nearest first; empty without
        labels.
    contrast : Contrast or None
        The comparison of two gaps in which the picture misleads most; None if it misleads in none.
    model : HeatSketch
        The sketch of the true distances; those of the rows of its `embedding_` estimate them.
    picture : array (n, c)
        The picture.
    gaps_not_judged : int
        Number of pairs of labels that have no points in the same component.
    """

    neighbors_kept: Array
    false_neighbors: Array
    order_kept: Array
    trust: Array
    dubious: Array
    undecided: Array
    torn: list[Array]
    merged: list[Array]
    gaps: list[Gap]
    contrast: Contrast | None
    model: HeatSketch
    picture: Array
    gaps_not_judged: int = 0

    _fit_times = (None,)  # a picture has no time

    def distance(self, i: Any, j: Any = None, *, level: float = 0.95) -> Interval:
        """Return diffusion distances of points with intervals, as `HeatSketch.distance` does.

        Raises
        ------
        ValueError, TypeError
            As `HeatSketch.distance`.
        """
        return self.model.distance(i, j, level=level)

    @cached_property
    def distortion(self) -> Distortion:
        """How the picture changes the diffusion distances: `within`, `log_L`, as `score` has it."""
        model = self.model
        return diffusion_distortion(
            self.picture,
            model._current_diffusion(),
            model._fit_times[0],
            filter=model._fitted_as.filter,
            rng=0,
        )

    @cached_property
    def quality(self) -> PictureQuality | None:
        """How far the picture can be believed as a whole; None if no points are known."""
        diffusion = self.model._current_diffusion()
        if not is_measurable(diffusion):
            return None
        geodesics = sampled_geodesics(diffusion)
        return picture_quality(self.picture, diffusion, self.distortion, geodesics)

    def describe(self) -> str:
        """Describe in three lines how far the picture can be believed.

        Examples
        --------
        >>> import heatsketch as hs
        >>> X, angle = hs.datasets.circle(200, rng=0)
        >>> print(hs.audit(X, X, random_state=0).describe().partition(",")[0])
        0 of 200 points are dubious
        """
        others = np.count_nonzero(np.isnan(self.trust))
        lines = [
            f"{self.dubious.sum():,} of {len(self.trust) - others:,} points are dubious, the "
            f"median trust is {np.nanmedian(self.trust):.2f}; distances within a factor of 1.5: "
            f"{100 * self.distortion.within[1.5]:.0f} %.",
            f"Means over the points: {np.nanmean(self.neighbors_kept):.2f} of the true neighbours "
            f"are kept, {np.nanmean(self.false_neighbors):.2f} of the neighbours in the picture "
            f"are false, order of distances {np.nanmean(self.order_kept):.2f}.",
            f"Torn: {_sizes(self.torn)}. Merged: {_sizes(self.merged)}.",
        ]
        if self.undecided.any():
            lines[0] += (
                f" {self.undecided.sum():,} are undecided: right and random places score like "
                "theirs."
            )
        if others:
            small = f"components of fewer than {LEAST_JUDGED}"
            lines[0] += f" {others:,} points in {small} are not judged."
        if self.gaps:
            wrong = sum(not gap.believed for gap in self.gaps)
            sure = sum(gap.believed and len({*gap.true_ranks}) == 1 for gap in self.gaps)
            lines[2] += (
                f" Places of {len(self.gaps)} gaps between labels by size: {wrong} wrong, {sure} "
                f"right, {len(self.gaps) - wrong - sure} cannot be told."
            )
        if self.gaps_not_judged:
            apart = f"{self.gaps_not_judged} gaps between labels in different components"
            lines[2] += f" {apart} are not judged."
        if self.contrast is not None:
            lines[2] += f" {self.contrast.describe()}"
        return "\n".join(lines)


def audit(
    X: Any,
    Y: Any,
    *,
    labels: Any = None,
    n_components: int | str | None = None,
    time: Any = 8,
    n_neighbors: int = NEIGHBORS,
    random_state: Any = None,
    **parameters: Any,
) -> Audit:
    """Audit a picture: say for each point how far its place can be believed.

    The picture is compared with the diffusion distances of the data, added up over the times t,
    ..., 64 t - 1 (`Accumulated`). A sketch of k columns gives each of them with a relative error of
    √(1/(2k)). Nothing diffuses between components, so each is judged by itself.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), graph or fitted estimator
        Points; a symmetric affinity or graph with ``affinity="precomputed"``, or any graph that
        `heatsketch.graph` reads; or an estimator with a `diffusion_`. A fitted `HeatSketch` of one
        time is used as it was fitted, with its own filter and time.
    Y : array-like of shape (n_samples, n_coordinates)
        The picture of the same rows, made by any method; usually c is 2 or 3.
    labels : array-like of shape (n_samples,), default=None
        Groups, at most 60 different ones; the gaps between them are compared. None, NaN, infinity,
        the NA of pandas, masked entries and empty text are missing labels.
    n_components : int or "auto", default=None
        Number of columns k of the sketch, "auto" as in `HeatSketch`. None: 2,048 for up to 2,048
        points, so that which points are dubious hardly depends on the seed; for n points beyond,
        524,288/n, at least 64.
    time : int >= 1, default=8
        The time t from which distances are added up.
    n_neighbors : int, default=15
        Size of a neighbourhood; at most a fiftieth of the points of a component (2 for fewer than
        150), so that a random place is seldom near the right one.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the sketch, the landmarks and the permutations.
    **parameters
        Other parameters of `HeatSketch`, such as `metric` and `affinity`.

    Returns
    -------
    Audit
        Arrays of shape (n_samples,): `trust`, `dubious`, `neighbors_kept`, `false_neighbors`,
        `order_kept`. Groups of points: `torn`, `merged`. With labels: `gaps`, `contrast`.
        `describe()` summarises it in three lines, `distance(i, j)` gives true distances with
        intervals.

    Raises
    ------
    ValueError, TypeError
        Y is not a finite table with a row for each point; more than 60 labels, or only one; no
        component of 50 points; an estimator without a diffusion; invalid points or parameters.

    See Also
    --------
    report : Show an embedding in one page of HTML.
    metrics.trustworthiness : Measure whether neighbours in an embedding are true.
    metrics.diffusion_distortion : Measure how an embedding changes diffusion distances.

    Notes
    -----
    `trust` is the mean of four scores between 0 and 1, weighted by 1 / spread: the median absolute
    deviation of the score from its median over the points, at least 0.05. So a score that is alike
    almost everywhere tells most where it is not. The mean is multiplied by a number for each
    component that makes its median that of (near + far) / 2, which says how good the picture is as
    a whole. Two scores are of the point alone, and near counts half:

    - near: the mean of `neighbors_kept` and 1 - `false_neighbors`;
    - far: `order_kept`, at least 0, times exp(-e), e the mean of |log D/f(d)| over landmarks, where
      f is the increasing function that best gives distances D from those in the picture d.

    Two find groups that moved as a whole and keep their own neighbours:

    - true: 1 - 2 r, at least 0; r says how far in truth the neighbours in the picture are. It is
      the mean of the fraction of landmarks that are nearer in truth than such a neighbour, from 0
      at the nearest 5 % to 1 at the farthest;
    - whole: 1 - the fraction of true neighbours that are beyond the nearest 5 % in the picture, in
      the mean over the point and its 2 `n_neighbors` true neighbours: one step of a walk.

    Means of near and far weight points by the fourth power of their own mean, in six rounds, so
    that a group in a wrong place does not make the others doubtful.

    `dubious` comes from a test for each point by the mean of its near and far scores. The null
    hypothesis: the place of the point is drawn from the places of all points of its component, all
    else fixed. Its distribution comes from permutations of the points. Points whose scores it does
    not explain are believed, by the procedure of Benjamini and Hochberg [1]_. p-values of points
    that are near each other depend on each other positively, for which the procedure is valid
    [2]_: at most 5 % of the believed points, in the mean, have a place that is drawn so. In trials
    with 100 to 900 points this held while up to half of the places were drawn. The null
    distribution is estimated from the picture itself, so where 80 or 90 % of the places were drawn
    it was up to 14 % of the believed points with 600 points, and up to 27 % with 200.

    A point that is not believed need not be wrong: with few points a right place is no better than
    many others. p-values of drawn places are uniform, and those of right places of n distinct
    points seldom exceed a = 50/n (at least .05, at most ½). So the drawn places are counted by the
    p-values above a, over 1 - a [3]_. The points with the largest p-values are dubious, as many as
    are at least half of them drawn by this count; the others are `undecided`. Of rotated copies of
    points of two or three columns at most .06 % were dubious in the mean, with 50 to 1,000 points
    in a component. Of single points that are drawn, six in ten were found with 100 points, three
    quarters with 200. A group that is moved as a whole is not random: it has little trust, and need
    not be dubious.

    A point is torn if a third of its true neighbours are farther in the picture than 5 % of all
    points, and merged if a third of its neighbours in the picture are so far in truth.

    The cost is that of the sketch, two neighbour searches (in k and c features), and distances to
    landmarks: all of up to 1,000 points, 400 of 2,500 and more (fewer beyond 30,000). Memory is 14
    bytes for each distance to a landmark.

    References
    ----------
    .. [1] Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate: a practical and
       powerful approach to multiple testing", Journal of the Royal Statistical Society B 57 (1995),
       289-300.
    .. [2] Y. Benjamini and D. Yekutieli, "The control of the false discovery rate in multiple
       testing under dependency", Annals of Statistics 29 (2001), 1165-1188.
    .. [3] J. D. Storey, "A direct approach to false discovery rates", Journal of the Royal
       Statistical Society B 64 (2002), 479-498.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(300, rng=0)
    >>> wrong = X.copy()
    >>> wrong[:3] = -wrong[:3]
    >>> hs.audit(X, wrong, random_state=0).dubious.nonzero()[0]
    array([0, 1, 2])
    """
    check_parameters("audit", parameters, audit, HeatSketch)
    n_neighbors = check_number(n_neighbors, "n_neighbors", low=1, integer=True)
    Y = check_array(Y, dtype=np.float64, input_name="Y")
    k = columns_for_points(len(Y)) if n_components is None else n_components
    model = _sketch_of(X, k, time, random_state, parameters)
    F, Y = model.embedding_, _checked_picture(X, Y, len(model.embedding_))
    rng = _generator_of(random_state)
    # Nothing diffuses between components: each is judged by itself.
    components = members_of(model._current_diffusion().component_of)
    judged = _large_enough(components, len(F))
    each = [_judge(points, F, Y, n_neighbors, rng) for points in judged]
    scores, tests, groups = zip(*each, strict=True)
    shown = Scores.from_components(len(F), judged, scores)
    decisions = decide(len(F), judged, tests)
    torn, merged = (
        sorted(chain(*found), key=len, reverse=True) for found in zip(*groups, strict=True)
    )
    gaps = NO_GAPS if labels is None else compare_gaps(F, Y, labels, components)
    return Audit(
        neighbors_kept=shown.neighbors_kept,
        false_neighbors=shown.false_neighbors,
        order_kept=shown.order_kept,
        trust=shown.trust,
        dubious=decisions.dubious,
        undecided=decisions.undecided,
        torn=torn,
        merged=merged,
        gaps=gaps.each,
        contrast=gaps.contrast,
        model=model,
        picture=Y,
        gaps_not_judged=gaps.not_judged,
    )


def _judge(
    points: Array, F: Array, Y: Array, n_neighbors: int, rng: np.random.Generator
) -> tuple[Scores, PlaceTests, Groups]:
    """Judge the points of a component by themselves."""
    k = min(n_neighbors, max(2, len(points) // 50))
    landmarks = landmarks_of(len(points), rng)
    evidence = Evidence.from_points(F[points], Y[points], k, landmarks)
    believed = evidence.believed()
    scores = evidence.scores(believed.placement)
    return scores, tests_of(evidence, believed, rng), groups_of(evidence, points)


def _generator_of(random_state: Any) -> np.random.Generator:
    """Return the generator of the landmarks and the permutations."""
    seed = random_state
    if not isinstance(seed, np.random.Generator):
        seed = check_random_state(seed).randint(2**31)
    return np.random.default_rng(seed)


_LEAST_COLUMNS, _COLUMN_ENTRIES = 64, 2**19  # of the sketch of many points


def columns_for_points(n: int) -> int:
    """Return the number of columns that the sketch of an audit has by default."""
    if n <= SPECTRAL_LIMIT:  # all eigenpairs are computed, and columns cost little
        return SPECTRAL_LIMIT
    return max(_LEAST_COLUMNS, _COLUMN_ENTRIES // n)


_PICTURE = 3  # most columns of a table that may be a picture


def _checked_picture(X: Any, Y: Any, n: int) -> Array:
    """Return the picture (n, c) of the points X, centred, or raise."""
    if len(Y) != n:
        raise ValueError(f"Y has {len(Y)} rows but X has {n} points; pass a row for each point.")
    columns = X.shape[1] if getattr(X, "ndim", 0) == 2 else n
    if columns <= _PICTURE < Y.shape[1]:
        warn(
            UserWarning,
            f"X has {columns} columns and Y has {Y.shape[1]}: is X the picture, and Y the data? "
            "Then pass audit(Y, X).",
        )
    return Y - Y.mean(axis=0)


def _large_enough(components: list[Array], n: int) -> list[Array]:
    """Return the components of a picture that can be judged, or raise if there are none."""
    judged = [points for points in components if len(points) >= LEAST_JUDGED]
    if not judged:
        raise ValueError(
            f"The largest component has {max(map(len, components))} of {n} points, too few to "
            f"judge a picture; pass data with a component of at least {LEAST_JUDGED}."
        )
    return judged


def _sketch_of(X: Any, k: int | str, time: Any, random_state: Any, parameters: Any) -> HeatSketch:
    """Return a sketch whose distances are the true ones."""
    if isinstance(X, HeatSketch):
        X._current_diffusion()  # that of these points, or raises
        if len(X._fit_times) > 1:
            raise ValueError("X is a HeatSketch of several times; fit one with a single time.")
        return X._as_fitted()
    options = {"filter": "accumulated", "random_state": random_state} | parameters
    if isinstance(X, DiffusionEstimator):
        X = X._current_diffusion()
    if isinstance(X, Diffusion):
        options |= {"affinity": "precomputed", "normalization": X.normalization}
    elif is_graph(X):
        options["affinity"] = "precomputed"
    if np.size(time) > 1:
        raise ValueError(f"time={time!r} has {np.size(time)} times; pass one.")
    return HeatSketch(k, time, **options).fit(X)


def _sizes(groups: list[Array]) -> str:
    more = ", …" if len(groups) > 3 else ""
    sizes = ", ".join(f"{len(group):,}" for group in groups[:3])
    return f"{len(groups)} group(s) of {sizes}{more} points" if groups else "none"
