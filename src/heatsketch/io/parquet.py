""".parquet files, and those of Arrow: .arrow and .feather, as files or as streams."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._arrays import Array
from heatsketch.io.files import check_budget, need, suffix_of
from heatsketch.io.metadata import KEY, decoded
from heatsketch.io.table import BLOCK_BYTES, Blocks, Names, Reading, Table, refuse_repeated, rows_in
from heatsketch.io.text import arrow_table, blocks_of, rows_from, table_of

ARROW = (".arrow", ".feather")
SUFFIXES = (".parquet", *ARROW)
_FILE = b"ARROW1"  # how a file of Arrow begins, unlike a stream


def read(path: Path, how: Reading) -> Table:
    """Read the numeric columns as features and keep the others."""
    table = read_columns(path)
    note = (table.schema.metadata or {}).get(KEY.encode())
    found = table_of(table, _with_index(how, table.schema), path)
    return replace(found, metadata=decoded(note))


def blocks(path: Path, how: Reading) -> Blocks:
    """Return the points by blocks of rows."""
    if suffix_of(path) in ARROW:
        return _blocks_of_arrow(path, how)
    with _opened(path) as file:
        facts, schema = file.metadata, file.schema_arrow
    counts = [facts.row_group(group).num_rows for group in range(facts.num_row_groups)]
    ends, rows = np.cumsum([0, *counts]), _rows_of_a_block(facts)

    def batches(start: int, included: Names = ()) -> Iterator[Any]:
        first_group = int(np.searchsorted(ends[1:], start, side="right"))
        # Without buffers, because these hold whole row groups.
        with _opened(path, pre_buffer=False, buffer_size=2**20) as file:
            groups = list(range(first_group, len(counts)))
            some = list(included) or None
            found = file.iter_batches(rows, groups, some, use_threads=False)
            yield from rows_from(found, start - int(ends[first_group]))

    return blocks_of(batches, facts.num_rows, schema, _with_index(how, schema), path)


def _blocks_of_arrow(path: Path, how: Reading) -> Blocks:
    """Return the points of a file of Arrow by blocks of rows, which are parts of its batches."""
    with _arrow(path) as (schema, found):
        n = sum(batch.num_rows for batch in found)

    def batches(start: int, included: Names = ()) -> Iterator[Any]:
        with _arrow(path) as (_, found):
            for batch in rows_from(found, start):
                some = batch.select(list(included)) if included else batch
                rows = rows_in(BLOCK_BYTES, batch.nbytes // (8 * batch.num_rows))
                yield from (some.slice(at, rows) for at in range(0, batch.num_rows, rows))

    return blocks_of(batches, n, schema, _with_index(how, schema), path)


@contextmanager
def _arrow(path: Path) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Open a file or stream of Arrow; yield its schema and its batches, whose size is checked."""
    pa, ipc = need("pyarrow", path), need("pyarrow.ipc", path)
    with path.open("rb") as stream:
        is_file = stream.read(len(_FILE)) == _FILE
    with pa.memory_map(str(path)) as source:
        file = ipc.open_file(source) if is_file else ipc.open_stream(source)
        refuse_repeated(file.schema.names, path)

        def batches() -> Iterator[Any]:
            size = 0
            for batch in map(file.get_batch, range(file.num_record_batches)) if is_file else file:
                batch.validate(full=True)  # Arrow trusts the offsets in a file
                size += batch.nbytes
                check_budget(size, path.stat().st_size, str(path))
                yield batch

        yield file.schema, batches()


@contextmanager
def _opened(path: Path, **options: Any) -> Iterator[Any]:
    """Open a file after a check of the size of its contents."""
    with need("pyarrow.parquet", path).ParquetFile(path, **options) as file:
        facts = file.metadata
        refuse_repeated(file.schema_arrow.names, path)
        check_budget(8 * _cells(facts), path.stat().st_size, str(path))
        yield file


def _cells(facts: Any) -> int:
    """Return the number of entries of a file, those of its lists included."""
    columns = range(facts.num_columns)
    nested = [j for j in columns if facts.schema.column(j).max_repetition_level]
    found: int = facts.num_rows * (facts.num_columns - len(nested))
    for group in range(facts.num_row_groups):
        found += sum(facts.row_group(group).column(j).num_values for j in nested)
    return found


def _rows_of_a_block(facts: Any) -> int:
    return rows_in(BLOCK_BYTES, _cells(facts) // max(1, facts.num_rows))


def read_columns(path: Path) -> Any:
    """Read all columns as they are, into an Arrow table."""
    if suffix_of(path) in ARROW:
        with _arrow(path) as (schema, found):
            return need("pyarrow", path).Table.from_batches(found, schema)
    with _opened(path) as file:
        if _cells(file.metadata) == file.metadata.num_rows * file.metadata.num_columns:
            return file.read()
        batches = file.iter_batches(_rows_of_a_block(file.metadata))  # lists take twice as much
        return need("pyarrow", path).Table.from_batches(batches, file.schema_arrow)


def write(draft: Path, embedding: Array, names: Names, table: Table, key: str, note: str) -> None:
    """Write ids and labels, then the coordinates; the note belongs to the schema."""
    parquet = need("pyarrow.parquet", draft)
    written = arrow_table(embedding, names, table)
    parquet.write_table(written.replace_schema_metadata({KEY: note} if note else None), draft)


def _with_index(how: Reading, schema: Any) -> Reading:
    """Return the options with the columns that pandas declared as row index among the ids."""
    declared = (schema.pandas_metadata or {}).get("index_columns", [])
    index_names = [n for n in declared if n in schema.names and n not in how.features]
    return replace(how, ids=(*how.ids, *index_names))


def write_parts(draft: Path, parts: Sequence[Path], note: str) -> None:
    """Write .parquet files with the same columns as the row groups of one file, without empty ones.

    A column that is empty in one and holds text in another is text in all.
    """
    pa, parquet = need("pyarrow", draft), need("pyarrow.parquet", draft)
    parts = [part for part in parts if parquet.read_metadata(part).num_rows]
    schemas = [parquet.read_schema(part) for part in parts]
    schema = pa.unify_schemas(schemas, promote_options="permissive")
    schema = schema.with_metadata({KEY: note} if note else None)
    with parquet.ParquetWriter(draft, schema) as file:
        for part in parts:
            file.write_table(parquet.read_table(part).cast(schema))
