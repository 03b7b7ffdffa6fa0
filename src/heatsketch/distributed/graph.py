"""The affinity of a neighbour graph in tiles: scales by halo, crossing edges sent to both ends."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from heatsketch._blocks import held
from heatsketch._typing import Array
from heatsketch.distributed.search import partners
from heatsketch.markov.affinity import KthDistances, NeighborRows, check_scales
from heatsketch.neighbors import Neighbors
from heatsketch.operators.components import NEGLIGIBLE
from heatsketch.operators.dask_tiles import DaskTiles, Halo, blocks_of
from heatsketch.operators.order import index_type


class Graph(NamedTuple):
    """The affinity K, and its rows before it was made symmetric, with the same columns."""

    affinity: DaskTiles
    own: tuple[Any, ...]  # delayed CSR (n_t, n_t + halo)


class _Rows(NamedTuple):
    """Rows of a tile: columns of its own, then those of others, whose numbers are `outside`."""

    matrix: sparse.csr_matrix  # (n_t, n_t + halo)
    outside: Array  # (halo,), increasing


def affinity(near: Sequence[Any], starts: Sequence[int], order: int, epsilon: Any) -> Graph:
    """Return the Gaussian affinity of neighbours, of which each tile has delayed `Neighbors`.

    `epsilon` is a number in the units of the distances, squared; None for self-tuning scales, the
    distances to the neighbour number `order`.
    """
    import dask
    from dask import delayed

    sizes = tuple(int(size) for size in np.diff(starts))
    spans = list(itertools.pairwise(starts))
    rows = held(*(delayed(_rows)(own, *span) for own, span in zip(near, spans, strict=True)))
    if epsilon is None:
        scales = held(*(delayed(_scales)(part, order) for part in rows))
        wide = Halo(sizes, _lists(rows, starts)).extended(scales)
        weighed = [delayed(_weights)(part, s) for part, s in zip(rows, wide, strict=True)]
    else:
        weighed = [delayed(_weights)(part, epsilon) for part in rows]
    own = held(*weighed)
    sent = partners([delayed(_sent)(part, starts, t) for t, part in enumerate(own)])
    received: list[list[Any]] = [[] for _ in sizes]
    for outgoing in sent:
        for u, edges in outgoing.items():
            received[u].append(edges)
    both = held(
        *(
            delayed(_symmetric)(part, *span, *edges)
            for part, span, edges in zip(own, spans, received, strict=True)
        )
    )
    halo = Halo(sizes, _lists([pair[0] for pair in both], starts))
    matrices = held(*(pair[0].matrix for pair in both))
    own = held(*(pair[1] for pair in both))
    bound = max(dask.compute(*(delayed(_largest_sum)(part) for part in matrices)))
    return Graph(DaskTiles(matrices, halo, (-bound, bound)), own)


def _rows(near: Neighbors, start: int, stop: int) -> _Rows:
    """Return the distances to the neighbours with columns of the tile."""
    m, k = near.distances.shape
    row = np.repeat(np.arange(m), k)
    return _localized(row, near.indices.ravel(), near.distances.ravel(), start, stop)


def _localized(row: Array, column: Array, values: Array, start: int, stop: int) -> _Rows:
    """Return entries at vertices as rows of the tile of the vertices `start` to `stop`."""
    n, inside = stop - start, (column >= start) & (column < stop)
    outside = np.unique(column[~inside])
    width = n + len(outside)
    local = np.where(inside, column - start, n + np.searchsorted(outside, column))
    local = local.astype(index_type(width))
    order = np.lexsort((local, row))
    indptr = np.searchsorted(row[order], np.arange(n + 1))
    matrix = sparse.csr_matrix((values[order], local[order], indptr), shape=(n, width))
    return _Rows(matrix, outside)


def _lists(rows: Sequence[Any], starts: Sequence[int]) -> tuple[dict[int, Any], ...]:
    """Return for each tile the rows of other tiles that its columns are, as `Halo` has them."""
    from dask import delayed

    return tuple(partners([delayed(_by_owner)(part, starts) for part in rows]))


def _by_owner(rows: _Rows, starts: Sequence[int]) -> dict[int, Array]:
    at = np.searchsorted(rows.outside, starts)
    return {
        u: rows.outside[at[u] : at[u + 1]] - starts[u]
        for u in range(len(starts) - 1)
        if at[u + 1] > at[u]
    }


def _scales(rows: _Rows, order: int) -> Array:
    return check_scales(KthDistances(order)(rows.matrix))


def _weights(rows: _Rows, scales: Any) -> _Rows:
    """Return the affinities; `scales` are those of the tile and of its halo, or ε."""
    near = NeighborRows(None, scales)  # type: ignore[arg-type]
    return rows._replace(matrix=near.weights(rows.matrix))


def _sent(rows: _Rows, starts: Sequence[int], t: int) -> dict[int, tuple[Array, Array, Array]]:
    """Return the edges to other tiles: row there, vertex here, affinity."""
    n, edges = rows.matrix.shape[0], rows.matrix.tocoo()
    crossing = edges.col >= n
    column = rows.outside[edges.col[crossing] - n]
    vertex, values = starts[t] + edges.row[crossing].astype(np.int64), edges.data[crossing]
    owner = np.searchsorted(starts, column, side="right") - 1
    return {
        int(u): (column[owner == u] - starts[u], vertex[owner == u], values[owner == u])
        for u in np.unique(owner)
    }


def _symmetric(
    own: _Rows, start: int, stop: int, *received: tuple[Array, Array, Array]
) -> tuple[_Rows, sparse.csr_matrix]:
    """Return max(K, Kᵀ) of the rows of a tile, and the rows themselves with the same columns."""
    n = stop - start
    vertices = np.concatenate([np.arange(start, stop), own.outside])
    edges = own.matrix.tocoo()
    inside = edges.col < n
    mirrored = (edges.col[inside], start + edges.row[inside].astype(np.int64), edges.data[inside])
    entries = [(edges.row, vertices[edges.col], edges.data), mirrored, *received]
    row, column, values = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    order = np.lexsort((column, row))
    row, column, values = row[order], column[order], values[order]
    first = np.flatnonzero(np.r_[True, (np.diff(row) != 0) | (np.diff(column) != 0)])
    both = _localized(row[first], column[first], np.maximum.reduceat(values, first), start, stop)
    moved = np.where(inside, edges.col, n + np.searchsorted(both.outside, vertices[edges.col]))
    shape = both.matrix.shape
    kept = sparse.csr_matrix(
        (own.matrix.data, moved.astype(both.matrix.indices.dtype), own.matrix.indptr), shape
    )
    return both, kept


def _largest_sum(matrix: sparse.csr_matrix) -> float:
    return float(matrix.sum(axis=1).max())


def component_sizes(K: DaskTiles, row_sums: Any) -> Array:
    """Return the number of points in each component of K, the largest first.

    Components of tiles, and which of them an entry joins, are all that is looked at.
    """
    import dask
    from dask import delayed

    sums = K.halo.extended(blocks_of(row_sums))
    parts = zip(K.rows, sums, strict=True)
    labels = held(*(delayed(_labels)(rows, q) for rows, q in parts))
    counts = dask.compute(*(delayed(_count)(own) for own in labels))
    first = np.concatenate([[0], np.cumsum(counts)])
    numbered = [delayed(np.add)(own, first[t]) for t, own in enumerate(labels)]
    wide = zip(K.rows, K.halo.extended(numbered), sums, strict=True)
    links = dask.compute(*(delayed(_links)(*part) for part in wide))
    i, j = np.concatenate(links).T
    graph = sparse.csr_matrix((np.ones(len(i), bool), (i, j)), shape=(first[-1], first[-1]))
    joined = connected_components(graph, directed=False)[1]
    counts = np.concatenate(dask.compute(*(delayed(np.bincount)(own) for own in labels)))
    return np.sort(np.bincount(joined, weights=counts).astype(np.int64))[::-1]


def _kept(rows: sparse.csr_matrix, sums: Array) -> sparse.coo_matrix:
    """Return the entries that are not negligible for either of the two points."""
    edges = rows.tocoo()
    kept = edges.data > NEGLIGIBLE * np.minimum(sums[edges.row], sums[edges.col])
    return sparse.coo_matrix((edges.data[kept], (edges.row[kept], edges.col[kept])), rows.shape)


def _labels(rows: sparse.csr_matrix, sums: Array) -> Array:
    edges, n = _kept(rows, sums), rows.shape[0]
    square = sparse.csr_matrix(edges)[:, :n]
    found: Array = connected_components(square, directed=False)[1]
    return found


def _count(labels: Array) -> int:
    return int(labels.max()) + 1


def _links(rows: sparse.csr_matrix, labels: Array, sums: Array) -> Array:
    """Return which components an entry joins, (links, 2), each once."""
    edges = _kept(rows, sums)
    return np.unique(np.column_stack([labels[edges.row], labels[edges.col]]), axis=0)
