"""Gaps between labels, truly and in a picture, and the contrast in which it misleads most."""

from itertools import combinations, compress
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from heatsketch._typing import Array
from heatsketch._validation import grouped
from heatsketch.uncertainty.intervals import Interval

MOST_LABELS = 60
_CROSSED = 64  # columns of a sketch whose products tell the variance of gaps


class Gap(NamedTuple):
    """How far two labels are apart, truly and in the picture.

    Attributes
    ----------
    labels : tuple of two labels
    distance : Interval
        Root mean square of the diffusion distances between their points, of pairs in a component.
        The interval holds it with a probability of 95 %, if the sketch has 8 columns or more.
    picture : float
        The same of the distances of these pairs in the picture.
    rank : int
        Place of this gap among all gaps of the picture, 1 for the smallest.
    true_ranks : tuple (lowest, highest)
        Places that it can have among the true gaps, by their intervals.
    believed : bool
        Whether `rank` is one of `true_ranks`.
    """

    labels: tuple[Any, Any]
    distance: Interval
    picture: float
    rank: int
    true_ranks: tuple[int, int]
    believed: bool


class Contrast(NamedTuple):
    """Two gaps of one label whose ratio in the picture differs most from the true one.

    Attributes
    ----------
    label, nearer, farther
        The picture shows `label` nearer to the second than to the third.
    picture : float
        Distance to the third over that to the second, in the picture; at least 1.
    truth : Interval
        The same ratio of diffusion distances; it does not contain `picture`.
    """

    label: Any
    nearer: Any
    farther: Any
    picture: float
    truth: Interval

    def describe(self) -> str:
        """Describe the contrast in one sentence."""
        looks = f"{self.picture:.1f} times as far" if self.picture >= 1.05 else "as far"
        error = (self.truth.high - self.truth.low) / 2
        return (
            f"{self.label} looks {looks} from {self.farther} as from {self.nearer}; in truth it is "
            f"{self.truth.value:.2g} ± {error:.1g} times as far."
        )


class Gaps(NamedTuple):
    """Gaps of labels, the nearest first, the contrast, and how many gaps could not be judged."""

    each: list[Gap]
    contrast: Contrast | None
    not_judged: int


NO_GAPS = Gaps([], None, 0)


def compare_gaps(F: Array, Y: Array, labels: Any, components: list[Array]) -> Gaps:
    """Compare the distances between labels, truly and in the picture."""
    codes, names = grouped(labels, len(Y))
    if not 2 <= len(names) <= MOST_LABELS:
        raise ValueError(
            f"labels have {len(names)} different values; pass 2 to {MOST_LABELS} groups, or "
            "leave labels out."
        )
    (true, squares), (seen, _) = (_square_columns(P, codes, components, len(names)) for P in (F, Y))
    joined = ~np.isnan(true[:, 0])
    pairs = compress(combinations(names, 2), joined)
    distances = _root_mean_squares(true[joined], squares[joined])
    lengths = np.sqrt(seen[joined].sum(axis=1))
    ranks = stats.rankdata(lengths, method="min").astype(int)
    lowest = 1 + np.searchsorted(np.sort(distances.high), distances.low, side="left")
    highest = np.searchsorted(np.sort(distances.low), distances.high, side="right")
    believed = (lowest <= ranks) & (ranks <= highest)
    columns = (lengths, ranks, np.column_stack([lowest, highest]), believed)
    gaps = [
        Gap(pair, Interval(*ends), length, rank, tuple(possible), is_believed)
        for pair, ends, length, rank, possible, is_believed in zip(
            pairs, np.transpose(distances).tolist(), *(c.tolist() for c in columns), strict=True
        )
    ]
    gaps.sort(key=lambda gap: gap.distance.value)
    contrast = _contrast(names, true, np.sqrt(seen.sum(axis=1)))
    return Gaps(gaps, contrast, int(np.count_nonzero(~joined)))


