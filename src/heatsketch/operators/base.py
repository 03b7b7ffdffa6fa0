"""The contract every operator keeps, and the wrappers that work on any of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from heatsketch._blocks import for_each_tile_of, sum_over_tiles
from heatsketch._tensors import in_kind_of, is_tensor, namespace, on_host
from heatsketch._typing import Array
from heatsketch.operators.order import take_rows
from heatsketch.operators.properties import (
    accuracy,
    component_labels,
    diagonal,
    on_device,
    scaled_graph,
)

_TILE = 2**14  # rows moved at a time


@runtime_checkable
class Operator(Protocol):
    """A symmetric linear map on n points: five members, nothing else.

    Products of a NumPy block are NumPy blocks, wherever they are computed. `asarray` moves a block
    to the backend of the operator, on which its products then stay.

    Attributes
    ----------
    n : int
        Number of points.
    dtype : numpy.dtype
        Precision of products.
    spectrum : (float, float)
        An interval known to hold every eigenvalue.
    """

    @property
    def n(self) -> int:
        """Number of points."""
        ...

    @property
    def dtype(self) -> np.dtype:
        """Precision of products."""
        ...

    @property
    def spectrum(self) -> tuple[float, float]:
        """An interval known to hold every eigenvalue."""
        ...

    def asarray(self, X: Array) -> Array:
        """Bring a NumPy block (n, k) to this operator's backend."""
        ...

    def __matmul__(self, X: Array) -> Array:
        """Multiply a block: (n, k) -> (n, k)."""
        ...


def check_shape(X: Array, n: int) -> None:
    """Raise unless X is a block (n, k) or (n,)."""
    if X.ndim not in (1, 2) or X.shape[0] != n:
        raise ValueError(
            f"The block has shape {tuple(X.shape)} but the operator has {n} points; pass ({n}, k)."
        )


def check_block(X: Array, n: int, dtype: np.dtype) -> Array:
    """Return X as a block (n, k) of the given precision, or raise."""
    X = np.asarray(on_host(X), dtype=dtype)
    check_shape(X, n)
    return X


class Wrapper:
    """Abstract base of operators made from an operator A: the same points, on the same backend."""

    A: Operator

    @property
    def n(self) -> int:
        """Number of points."""
        return self.A.n

    @property
    def dtype(self) -> np.dtype:
        """Precision of products."""
        return self.A.dtype

    def asarray(self, X: Array) -> Array:
        """Bring a NumPy block (n, k) to the backend of A.

        Raises
        ------
        ValueError
            A block that is not of n rows, or of more than two axes.
        """
        return self.A.asarray(X)


@dataclass(frozen=True, eq=False)
class Scaled(Wrapper):
    """diag(s) A diag(s).

    Parameters
    ----------
    A : Operator
    s : array (n,)
        Positive scale of each point.
    spectrum : (float, float), optional
        Interval known to hold the spectrum; by default max(s)² times that of A.
    leading : array (n,), optional
        The eigenvector of the largest eigenvalue, where the construction of `s` gives it.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> A = hs.Scaled(hs.Dense(np.ones((2, 2))), np.array([1.0, 2.0]))
    >>> A @ np.eye(2)
    array([[1., 2.],
           [2., 4.]])
    """

    A: Operator
    s: Array
    spectrum: tuple[float, float] = None  # type: ignore[assignment]
    leading: Array | None = None

    def __post_init__(self) -> None:
        s = np.asarray(on_host(self.s), dtype=self.A.dtype)
        if s.shape != (self.A.n,):
            raise ValueError(
                f"s has shape {s.shape} but A has {self.A.n} points; pass ({self.A.n},)."
            )
        object.__setattr__(self, "s", s)
        if self.spectrum is None:
            bound = float(np.max(np.abs(s))) ** 2
            low, high = self.A.spectrum
            object.__setattr__(self, "spectrum", (min(0.0, low * bound), max(0.0, high * bound)))

    def __matmul__(self, X: Array) -> Array:
        """Multiply a block: (n, k) -> (n, k), at the cost of one product by A."""
        block = self.asarray(X)
        s = self._scales if block.ndim == 1 else self._scales[:, None]
        return in_kind_of(s * (self.A @ (s * block)), X)

    @functools.cached_property
    def _scales(self) -> Array:
        return self.A.asarray(self.s)


