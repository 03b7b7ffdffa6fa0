"""The algebra of blocks between products, where the operator computes: on the host or a device.

A block (n, k) stays where it is from the first product to the last. Sums, products with numbers and
slices are written alike for arrays and tensors; here is what is not. Only small results come to the
host: numbers, one for each column, and matrices as wide as a block, which SciPy solves there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import qr

from heatsketch._checks import is_tensor, on_host, to_device
from heatsketch._tiles import for_each_tile, sum_over_tiles
from heatsketch._typing import Array

Block: TypeAlias = Any  # array or tensor (n, k) or (n,)

_TILE = 2048  # rows combined at a time, so that they stay in the cache
_GRAM_TILE = 8192  # rows whose Gram matrix is one summand
_PROJECTION_TILE = 2**14  # rows projected at a time
_WITH_AUTOCAST = ("cpu", "cuda", "xpu")


class _Blocks:
    """Abstract base: what is the same in every place."""

    def host(self, X: Block) -> Array:
        """Return a block as an array."""
        return np.asarray(on_host(X))

    def times_rows(self, s: Block, X: Block) -> Block:
        """Return diag(s) X, s (n,) in this place."""
        return (s if X.ndim == 1 else s[:, None]) * X


class HostBlocks(_Blocks):
    """Arrays: by tiles of rows on all cores, with the same bits for any number of threads."""

    device = None

    def native(self, values: Any, dtype: Any = None) -> Block:
        """Return values in this place, in their own precision or one that NumPy names."""
        return np.asarray(on_host(values), dtype)

    def combine(self, *sums: tuple[Block, float, Sequence[tuple[float, Block]]]) -> None:
        """Set the first of each (out, scale, [(c, T), ...]) to scale · out + Σ c T."""

        def work(rows: slice) -> None:  # a T that occurs in several sums is read once
            for out, scale, terms in sums:
                part = out[rows]
                if scale != 1.0:
                    part *= scale
                for c, T in terms:
                    part += c * T[rows]

        for_each_tile(work, len(sums[0][0]), _TILE)

    def project(self, X: Block, V: Block, out: Block | None = None) -> Block:
        """Return X - V VᵀX for orthonormal V (n, r), in `out`, which may be X, or a new block."""
        result = np.empty_like(X, order="C") if out is None else out
        along = sum_over_tiles(lambda rows: V[rows].T @ X[rows], len(X), _PROJECTION_TILE)
        for_each_tile(
            lambda rows: np.subtract(X[rows], V[rows] @ along, out=result[rows]),
            len(X),
            _PROJECTION_TILE,
        )
        return result

    def gram(self, X: Block, Y: Block) -> Array:
        """Return XᵀY in float64, on the host."""
        return sum_over_tiles(
            lambda rows: X[rows].astype(float).T @ Y[rows].astype(float), len(X), _GRAM_TILE
        )

    def rotate(self, X: Block, W: Array) -> None:
        """Set X (n, p) to X W, W (p, p), in the precision of X."""
        W = W.astype(X.dtype)
        for_each_tile(lambda rows: np.copyto(X[rows], X[rows] @ W), len(X), _GRAM_TILE)

    def dots(self, X: Block, Y: Block) -> Array:
        """Return the inner product of each column of X with that of Y, in float64, on the host."""
        return np.einsum("i...,i...->...", X, Y, dtype=float)

    def norm(self, X: Block) -> float:
        """Return the length of a vector, or the Frobenius norm of a block, in its precision."""
        return float(np.linalg.norm(X))

    def norms(self, X: Block) -> Array:
        """Return the lengths of the columns (k,), on the host, in the precision of X."""
        return np.asarray(np.linalg.norm(X, axis=0))

    def orthonormal(self, X: Block, V: Block) -> Block:
        """Return orthonormal columns (n, p), orthogonal to V (n, r), that span X (n, p) with V."""
        return np.asarray(qr(np.hstack([V, X]), mode="economic")[0][:, V.shape[1] :], X.dtype)


HOST = HostBlocks()


@dataclass(frozen=True)
class DeviceBlocks(_Blocks):
    """Tensors on a device of torch: as `HostBlocks`, up to rounding."""

    device: Any

    def native(self, values: Any, dtype: Any = None) -> Block:
        """Return a tensor on the device."""
        return as_tensor(values, dtype, self.device)

    def combine(self, *sums: tuple[Block, float, Sequence[tuple[float, Block]]]) -> None:
        """Combine term by term."""
        for out, scale, terms in sums:
            out *= scale
            for c, T in terms:
                out.add_(T, alpha=c)

    def project(self, X: Block, V: Block, out: Block | None = None) -> Block:
        """Multiply in full precision."""
        with full_precision(self.device):
            along = V @ (V.T @ X)
        return X - along if out is None else out.copy_(X).sub_(along)

    def gram(self, X: Block, Y: Block) -> Array:
        """Multiply in float64."""
        return self.host(X.double().T @ Y.double())

    def rotate(self, X: Block, W: Array) -> None:
        """Multiply in full precision."""
        with full_precision(self.device):
            X.copy_(X @ self.native(W).to(X.dtype))

    def dots(self, X: Block, Y: Block) -> Array:
        """Sum in float64."""
        return self.host((X.double() * Y.double()).sum(0))

    def norm(self, X: Block) -> float:
        """Sum in the precision of X."""
        return float(X.square().sum().sqrt())

    def norms(self, X: Block) -> Array:
        """Sum in the precision of X."""
        return self.host(X.square().sum(0).sqrt())

    def orthonormal(self, X: Block, V: Block) -> Block:
        """Call the QR decomposition of torch."""
        import torch

        return torch.linalg.qr(torch.hstack([V, X]))[0][:, V.shape[1] :]


Blocks: TypeAlias = HostBlocks | DeviceBlocks


def as_tensor(values: Any, dtype: Any, device: Any) -> Any:
    """Return a tensor on a device, in a precision that NumPy names; gradients are left behind.

    With dtype None the precision is that of the values.
    """
    import torch

    if not is_tensor(values):
        values = to_device(np.asarray(values), "cpu")
    kind = None if dtype is None else getattr(torch, np.dtype(dtype).name)
    return values.detach().to(dtype=kind, device=device)


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
