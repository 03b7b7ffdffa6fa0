""".parquet files."""

from pathlib import Path
from typing import Any

from heatsketch._typing import Array
from heatsketch.io.arrow import extra_columns, feature_names, features, with_embedding
from heatsketch.io.files import blame, check_budget, need
from heatsketch.io.metadata import KEY, decoded
from heatsketch.io.table import Names, Table, choose_label, objects, refuse_key

KEEPS_METADATA = True


def read(path: Path, key: str | None, label: Names, ids: Names) -> Table:
    """Read the numeric columns as features and keep the others."""
    refuse_key(key, path)
    pa, parquet = need("pyarrow", path), need("pyarrow.parquet", path)
    with blame(path, pa.ArrowException, OSError), parquet.ParquetFile(path) as file:
        facts = file.metadata
        check_budget(8 * facts.num_rows * facts.num_columns, path.stat().st_size, str(path))
        table = file.read()
    index = [name for name in _pandas_index(table.schema) if name in table.column_names]
    chosen = feature_names(table, (*label, *ids, *index), path)
    others = [name for name in table.column_names if name not in set(chosen)]
    extra = {name: _extra_column(table[name], f"{name} in {path}") for name in others}
    chosen_label = choose_label(extra, (*ids, *index))
    note = (table.schema.metadata or {}).get(KEY.encode(), b"").decode("utf-8", "replace")
    return Table(features(table, chosen), chosen, extra, chosen_label, str(path), decoded(note))


def write(draft: Path, embedding: Array, names: Names, table: Table, key: str, note: str) -> None:
    """Write ids and labels, then the coordinates; the note belongs to the schema."""
    parquet = need("pyarrow.parquet", draft)
    columns = extra_columns(table, names)
    written = with_embedding(columns, embedding, names)
    parquet.write_table(written.replace_schema_metadata({KEY: note} if note else None), draft)


def _pandas_index(schema: Any) -> list[str]:
    """Return the columns that pandas declared as the row index."""
    declared = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in declared if isinstance(name, str)]


def _extra_column(column: Any, what: str) -> Array:
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
