"""How far apart points are under diffusion, and how well an embedding keeps it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from heatsketch._checks import check_number
from heatsketch._typing import Array, Rng
from heatsketch.diffusion import Diffusion
from heatsketch.filters import Block, Filter, apply, make_filter
from heatsketch.neighbors import NeighborIndex, pair_distances
from heatsketch.operators import as_operator
from heatsketch.operators.base import Deflated, Operator
from heatsketch.spectrum import leading_vector

LEVELS = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
FACTORS = (1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
_ROUNDING = 1e-12  # of the largest coordinate: points as near as that are one point
_NEARLY_ALL, _USUAL_FACTOR = 0.99, 2.0
_ALL_PAIRS_UP_TO = 2_048  # points
_NEAR_ROWS, _COLLIDING_ROWS, _NEIGHBORS = 2_000, 20_000, 5

Pairs = tuple[Any, Any]


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


def diffusion_distance(
    A: Any,
    time: float = 8,
    *,
    filter: str = "power",
    pairs: Pairs | None = None,
    deflate: bool = False,
) -> Array:
    """Compute diffusion distances D(i, j) = |row_i f(A) - row_j f(A)|, exactly.

    *Sketching the heat kernel*, equation (26). Rows are compared by explicit differences, and the
    trivial direction, which would drown small distances, is carried apart; it counts unless
    `deflate` says otherwise.

    Parameters
    ----------
    A : array (n, n), SciPy sparse matrix, operator or Diffusion
        For a `Diffusion` in the "markov" form the rows are weighted: row_i / √π_i, which is the
        distance between rows of Pᵗ in L²(1/π) (*Linear and nonlinear dimensionality reduction*,
        (25)); indices are those of the input points.
    time : int >= 0 (real for "heat"), default 8
    filter : "power" (λ^t) or "heat" (e^{-t(1-λ)}), default "power"
    pairs : (i, j) of index arrays (m,), optional
        Only these pairs; by default all, in the order of `scipy.spatial.distance.pdist`.
    deflate : bool, default False
        Leave the trivial direction √π out, as sketches and diffusion maps do. It makes a difference
        in the symmetric form alone, where √π is not constant and, at large times, is all there is.

    Returns
    -------
    array (n(n-1)/2,) or (m,)

    Raises
    ------
    ValueError
        A not symmetric; an index out of range; time so large that distances underflow.

    Notes
    -----
    Cost: products by A with one column for each point that occurs in a pair, and n operations a
    pair; memory 16 n bytes for each such point.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.diffusion_distance(np.diag([1.0, 0.5]), time=1)
    array([1.11803399])
    """
    f = make_filter(filter, time)
    if not isinstance(A, Diffusion):
        A = as_operator(A)
        operator = A if isinstance(A, Deflated) else Deflated(A, leading_vector(A, rng=0))
        whole = None if deflate or isinstance(A, Deflated) else A
        return _distances(operator, f, pairs, A.n, None, np.ones(A.n), whole)
    weight = 1 / np.sqrt(A.measure) if A.normalization == "markov" else np.ones(A.n)
    n_points = A.n if A.vertex is None else len(A.vertex)
    whole = None if deflate else A.operator
    return _distances(A.deflated(), f, pairs, n_points, A.vertex, weight, whole)


def _distances(
    deflated: Deflated,
    f: Filter,
    pairs: Pairs | None,
    n_points: int,
    vertex: Array | None,
    weight: Array,
    whole: Operator | None,
) -> Array:
    A = deflated
    if pairs is None:
        points = np.arange(n_points)
    else:
        i, j = _check_pairs(pairs, n_points)
        points = np.unique(np.concatenate([i, j]))
    # One row a vertex, so that duplicates are at distance exactly zero.
    used, place = np.unique(points if vertex is None else vertex[points], return_inverse=True)
    unit = np.zeros((A.n, len(used)), dtype=A.dtype)
    unit[used, np.arange(len(used))] = 1.0
    block = apply([f], deflated, deflated.project(unit))[0]
    rows = deflated.project(block.values).T * weight[used, None]  # (m, n): rows of f(A)
    log_scale = block.log_scale
    if whole is not None:
        rows, log_scale = _with_trivial_part(rows, log_scale, deflated, f, used, weight, whole)
    if pairs is None:
        D = pdist(rows if vertex is None else rows[place])
    else:
        i, j = (place[np.searchsorted(points, side)] for side in (i, j))
        D = pair_distances(rows, rows, i, j)
    return Block(D, log_scale).unscaled()


def _with_trivial_part(
    rows: Array,
    log_scale: float,
    deflated: Deflated,
    f: Filter,
    used: Array,
    weight: Array,
    A: Operator,
) -> tuple[Array, float]:
    """Append to the rows the coordinate that deflation took out, on a common scale."""
    u = deflated.V[:, 0]
    share = u[used] * weight[used]
    share = share - share.mean()
    if np.abs(share).max() <= 1e-13 * np.abs(u[used] * weight[used]).max():
        return rows, log_scale  # equal shares cancel: do not let their rounding count
    values, log_value = f.scaled(np.array([float(u @ (A @ u))]))
    common = max(log_scale, log_value)
    trivial = (values[0] * share)[:, None] * math.exp(log_value - common)
    return np.hstack([rows * math.exp(log_scale - common), trivial]), common


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
        i, j = _check_pairs(pairs, len(F))
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
    Y: Any, F: Any, *, used: Pairs | None = None, rng: Rng = 0, n_pairs: int = 500_000
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
    n, n_pairs = len(F), check_number(n_pairs, "n_pairs", low=1, integer=True)
    first = generator.integers(0, n, n_pairs)
    groups = {"random": (first, (first + generator.integers(1, n, n_pairs)) % n)}
    groups["nearest before"] = _nearest_pairs(F, generator.permutation(n)[:_NEAR_ROWS])
    # In few dimensions a tree finds the neighbours of all; in many, the cost is n for each point.
    rows = np.arange(n) if Y.shape[1] <= 15 else generator.permutation(n)[:_COLLIDING_ROWS]
    groups["nearest after"] = _nearest_pairs(Y, rows)
    if used is not None:
        groups["used for fitting"] = _check_pairs(used, n)
    i, j = (np.concatenate(sides) for sides in zip(*groups.values(), strict=True))
    looked_at = " + ".join(f"{len(pair[0]):,} {name}" for name, pair in groups.items())
    before, after = pair_distances(F, F, i, j), pair_distances(Y, Y, i, j)
    return _summary(after, before, exponent, i, j, n_pairs, looked_at + " pairs", _ROUNDING)


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


def _check_pairs(pairs: Pairs, n: int) -> tuple[Array, Array]:
    if not isinstance(pairs, (tuple, list)) or len(pairs) != 2:
        shape = np.shape(pairs)
        raise ValueError(f"pairs has shape {shape}; pass (i, j), e.g. tuple(pairs.T) of (m, 2).")
    i, j = (np.asarray(side) for side in pairs)
    if i.ndim != 1 or i.shape != j.shape or i.dtype.kind not in "iu" or j.dtype.kind not in "iu":
        raise ValueError(f"pairs has shapes {i.shape} and {j.shape}; pass two index arrays (m,).")
    if len(i) and not (min(i.min(), j.min()) >= 0 and max(i.max(), j.max()) < n):
        raise ValueError(f"pairs has indices out of range; pass 0 <= index < {n}.")
    return i, j
