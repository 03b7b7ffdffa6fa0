"""Row tiles of blocks (n, k): arrays go through many, on all threads; a tensor is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from heatsketch._array import ROW_TILE, for_each_tile
from heatsketch._tensors import is_tensor


def for_each_tile_of(X: Any, work: Callable[[slice], None], tile: int = ROW_TILE) -> None:
    """Call `work(rows)` on the row tiles of a block, in parallel; each writes its own rows only.

    A tensor is one tile: torch divides the work among the threads of its device.
    """
    if is_tensor(X):
        work(slice(0, len(X)))
    else:
        for_each_tile(work, len(X), tile)


Change = Callable[..., None]


def changed(works: Sequence[tuple[Any, Change]], *others: Any) -> list[Any]:
    """Return blocks Y after `work(Y[rows], *(X[rows] for X in others))`, which writes to Y[rows].

    Arrays and tensors are changed in place, tile by tile, so that the cache holds what is in work.
    """

    def change(rows: slice) -> None:
        parts = [X[rows] for X in others]
        for Y, work in works:
            work(Y[rows], *parts)

    if works:
        for_each_tile_of(works[0][0], change)
    return [Y for Y, _ in works]


def sum_over_tiles(X: Any, work: Callable[[slice], Any], tile: int = ROW_TILE) -> Any:
    """Return the sum of `work(rows)` over the row tiles of a block, in their order.

    So the bits of the sum of arrays are the same for any number of threads.
    """
    if is_tensor(X):
        return work(slice(0, len(X)))
    parts: list[Any] = [None] * -(-len(X) // tile)

    def keep(rows: slice) -> None:
        parts[rows.start // tile] = work(rows)

    for_each_tile(keep, len(X), tile)
    return np.sum(parts, axis=0)
