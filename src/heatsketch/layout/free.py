"""Free layouts: pictures whose points move one by one, by neighbours and by distances.

The points Y (n, c) minimise the terms of `terms`, with p: the weights of M without its diagonal,
rows divided by their sums, made symmetric, of sum 1; s: half the median length of an edge. At the
end they are evened out by a part of a cartogram.
"""

import math
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy.fft import dctn, idctn
from scipy.ndimage import gaussian_filter, map_coordinates

from heatsketch._tiles import track
from heatsketch._typing import Array
from heatsketch.backend import Block, blocks_of
from heatsketch.layout.terms import LogDistances, Neighbors, StiffTerm, edges_of
from heatsketch.neighbors import pair_distances

STEPS, _RATE = 150, 1.0  # of the descent; length of its first steps, in units of s
_OPENING, _EXACT_UP_TO = 0.8, 1_000  # θ of the tree, which no picture shows; points without a tree
_BITS, _START_BITS, _TARGET_BITS = 8, 10, 5  # of weights, of the largest place, after the point
_TILE = 4_096  # rows of a tile
_MEASURED = 6  # times that s is measured
_SHORTEST = 1e-6  # s, relative to the median distance
_FAST, _SLOW = 0.9, 0.99  # memory of the two moments of Adam
_HELD, _TINY = 2.0, 1e-30  # times the stiffness; a gradient that is none
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
    dtype = blocks.working_dtype(M.data)
    there, of = (None if x is None else blocks.native(x, dtype) for x in (mass, sizes))
    edges = edges_of(M, dtype, there, of)
    opening = _OPENING if n > _EXACT_UP_TO else 0.0
    total = float(edges.data.sum())
    terms: list[StiffTerm] = [Neighbors(edges, neighbor_weight, opening, there, total)]
    terms.append(LogDistances(n, pairs, targets, blocks, dtype, mass))
    # By squares: where most points are one dense group that scaling presses to a dot, the median
    # would blow the rest up, and steps, which have a length, would not bring it back.
    wanted, shown = np.mean(np.exp(2 * targets)), np.mean(pair_distances(start, start, *pairs) ** 2)
    Y = blocks.native(start * math.sqrt(wanted / shown) if shown > 0 else start, dtype)
    Y = blocks.host(descend(terms, Y, edges, steps, held)).astype(float, copy=False)
    return Y * math.exp(centre)


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
    terms: Sequence[StiffTerm], Y: Block, edges: Any, steps: int, held: float = 0.0
) -> Block:
    """Return the places Y (n, c) after a descent of the sum of the terms, by steps of Adam.

    The unit of steps is s, half the median length of an edge: by default all gradients make whole
    ones, which open groups. With `held` 1 small ones make steps by the stiffness of the terms, so
    that a start that fits already is not torn.
    """
    blocks = blocks_of(Y)
    Y = blocks.copied(Y)
    moments = blocks.xp.zeros_like(Y), blocks.xp.zeros_like(Y[:, :1])
    for t in track(range(1, steps + 1), "free layout", steps, "steps"):
        if (t - 1) % -(-steps // _MEASURED) == 0:
            s = max(blocks.median_length(Y, edges) / 2, _SHORTEST)
            stiffness = reduce(add, (term.stiffness(s) for term in terms))
            least = _HELD * held * _RATE * s * stiffness + _TINY
        gradient = reduce(add, (term.gradient(Y, s) for term in terms))
        falling = (1 + math.cos(math.pi * t / steps)) / 2
        _adam(Y, gradient, moments, _RATE * s * falling, least, t)
    return Y


def _adam(
    Z: Block, gradient: Block, moments: tuple[Block, Block], size: float, least: Any, t: int
) -> None:
    """Make step t of Adam, in place; a gradient of the size `least` makes half a step.

    A point has one second moment for all coordinates, so that the descent turns with its start.
    """
    blocks = blocks_of(Z)
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
