"""Everything by which the host and a device differ: blocks, CSR matrices, sums over pairs.

A block (n, k) stays where it is from the first product to the last, and so does a graph from the
search to the normalised matrix. Sums, products with numbers and slices are written alike for arrays
and tensors, and `xp` has the functions that NumPy and torch call alike; `host` and `device` have
what differs. Above this folder nothing asks where a block is. Only small results come to the host:
numbers, one for each column, and matrices as wide as a block, which SciPy solves there.
"""

from typing import Any, TypeAlias

from heatsketch._tensors import is_tensor
from heatsketch.backend.blocks import Block as Block
from heatsketch.backend.device import DeviceBlocks
from heatsketch.backend.device import blocks_on as blocks_on
from heatsketch.backend.host import HOST, HostBlocks

Blocks: TypeAlias = HostBlocks | DeviceBlocks


def blocks_of(values: Any) -> Blocks:
    """Return the algebra where an array or a tensor is, or the entries of a CSR matrix are."""
    values = values.data if hasattr(values, "tocsr") else values
    return DeviceBlocks(values.device) if is_tensor(values) else HOST


def blocks_at(device: Any, name: str = "device") -> Blocks:
    """Return the algebra of blocks on a device, or on the host where it is None."""
    return HOST if device is None else blocks_on(device, name)
