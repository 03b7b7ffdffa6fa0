"""Free layouts: the lengths that pictures follow, the terms that places minimise, the descent.

Diffusion distances added up over times grow like the root of the length of a strip, because a
commute distance is the root of a resistance. Path lengths grow like the length, but take short cuts
where there is noise. So a layout follows paths as far as the plane can hold them (`Lengths`).

The points Y (n, c), on the host or a device, minimise

    J(Y) = a KL(p || q) + mean over pairs of huber(log |y_i - y_j| - T_ij),

with p: the weights of M without its diagonal, rows divided by their sums, made symmetric, of sum 1;
and q in units of s, half the median length of an edge. `Neighbors` and `LogDistances` are its
terms; a new term is one more class. At the end the points are evened out by a part of a cartogram.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Protocol, cast

import numpy as np
from scipy import sparse
from scipy.fft import dctn, idctn
from scipy.linalg import eigh
from scipy.ndimage import gaussian_filter, map_coordinates
from scipy.stats import rankdata

from heatsketch._arrays import Array, landed
from heatsketch._random import content_order
from heatsketch._threads import track
from heatsketch.core.blocks import HOST, OPENING, Block, blocks_of, largest_of_rows
from heatsketch.device.operators import on_device
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.new_points import PointKernel
from heatsketch.neighbors import COORDINATES, pair_distances
from heatsketch.neighbors.graph import shortest_paths
from heatsketch.neighbors.missing import observed_distances
from heatsketch.neighbors.search import in_unit
from heatsketch.spectral.eigen import ClassicalScaling, centre_squares, fix_signs

_LANDMARKS, _VISITS, _LEAST_LANDMARKS = 128, 2**21, 24  # of vertices in all; landmarks at least
_PAIRS_OF_A_POINT = 12  # with landmarks
_HALVES, _NEARER = (1, 2), (1, 2, 4, 8)  # of all landmarks, the nearest 1 of so many, around one of
_OF_LANDMARKS, _LEAST_PART = 4, 8  # so many; so many at least
_FAR, _FITTING = 3.5, 0.1  # medians: the longest length, unless the misfit is at most this
_EDGES = 16  # of a row, along which paths go where there is no graph of neighbours
_ENDS = (0.975, 0.025)
_ROUNDING = 1e-10  # an eigenvalue next to the largest
_TINY = 1e-12  # a length next to the largest, of equal points; added to a square, as in the loops
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
        B, means, longest = _centred(between, _FAR if self._fitting(c) is None else math.inf)
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
        """Yield the misfits of the nearer parts of the landmarks, medians over some.

        0: c dimensions hold the lengths; 1: at most half of their spectrum, whose eigenvalues count
        by their modulus (de Silva and Tenenbaum 2004).
        """
        between = self.along[:, self.landmarks]
        for part in parts:
            count = len(between) if part == 1 else max(_LEAST_PART, len(between) // part)
            of = between[:1] if part == 1 else between[::_OF_LANDMARKS]
            found = []
            for near in (np.argsort(row, kind="stable")[:count] for row in of):
                B = _centred(between[np.ix_(near, near)], reach)[0]
                values = eigh(B, eigvals_only=True)
                held = float(values[-c:].sum() / (np.abs(values).sum() or 1.0))
                found.append(min(1.0, 2 * (1 - held)))
            yield float(np.median(found))


def _centred(lengths: Array, reach: float) -> tuple[Array, Array, float]:
    """Return -½ J Δ J (L, L) of squared lengths Δ, row means of Δ, and the longest length.

    None is above so many median lengths; those of 0 do not count.
    """
    apart = lengths[lengths > 0]
    longest = reach * float(np.median(apart)) if len(apart) else 0.0
    squares = np.square(np.minimum(lengths, longest))
    means = centre_squares(squares)
    return squares, means, longest


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


_EXACT_UP_TO = 1_000  # points, whose sums over all pairs are exact
_LEAST_TOTAL = float(np.finfo(float).tiny)


class Term(Protocol):
    """A part of the objective; s is the unit of length, half the median length of an edge."""

    def value(self, Y: Block, s: float) -> float:
        """Return the value at the places Y (n, c)."""

    def gradient(self, Y: Block, s: float) -> Block:
        """Return the derivatives with respect to Y (n, c)."""


class StiffTerm(Term, Protocol):
    """A term of which it is known how fast its gradient changes, as `descend` needs it."""

    def stiffness(self, s: float) -> Any:
        """Return about how much the gradient changes with the place of a point, (n, 1) or one."""


class Neighbors:
    """a KL(p || q) = a Σ p log(p / q): near points of the data shall be near in the picture.

    p: symmetric weights of the edges, of sum 1 or less. q: 1 / (1 + |y_i - y_j|² / s²) over all
    pairs, divided by its sum, as in t-SNE (van der Maaten and Hinton 2008).

    Parameters
    ----------
    edges : CSR matrix (n, n)
        p.
    weight : float
        a.
    opening : float, optional
        θ of `repulsion`; by default 0 up to 1,000 points, and 0.25 beyond.
    mass : block (n,), optional
        How often each point counts: q is multiplied by m_i m_j, as over pairs of so many copies at
        different places.
    total : float, optional
        That of p, which the repulsion is a part of: 1, unless p is smaller.
    """

    def __init__(
        self,
        edges: Any,
        weight: float,
        opening: float | None = None,
        mass: Block | None = None,
        total: float = 1.0,
    ) -> None:
        n = edges.shape[0]
        self.mass = mass
        self.edges, self.weight, self.blocks = edges, weight, blocks_of(edges)
        opening = (OPENING if n > _EXACT_UP_TO else 0.0) if opening is None else opening
        self._repulsion = self.blocks.repulsion(opening, mass)
        self.total = total

    def value(self, Y: Block, s: float) -> float:
        """Return a KL(p || q)."""
        xp, p = self.blocks.xp, self.edges.data
        squares = self.blocks.differences(Y, self.edges)[1]
        total = max(self._repulsion(Y, s)[1], _LEAST_TOTAL)
        ratio = p * (1 + squares / s**2)
        if self.mass is not None:
            ratio = ratio / _products(self.mass, self.edges)
        divergence = float((p * xp.log(ratio)).sum()) + self.total * math.log(total)
        return self.weight * divergence

    def gradient(self, Y: Block, s: float) -> Block:
        """Return 4 a / s² (Σ_j p q (y_i - y_j) - Σ p Σ_j q² (y_i - y_j) / Σ q), q not divided.

        With masses the last two sums are of m_i m_j times as much.
        """
        forces = self.blocks.forces(Y, self.edges, self, s)
        if not self.weight:
            return forces
        force, total = self._repulsion(Y, s)
        return forces - 4 * self.weight / s * self.total / max(total, _LEAST_TOTAL) * force

    def weights(self, squares: Block, s: float) -> Block:
        """Return 4 a p q / s² of the edges, from their squared lengths."""
        scale = 4 * self.weight / s
        return scale / s * self.edges.data / (1 + squares / s**2)

    def loop(self, s: float) -> tuple[Callable[..., None], tuple[Any, ...]]:
        """Return the loop that sums with these weights, and its numbers."""
        from heatsketch.core.loops import along_edges  # imports numba

        return along_edges, (s, 4 * self.weight / s / s)

    def stiffness(self, s: float) -> float:
        """Return 4 a / (n s²)."""
        return 4 * self.weight / (self.edges.shape[0] * s**2)


class LogDistances:
    """The mean over pairs of huber(log |y_i - y_j| - T_ij): distances shall be those wanted.

    Parameters
    ----------
    n : int
        Number of points.
    pairs : (i, j), arrays (m,)
        m > 0.
    targets : array (m,)
        T.
    blocks : Blocks
        Where the points are.
    dtype : type
        The precision of the points.
    mass : array (n,), optional
        A pair counts m_i m_j times.
    """

    def __init__(
        self,
        n: int,
        pairs: tuple[Array, Array],
        targets: Array,
        blocks: Any,
        dtype: Any,
        mass: Array | None = None,
    ) -> None:
        (i, j), both = pairs, np.append(targets, targets)
        ends = np.append(i, j).astype(np.int32), np.append(j, i).astype(np.int32)
        matrix = sparse.coo_matrix((both, ends), (n, n))
        matrix.has_canonical_format = True  # equal pairs stay apart
        self.pairs: Any = matrix.tocsr()
        if blocks is not HOST:
            self.pairs = on_device(self.pairs, blocks.device)
        self.pairs.data = blocks.native(self.pairs.data, dtype)
        self.blocks = blocks
        self.total = float(len(i))
        self.mass = None
        if mass is not None:
            self.total = float(np.sum(mass[i] * mass[j]))
            self.mass = blocks.native(mass, dtype)
        squares = blocks.xp.exp(-2 * self.pairs.data)
        if self.mass is not None:
            squares = squares * _products(self.mass, self.pairs)
        self._stiffness = blocks.sums_by_row(squares, self.pairs)[:, None] / self.total

    def value(self, Y: Block, s: float) -> float:
        """Return the mean of huber's loss."""
        xp = self.blocks.xp
        squares = self.blocks.differences(Y, self.pairs)[1] + _TINY
        off = abs(xp.log(squares) / 2 - self.pairs.data)
        losses = xp.where(off <= 1, off**2 / 2, off - 0.5)
        if self.mass is not None:
            losses = losses * _products(self.mass, self.pairs)
        return float(losses.sum()) / (2 * self.total)

    def gradient(self, Y: Block, s: float) -> Block:
        """Return m_i Σ_j m_j huber' (y_i - y_j) / |y_i - y_j|², over the sum of m_i m_j."""
        forces = self.blocks.forces(Y, self.pairs, self, s)
        return forces if self.mass is None else self.mass[:, None] * forces

    def weights(self, squares: Block, s: float) -> Block:
        """Return m_j huber' / |y_i - y_j|² of the pairs, over the sum of m_i m_j."""
        xp, squares = self.blocks.xp, squares + _TINY
        slopes = xp.clip(xp.log(squares) / 2 - self.pairs.data, -1, 1) / (self.total * squares)
        return slopes if self.mass is None else slopes * self.mass[self.pairs.indices]

    def loop(self, s: float) -> tuple[Callable[..., None], tuple[Any, ...]]:
        """Return the loop that sums with these weights, and its numbers."""
        from heatsketch.core.loops import between_pairs  # imports numba

        return between_pairs, (1 / self.total, self.mass)

    def stiffness(self, s: float) -> Block:
        """Return m_i Σ_j m_j exp(-2 T_ij), over the sum of m_i m_j, as at the distances wanted."""
        return self._stiffness


