"""How far an embedding agrees with the data: neighbours, the order of distances, a verdict."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.metrics import euclidean_distances

from heatsketch._tiles import filled
from heatsketch._typing import Array, Points, Rng
from heatsketch._validation import check_number, check_points, grouped
from heatsketch.graphs.shortest_paths import shortest_paths
from heatsketch.layout.paths import Paths, graph_of_lengths, paths_of_few
from heatsketch.markov.diffusion import Diffusion
from heatsketch.metrics.distortions import Distortion
from heatsketch.neighbors import NeighborIndex, pair_distances
from heatsketch.operators.kernel import centre_of, centred

_MAX_POINTS_ALL_ROWS, _SAMPLE_ROWS = 5_000, 2_000
_TILE_DISTANCES = 2**22  # for each thread and each of the two sets of points
_EQUAL = 2.0**-40  # squares that differ by so much of the largest count as equal
_MOST_DIFFERENCES = 2**28  # of coordinates; more take longer than products of matrices
_STABILITY_PAIRS = 100_000  # a rank correlation is then known to 0.003
NEIGHBORS = 15
FACTOR = 1.5
_JUDGED, _SOURCES, _LEAST_SOURCES = 300, 50, 5  # points whose neighbours, geodesics are looked at
_ENTRIES, _VISITS = 30_000_000, 1_000_000  # of distances to judged points; of steps from sources
LEAST_JUDGED = 50  # points
_POOR = 0.75  # trustworthiness below which neighbours in the picture are hardly neighbours
_GOOD_NEIGHBORS, _GOOD_DISTANCES = 0.9, 0.7
_FRAME, _FAR = 0.98, 2.0  # central fraction of the points; distance in units of its radius
_CELLS, _DENSEST, _LEAST_CROWD = 2_500, 100, 100  # of the frame; one of so many; points
_CROWDED = 0.5


# Neighbours


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
    lost = losses(Y, X, k, rows) if of_data else losses(X, Y, k, rows)
    error = np.sqrt((1 - m / n) / m) * lost.std(ddof=1)  # drawn without replacement: 0 if m = n
    return Estimate(float(1 - lost.mean()), float(error))


def losses(X: Points, Y: Points, k: int, rows: Array, *, distances: bool = False) -> Array:
    """Return the loss of trustworthiness at each of some points (m,); their mean is 1 - T.

    With `distances` X (n, n) has the distances between the points.
    """
    n = X.shape[0]
    seen_cloud = centred(Y, centre_of(Y))
    cloud = None if distances else centred(X, centre_of(X))

    def squares(P: Points, points: Array) -> Array:
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
        excess = np.empty(len(points))
        for row, (seen, ranked) in enumerate(zip(near, far, strict=True)):
            nearest = np.flatnonzero(seen <= np.partition(seen, k - 1)[k - 1])
            nearest = nearest[np.argsort(seen[nearest], kind="stable")[:k]]
            # The point itself, which has -1, makes the count of nearer points a rank from 1.
            before = [np.count_nonzero(ranked[:j] <= ranked[j]) for j in nearest]
            after = [np.count_nonzero(ranked[j + 1 :] < ranked[j]) for j in nearest]
            excess[row] = np.maximum(np.add(before, after) - k, 0).sum()
        return excess

    scale = 2 / (k * (2 * n - 3 * k - 1))
    return scale * filled(of_tile, (len(rows),), max(1, _TILE_DISTANCES // n))


# The order of distances


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


# A verdict


class PictureQuality(NamedTuple):
    """How far a picture can be believed.

    Attributes
    ----------
    neighbors : float
        Trustworthiness at 15 neighbours, of some 300 points: 1 if near points of the picture are
        near in the data, about 0.5 for a picture that has nothing to do with the data. NaN for
        fewer than 50 distinct points, which are too few to say anything.
    distances : float
        Rank correlation of distances in the picture with geodesic distances along the graph of
        neighbours, from up to 50 points, within components; NaN without such a graph, and for fewer
        than 50 points.
    outside : int
        Points farther from the middle than twice the radius of the central 98 %.
    within : float
        Fraction of the pairs whose distance the picture keeps within a factor of 1.5.
    crowding : float
        Fraction of the points in the densest 1 % of the frame: of the box around the central 98 %,
        cut into 50 x 50 cells (14 x 14 x 14 in three dimensions). NaN for fewer than 100 points and
        beyond three dimensions.
    is_free : bool
        Whether the points of the picture were free, so that it keeps neighbours and the order of
        distances rather than the distances.

    See Also
    --------
    audit : Find the points of a picture that can be believed.
    metrics.trustworthiness : Measure whether neighbours in an embedding are true.
    """

    neighbors: float
    distances: float
    outside: int
    within: float
    crowding: float = math.nan
    is_free: bool = False

    @property
    def verdict(self) -> str:
        """One word or a few about the use of this picture; other pictures may show more."""
        if math.isnan(self.neighbors):
            return f"Fewer than {LEAST_JUDGED} points, too few to judge"
        if self.neighbors < _POOR:
            return "Poor, this picture does not show the neighbours of the data"
        if math.isnan(self.distances):
            word = "Good" if self.neighbors >= _GOOD_NEIGHBORS else "Rough"
            return f"{word} for neighbours, large distances were not judged"
        if self.neighbors >= _GOOD_NEIGHBORS:
            poor = self.distances < _GOOD_DISTANCES
            return "Good for neighbours, not for large distances" if poor else "Good"
        good = self.distances >= _GOOD_DISTANCES
        return "Good for large distances, not for neighbours" if good else "Rough"

    def describe(self) -> str:
        """Describe in plain words how far the picture can be believed.

        Examples
        --------
        >>> from heatsketch.metrics import PictureQuality
        >>> print(PictureQuality(0.97, 0.92, 0, 0.89).describe().replace(". ", ".\\n"))
        Good: neighbours .97, large distances .92.
        It keeps 89 % of distances within a factor of 1.5.
        """
        numbers = {"neighbours": self.neighbors, "large distances": self.distances}
        known = ", ".join(shown(numbers))
        line = f"{self.verdict}: {known}." if known else f"{self.verdict}."
        if self.outside:
            line += f" Far points: {self.outside:,} outside the frame."
        if self.crowding > _CROWDED:
            line += " Most points are crowded in 1 % of the frame."
        kept = math.floor(100 * self.within + 1e-9)
        free = "A free layout, for neighbours and the order of distances; it"
        subject = free if self.is_free else "It"
        return f"{line} {subject} keeps {kept} % of distances within a factor of {FACTOR:g}."


def shown(numbers: Mapping[str, float]) -> list[str]:
    """Return numbers with their names, as a verdict has them: neighbours .97; none for NaN."""
    known = [f"{name} {x:.2f}" for name, x in numbers.items() if not math.isnan(x)]
    return [text.replace(" 0.", " .") for text in known]


def sampled_geodesics(
    diffusion: Diffusion, paths: Sequence[Paths] | None = None
) -> tuple[Array, Array] | None:
    """Return up to 50 vertices (s,), and the lengths (s, n) of the shortest paths from them.

    They go along the graph of neighbours, and are found where the diffusion is, unless the paths of
    all components are known. None for fewer than 50 vertices, or without such a graph.
    """
    n = diffusion.n
    if n < LEAST_JUDGED:
        return None
    count = min(_SOURCES, max(_LEAST_SOURCES, _VISITS // n))
    if paths is not None:
        return paths_of_few(paths, count)
    graph = graph_of_lengths(diffusion)
    if graph is None:
        return None
    sources = diffusion.sample(count)
    return sources, shortest_paths(graph, sources)


def picture_quality(
    Y: Array,
    diffusion: Diffusion,
    distortion: Distortion,
    geodesics: tuple[Array, Array] | None,
    *,
    is_free: bool = False,
) -> PictureQuality:
    """Judge a picture Y (points, k) by the points of a diffusion and their `sampled_geodesics`.

    `is_free` is only passed on. The points looked at are chosen by their content, see
    `Diffusion.sample`. Cost: distances of up to 300 points to all.
    """
    new = cast(Any, diffusion.out_of_sample)
    X, Y = new.points[diffusion.first_points], Y[diffusion.first_points]
    distances = new.distances_are_given
    X = X[:, diffusion.first_points] if distances else X
    n = len(Y)
    judged = diffusion.sample(min(_JUDGED, max(30, _ENTRIES // n)))
    k = min(NEIGHBORS, (n - 1) // 2)
    radii = np.linalg.norm(Y - np.median(Y, axis=0), axis=1)
    frame = np.quantile(radii, _FRAME)
    trust, correlation = math.nan, math.nan
    if n >= LEAST_JUDGED:
        trust = 1.0 - float(losses(X, Y, k, judged, distances=distances).mean())
    if geodesics is not None:
        sources, lengths = geodesics
        reached = np.isfinite(lengths) & (lengths > 0)
        if np.count_nonzero(reached) >= 2:
            embedded = euclidean_distances(Y[sources], Y)
            correlation = rank_correlation(lengths[reached], embedded[reached])
    return PictureQuality(
        trust,
        correlation,
        int(np.count_nonzero(radii > _FAR * frame)),
        distortion.within[FACTOR],
        _crowding(Y[radii <= frame]),
        is_free,
    )


def _crowding(Y: Array) -> float:
    """Return the fraction of points Y (n, k) in the densest 1 % of the cells of their box."""
    n, k = Y.shape
    if n < _LEAST_CROWD or k > 3:
        return math.nan
    side = round(_CELLS ** (1 / k))
    counts = np.sort(np.histogramdd(Y, side)[0], axis=None)
    return float(counts[-max(1, len(counts) // _DENSEST) :].sum() / n)
