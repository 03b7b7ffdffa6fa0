"""Missing entries of points, filled by a walk to the nearest rows; distances without them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from heatsketch._arrays import Array
from heatsketch._random import content_order
from heatsketch._threads import filled, for_each_tile, sum_over_tiles
from heatsketch.neighbors.search import in_unit, smallest_of_rows

MOST_DONORS = 4096  # rows that others are compared with: each with all of them
_MOST_ROUNDS = 8
_TILE = 512  # rows compared at a time, of so many entries of neighbours
_ENTRIES = 2**20
_NONE = 1e-12  # of weight, below which no neighbour has an entry
_MOST_TRENDED = 256  # columns, among which trends are found


@dataclass(frozen=True, eq=False)
class Donors:
    """Rows by whose entries missing ones are filled.

    A missing entry becomes the mean of the entries that the nearest donors have there, with the
    weights exp(-d²/s²) of a step, s the distance to the (k // 2)-th of them, or to the last if that
    is 0; where no neighbour has the entry, the mean of all rows. The distance of a row x to a donor
    is that of the entries of x,

        d² = Σ_observed (x_i - z_i)² n_features / n_observed,

    where z is the donor, filled. Donors are filled the same way by one another, in rounds until
    their neighbours stay. The first round compares the entries that both have. A row that is a
    donor gets the entries that it got there, so a row is filled alike whenever it comes.

    Neighbours are beside a row, so that their mean lacks the way from them to the row. The trends
    of a row are t = B z, with the slopes B of each column by all others. An entry gets its trend
    less the same mean of its neighbours' trends, times the share from 0 to 1 by which entries of
    its column come nearest where they are left out.

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
    slopes : array (d, d) or None
        B, with zeros on its diagonal; None: no trends.
    trends : array (m, d) or None
        Those of the donors.
    share : array (d,)
    """

    rows: Array
    filled: Array
    mean: Array
    n_neighbors: int
    rounds: int = 0
    slopes: Array | None = None
    trends: Array | None = None
    share: Array | float = 0.0

    @classmethod
    def of(cls, X: Array, n_neighbors: int, *, trends: bool = True) -> Donors:
        """Take donors from rows X (n, d) by their content, and fill them; with trends or without.

        Trends bring entries nearer, but into planes, which a mixture would take for components.
        """
        there = ~np.isnan(X)
        order = content_order(np.hstack([in_unit(np.where(there, X, 0.0)), there]))
        mean = np.nanmean(X[order], axis=0, dtype=float)  # the same bits in any order of X
        rows = X[order[:MOST_DONORS]].astype(float)
        _, first = np.unique(_keys(rows), return_index=True)
        rows = rows[np.sort(first)]  # each once
        gaps = np.flatnonzero(np.isnan(rows).any(axis=1))
        k = min(n_neighbors, len(rows) - 1)
        donors = cls(rows, np.where(np.isnan(rows), mean, rows), mean, k)
        nearest: Array | None = None
        for number in range(1, _MOST_ROUNDS + 1):
            walked, _, places = donors._round(rows[gaps], own=gaps, both=number == 1)
            donors = replace(donors._with(gaps, walked), rounds=number)
            if nearest is not None and (places == nearest).all():
                break
            nearest = places
        if not trends or len(mean) > _MOST_TRENDED or not k:
            return donors
        donors = donors._trended()
        walked, added, _ = donors._round(rows[gaps], own=gaps)
        return donors._with(gaps, walked + donors.share * added)

    def _with(self, gaps: Array, found: Array) -> Donors:
        """Return the donors with what was found for their rows with gaps."""
        filled = self.rows.copy()
        filled[gaps] = found
        return replace(self, filled=filled)

    def _trended(self) -> Donors:
        """Return the donors with trends, and the shares of these that fit best."""
        Z = self.filled - self.mean
        slopes = _slopes(Z)
        trends = Z @ slopes.T
        return replace(self, slopes=slopes, trends=trends, share=self._best_share(trends))

    def _best_share(self, trends: Array) -> Array:
        """Return the share (d,) of the donors' trends (m, d) that brings entries left out nearest.

        Each is left out alone. Its neighbours are the nearest without it, of twice as many by all
        entries.
        """
        Z, there = self.filled - self.mean, ~np.isnan(self.rows)
        more = replace(self, n_neighbors=min(2 * self.n_neighbors, len(Z) - 1))
        *_, near = more._round(self.rows, own=np.arange(len(Z)))

        def work(tile: slice) -> Array:
            x, seen, donor = Z[tile], there[tile], near[tile]
            apart = seen[:, None] * (x[:, None] - Z[donor]) ** 2  # (m, 2 k, d)
            without = np.maximum(apart.sum(axis=2, keepdims=True) - apart, 0.0)
            given = self._weights(without) * there[donor]
            total = given.sum(axis=1)
            walked, trended = (
                (given * values[donor]).sum(axis=1) / np.maximum(total, _NONE)
                for values in (Z, trends)
            )
            counts = seen & (total > _NONE)
            added = np.where(counts, trends[tile] - trended, 0.0)
            return np.array([(added * (x - walked)).sum(axis=0), (added**2).sum(axis=0)])

        fits, size = sum_over_tiles(work, len(Z), _rows_at_a_time(2 * self.n_neighbors, Z.shape[1]))
        return np.clip(fits / np.where(size > 0, size, 1.0), 0.0, 1.0)

    def _weights(self, squared: Array) -> Array:
        """Return the weights of the k nearest by squared distances (m, c, ...); 0 for others."""
        order = np.partition(squared, [self.n_neighbors // 2, self.n_neighbors - 1], axis=1)
        scale, last = (order[:, i : i + 1] for i in (self.n_neighbors // 2, self.n_neighbors - 1))
        scale = np.where(scale > 0, scale, last)
        scale = np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)
        return np.exp(-squared / scale) * (squared <= last)

    def fill(self, X: Array) -> Array:
        """Return rows X (m, d) with their missing entries filled, in their precision."""
        filled, (donors, own), (others, _) = X.copy(), *self._gaps(X)
        filled[donors] = self.filled[own]
        walked, added, _ = self._round(X[others].astype(float))
        filled[others] = walked + self.share * added
        return filled

    def by_given(self, X: Array, slopes: Array) -> Array:
        """Return derivatives (m, c, d) by rows X (m, d), from those by the rows filled, `slopes`.

        Those by missing entries are 0, because nothing depends on these. Neighbours stay, and a
        donor is compared with the others. With the weights w = exp(-d²/s²) of the class,

            ∇ log w = d²/s⁴ ∇s² - ∇d²/s²,   ∇d² = 2 (x - z) n_features / n_observed.
        """
        found = np.where(np.isnan(X)[:, None], 0.0, slopes)
        for rows, own in self._gaps(X):
            *_, nearest = self._round(X[rows].astype(float), own)
            for row, near in zip(rows, nearest, strict=True):
                z, by_walked = self.filled[near], slopes[row]
                seen, there = ~np.isnan(X[row]), ~np.isnan(self.rows[near])
                apart, factor = np.where(seen, X[row] - z, 0.0), len(seen) / seen.sum()
                squared, by_x = factor * (apart**2).sum(axis=1), 2 * factor * apart
                ascending = np.argsort(squared)
                middle = ascending[len(near) // 2]
                middle = middle if squared[middle] > 0 else ascending[-1]
                scale = squared[middle] or 1.0
                log_slopes = (squared[:, None] / scale * by_x[middle] - by_x) / scale  # (k, d)
                w = self._weights(squared[None]).T * (there & ~seen)
                total = w.sum(axis=0)
                whole, w = total > _NONE, w / np.maximum(total, _NONE)
                by_log = np.zeros((len(by_walked), len(near)))
                if self.slopes is not None and self.trends is not None:
                    by_trend = np.where(seen, 0.0, self.share * by_walked)
                    by_walked = by_walked + by_trend @ self.slopes
                    by_log -= by_trend @ _by_log(w, self.trends[near], whole)
                by_log += by_walked @ _by_log(w, z - self.mean, whole)
                found[row] = np.where(seen, by_walked, 0.0) + by_log @ log_slopes
        return found

    def _gaps(self, X: Array) -> tuple[tuple[Array, Array], tuple[Array, None]]:
        """Return which rows of X have gaps: donors with their numbers among these, and others."""
        gaps = np.flatnonzero(np.isnan(X).any(axis=1))
        own = np.array([self._place_of.get(key, -1) for key in _keys(X[gaps]).tolist()], int)
        return (gaps[own >= 0], own[own >= 0]), (gaps[own < 0], None)

    @cached_property
    def _place_of(self) -> dict[bytes, int]:
        """The number of each donor by its content."""
        return {key: place for place, key in enumerate(_keys(self.rows).tolist())}

    def _round(
        self, X: Array, own: Array | None = None, both: bool = False
    ) -> tuple[Array, Array, Array]:
        """Return rows (m, d) filled by means, and what whole trends would add there (m, d).

        Also returned are the numbers of their neighbours (m, k), ascending.

        `own` (m,) are the rows' own numbers among the donors, which are left out. With `both` only
        entries that donors have, too, are compared.
        """
        d = X.shape[1]
        there = ~np.isnan(self.rows)
        # Centred, so that sums of squares lose no digits to an offset.
        Z = np.where(there, self.rows - self.mean, 0.0) if both else self.filled - self.mean
        has, squares = there.astype(float), Z * Z
        columns = np.vstack([squares.T, Z.T])  # (2 d, n)
        entries = np.where(there, self.rows - self.mean, 0.0)
        rounding = 16 * (2 * d + 16) * np.finfo(float).eps  # of products, beyond the worst case

        def work(tile: slice) -> tuple[Array, Array, Array]:
            x = X[tile] - self.mean
            seen = ~np.isnan(x)
            x, weight = np.where(seen, x, 0.0), seen.astype(float)
            squared = np.hstack([weight, -2 * x]) @ columns
            if both:  # else a row counts as many entries, and has the same square, for all
                count = weight @ has.T
                squared += (x * x) @ has.T
                with np.errstate(divide="ignore", invalid="ignore"):
                    squared = np.where(count > 0, np.maximum(squared, 0) / count, np.inf)
            if own is not None:
                squared[np.arange(len(x)), own[tile]] = np.inf
            k = self.n_neighbors
            last = np.partition(squared, k - 1, axis=1)[:, k - 1]
            last += rounding * ((x * x).sum(axis=1) + np.abs(last))
            i, j = np.divmod(np.flatnonzero(squared <= last[:, None]), len(Z))
            # From differences, so that the same row has the same neighbours, ties by content, and
            # the same bits beside any others.
            near = _observed_squares(X[tile], self.rows if both else self.filled, i, j)
            out = np.isnan(near) if own is None else np.isnan(near) | (j == own[tile][i])
            near, nearest = smallest_of_rows(i, j, np.where(out, np.inf, near), k)
            ascending = np.argsort(nearest, axis=1)
            near, nearest = (np.take_along_axis(v, ascending, axis=1) for v in (near, nearest))
            w = self._weights(near)
            row, column = np.nonzero(~seen)
            at = nearest[row], column[:, None]  # (gaps, k)
            given = w[row] * has[at]
            given /= np.maximum(given.sum(axis=1, keepdims=True), _NONE)
            x[row, column] = (given * entries[at]).sum(axis=1)
            added = np.zeros_like(x)
            if self.slopes is not None and self.trends is not None:
                trend = (x[row] * self.slopes[column]).sum(axis=1)
                added[row, column] = trend - (given * self.trends[at]).sum(axis=1)
            return np.where(seen, X[tile], x + self.mean), added, nearest

        parts = for_each_tile(work, len(X), _rows_at_a_time(self.n_neighbors, d))
        if not parts:
            return X, np.zeros_like(X), np.empty((0, self.n_neighbors), int)
        return tuple(np.vstack(part) for part in zip(*parts, strict=True))  # type: ignore[return-value]


def _rows_at_a_time(k: int, d: int) -> int:
    return max(8, min(_TILE, _ENTRIES // (max(1, k) * d)))


def _by_log(w: Array, values: Array, whole: Array) -> Array:
    """Return the derivatives (d, k) of sums of values by the logarithms of their weights (k, d).

    The weights of `whole` (d,) columns are divided by their sum.
    """
    return (w * (values - whole * (w * values).sum(axis=0))).T  # type: ignore[no-any-return]


def _slopes(Z: Array) -> Array:
    """Return the slopes (d, d) of each column of Z (m, d), centred, by all others.

    By a ridge: variances count as if there were d rows more of independent columns.
    """
    m, d = Z.shape
    covariance = Z.T @ Z / m
    variances = np.diag(covariance)
    ridge = np.where(variances > 0, variances * d / m, 1.0)
    precision = np.linalg.inv(covariance + np.diag(ridge))
    return np.eye(d) - precision / np.diag(precision)[:, None]


def observed_distances(X: Array, i: Array, j: Array) -> Array:
    """Return the distances (m,) of rows i and j of X (n, d) by the entries that both have.

    √(Σ_both (x_i - x_j)² d / n_both), as scikit-learn's `nan_euclidean_distances`, from
    differences; NaN where they share no entry.
    """
    return np.sqrt(_observed_squares(X, X, i, j))  # type: ignore[no-any-return]


def _observed_squares(X: Array, Z: Array, i: Array, j: Array) -> Array:
    """Return the squared distances (p,) of rows i of X and j of Z, by the entries of both."""
    d = X.shape[1]

    def of_pairs(pairs: slice) -> Array:
        apart = X[i[pairs]].astype(float) - Z[j[pairs]]  # see `pair_distances`
        both = np.count_nonzero(~np.isnan(apart), axis=1)
        mean = np.nansum(apart**2, axis=1) / np.where(both, both, np.nan)
        return mean * d  # type: ignore[no-any-return]

    return filled(of_pairs, i.shape, max(1, _ENTRIES // d))


def _keys(X: Array) -> Array:
    """Return the content of rows X (m, d) as one value each; NaN and zeros have one form."""
    plain = np.ascontiguousarray(np.where(np.isnan(X), np.nan, X + 0.0), dtype=float)
    return plain.view(np.dtype((np.void, plain.shape[1] * 8))).ravel()