class Places:
    """w / Σ m times Σ m_i huber(|y_i - p_i| / 2s): points that had a place shall keep it.

    Parameters
    ----------
    places : array (n, c)
        p, NaN where a point had none.
    weight : float
        w.
    blocks : Blocks
        Where the points are.
    dtype : type
        The precision of the points.
    mass : array (n,), optional
        How often each point counts.
    """

    def __init__(
        self, places: Array, weight: float, blocks: Any, dtype: Any, mass: Array | None = None
    ) -> None:
        known = ~np.isnan(places[:, 0])
        pull = known * (1.0 if mass is None else mass)
        self.blocks = blocks
        self.places = blocks.native(np.where(known[:, None], places, 0.0), dtype)
        self.pull = blocks.native(weight / pull.sum() * pull[:, None], dtype)

    def value(self, Y: Block, s: float) -> float:
        """Return the sum of huber's losses."""
        xp = self.blocks.xp
        far = xp.sqrt(((Y - self.places) ** 2).sum(axis=1, keepdims=True)) / (2 * s)
        return float((self.pull * xp.where(far <= 1, far**2 / 2, far - 0.5)).sum())

    def gradient(self, Y: Block, s: float) -> Block:
        """Return w m_i / Σ m times the step from p_i in units of 2s, of length 1 at most."""
        xp, off = self.blocks.xp, (Y - self.places) / (2 * s)
        far = xp.sqrt((off**2).sum(axis=1, keepdims=True))
        return self.pull / (2 * s) * off / xp.clip(far, 1.0, None)

    def stiffness(self, s: float) -> Block:
        """Return w m_i / Σ m / (2s)²."""
        return self.pull / (2 * s) ** 2


