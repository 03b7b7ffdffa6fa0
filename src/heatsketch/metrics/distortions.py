"""How far apart points are under diffusion, and how well an embedding keeps it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from heatsketch._checks import check_number
from heatsketch._typing import Array, Rng
from heatsketch.metrics.distances import (
    DiffusionRows,
    Pairs,
    check_pairs,
    diffusion_rows,
)
from heatsketch.neighbors import NeighborIndex, pair_distances

LEVELS = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
FACTORS = (1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
_ROUNDING = 1e-12  # of the largest coordinate: points as near as that are one point
_NEARLY_ALL, _USUAL_FACTOR = 0.99, 2.0
_ALL_PAIRS_UP_TO = 2_048  # points
_NEAR_ROWS, _COLLIDING_ROWS, _NEIGHBORS = 2_000, 20_000, 5
_RANDOM_PAIRS = 500_000
_ALL_EXACT_UP_TO = 1_000  # points: as many columns of f(A)
_SAMPLE = 500  # points beyond
_EXTREMES = 100  # pairs of least and as many of largest ratio
_SCREEN = 256  # columns of the sketch they are found in: distances to 4 % (one standard deviation)


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
        Pairs looked at (those at distance zero on both sides say nothing and are left out).
    median : float
        The median ratio.
    within : dict
        Factor -> share of the pairs whose ratio is within this factor of the median, up or down.
    worst_factor : float
        The factor within which all of them are.
    looked_at : str
        Which pairs these were.
    held_out_log_L : float
        For maps that are learned: log L over pairs with points that a map like this was not fitted
        on; NaN where nobody looked.
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
        """Say in one line how well distances are kept.

        Examples
        --------
        >>> import heatsketch as hs
        >>> hs.distortion([[0.0], [1.0], [4.0]], [1.0, 2.0, 3.0]).describe()
        'distances kept within a factor 2 for 100 % of pairs; worst 2'
        """
        enough = [factor for factor, share in self.within.items() if share >= _NEARLY_ALL]
        factor = enough[0] if enough else _USUAL_FACTOR
        share = math.floor(100 * self.within[factor] + 1e-9)  # 0.57 is a little less than 57 %
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
        The pairs that D belongs to; by default all.

    Returns
    -------
    Distortion
        `log_L`, `expansion`, `contraction`, `quantiles`, `worst_pairs`, `n_pairs`.

    Raises
    ------
    ValueError
        Shapes that do not fit, negative or non-finite numbers, or no pair with a distance.

    Notes
    -----
    Embedded distances come from explicit differences. Cost: k operations a pair.

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
            "one distance a pair."
        )
    if not np.isfinite(D).all() or (D < 0).any():
        raise ValueError("D holds negative or non-finite numbers; pass distances.")
    looked_at = "all pairs" if pairs is None else "the given pairs"
    return _summary(embedded, D, F_exponent - D_exponent, i, j, len(D), looked_at)


def row_distortion(
    Y: Any, F: Any, *, used: Pairs | None = None, rng: Rng = 0, n_pairs: int = _RANDOM_PAIRS
) -> Distortion:
    """Measure how the rows of Y (n, k) keep the distances between the rows of F (n, r).

    Over all pairs up to 2,048 points. Beyond, quantiles and shares come from random pairs, and
    extremes also from where they are to be found: nearest neighbours in F of some points, nearest
    neighbours of the points in Y (collisions; beyond 15 dimensions of 20,000 points), and the pairs
    `used`.

    Parameters
    ----------
    Y : array (n, k)
        The embedding.
    F : array (n, r)
        The points whose Euclidean distances are to be kept.
    used : (i, j) of index arrays, optional
        Further pairs to look at.
    rng : int, Generator or None, default 0
        Of the random pairs.
    n_pairs : int, default 500,000
        Random pairs.

    Returns
    -------
    Distortion
        `looked_at` says which pairs there were.

    Notes
    -----
    Cost: k + r operations a pair, and the neighbours of n points in k dimensions.

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
        raise ValueError(f"Y has {len(Y)} rows and F has {len(F)}; pass one row a point in each.")
    exponent = Y_exponent - F_exponent
    if len(F) <= _ALL_PAIRS_UP_TO:
        i, j = np.triu_indices(len(F), 1)
        return _summary(pdist(Y), pdist(F), exponent, i, j, len(i), "all pairs", _ROUNDING)
    generator = np.random.default_rng(rng)
    n_pairs = check_number(n_pairs, "n_pairs", low=1, integer=True)
    names = ("random", "nearest before", "nearest after", "used for fitting")
    groups = _telling_pairs(Y, F, n_pairs, generator)
    if used is not None:
        groups.append(check_pairs(used, len(F)))
    i, j = _joined(groups)
    looked_at = f"{_counts(groups, names)} pairs"
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

    Over all pairs up to 1,000 points. Beyond, quantiles and shares come from random pairs. Extremes
    are looked for in a sketch of f(A), with 256 columns up to 131,072 points and fewer beyond: of
    up to 500,000 random pairs, nearest neighbours in the sketch of 2,000 points, and nearest
    neighbours in F of all points (collisions; beyond 15 dimensions of 20,000 points), the 100 of
    least and 100 of largest ratio are computed exactly, too. So the true extremes are at least as
    wide as those found.

    Parameters
    ----------
    F : array (n, k)
        The embedding.
    A, time, filter
        As in `diffusion_distance`.
    n_pairs : int, optional
        Random pairs instead of all, or of those among about 500 points.
    rng : int, Generator or None, default 0
        Of the random pairs and of the sketch.

    Returns
    -------
    Distortion
        `looked_at` says which pairs there were.

    Raises
    ------
    ValueError
        As `diffusion_distance`; F of another number of points.

    Notes
    -----
    Cost: products by A with some 1,100 columns, about 500 of them for random pairs, and the
    neighbours of n points in k dimensions. Memory: seven blocks of columns of at most 0.27 GB.
    Random pairs are those within groups of as many points as fit into a block: up to 67,000 points
    a single group.

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
    if len(F) != rows.n_points:
        raise ValueError(
            f"F has {len(F)} rows but A has {rows.n_points} points; pass one row a point."
        )
    if n_pairs is not None:
        n_pairs = check_number(n_pairs, "n_pairs", low=1, integer=True)
    generator = np.random.default_rng(rng)
    sample = _sample_pairs(len(F), n_pairs, rows.room, generator)
    if sample is None:
        i, j = np.triu_indices(len(F), 1)
        n_typical, looked_at = len(i), "all pairs"
    else:
        extreme, searched = _extreme_pairs(F, rows, generator)
        i, j = _joined([sample, extreme])
        n_typical, points = len(sample[0]), len(np.unique(sample))
        looked_at = f"{n_typical:,} among {points:,} random of {len(F):,} points + {searched}"
    D, D_exponent = _scaled(rows.distances(i, j))
    embedded = pair_distances(F, F, i, j)
    exponent = F_exponent - D_exponent
    return _summary(embedded, D, exponent, i, j, n_typical, looked_at, _ROUNDING)


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


