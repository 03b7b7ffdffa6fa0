"""The kind of a table, and tables of that kind whose columns have the types that they had.

Types are kept as plain values, so that files of models hold them.
"""

import importlib
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch._validation import is_missing
from heatsketch.estimators.table_columns import in_one_piece

_TEXT = re.compile(r"(large_)?str(ing)?(_view)?(\[.*\])?|object|utf8")
_WHOLE = re.compile(r"u?int\d+")
_COARSE = re.compile(r"^Date$|\b(?:D|day|h|m|s|ms)\b")  # units of more than a microsecond


@dataclass(frozen=True, eq=False)
class Frame:
    """The kind of a table.

    Attributes
    ----------
    library : {"pandas", "polars", "pyarrow", "array", "dict"}
        "dict" also for frames of other libraries.
    types : object
        Of pandas and polars for each column the name of its type and what else it says; the schema
        of Arrow as bytes, and its dictionaries; the dtype of an array.
    """

    library: str
    types: Any = None

    @classmethod
    def of(cls, X: Any, columns: Mapping[Any, Any]) -> "Frame":
        """Return the kind of a table, whose columns are known."""
        library = type(X).__module__.partition(".")[0]
        if library == "pandas" and hasattr(X, "dtypes"):
            return cls(library, {name: _of_pandas(kind) for name, kind in X.dtypes.items()})
        if library == "polars":
            return cls(library, {name: _of_polars(kind) for name, kind in X.schema.items()})
        if library == "pyarrow":
            coded = [field.name for field in X.schema if hasattr(field.type, "index_type")]
            words = {name: in_one_piece(X[name]).dictionary.to_pylist() for name in coded}
            return cls(library, (np.frombuffer(X.schema.serialize(), np.uint8), words))
        if isinstance(X, Mapping) or hasattr(X, "columns") or hasattr(X, "column_names"):
            return cls("dict")
        return cls("array", next(iter(columns.values())).dtype)

    def made(self, columns: dict[Any, Array], names: list[Any]) -> Any:
        """Return a table of columns (n,), whose missing entries are NaN, NaT or None.

        An array has all columns of these names; those that are not given are missing.
        """
        if self.library == "dict":
            return columns
        if self.library == "array":
            return _array(columns, names, self.types)
        library = importlib.import_module(self.library)
        if self.library == "pandas":
            made = {n: _in_pandas(library, x, *self.types[n]) for n, x in columns.items()}
            return library.DataFrame(made)
        if self.library == "polars":
            made = {n: _in_polars(library, x, *self.types[n]) for n, x in columns.items()}
            return library.DataFrame(made)
        serialized, words = self.types
        schema = library.ipc.read_schema(library.py_buffer(serialized.tobytes()))
        types = {name: (schema.field(name).type, words.get(name)) for name in columns}
        return library.table({n: _in_arrow(library, x, *types[n]) for n, x in columns.items()})


# Columns of a type. One that does not hold what there is, such as whole numbers that are missing,
# or text for dates that were read from text, leaves it as it is.


def _array(columns: dict[Any, Array], names: list[Any], dtype: np.dtype) -> Array:
    rounded = {name: _rounded(column, str(dtype)) for name, column in columns.items()}
    are_numbers = all(column.dtype.kind in "bf" for column in rounded.values())
    n = len(next(iter(rounded.values())))
    lost = np.full(n, np.nan if are_numbers else None)
    whole = np.column_stack([rounded.get(name, lost) for name in names])
    return whole if dtype.kind not in "fOMm" and _lacks(whole) else whole.astype(dtype)


def _in_pandas(pd: Any, values: Array, name: str, *declared: Any) -> Any:
    if name == "category":
        return pd.Series(pd.Categorical(values, *declared))
    column, kind = pd.Series(_rounded(values, name)), pd.api.types.pandas_dtype(name)
    if isinstance(kind, np.dtype) and kind.kind in "biu" and _lacks(values):
        return column
    if getattr(kind, "tz", None) is not None:
        column = column.dt.tz_localize("UTC")
    with suppress(TypeError, ValueError):
        return column if _is_no_text(values, name) else column.astype(kind)
    return column


def _in_polars(pl: Any, values: Array, name: str, given: dict[str, Any]) -> Any:
    kind = getattr(pl, name)(**given)
    values = _rounded(values, str(kind))
    is_object = values.dtype.kind == "O"
    column = pl.Series(values.tolist()) if is_object else pl.Series(values, nan_to_null=True)
    if given.get("time_zone"):
        column = column.dt.replace_time_zone("UTC").dt.convert_time_zone(given["time_zone"])
    with suppress(pl.exceptions.PolarsError):
        return column if _is_no_text(values, name) else column.cast(kind)
    return column


def _in_arrow(pa: Any, values: Array, kind: Any, words: Any) -> Any:
    values = _rounded(values, str(kind))
    is_object = values.dtype.kind == "O"
    column = pa.array(values.tolist() if is_object else values, from_pandas=True)
    if words is not None:
        dictionary = pa.array(words, kind.value_type)
        codes = importlib.import_module("pyarrow.compute").index_in(
            column.cast(kind.value_type), dictionary
        )
        codes = codes.cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(codes, dictionary, ordered=kind.ordered)
    with suppress(pa.ArrowException):
        return column if _is_no_text(values, str(kind)) else column.cast(kind)
    return column


def _of_pandas(kind: Any) -> tuple[Any, ...]:
    """Return the name of a type, and the categories and whether they are ordered."""
    if str(kind) != "category":
        return (str(kind),)
    return "category", np.asarray(kind.categories), bool(kind.ordered)


def _of_polars(kind: Any) -> tuple[Any, ...]:
    """Return the name of a type, and the parameters of those that have some."""
    name = type(kind).__name__
    facts = {"Datetime": ("time_unit", "time_zone"), "Duration": ("time_unit",)}
    given = {fact: getattr(kind, fact) for fact in facts.get(name, ())}
    return name, given | ({"categories": kind.categories.to_list()} if name == "Enum" else {})


def _is_no_text(values: Array, name: str) -> bool:
    """Say whether a column held text or objects, and its values are others."""
    return values.dtype.kind != "O" and _TEXT.fullmatch(name.lower()) is not None


def _lacks(values: Array) -> bool:
    """Say whether an entry is missing."""
    return any(is_missing(value) for value in values.ravel().tolist())


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
