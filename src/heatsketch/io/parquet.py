""".parquet files."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from heatsketch._typing import Array
from heatsketch.io.arrow import extra_column, extra_columns, features, with_embedding
from heatsketch.io.blocks import PIECE_BYTES, Blocks, rows_in, stamp
from heatsketch.io.files import blame, check_budget, need
from heatsketch.io.metadata import KEY, decoded
from heatsketch.io.reading import Reading
from heatsketch.io.refine import warn_of_counts
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


def blocks(path: Path, how: Reading) -> Blocks:
    """Return the points by blocks of row groups; features are chosen by the first rows."""
    refuse_key(how.key, path)
    pa, parquet = need("pyarrow", path), need("pyarrow.parquet", path)
    with blame(path, pa.ArrowException, OSError), parquet.ParquetFile(path) as file:
        facts = file.metadata
        check_budget(8 * facts.num_rows * facts.num_columns, path.stat().st_size, str(path))
        sizes = [facts.row_group(g).num_rows for g in range(facts.num_row_groups)]
        rows = rows_in(PIECE_BYTES, facts.num_columns)
        first = next(file.iter_batches(batch_size=rows), None)
        schema = file.schema_arrow
    head = pa.Table.from_batches([] if first is None else [first], schema)
    index = tuple(name for name in _pandas_index(schema) if name in schema.names)
    values, chosen, _ = features(head, how, path, "row {}".format, ids=index)
    warn_of_counts(Table(values, chosen, {}, None, str(path)), how)
    told = replace(how, features=chosen, exclude=())

    def pieces(start: int) -> Iterator[Table]:
        at = 0
        with blame(path, pa.ArrowException, OSError), parquet.ParquetFile(path) as file:
            for group, size in enumerate(sizes):
                if at + size <= start:
                    at += size
                    continue
                for batch in file.iter_batches(batch_size=rows, row_groups=[group]):
                    skipped = min(max(0, start - at), batch.num_rows)
                    at += batch.num_rows
                    if skipped < batch.num_rows:
                        part = pa.Table.from_batches([batch.slice(skipped)])
                        yield _piece(part, told, path, at - part.num_rows)

    return Blocks(sum(sizes), chosen, values.dtype, str(path), lambda: stamp(path), pieces)


def _piece(part: Any, told: Reading, path: Path, start: int) -> Table:
    """Return some rows, of which the first has this number."""
    values, chosen, _ = features(part, told, path, lambda i: f"row {start + i}")
    others = [name for name in part.column_names if name not in chosen]
    extra = {name: extra_column(part[name], f"{name} in {path}") for name in others}
    return Table(values, chosen, extra, None, str(path))


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


def n_rows(path: Path) -> int:
    """Return the number of rows of a file."""
    return int(need("pyarrow.parquet", path).read_metadata(path).num_rows)


def write_parts(draft: Path, parts: Sequence[Path], note: str) -> None:
    """Write .parquet files with the same columns as the row groups of one.

    A column that is empty in one and holds text in another is text in all.
    """
    pa, parquet = need("pyarrow", draft), need("pyarrow.parquet", draft)
    schemas = [parquet.read_schema(part) for part in parts]
    schema = pa.unify_schemas(schemas, promote_options="permissive")
    schema = schema.with_metadata({KEY: note} if note else None)
    with parquet.ParquetWriter(draft, schema) as file:
        for part in parts:
            file.write_table(parquet.read_table(part).cast(schema))
