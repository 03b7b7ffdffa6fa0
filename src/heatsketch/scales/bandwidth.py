"""The bandwidth ε of a Gaussian affinity: Ksum test, its uncertainty, and other rules."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from heatsketch._array import Frame, filled, for_each_tile, single_threaded_blas
from heatsketch._checks import check_choice, check_number, check_points
from heatsketch._typing import Array, Rng
from heatsketch.neighbors import NeighborIndex, pair_distances
from heatsketch.operators.kernel import squared_distances, squared_norms

logger = logging.getLogger("heatsketch")

RULES = ("ksum", "median", "nearest")
_EXACT_POINTS = 2000  # all pairs up to here
_SAMPLE_ROWS, _SAMPLE_COLUMNS = 500, 20_000  # beyond: so many rows against so many columns
_TILE = 64  # rows whose kernels are made at a time: they stay in the cache
_FRESH = 12  # steps of √2 in ε after which exponentials are taken anew
_FEWEST_ROWS = 10  # fewer say nothing of how much rows differ
_REPLICATES = 500  # of the bootstrap: standard deviations to 3 %
_LEVEL = 0.9  # share of the largest slope that the plateau keeps


class Ksum(NamedTuple):
    """Result of the Ksum test.

    Intervals hold with 95 % for points drawn independently; they are NaN below 10 points (rows).

    Attributes
    ----------
    epsilon : float
        Bandwidth at the largest slope, in squared data units: the peak of the parabola through the
        three highest points of the curve.
    dimension : float
        Twice the slope there: an estimate of the intrinsic dimension (a little high on curved
        data: 1.2 on a circle, 2.2 on a torus); round it.
    epsilons : array (m,)
        Bandwidths tried, ascending, a factor √2 apart.
    slopes : array (m,)
        d log S / d log ε at each, S the mean of the kernel matrix.
    epsilon_interval, dimension_interval : (float, float)
        What other draws of as many points would give: how far chance goes, not how far curvature,
        boundaries or a wrong model do.
    slope_errors : array (m,)
        Standard error of each slope.
    plateau : (float, float)
        Bandwidths about `epsilon` with slopes of at least 0.9 of the largest: any of them will do.
    sampling_error : float
        Standard error of `dimension` from looking at some of the rows only; 0 where all pairs were
        looked at. Part of `dimension_interval`.
    """

    epsilon: float
    dimension: float
    epsilons: Array
    slopes: Array
    epsilon_interval: tuple[float, float]
    dimension_interval: tuple[float, float]
    slope_errors: Array
    plateau: tuple[float, float]
    sampling_error: float


def ksum(X: Any, *, n_rows: int | None = None, rng: Rng = 0) -> Ksum:
    """Choose ε and estimate the dimension from the growth of the kernel's mean with ε.

    S(ε) = mean of exp(-|x_i - x_j|²/ε) grows like ε^(d/2) where ε is neither too small nor too
    large; the slope d log S / d log ε = Σ K |x-y|²/ε / Σ K peaks there. *Linear and nonlinear
    dimensionality reduction*, §9.7, equation (59) (Berry, Harlim and Giannakis).

    Use it for a first ε of a dense or radius affinity, and for the dimension of data with few
    dimensions. Not where clusters are far apart: the largest slope may then be that between them
    (look at the curve, `heatsketch.plot.ksum_curve`). `intrinsic_dimension` looks at smaller
    scales.

    Parameters
    ----------
    X : array or CSR matrix (n, d)
    n_rows : int >= 10, optional
        Rows of the kernel matrix that are summed, each over up to 20,000 columns; the diagonal is
        put back exactly. By default all up to 2,000 points, 500 beyond: of 60,000 points of a cube
        that leaves a `sampling_error` of 0.01 in 2.83, which falls with the root of n_rows.
    rng : int, Generator or None, default 0
        Chooses rows and columns, and the replicates of the bootstrap.

    Returns
    -------
    Ksum
        `epsilon`, `dimension`, `epsilons`, `slopes`, and their uncertainty.

    Raises
    ------
    ValueError
        All distances are zero, or so large or small that ε is beyond float64.

    Notes
    -----
    The uncertainty is a bootstrap over rows, from the sums of each row: no new exponentials. S is a
    mean over pairs, whose error is twice that of a mean over rows (Hájek's projection), so that a
    replicate draws a quarter as many rows; resampling points on both sides instead would add
    copies of points, at distances zero. What chance adds to single pairs would be counted twice by
    the rows, and is taken off. Intervals are 1.96 standard deviations of the replicates wide on
    either side, for ε on the scale of log ε. On Gaussian data of 60 to 600 points in 1 to 6
    dimensions they held in 90 to 96 % of 60 to 200 draws.

    Cost: at most 10⁷ distances and some ten exponentials of each; memory 300 MB (beyond 500 rows,
    320 kB for each).

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    >>> round(hs.ksum(np.c_[np.cos(angle), np.sin(angle)]).dimension)
    1
    """
    if n_rows is not None:
        check_number(n_rows, "n_rows", low=_FEWEST_ROWS, integer=True)
    X = check_points(X)
    frame, rng = Frame.of(X), np.random.default_rng(rng)
    curve = _Curve.of(_Pairs.of(X, frame, n_rows, rng))
    place, top = _peak(curve.slopes)
    spread = _Spread.of(curve, rng)
    epsilon = in_data_units(frame, curve.epsilon(place))
    low, high = (curve.epsilon(end) for end in _plateau(curve.slopes, top))
    return Ksum(
        epsilon,
        float(2 * top),
        np.asarray(frame.unsquared(curve.epsilons)),
        curve.slopes,
        (epsilon * 2.0 ** (-0.98 * spread.place), epsilon * 2.0 ** (0.98 * spread.place)),
        (float(2 * top - 3.92 * spread.top), float(2 * top + 3.92 * spread.top)),
        spread.slopes,
        (float(frame.unsquared(low)), float(frame.unsquared(high))),
        2 * spread.top * curve.pairs.sampled_share,
    )


def scale_order(k: int) -> int:
    """Say which neighbour's distance is the local scale: the middle one of the k used."""
    return max(1, k // 2)


def rule_epsilon(X: Any, rule: str, *, rng: Rng = 0) -> float:
    """Return ε by a rule, in squared data units.

    "ksum": where the kernel's mean grows fastest; "median": the median squared distance;
    "nearest": twice the mean squared distance to the nearest other point (*Linear and nonlinear
    dimensionality reduction*, §9.2). Zero distances (duplicates) do not count.
    """
    check_choice(rule, "epsilon", RULES)
    frame = Frame.of(X)
    if rule == "nearest":
        index = NeighborIndex(X, frame=frame)
        d2 = index.of_points(min(2, X.shape[0])).distances[:, -1] ** 2
        return in_data_units(frame, float(2 * np.mean(_positive(d2))))
    pairs = _Pairs.of(X, frame, None, np.random.default_rng(rng))
    if rule == "median":
        return in_data_units(frame, float(np.median(_positive(pairs.d2))))
    curve = _Curve.of(pairs)
    return in_data_units(frame, curve.epsilon(_peak(curve.slopes)[0]))


def _positive(d2: Array) -> Array:
    d2 = d2[d2 > 0]
    if len(d2) == 0:
        raise ValueError("All distances are zero; pass points that differ, or a number as epsilon.")
    return d2


def in_data_units(frame: Frame, value: float) -> float:
    """Return an ε in squared data units from one in a frame, or say that float64 lacks it."""
    with np.errstate(over="ignore", under="ignore"):
        epsilon = float(frame.unsquared(value))
    if not 0 < epsilon < np.inf:
        raise ValueError(
            "The squared distances of X are beyond float64; rescale X, or diffuse with "
            "HeatSketch(epsilon='self-tuning'), which needs no such number."
        )
    return epsilon


def n_rule_distances(n: int) -> int:
    """Return the number of distances that a rule for ε computes for n points."""
    return n * n if n <= _EXACT_POINTS else _SAMPLE_ROWS * min(n, _SAMPLE_COLUMNS)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Squared distances in the frame from R points to these and others, C in all."""

    n: int  # points that R and C are drawn from
    d2: Array  # (R, C); row i and column i are the same point

    @classmethod
    def of(cls, X: Any, frame: Frame, n_rows: int | None, rng: np.random.Generator) -> _Pairs:
        n = X.shape[0]
        n_rows = min(n, n_rows or (n if n <= _EXACT_POINTS else _SAMPLE_ROWS))
        chosen = np.arange(n)
        if n_rows < n:
            logger.info("squared distances of %d of %s points", n_rows, f"{n:,}")
            chosen = rng.choice(n, min(n, max(_SAMPLE_COLUMNS, n_rows)), replace=False)
        x, y = frame(X[chosen[:n_rows]]), frame(X[chosen])
        # The Gram form leaves the closest pairs without digits: take their differences instead.
        near = 1e-9 * np.max(squared_norms(y), initial=0.0)

        def work(rows: slice) -> Array:
            block = squared_distances(x[rows], y, direct=False)
            close = np.nonzero(block <= near)
            block[close] = pair_distances(x[rows], y, *close) ** 2
            return block

        return cls(n, filled(work, (n_rows, len(chosen)), _TILE))

    @property
    def variance_share(self) -> float:
        """Variance of a mean over the pairs, for a variance of 1 of the means over rows.

        1/R of the rows, 1/C of the columns, and 2/C because the rows are among the columns.
        """
        R, C = self.d2.shape
        return 1 / R + 3 / C

    @property
    def sampled_share(self) -> float:
        """Which part of the standard error comes from looking at some of the pairs only."""
        if self.d2.shape == (self.n, self.n):
            return 0.0
        return float(np.sqrt(max(0.0, 1 - 4 / self.n / self.variance_share)))


@dataclass(frozen=True, eq=False)
class _Curve:
    """The slope at every ε, and the sums over each row that it is made of."""

    pairs: _Pairs
    centre: float
    low: int  # ε_j = centre 2^((low + j) / 2)
    moments: Array  # (5, R, m): means over a row, itself left out, of K, KE, K², K·KE, (KE)²

    @classmethod
    def of(cls, pairs: _Pairs) -> _Curve:
        positive = _positive(pairs.d2)
        # Anchored at the data's own scale, so that scaling X scales the answer exactly.
        centre = float(np.median(positive))
        low = int(np.floor(2 * np.log2(max(float(np.min(positive)) / centre, 2.0**-80)))) - 2
        high = int(np.ceil(2 * np.log2(float(np.max(positive)) / centre))) + 8
        epsilons = centre * 2.0 ** (np.arange(low, high + 1) / 2)
        return cls(pairs, centre, low, _moments(pairs.d2, epsilons))

    @property
    def epsilons(self) -> Array:
        return self.centre * 2.0 ** ((self.low + np.arange(self.moments.shape[2])) / 2)

    def epsilon(self, place: float) -> float:
        """Return ε at a place between those of the curve."""
        return float(self.centre * 2.0 ** ((self.low + place) / 2))

    @property
    def slopes(self) -> Array:
        return self.slopes_of(np.full((1, self.moments.shape[1]), 1.0))[0]

    def slopes_of(self, weights: Array) -> Array:
        """Return the slopes (b, m) where the rows count by weights (b, R)."""
        share = weights / weights.sum(axis=1, keepdims=True)
        with single_threaded_blas():
            K, KE = (share @ rows for rows in self.moments[:2])
        # The n ones of the diagonal, as a share of the n(n-1) pairs that the sample stands for.
        return KE / (K + 1 / (self.pairs.n - 1))

    def variances_kept(self) -> Array:
        """Return by what share of it the variance from the rows is right (m,).

        With h_ij = K(E - slope) = mean + h_i + h_j + g_ij, the rows vary by var h_i + var g / C;
        counted as often as var h_i, var g is counted 2/C² too often.
        """
        K, KE, K2, K_KE, KE2 = self.moments
        slopes, C = self.slopes, self.pairs.d2.shape[1]
        rows = KE - slopes * K
        of_rows = rows.var(axis=0, ddof=1)
        of_pairs = (KE2 - 2 * slopes * K_KE + slopes**2 * K2).mean(axis=0) - rows.mean(axis=0) ** 2
        of_rest = np.maximum(of_pairs - 2 * of_rows, 0.0) / (1 - 2 / C)
        counted = C**2 * self.pairs.variance_share * of_rows
        wrong = np.divide(2 * of_rest, counted, out=np.zeros_like(counted), where=counted > 0)
        return np.clip(1 - wrong, 0.5, 1.0)


def _moments(d2: Array, epsilons: Array) -> Array:
    moments = np.empty((5, len(d2), len(epsilons)))

    def work(rows: slice) -> None:
        own = (np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop))
        kernels = [np.empty(0), np.empty(0)]
        for step, j in enumerate(reversed(range(len(epsilons)))):
            E = d2[rows] / epsilons[j]
            # Two steps are a factor 2 in ε, which squares K: few exponentials, 2^-47 of rounding.
            K = np.exp(-E) if step % _FRESH < 2 else np.square(kernels[step % 2])
            K[own] = 0.0
            kernels[step % 2] = K
            E *= K
            moments[0, rows, j] = K.sum(axis=1)
            moments[1, rows, j] = E.sum(axis=1)
            for m, (a, b) in enumerate(((K, K), (K, E), (E, E)), start=2):
                moments[m, rows, j] = np.einsum("ij,ij->i", a, b)

    for_each_tile(work, len(d2), _TILE)
    return moments / (d2.shape[1] - 1)


class _Spread(NamedTuple):
    """Standard deviations over other draws of the points: where the peak is, its height, slopes."""

    place: float
    top: float
    slopes: Array

    @classmethod
    def of(cls, curve: _Curve, rng: np.random.Generator) -> _Spread:
        """Draw rows again and again: so few that their mean varies as the mean over pairs does."""
        R = len(curve.pairs.d2)
        if R < _FEWEST_ROWS:
            return cls(np.nan, np.nan, np.full(len(curve.epsilons), np.nan))
        drawn = max(1, round(1 / curve.pairs.variance_share))
        weights = rng.multinomial(drawn, np.full(R, 1 / R), size=_REPLICATES)
        apart = curve.slopes_of(weights.astype(float)) - curve.slopes
        slopes = curve.slopes + np.sqrt(curve.variances_kept()) * apart
        place, top = _peak(slopes)
        return cls(float(np.std(place)), float(np.std(top)), slopes.std(axis=0))


def _peak(slopes: Array) -> tuple[Any, Any]:
    """Return place and height of the maximum of curves (..., m), from parabolas through three."""
    best = np.argmax(slopes, axis=-1)
    middle = np.clip(best, 1, slopes.shape[-1] - 2)
    left, top, right = (
        np.take_along_axis(slopes, (middle + step)[..., None], axis=-1)[..., 0]
        for step in (-1, 0, 1)
    )
    bend = left - 2 * top + right
    curved = (best == middle) & (bend < 0)
    shift = np.where(curved, 0.5 * (left - right) / np.where(curved, bend, 1.0), 0.0)
    height = np.where(curved, top - 0.25 * (left - right) * shift, slopes.max(axis=-1))
    return best + shift, height


def _plateau(slopes: Array, top: float) -> tuple[float, float]:
    """Return between which places about the peak the curve is above 0.9 of its height."""
    level, best = _LEVEL * top, int(np.argmax(slopes))
    low = np.flatnonzero(slopes[:best] < level)
    high = best + np.flatnonzero(slopes[best:] < level)
    left, right = 0.0, float(len(slopes) - 1)
    if len(low):
        left = low[-1] + (level - slopes[low[-1]]) / (slopes[low[-1] + 1] - slopes[low[-1]])
    if len(high):
        right = high[0] - (level - slopes[high[0]]) / (slopes[high[0] - 1] - slopes[high[0]])
    return float(left), float(right)
