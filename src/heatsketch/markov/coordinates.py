"""Coordinates of the vertices whose Euclidean distances are diffusion distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heatsketch._random import random_block
from heatsketch._typing import Array
from heatsketch.markov.rows import leading_pairs
from heatsketch.operators.operator import Deflated
from heatsketch.spectral.apply import SPECTRAL_LIMIT, apply, on_scale
from heatsketch.spectral.dense import all_eigenpairs
from heatsketch.spectral.density import SpectralDensity, spectral_density
from heatsketch.spectral.filters import Filter

FEW_VERTICES = 512  # up to which all eigenpairs cost next to nothing
COLUMNS_AT_A_TIME = 32
_NEGLIGIBLE = 1e-2  # f of an eigenvalue next to the largest f: 1e-4 of a squared distance
_ERROR = 2e-3  # of the last eigenvalue, relative to the first: twice its residual
_SERIES = 1e-6  # error of a polynomial in A, next to that of the columns
_NONE = SpectralDensity(np.empty(0), np.empty(0))


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

    @classmethod
    def of(cls, A: Deflated, count: int) -> Coordinates:
        """Compute `count` leading pairs; all of up to 512 vertices."""
        if A.n <= max(FEW_VERTICES, count + A.V.shape[1]):
            return cls.complete(A)
        return cls.with_pairs(A, *leading_pairs(A, count))

    @classmethod
    def with_pairs(cls, A: Deflated, values: Array, vectors: Array) -> Coordinates:
        """Return these leading pairs with the density of the other eigenvalues."""
        return cls(A, values, vectors, spectral_density(A.deflated(vectors)))

    @classmethod
    def complete(cls, A: Deflated) -> Coordinates:
        """Compute all pairs."""
        values, vectors = all_eigenpairs(A)
        order = np.argsort(-np.abs(values), kind="stable")
        return cls(A, values[order], vectors[:, order], _NONE)

    @property
    def count(self) -> float:
        """Number of eigenvalues."""
        return len(self.values) + float(self.others.counts.sum())

    def directions(self, f: Filter) -> float:
        """Return the effective number of directions under a filter: (Σ f²)² / Σ f⁴.

        It is m if f² is the same for m eigenvalues and 0 for the others (the participation ratio).
        """
        squares = f.scaled(np.append(self.values, self.others.values))[0] ** 2
        counts = np.append(np.ones(len(self.values)), self.others.counts)
        total = float(counts @ squares)
        return total**2 / float(counts @ squares**2) if total > 0 else 1.0

    def are_complete(self, f: Filter) -> bool:
        """Say whether the eigenvalues whose pairs are not known are negligible under a filter."""
        if not len(self.others.values):
            return True
        weights = np.abs(f.scaled(np.append(self.values, self.others.values))[0])
        return bool(weights[len(self.values) :].max() <= _NEGLIGIBLE * weights.max())

    def error(self, f: Filter, n_sketch: int) -> float:
        """Return the relative error of a mean squared distance by a sketch of so many columns.

        That of the part which the others have in it, √(2/r): one standard deviation.
        """
        squares = f.scaled(np.append(self.values, self.others.values))[0] ** 2
        others = float(self.others.counts @ squares[len(self.values) :])
        total = float(squares[: len(self.values)].sum()) + others
        return others / total * np.sqrt(2 / n_sketch) if total > 0 else 0.0

    def under(
        self, f: Filter, n_sketch: int, seed: int, numbers: Array | None = None
    ) -> tuple[Array, float]:
        """Return the coordinates (n, r) under a filter, divided by e^s, and s.

        The other eigenvalues are sketched by `n_sketch` columns if they count; `numbers` (n,) of
        the vertices choose the rows of G.
        """
        return self.under_each([f], n_sketch, seed, numbers)[0]

    def under_each(
        self, filters: Sequence[Filter], n_sketch: int, seed: int, numbers: Array | None = None
    ) -> list[tuple[Array, float]]:
        """Return the same under several filters, by the products of one."""
        K, found = len(self.values), []
        for f in filters:
            weights, log_scale = f.scaled(self.values)
            width = K if self.are_complete(f) else K + n_sketch
            F = np.empty((len(self.vectors), width), self.vectors.dtype)
            F[:, :K] = self.vectors * weights.astype(F.dtype)
            found.append((F, log_scale))
        some = [i for i, (F, _) in enumerate(found) if F.shape[1] > K]
        for start in range(0, n_sketch if some else 0, COLUMNS_AT_A_TIME):
            width = min(COLUMNS_AT_A_TIME, n_sketch - start)
            rng = np.random.default_rng([seed, start])
            G = random_block(self.operator.n, width, "gaussian", rng, numbers=numbers)
            sketches = self._rest_under([filters[i] for i in some], G / np.sqrt(n_sketch))
            for i, (block, rest_scale) in zip(some, sketches, strict=True):
                F, log_scale = found[i]
                F[:, K + start : K + start + width] = block * np.exp(rest_scale - log_scale)
        return found

    def sketch(self, f: Filter, k: int, seed: int) -> tuple[Array, float]:
        """Return f(A) G / √k (n, k) of a Gaussian G, divided by e^s, and s.

        The other eigenvalues always take part: they are what near points differ by. Without the
        leading ones, between which the polynomial need not tell, they take few products.
        """
        weights, log_scale = f.scaled(self.values)
        G = random_block(self.operator.n, k, "gaussian", seed) / np.sqrt(k)
        weighted = weights[:, None] * (self.vectors.T @ G)
        F = self.vectors @ weighted.astype(self.vectors.dtype)
        if len(self.others.values):
            block, rest_scale = self._rest_under([f], G)[0]
            F += (block * np.exp(rest_scale - log_scale)).astype(F.dtype)
        return F, log_scale

    def _rest_under(self, filters: Sequence[Filter], G: Array) -> list[tuple[Array, float]]:
        """Return f(A_⊥) G under each filter, divided by e^s, and s."""
        rest = self._rest
        scaled, log_scales = zip(*(on_scale(f, rest) for f in filters), strict=True)
        blocks = apply(scaled, rest, rest.project(G), _SERIES)
        return list(zip(map(rest.project, blocks), log_scales, strict=True))

    @cached_property
    def _rest(self) -> Deflated:
        """A_⊥; to find the ends of its spectrum anew would cost more than most filters."""
        low = min(float(self.others.values.min()), 0.0)
        high = max(float(self.values[-1]) + _ERROR * float(np.abs(self.values).max()), 0.0)
        V = self.operator.deflated(self.vectors).V
        return Deflated(self.operator.A, V, (low, high))

    def all_known(self) -> Coordinates:
        """Return all pairs if the matrix is small enough (2,048 vertices); else the same."""
        if not len(self.others.values) or self.operator.n > SPECTRAL_LIMIT:
            return self
        return Coordinates.complete(self.operator)
