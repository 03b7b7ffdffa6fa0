"""Diffusion distances of all pairs of some thousand points, by dense products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._array import for_each_tile
from heatsketch._typing import Array
from heatsketch.markov.rows import DiffusionRows
from heatsketch.metrics.distances import ComparedRows
from heatsketch.neighbors import pair_distances
from heatsketch.operators.base import Deflated
from heatsketch.operators.properties import stored_matrix
from heatsketch.spectral.apply import Block

_TILE = 256  # rows of a product computed at a time
_CANCELLED = (
    1e-6  # D² below this share of |R_i|² + |R_j|² comes from differences: 1e-9 of D is lost
)


def all_distances(compared: ComparedRows) -> Block:
    """Return the diffusion distances of all pairs of points, as `pdist` orders them.

    The same as those by explicit differences, within 1e-9 of each.

    Cost: at most 2 log2(t) products of symmetric matrices (n, n) and one for the distances.
    """
    rows, R = compared.rows, _stored(compared.rows)
    D = _condensed(_squared_distances(R.values), rows.vertex)
    i, j = compared.vertices(*np.triu_indices(rows.n_points, 1))
    near = np.flatnonzero(D < 0)
    np.sqrt(np.maximum(D, 0.0, out=D), out=D)
    D[near] = pair_distances(R.values, R.values, i[near], j[near])
    return compared.with_trivial(Block(D, R.log_scale), i, j)


def _stored(rows: DiffusionRows) -> Block:
    """Return R = diag(w) M g(A) (m, n)."""
    products = rows.filter.products
    if products is None:
        return rows @ np.eye(rows.operator.n)
    power = _power(rows.operator, products)
    R = np.empty((len(rows.weight), rows.operator.n))

    def work(tile: slice) -> None:
        values = power.values[tile] if rows.first is None else rows.first[tile] @ power.values
        np.multiply(values, rows.weight[tile, None], out=R[tile])

    for_each_tile(work, len(R), _TILE)
    return Block(R, power.log_scale)


def _power(A: Deflated, p: int) -> Block:
    """Return A^p (n, n) by squaring; powers of A commute, so that their products are symmetric."""
    if p == 0:
        return Block(A.project(np.eye(A.n)), 0.0)
    stored: Any = stored_matrix(A.A)
    dense = stored.toarray() if sparse.issparse(stored) else stored
    dense = A.A @ np.eye(A.n) if dense is None else dense
    first = np.asarray(A.project(A.project(dense).T), dtype=float)
    power, log_scale, spare = first, 0.0, [np.empty_like(first) for _ in range(2)]
    for bit in bin(p)[3:]:
        for left in [power, first] if bit == "1" else [power]:
            log_scale *= 1 + (left is power)
            power, shift = _scaled(_product(left, power, spare[0]))
            spare.reverse()
            log_scale += shift
    return Block(power, log_scale)


def _product(A: Array, B: Array, out: Array) -> Array:
    return _symmetric(lambda tile: A[tile] @ B[:, : tile.stop], out)


def _squared_distances(R: Array) -> Array:
    """Return |R_i - R_j|² (m, m); -1 where that is so small that the difference cancels."""
    sizes = np.einsum("ij,ij->i", R, R)  # (m,)

    def work(tile: slice) -> Array:
        sums = sizes[tile, None] + sizes[: tile.stop]
        squares = sums - 2 * (R[tile] @ R[: tile.stop].T)
        squares[squares < _CANCELLED * sums] = -1.0
        return squares

    return _symmetric(work, np.empty((len(R), len(R))))


def _symmetric(below: Callable[[slice], Array], out: Array) -> Array:
    """Fill a symmetric matrix (n, n), of which `below` computes rows, up to the diagonal."""

    def work(tile: slice) -> None:
        out[tile, : tile.stop] = below(tile)
        out[: tile.start, tile] = out[tile, : tile.start].T

    for_each_tile(work, len(out), _TILE)
    return out


def _condensed(square: Array, vertex: Array | None) -> Array:
    """Return the entries of a symmetric matrix for all pairs of points, as `pdist` orders them."""
    n = len(square) if vertex is None else len(vertex)
    entries, start = np.empty(n * (n - 1) // 2), 0
    for i in range(n - 1):
        row = square[i, i + 1 :] if vertex is None else square[vertex[i], vertex[i + 1 :]]
        entries[start : start + len(row)] = row
        start += len(row)
    return entries


def _scaled(X: Array) -> tuple[Array, float]:
    """Divide by a power of two if that keeps powers from under- or overflowing; return its log."""
    peak = float(max(X.max(initial=0.0), -X.min(initial=0.0)))
    if peak == 0.0 or 2.0**-40 < peak < 2.0**40:
        return X, 0.0
    shift = math.frexp(peak)[1]
    return np.ldexp(X, -shift, out=X), shift * math.log(2.0)