@dataclass(frozen=True, eq=False)
class Affine(Wrapper):
    """scale * A + shift * I, e.g. the lazy walk (A + I) / 2 or the Laplacian I - A.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> L = hs.Affine(hs.Dense(np.diag([1.0, 0.25])), scale=-1.0, shift=1.0)
    >>> L @ np.ones(2), L.spectrum
    (array([0.  , 0.75]), (0.0, 2.0))
    """

    A: Operator
    scale: float = 1.0
    shift: float = 0.0

    @property
    def spectrum(self) -> tuple[float, float]:
        """The interval of A, mapped."""
        ends = [self.scale * end + self.shift for end in self.A.spectrum]
        return min(ends), max(ends)

    def __matmul__(self, X: Array) -> Array:
        """Multiply a block: (n, k) -> (n, k), at the cost of one product by A."""
        block = self.asarray(X)
        return in_kind_of(float(self.scale) * (self.A @ block) + float(self.shift) * block, X)


@dataclass(frozen=True, eq=False)
class Deflated(Wrapper):
    """(I - VVᵀ) A (I - VVᵀ): A without the directions V, taken out at every product.

    Parameters
    ----------
    A : Operator
    V : array (n, r) or (n,)
        Orthonormal directions, usually the trivial eigenvector √π.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> A = hs.Deflated(hs.Dense(np.full((2, 2), 0.5)), np.ones(2) / np.sqrt(2))
    >>> np.allclose(A @ np.array([1.0, 0.0]), 0)
    True
    """

    A: Operator
    V: Array

    def __post_init__(self) -> None:
        V = np.asarray(on_host(self.V), dtype=self.A.dtype)
        V = V[:, None] if V.ndim == 1 else V
        if V.shape[0] != self.A.n:
            raise ValueError(
                f"V has shape {V.shape} but A has {self.A.n} points; pass ({self.A.n}, r)."
            )
        error = float(np.max(np.abs(V.T @ V - np.eye(V.shape[1])), initial=0.0))
        if not error <= 1e3 * np.finfo(self.A.dtype).eps:
            raise ValueError(
                f"The columns of V are not orthonormal (error {error:.1e}); pass qr(V)[0]."
            )
        object.__setattr__(self, "V", V)

    @property
    def spectrum(self) -> tuple[float, float]:
        """The interval of A, extended to hold the zeros along V."""
        low, high = self.A.spectrum
        return (min(low, 0.0), max(high, 0.0)) if self.V.shape[1] else (low, high)

    def project(self, X: Array) -> Array:
        """Return (I - VVᵀ) X; X itself where nothing is deflated.

        Raises
        ------
        ValueError
            A block that is not of n rows, or of more than two axes.
        """
        block = self.asarray(X)
        if self.V.shape[1]:
            block = self._project(block, _empty_like(block))
        return in_kind_of(block, X)

    def project_in_place(self, X: Array) -> Array:
        """Set a block of this precision to (I - VVᵀ) X, and return it.

        Raises
        ------
        ValueError
            A block that is not of n rows, or of more than two axes.
        """
        return self._project(X, X) if self.V.shape[1] else X

    def __matmul__(self, X: Array) -> Array:
        """Multiply a block: (n, k) -> (n, k), one product by A and 8 n k r operations."""
        return self.multiply_projected(self.project(X))

    def multiply_projected(self, X: Array) -> Array:
        """Multiply a block that is orthogonal to V already, as products by this operator are.

        Raises
        ------
        ValueError
            A block that is not of n rows, or of more than two axes.
        """
        return self.project_in_place(self.A @ X)

    def without(self, V: Array) -> Deflated:
        """Take further directions V (n, r), orthogonal to those deflated already, out of A.

        Raises
        ------
        ValueError
            Directions of another number of points, or that are not orthonormal.
        """
        return Deflated(self.A, np.hstack([self.V, on_host(V)]))

    def _project(self, X: Array, out: Array) -> Array:
        """Write (I - VVᵀ) X to `out`, tile by tile; sums over tiles are taken in their order."""
        check_shape(X, self.n)
        V = self._directions if is_tensor(X) else self.V
        share = sum_over_tiles(X, lambda rows: V[rows].T @ X[rows], _TILE)

        def subtract(rows: slice) -> None:
            out[rows] = X[rows] - V[rows] @ share

        for_each_tile_of(X, subtract, _TILE)
        return out

    @functools.cached_property
    def _directions(self) -> Array:
        return self.A.asarray(self.V)


