"""Diffusion distances: exact from blocks of columns of f(A), or approximate from a sketch."""

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
from heatsketch.operators.base import Deflated, Operator, as_deflated
from heatsketch.spectral.apply import Block, apply
from heatsketch.spectral.eigenpairs import leading_vector
from heatsketch.spectral.filters import Filter, make_filter
from heatsketch.spectral.sketch import sketch_blocks

Pairs = tuple[Any, Any]

_BLOCK_BYTES = 2**28  # of one block of columns of f(A); at most seven exist at a time
_TILE_COORDINATES = 1024  # compared at a time: those of some hundred rows stay in the cache
_ALL_PAIRS_SHARE = 0.2  # of the pairs of a block: beyond, computing all of them is faster
_MAX_POINTS_ALL_PAIRS = 1_000  # so many columns of f(A)
_SAMPLE_POINTS = 500  # beyond


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
    trivial direction, whose rounding would exceed small distances, is computed separately; it
    counts unless `deflate` is True.

    Parameters
    ----------
    A : array (n, n), SciPy sparse matrix, operator or Diffusion
        For a `Diffusion` in the "markov" form the rows are weighted: row_i / √π_i, which is the
        distance between rows of Pᵗ in L²(1/π) (*Linear and nonlinear dimensionality reduction*,
        (25)); indices are those of the input points.
    time : int >= 0 (real for "heat"), default 8
    filter : "power" (λ^t) or "heat" (e^{-t(1-λ)}), default "power"
    pairs : (i, j) of index arrays (m,), optional
        By default all pairs, in the order of `scipy.spatial.distance.pdist`.
    deflate : bool, default False
        Leave out the trivial direction √π, as sketches and diffusion maps do. It makes a difference
        only in the symmetric form, where √π is not constant and dominates at large times.

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
    rows = diffusion_rows(A, time, filter, deflate)
    n = rows.n_points
    i, j = np.triu_indices(n, 1) if pairs is None else check_pairs(pairs, n)
    return rows.distances(i, j)


def diffusion_rows(A: Any, time: float, filter: str, deflate: bool = False) -> DiffusionRows:
    """Return the rows that `diffusion_distance` compares, which has the same parameters."""
    f = make_filter(filter, time)
    if isinstance(A, Diffusion):
        weight = 1 / np.sqrt(A.measure) if A.normalization == "markov" else np.ones(A.n)
        return DiffusionRows(A.deflated(), f, weight, A.vertex, None if deflate else A.operator)
    A, vertex = numbered(A)
    given = as_deflated(A)
    if given.V.shape[1]:
        return DiffusionRows(given, f, np.ones(A.n), vertex, None)
    deflated = Deflated(A, leading_vector(A, rng=0))
    return DiffusionRows(deflated, f, np.ones(A.n), vertex, None if deflate else A)


@dataclass(frozen=True, eq=False)
class DiffusionRows:
    """The rows w_i row_i f(A), not stored: their Euclidean distances are diffusion distances."""

    deflated: Deflated  # A without the trivial direction
    filter: Filter  # f
    weight: Array  # (n,), w of the vertices
    vertex: Array | None  # (points,), of each point; None: they have the same numbers
    whole: Operator | None  # A if the trivial direction counts

    @property
    def n_points(self) -> int:
        """Number of points, duplicates included."""
        return self.deflated.n if self.vertex is None else len(self.vertex)

    @property
    def block_columns(self) -> int:
        """Number of columns that fit into a block."""
        return max(2, _BLOCK_BYTES // (8 * self.deflated.n))

    def distances(self, i: Array, j: Array) -> Array:
        """Return the exact distances of pairs of points (m,)."""
        if self.vertex is not None:  # duplicates share a row: their distance is exactly zero
            i, j = self.vertex[i], self.vertex[j]
        D, log_scales = np.zeros(len(i)), np.zeros(len(i))
        for pairs in pair_blocks(i, j, self.block_columns):
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
        difference = (trivial.values[i] - trivial.values[j]) * math.exp(trivial.log_scale - common)
        return Block(np.hypot(rest, difference), common)

    def _unit_columns(self, used: Array) -> Array:
        unit = np.zeros((self.deflated.n, len(used)), dtype=self.deflated.dtype)
        unit[used, np.arange(len(used))] = 1.0
        return self.deflated.project(unit)

    def sketch(self, k: int, rng: Rng) -> Array:
        """Return a sketch of the rows of all points (points, k), up to a common factor.

        If the trivial direction counts, it is one column more.
        """
        G = random_block(self.deflated.n, k, "gaussian", rng)
        S, log_scale = sketch_blocks(self.deflated, [self.filter], G)[0]
        S *= self.weight[:, None].astype(S.dtype)
        trivial = self._trivial(np.arange(self.deflated.n))
        if trivial is not None:
            common = max(log_scale, trivial.log_scale)
            column = trivial.values * math.exp(trivial.log_scale - common)
            S = np.column_stack([S * math.exp(log_scale - common), column])
        return S if self.vertex is None else S[self.vertex]

    def _trivial(self, used: Array) -> Block | None:
        """Return the coordinate that deflation removed from some rows; None if all are equal."""
        if self.whole is None:
            return None
        u = self.deflated.V[:, 0]
        share = u[used] * self.weight[used]
        size, share = np.abs(share).max(), share - share.mean()
        if np.abs(share).max() <= 1e-13 * size:
            return None  # equal shares cancel, except for rounding
        values, log_scale = self.filter.scaled(np.array([float(u @ (self.whole @ u))]))
        return Block(values[0] * share, log_scale)


def sample_pairs(n: int, wanted: int | None, size: int, rng: Any) -> Pairs | None:
    """Return random pairs (i, j), i < j, within groups of at most `size` points; None for all.

    Few points with all their pairs: the cost is one column of f(A) for each point.
    """
    if n <= _MAX_POINTS_ALL_PAIRS if wanted is None else wanted >= n * (n - 1) // 2:
        return None
    points = _SAMPLE_POINTS if wanted is None else math.ceil((1 + math.sqrt(1 + 8 * wanted)) / 2)
    size = points if points <= size else 2 * (size // 2)
    a, b = np.triu_indices(size, 1)
    n_groups = round(points / size) if wanted is None else -(-wanted // len(a))
    groups = rng.permutation(n)[: min(n_groups, n // size) * size]
    groups = np.sort(groups.reshape(-1, size), axis=1)
    i, j = groups[:, a].ravel(), groups[:, b].ravel()
    kept = np.sort(rng.permutation(len(i))[:wanted])
    return i[kept], j[kept]


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
    if len(i) and not (min(i.min(), j.min()) >= 0 and max(i.max(), j.max()) < n):
        raise ValueError(f"pairs has indices out of range; pass 0 <= index < {n}.")
    return i, j
