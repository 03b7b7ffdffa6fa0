"""How much the diffusions on two samples of different points differ."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import t as student

from heatsketch._exceptions import ScaleWarning
from heatsketch._random import random_block, seed_entropy
from heatsketch._tensors import on_host
from heatsketch._typing import Array, Rng
from heatsketch._validation import check_level, check_new_points, check_number, check_points
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import divided
from heatsketch.neighbors import in_metric
from heatsketch.spectral.apply import sketch_blocks
from heatsketch.spectral.filters import Power
from heatsketch.spectral.sketch import MOST_COLUMNS
from heatsketch.uncertainty.intervals import Interval
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
    (walks,) = sketch_blocks(A, [Power(steps)], random_block(A.n, k, "gaussian", draw))
    rows = pooled.expand(np.asarray(walks, dtype=float))
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
