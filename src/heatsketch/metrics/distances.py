"""Diffusion distances: exact, some columns of f(A) at a time, and by a sketch of all its rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from heatsketch._array import random_block, row_tiles
from heatsketch._typing import Array, Rng
from heatsketch.markov.diffusion import Diffusion
from heatsketch.neighbors import pair_distances
from heatsketch.operators import numbered
from heatsketch.operators.base import Deflated, Operator
from heatsketch.spectral.eigenpairs import leading_vector
from heatsketch.spectral.filters import Block, Filter, apply, make_filter
from heatsketch.spectral.sketch import sketch_blocks

Pairs = tuple[Any, Any]

_BLOCK_BYTES = 2**28  # of one block of columns of f(A); seven are held at a time at most
_COORDINATES = 1024  # compared at a time: those of some hundred rows stay in the cache
_MOST_OF_THE_PAIRS = 0.2  # of a block: beyond this share computing all of them is faster


def diffusion_distance(
    A: Any,
    time: float = 8,
    *,
    filter: str = "power",
    pairs: Pairs | None = None,
    deflate: bool = False,
) -> Array:
    """Compute diffusion distances D(i, j) = |row_i f(A) - row_j f(A)|, exactly.

    *Sketching the heat kernel*, equation (26). Rows are compared by explicit differences, and the
    trivial direction, which would drown small distances, is carried apart; it counts unless
    `deflate` says otherwise.

    Parameters
    ----------
    A : array (n, n), SciPy sparse matrix, operator or Diffusion
        For a `Diffusion` in the "markov" form the rows are weighted: row_i / √π_i, which is the
        distance between rows of Pᵗ in L²(1/π) (*Linear and nonlinear dimensionality reduction*,
        (25)); indices are those of the input points.
    time : int >= 0 (real for "heat"), default 8
    filter : "power" (λ^t) or "heat" (e^{-t(1-λ)}), default "power"
    pairs : (i, j) of index arrays (m,), optional
        Only these pairs; by default all, in the order of `scipy.spatial.distance.pdist`.
    deflate : bool, default False
        Leave the trivial direction √π out, as sketches and diffusion maps do. It makes a difference
        in the symmetric form alone, where √π is not constant and, at large times, is all there is.

    Returns
    -------
    array (n(n-1)/2,) or (m,)

    Raises
    ------
    ValueError
        A not symmetric; an index out of range; time so large that distances underflow.

    Notes
    -----
    Cost: products by A with one column for each point that occurs in a pair, and n operations a
    pair. Memory: seven blocks of columns of at most 0.27 GB each (above 16 million points, of two
    columns). Where the points do not fit into one block, pairs are taken in blocks of pairs between
    few points, and a point of several of them is computed in each: cheap where the points of
    consecutive pairs are few, two columns a pair at worst.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.diffusion_distance(np.diag([1.0, 0.5]), time=1)
    array([1.11803399])
    """
    rows = diffusion_rows(A, time, filter, deflate)
    n = rows.n_points
    i, j = np.triu_indices(n, 1) if pairs is None else check_pairs(pairs, n)
    return rows.distances(i, j)


def diffusion_rows(A: Any, time: float, filter: str, deflate: bool = False) -> DiffusionRows:
    """Return the rows that the diffusion distance compares; parameters of `diffusion_distance`."""
    f = make_filter(filter, time)
    if isinstance(A, Diffusion):
        weight = 1 / np.sqrt(A.measure) if A.normalization == "markov" else np.ones(A.n)
        return DiffusionRows(A.deflated(), f, weight, A.vertex, None if deflate else A.operator)
    A, vertex = numbered(A)
    if isinstance(A, Deflated):
        return DiffusionRows(A, f, np.ones(A.n), vertex, None)
    deflated = Deflated(A, leading_vector(A, rng=0))
    return DiffusionRows(deflated, f, np.ones(A.n), vertex, None if deflate else A)


@dataclass(frozen=True, eq=False)
class DiffusionRows:
    """The rows w_i row_i f(A), whose Euclidean distances are diffusion distances; not stored.

    Attributes
    ----------
    deflated : Deflated
        A without the trivial direction.
    filter : Filter
        f.
    weight : array (n,)
        w, of the vertices.
    vertex : array (points,) or None
        The vertex of each point; None: they have the same numbers.
    whole : Operator or None
        A, where the trivial direction counts.
    """

    deflated: Deflated
    filter: Filter
    weight: Array
    vertex: Array | None
    whole: Operator | None

    @property
    def n_points(self) -> int:
        """Number of points: of vertices, duplicates counted."""
        return self.deflated.n if self.vertex is None else len(self.vertex)

    @property
    def room(self) -> int:
        """The number of columns that a block has room for."""
        return max(2, _BLOCK_BYTES // (8 * self.deflated.n))

    def distances(self, i: Array, j: Array) -> Array:
        """Return the exact distances of pairs of points (m,)."""
        if self.vertex is not None:  # one row a vertex: duplicates are at distance exactly zero
            i, j = self.vertex[i], self.vertex[j]
        D, log_scales = np.zeros(len(i)), np.zeros(len(i))
        for pairs in pair_blocks(i, j, self.room):
            D[pairs], log_scales[pairs] = self._distances(i[pairs], j[pairs])
        common = float(log_scales.max()) if len(i) else 0.0
        return Block(D * np.exp(log_scales - common), common).unscaled()

    def _distances(self, i: Array, j: Array) -> Block:
        occurs = np.zeros(self.deflated.n, dtype=bool)
        occurs[i] = occurs[j] = True
        used, place = np.flatnonzero(occurs), np.cumsum(occurs) - 1
        i, j = place[i], place[j]
        block = apply([self.filter], self.deflated, self._unit_columns(used))[0]
        columns = self.deflated.project(block.values)  # (n, m): by symmetry rows of f(A)
        columns *= self.weight[used].astype(columns.dtype)
        squares, trivial = _squared_distances(columns, i, j), self._trivial(used)
        if trivial is None:
            return Block(np.sqrt(squares), block.log_scale)
        common = max(block.log_scale, trivial.log_scale)
        rest = np.sqrt(squares) * math.exp(block.log_scale - common)
        apart = (trivial.values[i] - trivial.values[j]) * math.exp(trivial.log_scale - common)
        return Block(np.hypot(rest, apart), common)

    def _unit_columns(self, used: Array) -> Array:
        unit = np.zeros((self.deflated.n, len(used)), dtype=self.deflated.dtype)
        unit[used, np.arange(len(used))] = 1.0
        return self.deflated.project(unit)

    def sketch(self, k: int, rng: Rng) -> Array:
        """Return a sketch of the rows of all points (points, k), at any common scale.

        With the trivial direction, where it counts, as one column more.
        """
        G = random_block(self.deflated.n, k, "gaussian", rng)
        S, log_scale = sketch_blocks(self.deflated, [self.filter], G)[0]
        S *= self.weight[:, None].astype(S.dtype)
        trivial = self._trivial(np.arange(self.deflated.n))
        if trivial is not None:
            common = max(log_scale, trivial.log_scale)
            apart = trivial.values * math.exp(trivial.log_scale - common)
            S = np.column_stack([S * math.exp(log_scale - common), apart])
        return S if self.vertex is None else S[self.vertex]

    def _trivial(self, used: Array) -> Block | None:
        """Return the coordinate that deflation took out of some rows, None where all are equal."""
        if self.whole is None:
            return None
        u = self.deflated.V[:, 0]
        share = u[used] * self.weight[used]
        size, share = np.abs(share).max(), share - share.mean()
        if np.abs(share).max() <= 1e-13 * size:
            return None  # equal shares cancel: do not let their rounding count
        values, log_scale = self.filter.scaled(np.array([float(u @ (self.whole @ u))]))
        return Block(values[0] * share, log_scale)


def pair_blocks(i: Array, j: Array, room: int) -> Iterator[Array]:
    """Yield selections of the pairs (i, j) between at most `room` points each, all pairs once.

    Points are cut into tiles of room / 2 in the order in which they come up, and pairs are sorted
    by the tiles of their ends: whatever is between two tiles fits.
    """
    if len(i) == 0:
        return
    if max(i.max(), j.max()) < room:
        yield np.arange(len(i))
        return
    ends = np.column_stack([i, j]).ravel()
    _, first, inverse = np.unique(ends, return_index=True, return_inverse=True)
    coming = np.argsort(np.argsort(first))
    tiles = np.sort((coming[inverse] // (room // 2)).reshape(-1, 2), axis=1)
    order = np.lexsort((tiles[:, 1], tiles[:, 0]))
    held: set[int] = set()
    start = 0
    for place, (a, b) in enumerate(zip(i[order].tolist(), j[order].tolist(), strict=True)):
        if len(held) + (a not in held) + (b not in held) > room:
            yield order[start:place]
            held, start = set(), place
        held.update((a, b))
    yield order[start:]


def _squared_distances(columns: Array, i: Array, j: Array) -> Array:
    """Return |column_i - column_j|² (pairs,) from explicit differences, columns (n, m)."""
    n, m = columns.shape
    many = m > 1 and len(i) > _MOST_OF_THE_PAIRS * m * (m - 1) / 2
    squares = np.zeros(m * (m - 1) // 2 if many else len(i))
    for rows in row_tiles(n, _COORDINATES):
        tile = np.ascontiguousarray(columns[rows].T, dtype=float)
        squares += pdist(tile, "sqeuclidean") if many else pair_distances(tile, tile, i, j) ** 2
    if not many:
        return squares
    low, high = np.minimum(i, j), np.maximum(i, j)
    place = low * (2 * m - low - 1) // 2 + high - low - 1  # in the order of pdist
    apart = low < high
    return np.where(apart, squares[np.where(apart, place, 0)], 0.0)


def check_pairs(pairs: Any, n: int) -> tuple[Array, Array]:
    """Return the index arrays (i, j) of pairs of n points, or raise."""
    if not isinstance(pairs, (tuple, list)) or len(pairs) != 2:
        shape = np.shape(pairs)
        raise ValueError(f"pairs has shape {shape}; pass (i, j), e.g. tuple(pairs.T) of (m, 2).")
    i, j = (np.asarray(side) for side in pairs)
    if i.ndim != 1 or i.shape != j.shape or i.dtype.kind not in "iu" or j.dtype.kind not in "iu":
        raise ValueError(f"pairs has shapes {i.shape} and {j.shape}; pass two index arrays (m,).")
    if len(i) and not (min(i.min(), j.min()) >= 0 and max(i.max(), j.max()) < n):
        raise ValueError(f"pairs has indices out of range; pass 0 <= index < {n}.")
    return i, j
