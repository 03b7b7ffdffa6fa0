"""The rows that a diffusion compares, and coordinates with their Euclidean distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._random import random_block
from heatsketch._typing import Array, Rng
from heatsketch.operators.operator import Deflated, multiply
from heatsketch.spectral.apply import SPECTRAL_LIMIT, apply, check_range
from heatsketch.spectral.eigenpairs import all_eigenpairs, cached, leading_eigenpairs
from heatsketch.spectral.filters import Filter
from heatsketch.spectral.recurrences import SpectralDensity, spectral_density

FEW_VERTICES = 512  # up to which all eigenpairs cost next to nothing
COLUMNS_AT_A_TIME = 32
_NEGLIGIBLE = 1e-2  # f of an eigenvalue next to the largest f: 1e-4 of a squared distance
_ERROR = 2e-3  # of the last eigenvalue, relative to the first: twice its residual
SERIES = 1e-6  # error of a polynomial in A, next to that of the columns
N_LEADING = 64  # eigenpairs: those that count at long times
_TOLERANCE = 1e-3  # of their residuals: what it moves in a distance is less than what is sketched


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

    def transposed(self, Z: Any, tol: float | None = None) -> Array:
        """Return Rᵀ Z (n, k), Z (m, k) array or sparse."""
        weights = sparse.diags(self.weight)
        Z = weights @ Z if self.first is None else self.first.T @ (weights @ Z)
        Z = Z.toarray() if sparse.issparse(Z) else Z
        return apply([self.filter], self.operator, Z, tol)[0]

    def of(self, points: Array) -> Array:
        """Return the rows of some points (p, n), or raise if the time is too large.

        Cost: that of g(A) on p columns.
        """
        check_range(self.filter, self.operator)
        return self.transposed(self.unit_columns(self.vertex[points])).T

    def unit_columns(self, rows: Array) -> sparse.csc_matrix:
        """Return Z (m, k) for which Rᵀ Z are some of the rows, as columns."""
        count = len(rows)
        return sparse.csc_matrix(
            (np.ones(count), (rows, np.arange(count))), (len(self.weight), count)
        )

    def sketch(self, k: int, rng: Rng, tol: float | None = None) -> Array:
        """Return R G / √k of the points (points, k), G random: distances within √(1/2k) of them.

        `tol` is the largest error of g by a series, as in `apply`; by default rounding.
        """
        G = random_block(self.operator.n, k, "gaussian", rng) / np.sqrt(k)
        return self.of_points(apply([self.filter], self.operator, G, tol)[0])

    def of_points(self, H: Array) -> Array:
        """Take the last step, diag(w) M H of H (n, k): the row of each input point (points, k)."""
        values = H if self.first is None else multiply(self.first, H)
        return (values * self.weight.astype(values.dtype)[:, None])[self.vertex]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The leading eigenpairs of A without its trivial direction, and the density of the others.

    Rows of V f(Λ) have the diffusion distances of the filter f, where the other eigenvalues do not
    count. Where they do, columns of f(A_⊥) G / √r stand beside, with A_⊥ = A without these pairs:
    only this part of a squared distance has an error, of √(2/r) of it.
    """

    operator: Deflated
    values: Array  # (K,), descending; by modulus if they are all
    vectors: Array  # (n, K)
    others: SpectralDensity

    @staticmethod
    @cached
    def of(A: Deflated, count: int) -> Coordinates:
        """Compute `count` leading pairs; all of up to 512 vertices."""
        if A.n <= max(FEW_VERTICES, count + A.V.shape[1]):
            return Coordinates.complete(A)
        values, vectors, _ = leading_eigenpairs(A, count, _TOLERANCE)
        vectors = A.blocks.host(vectors).astype(A.dtype)
        return Coordinates(A, values, vectors, spectral_density(A.deflated(vectors)))

    @staticmethod
    def complete(A: Deflated) -> Coordinates:
        """Compute all pairs."""
        values, vectors = all_eigenpairs(A)
        order = np.argsort(-np.abs(values), kind="stable")
        none = SpectralDensity(np.empty(0), np.empty(0))
        return Coordinates(A, values[order], vectors[:, order], none)

    def all_known(self) -> Coordinates:
        """Return all pairs if the matrix is small enough (2,048 vertices); else the same."""
        if not len(self.others.values) or self.operator.n > SPECTRAL_LIMIT:
            return self
        return Coordinates.complete(self.operator)

    def directions(self, f: Filter) -> float:
        """Return the effective number of directions under a filter: (Σ f²)² / Σ f⁴.

        It is m if f² is the same for m eigenvalues and 0 for the others (the participation ratio).
        """
        squares = f.with_log_scale(np.append(self.values, self.others.values))[0] ** 2
        counts = np.append(np.ones(len(self.values)), self.others.counts)
        total, squared = float(counts @ squares), float(counts @ squares**2)
        return total**2 / squared if total > 0 else 1.0

    def part_of_others(self, f: Filter) -> tuple[float, bool]:
        """Return the part of Σ f² of the eigenvalues whose pairs are not known, and if they count.

        They do if f of one of them is more than 1e-2 of the largest.
        """
        squares = f.with_log_scale(np.append(self.values, self.others.values))[0] ** 2
        known, others = np.split(squares, [len(self.values)])
        left_out = float(self.others.counts @ others)
        total = float(known.sum()) + left_out
        counts = others.max(initial=0.0) > _NEGLIGIBLE**2 * squares.max(initial=0.0)
        return left_out / (total or 1.0), bool(counts)

    def under(
        self, filters: Sequence[Filter], n_sketch: int, seed: int, numbers: Array | None = None
    ) -> list[Array]:
        """Return the coordinates (n, r) under several filters, by the products of one.

        The other eigenvalues are sketched by `n_sketch` columns if they count; `numbers` (n,) of
        the vertices choose the rows of G.
        """
        K, blocks, sketched = len(self.values), [], []
        for f in filters:
            counts = self.part_of_others(f)[1]
            F = np.empty((len(self.vectors), K + n_sketch * counts), self.vectors.dtype)
            F[:, :K] = self.vectors * f(self.values).astype(F.dtype)
            blocks.append(F)
            if counts:
                sketched.append((f, F))
        for start in range(0, n_sketch if sketched else 0, COLUMNS_AT_A_TIME):
            width = min(COLUMNS_AT_A_TIME, n_sketch - start)
            rng = np.random.default_rng([seed, start])
            G = random_block(self.operator.n, width, "gaussian", rng, numbers=numbers)
            G /= np.sqrt(n_sketch)
            images = apply([f for f, _ in sketched], self._rest, G, SERIES)
            for (_, F), image in zip(sketched, images, strict=True):
                F[:, K + start : K + start + width] = image
        return blocks

    def sketch(self, f: Filter, k: int, seed: int) -> Array:
        """Return f(A) G / √k (n, k) of a Gaussian G.

        Without the leading pairs, between which the polynomial need not tell, the others take few
        products; they always take part, because near points differ by them.
        """
        G = random_block(self.operator.n, k, "gaussian", seed) / np.sqrt(k)
        F = self.vectors @ (f(self.values)[:, None] * (self.vectors.T @ G))
        if len(self.others.values):
            F += apply([f], self._rest, G, SERIES)[0]
        return F

    @cached_property
    def _rest(self) -> Deflated:
        """A_⊥; to find the ends of its spectrum anew would cost more than most filters."""
        low = min(float(self.others.values.min()), 0.0)
        high = max(float(self.values[-1]) + _ERROR * float(np.abs(self.values).max()), 0.0)
        V = self.operator.deflated(self.vectors).V
        return Deflated(self.operator.A, V, (low, high))
