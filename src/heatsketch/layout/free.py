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
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.stats import rankdata

from heatsketch._tiles import for_each_tile, track
from heatsketch._typing import Array
from heatsketch.operators.operator import multiply

if TYPE_CHECKING:
    from heatsketch.layout.free_loops import Csr

OPENING = 0.25  # θ of the tree: forces are within a thousandth of all their parts
_UNCOMPILED_UP_TO = 320  # points, which wait for no compiler: that takes seconds, once
_EXACT_UP_TO = 1_000  # points, whose sums over all pairs are exact
_STEPS, _LARGE = (300, 150), 20_000  # of the descent, up to so many points and beyond
_TILE, _NODES, _MEDIANS = 4_096, 512, 1_024  # rows, nodes of the tree and medians of a tile
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
        The last step: affinities of a point to its own neighbours, itself included; n > 1.
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
    Deterministic, with the same bits for any number of threads. Another order of the points, or
    another rotation of the start, changes only rounding, which the descent increases. Cost of a
    step: n log n operations, and some for each entry of M and each pair.
    """
    n, c = start.shape
    steps = _STEPS[n > _LARGE] if steps is None else steps
    centre = float(np.median(log_distances))
    unit = math.exp(centre)
    targets = spread_targets(log_distances - centre, spread, c)
    objective = FreeObjective(M, pairs, targets, neighbor_weight)
    S = sparse.csr_matrix(sparse.diags(1 / (M @ root)) @ M @ sparse.diags(root))
    transposed = sparse.csr_matrix(S.T)
    Z = _brought_in(start / unit, reach(spread) * math.exp(-log_quantiles(np.array([0.5]), c)[0]))
    Y, moments = multiply(S, Z), (np.zeros((n, c)), np.zeros((n, 1)))
    for t in track(range(1, steps + 1), "free layout", steps, "steps"):
        if (t - 1) % -(-steps // _MEASURED) == 0:
            s = objective.edge_length(Y)
        gradient = multiply(transposed, objective.gradient(Y, s))
        _descend(Z, gradient, moments, s * (1 + math.cos(math.pi * t / steps)) / 2, t)
        before, Y = Y, multiply(S, Z)
        if np.linalg.norm(Y - before) <= _STILL * s * math.sqrt(n):
            break
    return Y * unit


def _descend(Z: Array, gradient: Array, moments: tuple[Array, Array], size: float, t: int) -> None:
    """Make step t of Adam, in place.

    A point has one second moment for all coordinates, so that the descent turns with its start.
    """
    least = _LEAST * math.sqrt(float(np.mean(np.square(gradient)))) or 1.0

    def work(rows: slice) -> None:
        (first, second), G = moments, gradient[rows]
        first[rows] += (1 - _FAST) * (G - first[rows])
        second[rows] += (1 - _SLOW) * (np.mean(np.square(G), axis=1, keepdims=True) - second[rows])
        root = np.sqrt(second[rows] / (1 - _SLOW**t)) + least
        Z[rows] -= size / (1 - _FAST**t) * first[rows] / root

    for_each_tile(work, len(Z), _TILE)


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
        self.edges = _csr(_edges(M))
        self.pairs = _csr(_symmetric(n, pairs, targets))
        self.neighbor_weight = neighbor_weight
        self.opening = (OPENING if n > _EXACT_UP_TO else 0.0) if opening is None else opening
        self.is_compiled = n > _UNCOMPILED_UP_TO or self.opening > 0

    def gradient(self, Y: Array, s: float) -> Array:
        """Return dJ / dY (n, c)."""
        if not self.is_compiled:
            return self._gradient_by_arrays(Y, s)
        from heatsketch.layout import free_loops  # imports numba

        gradient, scale = np.empty_like(Y), 4 * self.neighbor_weight / s
        pull = free_loops.pull[Y.shape[1]]

        def work(rows: slice) -> None:
            pull(Y, self.edges, self.pairs, s, scale / s, rows.start, rows.stop, gradient)

        for_each_tile(work, len(Y), _TILE)
        if self.neighbor_weight:
            force, total = repulsion(Y / s, self.opening)
            gradient -= (scale / max(total, np.finfo(float).tiny)) * force
        return gradient

    def _gradient_by_arrays(self, Y: Array, s: float) -> Array:
        """Return the same as the compiled loops, to rounding."""
        scale = 4 * self.neighbor_weight / s
        m = len(self.pairs[1]) / 2
        gradient = _forces(Y, self.edges, lambda squares, p: scale / s * p / (1 + squares / s**2))

        def of_pairs(squares: Array, targets: Array) -> Array:
            squares = squares + _TINY
            return np.clip(np.log(squares) / 2 - targets, -1, 1) / (m * squares)

        gradient += _forces(Y, self.pairs, of_pairs)
        differences = [np.subtract.outer(column, column) / s for column in Y.T]
        q = 1 / (1 + sum(d**2 for d in differences))
        forces = [np.einsum("ij,ij->i", q**2, d) for d in differences]
        total = max(q.sum() - len(Y), np.finfo(float).tiny)
        return gradient - scale / total * np.column_stack(forces)

    def edge_length(self, Y: Array) -> float:
        """Return s, the median length of an edge."""
        indptr, indices, p = self.edges
        squares = np.empty(len(p), np.float32)

        def work(rows: slice) -> None:
            starts = indptr[rows.start : rows.stop + 1]
            row = np.repeat(np.arange(rows.start, rows.stop), np.diff(starts))
            entries = slice(starts[0], starts[-1])
            squares[entries] = np.square(Y[row] - Y[indices[entries]]).sum(axis=1)

        for_each_tile(work, len(Y), _TILE)
        return max(math.sqrt(float(np.median(squares))), _SHORTEST)


def _edges(M: Any) -> sparse.csr_matrix:
    """Return p (n, n): rows of M without the diagonal, of sum 1, then symmetric and of sum 1."""
    P = sparse.csr_matrix(M, dtype=float, copy=True)
    P.setdiag(0)
    P.eliminate_zeros()
    sums = np.asarray(P.sum(axis=1)).ravel()
    P = sparse.diags(1 / np.where(sums > 0, sums, 1.0)) @ P
    P = sparse.csr_matrix(P + P.T)
    P.data /= P.data.sum() or 1.0
    return P


def _symmetric(n: int, pairs: tuple[Array, Array], values: Array) -> sparse.csr_matrix:
    """Return values of pairs (i, j) and (j, i) as a CSR matrix; equal pairs stay apart."""
    (i, j), indices = pairs, np.int32
    both = np.append(i, j).astype(indices), np.append(j, i).astype(indices)
    matrix = sparse.coo_matrix((np.append(values, values), both), (n, n))
    matrix.has_canonical_format = True  # no sums of equal entries
    return matrix.tocsr()


def _forces(Y: Array, csr: Csr, weight: Callable[[Array, Array], Array]) -> Array:
    """Return Σ_j weight(|y_i - y_j|², value) (y_i - y_j) (n, c) over entries of a CSR matrix."""
    indptr, indices, values = csr
    row = np.repeat(np.arange(len(Y)), np.diff(indptr))
    columns = np.ascontiguousarray(Y.T)
    differences = columns[:, row] - columns[:, indices]
    differences *= weight(np.square(differences).sum(axis=0), values)
    return np.column_stack([np.bincount(row, each, len(Y)) for each in differences])


def _csr(matrix: sparse.csr_matrix) -> Csr:
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

    for_each_tile(encode, n, _TILE)
    order = np.argsort(codes, kind="stable")
    points = U[order]
    nodes = free_loops.nodes_of(codes[order])
    tree = free_loops.Tree(*nodes, *free_loops.measure_nodes(points, *nodes))
    force, q = np.empty_like(points), np.empty(n)

    def work(rows: slice) -> None:
        free_loops.repulsion[c](points, tree, theta, rows.start, rows.stop, force, q)

    for_each_tile(work, len(tree.low), _NODES)
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


def _brought_in(Y: Array, radius: float) -> Array:
    """Return Y (n, c) with points beyond the radius brought within twice the radius of the centre.

    Steps have a length: without this, points that start far outside would not arrive.
    """
    if math.isinf(radius):
        return Y
    centre = Y.mean(axis=0)
    for _ in range(_CENTRING_STEPS):  # far points count by their direction only
        weights = 1 / np.maximum(np.linalg.norm(Y - centre, axis=1), radius)
        centre = weights @ Y / weights.sum()
    distances = np.linalg.norm(Y - centre, axis=1)
    near = radius / np.maximum(distances, radius)
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


def geometric_medians(Y: Array, rows: sparse.csr_matrix) -> Array:
    """Return the weighted geometric medians (m, c) of positions Y (n, c).

    `rows` (m, n) contains the weights. Of infinite ones only these count: with affinity / distance
    to the neighbours a training point has its own position exactly. A row depends on that row only.
    """
    from heatsketch.layout.median_loops import medians  # imports numba

    Y = Y.astype(float, copy=False)
    places = np.empty((rows.shape[0], Y.shape[1]))

    def work(tile: slice) -> None:
        medians(Y, *_csr(rows), tile.start, tile.stop, places)

    for_each_tile(work, len(places), _MEDIANS)
    return places
