"""Distortions of distances: ratios over pairs, what they say, and of which distances."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import t as student

from heatsketch._arrays import Array, Rng
from heatsketch._checks import check_number
from heatsketch.core.blocks import HOST, Blocks
from heatsketch.layout.linear import (
    ALL_PAIRS_UP_TO,
    RANDOM_PAIRS,
    nearest_pairs,
    sampled_pairs,
    within_labels,
)
from heatsketch.metrics.distances import DiffusionDistances, Pairs, check_pairs
from heatsketch.neighbors import all_distances, pair_distances

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


_NEGLIGIBLE = 0.01  # error of a mean squared distance by coordinates, up to which it counts as 0
_MOST, _LEAST = 1e150, 1e-150  # largest coordinates of which squares are within the range
_SAMPLED_POINTS, _SAMPLE_ENTRIES = 256, 12_800_000  # between which all distances are computed
_FEWEST_POINTS = 64
_SERIES = 1e-9  # error of a polynomial in A, of these distances
_N_NEIGHBORS, _NEIGHBOR_ROWS = 5, 2_000  # of nearest pairs, and points that they start from
_MAX_TREE_DIMENSIONS, _MANY_DIMENSIONS_ROWS = 15, 20_000  # beyond, a search costs n for each point
_N_EXTREMES = 32  # pairs of smallest and as many of largest ratio
_SKETCH_COLUMNS = 128
_WITHIN = " within components"


def distortion(F: Any, D: Any, *, pairs: Pairs | None = None) -> Distortion:
    """Measure how an embedding changes distances [1]_.

    Parameters
    ----------
    F : array-like of shape (n_samples, n_components)
        The embedding.
    D : array-like of shape (n_samples * (n_samples - 1) / 2,), (n_samples, n_samples) or (n_pairs,)
        Distances to keep.
    pairs : tuple of two array-likes of int of shape (n_pairs,), default=None
        Indices i and j of the pairs whose distances D holds; by default all.

    Returns
    -------
    Distortion
        `log_L`, `expansion`, `contraction`; `within`, factor -> fraction of pairs whose ratio is
        within this factor of the median; `worst_pairs`, `quantiles`, `median`; `describe()`.

    Raises
    ------
    ValueError
        Shapes that do not match, negative or non-finite numbers, or no pair with a distance.

    See Also
    --------
    metrics.Distortion : The result of `distortion`.
    metrics.diffusion_distortion : Measure how an embedding changes diffusion distances.
    metrics.row_distortion : Measure how one embedding keeps the distances of another.
    plot.distortion_histogram : Draw a histogram of distance ratios.

    Notes
    -----
    Embedded distances are computed from explicit differences. The cost is k operations for each
    pair and k coordinates.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), equation (32).

    Examples
    --------
    >>> import heatsketch as hs
    >>> q = hs.distortion([[0.0], [1.0], [4.0]], [1.0, 2.0, 3.0])
    >>> q.expansion, q.contraction, round(q.log_L, 4)
    (2.0, 1.0, 0.6931)
    """
    F, D = _as_embedding(F), np.asarray(D, dtype=float)
    if pairs is None:
        i, j = np.triu_indices(len(F), 1)
        D = D[i, j] if D.shape == (len(F), len(F)) else D
        embedded = pdist(F)
    else:
        i, j = check_pairs(pairs, len(F))
        embedded = pair_distances(F, F, i, j)
    if D.shape != embedded.shape:
        raise ValueError(
            f"D has shape {D.shape} but there are {len(embedded)} pairs of {len(F)} points; pass "
            "one distance for each pair."
        )
    if not np.isfinite(D).all() or (D < 0).any():
        raise ValueError("D holds negative or non-finite numbers; pass distances.")
    looked_at = "all pairs" if pairs is None else "the given pairs"
    return summary_of_ratios(embedded, D, i, j, looked_at, rounding=0.0)


def row_distortion(Y: Any, F: Any, *, rng: Rng = 0, n_pairs: int = RANDOM_PAIRS) -> Distortion:
    """Measure how the rows of Y keep the distances between the rows of F [1]_.

    Up to 2,048 points all pairs are compared. Beyond, quantiles and fractions come from random
    pairs. The 32 smallest and 32 largest ratios are searched for among these, nearest neighbours in
    F of 2,000 points, and nearest neighbours in Y of all points (of 20,000 if Y has more than 15
    dimensions). These include collisions. `looked_at` says which pairs were compared.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_components)
        The embedding.
    F : array-like of shape (n_samples, n_directions)
        The points whose Euclidean distances are to be kept.
    rng : int, Generator or None, default=0
        Seed of the random pairs.
    n_pairs : int, default=500000
        Number of random pairs.

    Returns
    -------
    Distortion
        `log_L`, `expansion`, `contraction`, `within`, `quantiles` and the worst pairs.

    Raises
    ------
    ValueError
        Y and F have different lengths, or `n_pairs` is out of range.

    See Also
    --------
    distortion : Measure how an embedding changes given distances.
    metrics.diffusion_distortion : Measure how an embedding changes diffusion distances.
    NearIsometricProjection : Learn a projection that keeps distances.

    Notes
    -----
    The cost is k + r operations for each pair, for k and r columns of Y and F, and a search for the
    neighbours of n points in k dimensions.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), equation (32).

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.metrics import row_distortion
    >>> F = np.random.default_rng(0).normal(size=(50, 3))
    >>> round(row_distortion(2 * F, F).log_L, 12)
    0.0
    """
    Y, F = _as_embedding(Y, "Y"), _as_embedding(F)
    if len(Y) != len(F):
        raise ValueError(f"Y has {len(Y)} rows and F has {len(F)}; pass one row per point in each.")
    n_pairs = check_number(n_pairs, "n_pairs", low=1, integer=True)
    if len(Y) <= ALL_PAIRS_UP_TO:
        return _over_all_pairs(Y, pdist(F))
    rng = np.random.default_rng(rng)
    sampled = sampled_pairs(len(Y), n_pairs, rng)
    points = rng.permutation(len(Y))[:_NEIGHBOR_ROWS]
    candidates = {
        "nearest in the input": nearest_pairs(F, points, _N_NEIGHBORS),
        "nearest in the embedding": _near_in_embedding(Y, rng),
    }
    extremes = _extremes(Y, F, candidates)
    D = pair_distances(F, F, *np.hstack([sampled, extremes]))
    looked_at = f"{len(sampled[0]):,} random pairs"
    return _with_extremes(Y, D, sampled, extremes, looked_at, candidates)


def diffusion_distortion(
    F: Any,
    A: Any,
    time: float = 8,
    *,
    filter: str = "power",
    n_pairs: int | None = None,
    rng: Rng = 0,
) -> Distortion:
    """Measure how an embedding changes diffusion distances, those of `diffusion_distance`.

    The measures are those of `distortion` [1]_. If a `Diffusion` has several components (and not
    the symmetric form), only distances within a component are compared, because nothing diffuses
    between them.

    Distances come from 64 leading eigenpairs. If these are not enough, they come from all
    eigenpairs of up to 2,048 points, or, for more points, from a sketch of the others. If these 64
    eigenpairs give less than half of a mean squared distance, more points have a sketch alone.
    `HeatEmbedding` measures in the same way.

    Up to 2,048 points all pairs are compared. Beyond, quantiles and fractions come from 500,000
    random pairs, if the mean squared distance has an error of 1 % at most. Else they come from all
    pairs of 256 random points (beyond 50,000 points of fewer, at least 64), whose distances are
    exact. `within_interval` says how far the fractions of all pairs may be from those; it is wider
    for fewer points.

    Extremes are searched for among random pairs, pairs near in diffusion of 2,000 points, and
    nearest neighbours in F of all points (of 20,000 if F has more than 15 dimensions), which
    include collisions. The result has the 32 pairs of smallest and 32 of largest ratio; if the
    error is above 1 %, their distances are computed exactly. `looked_at` says which pairs were
    compared.

    Parameters
    ----------
    F : array-like of shape (n_samples, n_components)
        The embedding.
    A : Diffusion, Operator or {array-like, sparse matrix} of shape (n_samples, n_samples)
        Diffusion, or symmetric matrix.
    time : float >= 0, default=8
        Diffusion time of the distances.
    filter : {"power", "heat", "accumulated"}, default="power"
        Filter of the distances, see `diffusion_distance`.
    n_pairs : int, default=None
        Number of pairs for quantiles and fractions beyond 2,048 points: random pairs if the error
        is at most 1 % (by default 500,000), else all pairs of the fewest random points that have
        as many.
    rng : int, Generator or None, default=0
        Seed of the random points and the sketch: the same numbers for the same seed.

    Returns
    -------
    Distortion
        `log_L`, `expansion`, `contraction`, `within`, `quantiles` and the worst pairs.

    Raises
    ------
    ValueError
        A not symmetric; time so large that distances underflow; F and A have different numbers of
        points.

    See Also
    --------
    distortion : Measure how an embedding changes given distances.
    diffusion_distance : Compute diffusion distances exactly.
    metrics.row_distortion : Measure how one embedding keeps the distances of another.

    Notes
    -----
    The cost is the eigenpairs, and, for more than 2,048 points at small times, products by A with
    128 to 512 columns, and a search for the neighbours of n points in k dimensions. Memory holds
    192 numbers for each point, and seven blocks of columns, at most 0.27 GB each.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), equation (32).

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(200, rng=0)
    >>> model = hs.DiffusionMap(2, time=8, affinity="dense", epsilon=0.25).fit(X)
    >>> q = hs.metrics.diffusion_distortion(model.embedding_, model.diffusion_, time=8)
    >>> q.log_L < 0.5, q.looked_at
    (True, 'all pairs')
    """
    wanted = DiffusionDistances.from_operator(A, time, filter, within_components=True)
    return distortion_from(F, wanted, n_pairs, rng)


def distortion_from(
    F: Any,
    wanted: DiffusionDistances,
    n_pairs: int | None = None,
    rng: Rng = 0,
    known: tuple[Array, float] | None = None,
) -> Distortion:
    """Measure how an embedding F (n, k) changes distances; see `diffusion_distortion`.

    `known` are rows S, of the points that count, whose distances are those wanted, up to an error
    of the mean squared distance; F is then an embedding of the package. The worst pairs are rows
    of F.
    """
    n = wanted.rows.n_points
    if known is None:
        F = _as_embedding(F)
        of_all = n if wanted.counted is None else len(wanted.counted)
        if len(F) != of_all:
            raise ValueError(
                f"F has {len(F)} rows but A has {of_all} points; pass a row for each point."
            )
        if n_pairs is not None:
            n_pairs = check_number(n_pairs, "n_pairs", low=1, integer=True)
        leading = n <= ALL_PAIRS_UP_TO or not wanted.is_spread_out()
        S, error = wanted.coordinates(_SKETCH_COLUMNS, leading=leading)
    else:
        S, error = known
        if len(S) > ALL_PAIRS_UP_TO and error > _NEGLIGIBLE and wanted.is_spread_out():
            S, error = wanted.coordinates(_SKETCH_COLUMNS, leading=False)
    numbers = np.arange(len(F)) if wanted.counted is None else np.flatnonzero(wanted.counted)
    F = F[numbers]
    if len(F) <= ALL_PAIRS_UP_TO:
        found = _over_all_pairs(F, all_distances(S), wanted.labels)  # pdist: ten times as long
    else:
        found = _over_sampled_pairs(F, S, error, wanted, n_pairs, rng)
    worst = {end: numbers[pairs] for end, pairs in found.worst_pairs.items()}
    return found._replace(worst_pairs=worst)


def _over_sampled_pairs(
    F: Array,
    S: Array,
    error: float,
    wanted: DiffusionDistances,
    n_pairs: int | None = None,
    rng: Rng = 0,
) -> Distortion:
    """Compare some pairs with the distances of S, or, if their error is above 1 %, with exact ones.

    Then S only says which pairs may be extreme.
    """
    n, labels = len(F), wanted.labels
    rng = np.random.default_rng(rng)
    sampled = sampled_pairs(n, n_pairs or RANDOM_PAIRS, rng, labels)
    points, step = rng.permutation(n)[:_NEIGHBOR_ROWS], wanted.rows.step
    if step is not None and hasattr(step.matrix, "tocsr"):
        near = _near_in_graph(step.matrix, wanted.rows.vertex, points)
    else:
        near = nearest_pairs(S, points, _N_NEIGHBORS)
    candidates = {
        "nearest in diffusion": within_labels(*near, labels),
        "nearest in the embedding": within_labels(*_near_in_embedding(F, rng), labels),
    }
    blocks = wanted.rows.operator.blocks
    if error <= _NEGLIGIBLE:
        extremes = _extremes(F, S, candidates, blocks)
        D = pair_distances(S, S, *np.hstack([sampled, extremes]))
        looked_at, left_out = f"{len(sampled[0]):,} random pairs", None
    else:
        candidates["random pairs"] = sampled
        extremes = _extremes(F, S, candidates, blocks)
        sampled, looked_at, left_out = _pairs_of_few_points(wanted, n, n_pairs, rng)
        D = np.hstack([wanted.between(i, j, _SERIES) for i, j in (sampled, extremes)])
    return _with_extremes(F, D, sampled, extremes, looked_at, candidates, labels, left_out)


def _pairs_of_few_points(
    wanted: DiffusionDistances, n: int, n_pairs: int | None, rng: np.random.Generator
) -> tuple[Pairs, str, float | None]:
    """Return pairs of which exact distances are affordable: all pairs of some of n points.

    Also returned are words for them, and the fraction of the points that is left out; None if pairs
    are drawn, because hardly any two of the points are in the same component.
    """
    m = min(_SAMPLED_POINTS, max(_FEWEST_POINTS, _SAMPLE_ENTRIES // wanted.rows.operator.n))
    if n_pairs is not None:
        m = min(n, math.ceil((1 + math.sqrt(1 + 8 * n_pairs)) / 2))
    i, j = rng.permutation(n)[np.array(np.triu_indices(m, 1))]
    pairs = within_labels(i, j, wanted.labels)
    if len(pairs[0]) < m:
        return sampled_pairs(n, m // 2, rng, wanted.labels), f"{m // 2:,} random pairs", None
    return pairs, f"all {len(pairs[0]):,} pairs of {m:,} random points", 1 - m / n


def _over_all_pairs(F: Array, before: Array, labels: Array | None = None) -> Distortion:
    """Compare all pairs with the same label with their distances among all pairs (p,)."""
    i, j = np.triu_indices(len(F), 1)
    if labels is None:
        return summary_of_ratios(pdist(F), before, i, j, "all pairs")
    kept = labels[i] == labels[j]
    looked_at = f"all pairs{_WITHIN}"
    return summary_of_ratios(pdist(F)[kept], before[kept], i[kept], j[kept], looked_at)


def _near_in_embedding(F: Array, rng: np.random.Generator) -> Pairs:
    """Return pairs of points with their nearest neighbours in F."""
    n, few_dimensions = len(F), F.shape[1] <= _MAX_TREE_DIMENSIONS
    rows = np.arange(n) if few_dimensions else rng.permutation(n)[:_MANY_DIMENSIONS_ROWS]
    return nearest_pairs(F, rows, _N_NEIGHBORS)


def _with_extremes(
    F: Array,
    D: Array,
    sampled: Pairs,
    extremes: Pairs,
    looked_at: str,
    candidates: dict[str, Pairs],
    labels: Array | None = None,
    left_out: float | None = None,
) -> Distortion:
    """Compare sampled pairs, and the extreme ones among candidates, with their distances D."""
    counts = " + ".join(f"{len(i):,} {name}" for name, (i, _) in candidates.items())
    looked_at += f" + the {len(extremes[0])} of most extreme ratio from {counts}"
    looked_at += "" if labels is None else _WITHIN
    i, j = np.hstack([sampled, extremes])
    after = pair_distances(F, F, i, j)
    return summary_of_ratios(after, D, i, j, looked_at, len(sampled[0]), left_out=left_out)


def _extremes(F: Array, S: Array, candidates: dict[str, Pairs], blocks: Blocks = HOST) -> Pairs:
    """Return the different pairs whose ratios |f_i - f_j| / |s_i - s_j| are extreme.

    Differences of S, which has many columns, are taken where `blocks` are.
    """
    low, high = np.sort(np.hstack(list(candidates.values())), axis=0)
    i, j = np.divmod(np.unique(low * np.int64(len(F)) + high), len(F))
    after = pair_distances(F, F, i, j)
    before = blocks.host(pair_distances(S, S, blocks.native(i), blocks.native(j)))
    kept = np.flatnonzero((after > ROUNDING * after.max()) | (before > ROUNDING * before.max()))
    with np.errstate(divide="ignore"):
        order = kept[np.argsort(after[kept] / before[kept], kind="stable")]
    ends = np.union1d(order[:_N_EXTREMES], order[-_N_EXTREMES:])
    return i[ends], j[ends]


def _near_in_graph(graph: Any, vertex: Array, points: Array) -> Pairs:
    """Return pairs of some points with those that a graph joins them to, and with duplicates."""
    first = np.unique(vertex, return_index=True)[1]  # point at each vertex
    row, column = graph[vertex[points]].nonzero()
    i = np.append(points[row], points)
    j = np.append(first[column], first[vertex[points]])
    return i[i != j], j[i != j]


def _as_embedding(F: Any, name: str = "F") -> Array:
    F = np.asarray(F, dtype=float)
    F = F[:, None] if F.ndim == 1 else F
    if F.ndim != 2 or len(F) < 2 or not np.isfinite(F).all():
        fault = "" if np.isfinite(F).all() else " and NaN or infinity"
        raise ValueError(
            f"{name} has shape {F.shape}{fault}; pass a finite embedding (n, k) of n >= 2 points."
        )
    largest = float(np.abs(F).max(initial=0.0))
    if not _LEAST < largest < _MOST and largest:
        raise ValueError(f"The coordinates have the size {largest:.0e}; pass them divided by it.")
    return F
