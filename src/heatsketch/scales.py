"""Bandwidths ε from points: the kernel sum, other rules, the scale that connects; dimension."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import linkage
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import squareform
from sklearn.utils.extmath import row_norms

from heatsketch._arrays import Array, Rng
from heatsketch._checks import (
    check_choice,
    check_new_points,
    check_number,
    check_points,
    check_weights,
)
from heatsketch._messages import logger, texts_from
from heatsketch._random import content_order
from heatsketch._threads import filled, for_each_tile, row_tiles
from heatsketch.core.blocks import HOST
from heatsketch.core.kernel import Kernel, centred, squared_distances
from heatsketch.neighbors import (
    Distances,
    NeighborIndex,
    distinct_rows,
    in_metric,
    ordered_search,
    pair_distances,
)
from heatsketch.neighbors.graph import feasible_neighbors, positive, shortest_links
from heatsketch.neighbors.search import in_unit

WIDE_CUT = 5.0  # radius in units of √(ε/2): affinities below e^-12.5 = 4e-6 are left out
RULES = ("ksum", "median", "nearest")
_EXACT_POINTS = 2000  # up to here all pairs are used
_SAMPLE_ROWS, _SAMPLE_COLUMNS = 500, 20_000  # of the pairs used for more points
_TILE_ROWS = 64  # rows whose kernels are computed at a time: they fit in the cache
_LARGEST_LOG = math.log(np.finfo(float).max)
_DENSITY_TILE = 1024  # points whose affinities to all others are computed at a time
_EXPONENTIAL_STEPS = 12  # steps of √2 in ε after which exponentials are recomputed


class Ksum(NamedTuple):
    """Result of the Ksum test.

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
    log_sums : array (m,)
        log S at each, from -log n (points apart) to 0 (all at one place).
    """

    epsilon: float
    dimension: float
    epsilons: Array
    slopes: Array
    log_sums: Array


@texts_from(in_metric)
def ksum(X: Any, *, metric: str = "euclidean", rng: Rng = 0, sample_weight: Any = None) -> Ksum:
    """Choose ε and estimate the dimension from the growth of the kernel's mean with ε.

    S(ε), the mean of exp(-|x_i - x_j|²/ε), grows as ε^(d/2) if ε is neither too small nor too
    large. The slope d log S / d log ε = Σ K |x-y|²/ε / Σ K has its maximum there [1]_ [2]_.

    Use it for a first ε of a dense or radius affinity, and for the dimension of low-dimensional
    data. Do not use it if clusters are far apart, because the largest slope may then be due to the
    distances between them (see the curve, `heatsketch.plot.ksum_curve`). `intrinsic_dimension` uses
    smaller scales.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Points.
    metric : {"euclidean", "cosine", "correlation"}, default="euclidean"
        As in `in_metric`.
    rng : int, Generator or None, default=0
        Seed of the sample beyond 2,000 points: 500 rows of the kernel matrix are summed, each over
        up to 20,000 columns. For 60,000 points of a cube the dimension, 2.83, has a standard error
        of 0.01.
    sample_weight : array-like of shape (n_samples,), default=None
        How often each point counts, >= 0; by default once.

    Returns
    -------
    Ksum
        `epsilon`, `dimension`, `epsilons`, `slopes`, `log_sums`.

    Raises
    ------
    ValueError
        All distances are zero.

    See Also
    --------
    connecting_epsilon : Compute the smallest bandwidth that connects the points.
    intrinsic_dimension : Estimate the dimension from nearest neighbours.
    plot.ksum_curve : Draw the curves of the Ksum test.

    Notes
    -----
    The cost is at most 10⁷ distances and about ten exponentials of each, and memory of 160 MB.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §9.7,
       equations (58) and (59).
    .. [2] T. Berry, D. Giannakis and J. Harlim, "Nonparametric forecasting of low-dimensional
       dynamical systems", Physical Review E 91 (2015), 032915.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    >>> round(hs.ksum(np.c_[np.cos(angle), np.sin(angle)]).dimension)
    1
    """
    X = in_metric(check_points(X), metric)
    if sample_weight is None:
        return _steepest(*_squared_distances(X, np.random.default_rng(rng)), X.shape[0])
    weights = in_unit(check_weights(sample_weight, X.shape[0], low=0))
    counted = np.flatnonzero(weights)
    d2, chosen = _squared_distances(X[counted], np.random.default_rng(rng))
    return _steepest(d2, chosen, len(counted), weights[counted])


def rule_epsilon(
    X: Any, rule: Any, distances: Distances | None = None, weights: Array | None = None
) -> Any:
    """Return ε by a rule, in squared data units, or what is given in place of a rule's name.

    "ksum": where the kernel's mean grows fastest; "median": the median squared distance;
    "nearest": twice the mean squared distance to the nearest other point (*Linear and nonlinear
    dimensionality reduction*, §9.2). Zero distances (duplicates) are left out. With `weights` (n,)
    points count so often, but for "nearest".
    """
    if not isinstance(rule, str):
        return rule
    check_choice(rule, "epsilon", RULES)
    order = content_order(X, columns=distances is None or not distances.precomputed)
    X = X[order]
    if rule == "nearest":
        return 2 * _mean_nearest(X, distances)
    d2, chosen = _squared_distances(X, np.random.default_rng(0), distances)
    weights = None if weights is None else weights[order]
    if rule == "median":
        return _median(d2, None if weights is None else weights[chosen])
    return _steepest(d2, chosen, len(order), weights).epsilon


def _mean_nearest(X: Any, distances: Distances | None = None) -> float:
    """Return the mean squared distance to the nearest other point, of points in their order."""
    search, _, _ = ordered_search(distances, X, join=False)
    nearest = search.query(None, min(2, X.shape[0])).distances[:, -1]
    return float(np.mean(_positive(np.square(nearest))))


@texts_from(in_metric)
def nearest_epsilon(X: Any, factor: float = 2.0, *, metric: str = "euclidean") -> float:
    """Compute ε as a multiple of the mean squared distance to the nearest other point [1]_.

    The factor 2 is the rule ``epsilon="nearest"``. The text advises to raise the factor until the
    embedding makes sense: pass ``epsilon=hs.nearest_epsilon(X, 4)``.

    Parameters
    ----------
    X : {array-like, sparse matrix, tensor} of shape (n_samples, n_features)
        Points.
    factor : float > 0, default=2
        The factor.
    metric : {"euclidean", "cosine", "correlation"}, default="euclidean"
        As in `in_metric`.

    Returns
    -------
    float
        ε, in squared data units.

    Raises
    ------
    ValueError, TypeError
        X is not finite, not two-dimensional or has fewer than two rows; a factor that is not
        positive.

    See Also
    --------
    ksum : Choose a bandwidth and estimate the dimension.
    connecting_epsilon : Compute the smallest bandwidth that connects the points.

    Notes
    -----
    The cost is that of a search for the nearest neighbours. Copies of a point do not count.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §9.2.

    Examples
    --------
    >>> import heatsketch as hs
    >>> hs.nearest_epsilon([[0.0], [1.0], [3.0]], factor=3.0)
    6.0
    """
    factor = check_number(factor, "factor", low=0, open_low=True)
    points = in_metric(check_points(X), metric)
    return float(factor * _mean_nearest(points[content_order(points)]))


def density_estimate(X: Any, epsilon: float | str, dimension: float, *, at: Any = None) -> Array:
    """Estimate the density of points from the sums of their Gaussian affinities.

    The estimate is ρ_ε(x) = (π ε)^(-d/2) (1/n) Σ_j exp(-|x - x_j|² / ε), the mean of normal
    densities of variance ε/2 around the n points [1]_. It tends to the density on the set of
    dimension d that the points lie on, with an error of order ε, if n ε^(d/2) ≫ 1. It equals q / (n
    (π ε)^(d/2)), where q are the row sums by whose power α the Markov form divides.

    Use it for the density along a curve or surface, or for the factor that α = 1 removes. Do not
    use it in many dimensions, where no ε is both small and has enough points.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Points.
    epsilon : float or {"ksum", "median", "nearest"}
        Bandwidth ε > 0 in squared data units, or its rule. "ksum": see `ksum`. "median": the median
        squared distance of two points. "nearest": twice the mean squared distance to the nearest
        other point.
    dimension : float > 0
        Dimension d of the set that the points lie on, not of its space: 1 for a curve (see
        `intrinsic_dimension`). Densities are per unit length, area, or volume of this dimension.
    at : {array-like, sparse matrix} of shape (n_new_samples, n_features), default=None
        Places of the density. By default the points; each then contributes to its own sum, so that
        no value is below (π ε)^(-d/2) / n.

    Returns
    -------
    ndarray of shape (n_samples,) or (n_new_samples,)
        Density at each place.

    Raises
    ------
    ValueError
        Invalid points or parameters; (π ε)^(-d/2) beyond float64.

    See Also
    --------
    intrinsic_dimension : Estimate the dimension from nearest neighbours.
    ksum : Choose a bandwidth and estimate the dimension.
    MixtureDiffusion : Embed data by the diffusion of a Gaussian mixture.

    Notes
    -----
    The cost is n m (d + 1) operations for n points and m places; the affinities are not stored.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, equation
       (52).

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> X = np.random.default_rng(0).normal(size=(2000, 1))
    >>> hs.density_estimate(X, epsilon=0.1, dimension=1, at=[[0.0]]).round(1)  # 1/√(2π) = 0.4
    array([0.4])
    """
    X = check_points(X)
    d = check_number(dimension, "dimension", low=0, open_low=True)
    width = check_number(rule_epsilon(X, epsilon), "epsilon", low=0, open_low=True)
    log_peak = -d / 2 * math.log(math.pi * width) - math.log(X.shape[0])
    if abs(log_peak) > _LARGEST_LOG:
        raise ValueError(
            f"epsilon={width:.3g} and dimension={d:g} give densities beyond float64; pass a "
            "smaller dimension, or rescale X."
        )
    kernel = Kernel(X, width, np.dtype(np.float64))
    if at is None:
        return np.asarray(math.exp(log_peak) * (kernel @ np.ones(kernel.n)))
    at = check_new_points(at, X, "X", "at", min_rows=1)
    sums = [kernel.rows(at[tile]).sum(axis=1) for tile in row_tiles(at.shape[0], _DENSITY_TILE)]
    return np.asarray(math.exp(log_peak) * np.concatenate(sums))


def _positive(d2: Array) -> Array:
    d2 = d2[d2 > 0]
    if len(d2) == 0:
        raise ValueError("All distances are zero; pass distinct points, or a number as epsilon.")
    return d2


def _median(d2: Array, weights: Array | None) -> float:
    """Return the median of the squared distances (R, C) that are not 0.

    With the weights (C,) of the points, of which the first R are those of the rows, a distance
    counts as often as both points together.
    """
    if weights is None:
        return float(np.median(_positive(d2)))
    count = np.outer(weights[: len(d2)], weights)[d2 > 0]
    values = _positive(d2)
    order = np.argsort(values)
    ends = np.cumsum(count[order])
    half = ends[-1] / 2
    middle = np.searchsorted(ends, half, "left"), np.searchsorted(ends, half, "right")
    return float(values[order[[*middle]]].mean())


def _squared_distances(
    X: Any, rng: np.random.Generator, distances: Distances | None = None
) -> tuple[Array, Array]:
    """Return squared distances (R, C), all or of R points from C, and the C, the R first."""
    n = n_rows = X.shape[0]
    chosen = np.arange(n)
    if n > _EXACT_POINTS:
        n_rows = _SAMPLE_ROWS
        logger.info("squared distances of %d of %s points", n_rows, f"{n:,}")
        chosen = rng.choice(n, min(n, _SAMPLE_COLUMNS), replace=False)
    if distances is not None:
        return np.square(distances(X[chosen[:n_rows]], X[chosen])), chosen
    y = centred(X[chosen], HOST.centre(X))
    x = y[:n_rows]
    # The Gram form is inexact for the closest pairs; use their differences.
    inexact = 1e-9 * np.max(row_norms(y, squared=True), initial=0.0)

    def work(rows: slice) -> Array:
        block = squared_distances(x[rows], y, direct=False)
        close = np.nonzero(block <= inexact)
        block[close] = pair_distances(x[rows], y, *close) ** 2
        return block

    return filled(work, (n_rows, len(chosen)), _TILE_ROWS), chosen


def _steepest(d2: Array, chosen: Array, n: int, weights: Array | None = None) -> Ksum:
    """Return the Ksum test of n points, from squared distances (R, C) in units of their own.

    `chosen` (C,) are the points, `weights` (n,) say how often each of the n counts.
    """
    positive = _positive(d2)
    # Relative to the scale of the data, so that scaling X scales the result exactly.
    centre = _median(d2, None if weights is None else weights[chosen])
    low = int(np.floor(2 * np.log2(max(float(np.min(positive)) / centre, 2.0**-80)))) - 2
    high = int(np.ceil(2 * np.log2(float(np.max(positive)) / centre))) + 8
    epsilons = centre * 2.0 ** (np.arange(low, high + 1) / 2)
    slopes, log_sums = _growth(d2, chosen, n, epsilons, weights)
    best = int(np.argmax(slopes))
    place, top = float(best), slopes[best]
    if 0 < best < len(slopes) - 1:  # the parabola through it and its neighbours
        left, right = slopes[best - 1], slopes[best + 1]
        bend = left - 2 * top + right
        if bend < 0:
            shift = 0.5 * (left - right) / bend
            place, top = best + shift, top - 0.25 * (left - right) * shift
    epsilon = float(centre * 2.0 ** ((low + place) / 2))
    return Ksum(epsilon, float(2 * top), epsilons, slopes, log_sums)


def _growth(
    d2: Array, chosen: Array, n: int, epsilons: Array, weights: Array | None
) -> tuple[Array, Array]:
    """Return Σ K E / Σ K and log S, E = d²/ε, K = e^-E and S its mean, at each ε, over all pairs.

    Row i and column i of d2 (R, C) are the same point. With weights a pair counts w_i w_j times.
    """
    columns = None if weights is None else weights[chosen]
    sums = np.empty((2, len(d2), len(epsilons)))

    def work(rows: slice) -> None:
        own = (np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop))
        kernels = [np.empty(0), np.empty(0)]
        for step, j in enumerate(reversed(range(len(epsilons)))):
            E = d2[rows] / epsilons[j]
            # Two steps are a factor 2 in ε, which squares K: errors stay below 2^-47.
            K = np.exp(-E) if step % _EXPONENTIAL_STEPS < 2 else np.square(kernels[step % 2])
            K[own] = 0.0
            kernels[step % 2] = K
            if columns is None:
                sums[0, rows, j] = K.sum(axis=1)
                sums[1, rows, j] = np.einsum("ij,ij->i", K, E)
            else:
                sums[:, rows, j] = K @ columns, np.einsum("ij,ij,j->i", K, E, columns)

    for_each_tile(work, len(d2), _TILE_ROWS)
    if weights is not None and columns is not None:
        own = columns[: len(d2)]
        K, KE = (own @ sums) / (own @ (columns.sum() - own))
        same = np.sum(weights**2)  # pairs of a point with itself
        diagonal = same / (weights.sum() ** 2 - same)
    else:
        K, KE = sums.mean(axis=1) / (d2.shape[1] - 1)
        diagonal = 1 / (n - 1)  # n ones, relative to the n(n-1) pairs that the sample represents
    with_diagonal = K + diagonal
    return KE / with_diagonal, np.log(with_diagonal / (1 + diagonal))


EXACT_POINTS = 4096  # up to here all pairs are used
_TREE_NEIGHBORS = 15  # of each point, for the spanning tree of more points
_MARGIN = 1e-7  # relative, added to ε so that it does connect


@texts_from(in_metric)
def connecting_epsilon(X: Any, *, metric: str = "euclidean", cut: float = WIDE_CUT) -> float:
    """Compute the smallest ε at which the Gaussian affinity of points is connected.

    With `affinity="radius"` points are joined up to the distance cut √(ε/2). The graph is connected
    once this reaches the longest edge L of the minimum spanning tree: ε = 2 (L / cut)².

    Use it for a lower bound of ε, "as small as possible without making the generator reducible"
    [1]_. Just above it the connection is weak, and a single outlier can determine it. If it is far
    above `ksum(X).epsilon`, leave out outliers, or treat each component on its own.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Points.
    metric : {"euclidean", "cosine", "correlation"}, default="euclidean"
        As in `in_metric`.
    cut : float > 0, default=5
        Affinities below exp(-cut²/2) are ignored. For `affinity="dense"`, where those below 1e-14
        of a row sum are negligible, pass 7 for up to 1,000 points and 6 for up to 100,000.

    Returns
    -------
    float
        The smallest ε in squared data units, 1e-7 above the exact number so that it connects.
        Beyond 4,096 points it may be larger, see Notes.

    Raises
    ------
    ValueError
        All points are the same.

    See Also
    --------
    ksum : Choose a bandwidth and estimate the dimension.
    gaussian_affinity : Compute the Gaussian affinity of all pairs of points.

    Notes
    -----
    The cost is n² d operations and 24 n² bytes for up to 4,096 points. For more, it is a search of
    15 nearest neighbours. The tree is then that of their graph, whose components are joined by
    shortest links. That ε connects the points, and may be larger than necessary if clusters are
    denser than the space between them.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §9.7.

    Examples
    --------
    >>> import heatsketch as hs
    >>> round(hs.connecting_epsilon([[0.0], [1.0], [3.0]], cut=2.0), 6)
    2.0
    """
    check_number(cut, "cut", low=0, open_low=True)
    X = in_metric(check_points(X), metric)
    points = centred(X[distinct_rows(X)[0]], HOST.centre(X))
    n = points.shape[0]
    if n == 1:
        raise ValueError("All points are the same; pass distinct points.")
    if n <= EXACT_POINTS:
        pairs = squareform(squared_distances(points, points, direct=False), checks=False)
        longest = float(np.sqrt(linkage(pairs, "single")[-1, 2]))  # it merges along the tree
    else:
        nearest = NeighborIndex(points).query(None, _TREE_NEIGHBORS + 1)
        tree = minimum_spanning_tree(nearest.as_csr(n))
        links = shortest_links(points, connected_components(tree, directed=False)[1])
        longest = float(max(tree.data.max(), links[2].max(initial=0.0)))
    return 2 * (longest / cut) ** 2 * (1 + _MARGIN)


class IntrinsicDimension(NamedTuple):
    """Result of `intrinsic_dimension`.

    Attributes
    ----------
    dimension : float
        The estimate from all neighbours; to be rounded.
    error : float
        Its standard error from sampling. Boundaries, curvature and too few points in addition make
        the estimate too low.
    n_neighbors : array (k - 1,)
        Numbers of neighbours: 2, ..., k.
    dimensions : array (k - 1,)
        The estimate from each number of neighbours. If it falls with the number, the data have
        noise in more dimensions, or boundaries.
    """

    dimension: float
    error: float
    n_neighbors: Array
    dimensions: Array


@texts_from(in_metric)
def intrinsic_dimension(
    X: Any, *, metric: str = "euclidean", n_neighbors: int = 15
) -> IntrinsicDimension:
    """Estimate the dimension of the set that points lie on, from distances to nearest neighbours.

    In d dimensions the ratio of the distances to the k-th and the j-th neighbour grows like
    (k/j)^(1/d). With distances T_1 <= ... <= T_k of one point, the maximum-likelihood estimate is
    1/d = mean of log(T_k / T_j) over j < k [1]_. 1/d is averaged over the points [2]_, which is
    unbiased if the density is uniform near each point.

    Use it for intrinsic dimensions below 10 in a space of any dimension. Do not use it with noise
    at the scale of the nearest neighbours, because such noise has the dimension of the space. In
    many dimensions most points are near the boundary and the estimate is low: 1,000 uniform points
    in a cube of 3 dimensions give 2.8, of 10 give 8. `ksum` uses larger scales.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Points with equal coordinates count once.
    metric : {"euclidean", "cosine", "correlation"}, default="euclidean"
        As in `in_metric`.
    n_neighbors : int >= 2, default=15
        Number k of neighbours; all of them if there are fewer. More neighbours reduce the sampling
        error but reach over larger regions, which may be curved or include a boundary.

    Returns
    -------
    IntrinsicDimension
        `dimension`, `error`, and the estimates from fewer neighbours.

    Raises
    ------
    ValueError
        Fewer than three distinct points; all neighbours equally distant, as on a grid.

    See Also
    --------
    ksum : Choose a bandwidth and estimate the dimension.
    heat_trace : Estimate the heat trace, and the number of directions at a time.
    density_estimate : Estimate the density of points.

    Notes
    -----
    The standard error takes into account that two points are correlated by the fraction of the k +
    1 points (each point and its neighbours) that they have in common. On uniform data in 1 to 5
    dimensions it is accurate to 10 %. The cost is the search for k neighbours and n k logarithms.

    References
    ----------
    .. [1] E. Levina and P. J. Bickel, "Maximum likelihood estimation of intrinsic dimension", NIPS
       17 (2004).
    .. [2] D. J. C. MacKay and Z. Ghahramani, "Comments on 'Maximum likelihood estimation of
       intrinsic dimension' by E. Levina and P. Bickel" (2005).

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, _ = hs.datasets.swiss_roll(1000, rng=0)
    >>> round(hs.intrinsic_dimension(X).dimension)
    2
    """
    k = check_number(n_neighbors, "n_neighbors", low=2, integer=True)
    search, rows, _ = ordered_search(None, in_metric(check_points(X), metric))
    n = len(rows)
    if n < 3:
        raise ValueError(f"X has {n} distinct points; pass at least 3.")
    k = feasible_neighbors(k, n)
    found = search.query(None, k + 1)
    if not found.distances[:, 1].all():
        raise ValueError(
            "Distances of distinct points are too small for float64 relative to X; leave out "
            "points that are very far away."
        )
    logs = np.log(found.distances[:, 1:] / found.distances[:, -1:])  # whatever the unit
    # The mean of log T_k - log T_j over j < k, (n, k - 1), for each number k of neighbours.
    inverses = logs[:, 1:] - np.cumsum(logs, axis=1)[:, :-1] / np.arange(1, k)
    means = inverses.mean(axis=0)
    dimension = _dimension(means[-1], k)
    # The variance of the mean: the sum over all pairs of z_i z_j |N_i ∩ N_j| / (k + 1), which is
    # non-negative; if all points have the same neighbours, that sum is zero.
    z = inverses[:, -1] - means[-1]
    sums = np.bincount(found.indices.ravel(), np.repeat(z, k + 1), minlength=n)
    error = max(np.linalg.norm(sums) / (n * np.sqrt(k + 1)), z.std() / np.sqrt(n))
    with np.errstate(divide="ignore"):
        dimensions = 1 / means
    return IntrinsicDimension(
        dimension, float(dimension**2 * error), np.arange(2, k + 1), dimensions
    )


def graph_dimension(graph: sparse.csr_matrix) -> float:
    """Return the same estimate from a graph of distances to k >= 2 neighbours, one each.

    Rows of the CSR matrix (n, n) hold k + 1 distances, that of each point to itself among them.
    """
    near = graph.data.reshape(graph.shape[0], -1)
    near = np.partition(near, 0, axis=1)[:, 1:]  # the point itself has the least
    logs = np.log(positive(near / near.max(axis=1, keepdims=True)))  # whatever the unit
    k = near.shape[1]
    return _dimension(-logs.sum(axis=1).mean() / (k - 1), k)


def _dimension(inverse: float, k: int) -> float:
    """Return the dimension from its inverse by k neighbours, or raise where it is 0."""
    if not inverse > 0:
        raise ValueError(
            f"The {k} nearest neighbours of every point are equally distant, as on a grid; pass a "
            "larger n_neighbors."
        )
    return float(1 / inverse)
