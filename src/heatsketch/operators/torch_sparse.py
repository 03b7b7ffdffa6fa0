"""Symmetric matrices that are stored on a device of torch: sparse ones, and dense ones."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._tensors import in_kind_of, is_tensor, on_host
from heatsketch._typing import Array
from heatsketch.operators.base import Operator, scaled
from heatsketch.operators.components import components_of_matrix
from heatsketch.operators.dense import Dense
from heatsketch.operators.order import index_type
from heatsketch.operators.properties import (
    component_labels,
    on_device,
    scaled_graph,
    stored_matrix,
)
from heatsketch.operators.sparse import Sparse
from heatsketch.operators.torch_tensors import (
    as_tensor,
    chosen_device,
    floating,
    full_precision,
    tensor_block,
    torch_for,
)


class _Stored(ABC):
    """Abstract base of operators that store a matrix on a device."""

    matrix: Any
    spectrum: tuple[float, float]
    device: Any

    def __post_init__(self) -> None:
        torch_for(type(self).__name__)
        device = chosen_device(self.device, self.matrix)
        matrix = self._moved(device)
        shape = tuple(matrix.shape)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"The matrix has shape {shape}; pass a square one (n, n).")
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "device", device)
        if self.spectrum is None:
            sums = self._absolute_row_sums()
            bound = float(sums.max()) if len(sums) else 0.0
            object.__setattr__(self, "spectrum", (-bound, bound))

    @abstractmethod
    def _moved(self, device: Any) -> Any:
        """Return the matrix that was given, in the form that is stored, on a device."""

    @abstractmethod
    def _absolute_row_sums(self) -> Any:
        """Return the sums of the absolute values of the rows of the stored matrix (n,)."""

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.matrix.shape[0])

    @property
    def dtype(self) -> np.dtype:
        """Precision of products."""
        return floating(self.matrix.dtype)

    def asarray(self, X: Any) -> Any:
        """Return X as a tensor (n, k) of this precision on the device.

        Raises
        ------
        ValueError, TypeError
            A block that is not of n rows, of more than two axes, or not of real numbers.
        """
        return tensor_block(X, self.n, self.dtype, self.device)


@dataclass(frozen=True, eq=False)
class TorchDense(_Stored):
    """A stored symmetric matrix (n, n) on a device of torch, float32 or float64.

    Cost of a product: 2 n² k operations, in full precision (no TensorFloat-32). A NumPy block is
    moved to the device, and its product back.

    Parameters
    ----------
    matrix : tensor or array (n, n)
        Symmetric. A tensor is detached: gradients do not flow through.
    spectrum : (float, float), optional
        Interval known to hold the spectrum; by default ± the largest absolute row sum.
    device : str or torch.device, optional
        By default where the matrix is.

    Raises
    ------
    ImportError
        torch is not installed.
    ValueError
        The matrix is not square; the device has no float64.

    Examples
    --------
    >>> import heatsketch as hs, torch  # doctest: +SKIP
    >>> hs.TorchDense(torch.ones(2, 2)) @ torch.ones(2)  # doctest: +SKIP
    tensor([2., 2.])
    """

    matrix: Any
    spectrum: tuple[float, float] = None  # type: ignore[assignment]
    device: Any = None

    def _moved(self, device: Any) -> Any:
        matrix = self.matrix if is_tensor(self.matrix) else Dense(self.matrix, (0.0, 0.0)).matrix
        dtype = floating(matrix.dtype) if is_tensor(matrix) else matrix.dtype
        return as_tensor(matrix, dtype, device)

    def _absolute_row_sums(self) -> Any:
        return self.matrix.abs().sum(dim=1)

    def __matmul__(self, X: Any) -> Any:
        """Multiply a block: (n, k) -> (n, k)."""
        with full_precision(self.device):
            return in_kind_of(self.matrix @ self.asarray(X), X)

    @cached_property
    def on_host(self) -> Dense:
        """The same matrix as an operator of the host."""
        return Dense(on_host(self.matrix), self.spectrum)


@dataclass(frozen=True, eq=False)
class TorchSparse(_Stored):
    """A stored symmetric sparse matrix (n, n) on a device of torch, in CSR form.

    Cost of a product: 2 nnz k operations, by the sparse products of the device. A NumPy block is
    moved to the device, and its product back.

    Parameters
    ----------
    matrix : sparse tensor, tensor or SciPy sparse matrix (n, n)
        Symmetric; converted to CSR where it is not. A tensor is detached.
    spectrum : (float, float), optional
        Interval known to hold the spectrum; by default ± the largest absolute row sum.
    leading : array (n,), optional
        The eigenvector of the largest eigenvalue, where it is known.
    device : str or torch.device, optional
        By default where the matrix is.

    Raises
    ------
    ImportError
        torch is not installed.
    ValueError
        The matrix is not square; the device has no float64.

    Examples
    --------
    >>> import heatsketch as hs, torch  # doctest: +SKIP
    >>> hs.TorchSparse(torch.diag(torch.tensor([2.0, 3.0]))) @ torch.ones(2, 1)  # doctest: +SKIP
    tensor([[2.],
            [3.]])
    """

    matrix: Any
    spectrum: tuple[float, float] = None  # type: ignore[assignment]
    leading: Array | None = None
    device: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.leading is not None:
            object.__setattr__(self, "leading", np.asarray(on_host(self.leading)))

    def _moved(self, device: Any) -> Any:
        return csr_tensor(self.matrix, device)

    def _absolute_row_sums(self) -> Any:
        sizes = _with_values(self.matrix, self.matrix.values().abs())
        return sizes @ self.matrix.values().new_ones(self.n)

    def __matmul__(self, X: Any) -> Any:
        """Multiply a block: (n, k) -> (n, k)."""
        with full_precision(self.device):
            return in_kind_of(self.matrix @ self.asarray(X).contiguous(), X)

    @cached_property
    def on_host(self) -> Sparse:
        """The same matrix as an operator of the host."""
        return Sparse(on_host(self.matrix), self.spectrum, self.leading)


def csr_tensor(matrix: Any, device: Any) -> Any:
    """Return a matrix as a sparse tensor of float32 or float64 in CSR form on a device.

    Positions are 32-bit if they fit: they are half of what a product in float32 reads.
    """
    import torch

    if is_tensor(matrix):
        X = matrix.detach().to(device)
        with _csr_is_no_news():
            X = X if X.layout == torch.sparse_csr else X.to_sparse_csr()
        starts, columns, values = X.crow_indices(), X.col_indices(), X.values()
        values = as_tensor(values, floating(values.dtype), device)
    else:
        host = Sparse(matrix, (0.0, 0.0)).matrix
        starts, columns = torch.from_numpy(host.indptr), torch.from_numpy(host.indices)
        values = as_tensor(host.data, host.dtype, device)
    kind = np.dtype(index_type(max(matrix.shape[0], len(values)))).name
    starts, columns = (as_tensor(part, kind, device) for part in (starts, columns))
    return _csr(starts, columns, values, tuple(matrix.shape))


def _csr(starts: Any, columns: Any, values: Any, shape: tuple[int, ...]) -> Any:
    import torch

    with _csr_is_no_news():
        return torch.sparse_csr_tensor(starts, columns, values, shape, check_invariants=False)


@contextmanager
def _csr_is_no_news() -> Iterator[None]:
    """Keep torch from warning that its CSR tensors are in beta state."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        yield


