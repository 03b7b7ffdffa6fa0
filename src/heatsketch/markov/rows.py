"""The rows that a diffusion compares: their Euclidean distances are diffusion distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._array import random_block
from heatsketch._typing import Array, Rng
from heatsketch.operators.base import Deflated, spread
from heatsketch.operators.sparse import multiply
from heatsketch.spectral.apply import Block, apply
from heatsketch.spectral.chebyshev import spectrum_ends
from heatsketch.spectral.eigenpairs import eigh
from heatsketch.spectral.filters import Filter


@dataclass(frozen=True, eq=False)
class DiffusionRows:
    """The matrix R = diag(w) M g(A), not stored: one row for each vertex, or for each new point.

    Diffusion distances are the Euclidean distances of its rows. `Diffusion.rows` makes it; a
    `HeatSketch` is R G / √k.

    Attributes
    ----------
    operator : Deflated
        A (n, n) without the trivial direction √π; n vertices.
    filter : Filter
        g.
    weight : array (m,)
        w: 1 / (M √π) in the Markov form, else ones.
    first : array or CSR matrix (m, n), or None
        M, the step to the point's own neighbours; None: there is none before g, and m = n.
    vertex : array (points,) or None
        The row of each input point; None: they have the same numbers.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> X, angle = hs.datasets.circle(60, rng=0)
    >>> rows = hs.diffusion(X).rows(8)
    >>> R = rows.of(np.arange(60))  # (60, n), stored
    >>> D = np.linalg.norm(R[0] - R[1])
    >>> np.allclose(D, hs.diffusion_distance(hs.diffusion(X), 8, pairs=([0], [1])))
    True
    """

    operator: Deflated
    filter: Filter
    weight: Array
    first: Any = None
    vertex: Array | None = None

    @property
    def n_points(self) -> int:
        """Number of points, duplicates included."""
        return len(self.weight) if self.vertex is None else len(self.vertex)

    def __matmul__(self, X: Array) -> Block:
        """Return R X, X (n, k), as a scaled block (m, k)."""
        block = self._filtered(X)
        values = block.values if self.first is None else multiply(self.first, block.values)
        return Block(self._weighted(values), block.log_scale)

    def transposed(self, Z: Any) -> Block:
        """Return Rᵀ Z, Z (m, k), array or sparse, as a scaled block (n, k)."""
        weights = sparse.diags(self.weight)
        Z = weights @ Z if self.first is None else self.first.T @ (weights @ Z)
        return self._filtered(Z.toarray() if sparse.issparse(Z) else Z)

    def of(self, points: Array) -> Array:
        """Return the rows of some points (p, n), or raise if the time is too large to store them.

        Cost: that of g(A) on p columns.
        """
        rows = points if self.vertex is None else self.vertex[points]
        return self.transposed(self.unit_columns(rows)).unscaled().T

    def unit_columns(self, rows: Array) -> sparse.csc_matrix:
        """Return Z (m, k) for which Rᵀ Z are some of the rows, as columns."""
        count = len(rows)
        return sparse.csc_matrix((np.ones(count), (rows, np.arange(count))), (self._m, count))

    def differences(self, i: Array, j: Array) -> sparse.csc_matrix:
        """Return Z (m, k) for which Rᵀ Z are the differences of rows i and j, as columns."""
        return self.unit_columns(i) - self.unit_columns(j)

    def sketch(self, k: int, rng: Rng) -> Block:
        """Return R G / √k of the points (points, k), G random: distances within √(1/2k) of them."""
        block = self @ (random_block(self.operator.n, k, "gaussian", rng) / np.sqrt(k))
        return Block(self.of_points(block.values), block.log_scale)

    def leading(self, k: int, tol: float) -> tuple[Block, float]:
        """Return coordinates of the points (points, k) by the leading eigenpairs of A.

        Their distances are those of the rows but for the other eigenvectors, whose largest weight,
        as a share of the largest of all, is returned with them; eigenpairs have residuals `tol`.
        """
        A = self.operator
        found = eigh(A, k, tol=tol, rng=0)
        lowest = spectrum_ends(A)[0][0]  # the others lie between: their |g| is largest at an end
        weights, log_scale = self.filter.scaled(np.append(found.values, lowest))
        left_out = float(np.abs(weights[k - 1 :]).max() / np.abs(weights).max())
        values = found.vectors * weights[:k].astype(found.vectors.dtype)
        values = values if self.first is None else multiply(self.first, values)
        return Block(self.of_points(self._weighted(values)), log_scale), left_out

    def of_points(self, values: Array) -> Array:
        """Return values of the rows, (m,) or (m, k), as those of the input points."""
        return spread(values, self.vertex)

    @property
    def _m(self) -> int:
        return len(self.weight)

    def _filtered(self, X: Array) -> Block:
        projected = self.operator.project(X)
        block = apply([self.filter], self.operator, projected)[0]
        return Block(self.operator.project(block.values), block.log_scale)

    def _weighted(self, values: Array) -> Array:
        return values * self.weight.astype(values.dtype)[:, None]
