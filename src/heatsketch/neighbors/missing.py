"""Missing entries of points, filled by a walk to the nearest rows; distances without them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heatsketch._random import content_order
from heatsketch._tiles import filled, for_each_tile
from heatsketch._typing import Array

MOST_DONORS = 4096  # rows that others are compared with: each with all of them
_MOST_ROUNDS = 8
_TILE = 512  # rows compared at a time, of so many entries of neighbours
_ENTRIES = 2**20
_NONE = 1e-12  # of weight, below which no neighbour has an entry


@dataclass(frozen=True, eq=False)
class Donors:
    """Rows by whose entries missing ones are filled.

    A missing entry becomes the mean of the entries that the nearest donors have there, with the
    weights exp(-d²/s²) of a step, s the distance to the (k // 2)-th of them; where no neighbour has
    the entry, the mean of all rows. The distance of a row x to a donor is that of the entries of x,

        d² = Σ_observed (x_i - z_i)² n_features / n_observed,

    where z is the donor, filled. Donors are filled the same way by one another, in rounds until
    their neighbours stay. The first round compares the entries that both have. A row that is a
    donor gets the entries that it got there, so a row is filled alike whenever it comes.

    Attributes
    ----------
    rows : array (m, d)
        Donors with gaps, NaN.
    filled : array (m, d)
        The same without gaps.
    mean : array (d,)
        Means of the entries of all rows.
    n_neighbors : int
    rounds : int
        Number of rounds.
    """

    rows: Array
    filled: Array
    mean: Array
    n_neighbors: int
    rounds: int

    @classmethod
    def of(cls, X: Array, n_neighbors: int) -> Donors:
        """Take donors from rows X (n, d) by their content, and fill them."""
        there = ~np.isnan(X)
        mean = np.nanmean(X, axis=0)
        order = content_order(np.hstack([np.where(there, X, 0.0), there]))[:MOST_DONORS]
        rows = X[order]
        _, first = np.unique(_keys(rows), return_index=True)
        rows = rows[np.sort(first)]  # each once
        gaps = np.flatnonzero(np.isnan(rows).any(axis=1))
        k = min(n_neighbors, len(rows) - 1)
        donors = cls(rows, np.where(np.isnan(rows), mean, rows), mean, k, 0)
        nearest: Array | None = None
        for number in range(1, _MOST_ROUNDS + 1):
            found, places = donors._round(rows[gaps], own=gaps, both=number == 1)
            filled = rows.copy()
            filled[gaps] = found
            donors = cls(rows, filled, mean, k, number)
            if nearest is not None and (places == nearest).all():
                break
            nearest = places
        return donors

    def fill(self, X: Array) -> Array:
        """Return rows X (m, d) with their missing entries filled, in their precision."""
        gaps = np.flatnonzero(np.isnan(X).any(axis=1))
        if not len(gaps):
            return X
        filled = X.copy()
        known = np.array([self._place_of.get(key, -1) for key in _keys(X[gaps]).tolist()], int)
        is_donor = known >= 0
        filled[gaps[is_donor]] = self.filled[known[is_donor]]
        others = gaps[~is_donor]
        if len(others):
            filled[others] = self._round(X[others].astype(float))[0]
        return filled

    @cached_property
    def _place_of(self) -> dict[bytes, int]:
        """The number of each donor by its content."""
        return {key: place for place, key in enumerate(_keys(self.rows).tolist())}

    def _round(self, X: Array, own: Array | None = None, both: bool = False) -> tuple[Array, Array]:
        """Return rows (m, d) filled once, and the numbers of their neighbours (m, k), ascending.

        `own` (m,) are the rows' own numbers among the donors, which are left out. With `both` only
        entries that donors have, too, are compared.
        """
        d = X.shape[1]
        there = ~np.isnan(self.rows)
        # Centred, so that sums of squares lose no digits to an offset.
        Z = np.where(there, self.rows - self.mean, 0.0) if both else self.filled - self.mean
        has, squares = there.astype(float), Z * Z

        def work(tile: slice) -> tuple[Array, Array]:
            x = X[tile] - self.mean
            seen = ~np.isnan(x)
            x, weight = np.where(seen, x, 0.0), seen.astype(float)
            if both:
                count = weight @ has.T
                squared = (x * x) @ has.T + weight @ squares.T - 2 * (x @ Z.T)
            else:
                count = np.broadcast_to(weight.sum(axis=1)[:, None], (len(x), len(Z)))
                squared = (x * x).sum(axis=1)[:, None] + weight @ squares.T - 2 * (x @ Z.T)
            with np.errstate(divide="ignore", invalid="ignore"):
                squared = np.where(count > 0, np.maximum(squared, 0) * d / count, np.inf)
            if own is not None:
                squared[np.arange(len(x)), own[tile]] = np.inf
            k = self.n_neighbors
            nearest = np.sort(np.argpartition(squared, k - 1, axis=1)[:, :k], axis=1)
            # From differences, so that the same row has the same bits beside any others.
            common = weight[:, None] * has[nearest] if both else weight[:, None]  # (m, k, d)
            apart = common * (x[:, None] - Z[nearest])
            with np.errstate(divide="ignore", invalid="ignore"):
                near = np.einsum("mkd,mkd->mk", apart, apart) * d / common.sum(axis=2)
            near = np.where(np.isnan(near), np.inf, near)  # without a common entry
            scale = np.partition(near, k // 2, axis=1)[:, k // 2, None]
            scale = np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)
            w = np.exp(-near / scale)
            given = w[:, :, None] * has[nearest]
            total = given.sum(axis=1)
            entries = np.where(there[nearest], self.rows[nearest] - self.mean, 0.0)
            sums = (given * entries).sum(axis=1)
            means = np.where(total > _NONE, sums / np.maximum(total, _NONE), 0.0)
            return np.where(seen, X[tile], means + self.mean), nearest

        tile = max(8, min(_TILE, _ENTRIES // (max(1, self.n_neighbors) * d)))
        parts = for_each_tile(work, len(X), tile)
        if not parts:
            return X, np.empty((0, self.n_neighbors), int)
        return tuple(np.vstack(part) for part in zip(*parts, strict=True))  # type: ignore[return-value]


def observed_distances(X: Array, i: Array, j: Array) -> Array:
    """Return the distances (m,) of rows i and j of X (n, d) by the entries that both have.

    √(Σ_both (x_i - x_j)² d / n_both), as scikit-learn's `nan_euclidean_distances`, from
    differences; NaN where they share no entry.
    """
    d = X.shape[1]

    def of_pairs(tile: slice) -> Array:
        apart = X[i[tile]] - X[j[tile]]
        both = np.count_nonzero(~np.isnan(apart), axis=1)
        mean = np.nansum(apart**2, axis=1) / np.where(both, both, np.nan)
        return np.sqrt(mean * d)  # type: ignore[no-any-return]

    return filled(of_pairs, i.shape, max(1, _ENTRIES // d))


def _keys(X: Array) -> Array:
    """Return the content of rows X (m, d) as one value each; NaN and zeros have one form."""
    plain = np.ascontiguousarray(np.where(np.isnan(X), np.nan, X + 0.0), dtype=float)
    return plain.view(np.dtype((np.void, plain.shape[1] * 8))).ravel()
