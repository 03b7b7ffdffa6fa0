"""How far apart points are under diffusion, and how well an embedding keeps it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from heatsketch._typing import Array
from heatsketch.diffusion import Diffusion
from heatsketch.filters import Block, Filter, apply, make_filter
from heatsketch.neighbors import pair_distances
from heatsketch.operators import as_operator
from heatsketch.operators.base import Deflated, Operator
from heatsketch.spectrum import leading_vector

LEVELS = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)

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
    """

    log_L: float
    expansion: float
    contraction: float
    quantiles: dict[float, float]
    worst_pairs: dict[str, Array]
    n_pairs: int


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
    kept = (D > 0) | (embedded > 0)
    if not kept.any():
        raise ValueError("No pair has a distance to compare: all are zero on both sides.")
    with np.errstate(divide="ignore"):
        ratio = embedded[kept] / D[kept]
    return _summary(ratio, F_exponent - D_exponent, i[kept], j[kept])


def _scaled(values: Array) -> tuple[Array, int]:
    """Scale by a power of two to at most 1, where squares neither under- nor overflow."""
    exponent = int(np.frexp(np.max(np.abs(values), initial=0.0))[1])
    return np.ldexp(values, -exponent), exponent


def _summary(ratio: Array, exponent: int, i: Array, j: Array) -> Distortion:
    high, low = float(ratio.max()), float(ratio.min())
    log_L = math.inf if low == 0 or math.isinf(high) else math.log(high) - math.log(low)
    finite = ratio[np.isfinite(ratio)]
    middle = float(np.median(finite)) if len(finite) else math.nan
    levels = np.quantile(finite, LEVELS) if len(finite) else np.full(len(LEVELS), math.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        quantiles = dict(zip(LEVELS, (levels / middle).tolist(), strict=True))
    order = np.argsort(ratio, kind="stable")
    ends = {"contraction": order[:5], "expansion": order[::-1][:5]}
    worst = {name: np.column_stack([i[at], j[at]]) for name, at in ends.items()}
    with np.errstate(over="ignore", under="ignore"):
        expansion, contraction = (float(np.ldexp(end, exponent)) for end in (high, low))
    return Distortion(log_L, expansion, contraction, quantiles, worst, len(ratio))


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
