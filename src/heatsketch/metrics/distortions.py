"""How much an embedding changes distances: extremes and quantiles of the ratios of pairs."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from heatsketch._checks import check_number
from heatsketch._typing import Array, Rng
from heatsketch.isometry.pairs import ALL_PAIRS_UP_TO, RANDOM_PAIRS, nearest_pairs, sampled_pairs
from heatsketch.metrics.distances import (
    DiffusionRows,
    Pairs,
    check_pairs,
    diffusion_rows,
    sample_pairs,
)
from heatsketch.neighbors import pair_distances

LEVELS = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
FACTORS = (1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
_ROUNDING = 1e-12  # of the largest coordinate: points as near as that count as equal
_DESCRIBED_SHARE, _DESCRIBED_FACTOR = 0.99, 2.0
_N_NEIGHBORS, _NEIGHBOR_ROWS = 5, 2_000  # of nearest pairs, and points that they start from
_MAX_TREE_DIMENSIONS, _MANY_DIMENSIONS_ROWS = 15, 20_000  # beyond, a search costs n for each point
_N_EXTREMES = 100  # pairs of smallest and as many of largest ratio
_SCREENING_COLUMNS = 256  # of the sketch that finds them: distances within 4 % (one deviation)


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
    F, F_exponent = _scaled(_as_embedding(F))
    D, D_exponent = _scaled(np.asarray(D, dtype=float))
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
    (Y, Y_exponent), (F, F_exponent) = _scaled(_as_embedding(Y)), _scaled(_as_embedding(F))
    if len(Y) != len(F):
        raise ValueError(f"Y has {len(Y)} rows and F has {len(F)}; pass one row per point in each.")
    exponent = Y_exponent - F_exponent
    if len(F) <= ALL_PAIRS_UP_TO:
        i, j = np.triu_indices(len(F), 1)
        return _summary(pdist(Y), pdist(F), exponent, i, j, len(i), "all pairs", _ROUNDING)
    generator = np.random.default_rng(rng)
    n_pairs = check_number(n_pairs, "n_pairs", low=1, integer=True)
    candidates = _candidate_pairs(Y, F, n_pairs, generator)
    if used is not None:
        candidates.append(check_pairs(used, len(F)))
    i, j = np.hstack(candidates)
    looked_at = _counts(candidates, "the input")
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
) -> Distortion:
    """Measure how an embedding changes diffusion distances, which are computed exactly.

    Up to 1,000 points all pairs count. Beyond, quantiles and shares come from random pairs.
    Extremes are searched for with a sketch of f(A), of 256 columns up to 131,072 points and fewer
    beyond: among up to 500,000 random pairs, nearest neighbours in the sketch of 2,000 points, and
    nearest neighbours in F of all points (of 20,000 if F has more than 15 dimensions), which
    include collisions. The 100 pairs of smallest and 100 of largest ratio are then computed
    exactly, so the true extremes are at least as wide as those found. `looked_at` says which pairs
    were compared.

    Parameters
    ----------
    F : array (n, k)
        The embedding.
    A, time, filter
        As in `diffusion_distance`.
    n_pairs : int, optional
        Number of random pairs; by default all pairs up to 1,000 points, and beyond those among
        500 points.
    rng : int, Generator or None, default 0
        For the random pairs and the sketch.

    Raises
    ------
    ValueError
        As `diffusion_distance`; or F and A have different numbers of points.

    Notes
    -----
    Cost: products by A with some 1,100 columns, about 500 of them for random pairs, and a search
    for the neighbours of n points in k dimensions. Memory: seven blocks of columns, at most 0.27 GB
    each. Random pairs are pairs within groups of as many points as fit into a block: a single group
    up to 67,000 points.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(200, rng=0)
    >>> model = hs.DiffusionMap(2, time=8, affinity="dense", epsilon=0.25).fit(X)
    >>> q = hs.metrics.diffusion_distortion(model.embedding_, model.diffusion_, time=8)
    >>> q.log_L < 0.5, q.looked_at
    (True, 'all pairs')
    """
    (F, F_exponent), rows = _scaled(_as_embedding(F)), diffusion_rows(A, time, filter)
    n = len(F)
    if n != rows.n_points:
        raise ValueError(f"F has {n} rows but A has {rows.n_points} points; pass a row per point.")
    if n_pairs is not None:
        n_pairs = check_number(n_pairs, "n_pairs", low=1, integer=True)
    generator = np.random.default_rng(rng)
    sample = sample_pairs(n, n_pairs, rows.block_columns, generator)
    if sample is None:
        i, j = np.triu_indices(n, 1)
        n_typical, looked_at = len(i), "all pairs"
    else:
        extreme, searched = _extreme_pairs(F, rows, generator)
        i, j = np.hstack([sample, extreme])
        n_typical, points = len(sample[0]), len(np.unique(sample))
        looked_at = f"{n_typical:,} pairs among {points:,} random points of {n:,} + {searched}"
    D, D_exponent = _scaled(rows.distances(i, j))
    embedded = pair_distances(F, F, i, j)
    return _summary(embedded, D, F_exponent - D_exponent, i, j, n_typical, looked_at, _ROUNDING)


def share_within(Y: Array, F: Array, factor: float) -> float:
    """Return the share of all pairs whose ratio |y_i - y_j| / |f_i - f_j| is typical.

    Parameters
    ----------
    Y, F : arrays (n, k) and (n, r)
    factor : float >= 1
        Typical is what lies within this factor of the median, up or down.

    Examples
    --------
    >>> from heatsketch.metrics import share_within
    >>> share_within([[0.0], [1.0], [4.0]], [[0.0], [1.0], [2.0]], factor=1.25)
    0.3333333333333333
    """
    after, before = pdist(np.asarray(Y, dtype=float)), pdist(np.asarray(F, dtype=float))
    kept = (after > 0) | (before > 0)
    with np.errstate(divide="ignore"):
        ratio = after[kept] / before[kept]
    middle = np.median(ratio)
    if middle == 0:  # most pairs coincide
        return 0.0
    return float(np.mean((ratio <= factor * middle) & (ratio * factor >= middle)))


def _extreme_pairs(F: Array, rows: DiffusionRows, rng: Any) -> tuple[Pairs, str]:
    """Return the pairs of smallest and largest ratio in a sketch, and describe the candidates."""
    k = min(_SCREENING_COLUMNS, rows.block_columns)
    S = _scaled(rows.sketch(k, rng))[0]
    candidates = _candidate_pairs(F, S, min(RANDOM_PAIRS, 50 * len(F)), rng)
    ends = np.unique(np.sort(np.hstack(candidates).T, axis=1), axis=0)  # distinct
    after, before = (pair_distances(points, points, *ends.T) for points in (F, S))
    kept = (after > _ROUNDING) | (before > _ROUNDING)
    with np.errstate(divide="ignore"):
        order = np.flatnonzero(kept)[np.argsort(after[kept] / before[kept], kind="stable")]
    extreme = np.unique(np.concatenate([order[:_N_EXTREMES], order[-_N_EXTREMES:]]))
    searched = f"the {len(extreme)} of most extreme ratio in a sketch of {k} columns, chosen from "
    return tuple(ends[extreme].T), searched + _counts(candidates, "diffusion")


def _candidate_pairs(Y: Array, F: Array, n_pairs: int, rng: Any) -> list[Pairs]:
    """Return random pairs, pairs of nearest neighbours in F, and pairs of those in Y."""
    n = len(F)
    random = sampled_pairs(n, n_pairs, rng)
    near = nearest_pairs(F, rng.permutation(n)[:_NEIGHBOR_ROWS], _N_NEIGHBORS)
    few_dimensions = Y.shape[1] <= _MAX_TREE_DIMENSIONS
    rows = np.arange(n) if few_dimensions else rng.permutation(n)[:_MANY_DIMENSIONS_ROWS]
    return [random, near, nearest_pairs(Y, rows, _N_NEIGHBORS)]


def _counts(candidates: Sequence[Pairs], source: str) -> str:
    """Say how many pairs of each kind there are; the last kind may be missing."""
    kinds = ("random pairs", f"nearest in {source}", "nearest in the embedding", "used for fitting")
    counted = zip(candidates, kinds, strict=False)
    return " + ".join(f"{len(pairs[0]):,} {kind}" for pairs, kind in counted)


def _scaled(values: Array) -> tuple[Array, int]:
    """Scale by a power of two to at most 1, so that squares neither underflow nor overflow."""
    exponent = int(np.frexp(np.max(np.abs(values), initial=0.0))[1])
    return np.ldexp(values, -exponent), exponent


def _summary(
    embedded: Array,
    D: Array,
    exponent: int,
    i: Array,
    j: Array,
    n_typical: int,
    looked_at: str,
    negligible: float = 0.0,
) -> Distortion:
    """Summarise the ratios embedded / D · 2^exponent; the first `n_typical` pairs stand for all."""
    kept = (negligible < D) | (negligible < embedded)
    if not kept.any():
        raise ValueError("No pair has a distance to compare: all are zero on both sides.")
    with np.errstate(divide="ignore"):
        ratio, i, j = embedded[kept] / D[kept], i[kept], j[kept]
    high, low = float(ratio.max()), float(ratio.min())
    log_L = math.inf if low == 0 or math.isinf(high) else math.log(high) - math.log(low)
    typical = ratio[: np.count_nonzero(kept[:n_typical]) or len(ratio)]
    finite = typical[np.isfinite(typical)]
    middle = float(np.median(finite)) if len(finite) else math.nan
    levels = np.quantile(finite, LEVELS) if len(finite) else np.full(len(LEVELS), math.nan)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        quantiles = dict(zip(LEVELS, (levels / middle).tolist(), strict=True))
        factors = np.maximum(typical / middle, middle / typical)  # (m,), at least 1
    order = np.argsort(ratio, kind="stable")
    worst = {"contraction": order[:5], "expansion": order[::-1][:5]}
    with np.errstate(over="ignore", under="ignore"):
        expansion, contraction, median = np.ldexp([high, low, middle], exponent).tolist()
    return Distortion(
        log_L=log_L,
        expansion=expansion,
        contraction=contraction,
        quantiles=quantiles,
        worst_pairs={end: np.column_stack([i[at], j[at]]) for end, at in worst.items()},
        n_pairs=len(ratio),
        median=median,
        within={factor: float(np.mean(factors <= factor * (1 + 1e-12))) for factor in FACTORS},
        worst_factor=math.inf if math.isinf(log_L) else max(high / middle, middle / low),
        looked_at=looked_at,
    )


def _as_embedding(F: Any) -> Array:
    F = np.asarray(F, dtype=float)
    F = F[:, None] if F.ndim == 1 else F
    if F.ndim != 2 or len(F) < 2 or not np.isfinite(F).all():
        raise ValueError(f"F has shape {F.shape}; pass a finite embedding (n, k) of n >= 2 points.")
    return F
