"""Blocks (n, k), and all by which the places differ where they are: the host here, a device there.

A block stays where it is from the first product to the last, and so does a graph from the search to
the normalised matrix. Sums, products with numbers and slices are written alike for arrays and
tensors, and `xp` has the functions that NumPy and torch call alike; `HostBlocks` and
`device.blocks.DeviceBlocks` have what differs. Above, nothing asks where a block is. Only small
results come to the host: numbers, one for each column, and matrices as wide as a block, which SciPy
solves there. On the host the bits are the same for any number of threads.
"""

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from scipy import sparse
from scipy.linalg import qr
from sklearn.utils.extmath import row_norms

from heatsketch._arrays import Array, Points, is_tensor, landed, on_host
from heatsketch._random import distinct_rows
from heatsketch._threads import LOOP_ROWS, for_each_tile, row_tiles, sum_over_tiles, tiled

if TYPE_CHECKING:
    from heatsketch.device.blocks import DeviceBlocks

Block: TypeAlias = Any  # array or tensor (n, k) or (n,)


class PairTerm(Protocol):
    """A function of places whose gradient is Σ_j w_ij (y_i - y_j) over the entries of a matrix."""

    def weights(self, squares: Block, s: float) -> Block:
        """Return w at the entries, from |y_i - y_j|²; s is the unit of length."""

    def loop(self, s: float) -> tuple[Callable[..., None], tuple[Any, ...]]:
        """Return the compiled loop that sums with these weights, and its numbers."""


class Place:
    """Abstract base: what is the same in every place."""

    xp: Any  # the functions of arrays or tensors here
    products_are_cheap: bool  # next to a coarser graph, which is made on the host

    def host(self, X: Block) -> Array:
        """Return a block as an array."""
        return np.asarray(on_host(X))

    def row_numbers(self: Any, matrix: Any) -> Block:
        """Return the row (nnz,) of each entry of a CSR matrix."""
        return self.repeated(self.arange(matrix.shape[0]), matrix)

    def times_rows(self, s: Block, X: Block) -> Block:
        """Return diag(s) X, s (n,) in this place."""
        return (s if X.ndim == 1 else s[:, None]) * X

    def norm(self, X: Block) -> float:
        """Return the length of a vector, or the Frobenius norm of a block, in its precision."""
        return float(self.xp.linalg.norm(X))

    def norms(self, X: Block) -> Array:
        """Return the lengths of the columns (k,), on the host, in the precision of X."""
        return self.host(self.xp.linalg.norm(X, axis=0))

    # Sums over entries of a CSR matrix (n, n) and over pairs of places Y (n, c)

    def differences(self: Any, Y: Block, matrix: Any) -> tuple[Block, Block]:
        """Return y_i - y_j (c, nnz) over the entries of a matrix, and their squared lengths."""
        xp, row = self.xp, self.row_numbers(matrix)
        columns = xp.stack(list(Y.T))
        differences = columns[:, row] - columns[:, matrix.indices]
        return differences, xp.square(differences).sum(axis=0)

    def forces(self: Any, Y: Block, matrix: Any, term: PairTerm, s: float) -> Block:
        """Return Σ_j w_ij (y_i - y_j) (n, c) over the entries of a matrix, with the term's w."""
        differences, squares = self.differences(Y, matrix)
        differences *= term.weights(squares, s)
        return self.xp.stack([self.sums_by_row(each, matrix) for each in differences], axis=1)

    def all_repulsion(
        self: Any, Y: Block, s: float, mass: Block | None = None
    ) -> tuple[Block, float]:
        """Return Σ_j q_ij² (y_i - y_j) / s (n, c), and Σ q over all i != j, pair by pair.

        q = 1 / (1 + |y_i - y_j|² / s²). With `mass` (n,) a pair counts m_i m_j times.
        """
        differences = [(column[:, None] - column) / s for column in Y.T]
        q = 1 / (1 + sum(d**2 for d in differences))
        # Sums of products, not matrix products, which autocast and TensorFloat-32 shorten.
        if mass is None:
            forces = [(q**2 * d).sum(axis=1) for d in differences]
            return self.xp.stack(forces, axis=1), float(q.sum()) - len(Y)
        forces = [mass * (mass * q**2 * d).sum(axis=1) for d in differences]
        total = (mass * (mass * q).sum(axis=1)).sum() - (mass**2).sum()
        return self.xp.stack(forces, axis=1), float(total)


