"""How good an embedding is: neighbourhoods, labels and the order of distances it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.stats import spearmanr

from heatsketch._array import Frame, filled
from heatsketch._checks import check_number, check_points, is_missing, refuse_masked
from heatsketch._typing import Array, Points, Rng
from heatsketch.neighbors import NeighborIndex, pair_distances
from heatsketch.operators.kernel import exponent_error, squared_distances

_ALL_ROWS_UP_TO, _SAMPLE_ROWS = 5_000, 2_000
_PAIRS = 100_000  # a rank correlation is then known to 0.003
_BLOCK = 2**22  # distances held at a time, for each thread and each of the two sets of points
_DIRECT_FEATURES = 16  # up to here explicit differences cost no more than the Gram form


class Estimate(NamedTuple):
    """A mean over points, and its standard error: 0 where all points were looked at."""

    value: float
    error: float


def trustworthiness(
    X: Any, Y: Any, n_neighbors: int = 10, *, n_rows: int | None = None, rng: Rng = 0
) -> Estimate:
    """Measure how far the neighbours in an embedding Y are neighbours in the data X, too.

    T = 1 - 2 / (n k (2n - 3k - 1)) Σ_i Σ_{j in U(i)} (r(i, j) - k) of Venna and Kaski (2001): U(i)
    are those of the k nearest points of i in Y that are not among its k nearest in X, r(i, j) >= 1
    the rank of j among the points of X by distance from i. 1: no strangers among the neighbours;
    about ½ for an embedding that knows nothing of X.

    For pictures whose clusters one wants to believe. It does not see neighbours of X torn apart
    (see `continuity`), nor how far anything is beyond the k nearest (see `rank_correlation`).

    Parameters
    ----------
    X : array or CSR matrix (n, d)
        The data.
    Y : array (n, c)
        The embedding, one row a point of X.
    n_neighbors : int in [1, n/2), default 10
        Neighbourhood k; the larger, the coarser the structure that counts.
    n_rows : int >= 2, optional
        Points i the mean is over, drawn at random; ranks are among all n points always. By default
        all up to 5,000 points and 2,000 of them beyond, where the error is below 0.003.
    rng : int, Generator or None, default 0
        Of the points drawn.

    Returns
    -------
    Estimate
        `value` and its standard `error`, 0 where all rows count.

    Raises
    ------
    ValueError
        X and Y of different length, NaN or infinity, or n_neighbors >= n/2.

    Notes
    -----
    Of points equally far, those of lower index come first. Cost: n_rows · n (d + c + 2k) operations
    and memory for X in float64 and two blocks of 32 MB a thread. Beyond 16 features distances come
    from the Gram form, and from differences where its rounding could change a rank, which is slower
    where most points coincide or lie far off the others.

    Examples
    --------
    >>> import heatsketch as hs
    >>> from heatsketch.metrics import trustworthiness
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> trustworthiness(X, 3 * X)
    Estimate(value=1.0, error=0.0)
    """
    X, Y, k = _checked(X, Y, n_neighbors)
    return _trust(_Order(X), _Order(Y), k, n_rows, rng)


def continuity(
    X: Any, Y: Any, n_neighbors: int = 10, *, n_rows: int | None = None, rng: Rng = 0
) -> Estimate:
    """Measure how far the neighbours in the data X stay neighbours in an embedding Y.

    C = 1 - 2 / (n k (2n - 3k - 1)) Σ_i Σ_{j in V(i)} (r̂(i, j) - k) of Venna and Kaski (2001): V(i)
    are those of the k nearest points of i in X that are not among its k nearest in Y, r̂(i, j) the
    rank of j in Y. It is the `trustworthiness` of X as an embedding of Y. 1: nothing is torn apart.

    Read it beside `trustworthiness`: an embedding that folds the data keeps C and loses T, one that
    cuts them loses C and keeps T.

    Parameters
    ----------
    X, Y, n_neighbors, n_rows, rng
        As in `trustworthiness`.

    Returns
    -------
    Estimate
        `value` and its standard `error`, 0 where all rows count.

    Raises
    ------
    ValueError
        As in `trustworthiness`.

    Notes
    -----
    Ties and cost as in `trustworthiness`.

    Examples
    --------
    >>> import heatsketch as hs
    >>> from heatsketch.metrics import continuity, trustworthiness
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> folded = X[:, :1]
    >>> continuity(X, folded, 3).value > trustworthiness(X, folded, 3).value
    True
    """
    X, Y, k = _checked(X, Y, n_neighbors)
    return _trust(_Order(Y), _Order(X), k, n_rows, rng)


def knn_accuracy(Y: Any, labels: Any, n_neighbors: int = 10) -> float:
    """Return the share of points whose nearest others vote for their own label.

    Leave one out: no point votes for itself. Each of the k nearest labelled points has one vote; of
    labels with as many votes that one wins whose nearest voter is nearest.

    For embeddings of data with known classes: what a person could read off the picture. Compare
    with the same of the data themselves, and with the share of the largest class, which an
    embedding that knows nothing reaches. Not for labels on a scale, which have no equals.

    Parameters
    ----------
    Y : array or CSR matrix (n, c)
        The embedding, or the data.
    labels : array (n,)
        Categories: text or numbers. None, NaN and empty text mean missing; such points neither
        vote nor count.
    n_neighbors : int in [1, number of labelled points), default 10
        Voters k.

    Returns
    -------
    float
        Share in [0, 1].

    Raises
    ------
    ValueError
        Labels of another number of points; fewer than n_neighbors + 1 labelled points; NaN or
        infinity in Y.

    Notes
    -----
    All points count. The search is that of `NeighborIndex`: a tree in few dimensions; beyond 16,384
    points and 8 dimensions it finds 98 % of the neighbours.

    Examples
    --------
    >>> from heatsketch.metrics import knn_accuracy
    >>> knn_accuracy([[0.0], [1.0], [9.0], [8.0], [5.0]], ["a", "a", "b", "b", None], 1)
    1.0
    """
    Y = check_points(Y, "Y")
    codes = _codes(labels, Y.shape[0])
    labelled = np.flatnonzero(codes >= 0)
    n = len(labelled)
    k = check_number(n_neighbors, "n_neighbors", low=1, integer=True)
    if n <= k:
        raise ValueError(
            f"n_neighbors={k} but Y has {n} labelled points; pass "
            + (f"n_neighbors <= {n - 1}." if n > 1 else "labels of two points or more.")
        )
    points, codes = Y[labelled], codes[labelled]
    found = NeighborIndex(points, frame=Frame.of(points)).of_points(k + 1).indices
    own = found == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True  # more than k duplicates came first
    votes = codes[found[~own].reshape(n, k)]  # (n, k), nearest first
    counts = np.stack([(votes == voter[:, None]).sum(axis=1) for voter in votes.T], axis=1)
    winner = np.take_along_axis(votes, counts.argmax(axis=1)[:, None], axis=1).ravel()
    return float(np.mean(winner == codes))


def rank_correlation(D: Any, E: Any) -> float:
    """Return Spearman's correlation of two lists of distances: how far they have one order.

    1: what is farther in one is farther in the other, by whatever scale; 0: no relation; -1: the
    reverse. For the large structure of an embedding: most pairs are far ones, so that it says
    little about neighbours (see `trustworthiness`).

    Parameters
    ----------
    D, E : arrays (m,)
        Distances of the same m >= 2 pairs, say of those from `random_pairs`. Only their order
        counts; infinite ones (no path) are the largest.

    Returns
    -------
    float
        In [-1, 1]; NaN where all of D or all of E are equal: they have no order.

    Raises
    ------
    ValueError
        Arrays of other shapes than (m,), or NaN.

    Notes
    -----
    Equal distances share the mean of their ranks. Cost: two sorts of m numbers.

    Examples
    --------
    >>> from heatsketch.metrics import rank_correlation
    >>> round(rank_correlation([1.0, 2.0, 3.0], [1.0, 4.0, 9.0]), 12)
    1.0
    """
    D, E = np.asarray(D, dtype=float), np.asarray(E, dtype=float)
    if D.ndim != 1 or D.shape != E.shape or len(D) < 2:
        raise ValueError(
            f"D has shape {D.shape} and E {E.shape}; pass one distance a pair in each, (m,), of 2 "
            "pairs or more."
        )
    for name, values in (("D", D), ("E", E)):
        if np.isnan(values).any():
            raise ValueError(f"{name} holds NaN; leave such pairs out of both.")
    if D.min() == D.max() or E.min() == E.max():
        return float("nan")
    return float(np.clip(spearmanr(D, E).statistic, -1.0, 1.0))


def random_pairs(n: int, count: int, rng: Rng = 0) -> tuple[Array, Array]:
    """Draw pairs of n points, each pair at most once; all of them if there are no more.

    Parameters
    ----------
    n : int >= 2
        Points.
    count : int >= 1
        Pairs wanted.
    rng : int, Generator or None, default 0
        Of the pairs drawn.

    Returns
    -------
    (i, j) : index arrays (m,), i < j
        m = min(count, n (n - 1) / 2). All pairs come in the order of SciPy's `pdist`.

    Raises
    ------
    ValueError
        n or count out of range.

    Notes
    -----
    Memory: up to 50 numbers a pair drawn, where these are more than a fiftieth of all pairs.

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
    # Number a + (s - 1) n stands for the points a and a + s on a ring, each pair once: s stops at
    # half the ring, and for even n the last s half way round.
    numbers = np.random.default_rng(rng).choice(n_pairs, count, replace=False, shuffle=False)
    step, a = np.divmod(numbers, n)
    b = (a + step + 1) % n
    return np.minimum(a, b), np.maximum(a, b)


