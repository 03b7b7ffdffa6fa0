"""The rows that a diffusion compares, and coordinates with their Euclidean distances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._arrays import Array, Rng
from heatsketch._random import random_block
from heatsketch.core.blocks import Block, blocks_of, multiply
from heatsketch.core.operators import Affine, Bounds, Deflated, Operator, lanczos_margin
from heatsketch.spectral.eigen import all_eigenpairs, leading_eigenpairs
from heatsketch.spectral.filters import Filter
from heatsketch.spectral.functions import SPECTRAL_LIMIT, apply, check_range
from heatsketch.spectral.recurrences import SpectralDensity, spectral_density

FEW_VERTICES = 512  # up to which all eigenpairs cost next to nothing
COLUMNS_AT_A_TIME = 32
_NEGLIGIBLE = 1e-2  # f of an eigenvalue next to the largest f: 1e-4 of a squared distance
_ERROR = 2e-3  # of the last eigenvalue, relative to the first: twice its residual
SERIES = 1e-6  # error of a polynomial in A, next to that of the columns
N_LEADING = 64  # eigenpairs: those that count at long times
_TOLERANCE = 1e-3  # of their residuals: what it moves in a distance is less than what is sketched
_LOWER_TOLERANCE = 1e-6  # of those near -1, which count at long times alone
_UNSURE = 2.0  # times the largest f that is known of the others, f may be elsewhere


@dataclass(frozen=True, eq=False)
class Step:
    """The last step S of every walk: H -> M H, in the Markov form divided by M √π.

    M leads from each point, old or new, to its own neighbours. With √π Z in place of H, the Markov
    form gives means of Z over the neighbours, because the rows of diag(1 / M √π) M diag(√π) sum
    to 1.

    Attributes
    ----------
    matrix : Operator, array or CSR matrix (m, n)
        M, perhaps on a device.
    measure : array (n,)
        π.
    is_markov : bool
    beside : array or CSR matrix (r, n) or None
        Further rows of M, of points that are no vertices.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> d = hs.diffusion(hs.datasets.circle(60, rng=0)[0])
    >>> np.allclose(d.step() @ d.root[:, None], 1)
    True
    """

    matrix: Any
    measure: Array
    is_markov: bool
    beside: Any = None

    @cached_property
    def mass(self) -> Array:
        """M √π (m,)."""
        root = np.sqrt(self.measure)
        is_operator = isinstance(self.matrix, Operator)  # A √π = √π
        own = root if is_operator else np.asarray(self.matrix @ root, dtype=float)
        return own if self.beside is None else np.append(own, self.beside @ root)

    def __matmul__(self, H: Block) -> Block:
        """Return S H (m, k), an array of an array, and a tensor of a tensor where M is too."""
        H = self.beside_root(H)
        product = multiply(self.matrix, H)
        if self.beside is not None:
            product = np.vstack([product, multiply(self.beside, H)])
        return divided(product, self.is_markov)

    def beside_root(self, H: Block) -> Block:
        """Return H with √π as its last column (n, k + 1): one product then gives M H and M √π."""
        blocks = blocks_of(H)
        root = blocks.xp.sqrt(blocks.native(self.measure, H.dtype))
        return blocks.xp.column_stack([H, root])

    def transposed(self, Z: Any) -> Array:
        """Return Sᵀ Z (n, k), Z (m, k) array or sparse."""
        if self.is_markov:
            Z = sparse.diags(1 / self.mass) @ Z
        if sparse.issparse(Z) and not sparse.issparse(self.matrix):
            Z = Z.toarray()
        n = len(self.measure)
        own, others = (Z, None) if self.beside is None else (Z[:n], Z[n:])
        Z = self.matrix.T @ own
        if others is not None:
            Z = Z + self.beside.T @ others
        return Z.toarray() if sparse.issparse(Z) else Z

    def restricted(self, rows: Array) -> Step:
        """Return the step between some of the vertices, and from rows beside them, ascending."""
        M, others = self.matrix, self.beside
        vertices, beside = np.split(rows, [np.searchsorted(rows, len(self.measure))])
        is_operator = isinstance(M, Operator)
        M = M.restricted(vertices) if is_operator else M[vertices][:, vertices]
        if others is not None:
            others = others[beside - len(self.measure)][:, vertices]
        return Step(M, self.measure[vertices], self.is_markov, others)


def divided(product: Block, is_markov: bool) -> Block:
    """Return M H (m, k) from M [H, √π], in the Markov form divided by M √π."""
    rows = product[:, :-1]
    return rows / product[:, -1:] if is_markov else rows


@dataclass(frozen=True, eq=False)
class DiffusionRows:
    """The matrix R = S g(A), not stored: one row for each vertex, or for each new point.

    Diffusion distances are the Euclidean distances of its rows. `Diffusion.rows` makes it; a
    `HeatSketch` is R G / √k.

    Attributes
    ----------
    operator : Deflated
        A (n, n) without the trivial direction √π; n vertices.
    filter : Filter
        g.
    vertex : array (points,)
        The row of each input point.
    step : Step or None
        S, the last step; None: R is g(A).

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> X, angle = hs.datasets.circle(60, rng=0)
    >>> rows = hs.diffusion(X).rows(8)
    >>> R = rows.array(np.arange(60))  # (60, n), stored
    >>> D = np.linalg.norm(R[0] - R[1])
    >>> np.allclose(D, hs.diffusion_distance(hs.diffusion(X), 8, pairs=([0], [1])))
    True
    """

    operator: Deflated
    filter: Filter
    vertex: Array
    step: Step | None = None

    @property
    def n_points(self) -> int:
        """Number of points, duplicates included."""
        return len(self.vertex)

    def transposed(self, Z: Any, tol: float | None = None) -> Array:
        """Return Rᵀ Z (n, k), Z (m, k) array or sparse."""
        if self.step is not None:
            Z = self.step.transposed(Z)
        Z = Z.toarray() if sparse.issparse(Z) else Z
        return apply([self.filter], self.operator, Z, tol)[0]

    def array(self, points: Array) -> Array:
        """Return the rows of some points (p, n), or raise if the time is too large.

        Cost: that of g(A) on p columns.
        """
        check_range(self.filter, self.operator)
        return self.transposed(self.unit_columns(self.vertex[points])).T

    def unit_columns(self, rows: Array) -> sparse.csc_matrix:
        """Return Z (m, k) for which Rᵀ Z are some of the rows, as columns."""
        m, count = self.operator.n if self.step is None else len(self.step.mass), len(rows)
        return sparse.csc_matrix((np.ones(count), (rows, np.arange(count))), (m, count))

    def sketch(self, k: int, rng: Rng, tol: float | None = None) -> Array:
        """Return R G / √k of the points (points, k), G random: distances within √(1/2k) of them.

        `tol` is the largest error of g by a series, as in `apply`; by default rounding.
        """
        G = random_block(self.operator.n, k, "gaussian", rng) / np.sqrt(k)
        return self.at_points(apply([self.filter], self.operator, G, tol)[0])

    def at_points(self, H: Array) -> Array:
        """Take the last step, S H of H (n, k): the row of each input point (points, k)."""
        return (H if self.step is None else self.step @ H)[self.vertex]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The leading eigenpairs of A without its trivial direction, and the density of the others.

    Rows of V f(Λ) have the diffusion distances of the filter f, where the other eigenvalues do not
    count. Where they do, columns of f(A_⊥) G / √r are added, with A_⊥ = A without these pairs:
    only this part of a squared distance has an error, of √(2/r) of it.
    """

    operator: Deflated
    values: Array  # (K,), descending, then those near -1; by modulus if they are all
    vectors: Array  # (n, K)
    remaining: SpectralDensity  # of the eigenvalues whose pairs are not computed
    bounds: Bounds = (0.0, 0.0)  # of these eigenvalues

    @classmethod
    def from_operator(cls, A: Deflated, count: int = N_LEADING) -> Coordinates:
        """Compute `count` leading pairs; all of up to 512 vertices."""
        if A.n <= max(FEW_VERTICES, count + A.n_deflated):
            return cls.from_all_pairs(A)
        values, vectors, _ = leading_eigenpairs(A, count, _TOLERANCE)
        vectors = A.blocks.host(vectors).astype(A.dtype)
        remaining = spectral_density(A.deflated(vectors))
        lowest, highest = float(remaining.values.min()), float(remaining.values.max())
        low = max(lowest - lanczos_margin(A.n, lowest, highest), A.spectrum[0])
        high = float(values[-1]) + _ERROR * float(np.abs(values).max())
        return cls(A, values, vectors, remaining, (low, high))

    @classmethod
    def from_all_pairs(cls, A: Deflated) -> Coordinates:
        """Compute all pairs."""
        values, vectors = all_eigenpairs(A)
        order = np.argsort(-np.abs(values), kind="stable")
        none = SpectralDensity(np.empty(0), np.empty(0))
        return cls(A, values[order], vectors[:, order], none)

    @cached_property
    def completed(self) -> Coordinates:
        """All pairs if the matrix is small enough (2,048 vertices); else the same."""
        if not len(self.remaining.values) or self.operator.n > SPECTRAL_LIMIT:
            return self
        return Coordinates.from_all_pairs(self.operator)

    @cached_property
    def at_both_ends(self) -> Coordinates:
        """The same with as many pairs of the smallest eigenvalues; all pairs if they are few."""
        A, count = self.operator, len(self.values)
        if A.n <= max(SPECTRAL_LIMIT, 2 * count + A.n_deflated):
            return Coordinates.from_all_pairs(A)
        opposite = Deflated(Affine(A.A, -1.0), A.deflated(self.vectors).V)
        found, vectors, residuals = leading_eigenpairs(opposite, count, _LOWER_TOLERANCE)
        vectors = np.hstack([self.vectors, A.blocks.host(vectors).astype(A.dtype)])
        return Coordinates(
            A,
            np.append(self.values, -found),
            vectors,
            spectral_density(A.deflated(vectors)),
            (-float(found[-1]) - 2 * float(residuals.max()), self.bounds[1]),
        )

    def enough_for(self, *filters: Filter) -> Coordinates:
        """Return the same, with pairs near -1 if powers may be large there.

        At a long time a few of these eigenvalues may have all of Σ f², and the density, whose nodes
        lie inside the spectrum, does not show them.
        """
        known = np.concatenate([self.bounds[:1], self.values, self.remaining.values])
        for f in filters if len(self.remaining.values) else ():
            sizes = np.abs(f.with_log_scale(np.abs(known) if f.of_powers else known)[0])
            largest = sizes[len(self.values) :].max()  # of the others, and of the last pair
            if sizes[0] > max(_UNSURE * largest, _NEGLIGIBLE * sizes.max()):
                return self.at_both_ends
        return self

    def directions(self, f: Filter) -> float:
        """Return the effective number of directions under a filter: (Σ f²)² / Σ f⁴.

        It is m if f² is the same for m eigenvalues and 0 for the others (the participation ratio).
        """
        one = self.enough_for(f)
        squares = f.with_log_scale(np.append(one.values, one.remaining.values))[0] ** 2
        counts = np.append(np.ones(len(one.values)), one.remaining.counts)
        total, squared = float(counts @ squares), float(counts @ squares**2)
        return total**2 / squared if total > 0 else 1.0

    def remaining_part(self, f: Filter) -> tuple[float, bool]:
        """Return the part of Σ f² of the eigenvalues whose pairs are not known, and if they count.

        They do if f of one of them is more than 1e-2 of the largest.
        """
        squares = f.with_log_scale(np.append(self.values, self.remaining.values))[0] ** 2
        leading, remaining = np.split(squares, [len(self.values)])
        left_out = float(self.remaining.counts @ remaining)
        total = float(leading.sum()) + left_out
        counts = remaining.max(initial=0.0) > _NEGLIGIBLE**2 * squares.max(initial=0.0)
        return left_out / (total or 1.0), bool(counts)

    def under(
        self, filters: Sequence[Filter], n_sketch: int, seed: int, numbers: Array | None = None
    ) -> list[Array]:
        """Return the coordinates (n, r) under several filters, by the products of one.

        The other eigenvalues are sketched by `n_sketch` columns if they count; `numbers` (n,) of
        the vertices choose the rows of G.
        """
        one = self.enough_for(*filters)
        if one is not self:
            return one.under(filters, n_sketch, seed, numbers)
        K, blocks, sketched = len(self.values), [], []
        for f in filters:
            counts = self.remaining_part(f)[1]
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
            images = apply([f for f, _ in sketched], self._remaining_operator, G, SERIES)
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
        if len(self.remaining.values):
            F += apply([f], self._remaining_operator, G, SERIES)[0]
        return F

    @cached_property
    def _remaining_operator(self) -> Deflated:
        """A_⊥; to find the ends of its spectrum anew would cost more than most filters."""
        low, high = self.bounds
        V = self.operator.deflated(self.vectors).V
        return Deflated(self.operator.A, V, (min(low, 0.0), max(high, 0.0)))


# What computes the leading pairs of an operator: `leading_pairs`, or a cache of it by a caller who
# knows that they will be needed again. They are as large as 64 coordinates of all points, too much
# to be kept by a model.
LeadingPairs = Callable[[Deflated, int], Coordinates]
leading_pairs: LeadingPairs = Coordinates.from_operator
