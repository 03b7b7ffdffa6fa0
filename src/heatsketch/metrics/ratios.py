"""What an embedding does to distances, of the ratios of pairs: extremes, quantiles, fractions."""

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from heatsketch._typing import Array

LEVELS = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
FACTORS = (1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
EDGES = 2.0 ** np.linspace(-3, 3, 61)  # of the histogram of ratios next to their median
EDGES.setflags(write=False)
ROUNDING = 1e-12  # of the largest distance: points as near as that count as equal
_DESCRIBED_FRACTION, _DESCRIBED_FACTOR = 0.99, 2.0
_N_WORST = 5  # pairs that are named at each end
_LOOKED_THROUGH = 20_000  # pairs among which they are, each maybe drawn several times
_LEVEL = 0.95  # of the intervals of fractions
_GROUPS = 32  # of the sampled points, each left out once to estimate the error of a fraction


class Distortion(NamedTuple):
    """How an embedding changes distances, up to a common factor.

    Attributes
    ----------
    log_L : float
        Natural logarithm of L = expansion / contraction [1]_. Zero for a similarity, infinite if
        different points coincide.
    expansion : float
        The largest ratio |f_i - f_j| / d_ij.
    contraction : float
        The smallest.
    quantiles : dict
        Level -> quantile of the ratios, divided by their median.
    worst_pairs : dict
        "expansion" and "contraction" -> indices (n_worst, 2), at most 5 each, of the pairs with the
        extreme ratios, the most extreme first.
    n_pairs : int
        Number of pairs compared; those at distance zero on both sides are left out.
    median : float
        The median ratio.
    within : dict
        Factor -> fraction of the pairs whose ratio is within this factor of the median, up or down.
    within_interval : dict
        Factor -> (low, high), which holds the fraction of all pairs with a probability of 95 %,
        asymptotically in the number of sampled points; both ends are `within` if all pairs are
        compared.
    worst_factor : float
        The factor within which all ratios are.
    looked_at : str
        Which pairs were compared.
    held_out_log_L : float
        For learned maps: log L over pairs with points that a map like this was not fitted to; NaN
        if it was not computed.
    histogram : tuple of ndarrays of shape (61,), (60,)
        Edges and counts of a histogram of the ratios, divided by their median, from 1/8 to 8 on a
        logarithmic scale, over the pairs of the quantiles. Ratios beyond are in the outer bins.

    See Also
    --------
    distortion : Measure how an embedding changes given distances.
    metrics.diffusion_distortion : Measure how an embedding changes diffusion distances.
    plot.distortion_histogram : Draw a histogram of distance ratios.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), equation (32).
    """

    log_L: float
    expansion: float
    contraction: float
    quantiles: dict[float, float]
    worst_pairs: dict[str, Array]
    n_pairs: int
    median: float
    within: dict[float, float]
    within_interval: dict[float, tuple[float, float]]
    worst_factor: float
    looked_at: str = "all pairs"
    held_out_log_L: float = math.nan
    histogram: tuple[Array, Array] = EDGES, np.zeros(len(EDGES) - 1, int)

    def __repr__(self) -> str:
        """Return the figures that fit on a line or two, without the arrays."""
        within = ", ".join(f"{factor:g}: {value:.4f}" for factor, value in self.within.items())
        return (
            f"Distortion(log_L={self.log_L:.4g}, worst_factor={self.worst_factor:.4g}, "
            f"n_pairs={self.n_pairs}, within={{{within}}}, looked_at={self.looked_at!r})"
        )

    def describe(self) -> str:
        """Describe in one line how well distances are kept.

        Examples
        --------
        >>> import heatsketch as hs
        >>> hs.distortion([[0.0], [1.0], [4.0]], [1.0, 2.0, 3.0]).describe()
        'distances kept within a factor 2 for 100 % of pairs; worst 2'
        """
        enough = [factor for factor, kept in self.within.items() if kept >= _DESCRIBED_FRACTION]
        factor = enough[0] if enough else _DESCRIBED_FACTOR
        percent = math.floor(100 * self.within[factor] + 1e-9)  # 100 * 0.57 is less than 57
        worst = f"worst {self.worst_factor:.3g}"
        if math.isinf(self.worst_factor):
            where = "truth" if self.contraction else "the picture"
            worst = f"some points coincide only in {where}"
        return f"distances kept within a factor {factor:g} for {percent} % of pairs; {worst}"


def summary_of_ratios(
    embedded: Array,
    D: Array,
    i: Array,
    j: Array,
    looked_at: str,
    n_sampled: int | None = None,
    *,
    rounding: float = ROUNDING,
    left_out: float | None = None,
) -> Distortion:
    """Summarise the ratios embedded / D of pairs.

    Quantiles and fractions are those of the first `n_sampled` pairs: independent ones, or all pairs
    of some points, without the fraction `left_out` of the others.
    """
    kept = np.flatnonzero((rounding * D.max() < D) | (rounding * embedded.max() < embedded))
    if not len(kept):
        raise ValueError("No pair has a distance to compare: all are zero on both sides.")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = embedded / D
    order = kept[np.argsort(ratio[kept])]
    typical = order if n_sampled is None else order[order < n_sampled]
    ordered = ratio[typical]
    middle, within = _median_and_within(ordered)
    low, high = ratio[order[[0, -1]]].tolist()
    log_L = math.inf if low == 0 or math.isinf(high) else math.log(high) - math.log(low)
    quantiles = np.full(len(LEVELS), math.nan)
    counts = np.zeros(len(EDGES) - 1, int)
    if middle > 0:
        quantiles = np.quantile(ordered[np.isfinite(ordered)], LEVELS) / middle
        inside = np.searchsorted(ordered, EDGES[1:-1] * middle)  # others are in the outer bins
        counts = np.diff(inside, prepend=0, append=len(ordered))
    ends = np.array([within, within])
    if n_sampled is not None:
        ends = _interval(ordered, within, n_sampled, np.array([i, j])[:, typical], left_out)
    return Distortion(
        log_L=log_L,
        expansion=high,
        contraction=low,
        quantiles=dict(zip(LEVELS, quantiles.tolist(), strict=True)),
        worst_pairs={
            "contraction": _first_pairs(i, j, order[:_LOOKED_THROUGH]),
            "expansion": _first_pairs(i, j, order[: -_LOOKED_THROUGH - 1 : -1]),
        },
        n_pairs=len(kept),
        median=middle,
        within=dict(zip(FACTORS, within.tolist(), strict=True)),
        worst_factor=math.inf if math.isinf(log_L) else max(high / middle, middle / low),
        looked_at=looked_at,
        histogram=(EDGES, counts),
        within_interval=dict(zip(FACTORS, map(tuple, ends.T.tolist()), strict=True)),
    )


def _first_pairs(i: Array, j: Array, order: Array) -> Array:
    """Return the first different pairs (m, 2) in an order: some were drawn several times."""
    pairs = np.column_stack([i[order], j[order]])
    once = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)[1]
    return pairs[np.sort(once)[:_N_WORST]]


