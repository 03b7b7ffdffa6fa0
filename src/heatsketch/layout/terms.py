"""Terms of the objective of a free layout: each has a value, and a gradient with respect to Y.

    J(Y) = a KL(p || q) + mean over pairs of huber(log |y_i - y_j| - T_ij),

`Neighbors` and `LogDistances`. A new term is one more class. Y (n, c) is an array on the host, or a
tensor on a device, where the matrices of the terms are then, too.
"""

import math
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from heatsketch._tiles import for_each_tile
from heatsketch._typing import Array
from heatsketch.layout.device import Grid
from heatsketch.operators.blocks import HOST, Block, blocks_of
from heatsketch.operators.torch import on_device

OPENING = 0.25  # θ of the tree: forces are within a thousandth of all their parts
_UNCOMPILED_UP_TO = 320  # points, which wait for no compiler: that takes seconds, once
_EXACT_UP_TO = 1_000  # points, whose sums over all pairs are exact
# No bit depends on the tiles. Those of compiled loops, which release the lock of the interpreter,
# are so small that small data, too, use all threads.
_TILES = 8
_ROWS, _NODES = (512, 4_096), (64, 512)  # of a tile, at least and at most; nodes of the tree
_MOST_PAIRS = 120  # of a point, that count
_TINY = 1e-12  # squared distance that is added to those under a logarithm, as in the loops
_LEAST_TOTAL = float(np.finfo(float).tiny)


class Term(Protocol):
    """A part of the objective; s is the unit of length, the median length of an edge."""

    def value(self, Y: Block, s: float) -> float:
        """Return the value at the places Y (n, c)."""

    def gradient(self, Y: Block, s: float) -> Block:
        """Return the derivatives with respect to Y (n, c)."""


class Neighbors:
    """a KL(p || q) = a Σ p log(p / q): near points of the data shall be near in the picture.

    p: symmetric weights of the edges, of sum 1. q: 1 / (1 + |y_i - y_j|² / s²) over all pairs,
    divided by its sum, as in t-SNE (van der Maaten and Hinton 2008).

    Parameters
    ----------
    edges : CSR matrix (n, n)
        p.
    weight : float
        a.
    opening : float, optional
        θ of `repulsion`; by default 0 up to 1,000 points, and 0.25 beyond.
    """

    def __init__(self, edges: Any, weight: float, opening: float | None = None) -> None:
        n = edges.shape[0]
        self.edges, self.weight, self.blocks = edges, weight, blocks_of(edges)
        self.opening = (OPENING if n > _EXACT_UP_TO else 0.0) if opening is None else opening
        self.is_compiled = is_compiled(edges) or (self.blocks is HOST and self.opening > 0)
        self._grid = Grid(self.blocks)  # type: ignore[arg-type]

    def value(self, Y: Block, s: float) -> float:
        """Return a KL(p || q)."""
        xp, p = self.blocks.xp, self.edges.data
        squares = _differences(Y, self.edges)[1]
        total = self._repulsion(Y, s)[1]
        divergence = float((p * xp.log(p * (1 + squares / s**2))).sum()) + math.log(total)
        return self.weight * divergence

    def gradient(self, Y: Block, s: float) -> Block:
        """Return 4 a / s² (Σ_j p q (y_i - y_j) - Σ_j q² (y_i - y_j) / Σ q), q not divided."""
        scale = 4 * self.weight / s
        if self.is_compiled:
            from heatsketch.layout.free_loops import along_edges  # imports numba

            forces = _by_tiles(along_edges, Y, self.edges, s, scale / s)
        else:
            forces = _forces(Y, self.edges, lambda d2, p: scale / s * p / (1 + d2 / s**2))
        if not self.weight:
            return forces
        force, total = self._repulsion(Y, s)
        return forces - scale / max(total, _LEAST_TOTAL) * force

    def _repulsion(self, Y: Block, s: float) -> tuple[Block, float]:
        """Return what `repulsion` returns of Y / s."""
        if self.is_compiled:
            return repulsion(Y / s, self.opening)
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
            found = self.blocks.native(force, Y.dtype), total
        return found


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
    """

    def __init__(
        self, n: int, pairs: tuple[Array, Array], targets: Array, blocks: Any, dtype: Any
    ) -> None:
        self.pairs = on_device(_symmetric(n, pairs, targets), blocks.device)
        self.pairs.data = blocks.native(self.pairs.data, dtype)
        self.blocks, self.is_compiled = blocks, is_compiled(self.pairs)
        counts = blocks.host(self.pairs.indptr)
        shares = np.minimum(1.0, _MOST_PAIRS / np.maximum(np.diff(counts), 1))
        self._shares = None if shares.min() == 1 else blocks.native(shares, dtype)[:, None]

    def value(self, Y: Block, s: float) -> float:
        """Return the mean of huber's loss."""
        xp = self.blocks.xp
        squares = _differences(Y, self.pairs)[1] + _TINY
        off = abs(xp.log(squares) / 2 - self.pairs.data)
        return float(xp.where(off <= 1, off**2 / 2, off - 0.5).mean())

    def gradient(self, Y: Block, s: float) -> Block:
        """Return Σ_j huber' (y_i - y_j) / (m |y_i - y_j|²).

        A point of more than 120 pairs counts as one of 120: with the whole force landmarks would
        stand where distances want them, and not among their neighbours.
        """
        forces = self.gradient_of_all(Y)
        return forces if self._shares is None else self._shares * forces

    def gradient_of_all(self, Y: Block) -> Block:
        """Return the same of all pairs, the gradient of the value."""
        m = len(self.pairs.data) / 2
        if self.is_compiled:
            from heatsketch.layout.free_loops import between_pairs  # imports numba

            return _by_tiles(between_pairs, Y, self.pairs, 1 / m)
        xp = self.blocks.xp

        def weights(squares: Block, targets: Block) -> Block:
            squares = squares + _TINY
            return xp.clip(xp.log(squares) / 2 - targets, -1, 1) / (m * squares)

        return _forces(Y, self.pairs, weights)


