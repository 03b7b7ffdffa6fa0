"""The rows that a diffusion compares: their Euclidean distances are diffusion distances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._random import random_block
from heatsketch._tensors import on_host
from heatsketch._typing import Array, Rng
from heatsketch.operators.operator import Deflated, multiply
from heatsketch.spectral.apply import apply, on_scale, too_large
from heatsketch.spectral.cache import cached
from heatsketch.spectral.eigenpairs import eigh
from heatsketch.spectral.filters import Filter

Eigenpairs = tuple[Array, Array]  # values (r,) and vectors (n, r)

N_LEADING = 64  # eigenpairs: those that count at long times
_TOLERANCE = 1e-3  # of their residuals: what it moves in a distance is less than what is sketched


@cached
def leading_pairs(A: Deflated, count: int) -> Eigenpairs:
    """Return the leading eigenpairs, the same at every call."""
    found = eigh(A, min(count, A.n - A.V.shape[1]), tol=_TOLERANCE, rng=0)
    return on_host(found.values), on_host(found.vectors).astype(A.dtype)


@dataclass(frozen=True, eq=False)
class DiffusionRows:
    """The matrix R = diag(w) M g(A), not stored: one row for each vertex, or for each new point.

    At times at which it is beyond the range of numbers, everything here is divided by e^log_scale.

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
    vertex : array (points,)
        The row of each input point.
    first : array or CSR matrix (m, n), or None
        M, the step to the point's own neighbours; None: there is none before g, and m = n.

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
    vertex: Array
    first: Any = None

    @property
    def n_points(self) -> int:
        """Number of points, duplicates included."""
        return len(self.vertex)

    @cached_property
    def _scaled(self) -> tuple[Filter, float]:
        return on_scale(self.filter, self.operator)

    @property
    def log_scale(self) -> float:
        """0, unless the time is so large that the rows are beyond the range of numbers."""
        return self._scaled[1]

    def weights(self, values: Array) -> Array:
        """Return g of eigenvalues."""
        return self._scaled[0](values)

    def __matmul__(self, X: Array) -> Array:
        """Return R X (m, k), X (n, k)."""
        return self.stepped(self._filtered(X))

    def transposed(self, Z: Any, tol: float | None = None) -> Array:
        """Return Rᵀ Z (n, k), Z (m, k) array or sparse."""
        weights = sparse.diags(self.weight)
        Z = weights @ Z if self.first is None else self.first.T @ (weights @ Z)
        return self._filtered(Z.toarray() if sparse.issparse(Z) else Z, tol)

    def of(self, points: Array) -> Array:
        """Return the rows of some points (p, n), or raise if the time is too large to store them.

        Cost: that of g(A) on p columns.
        """
        if self.log_scale:
            raise too_large(self.log_scale, self.operator.dtype)
        return self.transposed(self.unit_columns(self.vertex[points])).T

    def unit_columns(self, rows: Array) -> sparse.csc_matrix:
        """Return Z (m, k) for which Rᵀ Z are some of the rows, as columns."""
        count = len(rows)
        return sparse.csc_matrix(
            (np.ones(count), (rows, np.arange(count))), (len(self.weight), count)
        )

    def differences(self, i: Array, j: Array) -> sparse.csc_matrix:
        """Return Z (m, k) for which Rᵀ Z are the differences of rows i and j, as columns."""
        return self.unit_columns(i) - self.unit_columns(j)

    def sketch(self, k: int, rng: Rng, tol: float | None = None) -> Array:
        """Return R G / √k of the points (points, k), G random: distances within √(1/2k) of them.

        `tol` is the largest error of g by a series, as in `apply`; by default rounding.
        """
        G = random_block(self.operator.n, k, "gaussian", rng) / np.sqrt(k)
        return self.stepped(self._filtered(G, tol))[self.vertex]

    def leading(self, pairs: Eigenpairs | None = None) -> tuple[Array, float]:
        """Return coordinates of the points (points, k) by the leading eigenpairs of A, k = 64.

        Their distances are those of the rows but for the other eigenvectors, whose largest weight,
        as a share of the largest of all, is returned with them. `pairs` are the `leading_pairs`,
        where they are known.
        """
        found, vectors = pairs or leading_pairs(self.operator, N_LEADING)
        lowest = self.operator.ends[0][0]  # |g| of the others is largest at an end
        weights = self.weights(np.append(found, lowest))
        k = len(found)
        left_out = float(np.abs(weights[k - 1 :]).max() / np.abs(weights).max())
        values = self.stepped(vectors * weights[:k].astype(vectors.dtype))
        return values[self.vertex], left_out

    def _filtered(self, X: Array, tol: float | None = None) -> Array:
        projected = self.operator.project(X)
        return self.operator.project(apply([self._scaled[0]], self.operator, projected, tol)[0])

    def stepped(self, H: Array) -> Array:
        """Take the last step: diag(w) M H (n, k)."""
        values = H if self.first is None else multiply(self.first, H)
        return values * self.weight.astype(values.dtype)[:, None]
