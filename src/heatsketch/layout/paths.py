"""Lengths that free layouts follow: along the graph of neighbours, straight, and of diffusion.

Diffusion distances added up over times grow like the root of the length of a strip, because a
commute distance is the root of a resistance. Path lengths grow like the length, but take short cuts
where there is noise. So a layout follows paths as far as the plane can hold them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.stats import rankdata

from heatsketch._random import content_order
from heatsketch._tensors import landed
from heatsketch._typing import Array
from heatsketch.backend import blocks_of
from heatsketch.graphs.shortest_paths import shortest_paths
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.out_of_sample import PointKernel
from heatsketch.neighbors import COORDINATES, pair_distances
from heatsketch.neighbors.metric import in_unit
from heatsketch.neighbors.missing import observed_distances
from heatsketch.operators.csr import largest_of_rows
from heatsketch.spectral.classical_scaling import ClassicalScaling, centre_squares
from heatsketch.spectral.eigenpairs import fix_signs

_LANDMARKS, _VISITS, _LEAST_LANDMARKS = 128, 2**21, 24  # of vertices in all; landmarks at least
_PAIRS_OF_A_POINT = 12  # with landmarks
_HALVES, _NEARER = (1, 2), (1, 2, 4, 8)  # of all landmarks, the nearest 1 of so many, around one of
_OF_LANDMARKS, _LEAST_PART = 4, 8  # so many; so many at least
_FAR, _FITTING = 3.5, 0.1  # medians: the longest length, unless the misfit is at most this
_EDGES = 16  # of a row, along which paths go where there is no graph of neighbours
_ENDS = (0.975, 0.025)
_ROUNDING = 1e-10  # an eigenvalue next to the largest
_TINY = 1e-12  # a length next to the largest, of equal points
_SMALLEST, _QUANTILES = 1e-6, 4_096  # of the table of distances in a ball
_CANCELLING = 1e-2  # distance in a disc below which its distribution is that of a plane


@dataclass(frozen=True, eq=False)
class Lengths:
    """Lengths from landmarks to all vertices of a part of the data.

    Attributes
    ----------
    order : array (n,)
        The vertices in the order of their content; the first ones are the landmarks.
    along : array (L, n)
        Along the graph of neighbours; between its components straight ones, times the typical ratio
        of the two. Or diffusion distances, where points are not known.
    joined : array of bool (L, n)
        Which of them are along the graph.
    points : array, CSR matrix or None
        The points of the vertices (n, d), or distances between them (n, n). None: not known.
    are_distances : bool
        Whether `points` are distances.
    """

    order: Array
    along: Array
    joined: Array
    points: Any = None
    are_distances: bool = False

    @classmethod
    def along_graph(cls, diffusion: Diffusion, M: Any) -> Lengths | None:
        """Find the paths along the graph of neighbours, or along M; None without lengths of edges.

        Landmarks are chosen by the content of the points in float32, so that they are the same ones
        in both precisions.
        """
        graph = graph_of_lengths(diffusion, None, M)
        if graph is None:
            return None
        new, first = cast(Any, diffusion.out_of_sample), diffusion.first_points
        given, points = new.distances_are_given, new.points[first]
        order = content_order(points, not given, np.float32)
        count = max(_LEAST_LANDMARKS, min(_LANDMARKS, _VISITS // diffusion.n))
        along = shortest_paths(graph, order[:count])
        found = cls(order, along, np.isfinite(along), points[:, first] if given else points, given)
        return found if found.joined.all() else found._whole()

    @classmethod
    def of_rows(cls, F: Array, order: Array) -> Lengths:
        """Take the distances of rows F (n, r), which are diffusion distances, as lengths."""
        n, landmarks = len(F), order[:_LANDMARKS]
        at, i = np.repeat(landmarks, n), np.tile(np.arange(n), len(landmarks))
        along = pair_distances(F, F, at, i).reshape(-1, n)
        return cls(order, along, np.ones(along.shape, bool))

    def _whole(self) -> Lengths:
        """Return the same with lengths between components."""
        i, at = self.pairs()
        along, straight = self.along[at, i], self.straight(i, self.landmarks[at])
        known = np.isfinite(along) & (straight > 0)
        ratio = float(np.median(along[known] / straight[known])) if known.any() else 1.0
        at, i = np.nonzero(~self.joined)
        along = self.along.copy()
        along[at, i] = ratio * self.straight(i, self.landmarks[at])
        return replace(self, along=along)

    @property
    def landmarks(self) -> Array:
        """The vertices (L,) that are landmarks."""
        return self.order[: len(self.along)]

    def straight(self, i: Array, j: Array) -> Array:
        """Return straight distances of pairs (m,)."""
        if self.are_distances:
            return np.minimum(self.points[i, j], self.points[j, i])
        return pair_distances(self.points, self.points, i, j)

    def pairs(self) -> tuple[Array, Array]:
        """Return pairs of a point and the number of a landmark (m,) that are not at one place.

        The k-th point in the order of content has the same landmarks whatever its row is.
        """
        n, count = len(self.order), len(self.along)
        drawn = np.random.default_rng(0).integers(0, count, (n, _PAIRS_OF_A_POINT))
        if count <= _PAIRS_OF_A_POINT:
            drawn = np.tile(np.arange(count), (n, 1))
        i, at = np.repeat(self.order, drawn.shape[1]), drawn.ravel()
        lengths = self.along[at, i]
        apart = lengths > _TINY * lengths.max(where=np.isfinite(lengths), initial=0.0)
        return i[apart], at[apart]

    def spread(self, part: float, c: int) -> Lengths:
        """Return the same with lengths moved as `spread_targets` moves logarithms; in any unit.

        A layout that starts from these need not open a dense group that lies far from a wide one.
        """
        if not (self.along > 0).any():
            return self
        i, at = self.pairs()
        along = in_unit(self.along)  # of which logarithms have the same bits in any unit
        known = np.sort(np.log(along[at, i]))
        logs = np.log(along, where=along > 0, out=np.zeros(along.shape))
        to = np.interp(logs, known, spread_targets(known, part, c))
        to += (1 - part) * (logs - np.clip(logs, known[0], known[-1]))  # beyond those of the pairs
        return replace(self, along=np.where(along > 0, np.exp(to), 0.0))

    def placed(self, c: int) -> Array:
        """Return landmark scaling (n, c), by lengths that are cut where they do not fit."""
        between = self.along[:, self.landmarks]
        longest = _longest(between, _FAR if self._fitting(c) is None else math.inf)
        B, means = _centred(between, longest)
        values, vectors = eigh(B)
        values, vectors = values[: -c - 1 : -1], fix_signs(vectors[:, : -c - 1 : -1])
        values = np.where(values > _ROUNDING * values[0], values, 0.0)
        squares = np.square(np.minimum(self.along, longest))
        places = ClassicalScaling(values, vectors, means).place(squares.T)
        return np.pad(places, ((0, 0), (0, c - places.shape[1])))

    def misfit(self, c: int) -> float:
        """Return 0 where c dimensions hold the lengths between landmarks, 1 where hardly any.

        It is the larger one of that of all landmarks and the median of those of the nearer halves
        of some, because a few far groups take the spectrum while each may be a heap. For the same
        reason far lengths are cut, unless all fit on every scale.
        """
        fitting = self._fitting(c)
        return max(self._misfits(c, _FAR, _HALVES)) if fitting is None else fitting

    def _fitting(self, c: int) -> float | None:
        """Return the misfit of uncut lengths if they fit on every scale, else None."""
        found = 0.0
        for one in self._misfits(c, math.inf, _NEARER):
            if one > _FITTING:
                return None
            found = max(found, one)
        return found

    def _misfits(self, c: int, reach: float, parts: tuple[int, ...]) -> Iterator[float]:
        """Yield the misfits of the nearer parts of the landmarks, medians over some."""
        between = self.along[:, self.landmarks]
        for part in parts:
            count = len(between) if part == 1 else max(_LEAST_PART, len(between) // part)
            of = between[:1] if part == 1 else between[::_OF_LANDMARKS]
            near = [np.argsort(row, kind="stable")[:count] for row in of]
            found = [_misfit(between[np.ix_(rows, rows)], c, reach) for rows in near]
            yield float(np.median(found))

    def sources(self, count: int) -> tuple[Array, Array]:
        """Return some landmarks (s,) and the lengths from them (s, n)."""
        return self.landmarks[:count], np.where(self.joined, self.along, np.inf)[:count]


def _longest(lengths: Array, reach: float) -> float:
    """Return so many median lengths; those of 0 do not count."""
    apart = lengths[lengths > 0]
    return reach * float(np.median(apart)) if len(apart) else 0.0


def _centred(lengths: Array, longest: float) -> tuple[Array, Array]:
    """Return -½ J Δ J (L, L) of squared lengths Δ, none above the longest, and row means of Δ."""
    squares = np.square(np.minimum(lengths, longest))
    means = centre_squares(squares)
    return squares, means


def _misfit(lengths: Array, c: int, reach: float) -> float:
    """Return 0 where c dimensions hold lengths (L, L), 1 where at most half of their spectrum.

    Eigenvalues count by their modulus (de Silva and Tenenbaum 2004).
    """
    values = eigh(_centred(lengths, _longest(lengths, reach))[0], eigvals_only=True)
    return min(1.0, 2 * (1 - float(values[-c:].sum() / (np.abs(values).sum() or 1.0))))


def wanted_distances(lengths: Lengths, F: Array, m: float) -> tuple[tuple[Array, Array], Array]:
    """Return pairs (i, j) of a point and a landmark, and the logarithms of their distances.

    Of the lengths g along the graph, e straight and d those of rows F (n, r) they are
    (1 - m) log g + m (log d + log e) / 2, where these have one median, and log g at least the range
    of the others. Between components d does not count; where points are not known, d alone counts.
    """
    i, at = lengths.pairs()
    j, same = lengths.landmarks[at], lengths.joined[at, i]
    log_d = _log(pair_distances(F, F, i, j))
    if lengths.points is None:
        return (i, j), log_d
    # In a unit of their own, so that no scale rounds them; that of the picture is the one of d.
    log_e, log_g = _log(in_unit(lengths.straight(i, j))), _log(in_unit(lengths.along[at, i]))
    far = (1 - m) * followed(log_e, log_g, 1.0) + m * log_e
    if not same.any():  # components are points
        return (i, j), far
    T = far - np.median(far[same]) + np.median(log_d[same])
    T[same] = followed(log_d[same], far[same], 1 - m / 2)
    return (i, j), T


def _log(lengths: Array) -> Array:
    """Return the logarithms of lengths, of which none is 0."""
    return np.log(np.maximum(lengths, _TINY * lengths.max()))


def followed(log_distances: Array, log_lengths: Array, weight: float) -> Array:
    """Return the weighted mean of logarithms of distances and of path lengths, of one median.

    Lengths whose range is smaller get that of the distances: paths may take short cuts.
    """
    center = np.median(log_distances)
    ranges = [np.subtract(*np.quantile(x, _ENDS)) for x in (log_distances, log_lengths)]
    stretch = max(1.0, ranges[0] / ranges[1]) if ranges[1] > 0 else 1.0
    lengths = stretch * (log_lengths - np.median(log_lengths)) + center
    return (1 - weight) * log_distances + weight * lengths


def spread_targets(log_distances: Array, spread: float, c: int) -> Array:
    """Return targets of log distances (m,): between these and quantiles of those in a ball.

    spread 0: the distances; 1: quantiles of the distances of random points of a disc (c = 2) or
    ball, with the same median, so that only their order is kept and the points fill the frame, as
    in nonmetric scaling (Kruskal 1964). Between the two: the mean of logarithms by these weights.
    """
    ranks = (rankdata(log_distances) - 0.5) / len(log_distances)
    wanted = log_quantiles(ranks, c) - log_quantiles(np.array([0.5]), c) + np.median(log_distances)
    return (1 - spread) * log_distances + spread * wanted  # type: ignore[no-any-return]


def log_quantiles(ranks: Array, c: int) -> Array:
    """Return the logarithms of quantiles of the distance of two random points of a unit ball.

    c = 2: a disc (Garwood 1947); 3: a ball.
    """
    log_t = np.linspace(math.log(_SMALLEST), math.log(2), _QUANTILES)
    t = np.exp(log_t)
    if c == 2:
        half = np.minimum(t / 2, 1)
        chord = half * (1 + t**2 / 2) * np.sqrt(1 - half**2)
        cumulative = 1 + 2 / np.pi * ((t**2 - 1) * np.arccos(half) - chord)
        cumulative = np.where(t < _CANCELLING, t**2 - 4 / (3 * np.pi) * t**3, cumulative)
    else:
        cumulative = t**3 - 9 / 16 * t**4 + t**6 / 32
    return np.interp(np.log(ranks), np.log(cumulative), log_t)


def is_measurable(diffusion: Diffusion) -> bool:
    """Say whether distances of single pairs of points are known: by coordinates, or given."""
    new = diffusion.out_of_sample
    return isinstance(new, PointKernel) and new.metric in (*COORDINATES, "precomputed")


def graph_of_lengths(diffusion: Diffusion, observed: Array | None = None, M: Any = None) -> Any:
    """Return the graph of neighbours with the lengths of its edges, CSR (n, n), symmetric.

    It is where the diffusion is. None without such a graph, unless the largest entries of M (n, n)
    take its place, and where lengths are not known. Given the points as they were `observed`
    (n, d), NaN where nothing was, lengths are those by the entries that both points have; edges
    between points that share none are left out.
    """
    step, new = diffusion.directed_step, cast(Any, diffusion.out_of_sample)
    if step is None and M is not None:
        step = largest_of_rows(M, _EDGES)
    if step is None or not is_measurable(diffusion):
        return None
    first, points = diffusion.first_points, new.points
    graph = blocks_of(step).both_ways(step)
    graph = landed(graph) if new.distances_are_given or observed is not None else graph
    blocks = blocks_of(graph)
    i, j = blocks.row_numbers(graph), graph.indices
    if new.distances_are_given:
        graph.data = np.minimum(points[first[i], first[j]], points[first[j], first[i]])
    elif observed is not None:
        lengths = observed_distances(observed, i, j)
        known = ~np.isnan(lengths)
        graph = sparse.csr_matrix((lengths[known], (i[known], j[known])), graph.shape)
    else:
        points = points[first]
        graph.data = pair_distances(points, points, i, j)
    return graph
