"""Arrow columns of text and Parquet tables: features to arrays, ids and labels to columns."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.io.files import listed
from heatsketch.io.numerals import as_numbers
from heatsketch.io.reading import Reading
from heatsketch.io.table import (
    Names,
    Table,
    is_id,
    is_label,
    named_extra,
    objects,
    refuse_repeated,
    require,
)


def features(
    table: Any, how: Reading, path: Path, place: Callable[[int], str], *, ids: Names = ()
) -> tuple[Array, Names, Names]:
    """Return the features (n, d), their names, and notes on cells that count as missing.

    Features are the columns asked for, or else those of numbers that are not said to be anything
    else. float32 if all are; gaps are NaN.

    Raises
    ------
    ValueError
        If there is no feature, or a column looks numeric and is not; the message names the place.
    """
    import pyarrow as pa

    names = table.column_names
    refuse_repeated(names, path)
    require(how.features + how.exclude, names, path)
    tried = how.features or [
        n for n in names if n not in (*how.others, *ids) and not is_id(n) and not is_label(n)
    ]
    columns, notes = {}, []
    for name in tried:
        with _named(path):
            column, note = _numbers(table[name], name, how, place)
        if column is not None:
            columns[name] = column
            notes.append(note)
    if not columns and not table.num_rows:
        raise ValueError(f"{path} has no rows below its header; pass a table with some.")
    if not columns:
        raise ValueError(
            f"{path} has no numeric column to use as a feature; its columns are {listed(names)}."
        )
    single = all(column.type == pa.float32() for column in columns.values())
    values = np.empty((table.num_rows, len(columns)), np.float32 if single else np.float64)
    kind = pa.float32() if single else pa.float64()
    for j, column in enumerate(columns.values()):
        values[:, j] = column.cast(kind, safe=False).to_numpy(zero_copy_only=False)
    return values, tuple(columns), tuple(filter(None, notes))


def _numbers(column: Any, name: str, how: Reading, place: Callable[[int], str]) -> tuple[Any, str]:
    """Return a column of numbers and a note, or None in its place if it holds something else."""
    import pyarrow as pa

    kind, types, asked = column.type, pa.types, name in how.features
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if any(test(kind) for test in tests):
        return column.combine_chunks(), ""
    if types.is_string(kind) or types.is_large_string(kind):
        return as_numbers(column, name, how, place, asked=asked)
    if asked:
        what = "nothing" if types.is_null(kind) else f"values of type {kind}"
        raise ValueError(f"column {name!r} holds {what}; name features that are numbers.")
    return None, ""


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def extra_column(column: Any, what: str) -> Array:
    """Return a column of ids or labels, numbers if they are, else objects with None for gaps."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_nested(column.type):
        raise ValueError(f"{what} has type {column.type}; store it in several columns or drop it.")
    plain = types.is_integer(column.type) or types.is_boolean(column.type)
    if (plain and not column.null_count) or types.is_floating(column.type):
        return column.to_numpy()
    return objects(column.to_pylist())


def extra_columns(table: Table, names: Names) -> dict[str, Any]:
    """Return the ids and labels as Arrow arrays, under names that are not among `names`."""
    import pyarrow as pa

    columns = {}
    for name, column in named_extra(table, names).items():
        try:
            columns[name] = pa.array(column.tolist() if column.dtype.hasobject else column)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # items of several types
            columns[name] = pa.array([None if item is None else str(item) for item in column])
    return columns


def with_embedding(columns: dict[str, Any], embedding: Array, names: Names) -> Any:
    """Return an Arrow table of the columns and, after them, the coordinates."""
    import pyarrow as pa

    return pa.table(columns | {name: pa.array(embedding[:, j]) for j, name in enumerate(names)})