def _with_values(matrix: Any, values: Any) -> Any:
    """Return a sparse tensor with the same pattern."""
    return _csr(matrix.crow_indices(), matrix.col_indices(), values, tuple(matrix.shape))


@stored_matrix.register(TorchDense)
@stored_matrix.register(TorchSparse)
def _(A: Any) -> Any:
    return A.on_host.matrix


@component_labels.register
def _(A: TorchDense) -> Array | None:
    return component_labels(A.on_host)


@component_labels.register
def _(A: TorchSparse) -> Array:
    return components_of_matrix(A.on_host.matrix)


@scaled_graph.register
def _(A: TorchSparse) -> tuple[sparse.csr_matrix, Array] | None:
    return scaled_graph(A.on_host)


@scaled.register
def _(
    K: TorchSparse, s: Array, spectrum: tuple[float, float], leading: Array, dtype: Any = np.float64
) -> Operator:
    """Scale entry by entry, which makes products faster."""
    return TorchSparse(_scaled_csr(K.matrix, s, s, dtype), spectrum, leading)


def scaled_tensor(K: Any, left: Array, right: Array) -> Any:
    """Return diag(left) K diag(right) as a tensor in the precision of K: CSR, if K is sparse."""
    dtype = floating(K.dtype)
    if str(K.layout) != "torch.strided":
        return _scaled_csr(csr_tensor(K, K.device), left, right, dtype)
    rows, columns = (as_tensor(s, np.float64, K.device) for s in (left, right))
    return as_tensor(K.detach() * (rows[:, None] * columns), dtype, K.device)


def _scaled_csr(matrix: Any, left: Array, right: Array, dtype: Any) -> Any:
    import torch

    at, entries = matrix.device, matrix.crow_indices().diff()
    row = torch.repeat_interleave(torch.arange(len(entries), device=at), entries)
    scale = as_tensor(left, np.float64, at)[row]
    scale *= as_tensor(right, np.float64, at)[matrix.col_indices()]
    return _with_values(matrix, as_tensor(matrix.values() * scale, dtype, at))


@on_device.register
def _(A: Dense, device: Any) -> Operator:
    return A if device is None else TorchDense(A.matrix, A.spectrum, device)


@on_device.register
def _(A: Sparse, device: Any) -> Operator:
    return A if device is None else TorchSparse(A.matrix, A.spectrum, A.leading, device)


@on_device.register(TorchDense)
@on_device.register(TorchSparse)
def _(A: Any, device: Any) -> Operator:
    moved: Operator = on_device(A.on_host, device)
    return moved
