"""Which search is made where: of all points, and in cells."""

from typing import Any

from heatsketch.backend import Block, Blocks
from heatsketch.backend.cells import Cells
from heatsketch.backend.device import DeviceBlocks
from heatsketch.backend.device_search import DeviceCells, DeviceSearch
from heatsketch.backend.host_search import ExactSearch


def exact_search(points: Block, blocks: Blocks) -> Any:
    """Return the search of all nearest points among points (n, d)."""
    if isinstance(blocks, DeviceBlocks):
        return DeviceSearch(points, blocks)
    return ExactSearch(points)


def cells_on(blocks: Blocks) -> type[Cells]:
    """Return the cells of a place."""
    if isinstance(blocks, DeviceBlocks):
        return DeviceCells
    from heatsketch.backend.host_cells import HostCells  # compiled loops

    return HostCells