def _median_and_within(ratio: Array) -> tuple[float, Array]:
    """Return the median of the finite ratios, and the fractions of all within FACTORS of it.

    Ratios ascend. The median is NaN if none is finite.
    """
    finite, reach = ratio[np.isfinite(ratio)], np.array(FACTORS) * (1 + ROUNDING)
    middle = float(np.median(finite)) if len(finite) else math.nan
    if not middle > 0:  # most pairs coincide
        return middle, np.zeros(len(reach))
    low = np.searchsorted(ratio, middle / reach, side="left")
    high = np.searchsorted(ratio, middle * reach, side="right")
    return middle, (high - low) / len(ratio)


def _interval(
    ratio: Array, within: Array, n_sampled: int, pairs: Array, left_out: float | None
) -> Array:
    """Return the ends (2, m) of 95 % intervals of the fractions of all pairs.

    Wilson's interval of as many independent pairs as have the same variance. That of all pairs
    (2, p) of sampled points is estimated by leaving out groups of points, one by one (the
    jackknife, which holds for means over pairs as for means over points, Arvesen 1969).
    """
    effective, freedom, scale = float(n_sampled), math.inf, 1.0
    if left_out is not None:
        points, place = np.unique(pairs, return_inverse=True)
        groups = place.reshape(2, -1) % _GROUPS
        left = [_median_and_within(ratio[(groups != g).all(axis=0)])[1] for g in range(_GROUPS)]
        variance = (_GROUPS - 1) * np.var(left, axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = np.fmax(within * (1 - within) / variance, len(points) / 2)
        freedom, scale = _GROUPS - 1, left_out
    z2 = student.ppf((1 + _LEVEL) / 2, freedom) ** 2 / effective * scale
    centre = (within + z2 / 2) / (1 + z2)
    half = np.sqrt(z2 * within * (1 - within) + z2**2 / 4) / (1 + z2)
    return np.clip([centre - half, centre + half], 0.0, 1.0)
