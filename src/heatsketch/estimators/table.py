"""Tables of mixed columns as numbers: columns, frames of three libraries, `TableEncoder`.

The numbers of a column have variance 1 in all, so that its mean squared distance is 2.

narwhals reads frames. Types are kept as plain values, so that files of models hold them.
"""

import datetime
import importlib
import math
import numbers
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from heatsketch._arrays import Array
from heatsketch._checks import check_choice, check_number, is_missing, read_array
from heatsketch._messages import warn, warn_of_rows
from heatsketch._state import at_once
from heatsketch._words import did_you_mean

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
        noun = "category" if len(self.kept) == 1 else "categories"
        return f"{len(self.kept)} {noun} ({'; '.join([*said, *[self.why] * bool(self.why)])})"

    def read(self, column: Any) -> tuple[Array, dict[int, Any]]:
        """Return the numbers (n, w) of the values of a column; NaN where they are missing.

        Also returned are new categories, which the fit did not see, by their rows.
        """
        values, missing, _ = read_column(column, self.name, as_text=self.dtype == "O")
        there = values[~missing]
        found = np.full((len(values), len(self.names)), np.nan)
        if not len(there):
            return found, {}
        if not _are_alike(letter_of(there), self.dtype):
            are_dates = self.dtype == "M"
            other = next(x for x in there.tolist() if not (are_dates and ISO_DATE.match(str(x))))
            raise ValueError(
                f"Column {self.name!r} held {_TYPES[self.dtype]} in the fit, but holds {other!r} "
                "now; pass values of the same type."
            )
        found[~missing] = (self._plain(there) - self.mean) / self.scale
        if self.kind != "category":
            return found, {}
        is_own = found[:, : len(self.kept)].any(axis=1)  # NaN, too
        rows = np.flatnonzero(~is_own)
        new = rows[self.codes(values[rows]) < 0]
        return found, dict(zip(new.tolist(), values[new].tolist(), strict=True))

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
        counts = np.count_nonzero(numbers > 0, axis=0)  # in the own one it is positive
        return np.where(np.arange(len(counts)) == counts.argmax(), 1 / self.scale, 0.0)

    def in_units(self, numbers: Array) -> Array:
        """Return numbers (n, w) in the unit of the column; a date in years, a category as 0, 1."""
        plain = numbers * self.scale + self.mean
        if self.quantiles is not None:
            plain = np.interp(plain, np.linspace(0, 1, len(self.quantiles)), self.quantiles)
        if self.dtype in SPANS and self.kind in ("number", "rank", "date"):
            return plain / 1e6 if self.dtype == "m" else 1970 + plain / _YEAR
        return plain

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
    if asked is None and order is None and dtype == "O":
        _warn_of_numbers(values, missing, name)
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
    numbers = np.sort(as_numbers(there, name))  # so that sums do not depend on the order of rows
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


def _warn_of_numbers(values: Array, missing: Array, name: Any) -> None:
    """Warn of a column of text in which at least half of the cells are numbers, but not all."""
    counts = Counter(values[~missing].tolist())
    others = [word for word in counts if not _is_number(word)]
    n_cells = sum(counts[word] for word in others)
    half = 2 * n_cells <= counts.total() or 2 * len(others) <= len(counts)
    if others and half:
        row = values.tolist().index(others[0])
        warn(
            UserWarning,
            f"column {name!r} holds {others[0][:80]!r} in row {row} ({n_cells:,} such cells); the "
            "column looks numeric but this is not a number, so that all its values are "
            "categories. Make such cells missing and the others numbers; or, if these are "
            f"categories, pass columns={{{name!r}: 'category'}}.",
        )


def _is_number(word: str) -> bool:
    with suppress(ValueError):
        float(word)
        return True
    return False


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
        ranks = np.sort(column._plain(there), axis=0)  # so that sums do not depend on the order
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


