"""The Gaussian kernel of points with products on a device of torch, made in tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._array import row_tiles
from heatsketch._tensors import in_kind_of, on_host
from heatsketch._typing import Array
from heatsketch.operators.base import Operator, Scaled, scaled
from heatsketch.operators.kernel import Kernel, exponent_factors
from heatsketch.operators.properties import (
    accuracy,
    component_labels,
    diagonal,
    is_non_negative,
    on_device,
)
from heatsketch.operators.torch_tensors import (
    as_tensor,
    chosen_device,
    full_precision,
    tensor_block,
    torch_for,
)

TILE_SIDE, DEVICE_TILE_SIDE = 1024, 4096  # rows and columns of a tile, on processors and beyond


@dataclass(frozen=True, eq=False)
class TorchKernel:
    """The Gaussian kernel of `Kernel`, with products on a device of torch.

    Tiles of K are made by a product of matrices and one exponential, and n x n numbers are never
    stored. Precision is chosen as in `Kernel`: points are centred, float32 is used where the
    exponent stays within 1e-4, and TensorFloat-32 is never used. Tiles are added up in float64.

    Cost of a product: 2 n² (d + k) operations and n² exponentials; memory O(n (d + k)) and one
    tile, 2²⁴ numbers on a device. A NumPy block is moved to the device, and its product back.

    Parameters
    ----------
    points : tensor or array (n, d)
        A tensor is detached: gradients do not flow through.
    epsilon : float, or tensor or array (n,)
        In squared data units. An array gives s with ε_ij = s_i s_j (self-tuning scales).
    dtype : float32 or float64, optional
        Precision of products, a NumPy type; by default that of the points.
    device : str or torch.device, optional
        Where products are made; by default where the points are.

    Raises
    ------
    ImportError
        torch is not installed.
    ValueError
        As in `Kernel`; points are sparse; the device has no float64.

    Examples
    --------
    >>> import heatsketch as hs, torch  # doctest: +SKIP
    >>> points = torch.tensor([[0.0], [1.0]])  # doctest: +SKIP
    >>> hs.TorchKernel(points, epsilon=1.0) @ torch.eye(2)  # doctest: +SKIP
    tensor([[1.0000, 0.3679],
            [0.3679, 1.0000]])
    """

    points: Any
    epsilon: Any
    dtype: np.dtype = None  # type: ignore[assignment]
    device: Any = None
    kernel: Kernel = field(init=False, repr=False)  # the same one, on the host

    def __post_init__(self) -> None:
        torch_for("TorchKernel")
        device = chosen_device(self.device, self.points)
        points = on_host(self.points)
        if sparse.issparse(points):
            raise ValueError(
                "points are sparse, of which no tiles are made on a device; pass X.toarray(), or "
                "use heatsketch.Kernel."
            )
        kernel = Kernel(points, on_host(self.epsilon), self.dtype)
        for name, value in {"device": device, "kernel": kernel, "dtype": kernel.dtype}.items():
            object.__setattr__(self, name, value)

    @property
    def n(self) -> int:
        """Number of points."""
        return self.kernel.n

    @property
    def spectrum(self) -> tuple[float, float]:
        """(0, n): the Gaussian kernel is positive semidefinite; (-n, n) with local scales."""
        return self.kernel.spectrum

    @property
    def exponent_error(self) -> float:
        """Bound on the error of |x_i - x_j|² / ε_ij in products, as in `Kernel`."""
        return self.kernel.exponent_error

    def asarray(self, X: Any) -> Any:
        """Return X as a tensor (n, k) of this precision on the device.

        Raises
        ------
        ValueError, TypeError
            A block that is not of n rows, of more than two axes, or not of real numbers.
        """
        return tensor_block(X, self.n, self.dtype, self.device)

    def __matmul__(self, X: Any) -> Any:
        """Multiply a block: (n, k) -> (n, k), tile by tile on the device."""
        import torch

        block = self.asarray(X)
        flat = block.reshape(self.n, -1).to(self._factors[0].dtype)
        Y = torch.empty(flat.shape, dtype=block.dtype, device=self.device)
        side = TILE_SIDE if self.device.type == "cpu" else DEVICE_TILE_SIDE
        buffer = torch.empty(min(self.n, side) ** 2, dtype=flat.dtype, device=self.device)
        with full_precision(self.device):
            for rows in row_tiles(self.n, side):
                sums = torch.zeros(flat[rows].shape, dtype=torch.float64, device=self.device)
                for columns in row_tiles(self.n, side):
                    sums += self._tile(rows, columns, buffer) @ flat[columns]
                Y[rows] = sums
        return in_kind_of(Y.reshape(block.shape), X)

    @property
    def _tile(self) -> Callable[[slice, slice, Any], Any]:
        return self._direct_tile if self.kernel.takes_differences else self._fused_tile

    @cached_property
    def _factors(self) -> tuple[Any, Any]:
        """Factors of the exponent, or points and scales where differences are taken."""
        K = self.kernel
        if K.takes_differences:
            pair: tuple[Array, Array] = (K.scaled_points, K.scaled_scales)
        else:
            pair = exponent_factors(K.scaled_points, K.scaled_scales, K.arithmetic)
        return tuple(as_tensor(part, K.arithmetic, self.device) for part in pair)  # type: ignore[return-value]

    def _fused_tile(self, rows: slice, columns: slice, buffer: Any) -> Any:
        import torch

        left, right = self._factors[0][rows], self._factors[1][columns]
        block = buffer[: len(left) * len(right)].view(len(left), len(right))
        torch.mm(left, right.T, out=block)
        return block.clamp_(max=0.0).exp2_()  # exponents that are sums of rounded terms

    def _direct_tile(self, rows: slice, columns: slice, buffer: Any) -> Any:
        import torch

        x, s = self._factors
        mode = "donot_use_mm_for_euclid_dist"
        block = torch.cdist(x[rows], x[columns], compute_mode=mode).square_()
        return block.div_(-s[rows, None]).div_(s[columns]).exp_()


@diagonal.register
def _(K: TorchKernel) -> Array | None:
    return diagonal(K.kernel)


@is_non_negative.register
def _(K: TorchKernel) -> bool:
    return True


@accuracy.register
def _(K: TorchKernel) -> dict[str, float]:
    return accuracy(K.kernel)


@component_labels.register
def _(K: TorchKernel) -> Array | None:
    return component_labels(K.kernel)


@scaled.register
def _(
    K: TorchKernel, s: Array, spectrum: tuple[float, float], leading: Array, dtype: Any = np.float64
) -> Operator:
    return Scaled(replace(K, dtype=np.dtype(dtype)), s, spectrum, leading)


@on_device.register
def _(K: Kernel, device: Any) -> Operator:
    if sparse.issparse(K.points):
        return K
    return K if device is None else TorchKernel(K.points, K.epsilon, K.dtype, device)


@on_device.register
def _(K: TorchKernel, device: Any) -> Operator:
    return on_device(K.kernel, device)
