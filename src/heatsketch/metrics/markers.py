"""Features that distinguish a group of points from others, by ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtr
from scipy.stats import false_discovery_control

from heatsketch._arrays import Array
from heatsketch._checks import as_floats, check_in_range, names_of_columns, read_rows
from heatsketch._threads import for_each_tile
from heatsketch._words import did_you_mean

_ENTRIES = 2**24  # of a dense block of columns: 128 MB
_COLUMNS = 64  # in a tile


@dataclass(frozen=True, eq=False, repr=False)
class Markers:
    """Features that distinguish a group of points, those with the largest effect first.

    Attributes
    ----------
    names : ndarray of shape (n_features,)
        Names of the features, or their numbers.
    area : ndarray of shape (n_features,)
        The area under the ROC curve: the probability that the feature is larger at a point of the
        group than at one of the others, ties counted half. 1 and 0 separate perfectly, ½ says
        nothing. The features are ordered by |area - ½|.
    median : ndarray of shape (n_features,)
        Median in the group.
    median_against : ndarray of shape (n_features,)
        Median among the others.
    score : ndarray of shape (n_features,)
        Standard score z of the rank sum, corrected for ties.
    p_value : ndarray of shape (n_features,)
        Two-sided p-value by z, of a single feature.
    p_adjusted : ndarray of shape (n_features,)
        p-values corrected for the number of features (Benjamini and Hochberg): among features with
        at most p, about a fraction p differs by chance.
    index : ndarray of shape (n_features,)
        Numbers of the features, columns of X.
    n_selected : int
        Points in the group.
    n_against : int
        The others.

    See Also
    --------
    markers : Find the features that distinguish a group of points.
    """

    names: Array
    area: Array
    median: Array
    median_against: Array
    score: Array
    p_value: Array
    p_adjusted: Array
    index: Array
    n_selected: int
    n_against: int

    def __repr__(self) -> str:
        """Return the first features as a table of text."""
        return self.describe()

    def columns(self) -> dict[str, Array]:
        """Return the table as a dict of columns, for ``pandas.DataFrame`` and others.

        Returns
        -------
        dict
            Arrays of shape (n_features,) by name.
        """
        numbers = ("area", "median", "median_against", "score", "p_value", "p_adjusted")
        return {"feature": self.names, **{name: getattr(self, name) for name in numbers}}

    def describe(self, count: int = 10) -> str:
        """Return the first features as a table of text.

        Parameters
        ----------
        count : int, default=10
            Number of features.

        Returns
        -------
        str
            A line for each feature.
        """
        lines = [f"{self.n_selected:,} points against {self.n_against:,}"]
        lines.append(
            f"{'feature':<24} {'area':>5} {'median':>10} {'against':>10} {'p adjusted':>10}"
        )
        rows = zip(
            *(self.names, self.area, self.median, self.median_against, self.p_adjusted),
            strict=True,
        )
        for (name, area, median, against, p), _ in zip(rows, range(count), strict=False):
            lines.append(f"{name!s:<24} {area:>5.3f} {median:>10.4g} {against:>10.4g} {p:>10.2g}")
        return "\n".join(lines)


def markers(
    X: Any, selected: Any, against: Any = None, *, names: Sequence[Any] | None = None
) -> Markers:
    """Find the features that distinguish a group of points from the others.

    For each feature the ranks of the group are compared with those of the others (Wilcoxon [1]_,
    Mann and Whitney). The effect is the area under the ROC curve, which does not depend on the
    numbers of points; p-values also do.

    The p-values hold for groups that were chosen without looking at these features: by a label,
    an experiment, another set of features. A group that was drawn in a picture of X, or found by
    clustering X, differs in X by construction: the p-values of its features are far too small,
    whatever the correction. Order features by their effect then, and confirm them on other points.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        The features, of which distances may have been made. Missing entries are NaN; they are left
        out, feature by feature.
    selected : array-like of shape (n_samples,) or (n_selected,)
        The group: a mask of the rows, or their numbers. 0 and 1 for each row are a mask.
    against : array-like of shape (n_samples,) or (n_against,), default=None
        The others, in the same form; by default all that are not in the group.
    names : sequence of shape (n_features,), default=None
        Names of the features; by default those of a data frame, else their numbers.

    Returns
    -------
    Markers
        Features in the order of their effect, with areas, medians and p-values.

    Raises
    ------
    ValueError, TypeError
        X is no table of numbers, or has infinite ones; an empty group, one with rows in both, or
        rows that do not exist.

    See Also
    --------
    audit : Find the points of a picture that can be believed.
    anndata.markers : Find the genes that distinguish a group of cells.

    Notes
    -----
    The numbers are those of ``scanpy.tl.rank_genes_groups(method="wilcoxon", tie_correct=True)``: z
    with ties and without a correction for continuity. The cost is that of sorting each column, of a
    sparse X only what is stored; 20,000 genes of 10,000 cells take some seconds. Dense X is read by
    blocks of columns.

    References
    ----------
    .. [1] F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1 (1945),
       80-83.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> X[:30, 3] += 4
    >>> found = hs.markers(X, np.arange(30))
    >>> int(found.index[0]), bool(found.area[0] > 0.99)
    (3, True)
    """
    if names is None:
        names = names_of_columns(X)
    X = as_floats(X, "X")
    if X.ndim != 2 or not X.shape[1]:
        raise ValueError(f"X has shape {X.shape}; pass a table (points, features).")
    n, d = X.shape
    labels = np.arange(d) if names is None else np.asarray(names)
    if len(labels) != d:
        raise ValueError(f"names has {len(labels)} entries but X has {d} features; pass one each.")
    inside = _mask(selected, n, "selected")
    others = ~inside if against is None else _mask(against, n, "against")
    if (inside & others).any():
        row = int((inside & others).argmax())
        raise ValueError(f"row {row} is in selected and in against; leave it out of one of them.")
    if not others.any():
        raise ValueError("selected has all rows, so that none are left; pass fewer.")
    found = _compared(X, inside, others)
    wins, ties, m0, m1, median, median_against = found.T
    with np.errstate(invalid="ignore", divide="ignore"):
        total, pairs = m0 + m1, m0 * m1
        area = np.where(pairs > 0, wins / pairs, 0.5)
        corrected = 1 - ties / (total**3 - total)
        spread = np.sqrt(corrected * pairs * (total + 1) / 12)
        score = np.where(spread > 0, (wins - pairs / 2) / spread, 0.0)
    score = np.nan_to_num(score)
    p = 2 * ndtr(-np.abs(score))
    order = np.argsort(-np.abs(area - 0.5), kind="stable")
    return Markers(
        names=labels[order],
        area=area[order],
        median=median[order],
        median_against=median_against[order],
        score=score[order],
        p_value=p[order],
        p_adjusted=false_discovery_control(p)[order],
        index=order,
        n_selected=int(inside.sum()),
        n_against=int(others.sum()),
    )


def having(entries: Any, wanted: Any, column: str) -> Array:
    """Return a mask (n,) of the entries that are a label, or one of several; raise if one is new.

    Labels are compared as text.
    """
    words = np.array([str(entry) for entry in np.asarray(entries).tolist()])
    mask = np.zeros(len(words), bool)
    for label in [wanted] if isinstance(wanted, str) or not np.iterable(wanted) else wanted:
        own = words == str(label)
        if not own.any():
            known = sorted({*words.tolist()})
            shown = ", ".join(known[:10]) + (", …" if len(known) > 10 else "")
            hint = did_you_mean(str(label), known)
            raise ValueError(f"{column!r} has no label {str(label)!r}; choose from {shown}{hint}")
        mask |= own
    return mask


def _mask(rows: Any, n: int, name: str) -> Array:
    """Return a mask (n,) of rows that are given as a mask or by numbers, or raise."""
    rows = np.atleast_1d(read_rows(rows, n))
    if rows.ndim != 1 or (rows.dtype == bool and len(rows) != n):
        raise ValueError(
            f"{name} has shape {rows.shape} but X has {n} rows; pass a mask, one each, or numbers "
            "of rows."
        )
    if rows.dtype == bool:
        mask = rows
    else:
        if rows.dtype.kind not in "iu" and rows.size:
            raise TypeError(f"{name} has dtype {rows.dtype}; pass a mask, or numbers of rows.")
        check_in_range(rows, name, n)
        mask = np.zeros(n, bool)
        mask[rows.astype(int)] = True
    if not mask.any():
        raise ValueError(f"{name} has no rows; pass a mask with some, or numbers of rows.")
    return mask


def _compared(X: Any, inside: Array, others: Array) -> Array:
    """Return for each column wins, ties, numbers of entries and medians (d, 6)."""
    from heatsketch.metrics.marker_loops import rank_sums  # slow to import

    n, d = X.shape
    group = np.full(n, -1, np.int8)
    group[inside], group[others] = 0, 1
    stored: Any = X.tocsc() if sparse.issparse(X) else None
    zeros = np.array([stored is not None, inside.sum(), others.sum()])
    found = np.empty((d, 6))
    if stored is not None:
        _refuse_infinity(stored.data)
    rows = np.concatenate([np.flatnonzero(mask) for mask in (inside, others)])

    def compare(columns: slice) -> None:
        if stored is not None:
            parts, own = (stored.data, stored.indices, stored.indptr), np.arange(d)[columns]
        else:
            block = X[:, columns].T
            _refuse_infinity(block)
            # NumPy sorts faster than a compiled loop.
            block = np.hstack([np.sort(block[:, mask]) for mask in (inside, others)])
            m = len(block)
            parts = block.ravel(), np.tile(rows, m), np.arange(m + 1) * len(rows)
            own = np.arange(m)
        rank_sums(*parts, group, zeros, own, found[columns])

    for_each_tile(compare, d, max(1, min(_COLUMNS, _ENTRIES // n)))
    return found


def _refuse_infinity(values: Array) -> None:
    if np.isinf(values).any():
        raise ValueError("X has infinite entries; make them missing (NaN), or finite.")
