"""Connected components of an affinity, and points that stand alone."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from heatsketch._array import row_tiles
from heatsketch._typing import Array
from heatsketch.neighbors import NeighborIndex
from heatsketch.operators import Dense, Kernel, Operator, Sparse

NEGLIGIBLE = 1e-14  # share of a row sum below which an affinity changes nothing in float64
_STRONG = 10  # strongest links looked at first
_COLUMNS = 256


def component_labels(K: Operator) -> Array | None:
    """Return the component of each point (n,), numbered from 0, or None where K cannot tell."""
    if isinstance(K, Sparse):
        return _components_of_graph(K.matrix)
    if isinstance(K, Dense):
        return _merge(K, _components_of(*_strongest_entries(K.matrix)))
    if isinstance(K, Kernel):
        return _merge(K, _components_of(*_nearest_entries(K)))
    return None


def isolated_points(K: Operator, row_sums: Array) -> Array:
    """Return the points whose affinity to all others together is negligible."""
    if isinstance(K, (Sparse, Dense)):
        diagonal = np.asarray(K.matrix.diagonal())
    elif isinstance(K, Kernel):
        diagonal = np.ones(K.n)
    else:
        return np.empty(0, dtype=int)
    return np.flatnonzero(row_sums - diagonal <= 1e-12 * row_sums)


def _components_of_graph(matrix: sparse.csr_matrix) -> Array:
    row_sums = np.asarray(matrix.sum(axis=1)).ravel()
    if matrix.nnz and matrix.data.min() <= NEGLIGIBLE * row_sums.max():
        entries = matrix.tocoo()
        kept = entries.data > NEGLIGIBLE * row_sums[entries.row]
        return _components_of(entries.row[kept], entries.col[kept], matrix.shape[0])
    # Of a symmetric pattern strong components are all there are, and need no transpose.
    return connected_components(matrix, directed=True, connection="strong")[1]


def _components_of(rows: Array, columns: Array, n: int) -> Array:
    links = sparse.csr_matrix((np.ones(len(rows), dtype=bool), (rows, columns)), shape=(n, n))
    return connected_components(links, directed=False)[1]


def _strongest_entries(matrix: Array) -> tuple[Array, Array, int]:
    n = len(matrix)
    k = min(_STRONG, n - 1)
    rows, columns = [], []
    for tile in row_tiles(n):
        block = matrix[tile]
        strongest = np.argpartition(block, n - 1 - k, axis=1)[:, n - 1 - k :]
        values = np.take_along_axis(block, strongest, axis=1)
        kept = values > NEGLIGIBLE * block.sum(axis=1, keepdims=True)
        rows.append(tile.start + np.nonzero(kept)[0])
        columns.append(strongest[kept])
    return np.concatenate(rows), np.concatenate(columns), n


def _nearest_entries(K: Kernel) -> tuple[Array, Array, int]:
    k = min(_STRONG + 1, K.n)
    found = NeighborIndex(K.scaled_points).of_points(k)
    exponents = found.distances**2 / (K.scaled_scales[:, None] * K.scaled_scales[found.indices])
    near = exponents < -np.log(NEGLIGIBLE * K.n)
    return np.nonzero(near)[0], found.indices[near], K.n


def _merge(K: Operator, labels: Array) -> Array:
    """Join the components between which K has more than a negligible affinity."""
    count = int(labels.max()) + 1
    if count == 1:
        return labels
    n = len(labels)
    member = sparse.csr_matrix((np.ones(n), (np.arange(n), labels)), shape=(n, count))
    row_sums = K @ np.ones(n)
    links = []
    for columns in row_tiles(count, _COLUMNS):
        share = K @ np.asarray(member[:, columns].toarray(), dtype=K.dtype)
        touched = sparse.csr_matrix(share > NEGLIGIBLE * row_sums[:, None])
        links.append(sparse.csr_matrix(member.T @ touched.astype(float)))
    joined = connected_components(sparse.hstack(links), directed=False)[1]
    return joined[labels]