_TILE = 2048  # rows combined at a time, so that they stay in the cache
_GRAM_TILE = 8192  # rows whose Gram matrix is one summand
_PROJECTION_TILE = 2**14  # rows projected at a time
_SPARSE_ROWS = 2**16  # of new points, computed at a time
_UNCOMPILED_UP_TO = 320  # points, which wait for no compiler: that takes seconds, once
_NODES = (64, 512)  # of a tree, in a tile
OPENING = 0.25  # θ of the tree: forces are within a thousandth of all their parts
_DIFFERENCES_AT_A_TIME = 2**16  # coordinates of pairs: 512 kB, so that they stay in the cache


class HostBlocks(Place):
    """Arrays: by tiles of rows on all cores, with the same bits for any number of threads."""

    device = None
    xp = np
    products_are_cheap = False
    tree_features = 8  # up to which a tree finds neighbours fast; with more, it visits most points

    # What only forwards is the function itself. Tensors come here by `brought` alone.
    native: Any = staticmethod(np.asarray)
    host: Any = staticmethod(np.asarray)
    arange: Any = staticmethod(np.arange)
    where: Any = staticmethod(np.flatnonzero)  # on the host in every place
    copied: Any = staticmethod(np.ndarray.copy)
    rows: Any = staticmethod(operator.getitem)  # of points that may be elsewhere
    csr: Any = staticmethod(sparse.csr_matrix)
    distinct_rows: Any = staticmethod(distinct_rows)
    for_rows: Any = staticmethod(for_each_tile)

    def __reduce__(self) -> str:
        """Stay the one object of the process."""
        return "HOST"

    def brought(self, values: Any, dtype: Any = None) -> Array:
        """Return values from any place, tensors too, as `native` returns those of the host."""
        return np.asarray(on_host(values), dtype)

    def combine(self, *sums: tuple[Block, float, Sequence[tuple[float, Block]]]) -> None:
        """Set the first of each (out, scale, [(c, T), ...]) to scale · out + Σ c T."""

        def work(rows: slice) -> None:  # a T that occurs in several sums is read once
            for out, scale, terms in sums:
                part = out[rows]
                if scale != 1.0:
                    part *= scale
                for c, T in terms:
                    part += c * T[rows]

        for_each_tile(work, len(sums[0][0]), _TILE)

    def project(self, X: Block, V: Block, out: Block | None = None) -> Block:
        """Return X - V VᵀX for orthonormal V (n, r), in `out`, which may be X, or a new block."""
        result = np.empty_like(X, order="C") if out is None else out
        along = sum_over_tiles(lambda rows: V[rows].T @ X[rows], len(X), _PROJECTION_TILE)
        for_each_tile(
            lambda rows: np.subtract(X[rows], V[rows] @ along, out=result[rows]),
            len(X),
            _PROJECTION_TILE,
        )
        return result

    def gram(self, X: Block, Y: Block) -> Array:
        """Return XᵀY in float64, on the host."""
        return sum_over_tiles(
            lambda rows: X[rows].astype(float).T @ Y[rows].astype(float), len(X), _GRAM_TILE
        )

    def rotate(self, X: Block, W: Array) -> None:
        """Set X (n, p) to X W, W (p, p), in the precision of X."""
        W = W.astype(X.dtype)
        for_each_tile(lambda rows: np.copyto(X[rows], X[rows] @ W), len(X), _GRAM_TILE)

    def dots(self, X: Block, Y: Block) -> Array:
        """Return the inner product of each column of X with that of Y, in float64, on the host."""
        return np.einsum("i...,i...->...", X, Y, dtype=float)

    def orthonormal(self, X: Block, V: Block) -> Block:
        """Return orthonormal columns (n, p), orthogonal to V (n, r), that span X (n, p) with V."""
        return np.asarray(qr(np.hstack([V, X]), mode="economic")[0][:, V.shape[1] :], X.dtype)

    # Graphs: rows of entries, and CSR matrices

    def smallest(self, X: Block, order: int) -> Block:
        """Return the entry of each row of X (n, k) that is number `order` in ascending order."""
        return np.partition(X, order, axis=1)[:, order]

    def repeated(self, values: Block, matrix: Any) -> Block:
        """Return the value of each row (m,) at each entry of a CSR matrix."""
        return np.repeat(values, np.diff(matrix.indptr))

    def over_rows(self, kind: str, entries: Block, starts: Block) -> Block:
        """Return the "sum" or "min" of the entries of each row (m,), none of them empty."""
        ufunc = np.add if kind == "sum" else np.minimum
        return ufunc.reduceat(entries, starts[:-1])

    def sums_by_row(self, entries: Block, matrix: Any) -> Block:
        """Return the sum of the entries of each row (m,) of a CSR matrix, which may be empty."""
        return np.bincount(self.row_numbers(matrix), entries, matrix.shape[0])

    def sparse_rows(self, n_features: int) -> int:
        """Return of how many new points the rows are computed at a time."""
        return _SPARSE_ROWS

    def both_ways(self, K: Any, kind: str = "max") -> Any:
        """Return max(K, Kᵀ) of a CSR matrix without negative entries, or their "sum"."""
        return K.maximum(K.T) if kind == "max" else sparse.csr_matrix(K + K.T)

    # Places and pairs of points

    def median_length(self, Y: Block, matrix: Any) -> float:
        """Return the median of |y_i - y_j| over the entries of a CSR matrix (n, n)."""
        squares = np.empty(matrix.nnz, np.float32)

        def work(rows: slice) -> None:
            starts = matrix.indptr[rows.start : rows.stop + 1]
            row = np.repeat(np.arange(rows.start, rows.stop), np.diff(starts))
            entries = slice(starts[0], starts[-1])
            squares[entries] = np.square(Y[row] - Y[matrix.indices[entries]]).sum(axis=1)

        for_each_tile(work, len(Y), LOOP_ROWS[1])
        return math.sqrt(float(np.median(squares)))

    def forces(self, Y: Block, matrix: Any, term: PairTerm, s: float) -> Block:
        """Sum by compiled loops, but for few points."""
        if len(Y) <= _UNCOMPILED_UP_TO:
            return super().forces(Y, matrix, term, s)
        loop, numbers = term.loop(s)
        csr, axes = (matrix.indptr, matrix.indices, matrix.data), tuple(range(Y.shape[1]))
        forces = np.empty_like(Y)
        tiled(loop, len(Y), Y, csr, *numbers, axes, forces)
        return forces

    def repulsion(
        self, opening: float, mass: Block | None = None
    ) -> Callable[[Block, float], tuple[Block, float]]:
        """Return the function of (Y, s) that returns what `all_repulsion` returns.

        By a tree with this θ; 0: without error. `mass` (n,) as there.
        """

        def sums(Y: Block, s: float) -> tuple[Block, float]:
            is_tree = len(Y) > _UNCOMPILED_UP_TO and Y.shape[1] in (2, 3)
            if opening == 0 and not is_tree:
                return self.all_repulsion(Y, s, mass)
            return repulsion_by_tree(Y / s, opening, mass)

        return sums

    # Points and pairs of these

    def native_if_small(self, X: Points) -> Points:
        """Return points, which are here."""
        return X

    def centre(self, X: Points) -> Array | float:
        """Return the point to subtract before products of points, because an offset costs digits.

        The median (d,) of at most 2,000 of the rows: the mean can be far from most points. Entries
        of X, not rounded; 0 for sparse points.
        """
        if sparse.issparse(X):
            return 0.0
        sample = X[:: max(1, len(X) // 1000)]
        middle = len(sample) // 2
        return np.asarray(np.partition(sample, middle, axis=0)[middle], dtype=np.float64)


HOST = HostBlocks()


def pair_distances(x: Points, y: Points, rows: Block, columns: Block) -> Block:
    """Return the distances |x[rows] - y[columns]| of pairs, from differences in float64.

    They are where the numbers of the pairs are.
    """
    if is_tensor(rows):
        there: Any = blocks_of(rows)
        return there.pair_distances(x, y, rows, columns)
    distances = np.empty(len(rows))
    # `size` counts the entries that are stored, of sparse points, too.
    pairs_at_a_time = _DIFFERENCES_AT_A_TIME * y.shape[0] // max(1, y.size)
    for pairs in row_tiles(len(rows), max(1, pairs_at_a_time)):
        one = x[rows[pairs]].astype(float)  # squares of float32 may be beyond its range
        distances[pairs] = row_norms(one - y[columns[pairs]])
    return distances


def repulsion_by_tree(
    U: Array, theta: float = OPENING, mass: Array | None = None
) -> tuple[Array, float]:
    """Return Σ_j q_ij² (u_i - u_j) (n, c), and Σ q over all i != j; q = 1 / (1 + |u_i - u_j|²).

    By a tree over the points, see `loops`; exact with θ = 0. With `mass` (n,) a pair counts
    m_i m_j times.
    """
    from heatsketch.core import loops  # imports numba

    n, c = U.shape
    low = U.min(axis=0)
    width = float((U - low).max()) or 1.0
    cells, codes = np.empty((n, c), np.uint64), np.empty(n, np.uint64)

    def encode(rows: slice) -> None:
        scale = (2.0 ** (loops.CODE_BITS // c) - 1) / width
        cells[rows] = (U[rows] - low) * scale
        loops.interleave(cells, codes, rows.start, rows.stop)

    for_each_tile(encode, n, LOOP_ROWS[1])
    order = np.argsort(codes)
    if np.any(codes[order[1:]] == codes[order[:-1]]):  # else any sort gives this order, the fastest
        order = np.argsort(codes, kind="stable")
    points, mass = U[order], None if mass is None else mass[order]
    nodes = [np.empty(2 * n, kind) for kind in (np.int32, np.int32, np.int32, bool)]
    count = loops.divide(codes[order], *nodes)
    sizes = (count, 2, c), (count, 2 + c + c**2)
    tree = loops.Tree(*(each[:count] for each in nodes), *map(np.empty, sizes))
    axes = tuple(range(c))
    loops.measure(points, mass, tree, axes)
    force, q = np.empty_like(points), np.empty(n)

    tiled(loops.repulsion, count, points, mass, tree, theta, axes, force, q, limits=_NODES)
    forces = np.empty_like(force)
    forces[order] = force if mass is None else mass[:, None] * force
    if mass is None:
        return forces, float(q.sum()) - n
    return forces, float((mass * q).sum() - (mass**2).sum())


Blocks: TypeAlias = "HostBlocks | DeviceBlocks"


def blocks_of(values: Any) -> Blocks:
    """Return the algebra where an array or a tensor is, or the entries of a CSR matrix are."""
    values = values.data if hasattr(values, "tocsr") else values
    if isinstance(values, np.ndarray) or not is_tensor(values):
        return HOST
    from heatsketch.device.blocks import DeviceBlocks

    return DeviceBlocks(values.device)


def blocks_at(device: Any, name: str = "device") -> Blocks:
    """Return the algebra of blocks on a device, or on the host where it is None."""
    if device is None:
        return HOST
    from heatsketch.device.blocks import blocks_on

    return blocks_on(device, name)


COMPILED_FROM = 2**14  # rows: smaller products are not worth a compiler's start
_EQUAL = 1e-9  # relative difference of entries that count as equal
_PRODUCT_TILE = 2048  # rows multiplied at a time


def is_large(n: int) -> bool:
    """Say whether products with n rows are compiled, reordered, and kept in float32 if X is."""
    return n >= COMPILED_FROM


def multiply(matrix: Any, X: Array) -> Array:
    """Return matrix @ X, compiled for a large CSR matrix (m, n) and a block X (n, k)."""
    if X.ndim == 1 or not (sparse.issparse(matrix) and is_large(matrix.shape[1])):
        return matrix @ X
    from heatsketch.core.loops import multiply_block  # imports numba

    X = np.ascontiguousarray(X)
    Y = np.empty((matrix.shape[0], X.shape[1]), X.dtype)

    csr = matrix.indptr, matrix.indices, matrix.data
    tiled(multiply_block, len(Y), *csr, X, Y, limits=(_PRODUCT_TILE, _PRODUCT_TILE))
    return Y


def scale_both_sides(matrix: Any, left: Array, right: Array, dtype: Any = np.float64) -> Any:
    """Return diag(left) matrix diag(right), of an array or CSR matrix, whose pattern is shared.

    Of a matrix on a device, where `left` and `right` are too, the result is there.
    """
    if isinstance(matrix, np.ndarray):
        with np.errstate(over="ignore"):
            both = left[:, None] * right  # one product, so that a symmetric matrix stays symmetric
        return np.multiply(matrix, both, out=np.zeros(both.shape), where=matrix != 0)  # not 0 · ∞
    matrix = matrix.tocsr()
    blocks = blocks_of(matrix)
    scale = blocks.repeated(left, matrix)
    scale *= right[matrix.indices]
    scale *= matrix.data
    data = blocks.native(scale, dtype)
    return blocks.csr((data, matrix.indices, matrix.indptr), matrix.shape)


def largest_of_rows(matrix: Any, count: int) -> Any:
    """Return the `count` largest entries of each row, and those equal to the last of them, as CSR.

    Which ones does not depend on the order of the columns. On the host, unless `matrix` is on a
    device and has no larger rows.
    """
    if blocks_of(matrix) is not HOST and int(matrix.indptr.diff().max()) <= count:
        return matrix
    rows = sparse.csr_matrix(matrix if sparse.issparse(matrix) else landed(matrix))
    kept = np.ones(len(rows.data), bool)
    for i in np.flatnonzero(np.diff(rows.indptr) > count):
        entries = slice(rows.indptr[i], rows.indptr[i + 1])
        least = np.partition(rows.data[entries], -count)[-count]
        kept[entries] = rows.data[entries] >= least * (1 - _EQUAL)
    if kept.all():
        return rows
    starts = np.append(0, np.cumsum(kept))[rows.indptr]
    return sparse.csr_matrix((rows.data[kept], rows.indices[kept], starts), rows.shape)


def permuted(matrix: sparse.csr_matrix, order: Array) -> sparse.csr_matrix:
    """Return matrix[order][:, order]."""
    rows = matrix[order]
    rows.indices = inverse_permutation(order)[rows.indices].astype(rows.indices.dtype)
    rows.has_sorted_indices = False
    rows.sort_indices()
    return rows


def inverse_permutation(order: Array, n: int | None = None) -> Array:
    """Return p with p[order[i]] = i, 32-bit if it fits; (n,), of some of n numbers."""
    n, blocks = len(order) if n is None else n, blocks_of(order)
    index = sparse.get_index_dtype(maxval=n)
    inverse = blocks.native(blocks.arange(n), index)
    inverse[order] = blocks.native(blocks.arange(len(order)), index)
    return inverse
