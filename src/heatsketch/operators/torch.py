"""Operators with products on a device of torch: stored matrices, and Gaussian kernels in tiles."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._tensors import is_tensor, on_host, plain
from heatsketch._tiles import row_tiles
from heatsketch._typing import Array
from heatsketch.operators.kernel import Kernel, exponent_factors
from heatsketch.operators.operator import (
    Affine,
    Deflated,
    Dense,
    Interval,
    Operator,
    Scaled,
    Sparse,
    check_shape,
    real_block,
)
from heatsketch.operators.order import index_type

TILE_SIDE, DEVICE_TILE_SIDE = 1024, 4096  # rows and columns of a tile, on processors and beyond
_WITH_AUTOCAST = ("cpu", "cuda", "xpu")


class TorchOperator(Operator):
    """Abstract base: blocks are tensors on a device; all but products is asked of the host."""

    device: Any

    @cached_property
    @abstractmethod
    def on_host(self) -> Operator:
        """The same operator on the host."""

    def asarray(self, X: Any) -> Any:
        """Return X as a tensor (n, k) of this precision on the device.

        Raises
        ------
        ValueError, TypeError
            A block that is not of n rows, of more than two axes, or not of real numbers.
        """
        if not is_tensor(X):
            return as_tensor(real_block(X, self.n), self.dtype, self.device)
        floating(X.dtype)  # refuses complex numbers
        check_shape(X, self.n)
        return as_tensor(X, self.dtype, self.device)

    def stored_matrix(self) -> Any:
        """Return the matrix on the host, if it is stored."""
        return self.on_host.stored_matrix()

    def sparse_matrix(self) -> sparse.csr_matrix | None:
        """Return the matrix on the host, if it is sparse."""
        return self.on_host.sparse_matrix()

    def diagonal(self) -> Array | None:
        """Return the diagonal (n,)."""
        return self.on_host.diagonal()

    def is_non_negative(self) -> bool:
        """Say whether all entries are known to be at least 0."""
        return self.on_host.is_non_negative()

    def components(self) -> Array | None:
        """Return the component of each point (n,)."""
        return self.on_host.components()

    def accuracy(self) -> dict[str, float]:
        """Return what the products lose beyond ordinary rounding, by name."""
        return self.on_host.accuracy()


@dataclass(eq=False)
class TorchDense(TorchOperator):
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
    spectrum: Interval = None  # type: ignore[assignment]
    device: Any = None

    def __post_init__(self) -> None:
        torch_for("TorchDense")
        self.device = chosen_device(self.device, self.matrix)
        matrix = self.matrix if is_tensor(self.matrix) else Dense(self.matrix, (0.0, 0.0)).matrix
        self.dtype = floating(matrix.dtype) if is_tensor(matrix) else matrix.dtype
        self.matrix = _square(as_tensor(matrix, self.dtype, self.device))
        self.n = len(self.matrix)
        if self.spectrum is None:
            self.spectrum = _by_row_sums(self.matrix.abs().sum(dim=1))

    def _matmul(self, X: Any) -> Any:
        with full_precision(self.device):
            return self.matrix @ X

    @cached_property
    def on_host(self) -> Dense:
        """The same matrix as an operator of the host."""
        return Dense(on_host(self.matrix), self.spectrum)


@dataclass(eq=False)
class TorchSparse(TorchOperator):
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
    spectrum: Interval = None  # type: ignore[assignment]
    leading: Array | None = None
    device: Any = None

    def __post_init__(self) -> None:
        torch_for("TorchSparse")
        self.device = chosen_device(self.device, self.matrix)
        self.matrix = _square(csr_tensor(self.matrix, self.device))
        self.n, self.dtype = int(self.matrix.shape[0]), floating(self.matrix.dtype)
        if self.spectrum is None:
            sizes = _with_values(self.matrix, self.matrix.values().abs())
            self.spectrum = _by_row_sums(sizes @ self.matrix.values().new_ones(self.n))
        if self.leading is not None:
            self.leading = np.asarray(on_host(self.leading))

    def _matmul(self, X: Any) -> Any:
        with full_precision(self.device):
            return self.matrix @ X.contiguous()

    @cached_property
    def on_host(self) -> Sparse:
        """The same matrix as an operator of the host."""
        return Sparse(on_host(self.matrix), self.spectrum, self.leading)

    def scaled(
        self, s: Array, spectrum: Interval, leading: Array, dtype: Any = np.float64
    ) -> Operator:
        """Scale entry by entry, which makes products faster."""
        return TorchSparse(_scaled_csr(self.matrix, s, s, dtype), spectrum, leading)


@dataclass(eq=False)
class TorchKernel(TorchOperator):
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
    on_host: Kernel = field(init=False, repr=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        torch_for("TorchKernel")
        self.device = chosen_device(self.device, self.points)
        points = on_host(self.points)
        if sparse.issparse(points):
            raise ValueError(
                "points are sparse, of which no tiles are made on a device; pass X.toarray(), or "
                "use heatsketch.Kernel."
            )
        self.on_host = K = Kernel(points, on_host(self.epsilon), self.dtype)
        self.n, self.dtype, self.spectrum = K.n, K.dtype, K.spectrum

    @property
    def exponent_error(self) -> float:
        """Bound on the error of |x_i - x_j|² / ε_ij in products, as in `Kernel`."""
        return self.on_host.exponent_error

    def _matmul(self, X: Any) -> Any:
        import torch

        flat = X.reshape(self.n, -1).to(self._factors[0].dtype)
        Y = torch.empty(flat.shape, dtype=X.dtype, device=self.device)
        side = TILE_SIDE if self.device.type == "cpu" else DEVICE_TILE_SIDE
        buffer = torch.empty(min(self.n, side) ** 2, dtype=flat.dtype, device=self.device)
        with full_precision(self.device):
            for rows in row_tiles(self.n, side):
                sums = torch.zeros(flat[rows].shape, dtype=torch.float64, device=self.device)
                for columns in row_tiles(self.n, side):
                    sums += self._tile(rows, columns, buffer) @ flat[columns]
                Y[rows] = sums
        return Y.reshape(X.shape)

    @property
    def _tile(self) -> Callable[[slice, slice, Any], Any]:
        return self._direct_tile if self.on_host.takes_differences else self._fused_tile

    @cached_property
    def _factors(self) -> list[Any]:
        """Factors of the exponent, or points and scales where differences are taken."""
        K = self.on_host
        if K.takes_differences:
            pair: tuple[Array, Array] = (K.scaled_points, K.scaled_scales)
        else:
            pair = exponent_factors(K.scaled_points, K.scaled_scales, K.arithmetic)
        return [as_tensor(part, K.arithmetic, self.device) for part in pair]

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

    def scaled(
        self, s: Array, spectrum: Interval, leading: Array, dtype: Any = np.float64
    ) -> Operator:
        """Return diag(s) K diag(s), with products in the precision `dtype`."""
        return Scaled(replace(self, dtype=np.dtype(dtype)), s, spectrum, leading)


def on_device(A: Operator, device: Any) -> Operator:
    """Return an operator with its products on a device of torch, None: on the host.

    An operator that knows nothing of devices is returned as it is.
    """
    if isinstance(A, Scaled | Affine | Deflated):
        inner = on_device(A.A, device)
        return A if inner is A.A else replace(A, A=inner)
    if isinstance(A, TorchOperator):
        A = A.on_host
    if device is None:
        return A
    if isinstance(A, Dense):
        return TorchDense(A.matrix, A.spectrum, device)
    if isinstance(A, Sparse):
        return TorchSparse(A.matrix, A.spectrum, A.leading, device)
    if isinstance(A, Kernel) and not sparse.issparse(A.points):
        return TorchKernel(A.points, A.epsilon, A.dtype, device)
    return A


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


def _square(matrix: Any) -> Any:
    shape = tuple(matrix.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"The matrix has shape {shape}; pass a square one (n, n).")
    return matrix


def _by_row_sums(sums: Any) -> Interval:
    bound = float(sums.max()) if len(sums) else 0.0
    return -bound, bound
