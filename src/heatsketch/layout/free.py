"""Free layouts: pictures whose points move one by one, by neighbours and by distances.

Y = S Z, S = diag(1 / M√π) M diag(√π), whose rows sum to 1: a heat step of free sources Z. The
sources minimise

    J(Z) = a KL(p || q) + mean over pairs of huber(log |y_i - y_j| - T_ij).

p: the weights of M without its diagonal, rows divided by their sums, made symmetric, of sum 1.
q: 1 / (1 + |y_i - y_j|² / s²) over all pairs, divided by its sum, as in t-SNE (van der Maaten and
Hinton 2008); s: the median length of an edge. T: see `spread_targets`. The gradient goes through
Sᵀ, which smooths it; the steps of Adam (Kingma and Ba 2015) are in units of s.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.stats import rankdata

from heatsketch._tiles import for_each_tile, track
from heatsketch._typing import Array
from heatsketch.layout.device import Grid, medians_on
from heatsketch.operators.blocks import HOST, Block, blocks_of
from heatsketch.operators.operator import multiply, scale_both_sides
from heatsketch.operators.torch import on_device

if TYPE_CHECKING:
    from heatsketch.layout.free_loops import Csr

OPENING = 0.25  # θ of the tree: forces are within a thousandth of all their parts
_UNCOMPILED_UP_TO = 320  # points, which wait for no compiler: that takes seconds, once
_EXACT_UP_TO = 1_000  # points, whose sums over all pairs are exact
_STEPS, _LARGE = (300, 150), 20_000  # of the descent, up to so many points and beyond
_TILES = 8  # no bit depends on the tiles, so that small data, too, use all threads
_TILE, _NODES, _MEDIANS = (512, 4_096), (64, 512), 1_024  # rows, nodes of the tree, medians
_MEASURED = 6  # times that s is measured
_SHORTEST = 1e-6  # s, relative to the median distance
_FAST, _SLOW = 0.9, 0.99  # memory of the two moments of Adam
_LEAST = 1e-6  # gradient below which steps are shorter, relative to the typical one
_STILL = 1e-3  # typical step, in units of s, below which the descent ends
_REACH, _NO_SPREAD = 2.0, 0.01  # see `reach`; smaller spreads count as 0
_CENTRING_STEPS = 20
_SMALLEST, _QUANTILES = 1e-6, 4_096  # of the table of distances in a ball
_TINY = 1e-12  # squared distance that is added to those under a logarithm, as in the loops
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
    steps: int | None = None,
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
    steps : int, optional
        At most so many steps; by default 300, and 150 beyond 20,000 points.

    Notes
    -----
    Deterministic, on the processor with the same bits for any number of threads. Another order of
    the points, or another rotation of the start, changes only rounding, which the descent
    increases, and so does the order of sums on a device. Cost of a step: n log n operations, and
    some for each entry of M and each pair.
    """
    n, c = start.shape
    steps = _STEPS[n > _LARGE] if steps is None else steps
    centre = float(np.median(log_distances))
    unit = math.exp(centre)
    targets = spread_targets(log_distances - centre, spread, c)
    objective = FreeObjective(M, pairs, targets, neighbor_weight)
    blocks, native = objective.blocks, objective.native
    root, xp = native(root), blocks.xp
    S = scale_both_sides(M, 1 / (M @ root), root, root.dtype)
    transposed = S.T.tocsr()
    radius = reach(spread) * math.exp(-log_quantiles(np.array([0.5]), c)[0])
    Z = _brought_in(native(start / unit), radius)
    Y, moments = multiply(S, Z), (xp.zeros_like(Z), xp.zeros_like(Z[:, :1]))
    for t in track(range(1, steps + 1), "free layout", steps, "steps"):
        if (t - 1) % -(-steps // _MEASURED) == 0:
            s = objective.edge_length(Y)
        gradient = multiply(transposed, objective.gradient(Y, s))
        _descend(Z, gradient, moments, s * (1 + math.cos(math.pi * t / steps)) / 2, t)
        before, Y = Y, multiply(S, Z)
        if blocks.norm(Y - before) <= _STILL * s * math.sqrt(n):
            break
    return blocks.host(Y).astype(float, copy=False) * unit


def _descend(Z: Block, gradient: Block, moments: tuple[Block, Block], size: float, t: int) -> None:
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

    for_each_tile(work, len(Z), _tile(len(Z), *_TILE) if blocks is HOST else len(Z))


def _tile(n: int, least: int, most: int) -> int:
    """Return the size of a tile of n rows."""
    return min(max(n // _TILES, least), most)


class FreeObjective:
    """J as a function of Y (n, c), for s given; see the module.

    Parameters
    ----------
    M : CSR matrix (n, n)
    pairs : (i, j), arrays (m,)
    targets : array (m,)
        T, logarithms of distances.
    neighbor_weight : float
        a.
    opening : float, optional
        θ of `repulsion`; by default 0 up to 1,000 points, and 0.25 beyond.
    """

    def __init__(
        self,
        M: Any,
        pairs: tuple[Array, Array],
        targets: Array,
        neighbor_weight: float,
        opening: float | None = None,
    ) -> None:
        n = M.shape[0]
        blocks: Any = blocks_of(M)
        self.blocks = blocks
        self._precision = float if blocks is HOST else M.data.dtype
        self.edges = _edges(M, self._precision)
        self.pairs = on_device(_symmetric(n, pairs, targets), blocks.device)
        self.pairs.data = self.native(self.pairs.data)
        self.neighbor_weight = neighbor_weight
        self.opening = (OPENING if n > _EXACT_UP_TO else 0.0) if opening is None else opening
        self.is_compiled = blocks is HOST and (n > _UNCOMPILED_UP_TO or self.opening > 0)
        self._grid = Grid(blocks)

    def native(self, values: Any) -> Block:
        """Return values where the points are: on the host float64, else in the precision of M."""
        return self.blocks.native(values, self._precision)

    def gradient(self, Y: Block, s: float) -> Block:
        """Return dJ / dY (n, c)."""
        if not self.is_compiled:
            return self._gradient_by_arrays(Y, s)
        from heatsketch.layout import free_loops  # imports numba

        gradient, scale = np.empty_like(Y), 4 * self.neighbor_weight / s
        edges, pairs, axes = _csr(self.edges), _csr(self.pairs), tuple(range(Y.shape[1]))

        def work(rows: slice) -> None:
            free_loops.pull(Y, edges, pairs, s, scale / s, axes, rows.start, rows.stop, gradient)

        for_each_tile(work, len(Y), _tile(len(Y), *_TILE))
        if self.neighbor_weight:
            force, total = repulsion(Y / s, self.opening)
            gradient -= (scale / max(total, np.finfo(float).tiny)) * force
        return gradient

    def _gradient_by_arrays(self, Y: Block, s: float) -> Block:
        """Return the same as the compiled loops, to rounding, or on a device."""
        xp, scale, m = self.blocks.xp, 4 * self.neighbor_weight / s, len(self.pairs.data) / 2
        gradient = _forces(Y, self.edges, lambda squares, p: scale / s * p / (1 + squares / s**2))

        def of_pairs(squares: Block, targets: Block) -> Block:
            squares = squares + _TINY
            return xp.clip(xp.log(squares) / 2 - targets, -1, 1) / (m * squares)

        gradient += _forces(Y, self.pairs, of_pairs)
        if not self.neighbor_weight:
            return gradient
        force, total = self._repulsion_by_arrays(Y, s)
        return gradient - scale / max(total, np.finfo(float).tiny) * force

    def _repulsion_by_arrays(self, Y: Block, s: float) -> tuple[Block, float]:
        """Return what `repulsion` returns of Y / s."""
        xp = self.blocks.xp
        if self.opening == 0:
            differences = [(column[:, None] - column) / s for column in Y.T]
            q = 1 / (1 + sum(d**2 for d in differences))
            # Sums of products, not matrix products, which autocast and TensorFloat-32 shorten.
            forces = [(q**2 * d).sum(axis=1) for d in differences]
            return xp.stack(forces, axis=1), float(q.sum()) - len(Y)
        found = self._grid.repulsion(Y / s)
        if found is None:
            force, total = repulsion(self.blocks.host(Y).astype(float) / s, self.opening)
            found = self.native(force), total
        return found

    def edge_length(self, Y: Block) -> float:
        """Return s, the median length of an edge."""
        indptr, indices, p = _csr(self.edges)
        if self.blocks is not HOST:
            squares = self.blocks.xp.square(Y[self.edges.places()[0]] - Y[indices]).sum(1)
            middle = float(squares.median() - (-squares).median()) / 2  # of the two in the middle
            return max(math.sqrt(middle), _SHORTEST)
        squares = np.empty(len(p), np.float32)

        def work(rows: slice) -> None:
            starts = indptr[rows.start : rows.stop + 1]
            row = np.repeat(np.arange(rows.start, rows.stop), np.diff(starts))
            entries = slice(starts[0], starts[-1])
            squares[entries] = np.square(Y[row] - Y[indices[entries]]).sum(axis=1)

        for_each_tile(work, len(Y), _tile(len(Y), *_TILE))
        return max(math.sqrt(float(np.median(squares))), _SHORTEST)


def _edges(M: Any, dtype: Any) -> Any:
    """Return p (n, n): rows of M without the diagonal, of sum 1, then symmetric and of sum 1."""
    blocks = blocks_of(M)
    others = blocks.row_numbers(M) != M.indices
    data = blocks.native(M.data, dtype) * others
    P = blocks.csr((data, M.indices + 0, M.indptr + 0), M.shape)  # copies, which change
    P.eliminate_zeros()
    sums = blocks.sums_by_row(P.data, P)
    P.data *= blocks.repeated(1 / blocks.xp.where(sums > 0, sums, 1.0), P)
    P = blocks.both_ways(P, "sum")
    P.data /= P.data.sum() or 1.0
    return P


def _symmetric(n: int, pairs: tuple[Array, Array], values: Array) -> sparse.csr_matrix:
    """Return values of pairs (i, j) and (j, i) as a CSR matrix; equal pairs stay apart."""
    (i, j), indices = pairs, np.int32
    both = np.append(i, j).astype(indices), np.append(j, i).astype(indices)
    matrix = sparse.coo_matrix((np.append(values, values), both), (n, n))
    matrix.has_canonical_format = True  # no sums of equal entries
    return matrix.tocsr()


def _forces(Y: Block, matrix: Any, weight: Callable[[Block, Block], Block]) -> Block:
    """Return Σ_j weight(|y_i - y_j|², value) (y_i - y_j) (n, c) over entries of a CSR matrix."""
    blocks = blocks_of(Y)
    xp, row = blocks.xp, blocks.row_numbers(matrix)
    columns = xp.stack(list(Y.T))
    differences = columns[:, row] - columns[:, matrix.indices]
    differences *= weight(xp.square(differences).sum(axis=0), matrix.data)
    return xp.stack([blocks.sums_by_row(each, matrix) for each in differences], axis=1)


def _csr(matrix: Any) -> Csr:
    return matrix.indptr, matrix.indices, matrix.data


def repulsion(U: Array, theta: float = OPENING) -> tuple[Array, float]:
    """Return Σ_j q_ij² (u_i - u_j) (n, c), and Σ q over all i != j; q = 1 / (1 + |u_i - u_j|²).

    By a tree over the points, see `free_loops`; exact with θ = 0.
    """
    from heatsketch.layout import free_loops  # imports numba

    n, c = U.shape
    low = U.min(axis=0)
    width = float((U - low).max()) or 1.0
    cells, codes = np.empty((n, c), np.uint64), np.empty(n, np.uint64)

    def encode(rows: slice) -> None:
        scale = (2.0 ** (free_loops.CODE_BITS // c) - 1) / width
        cells[rows] = (U[rows] - low) * scale
        free_loops.interleave(cells, rows.start, rows.stop, codes)

    for_each_tile(encode, n, _tile(n, *_TILE))
    order = np.argsort(codes, kind="stable")
    points = U[order]
    nodes = [np.empty(2 * n, kind) for kind in (np.int32, np.int32, np.int32, bool)]
    count = free_loops.divide(codes[order], *nodes)
    sizes = (count, 2, c), (count, 2 + c + c**2)
    tree = free_loops.Tree(*(each[:count] for each in nodes), *map(np.empty, sizes))
    axes = tuple(range(c))
    free_loops.measure(points, tree, axes)
    force, q = np.empty_like(points), np.empty(n)

    def work(rows: slice) -> None:
        free_loops.repulsion(points, tree, theta, axes, rows.start, rows.stop, force, q)

    for_each_tile(work, count, _tile(count, *_NODES))
    forces = np.empty_like(force)
    forces[order] = force
    return forces, float(q.sum()) - n


def spread_targets(log_distances: Array, spread: float, c: int) -> Array:
    """Return targets of log distances (m,): between these and quantiles of those in a ball.

    spread 0: the distances; 1: quantiles of the distances of random points of a disc (c = 2) or
    ball, with the same median, so that only their order is kept and the points fill the frame, as
    in nonmetric scaling (Kruskal 1964). Between the two: the mean of logarithms by these weights,
    but at most `reach` times the quantile, so that a few far points do not take the frame.
    """
    ranks = (rankdata(log_distances) - 0.5) / len(log_distances)
    wanted = log_quantiles(ranks, c) - log_quantiles(np.array([0.5]), c) + np.median(log_distances)
    excess = (1 - spread) * (log_distances - wanted)
    return wanted + np.minimum(excess, math.log(reach(spread)))


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
    from heatsketch.layout.median_loops import medians  # imports numba

    Y = Y.astype(float, copy=False)
    if blocks_of(rows) is not HOST:
        return medians_on(Y, rows)
    places = np.empty((rows.shape[0], Y.shape[1]))

    def work(tile: slice) -> None:
        medians(Y, *_csr(rows), tile.start, tile.stop, places)

    for_each_tile(work, len(places), _MEDIANS)
    return places
