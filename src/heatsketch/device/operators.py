"""Operators with products on a device of torch: stored matrices, and Gaussian kernels in tiles."""

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._arrays import Array, is_tensor, on_host
from heatsketch._threads import row_tiles
from heatsketch.core.blocks import Block, is_large, scale_both_sides
from heatsketch.core.kernel import Kernel, exponent_factors
from heatsketch.core.operators import NEGLIGIBLE, Bounds, Composed, Dense, Operator, Sparse
from heatsketch.device.blocks import DeviceCSR, as_tensor, blocks_on, device_csr, full_precision

TILE_SIDE, DEVICE_TILE_SIDE = 1024, 4096  # rows and columns of a tile, on processors and beyond


class TorchOperator(Operator):
    """Abstract base: products are on a device; `host` is the same operator on the processor.

    A stored matrix is `tensor` on the device, and `matrix` on the host.
    """

    host: Operator
    tensor: Any

    def __init__(self, host: Operator, device: Any, values: Any) -> None:
        """Copy the attributes of `host`; choose the device asked for, else that of `values`."""
        self.host, self.n, self.dtype, self.spectrum = host, host.n, host.dtype, host.spectrum
        self.leading = host.leading
        device = values.device if device is None and is_tensor(values) else device
        self.blocks = blocks_on("cpu" if device is None else device, type(self).__name__)

    @property
    def matrix(self) -> Any:  # type: ignore[override]
        """The matrix on the host, where it is stored."""
        return self.host.matrix

    def diagonal(self) -> Block | None:
        """Return the diagonal (n,), a tensor."""
        found = self.host.diagonal()
        return None if found is None else self.blocks.native(found)

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
        scaled = self.host.scaled_both_sides(on_host(s), spectrum, on_host(leading), dtype)
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
    array is moved to the device, and its product back.

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
        if isinstance(matrix, DeviceCSR):
            self.csr, self.blocks, self.n = matrix, matrix.blocks, matrix.shape[0]
            self.dtype, self.leading = np.dtype(str(matrix.data.dtype)[6:]), leading
            if spectrum is None:
                bound = float(matrix.sum(axis=1).max())  # of a matrix without negative entries
                spectrum = -bound, bound
            self.spectrum = spectrum
            return
        super().__init__(Sparse(on_host(matrix), spectrum, on_host(leading)), device, matrix)
        self.csr = device_csr(self.host.matrix, self.device)

    @cached_property
    def host(self) -> Sparse:  # type: ignore[override]
        """The same matrix on the host, copied when it is asked for."""
        return Sparse.of(self.csr.host, self.spectrum, on_host(self.leading))

    @cached_property
    def tensor(self) -> Any:  # type: ignore[override]
        """The matrix as a sparse tensor."""
        return self.csr.tensor

    def is_non_negative(self) -> bool:
        """Say whether all entries are at least 0."""
        return not len(self.csr.data) or bool(self.csr.data.min() >= 0)

    def diagonal(self) -> Block:
        """Return the diagonal (n,), a tensor."""
        found = self.csr.data.new_zeros(self.n)
        rows, columns = self.csr.places()
        own = rows == columns
        found[rows[own]] = self.csr.data[own]
        return found

    def labels(self) -> Block:
        """Give each point the least number that is reached from it, then number these."""
        xp, csr = self.blocks.xp, self.csr
        rows, columns = csr.places()
        sums = csr.sum(axis=1)
        joined = csr.data > NEGLIGIBLE * sums[rows].minimum(sums[columns])
        rows, columns = rows[joined], columns[joined]
        found = self.blocks.arange(self.n)
        while True:
            before = found
            least = found.scatter_reduce(0, rows, found[columns], "amin")
            found = found.scatter_reduce(0, found, least, "amin")  # a root follows its tree
            while not xp.equal(found, found[found]):
                found = found[found]
            if xp.equal(found, before):
                return found.unique(return_inverse=True)[1]

    def components(self) -> Array:
        """Return the component of each point (n,), on the host."""
        return self.blocks.host(self.labels())

    def restricted(self, vertices: Array) -> Operator:
        """Return the matrix between some of the points."""
        return TorchSparse(self.csr.between(vertices), self.spectrum)

    def scaled_both_sides(
        self, s: Block, spectrum: Bounds, leading: Block, dtype: Any = np.float64
    ) -> Operator:
        """Scale entry by entry; a large matrix is kept in the precision `dtype`."""
        dtype = dtype if is_large(self.n) else np.float64
        s = self.blocks.native(s)
        return TorchSparse(scale_both_sides(self.csr, s, s, dtype), spectrum, leading)


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


def on_device(A: Any, device: Any) -> Any:
    """Return an operator or CSR matrix with its products on a device of torch, None: on the host.

    What knows nothing of devices is returned as it is.
    """
    if isinstance(A, Composed):
        inner = on_device(A.A, device)
        return A if inner is A.A else A.over(inner)
    if isinstance(A, TorchOperator | DeviceCSR):
        if device is not None and A.blocks == blocks_on(device):
            return A
        A = A.host
    if device is None:
        return A
    if isinstance(A, Dense):
        return TorchDense(A.matrix, A.spectrum, device)
    if isinstance(A, Sparse):
        return TorchSparse(A.matrix, A.spectrum, A.leading, device)
    if isinstance(A, Kernel) and not sparse.issparse(A.points):
        return TorchKernel(A.points, A.epsilon, A.dtype, device)
    return device_csr(A, device) if sparse.issparse(A) else A
