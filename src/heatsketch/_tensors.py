"""Blocks (n, k) wherever they are: NumPy arrays, or tensors of torch on a device.

Sums, products, slices and changes in place are written the same way for both. What is not is here,
so that the algorithms above are written once. Small matrices (k, k) are NumPy arrays always.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import sparse

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


def device_of(X: Any) -> Any:
    """Return the device of a tensor that is not on the processor, else None."""
    return X.device if is_tensor(X) and X.device.type != "cpu" else None


def like(values: Any, X: Any) -> Any:
    """Return an array or tensor in the precision of X, and on its device."""
    if is_tensor(X):
        torch = sys.modules["torch"]
        if not is_tensor(values):
            values = torch.from_numpy(plain(values))
        return values.detach().to(dtype=X.dtype, device=X.device)
    return np.asarray(on_host(values), dtype=X.dtype)


def on_device_of(values: Any, X: Any) -> Any:
    """Return an array as a tensor in its own precision, if X is on a device; else as it is."""
    device = device_of(X)
    return values if device is None else sys.modules["torch"].from_numpy(values).to(device)


def plain(values: Any) -> Array:
    """Return an array that torch can share: in C order, writable, without negative strides."""
    values = np.asarray(values)
    flags, strides = values.flags, values.strides
    shared = flags.writeable and flags.c_contiguous and min(strides, default=0) >= 0
    return values if shared else values.copy()


def returned_for(Y: Any, X: Any) -> Any:
    """Return Y as a tensor if X is one, on its device and, if it holds floats, in its precision."""
    if not is_tensor(X) or is_tensor(Y):
        return Y
    return like(Y, X if X.is_floating_point() else X[:0].double())


def in_kind_of(Y: Any, X: Any) -> Any:
    """Return Y as a NumPy array unless X is a tensor."""
    return Y if is_tensor(X) else on_host(Y)


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
