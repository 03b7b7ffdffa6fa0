"""Free layouts: pictures whose points move one by one, by neighbours and by distances.

Y = S Z, S = diag(1 / M√π) M diag(√π), whose rows sum to 1: a heat step of free sources Z. The
sources minimise the terms of `terms`, with

p: the weights of M without its diagonal, rows divided by their sums, made symmetric, of sum 1;
s: the median length of an edge; T: see `spread_targets`. The gradient goes through Sᵀ, which
smooths it; the steps of Adam (Kingma and Ba 2015) are in units of s.
"""

import math
from collections.abc import Sequence
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import rankdata

from heatsketch._tiles import track
from heatsketch._typing import Array
from heatsketch.backend import Block, blocks_of
from heatsketch.layout.terms import LogDistances, Neighbors, Term, edges_of
from heatsketch.operators.csr import multiply, scale_both_sides

_STEPS, _RATE = 150, 1.5  # of the descent; length of its first steps, in units of s
_OPENING, _EXACT_UP_TO = 0.8, 1_000  # θ of the tree, which no picture shows; points without a tree
_MOST_PAIRS = 120  # of a point that stands where these want it; see `among_neighbors`
_TO_THE_MEAN = 0.1  # of the way from a median
_TILE = 4_096  # rows of a tile
_MEASURED = 6  # times that s is measured
_SHORTEST = 1e-6  # s, relative to the median distance
_FAST, _SLOW = 0.9, 0.99  # memory of the two moments of Adam
_LEAST = 1e-6  # gradient below which steps are shorter, relative to the typical one
_STILL = 1e-3  # typical step, in units of s, below which the descent ends
_REACH, _NO_SPREAD = 2.0, 0.01  # see `reach`; smaller spreads count as 0
_CENTRING_STEPS = 20
_SMALLEST, _QUANTILES = 1e-6, 4_096  # of the table of distances in a ball
_CANCELLING = 1e-2  # distance in a disc below which its distribution is that of a plane


def free_layout(
    M: Any,
    root: Array,
    start: Array,
    pairs: tuple[Array, Array],
    log_distances: Array,
    *,
    neighbor_weight: float = 0.3,
    spread: float = 0.5,
    farthest: float = math.inf,
    steps: int | None = None,
    mass: Array | None = None,
) -> Array:
    """Return the free layout Y (n, c) of a connected graph, c = 2 or 3.

    Parameters
    ----------
    M : CSR matrix (n, n)
        The last step: affinities of a point to its own neighbours, itself included; n > 1. Where it
        is on a device the points are moved there, in its precision.
    root : array (n,)
        √π.
    start : array (n, c)
        A picture to start with, in units of the distances.
    pairs : (i, j), arrays (m,)
        Pairs of points whose distances count, drawn at random; m > 0.
    log_distances : array (m,)
    neighbor_weight : float >= 0, default 0.3
        a, the weight of the neighbours.
    spread : float, 0 to 1, default 0.5
        See `spread_targets`.
    farthest : float, optional
        At most so many times as far as in a disc points may be.
    steps : int, optional
        At most so many steps; by default 150.
    mass : array (n,), optional
        How often each point counts in the terms.

    Notes
    -----
    Deterministic, on the processor with the same bits for any number of threads. Another order of
    the points, or another rotation of the start, changes only rounding, which the descent
    increases, and so does the order of sums on a device. Cost of a step: n log n operations, and
    some for each entry of M and each pair.
    """
    n, c = start.shape
    centre = float(np.median(log_distances))
    unit = math.exp(centre)
    blocks: Any = blocks_of(M)
    dtype = blocks.working_dtype(M.data)
    there = None if mass is None else blocks.native(mass, dtype)
    edges = edges_of(M, dtype, there)
    farthest = min(farthest, reach(spread))
    targets = spread_targets(log_distances - centre, spread, c, farthest)
    opening = _OPENING if n > _EXACT_UP_TO else 0.0
    terms: list[Term] = [Neighbors(edges, neighbor_weight, opening, there)]
    terms.append(LogDistances(n, pairs, targets, blocks, dtype, mass))
    root = blocks.native(root, dtype)
    S = scale_both_sides(M, 1 / (M @ root), root, root.dtype)
    radius = farthest * math.exp(-log_quantiles(np.array([0.5]), c)[0])
    Z = _brought_in(blocks.native(start / unit, dtype), radius)
    Y = descend(terms, S, Z, edges, _STEPS if steps is None else steps)
    places = blocks.host(Y).astype(float, copy=False) * unit
    many = np.flatnonzero(np.bincount(np.concatenate(pairs), minlength=n) > _MOST_PAIRS)
    return among_neighbors(places, M, many)


