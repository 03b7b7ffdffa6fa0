"""Exact nearest neighbours by blocks of all distances, chosen in float32 and proved in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from heatsketch._array import for_each_tile
from heatsketch._progress import Stage
from heatsketch._typing import Array
from heatsketch.neighbors.rows import pair_distances
from heatsketch.neighbors.torch_blocks import TorchBlocks
from heatsketch.operators.kernel import squared_norms

_TILE_ENTRIES = 2**21  # of a block: 8 MB, and 16 MB of indices
_SPARE = 4  # candidates beyond k, so that the rounding of float32 is less than the last gap
_EPS = float(np.finfo(np.float32).eps)
_TINY = float(np.finfo(np.float32).tiny)
_LARGEST = float(np.finfo(np.float32).max) / 16  # |x|² below which only |y| > 3 |x| overflows


class Candidates(NamedTuple):
    """The nearest points found, and which rows are not proved to have the right ones."""

    distances: Array  # (m, k), ascending
    indices: Array  # (m, k); of equally distant points the lowest first
    unproved: Array  # (rows,)


class Blocks:
    """A search over points (n, d), dense, in float32; on a device of torch if there is one.

    Squared distances |y|² - 2xy + |x|² in float32, less the rounding that |y|² and |x|² allow, are
    bounds from below. They choose k + 4 candidates of each row, whose distances are computed again
    from explicit differences in float64. No other point has a smaller square than the largest of
    these bounds: where that exceeds the k-th distance, the k nearest are among the candidates. The
    rounding is that of each pair, so that far points leave the rows of the others proved. Other
    rows, such as those with many equally distant points, must be searched in another way.
    """

    def __init__(self, points: Array, device: Any = None) -> None:
        self._points, self._device = points, device
        # Sums of d products, in any order; less than the smallest normal number is lost.
        self._kept_share = 1 - (points.shape[1] + 16) * _EPS
        with np.errstate(over="ignore", under="ignore"):  # such rows are not proved
            self._single = points.astype(np.float32)
            self._squares = (self._kept_share * squared_norms(points)).astype(np.float32)

    def nearest(self, x: Array, k: int) -> Candidates:
        """Return the k nearest points of each row of x (m, d)."""
        (m, d), n = x.shape, len(self._points)
        count = min(k + _SPARE, n)
        distances, indices = np.empty((m, k)), np.empty((m, k), np.int64)
        proved = np.full(m, count == n)
        norms = squared_norms(x)
        choose = self._chooser(x, count)

        def work(rows: slice) -> None:
            with np.errstate(over="ignore", invalid="ignore", under="ignore"):
                chosen, largest = choose(rows)
                beyond = largest + self._kept_share * norms[rows] - (d + 16) * _TINY
                beyond = np.clip(beyond, 0.0, _LARGEST)  # where |y|² overflows, y is farther
            distances[rows], indices[rows] = self._sorted(x, rows, chosen, k)
            proved[rows] |= (distances[rows, -1] < np.sqrt(beyond)) & (norms[rows] < _LARGEST)

        if self._device is not None:  # which has said how far it was
            for_each_tile(work, m)
        else:
            stage = Stage("nearest neighbours", m, "points")
            for_each_tile(work, m, max(16, _TILE_ENTRIES // n), stage)
        return Candidates(distances, indices, np.flatnonzero(~proved))

    def nearest_in_double(self, x: Array, k: int) -> tuple[Array, Array]:
        """Return the k nearest points of each row of x (m, d) by blocks in float64 on the device.

        Of points that are equally distant to rounding any are taken.
        """
        blocks = TorchBlocks(self._points, squared_norms(self._points), self._device)
        chosen, _ = blocks.smallest(x, min(k + _SPARE, len(self._points)))
        distances, indices = np.empty((len(x), k)), np.empty((len(x), k), np.int64)

        def work(rows: slice) -> None:
            distances[rows], indices[rows] = self._sorted(x, rows, chosen[rows], k)

        for_each_tile(work, len(x))
        return distances, indices

    def _chooser(self, x: Array, count: int) -> Callable[[slice], tuple[Array, Array]]:
        """Return what finds candidates of a tile of rows (t, count), and their largest bound (t,).

        A device has found those of all rows before.
        """
        if self._device is not None:
            blocks = TorchBlocks(self._single, self._squares, self._device)
            chosen, largest = blocks.smallest(x, count)
            return lambda rows: (chosen[rows], largest[rows])

        def choose(rows: slice) -> tuple[Array, Array]:
            block = x[rows].astype(np.float32) @ self._single.T
            block *= -2
            block += self._squares
            near = np.argpartition(block, count - 1, axis=1)[:, :count]
            bound = np.take_along_axis(block, near[:, -1:], axis=1)[:, 0]
            near.sort(axis=1)
            return near, bound

        return choose

    def _sorted(self, x: Array, rows: slice, chosen: Array, k: int) -> tuple[Array, Array]:
        """Return the k nearest of the candidates (t, count), from explicit differences."""
        own = np.repeat(np.arange(rows.start, rows.stop), chosen.shape[1])
        found = pair_distances(x, self._points, own, chosen.ravel()).reshape(chosen.shape)
        order = np.argsort(found, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(found, order, axis=1), np.take_along_axis(chosen, order, axis=1)
