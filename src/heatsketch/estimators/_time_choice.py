"""The diffusion time at which few dimensions keep most distances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from heatsketch._blas import single_threaded_blas
from heatsketch._progress import report
from heatsketch._typing import Array
from heatsketch.isometry.losses import Both, LogDistortion, Loss, stress
from heatsketch.isometry.pairs import dilations, random_pairs
from heatsketch.isometry.problem import SPARE_DIMENSIONS, Basis, Problem
from heatsketch.markov.coordinates import Coordinates
from heatsketch.neighbors import pair_distances
from heatsketch.spectral.filter_base import Filter

CURVE_ROWS = 1_000
SHARE_ERROR = 0.01  # of a share of the pairs of so many rows
_RANK = 64
_UNFOLDED = 2.5  # log L over the pairs of the sample
_LEADING = 256  # columns that the map may use
_FITTED_PAIRS, _PAIRS = 8_000, 16_000  # of the sample; the first ones are fitted
_ITERATIONS = 60
_HOPELESS = 0.1  # below the wanted share: the curve ends
_BEYOND_DOUBT = 0.05  # above it: a map of its own is not looked for
_LEFT = 1e-3  # f of a direction next to the first, from which on it counts as left
_LAST_DOUBLING = 40
_ROUNDING = 1e-6  # of an eigenvalue in single precision: nearer ones do not differ
_EQUAL = 2.0**-40  # distance next to the largest, up to which points coincide
_DOT = 1e-12  # size of a part next to the largest, below which it is a dot
_UNTWISTED = Both(stress, LogDistortion(8.0), 0.05)  # where a strip crosses itself, J_8 is large


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
    """Maps of a sample of the rows at times t, 2 t, 4 t, ..., from the largest down.

    At the largest, k directions are all there is, and the map is known; each smaller time starts
    from the map of the one before ("followed"). That unrolls strips and sheets, and leads astray
    where a few far points are all that is left at large times: times in question also have a map
    of their own ("squeezed").

    Parameters
    ----------
    coordinates : Coordinates
    make : callable
        time -> filter (the quotient, before the last product).
    own : list of arrays (p, K)
        The last product applied to the eigenvectors, rows of the sample: of the whole, or of each
        part that is mapped by itself.
    step : callable
        Applies the last product to a block (n, c): rows of the sample of each part (p, c).
    columns : list of index arrays or slices
        The eigenvectors of each part.
    weights : array (parts,)
        What share of the pairs is that of a part.
    k, share, factor : as in `HeatEmbedding`
    """

    coordinates: Coordinates
    make: Callable[[float], Filter]
    own: Sequence[Array]
    step: Callable[[Array], list[Array]]
    columns: Sequence[Any]
    weights: Array
    k: int
    share: float
    factor: float
    # time, part -> embedding (p, k)
    _followed: dict[tuple[float, int], Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        own = zip(self.own, self.columns, strict=True)
        self.own = [part[:, columns] for part, columns in own]

    @single_threaded_blas()  # small products
    def curve(self) -> TimeCurve:
        """Return the shares of all times that matter, and the time chosen."""
        shares: dict[Any, float] = {}
        for t in reversed(self._times(1)):
            # More directions are harder to keep: if these fail, all do.
            complete = self.coordinates.is_complete(self.make(t))
            shares[t] = self._share(t, self._of_pairs(t), complete)
            if not complete and shares[t] >= self.share - SHARE_ERROR:
                shares[t] = self._share(t, self._with_rest(t), True)
            words = "%.0f %% within a factor %g at time %d"
            report("choice of the time", words, 100 * shares[t], self.factor, t)
            if shares[t] < self.share - (_HOPELESS if complete else SHARE_ERROR):
                break
        tried = sorted(shares)
        reached = [t for t in tried if shares[t] >= self.share - SHARE_ERROR]
        chosen = reached[0] if reached else max(tried, key=lambda t: shares[t])
        found = np.array([shares[t] for t in tried])
        return TimeCurve(np.array(tried), found, self.factor, self.share, chosen)

    @single_threaded_blas()
    def followed(self, time: Any, S: Array, part: int) -> Array | None:
        """Return the map (r, k) of the rows S (p, r) of a part, followed from larger times.

        None unless it keeps all distances to some extent: then the data have k dimensions, and
        the map shows them without a fold. Else there are many such maps, none better than others.
        """
        for t in reversed(self._times(time)[1:]):
            if (t, part) not in self._followed:
                rows = self._of_part(t, part)
                if rows.any():
                    self._follow(t, part, _Sample(rows, self.k))
        sample = _Sample(S, self.k)
        W = sample.map(self._followed.get((2 * time, part)), _UNTWISTED)
        return W if sample.log_L(S @ W) < _UNFOLDED else None

    def kept_by(self, Y: Sequence[Array], rows: Sequence[Array]) -> float:
        """Return the share of pairs of rows (p, r) of the parts that Y (p, k) keep."""
        kept = [
            _share(y, *_pairs_of(S), self.factor) if y.any() else 0.0
            for y, S in zip(Y, rows, strict=True)
        ]
        return float(self.weights @ kept)

    def _follow(self, time: float, part: int, sample: _Sample) -> None:
        before = self._followed.get((2 * time, part))
        self._followed[time, part] = sample.followed(before, _UNTWISTED)

    def _times(self, time: Any) -> list[Any]:
        """Return t, 2 t, ... up to the first at which only k directions of any part are left.

        Or at which none go, or before a part is a dot beside others.
        """
        values = [self.coordinates.values[columns] for columns in self.columns]
        ends = [self._times_of(time, part) for part in values if len(part)]
        times = max(ends, key=len, default=[time])
        return times[:1] + [t for t in times[1:] if self._all_are_seen(t, values)]

    def _all_are_seen(self, time: Any, values: Sequence[Array]) -> bool:
        """Say whether no part is small next to another; one without pairs has smaller values."""
        found = self.coordinates.values
        leading = [of_part if len(of_part) else found[-1:] for of_part in values]
        f = self.make(time)
        weights = np.abs(f.scaled(np.concatenate(leading))[0])
        starts = np.append(0, np.cumsum([len(of_part) for of_part in leading])[:-1])
        peaks = np.maximum.reduceat(weights, starts)
        return bool(peaks.min() > _LEFT * peaks.max())

    def _times_of(self, time: Any, values: Array) -> list[Any]:
        times = [time]
        while times[-1] < 2**_LAST_DOUBLING:
            size = np.abs(self.make(times[-1]).scaled(values)[0])
            size = np.sort(size / (size.max() or 1.0))[::-1]
            fading = (size > _LEFT) & (size < 1 - _ROUNDING)
            if np.sum(size > _LEFT) <= self.k or (len(times) > 1 and not fading.any()):
                break
            times.append(2 * times[-1])
        return times

    def _share(self, time: Any, rows: Sequence[Array], complete: bool) -> float:
        """Return the share of the pairs that maps of the parts keep; none of a part in one dot.

        If the rows are not complete, only of the parts of which they say something; 1 if of none.
        """
        sizes = [np.abs(S).max(initial=0.0) for S in rows]
        weights, shares = self.weights.copy(), np.zeros(len(rows))
        for part, S in enumerate(rows):
            if sizes[part] > _DOT * max(sizes):
                shares[part] = self._share_of(time, part, _Sample(S, self.k))
            elif not complete:
                weights[part] = 0.0
        total = float(weights.sum())
        return float(weights @ shares) / total if total else 1.0

    def _share_of(self, time: Any, part: int, sample: _Sample) -> float:
        """Return the share that a map of the sample keeps: one followed, or one of its own."""
        self._follow(time, part, sample)
        share = sample.kept(self._followed[time, part], self.factor)
        if share < self.share + _BEYOND_DOUBT:
            share = max(share, sample.kept(sample.squeezed(), self.factor))
        return share

    def _with_rest(self, time: Any) -> list[Array]:
        """Return the rows of the parts with what the eigenpairs leave out."""
        sketched = self.coordinates.rough().rest_of(self.make(time))
        rest = [self.step(block) for _, (block,) in sketched]
        blocks = zip(self._of_pairs(time), *rest, strict=True)
        return [np.hstack(of_part) for of_part in blocks]

    def _of_pairs(self, time: Any) -> list[Array]:
        return [self._of_part(time, part) for part in range(len(self.own))]

    def _of_part(self, time: Any, part: int) -> Array:
        weights = self.coordinates.weights(self.make(time))[0][self.columns[part]]
        size = np.abs(weights)  # descending
        used = max(self.k, np.count_nonzero(size > _LEFT * size.max(initial=0.0)))
        return self.own[part][:, :used] * weights[:used]


def _pairs_of(S: Array) -> tuple[Array, Array, Array]:
    """Return pairs i, j of rows that differ, and their distances."""
    i, j = random_pairs(len(S), _PAIRS)
    distances = pair_distances(S, S, i, j)
    apart = distances > _EQUAL * distances.max(initial=0.0)  # none if all coincide
    return i[apart], j[apart], distances[apart]


def _share(Y: Array, i: Array, j: Array, distances: Array, factor: float) -> float:
    """Return the share of pairs that an embedding keeps within a factor."""
    return dilations(Y, i, j, distances).share(factor) if len(distances) else 1.0


class _Sample:
    """Some rows, and maps of them to k dimensions of little stress."""

    def __init__(self, S: Array, k: int) -> None:
        i, j, self._distances = _pairs_of(S)
        self._pairs = i, j
        leading = S[:, :_LEADING]  # columns come in the order of their weights
        self._basis = Basis.of(leading, max(_RANK, 2 * k))
        self._Z, self._k, self._width = self._basis.coordinates(leading), k, S.shape[1]
        fitted = slice(0, _FITTED_PAIRS)
        self._problem = Problem.of(self._Z, i[fitted], j[fitted], self._distances[fitted])

    def squeezed(self) -> Array:
        """Return the embedding that has room to move at first."""
        if self._is_trivial:
            return self.followed(None, stress)
        width = min(self._k + SPARE_DIMENSIONS, self._basis.rank)
        Q = self._problem.squeezed(self._basis.leading(width), self._k)
        return self._Z @ self._padded(self._problem.descend(Q, stress, _ITERATIONS))

    def followed(self, Y: Array | None, loss: Loss) -> Array:
        """Return the embedding that is found from another one, or from the leading directions."""
        return self._Z @ self._descended(Y, loss)

    def map(self, Y: Array | None, loss: Loss) -> Array:
        """Return the map (r, k) that gives `followed`."""
        W = np.zeros((self._width, self._k))
        W[: len(self._basis.axes)] = self._basis.axes @ self._descended(Y, loss)
        return W

    def kept(self, Y: Array, factor: float) -> float:
        """Return the share of pairs that an embedding keeps within a factor."""
        return _share(Y, *self._pairs, self._distances, factor)

    def log_L(self, Y: Array) -> float:
        """Return log L of an embedding over the pairs."""
        if not len(self._distances):
            return 0.0
        return dilations(Y, *self._pairs, self._distances).log_L

    def _descended(self, Y: Array | None, loss: Loss) -> Array:
        if self._is_trivial:
            return self._padded(self._basis.leading(self._k))
        Q = self._basis.leading(self._k)
        if Y is not None:
            Q = np.linalg.lstsq(self._Z, Y, rcond=None)[0]
        return self._problem.descend(Q, loss, _ITERATIONS)

    @property
    def _is_trivial(self) -> bool:
        """Whether there is nothing to choose."""
        return self._basis.rank <= self._k or not len(self._distances)

    def _padded(self, Q: Array) -> Array:
        """Return the map with k columns, of which some are 0 where there are fewer directions."""
        return np.pad(Q, ((0, 0), (0, self._k - Q.shape[1])))
