""".csv, .tsv and .txt files, and .gz of them."""

import re
from collections.abc import Sequence
from dataclasses import replace
from gzip import GzipFile
from pathlib import Path
from typing import Any

from heatsketch._typing import Array
from heatsketch.io.arrow import extra_columns, features, with_embedding
from heatsketch.io.files import blame, need
from heatsketch.io.layout import Layout, contents, find_layout, line_of
from heatsketch.io.reading import Reading
from heatsketch.io.table import (
    Names,
    Table,
    choose_label,
    is_id,
    objects,
    refuse_key,
    refuse_repeated,
)

KEEPS_METADATA = False
_UNEVEN = "give every row the same number of cells, or name the separator with sep (--sep)"


def read(path: Path, how: Reading) -> Table:
    """Read the numeric columns as features and keep the others."""
    refuse_key(how.key, path)
    need("pyarrow", path)
    layout, data = find_layout(contents(path), path, how)
    refuse_repeated(layout.names, path)
    table = _parse(path, data, layout, how)
    table = table.drop_columns([name for name in table.column_names if _is_blank(table, name)])

    def place(row: int) -> str:
        return f"row {row} (line {line_of(row, data, layout)} of the file)"

    values, chosen, notes = features(table, how, path, place)
    used = set(chosen)
    others = [name for name in table.column_names if name not in used]
    # The other columns are read again as text, so that an id 007 stays 007.
    texts = _parse(path, data, layout, how, as_text=others) if others else table
    ids = how.ids
    extra = {
        name: _extra_column(table[name], texts[name], name in ids or is_id(name)) for name in others
    }
    label = choose_label(extra, ids + how.exclude)
    return Table(values, chosen, extra, label, str(path), notes=notes)


def read_cells(path: Path, how: Reading) -> Any:
    """Read all cells as text without blanks around it, into an Arrow table; also the first row."""
    refuse_key(how.key, path)
    need("pyarrow", path)
    layout, data = find_layout(contents(path), path, replace(how, header=False))
    refuse_repeated(layout.names, path)
    table = _parse(path, data, layout, how, as_text=layout.names)
    pc = need("pyarrow.compute", path)
    return table.from_arrays([pc.utf8_trim_whitespace(c) for c in table.columns], layout.names)


def write(draft: Path, embedding: Array, names: Names, table: Table, key: str, note: str) -> None:
    """Write ids and labels, with text that looks like a formula escaped, then the coordinates."""
    pa, pacsv = need("pyarrow", draft), need("pyarrow.csv", draft)
    columns = {
        _safe_text(pa.array([name]))[0].as_py(): _safe_text(column)
        for name, column in extra_columns(table, names).items()
    }
    suffixes = [suffix.lower() for suffix in draft.suffixes]
    options = pacsv.WriteOptions(delimiter="," if ".csv" in suffixes[-2:] else "\t")
    with draft.open("wb") as file:
        # Without name and date: equal content, equal bytes.
        packed = GzipFile("", "wb", fileobj=file, mtime=0) if suffixes[-1] == ".gz" else file
        with packed as stream:
            pacsv.write_csv(with_embedding(columns, embedding, names), stream, options)


def _parse(
    path: Path, data: bytes, layout: Layout, how: Reading, as_text: Sequence[str] = ()
) -> Any:
    """Parse in one block, so that all rows determine the type of a column."""
    pa, pacsv = need("pyarrow", path), need("pyarrow.csv", path)
    block = min(max(len(data) + 1, 2**20), 2**31 - 1)
    with blame(path, pa.ArrowException, OSError, do=_UNEVEN):
        return pacsv.read_csv(
            pa.BufferReader(data),
            read_options=pacsv.ReadOptions(
                column_names=layout.names,
                skip_rows=layout.skip,
                use_threads=False,
                block_size=block,
            ),
            parse_options=pacsv.ParseOptions(delimiter=layout.sep, newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(
                include_columns=list(as_text),
                column_types=dict.fromkeys(as_text, pa.string()),
                decimal_point=how.decimal,
            ),
        )


def _is_blank(table: Any, name: str) -> bool:
    """Say whether a column has neither a name nor data: separators at the end of all lines."""
    unnamed = name == "" or re.fullmatch(r"column \d+", name)
    return bool(unnamed) and table[name].null_count == table.num_rows > 0


def _extra_column(guess: Any, text: Any, as_written: bool) -> Array:
    """Return integers if they have the same text, else floats or the text as written."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.types
    if types.is_integer(guess.type) and guess.cast(pa.string()).equals(text):
        return guess.to_numpy()
    numeric = types.is_integer(guess.type) or types.is_floating(guess.type)
    padded = pc.any(pc.match_substring_regex(text, r"^[+-]?0[0-9]")).as_py()
    if numeric and not padded and not as_written:
        return guess.cast(pa.float64(), safe=False).to_numpy()
    return objects(text.to_pylist())


def _safe_text(column: Any) -> Any:
    """Put an apostrophe before text that a spreadsheet would run as a formula."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.types
    if any(test(column.type) for test in (types.is_integer, types.is_floating, types.is_boolean)):
        return column
    text = column.cast(pa.string())
    formula = pc.match_substring_regex(text, r"^[=+\-@\t\r]")
    return pc.if_else(formula, pc.binary_join_element_wise("'", text, ""), text)
