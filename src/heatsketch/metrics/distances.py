"""Diffusion distances: exact from blocks of columns of f(A), or approximate from a sketch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from heatsketch._checks import check_in_range
from heatsketch._tiles import row_tiles
from heatsketch._typing import Array
from heatsketch.markov.components import component_labels, deflate_components
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import DiffusionRows, Eigenpairs
from heatsketch.neighbors import all_distances, pair_distances
from heatsketch.operators import on_vertices
from heatsketch.operators.operator import Deflated, Operator
from heatsketch.spectral.apply import in_range, too_large
from heatsketch.spectral.dense import all_eigenpairs
from heatsketch.spectral.eigenpairs import leading_vector
from heatsketch.spectral.filters import Filter, make_filter

Pairs = tuple[Any, Any]

_BLOCK_BYTES = 2**28  # of one block of columns of f(A); at most seven exist at a time
_TILE_COORDINATES = 1024  # compared at a time: those of some hundred rows stay in the cache
_ALL_PAIRS_SHARE = 0.2  # of the pairs of a block: beyond, computing all of them is faster


def diffusion_distance(
    A: Any,
    time: float = 8,
    *,
    filter: str = "power",
    pairs: Pairs | None = None,
    deflate: bool | None = None,
) -> Array:
    """Compute diffusion distances exactly, by explicit differences of rows.

    Of a `Diffusion`: D(i, j) = |R_i - R_j| with the rows R = M A^(t-1) of `Diffusion.rows`, which
    are weighted by 1/√π in the Markov form: the distance between rows of Pᵗ in L²(1/π) (*Linear and
    nonlinear dimensionality reduction*, (25)). In a neighbour graph the first step M goes to a
    point's own neighbours, elsewhere M = A. It is the distance that `HeatSketch`, `HeatEmbedding`
    and `heatsketch score` speak of.

    Of a matrix or operator A: D(i, j) = |row_i f(A) - row_j f(A)|, equation (26) of *Sketching the
    heat kernel*.

    Parameters
    ----------
    A : Diffusion, array (n, n), SciPy sparse matrix or operator
        Indices are those of the input points.
    time : float >= 0, default 8
        Of a Diffusion at least 1. Not whole, with "power", only where A has no negative
        eigenvalue (see `Power`); ½ gives the canonical metric of the covariance A.
    filter : "power" (λ^t), "heat" (e^{-t(1-λ)}) or "accumulated", default "power"
        "accumulated": √Σ D_s², squared distances added up over s = t, ..., 64 t - 1.
        Of a Diffusion "heat" is less e^{-t}: of the walks that have moved, as in embeddings.
    pairs : (i, j) of index arrays (m,), optional
        By default all pairs, in the order of `scipy.spatial.distance.pdist`.
    deflate : bool, optional
        Leave out the trivial direction √π: always of a Diffusion, as in embeddings; of a matrix by
        default not, as in (26). It makes a difference only in the symmetric form, where √π is not
        constant and dominates at large times.

    Returns
    -------
    array (n(n-1)/2,) or (m,)

    Raises
    ------
    ValueError
        A not symmetric; an index out of range; time so large that distances underflow.

    Notes
    -----
    Cost: products by A with one column for each point that occurs in a pair, and n operations for
    each pair. Memory: seven blocks of columns, at most 0.27 GB each (above 16 million points, two
    columns each). If the points do not fit into one block, pairs are divided into groups between
    few points, and a point is computed once for each group it occurs in: at worst two columns for
    each pair.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.diffusion_distance(np.diag([1.0, 0.5]), time=1)
    array([1.11803399])
    """
    compared = compared_rows(A, time, filter, deflate)
    n = compared.rows.n_points
    i, j = np.triu_indices(n, 1) if pairs is None else check_pairs(pairs, n)
    if compared.log_scale:
        raise too_large(compared.log_scale, compared.rows.operator.dtype)
    return compared.distances(i, j)


class ComparedRows(NamedTuple):
    """Rows whose Euclidean distances are wanted, and a further coordinate of each vertex."""

    rows: DiffusionRows
    trivial: Array | None  # (m,), of the direction √π where that counts; None: equal for all
    labels: Array | None = None  # (points,): only distances between equal ones are looked at

    @property
    def log_scale(self) -> float:
        """Distances are divided by e^log_scale: 0 but for extreme times."""
        return self.rows.log_scale if self.trivial is None else 0.0

    @property
    def block_columns(self) -> int:
        """Number of columns that fit into a block."""
        return max(2, _BLOCK_BYTES // (8 * self.rows.operator.n))

    def vertices(self, *points: Array) -> tuple[Array, ...]:
        """Return the rows of points: duplicates share one, their distance is exactly zero."""
        return tuple(self.rows.vertex[at] for at in points)

    def distances(self, i: Array, j: Array) -> Array:
        """Return the exact distances of pairs of points (m,)."""
        i, j = self.vertices(i, j)
        D = np.zeros(len(i))
        for pairs in pair_blocks(i, j, self.block_columns):
            occurs = np.zeros(len(self.rows.weight), dtype=bool)
            occurs[i[pairs]] = occurs[j[pairs]] = True
            place = np.cumsum(occurs) - 1
            units = self.rows.unit_columns(np.flatnonzero(occurs))
            columns = self.rows.transposed(units)  # (n, m): rows as columns
            squares = _squared_distances(columns, place[i[pairs]], place[j[pairs]])
            D[pairs] = self.with_trivial(np.sqrt(squares), i[pairs], j[pairs])
        return D

    def all_distances(self, eigenpairs: Eigenpairs | None = None) -> Array:
        """Return the distances of all pairs of points, as `pdist` orders them.

        By all eigenpairs of A, unless they are given: rows with the distances of R are those of
        diag(w) M V g(Λ). Within 1e-9 of each distance the same as by explicit differences.
        """
        rows = self.rows
        values, vectors = eigenpairs or all_eigenpairs(rows.operator)
        weights = rows.weights(values)
        kept = np.flatnonzero(np.abs(weights) > np.finfo(float).eps * np.abs(weights).max())
        H = vectors[:, kept] * weights[kept]
        H = (H if rows.first is None else rows.first @ H) * rows.weight[:, None]
        i, j = self.vertices(*np.triu_indices(rows.n_points, 1))
        return self.with_trivial(all_distances(H, rows.vertex), i, j)

    def distances_between(self, points: Array) -> Array:
        """Return the exact distances of all pairs of some points (m,), as `pdist` orders them.

        Their rows R (m, n) are stored: the columns of R are computed in blocks.
        """
        (vertices,) = self.vertices(points)
        R = np.empty((len(points), self.rows.operator.n))
        for tile in row_tiles(len(points), self.block_columns):
            R[tile] = self.rows.transposed(self.rows.unit_columns(vertices[tile])).T
        i, j = (vertices[side] for side in np.triu_indices(len(points), 1))
        return self.with_trivial(all_distances(R), i, j)

    def distances_by_differences(self, i: Array, j: Array) -> Array:
        """Return the exact distances of few pairs of points (m,), one column of g(A) for each."""
        i, j = self.vertices(i, j)
        differences = self.rows.transposed(self.rows.differences(i, j))
        return self.with_trivial(np.linalg.norm(differences.astype(float), axis=0), i, j)

    def with_trivial(self, D: Array, i: Array, j: Array) -> Array:
        """Add what the trivial direction adds to distances of pairs of vertices (m,)."""
        if self.trivial is None:
            return D
        rest = D * math.exp(self.rows.log_scale)
        return np.asarray(np.hypot(rest, self.trivial[i] - self.trivial[j]))


def compared_rows(A: Any, time: float, filter: str, deflate: bool | None = None) -> ComparedRows:
    """Return the rows that `diffusion_distance` compares, which has the same parameters."""
    if isinstance(A, Diffusion):
        if deflate is False:
            raise ValueError(
                "deflate=False, but the distance of a Diffusion leaves out the trivial direction; "
                "pass diffusion.operator for that of the matrix A."
            )
        return ComparedRows(A.rows(time, filter=filter), None)
    f = make_filter(filter, time)
    A, vertex = on_vertices(A)
    deflated, ones = A, np.ones(A.n)
    if deflated.V.shape[1]:  # what the caller took out does not count
        return ComparedRows(DiffusionRows(deflated, f, ones, vertex), None)
    deflated = Deflated(A, leading_vector(A, rng=0))
    trivial = None if deflate else _trivial(A, f, deflated.V[:, 0])
    return ComparedRows(DiffusionRows(deflated, f, ones, vertex), trivial)


def rows_within_components(A: Any, time: float, filter: str) -> ComparedRows:
    """Return the rows compared; of several components only for distances within these."""
    compared = compared_rows(A, time, filter)
    labels = component_labels(A) if isinstance(A, Diffusion) else None
    if labels is None:
        return compared
    rows = replace(compared.rows, operator=deflate_components(A, labels))
    return ComparedRows(rows, None, labels[rows.vertex])


def _trivial(A: Operator, f: Filter, u: Array) -> Array | None:
    """Return the coordinate u f(λ) that deflation removes from the rows; None if all are equal."""
    size, share = np.abs(u).max(), u - u.mean()
    if np.abs(share).max() <= 1e-13 * size:
        return None  # equal shares cancel, except for rounding
    top = np.array([float(u @ (A @ u))])
    weight, log_size = in_range(*f.scaled(top), A.dtype)
    if log_size:
        raise too_large(log_size, A.dtype)
    return np.asarray(weight * share)


def pair_blocks(i: Array, j: Array, size: int) -> Iterator[Array]:
    """Yield indices of the pairs (i, j) between at most `size` points each, all pairs once.

    Points are divided into tiles of size / 2 in the order of their first occurrence, and pairs are
    sorted by the tiles of their ends: all pairs between two tiles fit.
    """
    if len(i) == 0:
        return
    if max(i.max(), j.max()) < size:
        yield np.arange(len(i))
        return
    ends = np.column_stack([i, j]).ravel()
    _, first, inverse = np.unique(ends, return_index=True, return_inverse=True)
    occurrence = np.argsort(np.argsort(first))
    tiles = np.sort((occurrence[inverse] // (size // 2)).reshape(-1, 2), axis=1)
    order = np.lexsort((tiles[:, 1], tiles[:, 0]))
    held: set[int] = set()
    start = 0
    for place, (a, b) in enumerate(zip(i[order].tolist(), j[order].tolist(), strict=True)):
        if len(held) + (a not in held) + (b not in held) > size:
            yield order[start:place]
            held, start = set(), place
        held.update((a, b))
    yield order[start:]


def _squared_distances(columns: Array, i: Array, j: Array) -> Array:
    """Return |column_i - column_j|² (pairs,) from explicit differences, columns (n, m)."""
    n, m = columns.shape
    every = m > 1 and len(i) > _ALL_PAIRS_SHARE * m * (m - 1) / 2
    squares = np.zeros(m * (m - 1) // 2 if every else len(i))
    for rows in row_tiles(n, _TILE_COORDINATES):
        tile = np.ascontiguousarray(columns[rows].T, dtype=float)
        squares += pdist(tile, "sqeuclidean") if every else pair_distances(tile, tile, i, j) ** 2
    if not every:
        return squares
    low, high = np.minimum(i, j), np.maximum(i, j)
    position = low * (2 * m - low - 1) // 2 + high - low - 1  # in the order of pdist
    differ = low < high
    return np.where(differ, squares[np.where(differ, position, 0)], 0.0)


def check_pairs(pairs: Any, n: int) -> tuple[Array, Array]:
    """Return the index arrays (i, j) of pairs of n points, or raise."""
    if not isinstance(pairs, (tuple, list)) or len(pairs) != 2:
        shape = np.shape(pairs)
        raise ValueError(f"pairs has shape {shape}; pass (i, j), for example tuple(pairs.T).")
    i, j = (np.asarray(side) for side in pairs)
    if i.ndim != 1 or i.shape != j.shape or i.dtype.kind not in "iu" or j.dtype.kind not in "iu":
        raise ValueError(f"pairs has shapes {i.shape} and {j.shape}; pass two index arrays (m,).")
    for side in (i, j):
        check_in_range(side, "pairs", n)
    return i, j
