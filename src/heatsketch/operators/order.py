"""Rows in another order: permutations, and the numbers of vertices and input points."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from heatsketch._array import for_each_tile
from heatsketch._tensors import is_tensor
from heatsketch._typing import Array
from heatsketch.operators.base import Operator

_TILE = 2**14  # rows moved at a time


def inverse_permutation(order: Array) -> Array:
    """Return p with p[order[i]] = i, (n,), 32-bit if it fits."""
    inverse = np.empty(len(order), index_type(len(order)))
    inverse[order] = np.arange(len(order))
    return inverse


def index_type(n: int) -> type[np.signedinteger]:
    """Return the smallest type in use that numbers n points."""
    return np.int32 if n < 2**31 else np.int64


def take_rows(X: Array, order: Array) -> Array:
    """Return X[order], on all cores."""
    if is_tensor(X):
        return X[order]
    Y = np.empty((len(order), *X.shape[1:]), X.dtype)

    def work(rows: slice) -> None:
        Y[rows] = X[order[rows]]

    for_each_tile(work, len(order), _TILE)
    return Y


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