def edges_of(M: Any, dtype: Any) -> Any:
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


def median_edge(edges: Any, Y: Block) -> float:
    """Return the median length of an edge."""
    blocks = blocks_of(edges)
    if blocks is not HOST:
        squares = _differences(Y, edges)[1]
        middle = float(squares.median() - (-squares).median()) / 2  # of the two in the middle
        return math.sqrt(middle)
    indptr, indices, p = csr_parts(edges)
    squares = np.empty(len(p), np.float32)

    def work(rows: slice) -> None:
        starts = indptr[rows.start : rows.stop + 1]
        row = np.repeat(np.arange(rows.start, rows.stop), np.diff(starts))
        entries = slice(starts[0], starts[-1])
        squares[entries] = np.square(Y[row] - Y[indices[entries]]).sum(axis=1)

    for_each_tile(work, len(Y), _ROWS[1])
    return math.sqrt(float(np.median(squares)))


def tile_of(n: int, limits: tuple[int, int] = _ROWS) -> int:
    """Return the size of a tile of n rows for a compiled loop."""
    least, most = limits
    return min(max(n // _TILES, least), most)


def is_compiled(matrix: Any) -> bool:
    """Say whether sums over the entries of a matrix (n, n) are compiled."""
    return blocks_of(matrix) is HOST and matrix.shape[0] > _UNCOMPILED_UP_TO


def csr_parts(matrix: Any) -> tuple[Array, Array, Array]:
    """Return indptr, indices and data of a CSR matrix."""
    return matrix.indptr, matrix.indices, matrix.data


def _symmetric(n: int, pairs: tuple[Array, Array], values: Array) -> sparse.csr_matrix:
    """Return values of pairs (i, j) and (j, i) as a CSR matrix; equal pairs stay apart."""
    (i, j), indices = pairs, np.int32
    both = np.append(i, j).astype(indices), np.append(j, i).astype(indices)
    matrix = sparse.coo_matrix((np.append(values, values), both), (n, n))
    matrix.has_canonical_format = True  # no sums of equal entries
    return matrix.tocsr()


def _differences(Y: Block, matrix: Any) -> tuple[Block, Block]:
    """Return y_i - y_j (c, nnz) over the entries of a CSR matrix, and their squared lengths."""
    xp, row = blocks_of(Y).xp, blocks_of(Y).row_numbers(matrix)
    columns = xp.stack(list(Y.T))
    differences = columns[:, row] - columns[:, matrix.indices]
    return differences, xp.square(differences).sum(axis=0)


def _forces(Y: Block, matrix: Any, weights: Any) -> Block:
    """Return Σ_j weights(|y_i - y_j|², value) (y_i - y_j) (n, c) over entries of a CSR matrix."""
    blocks = blocks_of(Y)
    differences, squares = _differences(Y, matrix)
    differences *= weights(squares, matrix.data)
    return blocks.xp.stack([blocks.sums_by_row(each, matrix) for each in differences], axis=1)


def _by_tiles(loop: Any, Y: Array, matrix: Any, *numbers: float) -> Array:
    """Return the sums (n, c) that a compiled loop over the entries of a CSR matrix writes."""
    out, axes = np.empty_like(Y), tuple(range(Y.shape[1]))

    def work(rows: slice) -> None:
        loop(Y, csr_parts(matrix), *numbers, axes, rows.start, rows.stop, out)

    for_each_tile(work, len(Y), tile_of(len(Y)))
    return out


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

    for_each_tile(encode, n, _ROWS[1])
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

    for_each_tile(work, count, tile_of(count, _NODES))
    forces = np.empty_like(force)
    forces[order] = force
    return forces, float(q.sum()) - n
