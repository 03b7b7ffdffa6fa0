"""How much an embedding changes distances: extremes and quantiles of the ratios of pairs."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from heatsketch._checks import check_number
from heatsketch._typing import Array, Rng
from heatsketch.isometry.pairs import ALL_PAIRS_UP_TO, RANDOM_PAIRS
from heatsketch.markov.rows import Eigenpairs
from heatsketch.metrics.all_pairs import all_distances
from heatsketch.metrics.distances import Pairs, check_pairs, rows_within_pieces
from heatsketch.metrics.histograms import NONE, histogram
from heatsketch.metrics.some_pairs import candidate_pairs, counts, sampled_distances, scaled
from heatsketch.neighbors import pair_distances
from heatsketch.spectral.apply import Block

LEVELS = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
FACTORS = (1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
_ROUNDING = 1e-12  # of the largest coordinate: points as near as that count as equal
_DESCRIBED_SHARE, _DESCRIBED_FACTOR = 0.99, 2.0
_N_WORST = 5  # pairs that are named at each end


class Distortion(NamedTuple):
    """How an embedding changes distances, up to a common factor.

    Attributes
    ----------
    log_L : float
        Natural logarithm of L = expansion / contraction: (32) of *Sketching the heat kernel*.
        Zero for a similarity, infinite where different points coincide.
    expansion : float
        The largest ratio |f_i - f_j| / d_ij.
    contraction : float
        The smallest.
    quantiles : dict
        Level -> quantile of the ratios, divided by their median.
    worst_pairs : dict
        "expansion" and "contraction" -> (5, 2) indices of the pairs with the extreme ratios.
    n_pairs : int
        Pairs that count; those at distance zero on both sides are left out.
    median : float
        The median ratio.
    within : dict
        Factor -> share of the pairs whose ratio is within this factor of the median, up or down.
    worst_factor : float
        The factor within which all ratios are.
    looked_at : str
        Which pairs were compared.
    held_out_log_L : float
        For learned maps: log L over pairs with points that a map like this was not fitted to; NaN
        if it was not computed.
    histogram : (edges (61,), counts (60,))
        How many of the pairs that quantiles come from have a ratio, divided by the median, between
        two edges, from 1/8 to 8 on a logarithmic scale; those beyond are in the outer bins.
    """

    log_L: float
    expansion: float
    contraction: float
    quantiles: dict[float, float]
    worst_pairs: dict[str, Array]
    n_pairs: int
    median: float
    within: dict[float, float]
    worst_factor: float
    looked_at: str = "all pairs"
    held_out_log_L: float = math.nan
    histogram: tuple[Array, Array] = NONE

    def describe(self) -> str:
        """Describe in one line how well distances are kept.

        Examples
        --------
        >>> import heatsketch as hs
        >>> hs.distortion([[0.0], [1.0], [4.0]], [1.0, 2.0, 3.0]).describe()
        'distances kept within a factor 2 for 100 % of pairs; worst 2'
        """
        enough = [factor for factor, share in self.within.items() if share >= _DESCRIBED_SHARE]
        factor = enough[0] if enough else _DESCRIBED_FACTOR
        share = math.floor(100 * self.within[factor] + 1e-9)  # 100 * 0.57 is less than 57
        return (
            f"distances kept within a factor {factor:g} for {share} % of pairs; "
            f"worst {self.worst_factor:.3g}"
        )


def distortion(F: Any, D: Any, *, pairs: Pairs | None = None) -> Distortion:
    """Measure how an embedding changes distances: (32) of *Sketching the heat kernel*.

    Parameters
    ----------
    F : array (n, k)
        The embedding.
    D : array (n(n-1)/2,), (n, n) or (m,) with `pairs`
        Distances to keep.
    pairs : (i, j) of index arrays (m,), optional
        The pairs whose distances D holds; by default all.

    Returns
    -------
    Distortion
        log L, the shares of pairs within some factors, the worst pairs.

    Raises
    ------
    ValueError
        Shapes that do not match, negative or non-finite numbers, or no pair with a distance.

    Notes
    -----
    Embedded distances are computed from explicit differences. Cost: k operations for each pair.

    Examples
    --------
    >>> import heatsketch as hs
    >>> q = hs.distortion([[0.0], [1.0], [4.0]], [1.0, 2.0, 3.0])
    >>> q.expansion, q.contraction, round(q.log_L, 4)
    (2.0, 1.0, 0.6931)
    """
    F, F_exponent = scaled(_as_embedding(F))
    D, D_exponent = scaled(np.asarray(D, dtype=float))
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
    return _summary(embedded, D, F_exponent - D_exponent, i, j, len(D), looked_at)


def row_distortion(
    Y: Any, F: Any, *, used: Pairs | None = None, rng: Rng = 0, n_pairs: int = RANDOM_PAIRS
) -> Distortion:
    """Measure how the rows of Y (n, k) keep the distances between the rows of F (n, r).

    Up to 2,048 points all pairs count. Beyond, quantiles and shares come from random pairs;
    extremes also from nearest neighbours in F of 2,000 points, from nearest neighbours in Y of all
    points (of 20,000 if Y has more than 15 dimensions), which include collisions, and from the
    pairs `used`. `looked_at` says which pairs were compared, and how many.

    Parameters
    ----------
    Y : array (n, k)
        The embedding.
    F : array (n, r)
        The points whose Euclidean distances are to be kept.
    used : (i, j) of index arrays, optional
        Further pairs to compare.
    rng : int, Generator or None, default 0
        For the random pairs.
    n_pairs : int, default 500,000
        Random pairs.

    Returns
    -------
    Distortion
        As of `distortion`.

    Raises
    ------
    ValueError
        Y and F have different lengths, or `used` or `n_pairs` is out of range.

    Notes
    -----
    Cost: k + r operations for each pair, and a search for the neighbours of n points in k
    dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.metrics import row_distortion
    >>> F = np.random.default_rng(0).normal(size=(50, 3))
    >>> round(row_distortion(2 * F, F).log_L, 12)
    0.0
    """
    (Y, Y_exponent), (F, F_exponent) = scaled(_as_embedding(Y)), scaled(_as_embedding(F))
    if len(Y) != len(F):
        raise ValueError(f"Y has {len(Y)} rows and F has {len(F)}; pass one row per point in each.")
    exponent = Y_exponent - F_exponent
    if len(F) <= ALL_PAIRS_UP_TO:
        i, j = np.triu_indices(len(F), 1)
        return _summary(pdist(Y), pdist(F), exponent, i, j, len(i), "all pairs", _ROUNDING)
    generator = np.random.default_rng(rng)
    n_pairs = check_number(n_pairs, "n_pairs", low=1, integer=True)
    candidates = candidate_pairs(Y, F, n_pairs, generator)
    if used is not None:
        candidates.append(check_pairs(used, len(F)))
    i, j = np.hstack(candidates)
    looked_at = counts(candidates, "the input")
    before, after = pair_distances(F, F, i, j), pair_distances(Y, Y, i, j)
    return _summary(after, before, exponent, i, j, n_pairs, looked_at, _ROUNDING)


def diffusion_distortion(
    F: Any,
    A: Any,
    time: float = 8,
    *,
    filter: str = "power",
    n_pairs: int | None = None,
    rng: Rng = 0,
    eigenpairs: Eigenpairs | None = None,
    log_scale: float = 0.0,
) -> Distortion:
    """Measure how an embedding changes diffusion distances, those of `diffusion_distance`.

    Of a `Diffusion` in several components (not in the symmetric form) only distances within a
    component count: nothing diffuses between them, and how far apart they are means nothing.

    Up to 2,048 points all pairs count, with exact distances. Beyond, quantiles and shares come from
    random pairs, whose distances a sketch of 128 columns gives: a distance has an error of 6 % (one
    standard deviation), which averages out. Extremes are searched for with this sketch among the
    random pairs, pairs near in diffusion of 2,000 points, and nearest neighbours in F of all points
    (of 20,000 if F has more than 15 dimensions), which include collisions; the 32 pairs of smallest
    and 32 of largest ratio are then computed exactly, so that the true extremes are at least as
    wide as those found. At times beyond 256, 64 eigenpairs take the place of the sketch if all
    others have less than 1e-3 of the largest weight. `looked_at` says which pairs were compared.

    Parameters
    ----------
    F : array (n, k)
        The embedding.
    A, time, filter
        As in `diffusion_distance`.
    n_pairs : int, optional
        Number of random pairs beyond 2,048 points, by default 500,000.
    rng : int, Generator or None, default 0
        For the random pairs and the sketch: the same numbers for the same seed.
    eigenpairs : (values (r,), vectors (n, r)), optional
        Where they are known, all those of A without √π whose f(λ) counts (they change the result
        by rounding only); beyond 2,048 points the `leading_pairs`.
    log_scale : float, default 0
        The embedding is F e^log_scale: at times at which that is beyond the range of numbers,
        estimators have it in `diagnostics_["log_scale"]`.

    Returns
    -------
    Distortion
        As of `distortion`.

    Raises
    ------
    ValueError
        As `diffusion_distance`; or F and A have different numbers of points.

    Notes
    -----
    Cost: up to 2,048 points all eigenpairs, unless they are given. Beyond, products by A with
    192 columns, and a search for the neighbours of n points in k dimensions. Memory: seven blocks
    of columns, at most 0.27 GB each; from 262,144 points on the sketch has fewer columns.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(200, rng=0)
    >>> model = hs.DiffusionMap(2, time=8, affinity="dense", epsilon=0.25).fit(X)
    >>> q = hs.metrics.diffusion_distortion(model.embedding_, model.diffusion_, time=8)
    >>> q.log_L < 0.5, q.looked_at
    (True, 'all pairs')
    """
    (F, exponent), compared = scaled(_as_embedding(F)), rows_within_pieces(A, time, filter)
    n = len(F)
    if n != compared.rows.n_points:
        raise ValueError(
            f"F has {n} rows but A has {compared.rows.n_points} points; pass a row per point."
        )
    n_pairs = RANDOM_PAIRS if n_pairs is None else n_pairs
    n_pairs = check_number(n_pairs, "n_pairs", low=1, integer=True)
    if n <= ALL_PAIRS_UP_TO:
        distances = all_distances(compared, eigenpairs)
        D, D_exponent = scaled(_over(distances, log_scale))
        known, looked_at = (pdist(F), D, *np.triu_indices(n, 1)), "all pairs"
        if compared.labels is not None:
            kept = pdist(compared.labels[:, None]) == 0
            known, looked_at = tuple(part[kept] for part in known), "all pairs within components"
        embedded, D, i, j = known
        exponent -= D_exponent
        return _summary(embedded, D, exponent, i, j, len(i), looked_at, _ROUNDING)
    generator = np.random.default_rng(rng)
    i, j, distances, looked_at = sampled_distances(F, compared, n_pairs, generator, eigenpairs)
    D, D_exponent = scaled(_over(distances, log_scale))
    embedded, exponent = pair_distances(F, F, i, j), exponent - D_exponent
    return _summary(embedded, D, exponent, i, j, n_pairs, looked_at, _ROUNDING, n_pairs)


def _over(distances: Block, log_scale: float) -> Array:
    """Return distances / e^log_scale."""
    return distances._replace(log_scale=distances.log_scale - log_scale).unscaled()


def _summary(
    embedded: Array,
    D: Array,
    exponent: int,
    i: Array,
    j: Array,
    n_typical: int,
    looked_at: str,
    negligible: float = 0.0,
    estimated: int = 0,
) -> Distortion:
    """Summarise the ratios embedded / D · 2^exponent; the first `n_typical` pairs stand for all.

    The first `estimated` ones are not known well enough to be extremes.
    """
    kept = (negligible < D) | (negligible < embedded)
    if not kept.any():
        raise ValueError("No pair has a distance to compare: all are zero on both sides.")
    n_typical, estimated = (int(np.count_nonzero(kept[:m])) for m in (n_typical, estimated))
    if not kept.all():
        embedded, D, i, j = (values[kept] for values in (embedded, D, i, j))
    with np.errstate(divide="ignore"):
        ratio = embedded / D
    typical = np.sort(ratio[: n_typical or None])
    finite = typical[: np.searchsorted(typical, math.inf)]
    middle = float(np.median(finite)) if len(finite) else math.nan
    first = estimated if estimated < len(ratio) else 0
    smallest, largest = (ends + first for ends in _extremes(ratio[first:]))
    low, high = float(ratio[smallest[0]]), float(ratio[largest[0]])
    log_L = math.inf if low == 0 or math.isinf(high) else math.log(high) - math.log(low)
    worst = {"contraction": smallest, "expansion": largest}
    with np.errstate(over="ignore", under="ignore"):
        expansion, contraction, median = np.ldexp([high, low, middle], exponent).tolist()
    return Distortion(
        log_L=log_L,
        expansion=expansion,
        contraction=contraction,
        quantiles=_quantiles(finite, middle),
        worst_pairs={end: np.column_stack([i[at], j[at]]) for end, at in worst.items()},
        n_pairs=len(ratio),
        median=median,
        within={factor: _share_within(typical, middle, factor) for factor in FACTORS},
        worst_factor=math.inf if math.isinf(log_L) else max(high / middle, middle / low),
        looked_at=looked_at,
        histogram=histogram(typical, middle),
    )


def _extremes(ratio: Array) -> tuple[Array, Array]:
    """Return the indices of the smallest and of the largest ratios, the most extreme first."""
    last = min(_N_WORST, len(ratio)) - 1
    small = np.flatnonzero(ratio <= np.partition(ratio, last)[last])
    large = np.flatnonzero(ratio >= np.partition(ratio, -1 - last)[-1 - last])
    small = small[np.argsort(ratio[small], kind="stable")]
    large = large[np.argsort(ratio[large], kind="stable")[::-1]]
    return small[:_N_WORST], large[:_N_WORST]


def _quantiles(ratio: Array, middle: float) -> dict[float, float]:
    """Return the quantiles of finite ratios, ascending, over their median."""
    levels = np.quantile(ratio, LEVELS) if len(ratio) else np.full(len(LEVELS), math.nan)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return dict(zip(LEVELS, (levels / middle).tolist(), strict=True))


def _share_within(ratio: Array, middle: float, factor: float) -> float:
    """Return the share of ratios, ascending, within a factor of their median."""
    if not middle > 0:
        return 0.0
    reach = factor * (1 + _ROUNDING)
    low = np.searchsorted(ratio, middle / reach, side="left")
    high = np.searchsorted(ratio, middle * reach, side="right")
    return float(high - low) / len(ratio)


def _as_embedding(F: Any) -> Array:
    F = np.asarray(F, dtype=float)
    F = F[:, None] if F.ndim == 1 else F
    if F.ndim != 2 or len(F) < 2 or not np.isfinite(F).all():
        raise ValueError(f"F has shape {F.shape}; pass a finite embedding (n, k) of n >= 2 points.")
    return F
