"""Diffusion distances of all pairs of some thousand points, by all eigenpairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heatsketch._array import for_each_tile
from heatsketch._typing import Array
from heatsketch.markov.rows import DiffusionRows, Eigenpairs
from heatsketch.metrics.distances import ComparedRows
from heatsketch.neighbors import pair_distances
from heatsketch.spectral.apply import Block
from heatsketch.spectral.eigenpairs import all_eigenpairs

_TILE = 256  # rows of a product computed at a time
_CANCELLED = 1e-6  # of |R_i|² + |R_j|²: a smaller D² is computed from differences; 1e-9 is lost


def all_distances(compared: ComparedRows, eigenpairs: Eigenpairs | None = None) -> Block:
    """Return the diffusion distances of all pairs of points, as `pdist` orders them.

    The same as those by explicit differences, within 1e-9 of each.

    Cost: all eigenpairs of A, unless they are given, and a product of (n, r) and (r, n), r the
    number of eigenvalues that count.
    """
    rows = compared.rows
    R = _by_eigenpairs(rows, *(eigenpairs or all_eigenpairs(rows.operator)))
    D = _condensed(_squared_distances(R.values), rows.vertex)
    i, j = compared.vertices(*np.triu_indices(rows.n_points, 1))
    near = np.flatnonzero(D < 0)
    np.sqrt(np.maximum(D, 0.0, out=D), out=D)
    D[near] = pair_distances(R.values, R.values, i[near], j[near])
    return compared.with_trivial(Block(D, R.log_scale), i, j)


def _by_eigenpairs(rows: DiffusionRows, values: Array, vectors: Array) -> Block:
    """Return rows with the distances of R: those of diag(w) M V g(Λ), (m, r), V orthonormal."""
    weights, log_scale = rows.filter.scaled(values)
    kept = np.flatnonzero(np.abs(weights) > np.finfo(float).eps * np.abs(weights).max())
    H = vectors[:, kept] * weights[kept]
    H = H if rows.first is None else rows.first @ H
    return Block(H * rows.weight[:, None], log_scale)


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