def edges_of(M: Any, dtype: Any, mass: Block | None = None, sizes: Block | None = None) -> Any:
    """Return p (n, n): rows of M without the diagonal, of sum 1, then symmetric and of sum 1.

    With `mass` m a row has the sum m_i, and a column counts m_j times, whose root is in M already.
    With the `sizes` (n,) of the components of the points a row has the sum 1 - k / (size - 1), and
    p has the mean of these: who is near says nothing where all are. k is the number of neighbours
    that count, 1 / Σ_j p_ij².
    """
    blocks = blocks_of(M)
    xp, others = blocks.xp, blocks.row_numbers(M) != M.indices
    data = blocks.native(M.data, dtype) * others
    if mass is not None:
        data = data * xp.sqrt(mass)[M.indices]
    P = blocks.csr((data, M.indices + 0, M.indptr + 0), M.shape)  # copies, which change
    P.eliminate_zeros()
    sums = blocks.sums_by_row(P.data, P)
    P.data *= blocks.repeated(1 / xp.where(sums > 0, sums, 1.0), P)
    factors = xp.ones_like(sums) if mass is None else mass
    whole = 2 * float((factors * (sums > 0)).sum())
    if sizes is not None:
        squares = P.data**2 if mass is None else P.data**2 / mass[P.indices]
        squares = xp.where(sums > 0, blocks.sums_by_row(squares, P), 1.0)
        factors = factors * xp.clip(1 - 1 / (squares * xp.clip(sizes - 1, 1.0, None)), 0.0, 1.0)
    P.data *= blocks.repeated(factors, P)
    P = blocks.both_ways(P, "sum")
    P.data /= whole or 1.0
    return P


