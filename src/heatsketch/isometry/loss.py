"""The smoothed log-distortion of an embedding over pairs of points, and its gradient."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from heatsketch._array import for_each_tile
from heatsketch._typing import Array

_MIN_PARALLEL_PAIRS = 2**19  # below, starting threads takes longer than the work
_N_SHARES = 8  # of the points among threads: fixed, so that sums do not depend on their number


class LogDistortion:
    """Pairs of points with the distances to keep.

    With the dilation ρ = |y_i - y_j| / d_ij of each of m pairs the loss is

        J_β(Y) = (1/β) log mean ρ^β + (1/β) log mean ρ^-β,

    which does not change when Y is scaled, and tends to log L = log(max ρ / min ρ) as β grows:
    log L - 2 log(m) / β <= J_β <= log L. β must be 2^j, j >= 1: powers of ρ² are then repeated
    squares, without a logarithm or exponential for each pair.

    The pairs of n points are ordered by their first points; their d² are `squares` (m,), positive.
    Those of point i have the second points columns[starts[i]:starts[i + 1]], starts (n + 1,) and
    columns (m,). By default all pairs count, in the order of `scipy.spatial.distance.pdist`.
    """

    def __init__(
        self,
        n: int,
        squares: Array,
        starts: Array | None = None,
        columns: Array | None = None,
    ) -> None:
        self.n, self.n_pairs = n, len(squares)
        if starts is None:
            starts = np.concatenate([[0], np.cumsum(np.arange(n - 1, -1, -1))])
        self.starts, self.columns = starts.astype(np.int64), columns
        self.inverse = 1 / squares
        self._shares = _N_SHARES if self.n_pairs >= _MIN_PARALLEL_PAIRS else 1

    def __call__(self, Yt: Array, beta: int) -> tuple[float, Array]:
        """Return J_β and its gradient (k, n) at the embedding Yt (k, n), its points in columns."""
        from heatsketch.isometry import kernels

        pairs = (Yt, self.starts, self.columns, self.inverse)
        doublings = beta.bit_length() - 2  # ρ^β = (ρ²)^(2^doublings)
        ends, sums = self._power_sums(Yt, doublings)
        gradients = np.zeros((self._shares, *Yt.shape))
        self._on_shares(
            lambda share: kernels.gradient(
                *pairs, doublings, ends, sums, share, self._shares, gradients[share]
            )
        )
        means = math.log(sums[0] / self.n_pairs) + math.log(sums[1] / self.n_pairs)
        return means / beta + math.log(ends[1] / ends[0]) / 2, gradients.sum(axis=0)

    def log_L(self, Yt: Array) -> float:
        """Return log L of the embedding Yt (k, n) over these pairs."""
        (low, high), _ = self._power_sums(Yt, 0)
        return math.log(high / low) / 2

    def _power_sums(
        self, Yt: Array, doublings: int
    ) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return (min, max) of the squared dilations r, and (Σ (r / max)^h, Σ (min / r)^h)."""
        from heatsketch.isometry import kernels

        found = self._on_shares(
            lambda share: kernels.power_sums(
                Yt, self.starts, self.columns, self.inverse, doublings, share, self._shares
            )
        )
        lows, highs, ups, downs = (np.array(values) for values in zip(*found, strict=True))
        low, high, h = lows.min(), highs.max(), 2.0**doublings
        sums = float(ups @ (highs / high) ** h), float(downs @ (low / lows) ** h)
        return (float(low), float(high)), sums

    def _on_shares(self, work: Callable[[int], Any]) -> list[Any]:
        """Return the results of `work` for every share of the points."""
        if self._shares == 1:
            return [work(0)]
        results: list[Any] = [None] * self._shares

        def do(share: slice) -> None:
            results[share.start] = work(share.start)

        for_each_tile(do, self._shares, 1)
        return results
