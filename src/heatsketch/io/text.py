""".csv and .tsv files."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heatsketch._typing import Array
from heatsketch.io.arrow import extra_columns, feature_names, features, with_embedding
from heatsketch.io.files import blame, need
from heatsketch.io.table import Names, Table, choose_label, is_id, objects, refuse_key

KEEPS_METADATA = False


def read(path: Path, key: str | None, label: Names, ids: Names) -> Table:
    """Read the numeric columns as features and keep the others."""
    refuse_key(key, path)
    names = _column_names(path)
    table = _parse(path, names)
    chosen = feature_names(table, label + ids, path)
    others = [name for name in table.column_names if name not in set(chosen)]
    # The other columns are read again as text, so that an id 007 stays 007.
    texts = _parse(path, names, as_text=others) if others else table
    extra = {
        name: _extra_column(table[name], texts[name], name in ids or is_id(name)) for name in others
    }
    return Table(features(table, chosen), chosen, extra, choose_label(extra, ids), str(path))


def write(draft: Path, embedding: Array, names: Names, table: Table, key: str, note: str) -> None:
    """Write ids and labels, with text that looks like a formula escaped, then the coordinates."""
    pa, pacsv = need("pyarrow", draft), need("pyarrow.csv", draft)
    columns = {
        _safe_text(pa.array([name]))[0].as_py(): _safe_text(column)
        for name, column in extra_columns(table, names).items()
    }
    options = pacsv.WriteOptions(delimiter=_delimiter(draft))
    pacsv.write_csv(with_embedding(columns, embedding, names), draft, options)


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _column_names(path: Path) -> list[str]:
    """Return x0, x1, … if the first row holds numbers only, nothing if it is a header."""
    with (
        blame(path, csv.Error),
        path.open(encoding="utf-8-sig", errors="replace", newline="") as stream,
    ):
        cells = next(filter(None, csv.reader(stream, delimiter=_delimiter(path))), [])
    if not cells:
        raise ValueError(f"{path} is empty; pass a table with at least one row.")
    return [] if _is_header(cells) else [f"x{j}" for j in range(len(cells))]


def _is_header(cells: list[str]) -> bool:
    numbered = cells[1:] if cells[0] == "" else cells  # the index of a pandas frame has no name
    if numbered == [str(j) for j in range(len(numbered))] and (len(numbered) > 2 or cells[0] == ""):
        return True
    filled = [cell for cell in cells if cell.strip()]
    return not filled or not all(map(_is_number, filled))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _parse(path: Path, names: list[str], as_text: Sequence[str] = ()) -> Any:
    """Parse in one block, so that all rows determine the type of a column."""
    pa, pacsv = need("pyarrow", path), need("pyarrow.csv", path)
    block = min(max(path.stat().st_size + 1, 2**20), 2**31 - 1)
    with blame(path, pa.ArrowException, OSError):
        return pacsv.read_csv(
            path,
            read_options=pacsv.ReadOptions(
                column_names=names or None, use_threads=False, block_size=block
            ),
            parse_options=pacsv.ParseOptions(delimiter=_delimiter(path), newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(
                include_columns=list(as_text), column_types=dict.fromkeys(as_text, pa.string())
            ),
        )


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
