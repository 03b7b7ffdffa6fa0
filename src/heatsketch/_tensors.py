"""Conversion of tensors of torch: read as arrays, and returned as tensors.

Only the products of `operators.torch` are computed with tensors.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import sparse


def is_tensor(X: Any) -> bool:
    """Return whether X is a tensor of torch, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def on_host(X: Any) -> Any:
    """Return a tensor as a NumPy array, a sparse tensor as a CSR matrix, anything else as it is.

    Tensors are detached, so no gradients flow through.
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
    """Return the device of a tensor that is not on the CPU, else None."""
    return X.device if is_tensor(X) and X.device.type != "cpu" else None


def to_device(values: Any, device: Any) -> Any:
    """Return an array as a tensor of the same precision on a device; with device None as it is."""
    if device is None:
        return values
    return sys.modules["torch"].from_numpy(np.array(values, order="C")).to(device)


def returned_for(Y: Any, X: Any) -> Any:
    """Return Y as a tensor if X is one, on its device and, if it holds floats, in its precision."""
    if not is_tensor(X):
        return Y
    Y = to_device(np.asarray(Y), X.device)
    return Y.to(X.dtype) if X.is_floating_point() else Y.double()
