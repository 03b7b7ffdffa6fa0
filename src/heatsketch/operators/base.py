"""The contract every operator keeps, and the wrappers that work on any of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from heatsketch._checks import real_array
from heatsketch._tensors import in_kind_of
from heatsketch._typing import Array
from heatsketch.operators.properties import (
    accuracy,
    component_labels,
    diagonal,
    on_device,
    scaled_graph,
)


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


def real_block(X: Any, n: int) -> Array:
    """Return X as a block (n, k) or (n,) of float32 or float64, or raise."""
    block = real_array(X, "The block")
    check_shape(block, n)
    return block


class OnHost:
    """Abstract base of operators that compute with NumPy arrays."""

    def asarray(self: Operator, X: Array) -> Array:
        """Return X as a NumPy block (n, k) of this precision.

        Raises
        ------
        ValueError, TypeError
            A block that is not of n rows, of more than two axes, or not of real numbers.
        """
        return real_block(X, self.n).astype(self.dtype, copy=False)


class OfMatrix(OnHost):
    """Abstract base of operators that are a stored matrix (n, n)."""

    matrix: Any

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.matrix.shape[0])

    @property
    def dtype(self) -> np.dtype:
        """Precision of products."""
        dtype: np.dtype = self.matrix.dtype
        return dtype


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
        ValueError, TypeError
            A block that is not of n rows, of more than two axes, or not of real numbers.
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
        s = real_array(self.s, "s").astype(self.A.dtype, copy=False)
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


@diagonal.register
def _(A: Scaled) -> Array | None:
    own = diagonal(A.A)
    return None if own is None else own * A.s**2


@component_labels.register
def _(A: Scaled) -> Array | None:
    return component_labels(A.A)  # scales are positive


@on_device.register
def _(A: Scaled, device: Any) -> Scaled:
    return with_inner(A, on_device(A.A, device))


@on_device.register
def _(A: Affine, device: Any) -> Affine:
    return with_inner(A, on_device(A.A, device))


def with_inner(A: Any, inner: Operator) -> Any:
    """Return a wrapper of another operator; the same one if nothing changes."""
    return A if A.A is inner else replace(A, A=inner)


@accuracy.register
def _(A: Scaled) -> dict[str, float]:
    return accuracy(A.A)
