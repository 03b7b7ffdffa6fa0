""".xlsx files: one sheet, by openpyxl; they are read, not written."""

import zipfile
from pathlib import Path
from typing import Any

from heatsketch.io.columns import table_of
from heatsketch.io.files import DAMAGE, blame, check_budget, need
from heatsketch.io.header import column_names, is_header
from heatsketch.io.reading import Reading
from heatsketch.io.table import Table, require


def read(path: Path, how: Reading) -> Table:
    """Read the numeric columns of a sheet as features and keep the others."""
    pa = need("pyarrow", path)
    rows, empty = _rows(path, how.key)
    if not rows:
        raise ValueError(f"{path} is empty; pass a table with at least one row.")
    texts = [[_as_text(cell, how.decimal) for cell in row] for row in rows]
    header = is_header(texts, how.decimal, path) if how.header is None else how.header
    names = tuple(f"x{j}" for j in range(len(rows[0])))
    if header:
        names = column_names(texts[0], texts[1:])
    cells = zip(*texts[header:], strict=True) if texts[header:] else [()] * len(names)
    table = pa.Table.from_arrays([pa.array(column, pa.string()) for column in cells], list(names))

    def place(row: int) -> str:
        return f"row {row} (line {row + 1 + header + empty} of the sheet)"

    return table_of(table, how, path, place, is_text=True)


def _as_text(cell: Any, decimal: str) -> str:
    """Return a cell as a text file would hold it."""
    if cell is None:
        return ""
    return str(cell).replace(".", decimal) if isinstance(cell, float) else str(cell)


def _rows(path: Path, key: str | None) -> tuple[list[tuple[Any, ...]], int]:
    """Return the rows of a sheet without empty edges, and the number of empty rows above."""
    openpyxl = need("openpyxl", path)
    with blame(path, *DAMAGE, AttributeError, IndexError, SyntaxError, ValueError):
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
            check_budget(size, path.stat().st_size, str(path))
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        names = [sheet.title for sheet in book.worksheets]
        if key is not None:
            require([key], names, path, "sheet")
        found = list(book[key or names[0]].iter_rows(values_only=True))
        book.close()
    filled = [j for j, row in enumerate(found) if any(cell is not None for cell in row)]
    if not filled:
        return [], 0
    found = found[filled[0] : filled[-1] + 1]
    width = max(j + 1 for row in found for j, cell in enumerate(row) if cell is not None)
    return [(*row, *[None] * width)[:width] for row in found], filled[0]
