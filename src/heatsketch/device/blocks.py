"""Primitives on a device of torch: blocks, CSR matrices, and the grid by which points repel.

Points repel each other through q = 1 / (1 + |u|²), which is smooth on the length 1, so that a grid
resolves it. The points are spread to its nodes by cubic B-splines, the sums over all pairs are
products of Fourier transforms, and the same splines read them at the points: the particle mesh of
Essmann et al. (1995).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn import get_config

from heatsketch._arrays import Array, Points, is_tensor, on_host, to_device
from heatsketch._random import HASH_MULTIPLIERS
from heatsketch._threads import row_tiles, shared
from heatsketch._words import optional
from heatsketch.core.blocks import HOST, Block, Place

# of the nodes: errors of forces are .15 % of their parts in the mean square, 2 % at one point
_SPACING = 0.28
_NODES = 4  # of a spline, in each direction
_GRIDS = 7  # as large, at most, take half of what is free
_MOST_FOR_A_POINT, _MOST = 2**13, 2**30  # nodes: beyond, a tree is as fast; sizes untried


class Grid:
    """Sums over all pairs by a grid, whose kernels are kept while it has the same size."""

    def __init__(self, blocks: Any) -> None:
        self.blocks = blocks
        self._shape: tuple[int, ...] = ()
        self._kernels: list[Block] = []

    def repulsion(self, U: Block, mass: Block | None = None) -> tuple[Block, float] | None:
        """Return what `repulsion_by_tree` returns of U (n, c), or None if the grid is too large."""
        xp, (n, c) = self.blocks.xp, U.shape
        U = (U - U.amin(0)) / _SPACING
        # Twice the box: what leaves it at one end comes back at the other.
        shape = tuple(_rounded_up(2 * (int(extent) + 2 * _NODES)) for extent in U.amax(0).tolist())
        size, bytes_each = math.prod(shape), _GRIDS * U.element_size()
        if size > min(_MOST, _MOST_FOR_A_POINT * n) or bytes_each * size > self.blocks.room / 2:
            return None
        if shape != self._shape:
            self._kernels = []  # first: two sizes need not fit
            self._shape, self._kernels = shape, self._transformed_kernels(shape, U.dtype)
        tiles = list(row_tiles(n, max(1, int(self.blocks.step_bytes / (32 * _NODES**c)))))
        grid = U.new_zeros(size)
        for rows in tiles:
            at, weight = _nodes_of(U[rows], shape, xp)
            weight = weight if mass is None else weight * mass[rows]
            grid.index_add_(0, at.flatten(), weight.flatten())
        density = xp.fft.rfftn(grid.view(shape))
        del grid
        power = density.abs().square() * self._kernels[0]  # of one half of all frequencies
        total = 2 * power.sum() - power[..., 0].sum() - power[..., -1].sum()
        density *= 1j
        forces = xp.empty_like(U)
        for a, kernel in enumerate(self._kernels[1:]):
            field = xp.fft.irfftn(density * kernel, shape).flatten()
            for rows in tiles:
                at, weight = _nodes_of(U[rows], shape, xp)
                forces[rows, a] = (weight * field[at]).sum(0)
        if mass is None:
            return forces, float(total) / size - n
        return forces * mass[:, None], float(total) / size - float(mass.square().sum())

    def _transformed_kernels(self, shape: tuple[int, ...], dtype: Any) -> list[Block]:
        """Return the transforms of q, and of q² u_a without their factor i.

        They are divided by those of both splines.
        """
        xp = self.blocks.xp
        steps = [np.fft.fftfreq(side, 1 / side) for side in shape]  # from a node to the others
        axes = xp.meshgrid(*(self.blocks.native(_SPACING * s, dtype) for s in steps), indexing="ij")
        q = 1 / (1 + sum(u.square() for u in axes))
        waves = [2 * math.pi * s / side for s, side in zip(steps, shape, strict=True)]
        waves[-1] = waves[-1][: shape[-1] // 2 + 1]
        splines = (self.blocks.native(((2 + np.cos(k)) / 3) ** 2, dtype) for k in waves)
        smoothing = math.prod(xp.meshgrid(*splines, indexing="ij"))
        # Half of the way around is neither before nor behind a node.
        pulls = (xp.fft.rfftn(q.square() * u * (u > u.min())).imag for u in axes)
        return [xp.fft.rfftn(q).real / smoothing, *(pull / smoothing for pull in pulls)]


def _rounded_up(side: int) -> int:
    """Return a number at most a quarter larger, with three binary digits, so that it often stays.

    Transforms of its length are fast.
    """
    unit = 2 ** max(1, side.bit_length() - 3)
    return -(-side // unit) * unit


def _nodes_of(U: Block, shape: tuple[int, ...], xp: Any) -> tuple[Block, Block]:
    """Return 4^c nodes (nodes, n) of each point U (n, c), in units of the spacing, and weights."""
    cells = U.floor()
    t = U - cells
    cells = cells.long() + xp.arange(_NODES, device=U.device)[:, None, None]  # (4, n, c)
    splines = [(1 - t) ** 3, 4 - 6 * t**2 + 3 * t**3, 1 + 3 * t + 3 * t**2 - 3 * t**3, t**3]
    weights = xp.stack(splines) / 6
    at, weight = cells[..., 0], weights[..., 0]
    for a, side in enumerate(shape[1:], 1):
        at = (at[:, None] * side + cells[..., a]).flatten(0, 1)
        weight = (weight[:, None] * weights[..., a]).flatten(0, 1)
    return at, weight


_SPARSE_ROW_BYTES = 2048  # of a new point, with the neighbours from which it comes
_WINDOW = 2.0  # mean edges: a wider one makes vertices take part again, a narrower one more rounds
_WITH_AUTOCAST = ("cpu", "cuda", "xpu")


@dataclass(frozen=True)
class DeviceBlocks(Place):
    """Tensors on a device of torch: as `HostBlocks`, up to rounding."""

    device: Any
    products_are_cheap = True
    tree_features: ClassVar[int] = 0  # there is no tree

    @property
    def xp(self) -> Any:
        """The functions of tensors."""
        import torch

        return torch

    def native(self, values: Any, dtype: Any = None) -> Block:
        """Return a tensor on the device."""
        return as_tensor(values, dtype, self.device)

    brought = native

    def arange(self, n: int) -> Block:
        """Count on the device."""
        return self.xp.arange(n, device=self.device)

    def for_rows(self, work: Callable[[slice], None], n: int, tile: int) -> None:
        """Work on all rows at once."""
        work(slice(0, n))

    def combine(self, *sums: tuple[Block, float, Sequence[tuple[float, Block]]]) -> None:
        """Combine term by term."""
        for out, scale, terms in sums:
            if scale != 1.0:
                out *= scale
            for c, T in terms:
                out.add_(T, alpha=c)

    def project(self, X: Block, V: Block, out: Block | None = None) -> Block:
        """Multiply in full precision."""
        with full_precision(self.device):
            along = V @ (V.T @ X)
        return X - along if out is None else out.copy_(X).sub_(along)

    def gram(self, X: Block, Y: Block) -> Array:
        """Multiply in float64."""
        return self.host(X.double().T @ Y.double())

    def rotate(self, X: Block, W: Array) -> None:
        """Multiply in full precision."""
        with full_precision(self.device):
            X.copy_(X @ self.native(W).to(X.dtype))

    def dots(self, X: Block, Y: Block) -> Array:
        """Sum in float64."""
        return self.host((X.double() * Y.double()).sum(0))

    def orthonormal(self, X: Block, V: Block) -> Block:
        """Call the QR decomposition of torch."""
        import torch

        return torch.linalg.qr(torch.hstack([V, X]))[0][:, V.shape[1] :]

    def where(self, mask: Block) -> Array:
        """Copy only the places found."""
        return self.host(mask.nonzero()[:, 0])

    def smallest(self, X: Block, order: int) -> Block:
        """Sort the rows."""
        return X.sort(1).values[:, order]

    def csr(self, parts: tuple[Block, Block, Block], shape: tuple[int, int]) -> DeviceCSR:
        """Return a matrix on the device."""
        return DeviceCSR(*parts, shape)

    def repeated(self, values: Block, matrix: DeviceCSR) -> Block:
        """Repeat on the device."""
        counts = matrix.indptr.diff().long()
        return values.repeat_interleave(counts, output_size=len(matrix.data))

    def over_rows(self, kind: str, entries: Block, starts: Block) -> Block:
        """Reduce segments."""
        return self.xp.segment_reduce(entries, kind, offsets=starts.long())

    def sums_by_row(self, entries: Block, matrix: DeviceCSR) -> Block:
        """Reduce segments, the empty ones to 0."""
        return self.over_rows("sum", entries, matrix.indptr)

    def sparse_rows(self, n_features: int) -> int:
        """Fill a step of work: each one visits all cells."""
        return max(1, int(self.step_bytes / (_SPARSE_ROW_BYTES + 24 * n_features)))

    def both_ways(self, K: DeviceCSR, kind: str = "max") -> DeviceCSR:
        """Sort the entries of K and Kᵀ by their place i n + j, where equal ones meet."""
        together = self.xp.maximum if kind == "max" else self.xp.add
        n, (rows, columns) = K.shape[0], K.places()
        place, by_place = self.xp.cat([rows * n + columns, columns * n + rows]).sort()
        data = K.data.repeat(2)[by_place]
        same = place[1:] == place[:-1]  # at most two
        data[:-1] = self.xp.where(same, together(data[:-1], data[1:]), data[:-1])
        kept = self.xp.ones_like(place, dtype=self.xp.bool)
        kept[1:] = ~same
        place, data = place[kept], data[kept]
        starts = self.xp.searchsorted(place, n * self.arange(n + 1))
        return self.csr((data, place % n, starts), K.shape)

    def median_length(self, Y: Block, matrix: DeviceCSR) -> float:
        """Take the mean of the two in the middle, of which torch's median is the lower."""
        squares = self.differences(Y, matrix)[1]
        return math.sqrt(float(squares.median() - (-squares).median()) / 2)

    def repulsion(
        self, opening: float, mass: Block | None = None
    ) -> Callable[[Block, float], tuple[Block, float]]:
        """Sum by a grid; where that would be too large, on the host."""
        if opening == 0:
            return partial(self.all_repulsion, mass=mass)
        of_host = None if mass is None else self.host(mass).astype(float)
        by_grid, by_tree = Grid(self).repulsion, HOST.repulsion(opening, of_host)

        def sums(Y: Block, s: float) -> tuple[Block, float]:
            found = by_grid(Y / s, mass)
            if found is None:
                force, total = by_tree(self.host(Y).astype(float), s)
                found = self.native(force, Y.dtype), total
            return found

        return sums

    def shortest_paths(self, graph: DeviceCSR, sources: Array) -> Array:
        """Search by rounds in which many vertices lower their neighbours.

        All sources are searched at once, each in a copy of the graph. In a round these vertices
        take part: those lowered since their last one, and no farther than two mean edges behind
        the nearest of these, as vertices farther away are likely to be lowered again (Meyer and
        Sanders 2003).
        """
        n = graph.shape[0]
        xp, starts, lengths = self.xp, graph.indptr.long(), graph.data.double()
        width = _WINDOW * lengths.sum() / max(1, len(lengths))
        d = xp.full((len(sources) * n,), np.inf, dtype=lengths.dtype, device=self.device)
        d[self.native(np.arange(len(sources)) * n + sources)] = 0.0
        lowered = xp.isfinite(d)
        tile = max(1, int(self.step_bytes * n / (64 * max(n, len(lengths)))))
        while len(waiting := d[lowered]):
            near = (lowered & (d <= waiting.min() + width)).nonzero()[:, 0]
            lowered[near] = False
            before = d.clone()
            for some in row_tiles(len(near), tile):
                here = near[some]
                vertex = here % n
                ends = starts[vertex + 1]
                counts = ends - starts[vertex]
                each = xp.repeat_interleave(counts)  # the place in `here` of each edge
                entries = (ends - counts.cumsum(0))[each] + self.arange(len(each))
                there = (here - vertex)[each] + graph.indices[entries]
                d.scatter_reduce_(0, there, d[here[each]] + lengths[entries], "amin")
            lowered |= d < before
        return self.host(d).reshape(len(sources), n)

    @property
    def room(self) -> float:
        """The bytes that are free; on the processor four times scikit-learn's working memory."""
        if self.xp.device(self.device).type != "cuda":
            return float(4 * get_config()["working_memory"] * 2**20)
        cuda = self.xp.cuda
        unused = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
        return float(cuda.mem_get_info(self.device)[0] + unused)

    @property
    def step_bytes(self) -> float:
        """The bytes of a step of work: a quarter of what is free, at most 1 GB."""
        return min(2.0**30, self.room / 4)

    def native_if_small(self, X: Block) -> Block:
        """Return points (n, d) on the device, if they are there or take an eighth of its memory."""
        return self.native(X) if is_tensor(X) or 8 * X.nbytes <= self.room else X

    def copied(self, X: Block) -> Block:
        """Return a copy on the device."""
        return X.clone()

    def rows(self, X: Block, rows: Any) -> Block:
        """Return rows of points that are here or on the host, here."""
        return X[rows] if is_tensor(X) else self.native(X[on_host(rows)])

    def centre(self, X: Block) -> Block:
        """Take the median here."""
        return self.rows(X, slice(None, None, max(1, len(X) // 1000))).double().median(0).values

    def pair_distances(self, x: Points, y: Points, rows: Block, columns: Block) -> Block:
        """Sum in float64; points come by some features at a time."""
        squares = self.native(np.zeros(len(rows)))
        for features in row_tiles(y.shape[1], max(1, int(self.step_bytes / (16 * y.shape[0])))):
            parts = [P[:, features] for P in (x, y)]
            one, other = (self.native(P.toarray() if sparse.issparse(P) else P) for P in parts)
            for pairs in row_tiles(len(rows), max(1, int(self.step_bytes / (32 * one.shape[1])))):
                differences = one[rows[pairs]].double() - other[columns[pairs]]
                squares[pairs] += differences.square_().sum(1)
        return squares.sqrt_()

    def distinct_rows(self, X: Block) -> tuple[Block, Block]:
        """Hash as `_random.distinct_rows`: signed numbers of 64 bits stand for the unsigned ones.

        The points are here or on the host.
        """
        xp, (n, d) = self.xp, X.shape
        exponent = int(np.frexp(max(float(X.max()), -float(X.min())))[1])
        factors = _mixed_bits(xp.arange(1, d + 1, device=self.device)) | 1
        keys = xp.empty(n, dtype=xp.int64, device=self.device)
        for rows in row_tiles(n, max(1, int(self.step_bytes / (40 * d)))):
            scaled = self.native(X[rows]).double() * 2.0**-exponent + 0.0  # -0.0 + 0.0 is 0.0
            keys[rows] = (_mixed_bits(scaled.view(xp.int64)) * factors).sum(1)
        keys, order = (_mixed_bits(keys) ^ np.iinfo(np.int64).min).sort(stable=True)
        is_first = xp.ones_like(keys, dtype=xp.bool)
        is_first[1:] = keys[1:] != keys[:-1]
        vertex = xp.empty_like(order)
        vertex[order] = is_first.cumsum(0) - 1
        return order[is_first], vertex


def _mixed_bits(bits: Block) -> Block:
    """Spread the bits, as `_random.mixed_bits`: a shift of signed numbers repeats the sign."""
    for multiplier in HASH_MULTIPLIERS:
        bits = (bits ^ ((bits >> 33) & 0x7FFFFFFF)) * (multiplier - 2**64)
    return bits ^ ((bits >> 33) & 0x7FFFFFFF)


class DeviceCSR:
    """A CSR matrix (m, n) on a device, with what a graph needs of SciPy's.

    What else is asked of it comes from its copy on the host, made when it is needed.
    """

    def __init__(self, data: Block, indices: Block, indptr: Block, shape: tuple[int, int]) -> None:
        # As SciPy: numbers of 32 bits, if they fit.
        index = np.int32 if max(len(data), *shape) < 2**31 else np.int64
        self.blocks, self.shape, self.data = DeviceBlocks(data.device), shape, data
        self.indices, self.indptr = (self.blocks.native(part, index) for part in (indices, indptr))

    @property
    def tensor(self) -> Any:
        """The matrix as a sparse tensor, which shares its entries."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
            return self.blocks.xp.sparse_csr_tensor(
                self.indptr, self.indices, self.data, self.shape, check_invariants=False
            )

    @cached_property
    def host(self) -> sparse.csr_matrix:
        """The matrix on the host."""
        parts = (self.data, self.indices, self.indptr)
        return sparse.csr_matrix(tuple(map(on_host, parts)), shape=self.shape)

    def landed(self) -> sparse.csr_matrix:
        """Return the matrix on the host."""
        return self.host

    def tocsr(self) -> DeviceCSR:
        """Return the matrix itself."""
        return self

    @property
    def T(self) -> DeviceCSR:
        """The transposed matrix."""
        rows, columns = self.places()
        order = (columns * self.shape[0] + rows).argsort()
        counts = columns.bincount(minlength=self.shape[1])
        starts = self.blocks.xp.nn.functional.pad(counts.cumsum(0), (1, 0))
        return DeviceCSR(self.data[order], rows[order], starts, self.shape[::-1])

    def __getitem__(self, rows: Any) -> Any:
        """Return rows or columns on the host."""
        return self.host[rows]

    def __matmul__(self, X: Any) -> Any:
        """Multiply a block; the product of an array is an array."""
        with full_precision(self.blocks.device):
            Y = self.tensor @ self.blocks.native(X, self.data.dtype).contiguous()
        return Y if is_tensor(X) else self.blocks.host(Y)

    def places(self) -> tuple[Block, Block]:
        """Return the row and the column of each entry."""
        return self.blocks.row_numbers(self), self.indices.long()

    def sum(self, axis: int) -> Block:
        """Return the sums of columns (n,), axis 0, or of rows (m,), axis 1."""
        lines = (self.T, self)[axis]
        return self.blocks.over_rows("sum", lines.data, lines.indptr)

    def between(self, vertices: Array) -> DeviceCSR:
        """Return the square matrix between some of the points (p,), on the device."""
        blocks, p = self.blocks, len(vertices)
        number = blocks.native(np.full(self.shape[0], -1))
        number[blocks.native(vertices)] = blocks.arange(p)
        rows, columns = (number[part] for part in self.places())
        kept = (rows >= 0) & (columns >= 0)
        place, order = (rows[kept] * p + columns[kept]).sort()
        starts = blocks.xp.searchsorted(place, p * blocks.arange(p + 1))
        return DeviceCSR(self.data[kept][order], place % p, starts, (p, p))

    def sort_indices(self) -> None:
        """Sort the entries of each row by column."""
        rows, columns = self.places()
        order = (rows * self.shape[1] + columns).argsort()
        self.data, self.indices = self.data[order], self.indices[order]

    def eliminate_zeros(self) -> None:
        """Leave out entries that are 0."""
        kept = self.data != 0
        before = self.blocks.xp.nn.functional.pad(kept.cumsum(0), (1, 0))  # each entry
        self.data, self.indices = self.data[kept], self.indices[kept]
        self.indptr = before[self.indptr].to(self.indptr.dtype)


def blocks_on(device: Any, name: str = "device") -> DeviceBlocks:
    """Return the algebra of blocks on a device, or say why there is none."""
    torch = optional("torch", f"{name} needs torch", "torch")
    if str(device).startswith("mps"):
        raise ValueError("device='mps' has no float64, in which sums are taken; pass 'cpu'.")
    try:
        return DeviceBlocks(torch.empty(0, device=device).device)  # with its number
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"device={str(device)!r} is not a device that torch can use here ({error}); pass one "
            "that it can use, or None for the processor."
        ) from error


def found_here(device: Any) -> Any:
    """Return a device, or None where torch or the device is missing: a model is used anywhere."""
    try:
        return None if device is None else blocks_on(device).device
    except (ImportError, ValueError):
        return None


def device_csr(matrix: sparse.csr_matrix, device: Any) -> DeviceCSR:
    """Return a CSR matrix on a device."""
    data = as_tensor(matrix.data, None, device)
    return DeviceCSR(data, matrix.indices, matrix.indptr, matrix.shape)


def as_tensor(values: Any, dtype: Any, device: Any) -> Any:
    """Return a tensor on a device, in a precision of NumPy or torch; gradients are left behind.

    With dtype None the precision is that of the values.
    """
    import torch

    if not is_tensor(values):
        values = to_device(np.asarray(values), device)
    named = dtype is None or isinstance(dtype, torch.dtype)
    kind = dtype if named else getattr(torch, np.dtype(dtype).name)
    return values.detach().to(dtype=kind, device=device)


@contextmanager
def full_precision(device: Any) -> Iterator[None]:
    """Multiply float32 in float32, whatever the caller has allowed elsewhere.

    TensorFloat-32 has 10 bits: the exponent |x|² + |y|² - 2xy would be off by a thousandth of |x|².
    """
    import torch

    kind = torch.device(device).type
    without = torch.autocast(kind, enabled=False) if kind in _WITH_AUTOCAST else nullcontext()
    with _full_float32(), without:
        yield


@contextmanager
@shared
def _full_float32() -> Iterator[None]:
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:  # also where Ctrl-C arrives as it is set back
        torch.set_float32_matmul_precision(before)
