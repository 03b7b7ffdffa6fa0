"""What all operators of tensors share: their device, their blocks, products in full precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from heatsketch._tensors import is_tensor, plain
from heatsketch.operators.base import check_shape, real_block

_WITH_AUTOCAST = ("cpu", "cuda", "xpu")


def torch_for(name: str) -> Any:
    """Return the library torch, or say how to install it."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(f'{name} needs torch; pip install "heatsketch[torch]"') from error
    return torch


def chosen_device(device: Any, *given: Any) -> Any:
    """Return the device asked for, else that of the first tensor given, else the processor.

    Raises
    ------
    ValueError
        The device has no float64, in which sums are taken.
    """
    import torch

    if device is None:
        device = next((X.device for X in given if is_tensor(X)), "cpu")
    device = torch.device(device)
    if device.type == "mps":
        raise ValueError("device='mps' has no float64, in which sums are taken; pass 'cpu'.")
    return device


def as_tensor(values: Any, dtype: Any, device: Any) -> Any:
    """Return a tensor of a precision that NumPy names, on a device; gradients are left behind."""
    import torch

    if not is_tensor(values):
        values = torch.from_numpy(plain(values))
    return values.detach().to(dtype=getattr(torch, np.dtype(dtype).name), device=device)


def tensor_block(X: Any, n: int, dtype: np.dtype, device: Any) -> Any:
    """Return X as a block (n, k) of the given precision on a device, or raise."""
    if not is_tensor(X):
        return as_tensor(real_block(X, n), dtype, device)
    floating(X.dtype)  # refuses complex numbers
    check_shape(X, n)
    return as_tensor(X, dtype, device)


@contextmanager
def full_precision(device: Any) -> Iterator[None]:
    """Multiply float32 in float32, whatever the caller has allowed elsewhere.

    TensorFloat-32 has 10 bits: the exponent |x|² + |y|² - 2xy would be off by a thousandth of |x|².
    """
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        kind = torch.device(device).type
        with torch.autocast(kind, enabled=False) if kind in _WITH_AUTOCAST else nullcontext():
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def floating(dtype: Any) -> np.dtype:
    """Return float32 for a tensor type of at most 32 bits, else float64, as NumPy names it."""
    import torch

    if dtype.is_complex:
        raise ValueError(f"The tensor has dtype {dtype}; pass real numbers.")
    small = dtype in (torch.float32, torch.float16, torch.bfloat16)
    return np.dtype(np.float32 if small else np.float64)