def _products(mass: Block, matrix: Any) -> Block:
    """Return m_i m_j at the entries of a matrix."""
    return mass[blocks_of(matrix).row_numbers(matrix)] * mass[matrix.indices]


STEPS, _RATE = 150, 1.0  # of the descent; length of its first steps, in units of s
_OPENING = 0.8  # θ of the tree, which no picture shows
_BITS, _START_BITS, _TARGET_BITS = 8, 10, 5  # of weights, of the largest place, after the point
_TILE = 4_096  # rows of a tile
_MEASURED = 6  # times that s is measured
_SHORTEST = 1e-6  # s, relative to the median distance
_FAST, _SLOW = 0.9, 0.99  # memory of the two moments of Adam
_HELD, _NO_SLOPE = 2.0, 1e-30  # times the stiffness; a gradient that is none
_CELLS, _MARGIN = 128, 0.35  # of a side of the grid of a cartogram; of it, beside the picture
_WIDTH, _GROUND = 0.04, 0.2  # of the density: smoothing, of the frame; added, of its mean
_MOMENTS, _LAST, _FASTEST = 24, 2.0, 0.04  # of its diffusion: times, the last, longest step


def free_layout(
    M: Any,
    start: Array,
    pairs: tuple[Array, Array],
    targets: Array,
    *,
    neighbor_weight: float = 0.3,
    steps: int = STEPS,
    mass: Array | None = None,
    sizes: Array | None = None,
    held: float = 0.0,
    known: Array | None = None,
    place_weight: float = 0.0,
) -> Array:
    """Return the free layout Y (n, c) of a graph, c = 2 or 3.

    Parameters
    ----------
    M : CSR matrix (n, n)
        The last step: affinities of a point to its own neighbours, itself included; n > 1. Where it
        is on a device the points are moved there, in its precision.
    start : array (n, c)
        A picture to start with.
    pairs : (i, j), arrays (m,)
        Pairs of points whose distances count; m > 0.
    targets : array (m,)
        Logarithms of the distances wanted.
    neighbor_weight : float >= 0, default 0.3
        a, the weight of the neighbours.
    steps : int, optional
        At most so many steps.
    mass : array (n,), optional
        How often each point counts in the terms.
    sizes : array (n,), optional
        Those of the components of the points, see `edges_of`.
    held : float, 0 to 1
        How far the start fits already, see `descend`.
    known : array (n, c), optional
        Places that points shall keep, NaN where they have none, in the unit of the start.
    place_weight : float >= 0
        How much; infinite: these points do not move.

    Notes
    -----
    Deterministic, on the processor with the same bits for any number of threads. Another order of
    the points, or another rotation of the start, changes only rounding, which the descent
    increases, and so does the order of sums on a device. Cost of a step: n log n operations, and
    some for each entry of M and each pair.
    """
    n, centre = len(start), float(np.median(targets))
    targets = targets - centre
    blocks: Any = blocks_of(M)
    dtype = float if blocks is HOST else M.data.dtype
    there, of = (None if x is None else blocks.native(x, dtype) for x in (mass, sizes))
    edges = edges_of(M, dtype, there, of)
    opening = _OPENING if n > _EXACT_UP_TO else 0.0
    total = float(edges.data.sum())
    terms: list[StiffTerm] = [Neighbors(edges, neighbor_weight, opening, there, total)]
    terms.append(LogDistances(n, pairs, targets, blocks, dtype, mass))
    # By squares: where most points are one dense group that scaling presses to a dot, the median
    # would blow the rest up, and steps, which have a length, would not bring it back.
    wanted, shown = np.mean(np.exp(2 * targets)), np.mean(pair_distances(start, start, *pairs) ** 2)
    unit = math.sqrt(wanted / shown) if shown > 0 else 1.0
    Y, fixed = blocks.native(start * unit, dtype), None
    if known is not None and math.isinf(place_weight):
        fixed = blocks.native(~np.isnan(known[:, :1]))
    elif known is not None:
        terms.append(Places(known * unit, place_weight, blocks, dtype, mass))
    Y = blocks.host(descend(terms, Y, edges, steps, held, fixed)).astype(float, copy=False)
    return Y * math.exp(centre) if known is None else Y / unit


