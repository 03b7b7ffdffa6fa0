"""Rows of a source go to the tiles of their cells, and results back to the order of the source."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from heatsketch._array import Frame
from heatsketch._blocks import held
from heatsketch._checks import check_finite
from heatsketch._typing import Array
from heatsketch.distributed import cells as cells_module
from heatsketch.distributed.cells import Cells
from heatsketch.neighbors import distinct_rows, in_metric


class Inputs(NamedTuple):
    """The rows of the source that a tile has; those with equal coordinates share a vertex."""

    rows: Array  # (inputs,), in the source, increasing
    vertex: Array  # (inputs,), of the tile

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return int(self.vertex.max()) + 1

    @property
    def first_rows(self) -> Array:
        """The first row of the source at each vertex, (n_t,)."""
        return self.rows[np.unique(self.vertex, return_index=True)[1]]


class Tile(NamedTuple):
    """The points of some cells."""

    points: Array  # (n_t, d), of the vertices, in the frame, in the order of their first rows
    cell: Array  # (n_t,)
    inputs: Inputs


@dataclass(frozen=True, eq=False)
class Source:
    """Blocks of points (rows, d), delayed, in their order."""

    blocks: tuple[Any, ...]
    sizes: tuple[int, ...]
    width: int
    dtype: np.dtype
    metric: str = "euclidean"
    starts: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        starts = np.concatenate([[0], np.cumsum(self.sizes)])
        object.__setattr__(self, "starts", tuple(int(start) for start in starts))

    @property
    def n(self) -> int:
        """Number of points."""
        return self.starts[-1]

    def points(self) -> list[Any]:
        """Return the blocks, checked, in the metric; delayed."""
        from dask import delayed

        check = delayed(_checked)
        return [
            check(block, start, self.metric)
            for block, start in zip(self.blocks, self.starts[:-1], strict=True)
        ]

    def sample(self, rows: Array) -> Array:
        """Return these rows (increasing), all blocks being looked at."""
        import dask

        at = np.searchsorted(rows, self.starts)
        take = dask.delayed(_rows_of)
        parts = [
            take(block, rows[at[b] : at[b + 1]] - self.starts[b])
            for b, block in enumerate(self.points())
        ]
        return np.concatenate(dask.compute(*parts))


def _checked(block: Array, start: int, metric: str) -> Array:
    check_finite(block, "X", first_row=start)
    return in_metric(np.asarray(block), metric)


def _rows_of(block: Array, rows: Array) -> Array:
    return block[rows]


def to_tiles(source: Source, trained: Cells, tile_rows: int) -> tuple[list[Any], Cells]:
    """Return the tiles, delayed, and the cells grouped into them.

    A tile is the same however the source is cut into blocks.
    """
    import dask
    from dask import delayed

    points, shared = source.points(), delayed(trained, traverse=False)  # sent once
    cell = held(*(delayed(_cells_of_block)(block, shared) for block in points))
    counts = delayed(_bincount)
    parts = dask.compute(*(counts(block, len(trained.centres)) for block in cell))
    cells = cells_module.grouped(trained, np.sum(parts, axis=0), tile_rows)
    split, collect = delayed(_split), delayed(_collect)
    shared = delayed(cells, traverse=False)
    shares = [
        split(block, own, start, shared)
        for block, own, start in zip(points, cell, source.starts[:-1], strict=True)
    ]
    tiles = [collect(cells.frame, *(share[t] for share in shares)) for t in range(cells.n_tiles)]
    return list(held(*tiles)), cells


def _cells_of_block(block: Array, cells: Cells) -> Array:
    return cells_module.cells_of(cells.frame(block), cells)


def _bincount(cell: Array, count: int) -> Array:
    return np.bincount(cell, minlength=count)


def _split(block: Array, cell: Array, start: int, cells: Cells) -> list[Any]:
    """Return rows of the source, their points and cells, for each tile."""
    tile = cells.tile[cell]
    order = np.argsort(tile, kind="stable")
    ends = np.searchsorted(tile[order], np.arange(1, cells.n_tiles))
    return [(start + rows, block[rows], cell[rows]) for rows in np.split(order, ends)]


def _collect(frame: Frame, *shares: Any) -> Tile:
    rows, points, cell = (np.concatenate(parts) for parts in zip(*shares, strict=True))
    points = frame(points)
    first, vertex = distinct_rows(points)
    return Tile(points[first], cell[first], Inputs(rows, vertex))


def to_blocks(
    values: Sequence[Any], inputs: Sequence[Any], source: Source, k: int, dtype: Any
) -> Any:
    """Return rows of the vertices (n_t, k) as a Dask array (n, k) in the order of the source."""
    from dask import delayed

    from heatsketch.operators.dask_tiles import tiled

    split, collect = delayed(_split_back), delayed(_collect_back)
    shares = [split(own, rows, source.starts) for own, rows in zip(values, inputs, strict=True)]
    blocks = [
        collect(source.starts[b], source.starts[b + 1], *(share[b] for share in shares))
        for b in range(len(source.sizes))
    ]
    return tiled(blocks, source.sizes, (k,), dtype)


def _split_back(values: Array, inputs: Inputs, starts: Sequence[int]) -> list[Any]:
    """Return rows of the source and their values, for each block."""
    (rows, vertex), at = inputs, np.searchsorted(inputs.rows, starts)
    return [(rows[low:high], values[vertex[low:high]]) for low, high in itertools.pairwise(at)]


def _collect_back(start: int, stop: int, *shares: Any) -> Array:
    values = shares[0][1]
    out = np.empty((stop - start, *values.shape[1:]), values.dtype)
    for rows, part in shares:
        out[rows - start] = part
    return out