def descend(terms: Sequence[Term], S: Any, Z: Block, edges: Any, steps: int) -> Block:
    """Return Y = S Z at the end of a descent of the sum of the terms, from sources Z (n, c).

    Z is changed in place. S : CSR matrix (n, n), the step. The median length of an edge is the unit
    of steps.
    """
    blocks = blocks_of(Z)
    transposed = S.T.tocsr()
    Y, moments = multiply(S, Z), (blocks.xp.zeros_like(Z), blocks.xp.zeros_like(Z[:, :1]))
    for t in track(range(1, steps + 1), "free layout", steps, "steps"):
        if (t - 1) % -(-steps // _MEASURED) == 0:
            s = max(blocks.median_length(Y, edges), _SHORTEST)
        gradient = reduce(add, (term.gradient(Y, s) for term in terms))
        gradient = multiply(transposed, gradient)
        falling = (1 + math.cos(math.pi * t / steps)) / 2
        _adam(Z, gradient, moments, _RATE * s * falling, t)
        before, Y = Y, multiply(S, Z)
        if blocks.norm(Y - before) <= _STILL * s * math.sqrt(len(Y)):
            break
    return Y


def among_neighbors(Y: Array, M: Any, points: Array) -> Array:
    """Return Y (n, c) with some points among their neighbours, near the median of these by M.

    The distances of many pairs are stronger than the neighbours of a point: it would stand where
    they want it. To make them weaker for it alone is no way, because forces that are not mutual
    drive a point and its neighbours away together. A little of the mean keeps two points apart
    whose median is the place of one.
    """
    rows = sparse.csr_matrix(M[points])
    rows.data = np.where(np.repeat(points, np.diff(rows.indptr)) == rows.indices, 0.0, rows.data)
    rows.eliminate_zeros()
    some = np.diff(rows.indptr) > 0
    points, rows = points[some], rows[some]
    medians, means = geometric_medians(Y, rows), (rows @ Y) / rows.sum(axis=1).A1[:, None]
    Y = Y.copy()
    Y[points] = medians + _TO_THE_MEAN * (means - medians)
    return Y


def _adam(Z: Block, gradient: Block, moments: tuple[Block, Block], size: float, t: int) -> None:
    """Make step t of Adam, in place.

    A point has one second moment for all coordinates, so that the descent turns with its start.
    """
    blocks = blocks_of(Z)
    xp = blocks.xp
    least = _LEAST * math.sqrt(float(xp.mean(xp.square(gradient)))) or 1.0

    def work(rows: slice) -> None:
        (first, second), G = moments, gradient[rows]
        first[rows] += (1 - _FAST) * (G - first[rows])
        second[rows] += (1 - _SLOW) * (xp.mean(xp.square(G), axis=1, keepdims=True) - second[rows])
        root = xp.sqrt(second[rows] / (1 - _SLOW**t)) + least
        Z[rows] -= size / (1 - _FAST**t) * first[rows] / root

    blocks.for_rows(work, len(Z), _TILE)


def spread_targets(
    log_distances: Array, spread: float, c: int, farthest: float | None = None
) -> Array:
    """Return targets of log distances (m,): between these and quantiles of those in a ball.

    spread 0: the distances; 1: quantiles of the distances of random points of a disc (c = 2) or
    ball, with the same median, so that only their order is kept and the points fill the frame, as
    in nonmetric scaling (Kruskal 1964). Between the two: the mean of logarithms by these weights,
    but at most `farthest` (by default `reach`) times the quantile, so that a few far points do not
    take the frame.
    """
    ranks = (rankdata(log_distances) - 0.5) / len(log_distances)
    wanted = log_quantiles(ranks, c) - log_quantiles(np.array([0.5]), c) + np.median(log_distances)
    excess = (1 - spread) * (log_distances - wanted)
    return wanted + np.minimum(excess, math.log(farthest or reach(spread)))


def reach(spread: float) -> float:
    """Return how much farther than in a ball points may be: 1 for spread 1, √2 for ½, ∞ for 0."""
    return _REACH ** ((1 - spread) ** 2 / spread) if spread > _NO_SPREAD else math.inf


def _brought_in(Y: Block, radius: float) -> Block:
    """Return Y (n, c) with points beyond the radius brought within twice the radius of the centre.

    Steps have a length: without this, points that start far outside would not arrive.
    """
    if math.isinf(radius):
        return Y
    lengths = partial(blocks_of(Y).xp.linalg.norm, axis=1)
    centre = Y.mean(axis=0)
    for _ in range(_CENTRING_STEPS):  # far points count by their direction only
        weights = 1 / lengths(Y - centre).clip(radius)
        centre = (weights[:, None] * Y).sum(axis=0) / weights.sum()
    near = radius / lengths(Y - centre).clip(radius)
    return centre + (near * (2 - near))[:, None] * (Y - centre)


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


def geometric_medians(Y: Array, rows: Any) -> Array:
    """Return the weighted geometric medians (m, c) of positions Y (n, c).

    `rows` (m, n) contains the weights, a CSR matrix on the host, or on a device for rows of equal
    length. Of infinite ones only these count: with affinity / distance to the neighbours a training
    point has its own position exactly. A row depends on that row only.
    """
    return blocks_of(rows).medians(Y.astype(float, copy=False), rows)