def stability(embeddings: Sequence[Any], *, n_pairs: int = _PAIRS, rng: Rng = 0) -> float:
    """Measure how far embeddings of the same points agree, say those of several seeds.

    The mean over all pairs of embeddings of the rank correlation of their distances, over the same
    random pairs of points. 1: the same picture up to turning, mirroring and scale; 0: pictures that
    have nothing in common.

    The arrangement of the whole picture counts, for that is what a reader takes from it. A method
    that keeps neighbourhoods but puts the groups elsewhere each time scores low, and the distances
    between its groups mean nothing; whether neighbourhoods are right, `trustworthiness` says.

    Parameters
    ----------
    embeddings : sequence of arrays (n, c)
        Two or more, with the points in the same order; c may differ.
    n_pairs : int >= 2, default 100,000
        Pairs of points; the result is then known to 0.003. All pairs where there are no more.
    rng : int, Generator or None, default 0
        Of the pairs drawn.

    Returns
    -------
    float
        In [-1, 1]; NaN where all points of an embedding are equally far apart.

    Raises
    ------
    ValueError
        Fewer than two embeddings, of different length, of fewer than 3 points, NaN or infinity.

    Notes
    -----
    Cost for m embeddings: m · n_pairs · c operations and m² / 2 rank correlations.

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
        raise ValueError(f"embeddings holds {len(embeddings)}; pass two or more to compare.")
    runs = [check_points(Y, f"embeddings[{r}]", min_rows=3) for r, Y in enumerate(embeddings)]
    n = runs[0].shape[0]
    for r, Y in enumerate(runs):
        if Y.shape[0] != n:
            raise ValueError(
                f"embeddings[{r}] has {Y.shape[0]} rows but embeddings[0] has {n}; pass one row a "
                "point in each."
            )
    i, j = random_pairs(n, check_number(n_pairs, "n_pairs", low=2, integer=True), rng)
    points = [Frame.of(Y)(Y) for Y in runs]
    distances = [pair_distances(P, P, i, j) for P in points]
    return float(np.mean([rank_correlation(D, E) for D, E in combinations(distances, 2)]))


def _checked(X: Any, Y: Any, n_neighbors: Any) -> tuple[Points, Points, int]:
    X, Y = check_points(X, "X", min_rows=3), check_points(Y, "Y", min_rows=3)
    n = X.shape[0]
    if Y.shape[0] != n:
        raise ValueError(f"X has {n} rows and Y has {Y.shape[0]}; pass one row a point in each.")
    k = check_number(n_neighbors, "n_neighbors", low=1, integer=True)
    if 2 * k >= n:
        raise ValueError(
            f"n_neighbors={k} but X has {n} points, and only fewer than half of them make a "
            f"neighbourhood; pass n_neighbors <= {(n - 1) // 2}."
        )
    return X, Y, k


def _trust(ranked: _Order, seen: _Order, k: int, n_rows: int | None, rng: Rng) -> Estimate:
    """Return the trustworthiness of neighbours in `seen` by their ranks in `ranked`."""
    n = ranked.n
    if n_rows is None:
        n_rows = n if n <= _ALL_ROWS_UP_TO else _SAMPLE_ROWS
    m = min(n, check_number(n_rows, "n_rows", low=2, integer=True))
    rows = np.sort(np.random.default_rng(rng).permutation(n)[:m])

    def penalties(tile: slice) -> Array:
        points = rows[tile]
        pairs = zip(points, seen.squares(points), ranked.squares(points), strict=True)
        ranks = [ranked.ranks(i, far, seen.nearest(i, near, k)) for i, near, far in pairs]
        return np.maximum(np.stack(ranks) - k, 0).sum(axis=1)

    scale = 2 / (k * (2 * n - 3 * k - 1))
    lost = scale * filled(penalties, (m,), max(1, _BLOCK // n))
    error = np.sqrt((1 - m / n) / m) * lost.std(ddof=1)  # without replacement: none if m = n
    return Estimate(float(1 - lost.mean()), float(error))


class _Order:
    """The order of points by (distance, index) as seen from each of them."""

    def __init__(self, X: Points) -> None:
        self.points = Frame.of(X)(X)
        self.n = X.shape[0]
        self._direct = not sparse.issparse(X) and X.shape[1] <= _DIRECT_FEATURES
        # Of two numbers, each with this error.
        self._slack = 0.0 if self._direct else 2 * exponent_error(self.points, 1.0)

    def squares(self, rows: Array) -> Array:
        """Return squared distances (m, n) from the points `rows`; no point is its own neighbour."""
        block = squared_distances(self.points[rows], self.points, self._direct)
        block[np.arange(len(rows)), rows] = np.inf
        return block

    def nearest(self, i: int, squares: Array, k: int) -> Array:
        """Return the k points nearest to i, given its squared distances (n,)."""
        last = np.argpartition(squares, k - 1)[k - 1]
        self._settle(i, squares, [last])
        reach = np.partition(squares, k - 1)[k - 1]
        found = np.flatnonzero(squares <= reach)
        return found[np.argsort(squares[found], kind="stable")[:k]]

    def ranks(self, i: int, squares: Array, points: Array) -> Array:
        """Return the ranks, from 1, of points among all by distance from i."""
        self._settle(i, squares, points)
        nearer = [
            np.count_nonzero(squares[:j] <= squares[j])
            + np.count_nonzero(squares[j + 1 :] < squares[j])
            for j in points
        ]
        return np.array(nearer) + 1

    def _settle(self, i: int, squares: Array, points: Any) -> None:
        """Measure by differences what rounding may have put on the wrong side of the points."""
        if self._direct:
            return
        unsure = np.zeros(self.n, dtype=bool)
        for j in points:
            unsure |= np.abs(squares - squares[j]) <= self._slack
        others = np.flatnonzero(unsure)
        exact = pair_distances(self.points, self.points, np.full(len(others), i), others)
        squares[others] = exact**2


def _codes(labels: Any, n: int) -> Array:
    """Number the categories (n,), -1 where the label is missing."""
    refuse_masked(labels, "labels")
    labels = np.asarray(labels)
    if labels.shape != (n,):
        raise ValueError(f"labels has shape {labels.shape} but Y has {n} points; pass ({n},).")
    numbers: dict[Any, int] = {}
    return np.array(
        [
            -1 if is_missing(value) else numbers.setdefault(value, len(numbers))
            for value in labels.tolist()
        ]
    )