def _sample_pairs(n: int, wanted: int | None, room: int, rng: Any) -> Pairs | None:
    """Return random pairs (i, j), i < j, within groups of at most `room` points; None for all.

    Few points with all their pairs: the cost is one column of f(A) for each point.
    """
    if n <= _ALL_EXACT_UP_TO if wanted is None else wanted >= n * (n - 1) // 2:
        return None
    points = _SAMPLE if wanted is None else math.ceil((1 + math.sqrt(1 + 8 * wanted)) / 2)
    size = points if points <= room else 2 * (room // 2)
    a, b = np.triu_indices(size, 1)
    groups = round(points / size) if wanted is None else -(-wanted // len(a))
    sample = rng.permutation(n)[: min(groups, n // size) * size]
    sample = np.sort(sample.reshape(-1, size), axis=1)
    i, j = sample[:, a].ravel(), sample[:, b].ravel()
    kept = np.sort(rng.permutation(len(i))[:wanted])
    return i[kept], j[kept]


def _extreme_pairs(F: Array, rows: DiffusionRows, rng: Any) -> tuple[Pairs, str]:
    """Return the pairs of least and largest ratio, by a sketch, and say which ones they are of."""
    k = min(_SCREEN, rows.room)
    S = _scaled(rows.sketch(k, rng))[0]
    groups = _telling_pairs(F, S, min(_RANDOM_PAIRS, 50 * len(F)), rng)
    ends = np.unique(np.sort(np.column_stack(_joined(groups)), axis=1), axis=0)  # each pair once
    after, before = (pair_distances(rows, rows, *ends.T) for rows in (F, S))
    kept = (after > _ROUNDING) | (before > _ROUNDING)
    with np.errstate(divide="ignore"):
        order = np.flatnonzero(kept)[np.argsort(after[kept] / before[kept], kind="stable")]
    extreme = np.unique(np.concatenate([order[:_EXTREMES], order[-_EXTREMES:]]))
    names = ("random", "nearest in diffusion", "nearest in the embedding")
    searched = f"the {len(extreme)} of extreme ratio, by a sketch of {k} columns, of "
    return tuple(ends[extreme].T), searched + _counts(groups, names) + " pairs"


def _telling_pairs(Y: Array, F: Array, n_pairs: int, rng: Any) -> list[Pairs]:
    """Return random pairs, pairs of nearest neighbours in F and in Y."""
    n = len(F)
    first = rng.integers(0, n, n_pairs)
    random = (first, (first + rng.integers(1, n, n_pairs)) % n)
    near = _nearest_pairs(F, rng.permutation(n)[:_NEAR_ROWS])
    # In few dimensions a tree finds the neighbours of all; in many, the cost is n for each point.
    rows = np.arange(n) if Y.shape[1] <= 15 else rng.permutation(n)[:_COLLIDING_ROWS]
    return [random, near, _nearest_pairs(Y, rows)]


def _joined(groups: Sequence[Pairs]) -> Pairs:
    i, j = (np.concatenate(sides) for sides in zip(*groups, strict=True))
    return i, j


def _counts(groups: Sequence[Pairs], names: Sequence[str]) -> str:
    """Say how many pairs there are of each kind; the last kinds may be missing."""
    named = zip(groups, names, strict=False)
    return " + ".join(f"{len(pairs[0]):,} {name}" for pairs, name in named)


def _nearest_pairs(F: Array, rows: Array) -> tuple[Array, Array]:
    """Return each of the rows with its five nearest others in F."""
    found = NeighborIndex(F).query(F[rows], _NEIGHBORS + 1, any_tie=True).indices
    i, j = np.repeat(rows, _NEIGHBORS + 1), found.ravel()
    return i[i != j], j[i != j]


def _scaled(values: Array) -> tuple[Array, int]:
    """Scale by a power of two to at most 1, where squares neither under- nor overflow."""
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
        off = np.maximum(typical / middle, middle / typical)  # (m,), at least 1
    worst_factor = math.inf if math.isinf(log_L) else max(high / middle, middle / low)
    rounding = 1 + 1e-12
    within = {factor: float(np.mean(off <= factor * rounding)) for factor in FACTORS}
    order = np.argsort(ratio, kind="stable")
    ends = {"contraction": order[:5], "expansion": order[::-1][:5]}
    worst = {name: np.column_stack([i[at], j[at]]) for name, at in ends.items()}
    with np.errstate(over="ignore", under="ignore"):
        expansion, contraction, median = (
            float(np.ldexp(value, exponent)) for value in (high, low, middle)
        )
    return Distortion(
        log_L,
        expansion,
        contraction,
        quantiles,
        worst,
        len(ratio),
        median,
        within,
        worst_factor,
        looked_at,
    )


def _as_embedding(F: Any) -> Array:
    F = np.asarray(F, dtype=float)
    F = F[:, None] if F.ndim == 1 else F
    if F.ndim != 2 or len(F) < 2 or not np.isfinite(F).all():
        raise ValueError(f"F has shape {F.shape}; pass a finite embedding (n, k) of n >= 2 points.")
    return F