def _contrast(names: list[Any], columns: Array, lengths: Array) -> Contrast | None:
    """Return the two gaps of a label whose ratio in the picture is farthest outside its interval.

    The variance of log √(Σ x_c/Σ y_c) of independent columns (x_c, y_c) is, to first order, that
    of Σ (x_c/Σ x - y_c/Σ y)/2. The intervals hold for all ratios together (Bonferroni), because
    the most extreme one is chosen.
    """
    count, k = len(names), columns.shape[1]
    if count < 3 or k < 2:
        return None
    # Labels of equal points, and those of different components, have no ratio.
    totals, lengths = (np.where(x > 0, x, np.nan) for x in (columns.sum(axis=1), lengths))
    quantile = stats.t.isf(0.05 / (count * (count - 1) * (count - 2)), k - 1)
    i, j = np.triu_indices(count, 1)
    parts, logs = np.zeros((count, count, k)), np.zeros((2, count, count))
    parts[i, j] = parts[j, i] = columns / totals[:, None]
    logs[:, i, j] = logs[:, j, i] = np.log(totals) / 2, np.log(lengths)
    true, seen = logs[..., None] - logs[..., None, :]  # ratios (label, far, near)
    centred = parts - parts.mean(axis=2, keepdims=True)
    covariance = k / (k - 1) * centred @ centred.swapaxes(1, 2)  # (label, other, other)
    variance = np.einsum("aii->ai", covariance)
    spread = variance[:, :, None] + variance[:, None] - 2 * covariance
    errors = quantile * np.sqrt(np.maximum(spread, 0.0)) / 2
    excess = np.where((seen >= 0) & (errors >= 0), np.abs(true - seen) - errors, -np.inf)
    own = np.arange(count)
    excess[own, own] = excess[own, :, own] = -np.inf
    most = label, far, near = np.unravel_index(excess.argmax(), excess.shape)
    if not excess[most] > 0:
        return None
    truth = Interval(*np.exp(true[most] + errors[most] * np.array([0, -1, 1])).tolist())
    return Contrast(names[label], names[near], names[far], float(np.exp(seen[most])), truth)


def _square_columns(
    P: Array, codes: Array, components: list[Array], count: int
) -> tuple[Array, Array]:
    """Return the means of (p_i - p_j)² between labels, and what tells their variance.

    For each pair of labels, over its pairs of points i, j in a component: C is the mean of
    (p_i - p_j)(p_i - p_j)ᵀ. The first result (pairs, k) is its diagonal, NaN without such points.
    The second (pairs,) is the mean square of its other entries (0 for one column), of the first 64
    columns. The columns of a sketch are independent and Gaussian, and so are its rows of different
    components. Therefore the variance of an entry of the diagonal is twice the mean of the second.
    """
    place = {pair: row for row, pair in enumerate(combinations(range(count), 2))}
    columns, squares = np.zeros((len(place), P.shape[1])), np.zeros(len(place))
    weights = np.zeros(len(place))
    for rows in components:
        moments = {}
        for a in np.unique(codes[rows][codes[rows] >= 0]):
            own = P[rows[codes[rows] == a]].astype(float)
            some = own[:, :_CROSSED] - own[:, :_CROSSED].mean(axis=0)
            moments[int(a)] = len(own), own.mean(axis=0), own.var(axis=0), some.T @ some / len(own)
        for pair in combinations(moments, 2):
            (n_a, mean_a, var_a, C_a), (n_b, mean_b, var_b, C_b) = (moments[a] for a in pair)
            step, weight = mean_a - mean_b, n_a * n_b
            C = C_a + C_b + np.outer(step[:_CROSSED], step[:_CROSSED])
            others = np.sum(C**2) - np.sum(np.diagonal(C) ** 2)
            columns[place[pair]] += weight * (var_a + var_b + step**2)
            squares[place[pair]] += weight**2 * others / max(1, len(C) * (len(C) - 1))
            weights[place[pair]] += weight
    weights[weights == 0] = np.nan
    return columns / weights[:, None], squares / weights**2


def _root_mean_squares(columns: Array, squares: Array) -> Interval:
    """Return √Σ of columns (p, k) with intervals of 95 %: chi-square of as many degrees of freedom.

    As many as the sum has by its mean and variance, at least k. 2 are taken off because the square
    of the sum exceeds that of its mean, and a part 2 / k because k columns tell the variance (at
    most 64).
    """
    total, k = columns.sum(axis=1), columns.shape[1]
    variance = k * squares
    degrees = np.divide(total**2, variance, out=np.zeros(len(total)), where=variance > 0)
    degrees = np.maximum((degrees - 2) * (1 - 2 / min(k, _CROSSED)), k)
    ends = total * degrees / stats.chi2.isf([[0.025], [0.975]], degrees)
    return Interval(*np.sqrt([total, *ends]))