def in_frame(Y: Array, known: Array) -> Array:
    """Return the layout Y (n, c) shifted, turned and scaled to fit known places (n, c).

    These are NaN where a point has none. Places that fit five times worse than the median do not
    count. Without a size of the known places, or of Y there, the layout is shifted only.
    """
    held = np.flatnonzero(~np.isnan(known[:, 0]))
    for _ in range(2):
        middle, centre = Y[held].mean(axis=0), known[held].mean(axis=0)
        A, B = Y[held] - middle, known[held] - centre
        U, sizes, V = np.linalg.svd(A.T @ B)
        scale = sizes.sum() / (np.square(A).sum() or 1.0)
        turn = scale * (U @ V) if scale > 0 else np.eye(Y.shape[1])
        off = np.linalg.norm(A @ turn - B, axis=1)
        held = held[off <= 5 * np.median(off) + 1e-9 * np.abs(B).max()]
    return np.asarray((Y - middle) @ turn + centre)


def with_few_digits(M: Any, start: Array, targets: Array) -> tuple[Any, Array, Array]:
    """Return a step M, places and logarithms of distances with two to three digits.

    The descent increases rounding until single points end elsewhere. So what is rounding before it,
    between precisions or machines, is mostly taken out here, and a picture does not show digits.
    """
    blocks: Any = blocks_of(M)
    mantissa, exponent = blocks.xp.frexp(M.data)
    data = blocks.xp.ldexp(blocks.xp.round(mantissa * 2**_BITS) / 2**_BITS, exponent)
    size = float(np.abs(start).max()) or 1.0
    grain = 2.0 ** (math.frexp(size)[1] - _START_BITS)
    start, targets = np.round(start / grain) * grain, np.round(targets * 2**_TARGET_BITS)
    return blocks.csr((data, M.indices, M.indptr), M.shape), start, targets / 2**_TARGET_BITS


