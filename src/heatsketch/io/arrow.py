"""Arrow columns of text and Parquet tables: features to arrays, ids and labels to columns."""

from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.io.files import listed
from heatsketch.io.table import Names, Table, is_id, is_label, named_extra


def feature_names(table: Any, excluded: Names, path: Path) -> Names:
    """Return the numeric columns that are not excluded and are neither ids nor labels."""
    import pyarrow as pa

    names, types = table.column_names, pa.types
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"{path} has columns with the same name: {listed(repeated)}; rename them.")
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    numeric = [name for name in names if any(test(table[name].type) for test in tests)]
    kept = [n for n in numeric if n not in excluded and not is_id(n) and not is_label(n)]
    if not kept:
        raise ValueError(
            f"{path} has no numeric column to use as a feature; its columns are {listed(names)}."
        )
    return tuple(kept)


def features(table: Any, names: Names) -> Array:
    """Return the named columns as an array (n, d), float32 if all are, missing ones as NaN."""
    import pyarrow as pa

    single = all(table[name].type == pa.float32() for name in names)
    values = np.empty((table.num_rows, len(names)), np.float32 if single else np.float64)
    kind = pa.float32() if single else pa.float64()
    for j, name in enumerate(names):
        values[:, j] = table[name].cast(kind, safe=False).to_numpy()
    return values


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
