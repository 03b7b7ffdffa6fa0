"""The nearest points of all on a device of torch: blocks of distances, of which few are kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from heatsketch._array import row_tiles
from heatsketch._progress import Stage
from heatsketch._tensors import on_host
from heatsketch._typing import Array
from heatsketch.operators.torch_tensors import as_tensor, chosen_device, full_precision, torch_for

TILE_ENTRIES = 2**26  # of a block of distances: 256 MB in float32
_TILE_COLUMNS = 2**16


class TorchBlocks:
    """The points y (n, d), on a device, and a bound w |y|² from below for each.

    Parameters
    ----------
    points : array (n, d), float32 or float64
    bounds : array (n,)
    device : str or torch.device
    """

    def __init__(self, points: Array, bounds: Array, device: Any) -> None:
        torch_for("NeighborIndex(device=...)")
        self._dtype, self._device = points.dtype, chosen_device(device)
        self._points = as_tensor(points, points.dtype, self._device)
        self._bounds = as_tensor(bounds, points.dtype, self._device)

    def smallest(self, x: Array, count: int) -> tuple[Array, Array]:
        """Return the points with the smallest w |y|² - 2xy for each row of x, and the largest kept.

        The first is (m, count), ascending, the second (m,). No other point has a smaller one.
        Memory: a block of distances, n x m of them are never stored.
        """
        m, n = len(x), len(self._points)
        chosen, largest = np.empty((m, count), np.int64), np.empty(m, self._dtype)
        stage = Stage("nearest neighbours", m, "points")
        with full_precision(self._device), stage:
            for rows in row_tiles(m, max(1, TILE_ENTRIES // min(n, _TILE_COLUMNS))):
                own = as_tensor(x[rows], self._dtype, self._device)
                found, values = self._smallest_of(own, count)
                chosen[rows], largest[rows] = on_host(found), on_host(values)
                stage.advance(rows.stop - rows.start)
        chosen.sort(axis=1)
        return chosen, largest

    def _smallest_of(self, own: Any, count: int) -> tuple[Any, Any]:
        """Return positions (t, count) and the largest value (t,) of some rows, column by column."""
        import torch

        values = torch.empty((len(own), 0), dtype=own.dtype, device=self._device)
        at = torch.empty((len(own), 0), dtype=torch.int64, device=self._device)
        for columns in row_tiles(len(self._points), _TILE_COLUMNS):
            block = torch.addmm(self._bounds[columns], own, self._points[columns].T, alpha=-2.0)
            near, place = block.topk(min(count, block.shape[1]), dim=1, largest=False)
            values, at = torch.hstack([values, near]), torch.hstack([at, place + columns.start])
            values, place = values.topk(min(count, values.shape[1]), dim=1, largest=False)
            at = at.gather(1, place)
        return at, values.max(dim=1).values