_YEAR = 365.2425 * 86_400e6  # in µs
SPANS = {"M": "datetime64[us]", "m": "timedelta64[us]"}  # by the letter of the dtype
_PLAIN = {"i": "i8", "u": "u8", "f": "f8", "b": "?"}
_LISTED = (nw.String, nw.Int128, nw.UInt128)  # NumPy or Arrow lack functions for some of them
_FINER = ("ns", "ps", "fs", "as")  # units of less than a microsecond
ISO_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?"
)
_TEXT = re.compile(r"(large_)?str(ing)?(_view)?(\[.*\])?|object|utf8")
_WHOLE = re.compile(r"u?int\d+")
_COARSE = re.compile(r"^Date$|\b(?:D|day|h|m|s|ms)\b")  # units of more than a microsecond


def read_table(X: Any) -> tuple[dict[Any, Any], str]:
    """Return the columns of a table by name, of an array x0, x1, ..., and what it is.

    This is "array", "dict", or the library of a frame.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if frame is X and hasattr(X, "__arrow_c_stream__") and hasattr(X, "columns"):
        frame = nw.from_arrow(frame, backend="pyarrow")
    if isinstance(frame, nw.DataFrame):
        kind = frame.implementation.value
        found = {name: frame.get_column(name) for name in frame.columns}
    elif isinstance(X, Mapping) and not sparse.issparse(X):  # one of SciPy's formats is a dict
        kind, found = "dict", dict(X)
    else:
        kind, found = "array", _columns_of_array(X)
    lengths = {_length(column, name) for name, column in found.items()}
    if len(lengths) > 1:
        raise ValueError(f"X has columns of lengths {sorted(lengths)}; pass one value a row.")
    return found, kind


def _columns_of_array(X: Any) -> dict[str, Any]:
    if not sparse.issparse(X):
        form = read_array(X, "X")
        if isinstance(X, list | tuple) and form.dtype.kind in "US":
            X = read_array(X, "X", dtype=object)  # NumPy makes text of numbers beside text
    X = check_array(X, dtype=None, ensure_all_finite=False)
    return {f"x{j}": column for j, column in enumerate(X.T)}


def _length(column: Any, name: Any) -> int:
    try:
        return len(column)
    except TypeError:
        raise TypeError(
            f"Column {name!r} is of type {type(column).__name__}; pass one value for each row."
        ) from None


def read_column(
    column: Any, name: Any, as_text: bool = False, ordered: bool = False
) -> tuple[Array, Array, list[Any] | None]:
    """Return the values (n,) of a column, which are missing (n,), and its order of categories.

    Values are numbers, booleans, dates or spans of time in µs (in ns if they need it), or objects,
    which are text or of another type. The order is None for a column that declares no categories,
    and empty for one that declares them without order, or in their order if it is asked to be
    `ordered`. With `as_text` text that looks like dates stays text.
    """
    column, order = _series(column), None
    if isinstance(column, nw.Series) and isinstance(column.dtype, nw.Categorical | nw.Enum):
        kind = _type_of(column)
        declared = isinstance(column.dtype, nw.Enum) or hasattr(kind, "categories")
        order = []
        if getattr(kind, "ordered", False) or (ordered and declared):
            order = _words(column)
    elif isinstance(column, nw.Series) and isinstance(column.dtype, _LISTED):
        column = column.to_list()
    if isinstance(column, nw.Series):
        there, missing = column.drop_nulls(), column.is_null().to_numpy().copy()
        found = there.to_numpy()
        # Zeros, because what is missing must not decide on the unit of spans.
        values = np.full(len(missing), None if found.dtype == object else 0, found.dtype)
        if found.ndim == 1:
            values[~missing] = found
    else:
        is_list = isinstance(column, list | tuple)
        values = np.fromiter(column, object, len(column)) if is_list else np.asarray(column)
        found, missing = values, np.zeros(values.shape, bool)
        if isinstance(column, np.ma.MaskedArray):
            missing |= np.ma.getmaskarray(column)
    if found.ndim != 1:
        raise ValueError(f"Column {name!r} has shape {found.shape}; pass one value for each row.")
    kind = values.dtype.kind
    if kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r} has dtype {values.dtype}.")
    if kind in SPANS:
        values = _in_microseconds(values, name)
    elif kind in _PLAIN:
        values = values.astype(_PLAIN[kind])
    else:
        values, gaps = _of_objects(values.astype(object), name, as_text or order is not None)
        missing |= gaps
    if values.dtype.kind != "O":
        missing |= values != values
    return values, missing, order


def _series(column: Any) -> Any:
    """Return a column of pandas, polars or Arrow as narwhals has it; others as they are."""
    library = type(column).__module__.partition(".")[0]
    if library == "pandas" and np.ndim(column) == 1:
        column = importlib.import_module(library).Series(column)  # an index, or an array
    if library == "pyarrow" and not hasattr(column, "chunks"):
        column = importlib.import_module(library).chunked_array([column])
    return nw.from_native(column, series_only=True, pass_through=True)


def _type_of(column: nw.Series[Any]) -> Any:
    """Return the type that a column has in its library; that of Arrow also within pandas."""
    native = column.to_native()
    kind = native.type if hasattr(native, "type") else native.dtype
    return getattr(kind, "pyarrow_dtype", kind)


def _words(column: nw.Series[Any]) -> list[Any]:
    """Return the categories that a column of pandas or Arrow declares."""
    kind = _type_of(column)
    return list(
        kind.categories if hasattr(kind, "categories") else column.to_arrow().dictionary.to_pylist()
    )


def _in_microseconds(values: Array, name: Any) -> Array:
    """Return dates or spans (n,) in µs, in ns if they need it; raise if neither holds them."""
    kind = values.dtype.kind
    for unit in ("us", "ns") if np.datetime_data(values.dtype)[0] in _FINER else ("us",):
        made = values.astype(f"{kind}8[{unit}]")
        if np.array_equal(made.astype(values.dtype), values, equal_nan=True):
            return made
    raise ValueError(
        f"Column {name!r} has dtype {values.dtype} and values that are too large for microseconds, "
        "or finer than nanoseconds; pass them as numbers."
    )


def _of_objects(values: Array, name: Any, as_text: bool) -> tuple[Array, Array]:
    """Return objects (n,) as values of one type, and which are missing (n,)."""
    listed = values.tolist()
    try:
        different = dict.fromkeys(listed)
    except TypeError as error:
        raise _unhashable(listed, name) from error
    gaps = {value for value in different if is_missing(value) and not _is_infinite(value)}
    missing = np.fromiter((value in gaps for value in listed), bool, len(listed))
    there = [value for value in different if value not in gaps]
    kinds = {*map(type, there)}

    def are(*forms: type) -> bool:
        return bool(kinds) and all(issubclass(kind, forms) for kind in kinds)

    words = [value.strip() for value in there if isinstance(value, str)]
    if are(bool, np.bool_):
        found = np.array(there, bool)
    elif are(datetime.timedelta, np.timedelta64):  # before numbers, which NumPy calls its spans
        spans = [getattr(x, "to_timedelta64", partial(np.timedelta64, x))() for x in there]
        found = _in_microseconds(np.array(spans), name)
    elif are(numbers.Real, np.bool_, Decimal):
        found = _numbers(there, name)
    elif are(datetime.date, np.datetime64) or (
        are(datetime.date, np.datetime64, str)
        and not as_text
        and all(map(ISO_DATE.fullmatch, words))
    ):
        found = np.array([_date(value, name, listed) for value in there])
    elif are(str) or len(kinds) < 2:
        return values, missing
    else:
        raise TypeError(
            f"Column {name!r} holds values of several types, but the argument must be a string or "
            "a number; pass a column of one of them."
        )
    place = {value: j for j, value in enumerate(there)}
    made = np.zeros(len(listed), found.dtype)
    made[~missing] = found[[place[value] for value in listed if value not in gaps]]
    return made, missing


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)


def _unhashable(listed: list[Any], name: Any) -> TypeError:
    """Return the error for a column of objects that are no values, such as lists."""
    for value in listed:
        try:
            hash(value)
        except TypeError:
            break
    size = f" of {len(value):,} entries" if hasattr(value, "__len__") else ""
    return TypeError(
        f"Column {name!r} holds a {type(value).__name__}{size}, but the argument must be a string "
        "or a number; pass a column of one of them, or a column for each entry (np.stack)."
    )


def _numbers(there: list[Any], name: Any) -> Array:
    """Return numbers as integers of 64 bits if they are, else as floats."""
    whole = [
        isinstance(x, numbers.Integral)
        or (isinstance(x, Decimal) and x.is_finite() and x == int(x))
        for x in there
    ]
    for kind in ("i8", "u8") if all(whole) else ():
        with suppress(OverflowError):
            return np.array([int(value) for value in there], kind)
    with suppress(OverflowError):
        found = np.array([float(value) for value in there])
        if all(int(a) == b for a, b, is_whole in zip(found, there, whole, strict=True) if is_whole):
            return found
    raise merged(name)


def merged(name: Any) -> ValueError:
    """Return the error for whole numbers that are equal as floats."""
    return ValueError(
        f"Column {name!r} holds values beyond 2^53, which float64 does not tell apart; leave out "
        f"an id (columns={{{name!r}: 'left out'}}), or pass differences from one of them."
    )


def _date(value: Any, name: Any, listed: list[Any]) -> Any:
    """Return a date as NumPy has it, in UTC."""
    try:
        day = datetime.datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
        if getattr(day, "tzinfo", None) is not None:
            day = day.astimezone(datetime.UTC).replace(tzinfo=None)
        return np.datetime64(day, "us")
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"Column {name!r} holds {str(value)!r} in row {listed.index(value)}, which is no date "
            "of the calendar; correct it, or make it missing."
        ) from error


@dataclass(frozen=True, eq=False)
class Frame:
    """The kind of a table.

    Attributes
    ----------
    library : {"pandas", "polars", "pyarrow", "array", "dict"}
        "dict" also for frames of other libraries.
    types : object
        For each column of a frame its type as `_described` has it; the dtype of an array.
    """

    library: str
    types: Any = None

    @classmethod
    def of(cls, kind: str, columns: Mapping[Any, Any]) -> "Frame":
        """Return the kind of a table that `read_table` has read."""
        if kind == "array":
            return cls(kind, next(iter(columns.values())).dtype)
        if kind not in _MAKERS:
            return cls("dict")
        return cls(kind, {name: _described(column) for name, column in columns.items()})

    def made(self, columns: dict[Any, Array], names: list[Any]) -> Any:
        """Return a table of columns (n,), whose missing entries are NaN, NaT or None.

        An array has all columns of these names; those that are not given are missing.
        """
        if self.library == "dict":
            return columns
        if self.library == "array":
            return _array(columns, names, self.types)
        library, make = importlib.import_module(self.library), _MAKERS[self.library]
        found = {name: make(values, **self.types[name]) for name, values in columns.items()}
        return library.table(found) if self.library == "pyarrow" else library.DataFrame(found)


def _described(column: nw.Series[Any]) -> dict[str, Any]:
    """Return the type of a column as plain values: its name, or bytes of Arrow, and what it has."""
    kind, library = _type_of(column), column.implementation.value
    if type(kind).__module__.startswith("pyarrow"):
        schema = importlib.import_module("pyarrow").schema([("", kind)])
        words = _words(column) if hasattr(kind, "index_type") else None
        return {"name": np.frombuffer(schema.serialize(), np.uint8), "words": words}
    if library == "polars":
        name = type(kind).__name__
        facts = vars(kind) if name in ("Datetime", "Duration", "Decimal", "Enum") else {}
        plain = {key: x.to_list() if hasattr(x, "to_list") else x for key, x in facts.items()}
        return {"name": name, **plain}
    if hasattr(kind, "categories"):
        declared = np.asarray(kind.categories)
        return {"name": "category", "words": declared, "ordered": bool(kind.ordered)}
    return {"name": f"string[{kind.storage}]" if str(kind) == "string" else str(kind)}


# Columns of a type. One that does not hold what there is, such as whole numbers that are missing,
# or text for dates that were read from text, leaves it as it is.


def _array(columns: dict[Any, Array], names: list[Any], dtype: np.dtype) -> Array:
    rounded = {name: _rounded(column, str(dtype)) for name, column in columns.items()}
    are_numbers = all(column.dtype.kind in "bf" for column in rounded.values())
    n = len(next(iter(rounded.values())))
    lost = np.full(n, np.nan if are_numbers else None)
    whole = np.column_stack([rounded.get(name, lost) for name in names])
    return whole.astype(dtype) if _holds(dtype, whole) else whole


def _in_pandas(values: Array, name: Any, words: Any = None, ordered: bool = False) -> Any:
    pd = importlib.import_module("pandas")
    if not isinstance(name, str):
        made = _in_arrow(values, name, words)
        return pd.Series(made, dtype=pd.ArrowDtype(made.type))
    column = pd.Series(_rounded(values, name))
    if name == "category":
        made = pd.Series(pd.Categorical(values, words, ordered))
        return made if made.count() == column.count() else column
    with suppress(TypeError, ValueError):
        kind = pd.api.types.pandas_dtype(name)
        if getattr(kind, "tz", None) is not None:
            column = column.dt.tz_localize("UTC")
        lost = isinstance(kind, np.dtype) and not _holds(kind, column.to_numpy())
        return column if lost or _is_no_text(values, name) else column.astype(kind)
    return column


def _in_polars(values: Array, name: str, **given: Any) -> Any:
    pl = importlib.import_module("polars")
    kind = getattr(pl, name)(**given)
    values = _rounded(values, str(kind))
    is_object = values.dtype.kind == "O"
    column = pl.Series(values.tolist()) if is_object else pl.Series(values, nan_to_null=True)
    if given.get("time_zone"):
        column = column.dt.replace_time_zone("UTC").dt.convert_time_zone(given["time_zone"])
    with suppress(pl.exceptions.PolarsError):
        return column if _is_no_text(values, name) else column.cast(kind)
    return column


def _in_arrow(values: Array, name: Array, words: Any) -> Any:
    pa = importlib.import_module("pyarrow")
    kind = pa.ipc.read_schema(pa.py_buffer(name.tobytes())).field(0).type
    values = _rounded(values, str(kind))
    is_object = values.dtype.kind == "O"
    column = pa.array(values.tolist() if is_object else values, from_pandas=True)
    if words is not None:
        dictionary = pa.array(words, kind.value_type)
        compute = importlib.import_module("pyarrow.compute")
        codes = compute.index_in(column.cast(kind.value_type, safe=False), dictionary)
        if codes.null_count > column.null_count:
            return column
        codes = codes.cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(codes, dictionary, ordered=kind.ordered)
    with suppress(pa.ArrowException):
        return column if _is_no_text(values, str(kind)) else column.cast(kind)
    return column


_MAKERS: dict[str, Callable[..., Any]] = {
    "pandas": _in_pandas,
    "polars": _in_polars,
    "pyarrow": _in_arrow,
}


def _is_no_text(values: Array, name: str) -> bool:
    """Say whether a column held text or objects, and its values are others."""
    return values.dtype.kind != "O" and _TEXT.fullmatch(name.lower()) is not None


def _holds(dtype: np.dtype, values: Array) -> bool:
    """Say whether a type of NumPy has these values: missing ones, and numbers of their size."""
    if dtype.kind == "f":
        return not (np.abs(values.astype(float)) > np.finfo(dtype).max).any()
    if dtype.kind in "OMm":
        return True
    if any(is_missing(value) for value in values.ravel().tolist()):
        return False
    if dtype.kind not in "iu":
        return True
    least, most = int(values.min()), int(values.max())  # as floats 2^64 - 1 is 2^64
    return bool(np.iinfo(dtype).min <= least and most <= np.iinfo(dtype).max)


def _rounded(values: Array, name: str) -> Array:
    """Return whole numbers, or dates and spans in whole units, where a type has only these."""
    if values.dtype.kind == "f" and _WHOLE.match(name.lower()):
        return np.rint(values)
    found = _COARSE.search(name)
    if found is None or values.dtype.kind not in "mM":
        return values
    unit = "D" if found[0] in ("Date", "day") else found[0]
    half = np.array(1, f"m8[{unit}]").astype("m8[us]") // 2
    return (values + half).astype(f"{values.dtype.kind}8[{unit}]").astype(values.dtype)


_MOST_SHOWN = 5  # names in a message


def _warn_of_new(found: Mapping[Any, Mapping[int, Any]]) -> None:
    """Warn of categories that the fit did not see, which are given by column and row."""
    said = [
        f"column {name!r} {', '.join(_few([*map(repr, dict.fromkeys(new.values()))]))} "
        f"in {len(new):,} row(s)"
        for name, new in found.items()
    ]
    if said:
        rows = np.array(sorted({row for new in found.values() for row in new}))
        what = "hold categories that the fit did not see"
        do = "such a category counts as rare, or is 0 everywhere; fit again with rows that have it"
        warn_of_rows(rows, f"{what}: {'; '.join(_few(said))}; {do}.")


@dataclass(eq=False, repr=False)
class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a table of mixed columns as numbers whose Euclidean distances make sense.

    Each column counts alike, whatever its type: the mean squared distance of two rows in it is 2.
    So the squared distance of two rows is a sum over columns, as in Gower's coefficient [1]_, but
    every method for points can use it. A column becomes

    - "number": (x - mean) / standard deviation. Numbers, and spans of time.
    - "rank": the same of its place among the values of the fit. For numbers of which few are very
      large, such as prices; only where `columns` says so.
    - "boolean": the same of 0 and 1.
    - "date": the same of the time in UTC. Dates, and text in which all is dates such as 2024-03-01
      or 2024-03-01T19:00:00+01:00.
    - "ordered": the same of its place in the order. Ordered categories of pandas and Arrow, and
      columns for which `columns` has an order, or says so: then in the order that pandas and an
      Enum of polars declare, else sorted.
    - "category": a number for each category, 1 / √(1 - Σ p²) in the own one and 0 in the others,
      where p are the shares of the categories. All different categories are equally far. Text,
      other objects that compare, and categories without order. Rare categories share one number.
      A new category counts as rare, or has 0 everywhere, and `transform` warns of it.
    - "left out": columns without a value, with a single one, and names, whose values are all rare.

    Missing entries (NaN, None, NaT, NA, empty text) stay NaN, in all numbers of their column.
    Shares, means and deviations are those of the entries that are there.

    Parameters
    ----------
    columns : dict or None, default=None
        What columns become, by name (for an array x0, x1, ...), if not what their type says: a
        kind, or a list of categories in their order.
    min_frequency : float or int, default=0.01
        Categories with fewer rows are pooled: a fraction of the rows, or from 1 on their number.
        A category with a single row is always rare.

    Attributes
    ----------
    columns_ : dict
        For each column what it became: `kind`, `describe()`, `categories`, `mean`, `scale`.
    n_features_in_ : int
        Number of columns seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns. Defined only if X has names that are all strings.

    See Also
    --------
    HeatEmbedding : Embed data in few dimensions that keep diffusion distances.
    io.read_table : Read points from a file; ``encode=True`` reads columns of all types this way.

    Notes
    -----
    narwhals reads frames and columns. The cost is one pass over the table.

    References
    ----------
    .. [1] J. C. Gower, "A general coefficient of similarity and some of its properties",
       Biometrics 27 (1971), 857-871.

    Examples
    --------
    >>> import heatsketch as hs
    >>> table = {"size": [1.0, 2.0, 4.0, None], "colour": ["red", "red", "blue", "blue"]}
    >>> encoder = hs.TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'colour=blue', 'colour=red']
    >>> encoder.transform(table).round(2).tolist()[0]
    [-1.07, 0.0, 1.41]
    >>> print(encoder.describe())
    size: number; colour: 2 categories (blue, red)
    """

    columns: Any = None
    _: KW_ONLY
    min_frequency: float | int = 0.01

    @at_once
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose what each column becomes.

        Parameters
        ----------
        X : data frame, Arrow table, dict or array-like of shape (n_samples, n_columns)
            The table: of pandas, polars or Arrow, a dict of columns, or an array.
        y : ignored
            Present for the interface of scikit-learn.

        Returns
        -------
        self
            The fitted encoder.

        Raises
        ------
        ValueError, TypeError
            Not a table, or no column with two different values; a column of several types, with
            infinity or with objects; dates that microseconds do not hold; parameters out of range,
            or that name no column, or ask for a kind that a column is not.
        """
        table, kind = self._read(X, reset=True)
        self._frame = Frame.of(kind, table)
        self._fit_parts([table], self._asked(table))
        return self

    def _fit_parts(self, parts: Iterable[Mapping[Any, Any]], asked: Mapping[Any, Any]) -> None:
        """Choose what columns become that come in parts: dicts of whole columns."""
        least, found = check_number(self.min_frequency, "min_frequency", low=0), {}
        for part in parts:
            n = len(next(iter(part.values())))
            count = max(2, math.ceil(least if least >= 1 else round(least * n, 9)))
            for name, column in part.items():
                found[name] = fitted_column(name, column, asked.get(name), count)
        if {column.kind for column in found.values()} == {"left out"}:
            reasons = [f"{name}: {column.why}" for name, column in found.items()][:_MOST_SHOWN]
            raise ValueError(
                f"X has no column with two different values that count ({'; '.join(reasons)}); "
                "pass more rows, or a smaller min_frequency."
            )
        self.columns_: dict[Any, Column] = found

    @classmethod
    def _of_parts(cls, parts: Iterable[Mapping[Any, Any]]) -> Self:
        """Return an encoder fitted to a dict of columns that comes in parts, to save memory."""
        encoder = cls()
        encoder._frame = Frame("dict")
        encoder._fit_parts(parts, {})
        encoder.n_features_in_ = len(encoder.columns_)
        encoder._set_names(list(encoder.columns_))
        return encoder

    def transform(self, X: Any) -> Array:
        """Encode rows, old or new; the numbers of a row depend on that row alone.

        Parameters
        ----------
        X : data frame, Arrow table, dict or array-like of shape (n_new_samples, n_columns)
            A table with the columns of the fit.

        Returns
        -------
        ndarray of shape (n_new_samples, n_features_out)
            The numbers, NaN for missing entries.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; other columns, or a column of another type; a category that is not in the
            order of an ordered column.
        """
        check_is_fitted(self)
        table, _ = self._read(X, reset=False)
        columns = self.columns_.items()
        read = {n: column.read(table[n]) for n, column in columns if column.kind != "left out"}
        _warn_of_new({name: new for name, (_, new) in read.items() if new})
        return np.hstack([numbers for numbers, _ in read.values()])

    def inverse_transform(self, X: Any) -> Any:
        """Return the table of rows of numbers, each value the nearest that there is.

        Parameters
        ----------
        X : array-like of shape (n_new_samples, n_features_out)
            Numbers as `transform` returns them, or between them, such as means. The columns of a
            frame with the names of `get_feature_names_out` may be in any order.

        Returns
        -------
        data frame, Arrow table, dict or ndarray
            A table of the kind of the fit (of a frame of another library than pandas, polars and
            Arrow a dict of arrays), whose columns have the types that they had. A column keeps
            another type where its own does not hold missing entries, and dates that were read from
            text stay dates. Missing is also a category that was rare. Columns that were left out
            have no inverse: a frame lacks them, and an array has missing entries there.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; not a table of numbers of as many columns as `transform` returns.
        """
        check_is_fitted(self)
        names = [*self.get_feature_names_out()]
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame) and sorted(map(str, frame.columns)) == sorted(names):
            X = frame.select(*names).to_numpy()  # in any order
        X = check_array(X, dtype=float, ensure_all_finite="allow-nan")
        width = len(names)
        if X.shape[1] != width:
            raise ValueError(
                f"X has {X.shape[1]} columns, but {width} are expected; pass numbers as transform "
                "returns them."
            )
        pairs = zip(self.columns_.items(), self._blocks(X), strict=True)
        found = {name: column.values(x) for (name, column), x in pairs if column.kind != "left out"}
        return self._frame.made(found, list(self.columns_))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the numbers: that of the column, or column=category.

        Parameters
        ----------
        input_features : array-like of str, default=None
            The names of the columns, which are known; others are an error.

        Returns
        -------
        ndarray of shape (n_features_out,)
            The names.

        Raises
        ------
        NotFittedError, ValueError
            Before `fit`; names that are not those of the fit.
        """
        check_is_fitted(self)
        names = [str(name) for name in self.columns_]
        if input_features is not None and list(input_features) != names:
            raise ValueError(
                f"input_features is not equal to feature_names_in_: {names[:_MOST_SHOWN]}; leave "
                "it out."
            )
        found = [name for column in self.columns_.values() for name in column.names]
        used = Counter(found)
        for place, name in enumerate(found):
            number = 1
            while used[found[place]] > 1:  # a=b of the column a, and a column a=b
                used[found[place]] -= 1
                number += 1
                found[place] = f"{name} ({number})"
                used[found[place]] += 1
        return np.array(found, object)

    def describe(self) -> str:
        """Say in a line what each column became.

        Returns
        -------
        str
            Columns and kinds.

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        check_is_fitted(self)
        return "; ".join(f"{name}: {one.describe()}" for name, one in self.columns_.items())

    @property
    def _texts(self) -> tuple[Any, ...]:
        """The columns that hold text."""
        return tuple(name for name, column in self.columns_.items() if column.dtype == "O")

    def _middle(self, numbers: Array) -> Array:
        """Return the median, or the most frequent category, of each column, as numbers."""
        parts = [(c, x) for c, x in zip(self.columns_.values(), self._blocks(numbers), strict=True)]
        return np.concatenate([c.middle(x) for c, x in parts if c.kind != "left out"])

    def _in_units(self, numbers: Array) -> Array:
        """Return numbers (n, d) in the units of the columns."""
        pairs = zip(self.columns_.values(), self._blocks(numbers), strict=True)
        return np.hstack([column.in_units(x) for column, x in pairs if column.kind != "left out"])

    def _blocks(self, numbers: Array) -> list[Array]:
        """Return the numbers of each column."""
        ends = np.cumsum([len(column.names) for column in self.columns_.values()])
        return np.split(numbers, ends[:-1], axis=1)

    def _asked(self, table: dict[Any, Any]) -> dict[Any, Any]:
        """Return what the user asks columns to become, checked."""
        asked = {} if self.columns is None else self.columns
        if not isinstance(asked, Mapping):
            raise TypeError(
                f"columns={asked!r} is of type {type(asked).__name__}; pass a dict such as "
                "{'size': ['S', 'M', 'L'], 'code': 'category'}."
            )
        for name, kind in asked.items():
            if name not in table:
                hint = did_you_mean(name, [*map(str, table)])
                raise ValueError(
                    f"columns names {name!r}, which X does not have; pass names of columns{hint}"
                )
            if isinstance(kind, str):
                check_choice(kind, f"columns[{name!r}]", KINDS)
            elif not (isinstance(kind, Sequence) or hasattr(kind, "__array__")) or len(kind) < 2:
                raise ValueError(
                    f"columns[{name!r}]={kind!r}; pass a kind, or two or more different categories "
                    "in their order."
                )
        return dict(asked)

    def _read(self, X: Any, reset: bool) -> tuple[dict[Any, Any], str]:
        """Return the columns by name, and what X is; with `reset` the encoder gets the names."""
        table, kind = read_table(X)
        shown = ", ".join(map(str, [*table][:_MOST_SHOWN]))
        if not table:
            raise ValueError("X has 0 feature(s); pass a table with columns.")
        if not reset and (kind == "array") != (self._frame.library == "array"):
            fitted = ", ".join(map(str, [*self.columns_][:_MOST_SHOWN]))
            raise ValueError(
                f"X is an array, but the fit had a table with the columns {fitted}; pass a table."
                if kind == "array"
                else f"X is a table with the columns {shown}, but the fit had an array; pass an "
                "array, such as X.to_numpy()."
            )
        if kind == "dict":
            if reset:
                self.n_features_in_ = len(table)
                self._set_names(list(table))
        else:
            given = np.empty((1, len(table))) if kind == "array" else X
            validate_data(self, given, reset=reset, skip_check_array=True)
        missing = [] if reset else [name for name in self.columns_ if name not in table]
        if missing:
            raise ValueError(
                f"X has no column {missing[0]!r}, which the fit had, but {shown}; pass it."
            )
        n = len(next(iter(table.values())))
        if n < 1 + reset:
            raise ValueError(f"X has n_samples={n} rows; pass at least {1 + reset}.")
        return table, kind

    def _set_names(self, names: list[Any]) -> None:
        if all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        """Describe the encoder to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags
