"""Whether the distances of an embedding, or of several, have the same order."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from heatsketch._typing import Array, Rng
from heatsketch._validation import check_number, check_points
from heatsketch.neighbors import pair_distances

_STABILITY_PAIRS = 100_000  # a rank correlation is then known to 0.003


def rank_correlation(D: Any, E: Any) -> float:
    """Return Spearman's correlation of two lists of distances: how far their orders agree.

    It is 1 if pairs farther apart in one list are farther apart in the other, at any scale; 0 if
    there is no relation; -1 for the reverse order. It measures the large structure of an embedding:
    most pairs are far apart, so it says little about neighbours (see `trustworthiness`).

    Parameters
    ----------
    D, E : array-like of shape (n_pairs,)
        Distances of the same pairs, at least two, for example from `random_pairs`. Only their order
        matters; infinite distances (no path) are the largest.

    Returns
    -------
    float
        The correlation, in [-1, 1]; NaN if all of D or all of E are equal, because they have no
        order.

    Raises
    ------
    ValueError
        The shapes are not (m,), or an array holds NaN.

    See Also
    --------
    metrics.random_pairs : Draw pairs of points without repetition.
    metrics.trustworthiness : Measure whether neighbours in an embedding are true.
    metrics.stability : Measure how far several embeddings agree.

    Notes
    -----
    Equal distances have the mean of their ranks. The cost is sorting the distances twice.

    Examples
    --------
    >>> from heatsketch.metrics import rank_correlation
    >>> round(rank_correlation([1.0, 2.0, 3.0], [1.0, 4.0, 9.0]), 12)
    1.0
    """
    D, E = np.asarray(D, dtype=float), np.asarray(E, dtype=float)
    if D.ndim != 1 or D.shape != E.shape or len(D) < 2:
        raise ValueError(
            f"D has shape {D.shape} and E has {E.shape}; pass in each one distance per pair, (m,), "
            "of at least 2 pairs."
        )
    for name, values in (("D", D), ("E", E)):
        if np.isnan(values).any():
            raise ValueError(f"{name} holds NaN; remove such pairs from D and E.")
    if D.min() == D.max() or E.min() == E.max():
        return float("nan")
    return float(np.clip(spearmanr(D, E).statistic, -1.0, 1.0))


def random_pairs(n: int, count: int, rng: Rng = 0) -> tuple[Array, Array]:
    """Draw pairs of n points without repetition; all pairs if there are no more.

    Parameters
    ----------
    n : int >= 2
        Number of points.
    count : int >= 1
        Number of pairs.
    rng : int, Generator or None, default=0
        Seed of the pairs.

    Returns
    -------
    tuple of two ndarrays of int of shape (n_pairs,)
        Indices i < j of the pairs, where n_pairs = min(count, n (n - 1) / 2). All pairs come in the
        order of SciPy's `pdist`.

    Raises
    ------
    ValueError
        n or count out of range.

    See Also
    --------
    metrics.rank_correlation : Compare the order of two lists of distances.
    distortion : Measure how an embedding changes given distances.

    Notes
    -----
    The cost is up to 50 numbers of memory for each pair drawn, if these are more than a fiftieth of
    all pairs.

    Examples
    --------
    >>> from heatsketch.metrics import random_pairs
    >>> i, j = random_pairs(3, 100)
    >>> i.tolist(), j.tolist()
    ([0, 0, 1], [1, 2, 2])
    """
    n = check_number(n, "n", low=2, integer=True)
    count = check_number(count, "count", low=1, integer=True)
    n_pairs = n * (n - 1) // 2
    if count >= n_pairs:
        return np.triu_indices(n, 1)
    # The number a + (s - 1) n stands for the points a and a + s on a ring. s ends at half the ring,
    # and for even n the last s at half its points, so that each pair has one number.
    numbers = np.random.default_rng(rng).choice(n_pairs, count, replace=False, shuffle=False)
    step, a = np.divmod(numbers, n)
    b = (a + step + 1) % n
    return np.minimum(a, b), np.maximum(a, b)


def stability(embeddings: Sequence[Any], *, n_pairs: int = _STABILITY_PAIRS, rng: Rng = 0) -> float:
    """Measure how far embeddings of the same points agree, for example those of several seeds.

    The result is the mean over all pairs of embeddings of the rank correlation of their distances,
    over the same random pairs of points. It is 1 for the same picture up to rotation, reflection
    and scale, and 0 for pictures that have nothing in common.

    It compares the arrangement of the whole picture, because readers see it. A method that keeps
    neighbourhoods but arranges clusters differently each time has a low value, and the distances
    between its clusters mean nothing; for neighbourhoods see `trustworthiness`.

    Parameters
    ----------
    embeddings : sequence of array-likes of shape (n_samples, n_coordinates)
        At least two, with the points in the same order; c may differ.
    n_pairs : int >= 2, default=100,000
        Number of pairs of points; the default gives the result to 0.003. All pairs if there are no
        more.
    rng : int, Generator or None, default=0
        Seed of the random pairs.

    Returns
    -------
    float
        The mean correlation, in [-1, 1]; NaN if all points of an embedding are equally far apart.

    Raises
    ------
    ValueError
        There are fewer than two embeddings or 3 points, lengths differ, or an embedding holds NaN
        or infinity.

    See Also
    --------
    metrics.rank_correlation : Compare the order of two lists of distances.
    compare : Embed data by several methods and measure each.

    Notes
    -----
    The cost for m embeddings of c coordinates is m · n_pairs · c operations and m² / 2 rank
    correlations.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.metrics import stability
    >>> Y = np.random.default_rng(0).normal(size=(50, 2))
    >>> turned = Y @ [[0.0, 1.0], [-1.0, 0.0]]
    >>> round(stability([Y, 5 * turned]), 12)
    1.0
    """
    if len(embeddings) < 2:
        raise ValueError(f"embeddings has length {len(embeddings)}; pass at least two.")
    runs = [check_points(Y, f"embeddings[{r}]", min_rows=3) for r, Y in enumerate(embeddings)]
    n = runs[0].shape[0]
    for r, Y in enumerate(runs):
        if Y.shape[0] != n:
            raise ValueError(
                f"embeddings[{r}] has {Y.shape[0]} rows but embeddings[0] has {n}; pass a row per "
                "point in each."
            )
    i, j = random_pairs(n, check_number(n_pairs, "n_pairs", low=2, integer=True), rng)
    runs = [Y.astype(np.float64, copy=False) for Y in runs]
    distances = [pair_distances(Y, Y, i, j) for Y in runs]
    return float(np.mean([rank_correlation(D, E) for D, E in combinations(distances, 2)]))
