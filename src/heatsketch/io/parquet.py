""".parquet files."""

from pathlib import Path
from typing import Any

from heatsketch._typing import Array
from heatsketch.io.arrow import extra_column, extra_columns, features, with_embedding
from heatsketch.io.files import blame, check_budget, need
from heatsketch.io.metadata import KEY, decoded
from heatsketch.io.reading import Reading
from heatsketch.io.table import Names, Table, choose_label, refuse_key

KEEPS_METADATA = True


def read(path: Path, how: Reading) -> Table:
    """Read the numeric columns as features and keep the others."""
    refuse_key(how.key, path)
    table = read_columns(path)
    index = [name for name in _pandas_index(table.schema) if name in table.column_names]
    values, chosen, notes = features(table, how, path, "row {}".format, ids=tuple(index))
    used = set(chosen)
    others = [name for name in table.column_names if name not in used]
    extra = {name: extra_column(table[name], f"{name} in {path}") for name in others}
    chosen_label = choose_label(extra, (*how.ids, *how.exclude, *index))
    note = (table.schema.metadata or {}).get(KEY.encode(), b"").decode("utf-8", "replace")
    return Table(values, chosen, extra, chosen_label, str(path), decoded(note), notes)


def read_columns(path: Path) -> Any:
    """Read all columns as they are, into an Arrow table."""
    pa, parquet = need("pyarrow", path), need("pyarrow.parquet", path)
    with blame(path, pa.ArrowException, OSError), parquet.ParquetFile(path) as file:
        facts = file.metadata
        check_budget(8 * facts.num_rows * facts.num_columns, path.stat().st_size, str(path))
        return file.read()


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
