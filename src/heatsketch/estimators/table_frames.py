"""Tables of all libraries: their columns as values of few types, and tables with their types again.

narwhals reads frames. Types are kept as plain values, so that files of models hold them.
"""

import datetime
import importlib
import math
import numbers
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from heatsketch._typing import Array
from heatsketch._validation import is_missing, read_array

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
