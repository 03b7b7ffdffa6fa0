"""The bandwidth ε of a Gaussian affinity: the Ksum test, its uncertainty, and other rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from heatsketch._checks import Frame, check_choice, check_number, check_points, logger
from heatsketch._random import content_order
from heatsketch._tiles import filled, for_each_tile, single_threaded_blas
from heatsketch._typing import Array, Rng
from heatsketch.neighbors import Distances, in_metric, pair_distances, search_of
from heatsketch.operators.kernel import squared_distances, squared_norms

WIDE_CUT = 5.0  # radius in units of √(ε/2): affinities below e^-12.5 = 4e-6 are left out
RULES = ("ksum", "median", "nearest")
_EXACT_POINTS = 2000  # up to here all pairs are used
_SAMPLE_ROWS, _SAMPLE_COLUMNS = 500, 20_000  # of the pairs used for more points
_TILE_ROWS = 64  # rows whose kernels are computed at a time: they fit in the cache
_EXPONENTIAL_STEPS = 12  # steps of √2 in ε after which exponentials are recomputed
_MIN_BOOTSTRAP_ROWS = 10  # fewer do not show how much rows differ
_REPLICATES = 500  # of the bootstrap: standard deviations are accurate to 3 %
_PLATEAU_SHARE = 0.9  # of the largest slope


class Ksum(NamedTuple):
    """Result of the Ksum test.

    Intervals have a confidence of 95 % for independent points; NaN below 10 points (rows).

    Attributes
    ----------
    epsilon : float
        Bandwidth at the largest slope, in squared data units: the peak of the parabola through the
        three highest points of the curve.
    dimension : float
        Twice the slope there: an estimate of the intrinsic dimension, to be rounded (slightly high
        on curved data: 1.2 on a circle, 2.2 on a torus).
    epsilons : array (m,)
        Bandwidths evaluated, ascending by factors of √2.
    slopes : array (m,)
        d log S / d log ε at each, S the mean of the kernel matrix.
    epsilon_interval, dimension_interval : (float, float)
        The range expected from other samples of as many points: sampling error only, without the
        effects of curvature, boundaries or a wrong model.
    slope_errors : array (m,)
        Standard error of each slope.
    plateau : (float, float)
        Bandwidths about `epsilon` whose slopes are at least 0.9 of the largest; all are suitable.
    sampling_error : float
        Standard error of `dimension` from using a sample of the pairs; 0 where all were used. It
        is included in `dimension_interval`.
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


def ksum(X: Any, *, metric: str = "euclidean", n_rows: int | None = None, rng: Rng = 0) -> Ksum:
    """Choose ε and estimate the dimension from the growth of the kernel's mean with ε.

    S(ε) = mean of exp(-|x_i - x_j|²/ε) grows as ε^(d/2) where ε is neither too small nor too
    large; the slope d log S / d log ε = Σ K |x-y|²/ε / Σ K peaks there. *Linear and nonlinear
    dimensionality reduction*, §9.7, equation (59) (Berry, Harlim and Giannakis).

    Use it for a first ε of a dense or radius affinity, and for the dimension of low-dimensional
    data. Do not use it where clusters are far apart: the largest slope may then be due to the
    distances between them (see the curve, `heatsketch.plot.ksum_curve`). `intrinsic_dimension` uses
    smaller scales.

    Parameters
    ----------
    X : array or CSR matrix (n, d)
    metric : "euclidean", "cosine" or "correlation", default "euclidean"
        The distance of points, as in `HeatSketch`.
    n_rows : int >= 10, optional
        Rows of the kernel matrix to sum, each over up to 20,000 columns. By default all rows up to
        2,000 points, 500 rows of more points: for 60,000 points of a cube `sampling_error` is then
        0.01 of 2.83; it decreases with the square root of n_rows.
    rng : int, Generator or None, default 0
        Source of the sample of rows and columns and of the bootstrap.

    Returns
    -------
    Ksum
        `epsilon`, `dimension`, `epsilons`, `slopes`, and their uncertainty.

    Raises
    ------
    ValueError
        All distances are zero, or so large or small that ε is outside the range of float64.

    Notes
    -----
    The uncertainty comes from a bootstrap over row sums. S is a mean over pairs, whose error is
    twice that of a mean over rows (Hájek's projection), so that a replicate draws a quarter as many
    rows; the variance of single pairs, which the rows count twice, is corrected. Intervals extend
    1.96 standard deviations of the replicates to either side, for ε in log ε. On Gaussian data of
    60 to 600 points in 1 to 6 dimensions they covered 90 to 96 % of 60 to 200 samples.

    Cost: at most 10⁷ distances and about ten exponentials of each; memory 300 MB (320 kB for each
    row beyond 500).

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    >>> round(hs.ksum(np.c_[np.cos(angle), np.sin(angle)]).dimension)
    1
    """
    if n_rows is not None:
        check_number(n_rows, "n_rows", low=_MIN_BOOTSTRAP_ROWS, integer=True)
    X = in_metric(check_points(X), metric)
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
    """Return the number of the neighbour whose distance is the local scale: half of k."""
    return max(1, k // 2)


def rule_epsilon(X: Any, rule: str, *, rng: Rng = 0, distances: Distances | None = None) -> float:
    """Return ε by a rule, in squared data units; of points in a metric without coordinates, too.

    "ksum": where the kernel's mean grows fastest; "median": the median squared distance;
    "nearest": twice the mean squared distance to the nearest other point (*Linear and nonlinear
    dimensionality reduction*, §9.2). Zero distances (duplicates) are left out.
    """
    check_choice(rule, "epsilon", RULES)
    order = content_order(X, columns=distances is None or not distances.precomputed)
    X, frame = X[order], Frame.of(X, order) if distances is None else Frame(0, None)
    if rule == "nearest":
        index = search_of(distances, X, frame)
        d2 = index.of_points(min(2, X.shape[0])).distances[:, -1] ** 2
        return in_data_units(frame, float(2 * np.mean(_positive(d2))))
    pairs = _Pairs.of(X, frame, None, np.random.default_rng(rng), distances)
    if rule == "median":
        return in_data_units(frame, float(np.median(_positive(pairs.d2))))
    curve = _Curve.of(pairs)
    return in_data_units(frame, curve.epsilon(_peak(curve.slopes)[0]))


def _positive(d2: Array) -> Array:
    d2 = d2[d2 > 0]
    if len(d2) == 0:
        raise ValueError("All distances are zero; pass distinct points, or a number as epsilon.")
    return d2


def in_data_units(frame: Frame, value: float) -> float:
    """Return an ε of a frame in squared data units; raise if float64 cannot represent it."""
    with np.errstate(over="ignore", under="ignore"):
        epsilon = float(frame.unsquared(value))
    if not 0 < epsilon < np.inf:
        raise ValueError(
            "The squared distances of X are outside the range of float64; rescale X, or use "
            "epsilon='self-tuning'."
        )
    return epsilon


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Squared distances in the frame from R points to C points, the R among them."""

    n: int  # points from which R and C are drawn
    d2: Array  # (R, C); row i and column i are the same point

    @classmethod
    def of(
        cls,
        X: Any,
        frame: Frame,
        n_rows: int | None,
        rng: np.random.Generator,
        distances: Distances | None = None,
    ) -> _Pairs:
        n = X.shape[0]
        n_rows = min(n, n_rows or (n if n <= _EXACT_POINTS else _SAMPLE_ROWS))
        chosen = np.arange(n)
        if n_rows < n:
            logger.info("squared distances of %d of %s points", n_rows, f"{n:,}")
            chosen = rng.choice(n, min(n, max(_SAMPLE_COLUMNS, n_rows)), replace=False)
        if distances is not None:
            return cls(n, np.square(distances(X[chosen[:n_rows]], X[chosen])))
        x, y = frame(X[chosen[:n_rows]]), frame(X[chosen])
        # The Gram form is inexact for the closest pairs; use their differences.
        inexact = 1e-9 * np.max(squared_norms(y), initial=0.0)

        def work(rows: slice) -> Array:
            block = squared_distances(x[rows], y, direct=False)
            close = np.nonzero(block <= inexact)
            block[close] = pair_distances(x[rows], y, *close) ** 2
            return block

        return cls(n, filled(work, (n_rows, len(chosen)), _TILE_ROWS))

    @property
    def variance_share(self) -> float:
        """The variance of a mean over the pairs, relative to that of the mean over one row.

        It is 1/R for the rows, 1/C for the columns, and 2/C because the rows are among the columns.
        """
        R, C = self.d2.shape
        return 1 / R + 3 / C

    @property
    def sampled_share(self) -> float:
        """The share of the standard error that comes from using a sample of the pairs."""
        if self.d2.shape == (self.n, self.n):
            return 0.0
        return float(np.sqrt(max(0.0, 1 - 4 / self.n / self.variance_share)))


@dataclass(frozen=True, eq=False)
class _Curve:
    """The slope at every ε, and the row means from which it is computed."""

    pairs: _Pairs
    centre: float
    low: int  # ε_j = centre 2^((low + j) / 2)
    moments: Array  # (5, R, m): means over each row, without itself, of K, KE, K², K·KE, (KE)²

    @classmethod
    def of(cls, pairs: _Pairs) -> _Curve:
        positive = _positive(pairs.d2)
        # Relative to the scale of the data, so that scaling X scales the result exactly.
        centre = float(np.median(positive))
        low = int(np.floor(2 * np.log2(max(float(np.min(positive)) / centre, 2.0**-80)))) - 2
        high = int(np.ceil(2 * np.log2(float(np.max(positive)) / centre))) + 8
        epsilons = centre * 2.0 ** (np.arange(low, high + 1) / 2)
        return cls(pairs, centre, low, _moments(pairs.d2, epsilons))

    @property
    def epsilons(self) -> Array:
        return self.centre * 2.0 ** ((self.low + np.arange(self.moments.shape[2])) / 2)

    def epsilon(self, j: float) -> float:
        """Return ε_j for a fractional j."""
        return float(self.centre * 2.0 ** ((self.low + j) / 2))

    @property
    def slopes(self) -> Array:
        return self.slopes_of(np.full((1, self.moments.shape[1]), 1.0))[0]

    def slopes_of(self, weights: Array) -> Array:
        """Return the slopes (b, m) for weights (b, R) of the rows."""
        share = weights / weights.sum(axis=1, keepdims=True)
        with single_threaded_blas():
            K, KE = (share @ rows for rows in self.moments[:2])
        # The diagonal of n ones, relative to the n(n-1) pairs that the sample represents.
        return KE / (K + 1 / (self.pairs.n - 1))

    def correct_variance_share(self) -> Array:
        """Return the share of the bootstrap's variance that is correct (m,).

        With h_ij = K(E - slope) = mean + h_i + h_j + g_ij, row means have variance
        var h_i + var g / C; the bootstrap counts var g by 2/C² too much.
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
            # Two steps are a factor 2 in ε, which squares K: errors stay below 2^-47.
            K = np.exp(-E) if step % _EXPONENTIAL_STEPS < 2 else np.square(kernels[step % 2])
            K[own] = 0.0
            kernels[step % 2] = K
            E *= K
            moments[0, rows, j] = K.sum(axis=1)
            moments[1, rows, j] = E.sum(axis=1)
            for m, (a, b) in enumerate(((K, K), (K, E), (E, E)), start=2):
                moments[m, rows, j] = np.einsum("ij,ij->i", a, b)

    for_each_tile(work, len(d2), _TILE_ROWS)
    return moments / (d2.shape[1] - 1)


class _Spread(NamedTuple):
    """Standard deviations over samples of points: of the peak's place and height, and slopes."""

    place: float
    top: float
    slopes: Array

    @classmethod
    def of(cls, curve: _Curve, rng: np.random.Generator) -> _Spread:
        """Bootstrap over rows: as few as give their mean the variance of the mean over pairs."""
        R = len(curve.pairs.d2)
        if R < _MIN_BOOTSTRAP_ROWS:
            return cls(np.nan, np.nan, np.full(len(curve.epsilons), np.nan))
        drawn = max(1, round(1 / curve.pairs.variance_share))
        weights = rng.multinomial(drawn, np.full(R, 1 / R), size=_REPLICATES)
        deviations = curve.slopes_of(weights.astype(float)) - curve.slopes
        slopes = curve.slopes + np.sqrt(curve.correct_variance_share()) * deviations
        place, top = _peak(slopes)
        return cls(float(np.std(place)), float(np.std(top)), slopes.std(axis=0))


def _peak(slopes: Array) -> tuple[Any, Any]:
    """Return place and height of the maximum of curves (..., m), from parabolas."""
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
    """Return the interval of places about the peak where the curve is above 0.9 of its height."""
    level, best = _PLATEAU_SHARE * top, int(np.argmax(slopes))
    low = np.flatnonzero(slopes[:best] < level)
    high = best + np.flatnonzero(slopes[best:] < level)
    left, right = 0.0, float(len(slopes) - 1)
    if len(low):
        left = low[-1] + (level - slopes[low[-1]]) / (slopes[low[-1] + 1] - slopes[low[-1]])
    if len(high):
        right = high[0] - (level - slopes[high[0]]) / (slopes[high[0] - 1] - slopes[high[0]])
    return float(left), float(right)
