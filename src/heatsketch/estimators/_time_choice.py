"""The diffusion time at which few dimensions keep most distances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from heatsketch._array import single_threaded_blas
from heatsketch._checks import logger
from heatsketch._typing import Array
from heatsketch.isometry.losses import stress
from heatsketch.isometry.pairs import dilations, random_pairs
from heatsketch.isometry.problem import Basis, Problem
from heatsketch.markov.coordinates import Coordinates
from heatsketch.neighbors import pair_distances
from heatsketch.spectral.filters import Filter

CURVE_ROWS = 1_000
SHARE_ERROR = 0.01  # of a share of the pairs of so many rows
_RANK = 64
_LEADING = 256  # columns that the map may use
_FITTED_PAIRS, _PAIRS = 8_000, 20_000  # of the sample; the first ones are fitted
_ITERATIONS = 60
_HOPELESS = 0.1  # below the wanted share: the curve ends after two such times
_LEFT = 1e-3  # f of a direction next to the first, from which on it counts as left
_LAST_DOUBLING = 40


class TimeCurve(NamedTuple):
    """The share of pairs whose distance k dimensions keep, against diffusion time.

    Attributes
    ----------
    times : array (m,)
        Ascending; up to the one at which no more than k directions are left.
    shares : array (m,)
        Share of the pairs of a sample whose ratio is within `factor` of the median, by a quick map;
        at `time` that of the map returned.
    factor, share : float
        The parameters of the estimator.
    time : float
        The smallest time with that share; if there is none, the time with the largest share.
    """

    times: Array
    shares: Array
    factor: float
    share: float
    time: Any


@dataclass(eq=False)
class TimeChoice:
    """Tries times 1, 2, 4, ... on the rows of a sample, from the largest down.

    At the largest, k directions are all there is, and the map is known. Each smaller time starts
    from the map of the one before.

    Parameters
    ----------
    coordinates : Coordinates
    make : callable
        time -> filter (the quotient, before the last product).
    own : array (p, K)
        The last product applied to the eigenvectors, rows of the sample.
    step : callable
        Applies the last product to a block (n, c): rows of the sample (p, c).
    k, share, factor : as in `HeatEmbedding`
    """

    coordinates: Coordinates
    make: Callable[[float], Filter]
    own: Array
    step: Callable[[Array], Array]
    k: int
    share: float
    factor: float

    @single_threaded_blas()  # small products
    def curve(self) -> TimeCurve:
        """Return the shares of all times that matter, and the time chosen."""
        times = self._times()
        complete = [t for t in times if self.coordinates.is_complete(self.make(t))]
        shares: dict[int, float] = {}
        Y = self._down(complete, [self._of_pairs(t) for t in complete], None, shares)
        rest = times[: len(times) - len(complete)]
        if Y is not None and rest:
            self._down(rest, self._with_rest(rest), Y, shares)
        tried = sorted(shares)
        reached = [t for t in tried if shares[t] >= self.share - SHARE_ERROR]
        chosen = reached[0] if reached else max(tried, key=lambda t: shares[t])
        found = np.array([shares[t] for t in tried])
        return TimeCurve(np.array(tried), found, self.factor, self.share, chosen)

    def kept_by(self, Y: Array, rows: Array) -> float:
        """Return the share of pairs of rows (p, r) of the sample that Y (p, k) keeps."""
        pairs = random_pairs(len(rows), _PAIRS)
        distances = pair_distances(rows, rows, *pairs)
        return dilations(Y, *pairs, distances).share(self.factor)

    def _times(self) -> list[int]:
        """Return 1, 2, 4, ... up to the first at which only k directions are left, or none go."""
        times = [1]
        while times[-1] < 2**_LAST_DOUBLING:
            size = np.abs(self.coordinates.weights(self.make(times[-1]))[0])
            size = np.sort(size / (size.max() or 1.0))[::-1]
            fading = (size > _LEFT) & (size < 1 - _LEFT)
            if np.sum(size > _LEFT) <= self.k or (len(times) > 1 and not fading.any()):
                break
            times.append(2 * times[-1])
        return times

    def _of_pairs(self, time: int) -> Array:
        weights = self.coordinates.weights(self.make(time))[0]
        size = np.abs(weights)  # descending
        used = max(self.k, np.count_nonzero(size > _LEFT * size.max()))
        return self.own[:, :used] * weights[:used]

    def _with_rest(self, times: Sequence[int]) -> list[Array]:
        """Return the rows at times at which the eigenpairs leave something out."""
        rows = [[self._of_pairs(t)] for t in times]
        for _, blocks in self.coordinates.rest_of(*map(self.make, times)):
            for parts, block in zip(rows, blocks, strict=True):
                parts.append(self.step(block))
        return [np.hstack(parts) for parts in rows]

    def _down(
        self, times: Sequence[int], rows: Sequence[Array], Y: Array | None, shares: dict[int, float]
    ) -> Array | None:
        """Follow the map to smaller times; None once they are hopeless."""
        for t, S in zip(reversed(times), reversed(rows), strict=True):
            Y, shares[t] = self._followed(S, Y)
            logger.info("time %d: %.0f %% within a factor %g", t, 100 * shares[t], self.factor)
            last = list(shares.values())[-2:]
            if len(last) == 2 and max(last) < self.share - _HOPELESS:
                return None
        return Y

    def _followed(self, S: Array, Y: Array | None) -> tuple[Array, float]:
        """Return the map of the rows S of least stress found from the embedding Y; its share."""
        i, j = random_pairs(len(S), _PAIRS)
        distances = pair_distances(S, S, i, j)
        leading = S[:, :_LEADING]  # columns come in the order of their weights
        basis = Basis.of(leading, max(_RANK, 2 * self.k))
        Z = basis.coordinates(leading)
        if basis.rank <= self.k:
            Y = Z * basis.weights
        else:
            Q = basis.leading(self.k) if Y is None else np.linalg.lstsq(Z, Y, rcond=None)[0]
            fitted = slice(0, _FITTED_PAIRS)
            problem = Problem.of(Z, i[fitted], j[fitted], distances[fitted])
            Y = Z @ problem.descend(Q, stress, _ITERATIONS)
        return Y, dilations(Y, i, j, distances).share(self.factor)