def _empty_like(X: Array) -> Array:
    return namespace(X).empty_like(X) if is_tensor(X) else np.empty_like(X, order="C")


@functools.singledispatch
def as_deflated(A: Any) -> Deflated:
    """Return A as a `Deflated` operator: itself if it is one, else without any directions."""
    return Deflated(A, np.empty((A.n, 0)))


@as_deflated.register
def _(A: Deflated) -> Deflated:
    return A


@functools.singledispatch
def scaled(
    K: Any, s: Array, spectrum: tuple[float, float], leading: Array, dtype: Any = np.float64
) -> Operator:
    """Return diag(s) K diag(s), whose largest eigenvalue has the eigenvector `leading` (n,).

    In the precision `dtype` where K can be had in it at no loss of what it stores.
    """
    return Scaled(K, s, spectrum, leading)


@scaled_graph.register
def _(A: Scaled) -> Any:
    graph = scaled_graph(A.A)
    return None if graph is None else (graph[0], graph[1] * A.s)


@scaled_graph.register
def _(A: Deflated) -> Any:
    return scaled_graph(A.A)


@diagonal.register
def _(A: Scaled) -> Array | None:
    own = diagonal(A.A)
    return None if own is None else own * A.s**2


@component_labels.register(Scaled)
@component_labels.register(Deflated)
def _(A: Any) -> Array | None:
    return component_labels(A.A)  # scales are positive


@on_device.register
def _(A: Scaled, device: Any) -> Scaled:
    return _with_inner(A, on_device(A.A, device))


@on_device.register
def _(A: Affine, device: Any) -> Affine:
    return _with_inner(A, on_device(A.A, device))


@on_device.register
def _(A: Deflated, device: Any) -> Deflated:
    return _with_inner(A, on_device(A.A, device))


def _with_inner(A: Any, inner: Operator) -> Any:
    """Return a wrapper of another operator; the same one if nothing changes."""
    return A if A.A is inner else replace(A, A=inner)


@accuracy.register(Scaled)
@accuracy.register(Deflated)
def _(A: Any) -> dict[str, float]:
    return accuracy(A.A)


class Numbered(NamedTuple):
    """An operator on vertices, and which of them the input points are."""

    operator: Operator
    vertex: Array | None  # (points,); None: they have the same numbers

    @property
    def n_points(self) -> int:
        """Number of input points, duplicates included."""
        return self.operator.n if self.vertex is None else len(self.vertex)

    def of_points(self, values: Array) -> Array:
        """Return the rows of the vertices as rows of the input points."""
        return spread(values, self.vertex)


@functools.singledispatch
def in_near_order(A: Any) -> Numbered:
    """Return an operator with its vertices numbered so that near ones have near numbers.

    That makes the products of large sparse matrices several times faster where the given order is
    arbitrary; other operators are returned as they are.
    """
    return Numbered(A, None)


def spread(values: Array, vertex: Array | None) -> Array:
    """Return the rows of the vertices as rows of the input points at them."""
    return values if vertex is None else take_rows(values, vertex)


def first_inputs(vertex: Array | None) -> Array | None:
    """Return the first input point at each vertex, (n,); None where they have the same numbers."""
    return None if vertex is None else np.unique(vertex, return_index=True)[1]
