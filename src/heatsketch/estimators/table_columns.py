"""Columns of a data frame: their values and kinds, and the numbers that each of them becomes.

The numbers of a column have variance 1 in all, so that its mean squared distance is 2.
"""

import datetime
import numbers
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from heatsketch._typing import Array
from heatsketch._validation import is_missing, names_of_columns

KINDS = ("number", "rank", "boolean", "ordered", "category", "date", "left out")
RARE = "(rare)"
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?")
_SPANS = {"M": "datetime64[us]", "m": "timedelta64[us]"}  # by the letter of the dtype
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
        Why it is left out; else "".
    dtype : str
        Letter of the values: f (numbers), b (booleans), M (dates), m (spans of time) or O.
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
            words = [*map(_word, self.kept), *[RARE] * (len(self.rare) > 0)]
            return [f"{self.name}={word}" for word in words]
        return [] if self.kind == "left out" else [str(self.name)]

    @cached_property
    def kept(self) -> list[Any]:
        """Return the categories that have a number of their own."""
        return self.categories[self.counts >= self.least].tolist()  # type: ignore[no-any-return]

    @cached_property
    def rare(self) -> list[Any]:
        """Return the categories that are pooled."""
        return self.categories[self.counts < self.least].tolist()  # type: ignore[no-any-return]

    @cached_property
    def encoder(self) -> Any:
        """Return scikit-learn's encoder of the categories."""
        if self.kind == "ordered":
            order = {"categories": [self.categories], "handle_unknown": "use_encoded_value"}
            made = OrdinalEncoder(**order, unknown_value=np.nan)
            return made.fit(self.categories[:, None])
        seen = np.repeat(self.categories, np.minimum(self.counts, self.least))[:, None]
        how = {"handle_unknown": "infrequent_if_exist", "sparse_output": False}
        return OneHotEncoder(min_frequency=self.least, **how).fit(seen)

    def describe(self) -> str:
        """Say what the column became, in a few words."""
        if self.kind == "left out":
            return f"left out ({self.why})"
        if self.kind == "ordered":
            return f"ordered ({' < '.join(_few(self.categories.tolist()))})"
        if self.kind != "category":
            return {"m": "span of time"}.get(self.dtype, self.kind)
        pooled = f"; {len(self.rare):,} rare ones pooled" if self.rare else ""
        return f"{len(self.kept)} categories ({', '.join(_few(self.kept))}{pooled})"

    def numbers(self, values: Array, missing: Array) -> Array:
        """Return the numbers (n, w) of values; NaN where they are missing."""
        width = len(self.names)
        found = np.full((len(values), width), np.nan)
        there = values[~missing]
        if not width or not len(there):
            return found
        if self.kind == "category":
            plain = self.encoder.transform(there[:, None])
        elif self.kind == "ordered":
            plain = self._ranks(there)
        else:
            plain = as_numbers(there, self.name, self.dtype)[:, None]
            if self.quantiles is not None:
                plain = np.interp(plain, self.quantiles, np.linspace(0, 1, len(self.quantiles)))
        found[~missing] = (plain - self.mean) / self.scale
        return found

    def _ranks(self, values: Array) -> Array:
        """Return the numbers (n, 1) of ordered categories in their order, or raise."""
        ranks = self.encoder.transform(values[:, None])
        if np.isnan(ranks).any():
            word = values[int(np.isnan(ranks[:, 0]).argmax())]
            raise ValueError(
                f"Column {self.name!r} holds {word!r}, which is not among its ordered categories "
                f"{self.encoder.categories_[0].tolist()}; add it to their order in columns, or "
                "make it missing."
            )
        return ranks  # type: ignore[no-any-return]

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
        if self.kind == "category":
            made = self.encoder.inverse_transform(plain)[:, 0].astype(object)
            pooled = plain.argmax(axis=1) >= len(self.kept)
            made[pooled | missing] = None
            return made
        first = plain[:, 0]
        if self.kind == "ordered":
            places = np.clip(np.rint(first), 0, len(self.categories) - 1).astype(int)
            return _with_none(self.categories[places], missing)
        if self.quantiles is not None:
            first = np.interp(first, np.linspace(0, 1, len(self.quantiles)), self.quantiles)
        if self.dtype in _SPANS:
            made = np.rint(first).astype("int64").view(_SPANS[self.dtype])
            made[missing] = np.array("NaT", made.dtype)
            return made
        if self.dtype == "b":
            return _with_none(first >= 0.5, missing)
        return np.where(missing, np.nan, first)


def _word(category: Any) -> str:
    """Return a category as text: whole numbers without a decimal point."""
    whole = isinstance(category, float) and category.is_integer()
    return str(int(category) if whole else category)


