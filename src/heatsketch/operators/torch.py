"""Operators with products on a device of torch: stored matrices, and Gaussian kernels in tiles."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._checks import is_tensor, on_host, optional
from heatsketch._tiles import row_tiles
from heatsketch._typing import Array
from heatsketch.operators.blocks import Block, DeviceBlocks, as_tensor, full_precision
from heatsketch.operators.kernel import Kernel, exponent_factors
from heatsketch.operators.operator import Bounds, Composed, Dense, Operator, Sparse

TILE_SIDE, DEVICE_TILE_SIDE = 1024, 4096  # rows and columns of a tile, on processors and beyond


class TorchOperator(Operator):
    """Abstract base: products are on a device; `host` is the same operator on the processor.

    A stored matrix is `tensor` on the device, and `matrix` on the host.
    """

    host: Operator
    tensor: Any

    def __init__(self, host: Operator, device: Any, values: Any) -> None:
        """Copy the attributes of `host`; choose the device asked for, else that of `values`."""
        torch = optional("torch", f"{type(self).__name__} needs torch", "torch")
        self.host, self.n, self.dtype, self.spectrum = host, host.n, host.dtype, host.spectrum
        self.matrix, self.leading = host.matrix, host.leading
        device = values.device if device is None and is_tensor(values) else device
        self.blocks = DeviceBlocks(torch.device("cpu" if device is None else device))
        if self.device.type == "mps":
            raise ValueError("device='mps' has no float64, in which sums are taken; pass 'cpu'.")

    def diagonal(self) -> Array | None:
        """Return the diagonal (n,)."""
        return self.host.diagonal()

    def is_non_negative(self) -> bool:
        """Say whether all entries are known to be at least 0."""
        return self.host.is_non_negative()

    def components(self) -> Array | None:
        """Return the component of each point (n,)."""
        return self.host.components()

    def scaled_both_sides(
        self, s: Array, spectrum: Bounds, leading: Array, dtype: Any = np.float64
    ) -> Operator:
        """Return diag(s) A diag(s) on the device."""
        scaled = self.host.scaled_both_sides(s, spectrum, leading, dtype)
        return on_device(scaled, self.device)

    def _matmul(self, X: Block) -> Block:
        with full_precision(self.device):
            return self.tensor @ X.contiguous()


class TorchDense(TorchOperator):
    """A stored symmetric matrix on a device of torch, float32 or float64.

    A product with k columns costs 2 n² k operations, in full precision (no TensorFloat-32). An
    array is moved to the device, and its product back. The host keeps a copy of the matrix.

    Parameters
    ----------
    matrix : {array-like, tensor} of shape (n_samples, n_samples)
        Symmetric. A tensor is detached: gradients do not flow through.
    spectrum : (float, float), default=None
        Interval known to hold the spectrum; by default ± the largest absolute row sum.
    device : str or torch.device, default=None
        Device of the products; by default that of the matrix.

    Raises
    ------
    ImportError
        torch is not installed.
    ValueError
        The matrix is not square; the device has no float64.

    See Also
    --------
    Dense : A stored symmetric matrix.
    TorchSparse : A stored symmetric sparse matrix on a device of torch.
    TorchKernel : The Gaussian kernel with products on a device of torch.

    Examples
    --------
    >>> import heatsketch as hs, torch  # doctest: +SKIP
    >>> hs.TorchDense(torch.ones(2, 2)) @ torch.ones(2)  # doctest: +SKIP
    tensor([2., 2.])
    """

    def __init__(self, matrix: Any, spectrum: Bounds | None = None, device: Any = None) -> None:
        super().__init__(Dense(matrix, spectrum), device, matrix)
        values = matrix if is_tensor(matrix) else self.matrix
        self.tensor = as_tensor(values, self.dtype, self.device)


class TorchSparse(TorchOperator):
    """A stored symmetric sparse matrix on a device of torch, in CSR form.

    A product with k columns costs 2 nnz k operations, by the sparse products of the device. An
    array is moved to the device, and its product back. The host keeps a copy of the matrix.

    Parameters
    ----------
    matrix : {array-like, sparse matrix, tensor} of shape (n_samples, n_samples)
        Symmetric; it is converted to CSR if needed. A tensor is detached.
    spectrum : (float, float), default=None
        Interval known to hold the spectrum; by default ± the largest absolute row sum.
    leading : array-like of shape (n_samples,), default=None
        The eigenvector of the largest eigenvalue, if it is known.
    device : str or torch.device, default=None
        Device of the products; by default that of the matrix.

    Raises
    ------
    ImportError
        torch is not installed.
    ValueError
        The matrix is not square; the device has no float64.

    See Also
    --------
    Sparse : A stored symmetric sparse matrix.
    TorchDense : A stored symmetric matrix on a device of torch.
    TorchKernel : The Gaussian kernel with products on a device of torch.

    Examples
    --------
    >>> import heatsketch as hs, torch  # doctest: +SKIP
    >>> hs.TorchSparse(torch.diag(torch.tensor([2.0, 3.0]))) @ torch.ones(2, 1)  # doctest: +SKIP
    tensor([[2.],
            [3.]])
    """

    def __init__(
        self,
        matrix: Any,
        spectrum: Bounds | None = None,
        leading: Array | None = None,
        device: Any = None,
    ) -> None:
        super().__init__(Sparse(on_host(matrix), spectrum, on_host(leading)), device, matrix)
        self.tensor = as_csr_tensor(self.matrix, self.device)


class TorchKernel(TorchOperator):
    """The Gaussian kernel of `Kernel`, with products on a device of torch.

    A product of matrices and one exponential make each tile of K; the whole matrix is never stored.
    Precision is chosen as in `Kernel`: points are centred, and float32 is used if the exponent
    stays within 1e-4. TensorFloat-32 is never used. Tiles are added up in float64.

    A product with k columns costs 2 n² (d + k) operations and n² exponentials for n points with d
    features. Memory is O(n (d + k)) and one tile, 2²⁴ numbers on a device. An array is moved to the
    device, and its product back.

    Parameters
    ----------
    points : {array-like, tensor} of shape (n_samples, n_features)
        A tensor is detached: gradients do not flow through.
    epsilon : float, or {array-like, tensor} of shape (n_samples,)
        Bandwidth in squared data units. An array gives s with ε_ij = s_i s_j (self-tuning scales).
    dtype : float32 or float64, default=None
        Precision of products, a NumPy type; by default that of the points.
    device : str or torch.device, default=None
        Device of the products; by default that of the points.

    Raises
    ------
    ImportError
        torch is not installed.
    ValueError
        Points that are not finite or sparse; a bandwidth out of range; a device without float64.

    See Also
    --------
    Kernel : The Gaussian kernel of points, never stored.
    TorchDense : A stored symmetric matrix on a device of torch.

    Examples
    --------
    >>> import heatsketch as hs, torch  # doctest: +SKIP
    >>> points = torch.tensor([[0.0], [1.0]])  # doctest: +SKIP
    >>> hs.TorchKernel(points, epsilon=1.0) @ torch.eye(2)  # doctest: +SKIP
    tensor([[1.0000, 0.3679],
            [0.3679, 1.0000]])
    """

    host: Kernel

    def __init__(self, points: Any, epsilon: Any, dtype: Any = None, device: Any = None) -> None:
        if sparse.issparse(on_host(points)):
            raise ValueError(
                "points are sparse, of which no tiles are made on a device; pass X.toarray(), or "
                "use heatsketch.Kernel."
            )
        super().__init__(Kernel(on_host(points), on_host(epsilon), dtype), device, points)
        self.exponent_error = self.host.exponent_error

    @cached_property
    def _factors(self) -> list[Any]:
        """Factors of the exponent, or points and scales where differences are taken."""
        K = self.host
        pair = K.centred_points, K.scales
        if not K.takes_differences:
            pair = exponent_factors(*pair, K.arithmetic)
        return [as_tensor(values, K.arithmetic, self.device) for values in pair]

    def _matmul(self, X: Block) -> Block:
        import torch

        left, right = self._factors
        flat = X.reshape(self.n, -1).to(left.dtype)
        Y = torch.empty(flat.shape, dtype=X.dtype, device=self.device)
        side = TILE_SIDE if self.device.type == "cpu" else DEVICE_TILE_SIDE
        buffer = torch.empty(min(self.n, side) ** 2, dtype=flat.dtype, device=self.device)
        mode = "donot_use_mm_for_euclid_dist"
        with full_precision(self.device):
            for rows in row_tiles(self.n, side):
                sums = torch.zeros(flat[rows].shape, dtype=torch.float64, device=self.device)
                for columns in row_tiles(self.n, side):
                    if self.host.takes_differences:
                        tile = torch.cdist(left[rows], left[columns], compute_mode=mode).square_()
                        tile.div_(-right[rows, None]).div_(right[columns]).exp_()
                    else:
                        x, y = left[rows], right[columns]
                        tile = buffer[: len(x) * len(y)].view(len(x), len(y))
                        torch.mm(x, y.T, out=tile)
                        tile.clamp_(max=0.0).exp2_()  # sums of rounded terms may be above 0
                    sums += tile @ flat[columns]
                Y[rows] = sums
        return Y.reshape(X.shape)


def on_device(A: Operator, device: Any) -> Operator:
    """Return an operator with its products on a device of torch, None: on the host.

    An operator that knows nothing of devices is returned as it is.
    """
    if isinstance(A, Composed):
        inner = on_device(A.A, device)
        return A if inner is A.A else A.over(inner)
    if isinstance(A, TorchOperator):
        A = A.host
    if device is None:
        return A
    if isinstance(A, Dense):
        return TorchDense(A.matrix, A.spectrum, device)
    if isinstance(A, Sparse):
        return TorchSparse(A.matrix, A.spectrum, A.leading, device)
    if isinstance(A, Kernel) and not sparse.issparse(A.points):
        return TorchKernel(A.points, A.epsilon, A.dtype, device)
    return A


def as_csr_tensor(matrix: sparse.csr_matrix, device: Any) -> Any:
    """Return a CSR matrix as a sparse tensor on a device."""
    import torch

    parts = (matrix.indptr, matrix.indices, matrix.data)
    starts, columns, values = (as_tensor(part, part.dtype, device) for part in parts)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            starts, columns, values, matrix.shape, check_invariants=False
        )
