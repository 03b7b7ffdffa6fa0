"""Coordinates whose Euclidean distances are diffusion distances, at any time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from heatsketch._array import random_block
from heatsketch._typing import Array
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.pieces import inner
from heatsketch.markov.rows import N_LEADING, leading_pairs
from heatsketch.operators.deflated import Deflated
from heatsketch.spectral.apply import SPECTRAL_LIMIT, apply
from heatsketch.spectral.chebyshev import spectrum_ends
from heatsketch.spectral.dense import all_eigenpairs
from heatsketch.spectral.filter_base import Filter

_NEGLIGIBLE = 1e-2  # f of the last pair next to f of the first: 1e-4 of a squared distance
_NEGLIGIBLE_WEIGHT = 1e-12  # of an eigenvector, relative to the largest
_PRESENT = 1e-4  # of an eigenvector in a component, relative to its largest entry
COLUMNS_AT_A_TIME = 32
REMEMBERED_ENTRIES = 2**25  # of the blocks of the rest
_ERROR = 1e-3  # of the last eigenvalue, relative to the first: ten times its residual


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The leading eigenpairs of a diffusion, and a sketch of what they leave out.

    With all pairs (up to 2,048 points) distances are exact. With some, those of large times are;
    at small times what is left is A_⊥^t G / √r, with A_⊥ = A less these pairs: only this part of a
    squared distance has an error, of √(2/r) of it.

    Attributes
    ----------
    values : array (K,)
        The largest ones, descending; by modulus if they are all.
    vectors : array (n, K)
    rest : Deflated or None
        A less the pairs; None if they are all.
    lowest : float
        A lower bound on the eigenvalues of the rest.
    columns : int
        Columns r of the sketch.
    seed : int
        Of the sketch.
    first : array (C,) or None
        The first pair of each component, if each is looked at by itself.
    numbers : array (n,) or None
        Of the vertices, by which rows of G are drawn; None: by their places.
    """

    values: Array
    vectors: Array
    rest: Deflated | None
    lowest: float
    columns: int
    seed: int
    first: Array | None = None
    numbers: Array | None = None

    @classmethod
    def of(
        cls,
        diffusion: Diffusion,
        count: int,
        columns: int,
        seed: int,
        labels: Array | None = None,
        numbers: Array | None = None,
    ) -> Coordinates:
        """Compute all pairs of up to 2,048 points, else at least `count` leading ones.

        With the `pieces` of the diffusion as labels (n,), those of distances within them.
        """
        A = diffusion.deflated() if labels is None else inner(diffusion, labels)
        count = max(N_LEADING, count)
        if diffusion.n <= max(SPECTRAL_LIMIT, count + 1):
            values, vectors = all_eigenpairs(A)
            order = np.argsort(-np.abs(values), kind="stable")
            return cls(values[order], vectors[:, order], None, 0.0, columns, seed)
        values, vectors = leading_pairs(A, count)
        lowest = spectrum_ends(A)[0][0]
        first = None if labels is None else _first_pairs(vectors, labels)
        rest = Remaining(A.A, A.without(vectors).V, min(lowest, 0.0), _above(values))
        return cls(values, vectors, rest, lowest, columns, seed, first, numbers)

    def is_complete(self, f: Filter) -> bool:
        """Say whether what the pairs leave out is negligible under a filter."""
        weights = np.abs(f.scaled(np.append(self.values, self.lowest))[0])
        left_out = weights[-2:].max()  # the others lie between: |f| is largest at an end
        # A component whose own pairs are left out would be a point.
        least = weights.max() if self.first is None else weights[self.first].min()
        limit = max(_NEGLIGIBLE * least, _NEGLIGIBLE_WEIGHT * weights.max())
        return self.rest is None or bool(left_out <= limit)

    def weights(self, f: Filter) -> tuple[Array, float]:
        """Return f(λ) of the pairs (K,), 0 where it is rounding, divided by e^s; and s."""
        weights, log_scale = f.scaled(self.values)
        size = np.abs(weights)
        return np.where(size > _NEGLIGIBLE_WEIGHT * size.max(), weights, 0.0), log_scale

    def rough(self) -> Coordinates:
        """Return the same pairs with a sketch of few columns, for shares of many pairs."""
        return replace(self, columns=min(self.columns, COLUMNS_AT_A_TIME))

    def rest_of(self, *filters: Filter) -> Rest:
        """Return f(A_⊥) G / √r of what the pairs leave out; empty if that is negligible."""
        if all(map(self.is_complete, filters)):
            return Rest(self, filters, 0)
        return Rest(self, filters, self.columns)


@dataclass(frozen=True, eq=False)
class Remaining(Deflated):
    """A without its leading eigenvectors, of which the ends of the spectrum are known.

    To find them again would cost more than most filters.
    """

    low: float
    high: float

    @property
    def spectrum(self) -> tuple[float, float]:
        """The interval from `low` to `high`."""
        return self.low, self.high


def _above(values: Array) -> float:
    """Return a bound on the eigenvalues that are left; their leading ones have an error."""
    return max(float(values[-1]) + _ERROR * float(np.abs(values).max()), 0.0)


class Rest:
    """Blocks (columns, f(A_⊥) G / √r of them for every filter), on the scale of `weights`.

    Each iteration gives the same blocks, of a few columns each: small ones are remembered, large
    ones are computed again, so that the memory needed does not grow with r.
    """

    def __init__(self, coordinates: Coordinates, filters: Sequence[Filter], columns: int) -> None:
        self._of, self._filters, self._columns = coordinates, filters, columns
        self._scales = [f.scaled(coordinates.values)[1] for f in filters]
        self._kept: dict[int, list[Array]] = {}

    def __iter__(self) -> Iterator[tuple[slice, list[Array]]]:
        """Yield columns and blocks (n, c)."""
        small = len(self._of.vectors) * self._columns * len(self._filters) <= REMEMBERED_ENTRIES
        for start in range(0, self._columns, COLUMNS_AT_A_TIME):
            columns = slice(start, min(start + COLUMNS_AT_A_TIME, self._columns))
            blocks = self._kept.get(start) or self._blocks(columns)
            if small:
                self._kept[start] = blocks
            yield columns, blocks

    def _blocks(self, columns: slice) -> list[Array]:
        A, r = self._of.rest, self._of.columns
        assert A is not None
        rng = np.random.default_rng([self._of.seed, columns.start])
        k = columns.stop - columns.start
        G = random_block(A.n, k, "gaussian", rng, numbers=self._of.numbers)
        blocks = apply(self._filters, A, A.project(G / np.sqrt(r)))
        scales = [np.exp(b.log_scale - s) for b, s in zip(blocks, self._scales, strict=True)]
        return [
            A.project(b.values) * b.values.dtype.type(scale)
            for b, scale in zip(blocks, scales, strict=True)
        ]


def _first_pairs(vectors: Array, labels: Array) -> Array:
    """Return for each component (C,) of two points or more the first vector that is not 0 there."""
    found = present(vectors, labels)[np.bincount(labels) > 1]
    return np.where(found.any(axis=1), np.argmax(found, axis=1), vectors.shape[1] - 1)


def present(vectors: Array, labels: Array) -> Array:
    """Say of each group of rows (C,) which vectors (n, K) are more than rounding there, (C, K)."""
    order, starts = np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))
    peaks = np.maximum.reduceat(np.abs(vectors)[order], np.append(0, starts[:-1]), axis=0)
    found: Array = peaks > _PRESENT * peaks.max(axis=0)
    return found