def _few(words: list[Any]) -> list[str]:
    return [*map(_word, words[:_SHOWN]), *["…"] * (len(words) > _SHOWN)]


def _with_none(values: Array, missing: Array) -> Array:
    """Return values (n,), as objects with None for missing ones if there are any."""
    if not missing.any():
        return values
    values = values.astype(object)
    values[missing] = None
    return values


def fitted_column(name: Any, column: Any, asked: Any, least: int) -> Column:
    """Return what a column becomes: as asked, else as its type says.

    `asked` is a kind, the order of categories, or None.
    """
    values, missing, order = read_column(column, name)
    there, dtype = values[~missing], values.dtype.kind
    kind = asked if isinstance(asked, str) else "ordered" if asked is not None else None
    if kind == "left out":
        return Column(name, kind, "as asked", dtype)
    if not len(there):
        return Column(name, "left out", "no value", dtype)
    if kind is None:
        kind = "ordered" if order is not None else _KIND_OF[dtype]
    if kind in ("ordered", "category"):
        return _of_categories(name, kind, values, missing, order if asked is None else asked, least)
    if dtype == "O":
        raise ValueError(
            f"columns[{name!r}]={asked!r}, but the column holds text, such as {there[0]!r}; pass "
            "'category' or the order of its categories."
        )
    numbers = as_numbers(there, name, dtype)
    if numbers.min() == numbers.max():
        return Column(name, "left out", "constant", dtype)
    quantiles = None
    if kind == "rank":
        quantiles = np.quantile(numbers, np.linspace(0, 1, min(len(numbers), _QUANTILES)))
        numbers = np.interp(numbers, quantiles, np.linspace(0, 1, len(quantiles)))
    mean, scale = float(numbers.mean()), float(numbers.std())
    return Column(name, kind, "", dtype, quantiles=quantiles, mean=mean, scale=scale)


def _of_categories(
    name: Any, kind: str, values: Array, missing: Array, order: Any, least: int
) -> Column:
    """Return a column of categories, without those that do not occur unless they are ordered."""
    there = values[~missing]
    if there.dtype.kind in _SPANS:
        there = there.astype(str).astype(object)
    try:
        found, counts = np.unique(there, return_counts=True)
    except TypeError as error:
        raise TypeError(
            f"Column {name!r} holds values of several types, but the argument must be a string or "
            "a number; pass a column of one of them."
        ) from error
    dtype = there.dtype.kind
    if kind == "ordered":
        if isinstance(order, str) or order is None:  # as they are sorted
            order = found
        listed = np.empty(len(order), there.dtype if dtype != "O" else object)
        listed[:] = list(order)
        column = Column(name, kind, "", dtype, listed, np.ones(len(listed), int))
        ranks = column._ranks(there)
        scale = float(ranks.std())
        if not scale:
            return Column(name, "left out", "constant", dtype)
        return Column(
            name, kind, "", dtype, listed, column.counts, mean=float(ranks.mean()), scale=scale
        )
    pooled = counts < least
    shares = np.append(counts[~pooled], counts[pooled].sum()) / len(there)
    if shares.max() == 1:
        why = "constant" if len(found) == 1 else f"{len(found):,} different values, all rare"
        return Column(name, "left out", why, dtype)
    # Two rows are in different categories with the probability 1 - Σ p², at squared distance 2.
    scale = float(np.sqrt(1 - np.sum(shares**2)))
    return Column(name, kind, "", dtype, found, counts, least, scale=scale)


# Values

_KIND_OF = {"f": "number", "b": "boolean", "M": "date", "m": "number", "O": "category"}


def read_column(column: Any, name: Any, as_text: bool = False) -> tuple[Array, Array, Any]:
    """Return the values (n,) of a column, which are missing (n,), and the order of categories.

    With `as_text` all must be text, which may look like dates.

    Values are floats, booleans, dates or spans of time in µs, or objects that are text, numbers or
    both; the order is None for a column that declares none.
    """
    order = None
    if str(getattr(column, "dtype", "")) == "category":  # of pandas
        declared = getattr(column, "cat", column)
        order = list(declared.categories) if declared.ordered else None
        values = np.asarray(column.astype(object), dtype=object)
        return values, np.array([is_missing(value) for value in values], bool), order
    if hasattr(column, "combine_chunks") or hasattr(column, "dictionary"):  # of Arrow
        whole = in_one_piece(column)
        if hasattr(whole, "dictionary"):
            order = whole.dictionary.to_pylist() if whole.type.ordered else None
            values = np.array(whole.to_pylist(), dtype=object)
            return values, np.array([is_missing(value) for value in values], bool), order
    values = np.asarray(column)
    if isinstance(column, list | tuple) and values.dtype.kind in "US":
        values = np.empty(len(column), object)  # NumPy makes text of numbers beside text
        values[:] = column
    masked = np.ma.getmaskarray(column) if isinstance(column, np.ma.MaskedArray) else None
    if values.ndim != 1:
        raise ValueError(f"Column {name!r} has shape {values.shape}; pass one value for each row.")
    kind = values.dtype.kind
    if kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r} has dtype {values.dtype}.")
    if kind in "US":
        values = values.astype(object)
    if values.dtype.kind == "O":
        values, missing = _of_objects(values, name, as_text)
    elif as_text and (values == values).any():
        raise _other_type(name, "text", values[0])
    else:
        values = values.astype({"i": "f8", "u": "f8", "f": "f8", **_SPANS}.get(kind, bool))
        missing = values != values
    return values, missing if masked is None else missing | masked, order


