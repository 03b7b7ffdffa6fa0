"""Diffusion distances of all pairs of some thousand points, by all eigenpairs."""

from __future__ import annotations

import numpy as np

from heatsketch import neighbors
from heatsketch._typing import Array
from heatsketch.markov.rows import DiffusionRows, Eigenpairs
from heatsketch.metrics.distances import ComparedRows
from heatsketch.spectral.apply import Block
from heatsketch.spectral.dense import all_eigenpairs


def all_distances(compared: ComparedRows, eigenpairs: Eigenpairs | None = None) -> Block:
    """Return the diffusion distances of all pairs of points, as `pdist` orders them.

    The same as those by explicit differences, within 1e-9 of each.

    Cost: all eigenpairs of A, unless they are given, and a product of (n, r) and (r, n), r the
    number of eigenvalues that count.
    """
    rows = compared.rows
    R = _by_eigenpairs(rows, *(eigenpairs or all_eigenpairs(rows.operator)))
    D = neighbors.all_distances(R.values, rows.vertex)
    i, j = compared.vertices(*np.triu_indices(rows.n_points, 1))
    return compared.with_trivial(Block(D, R.log_scale), i, j)


def _by_eigenpairs(rows: DiffusionRows, values: Array, vectors: Array) -> Block:
    """Return rows with the distances of R: those of diag(w) M V g(Λ), (m, r), V orthonormal."""
    weights, log_scale = rows.filter.scaled(values)
    kept = np.flatnonzero(np.abs(weights) > np.finfo(float).eps * np.abs(weights).max())
    H = vectors[:, kept] * weights[kept]
    H = H if rows.first is None else rows.first @ H
    return Block(H * rows.weight[:, None], log_scale)