def descend(
    terms: Sequence[StiffTerm],
    Y: Block,
    edges: Any,
    steps: int,
    held: float = 0.0,
    fixed: Block | None = None,
) -> Block:
    """Return the places Y (n, c) after a descent of the sum of the terms, by steps of Adam.

    The unit of steps is s, half the median length of an edge: by default all gradients make whole
    ones, which open groups. With `held` 1 small ones make steps by the stiffness of the terms, so
    that a start that fits already is not torn. Points that are `fixed` (n, 1) do not move.
    """
    blocks: Any = blocks_of(Y)
    Y = blocks.copied(Y)
    moments = blocks.xp.zeros_like(Y), blocks.xp.zeros_like(Y[:, :1])
    for t in track(range(1, steps + 1), "free layout", steps, "steps"):
        if (t - 1) % -(-steps // _MEASURED) == 0:
            s = max(blocks.median_length(Y, edges) / 2, _SHORTEST)
            stiffness = reduce(add, (term.stiffness(s) for term in terms))
            least = _HELD * held * _RATE * s * stiffness + _NO_SLOPE
        gradient = reduce(add, (term.gradient(Y, s) for term in terms))
        if fixed is not None:
            gradient = blocks.xp.where(fixed, 0.0, gradient)
        falling = (1 + math.cos(math.pi * t / steps)) / 2
        _adam(blocks, Y, gradient, moments, _RATE * s * falling, least, t)
    return Y


def _adam(
    blocks: Any,
    Z: Block,
    gradient: Block,
    moments: tuple[Block, Block],
    size: float,
    least: Any,
    t: int,
) -> None:
    """Make step t of Adam, in place; a gradient of the size `least` makes half a step.

    A point has one second moment for all coordinates, so that the descent turns with its start.
    """
    xp = blocks.xp

    def work(rows: slice) -> None:
        (first, second), G = moments, gradient[rows]
        first[rows] += (1 - _FAST) * (G - first[rows])
        second[rows] += (1 - _SLOW) * (xp.mean(xp.square(G), axis=1, keepdims=True) - second[rows])
        root = xp.sqrt(second[rows] / (1 - _SLOW**t)) + least[rows]
        Z[rows] -= size / (1 - _FAST**t) * first[rows] / root

    blocks.for_rows(work, len(Z), _TILE)


def evened(Y: Array, part: float) -> Array:
    """Return the picture Y (n, 2) on the way to one whose points are equally dense: 1 all the way.

    The density ρ of the points, smoothed and with a ground, diffuses; points move with the velocity
    -∇ρ / ρ (Gastner and Newman 2004). The map is smooth and one-to-one. It is found at the corners
    of a grid, between which it is linear.
    """
    low, high = Y.min(axis=0), Y.max(axis=0)
    size, centre, inner = (high - low).max(), (low + high) / 2, 1 - 2 * _MARGIN
    if not part or not size > 0:
        return Y
    P = ((Y - centre) / size * inner + 0.5) * _CELLS - 0.5  # in cells
    counts = np.histogram2d(P[:, 0], P[:, 1], _CELLS, [[-0.5, _CELLS - 0.5]] * 2)[0]
    density = gaussian_filter(counts, _WIDTH * _CELLS * inner)
    density += _GROUND * density[density > 1e-3 * density.max()].mean()
    spectrum, k = dctn(density, norm="ortho"), np.pi * np.arange(_CELLS)
    corners = np.indices((_CELLS, _CELLS), float)
    at, before = corners.copy(), 0.0
    for t in np.geomspace((0.3 * _WIDTH) ** 2, _LAST, _MOMENTS):
        decay = np.exp(-(k[:, None] ** 2 + k**2) * (t + before) / 2)
        rho = idctn(spectrum * decay, norm="ortho")
        slopes = np.gradient(rho, 1 / _CELLS)
        velocity = [-map_coordinates(slope, at, order=1, mode="nearest") for slope in slopes]
        velocity /= map_coordinates(rho, at, order=1, mode="nearest")
        at += np.clip((t - before) * velocity, -_FASTEST, _FASTEST) * _CELLS
        before = t
    moved = [map_coordinates(one, P.T, order=1, mode="nearest") for one in at - corners]
    return Y + part / (_CELLS * inner) * size * np.stack(moved, axis=1)  # type: ignore[no-any-return]
