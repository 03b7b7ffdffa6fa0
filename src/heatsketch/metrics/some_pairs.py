"""Which pairs are compared where there are too many for all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch.isometry.pairs import nearest_pairs, sampled_pairs, within
from heatsketch.markov.rows import Eigenpairs
from heatsketch.metrics.distances import ComparedRows, Pairs
from heatsketch.neighbors import pair_distances
from heatsketch.operators.order import first_inputs
from heatsketch.spectral.apply import Block

_N_NEIGHBORS, _NEIGHBOR_ROWS = 5, 2_000  # of nearest pairs, and points that they start from
_MAX_TREE_DIMENSIONS, _MANY_DIMENSIONS_ROWS = 15, 20_000  # beyond, a search costs n for each point
_N_EXTREMES = 32  # pairs of smallest and as many of largest ratio
_SKETCH_COLUMNS = 128  # distances within 6 % (one standard deviation)
_LONG_TIME = 256  # beyond, eigenpairs take fewer products than a sketch
_NEGLIGIBLE = 1e-3  # weight of an eigenvector that does not count; its square enters a distance
_ROUNDING = 1e-12  # of the largest coordinate: points as near as that count as equal


class SampledDistances(NamedTuple):
    """Pairs of points with their diffusion distances: estimated ones, then exact ones."""

    i: Array
    j: Array
    distances: Block
    looked_at: str


def sampled_distances(
    F: Array,
    compared: ComparedRows,
    n_pairs: int,
    rng: np.random.Generator,
    eigenpairs: Eigenpairs | None = None,
) -> SampledDistances:
    """Return random pairs with distances from a sketch, and extreme ones with exact distances.

    Parameters
    ----------
    F : array (n, k)
        The embedding, of which extreme pairs are searched for.
    compared : ComparedRows
    n_pairs : int
        Random pairs.
    eigenpairs : pair of arrays, optional
        `leading_pairs` of the operator, where they are known.
    """
    S, how, exact = _coordinates(compared, rng, eigenpairs)
    labels = compared.labels
    random = sampled_pairs(len(F), n_pairs, rng, labels)
    near = within(*_near_in_diffusion(compared, S.values, rng), labels)
    candidates = [random, near, within(*_nearest_in_embedding(F, rng), labels)]
    i, j = np.hstack(candidates)
    before, after = pair_distances(S.values, S.values, i, j), pair_distances(F, F, i, j)
    extreme = _extreme_pairs(i, j, before, after)
    if exact:
        ends = Block(pair_distances(S.values, S.values, *extreme), S.log_scale)
    else:
        ends = _exact(compared, *extreme)
    common = max(S.log_scale, ends.log_scale)
    D = [
        before[:n_pairs] * math.exp(S.log_scale - common),
        ends.values * math.exp(ends.log_scale - common),
    ]
    looked_at = (
        f"{n_pairs:,} random pairs {how} + the {len(extreme[0])} of most extreme ratio, exactly, "
        f"chosen from {counts(candidates, 'diffusion')}"
    )
    looked_at += "" if labels is None else ", within components"
    i, j = (np.concatenate(sides) for sides in zip(random, extreme, strict=True))
    return SampledDistances(i, j, Block(np.concatenate(D), common), looked_at)


def _coordinates(
    compared: ComparedRows, rng: np.random.Generator, eigenpairs: Eigenpairs | None
) -> tuple[Block, str, bool]:
    """Return coordinates of all points, at most 1, what they are, and if their distances are exact.

    Leading eigenpairs at long times, if no others count; else a sketch.
    """
    rows = compared.rows
    if rows.filter.sharpness((-1.0, 1.0)) > _LONG_TIME:
        S, left_out = rows.leading(eigenpairs)
        if left_out <= _NEGLIGIBLE:
            return _with_trivial(S, compared), f"by {S.values.shape[1]} eigenpairs", True
    k = min(_SKETCH_COLUMNS, compared.block_columns)
    return _with_trivial(rows.sketch(k, rng), compared), f"in a sketch of {k} columns", False


def _with_trivial(S: Block, compared: ComparedRows) -> Block:
    """Append the trivial coordinate, where it counts, and scale to at most 1."""
    trivial, values, log_scale = compared.trivial, S.values, S.log_scale
    if trivial is not None:
        common = max(log_scale, trivial.log_scale)
        column = compared.rows.of_points(trivial.values * math.exp(trivial.log_scale - common))
        values = np.column_stack([values * math.exp(log_scale - common), column])
        log_scale = common
    values, exponent = scaled(values)
    return Block(values, log_scale + exponent * math.log(2))


def _near_in_diffusion(compared: ComparedRows, S: Array, rng: np.random.Generator) -> Pairs:
    """Return pairs of near points: neighbours in the graph, where there is one, else in S.

    Duplicates, which share a vertex, are near.
    """
    graph, vertex = compared.rows.first, compared.rows.vertex
    if not sparse.issparse(graph):
        return nearest_pairs(S, rng.permutation(len(S))[:_NEIGHBOR_ROWS], _N_NEIGHBORS)
    vertices = np.sort(rng.permutation(graph.shape[0])[:_NEIGHBOR_ROWS])
    i, j = graph[vertices].nonzero()
    i = vertices[i]
    i, j = i[i != j], j[i != j]
    inputs = first_inputs(vertex)
    if inputs is None or vertex is None:
        return i, j
    first = inputs[vertex]
    copies = rng.permutation(np.flatnonzero(first != np.arange(len(first))))[:_NEIGHBOR_ROWS]
    return np.append(inputs[i], first[copies]), np.append(inputs[j], copies)


def _nearest_in_embedding(Y: Array, rng: np.random.Generator) -> Pairs:
    n, few_dimensions = len(Y), Y.shape[1] <= _MAX_TREE_DIMENSIONS
    rows = np.arange(n) if few_dimensions else rng.permutation(n)[:_MANY_DIMENSIONS_ROWS]
    return nearest_pairs(Y, rows, _N_NEIGHBORS)


def _extreme_pairs(i: Array, j: Array, before: Array, after: Array) -> Pairs:
    """Return the pairs of smallest and largest ratio, each pair once."""
    kept = np.flatnonzero((after > _ROUNDING) | (before > _ROUNDING))
    with np.errstate(divide="ignore"):
        order = kept[np.argsort(after[kept] / before[kept], kind="stable")]
    ends = np.sort(np.column_stack([i, j])[order], axis=1)
    found = [_distinct(ends, _N_EXTREMES), _distinct(ends[::-1], _N_EXTREMES)]
    i, j = np.unique(np.vstack(found), axis=0).T
    return i, j


def _distinct(pairs: Array, count: int) -> Array:
    """Return the first distinct rows of pairs (m, 2); one is found from either end at most."""
    first = pairs[: 4 * count]
    _, place = np.unique(first, axis=0, return_index=True)
    return first[np.sort(place)[:count]]


def _exact(compared: ComparedRows, i: Array, j: Array) -> Block:
    """Return exact distances of pairs of points, with one column of g(A) for each pair."""
    i, j = compared.vertices(i, j)
    block = compared.rows.transposed(compared.rows.differences(i, j))
    values = np.linalg.norm(block.values.astype(float), axis=0)
    return compared.with_trivial(Block(values, block.log_scale), i, j)


def candidate_pairs(Y: Array, F: Array, n_pairs: int, rng: Any) -> list[Pairs]:
    """Return random pairs, pairs of nearest neighbours in F, and pairs of those in Y."""
    random = sampled_pairs(len(F), n_pairs, rng)
    near = nearest_pairs(F, rng.permutation(len(F))[:_NEIGHBOR_ROWS], _N_NEIGHBORS)
    return [random, near, _nearest_in_embedding(Y, rng)]


def counts(candidates: Sequence[Pairs], source: str) -> str:
    """Say how many pairs of each kind there are; the last kind may be missing."""
    kinds = ("random pairs", f"nearest in {source}", "nearest in the embedding", "used for fitting")
    counted = zip(candidates, kinds, strict=False)
    return " + ".join(f"{len(pairs[0]):,} {kind}" for pairs, kind in counted)


def scaled(values: Array) -> tuple[Array, int]:
    """Scale by a power of two to at most 1, so that squares neither underflow nor overflow."""
    exponent = int(np.frexp(np.max(np.abs(values), initial=0.0))[1])
    return np.ldexp(values, -exponent), exponent
