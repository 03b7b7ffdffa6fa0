"""Blocks (n, k) wherever they are: NumPy arrays, or tensors of torch on a device.

Sums, products, slices and changes in place are written the same way for both. What is not is here,
so that the algorithms above are written once. Small matrices (k, k) are NumPy arrays always.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._array import ROW_TILE, for_each_tile
from heatsketch._typing import Array


def is_tensor(X: Any) -> bool:
    """Say whether X is a tensor of torch, which is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def on_host(X: Any) -> Any:
    """Return X as a NumPy array or, from a sparse tensor, a CSR matrix; anything else as it is.

    Gradients do not flow through: a tensor is detached.
    """
    if not is_tensor(X):
        return X
    torch = sys.modules["torch"]
    X = X.detach().cpu()
    X = X.float() if X.dtype == torch.bfloat16 else X
    if X.layout == torch.strided:
        return X.numpy()
    X = X.to_sparse_csr()
    parts = (X.values(), X.col_indices(), X.crow_indices())
    return sparse.csr_matrix(tuple(part.numpy() for part in parts), shape=tuple(X.shape))


def like(values: Any, X: Any) -> Any:
    """Return an array or tensor in the precision of X, and on its device."""
    if is_tensor(X):
        torch = sys.modules["torch"]
        if not is_tensor(values):
            values = torch.from_numpy(plain(values))
        return values.detach().to(dtype=X.dtype, device=X.device)
    return np.asarray(on_host(values), dtype=X.dtype)


def plain(values: Any) -> Array:
    """Return an array that torch can share: in C order, writable, without negative strides."""
    values = np.asarray(values)
    flags, strides = values.flags, values.strides
    shared = flags.writeable and flags.c_contiguous and min(strides, default=0) >= 0
    return values if shared else values.copy()


def in_kind_of(Y: Any, X: Any) -> Any:
    """Return Y as a NumPy array unless X is a tensor."""
    return Y if is_tensor(X) else on_host(Y)


def precision(X: Any) -> np.dtype:
    """Return the precision of a block, float32 or float64, as NumPy names it."""
    if is_tensor(X):
        return np.dtype(str(X.dtype).removeprefix("torch."))
    return np.dtype(X.dtype)


def namespace(X: Any) -> Any:
    """Return `torch` or `numpy`, for functions of the same name and arguments in both."""
    return sys.modules["torch"] if is_tensor(X) else np


def in_double(X: Any) -> Any:
    """Return a block in float64."""
    return X.double() if is_tensor(X) else X.astype(float)


def copied(X: Any) -> Any:
    """Return a copy of a block."""
    return X.clone() if is_tensor(X) else X.copy()


def norms(X: Any, axis: int | None = None) -> Array:
    """Return the Euclidean norm of a block, or of its columns (axis 0), as NumPy numbers."""
    found: Any
    if is_tensor(X):
        found = on_host(sys.modules["torch"].linalg.vector_norm(X, dim=axis))
    else:
        found = np.linalg.norm(X, axis=axis)
    return np.asarray(found)


def peak(X: Any) -> float:
    """Return the largest modulus in a block; 0 where it has no entries."""
    return max(0.0, float(X.max()), -float(X.min())) if 0 not in X.shape else 0.0


def for_each_tile_of(X: Any, work: Callable[[slice], None], tile: int = ROW_TILE) -> None:
    """Call `work(rows)` on the row tiles of a block, in parallel; each writes its own rows only.

    A tensor is one tile: torch divides the work among the threads of its device.
    """
    if is_tensor(X):
        work(slice(0, len(X)))
    else:
        for_each_tile(work, len(X), tile)


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
