"""An operator without some of its directions."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from heatsketch._blocks import for_each_tile_of, sum_over_tiles
from heatsketch._checks import real_array
from heatsketch._tensors import in_kind_of, is_tensor, namespace
from heatsketch._typing import Array
from heatsketch.operators.base import Operator, Wrapper, check_shape, with_inner
from heatsketch.operators.properties import accuracy, component_labels, on_device, scaled_graph

_TILE = 2**14  # rows moved at a time


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
        V = real_array(self.V, "V").astype(self.A.dtype, copy=False)
        V = V[:, None] if V.ndim == 1 else V
        if V.ndim != 2 or V.shape[0] != self.A.n:
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
        ValueError, TypeError
            A block that is not of n rows, of more than two axes, or not of real numbers.
        """
        block = self.asarray(X)
        if self.V.shape[1]:
            block = self._project(block, _empty_like(block))
        return in_kind_of(block, X)

    def project_in_place(self, X: Array) -> Array:
        """Set a block of this precision to (I - VVᵀ) X, and return it.

        Raises
        ------
        ValueError, TypeError
            A block that is not of n rows, of more than two axes, or not an array of floats.
        """
        if not (is_tensor(X) or (isinstance(X, np.ndarray) and X.dtype.kind == "f")):
            kind = X.dtype if isinstance(X, np.ndarray) else type(X).__name__
            raise TypeError(
                f"The block is of type {kind}; pass an array of floats, or `project` it."
            )
        return self._project(X, X) if self.V.shape[1] else X

    def __matmul__(self, X: Array) -> Array:
        """Multiply a block: (n, k) -> (n, k), one product by A and 8 n k r operations."""
        return self.multiply_projected(self.project(X))

    def multiply_projected(self, X: Array) -> Array:
        """Multiply a block that is orthogonal to V already, as products by this operator are.

        Raises
        ------
        ValueError, TypeError
            A block that is not of n rows, of more than two axes, or not of real numbers.
        """
        return self.project_in_place(self.A @ X)

    def without(self, V: Array) -> Deflated:
        """Take further directions V (n, r), orthogonal to those deflated already, out of A.

        Raises
        ------
        ValueError, TypeError
            Directions of another number of points, that are not orthonormal, or not numbers.
        """
        return Deflated(self.A, np.hstack([self.V, Deflated(self.A, V).V]))

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


@scaled_graph.register
def _(A: Deflated) -> Any:
    return scaled_graph(A.A)


@component_labels.register
def _(A: Deflated) -> Array | None:
    return component_labels(A.A)


@on_device.register
def _(A: Deflated, device: Any) -> Deflated:
    return with_inner(A, on_device(A.A, device))


@accuracy.register
def _(A: Deflated) -> dict[str, float]:
    return accuracy(A.A)
