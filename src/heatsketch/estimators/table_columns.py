"""Columns of a data frame: their values and kinds, and the numbers that each of them becomes.

The numbers of a column have variance 1 in all, so that its mean squared distance is 2.
"""

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.estimators.table_frames import ISO_DATE, SPANS, merged, read_column

KINDS = ("number", "rank", "boolean", "ordered", "category", "date", "left out")
RARE = "(rare)"
_KIND_OF = {
    **{"f": "number", "b": "boolean", "M": "date", "m": "number", "O": "category", "V": "category"}
}
_TYPES = {
    **{"f": "numbers", "b": "booleans", "M": "dates", "m": "spans of time", "O": "text"},
    "V": "values of another type",
}
_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_LIKE_A_DATE = re.compile(
    rf"(?:\d{{1,2}}([-./])\d{{1,2}}\1\d{{4}}|\d{{1,2}}/\d{{1,2}}/\d\d|\d{{4}}([-./])\d{{1,2}}\2\d{{1,2}})\b.*|"
    rf"(?:[a-z]{{3,9}},? )?(?:\d{{1,2}}[a-z]{{0,2}}[-. ]+)?{_MONTH}[-., ]+\d.*",
    re.IGNORECASE,
)
_UNREAD = "looks like dates, day or month first? write them as 2013-12-31"
_LEAST = 1e-150  # of a deviation whose square is a number
_QUANTILES = 1000  # of a column that becomes ranks
_SHOWN = 5  # categories in a description


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table, and what it becomes.

    Attributes
    ----------
    name : object
        Its name.
    kind : {"number", "rank", "boolean", "ordered", "category", "date", "left out"}
    why : str
        Why it is left out, or is no dates; else "".
    dtype : str
        Letter of the values: f (numbers), b (booleans), M (dates), m (spans of time), O (text) or V
        (objects of another type).
    categories : ndarray of shape (n_categories,)
        The categories, "ordered" ones in their order, others sorted; empty for other kinds.
    counts : ndarray of shape (n_categories,)
        How often each of them occurs.
    least : int
        Categories that occur less often are pooled.
    quantiles : ndarray or None
        Quantiles of the values, for "rank".
    mean, scale : float
        What is subtracted from the numbers, and the factor that divides them then.
    """

    name: Any
    kind: str
    why: str = ""
    dtype: str = "f"
    categories: Array = field(default_factory=lambda: np.empty(0))
    counts: Array = field(default_factory=lambda: np.empty(0, int))
    least: int = 1
    quantiles: Array | None = None
    mean: float = 0.0
    scale: float = 1.0

    @property
    def names(self) -> list[str]:
        """Return the names of the numbers."""
        if self.kind == "category":
            words = [*map(_word, self.kept.tolist()), *[RARE] * (len(self.rare) > 0)]
            return [f"{self.name}={word}" for word in words]
        return [] if self.kind == "left out" else [str(self.name)]

    @cached_property
    def kept(self) -> Array:
        """Return the categories that have a number of their own."""
        return self.categories[self.counts >= self.least]

    @cached_property
    def rare(self) -> Array:
        """Return the categories that are pooled."""
        return self.categories[self.counts < self.least]

    def describe(self) -> str:
        """Say what the column became, in a few words."""
        if self.kind == "left out":
            return f"left out ({self.why})"
        if self.kind == "ordered":
            return f"ordered ({' < '.join(_few(self.categories.tolist()))})"
        if self.kind != "category":
            return "span of time" if (self.kind, self.dtype) == ("number", "m") else self.kind
        said = [", ".join(_few(self.kept.tolist()))]
        said += [f"{len(self.rare):,} rare ones pooled"] if len(self.rare) else []
        return f"{len(self.kept)} categories ({'; '.join([*said, *[self.why] * bool(self.why)])})"

    def read(self, column: Any) -> Array:
        """Return the numbers (n, w) of the values of a column; NaN where they are missing."""
        values, missing, _ = read_column(column, self.name, as_text=self.dtype == "O")
        there = values[~missing]
        found = np.full((len(values), len(self.names)), np.nan)
        if not len(there):
            return found
        if not _are_alike(letter_of(there), self.dtype):
            are_dates = self.dtype == "M"
            other = next(x for x in there.tolist() if not (are_dates and ISO_DATE.match(str(x))))
            raise ValueError(
                f"Column {self.name!r} held {_TYPES[self.dtype]} in the fit, but holds {other!r} "
                "now; pass values of the same type."
            )
        found[~missing] = (self._plain(there) - self.mean) / self.scale
        return found

    def _plain(self, there: Array) -> Array:
        """Return what values (n,) are before they are scaled, (n, w)."""
        if self.kind in ("ordered", "category"):
            codes = self.codes(there)
            if self.kind == "category":
                own = np.append(self.counts >= self.least, False)  # the last for new ones
                place = np.where(own, own.cumsum() - 1, own.sum())[codes]
                return (place[:, None] == np.arange(len(self.names))).astype(float)
            if (codes < 0).any():
                word = there.tolist()[codes.argmin()]
                raise ValueError(
                    f"Column {self.name!r} holds {word!r}, which is not among its ordered "
                    f"categories {self.categories.tolist()}; add it to their order in columns, or "
                    "make it missing."
                )
            return codes[:, None].astype(float)
        plain = as_numbers(there, self.name)
        if self.quantiles is not None:
            plain = np.interp(plain, self.quantiles, np.linspace(0, 1, len(self.quantiles)))
        return plain[:, None]

    def codes(self, there: Array) -> Array:
        """Return the places (n,) of values among the categories, -1 for others."""
        is_span = there.dtype.kind in SPANS
        alike = there.astype(self.categories.dtype) if is_span else there
        place = {value: j for j, value in enumerate(self.categories.tolist())}
        found = np.array([place.get(value, -1) for value in alike.tolist()], int)
        return np.where(alike == there, found, -1) if is_span else found  # finer ones are others

    def middle(self, numbers: Array) -> Array:
        """Return the median of rows (n, w), or the most frequent category, as numbers (w,)."""
        if self.kind != "category":
            return np.nanmedian(numbers, axis=0)  # type: ignore[no-any-return]
        shares = np.nanmean(numbers, axis=0)
        return np.where(np.arange(len(shares)) == shares.argmax(), 1 / self.scale, 0.0)

    def values(self, numbers: Array) -> Array:
        """Return the values (n,) of numbers (n, w), the nearest that there are."""
        missing: Array = np.isnan(numbers.sum(axis=1))
        plain = np.where(missing[:, None], 0.0, numbers) * self.scale + self.mean
        first = plain[:, 0]
        if self.kind == "category":
            best, last = plain.argmax(axis=1), len(self.kept) - 1
            missing |= (best > last) | (plain.max(axis=1) <= 0)
            return _with_gaps(self.kept[np.minimum(best, last)], missing)
        if self.kind == "ordered":
            places = np.clip(np.rint(first), 0, len(self.categories) - 1).astype(int)
            return _with_gaps(self.categories[places], missing)
        if self.quantiles is not None:
            first = np.interp(first, np.linspace(0, 1, len(self.quantiles)), self.quantiles)
        if self.dtype in SPANS:
            # Spans within a second may need nanoseconds.
            finer = self.dtype == "m" and self.scale < 1e6 and self.quantiles is None
            made = np.rint(first * (1e3 if finer else 1)).astype("int64")
            unit = SPANS[self.dtype].replace("us", "ns" if finer else "us")
            return _with_gaps(made.view(unit), missing)
        return _with_gaps(first >= 0.5 if self.dtype == "b" else first, missing)


def letter_of(there: Array) -> str:
    """Return the letter of the type of values (n,): f, b, M, m, O for text, V for others."""
    letter = there.dtype.kind
    if letter == "O" and len(there) and not isinstance(there[0], str):
        return "V"
    return {"i": "f", "u": "f"}.get(letter, letter)


def _are_alike(one: str, other: str) -> bool:
    """Say whether values of two letters are of one type: booleans are numbers."""
    return one == other or {one, other} == {"b", "f"}


def _word(category: Any) -> str:
    """Return a category as text: whole numbers without a decimal point, days without a time."""
    whole = isinstance(category, float) and category.is_integer()
    return str(int(category) if whole else category).removesuffix(" 00:00:00")


def _few(words: list[Any]) -> list[str]:
    return [*map(_word, words[:_SHOWN]), *["…"] * (len(words) > _SHOWN)]


def _with_gaps(values: Array, missing: Array) -> Array:
    """Return values (n,) with gaps: NaN, NaT, or objects with None."""
    if not missing.any():
        return values
    values = values.astype(object if values.dtype.kind in "iubO" else values.dtype)
    values[missing] = None
    return values


def as_numbers(there: Array, name: Any) -> Array:
    """Return values (n,), none of which is missing, as finite floats, or raise."""
    if there.dtype.kind in SPANS:
        return there.astype("int64") / (1e3 if "ns" in there.dtype.str else 1.0)
    found = there.astype(float)
    if not np.isfinite(found).all():
        row = int((~np.isfinite(found)).argmax())
        raise ValueError(
            f"Input X contains infinity: column {name!r} holds {found[row]}; make it missing, or "
            "pass a finite number."
        )
    return found


def fitted_column(name: Any, column: Any, asked: Any, least: int) -> Column:
    """Return what a column becomes: as asked, else as its type says.

    `asked` is a kind, the order of categories, or None.
    """
    kind = asked if isinstance(asked, str) or asked is None else "ordered"
    if kind == "left out":
        return Column(name, kind, "as asked")
    as_text, is_ordered = kind in ("ordered", "category"), asked == "ordered"
    values, missing, order = read_column(column, name, as_text, is_ordered)
    there = values[~missing]
    dtype = letter_of(there)
    if not len(there):
        return Column(name, "left out", "no value", dtype)
    if kind is None:
        kind = _KIND_OF[dtype] if order is None else "ordered" if order else "category"
    if kind in ("ordered", "category"):
        order = order if isinstance(asked, str | None) else list(asked)
        made = _of_categories(name, kind, there, order, least)
        different = {*there} if asked is None and dtype == "O" else set()
        if order is not None:  # declared to be categories, in a notation that is read
            different = {word for word in different if not ISO_DATE.fullmatch(word)}
        if 2 * sum(bool(_LIKE_A_DATE.fullmatch(word)) for word in different) > len(different):
            made = replace(made, why="; ".join([*[made.why] * bool(made.why), _UNREAD]))
        return made
    others = np.full(len(there), dtype in "OV" or (kind == "date" and dtype != "M"))
    if kind == "boolean":
        others |= ~np.isin(there, (0, 1)) if dtype in "bf" else True
    if others.any():
        want = "'category' or the order of its categories" if dtype in "OV" else "'number'"
        want = "dates such as 2013-12-31, or " * (kind == "date") + want
        raise ValueError(
            f"columns[{name!r}]={asked!r}, but the column holds {_TYPES[dtype]}, such as "
            f"{there.tolist()[others.argmax()]!r}; pass {want}."
        )
    if there.min() == there.max():
        return Column(name, "left out", "constant", dtype)
    numbers = as_numbers(there, name)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(numbers.mean())
        scale = float((numbers - mean).std())  # also where a mean beside 2^53 is rounded
    whole = there.view("int64") if dtype in SPANS else there
    beyond = whole.dtype.kind in "iu" and max(int(whole.max()), -int(whole.min())) > 2**53
    if beyond and (
        np.spacing(np.abs(numbers).max()) > 1e-6 * scale
        or (kind == "rank" and len(np.unique(numbers)) < len(np.unique(there)))
    ):
        raise merged(name)
    if not _LEAST < scale < 1 / _LEAST:
        raise ValueError(
            f"Column {name!r} has numbers from {numbers.min():.3g} to {numbers.max():.3g}, whose "
            "squares leave float64; pass them in another unit, or leave the column out."
        )
    quantiles = None
    if kind == "rank":
        quantiles = np.quantile(numbers, np.linspace(0, 1, min(len(numbers), _QUANTILES)))
        numbers = np.interp(numbers, quantiles, np.linspace(0, 1, len(quantiles)))
        mean, scale = float(numbers.mean()), float(numbers.std())
    return Column(name, kind, "", dtype, quantiles=quantiles, mean=mean, scale=scale)


def _of_categories(name: Any, kind: str, there: Array, order: Any, least: int) -> Column:
    """Return a column of categories, without those that do not occur unless they are ordered."""
    dtype = letter_of(there)
    try:
        found, counts = np.unique(there, return_counts=True)
    except TypeError as error:
        raise TypeError(
            f"Column {name!r} holds {there[0]!r}, whose type has no order, but the argument must "
            "be a string or a number; pass a column of one of them."
        ) from error
    if kind == "ordered":
        if order:
            found, absent, _ = read_column(order, name, as_text=dtype == "O")
            found = found[~absent]
            if len({*found.tolist()}) < len(found) or not _are_alike(letter_of(found), dtype):
                raise ValueError(
                    f"columns[{name!r}]={order!r}, but the column holds {_TYPES[dtype]}, such as "
                    f"{there.tolist()[0]!r}; pass each of its categories once, in their order."
                )
        column = Column(name, kind, "", dtype, found, np.ones(len(found), int))
        ranks = column._plain(there)
        scale = float(ranks.std())
        if not scale:
            return Column(name, "left out", "constant", dtype)
        return replace(column, mean=float(ranks.mean()), scale=scale)
    pooled = counts < least
    shares = np.append(counts[~pooled], counts[pooled].sum()) / len(there)
    if shares.max() == 1:
        why = "constant" if len(found) == 1 else f"{len(found):,} different values, all rare"
        return Column(name, "left out", why, dtype)
    # Two rows are in different categories with the probability 1 - Σ p², at squared distance 2.
    scale = float(np.sqrt(1 - np.sum(shares**2)))
    return Column(name, kind, "", dtype, found, counts, least, scale=scale)
