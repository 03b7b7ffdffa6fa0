"""Discrepancies of two diffusions on the same points, and of two samples."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import t as student

from heatsketch._arrays import Array, Rng, on_host
from heatsketch._checks import check_level, check_new_points, check_number, check_points
from heatsketch._messages import ScaleWarning
from heatsketch._random import numbers_at, numbers_of, random_block, seed_entropy
from heatsketch.core.graph import on_vertices
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import divided
from heatsketch.neighbors import in_metric
from heatsketch.spectral.filters import Filter, Power, make_filter
from heatsketch.spectral.functions import MOST_COLUMNS, sketch_blocks
from heatsketch.spectral.traces import chi_square_interval
from heatsketch.uncertainty.intervals import Interval, ratio_bounds
from heatsketch.uncertainty.resampling import labelling_p_value


@dataclass(frozen=True, eq=False)
class SampleDiscrepancy:
    """How differently walks from the same place go in two samples.

    Attributes
    ----------
    value : float
        At most √2 on average over fields, and less if walks spread beyond ℓ: the root mean square
        of the distance at all points of both samples, each sample counted half.
    standard_error : float
        The error of `value` over other fields, not over other samples.
    per_point : tuple of ndarrays of shape (n_samples,), (n_other_samples,)
        The distance at each point of the first and of the second sample.
    mismatch : float
        How far the field is from white noise on the scale of the graph, from 0 to 1: its
        correlation over one step of a walk. Near 1 the field is too smooth to see where walks of
        few steps go; pass a smaller `scale`.
    scale : float
        Length ℓ of the field, in units of the data.
    p_value : float
        For the hypothesis that both samples are independent draws from one distribution.
    n_components : int
        Number of fields.

    See Also
    --------
    uncertainty.sample_discrepancy : Estimate how much two samples of different points differ.
    uncertainty.Discrepancy : The result of `diffusion_discrepancy`.
    """

    value: float
    standard_error: float
    per_point: tuple[Array, Array]
    mismatch: float
    scale: float
    p_value: float
    n_components: int

    def interval(self, level: float = 0.95) -> Interval:
        """Return `value` with the ends of an interval for another field: value e^(±t s / value).

        Raises
        ------
        ValueError, TypeError
            A level that is not a number between 0 and 1.
        """
        level = check_level(level)
        if not self.value > 0:
            return Interval(self.value, self.value, self.value)
        quantile = float(student.ppf((1 + level) / 2, self.n_components - 1))
        factor = math.exp(quantile * self.standard_error / self.value)
        return Interval(self.value, self.value / factor, self.value * factor)

    def describe(self, level: float = 0.95) -> str:
        """Describe the discrepancy, with the interval of this probability, in one line."""
        _, low, high = self.interval(level)
        n, m = map(len, self.per_point)
        return (
            f"discrepancy {self.value:.3g} ({100 * level:g} %: {low:.3g} to {high:.3g}) of at most "
            f"1.41, between samples of {n:,} and {m:,} points; p = {self.p_value:.3g}; mismatch of "
            f"the field {self.mismatch:.2g}"
        )


def sample_discrepancy(
    X: Any,
    Z: Any,
    *,
    time: int = 8,
    n_components: int = 256,
    scale: float | None = None,
    n_permutations: int = 999,
    rng: Rng = None,
    **options: Any,
) -> SampleDiscrepancy:
    """Estimate how differently walks from the same place go in two samples of different points.

    A diffusion is built on each. White noise needs the same points. Instead, both are applied to
    one random field g on the space of the data, with covariance exp(-|x - y|²/ℓ²) (random Fourier
    features [1]_). P^t g(x) is the mean of g at the ends of walks from x after t steps, and exists
    at every x, also of the other sample. E |P^t g(x) - Q^t g(x)|² is the squared distance of the
    two distributions of walks from x in the sense of this kernel, the maximum mean discrepancy of
    [2]_. It is 0 for equal distributions and at most 2. Distant distributions have 2 if each is
    much narrower than ℓ, and less if walks spread beyond ℓ.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The first sample.
    Z : {array-like, sparse matrix} of shape (n_other_samples, n_features)
        The second sample.
    time : int >= 1, default=8
        Number t of steps.
    n_components : int >= 2, default=256
        Number of fields.
    scale : float > 0, default=None
        Length ℓ of the field, in units of the data. By default the median local scale of the graph
        (√ε of one ε).
    n_permutations : int >= 19, default=999
        Number of labellings for the p-value.
    rng : int, Generator or None, default=None
        Seed of the random numbers.
    **options
        Options of `Diffusion.from_points`, for all diffusions. In a neighbour graph the larger
        sample gets more neighbours in proportion, so that steps are as long.

    Returns
    -------
    SampleDiscrepancy
        `value`, `standard_error`, `per_point`, `p_value`, `interval(level)`, `describe()`.

    Raises
    ------
    ValueError
        Samples with different numbers of columns; invalid points or options.

    See Also
    --------
    uncertainty.SampleDiscrepancy : The result of `uncertainty.sample_discrepancy`.
    diffusion_discrepancy : Estimate how much two diffusions on the same points differ.

    Notes
    -----
    Two samples of one distribution also have a discrepancy, which falls as they grow: with one ε as
    n^-½, in a neighbour graph slowly, because its steps become shorter and ℓ with them. The p-value
    tests this hypothesis. If all points are independent and of one distribution, any labelling of
    the pooled points as first and second sample is equally likely. Its statistic is the distance of
    the mean rows of the two samples in a sketch of one graph on all points, which does not know the
    labels. `p_value` is the fraction of labellings, the given one included, with a larger or equal
    one. It is exact for independent points (not for cells of few donors, or frames of one film), at
    any number of them. It sees differences that walks of this time keep: if curves that differ are
    so near to each other that they share neighbours, a smaller time, or more points, sees more.

    The cost is three graphs, t products by each, and `n_permutations` sums of (n + m) k numbers,
    for n and m points.

    References
    ----------
    .. [1] A. Rahimi and B. Recht, "Random features for large-scale kernel machines", NIPS 20
       (2007).
    .. [2] A. Gretton, K. M. Borgwardt, M. J. Rasch, B. Schölkopf and A. Smola, "A kernel two-sample
       test", Journal of Machine Learning Research 13 (2012), 723-773.

    Examples
    --------
    >>> import heatsketch as hs
    >>> (X, _), (Z, _) = (hs.datasets.circle(300, rng=seed) for seed in (0, 1))
    >>> same = hs.uncertainty.sample_discrepancy(X, Z, rng=0)
    >>> other = hs.uncertainty.sample_discrepancy(X, Z * [1, 0.6], rng=0)
    >>> same.value < other.value, same.p_value > 0.01 >= other.p_value
    (True, True)
    """
    X = check_points(X, "X")
    Z = check_new_points(Z, X, "X", "Z", min_rows=2)
    steps = check_number(time, "time", low=1, integer=True)
    k = check_number(n_components, "n_components", low=2, high=MOST_COLUMNS, integer=True)
    count = check_number(n_permutations, "n_permutations", low=19, integer=True)
    stack = sparse.vstack if sparse.issparse(X) else np.vstack
    samples, smallest = [X, Z, stack([X, Z])], min(X.shape[0], Z.shape[0])
    counts = [round(options.get("n_neighbors", 15) * P.shape[0] / smallest) for P in samples]
    first, second, pooled = (  # with steps of equal length
        Diffusion.from_points(P, **options | {"n_neighbors": k_nearest})
        for P, k_nearest in zip(samples, counts, strict=True)
    )
    if scale is None:  # the median length of a step: of local scales s, of one ε its root
        lengths = [d.epsilon if np.ndim(d.epsilon) else np.sqrt(d.epsilon) for d in (first, second)]
        scale = float(np.mean([np.median(s) for s in lengths]))
    scale = check_number(scale, "scale", low=0, open_low=True)
    draw = np.random.default_rng(seed_entropy(rng))
    points = [in_metric(P, options.get("metric", "euclidean")) for P in (X, Z)]
    frequencies = draw.standard_normal((points[0].shape[1], k)) * (math.sqrt(2) / scale)
    phases = draw.uniform(0, 2 * np.pi, k)
    if not any(map(sparse.issparse, points)):  # a common offset would cost digits
        centre = (points[0].mean(axis=0) + points[1].mean(axis=0)) / 2
        points = [P - centre for P in points]
    fields = [math.sqrt(2) * np.cos(P @ frequencies + phases) for P in points]  # (n, k), (m, k)
    of_first = _walked(first, fields[0], steps, Z)
    of_second = _walked(second, fields[1], steps, X)
    A = pooled.deflated  # a sketch of the walks from all points
    G = A.block(random_block(A.n, k, "gaussian", draw))
    (walks,) = sketch_blocks(A, [Power(steps)], G)
    rows = pooled.expand(A.blocks.host(walks).astype(float))
    differences = of_first[0] - of_second[1], of_first[1] - of_second[0]
    mismatches = [_step_correlation(d, g) for d, g in zip((first, second), fields, strict=True)]
    columns = np.mean([np.mean(D**2, axis=0) for D in differences], axis=0)  # (k,)
    value = math.sqrt(float(columns.mean()))
    error = float(columns.std(ddof=1)) / math.sqrt(k) / (2 * value) if value > 0 else 0.0
    at_first, at_second = (np.sqrt(np.mean(D**2, axis=1)) for D in differences)
    return SampleDiscrepancy(
        value,
        error,
        (at_first, at_second),
        float(np.mean(mismatches)),
        scale,
        labelling_p_value(rows, X.shape[0], count, draw),
        k,
    )


def _walked(d: Diffusion, g: Array, steps: int, others: Any) -> tuple[Array, Array]:
    """Return P^t g at the points and at others; the last step is the one that new points take."""
    step = d.step()
    H = step.beside_root(d.root[:, None] * g[d.first_points]).astype(d.operator.dtype)
    for _ in range(steps - 1):
        H = d.operator @ H
    at_own = d.expand(d.last_step(H))
    # Points far from the other sample are expected here.
    with warnings.catch_warnings(action="ignore", category=ScaleWarning):
        at_others = d.last_step(H, others)
    own, other = (np.asarray(divided(Y, step.is_markov), dtype=float) for Y in (at_own, at_others))
    return own, other


def _step_correlation(d: Diffusion, g: Array) -> float:
    """Return Σ π_i E g(x_i) g(x_j) over steps i -> j to other points."""
    weighted = d.root[:, None] * g[d.first_points]
    stays = d.operator.diagonal()
    stays = np.zeros(d.n) if stays is None else np.asarray(on_host(stays), dtype=float)
    squares = np.sum(weighted**2, axis=1)
    moved = np.sum(weighted * (d.operator @ weighted), dtype=float)
    leaves = float(squares @ (1 - stays))
    return float(moved - squares @ stays) / leaves if leaves > 0 else 0.0


_MOST_LABELLINGS = 999  # of replicates: all of them up to so many, else this number at random


@dataclass(frozen=True, eq=False)
class Discrepancy:
    """How much f(A) and f(B) differ, in all and at each point.

    Attributes
    ----------
    value : float
        Estimate of |f(A) - f(B)| (Frobenius); its square is unbiased.
    standard_error : float
        The error of `value` over other G, not over other data. 0 if it was computed exactly.
    per_point : ndarray of shape (n_samples,)
        Estimates of |row_i f(A) - row_i f(B)|; their squares sum to the square of `value`.
    size : float
        √((|f(A)|² + |f(B)|²) / 2) on these points, to compare `value` with. Orthogonal operators of
        one size have a `value` of √2 times it.
    ids : ndarray of shape (n_samples,) or None
        The points that both have, if estimators were fitted with ids; their rows, if some points
        have the weight 0 in one of them.
    p_value : float or None
        For replicates, see `diffusion_discrepancy`.
    n_components : int
        Columns of G.

    See Also
    --------
    diffusion_discrepancy : Estimate how much two diffusions on the same points differ.
    uncertainty.SampleDiscrepancy : The result of `uncertainty.sample_discrepancy`.
    """

    value: float
    standard_error: float
    per_point: Array = field(repr=False)
    size: float
    ids: Array | None = field(repr=False)
    p_value: float | None
    n_components: int

    def interval(self, level: float = 0.95) -> Interval:
        """Return `value` with the ends of an interval that holds |f(A) - f(B)|.

        By the chi-square distribution with as many degrees of freedom as fit mean and variance
        (Satterthwaite 1946), which are estimated on the low side. Nominal 95 % held in 95-96 % of
        sketches of 8 to 256 columns, 90 % in 90-92 %.

        Raises
        ------
        ValueError, TypeError
            A level that is not a number between 0 and 1.
        """
        level = check_level(level)
        if self.standard_error == 0:
            return Interval(self.value, self.value, self.value)
        k, mean = self.n_components, self.value**2
        freedom = max((mean / self.standard_error**2 / 2 - 2) / (1 + 2 / k), k)
        ends = chi_square_interval(mean, mean**2 * k / freedom, k, level)
        return Interval(self.value, math.sqrt(ends[0]), math.sqrt(ends[1]))

    def point_interval(self, level: float = 0.95, *, simultaneous: bool = False) -> Interval:
        """Return `per_point` with intervals, each of probability `level`, or all at once.

        k per_point² / |row|² is chi-square with k degrees of freedom, exactly.

        Raises
        ------
        ValueError, TypeError
            A level that is not a number between 0 and 1.
        """
        tail = (1 - check_level(level)) / (2 * len(self.per_point) if simultaneous else 2)
        if self.standard_error == 0:
            return Interval(self.per_point, self.per_point, self.per_point)
        least, most = ratio_bounds(self.n_components, tail)
        low, high = self.per_point / math.sqrt(most), self.per_point / math.sqrt(least)
        return Interval(self.per_point, low, high)

    def describe(self, level: float = 0.95) -> str:
        """Describe the discrepancy, with the interval of this probability, in one line."""
        _, low, high = self.interval(level)
        percent = 100 * self.value / self.size if self.size else 0.0
        ends = f"{100 * level:g} %: {low:.3g} to {high:.3g}" if self.standard_error else "exactly"
        tested = "" if self.p_value is None else f"; p = {self.p_value:.3g}"
        return (
            f"discrepancy {self.value:.3g} ({ends}), {percent:.3g} % of the size of the operators, "
            f"on {len(self.per_point):,} points{tested}"
        )


def diffusion_discrepancy(
    a: Any,
    b: Any,
    *,
    time: float = 8,
    filter: str = "power",
    n_components: int = 256,
    rng: Rng = None,
) -> Discrepancy:
    """Estimate how much two diffusions on the same points differ: |f(A) - f(B)|.

    Both are applied to the same random G, so nothing has to be aligned, and no eigenvector or
    distance is computed. The square |(f(A) - f(B)) G|² / k is |f(A) - f(B)|² on average, with
    variance 2 |(f(A) - f(B))²|² / k [1]_. (The variance printed there, 2 |f(A) - f(B)|² / k, is not
    of this order.) A is the symmetric operator, whatever the normalization (for the Markov form D^½
    P D^-½), and f(A) says how walks of this time go from point to point. If both graphs agree as
    far as these walks come, `per_point` is 0.

    Parameters
    ----------
    a, b : Diffusion, Operator, estimator or array-like of shape (n_samples, n_samples)
        Fitted `HeatSketch`, `HeatEmbedding` or `DiffusionMap`, diffusions, operators, or symmetric
        matrices, dense or sparse. They have the same points in the same order. Estimators fitted
        with ``ids`` may have them in any order, and those that both have are compared. Lists of
        these are replicates, whose means of f(A) are compared.
    time : float >= 0, default=8
        Diffusion time.
    filter : {"power", "heat", "accumulated"}, default="power"
        Filter f: λ^t, e^{-t(1-λ)}, or that of squared distances added up (see `Accumulated`).
    n_components : int >= 2, default=256
        Columns k of G. The relative standard error of `value` is at most √(1/(2k)): 4.4 %. With at
        least as many columns as points the discrepancy is computed exactly.
    rng : int, Generator or None, default=None
        Seed of the random numbers.

    Returns
    -------
    Discrepancy
        `value`, `standard_error`, `per_point`, `interval(level)`, `describe()`.

    Raises
    ------
    TypeError
        An estimator without a diffusion.
    ValueError
        Other points; time so large that the operators underflow.

    See Also
    --------
    uncertainty.Discrepancy : The result of `diffusion_discrepancy`.
    uncertainty.sample_discrepancy : Estimate how much two samples of different points differ.
    data_interval : Compute the error of a statistic that few data cause.

    Notes
    -----
    Two graphs alone show how much they differ, not whether a second measurement would differ as
    much. Random edge weights, signs or permutations of points do not imitate a second measurement,
    so there is no p-value. With replicates there is one. If all measurements are independent draws
    of one distribution, any labelling of them is equally likely. `p_value` is the fraction of
    labellings, the given one included, at which the means of the two groups differ by as much. With
    4 and 4 it is at least 2/70. For samples of different points see
    `uncertainty.sample_discrepancy`.

    The cost is products by A and by B with k columns, as many as `sketch` takes. Memory holds eight
    blocks of n k numbers, and one for each replicate.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), Proposition 3.4.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> X, angle = hs.datasets.circle(60, rng=0)
    >>> discrepancy = hs.diffusion_discrepancy(hs.diffusion(X), hs.diffusion(X * [1, 3]), rng=0)
    >>> low, high = discrepancy.interval().low, discrepancy.interval().high
    >>> bool(low <= discrepancy.value <= high)
    True
    >>> hs.diffusion_discrepancy(hs.diffusion(X), hs.diffusion(X), rng=0).value
    0.0
    """
    k = check_number(n_components, "n_components", low=2, high=MOST_COLUMNS, integer=True)
    f = make_filter(filter, time)
    groups = [group if isinstance(group, list | tuple) else [group] for group in (a, b)]
    if not all(groups):
        raise ValueError(f"{'a' if not groups[0] else 'b'} is empty; pass one replicate or more.")
    given = [_matrix_of(one, "ab"[g]) for g, group in enumerate(groups) for one in group]
    matrices, ids = [matrix for matrix, _ in given], [own for _, own in given]
    counted = [
        one.counted if isinstance(one, Diffusion) else np.ones(len(on_vertices(one)[1]), bool)
        for one in matrices
    ]
    own_ids, rows, points = _matched(ids, counted)
    exact, seed = k >= len(points), np.random.SeedSequence(seed_entropy(rng))
    sketches = [
        sketch_by_ids(matrix, f, own, k, seed, points if exact else None)[at]
        for matrix, own, at in zip(matrices, own_ids, rows, strict=True)
    ]
    n_first, p = len(groups[0]), None
    if len(sketches) > 2:  # by rows with the inner products of the sketches
        stacked = np.array([Y.ravel() for Y in sketches])
        values, vectors = np.linalg.eigh(stacked @ stacked.T)
        inner = vectors * np.sqrt(np.maximum(values, 0.0))
        p = labelling_p_value(inner, n_first, _MOST_LABELLINGS, seed)
    Y, Z = (np.mean(group, axis=0) for group in (sketches[:n_first], sketches[n_first:]))
    are_all = ids[0] is None and np.all(counted)
    return discrepancy_of(Y, Z, None if are_all else own_ids[0][rows[0]], p, exact)


def discrepancy_of(
    Y: Array, Z: Array, ids: Array | None, p: float | None = None, exact: bool = False
) -> Discrepancy:
    """Return the discrepancy of two sketches (n, k) with the same G."""
    M, k = Y - Z, Y.shape[1]
    per_point = np.linalg.norm(M, axis=1)
    total = float(np.sum(per_point**2))
    C = k * (M.T @ M)  # of columns M g; entries beside the diagonal have mean square Σ μ⁴, μ of M
    fourth = float(np.sum(C**2) - np.sum(np.diag(C) ** 2)) / (k * (k - 1))
    variance = 0.0 if exact else 2 * fourth / k
    error = math.sqrt(variance / total) / 2 if total > 0 else 0.0
    size = math.sqrt((np.sum(Y**2) + np.sum(Z**2)) / 2)
    return Discrepancy(math.sqrt(total), error, per_point, size, ids, p, k)


def sketch_by_ids(
    matrix: Any, f: Filter, ids: Array, k: int, rng: Rng, points: Array | None
) -> Array:
    """Return f(A) G / √k of the input points.

    Rows of G are drawn by the ids. With the numbers of all N points, sorted, the result is exact:
    rows of G are √N times unit vectors.
    """
    A, vertex = on_vertices(matrix)
    numbers = numbers_at(ids, vertex, A.n)
    if points is None:
        G = random_block(A.n, k, "gaussian", rng, numbers=numbers)
    else:
        G = np.zeros((A.n, len(points)))
        G[np.arange(A.n), np.searchsorted(points, numbers)] = math.sqrt(len(points))
    (block,) = sketch_blocks(A, [f], A.block(G))
    return A.blocks.host(block).astype(float)[vertex]


def _matrix_of(one: Any, name: str) -> tuple[Any, Array | None]:
    """Return the diffusion or matrix, and the ids of its points."""
    if hasattr(one, "diffusion_"):
        return one._current_diffusion(), one.ids_
    if hasattr(one, "fit"):
        raise TypeError(
            f"{name} is a {type(one).__name__} without a diffusion_; pass a fitted HeatSketch, "
            "HeatEmbedding or DiffusionMap, a Diffusion or a matrix."
        )
    shape: tuple[int, ...] = getattr(one, "shape", ())
    if len(shape) == 2 and shape[0] != shape[1]:
        raise ValueError(
            f"{name} has shape {shape}, which is that of points, not of a matrix (n, n); pass "
            f"heatsketch.diffusion({name}), or compare samples of different points by "
            "uncertainty.sample_discrepancy."
        )
    return one, None


def _matched(
    ids: Sequence[Array | None], counted: list[Array]
) -> tuple[list[Array], list[Array], Array]:
    """Return the ids of each, the rows of the common points in each, and the numbers of all points.

    Without ids, the row of a point is its id. Points that do not count are in no diffusion.
    """
    own_ids = [
        np.flatnonzero(mask) if own is None else own[mask]
        for own, mask in zip(ids, counted, strict=True)
    ]
    sizes = {len(mask) for mask in counted}
    if len({own is None for own in ids}) > 1:
        raise ValueError(
            "Some of the diffusions have ids and others have none; fit all estimators with ids, "
            "or none."
        )
    if ids[0] is None and len(sizes) > 1:
        raise ValueError(
            f"The diffusions have {' and '.join(map(str, sorted(sizes)))} points; pass those "
            "of the same points, fit estimators with ids, or use uncertainty.sample_discrepancy."
        )
    if len({own.dtype.kind in "iu" for own in own_ids}) > 1:
        raise TypeError("Some ids are integers and others are text; pass ids of one kind.")
    numbers = [*map(numbers_of, own_ids)]  # of text and of its bytes they are equal
    common = numbers[0][np.all([np.isin(numbers[0], own) for own in numbers], axis=0)]
    if len(common) < 2:
        raise ValueError(
            f"The diffusions have {len(common)} ids in common; pass those of the same points, or "
            "use uncertainty.sample_discrepancy."
        )
    orders = [np.argsort(own) for own in numbers]
    rows = [
        order[np.searchsorted(own, common, sorter=order)]
        for own, order in zip(numbers, orders, strict=True)
    ]
    return own_ids, rows, np.unique(np.concatenate(numbers))