def _of_objects(values: Array, name: Any, as_text: bool) -> tuple[Array, Array]:
    """Return objects (n,) as values of one type, if they have one, and which are missing (n,)."""
    listed = values.tolist()
    kinds = set(map(type, listed)) - {type(None)}
    if kinds and kinds <= {float, int, np.float64, np.int64} and not as_text:
        made: Array = np.array(listed, float)
        missing = ~np.isfinite(made)
        made[missing] = np.nan
        return made, missing
    try:
        different = dict.fromkeys(listed)
    except TypeError as error:
        raise TypeError(
            f"Column {name!r} holds a {_unhashable(listed)}, but the argument must be a string or "
            "a number; pass a column of one of them."
        ) from error
    gaps = {value for value in different if is_missing(value)}
    missing = np.array([value in gaps or value != value for value in listed], bool)
    there = [value for value in different if value not in gaps]
    if as_text:
        for value in there:
            if not isinstance(value, str | bytes):
                raise _other_type(name, "text", value)
        return values, missing
    if there and all(isinstance(value, bool | np.bool_) for value in there):
        made = np.zeros(len(listed), bool)
        made[~missing] = values[~missing].astype(bool)
        return made, missing
    if there and all(isinstance(value, numbers.Number) for value in there):  # also Decimal
        made = np.full(len(listed), np.nan)
        made[~missing] = values[~missing].astype(float)
        return made, missing
    if there and all(isinstance(x, datetime.date | np.datetime64) or _is_iso(x) for x in there):
        made = np.full(len(listed), "NaT", "datetime64[us]")
        made[~missing] = [np.datetime64(_without_zone(value), "us") for value in values[~missing]]
        return made, missing
    return values, missing


def _unhashable(listed: list[Any]) -> str:
    return next(type(x).__name__ for x in listed if type(x).__hash__ is None)


def _is_iso(value: Any) -> bool:
    return isinstance(value, str) and _ISO_DATE.fullmatch(value.strip()) is not None


def _without_zone(value: Any) -> Any:
    """Return a date as NumPy reads it, in UTC."""
    if isinstance(value, str):
        return value.strip()
    if getattr(value, "tzinfo", None) is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value


def _other_type(name: Any, was: str, value: Any) -> ValueError:
    """Return the error for a column of another type than in the fit."""
    return ValueError(
        f"Column {name!r} held {was} in the fit, but holds {value!r} now; pass values of the same "
        "type."
    )


def as_numbers(values: Array, name: Any, dtype: str) -> Array:
    """Return values (n,), none of which is missing, as finite floats, or raise."""
    kind = values.dtype.kind
    if kind == "O" or ((kind in _SPANS or dtype in _SPANS) and kind != dtype):
        was = {"M": "dates", "m": "spans of time"}.get(dtype, "numbers")
        raise _other_type(name, was, values[0])
    found = values.astype("int64" if kind in _SPANS else float).astype(float)
    if not np.isfinite(found).all():
        row = int((~np.isfinite(found)).argmax())
        raise ValueError(
            f"Input X contains infinity: column {name!r} holds {found[row]}; make it missing, or "
            "pass a finite number."
        )
    return found  # type: ignore[no-any-return]


# Tables


def in_one_piece(column: Any) -> Any:
    """Return a column of Arrow in one piece, with one dictionary."""
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column


def columns_of(X: Any) -> dict[Any, Any]:
    """Return the columns of a data frame, or of a mapping, by their names."""
    if isinstance(X, Mapping):
        found = dict(X)
    else:
        names: Sequence[Any] = names_of_columns(X) or []
        repeated = [repr(name) for name in dict.fromkeys(names) if names.count(name) > 1]
        if repeated:
            raise ValueError(
                f"X has several columns with the name {', '.join(repeated[:5])}; rename them."
            )
        found = {name: X[name] for name in names}
    lengths = {len(column) for column in found.values()}
    if len(lengths) > 1:
        raise ValueError(f"X has columns of lengths {sorted(lengths)}; pass one value a row.")
    return found
