"""How a picture keeps neighbours: ranks of points, trustworthiness, continuity, recall."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.metrics import euclidean_distances
from sklearn.metrics.pairwise import nan_euclidean_distances

from heatsketch._arrays import Array, Points, Rng
from heatsketch._checks import check_number, check_points, grouped
from heatsketch._threads import filled
from heatsketch.core.blocks import HOST
from heatsketch.core.kernel import centred
from heatsketch.neighbors import NeighborIndex, pair_distances

_BEFORE = 15  # neighbours with which a move is compared
FAR_MOVE = 3.0  # edges
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


_MAX_POINTS_ALL_ROWS, _SAMPLE_ROWS = 5_000, 2_000
_TILE_DISTANCES = 2**22  # for each thread and each of the two sets of points
_EQUAL = 2.0**-40  # squares that differ by so much of the largest count as equal
_MOST_DIFFERENCES = 2**28  # of coordinates; more take longer than products of matrices


class Estimate(NamedTuple):
    """A mean over points, and its standard error.

    Attributes
    ----------
    value, error : float
        The mean, and one standard error of it (0 if the mean is over all points).

    See Also
    --------
    metrics.trustworthiness : Measure whether neighbours in an embedding are true.
    metrics.continuity : Measure whether neighbours in the data stay neighbours.
    """

    value: float
    error: float


def trustworthiness(X: Any, Y: Any, n_neighbors: int = 10, *, rng: Rng = 0) -> Estimate:
    """Measure how far the neighbours in an embedding Y are also neighbours in the data X.

    The measure of [1]_ is T = 1 - 2 / (n k (2n - 3k - 1)) Σ_i Σ_{j in U(i)} (r(i, j) - k). U(i) are
    those of the k nearest points of i in Y that are not among its k nearest in X; r(i, j) >= 1 is
    the rank of j among the points of X by distance from i. If all neighbours in Y are neighbours in
    X, T is 1; if Y is independent of X, T is about ½.

    A high value says that clusters in a picture are clusters of the data. It does not measure
    whether neighbours in X are torn apart (see `continuity`), nor distances beyond the k nearest
    (see `rank_correlation`).

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The data.
    Y : array-like of shape (n_samples, n_coordinates)
        The embedding, one row per point of X.
    n_neighbors : int in [1, n/2), default=10
        Size k of a neighbourhood. A larger one measures coarser structure.
    rng : int, Generator or None, default=0
        Beyond 5,000 points, the seed of the 2,000 random points i of the mean, whose error is some
        0.002 at 10 neighbours and up to 0.005 at one. Ranks are always among all n points.

    Returns
    -------
    Estimate
        `value`, and `error`: one standard error of the mean over these points, 0 for all points.

    Raises
    ------
    ValueError
        X and Y have different lengths, hold NaN or infinity, or n_neighbors >= n/2.

    See Also
    --------
    metrics.continuity : Measure whether neighbours in the data stay neighbours.
    metrics.rank_correlation : Compare the order of two lists of distances.
    audit : Find the points of a picture that can be believed.

    Notes
    -----
    Equally distant points are ordered by index. For m points i and c coordinates the cost is m n (d
    + c + 2k) operations, and memory for X in float64 and two blocks of 32 MB for each thread. If
    differences of coordinates are many, or X is sparse, distances come from a product of matrices,
    and squared distances are equal if they differ by less than 1e-12 of the largest.

    References
    ----------
    .. [1] J. Venna and S. Kaski, "Neighborhood preservation in nonlinear projection methods: an
       experimental study", ICANN (2001).

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> hs.metrics.trustworthiness(X, 3 * X)
    Estimate(value=1.0, error=0.0)
    """
    return _trust(X, Y, n_neighbors, rng)


def continuity(X: Any, Y: Any, n_neighbors: int = 10, *, rng: Rng = 0) -> Estimate:
    """Measure how far the neighbours in the data X remain neighbours in an embedding Y.

    The measure of [1]_ is C = 1 - 2 / (n k (2n - 3k - 1)) Σ_i Σ_{j in V(i)} (r̂(i, j) - k). V(i)
    are those of the k nearest points of i in X that are not among its k nearest in Y; r̂(i, j) is
    the rank of j in Y. C is the `trustworthiness` of X as an embedding of Y. If no neighbours are
    torn apart, C is 1.

    Use it together with `trustworthiness`: folding the data lowers T and not C, cutting them lowers
    C and not T.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The data.
    Y : array-like of shape (n_samples, n_coordinates)
        The embedding, one row per point of X.
    n_neighbors : int in [1, n/2), default=10
        Size k of a neighbourhood. A larger one measures coarser structure.
    rng : int, Generator or None, default=0
        Beyond 5,000 points, the seed of the 2,000 random points i of the mean.

    Returns
    -------
    Estimate
        `value`, and `error`: one standard error of the mean over these points, 0 for all points.

    Raises
    ------
    ValueError
        X and Y have different lengths, hold NaN or infinity, or n_neighbors >= n/2.

    See Also
    --------
    metrics.trustworthiness : Measure whether neighbours in an embedding are true.
    metrics.rank_correlation : Compare the order of two lists of distances.

    Notes
    -----
    Errors, ties and cost are those of `trustworthiness`.

    References
    ----------
    .. [1] J. Venna and S. Kaski, "Neighborhood preservation in nonlinear projection methods: an
       experimental study", ICANN (2001).

    Examples
    --------
    >>> import heatsketch as hs
    >>> from heatsketch.metrics import continuity, trustworthiness
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> folded = X[:, :1]
    >>> continuity(X, folded, 3).value > trustworthiness(X, folded, 3).value
    True
    """
    return _trust(X, Y, n_neighbors, rng, of_data=True)


def knn_accuracy(Y: Any, labels: Any, n_neighbors: int = 10) -> float:
    """Return the fraction of points whose nearest neighbours vote for the label of the point.

    No point votes for itself. Each of the k nearest labelled points has one vote. If several labels
    have equally many votes, the one with the nearest voter wins.

    Use it for embeddings of data with known classes, to see how well the classes can be read from
    the picture. Compare it with the value for the data themselves, and with the fraction of the
    largest class, which an embedding independent of the data does not exceed, except by chance. Do
    not use it for labels that are measurements.

    Parameters
    ----------
    Y : {array-like, sparse matrix} of shape (n_samples, n_coordinates)
        The embedding, or the data.
    labels : array-like of shape (n_samples,)
        Categories: text, numbers or dates. None, NaN, infinity, the NA of pandas, masked entries
        and empty text are missing labels; such points do not vote, and are left out of the
        fraction.
    n_neighbors : int in [1, number of labelled points), default=10
        Number k of voters.

    Returns
    -------
    float
        The fraction, from 0 to 1.

    Raises
    ------
    ValueError
        The number of labels is not the number of points; fewer than n_neighbors + 1 points have a
        label; or Y holds NaN or infinity.

    See Also
    --------
    metrics.trustworthiness : Measure whether neighbours in an embedding are true.
    compare : Embed data by several methods and measure each.

    Notes
    -----
    Neighbours come from `NeighborIndex`: in few dimensions from a tree; beyond 16,384 points and 8
    dimensions it finds 98 % of them. The cost is that search.

    Examples
    --------
    >>> from heatsketch.metrics import knn_accuracy
    >>> knn_accuracy([[0.0], [1.0], [9.0], [8.0], [5.0]], ["a", "a", "b", "b", None], 1)
    1.0
    """
    Y = check_points(Y, "Y")
    codes, _ = grouped(labels, Y.shape[0])
    labelled = np.flatnonzero(codes >= 0)
    n = len(labelled)
    k = check_number(n_neighbors, "n_neighbors", low=1, integer=True)
    if n <= k:
        raise ValueError(
            f"n_neighbors={k} but Y has {n} labelled points; pass "
            + (f"n_neighbors <= {n - 1}." if n > 1 else "at least two labels.")
        )
    codes = codes[labelled]
    votes = codes[nearest_others(Y[labelled], k)]  # (n, k), nearest first
    counts = np.stack([(votes == voter[:, None]).sum(axis=1) for voter in votes.T], axis=1)
    winner = np.take_along_axis(votes, counts.argmax(axis=1)[:, None], axis=1).ravel()
    return float(np.mean(winner == codes))


def nearest_others(points: Points, k: int) -> Array:
    """Return the k nearest other points of each (n, k)."""
    return NeighborIndex(points).query(None, k + 1).without_itself().indices


def _trust(X: Any, Y: Any, n_neighbors: Any, rng: Rng, of_data: bool = False) -> Estimate:
    """Return the trustworthiness of Y as an embedding of X, or of X as an embedding of Y."""
    X, Y = check_points(X, "X", min_rows=3), check_points(Y, "Y", min_rows=3)
    n = X.shape[0]
    if Y.shape[0] != n:
        raise ValueError(f"X has {n} rows and Y has {Y.shape[0]}; pass one row per point in each.")
    k = check_number(n_neighbors, "n_neighbors", low=1, integer=True)
    if 2 * k >= n:
        raise ValueError(
            f"n_neighbors={k} but X has {n} points, and a neighbourhood must hold fewer than half "
            f"of them; pass n_neighbors <= {(n - 1) // 2}."
        )
    m = n if n <= _MAX_POINTS_ALL_ROWS else _SAMPLE_ROWS
    rows = np.sort(np.random.default_rng(rng).permutation(n)[:m])
    lost = losses(*excess_ranks(*((Y, X) if of_data else (X, Y)), k, rows))
    error = np.sqrt((1 - m / n) / m) * lost.std(ddof=1)  # drawn without replacement: 0 if m = n
    return Estimate(float(1 - lost.mean()), float(error))


def losses(excess: Array, sizes: Array) -> Array:
    """Return the loss of trustworthiness (m,) at points with these `excess_ranks`.

    The mean is 1 - T; NaN where no neighbour is known.
    """
    known = np.count_nonzero(~np.isnan(excess), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return 2 / (known * (2 * sizes - 3 * known - 1)) * np.nansum(excess, axis=1)


def excess_ranks(
    X: Points, Y: Points, k: int, rows: Array, *, distances: bool = False
) -> tuple[Array, Array]:
    """Return by how much the ranks in X of the k nearest points in Y exceed k (m, k), or 0.

    Also the number of points (m,) among which the ranks are. With `distances` X (n, n) has the
    distances between the points. Missing entries of X are NaN: distances are those by the entries
    that both points have, and a pair that shares none does not count. So a point may have fewer
    neighbours: the excess over their number, then NaN.
    """
    n = X.shape[0]
    seen_cloud = centred(Y, HOST.centre(Y))
    cloud = None if distances else centred(X, np.nan_to_num(HOST.centre(X)))
    has_gaps = not sparse.issparse(X) and bool(np.isnan(X).any())

    def squares(P: Any, points: Array) -> Array:
        if has_gaps and P is not seen_cloud:
            found = nan_euclidean_distances(P[points], P, squared=True)
            return np.rint(found / (_EQUAL * float(np.nanmax(found)) or 1.0))
        if not sparse.issparse(P) and len(rows) * n * P.shape[1] <= _MOST_DIFFERENCES:
            return cdist(P[points], P, "sqeuclidean")
        # Of a product of matrices, rounded so that points equally far remain so.
        found = euclidean_distances(P[points], P, squared=True)
        return np.rint(found / (_EQUAL * float(found.max()) or 1.0))

    def of_tile(tile: slice) -> Array:
        points = rows[tile]
        near = squares(seen_cloud, points)
        far = X[points].astype(float) if cloud is None else squares(cloud, points)
        itself = np.arange(len(points)), points
        near[itself], far[itself] = np.inf, -1.0  # no point is its own neighbour
        found = np.full((len(points), k + 1), np.nan)
        for row, (seen, ranked) in enumerate(zip(near, far, strict=True)):
            if has_gaps:
                comparable = ~np.isnan(ranked)
                seen, ranked = seen[comparable], ranked[comparable]
            size = len(seen)
            near_ones = min(k, (size - 1) // 2)
            if not near_ones:
                continue
            nearest = np.flatnonzero(seen <= np.partition(seen, near_ones - 1)[near_ones - 1])
            nearest = nearest[np.argsort(seen[nearest], kind="stable")[:near_ones]]
            # The point itself, which has -1, makes the count of nearer points a rank from 1.
            before = [np.count_nonzero(ranked[:j] <= ranked[j]) for j in nearest]
            after = [np.count_nonzero(ranked[j + 1 :] < ranked[j]) for j in nearest]
            found[row, -1] = size
            found[row, :near_ones] = np.maximum(np.add(before, after) - near_ones, 0)
        return found

    found = filled(of_tile, (len(rows), k + 1), max(1, _TILE_DISTANCES // n))
    return found[:, :-1], found[:, -1]


def moves_against_neighbors(before: Array, after: Array, unit: float) -> Array:
    """Return how far points moved against those that were nearest to them, in a unit (n,).

    `before` (n, k) has NaN where a point had no place, and then so has the result. The move of a
    point is compared with the median move of its 15 nearest before, and with the one that turns
    and shifts them best; the nearer one counts. So where a group of more moves as a whole, none of
    its points moves against the others.
    """
    moved = np.full(len(before), np.nan)
    known = np.flatnonzero(~np.isnan(before[:, 0]))
    count = min(_BEFORE, len(known) - 1)
    moved[known] = 0.0
    if count >= 1:
        moves = after[known] - before[known]
        near = cKDTree(before[known]).query(before[known], count + 1)[1][:, 1:]
        shifted = np.linalg.norm(moves - np.median(moves[near], axis=1), axis=1)
        old, new = before[known], after[known]
        middle, centre = old[near].mean(axis=1), new[near].mean(axis=1)
        A, B = old[near] - middle[:, None], new[near] - centre[:, None]
        U, _, V = np.linalg.svd(np.swapaxes(A, 1, 2) @ B)
        turned = ((old - middle)[:, None] @ (U @ V))[:, 0] + centre
        moved[known] = np.minimum(shifted, np.linalg.norm(new - turned, axis=1)) / unit
    return moved


def far_moves(moved: Array, Y: Array, unit: float) -> tuple[int, int]:
    """Return how many points moved by more than three units, and a row near which most are now.

    Those that are within three units of each other are a group; `moved` (n,) is what
    `moves_against_neighbors` returns for the places Y (n, k). The row is -1 without a group.
    """
    far = np.flatnonzero(moved > FAR_MOVE)
    if len(far) < 2:
        return len(far), -1
    tree = cKDTree(Y[far])
    groups = connected_components(tree.sparse_distance_matrix(tree, FAR_MOVE * unit), False)[1]
    group = far[groups == np.bincount(groups).argmax()]
    middle = np.linalg.norm(Y[group] - Y[group].mean(axis=0), axis=1).argmin()
    return len(far), int(group[middle]) if len(group) > 1 else -1
